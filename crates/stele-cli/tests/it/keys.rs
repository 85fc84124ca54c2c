//! Esc, Ctrl-C, and what can be typed at a question.

use std::time::Duration;

use serde_json::json;
use stele_testkit::{Behaviour, Cut, Fault, FaultKind, ParsedRequest, Say, Script};

use crate::support::{Place, server};
use crate::terminal::Terminal;

#[test]
fn escape_stops_the_turn_and_an_empty_prompt_is_left_by_two_interrupts() {
    let place = Place::new();
    let stalled = Fault::always(FaultKind::Stall { at: Cut::Events(4) });
    let server = server(Behaviour::from(Say::text("One two three.")).fault(stalled));
    let mut terminal = Terminal::start(place.with(&server, ["begin"]));
    server.wait_for(1, Duration::from_secs(20)).unwrap();
    terminal.type_keys("\u{1b}");
    terminal.wait_for("stopped by you");
    terminal.wait_for("> ");
    terminal.interrupt();
    terminal.wait_for("Ctrl-C again leaves");
    terminal.wait_for("> ");
    // A line in between, and the first one is forgotten.
    terminal.type_line("/mode");
    terminal.wait_for("mode ask");
    terminal.wait_for("> ");
    terminal.interrupt();
    terminal.wait_for("Ctrl-C again leaves");
    terminal.wait_for("> ");
    terminal.interrupt();
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    place.assert_clean();
}

#[test]
fn an_arrow_is_no_escape() {
    let place = Place::new();
    let server = server(Script::new([Say::call("bash", &json!({"command": "touch made"})), Say::text("All done.")]));
    let mut terminal = Terminal::start(place.with(&server, ["make it"]));
    terminal.wait_for("[n]o");
    terminal.type_keys("\u{1b}[D");
    terminal.type_line("y");
    terminal.wait_for("All done.");
    terminal.type_line("/quit");
    assert_eq!(terminal.end().0, 0);
    assert!(place.folder().join("made").exists());
}

#[test]
fn the_mode_is_set_at_a_question_and_answers_what_needs_none_in_it() {
    let place = Place::new();
    let write = |name: &str| Say::call("write", &json!({"path": name, "content": "x\n"}));
    let server = server(Script::new([write("one"), write("two"), Say::text("All done.")]));
    let mut terminal = Terminal::start(place.with(&server, ["make them"]));
    terminal.wait_for("[a]lways, a PATTERN, [n]o");
    terminal.type_line("/mode ask");
    terminal.wait_for("[n]o");
    terminal.type_line("/mode edit");
    terminal.wait_for("All done.");
    terminal.type_line("/quit");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert_eq!((place.read("one"), place.read("two")), ("x\n".to_owned(), "x\n".to_owned()), "{seen}");
    place.assert_clean();
}

#[test]
fn a_change_that_was_asked_about_is_shown_once() {
    let place = Place::new();
    let server = server(Script::new([
        Say::call("write", &json!({"path": "made", "content": "unmistakable\n"})),
        Say::text("All done."),
    ]));
    let mut terminal = Terminal::start(place.with(&server, ["make it"]));
    terminal.wait_for("[n]o");
    terminal.type_line("y");
    terminal.wait_for("All done.");
    terminal.type_line("/quit");
    let (_, seen) = terminal.end();
    assert_eq!(seen.matches("unmistakable").count(), 1, "{seen}");
    assert_eq!(place.read("made"), "unmistakable\n");
}

#[test]
fn a_question_without_always_names_the_part_that_no_rule_covers() {
    let place = Place::new();
    let server = server(Script::new([
        Say::call("bash", &json!({"command": "touch made && rm -f x*.o"})),
        Say::text("All done."),
    ]));
    let mut terminal = Terminal::start(place.with(&server, ["make it"]));
    terminal.wait_for("what `rm -f x*.o` does is only known");
    terminal.wait_for("always is no answer here");
    terminal.wait_for("[n]o");
    terminal.type_line("n");
    terminal.wait_for("All done.");
    terminal.type_line("/quit");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn another_session_begins_inside() {
    let place = Place::new();
    let server = server(Behaviour::answering(|_: &ParsedRequest| Say::text("I see.").into()));
    let mut terminal = Terminal::start(place.with(&server, ["peel the apples"]));
    terminal.wait_for("I see.");
    terminal.wait_for("> ");
    terminal.type_line("/new");
    terminal.wait_for("to go back:");
    terminal.wait_for("mode ask");
    terminal.wait_for("> ");
    terminal.type_line("peel the pears");
    terminal.wait_for("I see.");
    terminal.wait_for("> ");
    terminal.type_line("/exit");
    assert_eq!(terminal.end().0, 0);
    assert_eq!(place.sessions().len(), 2);
    let sent = String::from_utf8_lossy(&server.requests()[1].body).into_owned();
    assert!(sent.contains("the pears") && !sent.contains("the apples"), "{sent}");
    place.assert_clean();
}
