//! The file that recordings are kept in.

use std::sync::Arc;

use serde_json::json;
use stele_core::{BodyDigest, Hash, Millis, Usage, Wire, Zone};
use stele_proxy::{Context, Ending, Error, Mark, Recorded, Segment, Store};

fn request(texts: &[&str]) -> Recorded {
    let segment = |(index, text): (usize, &&str)| {
        Segment::new(
            Zone::History,
            format!("message {}", index + 1),
            text.as_bytes(),
            (index == 0).then_some(Mark::Hour),
        )
    };
    Recorded {
        id: 0,
        at: Millis(5),
        first_byte_ms: Some(3),
        total_ms: Some(9),
        wire: Wire::AnthropicMessages,
        base_url: "https://api.anthropic.com".into(),
        model: "m".into(),
        agent: Some("a/1".into()),
        status: Some(200),
        ending: Ending::Whole,
        body: BodyDigest { hash: Hash::of(b"x"), len: 1 },
        segments: texts.iter().enumerate().map(segment).collect(),
        parameters: json!({"z": 1, "a": [2]}).as_object().unwrap().clone(),
        context: Context::Whole,
        usage: Some(Usage { fresh: Some(1), ..Usage::default() }),
        miss_reason: Some("tools_changed".into()),
        cut: None,
        session: None,
    }
}

#[test]
fn what_is_stored_comes_back_and_segments_are_kept_once() {
    let folder = tempfile::tempdir().unwrap();
    let long = "long ".repeat(10_000);
    let mut store = Store::open(folder.path()).unwrap();
    let one = request(&["a", &long]);
    let other = Recorded { at: Millis(7), ..request(&["a", &long, "b"]) };
    assert_eq!((store.add(&one).unwrap(), store.add(&other).unwrap()), (1, 2));
    let found = Store::inspect(folder.path()).unwrap().recordings(None).unwrap();
    assert_eq!(found.requests, [Recorded { id: 1, ..one }, Recorded { id: 2, ..other }]);
    assert!(Arc::ptr_eq(&found.requests[0].segments[1].bytes, &found.requests[1].segments[1].bytes));
    let later = Store::inspect(folder.path()).unwrap().recordings(Some(Millis(6))).unwrap();
    assert_eq!(later.requests.len(), 1);
    let size = std::fs::metadata(folder.path().join("requests.db")).unwrap().len();
    assert!(size < long.len() as u64, "{size}");
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("proxy");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let mut store = Store::open(&folder).unwrap();
    store.add(&request(&["a"])).unwrap();
    assert_eq!((mode(&folder), mode(&folder.join("requests.db"))), (0o700, 0o600));
    assert_eq!(mode(&folder.join("requests.db-wal")), 0o600);
    drop(store);
    std::fs::set_permissions(folder.join("requests.db"), std::fs::Permissions::from_mode(0o644)).unwrap();
    Store::open(&folder).unwrap();
    assert_eq!(mode(&folder.join("requests.db")), 0o600);
}

#[test]
fn a_file_that_is_none_of_ours_is_named_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests.db");
    let junk = b"this is no database, but somebody's notes about something".repeat(40);
    std::fs::write(&path, &junk).unwrap();
    let error = Store::open(folder.path()).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert!(error.to_string().starts_with(error.code()) && error.to_string().contains("move it away"), "{error}");
    assert!(matches!(Store::inspect(folder.path()).unwrap_err(), Error::Corrupt { .. }));
    assert_eq!(std::fs::read(&path).unwrap(), junk);
}

#[test]
fn a_newer_file_and_none_at_all_are_named() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Store::inspect(folder.path()).unwrap_err(), Error::Nothing(_)));
    drop(Store::open(folder.path()).unwrap());
    let connection = rusqlite::Connection::open(folder.path().join("requests.db")).unwrap();
    connection.execute_batch("PRAGMA user_version = 9").unwrap();
    drop(connection);
    assert!(matches!(Store::open(folder.path()).unwrap_err(), Error::Newer { found: 9, known: 1, .. }));
}

#[test]
fn damage_in_one_place_hides_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    for texts in [&["a", "b"][..], &["a", "c"], &["a", "d"], &["a", "e"], &["a", "f"]] {
        store.add(&request(texts)).unwrap();
    }
    drop(store);
    let connection = rusqlite::Connection::open(folder.path().join("requests.db")).unwrap();
    connection
        .execute_batch(
            "UPDATE segment SET bytes = x'00' WHERE bytes = x'62';
             UPDATE request SET segments = x'28b52ffd' WHERE id = 2;
             UPDATE request SET head = '{' WHERE id = 3;
             DELETE FROM segment WHERE bytes = x'65';",
        )
        .unwrap();
    drop(connection);
    let found = Store::inspect(folder.path()).unwrap().recordings(None).unwrap();
    assert_eq!(found.requests.iter().map(|request| request.id).collect::<Vec<_>>(), [5]);
    assert_eq!(found.damaged.len(), 4);
    for (sentence, part) in
        found.damaged.iter().zip(["not those that were stored", "list of segments", "request 3", "missing"])
    {
        assert!(sentence.contains(part), "{sentence}");
    }
}

#[test]
fn two_processes_may_record_in_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (mut one, mut other) = (Store::open(folder.path()).unwrap(), Store::open(folder.path()).unwrap());
    let ids = [one.add(&request(&["a"])), other.add(&request(&["a", "b"])), one.add(&request(&["b"]))];
    assert_eq!(ids.map(Result::unwrap), [1, 2, 3]);
}

#[test]
fn what_is_old_is_forgotten_with_the_segments_that_only_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    // Bytes that do not pack, so that the file is as long as they are.
    let old: String = crate::support::noise(400_000).iter().map(|byte| char::from(byte % 94 + 33)).collect();
    store.add(&request(&["shared", &old])).unwrap();
    let kept = Recorded { at: Millis(7), ..request(&["shared", "new"]) };
    store.add(&kept).unwrap();
    let mut other = Store::open(folder.path()).unwrap();
    let nothing = store.forget(Millis(5)).unwrap();
    assert_eq!((nothing.requests, nothing.segments), (0, 0));
    let forgotten = store.forget(Millis(6)).unwrap();
    assert_eq!((forgotten.requests, forgotten.segments), (1, 1));
    assert!(forgotten.bytes.1 < 100_000, "{forgotten:?}");
    assert_eq!(std::fs::metadata(folder.path().join("requests.db")).unwrap().len(), forgotten.bytes.1);
    // The other process goes on, and an id is never used again.
    assert_eq!(other.add(&Recorded { at: Millis(8), ..request(&["shared", "more"]) }).unwrap(), 3);
    let found = Store::inspect(folder.path()).unwrap().recordings(None).unwrap();
    assert_eq!(found.damaged, Vec::<String>::new());
    assert_eq!(found.requests[0], Recorded { id: 2, ..kept });
    assert_eq!(found.requests.len(), 2);
}

#[test]
fn nothing_is_forgotten_when_nobody_knows_what_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    for (at, text) in [(1, "a"), (2, "b"), (3, "c")] {
        store.add(&Recorded { at: Millis(at), ..request(&[text]) }).unwrap();
    }
    let connection = rusqlite::Connection::open(folder.path().join("requests.db")).unwrap();
    connection.execute_batch("UPDATE request SET segments = x'28b52ffd' WHERE id = 2").unwrap();
    let error = store.forget(Millis(2)).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }) && error.to_string().contains("request 2"), "{error}");
    let requests: i64 = connection.query_row("SELECT count(*) FROM request", [], |row| row.get(0)).unwrap();
    assert_eq!(requests, 3);
    // The damaged one goes with the others once it is old enough.
    assert_eq!(store.forget(Millis(3)).unwrap().requests, 2);
}

#[test]
fn the_log_of_changes_counts_while_another_process_records_and_its_space_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = Store::open(folder.path()).unwrap();
    recording.keep_reserve();
    let length = |name: &str| std::fs::metadata(folder.path().join(name)).map_or(0, |data| data.len());
    assert!(length("requests.reserve") > 0);
    // More rows than are removed at once, and bytes that do not pack.
    for at in 0..150_u32 {
        let noise = crate::support::noise(8_000 + at as usize);
        let text: String = noise.iter().map(|byte| char::from(byte % 94 + 33)).collect();
        let own = format!("{at} {text}");
        recording.add(&Recorded { at: Millis(i64::from(at)), ..request(&["shared", &own]) }).unwrap();
    }
    let mut store = Store::open_to_forget(folder.path()).unwrap();
    assert_eq!(length("requests.reserve"), 0, "it is given up first");
    let whole = length("requests.db") + length("requests.db-wal");
    assert!(length("requests.db-wal") > 0);
    let forgotten = store.forget(Millis(148)).unwrap();
    assert_eq!((forgotten.requests, forgotten.segments, forgotten.bytes.0), (148, 148, whole));
    assert_eq!((length("requests.db"), length("requests.db-wal")), (forgotten.bytes.1, 0));
    assert!(forgotten.bytes.1 < 100_000, "{forgotten:?}");
    assert!(length("requests.reserve") > 0, "there is one for the next time");
    recording.add(&Recorded { at: Millis(200), ..request(&["shared", "more"]) }).unwrap();
    let found = Store::inspect(folder.path()).unwrap().recordings(None).unwrap();
    assert_eq!((found.damaged.len(), found.requests.len()), (0, 3));
}

#[test]
fn a_file_that_was_made_before_is_written_anew_once() {
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open(folder.path()).unwrap());
    let path = folder.path().join("requests.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM").unwrap();
    drop(connection);
    let mut store = Store::open(folder.path()).unwrap();
    let old: String = crate::support::noise(400_000).iter().map(|byte| char::from(byte % 94 + 33)).collect();
    for _ in 0..2 {
        store.add(&request(&[&old])).unwrap();
        let forgotten = store.forget(Millis(6)).unwrap();
        assert!(forgotten.requests == 1 && forgotten.bytes.1 < 100_000, "{forgotten:?}");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), forgotten.bytes.1);
    }
}

#[test]
fn a_full_disk_is_named_with_what_can_be_done() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Store::open_to_forget(folder.path()).unwrap_err(), Error::Nothing(_)));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no file is made to forget nothing");
    let full = Error::Full(folder.path().join("requests.db"));
    assert!(full.code() == "proxy.full" && full.to_string().contains("stele proxy gc --keep TIME"), "{full}");
}
