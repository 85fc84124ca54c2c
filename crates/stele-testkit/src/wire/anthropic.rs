//! Anthropic Messages: what is refused, and the form of an answer (Anthropic, Messages API and streaming, 2026-11).

use std::collections::HashSet;

use serde_json::{Value, json};
use stele_core::{Stop, Wire};

use super::{Answer, Frame, is_name, pieces, repeated, unknown_field};
use crate::cache::{Counted, Life, mark};
use crate::http::Head;
use crate::id;
use crate::parsed::{ParsedRequest, list, text_of};
use crate::refusal::Refusal;
use crate::script::Part;

const FIELDS: [&str; 21] = [
    "model",
    "messages",
    "max_tokens",
    "system",
    "tools",
    "tool_choice",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "metadata",
    "thinking",
    "service_tier",
    "container",
    "mcp_servers",
    "context_management",
    "output_config",
    "cache_control",
    "inference_geo",
    "speed",
];

/// Most cache marks in one request.
const MARKS: usize = 4;

/// Refuses what Anthropic refuses.
pub(crate) fn check(request: &ParsedRequest, head: &Head) -> Result<(), Refusal> {
    let body = &request.raw;
    if head.header("anthropic-version").is_none() {
        return Err(Refusal::invalid("anthropic-version: header is required"));
    }
    if let Some(field) = unknown_field(body, &FIELDS) {
        return Err(Refusal::invalid(format!("{field}: Extra inputs are not permitted")));
    }
    for field in ["model", "messages", "max_tokens"] {
        if body.get(field).is_none() {
            return Err(Refusal::invalid(format!("{field}: Field required")));
        }
    }
    if body.get("max_tokens").and_then(Value::as_u64).is_none_or(|tokens| tokens == 0) {
        return Err(Refusal::invalid("max_tokens: Input should be greater than or equal to 1"));
    }
    check_tools(request)?;
    check_system(body)?;
    check_messages(body)?;
    check_marks(body)
}

fn check_tools(request: &ParsedRequest) -> Result<(), Refusal> {
    for (index, tool) in list(&request.raw, "tools").iter().enumerate() {
        let own_kind = tool.get("type").is_none_or(|kind| kind == "custom");
        if own_kind && !tool.get("input_schema").is_some_and(|schema| schema["type"] == "object") {
            return Err(Refusal::invalid(format!("tools.{index}.custom.input_schema.type: Field required")));
        }
        if !is_name(&text_of(tool, "name"), 128) {
            return Err(Refusal::invalid(format!(
                "tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            )));
        }
    }
    match repeated(&request.tools) {
        Some(_) => Err(Refusal::invalid("tools: Tool names must be unique.")),
        None => Ok(()),
    }
}

fn check_system(body: &Value) -> Result<(), Refusal> {
    match body.get("system") {
        None | Some(Value::String(_)) => Ok(()),
        Some(Value::Array(blocks)) => {
            blocks.iter().enumerate().try_for_each(|(index, block)| check_text(block, &format!("system.{index}")))
        }
        Some(_) => Err(Refusal::invalid("system: Input should be a valid list")),
    }
}

fn check_text(block: &Value, place: &str) -> Result<(), Refusal> {
    if block["type"] != "text" {
        return Err(Refusal::invalid(format!("{place}.type: Input should be 'text'")));
    }
    match block.get("text").and_then(Value::as_str) {
        None => Err(Refusal::invalid(format!("{place}.text: Field required"))),
        Some("") => Err(Refusal::invalid(format!("{place}: text content blocks must be non-empty"))),
        Some(text) if text.trim().is_empty() => {
            Err(Refusal::invalid(format!("{place}: text content blocks must contain non-whitespace text")))
        }
        Some(_) => Ok(()),
    }
}

fn check_messages(body: &Value) -> Result<(), Refusal> {
    let Some(messages) = body.get("messages").and_then(Value::as_array) else {
        return Err(Refusal::invalid("messages: Input should be a valid list"));
    };
    let Some(first) = messages.first() else {
        return Err(Refusal::invalid("messages: at least one message is required"));
    };
    if first["role"] != "user" {
        return Err(Refusal::invalid("messages: first message must use the \"user\" role"));
    }
    let mut ids = HashSet::new();
    // The calls of the assistant's turn that is not answered yet.
    let mut open: Vec<String> = Vec::new();
    let mut previous = "";
    for (index, message) in messages.iter().enumerate() {
        let place = format!("messages.{index}");
        let role = match message.get("role").and_then(Value::as_str) {
            Some(role @ ("user" | "assistant")) => role,
            _ => {
                return Err(Refusal::invalid(format!("{place}.role: Input should be 'user' or 'assistant'")));
            }
        };
        let last = index + 1 == messages.len();
        let blocks = match message.get("content") {
            Some(Value::String(text)) if text.is_empty() && !(last && role == "assistant") => {
                return Err(Refusal::invalid(format!("{place}: user messages must have non-empty content")));
            }
            Some(Value::String(_)) => &[],
            Some(Value::Array(blocks)) if blocks.is_empty() => {
                return Err(Refusal::invalid(format!(
                    "{place}: all messages must have non-empty content except for the optional final assistant message"
                )));
            }
            Some(Value::Array(blocks)) => blocks.as_slice(),
            _ => return Err(Refusal::invalid(format!("{place}.content: Field required"))),
        };
        // Neighbours of one role are one turn.
        let turn_begins = role != previous;
        previous = role;
        if role == "assistant" {
            if turn_begins {
                open.clear();
            }
            for (at, block) in blocks.iter().enumerate() {
                check_assistant_block(block, &format!("{place}.content.{at}"), &mut ids, &mut open)?;
            }
            if last && blocks.last().is_some_and(|block| text_of(block, "text").ends_with(char::is_whitespace)) {
                return Err(Refusal::invalid("messages: final assistant content cannot end with trailing whitespace"));
            }
        } else {
            check_user_blocks(blocks, &place, &mut open)?;
            let next_is_user = messages.get(index + 1).is_some_and(|next| next["role"] == "user");
            if !open.is_empty() && !next_is_user {
                return Err(unanswered(index.saturating_sub(1), &open));
            }
        }
    }
    if open.is_empty() { Ok(()) } else { Err(unanswered(messages.len() - 1, &open)) }
}

fn unanswered(index: usize, open: &[String]) -> Refusal {
    Refusal::invalid(format!(
        "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` \
         block must have a corresponding `tool_result` block in the next message.",
        open.join(", ")
    ))
}

fn check_assistant_block(
    block: &Value,
    place: &str,
    ids: &mut HashSet<String>,
    open: &mut Vec<String>,
) -> Result<(), Refusal> {
    match block.get("type").and_then(Value::as_str) {
        Some("text") => check_text(block, place),
        Some("thinking") => {
            if text_of(block, "signature") == id::signature(&text_of(block, "thinking")) {
                Ok(())
            } else {
                Err(Refusal::invalid(format!("{place}: Invalid `signature` in `thinking` block")))
            }
        }
        Some("redacted_thinking") => Ok(()),
        Some("tool_use") => {
            let id = text_of(block, "id");
            if !is_name(&id, 256) {
                return Err(Refusal::invalid(format!(
                    "{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
                )));
            }
            if !ids.insert(id.clone()) {
                return Err(Refusal::invalid(format!("{place}: `tool_use` ids must be unique")));
            }
            if !block.get("input").is_some_and(Value::is_object) {
                return Err(Refusal::invalid(format!("{place}.tool_use.input: Input should be an object")));
            }
            if !is_name(&text_of(block, "name"), 200) {
                return Err(Refusal::invalid(format!(
                    "{place}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,200}}$'"
                )));
            }
            open.push(id);
            Ok(())
        }
        other => Err(unknown_block(place, other)),
    }
}

/// A block that cannot stand there.
fn unknown_block(place: &str, kind: Option<&str>) -> Refusal {
    Refusal::invalid(format!("{place}: Input tag '{}' does not match any of the expected tags", kind.unwrap_or("")))
}

fn check_user_blocks(blocks: &[Value], place: &str, open: &mut Vec<String>) -> Result<(), Refusal> {
    for (at, block) in blocks.iter().enumerate() {
        let place = format!("{place}.content.{at}");
        match block.get("type").and_then(Value::as_str) {
            Some("text") if !open.is_empty() => {
                // Results come first; text that stands before them separates them from their calls.
                return Err(unanswered(at, open));
            }
            Some("text") => check_text(block, &place)?,
            Some("tool_result") => {
                let id = text_of(block, "tool_use_id");
                let Some(found) = open.iter().position(|call| *call == id) else {
                    return Err(Refusal::invalid(format!(
                        "{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block \
                         must have a corresponding `tool_use` block in the previous message."
                    )));
                };
                open.remove(found);
                for (inner, part) in list(block, "content").iter().enumerate() {
                    if part["type"] == "text" {
                        check_text(part, &format!("{place}.tool_result.content.{inner}"))?;
                    }
                }
            }
            Some("image" | "document" | "search_result") => {}
            other => return Err(unknown_block(&place, other)),
        }
    }
    Ok(())
}

fn check_marks(body: &Value) -> Result<(), Refusal> {
    let mut lives = Vec::new();
    let contents = list(body, "messages").iter().flat_map(|message| list(message, "content"));
    for block in list(body, "tools").iter().chain(list(body, "system")).chain(contents) {
        let Some(life) = mark(block) else { continue };
        if block["type"] == "thinking" || block["type"] == "redacted_thinking" {
            return Err(Refusal::invalid("thinking blocks cannot be marked with cache_control"));
        }
        let control = &block["cache_control"];
        if control["type"] != "ephemeral" || !matches!(control["ttl"].as_str(), None | Some("5m" | "1h")) {
            return Err(Refusal::invalid(
                "cache_control: Input should be an ephemeral mark with a ttl of '5m' or '1h'",
            ));
        }
        lives.push(life);
    }
    lives.extend(mark(body));
    if lives.len() > MARKS {
        return Err(Refusal::invalid(format!(
            "A maximum of {MARKS} blocks with cache_control may be provided. Found {}.",
            lives.len()
        )));
    }
    let first_short = lives.iter().position(|life| *life == Life::FiveMinutes).unwrap_or(lives.len());
    if lives.iter().skip(first_short).any(|life| *life == Life::Hour) {
        return Err(Refusal::invalid(
            "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are \
             processed in the following order: `tools`, `system`, `messages`.",
        ));
    }
    Ok(())
}

/// The usage object: `input_tokens` is what the cache had no part in.
pub(crate) fn usage(counted: &Counted) -> Value {
    let written = counted.cache_write_5m + counted.cache_write_1h;
    json!({
        "input_tokens": counted.input.saturating_sub(counted.cache_read + written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": counted.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": counted.cache_write_5m,
            "ephemeral_1h_input_tokens": counted.cache_write_1h,
        },
        "output_tokens": counted.output,
        "service_tier": "standard",
    })
}

fn stop_reason(stop: &Stop) -> String {
    match stop {
        Stop::End | Stop::Cut => "end_turn",
        Stop::ToolCalls => "tool_use",
        Stop::MaxOutput => "max_tokens",
        Stop::StopSequence => "stop_sequence",
        Stop::Refusal | Stop::ContentFilter => "refusal",
        Stop::Other(reason) => reason,
    }
    .to_owned()
}

/// Adds the usage object to an object, when one is reported.
fn with_usage(mut object: Value, usage: Option<Value>) -> Value {
    if let Some(usage) = usage {
        object["usage"] = usage;
    }
    object
}

fn message(answer: &Answer<'_>, content: Value, stop: Option<String>) -> Value {
    json!({
        "id": id::other("msg_01", answer.request.number, 0, 22),
        "type": "message",
        "role": "assistant",
        "model": answer.request.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": null,
    })
}

/// An answer that is not streamed.
pub(crate) fn whole(answer: &Answer<'_>) -> Value {
    let blocks: Vec<Value> = answer
        .parts()
        .map(|(part, call)| match part {
            Part::Text(text) => json!({"type": "text", "text": text}),
            Part::Reasoning(text) => json!({"type": "thinking", "thinking": text, "signature": id::signature(text)}),
            Part::Call(said) => {
                let input: Value = serde_json::from_str(&said.arguments).unwrap_or_else(|_| json!(said.arguments));
                let id = id::call(Wire::AnthropicMessages, answer.step, call);
                json!({"type": "tool_use", "id": id, "name": said.name, "input": input})
            }
        })
        .collect();
    with_usage(message(answer, json!(blocks), Some(stop_reason(&answer.say.stop()))), answer.usage.clone())
}

/// The events of a streamed answer.
pub(crate) fn stream(answer: &Answer<'_>) -> Vec<Frame> {
    let mut first = answer.usage.clone();
    if let Some(output) = first.as_mut().and_then(|usage| usage.get_mut("output_tokens")) {
        *output = json!(1);
    }
    let start = with_usage(message(answer, json!([]), None), first);
    let mut frames = vec![Frame::named("message_start", &json!({"type": "message_start", "message": start}))];
    for (index, (part, call)) in answer.parts().enumerate() {
        let delta = |delta: Value| {
            Frame::named("content_block_delta", &json!({"type": "content_block_delta", "index": index, "delta": delta}))
        };
        let (block, deltas): (Value, Vec<Frame>) = match part {
            Part::Text(text) => (
                json!({"type": "text", "text": ""}),
                pieces(text).into_iter().map(|piece| delta(json!({"type": "text_delta", "text": piece}))).collect(),
            ),
            Part::Reasoning(text) => {
                let thinking = pieces(text).into_iter();
                let thinking = thinking.map(|piece| delta(json!({"type": "thinking_delta", "thinking": piece})));
                let signature = delta(json!({"type": "signature_delta", "signature": id::signature(text)}));
                (json!({"type": "thinking", "thinking": "", "signature": ""}), thinking.chain([signature]).collect())
            }
            Part::Call(said) => {
                let id = id::call(Wire::AnthropicMessages, answer.step, call);
                let json = [""].into_iter().chain(pieces(&said.arguments));
                (
                    json!({"type": "tool_use", "id": id, "name": said.name, "input": {}}),
                    json.map(|piece| delta(json!({"type": "input_json_delta", "partial_json": piece}))).collect(),
                )
            }
        };
        frames.push(Frame::named(
            "content_block_start",
            &json!({"type": "content_block_start", "index": index, "content_block": block}),
        ));
        if index == 0 {
            frames.push(Frame::named("ping", &json!({"type": "ping"})));
        }
        frames.extend(deltas);
        frames.push(Frame::named("content_block_stop", &json!({"type": "content_block_stop", "index": index})));
    }
    let delta = json!({"stop_reason": stop_reason(&answer.say.stop()), "stop_sequence": null});
    let end = with_usage(json!({"type": "message_delta", "delta": delta}), answer.usage.clone());
    frames.push(Frame::named("message_delta", &end));
    frames.push(Frame::named("message_stop", &json!({"type": "message_stop"})));
    frames
}
