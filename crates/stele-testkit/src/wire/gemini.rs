//! Gemini `generateContent`: what is refused, and the form of an answer (Google, Gemini API reference, 2026-11).

use serde_json::{Value, json};
use stele_core::Stop;

use super::{Answer, Frame, is_name, pieces, unknown_field};
use crate::cache::Counted;
use crate::id;
use crate::parsed::{ParsedRequest, list, text_of};
use crate::refusal::Refusal;
use crate::script::{Part, SayCall};

const FIELDS: [&str; 9] = [
    "contents",
    "tools",
    "toolConfig",
    "safetySettings",
    "systemInstruction",
    "generationConfig",
    "cachedContent",
    "labels",
    "store",
];

/// Refuses what Google refuses.
pub(crate) fn check(request: &ParsedRequest) -> Result<(), Refusal> {
    let body = &request.raw;
    if let Some(field) = unknown_field(body, &FIELDS) {
        return Err(Refusal::invalid(format!(
            "Invalid JSON payload received. Unknown name \"{field}\": Cannot find field."
        )));
    }
    for name in &request.tools {
        // Besides letters, digits, `_` and `-` this wire takes dots and colons.
        if !is_name(&name.replace(['.', ':'], "_"), 128) {
            return Err(Refusal::invalid(
                "* GenerateContentRequest.tools[0].function_declarations[0].name: Invalid function name. Must start with a \
                 letter or an underscore.",
            ));
        }
    }
    let contents = list(body, "contents");
    if contents.is_empty() {
        return Err(Refusal::invalid("* GenerateContentRequest.contents: contents is not specified"));
    }
    check_contents(contents)?;
    check_signatures(request, contents)
}

fn check_contents(contents: &[Value]) -> Result<(), Refusal> {
    // The calls of the content before.
    let mut open = 0;
    for (index, content) in contents.iter().enumerate() {
        let role = text_of(content, "role");
        if !matches!(role.as_str(), "user" | "model") {
            return Err(Refusal::invalid("Please use a valid role: user, model."));
        }
        let parts = list(content, "parts");
        if parts.is_empty() {
            return Err(Refusal::invalid(format!(
                "* GenerateContentRequest.contents[{index}].parts: contents.parts must not be empty."
            )));
        }
        let mut calls = 0;
        let mut results = 0;
        for (at, part) in parts.iter().enumerate() {
            let place = format!("contents[{index}].parts[{at}]");
            if let Some(call) = part.get("functionCall") {
                calls += 1;
                if text_of(call, "name").is_empty() || !call.get("args").is_none_or(Value::is_object) {
                    return Err(Refusal::invalid(format!("Invalid value at '{place}.function_call': name and args")));
                }
            } else if let Some(result) = part.get("functionResponse") {
                results += 1;
                if text_of(result, "name").is_empty() || !result.get("response").is_some_and(Value::is_object) {
                    return Err(Refusal::invalid(format!(
                        "Invalid value at '{place}.function_response': name and response"
                    )));
                }
            } else if !["text", "inlineData", "fileData"].iter().any(|kind| part.get(kind).is_some()) {
                return Err(Refusal::invalid(format!(
                    "* GenerateContentRequest.{place}.data: required oneof field 'data' must have one initialized field"
                )));
            }
        }
        if results != open {
            return Err(Refusal::invalid(
                "Please ensure that the number of function response parts is equal to the number of function call parts \
                 of the function call turn.",
            ));
        }
        if calls > 0 && (role != "model" || index == 0) {
            return Err(Refusal::invalid(
                "Please ensure that function call turn comes immediately after a user turn or after a function response \
                 turn.",
            ));
        }
        open = calls;
    }
    if open > 0 || contents.last().is_some_and(|content| content["role"] == "model") {
        return Err(Refusal::invalid("Please ensure that the last content has the user role."));
    }
    Ok(())
}

/// What is signed in a call: its name and arguments.
fn call_signature(name: &str, arguments: &Value) -> String {
    id::signature(&format!("{name} {arguments}"))
}

/// A signature that comes back must be the one that was given, on the part that it was given for; from Gemini 3 on
/// the first call of each step of the running turn must have one.
fn check_signatures(request: &ParsedRequest, contents: &[Value]) -> Result<(), Refusal> {
    let demands = request.model.starts_with("gemini-3");
    let is_prompt = |content: &Value| {
        content["role"] == "user" && !list(content, "parts").iter().any(|part| part.get("functionResponse").is_some())
    };
    let turn = contents.iter().rposition(is_prompt).unwrap_or(0);
    for (index, content) in contents.iter().enumerate() {
        let mut first_call = true;
        for part in list(content, "parts") {
            let signature = part.get("thoughtSignature").and_then(Value::as_str);
            if let Some(call) = part.get("functionCall") {
                let fits = signature.is_none_or(|signature| {
                    signature == call_signature(&text_of(call, "name"), call.get("args").unwrap_or(&Value::Null))
                });
                if !fits {
                    return Err(Refusal::invalid("Thought signature is not valid"));
                }
                if demands && first_call && index > turn && signature.is_none() {
                    return Err(Refusal::invalid(format!(
                        "Function call `{}` in the {}. content block is missing a `thought_signature`.",
                        text_of(call, "name"),
                        index + 1
                    )));
                }
                first_call = false;
            } else if signature.is_some() {
                return Err(Refusal::invalid("Thought signature is not valid"));
            }
        }
    }
    Ok(())
}

/// The usage object: the prompt includes what was cached, the candidates do not include the thoughts.
pub(crate) fn usage(counted: &Counted) -> Value {
    let mut usage = json!({
        "promptTokenCount": counted.input,
        "candidatesTokenCount": counted.output - counted.reasoning,
        "totalTokenCount": counted.input + counted.output,
    });
    // Fields that would be 0 are left out by this vendor.
    if counted.cache_read > 0 {
        usage["cachedContentTokenCount"] = json!(counted.cache_read);
    }
    if counted.reasoning > 0 {
        usage["thoughtsTokenCount"] = json!(counted.reasoning);
    }
    usage
}

fn finish_reason(stop: &Stop) -> String {
    match stop {
        Stop::End | Stop::ToolCalls | Stop::StopSequence | Stop::Cut => "STOP",
        Stop::MaxOutput => "MAX_TOKENS",
        Stop::Refusal => "SAFETY",
        Stop::ContentFilter => "PROHIBITED_CONTENT",
        Stop::Other(reason) => reason,
    }
    .to_owned()
}

/// A call's part; the first one of a step is signed. Arguments that are no object are not sent on this wire.
fn call_part(said: &SayCall, call: usize) -> Option<Value> {
    let arguments: Value = serde_json::from_str(&said.arguments).ok().filter(Value::is_object)?;
    let mut part = json!({"functionCall": {"name": said.name, "args": arguments}});
    if call == 0 {
        part["thoughtSignature"] = json!(call_signature(&said.name, &arguments));
    }
    Some(part)
}

/// Why the model stopped. A call that could not be read has its own reason here.
fn finished(answer: &Answer<'_>) -> String {
    let malformed = |part: &Part| matches!(part, Part::Call(said) if call_part(said, 0).is_none());
    match answer.say.stop() {
        Stop::ToolCalls if answer.say.parts().iter().any(malformed) => "MALFORMED_FUNCTION_CALL".to_owned(),
        stop => finish_reason(&stop),
    }
}

/// A chunk: parts, and in the last one the reason and the usage.
fn chunk(answer: &Answer<'_>, parts: &[Value], last: bool) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if last {
        candidate["finishReason"] = json!(finished(answer));
    }
    let mut chunk = json!({"candidates": [candidate]});
    if let Some(usage) = answer.usage.as_ref().filter(|_| last) {
        chunk["usageMetadata"] = usage.clone();
    }
    chunk["modelVersion"] = json!(answer.request.model);
    chunk["responseId"] = json!(id::other("", answer.request.number, 0, 22));
    chunk
}

/// An answer that is not streamed.
pub(crate) fn whole(answer: &Answer<'_>) -> Value {
    let part = |(part, call): (&Part, usize)| match part {
        Part::Text(text) => Some(json!({"text": text})),
        Part::Reasoning(text) => Some(json!({"text": text, "thought": true})),
        Part::Call(said) => call_part(said, call),
    };
    let parts: Vec<Value> = answer.parts().filter_map(part).collect();
    chunk(answer, &parts, true)
}

/// The events of a streamed answer. Calls come whole on this wire.
pub(crate) fn stream(answer: &Answer<'_>) -> Vec<Frame> {
    let mut parts: Vec<Value> = Vec::new();
    for (part, call) in answer.parts() {
        match part {
            Part::Text(text) => parts.extend(pieces(text).into_iter().map(|piece| json!({"text": piece}))),
            Part::Reasoning(text) => {
                parts.extend(pieces(text).into_iter().map(|piece| json!({"text": piece, "thought": true})));
            }
            Part::Call(said) => parts.extend(call_part(said, call)),
        }
    }
    if parts.is_empty() {
        parts.push(json!({"text": ""}));
    }
    let count = parts.len();
    let chunks = parts.into_iter().enumerate();
    chunks.map(|(index, part)| Frame::unnamed(&chunk(answer, &[part], index + 1 == count))).collect()
}

/// The events as one JSON array, which is what is sent without `alt=sse`.
pub(crate) fn array(frames: &[Frame]) -> Value {
    frames.iter().map(|frame| serde_json::from_str::<Value>(&frame.data).unwrap_or_default()).collect()
}
