//! Whole conversations of every wire, through the proxy, with the scripted model server behind it.

use serde_json::{Value, json};
use stele_core::Wire;
use stele_proxy::{Judging, Recorded, Verdict, report};
use stele_testkit::{Behaviour, Say, Server};

use tokio::io::AsyncWriteExt;

use crate::support::{exchange, post, proxy, read_request, server, split};

/// What a step of a conversation sends: the history up to it, in the wire's own form.
struct Talk {
    wire: Wire,
    history: Vec<Value>,
}

const SYSTEM: &str = "You are an agent that works in a folder. ";

impl Talk {
    fn new(wire: Wire) -> Self {
        Self { wire, history: Vec::new() }
    }

    fn user(&mut self, text: &str) {
        self.history.push(match self.wire {
            Wire::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
            Wire::AnthropicMessages => json!({"role": "user", "content": [{"type": "text", "text": text}]}),
            _ => json!({"role": "user", "content": text}),
        });
    }

    fn assistant(&mut self, text: &str) {
        self.history.push(match self.wire {
            Wire::Gemini => json!({"role": "model", "parts": [{"text": text}]}),
            Wire::AnthropicMessages => json!({"role": "assistant", "content": [{"type": "text", "text": text}]}),
            _ => json!({"role": "assistant", "content": text}),
        });
    }

    fn body(&self) -> Value {
        let system = SYSTEM.repeat(420);
        let description = "Reads a file. ".repeat(100);
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        match self.wire {
            Wire::AnthropicMessages => {
                let mut messages = self.history.clone();
                let last = messages.last_mut().unwrap();
                last["content"].as_array_mut().unwrap().last_mut().unwrap()["cache_control"] =
                    json!({"type": "ephemeral"});
                json!({
                    "model": "m", "max_tokens": 100, "stream": true, "messages": messages,
                    "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
                    "tools": [{"name": "read", "description": description, "input_schema": schema}],
                })
            }
            Wire::OpenaiResponses => json!({
                "model": "m", "stream": true, "instructions": system, "input": self.history, "store": false,
                "tools": [{"type": "function", "name": "read", "description": description, "parameters": schema}],
            }),
            Wire::OpenaiChat => {
                let mut messages = vec![json!({"role": "system", "content": system})];
                messages.extend(self.history.clone());
                json!({
                    "model": "m", "stream": true, "stream_options": {"include_usage": true}, "messages": messages,
                    "tools": [{"type": "function", "function": {"name": "read", "description": description, "parameters": schema}}],
                })
            }
            Wire::Gemini => json!({
                "systemInstruction": {"parts": [{"text": system}]}, "contents": self.history,
                "tools": [{"functionDeclarations": [{"name": "read", "description": description, "parameters": schema}]}],
            }),
        }
    }

    fn request(&self) -> Vec<u8> {
        let path = match self.wire {
            Wire::AnthropicMessages => "/v1/messages",
            Wire::OpenaiResponses => "/v1/responses",
            Wire::OpenaiChat => "/v1/chat/completions",
            Wire::Gemini => "/v1beta/models/m:streamGenerateContent?alt=sse&key=sk-secret",
        };
        let headers = "x-api-key: sk-secret\r\nauthorization: Bearer sk-secret\r\nanthropic-version: 2023-06-01\r\n\
                       content-type: application/json\r\nuser-agent: agent/1.0\r\n";
        post(path, headers, self.body().to_string().as_bytes())
    }
}

/// Six steps, the way an agent sends them: each one adds to the history.
async fn converse(wire: Wire) -> (Vec<Recorded>, Server) {
    let server = Server::start(Behaviour::answering(|_| Say::text("done").into()).lenient()).unwrap();
    let running = proxy(&server.base_url(wire)).await;
    let mut talk = Talk::new(wire);
    for step in 0..6 {
        talk.user(&format!("step {step}: {}", "look at the next file ".repeat(40)));
        let answer = exchange(running.address, &talk.request()).await;
        assert!(split(&answer).0.starts_with("HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
        talk.assistant("done");
    }
    let folder = running.folder.path().to_owned();
    let (recorded, kept) = running.finish_with_folder().await;
    // No key reaches the disk.
    for file in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(9).any(|nine| nine == b"sk-secret"));
    }
    drop(kept);
    (recorded, server)
}

async fn check(wire: Wire, rules: &str) {
    let (recorded, server) = converse(wire).await;
    let received = server.requests();
    assert_eq!((recorded.len(), received.len()), (6, 6));
    for (recorded, received) in recorded.iter().zip(&received) {
        let counted = received.counted.unwrap();
        let usage = recorded.usage.unwrap();
        assert_eq!(recorded.body.hash, stele_core::Hash::of(&received.body), "the server got what was recorded");
        assert_eq!(usage.cache_read.unwrap_or(0), counted.cache_read);
        assert_eq!((usage.input(), usage.output), (Some(counted.input), Some(counted.output)), "{wire}");
        assert_eq!((recorded.wire, recorded.agent.as_deref(), recorded.model.as_str()), (wire, Some("agent/1.0"), "m"));
        assert_eq!(recorded.base_url, server.base_url(wire));
    }
    let judging = Judging { rules: Some(rules), ..Judging::default() };
    let report = report(&recorded, &judging);
    assert_eq!((report.conversations.len(), report.side.requests, report.failed), (1, 0, 0));
    let lines = &report.conversations[0].requests;
    assert_eq!(lines[0].verdict, Verdict::First);
    for (line, received) in lines.iter().zip(&received).skip(1) {
        let (predicted, read) = (line.predicted.unwrap(), received.counted.unwrap().cache_read);
        assert!(predicted.abs_diff(read) <= read / 50 + 128, "{wire}: {predicted} {read}");
        if read > 0 {
            assert_eq!(line.verdict, Verdict::Hit);
        } else {
            assert_eq!(line.verdict, Verdict::BelowMinimum);
        }
        assert_eq!(line.leaves, None);
    }
    // Gemini leaves the figure out where nothing was read, and a share of known and unknown is the share of nothing.
    let told = recorded.iter().all(|request| request.usage.unwrap().tells_reads());
    assert_eq!((report.total.hit_rate.is_some(), wire != Wire::Gemini), (told, told), "{wire}: {:?}", report.total);
    assert!(report.total.hit_rate.is_none_or(|rate| rate > 0.5), "{wire}: {:?}", report.total);
}

#[tokio::test]
async fn anthropic_messages() {
    check(Wire::AnthropicMessages, "anthropic").await;
}

#[tokio::test]
async fn openai_responses() {
    check(Wire::OpenaiResponses, "openai").await;
}

#[tokio::test]
async fn openai_chat() {
    check(Wire::OpenaiChat, "openai").await;
}

#[tokio::test]
async fn gemini() {
    check(Wire::Gemini, "gemini").await;
}

#[tokio::test]
async fn a_chat_server_that_says_nothing_of_usage_before_the_end() {
    // As most compatible servers do it; OpenAI's own has `"usage": null` in every event before.
    let server = server(|mut stream| async move {
        read_request(&mut stream).await;
        let events = [
            r#"{"choices":[{"index":0,"delta":{"content":"done"},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":5000,"completion_tokens":77}}"#,
            "[DONE]",
        ];
        let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    })
    .await;
    let running = proxy(&format!("http://{server}/v1")).await;
    let body = json!({"model": "gpt-6.2-sol", "stream": true, "messages": [{"role": "user", "content": "hi"}]});
    exchange(running.address, &post("/v1/chat/completions", "", body.to_string().as_bytes())).await;
    let recorded = running.finish().await;
    let usage = recorded[0].usage.unwrap();
    assert_eq!((usage.input(), usage.output), (Some(5_000), Some(77)));
    assert!(report(&recorded, &Judging::default()).total.cost.is_some());
}
