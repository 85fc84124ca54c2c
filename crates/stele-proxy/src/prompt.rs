//! What a provider sees of a request: its prompt as ordered segments, and everything else as parameters.
//!
//! A segment's bytes are its JSON without insignificant white space and without cache marks, keys in the order in
//! which they were sent; the first block of a message has the message's role in a line before it. Two requests share a
//! prefix exactly as far as their segments' bytes are equal.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use stele_core::{CacheTtl, Hash, Wire, Zone};

/// A cache mark that the client set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// The default life, five minutes at Anthropic (prompt caching, 2026-11).
    FiveMinutes,
    /// `"ttl": "1h"`.
    Hour,
}

/// One unit of a prompt, in the wire's order.
#[derive(Clone, PartialEq, Eq)]
pub struct Segment {
    /// The part of the request it belongs to; what stands before the conversation is tools or system.
    pub zone: Zone,
    /// What people call it: `tool[bash]`, `system block 1`, `message 3 (user) block 2`.
    pub label: String,
    /// Its canonical bytes.
    pub bytes: Arc<[u8]>,
    /// Hash of the bytes.
    pub hash: Hash,
    /// The cache mark it carried.
    pub mark: Option<Mark>,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = String::from_utf8_lossy(self.bytes.get(..self.bytes.len().min(60)).unwrap_or_default());
        write!(f, "{} {:?} ({} bytes, {:?}) {start:?}", self.label, self.zone, self.bytes.len(), self.mark)
    }
}

impl Segment {
    /// A segment with these bytes.
    #[must_use]
    pub fn new(zone: Zone, label: impl Into<String>, bytes: impl Into<Arc<[u8]>>, mark: Option<Mark>) -> Self {
        let bytes = bytes.into();
        Self { zone, label: label.into(), hash: Hash::of(&bytes), bytes, mark }
    }

    /// Whose message it is, or what kind of item: what its label has in brackets.
    pub(crate) fn speaker(&self) -> Option<&str> {
        let (_, rest) = self.label.split_once('(')?;
        Some(rest.split_once(')')?.0)
    }

    /// The bytes without the role of the message that begins here.
    #[must_use]
    pub fn block(&self) -> &[u8] {
        match memchr::memchr(b'\n', &self.bytes) {
            // JSON without insignificant white space has no line end of its own.
            Some(end) => self.bytes.get(end + 1..).unwrap_or_default(),
            None => &self.bytes,
        }
    }

    /// The block as JSON; `null` when it is none.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(self.block()).unwrap_or_default()
    }
}

/// Whether the request holds its whole prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// All of it.
    #[default]
    Whole,
    /// It goes on from something the provider keeps (`previous_response_id`, `cachedContent`), so that its prefix
    /// cannot be seen.
    Continued,
}

/// A model request, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// The model, as it was asked for; empty when none was named.
    pub model: String,
    /// The prompt in the wire's order.
    pub segments: Vec<Segment>,
    /// What is not prompt, as it was sent.
    pub parameters: Map<String, Value>,
    /// Whether all of the prompt is here.
    pub context: Context,
}

impl Prompt {
    /// How long all that it marks is kept; absent where it marks nothing or for two times, and on wires whose servers tell
    /// what they wrote without a life.
    pub(crate) fn life_of_marks(&self, wire: Wire) -> Option<CacheTtl> {
        let mut marks = self.segments.iter().filter_map(|segment| segment.mark);
        let first = marks.next().filter(|_| wire == Wire::AnthropicMessages)?;
        marks.all(|mark| mark == first).then_some(match first {
            Mark::FiveMinutes => CacheTtl::FiveMinutes,
            Mark::Hour => CacheTtl::Hour,
        })
    }
}

/// The wire and, where it stands in the path, the model of a request; `None` when it is no model request.
#[must_use]
pub fn model_request(method: &str, path: &str) -> Option<(Wire, Option<String>)> {
    if method != "POST" {
        return None;
    }
    let path = path.split('?').next().unwrap_or_default().trim_end_matches('/');
    if let Some((front, call)) = path.rsplit_once(':') {
        let model = front.rsplit_once("/models/").map(|(_, model)| model.to_owned());
        return match call {
            "generateContent" | "streamGenerateContent" => Some((Wire::Gemini, model)),
            _ => None,
        };
    }
    let ends = |end: &str| path.ends_with(end);
    if ends("/chat/completions") {
        Some((Wire::OpenaiChat, None))
    } else if ends("/responses") {
        Some((Wire::OpenaiResponses, None))
    } else if ends("/messages") {
        Some((Wire::AnthropicMessages, None))
    } else {
        None
    }
}

/// Takes a request's body apart.
///
/// # Errors
/// The body is no JSON object; the message says what it is.
pub fn read_prompt(wire: Wire, model: Option<String>, body: &[u8]) -> Result<Prompt, String> {
    let value: Value = stele_core::parse_lenient(body).map_err(|error| format!("the body is no JSON: {error}"))?;
    let Value::Object(mut fields) = value else { return Err("the body is no JSON object".to_owned()) };
    let mut segments = Vec::new();
    match wire {
        Wire::AnthropicMessages => anthropic(&mut fields, &mut segments),
        Wire::OpenaiResponses => responses(&mut fields, &mut segments),
        Wire::OpenaiChat => chat(&mut fields, &mut segments),
        Wire::Gemini => gemini(&mut fields, &mut segments),
    }
    let named = fields.get("model").and_then(Value::as_str).map(str::to_owned);
    let hidden = ["previous_response_id", "conversation", "cachedContent", "cached_content"];
    let continued = hidden.iter().any(|name| fields.get(*name).is_some_and(|value| !value.is_null()));
    Ok(Prompt {
        model: model.or(named).unwrap_or_default(),
        segments,
        parameters: fields,
        context: if continued { Context::Continued } else { Context::Whole },
    })
}

/// Anthropic, Messages API, 2026-11: tools, system, messages; a string is short for one block of text.
fn anthropic(fields: &mut Map<String, Value>, out: &mut Vec<Segment>) {
    tools(take_list(fields, "tools"), out);
    for (index, block) in blocks(fields.shift_remove("system")).into_iter().enumerate() {
        push(out, Zone::System, format!("system block {}", index + 1), None, block);
    }
    for (index, message) in take_list(fields, "messages").into_iter().enumerate() {
        message_blocks(index, message, "content", out);
    }
    // One mark for the whole request stands for a mark on its last block.
    if let Some(mark) = fields.get("cache_control").and_then(mark_of)
        && let Some(last) = out.last_mut()
    {
        last.mark = last.mark.or(Some(mark));
    }
}

/// Gemini API, 2026-11: system instruction, tools, contents. Both spellings of a field are taken.
fn gemini(fields: &mut Map<String, Value>, out: &mut Vec<Segment>) {
    if let Some(system) = ["systemInstruction", "system_instruction"].iter().find_map(|name| fields.shift_remove(*name))
    {
        push(out, Zone::System, "system block 1".to_owned(), None, system);
    }
    for tool in take_list(fields, "tools") {
        match tool {
            Value::Object(mut tool) => {
                for name in ["functionDeclarations", "function_declarations"] {
                    tools(take_list(&mut tool, name), out);
                }
                if !tool.is_empty() {
                    tools(vec![Value::Object(tool)], out);
                }
            }
            other => tools(vec![other], out),
        }
    }
    for (index, content) in take_list(fields, "contents").into_iter().enumerate() {
        message_blocks(index, content, "parts", out);
    }
}

/// OpenAI, Responses API, 2026-11: instructions, tools, input. Ids and states of items are the transport's.
fn responses(fields: &mut Map<String, Value>, out: &mut Vec<Segment>) {
    match fields.shift_remove("instructions") {
        None | Some(Value::Null) => {}
        Some(instructions) => push(out, Zone::System, "system block 1".to_owned(), None, instructions),
    }
    tools(take_list(fields, "tools"), out);
    let input = match fields.shift_remove("input") {
        Some(Value::String(text)) => vec![json!({"role": "user", "content": text})],
        other => list(other),
    };
    let mut leading = true;
    for (index, mut item) in input.into_iter().enumerate() {
        if let Value::Object(fields) = &mut item {
            fields.shift_remove("status");
            if fields.get("type").and_then(Value::as_str) != Some("item_reference") {
                fields.shift_remove("id");
            }
        }
        leading = leading && is_system(&item);
        let what = ["role", "type"].iter().find_map(|name| item.get(name).and_then(Value::as_str)).unwrap_or("item");
        let label = format!("message {} ({})", index + 1, shown(what));
        push(out, if leading { Zone::System } else { Zone::History }, label, None, item);
    }
}

/// OpenAI, Chat Completions, 2026-11, and what is compatible: leading system messages, tools, the other messages.
fn chat(fields: &mut Map<String, Value>, out: &mut Vec<Segment>) {
    let messages = take_list(fields, "messages");
    let system = messages.iter().take_while(|message| is_system(message)).count();
    let mut header = out.len();
    for (index, message) in messages.into_iter().enumerate() {
        let role = message.get("role").and_then(Value::as_str).unwrap_or("message");
        let label = format!("message {} ({})", index + 1, shown(role));
        let zone = if index < system { Zone::System } else { Zone::History };
        push(out, zone, label, None, message);
        if index < system {
            header = out.len();
        }
    }
    let mut declared = Vec::new();
    tools(take_list(fields, "tools"), &mut declared);
    out.splice(header..header, declared);
}

fn is_system(message: &Value) -> bool {
    matches!(message.get("role").and_then(Value::as_str), Some("system" | "developer"))
}

fn tools(tools: Vec<Value>, out: &mut Vec<Segment>) {
    for tool in tools {
        let name = tool.get("function").unwrap_or(&tool).get("name").or_else(|| tool.get("type"));
        let label = format!("tool[{}]", shown(name.and_then(Value::as_str).unwrap_or("?")));
        push(out, Zone::Tools, label, None, tool);
    }
}

/// The blocks of a message; the first one says whose it is.
fn message_blocks(index: usize, mut message: Value, content: &str, out: &mut Vec<Segment>) {
    let role = message.get("role").and_then(Value::as_str).map_or_else(|| "user".to_owned(), shown);
    let Some(content) = message.as_object_mut().map(|fields| fields.shift_remove(content)) else {
        push(out, Zone::History, format!("message {}", index + 1), Some(&role), message);
        return;
    };
    let blocks = blocks(content);
    let label = |block: usize| format!("message {} ({role}) block {}", index + 1, block + 1);
    if blocks.is_empty() {
        out.push(Segment::new(Zone::History, label(0), format!("{role}\n").into_bytes(), None));
    }
    for (at, block) in blocks.into_iter().enumerate() {
        push(out, Zone::History, label(at), (at == 0).then_some(&role), block);
    }
}

fn blocks(content: Option<Value>) -> Vec<Value> {
    match content {
        Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
        other => list(other),
    }
}

fn take_list(fields: &mut Map<String, Value>, name: &str) -> Vec<Value> {
    list(fields.shift_remove(name))
}

/// The members of a list; what is none is a list of its own.
fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(list)) => list,
        Some(Value::Null) | None => Vec::new(),
        Some(one) => vec![one],
    }
}

fn push(out: &mut Vec<Segment>, zone: Zone, label: String, role: Option<&String>, mut block: Value) {
    let mark = strip_marks(&mut block);
    let mut bytes = role.map_or_else(Vec::new, |role| format!("{role}\n").into_bytes());
    bytes.extend_from_slice(block.to_string().as_bytes());
    out.push(Segment::new(zone, label, bytes, mark));
}

/// Takes the cache marks off a block and off the blocks of its content; what a tool's schema or arguments hold under
/// that name is no mark.
fn strip_marks(block: &mut Value) -> Option<Mark> {
    let Value::Object(fields) = block else { return None };
    let mut found = None;
    for name in ["cache_control", "prompt_cache_breakpoint"] {
        // `shift_remove` keeps the order of the other keys.
        found = fields.shift_remove(name).as_ref().and_then(mark_of).or(found);
    }
    if let Some(Value::Array(content)) = fields.get_mut("content") {
        for inner in content {
            found = strip_marks(inner).or(found);
        }
    }
    found
}

fn mark_of(mark: &Value) -> Option<Mark> {
    if mark.is_null() || mark == &Value::Bool(false) {
        return None;
    }
    Some(if mark.get("ttl").and_then(Value::as_str) == Some("1h") { Mark::Hour } else { Mark::FiveMinutes })
}

/// A name from outside, as it may stand in a label.
fn shown(name: &str) -> String {
    let mut shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
    if shown.len() < name.len() && name.chars().count() > 64 {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(wire: Wire, body: &Value, expect: &[(Zone, &str, &str)]) {
        let prompt = read_prompt(wire, None, body.to_string().as_bytes()).unwrap();
        let found: Vec<_> = prompt
            .segments
            .iter()
            .map(|segment| (segment.zone, segment.label.as_str(), std::str::from_utf8(&segment.bytes).unwrap()))
            .collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn anthropic_has_tools_system_and_blocks_with_roles() {
        let body = json!({
            "model": "m", "max_tokens": 5,
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "a"},
                    {"type": "tool_use", "id": "t", "name": "ls", "input": {"cache_control": 1}, "cache_control": {"type": "ephemeral"}},
                ]},
            ],
            "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
            "tools": [{"name": "ls", "input_schema": {"type": "object", "properties": {"cache_control": {}}}}],
        });
        check(
            Wire::AnthropicMessages,
            &body,
            &[
                (
                    Zone::Tools,
                    "tool[ls]",
                    r#"{"name":"ls","input_schema":{"type":"object","properties":{"cache_control":{}}}}"#,
                ),
                (Zone::System, "system block 1", r#"{"type":"text","text":"s"}"#),
                (Zone::History, "message 1 (user) block 1", "user\n{\"type\":\"text\",\"text\":\"hi\"}"),
                (Zone::History, "message 2 (assistant) block 1", "assistant\n{\"type\":\"text\",\"text\":\"a\"}"),
                (
                    Zone::History,
                    "message 2 (assistant) block 2",
                    r#"{"type":"tool_use","id":"t","name":"ls","input":{"cache_control":1}}"#,
                ),
            ],
        );
        let prompt = read_prompt(Wire::AnthropicMessages, None, body.to_string().as_bytes()).unwrap();
        let marks: Vec<_> = prompt.segments.iter().map(|segment| segment.mark).collect();
        assert_eq!(marks, [None, Some(Mark::Hour), None, None, Some(Mark::FiveMinutes)]);
        assert_eq!(prompt.parameters, *json!({"model": "m", "max_tokens": 5}).as_object().unwrap());
        assert_eq!(prompt.segments[2].block(), br#"{"type":"text","text":"hi"}"#);
        assert_eq!(prompt.life_of_marks(Wire::AnthropicMessages), None, "two of them");
    }

    #[test]
    fn marks_of_one_life_tell_for_how_long_was_written() {
        let life = |marks: &[Value], wire: Wire| {
            let block = |mark: &Value| json!({"type": "text", "text": "x", "cache_control": mark});
            let content: Vec<Value> = marks.iter().map(block).collect();
            let body = json!({"messages": [{"role": "user", "content": content}]});
            read_prompt(wire, None, body.to_string().as_bytes()).unwrap().life_of_marks(wire)
        };
        let (five, hour) = (json!({"type": "ephemeral"}), json!({"type": "ephemeral", "ttl": "1h"}));
        let anthropic = Wire::AnthropicMessages;
        assert_eq!(life(&[five.clone(), five.clone()], anthropic), Some(CacheTtl::FiveMinutes));
        assert_eq!(life(&[hour.clone(), hour.clone()], anthropic), Some(CacheTtl::Hour));
        assert_eq!(life(&[hour, five.clone()], anthropic), None);
        assert_eq!(life(&[Value::Null], anthropic), None);
        assert_eq!(life(&[five], Wire::OpenaiChat), None);
    }

    #[test]
    fn a_string_and_one_block_of_text_are_the_same_at_anthropic() {
        let read = |content: Value| {
            let body =
                json!({"messages": [{"role": "user", "content": content}], "cache_control": {"type": "ephemeral"}});
            read_prompt(Wire::AnthropicMessages, None, body.to_string().as_bytes()).unwrap().segments
        };
        assert_eq!(read(json!("x")), read(json!([{"type": "text", "text": "x"}])));
        assert_eq!(read(json!("x"))[0].mark, Some(Mark::FiveMinutes));
    }

    #[test]
    fn chat_puts_tools_after_the_system_messages() {
        let body = json!({
            "messages": [
                {"role": "developer", "content": "s"},
                {"role": "user", "content": [{"type": "text", "text": "u", "cache_control": {"type": "ephemeral"}}]},
            ],
            "tools": [{"type": "function", "function": {"name": "ls"}}],
        });
        check(
            Wire::OpenaiChat,
            &body,
            &[
                (Zone::System, "message 1 (developer)", r#"{"role":"developer","content":"s"}"#),
                (Zone::Tools, "tool[ls]", r#"{"type":"function","function":{"name":"ls"}}"#),
                (Zone::History, "message 2 (user)", r#"{"role":"user","content":[{"type":"text","text":"u"}]}"#),
            ],
        );
    }

    #[test]
    fn responses_drops_what_belongs_to_the_transport() {
        let body = json!({
            "input": [
                {"type": "message", "role": "developer", "content": "d"},
                {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "ls", "arguments": "{}", "status": "completed"},
                {"type": "item_reference", "id": "rs_1"},
            ],
            "instructions": "s",
            "tools": [{"type": "function", "name": "ls"}],
            "previous_response_id": "r",
        });
        check(
            Wire::OpenaiResponses,
            &body,
            &[
                (Zone::System, "system block 1", "\"s\""),
                (Zone::Tools, "tool[ls]", r#"{"type":"function","name":"ls"}"#),
                (Zone::System, "message 1 (developer)", r#"{"type":"message","role":"developer","content":"d"}"#),
                (
                    Zone::History,
                    "message 2 (function_call)",
                    r#"{"type":"function_call","call_id":"c","name":"ls","arguments":"{}"}"#,
                ),
                (Zone::History, "message 3 (item_reference)", r#"{"type":"item_reference","id":"rs_1"}"#),
            ],
        );
        let prompt = read_prompt(Wire::OpenaiResponses, None, body.to_string().as_bytes()).unwrap();
        assert_eq!(prompt.context, Context::Continued);
    }

    #[test]
    fn gemini_names_its_model_in_the_path() {
        let body = json!({
            "contents": [{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}, {"parts": []}],
            "systemInstruction": {"parts": [{"text": "s"}]},
            "tools": [{"functionDeclarations": [{"name": "ls"}, {"name": "cat"}]}, {"googleSearch": {}}],
        });
        check(
            Wire::Gemini,
            &body,
            &[
                (Zone::System, "system block 1", r#"{"parts":[{"text":"s"}]}"#),
                (Zone::Tools, "tool[ls]", r#"{"name":"ls"}"#),
                (Zone::Tools, "tool[cat]", r#"{"name":"cat"}"#),
                (Zone::Tools, "tool[?]", r#"{"googleSearch":{}}"#),
                (Zone::History, "message 1 (user) block 1", "user\n{\"text\":\"a\"}"),
                (Zone::History, "message 1 (user) block 2", "{\"text\":\"b\"}"),
                (Zone::History, "message 2 (user) block 1", "user\n"),
            ],
        );
        let path = "/v1beta/models/gemini-x:streamGenerateContent?alt=sse";
        assert_eq!(model_request("POST", path), Some((Wire::Gemini, Some("gemini-x".to_owned()))));
    }

    #[test]
    fn only_model_requests_are_taken() {
        let wire = |method: &str, path: &str| model_request(method, path).map(|(wire, _)| wire);
        assert_eq!(wire("POST", "/v1/messages?beta=true"), Some(Wire::AnthropicMessages));
        assert_eq!(wire("POST", "/openai/v1/chat/completions"), Some(Wire::OpenaiChat));
        assert_eq!(wire("POST", "/v1/responses"), Some(Wire::OpenaiResponses));
        for (method, path) in [
            ("GET", "/v1/messages"),
            ("POST", "/v1/messages/count_tokens"),
            ("POST", "/v1beta/models/x:countTokens"),
            ("POST", "/v1/responses/r_1/cancel"),
            ("POST", "/"),
            ("POST", ""),
        ] {
            assert_eq!(wire(method, path), None, "{method} {path}");
        }
    }

    #[test]
    fn white_space_and_escapes_are_no_difference() {
        let one = read_prompt(Wire::OpenaiChat, None, br#"{"messages":[{"role":"user","content":"\u00e9\/"}]}"#);
        let two = read_prompt(
            Wire::OpenaiChat,
            None,
            "{ \"messages\": [ {\"role\":\"user\", \"content\":\"é/\"} ]}".as_bytes(),
        );
        assert_eq!(one, two);
        assert!(read_prompt(Wire::OpenaiChat, None, b"[1]").is_err());
        assert!(read_prompt(Wire::OpenaiChat, None, b"{\"messages\":").is_err());
    }

    pub(crate) fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
            prop_oneof![Just("user"), Just("system"), Just("text"), Just("1h")].prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            let key = prop_oneof![
                Just("role".to_owned()),
                Just("content".to_owned()),
                Just("parts".to_owned()),
                Just("type".to_owned()),
                Just("cache_control".to_owned()),
                Just("ttl".to_owned()),
                Just("function".to_owned()),
                Just("name".to_owned()),
                ".{0,4}",
            ];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((key, inner), 0..5).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn any_json_is_taken_apart_without_a_panic(
            messages in any_json(), system in any_json(), tools in any_json(), wire in prop::sample::select(Wire::ALL.to_vec()),
        ) {
            let body = json!({
                "messages": messages, "contents": messages, "input": messages,
                "system": system, "instructions": system, "systemInstruction": system, "tools": tools,
            });
            let prompt = read_prompt(wire, None, body.to_string().as_bytes()).unwrap();
            for segment in &prompt.segments {
                prop_assert_eq!(segment.hash, Hash::of(&segment.bytes));
                let _ = segment.value();
            }
        }

        #[test]
        fn any_bytes_are_refused_or_taken(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            for wire in Wire::ALL {
                let _ = read_prompt(wire, None, &bytes);
            }
        }

        #[test]
        fn a_longer_history_begins_with_the_shorter_one(
            messages in prop::collection::vec(any_json(), 1..6), wire in prop::sample::select(Wire::ALL.to_vec()),
        ) {
            let read = |messages: &[Value]| {
                let messages: Vec<Value> = messages.iter().map(|inner| json!({"role": "user", "content": inner, "parts": inner})).collect();
                let body = json!({"messages": messages, "contents": messages, "input": messages});
                read_prompt(wire, None, body.to_string().as_bytes()).unwrap().segments
            };
            let (shorter, longer) = (read(&messages[..messages.len() - 1]), read(&messages));
            let same = longer.iter().zip(&shorter).all(|(one, other)| one.bytes == other.bytes);
            prop_assert!(same && longer.len() >= shorter.len());
        }
    }
}
