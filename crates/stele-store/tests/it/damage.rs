//! Every damage is found and named.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use rusqlite::Connection;
use stele_core::{Hash, Record, Seq};
use stele_store::{Collect, Damage, Fault, Removed, Store};

use crate::bed::{Bed, fill, fork_of, id, nth, records, search_text};

const RECORDS: u64 = 9;

/// A session, and a connection to damage it with.
fn bed() -> (Bed, Store, Connection) {
    let bed = Bed::new();
    bed.session(1, RECORDS);
    let store = bed.open();
    assert_eq!(store.check(&id(1)).unwrap(), []);
    let connection = Connection::open(store.path()).unwrap();
    (bed, store, connection)
}

fn damages(store: &Store) -> Vec<Damage> {
    let found: Vec<Damage> = store.check(&id(1)).unwrap().into_iter().map(|fault| fault.damage).collect();
    let everywhere: Vec<Damage> = store.check_all().unwrap().into_iter().map(|fault| fault.damage).collect();
    assert_eq!(found, everywhere);
    found
}

/// A column of each row of a table, with the row's id.
fn column(connection: &Connection, table: &str, column: &str) -> Vec<(i64, Vec<u8>)> {
    let mut statement = connection.prepare(&format!("SELECT id, {column} FROM {table} ORDER BY id")).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// Flips bits of every row in turn; what each flip makes the check say, per row.
#[track_caller]
fn flip_each(table: &str, name: &str, mut judge: impl FnMut(usize, Vec<Damage>)) {
    let (_bed, store, connection) = bed();
    for (nth, (row, bytes)) in column(&connection, table, name).into_iter().enumerate() {
        for at in [0, bytes.len() / 3, bytes.len() / 2, bytes.len() - 1] {
            for bit in [0, 3, 7] {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                let sql = format!("UPDATE {table} SET {name} = ?2 WHERE id = ?1");
                connection.execute(&sql, (row, &flipped)).unwrap();
                judge(nth, damages(&store));
                connection.execute(&sql, (row, &bytes)).unwrap();
            }
        }
    }
    assert_eq!(damages(&store), []);
}

#[test]
fn a_flipped_bit_in_any_record_is_named() {
    flip_each("records", "bytes", |seq, damages| assert_eq!(damages, [Damage::Record { seq: Seq(seq as u64) }]));
}

#[test]
fn a_flipped_bit_in_any_stored_hash_is_named() {
    flip_each("records", "hash", |seq, damages| assert_eq!(damages, [Damage::Hash { seq: Seq(seq as u64) }]));
    flip_each("records", "prev", |seq, damages| assert_eq!(damages, [Damage::Prev { seq: Seq(seq as u64) }]));
}

#[test]
fn a_flipped_bit_in_any_blob_is_named() {
    let name = |nth: usize| {
        let seq = Seq(nth as u64 * 4 + 3);
        (seq, Record::cites(seq, crate::bed::nth(seq.0).record.bytes.as_bytes()).unwrap()[0])
    };
    for column in ["bytes", "seal"] {
        flip_each("blobs", column, |nth, damages| match damages.as_slice() {
            [Damage::BlobDamaged { seq, blob, .. }] => assert_eq!((*seq, *blob), name(nth)),
            other => panic!("{other:?}"),
        });
    }
    flip_each("blobs", "hash", |nth, damages| match damages.as_slice() {
        [Damage::BlobMissing { seq, blob }] => assert_eq!((*seq, *blob), name(nth)),
        other => panic!("{other:?}"),
    });
}

#[test]
fn a_changed_length_of_a_blob_is_named() {
    let (_bed, store, connection) = bed();
    connection.execute("UPDATE blobs SET len = len + (1 << 40) WHERE id = 1", []).unwrap();
    let found = damages(&store);
    assert!(matches!(found.as_slice(), [Damage::BlobDamaged { seq: Seq(3), .. }]), "{found:?}");
    let blob = Record::cites(Seq(3), nth(3).record.bytes.as_bytes()).unwrap()[0];
    assert_eq!(store.blob(&blob).unwrap_err().code(), "log.corrupt");
}

#[test]
fn a_row_of_another_type_is_damage_and_no_failure() {
    let (_bed, store, connection) = bed();
    // A table that is not strict takes what a damaged page can hold.
    connection
        .execute_batch(
            "CREATE TABLE loose (id INTEGER PRIMARY KEY, prev, hash, bytes); INSERT INTO loose SELECT * FROM records; \
             DROP TABLE records; ALTER TABLE loose RENAME TO records; \
             UPDATE records SET bytes = 12 WHERE id & 255 = 2; UPDATE records SET hash = x'00' WHERE id & 255 = 4; \
             UPDATE records SET prev = NULL WHERE id & 255 = 6;",
        )
        .unwrap();
    let store = Store::open(store.path().parent().unwrap()).unwrap();
    assert_eq!(
        damages(&store),
        [Damage::Record { seq: Seq(2) }, Damage::Hash { seq: Seq(4) }, Damage::Prev { seq: Seq(6) }]
    );
}

#[test]
fn several_damages_are_all_named() {
    let (_bed, store, connection) = bed();
    connection
        .execute_batch(
            "UPDATE records SET bytes = x'7b7d' WHERE id & 255 = 1; UPDATE records SET bytes = x'7b7d' WHERE id & 255 = 2; \
             DELETE FROM records WHERE id & 255 = 5; UPDATE records SET hash = zeroblob(32) WHERE id & 255 = 8; \
             DELETE FROM blobs WHERE id = 1;",
        )
        .unwrap();
    let found = damages(&store);
    let seqs = |wanted: fn(&Damage) -> bool| found.iter().filter(|damage| wanted(damage)).count();
    assert_eq!(seqs(|damage| matches!(damage, Damage::Record { seq: Seq(1 | 2) })), 2, "{found:?}");
    assert_eq!(seqs(|damage| *damage == Damage::Missing { first: Seq(5), last: Seq(5) }), 1, "{found:?}");
    assert_eq!(seqs(|damage| *damage == Damage::Hash { seq: Seq(8) }), 1, "{found:?}");
    assert_eq!(seqs(|damage| matches!(damage, Damage::BlobMissing { seq: Seq(3), .. })), 1, "{found:?}");
    assert_eq!(found.len(), 5, "{found:?}");
}

#[test]
fn removed_records_are_named_wherever_they_were() {
    for (gone, expect) in [
        (0..1, Damage::Missing { first: Seq(0), last: Seq(0) }),
        (3..6, Damage::Missing { first: Seq(3), last: Seq(5) }),
        (8..9, Damage::Tail { first: Seq(8), last: Seq(8) }),
        (6..9, Damage::Tail { first: Seq(6), last: Seq(8) }),
        (0..9, Damage::Tail { first: Seq(0), last: Seq(8) }),
    ] {
        let (_bed, store, connection) = bed();
        connection
            .execute("DELETE FROM records WHERE id & 255 >= ?1 AND id & 255 < ?2", (gone.start, gone.end))
            .unwrap();
        assert_eq!(damages(&store), [expect]);
        let read: Result<Vec<_>, _> = store.read(&id(1), Seq(0)).unwrap().collect();
        assert_eq!(read.unwrap_err().code(), "log.corrupt");
    }
}

#[test]
fn a_tail_removed_together_with_its_head_is_told_by_the_head_kept_elsewhere() {
    let (_bed, store, connection) = bed();
    let kept = store.session(&id(1)).unwrap().head;
    connection
        .execute_batch(
            "DELETE FROM records WHERE id & 255 = 8; \
             UPDATE sessions SET head_seq = 7, head_hash = (SELECT hash FROM records WHERE id & 255 = 7);",
        )
        .unwrap();
    assert_eq!(damages(&store), []);
    assert_ne!(store.session(&id(1)).unwrap().head, kept);
}

#[test]
fn a_wrong_head_and_records_after_it_are_named() {
    let (_bed, store, connection) = bed();
    connection.execute("UPDATE sessions SET head_hash = zeroblob(32)", []).unwrap();
    assert_eq!(damages(&store), [Damage::Head { seq: Seq(8) }]);
    let (_bed, store, connection) = bed();
    connection.execute("UPDATE sessions SET head_seq = 6", []).unwrap();
    let found = damages(&store);
    assert!(found.contains(&Damage::Beyond { first: Seq(7), last: Seq(8) }), "{found:?}");
}

#[test]
fn two_records_that_changed_places_are_named() {
    let (_bed, store, connection) = bed();
    connection
        .execute_batch(
            "UPDATE records SET id = id + 100 WHERE id & 255 = 4; UPDATE records SET id = id - 1 WHERE id & 255 = 5; \
             UPDATE records SET id = id - 99 WHERE id & 255 = 104;",
        )
        .unwrap();
    let found = damages(&store);
    for seq in [Seq(4), Seq(5)] {
        let named = found.iter().any(
            |damage| matches!(damage, Damage::Record { seq: at } | Damage::Envelope { seq: at, .. } if *at == seq),
        );
        assert!(named, "{seq} in {found:?}");
    }
}

#[test]
fn a_blob_that_is_gone_is_named() {
    let (_bed, store, connection) = bed();
    connection.execute("DELETE FROM blobs WHERE id = 2", []).unwrap();
    let found = damages(&store);
    assert!(matches!(found.as_slice(), [Damage::BlobMissing { seq: Seq(7), .. }]), "{found:?}");
}

#[test]
fn a_session_whose_row_is_gone_is_still_named() {
    let (bed, store, connection) = bed();
    connection.execute("DELETE FROM sessions", []).unwrap();
    let expect = Damage::Orphans { first: Seq(0), last: Seq(8) };
    let faults = store.check(&id(1)).unwrap();
    assert_eq!(
        faults.iter().map(|fault| (&fault.session, &fault.damage)).collect::<Vec<_>>(),
        [(&Some(id(1)), &expect)]
    );
    // Without its lock file nothing tells the id.
    std::fs::remove_file(bed.root().join("locks").join(id(1).as_str())).unwrap();
    assert_eq!(store.check_all().unwrap().iter().map(|fault| &fault.session).collect::<Vec<_>>(), [&None]);
    assert_eq!(store.check(&id(2)).unwrap_err().code(), "log.not_found");
}

#[test]
fn a_session_whose_row_is_damaged_does_not_hide_the_others() {
    let (bed, store, connection) = bed();
    bed.session(2, 3);
    connection.execute("UPDATE sessions SET id = 'nonsense' WHERE key = 1", []).unwrap();
    let listed = store.sessions(&Default::default()).unwrap();
    assert_eq!(listed.iter().map(|row| &row.id).collect::<Vec<_>>(), [&id(2)]);
    assert_eq!(store.resolve("0190").unwrap(), id(2));
    let faults = store.check_all().unwrap();
    assert!(matches!(faults.as_slice(), [Fault { session: None, damage: Damage::Row { .. } }]), "{faults:?}");
    // An id that became another one does not fit the chain.
    connection.execute("UPDATE sessions SET id = ?1 WHERE key = 1", [id(3).as_str()]).unwrap();
    let faults = store.check_all().unwrap();
    assert!(faults.contains(&Fault { session: Some(id(3)), damage: Damage::Prev { seq: Seq(0) } }), "{faults:?}");
}

#[test]
fn damage_in_a_shared_span_is_named_under_the_session_that_holds_it() {
    let (_bed, store, connection) = bed();
    fill(&mut store.create(id(2), fork_of(&id(1), 4)).unwrap(), 3);
    connection.execute("UPDATE records SET bytes = zeroblob(9) WHERE id = (1 << 40) + 2", []).unwrap();
    connection.execute("UPDATE records SET bytes = zeroblob(9) WHERE id = (2 << 40) + 6", []).unwrap();
    let faults = store.check(&id(2)).unwrap();
    let named: Vec<_> = faults.iter().map(|fault| (fault.session.clone(), fault.damage.clone())).collect();
    let expect = [(Some(id(1)), Damage::Record { seq: Seq(2) }), (Some(id(2)), Damage::Record { seq: Seq(6) })];
    assert_eq!(named, expect);
    assert_eq!(store.check_all().unwrap(), faults);
    // What the parent did after the fork is not the fork's.
    connection.execute("UPDATE records SET bytes = zeroblob(9) WHERE id = (1 << 40) + 7", []).unwrap();
    assert_eq!(store.check(&id(2)).unwrap(), faults);
}

#[test]
fn a_parent_that_is_gone_is_named() {
    let (_bed, store, connection) = bed();
    fill(&mut store.create(id(2), fork_of(&id(1), 4)).unwrap(), 3);
    connection.execute_batch("DELETE FROM sessions WHERE key = 1; DELETE FROM records WHERE id < (2 << 40);").unwrap();
    let faults = store.check(&id(2)).unwrap();
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].damage, Damage::Parent { session: id(1), seq: Seq(4) });
    assert_eq!(store.read(&id(2), Seq(0)).unwrap_err().code(), "log.corrupt");
}

#[test]
fn bytes_changed_in_the_file_itself_are_named() {
    let (bed, store, connection) = bed();
    let bytes = records(&store, &id(1))[5].bytes.clone();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop((store, connection));
    let path = bed.root().join("stele.db");
    let mut file = std::fs::read(&path).unwrap();
    let at = file.windows(bytes.len()).position(|window| window == bytes).unwrap();
    file[at + 30] ^= 1;
    std::fs::write(&path, &file).unwrap();
    assert_eq!(damages(&bed.open()), [Damage::Record { seq: Seq(5) }]);
}

#[test]
fn a_database_damaged_at_any_place_never_panics() {
    let (bed, store, connection) = bed();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop((store, connection));
    let path = bed.root().join("stele.db");
    let file = std::fs::read(&path).unwrap();
    // Each page, at its head, where cells are found, and in the middle.
    for at in (0..file.len()).step_by(1 << 11).flat_map(|page| [page, page + 5, page + 9, page + 300]) {
        let mut damaged = file.clone();
        for byte in damaged.iter_mut().skip(at).take(3) {
            *byte = !*byte;
        }
        std::fs::write(&path, &damaged).unwrap();
        // The pages before it are sound, so it opens or says what is wrong; it never claims more.
        if let Ok(Some(store)) = Store::inspect(bed.root()) {
            let judged = store.check(&id(1));
            let read: Result<Vec<_>, _> = store.read(&id(1), Seq(0)).and_then(|records| records.collect());
            if let (Ok(faults), Ok(read)) = (&judged, &read)
                && faults.is_empty()
            {
                assert_eq!(read.len() as u64, RECORDS, "damage at {at} hides records");
                let whole = read.iter().all(|record| Hash::of_record(&record.prev, &record.bytes) == record.hash);
                assert!(whole, "damage at {at} goes unseen");
            }
        }
    }
}

#[test]
fn faults_are_said_in_words() {
    let (_bed, store, connection) = bed();
    connection.execute("DELETE FROM records WHERE id & 255 IN (2, 3)", []).unwrap();
    let text = store.check(&id(1)).unwrap()[0].to_string();
    assert_eq!(text, format!("session {}: records 2 to 3 are missing", id(1)));
}

/// The number of the first page of a table, and the size of a page.
fn first_page(connection: &Connection, table: &str) -> (u64, u64) {
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let root: i64 = connection.query_row(root, [table], |row| row.get(0)).unwrap();
    let size: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    (root.unsigned_abs(), size.unsigned_abs())
}

/// Folds the write-ahead log into the file, so that the file is all there is.
fn settled(connection: &Connection) {
    let busy: i64 = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
    assert_eq!(busy, 0);
}

/// A session's store, closed, with one table's first page zeroed.
fn zeroed(table: &str) -> Bed {
    let (bed, store, connection) = bed();
    let page = first_page(&connection, table);
    drop(store);
    zero(&bed, connection, page);
    bed
}

/// Zeroes a page of the database, which nobody has open but this connection.
fn zero(bed: &Bed, connection: Connection, (page, size): (u64, u64)) {
    settled(&connection);
    drop(connection);
    let path = Store::file(bed.root());
    let mut file = std::fs::read(&path).unwrap();
    let at = usize::try_from((page - 1) * size).unwrap();
    file[at..at + usize::try_from(size).unwrap()].fill(0);
    std::fs::write(&path, file).unwrap();
}

/// Records are written beside a damaged index, the damage is named, and a collection mends it.
fn appends_and_mends(bed: &Bed) {
    let store = bed.open();
    let mut writer = store.writer(&id(1)).unwrap();
    let title = crate::bed::summary(5, "Quinces");
    writer.append(&[nth(RECORDS), nth(RECORDS + 1)], stele_store::Durability::Normal, Some(&title)).unwrap();
    drop(writer);
    assert_eq!(store.check(&id(1)).unwrap(), []);
    assert_eq!(records(&store, &id(1)).len() as u64, RECORDS + 2);
    let inspected = Store::inspect(bed.root()).unwrap().unwrap();
    let found = inspected.check_all().unwrap();
    assert!(!found.is_empty());
    assert!(found.iter().all(|fault| matches!(fault.damage, Damage::Search { .. })), "{found:?}");
    assert!(found[0].to_string().starts_with("the search index is damaged"), "{}", found[0]);

    assert!(store.collect(stele_store::Collect::Remove, &search_text).unwrap().erased);
    assert_eq!(store.check_all().unwrap(), []);
    assert_eq!(store.search("quinces", 9).unwrap().len(), 1);
    // The index is made from the records, those that were written beside the damage included.
    let said = (1..RECORDS + 2).filter(|seq| seq % 4 != 3).count();
    assert_eq!(store.search("apples", 99).unwrap().len(), said);
    let mut writer = store.writer(&id(1)).unwrap();
    let seq = writer.next_seq().0;
    writer
        .append(&[crate::bed::append(seq, crate::bed::said("medlars"))], stele_store::Durability::Normal, None)
        .unwrap();
    assert_eq!(store.search("medlars", 9).unwrap().len(), 1);
}

#[test]
fn an_index_that_lost_its_data_keeps_no_record_out_and_is_made_again() {
    let (bed, store, connection) = bed();
    connection.execute_batch("DELETE FROM search_data").unwrap();
    drop((store, connection));
    appends_and_mends(&bed);
}

#[test]
fn an_index_that_lost_a_table_keeps_nothing_from_being_checked_and_is_made_again() {
    for lost in ["search", "search_data", "search_idx", "search_content", "search_docsize", "search_config", "search%"]
    {
        let (bed, store, connection) = bed();
        settled(&connection);
        connection.execute_batch("PRAGMA writable_schema=ON").unwrap();
        assert!(connection.execute("DELETE FROM sqlite_schema WHERE name LIKE ?1", [lost]).unwrap() > 0);
        drop((store, connection));
        let inspected = Store::inspect(bed.root()).unwrap().unwrap();
        assert_eq!(inspected.check(&id(1)).unwrap(), []);
        assert_eq!(inspected.search("apples", 9).unwrap_err().code(), "log.index_damaged", "{lost}");
        drop(inspected);
        appends_and_mends(&bed);
    }
}

#[test]
fn a_zeroed_page_of_the_index_keeps_no_record_out_and_the_index_is_made_again() {
    for table in ["search_data", "search_idx", "search_content", "search_docsize", "search_config"] {
        appends_and_mends(&zeroed(table));
    }
}

#[test]
fn a_session_is_removed_also_from_a_damaged_index() {
    let bed = zeroed("search_data");
    let store = bed.open();
    store.remove(&id(1), &search_text).unwrap();
    assert_eq!(store.search("apples", 9).unwrap(), []);
}

/// While records are decoded another store appends one each time, and a third removes a session that was read already: a
/// lock held meanwhile would keep them out.
#[test]
fn others_append_and_remove_while_a_damaged_index_is_made_again() {
    let (bed, store, connection) = bed();
    bed.session(3, 4);
    connection.execute_batch("DELETE FROM search_data").unwrap();
    drop((store, connection));
    let store = bed.open();
    let other = RefCell::new(bed.open().create(id(2), crate::bed::start("/work")).unwrap());
    let decoded = Cell::new(0);
    // The last of them comes when those are read that came meanwhile; it is read itself in the transaction.
    let before = RECORDS + 4;
    let appended = before + 1;
    let beside = |seq: Seq, bytes: &[u8], fetch: &mut dyn FnMut(&Hash) -> Option<Arc<str>>| {
        if decoded.get() == before {
            assert_eq!(bed.open().remove(&id(3), &search_text).unwrap().left, Removed::Whole);
        }
        if decoded.get() < appended {
            fill(&mut other.borrow_mut(), 1);
        }
        decoded.set(decoded.get() + 1);
        search_text(seq, bytes, fetch)
    };
    store.collect(Collect::Remove, &beside).unwrap();
    assert_eq!(decoded.get(), before + appended);
    assert_eq!(store.check_all().unwrap(), []);
    let said = |records: u64| (1..records).filter(|seq| seq % 4 != 3).count();
    let mut found = [0; 2];
    for hit in store.search("apples", 99).unwrap() {
        found[usize::from(hit.session == id(2))] += 1;
        assert!(hit.session != id(3));
    }
    assert_eq!(found, [said(RECORDS), said(appended)]);
    // Nothing of the removed session is left in the index, where no search would show it.
    let connection = Connection::open(store.path()).unwrap();
    let rows: i64 = connection.query_row("SELECT count(*) FROM search", [], |row| row.get(0)).unwrap();
    assert_eq!(usize::try_from(rows).unwrap(), said(RECORDS) + said(appended));
}

#[test]
fn an_index_that_is_made_again_beside_records_that_cannot_be_read_says_so() {
    let (bed, store, connection) = bed();
    let mut writer = store.create(id(2), crate::bed::start("/work")).unwrap();
    let long = |seq: u64| crate::bed::append(seq, crate::bed::said(&format!("quinces {}", "x".repeat(3_000))));
    let six: Vec<_> = [nth(0)].into_iter().chain((1..7).map(long)).collect();
    writer.append(&six, stele_store::Durability::Normal, None).unwrap();
    bed.session(4, 2);
    drop((writer, store));
    // A leaf of the records in which one of the second session's long ones lies, and no neighbour of the third session.
    let leaf = "SELECT pageno FROM dbstat WHERE name = 'records' AND pagetype = 'leaf' ORDER BY path";
    let leaves: Vec<i64> =
        connection.prepare(leaf).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(leaves.len() > 5, "{leaves:?}");
    connection.execute_batch("DELETE FROM search_data").unwrap();
    let size = first_page(&connection, "records").1;
    zero(&bed, connection, (leaves[leaves.len() - 4].unsigned_abs(), size));
    let store = bed.open();
    let unread = [1, 2, 4].into_iter().filter(|n| !store.read(&id(*n), Seq(0)).unwrap().all(|record| record.is_ok()));
    let unread = unread.count() as u64;
    assert!(unread > 0);
    let removed = store.remove(&id(4), &search_text).unwrap();
    assert_eq!((removed.left, removed.unindexed), (Removed::Whole, unread));
    assert!(!store.search("apples", 99).unwrap().is_empty());
}

#[test]
fn an_import_beside_a_damaged_index_is_stored() {
    let other = Bed::new();
    other.session(2, 4);
    let mut file = Vec::new();
    other.open().export(&id(2), &mut file).unwrap();
    let bed = zeroed("search_data");
    let store = bed.open();
    store.import(&mut &*file, id(5), &|_, _, _| Some("text".to_owned())).unwrap();
    assert_eq!(store.check(&id(2)).unwrap(), []);
}

#[test]
fn a_zeroed_page_of_a_table_is_named_and_ends_nothing() {
    for table in ["records", "blobs", "sessions", "partials"] {
        let bed = zeroed(table);
        let store = Store::inspect(bed.root()).unwrap().unwrap();
        let found = store.check_all().unwrap();
        let named = |fault: &Fault| matches!(&fault.damage, Damage::Database { detail } if detail.contains(table));
        assert!(found.iter().any(named), "{table}: {found:?}");
        assert!(found.iter().all(|fault| !fault.to_string().contains("stele verify")), "{found:?}");
    }
}

#[test]
fn of_a_file_that_lost_its_end_the_rest_is_checked() {
    let (bed, store, connection) = bed();
    settled(&connection);
    let path = store.path().to_owned();
    drop((store, connection));
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    let store = Store::inspect(bed.root()).unwrap().unwrap();
    assert!(!store.check_all().unwrap().is_empty());
}

#[test]
fn a_session_that_is_hidden_for_no_reason_is_named() {
    let (_bed, store, connection) = bed();
    connection.execute("UPDATE sessions SET hidden = 1", []).unwrap();
    let faults = store.check_all().unwrap();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!((&faults[0].session, &faults[0].damage), (&Some(id(1)), &Damage::Hidden));
}
