//! Faults of endpoints that users of coding agents reported in public, as recorded streams.

use stele_core::{FailureCode, Stop, Usage, Wire};
use stele_provider::Decoder;

use crate::support::{
    assistant, call, calls_of, config, decode, decode_whole, encoder, header, reasoning, result, say, text, text_of,
    user,
};

const LS: [(Option<&str>, &str, &str); 1] = [(Some("c1"), "bash", r#"{"command":"ls"}"#)];

#[test]
fn characters_split_over_reads_stay_whole() {
    let body = include_str!("cases/split_characters/input.sse");
    let cuts: serde_json::Value =
        serde_json::from_str(include_str!("cases/split_characters/input.chunks.json")).unwrap();
    let mut chunks = Vec::new();
    let mut from = 0;
    for cut in cuts["cuts"].as_array().unwrap() {
        let cut = cut.as_u64().unwrap() as usize;
        chunks.push(&body.as_bytes()[from..cut]);
        from = cut;
    }
    chunks.push(&body.as_bytes()[from..]);
    let answer = decode(&config(Wire::AnthropicMessages), &chunks).unwrap();
    assert_eq!(answer, decode_whole(Wire::AnthropicMessages, body).unwrap());
    assert_eq!(text_of(&answer), "温度は 21℃ 🙂 ok");
    assert_eq!(answer.stop, Stop::End);
    assert_eq!(answer.usage, Some(Usage { fresh: Some(5), output: Some(9), ..Usage::default() }));
}

#[test]
fn an_error_inside_a_stream_is_classified_by_its_type() {
    let wire = Wire::AnthropicMessages;
    let early = decode_whole(wire, include_str!("cases/error_in_stream/input.early.sse")).unwrap_err();
    assert_eq!((early.code, early.output), (FailureCode::Overloaded, false));
    assert_eq!(early.usage, Some(Usage { fresh: Some(5), ..Usage::default() }));
    assert!(early.message.as_str().contains("busy"));
    let late = decode_whole(wire, include_str!("cases/error_in_stream/input.late.sse")).unwrap_err();
    assert_eq!((late.code, late.output), (FailureCode::Overloaded, true));
    let auth = decode_whole(wire, include_str!("cases/error_in_stream/input.auth.sse")).unwrap_err();
    assert_eq!(auth.code, FailureCode::Auth);
    assert!(!auth.code.is_transient());
}

#[test]
fn a_terminal_failure_ends_the_stream_while_the_socket_is_open() {
    let mut decoder = Decoder::new(&config(Wire::OpenaiResponses));
    decoder.feed(include_bytes!("cases/failed_open_socket/input.sse"));
    assert!(decoder.is_done());
    let failure = decoder.finish().unwrap_err();
    assert_eq!(failure.code, FailureCode::Server);
    assert!(failure.message.as_str().contains("marker-4711"));
}

#[test]
fn a_new_id_on_a_known_index_opens_a_new_call() {
    let answer = decode_whole(Wire::OpenaiChat, include_str!("cases/index_zero/input.sse")).unwrap();
    assert_eq!(
        calls_of(&answer),
        [
            (Some("c1"), "read", r#"{"path":"a"}"#),
            (Some("c2"), "read", r#"{"path":"b"}"#),
            (Some("c3"), "bash", r#"{"command":"ls"}"#)
        ]
    );
}

#[test]
fn complete_calls_count_whatever_the_finish_reason() {
    let decode = |body| decode_whole(Wire::OpenaiChat, body).unwrap();
    let stop = decode(include_str!("cases/finish_reason/input.stop.sse"));
    assert_eq!((calls_of(&stop), stop.stop.clone()), (LS.to_vec(), Stop::ToolCalls));
    let blank = decode(include_str!("cases/finish_reason/input.blank.sse"));
    assert_eq!((calls_of(&blank), text_of(&blank).as_str()), (LS.to_vec(), "go"));
    let twice = decode(include_str!("cases/finish_reason/input.twice.sse"));
    assert_eq!((calls_of(&twice), twice.stop.clone()), (LS.to_vec(), Stop::ToolCalls));
    let strange = decode(include_str!("cases/finish_reason/input.strange.sse"));
    assert_eq!((calls_of(&strange), strange.stop.clone()), (LS.to_vec(), Stop::Other("model_pause".to_owned())));
    let choices = decode(include_str!("cases/finish_reason/input.choices.sse"));
    assert_eq!((calls_of(&choices), text_of(&choices).as_str()), (LS.to_vec(), ""));
    assert_eq!(choices.usage, Some(Usage { fresh: Some(5), output: Some(6), ..Usage::default() }));
}

#[test]
fn a_stream_without_terminal_evidence_is_incomplete() {
    for body in [include_str!("cases/no_terminal/input.text.sse"), include_str!("cases/no_terminal/input.call.sse")] {
        let failure = decode_whole(Wire::OpenaiChat, body).unwrap_err();
        assert_eq!((failure.code, failure.output), (FailureCode::Incomplete, true));
    }
    let answer = decode_whole(Wire::OpenaiChat, include_str!("cases/no_terminal/input.nodone.sse")).unwrap();
    assert_eq!((text_of(&answer).as_str(), answer.stop), ("whole", Stop::End));
    let answer = decode_whole(Wire::AnthropicMessages, include_str!("cases/no_terminal/input.anthropic.sse")).unwrap();
    assert_eq!((text_of(&answer).as_str(), answer.stop), ("whole", Stop::End));
}

#[test]
fn usage_ends_up_in_disjoint_buckets() {
    let input: serde_json::Value = serde_json::from_str(include_str!("cases/usage_buckets/input.json")).unwrap();
    let report = |at: usize| serde_json::to_string(&input[at]["usage"]).unwrap();
    let anthropic =
        format!(r#"{{"content":[{{"type":"text","text":"x"}}],"stop_reason":"end_turn","usage":{}}}"#, report(0));
    let usage = decode_whole(Wire::AnthropicMessages, &anthropic).unwrap().usage.unwrap();
    // All marks that were sent asked for five minutes, so that is what it was written for.
    let expect = Usage {
        fresh: Some(7),
        cache_write_5m: Some(1200),
        cache_read: Some(30000),
        output: Some(400),
        ..Usage::default()
    };
    assert_eq!((usage, usage.context()), (expect, Some(31607)));

    let output = r#"[{"type":"message","content":[{"type":"output_text","text":"x"}]}]"#;
    let responses = format!(r#"{{"status":"completed","output":{output},"usage":{}}}"#, report(1));
    let usage = decode_whole(Wire::OpenaiResponses, &responses).unwrap().usage.unwrap();
    let expect = Usage {
        fresh: Some(1207),
        cache_read: Some(30000),
        output: Some(400),
        reasoning: Some(250),
        ..Usage::default()
    };
    assert_eq!((usage, usage.context()), (expect, Some(31607)));

    let chat = |at| {
        let message = r#"[{"message":{"content":"x"},"finish_reason":"stop"}]"#;
        decode_whole(Wire::OpenaiChat, &format!(r#"{{"choices":{message},"usage":{}}}"#, report(at))).unwrap()
    };
    let usage = chat(2).usage.unwrap();
    assert_eq!(usage, Usage { fresh: Some(500), output: Some(20), ..Usage::default() });
    assert_eq!(usage.hit_rate(), None);
    assert_eq!((chat(3).usage, chat(3).usage_raw), (None, None));
}

/// The producer is told apart before a wire sees a message: what is for another model comes without `native`.
#[test]
fn signed_reasoning_goes_back_byte_exact_or_not_at_all() {
    let lines = include_str!("cases/signed_reasoning/input.jsonl").lines();
    let records: Vec<serde_json::Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let config = config(Wire::AnthropicMessages);
    let messages = |same_model: bool| {
        let mut messages = Vec::new();
        for record in &records {
            match record["kind"].as_str().unwrap() {
                "user" => messages.push(user(vec![say(record["text"].as_str().unwrap())])),
                "tool_result" => {
                    messages.push(user(vec![result(1, "c1", "read", record["text"].as_str().unwrap(), false)]))
                }
                _ => {
                    let mut blocks = Vec::new();
                    for thought in record["reasoning"].as_array().unwrap() {
                        let words = thought["text"].as_str().unwrap();
                        let native = thought["signature"].as_str().filter(|_| same_model).map(|signature| {
                            format!(r#"{{"type":"thinking","thinking":"{words}","signature":"{signature}"}}"#)
                        });
                        blocks.push(reasoning(words, native.as_deref()));
                    }
                    if let Some(words) = record["text"].as_str() {
                        blocks.push(text(words));
                    }
                    if record["calls"].is_array() {
                        blocks.push(call(1, "c1", "read", r#"{"path":"p"}"#));
                    }
                    messages.push(assistant(blocks));
                }
            }
        }
        messages
    };
    let body =
        |same_model| String::from_utf8(encoder(&config, &header(), &messages(same_model)).body().to_vec()).unwrap();
    let same = body(true);
    assert!(same.contains(r#"{"type":"thinking","thinking":"because é","signature":"AAA="}"#), "{same}");
    // Newer models leave the text out; the signature is what they go on from.
    assert!(same.contains(r#"{"type":"thinking","thinking":"","signature":"BBB="}"#), "{same}");
    assert_eq!(same.matches(r#""type":"thinking","#).count(), 2, "{same}");
    assert!(!same.contains("half"));
    let other = body(false);
    assert!(!other.contains(r#""type":"thinking","#) && !other.contains("AAA=") && !other.contains("BBB="), "{other}");
}

#[test]
fn lone_surrogates_never_reach_a_request() {
    for wire in Wire::ALL {
        let lines = include_str!("cases/surrogates/input.jsonl").lines();
        let mut messages = Vec::new();
        for (number, line) in lines.enumerate() {
            // What an older log holds raw: arguments are repaired when they are sent, text when it is read.
            let record: serde_json::Value = stele_core::parse_lenient(line.as_bytes()).unwrap();
            match record["kind"].as_str().unwrap() {
                "assistant" => {
                    let raw = line.split(r#""args":"#).nth(1).unwrap().trim_end_matches("}]}");
                    messages.push(assistant(vec![call(number as u64, "id", "bash", raw)]));
                }
                "user" => messages.push(user(vec![say(record["text"].as_str().unwrap())])),
                _ => messages.push(user(vec![result(1, "id", "bash", record["text"].as_str().unwrap(), false)])),
            }
        }
        let body = encoder(&config(wire), &header(), &messages).body().to_vec();
        assert_eq!(body, encoder(&config(wire), &header(), &messages).body().to_vec());
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let all = body.to_string();
        assert!(all.contains("ok 😀 cut \u{fffd}"), "{wire}: {all}");
        assert!(all.contains("ls \u{fffd} dir") || all.contains(r"ls \\ufffd dir"), "{wire}: {all}");
        assert!(all.contains("k\u{fffd}") || all.contains(r"k\\ufffd"), "{wire}: {all}");
    }
}
