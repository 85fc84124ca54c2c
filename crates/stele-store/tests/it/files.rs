//! The folder and the file: created, refused, read-only, full.

use std::path::Path;

use stele_core::Seq;
use stele_store::{Durability, Store};

use crate::bed::{Bed, fill, id, nth, records, start};

#[test]
fn a_folder_is_made_and_only_its_owner_may_read_it() {
    let bed = Bed::new();
    let root = bed.root().join("deep").join("down");
    assert!(Store::inspect(&root).unwrap().is_none());
    assert!(!root.exists());
    let store = Store::open(&root).unwrap();
    assert!(store.locks_work().unwrap());
    // What could not be tried says nothing about the file system.
    std::fs::rename(root.join("locks"), root.join("away")).unwrap();
    assert!(store.locks_work().is_err());
    std::fs::rename(root.join("away"), root.join("locks")).unwrap();
    drop(store);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let mut writer = Store::open(&root).unwrap().create(id(1), start("/work")).unwrap();
        fill(&mut writer, 1);
        assert_eq!((mode(&root), mode(&root.join("locks"))), (0o700, 0o700));
        for name in ["stele.db", "stele.db-wal", "stele.db-shm", &format!("locks/{}", id(1))] {
            assert_eq!(mode(&root.join(name)), 0o600, "{name}");
        }
    }
}

#[track_caller]
fn refused(root: &Path, code: &str, says: &str) {
    let error = Store::open(root).unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().starts_with(code) && error.to_string().contains(says), "{error}");
}

#[test]
fn a_file_in_place_of_the_folder_is_refused() {
    let bed = Bed::new();
    let root = bed.root().join("file");
    std::fs::write(&root, "a file").unwrap();
    refused(&root, "log.unwritable", "STELE_HOME");
}

#[test]
fn a_file_that_is_no_database_is_refused_and_kept() {
    let bed = Bed::new();
    let path = bed.root().join("stele.db");
    std::fs::write(&path, "this is a note, and it is longer than the header of a database would be, by far").unwrap();
    let before = std::fs::read(&path).unwrap();
    refused(bed.root(), "log.unreadable", "not a database of stele");
    assert_eq!(Store::inspect(bed.root()).unwrap_err().code(), "log.unreadable");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_database_of_another_program_is_refused() {
    let bed = Bed::new();
    let other = rusqlite::Connection::open(bed.root().join("stele.db")).unwrap();
    other.execute_batch("CREATE TABLE notes (text TEXT)").unwrap();
    drop(other);
    refused(bed.root(), "log.unreadable", "another program");
}

#[test]
fn a_newer_database_is_refused_with_its_version() {
    let bed = Bed::new();
    drop(bed.open());
    let connection = rusqlite::Connection::open(bed.root().join("stele.db")).unwrap();
    connection.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(connection);
    refused(bed.root(), "log.newer", "format 99");
    assert_eq!(Store::inspect(bed.root()).unwrap_err().code(), "log.newer");
}

#[test]
fn a_database_that_was_never_finished_is_no_store_yet() {
    let bed = Bed::new();
    std::fs::create_dir_all(bed.root()).unwrap();
    let path = bed.root().join("stele.db");
    std::fs::write(&path, "").unwrap();
    assert!(Store::inspect(bed.root()).unwrap().is_none());
    // Stopped between choosing the journal and the first step of the format.
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(())).unwrap();
    drop(connection);
    assert!(Store::inspect(bed.root()).unwrap().is_none());
    drop(bed.open());
    assert!(Store::inspect(bed.root()).unwrap().is_some());
}

#[test]
fn inspection_changes_no_file() {
    let bed = Bed::new();
    bed.session(1, 5);
    let connection = rusqlite::Connection::open(bed.root().join("stele.db")).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let before = std::fs::read(bed.root().join("stele.db")).unwrap();
    let store = Store::inspect(bed.root()).unwrap().unwrap();
    assert_eq!(records(&store, &id(1)).len(), 5);
    assert_eq!(store.check_all().unwrap(), []);
    assert_eq!(store.search("apples", 5).unwrap().len(), 3);
    drop(store);
    assert_eq!(std::fs::read(bed.root().join("stele.db")).unwrap(), before);
}

#[test]
fn closing_does_not_fold_the_write_ahead_log() {
    let bed = Bed::new();
    bed.session(1, 20);
    assert!(std::fs::metadata(bed.root().join("stele.db-wal")).unwrap().len() > 0);
    assert_eq!(records(&bed.open(), &id(1)).len(), 20);
}

#[test]
fn a_writer_that_was_fenced_off_stores_nothing() {
    let bed = Bed::new();
    let store = bed.open();
    let mut writer = store.create(id(1), start("/work")).unwrap();
    fill(&mut writer, 2);
    // What a takeover on a file system whose locks lie would do.
    let connection = rusqlite::Connection::open(store.path()).unwrap();
    connection.execute("UPDATE sessions SET fence = fence + 1", []).unwrap();
    let error = writer.append(&[nth(2)], Durability::Normal, None).unwrap_err();
    assert_eq!(error.code(), "log.fenced");
    let partial = stele_store::Partial { step: 1, attempt: 1, text: "x".to_owned() };
    assert_eq!(writer.put_partial(&partial).unwrap_err().code(), "log.fenced");
    assert_eq!(records(&store, &id(1)).len(), 2);
    assert_eq!(store.partial(&id(1)).unwrap(), None);
    assert_eq!(store.check_all().unwrap(), []);
}

#[test]
fn the_fence_grows_with_each_writer() {
    let bed = Bed::new();
    bed.session(1, 1);
    let store = bed.open();
    let connection = rusqlite::Connection::open(store.path()).unwrap();
    let fence = || connection.query_row("SELECT fence FROM sessions", [], |row| row.get::<_, i64>(0)).unwrap();
    let first = fence();
    drop(store.writer(&id(1)).unwrap());
    drop(store.writer(&id(1)).unwrap());
    assert_eq!(fence(), first + 2);
}

#[test]
fn a_damaged_session_does_not_hide_the_others() {
    let bed = Bed::new();
    bed.session(1, 3);
    bed.session(2, 3);
    let store = bed.open();
    let connection = rusqlite::Connection::open(store.path()).unwrap();
    connection.execute("UPDATE records SET bytes = x'00' WHERE id < (2 << 40)", []).unwrap();
    assert_eq!(store.sessions(&Default::default()).unwrap().len(), 2);
    assert_eq!(records(&store, &id(2)).len(), 3);
    assert!(store.read(&id(1), Seq(0)).unwrap().next().unwrap().is_ok_and(|record| record.bytes == [0]));
}
