//! `stele probe`: what an endpoint takes and reports, against a server that may lie.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use stele_core::Wire;
use stele_testkit::{Behaviour, Cut, Fault, FaultKind, Say, Server, Wording};

use crate::support::{Done, Place, server};

/// Status after a probe, and the lines that tell of it.
struct Probed {
    done: Done,
    statuses: BTreeMap<String, (String, String)>,
    requests: usize,
}

impl Probed {
    fn of(place: &Place, server: &Server, wire: Wire) -> Self {
        let done = Done::of(place.on(server, wire, ["probe", "env", "--yes", "--json"]));
        let lines = done.lines();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let statuses = lines
            .iter()
            .filter(|line| line["type"] == "capability")
            .map(|line| (text(&line["capability"]), (text(&line["before"]), text(&line["after"]))))
            .collect();
        let requests = lines.iter().filter(|line| line["type"] == "request").count();
        assert_eq!(lines.last().unwrap()["type"], "probe", "{done:?}");
        Self { done, statuses, requests }
    }

    #[track_caller]
    fn assert(&self, capability: &str, before: &str, after: &str) {
        let found = self.statuses.get(capability).unwrap_or_else(|| panic!("{capability}: {:?}", self.statuses));
        assert_eq!((found.0.as_str(), found.1.as_str()), (before, after), "{capability}: {:?}", self.done);
    }
}

fn ok() -> Behaviour {
    Behaviour::from(Say::text("OK"))
}

#[test]
fn an_honest_server_of_each_wire_is_verified() {
    for wire in Wire::ALL {
        let (place, server) = (Place::new(), server(ok()));
        let probed = Probed::of(&place, &server, wire);
        assert_eq!(probed.done.code, 0, "{:?}", probed.done);
        for capability in ["usage", "usage.cache_read"] {
            probed.assert(capability, "unknown", "verified");
        }
        let requests = match wire {
            Wire::AnthropicMessages => {
                probed.assert("cache_control", "unknown", "verified");
                2
            }
            Wire::OpenaiResponses | Wire::OpenaiChat => {
                // Its cache knows no key, and is read all the same: a read beside a key shows only that it is taken.
                probed.assert("prompt_cache_key", "unknown", "inferred");
                3
            }
            Wire::Gemini => 2,
        };
        assert_eq!(probed.requests, requests, "{wire}");
        assert_eq!(server.requests().len(), requests, "{wire}");
        // The first leaves out what is not known to be taken.
        assert_eq!(server.requests()[0].json().get("prompt_cache_key"), None);
        let listed = Done::of(place.stele(["probe", "--list"]));
        assert!(listed.code == 0 && listed.out.contains("usage.cache_read"), "{listed:?}");
        let listed = Done::of(place.stele(["probe", "--list", "--json"])).lines();
        for line in &listed {
            let status = if line["capability"] == "prompt_cache_key" { "inferred" } else { "verified" };
            assert_eq!((&line["how"], &line["status"]), (&json!("probe"), &json!(status)), "{listed:?}");
        }
        // Nor does `doctor` send anybody to a probe for what no request of this route carries.
        let doctor = Done::of(place.on(&server, wire, ["doctor"]));
        assert!(!doctor.out.contains("cache_control.ttl"), "{wire}: {doctor:?}");
        // Again: the same prefix would be in the cache already.
        let bodies: Vec<_> = server.requests().iter().map(|request| request.body.clone()).collect();
        assert_eq!(Probed::of(&place, &server, wire).done.code, 0);
        assert!(server.requests()[requests..].iter().all(|request| !bodies.contains(&request.body)));
    }
}

#[test]
fn what_a_probe_saw_goes_out_from_then_on_and_what_was_refused_does_not() {
    let (place, server) = (Place::new(), server(ok()));
    let key_of_last = || server.requests().last().unwrap().json().get("prompt_cache_key").cloned();
    assert_eq!(Done::of(place.on(&server, Wire::OpenaiChat, ["run", "hi"])).code, 0);
    assert_eq!(key_of_last(), None);
    Probed::of(&place, &server, Wire::OpenaiChat).assert("prompt_cache_key", "unknown", "inferred");
    assert_eq!(Done::of(place.on(&server, Wire::OpenaiChat, ["run", "hi"])).code, 0);
    assert!(key_of_last().is_some());
    place.assert_clean();
}

#[test]
fn a_server_that_refuses_fields_is_probed_to_the_end() {
    for wording in Wording::ALL {
        let behaviour = ok().without_fields(["stream_options", "prompt_cache_key"], wording);
        let (place, server) = (Place::new(), server(behaviour));
        let probed = Probed::of(&place, &server, Wire::OpenaiChat);
        assert_eq!(probed.done.code, 0, "{:?}", probed.done);
        probed.assert("stream_options", "unknown", "rejected");
        probed.assert("prompt_cache_key", "unknown", "rejected");
        // The scripted server reports usage to those that ask for it.
        probed.assert("usage", "unknown", "unknown");
        assert_eq!(probed.requests, 5);
        let doctor = Done::of(place.on(&server, Wire::OpenaiChat, ["doctor"]));
        let line = doctor.out.lines().find(|line| line.contains("evidence")).unwrap();
        assert!(
            line.contains("rejected: prompt_cache_key, stream_options") && line.contains("stele probe env"),
            "{line}"
        );
        assert_eq!(doctor.code, 0);
    }
}

#[test]
fn a_field_that_is_taken_without_effect_is_not_verified() {
    let nothing = json!({"input_tokens": 5000, "output_tokens": 1});
    let zeros = json!({
        "input_tokens": 5000, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 1
    });
    for usage in [nothing, zeros] {
        let behaviour = ok().fault(Fault::always(FaultKind::Usage(usage)));
        let (place, server) = (Place::new(), server(behaviour));
        let probed = Probed::of(&place, &server, Wire::AnthropicMessages);
        assert_eq!(probed.done.code, 0);
        probed.assert("usage", "unknown", "verified");
        for capability in ["cache_control", "usage.cache_read", "usage.cache_write"] {
            probed.assert(capability, "unknown", "unknown");
        }
        assert!(probed.done.out.contains("taken, without effect"), "{:?}", probed.done);
    }
    let usage = json!({"prompt_tokens": 5000, "completion_tokens": 1});
    let behaviour = ok().fault(Fault::always(FaultKind::Usage(usage)));
    let (place, server) = (Place::new(), server(behaviour));
    let probed = Probed::of(&place, &server, Wire::OpenaiChat);
    probed.assert("prompt_cache_key", "unknown", "unknown");
    probed.assert("stream_options", "unknown", "verified");
}

#[test]
fn missing_usage_proves_nothing() {
    for wire in Wire::ALL {
        let behaviour = ok().fault(Fault::always(FaultKind::NoUsage));
        let (place, server) = (Place::new(), server(behaviour));
        let probed = Probed::of(&place, &server, wire);
        assert_eq!(probed.done.code, 0, "{:?}", probed.done);
        assert!(probed.statuses.values().all(|(_, after)| after == "unknown"), "{wire}: {:?}", probed.statuses);
        assert_eq!(probed.done.lines().last().unwrap()["cost"], Value::Null);
        let table = Done::of(place.on(&server, wire, ["probe", "env", "--yes"]));
        assert!(table.out.contains("no tokens are reported") && table.out.contains("unpriced"), "{table:?}");
    }
}

#[test]
fn a_server_that_is_busy_or_gone_ends_the_probe_and_what_was_seen_is_kept() {
    let behaviour = ok().fault(Fault::at(0, 2..=9, FaultKind::status(429)));
    let (place, busy) = (Place::new(), server(behaviour));
    let probed = Probed::of(&place, &busy, Wire::OpenaiChat);
    assert_eq!(probed.done.code, 1);
    assert!(probed.done.err.contains("provider.rate_limited"), "{:?}", probed.done);
    assert_eq!(busy.requests().len(), 2, "a probe tries nothing again");
    assert_eq!(probed.done.lines().last().unwrap()["complete"], false);
    probed.assert("usage", "unknown", "verified");

    let address = busy.base_url(Wire::OpenaiChat);
    drop(busy);
    let mut command = place.stele(["probe", "env", "--yes"]);
    command.env("STELE_BASE_URL", address).env("STELE_MODEL", "scripted");
    let down = Done::of(command);
    assert!(down.code == 1 && down.err.contains("provider.transport"), "{down:?}");
}

#[test]
fn a_signal_ends_the_probe_and_what_was_paid_for_is_shown_and_kept() {
    for (signal, json) in [(Signal::INT, true), (Signal::TERM, true), (Signal::INT, false)] {
        let stalls = Fault::at(0, 2..=9, FaultKind::Stall { at: Cut::Events(0) });
        let (place, server) = (Place::new(), server(ok().fault(stalls)));
        let format = if json { "--json" } else { "--color=never" };
        let mut command = place.on(&server, Wire::OpenaiChat, ["probe", "env", "--yes", format]);
        command.env("STELE_MODEL", "gpt-6-sol");
        let mut child = command.spawn().unwrap();
        // The first request's line is there before the second one is over.
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut begun = String::new();
        for _ in 0..if json { 1 } else { 2 } {
            out.read_line(&mut begun).unwrap();
        }
        server.wait_for(2, Duration::from_secs(20)).unwrap();
        kill_process(Pid::from_raw(child.id().try_into().unwrap()).unwrap(), signal).unwrap();
        out.read_to_string(&mut begun).unwrap();
        let done = Done { out: begun, ..Done::wait(child) };
        assert_eq!((done.code, done.err.as_str()), (130, ""), "{done:?}");
        if json {
            let lines = done.lines();
            let requests: Vec<_> = lines.iter().filter(|line| line["type"] == "request").collect();
            assert!(requests.len() == 2 && requests[0]["usage"].is_object(), "{done:?}");
            assert_eq!(requests[1]["error"], "probe.stopped");
            let last = lines.last().unwrap();
            assert!(last["type"] == "probe" && last["complete"] == false && last["cost"].is_null(), "{done:?}");
        } else {
            assert!(done.out.contains("may be billed") && done.out.ends_with("stopped; cost: unknown\n"), "{done:?}");
        }
        let listed = Done::of(place.stele(["probe", "--list", "--json"])).lines();
        assert!(listed.iter().any(|line| line["capability"] == "usage" && line["how"] == "probe"), "{listed:?}");
        assert!(listed.iter().all(|line| line["capability"] != "prompt_cache_key"), "nobody saw that: {listed:?}");
    }
}

#[test]
fn nothing_is_sent_unasked_and_the_cost_is_told_first() {
    let (place, server) = (Place::new(), server(ok()));
    for arguments in [&["probe", "env"][..], &["probe", "env", "--json"]] {
        let refused = Done::of(place.with(&server, arguments.iter().copied()));
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains("probe.unconfirmed") && refused.err.contains("unpriced"), "{refused:?}");
        assert!(refused.err.contains("2 requests") && refused.err.contains("--yes"), "{refused:?}");
    }
    let mut priced = place.with(&server, ["probe", "env"]);
    priced.env("STELE_MODEL", "claude-opus-5-5");
    let priced = Done::of(priced);
    assert!(priced.code == 2 && priced.err.contains("at most $0.0"), "{priced:?}");
    assert!(server.requests().is_empty());
    assert_eq!(Done::of(place.stele(["probe"])).code, 2);
    let nothing = Done::of(place.stele(["probe", "--list"]));
    assert!(nothing.code == 0 && nothing.out.contains("nothing was learnt yet"), "{nothing:?}");
}

#[test]
fn a_damaged_ledger_is_told_and_set_aside() {
    let (place, server) = (Place::new(), server(ok()));
    assert_eq!(Probed::of(&place, &server, Wire::Gemini).done.code, 0);
    let path = find(&place.home());
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&whole[..], b"\xff\xfe{"].concat()).unwrap();
    let run = Done::of(place.on(&server, Wire::Gemini, ["run", "hi"]));
    assert!(run.code == 0 && run.err.contains("ledger.damaged"), "{run:?}");
    let listed = Done::of(place.stele(["probe", "--list", "--json"]));
    assert!(listed.err.is_empty() && listed.lines().len() >= 2, "{listed:?}");
}

#[test]
fn a_ledger_that_is_no_file_is_told_once() {
    let (place, server) = (Place::new(), server(ok()));
    assert_eq!(Probed::of(&place, &server, Wire::OpenaiChat).done.code, 0);
    let path = find(&place.home());
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let run = Done::of(place.on(&server, Wire::OpenaiChat, ["run", "hi"]));
    assert_eq!((run.code, run.err.matches("ledger.unusable").count()), (0, 1), "{run:?}");
}

/// The ledger's file, somewhere in the home.
fn find(folder: &std::path::Path) -> std::path::PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name == "ledger.jsonl") {
                return path;
            }
        }
    }
    panic!("there is no ledger")
}
