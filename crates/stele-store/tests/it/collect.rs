//! Removing sessions and collecting blobs.

use stele_core::{Hash, Seq};
use stele_store::{Collect, Collection, Durability, Filter, Removed};

use crate::bed::{Bed, append, fill, fork_of, id, nth, output, records, said, search_text, start, started, summary};

#[test]
fn a_removed_session_leaves_nothing_but_blobs_and_a_collection_takes_those() {
    let bed = Bed::new();
    let store = bed.open();
    let text = "an output that only one session has\n".repeat(200);
    let shared = "an output that both have\n".repeat(300);
    for n in 1..=2 {
        let mut writer = store.create(id(n), start("/work")).unwrap();
        let own = if n == 1 { text.clone() } else { "short".to_owned() };
        let batch = [
            append(0, started()),
            append(1, said("a banana")),
            append(2, output(1, own)),
            append(3, output(2, shared.clone())),
        ];
        writer.append(&batch, Durability::Normal, Some(&summary(5, "Fruit"))).unwrap();
    }
    assert_eq!(
        store.collect(Collect::Remove, &search_text).unwrap(),
        Collection { erased: true, ..Collection::default() }
    );
    assert_eq!(store.remove(&id(1), &search_text).unwrap().left, Removed::Whole);
    assert_eq!(store.session(&id(1)).unwrap_err().code(), "log.not_found");
    assert_eq!(store.sessions(&Filter::default()).unwrap().len(), 1);
    assert!(store.search("banana", 10).unwrap().iter().all(|hit| hit.session == id(2)));
    assert_eq!(store.search("fruit", 10).unwrap().len(), 1);
    assert!(!bed.root().join("locks").join(id(1).as_str()).exists());

    let dry = store.collect(Collect::DryRun, &search_text).unwrap();
    assert_eq!((dry.blobs, dry.locks), (1, 0));
    assert!(store.blob(&Hash::of(text.as_bytes())).unwrap().is_some());
    assert_eq!(store.collect(Collect::Remove, &search_text).unwrap(), Collection { erased: true, ..dry });
    assert_eq!(store.blob(&Hash::of(text.as_bytes())).unwrap(), None);
    assert!(store.blob(&Hash::of(shared.as_bytes())).unwrap().is_some());
    assert_eq!(store.check_all().unwrap(), []);
}

#[test]
fn what_is_collected_is_no_longer_in_any_file() {
    let bed = Bed::new();
    let store = bed.open();
    let mut writer = store.create(id(1), start("/work")).unwrap();
    writer.append(&[append(0, started()), append(1, said("the word xylophone"))], Durability::Normal, None).unwrap();
    drop(writer);
    bed.session(2, 2);
    let holds = |word: &str| {
        std::fs::read_dir(bed.root()).unwrap().flatten().filter(|entry| entry.path().is_file()).any(|entry| {
            let bytes = std::fs::read(entry.path()).unwrap();
            bytes.windows(word.len()).any(|window| window == word.as_bytes())
        })
    };
    assert!(holds("xylophone"));
    store.remove(&id(1), &search_text).unwrap();
    assert!(store.collect(Collect::Remove, &search_text).unwrap().erased);
    assert!(!holds("xylophon"));
    assert!(holds("message number 1"));
}

#[test]
fn a_span_that_a_fork_needs_stays_hidden_until_the_fork_goes() {
    let bed = Bed::new();
    bed.session(1, 8);
    let store = bed.open();
    fill(&mut store.create(id(2), fork_of(&id(1), 3)).unwrap(), 2);
    fill(&mut store.create(id(3), fork_of(&id(1), 5)).unwrap(), 2);
    let before = records(&store, &id(3));

    assert_eq!(store.remove(&id(1), &search_text).unwrap().left, Removed::KeptFor { last: Seq(5) });
    assert_eq!(store.session(&id(1)).unwrap_err().code(), "log.not_found");
    assert_eq!(store.writer(&id(1)).unwrap_err().code(), "log.not_found");
    assert_eq!(store.resolve(id(1).as_str()).unwrap_err().code(), "log.not_found");
    assert_eq!(store.search("apples", 100).unwrap().iter().filter(|hit| hit.session == id(1)).count(), 0);
    assert_eq!(records(&store, &id(3)), before);
    store.collect(Collect::Remove, &search_text).unwrap();
    assert_eq!(store.check_all().unwrap(), []);
    assert_eq!(records(&store, &id(3)), before);

    // With the longest fork its part of the span goes, with the last one the rest.
    assert_eq!(store.remove(&id(3), &search_text).unwrap().left, Removed::Whole);
    assert_eq!(store.check_all().unwrap(), []);
    assert_eq!(records(&store, &id(2)).len(), 6);
    assert_eq!(store.remove(&id(2), &search_text).unwrap().left, Removed::Whole);
    let connection = rusqlite::Connection::open(store.path()).unwrap();
    let left: i64 = connection
        .query_row("SELECT (SELECT count(*) FROM records) + (SELECT count(*) FROM sessions)", [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 0);
}

#[test]
fn a_session_that_is_being_written_is_not_removed() {
    let bed = Bed::new();
    let store = bed.open();
    let mut writer = store.create(id(1), start("/work")).unwrap();
    fill(&mut writer, 2);
    assert_eq!(bed.open().remove(&id(1), &search_text).unwrap_err().code(), "log.locked");
    drop(writer);
    assert_eq!(bed.open().remove(&id(1), &search_text).unwrap().left, Removed::Whole);
}

#[test]
fn a_lock_file_without_a_session_is_swept_and_a_held_one_is_not() {
    let bed = Bed::new();
    let store = bed.open();
    bed.session(1, 1);
    std::fs::write(bed.root().join("locks").join(id(2).as_str()), "").unwrap();
    let held = store.create(id(3), start("/work")).unwrap();
    let collection = store.collect(Collect::Remove, &search_text).unwrap();
    assert_eq!(collection.locks, 1);
    assert!(!bed.root().join("locks").join(id(2).as_str()).exists());
    assert_eq!(bed.open().create(id(3), start("/work")).unwrap_err().code(), "log.locked");
    drop(held);
    assert!(!bed.root().join("locks").join(id(3).as_str()).exists());
}

#[test]
fn while_a_record_is_unreadable_nothing_is_collected() {
    let bed = Bed::new();
    bed.session(1, 4);
    bed.session(2, 4);
    let store = bed.open();
    store.remove(&id(2), &search_text).unwrap();
    let connection = rusqlite::Connection::open(store.path()).unwrap();
    connection.execute("UPDATE records SET bytes = x'7b' WHERE id & 1023 = 1", []).unwrap();
    assert_eq!(store.collect(Collect::Remove, &search_text).unwrap_err().code(), "log.corrupt");
    assert!(
        store.blob(&stele_core::Record::cites(Seq(3), nth(3).record.bytes.as_bytes()).unwrap()[0]).unwrap().is_some()
    );
}
