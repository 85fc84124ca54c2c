//! Breaks of a prefix that were put there on purpose: each is found where it is and named for what it is.

use serde_json::{Value, json};
use stele_core::{BodyDigest, Hash, Millis, Usage, Wire, Zone};
use stele_proxy::{Change, Ending, Explanation, Judging, Recorded, Verdict, explain, read_prompt, report};

/// A recorded request; the usage is what a provider would report that read `read` tokens.
pub fn recorded(id: u64, seconds: i64, wire: Wire, body: &Value, read: Option<u64>) -> Recorded {
    let bytes = body.to_string().into_bytes();
    let prompt = read_prompt(wire, None, &bytes).unwrap();
    let tokens = prompt.segments.iter().map(|segment| segment.bytes.len() as u64).sum::<u64>() / 4;
    let usage = Usage {
        fresh: Some(tokens - read.unwrap_or(0).min(tokens)),
        cache_read: read,
        output: Some(10),
        ..Usage::default()
    };
    Recorded {
        id,
        at: Millis(seconds * 1_000),
        first_byte_ms: Some(500),
        total_ms: Some(1_000),
        wire,
        base_url: match wire {
            Wire::AnthropicMessages => "https://api.anthropic.com".into(),
            Wire::Gemini => "https://generativelanguage.googleapis.com".into(),
            _ => "https://api.openai.com/v1".into(),
        },
        model: prompt.model,
        agent: Some("agent/1".into()),
        status: Some(200),
        ending: Ending::Whole,
        body: BodyDigest { hash: Hash::of(&bytes), len: bytes.len() as u64 },
        segments: prompt.segments,
        parameters: prompt.parameters,
        context: prompt.context,
        usage: Some(usage),
        miss_reason: None,
        cut: None,
        session: None,
    }
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description.repeat(60), "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}})
}

/// A request of an agent on the wire of Anthropic, four messages into its work.
pub fn anthropic() -> Value {
    json!({
        "model": "claude-sonnet-4-5", "max_tokens": 1000, "thinking": {"type": "enabled", "budget_tokens": 1000},
        "tools": [tool("bash", "Runs a command. "), tool("edit", "Edits a file. "), tool("read", "Reads a file. ")],
        "system": [
            {"type": "text", "text": format!("You are an agent. {}Today is 2026-11-30 and it is 10:41:07.", "Be careful. ".repeat(200)), "cache_control": {"type": "ephemeral"}},
        ],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "Here is a picture of it."},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=".repeat(80)}},
                {"type": "text", "text": "Please fix the test. ".repeat(40)},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "I should look. ".repeat(20), "signature": "c2ln"},
                {"type": "text", "text": "I look at the file."},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.rs", "limit": 10}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "line of the file\n".repeat(300)},
            ]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_2", "name": "bash", "input": {"command": "make"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "ok", "cache_control": {"type": "ephemeral"}},
            ]},
        ],
    })
}

/// The next request of the same agent, which extends it.
pub fn next(mut body: Value) -> Value {
    let messages = body["messages"].as_array_mut().unwrap();
    let result = messages.last_mut().unwrap()["content"].as_array_mut().unwrap().last_mut().unwrap();
    result.as_object_mut().unwrap().shift_remove("cache_control");
    messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_3", "name": "bash", "input": {"command": "make test"}}]}));
    messages.push(json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_3", "content": "passed", "cache_control": {"type": "ephemeral"}},
    ]}));
    body
}

#[track_caller]
fn check(wire: Wire, first: &Value, second: &Value, zone: Zone, segment: &str, change: &Change) -> Explanation {
    let requests = [recorded(1, 0, wire, first, Some(0)), recorded(2, 10, wire, second, Some(0))];
    let judging = Judging::default();
    let lines = report(&requests, &judging).conversations;
    assert_eq!(lines.len(), 1, "one conversation");
    let line = &lines[0].requests[1];
    assert_eq!(line.verdict, Verdict::Broken { segment: segment.to_owned() });
    let leaves = line.leaves.as_ref().unwrap();
    assert_eq!((leaves.request, leaves.zone, leaves.segment.as_str()), (1, zone, segment));
    let explanation = explain(&requests, 2, &judging).unwrap();
    assert_eq!(explanation.change.as_ref(), Some(change));
    assert_eq!((explanation.earlier, explanation.same_conversation), (Some(1), true));
    assert_eq!(explanation.gap_ms, Some(10_000));
    assert!(explanation.lost > 1_000, "{explanation:?}");
    let parting = explanation.parting.as_ref().unwrap();
    assert_eq!((parting.zone, parting.segment.as_str()), (zone, segment));
    assert_eq!(parting.before.shared, parting.after.shared);
    assert_ne!(parting.before.differs, parting.after.differs);
    explanation
}

#[test]
fn an_unbroken_pair_is_no_break() {
    let requests = [
        recorded(1, 0, Wire::AnthropicMessages, &anthropic(), Some(0)),
        recorded(2, 10, Wire::AnthropicMessages, &next(anthropic()), None),
    ];
    let found = report(&requests, &Judging::default());
    let line = &found.conversations[0].requests[1];
    assert_eq!((line.verdict.clone(), line.leaves.clone(), line.lost), (Verdict::NotReported, None, 0));
    let whole = recorded(1, 0, Wire::AnthropicMessages, &anthropic(), None);
    assert_eq!(line.shared_bytes, whole.prompt_bytes());
    assert_eq!(line.predicted, Some(whole.prompt_bytes() / 4));
}

#[test]
fn a_clock_in_the_system() {
    let mut after = next(anthropic());
    let text = after["system"][0]["text"].as_str().unwrap().replace("10:41:07", "10:42:31");
    after["system"][0]["text"] = json!(text);
    let found = check(Wire::AnthropicMessages, &anthropic(), &after, Zone::System, "system block 1", &Change::Clock);
    let parting = found.parting.unwrap();
    assert!(parting.before.shared.ends_with("it is 10:4"), "{parting:?}");
    assert!(parting.before.differs.starts_with("1:07") && parting.after.differs.starts_with("2:31"), "{parting:?}");
    // Sonnet 4.5: 3 $ a million tokens, read at 0.30 $.
    assert_eq!(found.lost_cost.unwrap().0, found.lost * 2_700_000 / 1_000_000);
    // Written at 3.75 $, where that is what was reported, or where nothing was.
    let first = recorded(1, 0, Wire::AnthropicMessages, &anthropic(), Some(0));
    let second = recorded(2, 10, Wire::AnthropicMessages, &after, Some(0));
    let fresh = second.usage.unwrap().fresh;
    let written = Usage { fresh: Some(3), cache_write_5m: fresh, cache_read: Some(0), ..Usage::default() };
    for usage in [Some(written), None] {
        let requests = [first.clone(), Recorded { usage, ..second.clone() }];
        let line = report(&requests, &Judging::default()).conversations.remove(0).requests.remove(1);
        assert!(line.lost > 0);
        assert_eq!(line.lost_cost.unwrap().0, line.lost * 3_450_000 / 1_000_000, "{usage:?}");
    }
}

#[test]
fn tools_in_another_order() {
    let mut after = next(anthropic());
    after["tools"].as_array_mut().unwrap().swap(0, 1);
    check(Wire::AnthropicMessages, &anthropic(), &after, Zone::Tools, "tool[edit]", &Change::ToolOrder);
}

#[test]
fn a_changed_schema() {
    let mut after = next(anthropic());
    after["tools"][1]["input_schema"]["properties"]["line"] = json!({"type": "integer"});
    let change = Change::ToolSchema { tool: "edit".into() };
    check(Wire::AnthropicMessages, &anthropic(), &after, Zone::Tools, "tool[edit]", &change);
}

#[test]
fn an_added_tool() {
    let mut after = next(anthropic());
    after["tools"].as_array_mut().unwrap().insert(0, tool("ask", "Asks. "));
    let change = Change::ToolSet { added: vec!["ask".into()], removed: Vec::new() };
    check(Wire::AnthropicMessages, &anthropic(), &after, Zone::Tools, "tool[ask]", &change);
}

#[test]
fn a_dropped_block() {
    let mut after = next(anthropic());
    after["messages"][1]["content"].as_array_mut().unwrap().remove(1);
    let change = Change::Dropped { blocks: vec!["message 2 (assistant) block 2".into()] };
    check(Wire::AnthropicMessages, &anthropic(), &after, Zone::History, "message 2 (assistant) block 2", &change);
}

#[test]
fn a_dropped_first_block() {
    // The role moves to the next block; that must not hide which one is gone.
    let mut after = next(anthropic());
    after["messages"][1]["content"].as_array_mut().unwrap().remove(0);
    let change = Change::Dropped { blocks: vec!["message 2 (assistant) block 1".into()] };
    check(Wire::AnthropicMessages, &anthropic(), &after, Zone::History, "message 2 (assistant) block 1", &change);
}

#[test]
fn an_inserted_block() {
    let mut after = next(anthropic());
    after["messages"][0]["content"]
        .as_array_mut()
        .unwrap()
        .insert(2, json!({"type": "text", "text": "Mind the rules."}));
    let change = Change::Inserted { blocks: vec!["message 1 (user) block 3".into()] };
    check(Wire::AnthropicMessages, &anthropic(), &after, Zone::History, "message 1 (user) block 3", &change);
}

#[test]
fn a_message_that_was_serialised_anew() {
    let mut after = next(anthropic());
    after["messages"][1]["content"][2]["input"] = json!({"limit": 10, "path": "a.rs"});
    check(
        Wire::AnthropicMessages,
        &anthropic(),
        &after,
        Zone::History,
        "message 2 (assistant) block 3",
        &Change::Reserialised,
    );
    let call =
        |arguments: &str| json!({"type": "function_call", "call_id": "c", "name": "read", "arguments": arguments});
    let body = |arguments: &str, more: bool| {
        let mut input = vec![json!({"role": "user", "content": "Please fix it. ".repeat(400)}), call(arguments)];
        input.push(json!({"type": "function_call_output", "call_id": "c", "output": "text ".repeat(400)}));
        if more {
            input.push(json!({"role": "user", "content": "and now?"}));
        }
        json!({"model": "gpt-6.2-sol", "instructions": "You are an agent. ".repeat(100), "input": input})
    };
    let (before, after) = (body(r#"{"path": "a", "limit": 2}"#, false), body(r#"{"path":"a","limit":2}"#, true));
    check(Wire::OpenaiResponses, &before, &after, Zone::History, "message 2 (function_call)", &Change::Reserialised);
}

#[test]
fn a_mark_that_changed_a_shape() {
    let body = |marked: usize, count: usize| {
        let message = |index: usize| {
            let text = format!("{index} {}", "words of a message ".repeat(100));
            let content = if index == marked {
                json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}])
            } else {
                json!(text)
            };
            json!({"role": if index.is_multiple_of(2) { "user" } else { "assistant" }, "content": content})
        };
        let mut messages = vec![json!({"role": "system", "content": "You are an agent. ".repeat(200)})];
        messages.extend((0..count).map(message));
        json!({"model": "gpt-6.2-sol", "messages": messages})
    };
    check(Wire::OpenaiChat, &body(0, 3), &body(4, 5), Zone::History, "message 2 (user)", &Change::Shape);
}

#[test]
fn a_truncated_result() {
    for short in ["line of the file\n".repeat(20) + "[truncated]", "[Old tool result content cleared]".to_owned()] {
        let mut after = next(anthropic());
        after["messages"][2]["content"][0]["content"] = json!(short);
        check(
            Wire::AnthropicMessages,
            &anthropic(),
            &after,
            Zone::History,
            "message 3 (user) block 1",
            &Change::ResultTruncated,
        );
    }
}

#[test]
fn a_changed_model() {
    let mut after = next(anthropic());
    after["model"] = json!("claude-opus-5-5");
    let requests = [
        recorded(1, 0, Wire::AnthropicMessages, &anthropic(), Some(0)),
        recorded(2, 10, Wire::AnthropicMessages, &after, Some(0)),
    ];
    let line = report(&requests, &Judging::default()).conversations[0].requests[1].clone();
    assert!(matches!(line.verdict, Verdict::Broken { .. }), "{line:?}");
    let change = Change::Model { before: "claude-sonnet-4-5".into(), after: "claude-opus-5-5".into() };
    assert_eq!(explain(&requests, 2, &Judging::default()).unwrap().change, Some(change));
}

#[test]
fn a_removed_image() {
    let mut after = next(anthropic());
    after["messages"][0]["content"].as_array_mut().unwrap().remove(1);
    let label = "message 1 (user) block 2";
    check(Wire::AnthropicMessages, &anthropic(), &after, Zone::History, label, &Change::ImageRemoved);
    let mut after = next(anthropic());
    after["messages"][0]["content"][1] = json!({"type": "text", "text": "[image removed]"});
    check(Wire::AnthropicMessages, &anthropic(), &after, Zone::History, label, &Change::ImageRemoved);
    // The last block of its message: what stands in its place now belongs to another one.
    let mut before = anthropic();
    before["messages"][0]["content"].as_array_mut().unwrap().truncate(2);
    let mut after = next(before.clone());
    after["messages"][0]["content"].as_array_mut().unwrap().truncate(1);
    let found = check(Wire::AnthropicMessages, &before, &after, Zone::History, label, &Change::ImageRemoved);
    assert!(found.parting.unwrap().before.differs.contains("image"));
}

#[test]
fn a_tool_or_a_block_that_is_gone_is_named_as_it_was() {
    let mut after = next(anthropic());
    after["tools"].as_array_mut().unwrap().pop();
    let change = Change::ToolSet { added: Vec::new(), removed: vec!["read".into()] };
    check(Wire::AnthropicMessages, &anthropic(), &after, Zone::Tools, "tool[read]", &change);
    let mut after = next(anthropic());
    after["messages"][0]["content"].as_array_mut().unwrap().pop();
    let label = "message 1 (user) block 3";
    let change = Change::Dropped { blocks: vec![label.into()] };
    check(Wire::AnthropicMessages, &anthropic(), &after, Zone::History, label, &change);
}

#[test]
fn thinking_switched_off() {
    // As the SDKs do it: the parameter goes, and the thinking with it.
    let change = Change::Thinking { parameter: "thinking".into() };
    let mut after = next(anthropic());
    after.as_object_mut().unwrap().shift_remove("thinking");
    after["messages"][1]["content"].as_array_mut().unwrap().remove(0);
    check(Wire::AnthropicMessages, &anthropic(), &after, Zone::History, "message 2 (assistant) block 1", &change);
    // The parameter alone: the prompt is whole, and its messages are read no more all the same.
    let mut after = next(anthropic());
    after.as_object_mut().unwrap().shift_remove("thinking");
    let requests = [
        recorded(1, 0, Wire::AnthropicMessages, &anthropic(), Some(0)),
        recorded(2, 10, Wire::AnthropicMessages, &after, Some(1_200)),
    ];
    let found = explain(&requests, 2, &Judging::default()).unwrap();
    assert_eq!((found.change, found.parting), (Some(change), None));
    assert_eq!(found.verdict, Verdict::Broken { segment: "message 1 (user) block 1".into() });
    assert!(found.lost > 1_000, "{}", found.lost);
}

#[test]
fn a_path_and_an_id_early_in_the_prompt() {
    let body = |line: &str| {
        let mut body = anthropic();
        let text = format!("{}\n{line}\n{}", "You are an agent. ".repeat(200), "More rules. ".repeat(100));
        body["system"][0]["text"] = json!(text);
        body
    };
    let label = "system block 1";
    for (before, after, change) in [
        ("Working directory: /home/a/one", "Working directory: /home/a/two", Change::Path),
        (
            "Session 0197f0aa-0000-7000-8000-000000000001",
            "Session 0197f0ab-0000-7000-8000-000000000001",
            Change::RandomId,
        ),
        ("Mode: plan", "Mode: work", Change::Text),
    ] {
        check(Wire::AnthropicMessages, &body(before), &next(body(after)), Zone::System, label, &change);
    }
}

#[test]
fn a_replaced_history() {
    let mut after = next(anthropic());
    let messages = after["messages"].as_array_mut().unwrap();
    let last = messages.split_off(messages.len() - 1);
    *messages = vec![json!({"role": "user", "content": "A summary of what happened."})];
    messages.extend(last);
    // Nothing of the conversation is left, so it is a new one; what it shares is what stands before the history.
    let requests = [
        recorded(1, 0, Wire::AnthropicMessages, &anthropic(), Some(0)),
        recorded(2, 10, Wire::AnthropicMessages, &after, Some(1_500)),
    ];
    let found = report(&requests, &Judging::default());
    assert_eq!(found.conversations.len(), 2);
    assert_eq!(found.conversations[1].requests[0].verdict, Verdict::Hit);
    let found = explain(&requests, 2, &Judging::default()).unwrap();
    assert!(!found.same_conversation);
    assert_eq!(found.parting.unwrap().segment, "message 1 (user) block 1");
}

#[test]
fn another_folder_is_compared_with_the_session_before() {
    let body = |folder: &str, prompt: &str| {
        let mut body = anthropic();
        body["system"][0]["text"] = json!(format!("{} cwd: {folder}", "You are an agent. ".repeat(300)));
        body["messages"] = json!([{"role": "user", "content": [{"type": "text", "text": prompt, "cache_control": {"type": "ephemeral"}}]}]);
        body
    };
    let requests = [
        recorded(1, 0, Wire::AnthropicMessages, &body("/home/a/one", "fix the test"), Some(0)),
        recorded(2, 10, Wire::AnthropicMessages, &body("/home/a/two", "write a page"), Some(0)),
    ];
    let found = explain(&requests, 2, &Judging::default()).unwrap();
    assert_eq!((found.earlier, found.same_conversation, found.change), (Some(1), false, Some(Change::Path)));
}
