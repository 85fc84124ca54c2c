use std::time::Duration;

use serde_json::json;
use stele_core::Wire;
use stele_testkit::{Behaviour, Exchange, Fault, FaultKind, Reply, Role, Say, Script, Server};

use crate::agent::Agent;
use crate::client::PATIENCE;

fn two_turns() -> Script {
    Script::new([
        Say::call("read", &json!({"argument": "a"})),
        Say::text("Looking further.")
            .and_call("read", &json!({"argument": "b"}))
            .and_call("bash", &json!({"argument": "ls"})),
        Say::text("First answer."),
        Say::call("bash", &json!({"argument": "pwd"})),
        Say::text("Second answer."),
    ])
}

/// Plays both turns; with `fresh`, every step goes to a server that has never seen the session.
fn play(wire: Wire, fresh: bool) -> Vec<(String, usize)> {
    let mut server = Server::start(two_turns()).unwrap();
    let mut agent = Agent::new(&server, wire);
    let mut heard = Vec::new();
    for prompt in ["one", "two"] {
        agent.prompt(prompt);
        loop {
            if fresh {
                server = Server::start(two_turns()).unwrap();
                let mut next = Agent::new(&server, wire);
                next.history = agent.history.clone();
                agent = next;
            }
            let said = agent.step();
            heard.push((said.text.clone(), said.calls.len()));
            if said.calls.is_empty() {
                break;
            }
            agent.results("fine");
        }
    }
    let statuses: Vec<u16> = server.requests().iter().map(|received| received.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status != 200).count(), 0, "{wire}");
    heard
}

#[test]
fn the_step_is_read_from_the_history_on_every_wire() {
    let expected: Vec<(String, usize)> =
        [("", 1), ("Looking further.", 2), ("First answer.", 0), ("", 1), ("Second answer.", 0)]
            .map(|(text, calls)| (text.to_owned(), calls))
            .to_vec();
    for wire in Wire::ALL {
        assert_eq!(play(wire, false), expected, "{wire}");
        assert_eq!(play(wire, true), expected, "{wire}, each step by another server");
    }
}

#[test]
fn after_the_script_there_is_an_answer() {
    let server = Server::start(Say::text("all")).unwrap();
    let mut agent = Agent::new(&server, Wire::OpenaiChat);
    agent.prompt("one");
    assert_eq!(agent.step().text, "all");
    agent.prompt("two");
    assert_eq!(agent.step().text, "(the script has ended)");
}

#[test]
fn ids_are_like_the_vendors_and_the_same_each_time() {
    let ids = |wire| {
        let server = Server::start(two_turns()).unwrap();
        let mut agent = Agent::new(&server, wire);
        agent.prompt("one");
        let mut ids = vec![agent.step().calls];
        agent.results("fine");
        ids.push(agent.step().calls);
        ids.concat().into_iter().map(|(id, ..)| id).collect::<Vec<_>>()
    };
    for (wire, prefix) in
        [(Wire::AnthropicMessages, "toolu_01"), (Wire::OpenaiResponses, "call_"), (Wire::OpenaiChat, "call_")]
    {
        let first = ids(wire);
        assert_eq!(first, ids(wire));
        assert!(first.iter().all(|id| id.starts_with(prefix)), "{first:?}");
        let mut unique = first.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), 3);
    }
}

/// Reads, then repeats a command whose outcome is not known.
fn look_again(answered: &[Exchange<'_>]) -> Vec<Say> {
    let unknown = answered.iter().filter(|exchange| exchange.result.text.contains("outcome_unknown"));
    unknown
        .filter_map(|exchange| exchange.call)
        .flat_map(|call| {
            [
                Say::call("read", &json!({"argument": "marker"})),
                Say::raw_call(call.name.clone(), call.arguments.clone()),
            ]
        })
        .collect()
}

#[test]
fn a_script_reacts_to_results_and_goes_on() {
    for wire in Wire::ALL {
        let script = Script::new([Say::call("bash", &json!({"argument": "echo x"})), Say::text("Done.")]);
        let server = Server::start(script.reacting(look_again)).unwrap();
        let mut agent = Agent::new(&server, wire);
        agent.prompt("go");
        let first = agent.step().calls;
        agent.results("outcome_unknown: the process died");
        let look = agent.step().calls;
        assert_eq!(look[0].1, "read", "{wire}");
        agent.results("nothing there");
        let again = agent.step().calls;
        assert_eq!((&again[0].1, &again[0].2), (&first[0].1, &first[0].2), "{wire}");
        assert!(wire == Wire::Gemini || again[0].0 != first[0].0, "{wire}: a new call has a new id");
        // It may happen again.
        agent.results("outcome_unknown: the process died");
        assert_eq!(agent.step().calls[0].1, "read");
        agent.results("nothing there");
        assert_eq!(agent.step().calls[0].1, "bash");
        agent.results("x");
        assert_eq!(agent.step().text, "Done.", "{wire}");
    }
}

#[test]
fn steps_in_the_order_of_arrival_do_not_look_at_the_history() {
    let script = Script::new([Say::text("first"), Say::text("second")]);
    let behaviour = Behaviour::in_order(script).fault(Fault::at(0, 1..=1, FaultKind::status(500)));
    let server = Server::start(behaviour).unwrap();
    let mut agent = Agent::new(&server, Wire::AnthropicMessages);
    agent.prompt("same");
    assert_eq!(agent.ask(false).status, 500);
    assert_eq!(agent.step().text, "first");
    agent.history.truncate(1);
    assert_eq!(agent.step().text, "second");
    let played: Vec<_> = server.requests().iter().map(|received| (received.step, received.attempt)).collect();
    assert_eq!(played, [(Some(0), 1), (Some(0), 2), (Some(1), 1)]);
}

#[test]
fn a_function_sees_the_request_in_the_same_form_on_every_wire() {
    for wire in Wire::ALL {
        let server = Server::start(Behaviour::answering(|request| {
            let exchanges = request.last_exchanges();
            if let Some(exchange) = exchanges.first() {
                let call = exchange.call.unwrap();
                let seen = format!(
                    "{} {} {} | {} | {} | {} | {}",
                    call.name,
                    call.arguments,
                    exchange.result.text,
                    request.system,
                    request.tools.join(","),
                    request.last_text(),
                    request.messages.len()
                );
                assert_eq!(request.messages[1].role, Role::Assistant);
                return Reply::from(Say::text(seen));
            }
            Say::reasoning("hm").and_text("I look.").and_call("read", &json!({"argument": "a"})).into()
        }))
        .unwrap();
        let mut agent = Agent::new(&server, wire);
        agent.prompt("what is this?");
        agent.step();
        agent.results("contents");
        let seen = agent.step().text;
        assert_eq!(
            seen, "read {\"argument\":\"a\"} contents | You are a test. | bash,read | what is this? | 3",
            "{wire}"
        );
        let requests = server.requests();
        assert_eq!(requests[1].wire, Some(wire));
        assert_eq!(requests[1].step, Some(1));
    }
}

#[test]
fn bodies_are_kept_byte_for_byte_and_can_be_waited_for() {
    let server = Server::start(Say::text("ok")).unwrap();
    assert!(server.wait_for(1, Duration::ZERO).is_none());
    let mut agent = Agent::new(&server, Wire::OpenaiChat);
    agent.prompt("  keep   these bytes 🙂");
    let body = format!("\n {} \t", agent.body(false));
    let address = server.address();
    let sending = std::thread::spawn(move || {
        let headers = [("X-Own", "Value")];
        crate::client::Client::new(address).post("/v1/chat/completions?x=1", &headers, body.as_bytes());
        body
    });
    let received = server.wait_for(1, PATIENCE).unwrap();
    assert_eq!(&received.body[..], sending.join().unwrap().as_bytes());
    assert_eq!(received.header("x-own"), Some("Value"));
    assert_eq!(received.path, "/v1/chat/completions?x=1");
    assert_eq!(received.method, "POST");
    assert_eq!(received.json()["model"], "scripted");
    assert_eq!(server.requests().len(), 1);
    assert!(server.wait_for(0, Duration::ZERO).is_none());
}

#[test]
fn base_urls_are_what_the_vendors_own_clients_take() {
    let server = Server::start(Say::text("ok")).unwrap();
    let address = server.address();
    assert_eq!(server.base_url(Wire::AnthropicMessages), format!("http://{address}"));
    assert_eq!(server.base_url(Wire::Gemini), format!("http://{address}"));
    assert_eq!(server.base_url(Wire::OpenaiResponses), format!("http://{address}/v1"));
    assert_eq!(server.base_url(Wire::OpenaiChat), format!("http://{address}/v1"));
}
