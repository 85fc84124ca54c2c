//! What is said of what happened: that it is true, and no more than was asked for.

use serde_json::json;
use stele_core::Wire;
use stele_testkit::{Behaviour, ParsedRequest, Say, Script};

use crate::support::{Done, Place, server};

#[test]
fn a_turn_that_was_taken_back_is_shown_as_that() {
    let place = Place::new();
    let server = server(Script::new([
        Say::call("write", &json!({"path": "made", "content": "x\n"})),
        Say::text("All done."),
        Say::text("Again."),
    ]));
    assert_eq!(Done::of(place.with(&server, ["run", "--mode", "edit", "make it"])).code, 0);
    let before = Done::of(place.stele(["sessions", "show"])).out;
    assert!(!before.contains("taken back"), "{before}");
    assert_eq!(Done::of(place.stele(["undo"])).code, 0);
    let shown = Done::of(place.stele(["sessions", "show"])).out;
    assert!(shown.contains("> make it (this turn was taken back)"), "{shown}");
    assert!(shown.contains("turn 1 was taken back"), "{shown}");
    let timeline = Done::of(place.stele(["sessions", "show", "--timeline"])).out;
    assert!(timeline.contains("taken back, files and conversation: turn 1"), "{timeline}");
    let json = Done::of(place.stele(["sessions", "show", "--timeline", "--json"])).lines();
    assert_eq!(json[0]["undone"], json!([1]));
    let listed = Done::of(place.stele(["sessions", "list"])).out;
    assert!(listed.contains("(all of it taken back)"), "{listed}");
    assert_eq!(Done::of(place.stele(["undo", "--redo"])).code, 0);
    let shown = Done::of(place.stele(["sessions", "show"])).out;
    assert!(!shown.contains("this turn was taken back") && shown.contains("turn 1 was done again"), "{shown}");
}

#[test]
fn what_was_left_out_of_a_result_is_not_counted_in_lines() {
    let place = Place::new();
    let script = |command: &str| Script::new([Say::call("bash", &json!({ "command": command })), Say::text("Done.")]);
    let run = |command: &str| Done::of(place.with(&server(script(command)), ["run", "--mode", "full", "go"])).err;
    let long = run("yes | head -c 200000");
    assert!(long.contains("… more before, 200,000 bytes in all") && !long.contains("lines before"), "{long}");
    let short = run("printf '1\\n\\n2\\n3\\n4\\n5\\n6\\n'");
    assert!(short.contains("… 2 lines before"), "the blank one counts: {short}");
}

#[test]
fn a_log_says_nothing_of_keys_that_it_does_not_know() {
    let place = Place::new();
    let server = server(Behaviour::answering(|_: &ParsedRequest| Say::text("Done.").into()).require_key("right"));
    let mut command = place.on(&server, Wire::OpenaiChat, ["run", "fix"]);
    command.env("STELE_API_KEY", "wrong");
    let failed = Done::of(command).err.replace("\n  ", " ");
    assert!(failed.contains("; route env, key in STELE_API_KEY)") && !failed.contains(".;"), "{failed}");
    let shown = Done::of(place.stele(["sessions", "show"])).out.replace("\n  ", " ");
    assert!(shown.contains("; route env)") && !shown.contains("no key"), "{shown}");
}

#[test]
fn quiet_leaves_the_last_answer_alone() {
    let place = Place::new();
    let script = || {
        Script::new([
            Say::text("I will look.").and_call("bash", &json!({"command": "ls"})),
            Say::text("There is **nothing**."),
        ])
    };
    let quiet = Done::of(place.with(&server(script()), ["run", "-q", "look"]));
    assert_eq!((quiet.code, quiet.out.as_str(), quiet.err.as_str()), (0, "There is **nothing**.\n", ""));
    let cut = Done::of(place.with(&server(script()), ["run", "-q", "--max-steps", "1", "look"]));
    assert_eq!((cut.code, cut.out.as_str()), (4, ""), "what leads to a call is no answer");
}

#[test]
fn a_probe_needs_no_name_where_there_is_one_route() {
    let place = Place::new();
    let server = server(Behaviour::answering(|_: &ParsedRequest| Say::text("OK").into()));
    let probed = Done::of(place.on(&server, Wire::OpenaiChat, ["probe", "--yes"]));
    assert_eq!(probed.code, 0, "{probed:?}");
    let mut several = place.on(&server, Wire::OpenaiChat, ["probe", "--yes"]);
    several.env("ANTHROPIC_API_KEY", "k");
    let several = Done::of(several);
    assert!(several.code == 2 && several.err.contains("stele probe env"), "{several:?}");
}

#[test]
fn what_the_model_asked_and_started_is_told_in_words() {
    let place = Place::new();
    let server = server(Script::new([
        Say::call("bash", &json!({"command": "sleep 1000", "background": true})),
        Say::call("ask", &json!({"questions": [{"question": "Which one?"}]})),
        Say::text("Done."),
    ]));
    let done = Done::of(place.with(&server, ["run", "--mode", "full", "go"]));
    assert!(done.err.contains("j1 runs") && done.err.contains("nobody to ask"), "{done:?}");
}
