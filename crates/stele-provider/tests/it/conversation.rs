//! Whole conversations with a server that refuses what the vendors refuse and keeps what it was sent.

use serde_json::{Value, json};
use stele_core::{AssistantBlock, CallId, Config, Hash, Message, Stop, Wire};
use stele_provider::{Answer, AnswerBlock, Client, Encoder};
use stele_testkit::{Behaviour, Chunks, Pace, Say, Script, Server};

use crate::support::{assistant, config, header, result, say, user};

/// An agent without a log: it sends, runs nothing, and answers every call.
struct Conversation {
    config: Config,
    encoder: Encoder,
    client: Client,
    calls: u64,
    bodies: Vec<Vec<u8>>,
}

impl Conversation {
    fn new(server: &Server, wire: Wire) -> Self {
        let mut config = config(wire);
        config.base_url = server.base_url(wire);
        let mut header = header();
        // Long enough that the vendors' caches take it.
        header.system[0].text = "You are a coding agent. ".repeat(900);
        let encoder = Encoder::new(&header, &config).unwrap();
        Self { config, encoder, client: Client::default(), calls: 0, bodies: Vec::new() }
    }

    async fn send(&mut self) -> Answer {
        let body = self.encoder.body();
        assert_eq!(self.encoder.body_digest().hash, Hash::of(&body.to_vec()));
        self.bodies.push(body.to_vec());
        let secret = Some(stele_provider::Secret::new("key"));
        let answer = self.client.send(&self.config, secret.as_ref(), body.pieces, &mut |_| {}).await;
        self.encoder.set_earlier(&[self.encoder.items().len()]);
        answer.unwrap()
    }

    /// Sends until the model has nothing to call; gives every answer.
    async fn turn(&mut self, prompt: &str) -> Vec<Answer> {
        self.encoder.push(&user(vec![say(prompt)]));
        let mut answers = Vec::new();
        loop {
            let answer = self.send().await;
            let (message, results) = self.replay(&answer);
            self.encoder.push(&message);
            let done = answer.stop != Stop::ToolCalls;
            answers.push(answer);
            if done {
                return answers;
            }
            self.encoder.push(&results);
        }
    }

    fn replay(&mut self, answer: &Answer) -> (Message, Message) {
        let mut results = Vec::new();
        let blocks = answer.blocks.iter().cloned().map(|block| match block {
            AnswerBlock::Text { text, native } => {
                AssistantBlock::Text { text: text.into(), native: native.map(Into::into) }
            }
            AnswerBlock::Reasoning { text, native } => {
                AssistantBlock::Reasoning { text: text.into(), native: native.map(Into::into) }
            }
            AnswerBlock::Call { vendor_id, name, arguments, native } => {
                self.calls += 1;
                let wire_id = vendor_id.unwrap_or_else(|| CallId(self.calls).to_string());
                results.push(result(
                    self.calls,
                    &wire_id,
                    &name,
                    &format!("result {}", self.calls),
                    self.calls % 5 == 4,
                ));
                AssistantBlock::Call {
                    call: CallId(self.calls),
                    wire_id,
                    name,
                    arguments: arguments.into(),
                    native: native.map(Into::into),
                }
            }
        });
        let message = assistant(blocks.collect());
        (message, user(results))
    }
}

/// The prompt as the endpoint renders it, from the bytes it received: what comes first, then the list of messages.
fn prompt(wire: Wire, body: &[u8]) -> (Vec<Value>, Vec<Value>) {
    let mut body: Value = serde_json::from_slice(body).unwrap();
    unmark(&mut body);
    let (fixed, list) = match wire {
        Wire::AnthropicMessages => (vec!["tools", "system"], "messages"),
        Wire::OpenaiResponses => (vec!["instructions", "tools"], "input"),
        Wire::OpenaiChat => (vec!["tools"], "messages"),
        Wire::Gemini => (vec!["systemInstruction", "tools"], "contents"),
    };
    (fixed.into_iter().map(|field| body[field].clone()).collect(), body[list].as_array().unwrap().clone())
}

fn unmark(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.shift_remove("cache_control");
            fields.values_mut().for_each(unmark);
        }
        Value::Array(list) => list.iter_mut().for_each(unmark),
        _ => {}
    }
}

fn script(wire: Wire) -> Script {
    let call = |step: usize| Say::call("read", &json!({ "path": format!("file {step}, of a long name 🙂") }));
    let mut steps = vec![
        Say::reasoning("First I look at 温度.")
            .and_text("I look.")
            .and_call("read", &json!({"path": "a"}))
            .and_call("bash", &json!({"command": "ls"})),
        // Arguments that are no JSON, where the wire can carry them.
        if wire == Wire::Gemini { call(1) } else { Say::raw_call("bash", r#"{"command": "ls"#) },
    ];
    steps.extend((2..11).map(call));
    steps.push(Say::text("Done."));
    steps.extend([
        Say::reasoning("Again.").and_call("bash", &json!({"command": "pwd"})),
        call(13),
        Say::text("Really."),
    ]);
    Script::new(steps)
}

#[tokio::test]
async fn two_turns_on_each_wire_are_taken_and_their_prefix_holds() {
    for wire in Wire::ALL {
        let server = Server::start(Behaviour::from(script(wire)).pace(Pace::chunks(Chunks::Every(7)))).unwrap();
        let mut conversation = Conversation::new(&server, wire);
        let mut answers = conversation.turn("Go.").await;
        answers.extend(conversation.turn("And now?").await);

        let received = server.requests();
        assert_eq!((received.len(), answers.len()), (15, 15), "{wire}");
        assert!(received.iter().all(|request| request.status == 200), "{wire}");
        let sent: Vec<_> = received.iter().map(|request| request.body.to_vec()).collect();
        assert_eq!(sent, conversation.bodies, "{wire}: the bytes that were made are the bytes that arrived");
        for pair in sent.windows(2) {
            let (before, after) = (prompt(wire, &pair[0]), prompt(wire, &pair[1]));
            assert_eq!(before.0, after.0, "{wire}");
            assert_eq!(before.1[..], after.1[..before.1.len()], "{wire}");
        }
        // From the second request on the vendor's cache is read, and the usage says so.
        for answer in &answers[1..] {
            let usage = answer.usage.unwrap();
            assert!(usage.cache_read.is_some_and(|read| read > 2000), "{wire}: {usage:?}");
            assert!(usage.fresh.is_some_and(|fresh| fresh < 500), "{wire}: {usage:?}");
        }
    }
}

/// Signed and encrypted blocks as an answer holds them, and what has to stand in the next request.
#[test]
fn native_blocks_go_back_byte_for_byte() {
    let thinking = r#"{ "type":"thinking", "thinking":"a\/b é", "signature":"S=" }"#;
    let reasoning = r#"{"id":"rs_1","type":"reasoning","summary":[ ],"encrypted_content":"E\/x"}"#;
    let part = r#"{"functionCall": {"name":"read","args":{"n":1e2}}, "thoughtSignature":"SIG"}"#;
    let whole = [
        (
            Wire::AnthropicMessages,
            format!(r#"{{"content":[{thinking},{{"type":"text","text":"x"}}],"stop_reason":"end_turn"}}"#),
            thinking.to_owned(),
        ),
        (
            Wire::OpenaiResponses,
            format!(
                r#"{{"status":"completed","output":[{reasoning},{{"type":"message","content":[{{"type":"output_text","text":"x"}}]}}]}}"#
            ),
            // Nothing is stored at the provider, so the id would name nothing.
            r#"{"type":"reasoning","summary":[ ],"encrypted_content":"E\/x"}"#.to_owned(),
        ),
        (
            Wire::Gemini,
            format!(r#"{{"candidates":[{{"content":{{"parts":[{part}]}},"finishReason":"STOP"}}]}}"#),
            part.to_owned(),
        ),
    ];
    for (wire, document, expect) in whole {
        let server = Server::start(Say::text("unused")).unwrap();
        let mut conversation = Conversation::new(&server, wire);
        let answer = crate::support::decode_whole(wire, &document).unwrap();
        conversation.encoder.push(&user(vec![say("go")]));
        let (message, _) = conversation.replay(&answer);
        conversation.encoder.push(&message);
        let body = String::from_utf8(conversation.encoder.body().to_vec()).unwrap();
        assert!(body.contains(&expect), "{wire}: {body}");
    }
}
