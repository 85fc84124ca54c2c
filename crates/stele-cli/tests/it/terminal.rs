//! What needs a terminal: questions, the line interface, colours. The terminal is a pseudo-terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{InputModes, LocalModes};
use serde_json::json;
use stele_testkit::{Behaviour, Cut, Fault, FaultKind, Say, Script};

use crate::support::{Done, Place, server};

/// A program at a terminal.
pub struct Terminal {
    child: Child,
    screen: File,
    seen: String,
    /// How much of it was waited for already.
    known: usize,
    /// How keys were treated before the program began.
    pub modes: (InputModes, LocalModes),
}

/// Longest wait for something to be shown; only a defect waits so long.
const PATIENCE: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

impl Terminal {
    pub fn start(command: Command) -> Self {
        Self::of_columns(80, command)
    }

    pub fn of_columns(columns: u16, mut command: Command) -> Self {
        let screen: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        resize(&screen, columns);
        let modes = modes(&screen);
        let name = ptsname(&screen, Vec::new()).unwrap();
        let side = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let child = command
            .env("TERM", "xterm")
            .stdin(side.try_clone().unwrap())
            .stdout(side.try_clone().unwrap())
            .stderr(side)
            .spawn()
            .unwrap();
        // The command's own copies of the terminal's side would keep it open.
        drop(command);
        Self { child, screen: screen.into(), seen: String::new(), known: 0, modes }
    }

    /// Reads until this is there, after what was waited for before.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        loop {
            if let Some(at) = self.seen[self.known..].find(text) {
                self.known += at + text.len();
                return;
            }
            assert!(self.more(), "{text:?} never came:\n{}", self.seen);
        }
    }

    /// Waits for a text and reads to the end of its line; gives both.
    #[track_caller]
    pub fn line_with(&mut self, text: &str) -> String {
        self.wait_for(text);
        let from = self.known;
        self.wait_for("\r\n");
        format!("{text}{}", &self.seen[from..self.known])
    }

    /// Reads what comes next; false at the end, and when nothing comes.
    pub fn more(&mut self) -> bool {
        let mut ready = [PollFd::new(&self.screen, PollFlags::IN)];
        if poll(&mut ready, Some(&PATIENCE)).unwrap() == 0 {
            return false;
        }
        let mut piece = [0; 4096];
        match self.screen.read(&mut piece) {
            Ok(0) | Err(_) => false,
            Ok(read) => {
                self.seen.push_str(&String::from_utf8_lossy(&piece[..read]));
                true
            }
        }
    }

    pub fn type_line(&mut self, line: &str) {
        self.type_keys(&format!("{line}\n"));
    }

    /// Hands over keys as they are, all at once.
    pub fn type_keys(&mut self, keys: &str) {
        self.screen.write_all(keys.as_bytes()).unwrap();
    }

    /// Pastes as a terminal does that was asked to mark it.
    pub fn paste(&mut self, text: &str) {
        self.type_keys(&format!("\u{1b}[200~{}\u{1b}[201~", text.replace('\n', "\r")));
    }

    /// The terminal itself, to look at it when the program is gone.
    pub fn screen(&self) -> File {
        self.screen.try_clone().unwrap()
    }

    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id().try_into().unwrap()).unwrap(), signal).unwrap();
    }

    /// Reads to the end; gives the exit code.
    pub fn end(mut self) -> (i32, String) {
        while self.more() {}
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        (code, std::mem::take(&mut self.seen))
    }
}

/// How a terminal treats keys now.
pub fn modes(screen: impl std::os::fd::AsFd) -> (InputModes, LocalModes) {
    let now = rustix::termios::tcgetattr(screen).unwrap();
    (now.input_modes, now.local_modes)
}

/// Gives a terminal so many columns.
fn resize(screen: impl std::os::fd::AsFd, columns: u16) {
    let size = rustix::termios::Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(screen, size).unwrap();
}

impl Drop for Terminal {
    /// A test that failed leaves nothing behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn makes_a_file() -> Script {
    Script::new([Say::call("bash", &json!({"command": "touch made"})), Say::text("All done.")])
}

#[test]
fn a_run_asks_and_hears_yes() {
    let place = Place::new();
    let server = server(makes_a_file());
    let mut terminal = Terminal::start(place.with(&server, ["run", "make it"]));
    terminal.wait_for("[n]o");
    assert!(terminal.seen.contains("touch made") && terminal.seen.contains("bash(touch made"), "{}", terminal.seen);
    terminal.type_line("maybe");
    terminal.wait_for("[n]o");
    terminal.type_line("y");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert!(place.folder().join("made").exists());
}

#[test]
fn a_run_asks_and_hears_no_with_a_reason_for_the_model() {
    let place = Place::new();
    let server = server(makes_a_file());
    let mut terminal = Terminal::start(place.with(&server, ["run", "make it"]));
    terminal.wait_for("[n]o");
    terminal.type_line("n use another name");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "a no is an answer: {seen}");
    assert!(!place.folder().join("made").exists());
    assert!(String::from_utf8_lossy(&server.requests()[1].body).contains("use another name"));
}

#[test]
fn always_is_not_asked_again() {
    let place = Place::new();
    let server = server(Script::new([
        Say::call("bash", &json!({"command": "touch made"})),
        Say::call("bash", &json!({"command": "touch made"})),
        Say::text("All done."),
    ]));
    let mut terminal = Terminal::start(place.with(&server, ["run", "make it"]));
    terminal.wait_for("[n]o");
    terminal.type_line("always");
    let (code, seen) = terminal.end();
    assert_eq!((code, seen.matches("[n]o").count()), (0, 1), "{seen}");
}

#[test]
fn always_names_its_rule_which_covers_no_more_than_what_was_asked() {
    let place = Place::new();
    let call = |command: &str| Say::call("bash", &json!({"command": command}));
    let server = server(Script::new([
        call("git push origin x"),
        call("git push origin x --force"),
        call("touch a"),
        call("touch b"),
        Say::text("All done."),
    ]));
    let mut terminal = Terminal::start(place.with(&server, ["run", "push it"]));
    terminal.wait_for("always allows bash(git push origin x) in this session");
    terminal.wait_for("[n]o");
    terminal.type_line("a");
    terminal.wait_for("(bash(git push origin x) is allowed in this session)");
    terminal.wait_for("git push origin x --force");
    terminal.wait_for("[n]o");
    terminal.type_line("n");
    terminal.wait_for("always allows bash(touch a) in this session");
    terminal.wait_for("[n]o");
    terminal.type_line("a rm *");
    terminal.wait_for("has to cover a rule that is shown");
    terminal.wait_for("[n]o");
    terminal.type_line("a touch *");
    terminal.wait_for("(bash(touch *) is allowed in this session)");
    let (code, seen) = terminal.end();
    assert_eq!((code, seen.matches("may bash run?").count()), (0, 3), "{seen}");
    assert!(place.folder().join("a").exists() && place.folder().join("b").exists(), "{seen}");
}

#[test]
fn always_grants_a_rule_for_each_part_of_a_compound_command() {
    let place = Place::new();
    let call = |command: &str| Say::call("bash", &json!({"command": command}));
    let server = server(Script::new([
        call("touch a && mkdir b 2>&1 | tail -5"),
        call("mkdir c | cat; touch a"),
        call("mkdir d; touch e"),
        Say::text("All done."),
    ]));
    let mut terminal = Terminal::start(place.with(&server, ["run", "make them"]));
    terminal.wait_for("always allows bash(touch a) in this session");
    terminal.wait_for("always allows bash(mkdir b) in this session");
    terminal.wait_for("[a]lways");
    terminal.type_line("a mkdir *");
    terminal.wait_for("(bash(touch a) is allowed in this session)");
    terminal.wait_for("(bash(mkdir *) is allowed in this session)");
    terminal.wait_for("always allows bash(touch e) in this session");
    terminal.wait_for("[a]lways");
    terminal.type_line("a");
    let (code, seen) = terminal.end();
    assert_eq!((code, seen.matches("may bash run?").count()), (0, 2), "{seen}");
    for made in ["a", "b", "c", "d", "e"] {
        assert!(place.folder().join(made).exists(), "{made}: {seen}");
    }
}

#[test]
fn always_is_for_the_file_that_was_asked_about_unless_a_wider_pattern_is_written() {
    let place = Place::new();
    let write = |path: &str| Say::call("write", &json!({"path": path, "content": "x"}));
    let server = server(Script::new([write("src/a"), write("src/b"), write("src/c"), Say::text("All done.")]));
    let mut terminal = Terminal::start(place.with(&server, ["run", "write them"]));
    terminal.wait_for("always allows edit(src/a) in this session");
    terminal.wait_for("[a]lways");
    terminal.type_line("a");
    terminal.wait_for("always allows edit(src/b) in this session");
    terminal.wait_for("[a]lways");
    terminal.type_line("a src/**");
    terminal.wait_for("(edit(src/**) is allowed in this session)");
    let (code, seen) = terminal.end();
    assert_eq!((code, seen.matches("may write run?").count()), (0, 2), "{seen}");
    assert!(place.folder().join("src/c").exists(), "{seen}");
}

#[test]
fn the_line_interface_talks_steers_and_leaves() {
    let place = Place::new();
    let behaviour =
        Behaviour::from(Script::new([Say::call("glob", &json!({"pattern": "*"})), Say::text("I heard you.")]))
            .fault(Fault::at(0, 1..=1, FaultKind::Stall { at: Cut::Start }));
    let server = server(behaviour);
    let mut terminal = Terminal::start(place.with(&server, []));
    terminal.wait_for("> ");
    terminal.type_line("look around");
    server.wait_for(1, std::time::Duration::from_secs(20)).unwrap();
    terminal.type_line("and be brief");
    terminal.wait_for("at its next step");
    terminal.type_line("/mode full");
    terminal.wait_for("when this turn is over");
    server.release();
    terminal.wait_for("I heard you.");
    terminal.wait_for("mode full");
    terminal.wait_for("> ");
    assert!(String::from_utf8_lossy(&server.requests()[1].body).contains("and be brief"));
    terminal.type_line("/cost");
    terminal.wait_for("2 steps");
    terminal.type_line("/mode edit");
    terminal.wait_for("mode edit");
    terminal.type_line("/model");
    terminal.wait_for("env/scripted");
    terminal.type_line("/model other");
    terminal.wait_for("env/other; the next request begins a new cache prefix: ");
    terminal.type_line("/model scripted");
    terminal.wait_for("env/scripted, as before\r\n");
    terminal.type_line("/cache");
    terminal.wait_for("verdict");
    terminal.wait_for("scripted has no known price");
    terminal.type_line("/resume");
    terminal.wait_for("look around");
    terminal.type_line("/nonsense");
    terminal.wait_for("/help");
    terminal.type_line("/quit");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    place.assert_clean();
}

#[test]
fn an_interrupt_stops_the_turn_and_another_at_the_prompt_leaves() {
    let place = Place::new();
    let behaviour =
        Behaviour::from(Say::text("One two three.")).fault(Fault::always(FaultKind::Stall { at: Cut::Events(4) }));
    let server = server(behaviour);
    let mut terminal = Terminal::start(place.with(&server, ["begin"]));
    server.wait_for(1, std::time::Duration::from_secs(20)).unwrap();
    terminal.interrupt();
    terminal.wait_for("stopped by you");
    terminal.wait_for("> ");
    terminal.interrupt();
    terminal.wait_for("Ctrl-C again leaves");
    terminal.interrupt();
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    place.assert_clean();
}

#[test]
fn a_polite_end_of_the_program_cancels_the_turn_and_leaves() {
    for signal in [Signal::TERM, Signal::HUP] {
        let place = Place::new();
        let behaviour =
            Behaviour::from(Say::text("One two three.")).fault(Fault::always(FaultKind::Stall { at: Cut::Events(4) }));
        let server = server(behaviour);
        // While a turn runs, that of the first prompt or of a later one.
        for first in [Some("begin"), None] {
            let mut terminal = Terminal::start(place.with(&server, first));
            if first.is_none() {
                terminal.wait_for("> ");
                terminal.type_line("begin");
            }
            terminal.wait_for("One");
            terminal.signal(signal);
            let (code, seen) = terminal.end();
            assert!(code == 130 && seen.contains("stopped by signal:"), "{code} {seen}");
            place.assert_clean();
        }
        // At the prompt.
        let mut terminal = Terminal::start(place.with(&server, []));
        terminal.wait_for("> ");
        terminal.signal(signal);
        let (code, seen) = terminal.end();
        assert_eq!(code, 130, "{seen}");
        assert_eq!(place.sessions().len(), 2);
    }
}

#[test]
fn the_progress_line_fits_the_terminal() {
    let place = Place::new();
    let behaviour = Behaviour::from(Say::text("Done.")).fault(Fault::at(0, 1..=1, FaultKind::Stall { at: Cut::Start }));
    let server = server(behaviour);
    let mut terminal = Terminal::of_columns(30, place.with(&server, ["run", "x"]));
    terminal.wait_for("\u{1b}[K\u{1b}[2mstep 1");
    terminal.wait_for("\u{1b}[0m");
    let width = |seen: &str| seen.rsplit("step 1").next().unwrap().replace("\u{1b}[0m", "").chars().count() + 6;
    assert!(terminal.seen.contains('…') && width(&terminal.seen[..terminal.known]) < 30, "{:?}", terminal.seen);
    // Narrower than the line that stands there: it has wrapped, and all of it is taken away.
    resize(&terminal.screen, 20);
    terminal.wait_for("\u{1b}[1A\u{1b}[J\u{1b}[2mstep 1");
    terminal.wait_for("\u{1b}[0m");
    assert!(width(&terminal.seen[..terminal.known]) < 20, "{:?}", terminal.seen);
    server.release();
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn an_error_has_its_code_once_however_narrow_the_terminal_is() {
    for columns in [8, 12, 80] {
        let place = Place::new();
        let (code, seen) = Terminal::of_columns(columns, place.stele(["sessions", "show", "x"])).end();
        let times = |text: &str| seen.matches(text).count();
        assert_eq!((code, times("error:"), times("log.none")), (2, 1, 1), "{columns}: {seen}");
    }
}

#[test]
fn the_end_of_input_leaves() {
    let place = Place::new();
    let server = server(Say::text("x"));
    let mut terminal = Terminal::start(place.with(&server, []));
    terminal.wait_for("> ");
    terminal.screen.write_all(&[4]).unwrap();
    assert_eq!(terminal.end().0, 0);
    assert!(server.requests().is_empty());
}

#[test]
fn colours_are_a_terminals_unless_they_are_not_wanted() {
    let place = Place::new();
    let server = server(Script::new([Say::call("glob", &json!({"pattern": "*"})), Say::text("x")]));
    let coloured = |mut command: Command, no_color: bool| {
        if no_color {
            command.env("NO_COLOR", "1");
        }
        Terminal::start(command).end().1.contains("\u{1b}[36m")
    };
    assert!(coloured(place.with(&server, ["run", "x"]), false));
    assert!(!coloured(place.with(&server, ["run", "x"]), true));
    assert!(!coloured(place.with(&server, ["run", "--color", "never", "x"]), false));
    let piped = Done::of(place.with(&server, ["run", "--color", "always", "x"]));
    assert!(piped.err.contains("\u{1b}[36m"), "{piped:?}");
}

#[test]
fn a_question_that_was_left_is_asked_again() {
    let place = Place::new();
    let server = server(makes_a_file());
    let mut terminal = Terminal::start(place.with(&server, ["run", "make it"]));
    terminal.wait_for("[n]o");
    drop(terminal);
    let id = place.sessions().remove(0);
    let mut terminal = Terminal::start(place.with(&server, ["run", "--resume", &id]));
    terminal.wait_for("always allows bash(touch made) in this session");
    terminal.wait_for("[n]o");
    terminal.type_line("yes");
    terminal.wait_for("All done.");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert!(place.folder().join("made").exists());
    place.assert_clean();
}

#[test]
fn whoever_leaves_at_a_question_has_not_said_yes() {
    let place = Place::new();
    let server = server(makes_a_file());
    let mut terminal = Terminal::start(place.with(&server, ["run", "make it"]));
    terminal.wait_for("[n]o");
    terminal.screen.write_all(&[4]).unwrap();
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert!(!place.folder().join("made").exists());
    assert!(String::from_utf8_lossy(&server.requests()[1].body).contains("left without an answer"));
}

#[test]
fn a_question_about_a_write_shows_what_is_lost() {
    let place = Place::new();
    place.write("README.md", "one\ntwo\nthree\nfour\n");
    let server = server(Script::new([
        Say::call("read", &json!({"path": "README.md"})),
        Say::call("edit", &json!({"path": "README.md", "edits": [{"old": "two", "new": "2"}]})),
        Say::call("write", &json!({"path": "README.md", "content": "# new readme\n"})),
        Say::text("All done."),
    ]));
    let mut terminal = Terminal::start(place.with(&server, ["run", "rewrite it"]));
    terminal.wait_for("(replaces 1 line)");
    terminal.wait_for("+2");
    terminal.wait_for(" three");
    terminal.wait_for("[n]o");
    terminal.type_line("y");
    terminal.wait_for("(replaces 4 lines)");
    terminal.wait_for("-one");
    terminal.wait_for("[n]o");
    terminal.type_line("n");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert!(!seen.contains("No newline"), "{seen}");
    assert_eq!(place.read("README.md"), "one\n2\nthree\nfour\n");
}

#[test]
fn the_agent_asks_one_thing_after_the_other() {
    let place = Place::new();
    let questions = json!({"questions": [
        {"question": "Which colour?", "options": ["red", "blue"]},
        {"question": "How many?"},
    ]});
    let server = server(Script::new([Say::call("ask", &questions), Say::text("Thank you.")]));
    let mut terminal = Terminal::start(place.with(&server, ["run", "ask me"]));
    terminal.wait_for("Ask: Which colour?");
    terminal.wait_for("2. blue");
    terminal.wait_for("your answer: ");
    terminal.type_line("2");
    terminal.wait_for("How many?");
    terminal.wait_for("your answer: ");
    terminal.type_line("seven");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert!(String::from_utf8_lossy(&server.requests()[1].body).contains(r"1. blue\n2. seven"), "{seen}");
}

#[test]
fn what_became_of_a_no_is_shown_and_so_is_the_way_back() {
    let place = Place::new();
    let server = server(makes_a_file());
    let mut terminal = Terminal::start(place.with(&server, []));
    terminal.wait_for("> ");
    terminal.type_line("make it");
    terminal.wait_for("[n]o");
    terminal.type_line("n not here");
    terminal.wait_for("refused by you: not here");
    terminal.wait_for("All done.");
    terminal.wait_for("> ");
    terminal.type_line("/quit");
    terminal.wait_for("to go on: stele -c");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn a_turn_is_taken_back_and_done_again_at_the_prompt() {
    let place = Place::new();
    let server = server(Behaviour::answering(|request: &stele_testkit::ParsedRequest| {
        let all = request.raw.to_string();
        match (all.contains("hello"), all.contains("tool_result")) {
            (true, _) => Say::text("I see.").into(),
            (false, true) => Say::text("Written.").into(),
            (false, false) => Say::call("write", &json!({"path": "f", "content": "theirs\n"})).into(),
        }
    }));
    let mut terminal = Terminal::start(place.with(&server, ["--mode", "edit"]));
    terminal.wait_for("> ");
    terminal.type_line("/undo");
    terminal.wait_for("undo.nothing");
    terminal.type_line("write it");
    terminal.wait_for("1 file changed");
    terminal.type_line("/changes");
    terminal.wait_for("turn 1: write it");
    terminal.wait_for(" f\r\n");
    place.write("f", "mine\n");
    terminal.type_line("/undo");
    terminal.wait_for("f left as it is: changed since");
    terminal.wait_for("/undo overwrite replaces");
    assert_eq!(place.read("f"), "mine\n");
    terminal.type_line("/undo overwrite");
    terminal.wait_for("took back turn 1");
    assert!(!place.folder().join("f").exists());
    terminal.type_line("/redo");
    terminal.wait_for("did again turn 1");
    assert_eq!(place.read("f"), "mine\n");
    terminal.type_line("/undo leave");
    terminal.wait_for("f left as it is");
    terminal.type_line("hello");
    terminal.wait_for("I see.");
    terminal.type_line("/quit");
    assert_eq!(terminal.end().0, 0);
    let body = server.requests().last().unwrap().json().to_string();
    assert!(body.contains("hello") && !body.contains("write it"), "{body}");
    place.assert_clean();
}

#[test]
fn an_expensive_new_prefix_is_asked_about_before_anything_is_sent() {
    let place = Place::new();
    let server = server(Script::new([Say::text("one"), Say::text("two"), Say::text("three"), Say::text("four")]));
    std::fs::create_dir_all(place.home()).unwrap();
    std::fs::write(place.home().join("config.toml"), "cache.warn_above = \"10 tokens\"\n").unwrap();
    let done = Done::of(place.with(&server, ["run", "begin"]));
    assert_eq!(done.code, 0, "{done:?}");
    let id = place.sessions().remove(0);

    let mut terminal = Terminal::start(place.with(&server, ["run", "--resume", &id, "--model", "other", "go on"]));
    terminal.wait_for("another model or route; about ");
    terminal.wait_for("go on? [y]es, [n]o: ");
    terminal.type_line("hm");
    terminal.wait_for("go on? [y]es, [n]o: ");
    terminal.type_line("n");
    let (code, seen) = terminal.end();
    assert!(code == 2 && seen.contains("cache.declined"), "{seen}");
    assert_eq!(server.requests().len(), 1, "nothing was sent");

    // A signal is no answer.
    let mut terminal = Terminal::start(place.with(&server, ["run", "--resume", &id, "--model", "other", "go on"]));
    terminal.wait_for("go on? [y]es, [n]o: ");
    terminal.interrupt();
    let (code, seen) = terminal.end();
    assert!(code == 130 && !seen.contains("cache.declined"), "{code}: {seen}");
    assert_eq!(server.requests().len(), 1, "nothing was sent");

    // What differs and can wait is kept on a no.
    std::fs::write(
        place.home().join("config.toml"),
        "cache.warn_above = \"10 tokens\"\nagent.persona = \"Be brief.\"\nmodel = \"scripted\"\n",
    )
    .unwrap();
    let again = || place.with(&server, ["run", "--resume", &id, "--model", "scripted", "go on"]);
    let mut terminal = Terminal::start(again());
    terminal.wait_for("keep it as it was: ");
    terminal.interrupt();
    let (code, seen) = terminal.end();
    assert_eq!((code, server.requests().len()), (130, 1), "{seen}");
    let mut terminal = Terminal::start(again());
    terminal.wait_for("keep it as it was: ");
    terminal.type_line("n");
    terminal.wait_for("taken at the next cut");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    let sent = server.requests();
    assert_eq!(sent.len(), 2);
    assert!(!String::from_utf8_lossy(&sent[1].body).contains("Be brief."));

    // At the prompt: no leaves the model as it was, yes switches.
    let mut terminal = Terminal::start(place.with(&server, ["--resume", &id]));
    terminal.wait_for("keep it as it was: ");
    terminal.type_line("y");
    terminal.wait_for("> ");
    terminal.type_line("/model other");
    terminal.wait_for("switch? [y]es, [n]o: ");
    terminal.type_line("n");
    terminal.wait_for("not switched");
    terminal.type_line("/model");
    terminal.wait_for("/scripted; routes:");
    terminal.type_line("/model scripted");
    terminal.wait_for("env/scripted is in use\r\n");
    terminal.type_line("/model other");
    terminal.wait_for("switch? [y]es, [n]o: ");
    terminal.type_line("y");
    terminal.wait_for("env/other is in use\r\n");
    // What was due before is due still, and nothing but that.
    terminal.type_line("/model scripted");
    terminal.wait_for("env/scripted, as before: about ");
    terminal.wait_for("switch? [y]es, [n]o: ");
    terminal.type_line("y");
    terminal.wait_for("env/scripted is in use\r\n");
    terminal.type_line("and now?");
    terminal.wait_for("three");
    terminal.wait_for("> ");
    terminal.type_line("/quit");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    let last = server.requests().pop().unwrap();
    assert!(String::from_utf8_lossy(&last.body).contains("Be brief.") && last.json()["model"] == "scripted");
    place.assert_clean();
}

#[test]
fn a_probe_sends_nothing_before_a_yes() {
    let place = Place::new();
    let server = server(Behaviour::from(Say::text("OK")));
    for (answer, requests) in [("n", 0), ("", 0), ("yes", 2)] {
        let mut terminal = Terminal::start(place.with(&server, ["probe", "env"]));
        terminal.wait_for("This sends 2 requests");
        terminal.wait_for("unpriced");
        terminal.wait_for("[n]o");
        assert!(server.requests().is_empty());
        terminal.type_line(answer);
        let (code, seen) = terminal.end();
        assert_eq!(code, 0, "{seen}");
        assert_eq!((server.requests().len(), seen.contains("verified")), (requests, requests > 0), "{seen}");
    }
}

#[test]
fn a_turn_and_its_last_step_have_figures_of_their_own() {
    let place = Place::new();
    place.write("notes.txt", "hello, and what else there is to say\n".repeat(300));
    std::fs::create_dir_all(place.home()).unwrap();
    let prices = "input = 2_000_000\noutput = 10_000_000\ncache_write_5m = 2_500_000\ncache_read = 200_000\n";
    std::fs::write(place.home().join("config.toml"), format!("[prices.\"scripted\"]\n{prices}")).unwrap();
    let read = || Say::call("read", &json!({"path": "notes.txt"}));
    let server = server(Script::new([read(), Say::text("It says hello."), read(), Say::text("It still does.")]));
    let mut terminal = Terminal::start(place.with(&server, []));
    terminal.wait_for("> ");
    terminal.type_line("what do the notes say?");
    terminal.wait_for("It says hello.");
    let first = figures(&terminal.line_with("2 steps · $"));
    let session = figures(&terminal.line_with("session $"));
    assert_eq!(first[0], session[0], "the only turn is the session");
    terminal.type_line("and now?");
    terminal.wait_for("It still does.");
    let second = figures(&terminal.line_with("2 steps · $"));
    let line = terminal.line_with("session $");
    assert!(line.contains(" · cache kept until "), "{line}");
    assert!((first[0] + second[0] - figures(&line)[0]).abs() < 0.000_2, "{first:?} {second:?} {line}");
    assert!(second[1] < second[0], "the last step is a part of the turn: {second:?}");
    terminal.wait_for("local tool-result reuse: 1 time");
    terminal.type_line("/cost");
    terminal.wait_for("4 steps");
    assert_eq!(figures(&terminal.line_with("last turn $"))[0], second[0]);
    assert_eq!(figures(&terminal.line_with("last step $"))[0], second[1]);
    terminal.wait_for("cache kept until ");
    terminal.wait_for("local tool-result reuse: 1 time");
    terminal.type_line("/quit");
    assert_eq!(terminal.end().0, 0);
}

/// The amounts of money in a line.
fn figures(line: &str) -> Vec<f64> {
    let after = line.split('$').skip(1);
    let number =
        |text: &str| text.split(|letter: char| !letter.is_ascii_digit() && letter != '.').next().unwrap().parse();
    after.map(|text| number(text).unwrap()).collect()
}
