//! What kind of change made a request leave the one it extends.

use std::collections::HashSet;
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;
use serde_json::Value;
use stele_core::{Hash, Wire, Zone};

use crate::lineage::block_hash;
use crate::prompt::Segment;
use crate::record::Recorded;

/// A kind of change, as far as it can be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Change {
    /// Another model was asked.
    Model {
        /// The model before.
        before: String,
        /// The model now.
        after: String,
    },
    /// Thinking or effort was set differently.
    Thinking {
        /// The parameter.
        parameter: String,
    },
    /// Another parameter changed that invalidates what is cached.
    Parameter {
        /// The parameter.
        parameter: String,
    },
    /// The same tools in another order.
    ToolOrder,
    /// Tools came or went.
    ToolSet {
        /// Tools that were not there before.
        added: Vec<String>,
        /// Tools that are gone.
        removed: Vec<String>,
    },
    /// A tool's description or schema changed.
    ToolSchema {
        /// The tool.
        tool: String,
    },
    /// A date or a time of day.
    Clock,
    /// A listing of files, as a tree.
    Listing,
    /// A path of the file system.
    Path,
    /// An id or another random value.
    RandomId,
    /// Blocks that were there before are gone.
    Dropped {
        /// What they were called.
        blocks: Vec<String>,
    },
    /// Blocks stand before what was sent last time.
    Inserted {
        /// What they are called.
        blocks: Vec<String>,
    },
    /// The same JSON value in other bytes: another order of keys, or other white space in encoded arguments.
    Reserialised,
    /// The same text, once as a string and once as a list of parts, as a moved cache mark leaves it.
    Shape,
    /// An image is gone.
    ImageRemoved,
    /// A tool's result was shortened or replaced by a note.
    ResultTruncated,
    /// A tool's result became another one.
    ResultChanged,
    /// Nothing of the earlier history is left, as after a compaction.
    HistoryReplaced,
    /// Text became other text.
    Text,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model { before, after } => write!(f, "the model changed from {before} to {after}"),
            Self::Thinking { parameter } => write!(f, "thinking was set differently ({parameter})"),
            Self::Parameter { parameter } => write!(f, "{parameter} was set differently"),
            Self::ToolOrder => f.write_str("the tools are in another order"),
            Self::ToolSet { added, removed } => match (added.as_slice(), removed.as_slice()) {
                (added, []) => write!(f, "tools were added: {}", added.join(", ")),
                ([], removed) => write!(f, "tools were removed: {}", removed.join(", ")),
                (added, removed) => {
                    write!(f, "tools were added ({}) and removed ({})", added.join(", "), removed.join(", "))
                }
            },
            Self::ToolSchema { tool } => write!(f, "the description or schema of tool {tool} changed"),
            Self::Clock => f.write_str("a date or time changed"),
            Self::Listing => f.write_str("a listing of files was made anew"),
            Self::Path => f.write_str("a path changed"),
            Self::RandomId => f.write_str("an id or another random value changed"),
            Self::Dropped { blocks } => write!(f, "what was sent before is gone: {}", blocks.join(", ")),
            Self::Inserted { blocks } => write!(f, "something was put in before it: {}", blocks.join(", ")),
            Self::Reserialised => f.write_str("the same value was written in other bytes"),
            Self::Shape => f.write_str("the same text was written in another shape (a string, a list of parts)"),
            Self::ImageRemoved => f.write_str("an image was removed"),
            Self::ResultTruncated => f.write_str("a tool's result was shortened after it had been sent"),
            Self::ResultChanged => f.write_str("a tool's result was changed after it had been sent"),
            Self::HistoryReplaced => f.write_str("the whole history was replaced"),
            Self::Text => f.write_str("the text changed"),
        }
    }
}

/// Parameters that say how much the model thinks.
const THINKING: [&str; 5] = ["thinking", "output_config", "reasoning", "reasoning_effort", "generationConfig"];
/// Other parameters that are part of what a provider renders or keys its cache by.
const KEYED: [&str; 4] = ["tool_choice", "toolConfig", "speed", "prompt_cache_key"];

/// Segments that are searched for where two prompts meet again.
const SEARCHED: usize = 64;

/// Tells what changed between two requests of which the later one leaves the earlier one at `segment`.
pub(crate) fn classify(before: &Recorded, after: &Recorded, segment: usize) -> Option<Change> {
    if before.model != after.model {
        return Some(Change::Model { before: before.model.clone(), after: after.model.clone() });
    }
    let (old, new) = (before.segments.get(segment), after.segments.get(segment));
    let thinking = differing(before, after, &THINKING);
    let (Some(old), Some(new)) = (old, new) else {
        // One of the two ends here, so the prompt is whole and only the parameters can differ.
        return thinking
            .map(|parameter| Change::Thinking { parameter })
            .or_else(|| differing(before, after, &KEYED).map(|parameter| Change::Parameter { parameter }));
    };
    if old.zone == Zone::Tools || new.zone == Zone::Tools {
        return Some(of_tools(before, after, old, new));
    }
    if let (Some(parameter), Zone::History) = (thinking, old.zone)
        && (after.wire == Wire::AnthropicMessages || is_reasoning(&old.value()))
    {
        return Some(Change::Thinking { parameter });
    }
    Some(of_blocks(before, after, segment, old, new))
}

/// The segment that a change is about, where two requests part at `index`. What is gone stands in the earlier request
/// alone: at its place, the later one has something that did not change.
pub(crate) fn subject<'a>(
    change: Option<&Change>,
    before: &'a Recorded,
    after: &'a Recorded,
    index: usize,
) -> Option<&'a Segment> {
    let (old, new) = (before.segments.get(index), after.segments.get(index).or_else(|| after.segments.last()));
    let is_gone = match change {
        Some(Change::Dropped { .. } | Change::ImageRemoved) => true,
        Some(Change::ToolSet { removed, .. }) => old.is_some_and(|old| removed.contains(&plain_name(&old.label))),
        _ => false,
    };
    old.filter(|_| is_gone).or(new)
}

/// The first of some parameters that differs.
fn differing(before: &Recorded, after: &Recorded, names: &[&str]) -> Option<String> {
    names
        .iter()
        .find(|name| before.parameters.get(**name) != after.parameters.get(**name))
        .map(|name| (*name).to_owned())
}

fn of_tools(before: &Recorded, after: &Recorded, old: &Segment, new: &Segment) -> Change {
    let tools = |request: &'_ Recorded| -> Vec<(String, Hash)> {
        let tools = request.segments.iter().filter(|segment| segment.zone == Zone::Tools);
        tools.map(|segment| (segment.label.clone(), segment.hash)).collect()
    };
    let (was, is) = (tools(before), tools(after));
    let names = |tools: &[(String, Hash)]| tools.iter().map(|(label, _)| label.clone()).collect::<HashSet<_>>();
    let (had, has) = (names(&was), names(&is));
    let missing = |from: &[(String, Hash)], other: &HashSet<String>| -> Vec<String> {
        from.iter().filter(|(label, _)| !other.contains(label)).map(|(label, _)| plain_name(label)).collect()
    };
    let (added, removed) = (missing(&is, &had), missing(&was, &has));
    if !added.is_empty() || !removed.is_empty() {
        return Change::ToolSet { added, removed };
    }
    if old.label == new.label {
        return Change::ToolSchema { tool: plain_name(&new.label) };
    }
    Change::ToolOrder
}

fn plain_name(label: &str) -> String {
    label.strip_prefix("tool[").and_then(|label| label.strip_suffix(']')).unwrap_or(label).to_owned()
}

fn of_blocks(before: &Recorded, after: &Recorded, at: usize, old: &Segment, new: &Segment) -> Change {
    if old.block() == new.block() {
        // The role alone: the block begins a message in one request and goes on with one in the other.
        return Change::Shape;
    }
    let (was, is) = (old.value(), new.value());
    if without_order(&was) == without_order(&is) {
        return Change::Reserialised;
    }
    if shapeless(&was) == shapeless(&is) {
        return Change::Shape;
    }
    let (images_before, images_after) = (images(&was), images(&is));
    let (rest_before, rest_after) = (rest(before, at), rest(after, at));
    let dropped = meets(&rest_before, block_hash(new));
    let inserted = meets(&rest_after, block_hash(old));
    if let Some(gone) = dropped.filter(|gone| inserted.is_none_or(|put| *gone <= put)) {
        let gone = &rest_before[..gone];
        if gone.iter().any(|segment| images(&segment.value()) > 0) {
            return Change::ImageRemoved;
        }
        return Change::Dropped { blocks: gone.iter().map(|segment| segment.label.clone()).collect() };
    }
    if let Some(put) = inserted {
        return Change::Inserted { blocks: rest_after[..put].iter().map(|segment| segment.label.clone()).collect() };
    }
    if images_before > images_after {
        return Change::ImageRemoved;
    }
    if let (Some(was), Some(is)) = (result_text(&was), result_text(&is)) {
        return if is_shortened(&was, &is) { Change::ResultTruncated } else { Change::ResultChanged };
    }
    if let Some(volatile) = volatile(old.block(), new.block()) {
        return volatile;
    }
    let kept: HashSet<Hash> = rest_after.iter().map(|segment| block_hash(segment)).collect();
    let gone = rest_before.len() > 1 && !rest_before.iter().any(|segment| kept.contains(&block_hash(segment)));
    if gone && old.zone == Zone::History && first_history(before) == Some(at) && rest_after.len() < rest_before.len() {
        return Change::HistoryReplaced;
    }
    Change::Text
}

fn rest(request: &Recorded, at: usize) -> Vec<&Segment> {
    request.segments.iter().skip(at).take(SEARCHED).collect()
}

fn first_history(request: &Recorded) -> Option<usize> {
    request.segments.iter().position(|segment| segment.zone == Zone::History)
}

/// After how many segments a block comes again.
fn meets(segments: &[&Segment], block: Hash) -> Option<usize> {
    segments.iter().position(|segment| block_hash(segment) == block).filter(|at| *at > 0)
}

/// A value in which the order of keys and the spelling of encoded JSON no longer count.
fn without_order(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            Value::Object(sorted.into_iter().map(|(key, value)| (key.clone(), without_order(value))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(without_order).collect()),
        Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
            serde_json::from_str(text).map_or_else(|_| value.clone(), |inner: Value| without_order(&inner))
        }
        // Numbers that are equal may be written differently.
        Value::Number(number) => number.as_f64().map_or_else(|| value.clone(), Value::from),
        other => other.clone(),
    }
}

/// A value in which a list of one text part is that text.
fn shapeless(value: &Value) -> Value {
    match value {
        Value::Array(list) => match list.as_slice() {
            [Value::Object(part)] if part.get("text").is_some_and(Value::is_string) => {
                part.get("text").cloned().unwrap_or_default()
            }
            list => Value::Array(list.iter().map(shapeless).collect()),
        },
        Value::Object(fields) => {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            Value::Object(sorted.into_iter().map(|(key, value)| (key.clone(), shapeless(value))).collect())
        }
        other => other.clone(),
    }
}

fn is_reasoning(value: &Value) -> bool {
    let kind = value.get("type").and_then(Value::as_str);
    matches!(kind, Some("thinking" | "redacted_thinking" | "reasoning")) || value.get("reasoning_content").is_some()
}

/// The number of images in a block.
fn images(value: &Value) -> usize {
    match value {
        Value::Object(fields) => {
            let kind = fields.get("type").and_then(Value::as_str);
            let own = matches!(kind, Some("image" | "image_url" | "input_image"))
                || ["inlineData", "inline_data"].iter().any(|name| fields.contains_key(*name));
            if own { 1 } else { fields.values().map(images).sum() }
        }
        Value::Array(list) => list.iter().map(images).sum(),
        _ => 0,
    }
}

/// The text of a tool's result, on any wire; `None` when the block is none.
fn result_text(value: &Value) -> Option<String> {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    let content = if kind == "tool_result" || value.get("role").and_then(Value::as_str) == Some("tool") {
        value.get("content")
    } else if kind.ends_with("_call_output") {
        value.get("output")
    } else {
        value.get("functionResponse").or_else(|| value.get("function_response"))
    };
    let mut text = String::new();
    collect_text(content?, &mut text);
    Some(text)
}

fn collect_text(value: &Value, text: &mut String) {
    match value {
        Value::String(part) => text.push_str(part),
        Value::Array(list) => list.iter().for_each(|value| collect_text(value, text)),
        Value::Object(fields) => {
            fields.iter().filter(|(key, _)| *key != "type").for_each(|(_, value)| collect_text(value, text));
        }
        _ => {}
    }
}

/// Shorter, and a piece of it or a short note in its place.
fn is_shortened(before: &str, after: &str) -> bool {
    let kept = crate::emulate::common_prefix(before.as_bytes(), after.as_bytes());
    after.len() < before.len() && (kept * 2 >= after.len() || after.len() <= 256)
}

/// Bytes around a difference that are searched for what changes from hour to hour and from place to place.
const WINDOW: usize = 64;

// The patterns are constant; a test keeps one that does not compile from being shipped.
static PATHS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| compile(&[r#"(?:^|[\s"'=(:`,>]|\\n|\\t)((?:~?/|\.\.?/|[A-Za-z]:\\)[^\s"'`<>|/\\][^\s"'`<>|]*)"#]));
static IDS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| compile(&[r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"]));
static CLOCKS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    compile(&[
        r"(\d{4}-\d{1,2}-\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?(?:Z|[+-]\d{2}:?\d{2})?)",
        r"(\d{1,2}:\d{2}(?::\d{2})?(?:\s?[AaPp]\.?[Mm])?)",
        r"(\d{1,2}[/.]\d{1,2}[/.]\d{2,4})",
        r"(?i)((?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b,?(?:\s+[a-z]{3,9}\.?\s+\d{1,2})?)",
        r"(?i)((?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)[a-z]*\.?\s+\d{1,2}(?:st|nd|rd|th)?(?:,?\s+\d{4})?)",
        r"(?i)(\d{1,2}\.?\s+(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)[a-z]*(?:,?\s+\d{4})?)",
        r"\b(1\d{9}(?:\d{3})?)\b",
    ])
});
static RANDOM: LazyLock<Vec<Regex>> = LazyLock::new(|| compile(&[r"([0-9a-fA-F]{4,})", r"([A-Za-z0-9_-]{8,})"]));

fn compile(patterns: &[&str]) -> Vec<Regex> {
    patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
}

/// What kind of volatile text stands where two texts part, when it is one.
fn volatile(before: &[u8], after: &[u8]) -> Option<Change> {
    let mut at = crate::emulate::common_prefix(before, after);
    // Two characters that begin alike differ from their first byte on.
    let inside = |bytes: &[u8], at: usize| bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    while at > 0 && (inside(before, at) || inside(after, at)) {
        at -= 1;
    }
    let (before, after) = (window(before, at), window(after, at));
    let both = |patterns: &[Regex], fits: &dyn Fn(&str, &str) -> bool| {
        patterns.iter().any(|pattern| match (covering(pattern, &before), covering(pattern, &after)) {
            (Some(one), Some(other)) => fits(one, other),
            _ => false,
        })
    };
    let tree = |(text, _): &(String, usize)| text.contains(['├', '└']);
    if tree(&before) && tree(&after) {
        return Some(Change::Listing);
    }
    if both(&PATHS, &|_, _| true) {
        return Some(Change::Path);
    }
    if both(&IDS, &|_, _| true) {
        return Some(Change::RandomId);
    }
    if both(&CLOCKS, &|_, _| true) {
        return Some(Change::Clock);
    }
    let mixed = |text: &str| {
        text.bytes().any(|byte| byte.is_ascii_digit()) && text.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    let random = |one: &str, other: &str| one.len() == other.len() && (mixed(one) || mixed(other));
    both(&RANDOM, &random).then_some(Change::RandomId)
}

/// Some text around an offset, and the offset in it.
fn window(bytes: &[u8], at: usize) -> (String, usize) {
    let front = String::from_utf8_lossy(bytes.get(at.saturating_sub(WINDOW)..at).unwrap_or_default()).into_owned();
    let back = String::from_utf8_lossy(bytes.get(at..bytes.len().min(at + WINDOW)).unwrap_or_default()).into_owned();
    let offset = front.len();
    (front + &back, offset)
}

/// The match of a pattern's first group that covers an offset.
fn covering<'a>(pattern: &Regex, (text, at): &'a (String, usize)) -> Option<&'a str> {
    let groups = pattern.captures_iter(text).filter_map(|captures| captures.get(1));
    groups.filter(|found| found.start() <= *at && *at <= found.end()).map(|found| found.as_str()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str, expect: Option<Change>) {
        assert_eq!(volatile(before.as_bytes(), after.as_bytes()), expect, "{before} → {after}");
    }

    #[test]
    fn every_pattern_compiles() {
        assert_eq!((PATHS.len(), IDS.len(), CLOCKS.len(), RANDOM.len()), (1, 1, 7, 2));
    }

    #[test]
    fn volatile_text_is_named() {
        check("Today is 2026-11-30.", "Today is 2026-12-01.", Some(Change::Clock));
        check("It is 10:41:07 PM now", "It is 10:41:09 PM now", Some(Change::Clock));
        check("Date: Mon Nov 30 2026", "Date: Tue Dec 1 2026", Some(Change::Clock));
        check("on November 30, 2026", "on November 29, 2026", Some(Change::Clock));
        check("at 1796032000 s", "at 1796032061 s", Some(Change::Clock));
        check("cwd: /home/a/one\\nx", "cwd: /home/a/two\\nx", Some(Change::Path));
        check("in ~/work/2026-11-30/x", "in ~/work/2026-11-31/x", Some(Change::Path));
        check(
            "id 0197f0aa-0000-7000-8000-000000000001",
            "id 0197f0ab-0000-7000-8000-000000000002",
            Some(Change::RandomId),
        );
        check("cch=1f3a9;", "cch=77c01;", Some(Change::RandomId));
        check("session_8fKq2Zp1", "session_0aLm7Rt3", Some(Change::RandomId));
        check("src/\n└───lib.rs\n", "src/\n├───id.rs\n└───lib.rs\n", Some(Change::Listing));
        check("be brief", "be verbose", None);
        check("three apples", "three pears", None);
    }

    #[test]
    fn values_are_compared_without_their_spelling() {
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let one = value(r#"{"a":1,"arguments":"{\"x\": 1, \"y\": 2}"}"#);
        let other = value(r#"{"arguments":"{\"y\":2,\"x\":1.0}","a":1}"#);
        assert_eq!(without_order(&one), without_order(&other));
        let one = value(r#"{"role":"user","content":"x"}"#);
        let other = value(r#"{"role":"user","content":[{"type":"text","text":"x"}]}"#);
        assert_eq!(shapeless(&one), shapeless(&other));
        assert_ne!(without_order(&one), without_order(&other));
    }
}
