//! Which requests belong together, and what was lost between them.

use serde_json::{Value, json};
use stele_core::{EpochReason, Usage, Wire};
use stele_proxy::{Change, Cut, Judging, Recorded, Verdict, explain, report};

use crate::breaks::{anthropic, next, recorded};

const WIRE: Wire = Wire::AnthropicMessages;

fn tokens(request: &Recorded) -> u64 {
    request.prompt_bytes() / 4
}

/// A request of an agent whose sessions all begin with the same block; `done` says how often the model was answered.
fn in_the_same_folder(prompt: &str, done: usize) -> Value {
    let mut body = anthropic();
    let mut messages = vec![json!({"role": "user", "content": [
        {"type": "text", "text": "<env>cwd: /work</env> ".repeat(20)},
        {"type": "text", "text": prompt.repeat(10)},
    ]})];
    for step in 0..done {
        messages.push(json!({"role": "assistant", "content": format!("{prompt} {step} ")}));
        messages.push(json!({"role": "user", "content": format!("went {step} ").repeat(300)}));
    }
    let last = messages.last_mut().unwrap();
    let text = last["content"].take();
    last["content"] = match text {
        Value::String(text) => json!([{"type": "text", "text": text}]),
        other => other,
    };
    last["content"].as_array_mut().unwrap().last_mut().unwrap()["cache_control"] = json!({"type": "ephemeral"});
    body["messages"] = json!(messages);
    body
}

#[test]
fn sessions_that_begin_with_the_same_block_are_several() {
    let one = |done| in_the_same_folder("Fix the test. ", done);
    let other = |done| in_the_same_folder("Write a poem about the sea. ", done);
    let bodies = [one(0), one(1), other(0), one(2), other(1), other(2)];
    let requests: Vec<Recorded> =
        bodies.iter().zip(1..).map(|(body, id)| recorded(id, id as i64, WIRE, body, Some(1_358))).collect();
    let found = report(&requests, &Judging::default());
    let ids: Vec<Vec<u64>> =
        found.conversations.iter().map(|one| one.requests.iter().map(|line| line.id).collect()).collect();
    assert_eq!(ids, [vec![1, 2, 4], vec![3, 5, 6]]);
    assert!(!matches!(found.conversations[1].requests[0].verdict, Verdict::Broken { .. }));
    assert_eq!(found.conversations[1].requests[0].lost, 0);
    // A clock in the system text does not make one of them another.
    let mut broken = one(3);
    broken["system"][0]["text"] = json!("It is noon. ".repeat(300));
    let found = report(&[requests, vec![recorded(7, 7, WIRE, &broken, Some(0))]].concat(), &Judging::default());
    let last = found.conversations[0].requests.last().unwrap();
    assert_eq!((last.id, last.verdict.name()), (7, "broken"));
}

#[test]
fn no_more_is_lost_than_was_not_read() {
    // The history is thrown away but for its opening, and most of what is left was read.
    let long = recorded(1, 0, WIRE, &in_the_same_folder("Fix it. ", 8), Some(0));
    let mut short = recorded(2, 5, WIRE, &in_the_same_folder("Fix it. ", 1), Some(0));
    let read = tokens(&short) - 22;
    short.usage = Some(Usage { fresh: Some(22), cache_read: Some(read), ..short.usage.unwrap() });
    short.cut = Some(Cut { reason: EpochReason::Undo, cost: None });
    let found = report(&[long.clone(), short.clone()], &Judging::default());
    let line = &found.conversations[0].requests[1];
    assert_eq!((line.verdict.name(), line.lost), ("cut", 22));
    assert!(line.lost_cost <= line.cost);
    // The same without a declaration.
    let line = &report(&[long, Recorded { cut: None, ..short }], &Judging::default()).conversations[0].requests[1];
    assert!(line.lost <= 22, "{line:?}");
}

#[test]
fn an_endpoint_caches_what_it_was_seen_to_read() {
    let requests = |read: u64| {
        let mut broken = next(anthropic());
        broken["system"][0]["text"] = json!("It is noon. ".repeat(300));
        [(anthropic(), 0), (next(anthropic()), read), (broken, 0)]
            .into_iter()
            .zip(1..)
            .map(|((body, read), id)| Recorded {
                model: "claude-opus-4-6".into(),
                ..recorded(id, id as i64, WIRE, &body, Some(read))
            })
            .collect::<Vec<_>>()
    };
    let verdict = |read| {
        let line = report(&requests(read), &Judging::default()).conversations[0].requests[2].clone();
        (line.verdict.name(), line.lost > 1_000)
    };
    assert!(tokens(&requests(0)[1]) < 4_096, "shorter than the vendor documents");
    assert_eq!(verdict(0), ("below_minimum", false));
    assert_eq!(verdict(1_024), ("broken", true));
}

#[test]
fn a_mark_that_went_is_a_loss_with_a_cause() {
    let mut unmarked = next(anthropic());
    for message in unmarked["messages"].as_array_mut().unwrap() {
        if let Some(blocks) = message["content"].as_array_mut() {
            blocks.iter_mut().for_each(|block| drop(block.as_object_mut().unwrap().shift_remove("cache_control")));
        }
    }
    for system in [true, false] {
        let mut unmarked = unmarked.clone();
        if !system {
            unmarked["system"][0].as_object_mut().unwrap().shift_remove("cache_control");
        }
        let read = if system { 650 } else { 0 };
        let requests = [recorded(1, 0, WIRE, &anthropic(), Some(0)), recorded(2, 5, WIRE, &unmarked, Some(read))];
        let found = explain(&requests, 2, &Judging::default()).unwrap();
        assert_eq!(found.verdict, Verdict::NotMarked, "{found:?}");
        assert!(found.lost > 1_000, "{found:?}");
        let segment = "message 5 (user) block 1".to_owned();
        assert_eq!(found.change, Some(Change::Unmarked { segment }));
    }
}

#[test]
fn two_breaks_before_the_conversation_are_both_told() {
    let mut broken = next(anthropic());
    broken["system"][0]["text"] = json!("It is noon. ".repeat(300));
    let tools = broken["tools"].as_array_mut().unwrap();
    tools.swap(0, 1);
    let requests = [recorded(1, 0, WIRE, &anthropic(), Some(0)), recorded(2, 5, WIRE, &broken, Some(0))];
    let found = explain(&requests, 2, &Judging::default()).unwrap();
    assert_eq!((found.change, found.also), (Some(Change::ToolOrder), vec!["system block 1".to_owned()]));
}

#[test]
fn blocks_that_changed_places_are_not_gone() {
    let start = next(anthropic());
    let mut moved = next(start.clone());
    moved["messages"].as_array_mut().unwrap().swap(1, 3);
    let requests = [recorded(1, 0, WIRE, &start, Some(0)), recorded(2, 5, WIRE, &moved, Some(0))];
    let found = explain(&requests, 2, &Judging::default()).unwrap();
    assert!(matches!(found.change, Some(Change::Moved { .. })), "{:?}", found.change);
}

#[test]
fn the_next_session_in_another_folder_is_told_by_its_folder() {
    let in_folder = |folder: &str, done| {
        let mut body = in_the_same_folder("Fix the test. ", done);
        let text = format!("<env>\ncwd: {folder}\nshell: bash\nos: linux\nterminal: none\n</env>");
        body["messages"][0]["content"][0]["text"] = json!(text);
        body
    };
    let bodies = [in_folder("/home/a/one", 0), in_folder("/home/a/one", 1), in_folder("/srv/work/of/another name", 0)];
    let requests: Vec<Recorded> =
        bodies.iter().zip(1..).map(|(body, id)| recorded(id, id as i64, WIRE, body, Some(1_358))).collect();
    let found = explain(&requests, 3, &Judging::default()).unwrap();
    assert_eq!((found.same_conversation, found.change), (false, Some(Change::Path)));
}
