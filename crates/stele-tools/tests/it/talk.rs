//! `todo` and `ask`.

use std::sync::{Arc, Mutex};

use serde_json::json;
use stele_core::{TodoItem, TodoStatus};
use stele_tools::Options;

use crate::{Session, block_on, code, options};

#[test]
fn todo_sets_the_whole_list() {
    let session = Session::new();
    let items = json!([{"text": " read ", "status": "done"}, {"text": "fix", "status": "in_progress"}]);
    let output = session.call("todo", json!({"items": items}));
    assert_eq!(output.content, "1 done, 1 in progress, 0 pending");
    let item = |text: &str, status| TodoItem { text: text.to_owned(), status };
    assert_eq!(output.todo, Some(vec![item("read", TodoStatus::Done), item("fix", TodoStatus::InProgress)]));
    assert_eq!(code(&session.call("todo", json!({"items": [{"text": "x", "status": "maybe"}]}))), "tool.arguments");
    assert_eq!(code(&session.call("todo", json!({"items": [{"text": " ", "status": "done"}]}))), "tool.value");
}

#[test]
fn ask_waits_for_the_person() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    let session = Session::with(Options {
        ask: Some(Arc::new(move |question| {
            heard.lock().unwrap().push(question);
            Box::pin(async { Some("blue\u{1b}[31m".to_owned()) })
        })),
        ..options()
    });
    let output = session.call("ask", json!({"questions": [{"question": "Which colour?"}]}));
    assert_eq!(output.content, "blue␛[31m");
    assert_eq!(*asked.lock().unwrap(), ["Which colour?"]);
}

#[test]
fn ask_without_a_person_is_no_error() {
    let output = Session::new().call("ask", json!({"questions": [{"question": "Which?"}]}));
    assert_eq!(output.error, None);
    assert!(output.content.contains("Decide yourself"));
}

#[test]
fn ask_can_be_cancelled() {
    let session = Session::with(Options { ask: Some(Arc::new(|_| Box::pin(std::future::pending()))), ..options() });
    let call = session.start("ask", json!({"questions": [{"question": "Which?"}]}), std::future::ready(()), &|_| {});
    assert_eq!(code(&block_on(call)), "tool.cancelled");
}
