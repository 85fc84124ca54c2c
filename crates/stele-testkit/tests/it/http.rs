use stele_core::Wire;
use stele_testkit::{Behaviour, Say, Server};

use crate::agent::Agent;
use crate::client::Client;

fn asking(server: &Server) -> (Agent, String) {
    let mut agent = Agent::new(server, Wire::OpenaiChat);
    agent.prompt("go");
    let body = agent.body(false).to_string();
    (agent, body)
}

#[test]
fn a_connection_is_used_again() {
    let server = Server::start(Behaviour::answering(|_| Say::text("ok").into())).unwrap();
    let (agent, body) = asking(&server);
    let mut client = Client::new(server.address());
    for stream in [true, false, true] {
        let body = agent.body(stream).to_string();
        assert_eq!(client.post(&agent.path(stream), &[], body.as_bytes()).status, 200);
    }
    let last = client.post(&agent.path(false), &[("Connection", "close")], body.as_bytes());
    assert_eq!((last.status, last.header("connection")), (200, Some("close")));
    assert!(client.rest().is_empty());
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_body_may_come_in_chunks_and_after_a_word() {
    let server = Server::start(Say::text("ok")).unwrap();
    let (agent, body) = asking(&server);
    let mut client = Client::new(server.address());
    let mut request = format!("POST {} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", agent.path(false));
    for piece in body.as_bytes().chunks(7) {
        request.push_str(&format!("{:X};name=value\r\n{}\r\n", piece.len(), std::str::from_utf8(piece).unwrap()));
    }
    request.push_str("0\r\nTrailer: x\r\n\r\n");
    // One byte at a time.
    for byte in request.as_bytes() {
        client.write(&[*byte]);
    }
    assert_eq!(client.receive().status, 200);
    assert_eq!(&server.requests()[0].body[..], body.as_bytes());
    let head = format!(
        "POST {} HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        agent.path(false),
        body.len()
    );
    client.write(head.as_bytes());
    assert_eq!(client.head().unwrap().0, 100);
    client.write(body.as_bytes());
    assert_eq!(client.receive().status, 200);
}

#[test]
fn old_clients_are_answered_and_left() {
    let server = Server::start(Say::text("ok")).unwrap();
    let mut client = Client::new(server.address());
    client.write(b"GET /v1/models HTTP/1.0\r\n\r\n");
    assert_eq!(client.receive().status, 200);
    assert!(client.rest().is_empty());
}

#[test]
fn models_are_listed() {
    let list = |server: &Server, path: &str| Client::new(server.address()).get(path).json();
    let server = Server::start(Say::text("ok")).unwrap();
    assert_eq!(list(&server, "/v1/models")["data"][0]["id"], "scripted");
    assert_eq!(list(&server, "/v1beta/models")["models"][0]["name"], "models/scripted");
    let server = Server::start(Behaviour::from(Say::text("ok")).models(["a", "b"])).unwrap();
    assert_eq!(list(&server, "/v1/models")["data"][1]["id"], "b");
    let received = server.requests();
    assert_eq!((received[0].wire, received[0].method.as_str(), received[0].step), (None, "GET", None));
}

#[test]
fn what_is_not_there_is_not_found() {
    let server = Server::start(Say::text("ok")).unwrap();
    let mut client = Client::new(server.address());
    for path in ["/", "/v1/v1/messages", "/messages", "/v1beta/models/m:embedContent", "/v1beta/models/m"] {
        assert_eq!(client.post(path, &[], b"{}").status, 404, "{path}");
    }
    assert_eq!(client.get("/v1/messages").status, 404);
    assert!(server.requests().iter().all(|received| received.wire.is_none()));
}

#[test]
fn what_is_not_http_is_refused() {
    let server = Server::start(Say::text("ok")).unwrap();
    let long = [b"GET / HTTP/1.1\r\nX: ", "y".repeat(70_000).as_bytes()].concat();
    let cases: [(&[u8], &str); 8] = [
        (b"hello\r\n\r\n", "400"),
        (b"GET / HTTP/2\r\n\r\n", "400"),
        (b"GET x HTTP/1.1\r\n\r\n", "400"),
        (b"\xff\xff\r\n", "400"),
        (b"POST / HTTP/1.1\r\nno colon\r\n\r\n", "400"),
        (b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n", "400"),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", "413"),
        (&long, "431"),
    ];
    for (bytes, status) in cases {
        let mut client = Client::new(server.address());
        client.try_write(bytes);
        client.finish();
        let answer = String::from_utf8_lossy(&client.rest()).into_owned();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")) || (status == "431" && answer.is_empty()),
            "{answer}"
        );
    }
    assert!(server.requests().is_empty());
    for bytes in [&b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"[..], b"GET /"] {
        let mut client = Client::new(server.address());
        client.write(bytes);
        client.finish();
        client.rest();
    }
    assert_eq!(Client::new(server.address()).get("/v1/models").status, 200);
}
