//! One prompt in, an answer out: on each wire, from each place a prompt comes from.

use std::process::Stdio;

use serde_json::json;
use stele_core::Wire;
use stele_testkit::{Cut, Fault, FaultKind, Say, Script};

use crate::support::{Done, Place, seen, server};

fn reads_and_answers() -> Script {
    Script::new([Say::text("I look.").and_call("read", &json!({"path": "notes.txt"})), Say::text("It says hello.")])
}

#[test]
fn a_prompt_is_answered_over_every_wire_with_a_tool() {
    for wire in [Wire::AnthropicMessages, Wire::OpenaiResponses, Wire::OpenaiChat, Wire::Gemini] {
        let place = Place::new();
        place.write("notes.txt", "hello\n");
        let server = server(reads_and_answers());
        let done = Done::of(place.on(&server, wire, ["run", "what do the notes say?"]));
        assert_eq!((done.code, done.out.as_str()), (0, "I look.\nIt says hello.\n"), "{wire}: {done:?}");
        let bodies = server.requests();
        assert_eq!(bodies.len(), 2, "{wire}");
        assert!(String::from_utf8_lossy(&bodies[1].body).contains("hello"), "{wire}");
        place.assert_clean();
    }
}

#[test]
fn what_a_person_sees_of_a_run() {
    let place = Place::new();
    place.write("greet.sh", "echo helo\n");
    let server = server(Script::new([
        Say::text("I look first.").and_call("read", &json!({"path": "greet.sh"})),
        Say::call("edit", &json!({"path": "greet.sh", "edits": [{"old": "helo", "new": "hello"}]})),
        Say::call("bash", &json!({"command": "sh greet.sh; exit 3"})),
        Say::call("edit", &json!({"path": "greet.sh", "edits": [{"old": "nowhere", "new": "x"}]})),
        Say::text("Fixed."),
    ]));
    let done = Done::of(place.with(&server, ["run", "--mode", "full", "fix the greeting"]));
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.out, "I look first.\nFixed.\n");
    seen!(place, done.err);
}

#[test]
fn quiet_is_the_answer_alone() {
    let place = Place::new();
    let server = server(Say::text("Hello."));
    let done = Done::of(place.with(&server, ["run", "--quiet", "hi"]));
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "Hello.\n", ""));
}

#[test]
fn a_prompt_comes_from_standard_input() {
    for arguments in [&["run"][..], &["run", "-"]] {
        let place = Place::new();
        let server = server(Say::text("Hello."));
        let done = Done::fed(place.with(&server, arguments.iter().copied()), "say héllo\n");
        assert_eq!((done.code, done.out.as_str()), (0, "Hello.\n"), "{done:?}");
        assert!(String::from_utf8_lossy(&server.requests()[0].body).contains("say héllo"));
    }
}

#[test]
fn what_is_piped_in_beside_a_prompt_stands_behind_it() {
    for (arguments, input, expect) in [
        (&["run", "explain this"][..], "context\n", "explain this\n\nStandard input:\n\n```\ncontext\n```"),
        (&["run", "explain this"], "", "explain this"),
        (&["run", "-"], "context\n", "context\n"),
    ] {
        let place = Place::new();
        let server = server(Say::text("Hello."));
        let done = Done::fed(place.with(&server, arguments.iter().copied()), input);
        assert_eq!((done.code, done.out.as_str()), (0, "Hello.\n"), "{done:?}");
        let shown = Done::of(place.stele(["sessions", "show", "--json", &place.sessions()[0]]));
        assert!(shown.out.contains(&json!(expect).to_string()), "{shown:?}");
        assert!(server.requests()[0].json().to_string().contains(&json!(expect).to_string()), "{expect}");
    }
}

#[test]
fn what_is_piped_in_is_text_and_no_longer_than_a_prompt() {
    let place = Place::new();
    let server = server(Say::text("Hello."));
    let long = vec![b'x'; 1024 * 1024];
    for (input, code) in
        [(&b"a\0"[..], "usage.not_text"), (b"\xff", "usage.not_utf8"), (&long[..], "usage.prompt_too_long")]
    {
        let done = Done::fed(place.with(&server, ["run", "--json", "explain this"]), input);
        assert_eq!((done.code, &done.result()["error"]["code"]), (2, &json!(code)), "{done:?}");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_pipe_that_nobody_writes_to_holds_no_run_up() {
    let place = Place::new();
    let server = server(Say::text("Hello."));
    let mut child = place.with(&server, ["run", "explain this"]).stdin(Stdio::piped()).spawn().unwrap();
    let open = child.stdin.take();
    let done = Done::wait(child);
    drop(open);
    assert_eq!((done.code, done.out.as_str()), (0, "Hello.\n"), "{done:?}");
    assert!(done.err.contains("run.stdin_silent"), "{done:?}");
}

#[test]
fn json_lines_are_prompts_one_after_another() {
    let place = Place::new();
    let server = server(Script::new([Say::text("One."), Say::text("Two.")]));
    let input = "{\"prompt\": \"first\"}\n\n{\"prompt\": \"second\"}\n";
    let done = Done::fed(place.with(&server, ["run", "--json", "--input-format", "jsonl"]), input);
    let result = done.result();
    assert_eq!((done.code, &result["text"], &result["steps"]), (0, &json!("Two."), &json!(2)), "{done:?}");
    assert_eq!(place.sessions().len(), 1);
}

#[test]
fn an_attempt_that_broke_off_is_not_shown_as_if_it_counted() {
    let place = Place::new();
    let fault = Fault::at(0, 1..=1, FaultKind::Reset { at: Cut::Events(4) });
    let behaviour = stele_testkit::Behaviour::from(Script::from(Say::text("The whole answer."))).fault(fault);
    let server = server(behaviour);
    let done = Done::of(place.with(&server, ["run", "hi"]));
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.ends_with("The whole answer.\n"), "{done:?}");
    assert!(done.err.contains("trying again"), "{done:?}");
    place.assert_clean();
}

#[test]
fn an_answer_follows_a_schema_or_is_asked_for_once_more() {
    let place = Place::new();
    place.write("schema.json", r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#);
    let server = server(Script::new([Say::text("Three."), Say::text("{\"n\": 3}")]));
    let done = Done::of(place.with(&server, ["run", "--output-schema", "schema.json", "how many?"]));
    assert_eq!((done.code, done.out.as_str()), (0, "{\"n\":3}\n"), "{done:?}");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn an_answer_that_never_follows_the_schema_fails() {
    let place = Place::new();
    place.write("schema.json", r#"{"type":"integer"}"#);
    let server = server(Script::new([Say::text("Three."), Say::text("three"), Say::text("3")]));
    let done = Done::of(place.with(&server, ["run", "--json", "--output-schema", "schema.json", "how many?"]));
    let result = done.result();
    assert_eq!((done.code, &result["error"]["code"]), (1, &json!("run.schema_mismatch")), "{done:?}");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn what_a_model_writes_cannot_drive_the_terminal() {
    let place = Place::new();
    let server = server(Script::new([
        Say::call("bash", &json!({"command": "printf '\\033[2J\\033]0;owned\\007'; false"})),
        Say::text("a\u{1b}[31mred\u{1b}]0;owned\u{7}b"),
    ]));
    let done = Done::of(place.with(&server, ["run", "--mode", "full", "hi"]));
    assert_eq!(done.out, "aredb\n", "{done:?}");
    assert!(!done.err.contains('\u{1b}'), "{done:?}");
    let shown = Done::of(place.stele(["sessions", "show", &place.sessions()[0]]));
    assert!(shown.out.contains("aredb") && !shown.out.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn calls_are_shown_one_after_the_other_in_the_models_order() {
    let place = Place::new();
    place.write("a", "1\n2\n");
    place.write("b", "1\n");
    let say = Say::text("I look.")
        .and_call("read", &json!({"path": "a"}))
        .and_call("bash", &json!({"command": "touch made"}))
        .and_call("read", &json!({"path": "b"}))
        .and_call("ask", &json!({"questions": [{"question": "Which?"}]}));
    let server = server(Script::new([say, Say::text("Done.")]));
    let done = Done::of(place.with(&server, ["run", "look"]));
    assert_eq!(done.code, 3, "{done:?}");
    let order =
        ["● Read a\n  2 lines\n✗ $ touch made\n", "● Read b\n  1 line\n", "● Ask: Which?\n  nobody to ask; the model"];
    let places: Vec<_> = order.iter().map(|part| done.err.find(part)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{done:?}");
}

#[test]
fn what_a_command_left_running_is_named_where_it_still_runs_at_the_end() {
    let place = Place::new();
    let leaves = "(until [ -e gate ]; do sleep 0.01; done) & echo $! > pid; setsid tail -f /dev/null & echo up";
    let server = server(Script::new([
        Say::call("bash", &json!({"command": leaves})),
        Say::call("bash", &json!({"command": "touch gate; tail --pid=$(cat pid) -f /dev/null"})),
        Say::text("The server runs."),
    ]));
    let done = Done::of(place.with(&server, ["run", "--json", "--mode", "full", "start it"]));
    let jobs = done.result()["jobs"].clone();
    let named = jobs[0].as_str().unwrap();
    assert!(named.starts_with("tail (") && named.contains("left running by: (until"), "{jobs}");
    assert_eq!(jobs.as_array().unwrap().len(), 1, "{jobs}");
    assert!(!named.contains("bash ("), "the other one ended: {jobs}");
    std::fs::remove_file(place.folder().join("gate")).unwrap();
    let done = Done::of(place.with(&server, ["run", "--mode", "full", "start it"]));
    assert!(done.err.contains("still running: ") && done.err.contains("\n    up\n"), "{done:?}");
    assert!(done.err.contains("job      tail (") && done.err.contains("ended with the run"), "{done:?}");
}

#[test]
fn what_a_command_printed_can_be_seen() {
    let place = Place::new();
    let command = "for n in 1 2 3 4 5 6 7 8 9; do echo line $n; done";
    let server = server(Script::new([Say::call("bash", &json!({"command": command})), Say::text("Done.")]));
    let done = Done::of(place.with(&server, ["run", "--mode", "full", "count"]));
    assert!(
        done.err.contains("\n    … 4 lines before\n    line 5\n") && done.err.contains("\n    line 9\n"),
        "{done:?}"
    );
    let id = &place.sessions()[0];
    let brief = Done::of(place.stele(["sessions", "show", id]));
    assert!(brief.out.contains("… 4 lines before") && !brief.out.contains("line 4"), "{brief:?}");
    let full = Done::of(place.stele(["sessions", "show", "--full", id]));
    assert!((1..=9).all(|n| full.out.contains(&format!("\n    line {n}\n"))), "{full:?}");
}

#[test]
fn a_job_that_still_ran_is_named_in_the_result_and_to_the_person() {
    let place = Place::new();
    let job = Say::call("bash", &json!({"command": "sleep 60", "background": true}));
    let server = server(Script::new([job.clone(), Say::text("Started."), job, Say::text("Started.")]));
    let done = Done::of(place.with(&server, ["run", "--json", "--mode", "full", "start it"]));
    let jobs = done.result()["jobs"].clone();
    assert!(jobs[0].as_str().is_some_and(|job| job.starts_with("j1: ")), "{jobs}");
    let done = Done::of(place.with(&server, ["run", "--mode", "full", "start it"]));
    assert!(done.err.contains("job      j1: ") && done.err.contains("ended with the run"), "{done:?}");
}
