//! Clients that leave, servers that die, and what the proxy says itself.

use serde_json::Value;
use stele_proxy::{Ending, Error, Exposure, Notice, Options, Proxy, Target};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::support::{PATIENCE, dechunk, exchange, options, post, proxy, proxy_with, read_request, server, split};

const REQUEST: &[u8] = br#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#;

#[tokio::test]
async fn a_server_that_dies_in_the_middle_leaves_the_same_truncation() {
    for (head, body, expect) in [
        ("Transfer-Encoding: chunked", &b"3\r\nabc\r\n5\r\nde"[..], &b"abcde"[..]),
        ("Transfer-Encoding: chunked", b"3\r\nabc\r\n", b"abc"),
        ("Content-Length: 100", b"abcdefg", b"abcdefg"),
    ] {
        let address = server(move |mut stream| async move {
            read_request(&mut stream).await;
            let head = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n");
            // Head and body in one write, then the end: nothing of it may be lost.
            stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
        })
        .await;
        let running = proxy(&format!("http://{address}")).await;
        let answer = exchange(running.address, &post("/v1/messages", "", REQUEST)).await;
        let (_, rest) = split(&answer);
        let (found, whole) = if head.starts_with("Transfer") { dechunk(rest) } else { (rest.to_vec(), false) };
        assert_eq!((found.as_slice(), whole), (expect, false), "{head}");
        let recorded = running.finish().await;
        assert_eq!((recorded[0].ending, recorded[0].status), (Ending::ServerBroke, Some(200)), "{head}");
    }
}

#[tokio::test]
async fn usage_that_came_before_a_truncation_is_kept() {
    let start = r#"{"type":"message_start","message":{"usage":{"input_tokens":7,"cache_read_input_tokens":3,"output_tokens":1},"diagnostics":{"cache_miss_reason":{"type":"system_changed"}}}}"#;
    let address = server(move |mut stream| async move {
        read_request(&mut stream).await;
        let event = format!("event: message_start\ndata: {start}\n\nevent: content_block_delta\ndata: {{\"type\":");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 5000\r\n\r\n";
        stream.write_all(format!("{head}{event}").as_bytes()).await.unwrap();
    })
    .await;
    let running = proxy(&format!("http://{address}")).await;
    exchange(running.address, &post("/v1/messages", "", REQUEST)).await;
    let recorded = running.finish().await.remove(0);
    assert_eq!(recorded.miss_reason.as_deref(), Some("system_changed"), "what the endpoint says of it");
    let usage = recorded.usage.unwrap();
    assert_eq!((usage.fresh, usage.cache_read), (Some(7), Some(3)));
}

/// A server that never answers, or never ends its answer, and says when the connection is closed.
async fn endless(answer: &'static [u8]) -> (std::net::SocketAddr, mpsc::UnboundedReceiver<&'static str>) {
    let (sender, events) = mpsc::unbounded_channel();
    let address = server(move |mut stream| {
        let sender = sender.clone();
        async move {
            read_request(&mut stream).await;
            sender.send("request").unwrap();
            stream.write_all(answer).await.unwrap();
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
            sender.send("closed").unwrap();
        }
    })
    .await;
    (address, events)
}

#[tokio::test]
async fn when_the_client_leaves_the_servers_connection_is_closed() {
    for (answer, status) in [(&b""[..], None), (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", Some(200))] {
        let (address, mut events) = endless(answer).await;
        let mut running = proxy(&format!("http://{address}")).await;
        let mut client = TcpStream::connect(running.address).await.unwrap();
        client.write_all(&post("/v1/messages", "", REQUEST)).await.unwrap();
        assert_eq!(events.recv().await, Some("request"));
        if !answer.is_empty() {
            let mut piece = [0; 1];
            client.read_exact(&mut piece).await.unwrap();
        }
        drop(client);
        assert_eq!(tokio::time::timeout(PATIENCE, events.recv()).await.unwrap(), Some("closed"));
        let Notice::Recorded { ending, .. } = running.notice().await else { panic!("it is recorded") };
        assert_eq!(ending, Ending::ClientLeft);
        assert_eq!(running.finish().await[0].status, status);
    }
}

#[tokio::test]
async fn half_a_request_closes_the_servers_connection_and_is_not_recorded() {
    let (address, mut events) = endless(b"").await;
    let mut running = proxy(&format!("http://{address}")).await;
    let mut client = TcpStream::connect(running.address).await.unwrap();
    client
        .write_all(b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 500\r\n\r\n{\"mess")
        .await
        .unwrap();
    drop(client);
    assert_eq!(tokio::time::timeout(PATIENCE, events.recv()).await.unwrap(), Some("request"));
    assert_eq!(tokio::time::timeout(PATIENCE, events.recv()).await.unwrap(), Some("closed"));
    let Notice::NotRecorded { why } = running.notice().await else { panic!("it is said") };
    assert!(why.contains("in the middle of its request"), "{why}");
    assert_eq!(running.finish().await, []);
}

#[tokio::test]
async fn who_sends_half_a_request_and_waits_is_told_that_it_was_the_client() {
    for path in ["/v1/messages", "/v1/files"] {
        let (address, _events) = endless(b"").await;
        let mut running = proxy(&format!("http://{address}")).await;
        let mut client = TcpStream::connect(running.address).await.unwrap();
        let half = format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 500\r\n\r\n{{\"mess");
        client.write_all(half.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let mut answer = Vec::new();
        tokio::time::timeout(PATIENCE, client.read_to_end(&mut answer)).await.unwrap().unwrap();
        refused(&answer, "proxy.client_left", "the client broke off in the middle of its request");
        assert!(!String::from_utf8_lossy(&answer).contains(&address.to_string()), "nothing of it is the server's");
        match running.notice().await {
            Notice::NotRecorded { why } => assert!(why.contains("client left"), "{why}"),
            Notice::Refused { code, .. } => assert_eq!((path, code), ("/v1/files", "proxy.client_left")),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn what_is_no_http_is_refused_and_harms_nobody() {
    let address = server(|mut stream| async move {
        read_request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    })
    .await;
    let running = proxy(&format!("http://{address}")).await;
    let answer = exchange(running.address, b"\x16\x03\x01\x02\x00 hello\r\n\r\n").await;
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{answer:?}");
    let answer = exchange(running.address, &post("/v1/messages", "", REQUEST)).await;
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    assert_eq!(running.finish().await.len(), 1);
}

#[track_caller]
fn refused(answer: &[u8], code: &str, part: &str) {
    let (head, body) = split(answer);
    assert!(head.starts_with("HTTP/1.1 502"), "{head}");
    let body: Value = serde_json::from_slice(body).unwrap();
    assert_eq!((body["type"].as_str(), body["error"]["code"].as_str()), (Some("error"), Some(code)));
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains(part), "{message}");
}

#[tokio::test]
async fn an_error_of_the_proxy_is_a_502_with_its_code() {
    // A port that was just given back: nothing listens there.
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut running = proxy(&format!("http://{closed}")).await;
    let answer = exchange(running.address, &post("/v1/messages", "", REQUEST)).await;
    refused(&answer, "proxy.unreachable", "is the server running?");
    let Notice::Refused { code, .. } = running.notice().await else { panic!("it is said") };
    assert_eq!(code, "proxy.unreachable");
    // A client that sends much before it reads gets its answer too.
    let answer = exchange(running.address, &post("/v1/messages", "", &vec![b' '; 8 << 20])).await;
    refused(&answer, "proxy.unreachable", "nothing answers");
    let answer = exchange(running.address, b"CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\nConnection: close\r\n\r\n").await;
    refused(&answer, "proxy.connect", "base URL");
    let recorded = running.finish().await;
    assert_eq!((recorded[0].ending, recorded[0].status), (Ending::Unreachable, None));

    let address = server(|mut stream| async move {
        read_request(&mut stream).await;
    })
    .await;
    let running = proxy(&format!("http://{address}")).await;
    let answer = exchange(running.address, &post("/v1/messages", "", REQUEST)).await;
    refused(&answer, "proxy.broken", "broke off before it answered");
    running.finish().await;
}

/// A web page whose name was given this machine's address asks by that name.
#[tokio::test]
async fn who_asks_by_a_foreign_name_is_refused_and_not_forwarded() {
    let (sender, mut reached) = mpsc::unbounded_channel();
    let address = server(move |mut stream| {
        let sender = sender.clone();
        async move {
            read_request(&mut stream).await;
            sender.send(()).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        }
    })
    .await;
    let mut running = proxy(&format!("http://{address}")).await;
    let port = running.address.port();
    let asked = |line: &str, host: &str, body: &[u8]| {
        let head = format!("{line}\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    };
    let long = vec![b' '; 4 << 20];
    for (line, host, body) in [
        ("POST /v1/messages HTTP/1.1", "evil.example", REQUEST),
        ("POST /v1/messages HTTP/1.1", "127.0.0.1.evil.example:8787", &long),
        ("GET http://evil.example/v1/models HTTP/1.1", "127.0.0.1", b""),
    ] {
        let answer = exchange(running.address, &asked(line, host, body)).await;
        let (head, body) = split(&answer);
        assert!(head.starts_with("HTTP/1.1 403"), "{head}");
        let body: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(body["error"]["code"], "proxy.host");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains("evil.example") && message.contains("http://127.0.0.1"), "{message}");
        assert!(message.contains("`stele proxy --allow-remote`"), "{message}");
        assert!(matches!(running.notice().await, Notice::Refused { code: "proxy.host", .. }));
    }
    assert!(reached.try_recv().is_err(), "nothing was forwarded");
    for own in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), "[::1]".to_owned()] {
        let answer = exchange(running.address, &asked("POST /v1/messages HTTP/1.1", &own, REQUEST)).await;
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{own}");
    }
    assert_eq!(running.finish().await.len(), 3);

    // Whoever lets other machines in is asked by names that nobody knows here.
    let open =
        proxy_with(&format!("http://{address}"), |options| Options { exposure: Exposure::Network, ..options }).await;
    let answer = exchange(open.address, &asked("POST /v1/messages HTTP/1.1", "box.lan", REQUEST)).await;
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    open.finish().await;
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_named() {
    let address = server(|mut stream| async move {
        let mut bytes = [0; 16];
        let _ = stream.read(&mut bytes).await;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    })
    .await;
    let running = proxy(&format!("https://{address}")).await;
    let answer = exchange(running.address, &post("/v1/messages", "", REQUEST)).await;
    refused(&answer, "proxy.unreachable", "no TLS connection");
    running.finish().await;
}

#[tokio::test]
async fn it_listens_where_only_this_machine_can_connect_unless_told() {
    let folder = tempfile::tempdir().unwrap();
    let open = |exposure| Options {
        listen: "0.0.0.0:0".parse().unwrap(),
        exposure,
        ..options("http://127.0.0.1:1", folder.path())
    };
    let error = Proxy::bind(open(Exposure::Loopback)).await.unwrap_err();
    assert!(matches!(error, Error::Exposed(_)) && error.to_string().starts_with(error.code()), "{error}");
    assert!(Proxy::bind(open(Exposure::Network)).await.is_ok());
}

#[tokio::test]
async fn it_does_not_stand_before_itself() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    let to_itself = Options { listen: address, ..options(&format!("http://{address}/v1"), folder.path()) };
    assert!(matches!(Proxy::bind(to_itself.clone()).await.unwrap_err(), Error::Listen { .. }));
    drop(taken);
    assert!(matches!(Proxy::bind(to_itself).await.unwrap_err(), Error::Loops(_)));
}

#[test]
fn targets_are_names_and_urls() {
    let address = "127.0.0.1:8787".parse().unwrap();
    let base = |text: &str| Target::parse(text).unwrap().base_url(address);
    assert_eq!(base("anthropic"), "http://127.0.0.1:8787");
    assert_eq!(base("openai"), "http://127.0.0.1:8787/v1");
    assert_eq!(base("https://gw.example/a/v1/"), "http://127.0.0.1:8787/a/v1");
    for (wrong, part) in [
        ("antropic", "anthropic, openai"),
        ("ftp://h", "neither http nor https"),
        ("https://u:p@h/", "user name"),
        ("https://h/?x", "query"),
        ("https://", "URL"),
    ] {
        let error = Target::parse(wrong).unwrap_err();
        assert_eq!(error.code(), "proxy.target");
        assert!(error.to_string().contains(part) && !error.to_string().contains("u:p"), "{error}");
    }
}

#[test]
fn commands_are_told_in_the_variables_of_their_vendor() {
    let address = "127.0.0.1:8787".parse().unwrap();
    let variables = |text: &str| -> Vec<String> {
        let environment = Target::parse(text).unwrap().environment(address);
        environment
            .into_iter()
            .filter(|(name, _)| !name.eq_ignore_ascii_case("no_proxy"))
            .map(|(name, value)| format!("{name}={value}"))
            .collect()
    };
    assert_eq!(variables("anthropic"), ["ANTHROPIC_BASE_URL=http://127.0.0.1:8787"]);
    assert_eq!(
        variables("openai"),
        ["OPENAI_BASE_URL=http://127.0.0.1:8787/v1", "OPENAI_API_BASE=http://127.0.0.1:8787/v1"]
    );
    assert_eq!(variables("gemini"), ["GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8787"]);
    assert!(variables("zai").contains(&"ZAI_BASE_URL=http://127.0.0.1:8787/api/paas/v4".to_owned()));
    assert_eq!(variables("http://127.0.0.1:9"), variables("http://127.0.0.1:9/v1"));
    let all = variables("http://127.0.0.1:9/v1");
    assert!(all.contains(&"ANTHROPIC_BASE_URL=http://127.0.0.1:8787".to_owned()), "{all:?}");
    assert!(all.contains(&"OPENAI_BASE_URL=http://127.0.0.1:8787/v1".to_owned()), "{all:?}");
    let text = Target::parse("openai").unwrap().configuration(address);
    assert!(text.contains("openai_base_url=\"http://127.0.0.1:8787/v1\"") && text.contains("opencode.json"), "{text}");
}
