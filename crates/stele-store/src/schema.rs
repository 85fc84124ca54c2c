//! The format of the database: created, migrated forward after a copy is kept, refused when newer.

use std::fs::{DirBuilder, OpenOptions};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::database::connect_writer;
use crate::lock::{open, unwritable};
use crate::{Error, Result};

/// The steps from an empty database to the format of this build, in order. Never edited, only added to.
pub(crate) const MIGRATIONS: &[&str] = &[include_str!("../migrations/0001_log.sql")];

/// `stele` in ASCII, shortened: marks a SQLite file as ours.
const APPLICATION_ID: i32 = 0x7374_6c65;
/// A write-ahead log longer than this (bytes) is folded into the database when a store opens.
const LARGE_LOG: u64 = 8 << 20;

/// Opens the database for writing; creates or migrates it when it has to be.
pub(crate) fn open_for_writing(root: &Path, path: &Path, migrations: &[&str]) -> Result<Connection> {
    check_kind(path)?;
    if !path.exists() || !root.join("locks").exists() {
        create_files(root, path)?;
    }
    let connection = connect_writer(path)?;
    if connection.is_readonly("main").map_err(|error| Error::reading(path, &error))? {
        return Err(Error::Unwritable { path: path.to_owned(), cause: "it may only be read".to_owned() });
    }
    if version(&connection, path, migrations)? < known(migrations) {
        migrate(&connection, root, path, migrations)?;
    }
    if std::fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > LARGE_LOG) {
        // While others read or write, the log may have to stay for now; that is no error.
        let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
    Ok(connection)
}

/// Refuses what cannot be a database before it is opened: opening a named pipe would wait for its other end.
pub(crate) fn check_kind(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            let what = if found.is_dir() { "a folder" } else { "a pipe, a socket or a device" };
            let cause = format!("it is {what}, not a database; move it away, or set STELE_HOME to another folder");
            Err(Error::Unreadable { path: path.to_owned(), cause })
        }
        // Whatever else is wrong with it, opening it says.
        _ => Ok(()),
    }
}

/// Refuses a database whose format inspection cannot read. False for one that is still empty: whoever was
/// about to make it was stopped on the way.
pub(crate) fn check_for_inspection(connection: &Connection, path: &Path, migrations: &[&str]) -> Result<bool> {
    match (version(connection, path, migrations)?, known(migrations)) {
        (0, _) => Ok(false),
        (found, known) if found < known => Err(Error::Older { path: path.to_owned(), found, known }),
        _ => Ok(true),
    }
}

fn known(migrations: &[&str]) -> u32 {
    u32::try_from(migrations.len()).unwrap_or(u32::MAX)
}

/// The database's format; 0 for one that is still empty.
fn version(connection: &Connection, path: &Path, migrations: &[&str]) -> Result<u32> {
    let read = |error: rusqlite::Error| Error::reading(path, &error);
    let found: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(read)?;
    let owner: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(read)?;
    if owner != APPLICATION_ID {
        let tables: u32 =
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(read)?;
        if found != 0 || tables != 0 {
            let cause = "it is a database of another program; move it away, or set STELE_HOME to another folder";
            return Err(Error::Unreadable { path: path.to_owned(), cause: cause.to_owned() });
        }
    }
    let known = known(migrations);
    if found > known {
        return Err(Error::Newer { path: path.to_owned(), found, known });
    }
    Ok(found)
}

/// Brings the database to the format of this build. Only one process at a time does this.
fn migrate(connection: &Connection, root: &Path, path: &Path, migrations: &[&str]) -> Result<()> {
    let gate_path = root.join("locks").join(".migrate");
    let gate = open(&gate_path).map_err(|error| unwritable(&gate_path, &error))?;
    gate.lock().map_err(|error| Error::NoLocks { path: gate_path.clone(), cause: error.to_string() })?;
    let write = |error: rusqlite::Error| Error::writing(path, &error);
    // Another process may have done it while this one waited.
    let found = version(connection, path, migrations)?;
    if found == known(migrations) {
        return Ok(());
    }
    if found == 0 {
        connection.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(())).map_err(write)?;
    } else {
        keep_copy(connection, path, found)?;
    }
    connection.execute_batch("BEGIN IMMEDIATE").map_err(write)?;
    let result =
        apply(connection, path, found, migrations).and_then(|()| connection.execute_batch("COMMIT").map_err(write));
    if result.is_err() && !connection.is_autocommit() {
        // Nothing was committed, so the database still is what it was.
        let _ = connection.execute_batch("ROLLBACK");
    }
    result
}

fn apply(connection: &Connection, path: &Path, found: u32, migrations: &[&str]) -> Result<()> {
    let write = |error: rusqlite::Error| Error::writing(path, &error);
    connection
        .execute_batch(
            "CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY, checksum BLOB NOT NULL) STRICT",
        )
        .map_err(write)?;
    for (version, sql) in (1..).zip(migrations) {
        let checksum = blake3::hash(sql.as_bytes());
        if version <= found {
            let applied: Vec<u8> = connection
                .query_row("SELECT checksum FROM migrations WHERE version = ?1", [version], |row| row.get(0))
                .map_err(|error| Error::reading(path, &error))?;
            if applied != checksum.as_bytes() {
                let detail =
                    format!("step {version} of the format of {} is not the one this build knows", path.display());
                return Err(Error::Corrupt { detail });
            }
            continue;
        }
        connection.execute_batch(sql).map_err(write)?;
        connection
            .execute("INSERT INTO migrations (version, checksum) VALUES (?1, ?2)", (version, checksum.as_bytes()))
            .map_err(write)?;
    }
    connection.pragma_update(None, "application_id", APPLICATION_ID).map_err(write)?;
    connection.pragma_update(None, "user_version", known(migrations)).map_err(write)
}

/// Keeps the database as it is, write-ahead log included, as `stele.db.formatN`.
fn keep_copy(connection: &Connection, path: &Path, found: u32) -> Result<()> {
    let copy = beside(path, &format!(".format{found}"));
    if copy.exists() {
        // Of a migration that failed: the database is still at that format, so it is made again.
        std::fs::remove_file(&copy).map_err(|error| unwritable(&copy, &error))?;
    }
    let Some(name) = copy.to_str() else {
        return Err(Error::Unwritable { path: copy, cause: "its name is not valid UTF-8".to_owned() });
    };
    create_private(&copy)?;
    connection.execute("VACUUM INTO ?1", [name]).map_err(|error| Error::writing(&copy, &error))?;
    Ok(())
}

/// Makes the folders and an empty database that only its owner may read.
fn create_files(root: &Path, path: &Path) -> Result<()> {
    let locks = root.join("locks");
    let mut folders = DirBuilder::new();
    folders.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
    folders.create(&locks).map_err(|error| unwritable(&locks, &error))?;
    create_private(path)
}

fn create_private(path: &Path) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop).map_err(|error| unwritable(path, &error))
}

/// A file whose name is this one's with something added.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
