//! The folder that calls run in, when somebody takes it away.

use std::fs;

use serde_json::json;
use stele_agent::{ChangedSince, Command, OpenPolicy};
use stele_core::{By, EndReason, Event, Mode, Wire};
use stele_guard::{Layer, List};
use stele_testkit::{Say, Script};

use crate::stage::{Stage, ask, bash, events};

/// What the calls came to: the code or nothing, and the text.
fn results(events: &[Event]) -> Vec<(Option<String>, String)> {
    let result = |event: &Event| match event {
        Event::ToolResult(result) => {
            Some((result.error.as_ref().map(|error| error.code.clone()), result.content.as_str().to_owned()))
        }
        _ => None,
    };
    events.iter().filter_map(result).collect()
}

#[tokio::test]
async fn what_was_written_for_a_folder_that_is_gone_does_not_run_elsewhere() {
    let script = Script::new([
        Say::call("bash", &bash("mkdir deep && cd deep")),
        Say::text("There."),
        Say::call("bash", &bash("rm -rf *"))
            .and_call("write", &json!({"path": "new", "content": "new"}))
            .and_call("read", &json!({"path": "kept"})),
        Say::call("bash", &bash("pwd; ls")),
        Say::text("I see."),
    ]);
    let stage = Stage::new(Wire::AnthropicMessages, script);
    stage.write("kept", "kept");
    let mut driver = stage.create();
    assert_eq!(ask(&mut driver, "go there").await, EndReason::Completed);
    assert_eq!(driver.state().cwd(), Some(stage.path("deep").as_path()));
    // A person takes it away, and the session goes on in another process.
    let session = driver.session().clone();
    drop(driver);
    fs::remove_dir(stage.path("deep")).unwrap();
    let mut driver = stage.open(&session, OpenPolicy::Close);
    let mut notices = driver.subscribe();
    assert_eq!(ask(&mut driver, "clean up").await, EndReason::Completed);
    let results = results(&events(&mut notices));
    for (code, said) in &results[..3] {
        assert_eq!(code.as_deref(), Some("file.folder_gone"), "{said}");
        assert!(said.contains(&format!("Calls run in {} now", stage.folder.display())), "{said}");
    }
    assert!(results[0].1.contains(&format!("the folder {} for which", stage.path("deep").display())), "{results:?}");
    assert!(results[3].1.starts_with(&format!("{}\nkept\n", stage.folder.display())), "{results:?}");
    assert_eq!(stage.read("kept"), "kept");
    assert!(!stage.path("new").exists());
    // What an undo takes from the conversation the model does not know any more: it is told again.
    driver.undo(By::person("test"), ChangedSince::Leave).await.unwrap();
    assert_eq!(driver.state().cwd(), Some(stage.path("deep").as_path()));
    let verified = stele_agent::verify(&stage.store(), &session).unwrap();
    assert!(verified.is_clean(), "{verified:?}");
}

#[tokio::test]
async fn a_folder_that_goes_while_its_step_runs_takes_the_rest_of_the_step_along() {
    let absolute = tempfile::NamedTempFile::new().unwrap();
    let script = Script::new([
        Say::call("bash", &bash("mkdir deep && cd deep")),
        Say::call("bash", &json!({"command": "rmdir ../deep", "background": true}))
            .and_call("jobs", &json!({"action": "wait", "job": "j1"}))
            .and_call("bash", &bash("touch one"))
            .and_call("read", &json!({"path": absolute.path()}))
            .and_call("todo", &json!({"items": []}))
            .and_call("grep", &json!({"pattern": "x"})),
        Say::call("bash", &bash("touch two")),
        Say::text("I see."),
    ]);
    let stage = Stage::new(Wire::OpenaiChat, script);
    let mut driver = stage.create();
    let mut notices = driver.subscribe();
    assert_eq!(ask(&mut driver, "go").await, EndReason::Completed);
    let results = results(&events(&mut notices));
    let codes: Vec<_> = results.iter().map(|(code, _)| code.as_deref()).collect();
    let gone = Some("file.folder_gone");
    assert_eq!(codes, [None, None, None, gone, None, None, gone, None], "{results:?}");
    assert!(!stage.path("one").exists() && stage.path("two").exists());
}

#[tokio::test]
async fn where_the_workspace_itself_is_gone_the_call_says_so_and_the_run_goes_on() {
    let script = Script::new([
        Say::call("bash", &bash("mkdir deep && cd deep")),
        Say::text("There."),
        Say::call("bash", &bash("pwd")),
        Say::call("bash", &json!({"command": "pwd", "cwd": "/"})),
        Say::text("I see."),
    ]);
    let stage = Stage::new(Wire::Gemini, script);
    let mut driver = stage.create();
    ask(&mut driver, "go there").await;
    fs::remove_dir_all(&stage.folder).unwrap();
    let mut notices = driver.subscribe();
    assert_eq!(ask(&mut driver, "go on").await, EndReason::Completed);
    let results = results(&events(&mut notices));
    assert_eq!(results[0].0.as_deref(), Some("bash.spawn"), "{results:?}");
    assert!(results[0].1.contains("is gone") && results[0].1.contains("cwd"), "{results:?}");
    assert!(results[1].1.starts_with("/\n"), "{results:?}");
}

/// Plays a script where files may be changed without a question, but not in the folder `private`, and nobody is there.
async fn with_private_folder(wire: Wire, script: Script) -> (Stage, Vec<(Option<String>, String)>) {
    let mut stage = Stage::new(wire, script);
    stage.policy.add(List::Ask, Layer::Flag, "write(private/**)").unwrap();
    fs::create_dir(stage.path("private")).unwrap();
    let mut driver = stage.create();
    driver.command(Command::SetMode { mode: Mode::Edit, by: By::person("test") }).unwrap();
    let mut notices = driver.subscribe();
    assert_eq!(ask(&mut driver, "go").await, EndReason::Completed);
    (stage, results(&events(&mut notices)))
}

#[tokio::test]
async fn a_call_is_judged_for_the_folder_that_it_runs_in() {
    let write = json!({"path": "new", "content": "new"});
    let script = Script::new([
        Say::call("write", &write)
            .and_call("bash", &bash("cd private"))
            .and_call("write", &json!({"path": "other", "content": "new"}))
            .and_call("bash", &bash("pwd")),
        Say::call("write", &write),
        Say::text("I see."),
    ]);
    let (stage, results) = with_private_folder(Wire::OpenaiResponses, script).await;
    let codes: Vec<_> = results.iter().map(|(code, _)| code.as_deref()).collect();
    assert_eq!(codes, [None, None, Some("tool.moved"), None, Some("permission.unanswered")], "{results:?}");
    assert!(results[2].1.contains("went to") && results[2].1.contains("private"), "{results:?}");
    assert!(stage.path("new").exists());
    assert_eq!(fs::read_dir(stage.path("private")).unwrap().count(), 0, "nothing was written there");
}

#[tokio::test]
async fn the_next_step_is_judged_where_the_last_one_went() {
    let script = Script::new([
        Say::call("bash", &bash("cd private")),
        Say::call("write", &json!({"path": "new", "content": "new"})),
        Say::text("I see."),
    ]);
    let (stage, results) = with_private_folder(Wire::Gemini, script).await;
    assert_eq!(results[1].0.as_deref(), Some("permission.unanswered"), "{results:?}");
    assert!(!stage.path("private/new").exists());
}
