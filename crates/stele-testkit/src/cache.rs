//! The vendors' prompt caches, as far as they show in the usage that is reported. A token is four bytes of the
//! canonical prompt: its items in the wire's order, without cache marks, keys in the order in which they were sent.
//! Time does not pass: nothing expires.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher};

use serde_json::{Value, json};
use stele_core::Wire;

use crate::parsed::list;

/// Bytes of prompt or answer in one token.
pub(crate) const TOKEN: usize = 4;
/// Shortest prompt that Anthropic caches, in tokens; OpenAI's is the same.
const MINIMUM: u64 = 1_024;
/// Shortest prompt that Gemini caches, in tokens.
const GEMINI_MINIMUM: u64 = 4_096;
/// OpenAI counts cached tokens in such steps.
const OPENAI_STEP: u64 = 128;
/// Positions that are looked at for one mark, the mark's own included (Anthropic, prompt caching).
const LOOK_BACK: usize = 20;

/// Shortest prompt that the server caches on a wire, in tokens: that of the wire's vendor.
#[must_use]
pub const fn cache_minimum(wire: Wire) -> u64 {
    match wire {
        Wire::AnthropicMessages | Wire::OpenaiResponses | Wire::OpenaiChat => MINIMUM,
        Wire::Gemini => GEMINI_MINIMUM,
    }
}

/// The tokens of one request and its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The whole prompt, cached or not.
    pub input: u64,
    /// Of it, read from the cache.
    pub cache_read: u64,
    /// Of it, written with a life of five minutes.
    pub cache_write_5m: u64,
    /// Of it, written with a life of one hour.
    pub cache_write_1h: u64,
    /// The answer, reasoning included.
    pub output: u64,
    /// Of it, reasoning.
    pub reasoning: u64,
}

/// A mark's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    FiveMinutes,
    Hour,
}

/// One item of the prompt.
struct Item {
    bytes: Vec<u8>,
    mark: Option<Life>,
}

/// What earlier requests left behind.
#[derive(Debug, Default)]
pub(crate) struct PrefixCache {
    /// Hashes of the prefixes that end at a mark (Anthropic).
    marked: HashSet<u64>,
    /// Whole prompts by wire and model (the others).
    prompts: HashMap<(&'static str, String), Prompts>,
}

impl PrefixCache {
    /// Counts the prompt, and keeps what it leaves in the cache. The answer's figures stay 0.
    pub(crate) fn count(&mut self, wire: Wire, model: &str, body: &Value) -> Counted {
        let items = items(wire, body);
        if wire == Wire::AnthropicMessages {
            return self.count_marks(model, body, &items);
        }
        let prompt = items.iter().map(|item| item.bytes.as_slice()).collect::<Vec<_>>().concat();
        let prompts = self.prompts.entry((wire.name(), model.to_owned())).or_default();
        let shared = tokens(prompts.add(&prompt));
        let step = if wire == Wire::Gemini { 1 } else { OPENAI_STEP };
        let cache_read = if shared < cache_minimum(wire) { 0 } else { shared / step * step };
        Counted { input: tokens(prompt.len()), cache_read, ..Counted::default() }
    }

    fn count_marks(&mut self, model: &str, body: &Value, items: &[Item]) -> Counted {
        let mut hasher = DefaultHasher::new();
        hasher.write(model.as_bytes());
        let messages_at = items.len().saturating_sub(message_blocks(body));
        let mut length = 0;
        let mut prefixes = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            if index == messages_at {
                // These invalidate what is cached of the messages, not of tools and system.
                for field in ["tool_choice", "thinking", "output_config"] {
                    hasher.write(body.get(field).map(Value::to_string).unwrap_or_default().as_bytes());
                }
            }
            hasher.write(&item.bytes);
            length += item.bytes.len();
            prefixes.push((hasher.finish(), tokens(length)));
        }
        let marks: Vec<(usize, Life)> =
            items.iter().enumerate().filter_map(|(index, item)| item.mark.map(|life| (index, life))).collect();
        let read_at = |&(mark, _): &(usize, Life)| {
            let looked = prefixes.get(mark.saturating_sub(LOOK_BACK - 1)..=mark).unwrap_or_default();
            looked.iter().rev().find(|(hash, _)| self.marked.contains(hash)).map(|(_, tokens)| *tokens)
        };
        let cache_read = marks.iter().filter_map(read_at).max().unwrap_or(0);
        let ends: Vec<(u64, u64, Life)> = marks
            .iter()
            .filter_map(|(mark, life)| prefixes.get(*mark).map(|(hash, tokens)| (*hash, *tokens, *life)))
            .filter(|(_, tokens, _)| *tokens >= MINIMUM)
            .collect();
        self.marked.extend(ends.iter().map(|(hash, ..)| *hash));
        let last = |wanted: Option<Life>| {
            let fit = ends.iter().filter(|(.., life)| wanted.is_none_or(|wanted| wanted == *life));
            fit.map(|(_, tokens, _)| *tokens).max().unwrap_or(0).max(cache_read)
        };
        let hour_end = last(Some(Life::Hour));
        Counted {
            input: tokens(length),
            cache_read,
            cache_write_5m: last(None) - hour_end,
            cache_write_1h: hour_end - cache_read,
            ..Counted::default()
        }
    }
}

/// The length of a prompt, in tokens.
pub(crate) fn prompt_tokens(wire: Wire, body: &Value) -> u64 {
    tokens(items(wire, body).iter().map(|item| item.bytes.len()).sum())
}

fn tokens(bytes: usize) -> u64 {
    (bytes / TOKEN) as u64
}

/// The prompts that were seen: a radix tree, so that what they share is kept once.
#[derive(Debug, Default)]
struct Prompts {
    nodes: Vec<Node>,
    roots: Vec<usize>,
}

#[derive(Debug)]
struct Node {
    edge: Vec<u8>,
    next: Vec<usize>,
}

impl Prompts {
    /// How many bytes the prompt shares with the one of the earlier prompts that shares most; then it is one of them.
    fn add(&mut self, prompt: &[u8]) -> usize {
        let mut at: Option<usize> = None;
        let mut done = 0;
        loop {
            let rest = prompt.get(done..).unwrap_or_default();
            let Some(first) = rest.first() else { return done };
            let next = at.and_then(|node| self.nodes.get(node)).map_or(&self.roots, |node| &node.next);
            let starts = |index: &&usize| self.nodes.get(**index).and_then(|node| node.edge.first()) == Some(first);
            let Some(child) = next.iter().find(starts).copied() else {
                self.grow(at, rest.to_vec(), Vec::new());
                return done;
            };
            let Some(node) = self.nodes.get_mut(child) else { return done };
            let common = shared(&node.edge, rest);
            done += common;
            if common == node.edge.len() {
                at = Some(child);
            } else if common == rest.len() {
                return done;
            } else {
                let tail = node.edge.split_off(common);
                let below = std::mem::take(&mut node.next);
                self.grow(Some(child), tail, below);
                self.grow(Some(child), rest.get(common..).unwrap_or_default().to_vec(), Vec::new());
                return done;
            }
        }
    }

    fn grow(&mut self, parent: Option<usize>, edge: Vec<u8>, next: Vec<usize>) {
        let index = self.nodes.len();
        self.nodes.push(Node { edge, next });
        parent.and_then(|node| self.nodes.get_mut(node)).map_or(&mut self.roots, |node| &mut node.next).push(index);
    }
}

/// Length of the common prefix; whole pages are compared at once.
fn shared(left: &[u8], right: &[u8]) -> usize {
    const PAGE: usize = 4_096;
    let pages = left.chunks(PAGE).zip(right.chunks(PAGE)).take_while(|(left, right)| left == right);
    let whole: usize = pages.map(|(page, _)| page.len()).sum();
    let rest = |bytes: &'_ [u8]| bytes.get(whole..).unwrap_or_default().iter().copied().take(PAGE).collect::<Vec<u8>>();
    whole + rest(left).into_iter().zip(rest(right)).take_while(|(left, right)| left == right).count()
}

/// The life of the mark on an object, if it has one.
pub(crate) fn mark(object: &Value) -> Option<Life> {
    let mark = object.get("cache_control").filter(|mark| !mark.is_null())?;
    Some(if mark.get("ttl").and_then(Value::as_str) == Some("1h") { Life::Hour } else { Life::FiveMinutes })
}

/// The number of blocks in the messages of an Anthropic request.
fn message_blocks(body: &Value) -> usize {
    list(body, "messages").iter().map(|message| blocks(message.get("content")).len()).sum()
}

/// A content as a list of blocks: a string is one block of text.
fn blocks(content: Option<&Value>) -> Cow<'_, [Value]> {
    match content {
        Some(Value::String(text)) => Cow::Owned(vec![json!({"type": "text", "text": text})]),
        Some(Value::Array(blocks)) => Cow::Borrowed(blocks),
        _ => Cow::Borrowed(&[]),
    }
}

/// The items of a prompt, in the wire's order.
fn items(wire: Wire, body: &Value) -> Vec<Item> {
    let mut items = Vec::new();
    let mut add = |role: Option<&str>, value: &Value| {
        let mut bytes = role.map_or_else(Vec::new, |role| format!("{role}\n").into_bytes());
        write_canonical(value, &mut bytes);
        bytes.push(b'\n');
        items.push(Item { bytes, mark: mark(value) });
    };
    match wire {
        Wire::AnthropicMessages => {
            list(body, "tools").iter().for_each(|tool| add(None, tool));
            blocks(body.get("system")).iter().for_each(|block| add(None, block));
            for message in list(body, "messages") {
                let role = message.get("role").and_then(Value::as_str);
                for (index, block) in blocks(message.get("content")).iter().enumerate() {
                    add(role.filter(|_| index == 0), block);
                }
            }
            if let (Some(life), Some(last)) = (mark(body), items.last_mut()) {
                last.mark = last.mark.or(Some(life));
            }
        }
        Wire::OpenaiResponses => {
            body.get("instructions").into_iter().for_each(|text| add(None, text));
            list(body, "tools").iter().for_each(|tool| add(None, tool));
            body.get("input").filter(|input| input.is_string()).into_iter().for_each(|text| add(None, text));
            list(body, "input").iter().for_each(|item| add(None, item));
        }
        Wire::OpenaiChat => {
            let messages = list(body, "messages");
            let is_system =
                |message: &&Value| matches!(message.get("role").and_then(Value::as_str), Some("system" | "developer"));
            let system = messages.iter().take_while(is_system).count();
            let (system, rest) = messages.split_at(system);
            system.iter().chain(list(body, "tools")).chain(rest).for_each(|item| add(None, item));
        }
        Wire::Gemini => {
            body.get("systemInstruction").into_iter().for_each(|system| add(None, system));
            list(body, "tools").iter().chain(list(body, "contents")).for_each(|item| add(None, item));
        }
    }
    items
}

/// JSON without white space and without the marks on a block, its content's blocks included. Keys keep their order.
fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(object) => {
            out.push(b'{');
            for (key, value) in object.iter().filter(|(key, _)| *key != "cache_control") {
                write_plain(&Value::String(key.clone()), out);
                out.push(b':');
                match (key.as_str(), value) {
                    ("content", Value::Array(blocks)) => {
                        out.push(b'[');
                        for block in blocks {
                            write_canonical(block, out);
                            out.push(b',');
                        }
                        out.push(b']');
                    }
                    _ => write_plain(value, out),
                }
                out.push(b',');
            }
            out.push(b'}');
        }
        other => write_plain(other, out),
    }
}

fn write_plain(value: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(value.to_string().as_bytes());
}
