//! `bash`: what comes out of a command that ends by itself.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stele_core::{ResultCard, ToolOutput};
use stele_tools::Options;

use crate::{Session, block_on, code, options, processes_in, tool};

fn bash(session: &Session, command: &str) -> ToolOutput {
    session.call("bash", json!({"command": command}))
}

fn cases(text: &str) -> Vec<(String, String)> {
    let cases: Vec<Value> = serde_json::from_str(text).unwrap();
    let field = |case: &Value, name: &str| case[name].as_str().unwrap().to_owned();
    cases.iter().map(|case| (field(case, "id"), field(case, "command"))).collect()
}

/// The output of a command, without the line that says how it ended.
fn printed(output: &ToolOutput) -> &str {
    output.content.rsplit_once("\n[").unwrap().0
}

#[test]
fn both_streams_keep_their_order() {
    let session = Session::new();
    let output = bash(&session, "echo one; echo two >&2; echo three; pwd");
    assert_eq!(printed(&output), format!("one\ntwo\nthree\n{}", session.path().display()));
    assert_eq!(output.error, None);
    let process = output.meta.process.as_ref().unwrap();
    assert_eq!((process.exit, process.signal, process.timed_out), (Some(0), None, false));
    assert!(output.meta.duration_ms.is_some());
    let card = tool(&session.options, "bash").result_card("{}", &output.content, &output.meta);
    assert!(matches!(card, ResultCard::Terminal { exit: Some(0), .. }));
}

#[test]
fn no_output_is_said() {
    let output = bash(&Session::new(), "true");
    assert!(output.content.starts_with("(no output)\n[exit 0"), "{}", output.content);
}

#[test]
fn exit_codes_are_numbers_and_no_judgement() {
    let session = Session::new();
    for (id, command) in cases(include_str!("cases/pipeline-status.json")) {
        let output = bash(&session, &command);
        let process = output.meta.process.as_ref().unwrap();
        assert_eq!(output.error, None, "{id}");
        assert!(!output.content.to_lowercase().contains("succe"), "{id}");
        match id.as_str() {
            "a" | "b" | "c" => {
                assert_eq!(process.exit, Some(0), "{id}");
                let stages = match id.as_str() {
                    "a" => "3, 0",
                    "b" => "141, 0",
                    _ => "0, 1, 0",
                };
                let expect = format!("[exit 0 of the last command in the pipe (stages: {stages})");
                assert!(output.content.contains(&expect), "{id}: {}", output.content);
            }
            "d" | "g" => assert!(output.content.contains("\n[exit 0"), "{id}"),
            "e" => assert!(output.content.contains("[exit 7") && process.exit == Some(7), "{id}"),
            "f" => {
                assert!(output.content.contains("[ended by signal 15 (TERM)"), "{id}");
                assert_eq!((process.exit, process.signal), (None, Some(15)));
            }
            other => panic!("a case that is not tested: {other}"),
        }
    }
}

#[test]
fn bytes_that_are_no_text_become_inert() {
    let session = Session::new();
    for (id, command) in cases(include_str!("cases/raw-bytes.json")) {
        let output = bash(&session, &command);
        assert!(output.content.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "{id}");
        let expect = match id.as_str() {
            "a" => "A\u{fffd}\u{fffd}BC",
            "b" => "red   end",
            "c" => "ok \u{fffd}",
            "e" => "done",
            _ => continue,
        };
        assert_eq!(printed(&output), expect, "{id}");
    }
}

#[test]
fn a_background_child_does_not_hold_the_call() {
    for (id, command) in cases(include_str!("cases/background-pipes.json")) {
        let session = Session::new();
        let (output, after) = block_on(async {
            let started = Instant::now();
            let call = json!({"command": command, "timeout": 20});
            let output = session.start("bash", call, std::future::pending(), &|_| {}).await;
            assert!(started.elapsed() < Duration::from_secs(3), "{id}");
            assert!(!processes_in(&session.path()).is_empty(), "{id}: the child lives on");
            // What the result says about stopping it works.
            let stop = output.content.rsplit_once("stop with: ").unwrap().1.trim_end_matches(']').to_owned();
            let after = session.start("bash", json!({"command": stop}), std::future::pending(), &|_| {}).await;
            (output, after)
        });
        assert!(output.content.contains("started\n"), "{id}: {}", output.content);
        assert!(output.content.contains("; still running: "), "{id}: {}", output.content);
        assert_eq!(output.meta.process.unwrap().exit, Some(0), "{id}");
        assert_eq!(after.meta.process.unwrap().exit, Some(0), "{id}: {}", after.content);
    }
}

#[test]
fn nothing_pages_prompts_or_opens_an_editor() {
    let session = Session::new();
    let setup = r#"git init -q . && git config user.name a && git config user.email a@b && {
        for n in $(seq 300); do printf 'commit refs/heads/main\ncommitter a <a@b> %s +0000\ndata 4\nmsg\n\n' $n; done
        } | git fast-import --quiet && git checkout -qf main && echo x > f && git add f"#;
    assert_eq!(bash(&session, setup).meta.process.unwrap().exit, Some(0));
    for (id, command) in cases(include_str!("cases/pager-editor.json")) {
        let output = session.call("bash", json!({"command": command, "timeout": 10}));
        assert_eq!(output.error, None, "{id}: {}", output.content);
        let exit = output.meta.process.unwrap().exit;
        match id.as_str() {
            "a" | "c" => assert_eq!(exit, Some(0), "{id}"),
            "b" | "e" => assert_ne!(exit, Some(0), "{id}"),
            _ => {}
        }
        assert_eq!(printed(&bash(&session, "echo next")), "next");
    }
    assert_eq!(printed(&bash(&session, "git log --oneline | wc -l")), "300");
    assert_eq!(printed(&bash(&session, "cat; read x; echo \"$?\"")), "1");
    assert_eq!(printed(&bash(&session, "(: < /dev/tty) 2>/dev/null || echo none")), "none");
}

#[test]
fn keys_are_not_in_the_environment() {
    let mut environment = options().environment;
    environment.push(("ANTHROPIC_API_KEY".into(), "secret-value".into()));
    environment.push(("MY_FLAG".into(), "yes".into()));
    let session = Session::with(Options { environment, pass: vec!["MY_*".to_owned()], ..options() });
    let output = bash(&session, "env");
    assert!(!output.content.contains("secret-value"));
    assert!(output.content.contains("MY_FLAG=yes") && output.content.contains("TERM=dumb"));
}

#[test]
fn huge_output_is_shown_by_head_and_tail() {
    let session = Session::new();
    let output = bash(&session, "seq 1 1000000");
    assert!(output.content.len() <= 32 * 1024, "{}", output.content.len());
    assert!(output.content.starts_with("1\n2\n3\n"));
    assert!(printed(&output).ends_with("999999\n1000000"));
    assert!(output.content.contains(" bytes left out …]"));
    assert_eq!(output.meta.process.unwrap().output_bytes, 6_888_896);
}

#[test]
fn output_is_shown_while_the_command_runs() {
    let session = Session::new();
    let live = Mutex::new(String::new());
    // The command goes on only when its first line was seen.
    let gate = session.path().join("gate");
    let progress = |text: &str| {
        live.lock().unwrap().push_str(text);
        if text.contains("first") {
            std::fs::write(&gate, "").unwrap();
        }
    };
    let command = json!({"command": "echo first; until [ -e gate ]; do sleep 0.01; done; echo second", "timeout": 20});
    let output = block_on(session.start("bash", command, std::future::pending(), &progress));
    assert_eq!(output.error, None, "{}", output.content);
    assert_eq!(*live.lock().unwrap(), "first\nsecond\n");
}

#[test]
fn a_command_that_cannot_start_is_an_error() {
    let session = Session::new();
    let output = bash(&session, &format!(": {}", "x".repeat(200_000)));
    assert_eq!(code(&output), "bash.spawn");
    assert!(output.content.contains("too long"), "{}", output.content);
    assert_eq!(code(&bash(&session, "a\0b")), "tool.value");
    *session.cwd.lock().unwrap() = Some("/nonexistent/folder".into());
    let gone = bash(&session, "true");
    assert_eq!(code(&gone), "bash.spawn");
    assert!(gone.content.contains("is gone"), "{}", gone.content);
}

#[test]
fn without_a_supervisor_the_same_command_gives_the_same() {
    let session = Session::with(Options { supervisor: None, ..options() });
    let output = bash(&session, "echo one; echo two >&2; exit 3");
    assert_eq!(printed(&output), "one\ntwo");
    assert_eq!(output.meta.process.unwrap().exit, Some(3));
    let output = session.call("bash", json!({"command": "trap '' TERM; sleep 300 & wait", "timeout": 1}));
    assert_eq!(code(&output), "bash.timeout");
    assert!(output.content.contains("nothing of it is left running"), "{}", output.content);
    assert_eq!(processes_in(&session.path()), Vec::<String>::new());
    // What goes on in the command's group is known by its name.
    let output = bash(&session, "sleep 300 > /dev/null 2>&1 & echo $!");
    assert!(output.content.contains(&format!("sleep ({})", printed(&output))), "{}", output.content);
}
