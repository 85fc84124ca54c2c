//! OpenAI Chat Completions: what is refused, and the form of an answer (OpenAI, API reference, 2026-11). The usage
//! carries DeepSeek's fields beside OpenAI's, and reasoning is streamed as `reasoning_content`, as DeepSeek and the
//! servers that follow it do.

use std::collections::HashSet;

use serde_json::{Value, json};
use stele_core::{Stop, Wire};

use super::{Answer, Frame, is_name, pieces, repeated, unknown_field};
use crate::cache::Counted;
use crate::id;
use crate::parsed::{ParsedRequest, list, text_of};
use crate::refusal::Refusal;
use crate::script::Part;

/// OpenAI's fields.
const FIELDS: [&str; 34] = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "n",
    "stop",
    "seed",
    "user",
    "safety_identifier",
    "metadata",
    "store",
    "service_tier",
    "response_format",
    "reasoning_effort",
    "verbosity",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "modalities",
    "prediction",
    "audio",
    "web_search_options",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
];

/// Fields that compatible endpoints document beside OpenAI's.
const DIALECT_FIELDS: [&str; 9] = [
    "thinking",
    "reasoning",
    "reasoning_split",
    "enable_thinking",
    "thinking_budget",
    "chat_template_kwargs",
    "cache_prompt",
    "provider",
    "usage",
];

/// Longest id of a call.
const LONGEST_ID: usize = 40;

/// Refuses what OpenAI refuses.
pub(crate) fn check(request: &ParsedRequest) -> Result<(), Refusal> {
    let body = &request.raw;
    let known = [FIELDS.as_slice(), DIALECT_FIELDS.as_slice()].concat();
    if let Some(field) = unknown_field(body, &known) {
        return Err(Refusal::invalid(format!("Unrecognized request argument supplied: {field}")));
    }
    if request.model.is_empty() {
        return Err(Refusal::invalid("you must provide a model parameter"));
    }
    let Some(messages) = body.get("messages").and_then(Value::as_array).filter(|messages| !messages.is_empty()) else {
        return Err(Refusal::field(
            "messages",
            "Invalid 'messages': empty array. Expected an array with minimum length 1.",
        ));
    };
    if body.get("stream_options").is_some_and(|options| !options.is_null()) && !request.stream {
        return Err(Refusal::field(
            "stream_options",
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        ));
    }
    check_tools(request)?;
    check_messages(messages)
}

fn check_tools(request: &ParsedRequest) -> Result<(), Refusal> {
    if request.raw.get("tools").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        return Err(Refusal::field("tools", "Invalid 'tools': empty array. Expected an array with minimum length 1."));
    }
    for (index, tool) in list(&request.raw, "tools").iter().enumerate() {
        let name = tool.get("function").map(|function| text_of(function, "name")).unwrap_or_default();
        if tool["type"] != "function" || !is_name(&name, 64) {
            let field = format!("tools[{index}].function.name");
            let message = format!("Invalid '{field}': string does not match pattern '^[a-zA-Z0-9_-]+$'.");
            return Err(Refusal::field(field, message));
        }
    }
    match repeated(&request.tools) {
        Some(name) => Err(Refusal::field("tools", format!("Duplicate function name '{name}'."))),
        None => Ok(()),
    }
}

fn check_messages(messages: &[Value]) -> Result<(), Refusal> {
    let mut ids = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        if role != "tool" && !open.is_empty() {
            return Err(unanswered(index, &open));
        }
        match role {
            "system" | "developer" | "user" => check_content(message, index)?,
            "assistant" => check_assistant(message, index, &mut ids, &mut open)?,
            "tool" => {
                let id = text_of(message, "tool_call_id");
                let Some(found) = open.iter().position(|call| *call == id) else {
                    return Err(Refusal::field(
                        format!("messages.[{index}].role"),
                        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with \
                         'tool_calls'.",
                    ));
                };
                open.remove(found);
                check_content(message, index)?;
            }
            other => {
                return Err(Refusal::field(
                    format!("messages[{index}].role"),
                    format!(
                        "Invalid value: '{other}'. Supported values are: 'system', 'assistant', 'user', 'tool', and 'developer'."
                    ),
                ));
            }
        }
    }
    if open.is_empty() { Ok(()) } else { Err(unanswered(messages.len(), &open)) }
}

fn unanswered(index: usize, open: &[String]) -> Refusal {
    Refusal::field(
        format!("messages.[{index}].role"),
        format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. \
             The following tool_call_ids did not have response messages: {}",
            open.join(", ")
        ),
    )
}

fn check_content(message: &Value, index: usize) -> Result<(), Refusal> {
    let fine = match message.get("content") {
        Some(Value::String(_)) => true,
        Some(Value::Array(parts)) => {
            !parts.is_empty() && parts.iter().all(|part| part.get("type").is_some_and(Value::is_string))
        }
        _ => false,
    };
    if fine {
        return Ok(());
    }
    Err(Refusal::field(
        format!("messages.[{index}].content"),
        "Invalid value for 'content': expected a string, or a non-empty array of content parts.",
    ))
}

fn check_assistant(
    message: &Value,
    index: usize,
    ids: &mut HashSet<String>,
    open: &mut Vec<String>,
) -> Result<(), Refusal> {
    let calls = list(message, "tool_calls");
    if message.get("tool_calls").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        let field = format!("messages[{index}].tool_calls");
        let message = format!("Invalid '{field}': empty array. Expected an array with minimum length 1.");
        return Err(Refusal::field(field, message));
    }
    let has_content = message.get("content").is_some_and(|content| !content.is_null())
        || message.get("refusal").is_some_and(|refusal| !refusal.is_null());
    if has_content && message.get("content").is_some_and(|content| !content.is_null()) {
        check_content(message, index)?;
    }
    if !has_content && calls.is_empty() {
        return Err(Refusal::field(
            format!("messages.[{index}].content"),
            "Invalid value for 'content': expected a string, got null.",
        ));
    }
    for (at, call) in calls.iter().enumerate() {
        let id = text_of(call, "id");
        let place = format!("messages[{index}].tool_calls[{at}]");
        if id.is_empty() || id.len() > LONGEST_ID {
            let message = format!(
                "Invalid '{place}.id': expected a string with a length between 1 and {LONGEST_ID}, but got one of {}.",
                id.len()
            );
            return Err(Refusal::field(format!("{place}.id"), message));
        }
        if !ids.insert(id.clone()) {
            return Err(Refusal::field(
                format!("{place}.id"),
                format!("Duplicate value for 'tool_call_id' of '{id}'."),
            ));
        }
        let function = call.get("function").unwrap_or(&Value::Null);
        if call["type"] != "function" || !is_name(&text_of(function, "name"), 64) || !function["arguments"].is_string()
        {
            let message = format!("Invalid '{place}.function': expected a name and the arguments as a string.");
            return Err(Refusal::field(format!("{place}.function"), message));
        }
        open.push(id);
    }
    Ok(())
}

/// The usage object: the prompt includes what was cached.
pub(crate) fn usage(counted: &Counted) -> Value {
    json!({
        "prompt_tokens": counted.input,
        "completion_tokens": counted.output,
        "total_tokens": counted.input + counted.output,
        "prompt_tokens_details": {"cached_tokens": counted.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": counted.reasoning, "audio_tokens": 0},
        "prompt_cache_hit_tokens": counted.cache_read,
        "prompt_cache_miss_tokens": counted.input - counted.cache_read,
    })
}

fn finish_reason(stop: &Stop) -> String {
    match stop {
        Stop::End | Stop::StopSequence | Stop::Refusal | Stop::Cut => "stop",
        Stop::ToolCalls => "tool_calls",
        Stop::MaxOutput => "length",
        Stop::ContentFilter => "content_filter",
        Stop::Other(reason) => reason,
    }
    .to_owned()
}

/// Where visible text stands: a refusal has its own field.
fn text_field(answer: &Answer<'_>) -> &'static str {
    if answer.say.stop() == Stop::Refusal { "refusal" } else { "content" }
}

fn envelope(answer: &Answer<'_>, object: &str) -> Value {
    json!({
        "id": id::other("chatcmpl-", answer.request.number, 0, 29),
        "object": object,
        "created": super::CREATED,
        "model": answer.request.model,
        "system_fingerprint": "fp_scripted",
    })
}

/// An answer that is not streamed.
pub(crate) fn whole(answer: &Answer<'_>) -> Value {
    let mut message = json!({"role": "assistant", "content": null, "refusal": null});
    let mut calls = Vec::new();
    let mut append = |field: &str, text: &str| {
        let so_far = text_of(&message, field);
        message[field] = json!(so_far + text);
    };
    for (part, call) in answer.parts() {
        match part {
            Part::Text(text) => append(text_field(answer), text),
            Part::Reasoning(text) => append("reasoning_content", text),
            Part::Call(said) => calls.push(json!({
                "id": id::call(Wire::OpenaiChat, answer.step, call),
                "type": "function",
                "function": {"name": said.name, "arguments": said.arguments},
            })),
        }
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let mut body = envelope(answer, "chat.completion");
    body["choices"] = json!([{
        "index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(&answer.say.stop())
    }]);
    if let Some(usage) = &answer.usage {
        body["usage"] = usage.clone();
    }
    body
}

/// The events of a streamed answer. Usage comes in a chunk of its own, and only when it was asked for.
pub(crate) fn stream(answer: &Answer<'_>) -> Vec<Frame> {
    let usage_wanted = answer.request.raw["stream_options"]["include_usage"] == true;
    let chunk = |delta: Value, finish: Option<String>| {
        let mut chunk = envelope(answer, "chat.completion.chunk");
        chunk["choices"] = json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
        if usage_wanted {
            chunk["usage"] = Value::Null;
        }
        Frame::unnamed(&chunk)
    };
    let mut frames = vec![chunk(json!({"role": "assistant", "content": "", "refusal": null}), None)];
    for (part, call) in answer.parts() {
        match part {
            Part::Text(text) => {
                frames.extend(pieces(text).into_iter().map(|piece| chunk(json!({text_field(answer): piece}), None)));
            }
            Part::Reasoning(text) => {
                frames.extend(pieces(text).into_iter().map(|piece| chunk(json!({"reasoning_content": piece}), None)));
            }
            Part::Call(said) => {
                frames.push(chunk(
                    json!({"tool_calls": [{
                        "index": call,
                        "id": id::call(Wire::OpenaiChat, answer.step, call),
                        "type": "function",
                        "function": {"name": said.name, "arguments": ""},
                    }]}),
                    None,
                ));
                frames.extend(pieces(&said.arguments).into_iter().map(|piece| {
                    chunk(json!({"tool_calls": [{"index": call, "function": {"arguments": piece}}]}), None)
                }));
            }
        }
    }
    frames.push(chunk(json!({}), Some(finish_reason(&answer.say.stop()))));
    if let Some(usage) = answer.usage.as_ref().filter(|_| usage_wanted) {
        let mut last = envelope(answer, "chat.completion.chunk");
        last["choices"] = json!([]);
        last["usage"] = usage.clone();
        frames.push(Frame::unnamed(&last));
    }
    frames.push(Frame::done());
    frames
}
