//! Whatever arrives, the server answers or closes, and goes on serving others.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};
use stele_core::Wire;
use stele_testkit::{Behaviour, Chunks, Pace, Say, Script, Server};

use crate::agent::{Agent, streamed, whole};
use crate::client::Client;

static STRICT: LazyLock<Server> = LazyLock::new(|| Server::start(Say::text("ok")).unwrap());
static LENIENT: LazyLock<Server> = LazyLock::new(|| {
    let script = Script::new([Say::call("read", &json!({})), Say::text("ok")]);
    let script = script.reacting(|answered| if answered.len() > 3 { vec![Say::text("many")] } else { Vec::new() });
    Server::start(Behaviour::from(script).lenient()).unwrap()
});

fn survives(server: &Server, bytes: &[u8]) -> Vec<u8> {
    let mut client = Client::new(server.address());
    client.try_write(bytes);
    client.finish();
    let answer = client.rest();
    assert_eq!(Client::new(server.address()).get("/v1/models").status, 200);
    answer
}

/// JSON with keys and words that mean something on the wires, in any shape.
fn body() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "user",
        "assistant",
        "model",
        "tool",
        "text",
        "tool_use",
        "tool_result",
        "thinking",
        "function_call",
        "function_call_output",
        "reasoning",
        "message",
        "ephemeral",
        "1h",
        "x",
        "",
        "🙂",
    ]);
    let key = prop::sample::select(vec![
        "model",
        "messages",
        "input",
        "contents",
        "parts",
        "content",
        "role",
        "type",
        "text",
        "tools",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "id",
        "call_id",
        "tool_call_id",
        "tool_use_id",
        "functionCall",
        "functionResponse",
        "response",
        "cache_control",
        "ttl",
        "system",
        "instructions",
        "systemInstruction",
        "max_tokens",
        "stream",
        "summary",
        "encrypted_content",
        "thoughtSignature",
        "stream_options",
    ]);
    let leaf = prop_oneof![
        word.prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null)
    ];
    let tree = leaf.prop_recursive(5, 60, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5)
                .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Value>()),
        ]
    });
    prop::collection::vec(
        (prop::sample::select(vec!["messages", "input", "contents", "tools", "system", "stream"]), tree),
        0..6,
    )
    .prop_map(|pairs| {
        let mut body = json!({"model": "m", "max_tokens": 1});
        for (key, value) in pairs {
            body[key] = value;
        }
        body
    })
}

const PATHS: [&str; 5] = [
    "/v1/messages",
    "/v1/responses",
    "/v1/chat/completions",
    "/v1beta/models/m:generateContent",
    "/v1beta/models/m:streamGenerateContent?alt=sse",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        survives(&STRICT, &bytes);
    }

    #[test]
    fn any_body(path in prop::sample::select(PATHS.to_vec()), body in prop::collection::vec(any::<u8>(), 0..200)) {
        let head = format!("POST {path} HTTP/1.1\r\nanthropic-version: x\r\nContent-Length: {}\r\n\r\n", body.len());
        let answer = survives(&STRICT, &[head.as_bytes(), &body].concat());
        prop_assert!(answer.starts_with(b"HTTP/1.1 400 "));
    }

    #[test]
    fn any_shape(path in prop::sample::select(PATHS.to_vec()), body in body()) {
        let body = body.to_string();
        let head = format!("POST {path} HTTP/1.1\r\nanthropic-version: x\r\nContent-Length: {}\r\n\r\n", body.len());
        let request = [head.as_bytes(), body.as_bytes()].concat();
        let strict = survives(&STRICT, &request);
        prop_assert!(strict.starts_with(b"HTTP/1.1 "), "{body}");
        let lenient = survives(&LENIENT, &request);
        prop_assert!(lenient.starts_with(b"HTTP/1.1 200 "), "{body}: {}", String::from_utf8_lossy(&lenient));
    }

    #[test]
    fn any_answer_arrives_whole_however_it_is_cut(
        text in "\\PC{1,80}",
        reasoning in "\\PC{0,40}",
        argument in "\\PC{0,60}",
        size in 1_usize..40,
        wire in prop::sample::select(Wire::ALL.to_vec()),
    ) {
        let say = Say::reasoning(reasoning.clone())
            .and_text(text.clone())
            .and_call("read", &json!({"argument": argument}));
        let server = Server::start(Behaviour::from(say).pace(Pace::chunks(Chunks::Every(size)))).unwrap();
        let mut agent = Agent::new(&server, wire);
        agent.prompt("go");
        let said = streamed(wire, &agent.ask(true));
        prop_assert_eq!(&said.text, &text);
        prop_assert_eq!(&said.reasoning, &reasoning);
        prop_assert_eq!(&said.calls, &whole(wire, &agent.ask(false).json()).calls);
    }
}
