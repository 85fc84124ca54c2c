//! Every way a run ends, with its status and exit code.

use serde_json::json;
use stele_core::{Stop, Wire};
use stele_testkit::{Behaviour, Fault, FaultKind, Say, Script, Server};

use crate::support::{Done, Place, server};

impl Place {
    /// Configures the route `own`: the longest answer costs $0.20.
    fn priced(&self, server: &Server, wire: Wire) {
        let config = format!(
            "[routes.own]\nwire = \"{wire}\"\nbase_url = {:?}\nmodel = \"m\"\n\
             price = {{ input = 1_000_000, output = 2_000_000, cache_read = 100_000, cache_write_5m = 1_250_000 }}\n\
             parameters = {{ max_output_tokens = 100_000 }}\n",
            server.base_url(wire)
        );
        std::fs::create_dir_all(self.home()).unwrap();
        std::fs::write(self.home().join("config.toml"), config).unwrap();
    }
}

#[track_caller]
fn check(server: &Server, arguments: &[&str], code: i32, status: &str, stop: &str) -> (Place, serde_json::Value) {
    let place = Place::new();
    let done = Done::of(place.with(server, ["run", "--json"].into_iter().chain(arguments.iter().copied())));
    let result = done.result();
    assert_eq!((done.code, &result["status"], &result["stop"]), (code, &json!(status), &json!(stop)), "{done:?}");
    place.assert_clean();
    (place, result)
}

#[test]
fn completed() {
    check(&server(Say::text("Done.")), &["hi"], 0, "succeeded", "completed");
}

#[test]
fn a_failure_says_where_it_came_from_and_what_to_do() {
    let failing = |kind: FaultKind| server(Behaviour::from(Say::text("x")).fault(Fault::always(kind)));
    let status = |status, body: &str| FaultKind::Status { status, headers: Vec::new(), body: Some(body.to_owned()) };
    let refused = r#"{"type":"error","error":{"type":"invalid_request_error","message":"the moon is full"}}"#;
    for (kind, number, next) in [
        (status(500, "boom"), "500 ", "try again later"),
        (status(400, refused), "400 ", "ask differently"),
        (FaultKind::Truncate { at: stele_testkit::Cut::Events(1) }, "", "try again later"),
    ] {
        let server = failing(kind);
        let place = Place::new();
        let done = Done::of(place.with(&server, ["run", "--json", "hi"]));
        let message = done.result()["error"]["message"].as_str().unwrap().to_owned();
        assert_eq!(done.result()["steps"], 0, "nothing was answered: {done:?}");
        let listed = Done::of(place.stele(["sessions", "list", "--json"])).lines();
        assert_eq!(listed[0]["steps"], 0, "{listed:?}");
        let address = server.base_url(Wire::AnthropicMessages);
        let host = address.strip_prefix("http://").unwrap();
        assert!(message.contains(&format!("({number}from {host})")) && message.contains(next), "{message}");
        let shown = Done::of(place.stele(["sessions", "show", &place.sessions()[0]])).out;
        assert!(shown.contains(&format!("({number}from {host})")) && shown.contains(next), "{shown}");
    }
}

#[test]
fn refused_for_lack_of_a_person() {
    let script = Script::new([Say::call("bash", &json!({"command": "touch made"})), Say::text("I could not.")]);
    let (place, result) = check(&server(script), &["make it"], 3, "refused", "completed");
    assert!(!place.folder().join("made").exists());
    assert_eq!(result["refused"][0]["tool"], "bash");
    assert_eq!(result["refused"][0]["allow_with"], "--allow 'bash(touch made)'");
}

#[test]
fn no_refusal_advises_more_than_is_needed() {
    let bash = |command: &str| ("bash", json!({ "command": command }));
    let calls = [
        (("write", json!({"path": "made", "content": "x"})), "--mode edit"),
        (bash("printf x > made"), "--mode edit"),
        (bash("touch a 2>&1 | tail -5; timeout 9 touch b"), "--allow 'bash(touch a)' --allow 'bash(touch b)'"),
        (bash("rm *.o"), "--allow 'bash(rm *.o)'"),
        (("write", json!({"path": ".git/hooks/x", "content": "x"})), "--allow 'edit(.git/hooks/x)'"),
        (bash("touch a; echo 'x"), "--mode full"),
        (bash("touch a; touch b; touch c; touch d"), "--mode full"),
    ];
    let made = calls.iter().fold(Say::text("I try."), |say, ((tool, arguments), _)| say.and_call(*tool, arguments));
    let server = server(Script::new([made, Say::text("I could not.")]));
    let (place, result) = check(&server, &["make it"], 3, "refused", "completed");
    let advised: Vec<_> = result["refused"].as_array().unwrap().iter().map(|call| &call["allow_with"]).collect();
    assert_eq!(advised, calls.map(|(_, advice)| advice));
    let shown = Done::of(place.stele(["sessions", "show", "--json", result["session"].as_str().unwrap()]));
    assert_eq!(shown.out.matches(r#""settled_by":"edit""#).count(), 2, "{shown:?}");
    let shown = Done::of(place.stele(["sessions", "show", result["session"].as_str().unwrap()]));
    assert_eq!(shown.out.matches("no rule can allow that, only --mode full").count(), 2, "{shown:?}");
    assert!(
        shown.out.contains("the command cannot be parsed, and nobody") && shown.out.contains("3 rules would not be")
    );
}

#[test]
fn no_refusal_advises_what_cannot_work() {
    // A rule on the command line does not answer one that asks.
    let asks = Say::call("bash", &json!({"command": "touch made"}));
    let asked = server(Script::new([asks, Say::text("I could not.")]));
    let place = Place::new();
    std::fs::create_dir(place.home()).unwrap();
    std::fs::write(place.home().join("config.toml"), "[permissions]\nask = [\"bash(touch *)\"]\n").unwrap();
    let result = Done::of(place.with(&asked, ["run", "--json", "x"])).result();
    assert_eq!(result["refused"][0]["reason"], "bash(touch *) asks");
    assert_eq!(result["refused"][0]["allow_with"], "--mode full");

    let again = (0..6).map(|_| Say::call("glob", &json!({"pattern": "*"})));
    let server = crate::support::server(Script::new(again.chain([Say::text("I stop.")])));
    // No answer of a person was missing, so that this is no refusal for lack of one.
    let (place, result) = check(&server, &["--mode", "full", "x"], 0, "succeeded", "completed");
    assert_eq!(result["refused"], json!([]));
    let shown = Done::of(place.stele(["sessions", "show", &place.sessions()[0]]));
    assert!(shown.out.contains("refused by limit:repeats: the same call was made several times"), "{shown:?}");
    assert!(!shown.out.contains("--mode"), "{shown:?}");
}

#[test]
fn allowed_by_the_flags_that_the_refusal_names() {
    let command = "touch made 2>&1 | tail -5; cp made 'a copy' > log";
    let call = || server(Script::new([Say::call("bash", &json!({ "command": command })), Say::text("Made.")]));
    let (_, refused) = check(&call(), &["x"], 3, "refused", "completed");
    let advice = refused["refused"][0]["allow_with"].as_str().unwrap();
    let words = std::process::Command::new("sh").args(["-c", &format!("printf '%s\n' {advice}")]).output().unwrap();
    let words = String::from_utf8(words.stdout).unwrap();
    let arguments: Vec<&str> = words.lines().chain(["x"]).collect();
    let (place, _) = check(&call(), &arguments, 0, "succeeded", "completed");
    assert!(place.folder().join("a copy").exists() && place.folder().join("log").exists());
}

#[test]
fn reading_a_folder_runs_nothing_that_its_git_configuration_names() {
    let call = |command: &str| Say::call("bash", &json!({ "command": command }));
    let script = || Script::new([call("git status --short"), call("git diff"), call("git log"), Say::text("Looked.")]);
    let place = Place::new();
    let git = |arguments: &[&str]| {
        let done = std::process::Command::new("git").args(arguments).current_dir(place.folder()).status().unwrap();
        assert!(done.success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    git(&["config", "core.fsmonitor", "touch RAN; false"]);
    let refused = Done::of(place.with(&server(script()), ["run", "--json", "x"])).result();
    assert!(!place.folder().join("RAN").exists());
    assert_eq!(refused["refused"][0]["allow_with"], "--allow 'bash(git status --short)'");
    assert_eq!(refused["refused"][1]["reason"], ".git/config sets core.fsmonitor, and git may run a program for it");
    // Who allows the command has allowed what it does.
    Done::of(place.with(&server(script()), ["run", "--json", "--allow", "bash(git status *)", "x"]));
    assert!(place.folder().join("RAN").exists());
    git(&["config", "--unset", "core.fsmonitor"]);
    let free = Done::of(place.with(&server(script()), ["run", "--json", "x"])).result();
    assert_eq!(free["refused"], json!([]));
}

#[test]
fn a_deny_that_did_its_work_changes_no_exit_code() {
    let script = Script::new([Say::call("bash", &json!({"command": "touch made"})), Say::text("I was not allowed.")]);
    let arguments = ["--mode", "full", "--deny", "bash(touch*)", "x"];
    let (place, result) = check(&server(script), &arguments, 0, "succeeded", "completed");
    assert!(!place.folder().join("made").exists());
    assert_eq!(result["refused"], json!([]));
}

#[test]
fn failed() {
    let behaviour = Behaviour::from(Say::text("x")).fault(Fault::always(FaultKind::status(401)));
    let (_, result) = check(&server(behaviour), &["hi"], 1, "failed", "failed");
    assert_eq!(result["error"]["code"], "provider.auth");
}

#[test]
fn a_limit_of_steps() {
    let say = |n: usize| Say::call("glob", &json!({"pattern": format!("*{n}")}));
    let script = Script::new((0..5).map(say));
    let (_, result) = check(&server(script), &["--max-steps", "2", "x"], 4, "limit", "limit");
    assert_eq!(result["limit"], json!({"which": "steps", "maximum": 2, "observed": 2}));
    assert_eq!(result["steps"], 2);
}

#[test]
fn a_limit_of_cost_on_a_model_without_a_price() {
    let (_, result) = check(&server(Say::text("x")), &["--max-cost", "0.10", "x"], 1, "failed", "failed");
    assert_eq!(result["error"]["code"], "limit.unpriced");
    check(&server(Say::text("x")), &["--max-cost", "0.10", "--allow-unpriced", "x"], 0, "succeeded", "completed");
}

#[test]
fn a_limit_of_cost_says_what_the_next_request_may_cost() {
    let place = Place::new();
    let server = server(Say::text("x"));
    let config = format!(
        "[routes.own]\nwire = \"anthropic-messages\"\nbase_url = {:?}\nmodel = \"m\"\n\
         price = {{ input = 1_000_000, output = 2_000_000 }}\nparameters = {{ max_output_tokens = 1_000 }}\n",
        server.base_url(stele_core::Wire::AnthropicMessages)
    );
    std::fs::create_dir_all(place.home()).unwrap();
    std::fs::write(place.home().join("config.toml"), config).unwrap();
    let done = Done::of(place.stele(["run", "--model", "own", "--max-cost", "0.00001", "hi"]));
    assert_eq!(done.code, 4, "{done:?}");
    assert!(done.err.contains("limit reached: cost ($0 of $0.000010; the next request may cost up to $0."), "{done:?}");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_try_that_was_under_way_when_it_was_killed_counts_with_the_most_it_can_have_cost() {
    for (limit, code, requests) in [("0.3", 4, 1), ("1", 0, 2)] {
        let place = Place::new();
        let stall = FaultKind::Stall { at: stele_testkit::Cut::Events(3) };
        let server = server(
            Behaviour::in_order(Script::new([Say::text("a long answer"), Say::text("whole")])).fault(Fault::at(
                0,
                1..=1,
                stall,
            )),
        );
        place.priced(&server, Wire::OpenaiChat);
        let mut child = place.stele(["run", "--model", "own", "--max-cost", limit, "hi"]).spawn().unwrap();
        server.wait_for(1, std::time::Duration::from_secs(20)).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();

        let id = place.sessions().remove(0);
        let done = Done::of(place.stele(["run", "--resume", &id]));
        assert_eq!((done.code, server.requests().len()), (code, requests), "{done:?}");
        if code == 4 {
            assert!(done.err.contains("limit reached: cost (up to $0.20"), "{done:?}");
            assert!(done.err.contains(" of $0.3000; the next request may cost up to $0.20"), "{done:?}");
        }
        assert!(done.err.contains("cost     unpriced"), "{done:?}");
        let shown = Done::of(place.stele(["sessions", "list", "--json"])).lines().remove(0);
        assert_eq!(shown.get("cost").filter(|cost| !cost.is_null()), None, "{shown}");
        place.assert_clean();
    }
}

#[test]
fn a_try_that_broke_off_or_got_no_answer_counts_with_the_most_it_can_have_cost() {
    use stele_testkit::Cut;
    let early = FaultKind::Close { at: Cut::Start };
    for wire in [Wire::AnthropicMessages, Wire::Gemini] {
        for (fault, limit, code, known) in [
            (FaultKind::Truncate { at: Cut::Events(1) }, "1", 0, false),
            (FaultKind::Truncate { at: Cut::Events(1) }, "0.3", 4, false),
            (early.clone(), "1", 0, false),
            (early.clone(), "0.3", 4, false),
            (FaultKind::status(529), "0.3", 0, true),
        ] {
            let place = Place::new();
            let server = server(Behaviour::from(Say::text("a long answer")).fault(Fault::at(0, 1..=1, fault.clone())));
            place.priced(&server, wire);
            let done = Done::of(place.stele(["run", "--json", "--model", "own", "--max-cost", limit, "hi"]));
            let result = done.result();
            assert_eq!((done.code, !result["cost"].is_null()), (code, known), "{wire} {fault:?}: {result}");
            assert_eq!(server.requests().len(), if code == 4 { 1 } else { 2 }, "{wire} {fault:?}");
            place.assert_clean();
        }
    }
}

#[test]
fn a_limit_of_tokens() {
    let script = Script::new([Say::call("glob", &json!({"pattern": "*"})), Say::text("x")]);
    check(&server(script), &["--max-tokens", "100", "x"], 4, "limit", "limit");
}

#[test]
fn a_limit_of_time() {
    let behaviour =
        Behaviour::from(Say::text("x")).fault(Fault::always(FaultKind::Stall { at: stele_testkit::Cut::Start }));
    check(&server(behaviour), &["--timeout", "300ms", "x"], 4, "limit", "limit");
}

#[test]
fn an_answer_that_was_cut_at_its_maximum() {
    check(&server(Say::text("half an").stopped(Stop::MaxOutput)), &["x"], 4, "limit", "max_output");
}
