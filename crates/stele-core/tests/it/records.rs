//! The record format.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use stele_core::{Error, Event, Hash, Millis, Part, Record, Seq, Source, UserMessage};

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
fn long_text_goes_into_a_blob_that_the_record_cites() {
    let long = "é".repeat(3_000);
    let stored = message(&long).encode().unwrap();
    assert!(stored.bytes.len() < 400);
    assert_eq!(stored.blobs.len(), 1);
    assert_eq!(Record::cites(Seq(7), stored.bytes.as_bytes()).unwrap(), vec![stored.blobs[0].0]);
    assert_eq!(round_trip(&long), message(&long));
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
