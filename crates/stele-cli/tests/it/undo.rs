//! Turns taken back and done again from the command line.

use serde_json::{Value, json};
use stele_testkit::{Say, Script};

use crate::support::{Done, Place, server};

fn undo(place: &Place, arguments: &[&str]) -> Done {
    Done::of(place.stele(["undo"].into_iter().chain(arguments.iter().copied())))
}

/// A session of two turns in which the model wrote, edited and ran a command.
fn two_turns(place: &Place) {
    let script = Script::new([
        Say::call("write", &json!({"path": "new/file", "content": "one\n"})),
        Say::call("bash", &json!({"command": "printf '\\000\\001' > kept; rm old; chmod 755 script"})),
        Say::text("Done."),
        Say::call("edit", &json!({"path": "new/file", "edits": [{"old": "one", "new": "two"}]})),
        Say::text("Done."),
        Say::text("Gone on."),
    ]);
    let server = server(script);
    for name in ["kept", "old", "script"] {
        place.write(name, "before\n");
    }
    for arguments in [&["run", "--mode", "full", "make it"][..], &["run", "--continue", "--mode", "full", "change it"]]
    {
        let done = Done::of(place.with(&server, arguments.iter().copied()));
        assert_eq!(done.code, 0, "{done:?}");
    }
}

fn names(report: &Value) -> Vec<String> {
    let name = |file: &Value| {
        let path = file["path"].as_str().unwrap();
        format!("{} {}", file["action"].as_str().unwrap(), path.rsplit('/').next().unwrap())
    };
    report["files"].as_array().unwrap().iter().map(name).collect()
}

#[test]
fn where_no_session_was_held_the_same_command_is_advised() {
    let place = Place::new();
    two_turns(&place);
    let id = place.sessions().remove(0);
    let elsewhere = place.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let within = |arguments: &[&str]| {
        let mut command = place.stele(arguments.iter().copied());
        command.current_dir(&elsewhere).env("STELE_WIRE", "gemini").env("STELE_MODEL", "m");
        command.env("STELE_BASE_URL", "http://127.0.0.1:1");
        let done = Done::of(command);
        assert!(done.code == 2 && done.err.contains("session.none_here"), "{done:?}");
        done.err
    };
    let folder = place.folder().display().to_string();
    for (arguments, command) in [
        (&["undo"][..], "stele undo"),
        (&["undo", "--list"], "stele undo --list"),
        (&["undo", "--redo"], "stele undo --redo"),
    ] {
        let said = within(arguments);
        assert!(said.contains(&format!("try: {command} {id}  # make it  (in {folder})\n")), "{said}");
    }
    assert!(within(&["run", "-c", "x"]).contains(&format!("try: stele run -C {folder} --resume {id}  # make it\n")));
}

#[test]
fn a_session_is_taken_back_turn_by_turn_and_done_again() {
    let place = Place::new();
    two_turns(&place);
    let listed = undo(&place, &["--list", "--json"]).lines();
    assert_eq!(listed.iter().map(|turn| turn["title"].as_str().unwrap()).collect::<Vec<_>>(), ["make it", "change it"]);
    assert_eq!(names(&listed[0]), ["changed kept", "created file", "deleted old", "mode script"]);
    assert!(listed[0]["not_covered"][0].as_str().unwrap().contains(".gitignore"));
    assert_eq!(names(&listed[1]), ["changed file"]);

    let done = undo(&place, &["--json"]);
    assert_eq!((done.code, done.lines()[0]["turn"].as_u64()), (0, Some(2)), "{done:?}");
    assert_eq!(place.read("new/file"), "one\n");
    let done = undo(&place, &[]);
    assert!(done.code == 0 && done.out.contains("took back turn 1: make it · 4 files restored"), "{done:?}");
    assert!(done.out.contains("  D new/file\n") && done.out.contains("  A old\n"), "{done:?}");
    assert!(done.out.contains("not covered: what commands did outside of"), "{done:?}");
    assert_eq!((place.read("kept"), place.read("old")), ("before\n".into(), "before\n".into()));
    assert!(!place.folder().join("new").exists());
    let nothing = undo(&place, &[]);
    assert!(nothing.code == 1 && nothing.err.contains("undo.nothing"), "{nothing:?}");
    let nothing = undo(&place, &["--json"]);
    assert!(nothing.code == 1 && nothing.err.contains("undo.nothing"), "{nothing:?}");
    assert_eq!((&nothing.lines()[0]["turn"], &nothing.lines()[0]["files"]), (&Value::Null, &json!([])), "{nothing:?}");
    assert!(undo(&place, &["--list", "--json"]).lines().iter().all(|turn| turn["undone"] == true));

    let done = undo(&place, &["--redo"]);
    assert!(done.code == 0 && done.out.contains("did again turn 1"), "{done:?}");
    assert_eq!(place.read("new/file"), "one\n");
    assert_eq!(std::fs::read(place.folder().join("kept")).unwrap(), b"\0\x01");
    assert_eq!(undo(&place, &["--redo"]).code, 0);
    assert_eq!(place.read("new/file"), "two\n");
    place.assert_clean();
}

#[test]
fn what_was_changed_since_is_left_and_named() {
    let place = Place::new();
    two_turns(&place);
    place.write("new/file", "mine\n");
    let done = undo(&place, &[]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.out.contains("! new/file left as it is: changed since"), "{done:?}");
    assert_eq!(place.read("new/file"), "mine\n");
    // What is advised replaces it, and goes no turn further back.
    let advice = done.out.lines().last().unwrap().to_owned();
    let commands: Vec<&str> = advice.trim().split(" && ").collect();
    assert_eq!(commands.len(), 2, "{advice}");
    for command in commands {
        let done = Done::of(place.stele(command.split(' ').skip(1)));
        assert_eq!(done.code, 0, "{command}: {done:?}");
    }
    assert_eq!(place.read("new/file"), "one\n");
    let done = undo(&place, &["--overwrite", "--json"]);
    assert_eq!((done.code, done.lines()[0]["left"].as_array().unwrap().len()), (0, 0), "{done:?}");
    assert!(!place.folder().join("new").exists());
    // What the overwriting took is not lost.
    assert_eq!(undo(&place, &["--redo"]).code, 0);
    assert_eq!(undo(&place, &["--redo"]).code, 0);
    assert_eq!(place.read("new/file"), "mine\n");
    place.assert_clean();
}

#[test]
fn a_session_goes_on_from_where_it_was_taken_back_to() {
    let place = Place::new();
    two_turns(&place);
    assert_eq!(undo(&place, &[]).code, 0);
    let server = server(Script::new([Say::text("Gone on.")]));
    let done = Done::of(place.with(&server, ["run", "--continue", "and now"]));
    assert_eq!(done.code, 0, "{done:?}");
    let body = server.requests().last().unwrap().json().to_string();
    assert!(body.contains("make it") && body.contains("and now") && !body.contains("change it"), "{body}");
    assert_eq!(undo(&place, &["--redo"]).code, 1, "a new turn ends what can be done again");
    place.assert_clean();
    // What files were is exported and imported as any blob is.
    let session = place.sessions().remove(0);
    let file = place.path().join("export.jsonl");
    let exported = Done::of(place.stele(["sessions", "export", &session, "-o", file.to_str().unwrap()]));
    assert_eq!(exported.code, 0, "{exported:?}");
    let elsewhere = Place::new();
    assert_eq!(Done::of(elsewhere.stele(["sessions", "import", file.to_str().unwrap()])).code, 0);
    elsewhere.assert_clean();
    assert_eq!(Done::of(place.stele(["sessions", "gc"])).code, 0);
    assert_eq!(undo(&place, &[]).code, 0);
    assert_eq!(undo(&place, &[]).code, 0);
    assert_eq!(place.read("old"), "before\n", "what is cited is not collected");
}
