use serde_json::{Value, json};
use stele_core::Wire;
use stele_testkit::{Behaviour, Cut, Fault, FaultKind, Reply, Say, Server};

use crate::agent::{Agent, streamed};
use crate::client::{Client, End, PATIENCE, Response};

const TEXT: &str = "A text that is long enough to be sent in several pieces.";

fn serve(kind: FaultKind) -> Server {
    Server::start(Behaviour::from(Say::text(TEXT)).fault(Fault::at(0, 1..=1, kind))).unwrap()
}

fn asking(server: &Server, wire: Wire) -> Agent {
    let mut agent = Agent::new(server, wire);
    agent.prompt("go");
    agent
}

/// Asks once with the fault, and once again, which must be right.
fn strike(wire: Wire, kind: FaultKind) -> Response {
    let server = serve(kind);
    let agent = asking(&server, wire);
    let response = agent.ask(true);
    assert_eq!(streamed(wire, &agent.ask(true)).text, TEXT, "{wire}: the second attempt");
    let attempts: Vec<_> = server.requests().iter().map(|received| (received.step, received.attempt)).collect();
    assert_eq!(attempts, [(Some(0), 1), (Some(0), 2)]);
    response
}

#[test]
fn a_status_has_the_vendors_body_or_ones_own() {
    for wire in Wire::ALL {
        for status in [400, 401, 403, 404, 413, 429, 500, 503, 529] {
            let response = strike(wire, FaultKind::status(status));
            assert_eq!(response.status, status);
            assert!(!response.json()["error"]["message"].as_str().unwrap().is_empty());
        }
        let response = strike(
            wire,
            FaultKind::Status {
                status: 429,
                headers: vec![("retry-after".to_owned(), "7".to_owned())],
                body: Some("slow down".to_owned()),
            },
        );
        assert_eq!((response.text().as_str(), response.header("retry-after")), ("slow down", Some("7")));
    }
    let kind = |wire, status, pointer: &str| {
        strike(wire, FaultKind::status(status)).json().pointer(pointer).unwrap().as_str().unwrap().to_owned()
    };
    assert_eq!(kind(Wire::AnthropicMessages, 529, "/error/type"), "overloaded_error");
    assert_eq!(kind(Wire::AnthropicMessages, 429, "/error/type"), "rate_limit_error");
    assert_eq!(kind(Wire::OpenaiChat, 429, "/error/code"), "rate_limit_exceeded");
    assert_eq!(kind(Wire::OpenaiResponses, 404, "/error/code"), "model_not_found");
    assert_eq!(kind(Wire::Gemini, 503, "/error/status"), "UNAVAILABLE");
}

#[test]
fn an_error_may_come_in_mid_stream() {
    for wire in Wire::ALL {
        let kind = FaultKind::ErrorEvent { at: Cut::Events(2), status: 529, message: "marker-4711".to_owned() };
        let response = strike(wire, kind);
        assert_eq!((response.status, response.end), (200, End::Whole));
        let events = response.data();
        assert_eq!(events.len(), 3, "{wire}");
        let last = &events[2];
        let (pointer, expected) = match wire {
            Wire::AnthropicMessages => ("/error/type", "overloaded_error"),
            Wire::OpenaiResponses => ("/type", "response.failed"),
            Wire::OpenaiChat => ("/error/code", "server_error"),
            Wire::Gemini => ("/error/status", "UNAVAILABLE"),
        };
        assert_eq!(last.pointer(pointer).unwrap(), expected, "{wire}");
        assert!(last.to_string().contains("marker-4711"));
        assert_eq!(response.chunks.len(), 3);
    }
}

#[test]
fn a_stream_may_be_cut_in_three_ways() {
    for wire in Wire::ALL {
        let whole = asking(&Server::start(Say::text(TEXT)).unwrap(), wire).ask(true);
        let two: usize = whole.chunks[..2].iter().map(Vec::len).sum();
        for (at, length) in
            [(Cut::Events(2), two), (Cut::Bytes(37), 37), (Cut::Events(0), 0), (Cut::Bytes(1 << 30), whole.body.len())]
        {
            for (kind, end) in [
                (FaultKind::Truncate { at }, End::Whole),
                (FaultKind::Close { at }, End::Closed),
                (FaultKind::Reset { at }, End::Reset),
            ] {
                let response = strike(wire, kind);
                assert_eq!(response.end, end, "{wire} {at:?}");
                // After a reset the kernel may drop what was not read yet.
                if end != End::Reset {
                    assert_eq!(response.body, whole.body[..length], "{wire} {at:?}");
                }
            }
        }
    }
}

#[test]
fn there_may_be_no_answer_at_all() {
    for kind in [FaultKind::Close { at: Cut::Start }, FaultKind::Reset { at: Cut::Start }] {
        let server = serve(kind);
        let agent = asking(&server, Wire::OpenaiChat);
        let mut client = Client::new(server.address());
        client.send("POST", &agent.path(true), &[], agent.body(true).to_string().as_bytes());
        assert!(client.head().is_none());
    }
}

#[test]
fn a_stall_lasts_until_it_is_released() {
    for wire in Wire::ALL {
        let server = serve(FaultKind::Stall { at: Cut::Events(1) });
        let agent = asking(&server, wire);
        let mut client = Client::new(server.address());
        client.send("POST", &agent.path(true), &agent.headers(), agent.body(true).to_string().as_bytes());
        assert_eq!(client.head().unwrap().0, 200);
        let mut body = client.chunk().unwrap();
        // Another request is answered while this one is held.
        assert_eq!(streamed(wire, &agent.ask(true)).text, TEXT);
        server.release();
        loop {
            let chunk = client.chunk().unwrap();
            if chunk.is_empty() {
                break;
            }
            body.extend(chunk);
        }
        assert!(String::from_utf8(body).unwrap().contains("pieces."), "{wire}");
    }
}

#[test]
fn headers_may_be_late_and_a_client_may_leave() {
    let server = serve(FaultKind::Stall { at: Cut::Start });
    let agent = asking(&server, Wire::AnthropicMessages);
    let mut client = Client::new(server.address());
    client.send("POST", &agent.path(true), &agent.headers(), agent.body(true).to_string().as_bytes());
    assert!(server.wait_for(1, PATIENCE).is_some());
    server.release();
    assert_eq!(client.receive().status, 200);
    // One that leaves while it is held takes no release with it.
    let server =
        Server::start(Behaviour::from(Say::text(TEXT)).fault(Fault::at(0, 1..=2, FaultKind::Stall { at: Cut::Start })))
            .unwrap();
    let agent = asking(&server, Wire::AnthropicMessages);
    let mut leaving = Client::new(server.address());
    leaving.send("POST", &agent.path(true), &agent.headers(), agent.body(true).to_string().as_bytes());
    assert!(server.wait_for(1, PATIENCE).is_some());
    leaving.finish();
    assert!(leaving.rest().is_empty(), "the server closes");
    let mut staying = Client::new(server.address());
    staying.send("POST", &agent.path(true), &agent.headers(), agent.body(true).to_string().as_bytes());
    assert!(server.wait_for(2, PATIENCE).is_some());
    server.release();
    assert_eq!(staying.receive().status, 200);
}

#[test]
fn dropping_the_server_ends_what_is_stalled() {
    let server = serve(FaultKind::Stall { at: Cut::Events(1) });
    let agent = asking(&server, Wire::OpenaiChat);
    let mut client = Client::new(server.address());
    client.send("POST", &agent.path(true), &[], agent.body(true).to_string().as_bytes());
    assert_eq!(client.head().unwrap().0, 200);
    assert!(!client.chunk().unwrap().is_empty());
    drop(server);
    assert!(matches!(client.chunk(), Err(End::Closed | End::Reset)));
}

#[test]
fn a_finished_stream_may_be_left_open() {
    for wire in Wire::ALL {
        let whole = asking(&Server::start(Say::text(TEXT)).unwrap(), wire).ask(true);
        let server = serve(FaultKind::LeftOpen);
        let agent = asking(&server, wire);
        let mut client = Client::new(server.address());
        client.send("POST", &agent.path(true), &agent.headers(), agent.body(true).to_string().as_bytes());
        assert_eq!(client.head().unwrap().0, 200);
        let mut body = Vec::new();
        while body.len() < whole.body.len() {
            body.extend(client.chunk().unwrap());
        }
        assert_eq!(body, whole.body);
        server.release();
        assert!(client.chunk().unwrap().is_empty());
    }
}

#[test]
fn foreign_bytes_may_stand_in_a_body() {
    for wire in Wire::ALL {
        let whole = asking(&Server::start(Say::text(TEXT)).unwrap(), wire).ask(true);
        let first = whole.chunks[0].len();
        let response = strike(wire, FaultKind::Garbage { at: Cut::Events(1), bytes: b"\xff\0<html>\n\n".to_vec() });
        let expected = [&whole.body[..first], b"\xff\0<html>\n\n", &whole.body[first..]].concat();
        assert_eq!(response.body, expected, "{wire}");
    }
}

#[test]
fn usage_may_be_missing_or_wrong() {
    for wire in Wire::ALL {
        let none = strike(wire, FaultKind::NoUsage);
        assert!(!none.text().to_lowercase().contains("tokens\""), "{wire}: {}", none.text());
        let wrong = json!({"input_tokens": "many", "output_tokens": -1});
        let usage = streamed(wire, &strike(wire, FaultKind::Usage(wrong.clone()))).usage;
        assert_eq!(usage, wrong, "{wire}");
    }
}

#[test]
fn a_fault_strikes_the_attempts_that_it_names() {
    let server = Server::start(
        Behaviour::from(Say::text(TEXT)).fault(Fault::at(1, 1..=9, FaultKind::status(400))).fault(Fault::at(
            0,
            2..=3,
            FaultKind::status(500),
        )),
    )
    .unwrap();
    let agent = asking(&server, Wire::OpenaiChat);
    let statuses: Vec<u16> = (0..5).map(|_| agent.ask(false).status).collect();
    assert_eq!(statuses, [200, 500, 500, 200, 200]);
    let server = Server::start(Behaviour::from(Say::text(TEXT)).fault(Fault::always(FaultKind::status(401)))).unwrap();
    let agent = asking(&server, Wire::OpenaiChat);
    assert!((0..3).all(|_| agent.ask(false).status == 401));
    assert!(server.requests().iter().all(|received| received.status == 401));
}

#[test]
fn a_reply_may_bring_its_own_fault() {
    let server = Server::start(Behaviour::answering(|request| {
        let reply = Reply::from(Say::text(TEXT));
        if request.number == 0 { reply.fault(FaultKind::status(503)) } else { reply }
    }))
    .unwrap();
    let agent = asking(&server, Wire::Gemini);
    assert_eq!(agent.ask(true).status, 503);
    assert_eq!(agent.ask(true).status, 200);
}

#[test]
fn an_answer_that_is_not_streamed_may_be_cut_too() {
    let server = serve(FaultKind::Truncate { at: Cut::Bytes(10) });
    let agent = asking(&server, Wire::OpenaiChat);
    let response = agent.ask(false);
    assert_eq!(response.end, End::Closed);
    assert_ne!(agent.ask(false).json(), Value::Null);
}
