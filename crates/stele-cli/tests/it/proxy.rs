//! `stele proxy` with this program as the agent behind it.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use stele_core::Wire;
use stele_testkit::{Behaviour, ParsedRequest, Say, Script, Server};

use crate::support::{Done, Place, server};

/// The proxy on a free port before a server, with more arguments.
fn proxy<'a>(place: &Place, server: &Server, arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = place.stele(["proxy", "--listen", "127.0.0.1:0", "--to"]);
    command.arg(server.base_url(Wire::AnthropicMessages)).args(arguments).env("ANTHROPIC_API_KEY", "sk-secret-1");
    command
}

/// Two steps of a run through the proxy.
fn recorded(place: &Place) -> (Done, Server) {
    place.write("long.txt", "a long line of text\n".repeat(2_000));
    let server = server(Script::new([Say::call("read", &json!({"path": "long.txt"})), Say::text("Read.")]));
    let stele = env!("CARGO_BIN_EXE_stele");
    let run = ["--", stele, "run", "--model", "anthropic/claude-opus-5-5", "read it"];
    (Done::of(proxy(place, &server, run)), server)
}

#[test]
fn a_command_runs_through_it_and_the_report_shows_what_was_read() {
    let place = Place::new();
    let (done, server) = recorded(&place);
    assert_eq!((done.code, done.out.as_str()), (0, "Read.\n"), "{done:?}");
    assert!(done.err.contains("proxy #1 claude-opus-5-5 200 "), "{done:?}");
    assert!(done.err.ends_with("proxy 2 requests recorded; see: stele proxy report\n"), "{done:?}");
    assert_eq!(server.requests().len(), 2);
    // What arrived is what the log says was sent.
    place.assert_clean();
    let log = Done::of(place.stele(["sessions", "show", "--json", &place.sessions()[0]]));
    for request in server.requests() {
        let hash = stele_core::Hash::of(&request.body).to_string();
        assert!(log.out.contains(&hash), "{hash} is not in {}", log.out);
    }

    let lines = Done::of(place.stele(["proxy", "report", "--json"])).lines();
    let [conversation, total] = &lines[..] else { panic!("{lines:?}") };
    let verdicts: Vec<&Value> =
        conversation["requests"].as_array().unwrap().iter().map(|line| &line["verdict"]["kind"]).collect();
    assert_eq!(verdicts, ["first", "hit"], "{conversation}");
    assert_eq!((&total["type"], &total["requests"], &total["failed"]), (&json!("total"), &json!(2), &json!(0)));
    assert!(total["hit_rate"].as_f64().unwrap() > 0.0, "{total}");

    let text = Done::of(place.stele(["proxy", "report"]));
    assert_eq!(text.code, 0, "{text:?}");
    assert!(text.out.contains("first request\n") && text.out.contains("  hit\n"), "{}", text.out);
    assert!(text.out.lines().all(|line| line.chars().count() <= 80), "{}", text.out);
    let explained = Done::of(place.stele(["proxy", "explain", "2", "--json"])).lines().remove(0);
    assert_eq!((&explained["earlier"], &explained["verdict"]["kind"]), (&json!(1), &json!("hit")), "{explained}");
    let none = Done::of(place.stele(["proxy", "explain"]));
    assert!(none.code == 0 && none.out.starts_with("no miss: each of 2 requests continued the one before"), "{none:?}");
    let none = Done::of(place.stele(["proxy", "explain", "--json"])).lines();
    assert_eq!(none, [json!({"request": null, "requests": 2, "below_minimum": 0, "not_reported": 0})]);
    let simulated = Done::of(place.stele(["proxy", "simulate", "--vendor", "deepseek", "--json"])).lines().remove(0);
    assert_eq!((&simulated["rules"], simulated["requests"].as_array().unwrap().len()), (&json!("deepseek"), 2));
    let table = Done::of(place.stele(["proxy", "simulate", "--vendor", "openai", "--model", "gpt-6.2-sol"]));
    assert!(table.code == 0 && table.out.lines().all(|line| line.chars().count() <= 80), "{}", table.out);

    let folder = place.home();
    let stored = Command::new("grep").args(["-r", "sk-secret-1"]).arg(folder).output().unwrap();
    assert_eq!(stored.stdout, b"", "no key is kept");
}

#[test]
fn what_is_old_is_forgotten() {
    let place = Place::new();
    let none = Done::of(place.stele(["proxy", "gc", "--keep", "1h"]));
    assert!(none.code == 2 && none.err.contains("proxy.nothing"), "{none:?}");
    assert!(!place.home().join("data").join("proxy").exists());
    assert_eq!(recorded(&place).0.code, 0);
    let forgotten = Done::of(place.stele(["proxy", "gc", "--keep", "1h", "--json"])).lines().remove(0);
    assert_eq!((&forgotten["requests"], &forgotten["segments"]), (&json!(0), &json!(0)), "{forgotten}");
    let text = Done::of(place.stele(["proxy", "gc", "--keep", "1ms"]));
    assert!(text.code == 0 && text.out.starts_with("2 requests and "), "{text:?}");
    for arguments in [&["proxy", "report"][..], &["proxy", "report", "--json"]] {
        let none = Done::of(place.stele(arguments.iter().copied()));
        assert!(none.code == 2 && none.err.contains("proxy.nothing"), "{none:?}");
    }
}

#[test]
fn a_broken_prefix_is_explained_with_the_bytes_that_differ() {
    let place = Place::new();
    let (done, server) = recorded(&place);
    assert_eq!(done.code, 0, "{done:?}");
    let proxied = proxy(&place, &server, ["--json", "--", "sh", "-c", "printf %s \"$ANTHROPIC_BASE_URL\""]);
    assert!(Done::of(proxied).out.starts_with("http://127.0.0.1:"));
    let body = |day: &str, turns: usize| {
        let turns: Vec<Value> = (0..turns)
            .map(|at| json!({"role": if at % 2 == 0 { "user" } else { "assistant" }, "content": format!("turn {at}")}))
            .collect();
        let system = format!("Today is {day}. {}", "You work in a folder. ".repeat(1_000));
        json!({
            "model": "claude-opus-5-5", "max_tokens": 100,
            "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
            "messages": turns,
        })
        .to_string()
    };
    let mut child = proxy(&place, &server, ["--json"]).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let listening = out.next().unwrap();
    assert_eq!(listening["type"], "listening");
    assert!(listening["configuration"][0].as_str().unwrap().starts_with("Codex CLI"), "{listening}");
    let mut last = 0;
    for (day, turns) in [("2026-11-29", 1), ("2026-11-30", 3)] {
        post(listening["base_url"].as_str().unwrap(), &body(day, turns));
        let told = out.next().unwrap();
        assert_eq!((&told["type"], &told["status"]), (&json!("recorded"), &json!(200)), "{told}");
        last = told["id"].as_u64().unwrap();
    }
    kill_process(Pid::from_raw(child.id().try_into().unwrap()).unwrap(), Signal::INT).unwrap();
    assert_eq!(out.next().unwrap()["recorded"], 2);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let explained = Done::of(place.stele(["proxy", "explain"]));
    assert!(explained.out.starts_with(&format!("request {last}  broken at ")), "{explained:?}");
    assert!(explained.out.contains("a date or time changed"), "{explained:?}");
    assert!(explained.out.contains("  - ") && explained.out.contains("  + "), "{explained:?}");
    assert!(explained.out.lines().all(|line| line.chars().count() <= 80), "{}", explained.out);
    // All of it is young, and none of it is as young as that.
    let young = Done::of(place.stele(["proxy", "report", "--since", "24h", "--json"])).lines();
    assert_eq!(young.last().unwrap()["requests"], 4);
    let old = Done::of(place.stele(["proxy", "report", "--since", "1ms", "--json"])).lines();
    assert_eq!(old.last().unwrap()["requests"], 0);
}

/// Sends one request over a connection of its own, and reads the answer to its end.
fn post(base: &str, body: &str) {
    use std::io::{Read, Write};
    let host = base.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: {host}\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\n\
         content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn it_ends_with_the_commands_own_code_and_says_what_a_silent_one_may_need() {
    let place = Place::new();
    let server = server(Say::text("x"));
    let done = Done::of(proxy(&place, &server, ["--", "sh", "-c", "exit 7"]));
    assert_eq!(done.code, 7, "{done:?}");
    assert!(done.err.contains("proxy nothing was recorded\n") && done.err.contains("opencode.json"), "{done:?}");
    let done = Done::of(proxy(&place, &server, ["--", "sh", "-c", "kill -KILL $$"]));
    assert_eq!(done.code, 137, "{done:?}");
    let done = Done::of(proxy(&place, &server, ["--", "no-such-command-here"]));
    assert!(done.code == 2 && done.err.contains("proxy.command"), "{done:?}");
}

#[test]
fn a_signal_is_passed_on_to_the_command() {
    let place = Place::new();
    let server = server(Say::text("x"));
    let mut child =
        proxy(&place, &server, ["--", "sh", "-c", "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"])
            .spawn()
            .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    kill_process(Pid::from_raw(child.id().try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
    assert_eq!(Done::wait(child).code, 9);
}

#[test]
fn what_is_wrong_is_said_with_its_code() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let check = |arguments: &[&str], expect: &str| {
        let done = Done::of(place.stele([&["proxy"], arguments].concat()));
        assert!(done.code == 2 && done.err.contains(expect), "{arguments:?} {done:?}");
    };
    check(&["report"], "proxy.nothing");
    check(&[], "--to");
    check(&["--to", "nobody"], "proxy.target");
    check(&["--to", "anthropic", "--listen", &address], "proxy.listen");
    check(&["--to", "anthropic", "--listen", "0.0.0.0:0"], "--allow-remote");
    check(&["--to", "anthropic", "report"], "usage.order");
    let server = server(Script::new([Say::text("x")]));
    Done::of(proxy(&place, &server, ["--", "true"]));
    check(&["explain", "99"], "proxy.no_request");
    check(&["report", "--rules", "nobody"], "proxy.rules");
    check(&["simulate", "--vendor", "nobody"], "proxy.rules");

    // A server that is not there is told to the agent and to the person.
    drop(taken);
    let stele = env!("CARGO_BIN_EXE_stele");
    let url = format!("http://{address}");
    let mut unreachable = place.stele(["proxy", "--listen", "127.0.0.1:0", "--to", &url, "--", stele]);
    unreachable.args(["run", "--timeout", "1s", "--model", "anthropic/scripted", "hi"]).env("ANTHROPIC_API_KEY", "k");
    let done = Done::of(unreachable);
    assert_ne!(done.code, 0, "{done:?}");
    assert!(done.err.contains("proxy proxy.unreachable "), "{done:?}");
}

#[test]
fn a_damaged_store_is_never_told_as_an_empty_one() {
    let place = Place::new();
    let server = server(Behaviour::answering(|_: &ParsedRequest| Say::text("x").into()));
    let stele = env!("CARGO_BIN_EXE_stele");
    let mut once = proxy(&place, &server, ["--", stele]);
    once.args(["run", "--model", "anthropic/scripted", "an unmistakable prompt"]).env("ANTHROPIC_API_KEY", "k");
    assert_eq!(Done::of(once).code, 0);
    let path = place.home().join("data/proxy/requests.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let found: Vec<usize> =
        bytes.windows(12).enumerate().filter(|(_, part)| part == b"unmistakable").map(|(at, _)| at).collect();
    assert!(!found.is_empty(), "short segments are not compressed");
    found.iter().for_each(|at| bytes[*at] = b'X');
    std::fs::write(&path, bytes).unwrap();
    for command in [&["explain"][..], &["simulate", "--vendor", "openai"], &["report"]] {
        let said = Done::of(place.stele([&["proxy"], command].concat()));
        assert!(said.code == 0 && said.out.contains("! request 1 cannot be read: "), "{command:?} {said:?}");
        let json = Done::of(place.stele([&["proxy"], command, &["--json"]].concat())).lines();
        assert_eq!(json.last().unwrap()["damaged"].as_array().map(Vec::len), Some(1), "{command:?} {json:?}");
    }

    std::fs::write(&path, b"").unwrap();
    let forgotten = Done::of(place.stele(["proxy", "gc", "--keep", "48h"]));
    assert!(forgotten.code == 2 && forgotten.err.contains("proxy.corrupt"), "{forgotten:?}");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0, "it is left as it is");
}

#[test]
fn the_documentation_names_its_options_and_no_others() {
    let place = Place::new();
    let help = |command: &[&str]| Done::of(place.stele([&["proxy"], command, &["--help"]].concat())).out;
    let all = [help(&[]), help(&["report"]), help(&["explain"]), help(&["simulate"]), help(&["gc"])].concat();
    let documented = include_str!("../../../../docs/proxy.md");
    let options = |text: &str| -> std::collections::BTreeSet<String> {
        text.split(|character: char| !(character.is_ascii_lowercase() || character == '-'))
            .filter(|word| word.len() > 3 && word.starts_with("--") && !word.ends_with('-'))
            .map(str::to_owned)
            .collect()
    };
    let mut known = options(&all);
    let documented = options(documented);
    assert!(documented.is_subset(&known), "{:?}", documented.difference(&known));
    for common in ["--cwd", "--color", "--help"] {
        known.remove(common);
    }
    assert!(known.is_subset(&documented), "{:?}", known.difference(&documented));
}
