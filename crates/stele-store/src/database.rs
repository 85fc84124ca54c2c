//! The database file: one connection that writes, a few that read, and what every transaction does.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::{Error, Result};

/// How long a transaction waits for another process before it gives up.
const BUSY: Duration = Duration::from_secs(10);
/// Reading connections kept for the next reader.
const IDLE_READERS: usize = 2;
/// Pages that a reading connection keeps (KiB, negative as SQLite wants it). A log is read once, from front to back, and
/// what is read again is in the system's cache.
const READER_CACHE: i32 = -512;

/// What a store may do with its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Read and append.
    Write,
    /// Read; the database and its folder stay as they are.
    Inspect,
}

/// How durable a commit is when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It survives this process; a power cut may lose it until the next barrier.
    Normal,
    /// It, and everything before it, survives a power cut (`synchronous=FULL`).
    Barrier,
}

/// Whether a transaction writes the search index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Index {
    /// It does.
    Write,
    /// It leaves the index alone, which is damaged.
    Skip,
}

/// The connections of a store.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) path: PathBuf,
    pub(crate) access: Access,
    write: Option<Mutex<Writing>>,
    readers: Mutex<Vec<Connection>>,
}

/// The writing connection and the state it is in.
#[derive(Debug)]
struct Writing {
    connection: Connection,
    durability: Durability,
}

impl Database {
    /// The database of a store that writes, through its open connection.
    pub(crate) fn writing(path: PathBuf, connection: Connection) -> Self {
        let write = Some(Mutex::new(Writing { connection, durability: Durability::Normal }));
        Self { path, access: Access::Write, write, readers: Mutex::default() }
    }

    /// The database of a store that inspects.
    pub(crate) fn inspecting(path: PathBuf, connection: Connection) -> Self {
        Self { path, access: Access::Inspect, write: None, readers: Mutex::new(vec![connection]) }
    }

    /// Runs a reader on a connection of its own, beside any writer.
    pub(crate) fn read<T>(&self, reader: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let idle = unpoisoned(&self.readers).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => connect_reader(&self.path, self.access)?,
        };
        let result = reader(&connection);
        let mut readers = unpoisoned(&self.readers);
        if readers.len() < IDLE_READERS {
            readers.push(connection);
        }
        result
    }

    /// Runs one transaction; all of it is stored, or nothing.
    pub(crate) fn transact<T>(
        &self,
        durability: Durability,
        change: impl FnOnce(&Connection) -> Result<T>,
    ) -> Result<T> {
        let Some(write) = &self.write else { return Err(Error::ReadOnly) };
        let mut writing = unpoisoned(write);
        if !writing.connection.is_autocommit() {
            // A panic inside the last transaction left it open.
            writing.connection.execute_batch("ROLLBACK").map_err(|error| Error::writing(&self.path, &error))?;
        }
        if writing.durability != durability {
            // SQLite acts on this pragma when it is prepared, so it cannot be a cached statement.
            let level = match durability {
                Durability::Normal => "PRAGMA synchronous=NORMAL",
                Durability::Barrier => "PRAGMA synchronous=FULL",
            };
            writing.connection.execute_batch(level).map_err(|error| Error::writing(&self.path, &error))?;
            writing.durability = durability;
        }
        let connection = &writing.connection;
        let run = |sql| connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        run("BEGIN IMMEDIATE").map_err(|error| Error::writing(&self.path, &error))?;
        let result = change(connection)
            .and_then(|value| run("COMMIT").map(|_| value).map_err(|error| Error::writing(&self.path, &error)));
        if result.is_err() && !connection.is_autocommit() {
            // SQLite may have rolled back by itself; a rollback that fails leaves nothing committed either.
            let _ = connection.execute_batch("ROLLBACK");
        }
        result
    }

    /// Runs one transaction that also writes the search index. The index is made from the records and
    /// must not keep them from being stored: where damage is in the way, all of it is run again without
    /// the index. Also the end of a transaction can fail on the index, so a savepoint would not do.
    pub(crate) fn transact_indexed<T>(
        &self,
        durability: Durability,
        change: impl Fn(&Connection, Index) -> Result<T>,
    ) -> Result<T> {
        match self.transact(durability, |connection| change(connection, Index::Write)) {
            Err(Error::Corrupt { .. } | Error::Index { .. }) => {
                self.transact(durability, |connection| change(connection, Index::Skip))
            }
            result => result,
        }
    }

    /// Runs something outside a transaction on the writing connection.
    pub(crate) fn maintain<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let Some(write) = &self.write else { return Err(Error::ReadOnly) };
        work(&unpoisoned(write).connection)
    }
}

/// A panic leaves nothing half done: the next transaction rolls back what it left open.
fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the connection that writes.
pub(crate) fn connect_writer(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| Error::reading(path, &error))?;
    (|| {
        connection.busy_timeout(BUSY)?;
        // Closing must not checkpoint: it would cost the end of every run some 16 ms.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.set_prepared_statement_cache_capacity(32);
        connection.execute_batch("PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=8388608")
    })()
    .map_err(|error| Error::reading(path, &error))?;
    Ok(connection)
}

/// Opens a connection that reads.
pub(crate) fn connect_reader(path: &Path, access: Access) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags).and_then(|connection| {
        connection.busy_timeout(BUSY)?;
        connection.set_prepared_statement_cache_capacity(32);
        // Opening is lazy: only this finds out whether the file can be read at all.
        let probe = || connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
        match probe() {
            Err(error)
                if access == Access::Inspect && error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) =>
            {
                // Of a file that lost its end SQLite reads what is left only with this flag. On a
                // connection that cannot write it allows nothing else.
                connection.execute_batch("PRAGMA writable_schema=ON")?;
                probe()?;
            }
            result => result?,
        }
        connection.pragma_update(None, "cache_size", READER_CACHE)?;
        Ok(connection)
    });
    match opened {
        Ok(connection) => Ok(connection),
        Err(error) if access == Access::Inspect => connect_immutable(path).ok_or_else(|| Error::reading(path, &error)),
        Err(error) => Err(Error::reading(path, &error)),
    }
}

/// A database in a folder that may not be written cannot have the files that readers share; while it
/// has no write-ahead log either, it can be read as it stands.
pub(crate) fn connect_immutable(path: &Path) -> Option<Connection> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if std::fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        return None;
    }
    let mut uri = "file:".to_owned();
    for byte in path.to_str()?.bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri, flags).ok()?;
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).ok()?;
    Some(connection)
}
