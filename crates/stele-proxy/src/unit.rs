//! The units in which a change is looked for: a block of a message, on every wire.
//!
//! On OpenAI's wires a message is one segment; what its content and its calls consist of are units of it.

use serde_json::{Value, json};
use stele_core::{Hash, Wire, Zone};

use crate::lineage::block_hash;
use crate::prompt::Segment;
use crate::record::Recorded;

/// Segments that are searched for where two prompts meet again.
const SEARCHED: usize = 64;

/// One unit.
pub(crate) struct Unit<'a> {
    pub(crate) segment: &'a Segment,
    /// Which part of a message it is; absent when it is alone.
    name: Option<String>,
    /// The part; absent when it is the whole segment.
    part: Option<Value>,
    /// Hash of the block, whose role does not count.
    pub(crate) hash: Hash,
}

impl Unit<'_> {
    /// What people call it.
    pub(crate) fn label(&self) -> String {
        let name = self.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        format!("{}{name}", self.segment.label)
    }

    pub(crate) fn value(&self) -> Value {
        self.part.clone().unwrap_or_else(|| self.segment.value())
    }

    /// The bytes in which something volatile may stand.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.part.as_ref().map_or_else(|| self.segment.block().to_vec(), |part| part.to_string().into_bytes())
    }
}

/// The units of a prompt from a segment on, and how many of them are of that segment.
pub(crate) fn units(request: &Recorded, from: usize) -> (Vec<Unit<'_>>, usize) {
    let mut found = Vec::new();
    let mut first = 0;
    for (index, segment) in request.segments.iter().skip(from).take(SEARCHED).enumerate() {
        found.extend(of_segment(request.wire, segment));
        if index == 0 {
            first = found.len();
        }
    }
    (found, first)
}

fn of_segment(wire: Wire, segment: &Segment) -> Vec<Unit<'_>> {
    let in_one = matches!(wire, Wire::OpenaiChat | Wire::OpenaiResponses) && segment.zone != Zone::Tools;
    let parts = if in_one { parts(&segment.value()) } else { Vec::new() };
    if parts.is_empty() {
        return vec![Unit { segment, name: None, part: None, hash: block_hash(segment) }];
    }
    let alone = parts.len() == 1;
    let unit = |(name, part): (String, Value)| {
        let hash = Hash::of(part.to_string().as_bytes());
        Unit { segment, name: (!alone).then_some(name), part: Some(part), hash }
    };
    parts.into_iter().map(unit).collect()
}

/// The parts of a message that is one segment: of its content, its calls, and what else it holds. None for a block, and for
/// a tool's result, which stays whole.
fn parts(message: &Value) -> Vec<(String, Value)> {
    let Some(fields) = message.as_object() else { return Vec::new() };
    let is_message =
        matches!(fields.get("role").and_then(Value::as_str), Some("system" | "developer" | "user" | "assistant"));
    let mut parts = Vec::new();
    if !is_message {
        return parts;
    }
    for (key, value) in fields {
        let name = if key == "content" { "block" } else { "call" };
        match (key.as_str(), value) {
            ("role" | "type", _) | (_, Value::Null) => {}
            ("content" | "tool_calls", Value::Array(list)) => {
                parts.extend(list.iter().enumerate().map(|(at, part)| (format!("{name} {}", at + 1), part.clone())));
            }
            ("content", Value::String(text)) if text.is_empty() => {}
            ("content", value) => parts.push((format!("{name} 1"), value.clone())),
            (key, value) => parts.push((key.to_owned(), json!({key: value}))),
        }
    }
    parts
}
