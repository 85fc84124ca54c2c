//! Ctrl-C once and twice, and a polite end.

use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use stele_testkit::{Behaviour, Cut, Fault, FaultKind, Say, Script};

use crate::support::{Done, Place, server};

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id().try_into().unwrap()).unwrap(), signal).unwrap();
}

fn stalls() -> Behaviour {
    Behaviour::from(Say::text("One two three four.")).fault(Fault::at(
        0,
        1..=9,
        FaultKind::Stall { at: Cut::Events(4) },
    ))
}

#[test]
fn the_first_ends_the_turn_cleanly_and_the_session_goes_on() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let place = Place::new();
        let server = server(stalls());
        let child = place.with(&server, ["run", "--json", "hi"]).spawn().unwrap();
        server.wait_for(1, Duration::from_secs(20)).unwrap();
        send(&child, signal);
        let done = Done::wait(child);
        let result = done.result();
        assert_eq!(
            (done.code, &result["status"], &result["stop"]),
            (130, &json!("cancelled"), &json!("aborted")),
            "{done:?}"
        );
        place.assert_clean();
    }
}

#[test]
fn a_tool_is_stopped_and_its_result_says_so() {
    let place = Place::new();
    let server = server(Script::new([
        Say::call("bash", &json!({"command": "echo started > started; sleep 60; echo survived > survived"})),
        Say::text("x"),
    ]));
    let child = place.with(&server, ["run", "--json", "--mode", "full", "hi"]).spawn().unwrap();
    while !place.folder().join("started").exists() {
        std::thread::yield_now();
    }
    send(&child, Signal::INT);
    let done = Done::wait(child);
    assert_eq!(done.code, 130, "{done:?}");
    assert_eq!(done.result()["executions"], 1);
    assert!(!place.folder().join("survived").exists());
    place.assert_clean();
}

#[test]
fn the_second_ends_at_once_with_the_last_line() {
    let place = Place::new();
    // A command that does not hear TERM keeps the first Ctrl-C waiting.
    let server = server(Script::new([
        Say::call("bash", &json!({"command": "trap '' TERM; echo started > started; while :; do sleep 1; done"})),
        Say::text("x"),
    ]));
    let child = place.with(&server, ["run", "--json", "--mode", "full", "hi"]).spawn().unwrap();
    while !place.folder().join("started").exists() {
        std::thread::yield_now();
    }
    send(&child, Signal::INT);
    send(&child, Signal::TERM);
    let done = Done::wait(child);
    assert_eq!((done.code, &done.result()["status"]), (130, &json!("cancelled")), "{done:?}");
    // The call that was left has its title, and its code once.
    let done = Done::of(place.with(&server, ["run", "--continue", "and now?"]));
    assert!(done.err.contains("$ trap '' TERM") && done.err.matches("outcome_unknown").count() == 1, "{done:?}");
    place.assert_clean();
}
