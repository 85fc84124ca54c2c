//! Verdicts, conversations and sums.

use proptest::prelude::*;
use serde_json::json;
use stele_core::{EpochCost, EpochReason, Micros, Usage, Wire};
use stele_proxy::{Bound, Change, Cut, Judging, Recorded, Verdict, explain, report, simulate};

use crate::breaks::{anthropic, next, recorded};

const WIRE: Wire = Wire::AnthropicMessages;

fn tokens(request: &Recorded) -> u64 {
    request.prompt_bytes() / 4
}

#[track_caller]
fn verdicts(requests: &[Recorded], expect: &[Verdict]) {
    let found = report(requests, &Judging::default());
    let mut lines: Vec<_> = found.conversations.iter().flat_map(|conversation| &conversation.requests).collect();
    lines.sort_by_key(|line| line.id);
    let found: Vec<Verdict> = lines.iter().map(|line| line.verdict.clone()).collect();
    assert_eq!(found, expect);
}

#[test]
fn what_was_read_is_judged_against_what_could_be() {
    let first = recorded(1, 0, WIRE, &anthropic(), Some(0));
    let all = tokens(&first);
    for (read, verdict) in [
        (Some(all), Verdict::Hit),
        (Some(all - all / 60), Verdict::Hit),
        (Some(all / 2), Verdict::Partial),
        (Some(0), Verdict::Unexplained),
        (None, Verdict::NotReported),
    ] {
        verdicts(&[first.clone(), recorded(2, 10, WIRE, &next(anthropic()), read)], &[Verdict::First, verdict]);
    }
}

#[test]
fn what_is_lost_is_told_with_the_steps_that_the_server_counts_in() {
    let body = |count: usize| {
        let messages: Vec<_> = (0..count)
            .map(|index| json!({"role": "user", "content": format!("{index} {}", "word ".repeat(900))}))
            .collect();
        json!({"model": "own", "messages": messages})
    };
    let request = |id, count, read| Recorded {
        base_url: "http://127.0.0.1:8000/v1".into(),
        ..recorded(id, id as i64, Wire::OpenaiChat, &body(count), Some(read))
    };
    let judged = |requests: &[Recorded]| {
        let found = report(requests, &Judging::default());
        let line = &found.conversations[0].requests[1];
        (line.verdict.clone(), line.step, line.lost, found.total.lost_at_most)
    };
    let first = request(1, 3, 0);
    let all = tokens(&first);
    // Nothing was ever read: how much of it is the rest of a step, nobody knows.
    assert_eq!(judged(&[first.clone(), request(2, 4, 0)]), (Verdict::Unexplained, None, all, all));
    // A whole number of steps, and all that is left is less than one.
    let whole = all / 128 * 128;
    assert_eq!(judged(&[first.clone(), request(2, 4, whole)]), (Verdict::Hit, Some(128), 0, 0));
    // One step less is within what a prediction may be off by; ten are not, and are told to the step.
    assert_eq!(judged(&[first.clone(), request(2, 4, whole - 128)]).0, Verdict::Hit);
    assert_eq!(judged(&[first.clone(), request(2, 4, whole - 1_280)]), (Verdict::Partial, Some(128), 1_280, 0));
    // A figure that is no whole number of steps shows that there are none.
    assert_eq!(judged(&[first, request(2, 4, whole - 101)]), (Verdict::Partial, Some(1), all - (whole - 101), 0));
}

#[test]
fn an_entry_lives_five_minutes_after_its_last_use_or_an_hour_when_asked() {
    let third = || next(next(anthropic()));
    let first = recorded(1, 0, WIRE, &anthropic(), Some(0));
    let hit = recorded(2, 290, WIRE, &next(anthropic()), Some(tokens(&first)));
    verdicts(
        &[first.clone(), recorded(2, 301, WIRE, &next(anthropic()), Some(0))],
        &[Verdict::First, Verdict::Expired],
    );
    let refreshed = recorded(3, 580, WIRE, &third(), Some(tokens(&hit)));
    verdicts(&[first, hit, refreshed], &[Verdict::First, Verdict::Hit, Verdict::Hit]);
    let hour = |mut body: serde_json::Value| {
        let content = body["messages"].as_array_mut().unwrap().last_mut().unwrap()["content"].as_array_mut().unwrap();
        content.last_mut().unwrap()["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
        body
    };
    let first = recorded(1, 0, WIRE, &hour(anthropic()), Some(0));
    let second = recorded(2, 3_000, WIRE, &hour(next(anthropic())), Some(0));
    verdicts(&[first, second], &[Verdict::First, Verdict::Unexplained]);
}

#[test]
fn what_is_kept_for_an_hour_outlives_the_rest_of_the_prompt() {
    let hour = |mut body: serde_json::Value| {
        body["system"][0]["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
        body
    };
    let first = recorded(1, 0, WIRE, &hour(anthropic()), Some(0));
    let header: usize =
        first.segments.iter().filter(|segment| segment.zone != stele_core::Zone::History).map(|s| s.bytes.len()).sum();
    let header = header as u64 / 4;
    let later = |read| recorded(2, 1_200, WIRE, &hour(next(anthropic())), Some(read));
    let lines = report(&[first.clone(), later(header)], &Judging::default()).conversations.remove(0).requests;
    assert_eq!(lines[1].verdict, Verdict::Hit);
    assert!(lines[1].predicted.unwrap().abs_diff(header) <= 1, "{:?} for {header}", lines[1].predicted);
    verdicts(&[first, later(0)], &[Verdict::First, Verdict::Unexplained]);
}

#[test]
fn short_prompts_are_not_cached() {
    let body = |count: usize| {
        let messages: Vec<_> = (0..count)
            .map(|index| json!({"role": if index % 2 == 0 {"user"} else {"assistant"}, "content": format!("{index}")}))
            .collect();
        json!({"model": "claude-haiku-4-5", "cache_control": {"type": "ephemeral"}, "messages": messages})
    };
    verdicts(
        &[recorded(1, 0, WIRE, &body(1), Some(0)), recorded(2, 5, WIRE, &body(3), Some(0))],
        &[Verdict::First, Verdict::BelowMinimum],
    );
}

#[test]
fn without_marks_nothing_is_cached_where_marks_are_needed() {
    let bare = |body: serde_json::Value| {
        serde_json::from_str(&body.to_string().replace(r#","cache_control":{"type":"ephemeral"}"#, "")).unwrap()
    };
    let requests =
        [recorded(1, 0, WIRE, &bare(anthropic()), Some(0)), recorded(2, 5, WIRE, &bare(next(anthropic())), Some(0))];
    verdicts(&requests, &[Verdict::First, Verdict::NotMarked]);
}

#[test]
fn breakpoints_are_read_whole_or_not_at_all() {
    let body = |system: &str, count: usize, mode: &str| {
        let mut messages = vec![
            json!({"role": "system", "content": "You are an agent. ".repeat(300)}),
            json!({"role": "user", "content": system}),
        ];
        messages.extend(
            (0..count).map(|index| json!({"role": "assistant", "content": format!("{index} {}", "word ".repeat(300))})),
        );
        json!({"model": "gpt-6.2-sol", "messages": messages, "prompt_cache_options": {"mode": mode}})
    };
    let request = |id, body| recorded(id, id as i64 * 1_000, Wire::OpenaiChat, &body, Some(0));
    let predicted = |requests: &[Recorded]| {
        report(requests, &Judging::default())
            .conversations
            .iter()
            .flat_map(|found| &found.requests)
            .map(|line| line.predicted.unwrap())
            .collect::<Vec<_>>()
    };
    let first = request(1, body("a", 1, "implicit"));
    // The whole earlier prompt, 1,000 seconds later; of one that was left, nothing.
    assert_eq!(predicted(&[first.clone(), request(2, body("a", 2, "implicit"))]), [0, tokens(&first)]);
    assert_eq!(predicted(&[first.clone(), request(2, body("b", 2, "implicit"))]), [0, 0]);
    assert_eq!(predicted(&[first, request(3, body("a", 2, "implicit"))]), [0, 0], "after half an hour");
    let explicit = [request(1, body("a", 1, "explicit")), request(2, body("a", 2, "explicit"))];
    verdicts(&explicit, &[Verdict::First, Verdict::NotMarked]);
}

#[test]
fn more_blocks_than_the_provider_looks_back_over_are_read_from_the_mark_before() {
    let mut after = next(anthropic());
    let many: Vec<_> = (0..30).map(|index| json!({"type": "text", "text": format!("note {index}")})).collect();
    let messages = after["messages"].as_array_mut().unwrap();
    let at = messages.len() - 1;
    messages[at]["content"].as_array_mut().unwrap().splice(0..0, many);
    let found = report(
        &[recorded(1, 0, WIRE, &anthropic(), Some(0)), recorded(2, 5, WIRE, &after, Some(0))],
        &Judging::default(),
    );
    let line = &found.conversations[0].requests[1];
    // The mark at the end of system is all that is found.
    assert!(line.predicted.unwrap() > 1_000 && line.predicted.unwrap() * 2 < line.shared_tokens, "{line:?}");
}

#[test]
fn a_request_that_was_sent_too_early_reads_nothing() {
    let first = Recorded { first_byte_ms: Some(9_000), ..recorded(1, 0, WIRE, &anthropic(), Some(0)) };
    verdicts(&[first, recorded(2, 5, WIRE, &next(anthropic()), Some(0))], &[Verdict::First, Verdict::Concurrent]);
}

#[test]
fn a_declared_cut_is_no_break() {
    let mut after = next(anthropic());
    after["system"][0]["text"] = json!("Another one. ".repeat(300));
    let reason = EpochReason::SystemChanged { sections: vec!["persona".into()] };
    let cut = Cut { reason, cost: Some(EpochCost { tokens: 1_900, money: Some(Micros(7)) }) };
    let second = Recorded { cut: Some(cut.clone()), ..recorded(2, 5, WIRE, &after, Some(0)) };
    let requests = [recorded(1, 0, WIRE, &anthropic(), Some(0)), second];
    verdicts(&requests, &[Verdict::First, Verdict::Cut(cut)]);
    // The tools are shared, and are more than the minimum; but no mark ends there.
    let found = explain(&requests, 2, &Judging::default()).unwrap();
    assert_eq!((found.predicted, found.bound), (Some(0), Some(Bound::BelowMinimum)));
}

#[test]
fn what_the_provider_keeps_cannot_be_judged() {
    let body = |id: &str| json!({"model": "m", "input": [{"role": "user", "content": "x ".repeat(4_000)}], "previous_response_id": id});
    let requests = [
        recorded(1, 0, Wire::OpenaiResponses, &body("a"), Some(0)),
        recorded(2, 5, Wire::OpenaiResponses, &body("b"), Some(900)),
        recorded(3, 9, Wire::OpenaiResponses, &body("c"), None),
    ];
    let found = report(&requests, &Judging::default());
    let lines: Vec<_> = found.conversations.iter().flat_map(|conversation| &conversation.requests).collect();
    assert!(lines.iter().all(|line| line.predicted.is_none() && line.leaves.is_none()), "{lines:?}");
    assert_eq!(lines[1].verdict, Verdict::Hit);
    assert_eq!(lines[2].verdict, Verdict::NotReported);
}

#[test]
fn going_back_is_no_break_and_rewriting_is() {
    let start = anthropic();
    let long = next(start.clone());
    let mut other = start.clone();
    let messages = other["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": "I stop here."}));
    messages.push(json!({"role": "user", "content": [{"type": "text", "text": "Then do it otherwise.", "cache_control": {"type": "ephemeral"}}]}));
    let first = recorded(1, 0, WIRE, &start, Some(0));
    let second = recorded(2, 5, WIRE, &long, Some(tokens(&first)));
    let back = recorded(3, 9, WIRE, &other, Some(tokens(&first)));
    verdicts(&[first.clone(), second.clone(), back], &[Verdict::First, Verdict::Hit, Verdict::Hit]);
    // The same place, but what came after it is still there: it was put in.
    let mut rewritten = next(long.clone());
    let at = start["messages"].as_array().unwrap().len();
    rewritten["messages"]
        .as_array_mut()
        .unwrap()
        .insert(at, json!({"role": "user", "content": "Mind this. ".repeat(20)}));
    let requests = [first, second, recorded(3, 9, WIRE, &rewritten, Some(0))];
    let found = explain(&requests, 3, &Judging::default()).unwrap();
    assert!(matches!(found.verdict, Verdict::Broken { .. }), "{:?}", found.verdict);
    assert!(matches!(found.change, Some(Change::Inserted { .. })), "{:?}", found.change);
}

#[test]
fn conversations_are_told_apart_and_side_requests_stand_alone() {
    let other = || {
        let mut body = anthropic();
        body["messages"] = json!([{"role": "user", "content": [{"type": "text", "text": "Something else.", "cache_control": {"type": "ephemeral"}}]}]);
        body
    };
    let title = json!({"model": "claude-haiku-4-5", "messages": [{"role": "user", "content": "Give it a title."}]});
    let requests = [
        recorded(5, 30, WIRE, &next(next(anthropic())), Some(1)),
        recorded(1, 0, WIRE, &anthropic(), Some(0)),
        recorded(2, 5, WIRE, &title, Some(0)),
        recorded(3, 10, WIRE, &other(), Some(0)),
        recorded(4, 20, WIRE, &next(anthropic()), Some(1)),
        Recorded { status: Some(429), usage: None, ..recorded(6, 31, WIRE, &next(anthropic()), None) },
        Recorded { status: None, usage: None, ..recorded(7, 32, WIRE, &next(anthropic()), None) },
    ];
    let found = report(&requests, &Judging::default());
    let ids: Vec<(u64, Vec<u64>)> = found
        .conversations
        .iter()
        .map(|conversation| (conversation.id, conversation.requests.iter().map(|line| line.id).collect()))
        .collect();
    assert_eq!(ids, [(1, vec![1, 4, 5]), (3, vec![3])]);
    assert_eq!((found.side.requests, found.failed, found.total.requests), (1, 2, 5));
    assert_eq!(explain(&requests, 9, &Judging::default()).map(|found| found.request), None);
}

#[test]
fn sums_leave_the_unknown_unknown() {
    let known = recorded(1, 0, WIRE, &anthropic(), Some(0));
    let unknown = Recorded { usage: None, ..recorded(2, 5, WIRE, &next(anthropic()), None) };
    let found = report(&[known.clone(), unknown], &Judging::default());
    assert_eq!((found.total.coverage.known, found.total.coverage.attempts, found.total.unpriced), (1, 2, 1));
    assert_eq!(found.total.hit_rate, None);
    let silent = Usage { fresh: Some(1_000), output: Some(1), ..Usage::default() };
    let silent = Recorded { usage: Some(silent), ..recorded(2, 5, WIRE, &next(anthropic()), None) };
    let silent = report(&[known.clone(), silent], &Judging::default()).total;
    assert_eq!((silent.coverage.known, silent.hit_rate), (2, None));
    let cost = stele_provider::list_price(&known.model).unwrap().price.of(&known.usage.unwrap()).unwrap();
    assert_eq!(found.total.cost, Some(cost));
    let unpriced = |_: &Recorded| None;
    let found = report(&[known], &Judging { price: &unpriced, ..Judging::default() });
    assert_eq!((found.total.cost, found.total.lost_cost, found.total.unpriced), (None, Some(Micros(0)), 1));
}

#[test]
fn the_same_requests_are_counted_by_another_vendors_rules() {
    let bodies = [anthropic(), next(anthropic()), next(next(anthropic()))];
    let requests: Vec<Recorded> =
        bodies.iter().zip(1..).map(|(body, id)| recorded(id, id as i64 * 10, WIRE, body, Some(0))).collect();
    let inputs: Vec<u64> = requests.iter().map(tokens).collect();
    let price = stele_provider::list_price("gpt-6.2-sol").map(|row| row.price);
    let openai = simulate(&requests, "openai", "gpt-6.2-sol", price).unwrap();
    assert_eq!(
        openai.requests[0].usage,
        Usage {
            fresh: Some(0),
            cache_read: Some(0),
            cache_write: Some(inputs[0]),
            output: Some(10),
            ..Usage::default()
        }
    );
    assert_eq!(openai.requests[1].usage.cache_read, Some(inputs[0]));
    // Older models: steps of 128, and writes are free.
    let older = simulate(&requests, "openai", "gpt-5", None).unwrap();
    assert_eq!(older.requests[1].usage.cache_read, Some(inputs[0] / 128 * 128));
    assert_eq!(older.requests[1].usage.fresh, Some(inputs[1] - inputs[0] / 128 * 128));
    assert_eq!(openai.cost.unwrap().0, openai.requests.iter().map(|request| request.cost.unwrap().0).sum::<u64>());
    let price = stele_provider::list_price("claude-opus-5").map(|row| row.price);
    let own = simulate(&requests, "anthropic", "claude-opus-5", price).unwrap();
    assert_eq!(own.requests[1].usage.cache_read, Some(inputs[0]));
    assert_eq!(own.requests[1].usage.cache_write_5m, Some(inputs[1] - inputs[0]));
    assert!(own.hit_rate.unwrap() > 0.5);
    // A whole earlier prompt is a unit.
    let deepseek = simulate(&requests, "deepseek", "deepseek-flash", None).unwrap();
    assert_eq!((deepseek.requests[2].usage.cache_read, deepseek.cost), (Some(inputs[1]), None));
    let error = simulate(&requests, "nobody", "m", None).unwrap_err();
    assert!(error.contains("anthropic, openai"), "{error}");
}

#[test]
fn what_is_kept_for_an_hour_is_written_at_its_own_price_in_a_simulation() {
    let mut body = anthropic();
    body["system"][0]["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
    let request = recorded(1, 0, WIRE, &body, Some(0));
    let price = stele_provider::list_price("claude-opus-5").map(|row| row.price);
    let usage =
        simulate(std::slice::from_ref(&request), "anthropic", "claude-opus-5", price).unwrap().requests.remove(0).usage;
    let header = request.segments.iter().filter(|segment| segment.zone != stele_core::Zone::History);
    let header = header.map(|segment| segment.bytes.len() as u64).sum::<u64>() / 4;
    assert!(usage.cache_write_1h.unwrap().abs_diff(header) <= 1, "{usage:?} for {header}");
    assert_eq!(usage.cache_write_1h.unwrap() + usage.cache_write_5m.unwrap(), tokens(&request));
}

#[test]
fn requests_without_marks_get_the_best_ones_in_a_simulation() {
    let body = |count: usize| {
        let messages: Vec<_> = (0..count)
            .map(|index| json!({"role": if index % 2 == 0 {"user"} else {"assistant"}, "content": format!("{index} {}", "word ".repeat(500))}))
            .collect();
        let messages = [vec![json!({"role": "system", "content": "s ".repeat(3_000)})], messages].concat();
        json!({"model": "gpt-6.2-sol", "messages": messages})
    };
    let requests =
        [recorded(1, 0, Wire::OpenaiChat, &body(1), Some(0)), recorded(2, 9, Wire::OpenaiChat, &body(3), Some(0))];
    let found = simulate(&requests, "anthropic", "claude-opus-5", None).unwrap();
    assert_eq!(found.requests[1].usage.cache_read, Some(tokens(&requests[0])));
    // Nor are they missed where a step adds more than a mark looks back over.
    let requests =
        [recorded(1, 0, Wire::OpenaiChat, &body(1), Some(0)), recorded(2, 9, Wire::OpenaiChat, &body(61), Some(0))];
    let found = simulate(&requests, "anthropic", "claude-opus-5", None).unwrap();
    assert_eq!(found.requests[1].usage.cache_read, Some(tokens(&requests[0])));
}

/// A request whose history is a walk through a few messages, perhaps with another header.
fn walk() -> impl Strategy<Value = (Vec<u8>, u8, bool, i64)> {
    (prop::collection::vec(0_u8..4, 0..6), 0_u8..3, any::<bool>(), 0_i64..900)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_requests_can_be_judged(
        walks in prop::collection::vec(walk(), 0..8), reads in prop::collection::vec(prop::option::of(0_u64..3_000), 8),
        wire in prop::sample::select(Wire::ALL.to_vec()),
    ) {
        let requests: Vec<Recorded> = walks
            .iter()
            .zip(&reads)
            .zip(1..)
            .map(|(((messages, header, tools, seconds), read), id)| {
                let text = |number: u8| format!("{number} {}", "words ".repeat(usize::from(number) * 200));
                let messages: Vec<_> = messages
                    .iter()
                    .enumerate()
                    .map(|(at, number)| {
                        let role = if at % 2 == 0 { "user" } else { "assistant" };
                        json!({"role": role, "content": text(*number), "parts": [{"text": text(*number)}]})
                    })
                    .collect();
                let tools = if *tools { vec![json!({"name": "t", "description": text(*header)})] } else { Vec::new() };
                let body = json!({
                    "model": format!("m{}", header / 2), "messages": messages, "input": messages, "contents": messages,
                    "system": text(*header), "tools": tools, "cache_control": {"type": "ephemeral"},
                });
                recorded(id, *seconds, wire, &body, *read)
            })
            .collect();
        let judging = Judging::default();
        let found = report(&requests, &judging);
        let mut listed: Vec<u64> =
            found.conversations.iter().flat_map(|conversation| conversation.requests.iter().map(|line| line.id)).collect();
        prop_assert_eq!(listed.len() as u64 + found.side.requests, requests.len() as u64);
        listed.sort_unstable();
        listed.dedup();
        prop_assert_eq!(listed.len() as u64 + found.side.requests, requests.len() as u64, "each once");
        for line in found.conversations.iter().flat_map(|conversation| &conversation.requests) {
            prop_assert!(line.shared_bytes <= line.prompt_bytes);
            prop_assert!(line.predicted.unwrap() <= line.input.unwrap_or(u64::MAX));
            let explanation = explain(&requests, line.id, &judging).unwrap();
            prop_assert_eq!(&explanation.verdict, &line.verdict, "later requests change no verdict");
        }
        for vendor in ["anthropic", "openai", "deepseek", "gemini", "prefix"] {
            let simulated = simulate(&requests, vendor, "m", None).unwrap();
            let inputs: u64 = requests.iter().map(|request| request.usage.and_then(|usage| usage.input()).unwrap_or(0)).sum();
            prop_assert_eq!(simulated.usage.input().unwrap_or(0), inputs, "{}", vendor);
        }
    }
}
