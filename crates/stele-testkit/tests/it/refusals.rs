use serde_json::{Value, json};
use stele_core::Wire;
use stele_testkit::{Behaviour, Say, Script, Server, Wording};

use crate::agent::Agent;
use crate::client::Client;

/// An agent in the middle of a turn: a prompt, two calls, their results.
fn working(wire: Wire, server: &Server) -> Agent {
    let mut agent = Agent::new(server, wire);
    agent.prompt("go");
    agent.step();
    agent.results("fine");
    agent
}

fn script() -> Script {
    Script::new([
        Say::reasoning("hm")
            .and_text("I look.")
            .and_call("read", &json!({"argument": "a"}))
            .and_call("read", &json!({"argument": "b"})),
        Say::text("Done."),
    ])
}

/// Changes a good request and checks the refusal.
fn check(wire: Wire, change: impl Fn(&mut Value), expected: &str) {
    let server = Server::start(script()).unwrap();
    let agent = working(wire, &server);
    let mut body = agent.body(false);
    change(&mut body);
    let response = agent.send(&body, false);
    let text = response.text();
    assert!(response.status == 400 || response.status == 404, "{wire}: {expected}: {text}");
    let error = &response.json()["error"];
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(expected), "{wire}: {message}");
    match wire {
        Wire::AnthropicMessages => assert_eq!(error["type"], "invalid_request_error"),
        Wire::OpenaiResponses | Wire::OpenaiChat => {
            assert_eq!(error["type"], "invalid_request_error");
            assert!(error.get("param").is_some() && error.get("code").is_some());
        }
        Wire::Gemini => assert_eq!(error["status"], "INVALID_ARGUMENT"),
    }
    let received = server.requests();
    assert_eq!(received.last().unwrap().step, None);
    // The same without strictness.
    let server = Server::start(Behaviour::from(script()).lenient()).unwrap();
    let response = Client::new(server.address()).post(&agent.path(false), &[], body.to_string().as_bytes());
    assert_eq!(response.status, 200, "{}", response.text());
}

fn remove(value: &mut Value, key: &str) {
    value.as_object_mut().unwrap().remove(key);
}

#[test]
fn good_requests_are_taken() {
    for wire in Wire::ALL {
        let server = Server::start(script()).unwrap();
        let mut agent = working(wire, &server);
        assert_eq!(agent.step().text, "Done.");
    }
}

#[test]
fn anthropic_refuses() {
    let check = |change: fn(&mut Value), expected| check(Wire::AnthropicMessages, change, expected);
    check(|body| body["surprise"] = json!(1), "surprise: Extra inputs are not permitted");
    check(|body| remove(body, "max_tokens"), "max_tokens: Field required");
    check(|body| body["max_tokens"] = json!(0), "greater than or equal to 1");
    check(|body| body["messages"] = json!([]), "at least one message");
    check(|body| body["messages"][0]["role"] = json!("assistant"), "first message must use the \"user\" role");
    check(|body| body["messages"][1]["role"] = json!("system"), "Input should be 'user' or 'assistant'");
    check(|body| body["messages"][0]["content"] = json!([]), "non-empty content");
    check(|body| body["messages"][0]["content"] = json!(""), "non-empty content");
    check(|body| body["messages"][0]["content"][0]["text"] = json!(""), "must be non-empty");
    check(|body| body["messages"][0]["content"][0]["text"] = json!(" \n"), "non-whitespace");
    check(|body| body["system"][0]["text"] = json!(""), "system.0: text content blocks must be non-empty");
    check(
        |body| drop(body["messages"].as_array_mut().unwrap().pop()),
        "`tool_use` ids were found without `tool_result` blocks immediately after",
    );
    check(
        |body| drop(body["messages"][2]["content"].as_array_mut().unwrap().pop()),
        "`tool_use` ids were found without `tool_result` blocks immediately after",
    );
    check(
        |body| body["messages"][2]["content"].as_array_mut().unwrap().insert(0, json!({"type": "text", "text": "x"})),
        "`tool_use` ids were found without `tool_result` blocks immediately after",
    );
    check(|body| body["messages"][2]["content"][0]["tool_use_id"] = json!("toolu_x"), "unexpected `tool_use_id`");
    check(|body| body["messages"][2]["content"][1]["content"][0]["text"] = json!(""), "tool_result.content.0");
    check(|body| body["messages"][1]["content"][2]["input"] = json!("text"), "Input should be an object");
    check(|body| body["messages"][1]["content"][2]["id"] = json!("a b"), "should match pattern");
    check(
        |body| {
            let id = body["messages"][1]["content"][2]["id"].clone();
            body["messages"][1]["content"][3]["id"] = id;
        },
        "`tool_use` ids must be unique",
    );
    check(|body| body["messages"][1]["content"][0]["thinking"] = json!("hm "), "Invalid `signature`");
    check(|body| body["messages"][1]["content"][0]["signature"] = json!(""), "Invalid `signature`");
    check(
        |body| body["messages"][1]["content"][1]["type"] = json!("output_text"),
        "does not match any of the expected",
    );
    check(|body| body["tools"][1]["name"] = json!("bash"), "Tool names must be unique");
    check(|body| body["tools"][1]["name"] = json!("a.b"), "should match pattern");
    check(|body| remove(&mut body["tools"][1], "input_schema"), "input_schema");
    let marked = |body: &mut Value, ttls: [Option<&str>; 5]| {
        let places = ["/tools/0", "/tools/1", "/system/0", "/messages/0/content/0", "/messages/2/content/1"];
        for (place, ttl) in places.into_iter().zip(ttls) {
            if let Some(ttl) = ttl {
                body.pointer_mut(place).unwrap()["cache_control"] = json!({"type": "ephemeral", "ttl": ttl});
            }
        }
    };
    self::check(
        Wire::AnthropicMessages,
        |body| marked(body, [Some("5m"); 5]),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    );
    self::check(
        Wire::AnthropicMessages,
        |body| marked(body, [None, None, Some("5m"), Some("1h"), None]),
        "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
    );
    self::check(Wire::AnthropicMessages, |body| marked(body, [None, None, Some("2h"), None, None]), "cache_control");
    check(
        |body| body["messages"][1]["content"][0]["cache_control"] = json!({"type": "ephemeral"}),
        "thinking blocks cannot be marked",
    );
    check(
        |body| {
            body["messages"]
                .as_array_mut()
                .unwrap()
                .push(json!({"role": "assistant", "content": [{"type": "text", "text": "So "}]}))
        },
        "cannot end with trailing whitespace",
    );
}

#[test]
fn anthropic_joins_neighbours_of_one_role() {
    let server = Server::start(script()).unwrap();
    let agent = working(Wire::AnthropicMessages, &server);
    let mut body = agent.body(false);
    let second = body["messages"][2]["content"].as_array_mut().unwrap().pop().unwrap();
    let more = json!({"role": "user", "content": [second, {"type": "text", "text": "and this"}]});
    body["messages"].as_array_mut().unwrap().push(more);
    assert_eq!(agent.send(&body, false).status, 200);
}

#[test]
fn chat_refuses() {
    let check = |change: fn(&mut Value), expected| check(Wire::OpenaiChat, change, expected);
    check(|body| body["surprise"] = json!(1), "Unrecognized request argument supplied: surprise");
    check(|body| remove(body, "model"), "must provide a model");
    check(|body| body["messages"] = json!([]), "empty array");
    check(|body| body["tools"] = json!([]), "empty array");
    check(|body| body["stream_options"] = json!({"include_usage": true}), "only allowed when 'stream' is enabled");
    check(|body| body["tools"][0]["function"]["name"] = json!("a b"), "does not match pattern");
    check(|body| body["tools"][0]["function"]["name"] = json!("read"), "Duplicate function name");
    check(|body| drop(body["messages"].as_array_mut().unwrap().pop()), "did not have response messages: call_");
    check(
        |body| body["messages"].as_array_mut().unwrap().insert(3, json!({"role": "user", "content": "x"})),
        "must be followed by tool messages",
    );
    check(|body| body["messages"][3]["tool_call_id"] = json!("call_x"), "must be a response to a preceeding message");
    check(|body| body["messages"][1]["role"] = json!("person"), "Invalid value: 'person'");
    check(|body| body["messages"][1]["content"] = Value::Null, "Invalid value for 'content'");
    check(|body| body["messages"][2] = json!({"role": "assistant", "content": null}), "Invalid value for 'content'");
    check(|body| body["messages"][2]["tool_calls"] = json!([]), "empty array");
    check(|body| body["messages"][2]["tool_calls"][0]["id"] = json!("x".repeat(41)), "length between 1 and 40");
    check(
        |body| {
            let id = body["messages"][2]["tool_calls"][0]["id"].clone();
            body["messages"][2]["tool_calls"][1]["id"] = id;
        },
        "Duplicate value",
    );
    check(|body| body["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!({}), "arguments as a string");
}

#[test]
fn responses_refuses() {
    let check = |change: fn(&mut Value), expected| check(Wire::OpenaiResponses, change, expected);
    // Items: prompt, reasoning, message, two calls, two outputs.
    check(|body| body["surprise"] = json!(1), "Unknown parameter: 'surprise'");
    check(|body| remove(body, "model"), "'model'");
    check(|body| remove(body, "input"), "'input'");
    check(|body| body["previous_response_id"] = json!("resp_1"), "Previous response with id 'resp_1' not found");
    check(|body| body["tools"][0]["name"] = json!("a b"), "does not match pattern");
    check(|body| body["tools"][0]["name"] = json!("read"), "Duplicate function name");
    check(|body| drop(body["input"].as_array_mut().unwrap().pop()), "No tool output found for function call call_");
    check(|body| body["input"][5]["call_id"] = json!("call_x"), "No tool call found for function call output");
    check(|body| body["input"][4]["call_id"] = json!(""), "length between 1 and 64");
    check(|body| body["input"][4]["call_id"] = body["input"][3]["call_id"].clone(), "Duplicate function call");
    check(|body| body["input"][4]["arguments"] = json!({}), "expected a string");
    check(|body| body["input"][1]["encrypted_content"] = json!("other"), "could not be verified");
    check(|body| body["input"][1]["summary"][0]["text"] = json!("other"), "could not be verified");
    check(|body| remove(&mut body["input"][1], "encrypted_content"), "not persisted when `store` is set to false");
    check(|body| remove(&mut body["input"][1], "summary"), "'summary'");
    check(
        |body| {
            let reasoning = body["input"].as_array_mut().unwrap().remove(1);
            body["input"].as_array_mut().unwrap().push(reasoning);
        },
        "without its required following item",
    );
    check(|body| body["input"][1] = json!({"type": "item_reference", "id": "rs_1"}), "not found");
    check(|body| body["input"][1]["type"] = json!("thought"), "Invalid value: 'thought'");
    check(|body| body["input"][0]["content"][0]["type"] = json!("output_text"), "Supported values are: 'input_text'");
    check(|body| body["input"][2]["content"][0]["type"] = json!("input_text"), "Supported values are: 'output_text'");
    check(|body| body["input"][0]["role"] = json!("person"), "Invalid value: 'person'");
    check(|body| remove(&mut body["input"][0], "content"), "content");
    check(
        |body| {
            let message = body["input"].as_array_mut().unwrap().remove(2);
            body["input"].as_array_mut().unwrap().insert(4, message);
        },
        "No tool output found",
    );
}

#[test]
fn gemini_refuses() {
    let check = |change: fn(&mut Value), expected| check(Wire::Gemini, change, expected);
    check(|body| body["surprise"] = json!(1), "Unknown name \"surprise\"");
    check(|body| body["contents"] = json!([]), "contents is not specified");
    check(|body| body["contents"][1]["role"] = json!("assistant"), "valid role");
    check(|body| body["contents"][0]["parts"] = json!([]), "must not be empty");
    check(|body| body["contents"][0]["parts"][0] = json!({}), "required oneof field");
    check(|body| drop(body["contents"].as_array_mut().unwrap().pop()), "the last content");
    check(|body| drop(body["contents"][2]["parts"].as_array_mut().unwrap().pop()), "number of function response parts");
    check(
        |body| body["contents"].as_array_mut().unwrap().insert(2, json!({"role": "user", "parts": [{"text": "x"}]})),
        "number of function response parts",
    );
    check(|body| body["contents"][1]["role"] = json!("user"), "function call turn");
    check(|body| body["contents"][1]["parts"][2]["functionCall"]["args"] = json!("a"), "function_call");
    check(|body| body["contents"][2]["parts"][0]["functionResponse"]["response"] = json!("a"), "function_response");
    check(|body| body["tools"][0]["functionDeclarations"][0]["name"] = json!("a b"), "Invalid function name");
    check(|body| remove(&mut body["contents"][1]["parts"][2], "thoughtSignature"), "missing a `thought_signature`");
    check(|body| body["contents"][1]["parts"][2]["thoughtSignature"] = json!("x"), "not valid");
    check(|body| body["contents"][1]["parts"][1]["thoughtSignature"] = json!("x"), "not valid");
}

#[test]
fn older_turns_and_models_need_no_thought_signature() {
    let server = Server::start(script()).unwrap();
    let mut agent = working(Wire::Gemini, &server);
    remove(&mut agent.history[1]["parts"][2], "thoughtSignature");
    assert_eq!(agent.ask(false).status, 400);
    agent.model = "gemini-2.5-pro".to_owned();
    assert_eq!(agent.ask(false).status, 200);
    agent.model = "gemini-3-pro".to_owned();
    agent.history.push(json!({"role": "model", "parts": [{"text": "Done."}]}));
    agent.prompt("next");
    assert_eq!(agent.ask(false).status, 200);
}

#[test]
fn a_body_must_be_strict_json() {
    let server = Server::start(Behaviour::from(Say::text("ok")).lenient()).unwrap();
    for wire in Wire::ALL {
        let mut agent = Agent::new(&server, wire);
        agent.prompt("MARK");
        let good = agent.body(false).to_string();
        let bodies: [Vec<u8>; 5] = [
            good.replace("MARK", "\\ud83d").into_bytes(),
            good.replace("MARK", "\\ude00\\ud83d").into_bytes(),
            good.bytes().map(|byte| if byte == b'M' { 0xff } else { byte }).collect(),
            (good.clone() + "}").into_bytes(),
            b"[]".to_vec(),
        ];
        for body in bodies {
            let response = Client::new(server.address()).post(&agent.path(false), &[], &body);
            assert_eq!(response.status, 400, "{wire}: {}", String::from_utf8_lossy(&body));
            assert!(response.json()["error"]["message"].is_string());
        }
        let pair = good.replace("MARK", "\\ud83d\\ude00");
        let response = Client::new(server.address()).post(&agent.path(false), &[], pair.as_bytes());
        assert_eq!(response.status, 200);
    }
}

#[test]
fn a_key_and_a_model_may_be_demanded() {
    for wire in Wire::ALL {
        for (key, model, status) in [("k-1", "scripted", 200), ("k-2", "scripted", 401), ("k-1", "other", 404)] {
            let server =
                Server::start(Behaviour::from(Say::text("ok")).require_key(key).models(["first", "scripted"])).unwrap();
            let mut agent = Agent::new(&server, wire);
            agent.model = model.to_owned();
            agent.prompt("go");
            let response = agent.ask(true);
            assert_eq!(response.status, status, "{wire}");
            if status != 200 {
                assert!(response.json()["error"]["message"].is_string());
                assert_eq!(response.header("content-type"), Some("application/json"));
            }
        }
    }
}

#[test]
fn anthropic_wants_its_version() {
    let server = Server::start(Say::text("ok")).unwrap();
    let mut agent = Agent::new(&server, Wire::AnthropicMessages);
    agent.prompt("go");
    let response = Client::new(server.address()).post("/v1/messages", &[], agent.body(false).to_string().as_bytes());
    assert_eq!(response.status, 400);
    assert!(response.text().contains("anthropic-version: header is required"));
}

#[test]
fn a_prompt_longer_than_the_window_is_refused_in_the_vendors_words() {
    let server = Server::start(Behaviour::from(Say::text("ok")).window(2_000)).unwrap();
    for (wire, words) in [
        (Wire::AnthropicMessages, "prompt is too long: 3"),
        (Wire::OpenaiResponses, "exceeds the context window"),
        (Wire::OpenaiChat, "maximum context length is 2000 tokens"),
        (Wire::Gemini, "exceeds the maximum number of tokens allowed (2000)"),
    ] {
        let mut agent = Agent::new(&server, wire);
        agent.prompt("short enough");
        assert_eq!(agent.ask(true).status, 200);
        agent.prompt(&"long".repeat(3_000));
        let response = agent.ask(true);
        assert_eq!(response.status, 400);
        assert!(response.text().contains(words), "{}", response.text());
        if matches!(wire, Wire::OpenaiResponses | Wire::OpenaiChat) {
            assert_eq!(response.json()["error"]["code"], "context_length_exceeded");
        }
    }
}

#[test]
fn a_server_that_knows_fewer_fields_names_what_it_does_not_know() {
    for wording in Wording::ALL {
        let behaviour = Behaviour::from(script()).without_fields(["stream_options", "cache_control"], wording);
        let server = Server::start(behaviour).unwrap();
        let agent = working(Wire::OpenaiChat, &server);
        let mut body = agent.body(false);
        assert_eq!(agent.send(&body, false).status, 200, "{wording:?}");
        body["messages"][0]["cache_control"] = json!({"type": "ephemeral"});
        body["stream_options"] = json!({"include_usage": true});
        for (field, place) in [("stream_options", vec!["stream_options"]), ("cache_control", vec!["messages", "0"])] {
            let response = agent.send(&body, false);
            let text = response.text();
            assert_eq!(response.status, if wording == Wording::Pydantic { 422 } else { 400 }, "{text}");
            assert!(text.contains(field), "{wording:?}: {text}");
            if wording == Wording::Pydantic {
                assert!(place.iter().all(|part| text.contains(part)), "{text}");
            }
            remove(&mut body, field);
        }
    }
}
