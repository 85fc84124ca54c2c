//! Answers of each wire, as vendors document them and as compatible servers send them.

use proptest::prelude::*;
use stele_core::{Failure, FailureCode, Stop, Usage, Wire};
use stele_provider::{AnswerBlock, Decoder, Delta};

use crate::support::{calls_of, config, decode, decode_whole, stream, text_of};

fn reasoning(text: &str, native: Option<&str>) -> AnswerBlock {
    AnswerBlock::Reasoning { text: text.to_owned(), native: native.map(str::to_owned) }
}

const ANTHROPIC: &[&str] = &[
    r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":90,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    r#"{"type":"ping"}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm \"é\""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"S="}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"xx"}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input":{}}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\": "}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"a\"}"}}"#,
    r#"{"type":"content_block_stop","index":2}"#,
    r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_2","name":"todo","input":{}}}"#,
    r#"{"type":"content_block_stop","index":3}"#,
    r#"{"type":"brand_new","index":3}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":40}}"#,
    r#"{"type":"message_stop"}"#,
];

#[test]
fn anthropic_thinking_and_calls() {
    let answer = decode_whole(Wire::AnthropicMessages, &stream(ANTHROPIC)).unwrap();
    assert_eq!(answer.stop, Stop::ToolCalls);
    assert_eq!(
        answer.blocks[..2],
        [
            reasoning(r#"hm "é""#, Some(r#"{"type":"thinking","thinking":"hm \"é\"","signature":"S="}"#)),
            reasoning("", Some(r#"{"type":"redacted_thinking","data":"xx"}"#)),
        ]
    );
    assert_eq!(calls_of(&answer), [(Some("toolu_1"), "read", r#"{"path": "a"}"#), (Some("toolu_2"), "todo", "{}")]);
    let usage = Usage { fresh: Some(5), cache_read: Some(90), output: Some(40), ..Usage::default() };
    assert_eq!(answer.usage, Some(usage));
    assert_eq!(
        answer.usage_raw.as_deref(),
        Some(r#"[{"input_tokens":5,"cache_read_input_tokens":90,"output_tokens":1},{"output_tokens":40}]"#)
    );
}

#[test]
fn deltas_come_as_they_arrive() {
    let mut decoder = Decoder::new(&config(Wire::AnthropicMessages));
    let deltas = decoder.feed(stream(ANTHROPIC).as_bytes());
    assert_eq!(
        deltas,
        [
            // As far as it counts the output, which only begins, it is not told.
            Delta::Usage(Usage { fresh: Some(5), cache_read: Some(90), ..Usage::default() }),
            Delta::Reasoning(r#"hm "é""#.to_owned()),
            Delta::CallStarted { call: 0, name: "read".to_owned() },
            Delta::CallArguments { call: 0, json: r#"{"path": "#.to_owned() },
            Delta::CallArguments { call: 0, json: r#""a"}"#.to_owned() },
            Delta::CallStarted { call: 1, name: "todo".to_owned() },
        ]
    );
    assert!(decoder.is_done() && decoder.has_ended());
    assert_eq!(decoder.feed(b"data: garbage\n\n"), []);
}

#[test]
fn a_second_message_in_one_answer_is_a_fault_of_the_server_and_no_part_of_the_first() {
    let begins = r#"{"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1}}}"#;
    let text = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"one"}}"#;
    let stops = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}"#;
    for events in [&[begins, text, begins, text, stops][..], &[begins, text, stops, begins, text, stops]] {
        let failure = decode_whole(Wire::AnthropicMessages, &stream(events)).unwrap_err();
        assert_eq!((failure.code, failure.output, failure.taken), (FailureCode::Malformed, true, true), "{failure:?}");
        assert!(failure.message.as_str().contains("a second message"), "{failure:?}");
        assert_eq!(failure.usage.unwrap().fresh, Some(7), "what was reported is kept");
    }
    // Before anything of it came, the beginning may be said again.
    let answer = decode_whole(Wire::AnthropicMessages, &stream(&[begins, begins, text, stops])).unwrap();
    assert_eq!((text_of(&answer).as_str(), answer.usage.unwrap().fresh), ("one", Some(7)));
}

#[test]
fn an_anthropic_message_may_come_as_one_document() {
    let body = r#" {"type":"message","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"hi"},
        {"type":"tool_use","id":"i","name":"bash","input":{"command": "ls"}}],"stop_reason":"tool_use","usage":{"input_tokens":1}}"#;
    let answer = decode_whole(Wire::AnthropicMessages, body).unwrap();
    assert_eq!(answer.blocks[0], reasoning("t", Some(r#"{"type":"thinking","thinking":"t","signature":"s"}"#)));
    assert_eq!(
        (text_of(&answer).as_str(), calls_of(&answer)),
        ("hi", vec![(Some("i"), "bash", r#"{"command": "ls"}"#)])
    );
}

#[test]
fn a_call_cut_by_the_maximum_is_dropped_whole() {
    let mut events = ANTHROPIC[..11].to_vec();
    events.push(r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":40}}"#);
    let answer = decode_whole(Wire::AnthropicMessages, &stream(&events)).unwrap();
    assert_eq!((calls_of(&answer), answer.stop.clone()), (vec![], Stop::MaxOutput));
    let chat = stream(&[
        r#"{"choices":[{"delta":{"content":"x","tool_calls":[{"index":0,"id":"a","function":{"name":"b","arguments":"{}"}},{"index":1,"id":"c","function":{"name":"d","arguments":"{\"e"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#,
    ]);
    let answer = decode_whole(Wire::OpenaiChat, &chat).unwrap();
    assert_eq!((calls_of(&answer), answer.stop.clone()), (vec![(Some("a"), "b", "{}")], Stop::MaxOutput));
}

#[test]
fn broken_arguments_are_kept_as_they_are() {
    let chat = stream(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"b","arguments":"{\"e\": \"\\ud83d"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
    ]);
    let answer = decode_whole(Wire::OpenaiChat, &chat).unwrap();
    assert_eq!(calls_of(&answer), [(Some("a"), "b", r#"{"e": "\ud83d"#)]);
}

#[test]
fn an_empty_answer_is_a_failure_and_a_refusal_is_none() {
    let empty = stream(&[r#"{"choices":[{"delta":{"reasoning":"hm"},"finish_reason":"stop"}]}"#, "[DONE]"]);
    assert_eq!(decode_whole(Wire::OpenaiChat, &empty).unwrap_err().code, FailureCode::Empty);
    let filtered = stream(&[r#"{"choices":[{"delta":{},"finish_reason":"content_filter"}]}"#]);
    let answer = decode_whole(Wire::OpenaiChat, &filtered).unwrap();
    assert_eq!((answer.blocks.len(), answer.stop), (0, Stop::ContentFilter));
    let refusal = stream(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I can"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"refusal"}}"#,
    ]);
    assert_eq!(decode_whole(Wire::AnthropicMessages, &refusal).unwrap().stop, Stop::Refusal);
    let blocked = stream(&[r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}"#]);
    let answer = decode_whole(Wire::Gemini, &blocked).unwrap();
    assert_eq!((answer.stop, answer.usage.unwrap().fresh), (Stop::ContentFilter, Some(4)));
}

#[test]
fn local_servers_leave_out_ids_and_indices() {
    let bodies = [
        // Whole calls in one delta, without id and index.
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"a","arguments":"{\"x\":1}"}},{"function":{"name":"a","arguments":{"x":2}}}]},"finish_reason":"stop"}]}"#,
        // The same with empty ids, each on index 0.
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"","function":{"name":"a","arguments":"{\"x\":1}"}},{"index":0,"id":"","function":{"name":"a","arguments":"{\"x\":2}"}}]},"finish_reason":"stop"}]}"#,
    ];
    for body in bodies {
        let answer = decode_whole(Wire::OpenaiChat, &stream(&[body])).unwrap();
        assert_eq!(calls_of(&answer), [(None, "a", r#"{"x":1}"#), (None, "a", r#"{"x":2}"#)]);
    }
    // The id and name again with each piece.
    let again = stream(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"i","function":{"name":"a","arguments":"{\"x\""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"i","function":{"name":"a","arguments":":1}"}}]},"finish_reason":"tool_calls"}]}"#,
    ]);
    assert_eq!(calls_of(&decode_whole(Wire::OpenaiChat, &again).unwrap()), [(Some("i"), "a", r#"{"x":1}"#)]);
}

#[test]
fn reasoning_of_chat_stands_in_one_of_several_fields() {
    let expect = reasoning("a b", None);
    for delta in [
        r#"{"reasoning_content":"a b"}"#,
        r#"{"reasoning":"a b"}"#,
        r#"{"reasoning":"a b","reasoning_content":"a b"}"#,
        r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a b"}]}]}"#,
    ] {
        let body = stream(&[
            &format!(r#"{{"choices":[{{"delta":{delta}}}]}}"#),
            r#"{"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}"#,
            r#"{"choices":[],"usage":null,"timings":{"cache_n":10,"prompt_n":2,"predicted_n":1}}"#,
        ]);
        let answer = decode_whole(Wire::OpenaiChat, &body).unwrap();
        assert_eq!(answer.blocks, [expect.clone(), AnswerBlock::Text { text: "ok".to_owned(), native: None }]);
        let usage = Usage { fresh: Some(2), cache_read: Some(10), output: Some(1), ..Usage::default() };
        assert_eq!(answer.usage, Some(usage));
    }
}

#[test]
fn errors_of_compatible_servers_come_in_several_places() {
    for body in [
        stream(&[r#"{"error":{"message":"busy now","code":503}}"#]),
        stream(&[r#"{"choices":[{"delta":{},"finish_reason":"error","error":{"message":"busy now","code":503}}]}"#]),
        r#"{"error":{"message":"busy now","code":503}}"#.to_owned(),
    ] {
        let failure = decode_whole(Wire::OpenaiChat, &body).unwrap_err();
        assert_eq!((failure.code, failure.message.as_str()), (FailureCode::Overloaded, "busy now"), "{body}");
    }
    let html = decode_whole(Wire::OpenaiChat, "<html>sign in</html>").unwrap_err();
    assert_eq!(html.code, FailureCode::Malformed);
    assert!(html.message.as_str().contains("a web page"));
    let garbage = decode_whole(Wire::OpenaiChat, "data: {\"choices\": 7}\n\n").unwrap_err();
    assert_eq!(garbage.code, FailureCode::Malformed);
    let half = decode_whole(Wire::OpenaiChat, r#"{"choices":[{"message":{"content":"ha"#).unwrap_err();
    assert_eq!(half.code, FailureCode::Incomplete);
}

#[test]
fn a_broken_connection_keeps_what_had_arrived() {
    let mut decoder = Decoder::new(&config(Wire::AnthropicMessages));
    decoder.feed(stream(&ANTHROPIC[..4]).as_bytes());
    assert!(!decoder.has_ended());
    let failure = decoder.interrupted(Failure::new(FailureCode::Transport, "reset"));
    assert!(failure.output);
    assert_eq!(failure.usage.unwrap().cache_read, Some(90));
}

#[test]
fn what_was_counted_before_the_end_is_no_count_of_the_output() {
    // Anthropic's opening says 1, and Gemini's chunks count what there was by then.
    let text = r#"{"type":"content_block_delta","index":0,"delta":{"text":"so much text"}}"#;
    let stop = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    let expect = Usage { fresh: Some(5), cache_read: Some(90), ..Usage::default() };
    for events in [vec![ANTHROPIC[0]], vec![ANTHROPIC[0], text]] {
        let failure = decode_whole(Wire::AnthropicMessages, &stream(&events)).unwrap_err();
        assert_eq!((failure.code, failure.usage), (FailureCode::Incomplete, Some(expect)));
    }
    let answer = decode_whole(Wire::AnthropicMessages, &stream(&[ANTHROPIC[0], text, stop])).unwrap();
    assert_eq!(answer.usage, Some(expect));

    let begun = r#"{"candidates":[{"content":{"parts":[{"text":"so much"}]}}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1}}"#;
    let ended = r#"{"candidates":[{"content":{"parts":[{"text":" text"}]},"finishReason":"STOP"}]}"#;
    let expect = Usage { fresh: Some(5), ..Usage::default() };
    let failure = decode_whole(Wire::Gemini, &stream(&[begun])).unwrap_err();
    assert_eq!(failure.usage, Some(expect));
    assert_eq!(decode_whole(Wire::Gemini, &stream(&[begun, ended])).unwrap().usage, Some(expect));

    // vLLM counts in every chunk, if it is asked to.
    let begun = r#"{"choices":[{"delta":{"content":"so"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#;
    assert_eq!(decode_whole(Wire::OpenaiChat, &stream(&[begun])).unwrap_err().usage, Some(expect));
}

const RESPONSES: &[&str] = &[
    r#"{"type":"response.created","response":{"status":"in_progress"}}"#,
    r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}"#,
    r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"thin"}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","encrypted_content":"E/x","summary":[{"type":"summary_text","text":"think"}]}}"#,
    r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"msg_1","status":"in_progress","content":[]}}"#,
    r#"{"type":"response.output_text.delta","output_index":1,"delta":"Look"}"#,
    r#"{"type":"response.output_text.delta","output_index":1,"delta":"ing."}"#,
    r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"msg_1","status":"completed","phase":"commentary","role":"assistant","content":[{"type":"output_text","text":"Looking.","annotations":[]}]}}"#,
    r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"read","arguments":""}}"#,
    r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"path\""}"#,
    r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":":\"a\"}"}"#,
    r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"read","arguments":"{\"path\":\"a\"}","status":"completed"}}"#,
    r#"{"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":64},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4}}}}"#,
];

#[test]
fn responses_items_count_as_they_stand_when_they_are_done() {
    let answer = decode_whole(Wire::OpenaiResponses, &stream(RESPONSES)).unwrap();
    assert_eq!(answer.stop, Stop::ToolCalls);
    let native = r#"{"type":"reasoning","id":"rs_1","encrypted_content":"E/x","summary":[{"type":"summary_text","text":"think"}]}"#;
    assert_eq!(answer.blocks[0], reasoning("think", Some(native)));
    assert_eq!(text_of(&answer), "Looking.");
    assert!(matches!(&answer.blocks[1], AnswerBlock::Text { native: Some(raw), .. } if raw.contains("commentary")));
    assert_eq!(calls_of(&answer), [(Some("call_1"), "read", r#"{"path":"a"}"#)]);
    let usage =
        Usage { fresh: Some(36), cache_read: Some(64), output: Some(9), reasoning: Some(4), ..Usage::default() };
    assert_eq!(answer.usage, Some(usage));
}

#[test]
fn an_item_that_is_sent_twice_is_one_item() {
    let mut events = RESPONSES.to_vec();
    for at in [11, 8, 7, 3] {
        events.insert(at, RESPONSES[at]);
    }
    let whole = decode_whole(Wire::OpenaiResponses, &stream(RESPONSES)).unwrap();
    assert_eq!(decode_whole(Wire::OpenaiResponses, &stream(&events)).unwrap(), whole);
    // One that is called anew on an index that is taken, or by an id that is, is another one.
    let mut other = RESPONSES.to_vec();
    let again = RESPONSES[11].replace("call_1", "call_2");
    let elsewhere = RESPONSES[11].replace("\"output_index\":2", "\"output_index\":3");
    other.splice(12..12, [again.as_str(), elsewhere.as_str()]);
    assert_eq!(calls_of(&decode_whole(Wire::OpenaiResponses, &stream(&other)).unwrap()).len(), 3);
}

#[test]
fn responses_without_a_stream_or_with_items_only_at_the_end() {
    let done = r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"reasoning","id":"r","summary":[]},{"type":"message","content":[{"type":"output_text","text":"hi"}]},{"type":"function_call","call_id":"c","name":"n","arguments":"{}"}]}}"#;
    let document = done.split_once(r#""response":"#).unwrap().1.strip_suffix('}').unwrap();
    for body in [stream(&[done]), document.to_owned()] {
        let answer = decode_whole(Wire::OpenaiResponses, &body).unwrap();
        assert_eq!((text_of(&answer).as_str(), calls_of(&answer)), ("hi", vec![(Some("c"), "n", "{}")]));
        assert_eq!(answer.blocks.len(), 2, "reasoning without content cannot go back and has no text");
    }
}

#[test]
fn responses_say_why_they_stopped() {
    let message = r#"{"type":"response.output_text.delta","output_index":0,"delta":"half"}"#;
    let cut = r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}"#;
    assert_eq!(decode_whole(Wire::OpenaiResponses, &stream(&[message, cut])).unwrap().stop, Stop::MaxOutput);
    let refusal = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"refusal","refusal":"I cannot."}]}}"#;
    let done = r#"{"type":"response.completed","response":{"status":"completed"}}"#;
    let answer = decode_whole(Wire::OpenaiResponses, &stream(&[refusal, done])).unwrap();
    assert_eq!((text_of(&answer).as_str(), answer.stop), ("I cannot.", Stop::Refusal));
    for error in [
        r#"{"type":"error","code":"rate_limit_exceeded","message":"slow","param":null}"#,
        r#"{"type":"error","error":{"type":"x","code":"rate_limit_exceeded","message":"slow"}}"#,
        r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow"}}}"#,
    ] {
        let failure = decode_whole(Wire::OpenaiResponses, &stream(&[message, error])).unwrap_err();
        assert_eq!((failure.code, failure.output), (FailureCode::RateLimited, true), "{error}");
    }
}

const GEMINI: &[&str] = &[
    r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"plan","thought":true}]}}],"usageMetadata":{"promptTokenCount":50,"cachedContentTokenCount":40}}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"ning","thought":true}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"Let "},{"text":"me."}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"read","args":{"path":"a","n":1e2}},"thoughtSignature":"SIG"}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"id":"f2","name":"todo"}}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"END"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":50,"candidatesTokenCount":7,"thoughtsTokenCount":3}}"#,
];

#[test]
fn gemini_keeps_signed_parts_as_they_came() {
    let answer = decode_whole(Wire::Gemini, &stream(GEMINI)).unwrap();
    let native = |raw: &str| Some(raw.to_owned());
    assert_eq!(
        answer.blocks,
        [
            reasoning("planning", None),
            AnswerBlock::Text { text: "Let me.".to_owned(), native: None },
            AnswerBlock::Call {
                vendor_id: None,
                name: "read".to_owned(),
                arguments: r#"{"path":"a","n":1e2}"#.to_owned(),
                native: native(
                    r#"{"functionCall":{"name":"read","args":{"path":"a","n":1e2}},"thoughtSignature":"SIG"}"#
                ),
            },
            AnswerBlock::Call {
                vendor_id: Some("f2".to_owned()),
                name: "todo".to_owned(),
                arguments: "{}".to_owned(),
                native: native(r#"{"functionCall":{"id":"f2","name":"todo"}}"#),
            },
            reasoning("", Some(r#"{"text":"","thoughtSignature":"END"}"#)),
        ]
    );
    assert_eq!(answer.stop, Stop::ToolCalls);
    let usage =
        Usage { fresh: Some(10), cache_read: Some(40), output: Some(10), reasoning: Some(3), ..Usage::default() };
    assert_eq!(answer.usage, Some(usage));
    // The same as a list of chunks.
    let list = format!("[{}]", GEMINI.join(",\n"));
    assert_eq!(decode_whole(Wire::Gemini, &list).unwrap(), answer);
}

#[test]
fn gemini_reports_calls_it_could_not_read() {
    let body = stream(&[
        r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"bad call: print(x)"}],"usageMetadata":{"promptTokenCount":5}}"#,
    ]);
    let failure = decode_whole(Wire::Gemini, &body).unwrap_err();
    assert_eq!(failure.code, FailureCode::Malformed);
    assert!(failure.message.as_str().contains("print(x)"));
}

#[test]
fn nul_has_no_place_in_text() {
    let body = stream(&[r#"{"choices":[{"delta":{"content":"a\u0000b \ud83d"},"finish_reason":"stop"}]}"#]);
    assert_eq!(text_of(&decode_whole(Wire::OpenaiChat, &body).unwrap()), "a\u{fffd}b \u{fffd}");
}

fn any_wire() -> impl Strategy<Value = Wire> {
    prop::sample::select(Wire::ALL.to_vec())
}

/// Events of every wire, whole and damaged, in any order.
fn any_body() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<String> = [ANTHROPIC, RESPONSES, GEMINI].concat().into_iter().map(str::to_owned).collect();
    let chat = [
        r#"{"choices":[{"index":0,"delta":{"content":"é🙂","tool_calls":[{"index":0,"id":"a","function":{"name":"b","arguments":"{"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3}}"#,
        "[DONE]",
        r#"{"error":{"message":"m"}}"#,
    ];
    let known = known.into_iter().chain(chat.map(str::to_owned)).collect::<Vec<_>>();
    let event = prop_oneof![
        8 => prop::sample::select(known.clone()).prop_map(|event| format!("data: {event}\n\n").into_bytes()),
        1 => (prop::sample::select(known), any::<prop::sample::Index>()).prop_map(|(event, cut)| {
            let bytes = event.into_bytes();
            let cut = cut.index(bytes.len());
            [b"data: ".as_slice(), &bytes[..cut], b"\n\n"].concat()
        }),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => Just(b": keep-alive\r\n\r\n".to_vec()),
    ];
    prop::collection::vec(event, 0..12).prop_map(|events| events.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn any_bytes_in_any_chunks_give_one_outcome(
        wire in any_wire(),
        body in any_body(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let config = config(wire);
        let whole = decode(&config, &[&body]);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([body.len()]) {
            chunks.push(&body[from..cut]);
            from = cut;
        }
        prop_assert_eq!(decode(&config, &chunks), whole.clone());
        if let Ok(answer) = whole {
            let usable = |(id, name, arguments): &(Option<&str>, &str, &str)| {
                *id != Some("") && !name.is_empty() && !arguments.is_empty()
            };
            prop_assert!(calls_of(&answer).iter().all(usable));
        }
    }

    #[test]
    fn noise_never_panics(wire in any_wire(), body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&config(wire), &[&body]);
    }
}
