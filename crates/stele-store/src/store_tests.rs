//! Tests that reach into the connections: a full disk, a read-only one, migrations.

use std::path::Path;

use stele_core::{Millis, RecordBytes, Seq, SessionId};
use tempfile::TempDir;

use crate::database::connect_immutable;
use crate::schema::{MIGRATIONS, open_for_writing};
use crate::{Append, Durability, Error, Start, Store};

fn id() -> SessionId {
    SessionId::new("01900000-0000-7000-8000-000000000001").unwrap()
}

fn start() -> Start {
    Start { cwd: "/work".to_owned(), created: Millis(0), parent: None }
}

fn append(seq: u64, len: usize) -> Append {
    let text = "x".repeat(len);
    let bytes = format!(r#"{{"v":1,"seq":{seq},"ts":0,"kind":"user/message","data":"{text}"}}"#);
    Append { seq: Seq(seq), record: RecordBytes { bytes, blobs: Vec::new(), files: Vec::new() }, search: Some(text) }
}

fn store() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    (folder, store)
}

fn pragma(store: &Store, sql: &str) {
    store
        .database
        .maintain(|connection| connection.execute_batch(sql).map_err(|error| Error::writing(store.path(), &error)))
        .unwrap();
}

/// The positions that are shown, and how it ended.
fn shown(store: &Store, from: u64, refused: u64) -> (Vec<u64>, Result<(), Error>) {
    let mut shown = Vec::new();
    let ended = store.read(&id(), Seq(from)).unwrap().each(&mut |seq, bytes, _| {
        assert_eq!(bytes, append(seq.0, 10).record.bytes.as_bytes());
        shown.push(seq.0);
        if seq.0 == refused { Err(Error::Corrupt { detail: "refused".to_owned() }) } else { Ok(()) }
    });
    (shown, ended)
}

#[test]
fn records_are_shown_in_order_up_to_the_first_that_is_damaged_missing_or_refused() {
    let (_folder, store) = store();
    let mut writer = store.create(id(), start()).unwrap();
    writer.append(&(0..9).map(|seq| append(seq, 10)).collect::<Vec<_>>(), Durability::Normal, None).unwrap();
    let check = |from, refused, expect: &[u64], detail: &str| {
        let (seqs, ended) = shown(&store, from, refused);
        assert_eq!(seqs, expect);
        match ended {
            Ok(()) => assert_eq!(detail, ""),
            Err(error) => assert!(!detail.is_empty() && error.to_string().contains(detail), "{error}"),
        }
    };
    check(0, 99, &[0, 1, 2, 3, 4, 5, 6, 7, 8], "");
    check(7, 99, &[7, 8], "");
    check(0, 2, &[0, 1, 2], "refused");
    pragma(&store, "UPDATE records SET prev = x'00' WHERE id & 0xff = 5");
    check(0, 99, &[0, 1, 2, 3, 4], "record 5 is not stored as it was written");
    pragma(&store, "DELETE FROM records WHERE id & 0xff = 4");
    check(0, 99, &[0, 1, 2, 3], "record 4 is missing");
    pragma(&store, "DELETE FROM records WHERE id & 0xff > 6");
    check(6, 99, &[6], "record 7 is missing");
    check(7, 99, &[], "record 7 is missing");
}

#[test]
fn a_full_disk_stores_nothing_and_says_so_and_the_writer_goes_on_once_there_is_room() {
    let (_folder, store) = store();
    let mut writer = store.create(id(), start()).unwrap();
    let head = writer.append(&[append(0, 10)], Durability::Normal, None).unwrap();
    pragma(&store, "PRAGMA max_page_count=1");
    let error = writer.append(&[append(1, 10), append(2, 100_000)], Durability::Barrier, None).unwrap_err();
    assert_eq!(error.code(), "log.write_failed");
    assert!(error.to_string().contains("is full: make room"), "{error}");
    assert_eq!(writer.head(), Some(head));
    assert_eq!(store.session(&id()).unwrap().head, head);
    assert_eq!(store.read(&id(), Seq(0)).unwrap().count(), 1);
    pragma(&store, "PRAGMA max_page_count=1000000");
    writer.append(&[append(1, 10), append(2, 100_000)], Durability::Barrier, None).unwrap();
    assert_eq!(store.read(&id(), Seq(0)).unwrap().count(), 3);
    assert_eq!(store.check_all().unwrap(), []);
}

#[test]
fn a_full_disk_before_the_first_append_leaves_no_session() {
    let (folder, store) = store();
    let mut writer = store.create(id(), start()).unwrap();
    pragma(&store, "PRAGMA max_page_count=1");
    let error = writer.append(&[append(0, 1_000_000)], Durability::Barrier, None).unwrap_err();
    assert_eq!(error.code(), "log.write_failed");
    assert_eq!(store.session(&id()).unwrap_err().code(), "log.not_found");
    drop(writer);
    assert!(!folder.path().join("locks").join(id().as_str()).exists());
}

#[test]
fn a_disk_that_became_read_only_is_told_at_the_append() {
    let (_folder, store) = store();
    let mut writer = store.create(id(), start()).unwrap();
    writer.append(&[append(0, 10)], Durability::Normal, None).unwrap();
    pragma(&store, "PRAGMA query_only=ON");
    let error = writer.append(&[append(1, 10)], Durability::Normal, None).unwrap_err();
    assert_eq!(error.code(), "log.write_failed");
    assert!(error.to_string().contains("write permission"), "{error}");
    pragma(&store, "PRAGMA query_only=OFF");
    writer.append(&[append(1, 10)], Durability::Normal, None).unwrap();
}

#[test]
fn a_panic_inside_a_transaction_stores_nothing_of_it() {
    let (_folder, store) = store();
    let mut writer = store.create(id(), start()).unwrap();
    writer.append(&[append(0, 10)], Durability::Normal, None).unwrap();
    let inside = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                store.database.transact(Durability::Normal, |connection| -> crate::Result<()> {
                    connection.execute("DELETE FROM records", []).unwrap();
                    panic!("in the middle");
                })
            })
            .join()
    });
    assert!(inside.is_err());
    writer.append(&[append(1, 10)], Durability::Normal, None).unwrap();
    assert_eq!(store.check_all().unwrap(), []);
}

/// Opens a folder with another history of the format.
fn open(root: &Path, migrations: &[&str]) -> crate::Result<rusqlite::Connection> {
    open_for_writing(root, &root.join("stele.db"), migrations)
}

fn version(connection: &rusqlite::Connection) -> u32 {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

#[test]
fn an_older_database_is_migrated_after_a_copy_is_kept() {
    let (folder, store) = store();
    let mut writer = store.create(id(), start()).unwrap();
    writer.append(&[append(0, 10)], Durability::Normal, None).unwrap();
    drop((writer, store));
    let next = [MIGRATIONS[0], "ALTER TABLE sessions ADD COLUMN colour TEXT"];
    let connection = open(folder.path(), &next).unwrap();
    assert_eq!(version(&connection), 2);
    connection.execute("UPDATE sessions SET colour = 'red'", []).unwrap();
    let copy = rusqlite::Connection::open(folder.path().join("stele.db.format1")).unwrap();
    assert_eq!(version(&copy), 1);
    assert_eq!(copy.query_row("SELECT count(*) FROM records", [], |row| row.get::<_, i64>(0)).unwrap(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(folder.path().join("stele.db.format1")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // This build now finds a newer one.
    let newer = Store::open(folder.path()).unwrap_err();
    assert_eq!(newer.code(), "log.newer");
    assert!(newer.to_string().contains("format 2"), "{newer}");
}

#[test]
fn inspection_does_not_migrate() {
    let (folder, store) = store();
    drop(store);
    let path = folder.path().join("stele.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    let next = [MIGRATIONS[0], "CREATE TABLE more (id INTEGER)"];
    let error = crate::schema::check_for_inspection(&connection, &path, &next).unwrap_err();
    assert_eq!(error.code(), "log.older");
    assert_eq!(version(&connection), 1);
}

#[test]
fn a_migration_that_fails_leaves_the_database_as_it_was_and_can_be_tried_again() {
    let (folder, store) = store();
    drop(store);
    let broken = [MIGRATIONS[0], "CREATE TABLE more (id INTEGER); INSERT INTO nowhere VALUES (1)"];
    for _ in 0..2 {
        assert_eq!(open(folder.path(), &broken).unwrap_err().code(), "log.write_failed");
    }
    let connection = open(folder.path(), MIGRATIONS).unwrap();
    assert_eq!(version(&connection), 1);
    let tables: u32 =
        connection.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'more'", [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 0);
}

#[test]
fn a_database_with_another_history_is_not_migrated() {
    let (folder, store) = store();
    drop(store);
    let other = [&format!("{}-- edited after it was released", MIGRATIONS[0]), "CREATE TABLE more (id INTEGER)"];
    assert_eq!(open(folder.path(), &other).unwrap_err().code(), "log.corrupt");
}

#[test]
fn many_openers_of_a_new_folder_make_one_database() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("new");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| Store::open(&root).unwrap());
        }
    });
    assert_eq!(Store::open(&root).unwrap().check_all().unwrap(), []);
}

#[test]
fn threads_append_to_one_store_at_once() {
    let (_folder, store) = store();
    std::thread::scope(|scope| {
        for n in 1..=4 {
            let store = store.clone();
            scope.spawn(move || {
                let id = SessionId::new(format!("01900000-0000-7000-8000-00000000000{n}")).unwrap();
                let mut writer = store.create(id, start()).unwrap();
                for seq in 0..50 {
                    writer.append(&[append(seq, 200)], Durability::Normal, None).unwrap();
                    assert_eq!(store.read(writer.id(), Seq(seq)).unwrap().count(), 1);
                }
            });
        }
    });
    assert_eq!(store.check_all().unwrap(), []);
}

#[test]
fn a_large_write_ahead_log_is_folded_in_when_a_store_opens() {
    let (folder, store) = store();
    pragma(&store, "PRAGMA wal_autocheckpoint=0");
    let mut writer = store.create(id(), start()).unwrap();
    let log = folder.path().join("stele.db-wal");
    let mut seq = 0;
    while std::fs::metadata(&log).unwrap().len() <= 8 << 20 {
        writer.append(&[append(seq, 200_000)], Durability::Normal, None).unwrap();
        seq += 1;
    }
    drop((writer, store));
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
    assert_eq!(store.check_all().unwrap(), []);
}

#[test]
fn a_database_on_a_read_only_disk_is_read_as_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("a ?%41#b");
    let store = Store::open(&root).unwrap();
    let mut writer = store.create(id(), start()).unwrap();
    writer.append(&[append(0, 10)], Durability::Normal, None).unwrap();
    // While its write-ahead log holds something, the file alone is not the whole.
    assert!(connect_immutable(store.path()).is_none());
    pragma(&store, "PRAGMA wal_checkpoint(TRUNCATE)");
    let connection = connect_immutable(store.path()).unwrap();
    let records: i64 = connection.query_row("SELECT count(*) FROM records", [], |row| row.get(0)).unwrap();
    assert_eq!(records, 1);
}
