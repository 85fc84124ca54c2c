//! Which session goes on, with which model, and what is asked again.

use std::process::Command;

use stele_core::Wire;
use stele_testkit::{Behaviour, ParsedRequest, Say, Server};

use crate::support::{Done, Place, server};

const WIRE: Wire = Wire::OpenaiChat;

fn answers() -> Server {
    server(Behaviour::answering(|_: &ParsedRequest| Say::text("Done.").into()))
}

fn locked() -> Server {
    server(Behaviour::answering(|_: &ParsedRequest| Say::text("Done.").into()).require_key("right"))
}

fn body(server: &Server, request: usize) -> String {
    String::from_utf8_lossy(&server.requests()[request].body).into_owned()
}

/// A run with a key.
fn keyed(place: &Place, server: &Server, key: &str, arguments: &[&str]) -> Done {
    let mut command = place.on(server, WIRE, arguments.iter().copied());
    command.env("STELE_API_KEY", key);
    Done::of(command)
}

#[test]
fn a_session_keeps_its_model_and_says_so_where_another_one_is_set() {
    let (place, server) = (Place::new(), answers());
    let other = |arguments: &[&'static str]| -> Command {
        let mut command = place.on(&server, WIRE, arguments.iter().copied());
        command.env("STELE_MODEL", "other");
        command
    };
    let first = Done::of(place.on(&server, WIRE, ["run", "one"]));
    assert!(first.err.contains("model    env/scripted") && !first.err.contains("goes on with"), "{first:?}");

    let note =
        "this session goes on with env/scripted; env/other, set by STELE_MODEL, is for new sessions: -m env/other";
    let kept = Done::of(other(&["run", "--continue", "two"]));
    assert!(kept.err.replace("\n  ", " ").contains(note), "{kept:?}");
    assert!(body(&server, 1).contains("\"scripted\"") && !body(&server, 1).contains("\"other\""));
    let result = Done::of(other(&["run", "--json", "--continue", "three"])).result();
    assert!(result["skipped"][0].as_str().unwrap().starts_with(note), "{result}");
    assert_eq!(result["model"], "env/scripted");

    let explained = Done::of(other(&["config", "--explain", "model"]));
    assert!(explained.out.contains("a new session asks other at"), "{explained:?}");
    let taken = Done::of(other(&["run", "--continue", "-m", "env/other", "four"]));
    assert!(!taken.err.contains("goes on with") && body(&server, 3).contains("\"other\""), "{taken:?}");
    place.assert_clean();
}

#[test]
fn another_server_is_asked_for_its_own_model() {
    let (place, here, there) = (Place::new(), answers(), answers());
    assert_eq!(Done::of(place.on(&here, WIRE, ["run", "one"])).code, 0);
    let mut moved = place.on(&there, WIRE, ["run", "--continue", "two"]);
    moved.env("STELE_MODEL", "other");
    let moved = Done::of(moved);
    assert!(moved.code == 0 && moved.err.contains("another model or route"), "{moved:?}");
    assert!(body(&there, 0).contains("\"other\"") && !body(&there, 0).contains("\"scripted\""));
    // The same model at another address stays.
    let (place, again) = (Place::new(), answers());
    assert_eq!(Done::of(place.on(&here, WIRE, ["run", "one"])).code, 0);
    assert_eq!(Done::of(place.on(&again, WIRE, ["run", "--continue", "two"])).code, 0);
    assert!(body(&again, 0).contains("\"scripted\""));
    place.assert_clean();
}

#[test]
fn what_no_model_answered_is_asked_again_without_being_typed() {
    let (place, server) = (Place::new(), locked());
    assert_eq!(keyed(&place, &server, "right", &["run", "the first"]).code, 0);
    let failed = keyed(&place, &server, "wrong", &["run", "--continue", "a long prompt"]);
    assert!(failed.code == 1 && failed.err.contains("again    stele run --resume "), "{failed:?}");

    let again = keyed(&place, &server, "right", &["run", "--continue"]);
    assert!(again.code == 0 && again.out == "Done.\n", "{again:?}");
    assert!(again.err.contains("asking again: a long prompt"), "{again:?}");
    let sent = body(&server, 2);
    assert_eq!((sent.matches("a long prompt").count(), sent.matches("(interrupted)").count()), (1, 0), "{sent}");
    assert_eq!(place.sessions().len(), 1);
    let nothing = keyed(&place, &server, "right", &["run", "--continue"]);
    assert!(nothing.code == 0 && nothing.err.contains("nothing is owed"), "{nothing:?}");
    assert_eq!(server.requests().len(), 3);
    place.assert_clean();
}

#[test]
fn a_session_in_which_no_model_answered_is_passed_over() {
    let (place, server) = (Place::new(), locked());
    assert_eq!(keyed(&place, &server, "right", &["run", "the work"]).code, 0);
    assert_eq!(keyed(&place, &server, "wrong", &["run", "in vain"]).code, 1);
    let vain = place.sessions()[0].clone();

    let gone_on = keyed(&place, &server, "right", &["run", "--continue", "and more"]);
    assert!(gone_on.code == 0 && gone_on.err.contains(&format!("session {vain} is passed over")), "{gone_on:?}");
    let sent = body(&server, 2);
    assert!(sent.contains("the work") && !sent.contains("in vain"), "{sent}");
    // By its name it goes on all the same, and where there is no other it is the latest.
    assert_eq!(keyed(&place, &server, "right", &["run", "--resume", &vain]).code, 0);
    assert!(body(&server, 3).contains("in vain"));
    let alone = Place::new();
    assert_eq!(keyed(&alone, &server, "wrong", &["run", "in vain"]).code, 1);
    let only = keyed(&alone, &server, "right", &["run", "--continue", "once more"]);
    assert!(only.code == 0 && !only.err.contains("passed over"), "{only:?}");
    place.assert_clean();
}
