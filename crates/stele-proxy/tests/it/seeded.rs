//! Breaks of every kind on every wire, put there on purpose: each is found at its item, in its zone, and named.

use serde_json::{Value, json};
use stele_core::{Wire, Zone};
use stele_proxy::{Change, Judging, Verdict, explain, report};

use crate::breaks::recorded;

const WIRES: [Wire; 4] = [Wire::AnthropicMessages, Wire::OpenaiResponses, Wire::OpenaiChat, Wire::Gemini];

/// A request, before it is written in the form of a wire.
#[derive(Clone)]
struct Request {
    model: &'static str,
    effort: Option<&'static str>,
    /// Name and schema of each tool.
    tools: Vec<(&'static str, Value)>,
    system: String,
    /// The blocks of each message, in the form of Anthropic.
    messages: Vec<(&'static str, Vec<Value>)>,
}

fn text(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into()})
}

fn request() -> Request {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    Request {
        model: "one",
        effort: Some("high"),
        tools: ["bash", "edit", "read"].map(|name| (name, schema.clone())).to_vec(),
        system: format!("It is 10:41:07 in /home/a/one. {}", "Be careful. ".repeat(700)),
        messages: vec![
            ("user", vec![text("Fix it. ".repeat(300)), json!({"type": "image"}), text("<reminder>none</reminder>")]),
            ("assistant", vec![text("I look."), json!({"type": "tool_use", "input": {"path": "a.rs", "limit": 10}})]),
            ("user", vec![json!({"type": "tool_result", "content": "a line of the file\n".repeat(300)})]),
        ],
    }
}

/// The request after it, which adds an answer and a prompt.
fn next(mut request: Request) -> Request {
    request.messages.push(("assistant", vec![text("Done.")]));
    request.messages.push(("user", vec![text("Go on.")]));
    request
}

const IMAGE: &str = "iVBORw0KGgo=";

impl Request {
    fn body(&self, wire: Wire) -> Value {
        match wire {
            Wire::AnthropicMessages => self.anthropic(),
            Wire::OpenaiResponses => self.responses(),
            Wire::OpenaiChat => self.chat(),
            Wire::Gemini => self.gemini(),
        }
    }

    fn anthropic(&self) -> Value {
        let block = |block: &Value| match kind(block) {
            "image" => json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}),
            "tool_use" => json!({"type": "tool_use", "id": "t", "name": "read", "input": block["input"]}),
            "tool_result" => json!({"type": "tool_result", "tool_use_id": "t", "content": block["content"]}),
            _ => block.clone(),
        };
        let mut messages: Vec<Value> = self
            .messages
            .iter()
            .map(|(role, blocks)| json!({"role": role, "content": blocks.iter().map(block).collect::<Vec<_>>()}))
            .collect();
        let last = messages.last_mut().unwrap()["content"].as_array_mut().unwrap().last_mut().unwrap();
        last["cache_control"] = json!({"type": "ephemeral"});
        let tools = self.tools.iter().map(|(name, schema)| json!({"name": name, "input_schema": schema}));
        let system = json!([{"type": "text", "text": self.system, "cache_control": {"type": "ephemeral"}}]);
        let mut body =
            json!({"model": self.model, "max_tokens": 100, "tools": tools.collect::<Vec<_>>(), "system": system});
        if self.effort.is_some() {
            body["thinking"] = json!({"type": "adaptive"});
        }
        body["messages"] = json!(messages);
        body
    }

    fn responses(&self) -> Value {
        let mut input = Vec::new();
        for (role, blocks) in &self.messages {
            let content: Vec<Value> = blocks
                .iter()
                .filter_map(|block| match kind(block) {
                    "text" if *role == "user" => Some(json!({"type": "input_text", "text": block["text"]})),
                    "text" => Some(json!({"type": "output_text", "text": block["text"]})),
                    "image" => {
                        Some(json!({"type": "input_image", "image_url": format!("data:image/png;base64,{IMAGE}")}))
                    }
                    _ => None,
                })
                .collect();
            if !content.is_empty() {
                input.push(json!({"type": "message", "role": role, "content": content}));
            }
            input.extend(blocks.iter().filter_map(|block| match kind(block) {
                "tool_use" => Some(json!({"type": "function_call", "call_id": "t", "name": "read", "arguments": block["input"].to_string()})),
                "tool_result" => Some(json!({"type": "function_call_output", "call_id": "t", "output": block["content"]})),
                _ => None,
            }));
        }
        let tools =
            self.tools.iter().map(|(name, schema)| json!({"type": "function", "name": name, "parameters": schema}));
        let mut body = json!({"model": self.model, "instructions": self.system, "tools": tools.collect::<Vec<_>>(), "input": input});
        if let Some(effort) = self.effort {
            body["reasoning"] = json!({"effort": effort});
        }
        body
    }

    fn chat(&self) -> Value {
        let mut messages = vec![json!({"role": "system", "content": self.system})];
        for (role, blocks) in &self.messages {
            let content: Vec<Value> = blocks
                .iter()
                .filter_map(|block| match kind(block) {
                    "text" => Some(block.clone()),
                    "image" => Some(
                        json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{IMAGE}")}}),
                    ),
                    _ => None,
                })
                .collect();
            let calls: Vec<Value> = blocks.iter().filter(|block| kind(block) == "tool_use").map(|block| {
                json!({"id": "t", "type": "function", "function": {"name": "read", "arguments": block["input"].to_string()}})
            }).collect();
            match (content.as_slice(), calls.is_empty()) {
                ([], true) => {}
                // As agents send it: a text alone is no list.
                ([only], false) => messages.push(json!({"role": role, "content": only["text"], "tool_calls": calls})),
                ([only], true) if kind(only) == "text" => messages.push(json!({"role": role, "content": only["text"]})),
                (content, _) => messages.push(json!({"role": role, "content": content})),
            }
            messages.extend(
                blocks
                    .iter()
                    .filter(|block| kind(block) == "tool_result")
                    .map(|block| json!({"role": "tool", "tool_call_id": "t", "content": block["content"]})),
            );
        }
        let tools = self
            .tools
            .iter()
            .map(|(name, schema)| json!({"type": "function", "function": {"name": name, "parameters": schema}}));
        let mut body = json!({"model": self.model, "messages": messages, "tools": tools.collect::<Vec<_>>()});
        if let Some(effort) = self.effort {
            body["reasoning_effort"] = json!(effort);
        }
        body
    }

    fn gemini(&self) -> Value {
        let part = |block: &Value| match kind(block) {
            "text" => json!({"text": block["text"]}),
            "image" => json!({"inlineData": {"mimeType": "image/png", "data": IMAGE}}),
            "tool_use" => json!({"functionCall": {"name": "read", "args": block["input"]}}),
            _ => json!({"functionResponse": {"name": "read", "response": {"output": block["content"]}}}),
        };
        let contents: Vec<Value> = self
            .messages
            .iter()
            .map(|(role, blocks)| {
                let role = if *role == "assistant" { "model" } else { role };
                json!({"role": role, "parts": blocks.iter().map(part).collect::<Vec<_>>()})
            })
            .collect();
        let tools: Vec<Value> =
            self.tools.iter().map(|(name, schema)| json!({"name": name, "parameters": schema})).collect();
        let mut body = json!({
            "model": self.model, "contents": contents, "tools": [{"functionDeclarations": tools}],
            "systemInstruction": {"parts": [{"text": self.system}]},
        });
        if let Some(effort) = self.effort {
            body["generationConfig"] = json!({"thinkingConfig": {"thinkingLevel": effort}});
        }
        body
    }
}

fn kind(block: &Value) -> &str {
    block["type"].as_str().unwrap()
}

/// What is said of a break: the zone, the item and the name, in the order of [`WIRES`].
type Places = [(Zone, usize, &'static str); 4];

/// A place in each wire's own order of prompts.
const fn places(
    anthropic: (usize, &'static str),
    responses: (usize, &'static str),
    chat: (usize, &'static str),
    gemini: (usize, &'static str),
) -> [(usize, &'static str); 4] {
    [anthropic, responses, chat, gemini]
}

fn zoned(zone: Zone, places: [(usize, &'static str); 4]) -> Places {
    places.map(|(index, label)| (zone, index, label))
}

#[track_caller]
fn check(places: Places, change: impl Fn(&'static str, Wire) -> Change, alter: impl Fn(&mut Request)) {
    let mut after = next(request());
    alter(&mut after);
    for (wire, (zone, index, segment)) in WIRES.into_iter().zip(places) {
        let (first, second) = (request().body(wire), after.body(wire));
        let requests = [recorded(1, 0, wire, &first, Some(0)), recorded(2, 10, wire, &second, Some(0))];
        let found = report(&requests, &Judging::default());
        assert_eq!(found.conversations.len(), 1, "{wire}: one conversation");
        let line = &found.conversations[0].requests[1];
        let change = change(segment, wire);
        assert_eq!(line.verdict, Verdict::Broken { segment: segment.to_owned() }, "{wire}: {line:#?}");
        let leaves = line.leaves.as_ref().unwrap();
        assert_eq!((leaves.zone, leaves.index, leaves.segment.as_str()), (zone, index, segment), "{wire}");
        assert_eq!(leaves.change.as_ref(), Some(&change), "{wire}");
        let explanation = explain(&requests, 2, &Judging::default()).unwrap();
        assert_eq!((explanation.change.as_ref(), explanation.earlier), (Some(&change), Some(1)), "{wire}");
        assert!(explanation.lost > 1_000, "{wire}: {explanation:?}");
        // Both sides stand beside each other, unless it is a parameter of a prompt that is whole.
        let Some(parting) = explanation.parting else {
            assert!(matches!(change, Change::Thinking { .. }), "{wire}");
            assert_eq!(explanation.bound, None, "{wire}: it is the parameter, and nothing else");
            continue;
        };
        assert_eq!((parting.zone, parting.index, parting.segment.as_str()), (zone, index, segment), "{wire}");
        assert_eq!(parting.before.shared, parting.after.shared, "{wire}");
        assert_ne!(parting.before.differs, parting.after.differs, "{wire}");
    }
}

#[test]
fn a_clock() {
    let label = "system block 1";
    let places = zoned(Zone::System, places((3, label), (0, label), (0, "message 1 (system)"), (0, label)));
    check(places, |_, _| Change::Clock, |request| request.system = request.system.replace("10:41:07", "10:42:31"));
}

#[test]
fn a_path() {
    let label = "system block 1";
    let places = zoned(Zone::System, places((3, label), (0, label), (0, "message 1 (system)"), (0, label)));
    check(places, |_, _| Change::Path, |request| request.system = request.system.replace("/a/one", "/a/two"));
}

#[test]
fn tools_in_another_order() {
    let label = "tool[edit]";
    let places = zoned(Zone::Tools, places((0, label), (1, label), (1, label), (1, label)));
    check(places, |_, _| Change::ToolOrder, |request| request.tools.swap(0, 1));
}

#[test]
fn a_changed_schema() {
    let label = "tool[edit]";
    let places = zoned(Zone::Tools, places((1, label), (2, label), (2, label), (2, label)));
    let change = |_: &str, _| Change::ToolSchema { tool: "edit".into() };
    check(places, change, |request| request.tools[1].1["properties"]["line"] = json!({"type": "integer"}));
}

#[test]
fn a_tool_that_came_and_one_that_went() {
    let label = "tool[ask]";
    let places_ = zoned(Zone::Tools, places((0, label), (1, label), (1, label), (1, label)));
    let change = |_: &str, _| Change::ToolSet { added: vec!["ask".into()], removed: vec![] };
    check(places_, change, |request| request.tools.insert(0, ("ask", json!({}))));
    let label = "tool[read]";
    let places = zoned(Zone::Tools, places((2, label), (3, label), (3, label), (3, label)));
    let change = |_: &str, _| Change::ToolSet { added: vec![], removed: vec!["read".into()] };
    check(places, change, |request| drop(request.tools.pop()));
}

#[test]
fn a_dropped_block() {
    // The last block of its message; on OpenAI's wires the message is one item.
    let (label, chat) = ("message 1 (user) block 3", "message 2 (user) block 3");
    let places = zoned(Zone::History, places((6, label), (4, label), (4, chat), (6, label)));
    let change = |label: &str, _| Change::Dropped { blocks: vec![label.into()] };
    check(places, change, |request| drop(request.messages[0].1.remove(2)));
}

#[test]
fn a_dropped_call() {
    let (label, chat) = ("message 2 (assistant) block 2", "message 3 (assistant) call 1");
    let places = zoned(
        Zone::History,
        places((8, label), (6, "message 3 (function_call)"), (5, chat), (8, "message 2 (model) block 2")),
    );
    let change = |label: &str, _| Change::Dropped { blocks: vec![label.into()] };
    check(places, change, |request| drop(request.messages[1].1.remove(1)));
}

#[test]
fn an_inserted_block() {
    let (label, chat) = ("message 1 (user) block 4", "message 2 (user) block 4");
    let places = zoned(Zone::History, places((7, label), (4, label), (4, chat), (7, label)));
    let change = |label: &str, _| Change::Inserted { blocks: vec![label.into()] };
    check(places, change, |request| request.messages[0].1.push(text("Mind the rules.")));
}

#[test]
fn a_changed_text_of_several() {
    let (label, chat) = ("message 1 (user) block 3", "message 2 (user) block 3");
    let places = zoned(Zone::History, places((6, label), (4, label), (4, chat), (6, label)));
    check(places, |_, _| Change::Text, |request| request.messages[0].1[2] = text("<reminder>some</reminder>"));
}

#[test]
fn a_call_that_was_serialised_anew() {
    let places = zoned(
        Zone::History,
        places(
            (8, "message 2 (assistant) block 2"),
            (6, "message 3 (function_call)"),
            (5, "message 3 (assistant)"),
            (8, "message 2 (model) block 2"),
        ),
    );
    check(
        places,
        |_, _| Change::Reserialised,
        |request| {
            request.messages[1].1[1]["input"] = json!({"limit": 10, "path": "a.rs"});
        },
    );
}

/// Where the tool's result stands.
const RESULT: [(usize, &str); 4] = places(
    (9, "message 3 (user) block 1"),
    (7, "message 4 (function_call_output)"),
    (6, "message 4 (tool)"),
    (9, "message 3 (user) block 1"),
);

#[test]
fn another_shape() {
    check(
        zoned(Zone::History, RESULT),
        |_, _| Change::Shape,
        |request| {
            let content = request.messages[2].1[0]["content"].clone();
            request.messages[2].1[0]["content"] = json!([{"type": "text", "text": content}]);
        },
    );
}

#[test]
fn a_truncated_result() {
    check(
        zoned(Zone::History, RESULT),
        |_, _| Change::ResultTruncated,
        |request| {
            request.messages[2].1[0]["content"] = json!("a line of the file\n".repeat(30) + "[truncated]");
        },
    );
}

#[test]
fn a_changed_model() {
    let tools = (Zone::Tools, 0, "model");
    let system = (Zone::System, 0, "model");
    let change = |_: &str, _| Change::Model { before: "one".into(), after: "two".into() };
    check([tools, system, system, system], change, |request| request.model = "two");
}

#[test]
fn a_removed_image() {
    let (label, chat) = ("message 1 (user) block 2", "message 2 (user) block 2");
    let at = places((5, label), (4, label), (4, chat), (5, label));
    check(zoned(Zone::History, at), |_, _| Change::ImageRemoved, |request| drop(request.messages[0].1.remove(1)));
    check(
        zoned(Zone::History, at),
        |_, _| Change::ImageRemoved,
        |request| {
            request.messages[0].1[1] = text("[image removed]");
        },
    );
}

#[test]
fn thinking_switched_off() {
    // Anthropic keeps what stands before the messages; of the others no page says so.
    let places = [
        (Zone::History, 4, "message 1 (user) block 1"),
        (Zone::System, 0, "reasoning"),
        (Zone::System, 0, "reasoning_effort"),
        (Zone::System, 0, "generationConfig"),
    ];
    let change = |_: &str, wire| Change::Thinking {
        parameter: match wire {
            Wire::AnthropicMessages => "thinking",
            Wire::OpenaiResponses => "reasoning",
            Wire::OpenaiChat => "reasoning_effort",
            Wire::Gemini => "generationConfig",
        }
        .into(),
    };
    check(places, change, |request| request.effort = None);
}

#[test]
fn a_compaction() {
    // Its first message held an image. Nothing of the conversation is left, so it is a new one that begins alike.
    let mut after = next(request());
    after.messages.drain(..3);
    after.messages.insert(0, ("user", vec![text("A summary of what happened.")]));
    for (wire, (zone, index, segment)) in WIRES.into_iter().zip(zoned(
        Zone::History,
        places(
            (4, "message 1 (user) block 1"),
            (4, "message 1 (user)"),
            (4, "message 2 (user)"),
            (4, "message 1 (user) block 1"),
        ),
    )) {
        let requests =
            [recorded(1, 0, wire, &request().body(wire), Some(0)), recorded(2, 10, wire, &after.body(wire), Some(0))];
        let found = explain(&requests, 2, &Judging::default()).unwrap();
        assert_eq!((found.change, found.same_conversation), (Some(Change::HistoryReplaced), false), "{wire}");
        let parting = found.parting.unwrap();
        assert_eq!((parting.zone, parting.index, parting.segment.as_str()), (zone, index, segment), "{wire}");
    }
}
