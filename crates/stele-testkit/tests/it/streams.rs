use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stele_core::{Stop, Wire};
use stele_testkit::{Behaviour, Chunks, Pace, Reply, Say, Server};

use crate::agent::{Agent, streamed, whole};
use crate::client::Client;

fn everything() -> Say {
    Say::reasoning("I should look at 温度 first, and then decide.")
        .and_text("I look at both files: 温度は 21℃ 🙂 now.")
        .and_call("read", &json!({"argument": "a file with a long name, so that it comes in pieces"}))
        .and_call("bash", &json!({"argument": "ls"}))
}

/// A streamed and a whole answer, from servers that have seen nothing else.
fn both(wire: Wire, behaviour: impl Fn() -> Behaviour) -> (crate::client::Response, Value) {
    let ask = |stream| {
        let server = Server::start(behaviour()).unwrap();
        let mut agent = Agent::new(&server, wire);
        agent.prompt("go");
        agent.ask(stream)
    };
    let response = ask(true);
    assert_eq!(response.header("content-type"), Some("text/event-stream; charset=utf-8"), "{}", response.text());
    (response, ask(false).json())
}

#[test]
fn a_streamed_answer_is_the_whole_answer_in_pieces() {
    for wire in Wire::ALL {
        let (stream, body) = both(wire, || everything().into());
        let said = streamed(wire, &stream);
        assert_eq!(said, whole(wire, &body), "{wire}");
        assert_eq!(said.text, "I look at both files: 温度は 21℃ 🙂 now.");
        assert_eq!(said.reasoning, "I should look at 温度 first, and then decide.");
        assert_eq!(said.calls[0].1, "read");
        assert_eq!(said.calls[1].2, "{\"argument\":\"ls\"}");
        assert!(said.usage.is_object(), "{wire}");
    }
}

#[test]
fn pieces_are_cut_where_they_should_be() {
    for wire in Wire::ALL {
        let expected = both(wire, || everything().into()).0;
        let cut = |chunks: Chunks| both(wire, || Behaviour::from(everything()).pace(Pace::chunks(chunks.clone()))).0;
        assert_eq!(expected.chunks.len(), expected.events().len(), "{wire}: one chunk for each event");
        for (chunks, sizes) in [
            (Chunks::Whole, vec![expected.body.len()]),
            (Chunks::At(vec![5, 353]), vec![5, 348, expected.body.len() - 353]),
            (Chunks::Every(1), vec![1; expected.body.len()]),
        ] {
            let response = cut(chunks);
            assert_eq!(response.body, expected.body, "{wire}");
            assert_eq!(response.chunks.iter().map(Vec::len).collect::<Vec<_>>(), sizes, "{wire}");
        }
    }
}

#[test]
fn a_pace_is_kept() {
    let pace = Pace { first: Duration::from_millis(30), between: Duration::from_millis(10), chunks: Chunks::Events };
    let server = Server::start(Behaviour::from(Say::text("slow")).pace(pace)).unwrap();
    let mut agent = Agent::new(&server, Wire::OpenaiChat);
    agent.prompt("go");
    let start = Instant::now();
    let response = agent.ask(true);
    let pauses = u32::try_from(response.chunks.len()).unwrap() - 1;
    assert!(start.elapsed() >= Duration::from_millis(30) + Duration::from_millis(10) * pauses);
    // A reply may have a pace of its own.
    let server = Server::start(Behaviour::answering(|_| {
        Reply::from(Say::text("in one piece")).pace(Pace::chunks(Chunks::Whole))
    }))
    .unwrap();
    let mut agent = Agent::new(&server, Wire::OpenaiChat);
    agent.prompt("go");
    assert_eq!(agent.ask(true).chunks.len(), 1);
}

#[test]
fn anthropic_names_its_events() {
    let (stream, _) = both(Wire::AnthropicMessages, || Say::text("Hi.").into());
    let names: Vec<_> = stream.events().into_iter().map(|(name, _)| name.unwrap()).collect();
    assert_eq!(
        names,
        [
            "message_start",
            "content_block_start",
            "ping",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
    for (name, data) in stream.events() {
        assert_eq!(serde_json::from_str::<Value>(&data).unwrap()["type"], name.unwrap());
    }
    let first = &stream.data()[0]["message"];
    assert_eq!(first["usage"]["output_tokens"], 1);
    assert_eq!(first["stop_reason"], Value::Null);
}

#[test]
fn responses_numbers_its_events_and_ends_without_a_mark() {
    let (stream, _) = both(Wire::OpenaiResponses, || everything().into());
    let data = stream.data();
    for (number, ((name, _), data)) in stream.events().iter().zip(&data).enumerate() {
        assert_eq!(data["type"], name.clone().unwrap());
        assert_eq!(data["sequence_number"], number);
    }
    assert_eq!(data[0]["type"], "response.created");
    assert_eq!(data.last().unwrap()["type"], "response.completed");
    let kinds: Vec<_> = data
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| event["item"]["type"].clone())
        .collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call", "function_call"]);
}

#[test]
fn chat_reports_usage_in_a_stream_only_when_asked() {
    let server = Server::start(Say::text("Hi.")).unwrap();
    let mut agent = Agent::new(&server, Wire::OpenaiChat);
    agent.prompt("go");
    let with = agent.ask(true);
    assert_eq!(with.events().last().unwrap().1, "[DONE]");
    let data = with.data();
    assert_eq!(data.last().unwrap()["choices"], json!([]));
    assert!(data.last().unwrap()["usage"].is_object());
    agent.fields = json!({"stream_options": null});
    let without = agent.ask(true);
    assert!(without.data().iter().all(|chunk| chunk.get("usage").is_none()));
    assert_eq!(without.events().last().unwrap().1, "[DONE]");
}

#[test]
fn gemini_without_sse_sends_an_array() {
    let server = Server::start(everything()).unwrap();
    let mut agent = Agent::new(&server, Wire::Gemini);
    agent.prompt("go");
    let path = agent.path(true).replace("?alt=sse", "");
    let body = agent.body(true).to_string();
    let response = Client::new(server.address()).post(&path, &agent.headers(), body.as_bytes());
    let chunks = response.json();
    assert_eq!(chunks.as_array().unwrap().len(), agent.ask(true).events().len());
    assert_eq!(chunks.as_array().unwrap().last().unwrap()["candidates"][0]["finishReason"], "STOP");
}

#[test]
fn a_stop_has_the_vendors_word() {
    let words = |stop: &Stop| {
        Wire::ALL.map(|wire| {
            let (stream, body) = both(wire, || Say::text("No more.").stopped(stop.clone()).into());
            let said = streamed(wire, &stream);
            assert_eq!(said, whole(wire, &body));
            assert_eq!(said.text, "No more.");
            said.stop
        })
    };
    // In the order of `Wire::ALL`: Anthropic, Responses, chat, Gemini.
    assert_eq!(words(&Stop::End), ["end_turn", "completed", "stop", "STOP"]);
    assert_eq!(words(&Stop::MaxOutput), ["max_tokens", "max_output_tokens", "length", "MAX_TOKENS"]);
    assert_eq!(words(&Stop::Refusal), ["refusal", "completed", "stop", "SAFETY"]);
    assert_eq!(words(&Stop::ContentFilter), ["refusal", "content_filter", "content_filter", "PROHIBITED_CONTENT"]);
    assert_eq!(words(&Stop::Other("model_pause".to_owned())), ["model_pause"; 4]);
    assert_eq!(words(&Stop::ToolCalls), ["tool_use", "completed", "tool_calls", "STOP"]);
}

#[test]
fn arguments_go_out_as_they_were_written() {
    for wire in [Wire::AnthropicMessages, Wire::OpenaiResponses, Wire::OpenaiChat] {
        for raw in ["{\"argument\":  \"spaces \" }", "{\"argument\": \"cut", "", "[1,2]"] {
            let server = Server::start(Say::raw_call("read", raw)).unwrap();
            let mut agent = Agent::new(&server, wire);
            agent.prompt("go");
            assert_eq!(streamed(wire, &agent.ask(true)).calls[0].2, raw, "{wire}");
        }
    }
}

#[test]
fn gemini_sends_no_call_that_it_could_not_read() {
    for raw in ["{\"argument\": \"cut", "", "[1,2]"] {
        let (stream, body) = both(Wire::Gemini, || Say::raw_call("read", raw).into());
        let said = streamed(Wire::Gemini, &stream);
        assert_eq!(said, whole(Wire::Gemini, &body));
        assert_eq!((said.stop.as_str(), said.calls.len()), ("MALFORMED_FUNCTION_CALL", 0));
    }
}

#[test]
fn a_recorded_stream_is_sent_as_it_is() {
    let recorded = "data: {\"a\":1}\n\n: comment\n\ndata: [DONE]\n\n";
    let server = Server::start(Behaviour::answering(move |_| Reply::raw("text/event-stream", recorded))).unwrap();
    let mut agent = Agent::new(&server, Wire::OpenaiChat);
    agent.prompt("go");
    let response = agent.ask(true);
    assert_eq!(response.text(), recorded);
    assert_eq!(response.chunks.len(), 3);
    let server = Server::start(Behaviour::answering(|_| Reply::raw("text/html", "<html>"))).unwrap();
    let mut agent = Agent::new(&server, Wire::OpenaiChat);
    agent.prompt("go");
    let response = agent.ask(true);
    assert_eq!((response.text().as_str(), response.header("content-type")), ("<html>", Some("text/html")));
}
