//! The smallest agent: it keeps a history, and sends back what the model said as the vendor wants it.

use std::net::SocketAddr;

use serde_json::{Value, json};
use stele_core::Wire;
use stele_testkit::Server;

use crate::client::{Client, Response};

/// What the model said, in neutral form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    pub text: String,
    pub reasoning: String,
    /// Id, name, arguments.
    pub calls: Vec<(String, String, String)>,
    pub stop: String,
    pub usage: Value,
}

pub struct Agent {
    wire: Wire,
    address: SocketAddr,
    pub model: String,
    pub history: Vec<Value>,
    pub system: String,
    pub tools: Vec<&'static str>,
    /// Further fields of the body.
    pub fields: Value,
    /// Function names of the calls that wait for results.
    waiting: Vec<(String, String)>,
}

impl Agent {
    pub fn new(server: &Server, wire: Wire) -> Self {
        let model = if wire == Wire::Gemini { "gemini-3-pro" } else { "scripted" };
        Self {
            wire,
            address: server.address(),
            model: model.to_owned(),
            history: Vec::new(),
            system: "You are a test.".to_owned(),
            tools: vec!["bash", "read"],
            fields: json!({}),
            waiting: Vec::new(),
        }
    }

    pub fn prompt(&mut self, text: &str) {
        self.history.push(match self.wire {
            Wire::AnthropicMessages => json!({"role": "user", "content": [{"type": "text", "text": text}]}),
            Wire::OpenaiResponses => json!({"role": "user", "content": [{"type": "input_text", "text": text}]}),
            Wire::OpenaiChat => json!({"role": "user", "content": text}),
            Wire::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
        });
    }

    fn tool(&self, name: &str) -> Value {
        let schema = json!({"type": "object", "properties": {"argument": {"type": "string"}}});
        match self.wire {
            Wire::AnthropicMessages => json!({"name": name, "description": "a tool", "input_schema": schema}),
            Wire::OpenaiResponses => {
                json!({"type": "function", "name": name, "description": "a tool", "parameters": schema})
            }
            Wire::OpenaiChat => {
                json!({"type": "function", "function": {"name": name, "description": "a tool", "parameters": schema}})
            }
            Wire::Gemini => json!({"name": name, "description": "a tool", "parametersJsonSchema": schema}),
        }
    }

    pub fn body(&self, stream: bool) -> Value {
        let tools: Vec<Value> = self.tools.iter().map(|name| self.tool(name)).collect();
        let mut body = match self.wire {
            Wire::AnthropicMessages => json!({
                "model": self.model, "max_tokens": 1000, "system": [{"type": "text", "text": self.system}],
                "tools": tools, "messages": self.history,
            }),
            Wire::OpenaiResponses => json!({
                "model": self.model, "instructions": self.system, "store": false,
                "include": ["reasoning.encrypted_content"], "tools": tools, "input": self.history,
            }),
            Wire::OpenaiChat => {
                let system = json!({"role": "system", "content": self.system});
                let messages: Vec<&Value> = [&system].into_iter().chain(&self.history).collect();
                json!({"model": self.model, "tools": tools, "messages": messages})
            }
            Wire::Gemini => json!({
                "systemInstruction": {"parts": [{"text": self.system}]},
                "tools": [{"functionDeclarations": tools}], "contents": self.history,
            }),
        };
        if stream && self.wire != Wire::Gemini {
            body["stream"] = json!(true);
        }
        if stream && self.wire == Wire::OpenaiChat {
            body["stream_options"] = json!({"include_usage": true});
        }
        for (key, value) in self.fields.as_object().unwrap() {
            body[key] = value.clone();
        }
        body
    }

    pub fn path(&self, stream: bool) -> String {
        match self.wire {
            Wire::AnthropicMessages => "/v1/messages".to_owned(),
            Wire::OpenaiResponses => "/v1/responses".to_owned(),
            Wire::OpenaiChat => "/v1/chat/completions".to_owned(),
            Wire::Gemini if stream => format!("/v1beta/models/{}:streamGenerateContent?alt=sse", self.model),
            Wire::Gemini => format!("/v1beta/models/{}:generateContent", self.model),
        }
    }

    pub fn headers(&self) -> Vec<(&'static str, &'static str)> {
        match self.wire {
            Wire::AnthropicMessages => vec![("anthropic-version", "2023-06-01"), ("x-api-key", "k-1")],
            Wire::OpenaiResponses | Wire::OpenaiChat => vec![("authorization", "Bearer k-1")],
            Wire::Gemini => vec![("x-goog-api-key", "k-1")],
        }
    }

    /// Sends a body as this agent's request.
    pub fn send(&self, body: &Value, stream: bool) -> Response {
        Client::new(self.address).post(&self.path(stream), &self.headers(), body.to_string().as_bytes())
    }

    /// Asks, without changing the history.
    pub fn ask(&self, stream: bool) -> Response {
        self.send(&self.body(stream), stream)
    }

    /// Asks, without a stream, and keeps the answer.
    pub fn step(&mut self) -> Said {
        let response = self.ask(false);
        assert_eq!(response.status, 200, "{}", response.text());
        let body = response.json();
        match self.wire {
            Wire::AnthropicMessages => {
                self.history.push(json!({"role": "assistant", "content": body["content"]}));
            }
            Wire::OpenaiResponses => self.history.extend(body["output"].as_array().unwrap().clone()),
            Wire::OpenaiChat => self.history.push(body["choices"][0]["message"].clone()),
            Wire::Gemini => self.history.push(body["candidates"][0]["content"].clone()),
        }
        let said = whole(self.wire, &body);
        self.waiting = said.calls.iter().map(|(id, name, _)| (id.clone(), name.clone())).collect();
        said
    }

    /// Answers all calls.
    pub fn results(&mut self, text: &str) {
        let waiting = std::mem::take(&mut self.waiting);
        match self.wire {
            Wire::AnthropicMessages => {
                let block = |(id, _): &(String, String)| json!({"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": text}]});
                let blocks: Vec<Value> = waiting.iter().map(block).collect();
                self.history.push(json!({"role": "user", "content": blocks}));
            }
            Wire::OpenaiResponses => self.history.extend(
                waiting.iter().map(|(id, _)| json!({"type": "function_call_output", "call_id": id, "output": text})),
            ),
            Wire::OpenaiChat => self
                .history
                .extend(waiting.iter().map(|(id, _)| json!({"role": "tool", "tool_call_id": id, "content": text}))),
            Wire::Gemini => {
                let part = |(_, name): &(String, String)| json!({"functionResponse": {"name": name, "response": {"output": text}}});
                let parts: Vec<Value> = waiting.iter().map(part).collect();
                self.history.push(json!({"role": "user", "parts": parts}));
            }
        }
    }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Reads an answer that was not streamed.
pub fn whole(wire: Wire, body: &Value) -> Said {
    let mut said = Said::default();
    match wire {
        Wire::AnthropicMessages => {
            said.stop = string(&body["stop_reason"]);
            said.usage = body["usage"].clone();
            for block in items(&body["content"]) {
                said.text += &string(&block["text"]);
                said.reasoning += &string(&block["thinking"]);
                if block["type"] == "tool_use" {
                    said.calls.push((string(&block["id"]), string(&block["name"]), block["input"].to_string()));
                }
            }
        }
        Wire::OpenaiResponses => {
            let details = string(&body["incomplete_details"]["reason"]);
            said.stop = if details.is_empty() { string(&body["status"]) } else { details };
            said.usage = body["usage"].clone();
            for item in items(&body["output"]) {
                for part in items(&item["content"]) {
                    said.text += &string(&part["text"]);
                    said.text += &string(&part["refusal"]);
                }
                for part in items(&item["summary"]) {
                    said.reasoning += &string(&part["text"]);
                }
                if item["type"] == "function_call" {
                    said.calls.push((string(&item["call_id"]), string(&item["name"]), string(&item["arguments"])));
                }
            }
        }
        Wire::OpenaiChat => {
            let choice = &body["choices"][0];
            said.stop = string(&choice["finish_reason"]);
            said.usage = body["usage"].clone();
            said.text = string(&choice["message"]["content"]) + &string(&choice["message"]["refusal"]);
            said.reasoning = string(&choice["message"]["reasoning_content"]);
            for call in items(&choice["message"]["tool_calls"]) {
                let function = &call["function"];
                said.calls.push((string(&call["id"]), string(&function["name"]), string(&function["arguments"])));
            }
        }
        Wire::Gemini => add_gemini(&mut said, body),
    }
    said
}

fn add_gemini(said: &mut Said, chunk: &Value) {
    let candidate = &chunk["candidates"][0];
    said.stop += &string(&candidate["finishReason"]);
    if chunk["usageMetadata"].is_object() {
        said.usage = chunk["usageMetadata"].clone();
    }
    for part in items(&candidate["content"]["parts"]) {
        if part["thought"] == true {
            said.reasoning += &string(&part["text"]);
        } else {
            said.text += &string(&part["text"]);
        }
        if part["functionCall"].is_object() {
            let call = &part["functionCall"];
            said.calls.push((String::new(), string(&call["name"]), call["args"].to_string()));
        }
    }
}

/// Puts a streamed answer together from its deltas alone.
pub fn streamed(wire: Wire, response: &Response) -> Said {
    let mut said = Said::default();
    let events = response.data();
    for event in &events {
        match wire {
            Wire::AnthropicMessages => match event["type"].as_str().unwrap() {
                "content_block_start" if event["content_block"]["type"] == "tool_use" => {
                    let block = &event["content_block"];
                    said.calls.push((string(&block["id"]), string(&block["name"]), String::new()));
                }
                "content_block_delta" => {
                    said.text += &string(&event["delta"]["text"]);
                    said.reasoning += &string(&event["delta"]["thinking"]);
                    if event["delta"]["type"] == "input_json_delta" {
                        said.calls.last_mut().unwrap().2 += &string(&event["delta"]["partial_json"]);
                    }
                }
                "message_delta" => {
                    said.stop = string(&event["delta"]["stop_reason"]);
                    said.usage = event["usage"].clone();
                }
                _ => {}
            },
            Wire::OpenaiResponses => match event["type"].as_str().unwrap() {
                "response.output_text.delta" | "response.refusal.delta" => said.text += &string(&event["delta"]),
                "response.reasoning_summary_text.delta" => said.reasoning += &string(&event["delta"]),
                "response.output_item.added" if event["item"]["type"] == "function_call" => {
                    let item = &event["item"];
                    said.calls.push((string(&item["call_id"]), string(&item["name"]), String::new()));
                }
                "response.function_call_arguments.delta" => {
                    said.calls.last_mut().unwrap().2 += &string(&event["delta"]);
                }
                "response.completed" | "response.incomplete" => {
                    let last = whole(wire, &event["response"]);
                    assert_eq!((&last.text, &last.calls), (&said.text, &said.calls));
                    said.stop = last.stop;
                    said.usage = last.usage;
                }
                _ => {}
            },
            Wire::OpenaiChat => {
                if event["usage"].is_object() {
                    said.usage = event["usage"].clone();
                }
                let Some(choice) = event["choices"].get(0) else { continue };
                let delta = &choice["delta"];
                said.stop += &string(&choice["finish_reason"]);
                said.text += &(string(&delta["content"]) + &string(&delta["refusal"]));
                said.reasoning += &string(&delta["reasoning_content"]);
                for call in items(&delta["tool_calls"]) {
                    if call["id"].is_string() {
                        said.calls.push((string(&call["id"]), string(&call["function"]["name"]), String::new()));
                    }
                    let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
                    said.calls[index].2 += &string(&call["function"]["arguments"]);
                }
            }
            Wire::Gemini => add_gemini(&mut said, event),
        }
    }
    said
}
