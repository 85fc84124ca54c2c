//! The question about a new cache prefix, where something waits for one.

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
