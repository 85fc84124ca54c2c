//! Reading a record in one go: opening a long log is mostly this.
//!
//! The kind stands before the data in every record that this program writes, so the data can be read as what it is
//! while the envelope is read, without a first pass that only finds its end.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{FORMAT, Record};
use crate::{Event, Hash, Millis, Seq};

/// A record of this format and of a known kind that is whole; `None` for anything else.
pub(super) fn read(at: Seq, bytes: &[u8]) -> Option<Record> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut json = serde_json::Deserializer::from_str(text);
    let record = json.deserialize_map(Envelope).ok()?;
    json.end().ok()?;
    (record.seq == at).then_some(record)
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Key {
    V,
    Seq,
    Ts,
    Kind,
    Turn,
    Step,
    Cites,
    Ignorable,
    Data,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Kind<'a>(#[serde(borrow)] Cow<'a, str>);

struct Envelope;

impl<'de> Visitor<'de> for Envelope {
    type Value = Record;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Record, A::Error> {
        let (mut v, mut seq, mut ts, mut kind, mut event) = (None, None, None, None, None);
        let (mut turn, mut step, mut cites, mut ignorable) = (None, None, None, None);
        while let Some(key) = map.next_key()? {
            match key {
                Key::V => set(&mut v, map.next_value::<u32>()?)?,
                Key::Seq => set(&mut seq, map.next_value::<Seq>()?)?,
                Key::Ts => set(&mut ts, map.next_value::<Millis>()?)?,
                Key::Kind => set(&mut kind, map.next_value::<Kind<'de>>()?)?,
                Key::Turn => set(&mut turn, map.next_value::<Option<u64>>()?)?,
                Key::Step => set(&mut step, map.next_value::<Option<u64>>()?)?,
                Key::Cites => set(&mut cites, map.next_value::<Vec<Hash>>()?)?,
                Key::Ignorable => set(&mut ignorable, map.next_value::<bool>()?)?,
                Key::Data => {
                    let kind = kind.as_ref().ok_or_else(|| A::Error::custom("the data comes before its kind"))?;
                    set(&mut event, map.next_value_seed(Data(kind))?)?;
                }
                Key::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        match (v, seq, ts, event) {
            (Some(..=FORMAT), Some(seq), Some(ts), Some(event)) => {
                Ok(Record { seq, ts, turn: turn.flatten(), step: step.flatten(), event })
            }
            _ => Err(A::Error::custom("not a whole record of this format")),
        }
    }
}

/// A field is there at most once.
fn set<T, E: serde::de::Error>(field: &mut Option<T>, value: T) -> Result<(), E> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::custom("a field is there twice")),
    }
}

struct Data<'a>(&'a Kind<'a>);

impl<'de> DeserializeSeed<'de> for Data<'_> {
    type Value = Event;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Event, D::Error> {
        let kind = &self.0.0;
        Event::read(kind, deserializer).unwrap_or_else(|| Err(D::Error::custom("an unknown kind")))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{CallId, ToolError, ToolErrorClass, ToolResult};

    fn record(text: &str) -> String {
        let error = Some(ToolError::new("a.code", ToolErrorClass::Argument, ""));
        let event =
            ToolResult { call: CallId(3), content: text.into(), images: Vec::new(), error, meta: Default::default() };
        let mut record = Record { seq: Seq(7), ts: Millis(12), turn: Some(1), step: None, event: event.into() };
        record.encode().unwrap().bytes
    }

    /// What is read in one go is what is read in two.
    #[track_caller]
    fn check(bytes: &[u8]) -> bool {
        let once = read(Seq(7), bytes);
        if let Some(once) = &once {
            assert_eq!(Record::read(Seq(7), bytes).unwrap().as_ref(), Some(once));
        }
        once.is_some()
    }

    #[test]
    fn whole_records_are_read_in_one_go() {
        assert!(check(record("short \u{e9}\"\n").as_bytes()));
        // A blob stands for long content; its place is read, its content is fetched later.
        assert!(check(record(&"long".repeat(2_000)).as_bytes()));
        let plain = record("x");
        for (old, new, expect) in [
            (r#""ts":12,"#, r#""ts":12,"more":{"a":[1]},"#, true),
            (r#""turn":1,"#, r#""turn":null,"#, true),
            (r#""v":1"#, r#""v":2"#, false),
            (r#""seq":7"#, r#""seq":8"#, false),
            (r#""ts":12,"#, r#""ts":12,"ts":13,"#, false),
            (r#""ts":12,"#, "", false),
            ("tool/result", "tool/other", false),
        ] {
            let changed = plain.replacen(old, new, 1);
            assert_ne!(changed, plain, "{old}");
            assert_eq!(check(changed.as_bytes()), expect, "{old} → {new}");
        }
        assert!(!check(format!("{plain} x").as_bytes()));
    }

    proptest! {
        #[test]
        fn one_go_never_takes_what_two_refuse(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
            let mut bytes = record("some text, long enough to be hit").into_bytes();
            let at = at.index(bytes.len());
            if cut {
                bytes.remove(at);
            } else {
                bytes[at] = byte;
            }
            check(&bytes);
        }
    }
}
