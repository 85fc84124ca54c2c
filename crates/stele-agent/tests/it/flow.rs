//! The main job on every wire.

use serde_json::json;
use stele_agent::{Approvals, Command, Driver, Notice, OpenPolicy, Until};
use stele_core::{ApprovalOutcome, By, EndReason, Event, Mode, Seq, TodoStatus, Wire};
use stele_guard::{Layer, List};
use stele_testkit::{Say, Script};
use tokio::sync::mpsc;

use crate::stage::{Stage, ask, bash, config, events, kinds, prompt, prompt_items};

fn script() -> Script {
    Script::new([
        Say::call("read", &json!({"path": "a.txt"})).and_call("read", &json!({"path": "b.txt"})),
        Say::text("I will change it.")
            .and_call("edit", &json!({"path": "a.txt", "edits": [{"old": "one", "new": "two"}]})),
        Say::call("bash", &bash("cat a.txt && echo made > c.txt")),
        Say::call("todo", &json!({"items": [{"text": "change a.txt", "status": "done"}]})),
        Say::text("Done: a.txt says two."),
        Say::call("bash", &bash("cat c.txt")),
        Say::text("Still so."),
    ])
}

fn stage(wire: Wire) -> Stage {
    let stage = Stage::new(wire, script());
    stage.write("a.txt", "one\n");
    stage.write("b.txt", &"other\n".repeat(1_500));
    stage
}

#[tokio::test]
async fn a_prompt_is_worked_on_to_the_end_on_every_wire_and_the_next_one_extends_it() {
    for wire in Wire::ALL {
        let stage = stage(wire);
        let mut driver = stage.create();
        assert_eq!(ask(&mut driver, "make a.txt say two").await, EndReason::Completed, "{wire}");
        assert_eq!(stage.read("a.txt"), "two\n");
        assert_eq!(stage.read("c.txt"), "made\n");
        assert_eq!(driver.state().last_text(), "Done: a.txt says two.");
        assert_eq!(driver.state().todo()[0].status, TodoStatus::Done);
        let session = driver.session().clone();
        drop(driver);

        // Another process: what shapes the request comes from the log alone.
        stage.write("AGENTS.md", "This came later.");
        let mut driver = stage.open(&session, OpenPolicy::Close);
        assert_eq!(ask(&mut driver, "and now?").await, EndReason::Completed, "{wire}");
        assert_eq!(driver.state().epoch().unwrap().n, 1);

        let requests = stage.requests();
        assert_eq!(requests.len(), 7, "{wire}");
        for (earlier, later) in requests.iter().zip(&requests[1..]) {
            let (earlier, later) = (prompt_items(earlier), prompt_items(later));
            assert_eq!(earlier, later[..earlier.len()], "{wire}");
        }
        let counters = driver.state().counters();
        assert_eq!((counters.turns, counters.steps, counters.attempts, counters.executions), (2, 7, 7, 6));
        assert!(driver.state().usage().cache_read.unwrap() > 0, "{wire}");
        drop(driver);
        let verified = stele_agent::verify(&stage.store(), &session).unwrap();
        assert!(verified.is_clean(), "{verified:?}");
        assert_eq!(verified.requests, 7);
    }
}

#[tokio::test]
async fn the_order_of_the_log_is_the_order_of_a_turn() {
    let stage = Stage::new(Wire::AnthropicMessages, Script::new([Say::call("bash", &bash("true")), Say::text("ok")]));
    let mut driver = stage.create();
    let mut notices = driver.subscribe();
    ask(&mut driver, "go").await;
    let expected = "session/started mode/set model/set inbox/queued turn/started inbox/claimed user/message \
        epoch/opened step/started request/sent assistant/message tool/called tool/gated tool/started tool/result \
        step/ended step/started request/sent assistant/message step/ended turn/ended";
    assert_eq!(kinds(&mut notices), expected.split_whitespace().collect::<Vec<_>>());
}

#[tokio::test]
async fn instructions_and_folder_stand_in_the_preface_and_nowhere_before() {
    let stage = stage(Wire::AnthropicMessages);
    stage.write("AGENTS.md", "Use tabs.");
    let mut driver = stage.create();
    ask(&mut driver, "go").await;
    let body = stage.requests()[0].json();
    let first = body["messages"][0]["content"].as_array().unwrap();
    assert_eq!(first[0]["text"], "<instructions file=\"AGENTS.md\">\nUse tabs.\n</instructions>");
    let folder = first[1]["text"].as_str().unwrap();
    assert!(folder.contains(stage.folder.to_str().unwrap()) && folder.contains("2026-11-30"), "{folder}");
    assert_eq!(first[2]["text"], "go");
    let before = format!("{}{}", body["tools"], body["system"]);
    assert!(!before.contains(stage.folder.to_str().unwrap()) && !before.contains("2026"));
    assert!(before.len() <= 5 * 1024, "tools and system are {} bytes", before.len());
}

#[tokio::test]
async fn a_question_waits_for_a_person_and_always_grants_the_rule_that_was_shown() {
    let script = Script::new([
        Say::call("bash", &bash("touch made-1")),
        Say::call("bash", &bash("touch made-1")),
        Say::call("bash", &bash("rm made-1")),
        Say::text("ok"),
    ]);
    let mut stage = Stage::new(Wire::OpenaiChat, script);
    stage.approvals = Approvals::Person;
    let mut driver = stage.create();
    let mut notices = driver.subscribe();
    driver.command(Command::SetMode { mode: Mode::Ask, by: By::person("test") }).unwrap();
    driver.command(prompt("go")).unwrap();
    let (send, mut commands) = mpsc::unbounded_channel();
    let answers = async {
        let mut asked = 0;
        let mut always = Vec::new();
        while let Ok(notice) = notices.recv().await {
            let Notice::Event(logged) = notice else { continue };
            match &logged.record.event {
                Event::ToolGated(gated) => always.clone_from(&gated.always),
                Event::ApprovalAsked(question) => {
                    asked += 1;
                    let outcome = match asked {
                        1 => ApprovalOutcome::Always { rules: always.clone() },
                        _ => ApprovalOutcome::Reject { reason: "keep it".to_owned() },
                    };
                    send.send(Command::Decide { call: question.call, by: By::person("test"), outcome }).unwrap();
                }
                Event::TurnEnded(_) => break,
                _ => {}
            }
        }
        asked
    };
    let (run, asked) = tokio::join!(driver.run(&mut commands, Until::Idle), answers);
    run.unwrap();
    assert_eq!(asked, 2, "the second touch is covered by the rule");
    assert!(stage.path("made-1").exists());
    let last = stage.requests().pop().unwrap();
    assert!(String::from_utf8_lossy(&last.body).contains("Refused by the user: keep it"));
}

#[tokio::test]
async fn without_a_person_a_question_is_refused_and_the_run_goes_on() {
    let script = Script::new([Say::call("bash", &bash("touch x")).and_call("bash", &bash("touch y")), Say::text("ok")]);
    let stage = Stage::new(Wire::Gemini, script);
    let mut driver = stage.create();
    driver.command(Command::SetMode { mode: Mode::Ask, by: By::person("test") }).unwrap();
    assert_eq!(ask(&mut driver, "go").await, EndReason::Completed);
    assert_eq!(driver.state().counters().unanswered, 2);
    assert!(!stage.path("x").exists());
    let body = String::from_utf8_lossy(&stage.requests().pop().unwrap().body).into_owned();
    assert_eq!(body.matches("--mode full").count(), 1, "the flag is named once");
}

#[tokio::test]
async fn a_deny_holds_in_full_mode() {
    let mut stage =
        Stage::new(Wire::AnthropicMessages, Script::new([Say::call("bash", &bash("true; rm -rf x")), Say::text("ok")]));
    stage.policy.add(List::Deny, Layer::Flag, "bash(rm*)").unwrap();
    stage.write("x", "");
    let mut driver = stage.create();
    assert_eq!(ask(&mut driver, "go").await, EndReason::Completed);
    assert!(stage.path("x").exists());
    let body = String::from_utf8_lossy(&stage.requests().pop().unwrap().body).into_owned();
    assert!(body.contains("Blocked by rule rule:flag:0"), "{body}");
}

#[tokio::test]
async fn a_model_switch_opens_an_epoch_and_keeps_the_history() {
    let stage = stage(Wire::OpenaiResponses);
    let mut driver = stage.create();
    ask(&mut driver, "go").await;
    let preface = driver.state().epoch().unwrap().header.preface.clone();
    stage.write("AGENTS.md", "This came later.");
    driver
        .command(Command::SetModel { route: "other".into(), model: "model-b".into(), by: By::person("test") })
        .unwrap();
    let mut notices = driver.subscribe();
    ask(&mut driver, "and now?").await;
    assert!(kinds(&mut notices).contains(&"epoch/opened"));
    assert_eq!(config(&driver).model, "model-b");
    assert_eq!(driver.state().epoch().unwrap().header.preface, preface);
    let requests = stage.requests();
    assert_eq!(requests[5].json()["model"], "model-b");
    let session = driver.session().clone();
    drop(driver);
    let verified = stele_agent::verify(&stage.store(), &session).unwrap();
    assert!(verified.is_clean(), "{verified:?}");
}

#[tokio::test]
async fn a_fork_shares_the_log_and_the_prefix_of_its_parent() {
    let stage = stage(Wire::OpenaiChat);
    let mut driver = stage.create();
    ask(&mut driver, "go").await;
    let parent = driver.session().clone();
    let head = stage.store().session(&parent).unwrap().head.seq;
    // The parent may be open elsewhere: it is only read.
    let mut fork = Driver::fork(&stage.agent(), &parent, None).unwrap();
    assert_eq!(ask(&mut fork, "and now?").await, EndReason::Completed);
    assert_eq!(fork.state().epoch().unwrap().n, 1);
    let requests = stage.requests();
    let (before, after) = (prompt_items(&requests[4]), prompt_items(&requests[5]));
    assert_eq!(before, after[..before.len()]);
    let id = fork.session().clone();
    drop(fork);
    assert!(stele_agent::verify(&stage.store(), &id).unwrap().is_clean());
    assert_eq!(stage.store().session(&parent).unwrap().head.seq, head);

    // From the middle of a turn: what was open is closed, in the fork alone.
    let at = Seq(12);
    let mut early = Driver::fork(&stage.agent(), &parent, Some(at)).unwrap();
    assert_eq!(ask(&mut early, "another way").await, EndReason::Completed);
    let id = early.session().clone();
    drop(early);
    let verified = stele_agent::verify(&stage.store(), &id).unwrap();
    assert!(verified.is_clean(), "{verified:?}");
}

#[tokio::test]
async fn steering_joins_the_step_after() {
    let stage = stage(Wire::AnthropicMessages);
    let mut driver = stage.create();
    let mut notices = driver.subscribe();
    driver.command(prompt("go")).unwrap();
    driver.command(Command::Steer { text: "mind the tests".into() }).unwrap();
    let (_keep, mut commands) = mpsc::unbounded_channel();
    driver.run(&mut commands, Until::Idle).await.unwrap();
    let claimed = events(&mut notices).iter().filter(|event| matches!(event, Event::UserMessage(_))).count();
    assert_eq!(claimed, 2);
    assert!(String::from_utf8_lossy(&stage.requests()[0].body).contains("mind the tests"));
}

#[tokio::test]
async fn a_log_that_came_from_a_file_grants_nothing() {
    let script = Script::new([Say::text("one"), Say::call("bash", &bash("touch made")), Say::text("two")]);
    let stage = Stage::new(Wire::OpenaiChat, script);
    let mut driver = stage.create();
    ask(&mut driver, "go").await;
    let session = driver.session().clone();
    assert_eq!(driver.state().mode(), Mode::Full);
    drop(driver);
    let mut file = Vec::new();
    stage.store().export(&session, &mut file).unwrap();
    stage.store().remove(&session, &|_, _, _| None).unwrap();
    let fresh = stele_agent::new_session_id(stele_core::Millis(1_790_000_000_000));
    stage.store().import(&mut file.as_slice(), fresh, &|_, _, _| None).unwrap();

    let mut driver = stage.open(&session, OpenPolicy::Continue);
    assert_eq!(driver.state().mode(), Mode::Ask);
    ask(&mut driver, "and now?").await;
    assert!(!stage.path("made").exists(), "what the file allowed is not allowed here");
    assert_eq!(driver.state().counters().unanswered, 1);
}

#[tokio::test]
async fn a_row_that_says_otherwise_than_its_log_is_named() {
    let stage = Stage::new(Wire::OpenaiChat, Script::new([Say::text("one")]));
    let mut driver = stage.create();
    ask(&mut driver, "go").await;
    let session = driver.session().clone();
    drop(driver);
    let store = stage.store();
    let row = store.session(&session).unwrap();
    assert!(stele_agent::verify(&store, &session).unwrap().is_clean());
    let told = stele_store::Summary {
        updated: row.updated,
        title: Some("another".to_owned()),
        model: row.model.clone(),
        turns: row.turns + 1,
        steps: row.steps + 2,
        cost: Some(stele_core::Micros(1)),
        cwd: "/elsewhere".to_owned(),
    };
    let mut writer = store.writer(&session).unwrap();
    writer.append(&[], stele_store::Durability::Normal, Some(&told)).unwrap();
    let verified = stele_agent::verify(&store, &session).unwrap();
    let what: Vec<&str> = verified.row_differs.iter().map(|differs| differs.what).collect();
    assert_eq!(what, ["cwd", "title", "turns", "steps", "cost"]);
    let title = &verified.row_differs[1];
    assert_eq!((title.row.as_str(), title.log.as_str()), ("another", "go"));
    assert!(!verified.is_clean());
}
