//! What is typed and pasted at a terminal: what it may do, and what it may not.

use std::time::Duration;

use serde_json::json;
use stele_testkit::{Behaviour, Cut, Fault, FaultKind, ParsedRequest, Received, Say, Script};

use crate::support::{Place, server};
use crate::terminal::{Terminal, modes};

/// A call that asks, after which nothing is left; the first answer waits to be released.
fn makes_a_file_late() -> Behaviour {
    Behaviour::from(Script::new([Say::call("bash", &json!({"command": "touch made"})), Say::text("All done.")]))
        .fault(Fault::at(0, 1..=1, FaultKind::Stall { at: Cut::Start }))
}

const WAIT: Duration = Duration::from_secs(20);

fn texts(request: &Received) -> String {
    request.json()["messages"].to_string()
}

#[test]
fn what_was_typed_before_a_question_does_not_answer_it() {
    let place = Place::new();
    let server = server(makes_a_file_late());
    let mut terminal = Terminal::start(place.with(&server, ["run", "make it"]));
    server.wait_for(1, WAIT).unwrap();
    terminal.type_line("y");
    terminal.wait_for("y\r\n");
    server.release();
    terminal.wait_for("[n]o");
    terminal.type_line("n");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("refused by you") && !place.folder().join("made").exists(), "{seen}");
}

#[test]
fn at_the_line_interface_an_early_line_steers_and_half_a_line_is_given_back() {
    let place = Place::new();
    let server = server(makes_a_file_late());
    let mut terminal = Terminal::start(place.with(&server, []));
    terminal.wait_for("> ");
    terminal.type_line("make it");
    server.wait_for(1, WAIT).unwrap();
    terminal.type_line("y");
    terminal.wait_for("at its next step");
    terminal.type_keys("yes and");
    terminal.wait_for("yes and");
    server.release();
    terminal.wait_for("not taken: yes and)");
    terminal.wait_for("[n]o");
    assert!(!place.folder().join("made").exists());
    terminal.type_line("n");
    terminal.wait_for("refused by you");
    terminal.wait_for("> ");
    terminal.type_line("/quit");
    assert_eq!(terminal.end().0, 0);
    assert!(!place.folder().join("made").exists());
}

#[test]
fn a_paste_at_a_question_is_no_answer() {
    let place = Place::new();
    let server = server(Script::new([Say::call("bash", &json!({"command": "touch made"})), Say::text("All done.")]));
    let mut terminal = Terminal::start(place.with(&server, []));
    terminal.wait_for("> ");
    terminal.type_line("make it");
    terminal.wait_for("[n]o");
    terminal.paste("notes for you:\ny\na\n");
    terminal.type_line("");
    terminal.wait_for("type the answer");
    terminal.wait_for("[n]o");
    terminal.paste("y");
    terminal.type_line("");
    terminal.wait_for("type the answer");
    terminal.wait_for("[n]o");
    // From a terminal that does not say what is pasted.
    terminal.type_keys("notes for you:\ny\nmore\n");
    terminal.wait_for("more");
    terminal.type_line("");
    terminal.wait_for("type the answer");
    terminal.wait_for("[n]o");
    terminal.paste("/mode full");
    terminal.type_line("");
    terminal.wait_for("type the answer");
    terminal.wait_for("[n]o");
    terminal.type_line("/undo");
    terminal.wait_for("once the question is answered");
    terminal.wait_for("[n]o");
    terminal.type_line("n");
    terminal.wait_for("All done.");
    terminal.wait_for("> ");
    terminal.type_line("/quit");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert!(!place.folder().join("made").exists() && server.requests().len() == 2, "{seen}");
}

#[test]
fn a_paste_is_one_message_as_it_stands_and_never_a_command() {
    let place = Place::new();
    let server = server(Behaviour::answering(|_: &ParsedRequest| Say::text("I see.").into()));
    let mut terminal = Terminal::start(place.with(&server, []));
    terminal.wait_for("\u{1b}[?2004h");
    terminal.wait_for("> ");
    let text = "fix this error:\n\nTraceback:\n/mode full\n  File \"x\"\n\tbye\n";
    terminal.paste(text);
    terminal.type_line("");
    terminal.wait_for("I see.");
    terminal.wait_for("> ");
    terminal.paste("/mode full");
    terminal.type_line("");
    terminal.wait_for("I see.");
    terminal.wait_for("> ");
    terminal.type_keys("notes:\n/mode full\nmore\n");
    terminal.wait_for("I see.");
    terminal.wait_for("> ");
    terminal.type_line("/mode");
    terminal.wait_for("mode ask");
    terminal.type_line("/quit");
    let (code, seen) = terminal.end();
    assert!(code == 0 && seen.contains("\u{1b}[?2004l"), "{seen}");
    let sent = server.requests();
    assert_eq!(sent.len(), 3, "{seen}");
    for (request, text) in sent.iter().zip([text, "/mode full", "notes:\n/mode full\nmore"]) {
        assert!(texts(request).contains(&json!(text).to_string()), "{text:?}: {}", texts(request));
    }
    place.assert_clean();
}

#[test]
fn a_long_paste_comes_whole() {
    let place = Place::new();
    let server = server(Behaviour::answering(|_: &ParsedRequest| Say::text("I see.").into()));
    let mut terminal = Terminal::start(place.with(&server, []));
    terminal.wait_for("> ");
    let text: String = (0..20_000).map(|at| format!("line {at} of a log\n")).collect();
    terminal.paste(&text);
    terminal.wait_for("line 19999 of a log");
    terminal.type_line("what is wrong?");
    terminal.wait_for("I see.");
    terminal.wait_for("> ");
    terminal.type_line("/quit");
    assert_eq!(terminal.end().0, 0);
    let sent = json!(format!("{text}what is wrong?")).to_string();
    assert!(texts(&server.requests()[0]).contains(&sent));
}

#[test]
fn a_command_that_waits_says_so_and_one_that_is_pasted_is_text() {
    let place = Place::new();
    let server = server(
        Behaviour::from(Script::new([Say::call("glob", &json!({"pattern": "*"})), Say::text("I heard you.")]))
            .fault(Fault::at(0, 1..=1, FaultKind::Stall { at: Cut::Start })),
    );
    let mut terminal = Terminal::start(place.with(&server, []));
    terminal.wait_for("> ");
    terminal.type_line("look");
    server.wait_for(1, WAIT).unwrap();
    terminal.paste("a log:\n/mode full\n");
    terminal.type_line("");
    terminal.wait_for("at its next step");
    terminal.type_line("/mode edit");
    terminal.wait_for("/mode edit waits: it is done when this turn is over");
    server.release();
    terminal.wait_for("I heard you.");
    terminal.wait_for("> /mode edit");
    terminal.wait_for("mode edit");
    terminal.wait_for("> ");
    terminal.type_line("/quit");
    assert_eq!(terminal.end().0, 0);
    assert!(texts(&server.requests()[1]).contains(r"a log:\n/mode full\n"));
}

#[test]
fn a_paste_tells_the_agent_what_it_asked_once_enter_is_pressed_behind_it() {
    let place = Place::new();
    let ask = |question: &str| Say::call("ask", &json!({"questions": [{"question": question}]}));
    let server = server(
        Behaviour::from(Script::new([ask("What does it say?"), ask("And now?"), ask("Last?"), Say::text("All done.")]))
            .fault(Fault::at(0, 1..=1, FaultKind::Stall { at: Cut::Start })),
    );
    let mut terminal = Terminal::start(place.with(&server, []));
    terminal.wait_for("> ");
    terminal.type_line("make it");
    server.wait_for(1, WAIT).unwrap();
    // A paste that begins before the question is none of its answer, wherever it ends.
    terminal.type_keys("\u{1b}[200~early\rlines");
    terminal.wait_for("lines");
    server.release();
    terminal.wait_for("your answer: ");
    terminal.type_keys(" late\rlines\u{1b}[201~\u{1b}[200~error:\r  at 1\u{1b}[201~");
    terminal.wait_for("  at 1");
    assert_eq!(server.requests().len(), 1, "nothing is answered yet");
    terminal.type_line("");
    terminal.wait_for("And now?");
    terminal.wait_for("your answer: ");
    // From a terminal that does not say what is pasted.
    terminal.type_keys("error:\n  at 2\n");
    terminal.wait_for("  at 2");
    terminal.type_line(" or so");
    terminal.wait_for("Last?");
    terminal.wait_for("your answer: ");
    terminal.type_line("no");
    terminal.wait_for("All done.");
    terminal.wait_for("> ");
    terminal.type_line("/quit");
    assert_eq!(terminal.end().0, 0);
    let sent = server.requests();
    let answers: Vec<_> = sent.iter().skip(1).map(texts).collect();
    assert!(answers[0].contains("at 1"), "{}", answers[0]);
    assert!(!answers[0].contains("late"), "{}", answers[0]);
    assert!(answers[1].contains("at 2 or so"), "{}", answers[1]);
}

#[test]
fn a_line_is_edited_where_the_cursor_is_and_earlier_ones_come_back() {
    let place = Place::new();
    let server = server(Behaviour::answering(|_: &ParsedRequest| Say::text("I see.").into()));
    let said = |lines: &[&str]| {
        let mut terminal = Terminal::start(place.with(&server, []));
        terminal.wait_for("> ");
        for line in lines {
            let before = server.requests().len();
            terminal.type_line(line);
            terminal.wait_for("I see.");
            terminal.wait_for("> ");
            assert_eq!(server.requests().len(), before + 1);
        }
        terminal.type_line("/quit");
        let (code, seen) = terminal.end();
        assert!(code == 0 && !seen.contains("^["), "{seen}");
    };
    said(&[
        "he\u{1b}[Dxl\u{c}\u{7f}\u{7f}h\u{1b}[Fllo",
        "\u{6f22}\u{5b57} two\u{1b}[H\u{1b}[Cx",
        "\u{1b}[200~/mode full\u{1b}[201~",
        "\u{1b}[A\u{1b}[A\u{1b}[A, again",
    ]);
    // Another session of this folder; what was no command is none when it comes again.
    said(&["\u{1b}[A", "\u{10}\u{10}", "half\u{1b}[A\u{1b}[B line"]);
    let first = |request: &Received| {
        let messages = request.json()["messages"].as_array().unwrap().clone();
        messages.iter().rfind(|message| message["role"] == "user").unwrap()["content"].to_string()
    };
    let sent: Vec<String> = server.requests().iter().map(first).collect();
    let expect =
        ["hhello", "\u{6f22}x\u{5b57} two", "/mode full", "hhello, again", "hhello, again", "/mode full", "half line"];
    assert_eq!(sent.len(), expect.len());
    for (sent, expect) in sent.iter().zip(expect) {
        assert!(sent.contains(&json!(expect).to_string()), "{expect}: {sent}");
    }
}

#[test]
fn what_stands_in_the_line_stays_there_when_the_turn_is_over() {
    let place = Place::new();
    let server = server(Behaviour::answering(|_: &ParsedRequest| Say::text("I see.").into()).fault(Fault::at(
        0,
        1..=1,
        FaultKind::Stall { at: Cut::Start },
    )));
    let mut terminal = Terminal::start(place.with(&server, []));
    terminal.wait_for("> ");
    terminal.type_line("look");
    server.wait_for(1, WAIT).unwrap();
    terminal.type_keys("and th\u{1b}[D");
    terminal.wait_for("and th");
    server.release();
    terminal.wait_for("I see.");
    terminal.wait_for("and th");
    terminal.wait_for("> \u{1b}[0mand th");
    terminal.type_line("\u{1b}[Cen");
    terminal.wait_for("I see.");
    terminal.wait_for("> ");
    terminal.type_line("/quit");
    assert_eq!(terminal.end().0, 0);
    assert!(texts(&server.requests()[1]).contains("\"and then\""), "{}", texts(&server.requests()[1]));
}

#[test]
fn half_a_line_is_cleared_and_never_sent() {
    let place = Place::new();
    let server = server(Behaviour::answering(|_: &ParsedRequest| Say::text("I see.").into()));
    let mut terminal = Terminal::start(place.with(&server, []));
    terminal.wait_for("> ");
    terminal.type_keys("half");
    terminal.wait_for("half");
    terminal.interrupt();
    terminal.wait_for("\r\n");
    terminal.wait_for("> ");
    terminal.type_keys("other\u{4}\u{4}");
    terminal.wait_for("other");
    terminal.type_line("\u{15}exit");
    terminal.wait_for("/quit, or Ctrl-D, leaves");
    terminal.type_line("/modle");
    terminal.wait_for("did you mean /model?");
    assert!(server.requests().is_empty());
    terminal.type_line("/tmp/a.txt is broken");
    terminal.wait_for("I see.");
    terminal.wait_for("> ");
    terminal.type_line("//mode is a word");
    terminal.wait_for("I see.");
    terminal.wait_for("> ");
    terminal.interrupt();
    terminal.wait_for("Ctrl-C again leaves");
    terminal.interrupt();
    assert_eq!(terminal.end().0, 0);
    let sent = server.requests();
    assert_eq!(sent.len(), 2);
    assert!(texts(&sent[0]).contains("\"/tmp/a.txt is broken\"") && texts(&sent[1]).contains("\"/mode is a word\""));
}

#[test]
fn the_terminal_is_left_as_it_was() {
    use rustix::process::Signal;

    for signal in [None, Some(Signal::TERM), Some(Signal::HUP)] {
        let place = Place::new();
        let server = server(Behaviour::answering(|_: &ParsedRequest| Say::text("I see.").into()));
        let mut terminal = Terminal::start(place.with(&server, []));
        let (before, screen) = (terminal.modes, terminal.screen());
        terminal.wait_for("> ");
        assert_ne!(modes(&screen), before);
        match signal {
            Some(signal) => terminal.signal(signal),
            None => terminal.type_line("/quit"),
        }
        terminal.wait_for("\u{1b}[?2004l");
        terminal.end();
        assert_eq!(modes(&screen), before, "{signal:?}");
    }
}

#[test]
fn a_model_that_takes_its_time_is_waited_for_in_words() {
    let place = Place::new();
    let server = server(makes_a_file_late());
    let mut terminal = Terminal::start(place.with(&server, ["make it"]));
    terminal.wait_for("> \u{1b}[0mmake it");
    terminal.wait_for("waiting for the model");
    server.release();
    terminal.wait_for("[n]o");
    terminal.type_line("n");
    terminal.wait_for("All done.");
    terminal.wait_for("> ");
    terminal.type_line("/quit");
    assert_eq!(terminal.end().0, 0);

    let mut terminal = Terminal::start(place.with(&server, ["-c"]));
    terminal.wait_for("began with: make it");
    terminal.wait_for("last answer: All done.");
    terminal.wait_for("> ");
    terminal.type_line("/quit");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn jobs_are_listed_looked_at_and_stopped_and_their_ends_are_told() {
    let place = Place::new();
    let job = |command: &str| Say::call("bash", &json!({"command": command, "background": true}));
    let server = server(
        Behaviour::from(Script::new([
            job("echo first; until [ -e gate ]; do sleep 0.05; done; exit 3"),
            job("echo second; sleep 300"),
            Say::text("Started."),
            Say::text("I know."),
        ]))
        .fault(Fault::at(2, 1..=1, FaultKind::Stall { at: Cut::Start })),
    );
    let mut terminal = Terminal::start(place.with(&server, ["--mode", "full"]));
    terminal.wait_for("> ");
    terminal.type_line("/jobs");
    terminal.wait_for("nothing was started in the background");
    terminal.type_line("start them");
    server.wait_for(3, WAIT).unwrap();
    // While the agent works as well.
    terminal.type_line("/jobs");
    terminal.wait_for("j1: running, ");
    terminal.wait_for("j2: running, ");
    terminal.type_line("/cost");
    let cost = terminal.line_with("so far here: 2 steps");
    assert!(cost.contains(" from cache"), "{cost}");
    server.release();
    terminal.wait_for("Started.");
    terminal.wait_for("> ");
    terminal.type_line("/jobs j1");
    terminal.wait_for("[j1: running, ");
    terminal.type_line("/jobs j9");
    terminal.wait_for("there is no job j9 here; known: j1, j2");
    // Told while something stands in the line, which stays there.
    terminal.wait_for("> ");
    terminal.type_keys("half");
    terminal.wait_for("half");
    place.write("gate", "");
    terminal.wait_for("· j1: exit 3");
    terminal.wait_for("half");
    terminal.type_line("\u{15}/jobs j1");
    terminal.wait_for("first\r\n[j1: exit 3");
    terminal.type_line("/jobs stop j2");
    terminal.wait_for("· j2: stopped: cancelled");
    terminal.type_line("/jobs stop j2");
    terminal.wait_for("j2 has ended already");
    terminal.type_line("and now?");
    terminal.wait_for("I know.");
    terminal.wait_for("> ");
    terminal.type_line("/quit");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    let last = texts(server.requests().last().unwrap());
    assert!(last.contains("j1: exit 3") && last.contains("j2: stopped: cancelled"), "the model is told too: {last}");
    place.assert_clean();
}
