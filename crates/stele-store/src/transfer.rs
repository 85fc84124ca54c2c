//! The lines of an exported session.
//!
//! An export is JSON lines. A header opens each session's part; a fork's ancestors come first, cut at
//! the fork. Then come records in order, each after the blobs it is the first to cite:
//!
//! ```text
//! {"stele":"log","v":1,"session":"…","cwd":"…","created":1,"updated":2,…,"head":{"seq":9,"hash":"…"}}
//! {"blob":"…","text":"…"}
//! {"seq":0,"prev":"…","hash":"…","record":{…the record's bytes as they are stored…}}
//! ```
//!
//! A record's bytes stand there raw. What is no text, or no JSON, stands as `hex` instead.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use stele_core::{Hash, Micros, Millis, Parent, Seq, SessionId};

use crate::session::{Head, SessionRow, Summary};
use crate::writer::Start;

/// Version of the export format.
pub(crate) const FORMAT: u32 = 1;

/// The line that opens a session's part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    stele: What,
    pub(crate) v: u32,
    pub(crate) session: SessionId,
    pub(crate) cwd: String,
    pub(crate) created: Millis,
    pub(crate) updated: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    turns: u64,
    steps: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost: Option<Micros>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<Parent>,
    pub(crate) head: HeadLine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum What {
    Log,
}

/// A head as a line has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeadLine {
    pub(crate) seq: Seq,
    pub(crate) hash: Hash,
}

impl Header {
    /// The header of the session that is exported.
    pub(crate) fn of(row: &SessionRow) -> Self {
        Self {
            stele: What::Log,
            v: FORMAT,
            session: row.id.clone(),
            cwd: row.cwd.clone(),
            created: row.created,
            updated: row.updated,
            title: row.title.clone(),
            model: row.model.clone(),
            turns: row.turns,
            steps: row.steps,
            cost: row.cost,
            parent: row.parent.clone(),
            head: HeadLine { seq: row.head.seq, hash: row.head.hash },
        }
    }

    /// The header of an ancestor, of which only a span is exported.
    pub(crate) fn of_span(row: &SessionRow, head: Head) -> Self {
        Self {
            title: None,
            model: None,
            turns: 0,
            steps: 0,
            cost: None,
            head: HeadLine { seq: head.seq, hash: head.hash },
            ..Self::of(row)
        }
    }

    pub(crate) fn start(&self) -> Start {
        Start { cwd: self.cwd.clone(), created: self.created, parent: self.parent.clone() }
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary {
            updated: self.updated,
            title: self.title.clone(),
            model: self.model.clone(),
            turns: self.turns,
            steps: self.steps,
            cost: self.cost,
            cwd: self.cwd.clone(),
        }
    }
}

/// A blob's line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BlobLine<'a> {
    pub(crate) blob: Hash,
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<std::borrow::Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hex: Option<String>,
}

/// A record's line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RecordLine<'a> {
    pub(crate) seq: Seq,
    pub(crate) prev: Hash,
    pub(crate) hash: Hash,
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) record: Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hex: Option<String>,
}

/// Bytes as hex digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// Bytes from hex digits; `None` when these are none.
pub(crate) fn from_hex(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    digits.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hex_comes_back(bytes in proptest::collection::vec(any::<u8>(), 0..50)) {
            prop_assert_eq!(from_hex(&to_hex(&bytes)), Some(bytes));
        }

        #[test]
        fn other_text_is_no_hex(text in "[0-9a-fg é]{0,8}") {
            let valid = text.len() % 2 == 0 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            prop_assert_eq!(from_hex(&text).is_some(), valid);
        }
    }
}
