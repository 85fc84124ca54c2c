//! The shape of `--json`.

use std::process::Stdio;

use serde_json::{Value, json};
use stele_testkit::{Behaviour, Fault, FaultKind, Say, Script};

use crate::support::{Done, Place, server};

fn script() -> Script {
    Script::new([Say::call("read", &json!({"path": "long.txt"})), Say::text("Read.")])
}

#[test]
fn records_have_a_kind_and_everything_else_a_type() {
    let place = Place::new();
    place.write("long.txt", "a long line of text\n".repeat(500));
    let server = server(script());
    let done = Done::of(place.with(&server, ["run", "--json", "read it"]));
    let lines = done.lines();
    let (result, records) = lines.split_last().unwrap();
    for (seq, record) in records.iter().enumerate() {
        assert_eq!(record["seq"], seq, "{record}");
        assert!(record["kind"].is_string() && record.get("type").is_none(), "{record}");
    }
    let read = records.iter().find(|record| record["kind"] == "tool/result").unwrap();
    assert!(read["data"]["content"].as_str().unwrap().len() > 4096, "a blob is inlined");
    let head = &result["head"];
    assert_eq!(head["seq"], records.len() - 1);
    assert_eq!(head["hash"].as_str().unwrap().len(), 64);
    let keys: Vec<&str> = result.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "type",
        "status",
        "stop",
        "text",
        "usage",
        "coverage",
        "cost",
        "hit_rate",
        "model",
        "session",
        "head",
        "steps",
        "executions",
        "attempts",
        "changed_files",
        "refused",
        "skipped",
        "jobs",
    ];
    assert_eq!(keys, expected);
    assert_eq!((&result["steps"], &result["attempts"], &result["executions"]), (&json!(2), &json!(2), &json!(1)));
    assert_eq!(result["cost"], Value::Null, "no price is known");
    assert_eq!(result["coverage"], json!({"known": 2, "attempts": 2}));
}

#[test]
fn the_same_records_come_from_the_log() {
    let place = Place::new();
    place.write("long.txt", "a long line of text\n".repeat(500));
    let server = server(script());
    let live = Done::of(place.with(&server, ["run", "--json", "read it"]));
    let shown = Done::of(place.stele(["sessions", "show", "--json", &place.sessions()[0]]));
    let (_, records) = live.out.trim_end().rsplit_once('\n').map(|(records, result)| (result, records)).unwrap();
    assert_eq!(shown.out.trim_end(), records);
}

#[test]
fn deltas_come_when_they_are_asked_for() {
    let place = Place::new();
    let server = server(Say::text("One two three four five."));
    let done = Done::of(place.with(&server, ["run", "--json", "--deltas", "hi"]));
    let lines = done.lines();
    let pieces = lines.iter().filter(|line| line["type"] == "delta" && line["of"] == "text");
    let text: String = pieces.map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(text, "One two three four five.");
    let place = Place::new();
    let done = Done::of(place.with(&server, ["run", "--json", "hi"]));
    assert!(done.lines().iter().all(|line| line["type"] != "delta"));
}

#[test]
fn the_result_is_there_when_nothing_ran() {
    let place = Place::new();
    let done = Done::of(place.stele(["run", "--json", "--resume", "0123", "hi"]));
    let result = done.result();
    assert_eq!((done.code, &result["status"]), (2, &json!("failed")), "{done:?}");
    assert!(result["error"]["code"].is_string());
}

#[test]
fn a_reader_that_goes_away_is_a_quiet_end() {
    let place = Place::new();
    let server = server(Script::new([
        Say::call("glob", &json!({"pattern": "*"})),
        Say::call("glob", &json!({"pattern": "**"})),
        Say::text("x"),
    ]));
    let mut child = place.with(&server, ["run", "--json", "hi"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let done = Done::wait(child);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    place.assert_clean();
}

#[test]
fn edits_are_listed_with_their_lines() {
    let place = Place::new();
    let server = server(Script::new([
        Say::call("write", &json!({"path": "new.txt", "content": "one\ntwo\n"})),
        Say::text("Written."),
    ]));
    let done = Done::of(place.with(&server, ["run", "--json", "--mode", "edit", "write it"]));
    let changed = &done.result()["changed_files"][0];
    assert_eq!((&changed["action"], &changed["added"], &changed["removed"]), (&json!("created"), &json!(2), &json!(0)));
    assert_eq!(place.read("new.txt"), "one\ntwo\n");
}

#[test]
fn a_share_of_the_unknown_is_shown_nowhere() {
    let usage = |read: Option<u64>| {
        let mut usage = json!({"input_tokens": 1000, "output_tokens": 5});
        usage["cache_read_input_tokens"] = read.map_or(Value::Null, |read| json!(read));
        FaultKind::Usage(usage)
    };
    for (first, rate, tokens) in [
        (usage(Some(3_000)), json!(0.75), " from cache"),
        (usage(None), Value::Null, "? from cache"),
        (FaultKind::NoUsage, Value::Null, "known for 1 of 2 attempts"),
    ] {
        let place = Place::new();
        place.write("long.txt", "text\n");
        let behaviour = Behaviour::from(script()).fault(Fault::at(0, 1..=1, first.clone()));
        let server = server(behaviour.fault(Fault::at(1, 1..=1, usage(Some(3_000)))));
        let done = Done::of(place.with(&server, ["run", "--json", "read it"]));
        let (result, known) = (done.result(), if first == FaultKind::NoUsage { 1 } else { 2 });
        assert_eq!((&result["hit_rate"], &result["coverage"]), (&rate, &json!({"known": known, "attempts": 2})));
        let id = &place.sessions()[0];
        let timeline = Done::of(place.stele(["sessions", "show", "--timeline", "--json", id])).lines().remove(0);
        assert_eq!((&timeline["hit_rate"], &timeline["turns"][0]["hit_rate"]), (&rate, &rate), "{timeline}");
        assert_eq!(&timeline["turns"][0]["coverage"], &result["coverage"]);
        let report = Done::of(place.stele(["cache", "report", "--json", id])).lines();
        assert_eq!(report.last().unwrap()["hit_rate"], rate, "{report:?}");
        let again = Behaviour::from(script()).fault(Fault::at(0, 1..=1, first));
        let again = crate::support::server(again.fault(Fault::at(1, 1..=1, usage(Some(3_000)))));
        let text = Done::of(place.with(&again, ["run", "read it"])).err;
        let line = text.lines().find(|line| line.starts_with("tokens")).unwrap();
        assert!(line.contains(tokens), "{line}");
    }
}

#[test]
fn a_change_that_cannot_be_listed_is_told() {
    let place = Place::new();
    let command = Say::call("bash", &json!({"command": "touch n1 $(printf 'n\\377')"}));
    let server = server(Script::new([command, Say::text("Done.")]));
    let result = Done::of(place.with(&server, ["run", "--json", "--mode", "full", "do it"])).result();
    let told = result["not_covered"].as_array().unwrap();
    assert!(told.iter().any(|words| words.as_str().unwrap().contains("since its name is not UTF-8")), "{result}");
    assert_eq!(result["changed_files"].as_array().unwrap().len(), 1);
}

#[test]
fn what_a_command_changed_is_listed_too() {
    let place = Place::new();
    place.write("old", "x\n");
    let server = server(Script::new([
        Say::call("bash", &json!({"command": "echo x > new.txt; rm old; echo x > passing"})),
        Say::call("write", &json!({"path": "w.txt", "content": "one\n"})),
        Say::call("bash", &json!({"command": "rm passing"})),
        Say::text("Done."),
    ]));
    let done = Done::of(place.with(&server, ["run", "--json", "--mode", "full", "do it"]));
    let folder = place.folder().display().to_string();
    let path = |name: &str| format!("{folder}/{name}");
    assert_eq!(
        done.result()["changed_files"],
        json!([
            {"path": path("new.txt"), "action": "created"},
            {"path": path("old"), "action": "deleted"},
            {"path": path("w.txt"), "action": "created", "added": 1, "removed": 0},
        ])
    );
    let removes =
        crate::support::server(Script::new([Say::call("bash", &json!({"command": "rm w.txt"})), Say::text("Done.")]));
    let done = Done::of(place.with(&removes, ["run", "--mode", "full", "do it"]));
    assert!(done.err.contains("changed  w.txt deleted\n"), "{done:?}");
}

#[test]
fn lines_are_counted_from_before_the_run_to_its_end() {
    let place = Place::new();
    place.write("a.txt", "one\ntwo\n");
    let edit = |old, new| Say::call("edit", &json!({"path": "a.txt", "old": old, "new": new}));
    std::fs::create_dir(place.folder().join("sub")).unwrap();
    let script = Script::new([
        edit("two", "2"),
        edit("2", "II\nII"),
        edit("II\nII", "zwei"),
        Say::call("write", &json!({"path": "new", "content": "1\n2\n3\n"})),
        Say::call("write", &json!({"path": "new", "content": "1\n"})),
        Say::call("bash", &json!({"command": "pwd", "cwd": "sub"})),
        Say::text("Done."),
    ]);
    let server = server(script);
    let done = Done::of(place.with(&server, ["run", "--json", "--mode", "full", "x"]));
    let result = done.lines().pop().unwrap();
    let counted = |at: usize| {
        let file = &result["changed_files"][at];
        (file["action"].as_str().unwrap().to_owned(), file["added"].clone(), file["removed"].clone())
    };
    assert_eq!(counted(0), ("changed".to_owned(), json!(1), json!(1)), "{result}");
    assert_eq!(counted(1), ("created".to_owned(), json!(1), json!(0)), "{result}");
    // The folder of a command is shown as somebody would type it.
    let id = &place.sessions()[0];
    let shown = Done::of(place.stele(["sessions", "show", id.as_str()]));
    assert!(shown.out.contains("$ cd sub && pwd"), "{shown:?}");
}
