use serde_json::{Value, json};
use stele_core::Wire;
use stele_testkit::{Behaviour, Counted, Fault, FaultKind, Say, Script, Server};

use crate::agent::Agent;

/// Text of so many tokens, which is different for each `seed`.
fn tokens(count: usize, seed: &str) -> String {
    seed.chars().cycle().take(count * 4).collect()
}

fn last(server: &Server) -> Counted {
    server.requests().last().unwrap().counted.unwrap()
}

fn mark(agent: &mut Agent, message: usize, ttl: Option<&str>) {
    let blocks = agent.history[message]["content"].as_array_mut().unwrap();
    let mut control = json!({"type": "ephemeral"});
    if let Some(ttl) = ttl {
        control["ttl"] = json!(ttl);
    }
    blocks.last_mut().unwrap()["cache_control"] = control;
}

fn unmark(agent: &mut Agent, message: usize) {
    for block in agent.history[message]["content"].as_array_mut().unwrap() {
        block.as_object_mut().unwrap().remove("cache_control");
    }
}

fn anthropic(prompt: &str) -> (Server, Agent) {
    let server = Server::start(Script::new((0..30).map(|number| Say::text(format!("answer {number}"))))).unwrap();
    let mut agent = Agent::new(&server, Wire::AnthropicMessages);
    agent.prompt(prompt);
    (server, agent)
}

#[test]
fn anthropic_writes_at_a_mark_and_reads_there_again() {
    let (server, mut agent) = anthropic(&tokens(1_500, "prompt "));
    mark(&mut agent, 0, None);
    let first = agent.step();
    let counted = last(&server);
    assert!(counted.input > 1_500 && counted.cache_read == 0 && counted.cache_write_1h == 0);
    assert_eq!(counted.cache_write_5m, counted.input, "the mark is on the last block");
    assert_eq!(first.usage["input_tokens"], 0);
    assert_eq!(first.usage["cache_creation_input_tokens"], counted.input);
    assert_eq!(first.usage["cache_creation"]["ephemeral_5m_input_tokens"], counted.input);
    // The mark moves; the entry is found by looking back.
    unmark(&mut agent, 0);
    agent.prompt("more, which is new");
    mark(&mut agent, 2, None);
    let second = agent.step();
    assert_eq!(last(&server).cache_read, counted.input);
    assert_eq!(second.usage["cache_read_input_tokens"], counted.input);
    assert_eq!(last(&server).cache_read + last(&server).cache_write_5m, last(&server).input);
    // Without any mark nothing is read or written.
    unmark(&mut agent, 2);
    agent.prompt("and more");
    let third = agent.step();
    assert_eq!((last(&server).cache_read, last(&server).cache_write_5m), (0, 0));
    assert_eq!(third.usage["input_tokens"], last(&server).input);
}

#[test]
fn anthropic_does_not_cache_short_prompts() {
    let (server, mut agent) = anthropic("short");
    mark(&mut agent, 0, None);
    for _ in 0..2 {
        agent.ask(false);
        assert_eq!((last(&server).cache_read, last(&server).cache_write_5m), (0, 0));
    }
}

#[test]
fn anthropic_looks_back_at_twenty_positions() {
    let read_after = |blocks: usize| {
        let (server, mut agent) = anthropic(&tokens(1_500, "prompt "));
        mark(&mut agent, 0, None);
        agent.ask(false);
        unmark(&mut agent, 0);
        let more: Vec<Value> =
            (0..blocks).map(|number| json!({"type": "text", "text": format!("b{number}")})).collect();
        agent.history.push(json!({"role": "user", "content": more}));
        mark(&mut agent, 1, None);
        agent.ask(false);
        last(&server).cache_read
    };
    assert!(read_after(19) > 1_500, "the entry is the twentieth position");
    assert_eq!(read_after(20), 0, "the entry is the position after that");
}

#[test]
fn anthropic_tells_lives_apart() {
    let (server, mut agent) = anthropic(&tokens(2_000, "prompt "));
    agent.system = tokens(1_200, "system ");
    agent.fields = json!({
        "system": [{"type": "text", "text": agent.system, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    });
    mark(&mut agent, 0, None);
    let said = agent.step();
    let counted = last(&server);
    assert!(counted.cache_write_1h > 1_200 && counted.cache_write_5m > 2_000);
    assert_eq!(counted.cache_write_1h + counted.cache_write_5m, counted.input);
    assert_eq!(said.usage["cache_creation"]["ephemeral_1h_input_tokens"], counted.cache_write_1h);
    // Another prompt after the same system: the hour's entry is read.
    let mut other = Agent::new(&server, Wire::AnthropicMessages);
    other.fields = agent.fields.clone();
    other.prompt(&tokens(2_000, "another "));
    mark(&mut other, 0, None);
    other.ask(false);
    assert_eq!(last(&server).cache_read, counted.cache_write_1h);
    assert_eq!(last(&server).cache_write_1h, 0);
}

#[test]
fn anthropic_invalidates_by_order() {
    // Each change is asked for after a request that left entries at the end of system and at the end.
    let read_after = |change: fn(&mut Value)| {
        let (server, mut agent) = anthropic(&tokens(2_000, "prompt "));
        mark(&mut agent, 0, None);
        let mut body = agent.body(false);
        body["system"] = json!([
            {"type": "text", "text": tokens(1_200, "system "), "cache_control": {"type": "ephemeral"}}
        ]);
        agent.send(&body, false);
        change(&mut body);
        assert_eq!(agent.send(&body, false).status, 200);
        last(&server).cache_read
    };
    let whole = read_after(|_| {});
    assert!(whole > 3_200);
    let system = read_after(|body| body["tool_choice"] = json!({"type": "none"}));
    assert!((1_200..1_400).contains(&system), "{system}");
    assert_eq!(read_after(|body| body["thinking"] = json!({"type": "adaptive"})), system);
    assert_eq!(read_after(|body| body["messages"][0]["content"][0]["text"] = json!("other")), system);
    assert_eq!(read_after(|body| body["tools"][0]["description"] = json!("other")), 0);
    assert_eq!(read_after(|body| body["model"] = json!("other")), 0);
    assert_eq!(read_after(|body| body["max_tokens"] = json!(5)), whole);
    // A mark is no part of the prompt; the order of keys is.
    let moved = read_after(|body| {
        body["tools"][1]["cache_control"] = json!({"type": "ephemeral"});
        body["system"][0].as_object_mut().unwrap().remove("cache_control");
    });
    assert_eq!(moved, whole);
    let reordered = read_after(|body| {
        let tool = body["tools"][0].clone();
        body["tools"][0] = json!({
            "input_schema": tool["input_schema"], "description": tool["description"], "name": tool["name"]
        });
    });
    assert_eq!(reordered, 0);
}

#[test]
fn anthropic_takes_one_mark_for_the_whole_request() {
    let (server, mut agent) = anthropic(&tokens(1_500, "prompt "));
    agent.fields = json!({"cache_control": {"type": "ephemeral"}});
    agent.step();
    assert_eq!(last(&server).cache_write_5m, last(&server).input);
    let written = last(&server).input;
    agent.prompt("more");
    agent.step();
    assert_eq!(last(&server).cache_read, written);
}

#[test]
fn the_others_read_the_longest_common_prefix() {
    for (wire, minimum, step) in
        [(Wire::OpenaiResponses, 1_024, 128), (Wire::OpenaiChat, 1_024, 128), (Wire::Gemini, 4_096, 1)]
    {
        let server = Server::start(Behaviour::answering(|_| Say::text("ok").into())).unwrap();
        let mut agent = Agent::new(&server, wire);
        agent.prompt(&tokens(6_000, "prompt "));
        let said = agent.step();
        let first = last(&server);
        assert_eq!(first.cache_read, 0);
        let cached = |usage: &Value| match wire {
            Wire::OpenaiResponses => usage["input_tokens_details"]["cached_tokens"].clone(),
            Wire::OpenaiChat => usage["prompt_tokens_details"]["cached_tokens"].clone(),
            _ => usage["cachedContentTokenCount"].clone(),
        };
        assert_eq!(cached(&said.usage), if wire == Wire::Gemini { Value::Null } else { json!(0) });
        agent.prompt("more");
        let said = agent.step();
        let second = last(&server);
        assert!(second.input > first.input && second.cache_read <= first.input, "{wire}: {first:?} {second:?}");
        assert!(second.cache_read + step + 4 > first.input, "{wire}: {first:?} {second:?}");
        assert_eq!(second.cache_read % step, 0);
        assert_eq!(cached(&said.usage), second.cache_read);
        // Another session shares tools and system, which is less than the minimum.
        let mut other = Agent::new(&server, wire);
        other.prompt(&tokens(3_000, "another "));
        other.step();
        assert_eq!(last(&server).cache_read, 0);
        // What an earlier request shared is found however many came in between.
        agent.prompt("and more");
        agent.step();
        assert!(last(&server).cache_read >= second.cache_read);
        // A prompt that shares too little with the first.
        let mut half = Agent::new(&server, wire);
        let shared = usize::try_from(minimum).unwrap() - 400;
        half.prompt(&(tokens(shared, "prompt ") + &tokens(2_000, "else ")));
        half.step();
        assert_eq!(last(&server).cache_read, 0, "{wire}");
        // Another model shares nothing.
        agent.prompt("the same to another model");
        agent.model = "gemini-2.5-flash".to_owned();
        agent.step();
        assert_eq!(last(&server).cache_read, 0);
    }
}

#[test]
fn chat_reports_hits_and_misses_as_deepseek_does() {
    let server = Server::start(Behaviour::answering(|_| Say::text("ok").into())).unwrap();
    let mut agent = Agent::new(&server, Wire::OpenaiChat);
    agent.prompt(&tokens(3_000, "prompt "));
    agent.step();
    agent.prompt("more");
    let usage = agent.step().usage;
    let number = |key: &str| usage[key].as_u64().unwrap();
    assert!(number("prompt_cache_hit_tokens") > 2_900);
    assert_eq!(number("prompt_cache_hit_tokens") + number("prompt_cache_miss_tokens"), number("prompt_tokens"));
    assert_eq!(number("prompt_tokens") + number("completion_tokens"), number("total_tokens"));
}

#[test]
fn a_request_that_failed_leaves_nothing_in_the_cache() {
    let server = Server::start(Behaviour::answering(|_| Say::text("ok").into()).fault(Fault::at(
        0,
        1..=1,
        FaultKind::status(503),
    )))
    .unwrap();
    let mut agent = Agent::new(&server, Wire::OpenaiChat);
    agent.prompt(&tokens(3_000, "prompt "));
    assert_eq!(agent.ask(false).status, 503);
    assert_eq!(server.requests()[0].counted, None);
    agent.ask(false);
    assert_eq!(last(&server).cache_read, 0);
    agent.ask(false);
    assert!(last(&server).cache_read > 2_900);
}
