//! One attempt over real sockets, against a server that sends exactly the bytes of the test.

#![allow(clippy::unwrap_used)] // the lint knows tests, not what they share

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use stele_core::{Config, Failure, FailureCode, SessionId, Wire};
use stele_provider::{Answer, AnswerBlock, Client, ClientSettings, Delta, Proxies, Secret, routes};

use crate::server::{Step, serve, serve_tls};

const BODY: &[u8] = br#"{"any":"bytes \u00e9\/ 1e2"}"#;
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// A whole answer of `openai-chat`, with characters of three and four bytes.
const CHAT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"caf\u{e9} \u{2713} \"}}]}\n\n\
                    : a comment\n\n\
                    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\u{1f600}\"}}]}\n\n\
                    data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
                    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n\
                    data: [DONE]\n\n";
const CHAT_TEXT: &str = "caf\u{e9} \u{2713} \u{1f600}";
/// Its first event alone.
const CHAT_BEGUN: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half\"}}]}\n\n";

fn config(wire: Wire, base_url: &str) -> Config {
    let variables = [("STELE_WIRE", wire.name()), ("STELE_BASE_URL", base_url), ("STELE_MODEL", "m")];
    let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    let session = SessionId::new("0197f0aa-0000-7000-8000-000000000001").unwrap();
    routes(&find, &BTreeMap::new()).unwrap()[0].config(&session, &stele_provider::Ledger::default())
}

fn chat(port: u16) -> Config {
    config(Wire::OpenaiChat, &format!("http://127.0.0.1:{port}/v1"))
}

fn client(settings: ClientSettings) -> Client {
    // A limit that no passing test reaches, so that a broken one ends.
    Client::new(ClientSettings { idle: settings.idle.min(Duration::from_secs(20)), ..settings })
}

fn impatient() -> Client {
    client(ClientSettings { idle: Duration::from_millis(250), ..ClientSettings::default() })
}

async fn send(client: &Client, config: &Config) -> (Result<Answer, Failure>, String) {
    let mut text = String::new();
    let mut on_delta = |delta| {
        if let Delta::Text(more) = delta {
            text.push_str(&more);
        }
    };
    let outcome = client.send(config, Some(&Secret::new("sk-secret")), vec![BODY.into()], &mut on_delta).await;
    (outcome, text)
}

async fn ask(client: &Client, config: &Config) -> Result<Answer, Failure> {
    send(client, config).await.0
}

fn text(answer: &Answer) -> String {
    let texts = answer.blocks.iter().filter_map(|block| match block {
        AnswerBlock::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn chunk(bytes: &[u8]) -> Step {
    Step::Send([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
}

#[track_caller]
fn failed(outcome: Result<Answer, Failure>, code: FailureCode, part: &str) -> Failure {
    let failure = outcome.unwrap_err();
    assert_eq!(failure.code, code, "{failure:?}");
    assert!(failure.message.as_str().contains(part), "{part:?} is not in {:?}", failure.message);
    assert!(!format!("{failure:?}").contains("sk-secret"), "{failure:?}");
    failure
}

#[tokio::test]
async fn the_request_is_the_bytes_given_and_the_headers_of_its_wire() {
    let (port, seen) = serve(vec![Step::send(HEAD), Step::send(CHAT)]).await;
    let (outcome, deltas) = send(&client(ClientSettings::default()), &chat(port)).await;
    let answer = outcome.unwrap();
    assert_eq!((text(&answer).as_str(), deltas.as_str()), (CHAT_TEXT, CHAT_TEXT));
    assert_eq!(answer.usage.unwrap().output, Some(3));
    let seen = &seen.await.unwrap()[0];
    assert!(seen.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", seen.head);
    assert_eq!(seen.body, BODY);
    assert_eq!(seen.header("authorization"), Some("Bearer sk-secret"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("user-agent"), Some(concat!("stele/", env!("CARGO_PKG_VERSION"))));
    assert_eq!(seen.header("accept-encoding"), Some("gzip"));
}

#[tokio::test]
async fn a_stream_may_be_cut_anywhere() {
    let mut steps = vec![Step::send(CHUNKED)];
    steps.extend(CHAT.as_bytes().iter().map(|byte| chunk(&[*byte])));
    steps.push(Step::send("0\r\n\r\n"));
    let (port, _seen) = serve(steps).await;
    let (outcome, deltas) = send(&client(ClientSettings::default()), &chat(port)).await;
    assert_eq!((text(&outcome.unwrap()).as_str(), deltas.as_str()), (CHAT_TEXT, CHAT_TEXT));
}

#[tokio::test]
async fn a_terminal_event_ends_the_read_while_the_socket_stays_open() {
    let (port, seen) = serve(vec![Step::send(CHUNKED), chunk(CHAT.as_bytes()), Step::UntilClosed]).await;
    let client = client(ClientSettings::default());
    assert_eq!(text(&ask(&client, &chat(port)).await.unwrap()), CHAT_TEXT);
    seen.await.unwrap();

    let failure = "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\
                   \"error\":{\"code\":\"server_error\",\"message\":\"the model fell over\"}}}\n\n";
    let (port, _seen) = serve(vec![Step::send(CHUNKED), chunk(failure.as_bytes()), Step::UntilClosed]).await;
    let config = config(Wire::OpenaiResponses, &format!("http://127.0.0.1:{port}/v1"));
    failed(ask(&client, &config).await, FailureCode::Server, "the model fell over");
}

#[tokio::test]
async fn silence_before_the_head_ends_at_the_limit() {
    let (port, _seen) = serve(vec![Step::UntilClosed]).await;
    let failure = failed(ask(&impatient(), &chat(port)).await, FailureCode::IdleTimeout, "limits.idle_ms");
    assert!(failure.message.as_str().contains(&format!("127.0.0.1:{port} sent nothing for 250ms")), "{failure:?}");
    assert_eq!((failure.output, failure.may_be_billed()), (false, true));
}

#[tokio::test]
async fn silence_in_mid_answer_ends_at_the_limit_and_says_that_output_had_come() {
    let (port, _seen) = serve(vec![Step::send(CHUNKED), chunk(CHAT_BEGUN.as_bytes()), Step::UntilClosed]).await;
    let (outcome, deltas) = send(&impatient(), &chat(port)).await;
    assert!(failed(outcome, FailureCode::IdleTimeout, "stopped sending").output);
    assert_eq!(deltas, "half");
}

#[tokio::test]
async fn what_ended_before_the_silence_is_whole() {
    let ended = CHAT.replace("data: [DONE]\n\n", "");
    let (port, _seen) = serve(vec![Step::send(CHUNKED), chunk(ended.as_bytes()), Step::UntilClosed]).await;
    assert_eq!(text(&ask(&impatient(), &chat(port)).await.unwrap()), CHAT_TEXT);
}

#[tokio::test]
async fn a_stream_that_ends_too_early_is_incomplete() {
    let (port, _seen) = serve(vec![Step::send(HEAD), Step::send(CHAT_BEGUN)]).await;
    assert!(failed(ask(&client(ClientSettings::default()), &chat(port)).await, FailureCode::Incomplete, "").output);
}

#[tokio::test]
async fn a_connection_that_breaks_is_named_with_its_host() {
    let (port, _seen) = serve(vec![Step::send(CHUNKED), chunk(CHAT_BEGUN.as_bytes()), Step::Reset]).await;
    let client = client(ClientSettings::default());
    let failure = failed(ask(&client, &chat(port)).await, FailureCode::Transport, "broke");
    assert!(failure.message.as_str().contains(&format!("127.0.0.1:{port}")), "{failure:?}");

    let (port, _seen) = serve(vec![Step::Reset]).await;
    failed(ask(&client, &chat(port)).await, FailureCode::Transport, "before an answer came");
}

#[tokio::test]
async fn an_endpoint_that_is_down_is_named_with_what_to_do() {
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let expected = format!("nothing answers at 127.0.0.1:{port}; is the server running?");
    failed(ask(&client(ClientSettings::default()), &chat(port)).await, FailureCode::Transport, &expected);
}

#[tokio::test]
async fn an_error_keeps_the_servers_words_its_status_and_its_wait() {
    let body = r#"{"error":{"type":"rate_limit_error","message":"slow down, please"}}"#;
    let length = body.len();
    let head = format!("HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\ncontent-length: {length}\r\n\r\n");
    let (port, _seen) = serve(vec![Step::send(head), Step::send(body)]).await;
    let outcome = ask(&client(ClientSettings::default()), &chat(port)).await;
    let failure = failed(outcome, FailureCode::RateLimited, "slow down, please");
    assert_eq!((failure.status, failure.retry_after_ms), (Some(429), Some(7_000)));
    assert!(stele_core::retry::next(&failure, 1, 0, 0) >= Some(7_000));
}

#[tokio::test]
async fn a_wrong_path_is_named_whole() {
    let (port, _seen) = serve(vec![Step::send("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")]).await;
    let config = config(Wire::AnthropicMessages, &format!("http://127.0.0.1:{port}/v1"));
    let failure = ask(&client(ClientSettings::default()), &config).await.unwrap_err();
    let expected = format!("http://127.0.0.1:{port}/v1/v1/messages");
    assert!(failure.message.as_str().contains(&expected), "{failure:?}");
}

#[tokio::test]
async fn a_web_page_and_a_redirection_are_no_answers() {
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: 6\r\n\r\n<html>";
    let (port, _seen) = serve(vec![Step::send(page)]).await;
    let client = client(ClientSettings::default());
    failed(ask(&client, &chat(port)).await, FailureCode::InvalidRequest, "web page");

    let moved =
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: https://elsewhere.example/v1?k=1\r\ncontent-length: 0\r\n\r\n";
    let (port, _seen) = serve(vec![Step::send(moved)]).await;
    failed(ask(&client, &chat(port)).await, FailureCode::InvalidRequest, "redirects to https://elsewhere.example/v1,");
}

#[tokio::test]
async fn a_compressed_stream_is_read() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\r\n";
    let (port, _seen) = serve(vec![Step::send(head), Step::send(gzip(CHAT.as_bytes()))]).await;
    assert_eq!(text(&ask(&client(ClientSettings::default()), &chat(port)).await.unwrap()), CHAT_TEXT);
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let whole = |text: &str| Step::send(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len()));
    let (port, seen) = serve(vec![whole(CHAT), Step::NextRequest, whole(CHAT)]).await;
    let client = client(ClientSettings::default());
    for _ in 0..2 {
        assert_eq!(text(&ask(&client, &chat(port)).await.unwrap()), CHAT_TEXT);
    }
    assert_eq!(seen.await.unwrap().len(), 2);
}

#[tokio::test]
async fn what_may_have_been_taken_may_be_billed_and_what_was_refused_was_not() {
    for (steps, billed) in [
        (vec![], true),
        (vec![Step::send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")], true),
        (vec![Step::send("HTTP/1.1 529 X\r\ncontent-length: 0\r\n\r\n")], false),
        (vec![Step::send(HEAD), Step::send("data: {\"error\":{\"message\":\"busy\",\"code\":503}}\n\n")], false),
    ] {
        let (port, _seen) = serve(steps).await;
        let failure = ask(&client(ClientSettings::default()), &chat(port)).await.unwrap_err();
        assert_eq!(failure.may_be_billed(), billed, "{failure:?}");
    }
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let failure = ask(&client(ClientSettings::default()), &chat(port)).await.unwrap_err();
    assert!(!failure.may_be_billed(), "{failure:?}");
}

#[tokio::test]
async fn a_key_that_the_server_repeats_is_blanked() {
    let said = |text: &str| format!(r#"{{"error":{{"message":"{text}"}}}}"#);
    let refused = said("Incorrect API key provided: sk-secret, sk\\u002dsecret");
    let long = said(&format!("{}sk-secret", "x".repeat(2_046)));
    for answer in [
        format!("HTTP/1.1 401 X\r\ncontent-length: {}\r\n\r\n{refused}", refused.len()),
        format!("HTTP/1.1 401 X\r\ncontent-length: {}\r\n\r\n{long}", long.len()),
        format!("{HEAD}data: {refused}\n\n"),
        format!("{HEAD}{refused}"),
    ] {
        let (port, _seen) = serve(vec![Step::send(answer.as_str())]).await;
        let failure = ask(&client(ClientSettings::default()), &chat(port)).await.unwrap_err();
        let said = failure.message.as_str();
        assert!(!said.contains("secret") && !said.contains("sk"), "{said}");
        assert!(said.contains("[key") || said.contains("xxxx"), "{said}");
    }
}

#[tokio::test]
async fn dropping_the_future_closes_the_connection() {
    let (port, seen) = serve(vec![Step::send(CHUNKED), chunk(CHAT_BEGUN.as_bytes()), Step::UntilClosed]).await;
    let (begun, first) = tokio::sync::oneshot::channel();
    let attempt = tokio::spawn(async move {
        let mut begun = Some(begun);
        let mut on_delta = move |_| {
            if let Some(begun) = begun.take() {
                begun.send(()).unwrap();
            }
        };
        client(ClientSettings::default()).send(&chat(port), None, vec![BODY.into()], &mut on_delta).await
    });
    first.await.unwrap();
    attempt.abort();
    seen.await.unwrap();
}

#[tokio::test]
async fn a_request_goes_through_the_proxy_of_its_scheme() {
    let (port, seen) = serve(vec![Step::send(HEAD), Step::send(CHAT)]).await;
    let proxies = Proxies::from_environment(&|name| {
        (name == "HTTP_PROXY").then(|| format!("http://someone:word@127.0.0.1:{port}"))
    });
    let client = client(ClientSettings { proxies: proxies.unwrap(), ..ClientSettings::default() });
    let config = config(Wire::OpenaiChat, "http://models.example/v1");
    assert_eq!(text(&ask(&client, &config).await.unwrap()), CHAT_TEXT);
    let seen = &seen.await.unwrap()[0];
    assert!(seen.head.starts_with("POST http://models.example/v1/chat/completions HTTP/1.1\r\n"), "{}", seen.head);
    assert_eq!(seen.header("proxy-authorization"), Some("Basic c29tZW9uZTp3b3Jk"));
}

#[tokio::test]
async fn a_proxy_that_is_down_is_named_with_its_variable() {
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let proxies = Proxies::from_environment(&|name| {
        (name == "HTTPS_PROXY").then(|| format!("http://someone:word@127.0.0.1:{port}"))
    });
    let client = client(ClientSettings { proxies: proxies.unwrap(), ..ClientSettings::default() });
    let config = config(Wire::OpenaiChat, "https://models.example/v1");
    let expected = format!("the proxy http://127.0.0.1:{port} that HTTPS_PROXY sets");
    let failure = failed(ask(&client, &config).await, FailureCode::Transport, &expected);
    assert!(!failure.message.as_str().contains("word"), "{failure:?}");
}

#[tokio::test]
async fn an_authority_of_ones_own_is_trusted_and_others_are_not() {
    let authority = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tls/ca.pem"));
    let trusting = client(ClientSettings { ca_file: Some(authority), ..ClientSettings::default() });
    let (port, seen) = serve_tls(vec![Step::send(HEAD), Step::send(CHAT)]).await;
    let config_at = |port| config(Wire::OpenaiChat, &format!("https://127.0.0.1:{port}/v1"));
    assert_eq!(text(&ask(&trusting, &config_at(port)).await.unwrap()), CHAT_TEXT);
    assert_eq!(seen.await.unwrap()[0].body, BODY);

    // Any other authority will do for the second client, so that the test needs none of the system's.
    let other = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tls/server.pem"));
    let other = client(ClientSettings { ca_file: Some(other), ..ClientSettings::default() });
    let (port, _seen) = serve_tls(vec![]).await;
    failed(ask(&other, &config_at(port)).await, FailureCode::Transport, "STELE_CA_FILE");
}

#[tokio::test]
async fn plain_http_loads_no_certificates() {
    let missing = client(ClientSettings { ca_file: Some("/nowhere/ca.pem".into()), ..ClientSettings::default() });
    let (port, _seen) = serve(vec![Step::send(HEAD), Step::send(CHAT)]).await;
    assert_eq!(text(&ask(&missing, &chat(port)).await.unwrap()), CHAT_TEXT);
    let secure = config(Wire::OpenaiChat, "https://127.0.0.1:9/v1");
    failed(ask(&missing, &secure).await, FailureCode::Unsupported, "STELE_CA_FILE names /nowhere/ca.pem");
}

/// A gzip file with one stored block for every few bytes (RFC 1951, 1952).
fn gzip(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let blocks: Vec<&[u8]> = data.chunks(11).collect();
    for (at, block) in blocks.iter().enumerate() {
        let length = u16::try_from(block.len()).unwrap();
        out.push(u8::from(at + 1 == blocks.len()));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(*block);
    }
    let crc = data.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    });
    out.extend((!crc).to_le_bytes());
    out.extend(u32::try_from(data.len()).unwrap().to_le_bytes());
    out
}
