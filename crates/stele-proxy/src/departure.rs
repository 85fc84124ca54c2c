//! Where a request leaves the one before, and by what kind of change.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use stele_core::{Hash, Wire, Zone};

use crate::change::Change;
use crate::emulate::common_prefix;
use crate::lineage::{block_hash, likeness, opening};
use crate::parameter::{Says, differing};
use crate::prompt::Segment;
use crate::record::Recorded;
use crate::unit::{Unit, units};
use crate::volatile::volatile;

/// Where a request leaves an earlier one.
#[derive(Clone, Debug)]
pub(crate) struct Departure {
    /// What differs: a segment or a block of it, by its name in the earlier request if the later one does not have it any
    /// more; or a parameter.
    pub(crate) segment: String,
    /// The part of the prompt from which on nothing of the earlier one is any use.
    pub(crate) zone: Zone,
    /// The segment from which on.
    pub(crate) index: usize,
    /// What kind of change it is; absent when nothing differs.
    pub(crate) change: Option<Change>,
}

impl Departure {
    /// How `after` leaves `before`, when their prompts part at a segment.
    pub(crate) fn at(before: &Recorded, after: &Recorded, index: usize) -> Option<Self> {
        if let Some((parameter, change)) = elsewhere(before, after) {
            return Self::whole(after, parameter.to_owned(), change);
        }
        let named = classify(before, after, index);
        let (segment, zone) = match named.subject {
            Some(subject) => subject,
            None => place_of(after.segments.get(index).or_else(|| after.segments.last())?),
        };
        Some(Self { segment, zone, index, change: named.change })
    }

    /// How `after` leaves `before`, although it extends its prompt: a parameter by which the provider renders the prompt,
    /// or finds what it keeps, makes everything from a segment on useless. `None` when there is none that differs.
    pub(crate) fn by_parameter(before: &Recorded, after: &Recorded, from: Option<usize>) -> Option<Self> {
        let (parameter, change) = parameter(before, after)?;
        let Some(index) = from else { return Self::whole(after, parameter, change) };
        let (segment, zone) = place_of(after.segments.get(index)?);
        Some(Self { segment, zone, index, change: Some(change) })
    }

    /// Where `before` had its last mark, which `after` extends without one that finds it.
    pub(crate) fn unmarked(before: &Recorded, after: &Recorded) -> Option<Self> {
        let index = before.segments.iter().rposition(|segment| segment.mark.is_some())?;
        let (segment, zone) = place_of(after.segments.get(index)?);
        Some(Self { change: Some(Change::Unmarked { segment: segment.clone() }), segment, zone, index })
    }

    /// Segments before the conversation, other than this one, that both requests have and that differ.
    pub(crate) fn also(&self, before: &Recorded, after: &Recorded) -> Vec<String> {
        let header = |request: &'_ Recorded| -> HashMap<String, Hash> {
            let header = request.segments.iter().filter(|segment| matches!(segment.zone, Zone::Tools | Zone::System));
            header.map(|segment| (segment.label.clone(), segment.hash)).collect()
        };
        if before.wire != after.wire {
            // Everything is written in another way.
            return Vec::new();
        }
        let was = header(before);
        let differs = |segment: &&Segment| was.get(&segment.label).is_some_and(|hash| *hash != segment.hash);
        let labels = after.segments.iter().filter(differs).map(|segment| segment.label.clone());
        labels.filter(|label| *label != self.segment).collect()
    }

    /// A change that leaves nothing of the earlier request any use.
    fn whole(after: &Recorded, parameter: String, change: Change) -> Option<Self> {
        let zone = after.segments.first()?.zone;
        Some(Self { segment: parameter, zone, index: 0, change: Some(change) })
    }
}

fn place_of(segment: &Segment) -> (String, Zone) {
    (segment.label.clone(), segment.zone)
}

/// The parameter by which two requests go to different caches, and how it differs.
fn elsewhere(before: &Recorded, after: &Recorded) -> Option<(&'static str, Change)> {
    let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    if before.wire != after.wire {
        let (before, after) = pair(before.wire.name(), after.wire.name());
        return Some(("wire", Change::Wire { before, after }));
    }
    if before.base_url != after.base_url {
        let (before, after) = pair(&before.base_url, &after.base_url);
        return Some(("server", Change::Server { before, after }));
    }
    (before.model != after.model).then(|| {
        let (before, after) = pair(&before.model, &after.model);
        ("model", Change::Model { before, after })
    })
}

/// The parameter that two requests to one cache differ in, and how.
fn parameter(before: &Recorded, after: &Recorded) -> Option<(String, Change)> {
    let thinking =
        differing(before, after, Says::Thinking).map(|parameter| (parameter.clone(), Change::Thinking { parameter }));
    let keyed =
        || differing(before, after, Says::Other).map(|parameter| (parameter.clone(), Change::Parameter { parameter }));
    thinking.or_else(keyed)
}

/// A change, and its subject where that is not the segment of the later request.
struct Named {
    change: Option<Change>,
    subject: Option<(String, Zone)>,
}

impl Named {
    fn new(change: Change) -> Self {
        Self { change: Some(change), subject: None }
    }

    fn with_subject(self, unit: &Unit<'_>) -> Self {
        Self { subject: Some((unit.label(), unit.segment.zone)), ..self }
    }
}

/// Tells what changed between two requests of which the later one leaves the earlier one at `index`.
fn classify(before: &Recorded, after: &Recorded, index: usize) -> Named {
    let (Some(old), Some(new)) = (before.segments.get(index), after.segments.get(index)) else {
        // One of the two ends here, so the prompt is whole and only the parameters can differ.
        return Named { change: parameter(before, after).map(|(_, change)| change), subject: None };
    };
    if old.zone == Zone::Tools || new.zone == Zone::Tools {
        let change = of_tools(before, after, old, new);
        let is_gone = matches!(&change, Change::ToolSet { removed, .. } if removed.contains(&plain_name(&old.label)));
        return Named { change: Some(change), subject: is_gone.then(|| place_of(old)) };
    }
    if let (Some(parameter), Zone::History) = (differing(before, after, Says::Thinking), old.zone)
        && (after.wire == Wire::AnthropicMessages || is_reasoning(&old.value()))
    {
        return Named::new(Change::Thinking { parameter });
    }
    of_blocks(before, after, index, old, new)
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

fn of_blocks(before: &Recorded, after: &Recorded, index: usize, old: &Segment, new: &Segment) -> Named {
    if old.block() == new.block() {
        // The role alone: the block begins a message in one request and goes on with one in the other.
        return Named::new(Change::Shape);
    }
    let (was, is) = (old.value(), new.value());
    if without_order(&was) == without_order(&is) {
        return Named::new(Change::Reserialised);
    }
    if shapeless(&was) == shapeless(&is) {
        return Named::new(Change::Shape);
    }
    let ((rest_before, of_old), (rest_after, of_new)) = (units(before, index), units(after, index));
    let equal = rest_before.iter().zip(&rest_after).take_while(|(old, new)| old.hash == new.hash).count();
    let equal = equal.min(of_old).min(of_new);
    let (rest_before, rest_after) = (&rest_before[equal..], &rest_after[equal..]);
    let (old_ends, new_ends) = (of_old == equal, of_new == equal);
    if old_ends && new_ends {
        // All that the two messages say is equal.
        return Named::new(Change::Shape);
    }
    let (gone, inserted) = (meets(rest_before, rest_after), meets(rest_after, rest_before));
    // Another session of the same agent begins with the same block, but for a path or a date in it.
    let alike = match (rest_before, rest_after) {
        ([old, ..], [new, ..]) => likeness(&old.bytes(), &new.bytes()) >= 50,
        _ => false,
    };
    if gone.or(inserted).is_none() && !alike && is_replaced(before, after, index) {
        return Named::new(Change::HistoryReplaced);
    }
    let gone = gone.or(new_ends.then_some(of_old - equal));
    let inserted = inserted.or(old_ends.then_some(of_new - equal));
    if let Some(gone) = gone.filter(|gone| inserted.is_none_or(|put| *gone <= put)) {
        let gone = &rest_before[..gone];
        return if are_within(gone, rest_after) { moved(gone) } else { dropped(gone) };
    }
    if let Some(put) = inserted {
        let put = &rest_after[..put];
        if are_within(put, rest_before) {
            return moved(put);
        }
        let change = Named::new(Change::Inserted { blocks: labels(put) });
        return put.iter().take(1).fold(change, Named::with_subject);
    }
    match (rest_before, rest_after) {
        ([old, ..], [new, ..]) => of_units(old, new),
        _ => Named::new(Change::Text),
    }
}

fn are_within(units: &[Unit<'_>], others: &[Unit<'_>]) -> bool {
    let there: HashSet<Hash> = others.iter().map(|unit| unit.hash).collect();
    units.iter().all(|unit| there.contains(&unit.hash))
}

/// Units that both requests have, at other places.
fn moved(units: &[Unit<'_>]) -> Named {
    units.iter().take(1).fold(Named::new(Change::Moved { blocks: labels(units) }), Named::with_subject)
}

/// Units that the later request does not have any more.
fn dropped(units: &[Unit<'_>]) -> Named {
    let change = if units.iter().any(|unit| images(&unit.value()) > 0) {
        Change::ImageRemoved
    } else {
        Change::Dropped { blocks: labels(units) }
    };
    units.iter().take(1).fold(Named::new(change), Named::with_subject)
}

/// A unit that became another one.
fn of_units(old: &Unit<'_>, new: &Unit<'_>) -> Named {
    let (was, is) = (old.value(), new.value());
    if without_order(&was) == without_order(&is) {
        return Named::new(Change::Reserialised).with_subject(new);
    }
    if bare(&was) == bare(&is) {
        return Named::new(Change::Shape).with_subject(new);
    }
    if images(&was) > images(&is) {
        return Named::new(Change::ImageRemoved).with_subject(old);
    }
    let change = match (result_text(&was), result_text(&is)) {
        (Some(was), Some(is)) if is_shortened(&was, &is) => Change::ResultTruncated,
        (Some(_), Some(_)) => Change::ResultChanged,
        _ => volatile(&old.bytes(), &new.bytes()).unwrap_or(Change::Text),
    };
    Named::new(change).with_subject(new)
}

fn labels(units: &[Unit<'_>]) -> Vec<String> {
    units.iter().map(Unit::label).collect()
}

/// Whether a history was replaced from its opening on: it is shorter now, and most of what stood there is gone.
fn is_replaced(before: &Recorded, after: &Recorded, index: usize) -> bool {
    fn history(request: &Recorded) -> impl Iterator<Item = &Segment> {
        request.segments.iter().filter(|segment| segment.zone == Zone::History)
    }
    let first = before.segments.iter().position(|segment| segment.zone == Zone::History);
    if first.is_none_or(|first| !(first..=first + opening(before)).contains(&index)) {
        return false;
    }
    let bytes = |request| history(request).map(|segment| segment.bytes.len()).sum::<usize>();
    let still: HashSet<Hash> = history(after).map(block_hash).collect();
    let kept = history(before).filter(|segment| still.contains(&block_hash(segment))).count();
    let was = history(before).count();
    was > 1 && kept * 2 < was && bytes(after) < bytes(before)
}

/// After how many units the first one of another prompt comes again.
fn meets(units: &[Unit<'_>], other: &[Unit<'_>]) -> Option<usize> {
    let wanted = other.first()?.hash;
    units.iter().position(|unit| unit.hash == wanted).filter(|at| *at > 0)
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

/// A part of text, or a string in its place, as that text.
fn bare(value: &Value) -> Value {
    let is_text = value.get("type").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("text"));
    value.get("text").filter(|_| is_text).unwrap_or(value).clone()
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
    let kept = common_prefix(before.as_bytes(), after.as_bytes());
    after.len() < before.len() && (kept * 2 >= after.len() || after.len() <= 256)
}

#[cfg(test)]
mod tests {
    use super::*;

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
