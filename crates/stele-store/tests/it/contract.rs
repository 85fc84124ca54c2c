//! What any store has to do.

use stele_core::{Event, Hash, Micros, Seq};
use stele_store::{Append, Durability, Filter, Partial, Summary};

use crate::bed::{
    Bed, append, decoded, fill, fork_of, id, nth, output, records, said, search_text, start, started, summary, texts,
};

#[test]
fn records_come_back_as_they_were_written() {
    let bed = Bed::new();
    let mut writer = bed.open().create(id(1), start("/work")).unwrap();
    let batch: Vec<Append> = (0..5).map(nth).collect();
    let head = writer.append(&batch, Durability::Barrier, None).unwrap();
    drop(writer);

    let store = bed.open();
    let read = records(&store, &id(1));
    let expect: Vec<&str> = batch.iter().map(|append| append.record.bytes.as_str()).collect();
    assert_eq!(texts(&store, &id(1)), expect);
    assert_eq!(read.last().map(|last| (last.seq, last.hash)), Some((head.seq, head.hash)));
    assert_eq!(store.session(&id(1)).unwrap().head, head);
    assert_eq!(decoded(&store, &id(1)).len(), 5);
}

#[test]
fn the_chain_starts_with_the_sessions_id_and_covers_each_record() {
    let bed = Bed::new();
    bed.session(1, 6);
    let mut prev = Hash::of(id(1).as_str().as_bytes());
    for record in records(&bed.open(), &id(1)) {
        assert_eq!(record.prev, prev);
        prev = Hash::of_record(&prev, &record.bytes);
        assert_eq!(record.hash, prev);
    }
}

#[test]
fn reading_starts_anywhere_and_ends_at_the_head() {
    let bed = Bed::new();
    bed.session(1, 9);
    let store = bed.open();
    let seqs = |from| store.read(&id(1), Seq(from)).unwrap().map(|record| record.unwrap().seq.0).collect::<Vec<_>>();
    assert_eq!(seqs(0), (0..9).collect::<Vec<_>>());
    assert_eq!(seqs(7), [7, 8]);
    assert_eq!(seqs(9), [0_u64; 0]);
    assert_eq!(seqs(u64::MAX), [0_u64; 0]);
}

#[test]
fn reading_crosses_pages_of_rows_and_of_bytes() {
    let bed = Bed::new();
    let mut writer = bed.open().create(id(1), start("/work")).unwrap();
    let small = (0..1_200).map(|seq| append(seq, said("small")));
    let large = (1_200..1_500).map(|seq| append(seq, said(&"x".repeat(4_000))));
    let batch: Vec<Append> = small.chain(large).collect();
    writer.append(&batch, Durability::Normal, None).unwrap();
    let read = texts(&bed.open(), &id(1));
    assert_eq!(read.len(), 1_500);
    assert!(read.iter().zip(&batch).all(|(read, append)| *read == append.record.bytes));
}

#[test]
fn nothing_is_there_before_the_first_append() {
    let bed = Bed::new();
    let store = bed.open();
    let mut writer = store.create(id(1), start("/work")).unwrap();
    assert_eq!((writer.head(), writer.next_seq()), (None, Seq(0)));
    assert_eq!(store.session(&id(1)).unwrap_err().code(), "log.not_found");
    assert_eq!(store.sessions(&Filter::default()).unwrap(), []);
    let partial = Partial { step: 1, attempt: 1, text: "so far".to_owned() };
    assert_eq!(writer.put_partial(&partial).unwrap_err().code(), "log.order");
    drop(writer);
    // The id is free again.
    let mut writer = store.create(id(1), start("/work")).unwrap();
    writer.append(&[nth(0)], Durability::Normal, None).unwrap();
    assert!(store.session(&id(1)).is_ok());
}

#[test]
fn an_id_is_used_once() {
    let bed = Bed::new();
    bed.session(1, 1);
    assert_eq!(bed.open().create(id(1), start("/work")).unwrap_err().code(), "log.exists");
}

#[test]
fn records_out_of_order_are_refused_and_change_nothing() {
    let bed = Bed::new();
    let mut writer = bed.open().create(id(1), start("/work")).unwrap();
    fill(&mut writer, 3);
    let head = writer.head();
    for batch in [vec![nth(2)], vec![nth(4)], vec![nth(3), nth(5)]] {
        assert_eq!(writer.append(&batch, Durability::Normal, None).unwrap_err().code(), "log.order");
    }
    assert_eq!(records(&bed.open(), &id(1)).len(), 3);
    assert_eq!(writer.head(), head);
    writer.append(&[nth(3)], Durability::Normal, None).unwrap();
}

#[test]
fn a_session_needs_a_first_record() {
    let bed = Bed::new();
    let mut writer = bed.open().create(id(1), start("/work")).unwrap();
    assert_eq!(writer.append(&[], Durability::Normal, None).unwrap_err().code(), "log.order");
}

#[test]
fn equal_content_is_one_blob_over_all_sessions() {
    let bed = Bed::new();
    let text = "the same output\n".repeat(1_000);
    for n in 1..=2 {
        let mut writer = bed.open().create(id(n), start("/work")).unwrap();
        let batch = [append(0, started()), append(1, output(1, text.clone())), append(2, output(2, text.clone()))];
        writer.append(&batch, Durability::Normal, None).unwrap();
    }
    let store = bed.open();
    assert_eq!(&*store.blob(&Hash::of(text.as_bytes())).unwrap().unwrap(), text);
    assert_eq!(store.blob(&Hash::of(b"never stored")).unwrap(), None);
    for n in 1..=2 {
        let Event::ToolResult(result) = &decoded(&store, &id(n))[2].event else { panic!("expected a tool result") };
        assert_eq!(result.content.as_str(), text);
    }
    bed.open().remove(&id(1), &search_text).unwrap();
    assert_eq!(decoded(&store, &id(2)).len(), 3);
}

#[test]
fn a_summary_is_what_the_list_shows() {
    let bed = Bed::new();
    let store = bed.open();
    let mut writer = store.create(id(1), start("/work")).unwrap();
    writer.append(&[nth(0)], Durability::Normal, None).unwrap();
    let fresh = store.session(&id(1)).unwrap();
    assert_eq!((fresh.updated, fresh.title, fresh.turns, fresh.cost), (fresh.created, None, 0, None));
    let said = Summary { cost: Some(Micros(1_234)), cwd: "/moved".to_owned(), ..summary(9_000, "Fix the parser") };
    writer.append(&[nth(1)], Durability::Normal, Some(&said)).unwrap();
    // An append without a summary keeps what was said, and an empty one with it only says more.
    writer.append(&[nth(2)], Durability::Normal, None).unwrap();
    let head = writer.append(&[], Durability::Normal, Some(&Summary { turns: 7, ..said.clone() })).unwrap();
    let row = store.session(&id(1)).unwrap();
    assert_eq!(row.title.as_deref(), Some("Fix the parser"));
    assert_eq!(row.model.as_deref(), Some("a-model"));
    assert_eq!((row.turns, row.steps, row.cost, row.updated), (7, 2, Some(Micros(1_234)), said.updated));
    assert_eq!((row.cwd.as_str(), row.created.0, row.parent, row.imported), ("/moved", 1_000, None, false));
    assert_eq!((row.head, head.seq), (head, Seq(2)));
}

#[test]
fn the_list_is_by_last_use_and_by_folder() {
    let bed = Bed::new();
    let store = bed.open();
    for (n, cwd, updated) in [(1, "/a", 30), (2, "/b", 20), (3, "/a", 10)] {
        let mut writer = store.create(id(n), start(cwd)).unwrap();
        let told = Summary { cwd: cwd.to_owned(), ..summary(updated, "title") };
        writer.append(&[nth(0)], Durability::Normal, Some(&told)).unwrap();
    }
    let list = |filter: Filter| store.sessions(&filter).unwrap().into_iter().map(|row| row.id).collect::<Vec<_>>();
    assert_eq!(list(Filter::default()), [id(1), id(2), id(3)]);
    assert_eq!(list(Filter { cwd: Some("/a".to_owned()), limit: None }), [id(1), id(3)]);
    assert_eq!(list(Filter { cwd: None, limit: Some(2) }), [id(1), id(2)]);
    assert_eq!(store.latest_in("/b").unwrap().map(|row| row.id), Some(id(2)));
    assert_eq!(store.latest_in("/nowhere").unwrap(), None);
}

#[test]
fn a_session_is_found_by_its_id_wherever_its_folder_went() {
    let bed = Bed::new();
    let project = tempfile::tempdir().unwrap();
    let cwd = project.path().to_str().unwrap().to_owned();
    let mut writer = bed.open().create(id(1), start(&cwd)).unwrap();
    fill(&mut writer, 2);
    drop(writer);
    project.close().unwrap();
    let store = bed.open();
    assert_eq!(store.session(&id(1)).unwrap().cwd, cwd);
    let mut writer = store.writer(&id(1)).unwrap();
    fill(&mut writer, 1);
    assert_eq!(records(&store, &id(1)).len(), 3);
}

#[test]
fn an_id_may_be_given_by_its_start() {
    let bed = Bed::new();
    bed.session(0x11, 1);
    bed.session(0x12, 1);
    let store = bed.open();
    assert_eq!(store.resolve("01900011").unwrap(), id(0x11));
    assert_eq!(store.resolve(" 01900011-0000-7000-8000-000000000011 ").unwrap(), id(0x11));
    let ambiguous = store.resolve("019").unwrap_err();
    assert_eq!(ambiguous.code(), "log.ambiguous");
    assert!(ambiguous.to_string().contains(id(0x12).as_str()), "{ambiguous}");
    let missing = store.resolve("01900012-0001").unwrap_err();
    assert_eq!(missing.code(), "log.not_found");
    assert!(missing.to_string().contains(&format!("nearest: {}", id(0x12))), "{missing}");
    assert_eq!(store.resolve("").unwrap_err().code(), "log.not_found");
}

#[test]
fn streamed_text_is_kept_until_it_is_cleared() {
    let bed = Bed::new();
    let store = bed.open();
    let mut writer = store.create(id(1), start("/work")).unwrap();
    fill(&mut writer, 1);
    let partial = |attempt, text: &str| Partial { step: 4, attempt, text: text.to_owned() };
    assert_eq!(store.partial(&id(1)).unwrap(), None);
    writer.put_partial(&partial(1, "Let me")).unwrap();
    writer.put_partial(&partial(1, "Let me look")).unwrap();
    assert_eq!(bed.open().partial(&id(1)).unwrap(), Some(partial(1, "Let me look")));
    writer.put_partial(&partial(2, "I")).unwrap();
    assert_eq!(store.partial(&id(1)).unwrap(), Some(partial(2, "I")));
    writer.clear_partial().unwrap();
    assert_eq!(store.partial(&id(1)).unwrap(), None);
}

#[test]
fn a_second_writer_is_refused_and_told_who_holds_the_session() {
    let bed = Bed::new();
    let store = bed.open();
    let mut writer = store.create(id(1), start("/work")).unwrap();
    fill(&mut writer, 1);
    for other in [&store, &bed.open()] {
        let refused = other.writer(&id(1)).unwrap_err();
        assert_eq!(refused.code(), "log.locked");
        let text = refused.to_string();
        assert!(text.contains(&format!("process {}", std::process::id())), "{text}");
        assert!(text.contains("sessions show") && text.contains("--fork"), "{text}");
    }
    // Readers go on beside it.
    fill(&mut writer, 1);
    assert_eq!(records(&bed.open(), &id(1)).len(), 2);
    drop(writer);
    fill(&mut store.writer(&id(1)).unwrap(), 1);
    assert_eq!(records(&store, &id(1)).len(), 3);
}

#[test]
fn a_session_that_is_being_created_is_locked_too() {
    let bed = Bed::new();
    let writer = bed.open().create(id(1), start("/work")).unwrap();
    assert_eq!(bed.open().create(id(1), start("/work")).unwrap_err().code(), "log.locked");
    drop(writer);
}

#[test]
fn a_fork_continues_its_parent_and_leaves_it_alone() {
    let bed = Bed::new();
    bed.session(1, 6);
    let store = bed.open();
    let mut fork = store.create(id(2), fork_of(&id(1), 3)).unwrap();
    assert_eq!(fork.next_seq(), Seq(4));
    assert_eq!(fork.parent().map(|parent| parent.seq), Some(Seq(3)));
    fill(&mut fork, 3);
    let (parent, forked) = (records(&store, &id(1)), records(&store, &id(2)));
    assert_eq!(parent.len(), 6);
    assert_eq!(forked.iter().map(|record| record.seq.0).collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
    assert_eq!(forked[..4], parent[..4]);
    assert_eq!(forked[4].prev, parent[3].hash);
    assert_eq!(store.session(&id(2)).unwrap().parent.map(|parent| parent.session), Some(id(1)));
    assert_eq!(decoded(&store, &id(2)).len(), 7);
    assert_eq!(store.check(&id(2)).unwrap(), []);
    let from_five: Vec<u64> = store.read(&id(2), Seq(5)).unwrap().map(|record| record.unwrap().seq.0).collect();
    assert_eq!(from_five, [5, 6]);
}

#[test]
fn a_fork_of_a_fork_continues_the_session_that_holds_the_record() {
    let bed = Bed::new();
    bed.session(1, 6);
    let store = bed.open();
    fill(&mut store.create(id(2), fork_of(&id(1), 4)).unwrap(), 3);
    let mut late = store.create(id(3), fork_of(&id(2), 6)).unwrap();
    assert_eq!(late.parent().map(|parent| parent.session.clone()), Some(id(2)));
    fill(&mut late, 1);
    let mut early = store.create(id(4), fork_of(&id(2), 2)).unwrap();
    assert_eq!(early.parent().map(|parent| parent.session.clone()), Some(id(1)));
    fill(&mut early, 1);
    assert_eq!(records(&store, &id(3)).len(), 8);
    assert_eq!(records(&store, &id(4)).len(), 4);
    assert_eq!(store.check_all().unwrap(), []);
}

#[test]
fn a_fork_needs_a_record_that_is_there() {
    let bed = Bed::new();
    bed.session(1, 3);
    let store = bed.open();
    assert_eq!(store.create(id(2), fork_of(&id(1), 3)).unwrap_err().code(), "log.fork_point");
    assert_eq!(store.create(id(2), fork_of(&id(9), 0)).unwrap_err().code(), "log.not_found");
    let mut fork = store.create(id(2), fork_of(&id(1), 2)).unwrap();
    store.remove(&id(1), &search_text).unwrap();
    let gone = fork.append(&[nth(3)], Durability::Normal, None).unwrap_err();
    assert_eq!(gone.code(), "log.fork_point");
}

#[test]
fn search_finds_transcripts_and_titles_and_nothing_else() {
    let bed = Bed::new();
    let store = bed.open();
    let mut writer = store.create(id(1), start("/work")).unwrap();
    let batch = [
        append(0, started()),
        append(1, said("why does the naïve parser skip commas")),
        append(2, output(1, "secret tool output".to_owned())),
    ];
    writer.append(&batch, Durability::Normal, Some(&summary(5, "Parsing troubles"))).unwrap();
    let found = |query: &str| {
        store.search(query, 10).unwrap().into_iter().map(|hit| hit.seq.map(|seq| seq.0)).collect::<Vec<_>>()
    };
    assert_eq!(found("NAIVE comma"), [Some(1)]);
    assert_eq!(found("parsers skipping"), [Some(1)]);
    assert_eq!(found("troub"), [None]);
    assert_eq!(found("parse").len(), 2);
    assert_eq!(found("\"skip commas\""), [Some(1)]);
    assert_eq!(found("\"commas skip\""), []);
    assert_eq!(found("secret"), []);
    assert_eq!(found("NOT (\"*"), []);
    let hit = store.search("commas", 1).unwrap().remove(0);
    assert_eq!((hit.session, hit.excerpt.as_str()), (id(1), "why does the naïve parser skip commas"));
    // A new title replaces the old one.
    writer.append(&[], Durability::Normal, Some(&summary(6, "Lexing"))).unwrap();
    assert_eq!((found("troubles"), found("lexing")), (vec![], vec![None]));
}

#[test]
fn an_inspected_store_refuses_every_change() {
    let bed = Bed::new();
    bed.session(1, 2);
    let store = stele_store::Store::inspect(bed.root()).unwrap().unwrap();
    assert_eq!(records(&store, &id(1)).len(), 2);
    assert_eq!(store.check_all().unwrap(), []);
    assert_eq!(store.writer(&id(1)).unwrap_err().code(), "log.read_only");
    assert_eq!(store.create(id(2), start("/work")).unwrap_err().code(), "log.read_only");
    assert_eq!(store.remove(&id(1), &search_text).unwrap_err().code(), "log.read_only");
    assert_eq!(store.collect(stele_store::Collect::Remove, &search_text).unwrap_err().code(), "log.read_only");
}
