//! A driver that is dropped anywhere, and another one that goes on.

use serde_json::json;
use stele_agent::{Notice, OpenPolicy, Until};
use stele_core::{Event, Wire};
use stele_testkit::{Behaviour, Say, Script};
use tokio::sync::mpsc;

use crate::stage::{Stage, idle, lines, prompt, prompt_items};

fn script(marks: &str) -> Script {
    let mark = |n: usize| format!("echo {n} >> {marks}");
    let script = Script::new([
        Say::call("read", &json!({"path": "a.txt"})).and_call("read", &json!({"path": "b.txt"})),
        Say::call("bash", &json!({"command": mark(1)})),
        Say::call("edit", &json!({"path": "a.txt", "edits": [{"old": "one", "new": "two"}]})),
        Say::call("bash", &json!({"command": mark(2)})),
        Say::text("done"),
    ]);
    let marks = marks.to_owned();
    // Told that nobody knows how a command ended, the model looks, and repeats it only if it has to.
    script.reacting(move |exchanges| {
        let mut more = Vec::new();
        for exchange in exchanges {
            let Some(call) = exchange.call.filter(|_| exchange.result.text.contains("outcome_unknown")) else {
                continue;
            };
            let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
            match call.name.as_str() {
                "bash" => {
                    let command = arguments["command"].as_str().unwrap();
                    let number = command.split_whitespace().nth(1).unwrap();
                    let again = format!("grep -qx {number} {marks} || {command}");
                    more.push(Say::call("bash", &json!({"command": format!("cat {marks}")})));
                    more.push(Say::call("bash", &json!({"command": again})));
                }
                _ => {
                    more.push(Say::call("bash", &json!({"command": "grep -q two a.txt || sed -i s/one/two/ a.txt"})));
                }
            }
        }
        more
    })
}

#[tokio::test]
async fn whoever_takes_over_comes_to_the_same_files_and_repeats_nothing() {
    for wire in [Wire::AnthropicMessages, Wire::OpenaiChat] {
        let mut cut_after = 0;
        loop {
            let outside = tempfile::tempdir().unwrap();
            let marks = outside.path().join("marks");
            let stage = Stage::new(wire, Behaviour::from(script(marks.to_str().unwrap())));
            stage.write("a.txt", "one\n");
            stage.write("b.txt", "other\n");
            cut_after += 1;
            let Some(session) = cut(&stage, cut_after).await else { break };
            let mut driver = stage.open(&session, OpenPolicy::Continue);
            idle(&mut driver).await;
            assert_eq!(stage.read("a.txt"), "two\n", "{wire}, cut after {cut_after}");
            assert_eq!(lines(&marks), ["1", "2"], "{wire}, cut after {cut_after}");
            assert_eq!(driver.state().last_text(), "done");
            assert_eq!(driver.state().epoch().unwrap().n, 1);
            drop(driver);
            let requests = stage.requests();
            for (earlier, later) in requests.iter().zip(&requests[1..]) {
                let (earlier, later) = (prompt_items(earlier), prompt_items(later));
                assert_eq!(earlier, later[..earlier.len()], "{wire}, cut after {cut_after}");
            }
            let verified = stele_agent::verify(&stage.store(), &session).unwrap();
            assert!(verified.is_clean(), "{wire}, cut after {cut_after}: {verified:?}");
        }
        assert!(cut_after > 30, "{cut_after}");
    }
}

/// Drives until so many events are in the log, then drops the driver where it stands. `None` when the
/// turn ended before.
async fn cut(stage: &Stage, after: usize) -> Option<stele_core::SessionId> {
    let mut seen = 0;
    cut_at(stage, |_| {
        seen += 1;
        seen == after
    })
    .await
}

/// The same until an event.
async fn cut_at(stage: &Stage, mut is_it: impl FnMut(&Event) -> bool) -> Option<stele_core::SessionId> {
    let mut driver = stage.create();
    let mut notices = driver.subscribe();
    driver.command(prompt("change a.txt")).unwrap();
    let session = driver.session().clone();
    let (_keep, mut commands) = mpsc::unbounded_channel();
    let enough = async {
        loop {
            if let Ok(Notice::Event(logged)) = notices.recv().await {
                let ended = matches!(logged.record.event, Event::TurnEnded(_));
                if is_it(&logged.record.event) || ended {
                    break ended;
                }
            }
        }
    };
    tokio::select! {
        biased;
        ended = enough => (!ended).then_some(session),
        run = driver.run(&mut commands, Until::Idle) => {
            run.unwrap();
            None
        }
    }
}

#[tokio::test]
async fn a_tool_that_had_announced_nothing_had_changed_nothing() {
    let edit = Say::call("edit", &json!({"path": "a.txt", "edits": [{"old": "one", "new": "two"}]}));
    let bash = Say::call("bash", &json!({"command": "echo two > a.txt"}));
    for (call, told, unknown) in
        [(edit, "ended. It had changed nothing.", 0), (bash, "Check what it did before you repeat it.", 1)]
    {
        let stage = Stage::new(Wire::OpenaiChat, Behaviour::from(Script::new([call, Say::text("done")])));
        stage.write("a.txt", "one\n");
        let session = cut_at(&stage, |event| matches!(event, Event::ToolStarted(_))).await.unwrap();
        let mut driver = stage.open(&session, OpenPolicy::Continue);
        idle(&mut driver).await;
        let turn = driver.state().history().done().last().unwrap();
        assert_eq!(turn.not_covered.len(), unknown, "{:?}", turn.not_covered);
        let asked = stage.requests().last().unwrap().json().to_string();
        assert!(asked.contains("outcome_unknown") && asked.contains(told), "{asked}");
    }
}

#[tokio::test]
async fn before_the_first_request_there_is_no_session() {
    let stage = Stage::new(Wire::OpenaiChat, Behaviour::from(Script::new([Say::text("ok")])));
    let mut driver = stage.create();
    driver.command(prompt("go")).unwrap();
    let session = driver.session().clone();
    drop(driver);
    assert_eq!(stage.store().session(&session).unwrap_err().code(), "log.not_found");
}
