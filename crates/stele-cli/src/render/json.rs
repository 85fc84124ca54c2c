//! JSON lines: a stored record with its blobs inlined has `kind`; every other line has `type`.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use stele_core::{CallId, Coverage, Hash, Micros, Usage};
use stele_provider::Delta;

use crate::error::ErrorJson;
use crate::tally::{ChangedFile, RefusedCall};

/// A stored record as one line, with each `{"blob", "len"}` that its envelope cites replaced by the
/// text. A blob that cannot be had stays a reference.
pub fn inline_blobs(record: &str, fetch: &mut dyn FnMut(&Hash) -> Option<Arc<str>>) -> String {
    // A record without blobs is its stored bytes, unchanged.
    if !record.contains("\"blob\":") {
        return record.to_owned();
    }
    let Ok(mut value) = serde_json::from_str::<Value>(record) else { return record.to_owned() };
    let cited: Vec<String> = value["cites"]
        .as_array()
        .map(|cites| cites.iter().filter_map(|hash| Some(hash.as_str()?.to_owned())).collect())
        .unwrap_or_default();
    inline(&mut value["data"], &cited, fetch);
    value.to_string()
}

fn inline(value: &mut Value, cited: &[String], fetch: &mut dyn FnMut(&Hash) -> Option<Arc<str>>) {
    let text = match &*value {
        Value::Object(object) if object.len() == 2 && object.contains_key("len") => object
            .get("blob")
            .and_then(Value::as_str)
            .filter(|hash| cited.iter().any(|cite| cite == hash))
            .and_then(|hash| fetch(&hash.parse().ok()?)),
        _ => None,
    };
    if let Some(text) = text {
        *value = Value::String(text.to_string());
        return;
    }
    match value {
        Value::Object(object) => object.values_mut().for_each(|value| inline(value, cited, fetch)),
        Value::Array(array) => array.iter_mut().for_each(|value| inline(value, cited, fetch)),
        _ => {}
    }
}

/// A line that is no record.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line<'a> {
    /// A piece of an answer, with `--deltas`.
    Delta {
        step: u64,
        attempt: u32,
        #[serde(flatten)]
        piece: Piece<'a>,
    },
    /// A piece of what a tool's body printed, with `--deltas`.
    Output { call: CallId, text: &'a str },
    /// Something beside the session is not as it should be; the session goes on.
    Warning { code: &'a str, text: &'a str },
    /// Pieces were lost, since whoever reads is too slow. Records never are.
    Lag { skipped: u64 },
    /// The end.
    Result(Box<RunResult>),
}

/// What a piece is of.
#[derive(Debug, Serialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Piece<'a> {
    Text { text: &'a str },
    Reasoning { text: &'a str },
    CallStarted { call: usize, name: &'a str },
    CallArguments { call: usize, json: &'a str },
    Usage { usage: &'a Usage },
}

impl<'a> From<&'a Delta> for Piece<'a> {
    fn from(delta: &'a Delta) -> Self {
        match delta {
            Delta::Text(text) => Self::Text { text },
            Delta::Reasoning(text) => Self::Reasoning { text },
            Delta::CallStarted { call, name } => Self::CallStarted { call: *call, name },
            Delta::CallArguments { call, json } => Self::CallArguments { call: *call, json },
            Delta::Usage(usage) => Self::Usage { usage },
        }
    }
}

/// The last line.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult {
    /// `succeeded`, `failed`, `refused`, `limit` or `cancelled`.
    pub status: Status,
    /// Why the last turn ended; absent when none did.
    pub stop: Option<String>,
    /// The last answer's text.
    pub text: String,
    /// The answer that `--output-schema` asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorJson>,
    /// Tokens in disjoint buckets; one that nobody reported is absent.
    pub usage: Usage,
    /// For how many attempts usage is known.
    pub coverage: Coverage,
    /// Millionths of a US dollar; absent when a part of it has no known price.
    pub cost: Option<Micros>,
    /// Share of the input that was read from the provider's cache; absent when it is not known of every attempt.
    pub hit_rate: Option<f64>,
    /// Results that were pointed at instead of sent again: no part of the provider's cache.
    #[serde(skip_serializing_if = "stele_core::Reuse::is_none")]
    pub local_reuse: stele_core::Reuse,
    /// What was asked, as `ROUTE/MODEL`; absent when nothing ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub session: Option<String>,
    /// The session's last record.
    pub head: Option<HeadJson>,
    /// Requests that were answered, whatever number of attempts each needed.
    pub steps: u64,
    pub executions: u64,
    pub attempts: u64,
    pub changed_files: Vec<ChangedFile>,
    /// What could have changed unseen, and files that changed and cannot be listed, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_covered: Vec<String>,
    /// Calls that were refused because nobody could be asked.
    pub refused: Vec<RefusedCall>,
    /// What was found or set and does nothing here, and why.
    pub skipped: Vec<String>,
    /// The limit that ended the last turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitJson>,
    /// Jobs, and processes that commands left, that still ran when the run ended, and ended with it.
    pub jobs: Vec<String>,
}

/// A limit in its unit: milliseconds, millionths of a US dollar, or a count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimitJson {
    pub which: stele_core::limits::LimitKind,
    pub maximum: u64,
    pub observed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeadJson {
    pub seq: u64,
    pub hash: String,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Succeeded,
    Failed,
    Refused,
    Limit,
    Cancelled,
}

/// A line, without its end.
pub fn line(value: &impl Serialize) -> String {
    // Nothing that is written here can fail to be JSON.
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use stele_core::{Event, Millis, Part, Record, Seq, Source, UserMessage};

    use super::*;

    #[test]
    fn blobs_are_inlined_and_what_only_looks_like_one_is_not() {
        let long = "é\u{1}\"".repeat(3_000);
        let lookalike = r#"{"blob":"0000000000000000000000000000000000000000000000000000000000000000","len":3}"#;
        let content = vec![Part::text(long.as_str()), Part::text(lookalike)];
        let event: Event = UserMessage { item: None, source: Source::System, content }.into();
        let mut record = Record { seq: Seq(4), ts: Millis(1), turn: Some(1), step: None, event };
        let stored = record.encode().unwrap();
        let line = inline_blobs(&stored.bytes, &mut |hash| {
            stored.blobs.iter().find(|(name, _)| name == hash).map(|(_, text)| Arc::clone(text))
        });
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["data"]["content"][0]["text"], long.as_str());
        assert_eq!(value["data"]["content"][1]["text"], lookalike);
        assert_eq!(value["kind"], "user/message");
        assert!(!line.contains('\n'));
    }

    #[test]
    fn a_missing_blob_stays_a_reference() {
        let event: Event =
            UserMessage { item: None, source: Source::Person, content: vec![Part::text("x".repeat(5_000))] }.into();
        let mut record = Record { seq: Seq(0), ts: Millis(1), turn: None, step: None, event };
        let stored = record.encode().unwrap();
        let value: Value = serde_json::from_str(&inline_blobs(&stored.bytes, &mut |_| None)).unwrap();
        assert_eq!(value["data"]["content"][0]["text"]["len"], 5_000);
    }

    #[test]
    fn every_other_line_has_a_type() {
        let delta = Delta::Text("a\nb".to_owned());
        let text = line(&Line::Delta { step: 1, attempt: 2, piece: Piece::from(&delta) });
        assert_eq!(text, r#"{"type":"delta","step":1,"attempt":2,"of":"text","text":"a\nb"}"#);
        assert_eq!(line(&Line::Lag { skipped: 3 }), r#"{"type":"lag","skipped":3}"#);
    }
}
