//! The record format.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use stele_core::{
    ApprovalDecided, ApprovalOutcome, By, CallId, Content, CutReason, Effects, Error, Event, FileChange, FileChanged,
    FileVersion, Hash, Image, ItemRef, MediaType, Millis, Part, Record, Replacement, ResultMeta, ResultStub, Seq,
    Source, Span, SpanRange, SurfaceReplaced, ToolGated, ToolResult, UserMessage, Verdict,
};

fn message(text: &str) -> Record {
    Record {
        seq: Seq(7),
        ts: Millis(1_790_000_000_000),
        turn: Some(1),
        step: None,
        event: Event::from(UserMessage { item: None, source: Source::Person, content: vec![Part::text(text)] }),
    }
}

fn round_trip(text: &str) -> Record {
    let stored = message(text).encode().unwrap();
    let blobs: BTreeMap<Hash, Arc<str>> = stored.blobs.into_iter().collect();
    Record::decode(Seq(7), stored.bytes.as_bytes(), &mut |hash| blobs.get(hash).cloned()).unwrap().unwrap()
}

#[test]
fn the_keys_stand_in_their_order() {
    let stored = message("hi").encode().unwrap();
    assert_eq!(
        stored.bytes,
        r#"{"v":1,"seq":7,"ts":1790000000000,"kind":"user/message","turn":1,"data":{"source":"person","content":[{"type":"text","text":"hi"}]}}"#
    );
    assert!(stored.blobs.is_empty());
}

#[test]
fn one_rule_of_an_earlier_log_is_read_as_a_list() {
    let rules = vec!["bash(touch a)".to_owned()];
    let granted = ApprovalOutcome::Always { rules: rules.clone() };
    let gated = ToolGated {
        call: CallId(1),
        decision: Verdict::Ask,
        by: By("mode:ask".to_owned()),
        reason: None,
        always: rules,
        settled_with: Vec::new(),
        settled_by: None,
        effects: Effects::Local,
        parallel: false,
    };
    let decided = ApprovalDecided { call: CallId(1), by: By("person:cli".to_owned()), outcome: granted };
    for (event, now, then) in [
        (Event::from(gated), r#""always":["bash(touch a)"]"#, r#""always":"bash(touch a)""#),
        (Event::from(decided), r#""rules":["bash(touch a)"]"#, r#""rule":"bash(touch a)""#),
    ] {
        let record = Record { event, ..message("") };
        let bytes = record.clone().encode().unwrap().bytes;
        assert!(bytes.contains(now), "{bytes}");
        let earlier = bytes.replace(now, then);
        assert_eq!(Record::decode(Seq(7), earlier.as_bytes(), &mut |_| None).unwrap().unwrap(), record);
    }
}

#[test]
fn long_text_goes_into_a_blob_that_the_record_cites() {
    let long = "é".repeat(3_000);
    let stored = message(&long).encode().unwrap();
    assert!(stored.bytes.len() < 400);
    assert_eq!(stored.blobs.len(), 1);
    assert_eq!(Record::cites(Seq(7), stored.bytes.as_bytes()).unwrap(), vec![stored.blobs[0].0]);
    assert_eq!(round_trip(&long), message(&long));
}

#[test]
fn an_image_is_always_a_blob_and_comes_back_with_its_record() {
    let image = |data: &str| Image::new(MediaType::Jpeg, data.to_owned(), 3, 4);
    let images = vec![image("/9j/"), image(&"A".repeat(9_000))];
    let stub = ResultStub { of: Seq(3), call: CallId(1), content: "x".into(), error: None, images: images.clone() };
    let range = Some(SpanRange { first: Seq(3), last: Seq(3) });
    let back = Replacement::Back(ItemRef { seq: Seq(2) });
    let cut = SurfaceReplaced {
        reason: CutReason::Repair,
        spans: vec![Span { range, with: vec![Replacement::Result { result: stub }, back] }],
    };
    let result = ToolResult { call: CallId(1), content: "x".into(), images, error: None, meta: ResultMeta::default() };
    for event in [Event::from(result), Event::from(cut)] {
        let mut record = Record { seq: Seq(7), ts: Millis(1), turn: Some(1), step: None, event };
        let stored = record.encode().unwrap();
        assert_eq!(stored.blobs.len(), 2);
        assert!(!stored.bytes.contains("/9j/") && stored.bytes.contains(r#""media_type":"image/jpeg""#));
        let blobs: BTreeMap<Hash, Arc<str>> = stored.blobs.iter().cloned().collect();
        let mut back =
            Record::decode(Seq(7), stored.bytes.as_bytes(), &mut |hash| blobs.get(hash).cloned()).unwrap().unwrap();
        assert_eq!(back, record);
        assert_eq!(back.encode().unwrap(), stored);
    }
}

#[test]
fn a_missing_blob_is_named() {
    let stored = message(&"x".repeat(5_000)).encode().unwrap();
    let error = Record::decode(Seq(7), stored.bytes.as_bytes(), &mut |_| None).unwrap_err();
    assert_eq!(error, Error::Blob { seq: Seq(7), blob: stored.blobs[0].0 });
}

#[test]
fn an_unknown_kind_is_refused_unless_its_writer_allowed_to_skip_it() {
    let bytes = br#"{"v":1,"seq":0,"ts":0,"kind":"new/kind","data":{}}"#;
    let error = Record::decode(Seq(0), bytes, &mut |_| None).unwrap_err();
    assert_eq!(error.code(), "log.unsupported");
    let bytes = br#"{"v":1,"seq":0,"ts":0,"kind":"new/kind","ignorable":true,"data":{}}"#;
    assert_eq!(Record::decode(Seq(0), bytes, &mut |_| None), Ok(None));
    let bytes = br#"{"v":9,"seq":0,"ts":0,"kind":"user/message","data":{}}"#;
    assert_eq!(Record::decode(Seq(0), bytes, &mut |_| None).unwrap_err().code(), "log.unsupported");
}

#[test]
fn bytes_of_a_file_are_cited_stored_once_and_not_fetched() {
    let bytes = b"\x00\xff not text";
    let change = FileChange {
        path: "/w/f".into(),
        before: Some(FileVersion { hash: Hash::of(bytes), len: bytes.len() as u64, mode: 0o100_644 }),
        after: None,
        kept: Some(Content::new(&bytes[..])),
        made: None,
        linked: None,
    };
    let event = FileChanged { call: CallId(1), ahead: false, change };
    let mut record = Record { seq: Seq(7), ts: Millis(1), turn: Some(1), step: None, event: event.into() };
    let stored = record.encode().unwrap();
    assert_eq!(stored.files, [(Hash::of(bytes), Arc::from(&bytes[..]))]);
    assert_eq!(Record::cites(Seq(7), stored.bytes.as_bytes()).unwrap(), [Hash::of(bytes)]);
    let mut decoded = Record::decode(Seq(7), stored.bytes.as_bytes(), &mut |_| None).unwrap().unwrap();
    assert_eq!(decoded, record);
    let again = decoded.encode().unwrap();
    assert_eq!((again.bytes, again.files.len()), (stored.bytes.clone(), 0));
    record.drop_files();
    assert_eq!(record.encode().unwrap().bytes, stored.bytes);
}

proptest! {
    #[test]
    fn any_text_survives(text in "\\PC{0,200}") {
        prop_assert_eq!(round_trip(&text), message(&text));
    }

    #[test]
    fn arbitrary_bytes_are_an_error_and_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Record::decode(Seq(0), &bytes, &mut |_| None).is_err());
    }
}
