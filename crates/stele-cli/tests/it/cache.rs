//! What the provider's cache did, what leaving it costs, and what that would have been elsewhere.

use serde_json::{Value, json};
use stele_core::Wire;
use stele_proxy::read_prompt;
use stele_testkit::{Behaviour, ParsedRequest, Say, Script, Server};

use crate::support::{Done, Place, server};

fn script() -> Script {
    Script::new([
        Say::text("I look.").and_call("read", &json!({"path": "notes.txt"})),
        Say::text("The notes say hello."),
        Say::text("They still do."),
        Say::text("And again."),
    ])
}

/// A place with a session of two requests.
fn worked() -> (Place, Server, String) {
    let place = Place::new();
    place.write("notes.txt", "hello, and what else there is to say\n".repeat(300));
    let server = server(script());
    let done = Done::of(place.with(&server, ["run", "what do the notes say?"]));
    assert_eq!(done.code, 0, "{done:?}");
    let id = place.sessions().remove(0);
    (place, server, id)
}

fn configure(place: &Place, text: &str) {
    std::fs::create_dir_all(place.home()).unwrap();
    std::fs::write(place.home().join("config.toml"), text).unwrap();
}

fn go_on(place: &Place, server: &Server, id: &str, more: &[&str]) -> Done {
    let arguments = ["run", "--resume", id].into_iter().chain(more.iter().copied()).chain(["and now?"]);
    let done = Done::of(place.with(server, arguments));
    assert_eq!(done.code, 0, "{done:?}");
    done
}

#[track_caller]
fn narrow(done: &Done) {
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.lines().all(|line| line.chars().count() <= 80), "{}", done.out);
}

fn requests(place: &Place, id: &str) -> Vec<Value> {
    let mut lines = Done::of(place.stele(["cache", "report", id, "--json"])).lines();
    assert_eq!(lines.pop().unwrap()["type"], "total");
    lines
}

#[test]
fn another_model_is_announced_and_explained() {
    let (place, server, id) = worked();
    configure(&place, "cache.warn_above = \"10 tokens\"\n");
    let done = go_on(&place, &server, &id, &["--model", "another"]);
    // Nobody can be asked here: it is said, and the run goes on.
    assert!(done.err.contains("! a new cache prefix: another model or route; about "), "{done:?}");
    let lines = requests(&place, &id);
    let verdict = &lines[2]["verdict"];
    assert_eq!((&verdict["kind"], &verdict["reason"]), (&json!("cut"), &json!("model_changed")), "{verdict}");
    assert!(verdict["cost"]["tokens"].as_u64().unwrap() > 1_000, "{verdict}");
    let leaves = &lines[2]["leaves"];
    assert_eq!((&leaves["segment"], &leaves["index"]), (&json!("model"), &json!(0)), "{leaves}");
    assert_eq!(lines[2]["model"], "another");
    assert!(lines[2]["lost"].as_u64().unwrap() > 1_000, "{}", lines[2]);
    let explained = Done::of(place.stele(["cache", "explain", &id]));
    narrow(&explained);
    assert!(explained.out.contains("declared cut: model_changed"), "{explained:?}");
    assert!(explained.out.contains("  reason    another model or route\n  estimated about "), "{explained:?}");
    assert!(
        explained.out.contains("parts at  model (tools, item 0, byte 0)\n  - scripted\n  + another\n"),
        "{explained:?}"
    );
    assert!(explained.out.contains("the model changed from scripted to another"), "{explained:?}");
    let report = Done::of(place.stele(["cache", "report", &id]));
    narrow(&report);
    assert!(report.out.contains('█') && report.out.contains("cut: model_changed: another model"), "{}", report.out);
    assert!(report.out.contains("  estimated before it: about "), "{}", report.out);
    assert!(report.out.contains(" at model: the model changed from scripted to another"), "{}", report.out);
    place.assert_clean();
}

#[test]
fn a_server_that_counts_in_steps_loses_nothing_below_one() {
    // On the wire's own vendor the steps are documented, for newer models and servers of one's own its figures show them.
    for (wire, model) in
        [(Wire::OpenaiChat, "scripted"), (Wire::OpenaiResponses, "gpt-5.1"), (Wire::OpenaiResponses, "gpt-6.2-sol")]
    {
        let place = Place::new();
        place.write("notes.txt", "hello, and what else there is to say\n");
        let server = server(script());
        for arguments in [&["run", "what do the notes say?"][..], &["run", "--continue", "and now?"]] {
            let mut command = place.on(&server, wire, arguments.iter().copied());
            let done = Done::of({
                command.env("STELE_MODEL", model);
                command
            });
            assert_eq!(done.code, 0, "{done:?}");
        }
        let id = place.sessions().remove(0);
        let lines = requests(&place, &id);
        assert_eq!(lines.len(), 3);
        for (before, line) in lines.iter().zip(&lines[1..]) {
            let whole = before["input"].as_u64().unwrap() / 128 * 128;
            assert_eq!((&line["verdict"]["kind"], &line["lost"]), (&json!("hit"), &json!(0)), "{model}: {line}");
            assert_eq!((line["reported"].as_u64(), line["step"].as_u64()), (Some(whole), Some(128)), "{model}: {line}");
        }
        let report = Done::of(place.stele(["cache", "report", &id]));
        assert!(report.code == 0 && !report.out.contains("lost"), "{report:?}");
    }
}

#[test]
fn another_system_text_is_named_with_its_place_and_the_bytes_that_differ() {
    let (place, server, id) = worked();
    configure(&place, "agent.persona = \"Be brief.\"\n");
    let done = go_on(&place, &server, &id, &[]);
    assert!(done.err.contains("another system text (persona)"), "{done:?}");
    configure(&place, "agent.persona = \"Be kind.\"\n");
    go_on(&place, &server, &id, &[]);
    let last = requests(&place, &id).pop().unwrap();
    let verdict = &last["verdict"];
    assert_eq!(verdict["reason"], "system_changed");
    assert_eq!(verdict["details"], json!({"sections": ["persona"]}), "{verdict}");
    let explained = Done::of(place.stele(["cache", "explain", &id, "--json"])).lines().remove(0);
    assert_eq!(explained["request"], last["id"]);
    let parting = &explained["parting"];
    assert_eq!((&parting["zone"], &parting["segment"]), (&json!("system"), &json!("system")));
    assert!(parting["before"]["differs"].as_str().unwrap().starts_with("brief"), "{parting}");
    assert!(parting["after"]["differs"].as_str().unwrap().starts_with("kind"), "{parting}");
    assert!(explained["lost"].as_u64().unwrap() > 1_000, "{explained}");
    let text = Done::of(place.stele(["cache", "explain", &id]));
    narrow(&text);
    assert!(text.out.contains("reason    another system text (persona)\n"), "{text:?}");
    // The tools are shared; that they are not read is no wonder.
    assert!(text.out.contains("not more: "), "{text:?}");
    assert!(text.out.contains("  - ") && text.out.contains("  + ") && text.out.contains("(system, item "), "{text:?}");
}

#[test]
fn a_tool_that_comes_later_is_named() {
    let (place, server, id) = worked();
    configure(&place, "tools.offer = [\"patch\"]\n");
    let done = go_on(&place, &server, &id, &[]);
    assert!(done.err.contains("other tools (added patch)"), "{done:?}");
    let explained = Done::of(place.stele(["cache", "explain", &id, "--json"])).lines().remove(0);
    assert_eq!(explained["change"], json!({"kind": "tool_set", "added": ["patch"], "removed": []}), "{explained}");
    assert_eq!(explained["parting"]["zone"], "tools");
}

#[test]
fn a_request_of_which_nothing_is_known_is_not_said_to_have_continued() {
    let place = Place::new();
    let server = server(Behaviour::answering(|_: &ParsedRequest| Say::text("ok").into()));
    // Shorter than this vendor keeps; then it reports no figure.
    for words in [&["run", "hi"][..], &["run", "--continue", "and now?"]] {
        assert_eq!(Done::of(place.on(&server, Wire::Gemini, words.iter().copied())).code, 0);
    }
    let explain = |words: &[&str]| Done::of(place.stele(["cache", "explain"].into_iter().chain(words.iter().copied())));
    let none = explain(&["--json"]).lines();
    assert_eq!(none, [json!({"request": null, "requests": 2, "below_minimum": 0, "not_reported": 1})]);
    assert_eq!(
        explain(&[]).out,
        "no miss: one request continued the one before it, or began anew\n\
         of 1 request the provider reported no cached tokens: nothing is known of what was read\n"
    );
}

#[test]
fn every_request_is_there_and_those_that_missed_nothing_need_no_explanation() {
    let (place, server, id) = worked();
    go_on(&place, &server, &id, &[]);
    let lines = requests(&place, &id);
    let verdicts: Vec<&Value> = lines.iter().map(|line| &line["verdict"]["kind"]).collect();
    assert_eq!(verdicts, ["first", "hit", "hit"]);
    for (before, line) in lines.iter().zip(&lines[1..]) {
        assert_eq!(line["shared_bytes"], before["prompt_bytes"], "each extends the one before");
    }
    let none = Done::of(place.stele(["cache", "explain", &id]));
    assert!(none.code == 0 && none.out.starts_with("no miss: each of 3 requests continued the one before"), "{none:?}");
    let unknown = Done::of(place.stele(["cache", "explain", &id, "999999"]));
    assert!(unknown.code == 2 && unknown.err.contains("cache.no_request"), "{unknown:?}");
    let number = lines[1]["id"].to_string();
    let hit = Done::of(place.stele(["cache", "explain", &id, &number]));
    narrow(&hit);
    assert!(hit.out.contains("hit"), "{hit:?}");
}

#[test]
fn the_same_requests_cost_something_elsewhere() {
    let (place, _server, id) = worked();
    let table = Done::of(place.stele(["cache", "simulate", &id, "--vendor", "openai"]));
    narrow(&table);
    assert!(table.out.starts_with("By the rules of openai, priced as gpt-6.2-sol (an estimate)\n"), "{table:?}");
    let unpriced = Done::of(place.stele(["cache", "simulate", &id, "--vendor", "openai", "--model", "gpt-6-sol"]));
    assert!(unpriced.out.starts_with("By the rules of openai, without a known price of gpt-6-sol"), "{unpriced:?}");
    let one = Done::of(place.stele(["cache", "simulate", &id, "--vendor", "anthropic", "--json"])).lines().remove(0);
    assert_eq!((&one["rules"], one["requests"].as_array().unwrap().len()), (&json!("anthropic"), 2), "{one}");
    // A vendor of whose cache nothing is known has prices all the same.
    let stand_in = Done::of(place.stele(["cache", "simulate", &id, "--vendor", "zai", "--model", "glm-5"]));
    narrow(&stand_in);
    assert!(stand_in.out.starts_with("By the rules of prefix (for zai), priced as glm"), "{stand_in:?}");
    let unknown = Done::of(place.stele(["cache", "simulate", &id, "--vendor", "openai", "--model", "gpt-6.2-so"]));
    assert!(unknown.code == 2 && unknown.err.contains("simulate.model: no model gpt-6.2-so is known"), "{unknown:?}");
    assert!(unknown.err.contains("the nearest names are gpt-6.2-sol, "), "{unknown:?}");
    let wrong = Done::of(place.stele(["cache", "simulate", &id, "--vendor", "nobody"]));
    assert!(wrong.code == 2 && wrong.err.contains("deepseek"), "{wrong:?}");
}

#[test]
fn sums_are_by_session_day_project_or_model() {
    let (place, server, id) = worked();
    let other = Done::of(place.with(&server, ["run", "what do the notes say?", "--model", "another"]));
    assert_eq!(other.code, 0, "{other:?}");
    // A fork counts what it sent itself.
    let forked = Done::of(place.with(&server, ["run", "--fork", &id, "and now?"]));
    assert_eq!(forked.code, 0, "{forked:?}");
    for (by, groups) in [("session", 3), ("day", 1), ("project", 1), ("model", 2)] {
        let mut lines = Done::of(place.stele(["cache", "report", "--all", "--by", by, "--json"])).lines();
        let total = lines.pop().unwrap();
        assert_eq!((&total["type"], &total["requests"]), (&json!("total"), &json!(5)), "{by}: {total}");
        assert_eq!(lines.len(), groups, "{by}: {lines:?}");
        assert!(lines.iter().all(|line| line["by"] == by && line["key"].is_string()), "{lines:?}");
        assert_eq!(lines.iter().map(|line| line["requests"].as_u64().unwrap()).sum::<u64>(), 5);
        narrow(&Done::of(place.stele(["cache", "report", "--all", "--by", by])));
    }
    let none = Done::of(place.stele(["cache", "report", "--since", "1ms", "--json"])).lines();
    assert_eq!((none.len(), &none[0]["requests"]), (1, &json!(0)));
    // What sums are by says that sums are wanted.
    let by_model = Done::of(place.stele(["cache", "report", "--by", "model", "--json"]));
    assert_eq!(by_model.out, Done::of(place.stele(["cache", "report", "--all", "--by", "model", "--json"])).out);
    let both = Done::of(place.stele(["cache", "report", &id, "--all"]));
    assert_eq!(both.code, 2, "one session or all of them: {both:?}");
}

#[test]
fn ones_own_prices_count_and_a_missing_figure_is_named() {
    let place = Place::new();
    place.write("notes.txt", "hello, and what else there is to say\n".repeat(300));
    configure(&place, "[prices.\"scripted\"]\ninput = 2_000_000\noutput = 10_000_000\ncache_write_5m = 2_500_000\n");
    let server = server(script());
    let done = Done::of(place.with(&server, ["run", "what do the notes say?", "--json"]));
    assert_eq!(done.result()["cost"], Value::Null, "reads have no price");
    let id = place.sessions().remove(0);
    let report = Done::of(place.stele(["cache", "report", &id]));
    narrow(&report);
    assert!(
        report.out.contains("! the price of scripted has no cache_read (`prices` in config.toml)"),
        "{}",
        report.out
    );

    let whole = "[prices.\"scripted\"]\ninput = 2_000_000\noutput = 10_000_000\ncache_write_5m = 2_500_000\ncache_read = 200_000\n";
    configure(&place, whole);
    let done = Done::of(place.with(&server, ["run", "what do the notes say?", "--json"]));
    assert!(done.result()["cost"].as_u64().unwrap() > 0, "{done:?}");
    let shown = Done::of(place.stele(["config", "--effective", "--json"])).lines();
    assert!(shown.iter().any(|row| row["key"] == "prices.scripted.cache_read"), "{shown:?}");
}

#[test]
fn what_was_lost_without_a_price_is_not_lost_for_nothing() {
    let (place, server, id) = worked();
    configure(&place, "[prices.\"scripted\"]\ninput = 1_000_000\noutput = 2_000_000\n");
    go_on(&place, &server, &id, &["--model", "another"]);
    let mut lines = Done::of(place.stele(["cache", "report", &id, "--json"])).lines();
    let total = lines.pop().unwrap();
    let lost = lines[2]["lost"].as_u64().unwrap();
    assert!(lost > 0 && lines[2]["lost_cost"].is_null(), "{}", lines[2]);
    assert_eq!((&total["lost"], &total["lost_unpriced"]), (&json!(lost), &json!(lost)), "{total}");
    assert_eq!(total["lost_cost"], Value::Null, "{total}");
    for arguments in [&["cache", "report", &id][..], &["cache", "report", "--all"]] {
        let report = Done::of(place.stele(arguments.iter().copied()));
        narrow(&report);
        assert!(report.out.contains(" tokens lost\n") && !report.out.contains("($0"), "{}", report.out);
    }
}

#[test]
fn a_session_that_goes_on_elsewhere_has_a_head_for_each_place() {
    let (place, server, id) = worked();
    let done = Done::of(place.on(&server, Wire::OpenaiChat, ["run", "--resume", &id, "and now?"]));
    assert_eq!(done.code, 0, "{done:?}");
    let lines = requests(&place, &id);
    let wires: Vec<&Value> = lines.iter().map(|line| &line["wire"]).collect();
    assert_eq!(wires, ["anthropic-messages", "anthropic-messages", "openai-chat"]);
    assert_ne!(lines[1]["rules"], lines[2]["rules"], "{lines:?}");
    // Prompts of two wires are in another order, and are not compared.
    assert_eq!(lines[2]["shared_bytes"], 0, "{}", lines[2]);
    let change = json!({"kind": "wire", "before": "anthropic-messages", "after": "openai-chat"});
    assert_eq!(
        (&lines[2]["leaves"]["segment"], &lines[2]["leaves"]["change"]),
        (&json!("wire"), &change),
        "{}",
        lines[2]
    );
    let verdict = &lines[2]["verdict"];
    assert_eq!(
        (&verdict["reason"], &verdict["details"]),
        (&json!("resume_drift"), &json!({"what": "wire"})),
        "{verdict}"
    );
    let report = Done::of(place.stele(["cache", "report", &id]));
    narrow(&report);
    for line in [&lines[1], &lines[2]] {
        let head = format!(" · {} · ", line["wire"].as_str().unwrap());
        let rules = format!("judged by the rules of {}\n", line["rules"].as_str().unwrap());
        assert_eq!(report.out.matches(&head).count(), 1, "{}", report.out);
        assert_eq!(report.out.matches(&rules).count(), 1, "{}", report.out);
    }
}

#[test]
fn on_every_wire_the_log_gives_what_the_server_received() {
    for wire in Wire::ALL {
        let place = Place::new();
        place.write("notes.txt", "hello, and what else there is to say\n".repeat(300));
        let server = server(script());
        let done = Done::of(place.on(&server, wire, ["run", "what do the notes say?"]));
        assert_eq!(done.code, 0, "{wire}: {done:?}");
        let id = place.sessions().remove(0);
        configure(&place, "agent.persona = \"Be brief.\"\n");
        let done = Done::of(place.on(&server, wire, ["run", "--resume", &id, "and now?"]));
        assert_eq!(done.code, 0, "{wire}: {done:?}");
        let received = server.requests().into_iter().filter(|request| request.wire.is_some());
        let bytes: Vec<u64> = received
            .map(|request| {
                let prompt = read_prompt(wire, None, &request.body).unwrap();
                prompt.segments.iter().map(|segment| segment.bytes.len() as u64).sum()
            })
            .collect();
        let lines = requests(&place, &id);
        let told: Vec<u64> = lines.iter().map(|line| line["prompt_bytes"].as_u64().unwrap()).collect();
        assert_eq!(told, bytes, "{wire}");
        assert_eq!(lines[1]["shared_bytes"], bytes[0], "{wire}");
        assert_eq!(lines[2]["verdict"]["kind"], "cut", "{wire}");
        let explained = Done::of(place.stele(["cache", "explain", &id, "--json"])).lines().remove(0);
        assert_eq!(explained["parting"]["zone"], "system", "{wire}: {explained}");
        let report = Done::of(place.stele(["cache", "report", &id]));
        narrow(&report);
    }
}

#[test]
fn the_latest_session_of_the_folder_is_meant_where_none_is_named() {
    let (place, _server, id) = worked();
    let looks = [
        &["cache", "report"][..],
        &["cache", "explain"],
        &["cache", "simulate", "--vendor", "anthropic"],
        &["sessions", "show"],
        &["sessions", "show", "--timeline", "--json"],
        &["verify"],
        &["undo", "--list"],
    ];
    std::fs::create_dir(place.folder().join("other")).unwrap();
    for look in looks {
        let done = Done::of(place.stele(look.iter().copied()));
        let said = format!("session {id} (what do the notes say?), the latest of this folder\n");
        assert_eq!((done.code, done.err.as_str()), (0, said.as_str()), "{look:?}: {done:?}");
        let at = look.len().min(2) - usize::from(look[0] == "verify" || look[0] == "undo");
        let at = at.max(1);
        let named: Vec<&str> =
            look[..at].iter().copied().chain([id.as_str()]).chain(look[at..].iter().copied()).collect();
        let named = Done::of(place.stele(named));
        assert_eq!((named.code, named.err.as_str(), &named.out), (0, "", &done.out), "{look:?}");
        let elsewhere = Done::of(place.stele(look.iter().copied().chain(["-C", "other"])));
        assert_eq!(elsewhere.code, 2, "{elsewhere:?}");
        assert!(elsewhere.err.contains("session.none_here"), "{elsewhere:?}");
        let again = format!("try: stele {}", look[..at].join(" "));
        assert!(elsewhere.err.contains(&again) && elsewhere.err.contains(&id), "{elsewhere:?}");
    }
    assert_eq!(
        Done::of(place.stele(["sessions", "--json"])).out,
        Done::of(place.stele(["sessions", "list", "--json"])).out
    );
    assert!(Done::of(place.stele(["sessions"])).out.contains(&id));
}

#[test]
fn results_that_were_pointed_at_are_in_every_report() {
    let place = Place::new();
    place.write("notes.txt", "hello, and what else there is to say\n".repeat(300));
    let read = || Say::call("read", &json!({"path": "notes.txt"}));
    let server = server(Script::new([read(), read(), Say::text("It says hello.")]));
    let done = Done::of(place.with(&server, ["run", "--json", "what do the notes say?"]));
    let reuse = done.result()["local_reuse"].clone();
    assert_eq!((done.code, &reuse["times"]), (0, &json!(1)), "{done:?}");
    let line = "\n  local tool-result reuse: 1 time, ";
    for report in [&["cache", "report"][..], &["cache", "report", "--all"], &["cache", "report", "--by", "model"]] {
        let text = Done::of(place.stele(report.iter().copied()));
        narrow(&text);
        assert!(text.out.contains(line), "{text:?}");
        let total = Done::of(place.stele(report.iter().copied().chain(["--json"]))).lines().pop().unwrap();
        assert_eq!(total["local_reuse"], reuse, "{total}");
    }
    let none = Done::of(place.stele(["cache", "report", "--since", "1ms", "--json"])).lines().pop().unwrap();
    assert_eq!(none.get("local_reuse"), None, "{none}");
}
