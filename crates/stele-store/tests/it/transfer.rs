//! Export and import.

use proptest::prelude::*;
use stele_core::{Event, Part, Record, SessionId};
use stele_store::{Durability, Exported, Filter, Imported, Outcome, SessionRow, Store};

use crate::bed::{
    Bed, append, decoded, fill, fork_of, id, output, records, said, search_text, start, started, summary, texts,
};

fn export(store: &Store, id: &SessionId) -> Vec<u8> {
    let mut file = Vec::new();
    store.export(id, &mut file).unwrap();
    file
}

fn import(store: &Store, file: &[u8], fresh: u64) -> Imported {
    store.import(&mut &*file, id(fresh), &search_text).unwrap()
}

fn said_lines(store: &Store, id: &SessionId) -> Vec<String> {
    decoded(store, id)
        .into_iter()
        .filter_map(|record| match record.event {
            Event::UserMessage(message) => {
                message.content.iter().map(|Part::Text { text }| text.as_str().to_owned()).next()
            }
            _ => None,
        })
        .collect()
}

#[test]
fn an_exported_session_comes_back_byte_for_byte() {
    let bed = Bed::new();
    let store = bed.open();
    let mut writer = store.create(id(1), start("/work")).unwrap();
    let batch = [
        append(0, started()),
        append(1, said("a \"quoted\" line\nand another with é, 漢 and 🙂")),
        append(2, output(1, "lots of output\n".repeat(900))),
        append(3, output(2, "lots of output\n".repeat(900))),
    ];
    writer.append(&batch, Durability::Normal, Some(&summary(70, "A title"))).unwrap();
    let mut file = Vec::new();
    let done = store.export(&id(1), &mut file).unwrap();
    assert_eq!(done, Exported { records: 4, blobs: 1, lost: 0 });

    let elsewhere = Bed::new();
    let other = elsewhere.open();
    let imported = import(&other, &file, 9);
    assert_eq!(imported, Imported { id: id(1), outcome: Outcome::Same, warnings: vec![] });
    assert_eq!(records(&other, &id(1)), records(&store, &id(1)));
    assert_eq!(decoded(&other, &id(1)), decoded(&store, &id(1)));
    let there = store.session(&id(1)).unwrap();
    assert_eq!(other.session(&id(1)).unwrap(), SessionRow { imported: true, ..there });
    assert_eq!(other.check_all().unwrap(), []);
    assert_eq!(export(&other, &id(1)), file);
    assert_eq!(other.search("quoted", 5).unwrap().len(), 1);
    assert_eq!(other.search("title", 5).unwrap().len(), 1);
    // It goes on there.
    fill(&mut other.writer(&id(1)).unwrap(), 1);
    assert_eq!(import(&store, &file, 9).outcome, Outcome::AlreadyHere);
    assert_eq!(import(&other, &file, 9).outcome, Outcome::AlreadyHere);
}

#[test]
fn a_fork_is_exported_with_what_it_continues() {
    let bed = Bed::new();
    bed.session(1, 6);
    let store = bed.open();
    fill(&mut store.create(id(2), fork_of(&id(1), 3)).unwrap(), 4);
    fill(&mut store.create(id(3), fork_of(&id(2), 5)).unwrap(), 2);
    let file = export(&store, &id(3));

    let elsewhere = Bed::new();
    let other = elsewhere.open();
    assert_eq!(import(&other, &file, 9).outcome, Outcome::Same);
    assert_eq!(records(&other, &id(3)), records(&store, &id(3)));
    assert_eq!(other.check_all().unwrap(), []);
    // Its ancestors came along for its sake alone.
    let listed: Vec<SessionId> = other.sessions(&Filter::default()).unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(listed, [id(3)]);
    // A sibling shares them; when both are gone, all is gone.
    fill(&mut store.create(id(4), fork_of(&id(1), 2)).unwrap(), 1);
    assert_eq!(import(&other, &export(&store, &id(4)), 9).outcome, Outcome::Same);
    assert_eq!(other.check_all().unwrap(), []);
    other.remove(&id(3), &search_text).unwrap();
    assert_eq!(records(&other, &id(4)), records(&store, &id(4)));
    other.remove(&id(4), &search_text).unwrap();
    assert_eq!(other.check_all().unwrap(), []);
    let connection = rusqlite::Connection::open(other.path()).unwrap();
    assert_eq!(connection.query_row("SELECT count(*) FROM sessions", [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    // Where the parent is in use, the fork joins it.
    assert_eq!(import(&store, &file, 9).outcome, Outcome::AlreadyHere);
}

#[test]
fn another_session_under_the_same_id_is_kept_and_the_file_gets_a_new_one() {
    let (one, two) = (Bed::new(), Bed::new());
    one.session(1, 4);
    two.session(1, 2);
    let store = two.open();
    let imported = import(&store, &export(&one.open(), &id(1)), 9);
    assert_eq!((imported.id.clone(), imported.outcome), (id(9), Outcome::Salvaged));
    assert_eq!(imported.warnings.len(), 1);
    assert!(imported.warnings[0].to_string().contains("is here already"), "{}", imported.warnings[0]);
    assert_eq!(texts(&store, &id(9)), texts(&one.open(), &id(1)));
    assert_eq!(records(&store, &id(1)).len(), 2);
    assert_eq!(store.check_all().unwrap(), []);
    // And `fresh` itself has to be free.
    let file = export(&one.open(), &id(1));
    let taken = store.import(&mut &*file, id(9), &search_text).unwrap_err();
    assert_eq!(taken.code(), "log.exists");
}

/// A session of a few messages, exported; its lines: a header, five records.
fn five_lines() -> (Bed, Vec<String>) {
    let bed = Bed::new();
    let store = bed.open();
    let mut writer = store.create(id(1), start("/work")).unwrap();
    let longer = "a longer text that was cut while being written";
    for (seq, event) in [started(), said("hello"), said(longer), said("again"), said("fine")].into_iter().enumerate() {
        writer.append(&[append(seq as u64, event)], Durability::Normal, Some(&summary(5, "Talk"))).unwrap();
    }
    let lines = String::from_utf8(export(&store, &id(1))).unwrap().lines().map(str::to_owned).collect();
    (bed, lines)
}

/// Imports a damaged file into a new store; its messages, the damaged bytes, and the number of warnings.
#[track_caller]
fn salvage(file: &[u8]) -> (Vec<String>, Vec<Vec<u8>>, Imported) {
    let bed = Bed::new();
    let store = bed.open();
    let imported = import(&store, file, 7);
    assert_eq!((imported.id.clone(), imported.outcome), (id(7), Outcome::Salvaged));
    let row = store.session(&id(7)).unwrap();
    assert!(row.imported);
    assert_eq!(store.sessions(&Filter::default()).unwrap(), std::slice::from_ref(&row));
    assert_eq!(store.check_all().unwrap(), []);
    let kept = records(&store, &id(7))
        .iter()
        .flat_map(|record| Record::cites(record.seq, &record.bytes).unwrap())
        .map(|blob| store.blob_bytes(&blob).unwrap().unwrap())
        .collect();
    // The damaged bytes are cited, so that a collection leaves them.
    assert_eq!(store.collect(stele_store::Collect::DryRun, &search_text).unwrap().blobs, 0);
    // One more append, and everything reads again.
    let lines = said_lines(&store, &id(7));
    let mut writer = store.writer(&id(7)).unwrap();
    let next = writer.next_seq().0;
    writer.append(&[append(next, said("one more"))], Durability::Normal, None).unwrap();
    assert_eq!(said_lines(&store, &id(7)), [lines.clone(), vec!["one more".to_owned()]].concat());
    assert_eq!(store.check_all().unwrap(), []);
    (lines, kept, imported)
}

#[test]
fn a_cut_record_with_its_retry_on_the_same_line_loses_nothing() {
    let (_bed, mut lines) = five_lines();
    let cut = lines[3][..lines[3].len() - 30].to_owned();
    lines[3] = format!("{cut}{}", lines[3]);
    let (said, kept, imported) = salvage((lines.join("\n") + "\n").as_bytes());
    assert_eq!(said, ["hello", "a longer text that was cut while being written", "again", "fine"]);
    assert_eq!(kept, [cut.as_bytes()]);
    assert_eq!(imported.warnings.len(), 1, "{:?}", imported.warnings);
    assert_eq!(imported.warnings[0].line, 4);
}

#[test]
fn a_cut_record_in_the_middle_is_lost_alone() {
    let (_bed, mut lines) = five_lines();
    lines[3].truncate(150);
    let (said, kept, imported) = salvage(lines.join("\n").as_bytes());
    assert_eq!(said, ["hello", "again", "fine"]);
    assert_eq!(kept, [lines[3].as_bytes()]);
    assert_eq!(imported.warnings.len(), 1, "{:?}", imported.warnings);
}

#[test]
fn a_cut_last_line_is_lost_alone() {
    let (_bed, lines) = five_lines();
    let file = lines.join("\n");
    let (said, kept, imported) = salvage(&file.as_bytes()[..file.len() - 25]);
    assert_eq!(said, ["hello", "a longer text that was cut while being written", "again"]);
    assert_eq!(kept.len(), 1);
    assert_eq!(imported.warnings.len(), 1, "{:?}", imported.warnings);
}

#[test]
fn a_file_cut_inside_a_character_keeps_its_bytes() {
    let (bed, mut lines) = five_lines();
    let mut writer = bed.open().writer(&id(1)).unwrap();
    writer.append(&[append(5, said("un café"))], Durability::Normal, None).unwrap();
    drop(writer);
    let file = export(&bed.open(), &id(1));
    let at = file.windows(2).position(|window| window == "é".as_bytes()).unwrap();
    let (said, kept, imported) = salvage(&file[..at + 1]);
    assert_eq!(said.len(), 4);
    assert!(kept[0].ends_with(b"caf\xc3"));
    assert_eq!(imported.warnings.len(), 1, "{:?}", imported.warnings);
    // So does a byte that is no text in the middle of a line.
    let mut line = lines[4].clone().into_bytes();
    line[40] = 0xff;
    lines.remove(4);
    let file = [lines.join("\n").as_bytes(), b"\n", &line].concat();
    let (said, kept, _) = salvage(&file);
    assert_eq!((said.len(), kept), (3, vec![line]));
}

#[test]
fn missing_lines_are_told_once() {
    let (_bed, lines) = five_lines();
    let without = |gone: &[usize]| {
        let kept: Vec<&str> =
            lines.iter().enumerate().filter(|(at, _)| !gone.contains(at)).map(|(_, line)| line.as_str()).collect();
        kept.join("\n")
    };
    for (gone, said_count) in [(vec![2, 3], 2), (vec![1], 4), (vec![5], 3), (vec![4, 5], 2)] {
        let (said, kept, imported) = salvage(without(&gone).as_bytes());
        assert_eq!((said.len(), kept.len(), imported.warnings.len()), (said_count, 0, 1), "{gone:?}");
    }
    // Without its header a file still is a log.
    let (said, _, imported) = salvage(without(&[0]).as_bytes());
    assert_eq!((said.len(), imported.warnings.len()), (4, 1), "{:?}", imported.warnings);
}

#[test]
fn a_changed_record_is_told() {
    let (_bed, mut lines) = five_lines();
    lines[2] = lines[2].replace("hello", "hullo");
    let (said, kept, imported) = salvage(lines.join("\n").as_bytes());
    assert_eq!((said[0].as_str(), kept.len()), ("hullo", 0));
    assert_eq!(imported.warnings.len(), 1, "{:?}", imported.warnings);
    assert!(imported.warnings[0].detail.contains("record 1"), "{}", imported.warnings[0]);
}

#[test]
fn a_changed_record_that_is_none_any_more_is_left_out_and_kept() {
    let (_bed, lines) = five_lines();
    for (from, to) in [("\"kind\":\"user/message\"", "\"kind\":\"user/oessage\""), ("\"content\"", "\"cnntent\"")] {
        let mut lines = lines.clone();
        assert!(lines[2].contains(from), "{}", lines[2]);
        lines[2] = lines[2].replacen(from, to, 1);
        // Every record of what was imported decodes, which `salvage` looks at.
        let (said, kept, imported) = salvage(lines.join("\n").as_bytes());
        assert_eq!((said.len(), kept.len()), (3, 1), "{said:?}");
        assert!(String::from_utf8_lossy(&kept[0]).contains(to));
        assert_eq!(imported.warnings.len(), 1, "{:?}", imported.warnings);
        assert!(imported.warnings[0].detail.contains("record 1 is left out"), "{}", imported.warnings[0]);
    }
}

#[test]
fn a_record_whose_blob_is_damaged_is_left_out_and_kept() {
    let bed = Bed::new();
    let store = bed.open();
    let mut writer = store.create(id(1), start("/work")).unwrap();
    let batch = [append(0, started()), append(1, output(1, "output\n".repeat(800))), append(2, said("after"))];
    writer.append(&batch, Durability::Normal, None).unwrap();
    let file = String::from_utf8(export(&store, &id(1))).unwrap().replacen("output", "0utput", 1);
    let (said, kept, imported) = salvage(file.as_bytes());
    assert_eq!(said, ["after"]);
    assert_eq!(kept.len(), 2);
    assert_eq!(imported.warnings.len(), 2, "{:?}", imported.warnings);
}

#[test]
fn a_damaged_session_is_exported_as_far_as_it_can_be_read() {
    let bed = Bed::new();
    bed.session(1, 8);
    let store = bed.open();
    let connection = rusqlite::Connection::open(store.path()).unwrap();
    connection
        .execute_batch(
            "DELETE FROM records WHERE id & 255 = 5; UPDATE records SET bytes = x'ff0a' WHERE id & 255 = 2; \
             DELETE FROM blobs WHERE id = 1;",
        )
        .unwrap();
    let mut file = Vec::new();
    let done = store.export(&id(1), &mut file).unwrap();
    assert_eq!(done, Exported { records: 7, blobs: 1, lost: 2 });
    // Beside the damaged session the file becomes a sound one, in the same store.
    let mended = import(&store, &file, 9);
    assert_eq!((mended.id.clone(), mended.outcome), (id(9), Outcome::Salvaged));
    assert_eq!(store.check(&id(9)).unwrap(), []);
    assert_eq!(said_lines(&store, &id(9)).len(), 3);
    let (said, kept, imported) = salvage(&file);
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(kept.contains(&b"\xff\x0a".to_vec()));
    assert_eq!(imported.warnings.len(), 3, "{:?}", imported.warnings);
}

#[test]
fn what_is_no_log_is_refused() {
    let (bed, lines) = five_lines();
    let store = bed.open();
    let twice = format!("{}\n{}", lines.join("\n"), lines.join("\n"));
    let newer = lines.join("\n").replacen("\"v\":1", "\"v\":2", 1);
    let far = lines
        .join("\n")
        .replace("{\"seq\":4,\"prev\"", "{\"seq\":4000000,\"prev\"")
        .replace(",\"seq\":4,", ",\"seq\":4000000,");
    let cases: [(&str, &str); 6] = [
        ("", "none of its 0 lines"),
        ("{\"role\":\"user\"}\n", "none of its 1 lines"),
        (&lines[0], "none of its 1 lines"),
        (&twice, "several sessions"),
        (&newer, "export format 2"),
        (&far, "are missing"),
    ];
    for (file, says) in cases {
        let error = store.import(&mut file.as_bytes(), id(7), &search_text).unwrap_err();
        assert_eq!(error.code(), "log.not_a_log");
        assert!(error.to_string().contains(says), "{error}");
    }
    assert_eq!(store.sessions(&Filter::default()).unwrap().len(), 1);
}

#[test]
fn an_output_that_fails_stops_an_export() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (bed, _) = five_lines();
    let error = bed.open().export(&id(1), &mut Full).unwrap_err();
    let stele_store::Error::Stream(error) = error else { panic!("{error}") };
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_is_done_to_a_file_an_import_never_panics_and_its_session_is_sound(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0..4_u8, any::<u8>()), 1..6),
    ) {
        static FILE: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| five_lines().1.join("\n").into_bytes());
        let mut file = FILE.clone();
        for (at, what, byte) in edits {
            let at = at.index(file.len());
            match what {
                0 => file[at] = byte,
                1 => file.truncate(at.max(1)),
                2 => file.insert(at, byte),
                _ => { file.drain(at..file.len().min(at + usize::from(byte))); }
            }
            if file.is_empty() {
                file.push(b'x');
            }
        }
        let bed = Bed::new();
        let store = bed.open();
        match store.import(&mut &*file, id(7), &search_text) {
            Ok(imported) => {
                prop_assert_eq!(store.check_all().unwrap(), []);
                prop_assert_eq!(imported.outcome == Outcome::Salvaged, !imported.warnings.is_empty());
                prop_assert!(store.session(&imported.id).is_ok());
            }
            Err(error) => prop_assert_eq!(error.code(), "log.not_a_log"),
        }
    }
}
