//! A request in a form that is the same for all wires. Reading is lenient: what has another shape than expected is
//! left out; whether a vendor would take it is decided in [`crate::wire`].

use serde_json::Value;
use stele_core::Wire;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The person or the harness, tool results included.
    User,
    /// The model.
    Assistant,
}

/// A call in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedCall {
    /// The vendor's id; empty where the wire has none.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as JSON text: as they stand in the request where the wire carries them as text.
    pub arguments: String,
}

/// A result in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedResult {
    /// The id of the call; empty where the wire has none.
    pub id: String,
    /// The tool's name; empty where the wire has none.
    pub name: String,
    /// All its text.
    pub text: String,
    /// True when it is marked as an error; always false on wires that have no mark.
    pub error: bool,
}

/// A call with its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange<'a> {
    /// The call; absent when the request holds none that the result belongs to.
    pub call: Option<&'a ParsedCall>,
    /// The result.
    pub result: &'a ParsedResult,
}

/// What one side said until the other spoke: neighbours of one role are joined, so that all wires look the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedMessage {
    /// Who.
    pub role: Role,
    /// Text blocks.
    pub texts: Vec<String>,
    /// Reasoning that was sent back, where it is readable.
    pub reasoning: Vec<String>,
    /// Calls; only of the assistant.
    pub calls: Vec<ParsedCall>,
    /// Results; only of the user.
    pub results: Vec<ParsedResult>,
}

/// A request in neutral form.
#[derive(Clone, Debug)]
pub struct ParsedRequest {
    /// The wire.
    pub wire: Wire,
    /// The number of model requests that arrived before.
    pub number: usize,
    /// The model, as named in the body (Gemini: in the path).
    pub model: String,
    /// True when a stream is asked for.
    pub stream: bool,
    /// The system text, blocks joined with a blank line.
    pub system: String,
    /// The names of the tools, in their order.
    pub tools: Vec<String>,
    /// The history.
    pub messages: Vec<ParsedMessage>,
    /// The body.
    pub raw: Value,
}

impl ParsedRequest {
    /// How many times the model has answered in this history.
    #[must_use]
    pub fn answers(&self) -> usize {
        self.messages.iter().filter(|message| message.role == Role::Assistant).count()
    }

    /// All results with their calls, in order.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange<'_>> {
        let mut exchanges = Vec::new();
        let mut open: Vec<&ParsedCall> = Vec::new();
        for message in &self.messages {
            open.extend(&message.calls);
            for result in &message.results {
                let found = open.iter().position(|call| {
                    if result.id.is_empty() { call.name == result.name } else { call.id == result.id }
                });
                exchanges.push(Exchange { call: found.map(|index| open.remove(index)), result });
            }
        }
        exchanges
    }

    /// The results that came with the last message, with their calls.
    #[must_use]
    pub fn last_exchanges(&self) -> Vec<Exchange<'_>> {
        let count = self.messages.last().map_or(0, |message| message.results.len());
        let mut exchanges = self.exchanges();
        exchanges.split_off(exchanges.len().saturating_sub(count))
    }

    /// The last text that the user's side said.
    #[must_use]
    pub fn last_text(&self) -> &str {
        self.messages
            .iter()
            .rev()
            .filter(|message| message.role == Role::User)
            .find_map(|message| message.texts.last())
            .map_or("", String::as_str)
    }

    /// The message that something of `role` belongs to.
    fn side(&mut self, role: Role) -> &mut ParsedMessage {
        if self.messages.last().is_none_or(|message| message.role != role) {
            self.messages.push(ParsedMessage {
                role,
                texts: Vec::new(),
                reasoning: Vec::new(),
                calls: Vec::new(),
                results: Vec::new(),
            });
        }
        let last = self.messages.len().saturating_sub(1);
        &mut self.messages[last]
    }

    fn add_system(&mut self, text: &str) {
        if !self.system.is_empty() {
            self.system.push_str("\n\n");
        }
        self.system.push_str(text);
    }

    /// Reads a body; `path_model` is the model in the path, where the wire has it there.
    pub(crate) fn read(wire: Wire, path_model: Option<&str>, stream: bool, number: usize, raw: Value) -> Self {
        let model = path_model.map_or_else(|| text_of(&raw, "model"), str::to_owned);
        let mut request = Self {
            wire,
            number,
            model,
            stream,
            system: String::new(),
            tools: Vec::new(),
            messages: Vec::new(),
            raw: Value::Null,
        };
        match wire {
            Wire::AnthropicMessages => request.read_anthropic(&raw),
            Wire::OpenaiResponses => request.read_responses(&raw),
            Wire::OpenaiChat => request.read_chat(&raw),
            Wire::Gemini => request.read_gemini(&raw),
        }
        request.raw = raw;
        request
    }

    fn read_anthropic(&mut self, raw: &Value) {
        self.tools = list(raw, "tools").iter().map(|tool| text_of(tool, "name")).collect();
        for text in texts(raw.get("system")) {
            self.add_system(&text);
        }
        for message in list(raw, "messages") {
            let role = if text_of(message, "role") == "assistant" { Role::Assistant } else { Role::User };
            let side = self.side(role);
            if let Some(Value::String(text)) = message.get("content") {
                side.texts.push(text.clone());
            }
            for block in list(message, "content") {
                match block.get("type").and_then(Value::as_str) {
                    Some("text") => side.texts.push(text_of(block, "text")),
                    Some("thinking") => side.reasoning.push(text_of(block, "thinking")),
                    Some("tool_use") => side.calls.push(ParsedCall {
                        id: text_of(block, "id"),
                        name: text_of(block, "name"),
                        arguments: block.get("input").map(Value::to_string).unwrap_or_default(),
                    }),
                    Some("tool_result") => side.results.push(ParsedResult {
                        id: text_of(block, "tool_use_id"),
                        name: String::new(),
                        text: texts(block.get("content")).concat(),
                        error: block.get("is_error").and_then(Value::as_bool).unwrap_or(false),
                    }),
                    _ => {}
                }
            }
        }
    }

    fn read_chat(&mut self, raw: &Value) {
        self.tools = list(raw, "tools")
            .iter()
            .map(|tool| tool.get("function").map_or_else(String::new, |function| text_of(function, "name")))
            .collect();
        for message in list(raw, "messages") {
            let content = texts(message.get("content"));
            match message.get("role").and_then(Value::as_str) {
                Some("system" | "developer") => self.add_system(&content.concat()),
                Some("assistant") => {
                    let side = self.side(Role::Assistant);
                    side.texts.extend(content.into_iter().filter(|text| !text.is_empty()));
                    let reasoning = message.get("reasoning_content").or_else(|| message.get("reasoning"));
                    side.reasoning.extend(reasoning.and_then(Value::as_str).map(str::to_owned));
                    for call in list(message, "tool_calls") {
                        let function = call.get("function").unwrap_or(&Value::Null);
                        side.calls.push(ParsedCall {
                            id: text_of(call, "id"),
                            name: text_of(function, "name"),
                            arguments: text_of(function, "arguments"),
                        });
                    }
                }
                Some("tool") => self.side(Role::User).results.push(ParsedResult {
                    id: text_of(message, "tool_call_id"),
                    name: String::new(),
                    text: content.concat(),
                    error: false,
                }),
                _ => self.side(Role::User).texts.extend(content),
            }
        }
    }

    fn read_responses(&mut self, raw: &Value) {
        self.tools = list(raw, "tools").iter().map(|tool| text_of(tool, "name")).collect();
        if let Some(text) = raw.get("instructions").and_then(Value::as_str) {
            self.add_system(text);
        }
        if let Some(Value::String(text)) = raw.get("input") {
            self.side(Role::User).texts.push(text.clone());
        }
        for item in list(raw, "input") {
            match item.get("type").and_then(Value::as_str) {
                Some("function_call") => self.side(Role::Assistant).calls.push(ParsedCall {
                    id: text_of(item, "call_id"),
                    name: text_of(item, "name"),
                    arguments: text_of(item, "arguments"),
                }),
                Some("function_call_output") => self.side(Role::User).results.push(ParsedResult {
                    id: text_of(item, "call_id"),
                    name: String::new(),
                    text: texts(item.get("output")).concat(),
                    error: false,
                }),
                Some("reasoning") => {
                    let summary = texts(item.get("summary"));
                    self.side(Role::Assistant).reasoning.extend(summary);
                }
                None | Some("message") => {
                    let content = texts(item.get("content"));
                    match item.get("role").and_then(Value::as_str) {
                        Some("system" | "developer") => self.add_system(&content.concat()),
                        Some("assistant") => self.side(Role::Assistant).texts.extend(content),
                        _ => self.side(Role::User).texts.extend(content),
                    }
                }
                Some(_) => {}
            }
        }
    }

    fn read_gemini(&mut self, raw: &Value) {
        for tool in list(raw, "tools") {
            self.tools.extend(list(tool, "functionDeclarations").iter().map(|function| text_of(function, "name")));
        }
        for part in raw.get("systemInstruction").map(|system| list(system, "parts")).unwrap_or_default() {
            self.add_system(&text_of(part, "text"));
        }
        for content in list(raw, "contents") {
            let role = if text_of(content, "role") == "model" { Role::Assistant } else { Role::User };
            let side = self.side(role);
            for part in list(content, "parts") {
                if let Some(call) = part.get("functionCall") {
                    side.calls.push(ParsedCall {
                        id: text_of(call, "id"),
                        name: text_of(call, "name"),
                        arguments: call.get("args").map(Value::to_string).unwrap_or_default(),
                    });
                } else if let Some(result) = part.get("functionResponse") {
                    let response = result.get("response").unwrap_or(&Value::Null);
                    side.results.push(ParsedResult {
                        id: text_of(result, "id"),
                        name: text_of(result, "name"),
                        text: response_text(response),
                        error: response.get("error").is_some(),
                    });
                } else if let Some(text) = part.get("text").and_then(Value::as_str) {
                    if part.get("thought").and_then(Value::as_bool).unwrap_or(false) {
                        side.reasoning.push(text.to_owned());
                    } else {
                        side.texts.push(text.to_owned());
                    }
                }
            }
        }
    }
}

/// The string under a key; empty when there is none.
pub(crate) fn text_of(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The array under a key; empty when there is none.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The texts of a content that is a string or a list of parts.
fn texts(content: Option<&Value>) -> Vec<String> {
    match content {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}

/// The text of a function response, an object of whatever keys: its strings, joined; otherwise its JSON.
fn response_text(response: &Value) -> String {
    let strings: Vec<&str> =
        response.as_object().into_iter().flat_map(|object| object.values()).filter_map(Value::as_str).collect();
    if strings.is_empty() { response.to_string() } else { strings.join("\n") }
}
