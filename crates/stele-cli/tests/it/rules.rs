//! The rules for context, seen from outside the process (`docs/rules.md`).

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use stele_core::Wire;
use stele_testkit::{Say, Script};

use crate::support::{Done, Place, server};

/// A zone where it is this hour now, so that the date is the same in all of them: the date of the session is part of
/// what the model is told.
fn zone_at(hour: i64) -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let now = i64::try_from(seconds / 3_600 % 24).unwrap();
    // POSIX counts to the west.
    format!("<here>{}", now - hour)
}

fn script() -> Script {
    Script::new([
        Say::text("I look.")
            .and_call("read", &json!({"paths": ["b.txt", "a.txt"]}))
            .and_call("glob", &json!({"pattern": "*.txt"})),
        Say::call("edit", &json!({"path": "a.txt", "edits": [{"old": "Ölwanne", "new": "İstanbul ı I"}]})),
        Say::call("grep", &json!({"pattern": "(?i)ab|i"})),
        Say::text("Done."),
    ])
}

#[test]
fn ctx_01_processes_in_other_surroundings_send_the_same_bytes() {
    for wire in Wire::ALL {
        let place = Place::new();
        let server = server(script());
        let surroundings: [&dyn Fn(&mut Command); 3] = [
            &|command| {
                command.env("TZ", zone_at(8)).env("LC_ALL", "C");
            },
            &|command| {
                let locale = "tr_TR.UTF-8";
                command.env("TZ", zone_at(14)).env("LANG", locale).env("LC_ALL", locale).env("LANGUAGE", "tr");
            },
            &|command| {
                command.env("TZ", zone_at(11)).env("LANG", "de_DE").env("COLUMNS", "200").env("TERM", "xterm");
            },
        ];
        // Each process has hash seeds of its own.
        for surround in surroundings {
            place.write("a.txt", "zwei\nÖlwanne\neins\n");
            place.write("b.txt", "ab\naB\nAb\n");
            let mut command = place.on(&server, wire, ["run", "--mode", "full", "Sort it: İi."]);
            surround(&mut command);
            let done = Done::of(command);
            assert_eq!(done.code, 0, "{wire}: {done:?}");
        }
        let received = server.requests().into_iter().filter(|request| request.wire.is_some());
        let bodies: Vec<String> = received.map(|request| String::from_utf8(request.body.to_vec()).unwrap()).collect();
        assert_eq!(bodies.len(), 12, "{wire}");
        for other in [&bodies[4..8], &bodies[8..]] {
            assert_eq!(bodies[..4], *other, "{wire}");
        }
        if wire == Wire::OpenaiChat {
            let (_, history) = bodies[3].split_once("\\n</folder>\"},").unwrap();
            let history = history.replace(&place.folder().display().to_string(), "FOLDER");
            insta::assert_snapshot!("ctx_01_history", history);
        }
        place.assert_clean();
    }
}
