//! OpenAI Responses: what is refused, and the form of an answer (OpenAI, API reference, 2026-11).

use std::collections::HashSet;

use serde_json::{Value, json};
use stele_core::{Stop, Wire};

use super::{Answer, Frame, is_name, pieces, repeated, unknown_field};
use crate::cache::Counted;
use crate::id;
use crate::parsed::{ParsedRequest, list, text_of};
use crate::refusal::Refusal;
use crate::script::Part;

const FIELDS: [&str; 29] = [
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_tool_calls",
    "stream",
    "stream_options",
    "store",
    "include",
    "max_output_tokens",
    "temperature",
    "top_p",
    "top_logprobs",
    "reasoning",
    "text",
    "truncation",
    "metadata",
    "user",
    "safety_identifier",
    "service_tier",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "context_management",
    "previous_response_id",
    "background",
];

/// Refuses what OpenAI refuses.
pub(crate) fn check(request: &ParsedRequest) -> Result<(), Refusal> {
    let body = &request.raw;
    if let Some(field) = unknown_field(body, &FIELDS) {
        return Err(Refusal::field(field, format!("Unknown parameter: '{field}'.")));
    }
    if request.model.is_empty() {
        return Err(Refusal::field("model", "Missing required parameter: 'model'."));
    }
    if let Some(id) = body.get("previous_response_id").and_then(Value::as_str) {
        // Nothing is stored here.
        return Err(Refusal::field("previous_response_id", format!("Previous response with id '{id}' not found.")));
    }
    for (index, tool) in list(body, "tools").iter().enumerate() {
        if tool["type"] == "function" && !is_name(&text_of(tool, "name"), 64) {
            let field = format!("tools[{index}].name");
            let message = format!("Invalid '{field}': string does not match pattern '^[a-zA-Z0-9_-]+$'.");
            return Err(Refusal::field(field, message));
        }
    }
    if let Some(name) = repeated(&request.tools) {
        return Err(Refusal::field("tools", format!("Duplicate function name '{name}'.")));
    }
    match body.get("input") {
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(items)) if !items.is_empty() => check_items(items, body["store"] == false),
        _ => Err(Refusal::field("input", "Missing required parameter: 'input'.")),
    }
}

fn check_items(items: &[Value], unstored: bool) -> Result<(), Refusal> {
    let mut ids = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let place = format!("input[{index}]");
        match item.get("type").and_then(Value::as_str) {
            Some("function_call") => {
                let id = text_of(item, "call_id");
                if id.is_empty() || id.len() > 64 {
                    let message = format!("Invalid '{place}.call_id': expected a length between 1 and 64.");
                    return Err(Refusal::field(format!("{place}.call_id"), message));
                }
                if !ids.insert(id.clone()) {
                    return Err(Refusal::field("input", format!("Duplicate function call with call_id {id}.")));
                }
                if !item["arguments"].is_string() || !is_name(&text_of(item, "name"), 64) {
                    let message = format!("Invalid type for '{place}.arguments': expected a string, and a valid name.");
                    return Err(Refusal::field(format!("{place}.arguments"), message));
                }
                open.push(id);
            }
            Some("function_call_output") => {
                let id = text_of(item, "call_id");
                let Some(found) = open.iter().position(|call| *call == id) else {
                    let message = format!("No tool call found for function call output with call_id {id}.");
                    return Err(Refusal::field("input", message));
                };
                open.remove(found);
                check_content(item.get("output"), &["input_text", "input_image", "input_file"], &place)?;
            }
            Some("reasoning") => check_reasoning(item, items.get(index + 1), unstored)?,
            None | Some("message") => {
                if let Some(id) = open.first() {
                    // A result may come later on this wire, but the model must not have gone on without it.
                    if item["role"] == "assistant" {
                        return Err(unanswered(id));
                    }
                }
                check_message(item, &place)?;
            }
            Some("item_reference") => return Err(not_stored(item)),
            Some(other) => {
                let message = format!("Invalid value: '{other}'. Supported values are the types of input items.");
                return Err(Refusal::field(format!("{place}.type"), message));
            }
        }
    }
    open.first().map_or(Ok(()), |id| Err(unanswered(id)))
}

fn unanswered(id: &str) -> Refusal {
    Refusal::field("input", format!("No tool output found for function call {id}."))
}

fn not_stored(item: &Value) -> Refusal {
    let message = format!(
        "Item with id '{}' not found. Items are not persisted when `store` is set to false. Try again with `store` set \
         to true, or remove this item from your input.",
        text_of(item, "id")
    );
    Refusal { status: 404, ..Refusal::field("input", message) }
}

fn check_reasoning(item: &Value, next: Option<&Value>, unstored: bool) -> Result<(), Refusal> {
    if !item["summary"].is_array() {
        return Err(Refusal::field("input", "Missing required parameter: 'summary' of a reasoning item."));
    }
    match item.get("encrypted_content").and_then(Value::as_str) {
        None if unstored => return Err(not_stored(item)),
        None => {}
        Some(encrypted) => {
            let summary: String = list(item, "summary").iter().map(|part| text_of(part, "text")).collect();
            if encrypted != id::signature(&summary) {
                return Err(Refusal::invalid(format!(
                    "The encrypted content for item {} could not be verified.",
                    text_of(item, "id")
                )));
            }
        }
    }
    let goes_on = next.is_some_and(|next| {
        matches!(next["type"].as_str(), Some("function_call" | "reasoning")) || next["role"] == "assistant"
    });
    if goes_on {
        return Ok(());
    }
    let message =
        format!("Item '{}' of type 'reasoning' was provided without its required following item.", text_of(item, "id"));
    Err(Refusal::field("input", message))
}

fn check_message(item: &Value, place: &str) -> Result<(), Refusal> {
    match item.get("role").and_then(Value::as_str) {
        Some("assistant") => check_content(item.get("content"), &["output_text", "refusal"], place),
        Some("user" | "system" | "developer") => {
            check_content(item.get("content"), &["input_text", "input_image", "input_file"], place)
        }
        other => Err(Refusal::field(
            format!("{place}.role"),
            format!(
                "Invalid value: '{}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
                other.unwrap_or("")
            ),
        )),
    }
}

fn check_content(content: Option<&Value>, kinds: &[&str], place: &str) -> Result<(), Refusal> {
    match content {
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) => match parts.iter().find(|part| !kinds.contains(&text_of(part, "type").as_str())) {
            None => Ok(()),
            Some(part) => Err(Refusal::field(
                format!("{place}.content"),
                format!("Invalid value: '{}'. Supported values are: '{}'.", text_of(part, "type"), kinds.join("', '")),
            )),
        },
        _ => Err(Refusal::field(format!("{place}.content"), format!("Missing required parameter: '{place}.content'."))),
    }
}

/// The usage object: the input includes what was cached.
pub(crate) fn usage(counted: &Counted) -> Value {
    json!({
        "input_tokens": counted.input,
        "input_tokens_details": {"cached_tokens": counted.cache_read},
        "output_tokens": counted.output,
        "output_tokens_details": {"reasoning_tokens": counted.reasoning},
        "total_tokens": counted.input + counted.output,
    })
}

fn response(request: &ParsedRequest, status: &str, output: Value, usage: Option<&Value>) -> Value {
    json!({
        "id": id::other("resp_", request.number, 0, 48),
        "object": "response",
        "created_at": super::CREATED,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "instructions": null,
        "metadata": {},
        "model": request.model,
        "output": output,
        "parallel_tool_calls": true,
        "store": false,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    })
}

/// One output item: as it is when it begins, its events in between, as it is when it is done.
struct Output {
    begun: Value,
    events: Vec<(&'static str, Value)>,
    done: Value,
}

fn text_output(answer: &Answer<'_>, text: &str, index: usize) -> Output {
    let id = id::other("msg_", answer.request.number, index, 48);
    let place = |mut event: Value| {
        event["item_id"] = json!(id);
        event["output_index"] = json!(index);
        event["content_index"] = json!(0);
        event
    };
    let refused = answer.say.stop() == Stop::Refusal;
    let part = |text: &str| {
        if refused {
            json!({"type": "refusal", "refusal": text})
        } else {
            json!({"type": "output_text", "text": text, "annotations": []})
        }
    };
    let (delta, done, key) = if refused {
        ("response.refusal.delta", "response.refusal.done", "refusal")
    } else {
        ("response.output_text.delta", "response.output_text.done", "text")
    };
    let mut events = vec![("response.content_part.added", place(json!({"part": part("")})))];
    events.extend(pieces(text).into_iter().map(|piece| (delta, place(json!({"delta": piece})))));
    events.push((done, place(json!({key: text}))));
    events.push(("response.content_part.done", place(json!({"part": part(text)}))));
    let item = |status: &str, content: Value| json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content});
    Output { begun: item("in_progress", json!([])), events, done: item("completed", json!([part(text)])) }
}

fn reasoning_output(answer: &Answer<'_>, text: &str, index: usize) -> Output {
    let id = id::other("rs_", answer.request.number, index, 48);
    let place = |mut event: Value| {
        event["item_id"] = json!(id);
        event["output_index"] = json!(index);
        event["summary_index"] = json!(0);
        event
    };
    let part = |text: &str| json!({"type": "summary_text", "text": text});
    let mut events = vec![("response.reasoning_summary_part.added", place(json!({"part": part("")})))];
    let deltas = pieces(text).into_iter();
    events.extend(deltas.map(|piece| ("response.reasoning_summary_text.delta", place(json!({"delta": piece})))));
    events.push(("response.reasoning_summary_text.done", place(json!({"text": text}))));
    events.push(("response.reasoning_summary_part.done", place(json!({"part": part(text)}))));
    let include = list(&answer.request.raw, "include");
    let encrypted = include.iter().any(|field| field == "reasoning.encrypted_content").then(|| id::signature(text));
    let item = |summary: Value| {
        let mut item = json!({"id": id, "type": "reasoning", "summary": summary});
        if let Some(encrypted) = &encrypted {
            item["encrypted_content"] = json!(encrypted);
        }
        item
    };
    Output { begun: item(json!([])), events, done: item(json!([part(text)])) }
}

fn call_output(answer: &Answer<'_>, name: &str, arguments: &str, call: usize, index: usize) -> Output {
    let id = id::other("fc_", answer.request.number, index, 48);
    let place = |mut event: Value| {
        event["item_id"] = json!(id);
        event["output_index"] = json!(index);
        event
    };
    let deltas = pieces(arguments).into_iter();
    let mut events: Vec<_> =
        deltas.map(|piece| ("response.function_call_arguments.delta", place(json!({"delta": piece})))).collect();
    events.push(("response.function_call_arguments.done", place(json!({"arguments": arguments}))));
    let call_id = id::call(Wire::OpenaiResponses, answer.step, call);
    let item = |status: &str, arguments: &str| {
        json!({
            "id": id, "type": "function_call", "status": status, "arguments": arguments, "call_id": call_id,
            "name": name,
        })
    };
    Output { begun: item("in_progress", ""), events, done: item("completed", arguments) }
}

fn outputs(answer: &Answer<'_>) -> Vec<Output> {
    answer
        .parts()
        .enumerate()
        .map(|(index, (part, call))| match part {
            Part::Text(text) => text_output(answer, text, index),
            Part::Reasoning(text) => reasoning_output(answer, text, index),
            Part::Call(said) => call_output(answer, &said.name, &said.arguments, call, index),
        })
        .collect()
}

/// The finished response, and the event that carries it.
fn finished(answer: &Answer<'_>, outputs: &[Output]) -> (&'static str, Value) {
    let output: Vec<&Value> = outputs.iter().map(|output| &output.done).collect();
    let reason = match answer.say.stop() {
        Stop::MaxOutput => Some("max_output_tokens".to_owned()),
        Stop::ContentFilter => Some("content_filter".to_owned()),
        Stop::Other(reason) => Some(reason),
        Stop::End | Stop::ToolCalls | Stop::StopSequence | Stop::Refusal | Stop::Cut => None,
    };
    let status = if reason.is_some() { "incomplete" } else { "completed" };
    let mut response = response(answer.request, status, json!(output), answer.usage.as_ref());
    match reason {
        Some(reason) => {
            response["incomplete_details"] = json!({"reason": reason});
            ("response.incomplete", response)
        }
        None => ("response.completed", response),
    }
}

/// An answer that is not streamed.
pub(crate) fn whole(answer: &Answer<'_>) -> Value {
    finished(answer, &outputs(answer)).1
}

/// An event with its type and number.
fn event(name: &'static str, number: usize, data: &Value) -> Frame {
    let mut event = json!({"type": name, "sequence_number": number});
    if let (Some(event), Some(data)) = (event.as_object_mut(), data.as_object()) {
        event.extend(data.clone());
    }
    Frame::named(name, &event)
}

/// The events of a streamed answer.
pub(crate) fn stream(answer: &Answer<'_>) -> Vec<Frame> {
    let begun = json!({"response": response(answer.request, "in_progress", json!([]), None)});
    let mut events = vec![("response.created", begun.clone()), ("response.in_progress", begun)];
    let outputs = outputs(answer);
    for (index, output) in outputs.iter().enumerate() {
        events.push(("response.output_item.added", json!({"output_index": index, "item": output.begun})));
        events.extend(output.events.iter().cloned());
        events.push(("response.output_item.done", json!({"output_index": index, "item": output.done})));
    }
    let (name, response) = finished(answer, &outputs);
    events.push((name, json!({"response": response})));
    events.iter().enumerate().map(|(number, (name, data))| event(name, number, data)).collect()
}

/// The response failed after `before` events.
pub(crate) fn failed(request: &ParsedRequest, refusal: &Refusal, before: usize) -> Frame {
    let mut response = response(request, "failed", json!([]), None);
    response["error"] = json!({"code": refusal.code.unwrap_or("invalid_prompt"), "message": refusal.message});
    event("response.failed", before, &json!({"response": response}))
}
