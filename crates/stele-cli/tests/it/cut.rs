//! The question about a new cache prefix, where something waits for one.

use serde_json::json;
use stele_core::Wire;
use stele_testkit::{Behaviour, Say, Script};

use crate::support::{Done, Place, server};
use crate::terminal::Terminal;

#[test]
fn what_waits_is_asked_about_again_once_a_turn_is_taken_back() {
    for (answer, reason) in [("n", "undo"), ("y", "system_changed")] {
        let place = Place::new();
        let server = server(Behaviour::in_order(Script::new([Say::text("one"), Say::text("two"), Say::text("three")])));
        let configure = |more: &str| {
            std::fs::create_dir_all(place.home()).unwrap();
            let text = format!("cache.warn_above = \"10 tokens\"\n{more}");
            std::fs::write(place.home().join("config.toml"), text).unwrap();
        };
        configure("");
        let done = Done::of(place.with(&server, ["run", "begin"]));
        assert_eq!(done.code, 0, "{done:?}");
        let id = place.sessions().remove(0);

        configure("agent.persona = \"Be brief.\"\n");
        let mut terminal = Terminal::start(place.with(&server, ["--resume", &id]));
        terminal.wait_for("keep it as it was: ");
        terminal.type_line("n");
        terminal.wait_for("taken at the next cut");
        terminal.wait_for("> ");
        terminal.type_line("say more");
        terminal.wait_for("two");
        terminal.wait_for("> ");
        terminal.type_line("/undo");
        terminal.wait_for("the next request begins a new cache prefix");
        terminal.wait_for("another system text (persona); about ");
        terminal.wait_for("keep it as it was: ");
        assert_eq!(server.requests().len(), 2, "nothing is sent before the answer");
        terminal.type_line(answer);
        terminal.wait_for("> ");
        terminal.type_line("and now?");
        terminal.wait_for("three");
        terminal.wait_for("> ");
        terminal.type_line("/quit");
        let (code, seen) = terminal.end();
        assert_eq!(code, 0, "{seen}");

        let last = server.requests().pop().unwrap();
        assert_eq!(String::from_utf8_lossy(&last.body).contains("Be brief."), answer == "y");
        let report = Done::of(place.stele(["cache", "report", &id, "--json"])).lines();
        let cut = report.iter().rev().find(|line| line["verdict"].is_object()).unwrap();
        assert_eq!(cut["verdict"]["reason"], reason, "{cut}");
        place.assert_clean();
    }
}

#[test]
fn going_back_to_a_model_reads_and_predicts_what_it_answered_last() {
    let place = Place::new();
    place.write("AGENTS.md", "A rule of this project.\n".repeat(300));
    (0..30).for_each(|at| place.write(&format!("f{at}.txt"), format!("line of file {at}\n").repeat(30)));
    let reads = (0..30).fold(Say::default(), |say, at| say.and_call("read", &json!({"path": format!("f{at}.txt")})));
    let script = Script::new([Say::text("planned"), reads, Say::text("worked"), Say::text("judged")]);
    let server = server(Behaviour::in_order(script));
    let run = |arguments: &[&str]| {
        let done = Done::of(place.with(&server, arguments.iter().copied()));
        assert_eq!(done.code, 0, "{done:?}");
        done
    };
    run(&["run", "-m", "planner", "plan"]);
    let id = place.sessions().remove(0);
    run(&["run", "--resume", &id, "-m", "worker", "work"]);
    run(&["run", "--resume", &id, "-m", "planner", "judge"]);
    let lines = Done::of(place.stele(["cache", "report", &id, "--json"])).lines();
    let [planned, .., judged, _] = lines.as_slice() else { panic!("{lines:?}") };
    let input = planned["input"].as_u64().unwrap();
    assert_eq!(judged["reported"], input, "{judged}");
    let predicted = judged["predicted"].as_u64().unwrap();
    assert!(predicted.abs_diff(input) <= input / 50, "{predicted} of {input}: {judged}");
    // What the way to the other model lost is that cut's; the way back loses nothing.
    assert_eq!(judged["lost"], 0, "{judged}");
    place.assert_clean();
}

#[test]
fn a_longer_life_that_a_wire_cannot_ask_for_is_said_to_do_nothing() {
    let place = Place::new();
    std::fs::create_dir_all(place.home()).unwrap();
    std::fs::write(place.home().join("config.toml"), "cache.ttl = \"1h\"\n").unwrap();
    for (wire, said) in [(Wire::AnthropicMessages, 0), (Wire::OpenaiResponses, 1)] {
        let server = server(Behaviour::from(Script::new([Say::text("ok")])));
        let told = |done: &Done| format!("{}{}", done.out, done.err).matches("cache.ttl = \"1h\" does nothing").count();
        let done = Done::of(place.on(&server, wire, ["run", "hi"]));
        assert_eq!((done.code, told(&done)), (0, said), "{wire}: {done:?}");
        assert_eq!(told(&Done::of(place.on(&server, wire, ["doctor"]))), said, "{wire}");
        let mut terminal = Terminal::start(place.on(&server, wire, []));
        terminal.wait_for("> ");
        terminal.type_line("/quit");
        let (code, seen) = terminal.end();
        assert_eq!((code, seen.matches("! skipped: cache.ttl = \"1h\" does nothing").count()), (0, said), "{seen}");
    }
}

#[test]
fn a_question_that_a_signal_ends_is_over() {
    let place = Place::new();
    std::fs::create_dir_all(place.home()).unwrap();
    std::fs::write(place.home().join("config.toml"), "cache.warn_above = \"10 tokens\"\n").unwrap();
    let server = server(Behaviour::in_order(Script::new([Say::text("one"), Say::text("two")])));
    let done = Done::of(place.with(&server, ["run", "begin"]));
    assert_eq!(done.code, 0, "{done:?}");
    let mut terminal = Terminal::start(place.with(&server, ["--continue"]));
    terminal.wait_for("> ");
    terminal.type_line("/model other");
    terminal.wait_for("[n]o: ");
    terminal.type_keys("y");
    terminal.wait_for("y");
    terminal.interrupt();
    terminal.wait_for("not switched");
    terminal.wait_for("> ");
    // Half an answer is no beginning of a prompt, and what was sent before comes back.
    terminal.type_line("\u{1b}[A\u{1b}[A, again");
    terminal.wait_for("two");
    terminal.wait_for("> ");
    terminal.type_line("/quit");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    let last = server.requests().pop().unwrap().json();
    assert_eq!(last["model"], "scripted");
    assert!(last["messages"].to_string().contains("\"begin, again\""), "{}", last["messages"]);
}
