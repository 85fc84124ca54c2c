//! Providers that fail, stall and lie; turns that are stopped.

use std::time::Duration;

use serde_json::json;
use stele_agent::{Command, Notice, OpenPolicy, Until};
use stele_core::limits::{LimitKind, TurnLimits};
use stele_core::{By, CacheTtl, EndReason, Event, Micros, Price, Source, Stop, Verdict, Wire};
use stele_provider::Delta;
use stele_testkit::{Behaviour, Cut, Fault, FaultKind, Say, Script};
use tokio::sync::mpsc;

use crate::epochs::records;
use crate::stage::{Stage, ask, bash, events, idle, prompt};

#[tokio::test]
async fn what_passes_is_tried_again_with_the_same_bytes() {
    for (wire, fault) in [
        (Wire::AnthropicMessages, FaultKind::status(529)),
        (Wire::OpenaiChat, FaultKind::status(503)),
        (Wire::OpenaiResponses, FaultKind::Truncate { at: Cut::Events(3) }),
        (Wire::Gemini, FaultKind::Reset { at: Cut::Start }),
        (Wire::AnthropicMessages, FaultKind::ErrorEvent { at: Cut::Events(2), status: 529, message: "busy".into() }),
    ] {
        let script = Script::new([Say::call("bash", &bash("echo x >> marks")), Say::text("All of the answer.")]);
        let behaviour = Behaviour::from(script).fault(Fault::at(1, 1..=1, fault));
        let stage = Stage::new(wire, behaviour);
        let mut driver = stage.create();
        assert_eq!(ask(&mut driver, "go").await, EndReason::Completed, "{wire}");
        assert_eq!(driver.state().last_text(), "All of the answer.", "{wire}: nothing of the first try is left");
        let requests = stage.requests();
        assert_eq!(requests.len(), 3, "{wire}");
        assert_eq!(requests[1].body, requests[2].body, "{wire}");
        assert_eq!(stage.read("marks"), "x\n");
        let counters = driver.state().counters();
        assert_eq!((counters.steps, counters.attempts), (2, 3));
    }
}

#[tokio::test]
async fn what_does_not_pass_ends_the_turn_with_the_servers_words_and_the_session_goes_on() {
    let refused = FaultKind::Status {
        status: 401,
        headers: Vec::new(),
        body: Some(json!({"error": {"message": "bad key 4711"}}).to_string()),
    };
    let behaviour = Behaviour::from(Script::new([Say::text("fine")])).fault(Fault::at(0, 1..=1, refused));
    let stage = Stage::new(Wire::OpenaiChat, behaviour);
    let mut driver = stage.create();
    let EndReason::Failed { code, message } = ask(&mut driver, "go").await else { panic!() };
    assert_eq!(code, "provider.auth");
    assert!(message.contains("bad key 4711"), "{message}");
    assert_eq!(stage.requests().len(), 1, "a refused key is not tried again");
    assert_eq!(ask(&mut driver, "again").await, EndReason::Completed);
}

#[tokio::test]
async fn a_limit_of_cost_holds_for_every_try_of_a_request() {
    let busy = || FaultKind::ErrorEvent { at: Cut::Events(3), status: 529, message: "busy".into() };
    let broken = || FaultKind::Truncate { at: Cut::Events(3) };
    for (wire, fault) in [
        // This wire reports the input at the beginning of the stream.
        (Wire::AnthropicMessages, busy()),
        // This one at the end only: what is not reported counts with the most it can have cost.
        (Wire::OpenaiChat, busy()),
        (Wire::OpenaiChat, broken()),
    ] {
        let script = Script::new([Say::text("One."), Say::text("A long answer."), Say::text("Whole.")]);
        let mut stage = Stage::new(wire, Behaviour::in_order(script).fault(Fault::at(1, 1..=1, fault)));
        let input = Some(100_000_000);
        let (cache_read, cache_write_5m) = (input, input);
        let price = Price { input, cache_read, cache_write_5m, output: Some(1_000_000), ..Price::default() };
        stage.price = Some(price);
        stage.parameters.max_output_tokens = Some(500);
        let mut driver = stage.create();
        assert_eq!(ask(&mut driver, "go").await, EndReason::Completed, "{wire}");
        let state = driver.state();
        let (spent, next) =
            (state.cost().unwrap(), price.at_most(state.input_at_most(), 500, CacheTtl::FiveMinutes).unwrap());
        let mut notices = driver.subscribe();
        // Room for one request and not for two.
        let limits = TurnLimits { cost: Some(Micros(spent.0 + next.0 * 6 / 5)), ..TurnLimits::default() };
        driver.command(Command::Prompt { text: "on".into(), source: Source::Person, limits }).unwrap();
        let end = idle(&mut driver).await;
        assert!(matches!(&end, EndReason::Limit(reached) if reached.which == LimitKind::Cost), "{wire}: {end:?}");
        assert_eq!(stage.requests().len(), 2, "{wire}");
        assert!(!events(&mut notices).iter().any(|event| matches!(event, Event::RequestRetried(_))), "{wire}");
        assert_eq!(ask(&mut driver, "without a limit").await, EndReason::Completed, "{wire}");
    }
}

#[tokio::test]
async fn a_call_from_a_stream_that_broke_is_not_run() {
    let script = Script::new([Say::call("bash", &bash("touch never"))]);
    let behaviour = Behaviour::in_order(script).fault(Fault::always(FaultKind::Truncate { at: Cut::Events(4) }));
    let stage = Stage::new(Wire::AnthropicMessages, behaviour);
    let mut driver = stage.create();
    let end = tokio::time::timeout(Duration::from_secs(60), ask(&mut driver, "go")).await.unwrap();
    assert!(matches!(end, EndReason::Failed { ref code, .. } if code == "provider.incomplete"), "{end:?}");
    assert!(!stage.path("never").exists());
}

#[tokio::test]
async fn a_stop_keeps_what_was_streamed_and_the_next_prompt_works() {
    let behaviour =
        Behaviour::in_order(Script::new([Say::text("Half of a long answer that goes on"), Say::text("Whole.")]))
            .fault(Fault::at(0, 1..=1, FaultKind::Stall { at: Cut::Events(4) }));
    let stage = Stage::new(Wire::AnthropicMessages, behaviour);
    let mut driver = stage.create();
    let mut notices = driver.subscribe();
    driver.command(prompt("go")).unwrap();
    let (send, mut commands) = mpsc::unbounded_channel();
    let stop = async {
        loop {
            if let Ok(Notice::Delta { delta, .. }) = notices.recv().await
                && matches!(*delta, Delta::Text(_))
            {
                send.send(Command::Cancel { by: By::person("test") }).unwrap();
                return;
            }
        }
    };
    let (run, ()) = tokio::join!(driver.run(&mut commands, Until::Idle), stop);
    run.unwrap();
    assert_eq!(driver.state().last_end(), Some(&EndReason::Aborted { by: By::person("test") }));
    let kept = driver.state().last_text();
    assert!(!kept.is_empty() && "Half of a long answer that goes on".starts_with(&kept), "{kept:?}");
    // What the server had counted when the answer began is in the log; what the answer came to is not known.
    let records = records(&stage, driver.session());
    let cut = records.iter().rev().find_map(|record| match &record.event {
        Event::AssistantMessage(message) if message.interrupted => message.usage,
        _ => None,
    });
    let usage = cut.expect("usage of the try that was cut");
    assert!(usage.fresh.is_some() && usage.cache_read == Some(0) && usage.output.is_none(), "{usage:?}");
    assert!(usage.input().unwrap() > 1_000 && driver.state().usage().input() == usage.input(), "{usage:?}");
    let coverage = driver.state().coverage();
    assert_eq!((coverage.known, coverage.attempts), (1, 1));
    assert_eq!(driver.state().cost(), None);
    stage.server.release();
    assert_eq!(ask(&mut driver, "go on").await, EndReason::Completed);
    assert!(String::from_utf8_lossy(&stage.requests().pop().unwrap().body).contains(&kept));
}

#[tokio::test]
async fn a_stop_ends_the_command_and_pairs_every_call() {
    let script = Script::new([
        Say::call("bash", &bash("touch running; sleep 60; touch survived")).and_call("bash", &bash("touch second")),
        Say::text("ok"),
    ]);
    let stage = Stage::new(Wire::OpenaiChat, Behaviour::from(script));
    let mut driver = stage.create();
    let mut notices = driver.subscribe();
    driver.command(prompt("go")).unwrap();
    let (send, mut commands) = mpsc::unbounded_channel();
    let stop = async {
        loop {
            if let Ok(Notice::Event(logged)) = notices.recv().await
                && matches!(logged.record.event, Event::ToolStarted(_))
            {
                send.send(Command::Cancel { by: By::person("test") }).unwrap();
                return;
            }
        }
    };
    let (run, ()) = tokio::join!(driver.run(&mut commands, Until::Idle), stop);
    run.unwrap();
    assert!(matches!(driver.state().last_end(), Some(EndReason::Aborted { .. })));
    assert!(!stage.path("survived").exists() && !stage.path("second").exists());
    assert_eq!(ask(&mut driver, "go on").await, EndReason::Completed);
}

#[tokio::test]
async fn limits_end_a_turn_cleanly_and_name_what_was_near() {
    let call = || Say::call("bash", &bash("date +%N"));
    let stage = Stage::new(Wire::AnthropicMessages, Script::new((0..20).map(|_| call()).collect::<Vec<_>>()));
    let mut driver = stage.create();
    let limits = TurnLimits { steps: Some(3), ..TurnLimits::default() };
    driver.command(Command::Prompt { text: "go".into(), source: Source::Person, limits }).unwrap();
    let EndReason::Limit(reached) = crate::stage::idle(&mut driver).await else { panic!() };
    assert_eq!((reached.which, reached.maximum, reached.observed), (LimitKind::Steps, 3, 3));
    assert_eq!(reached.closest.len(), 3);
    assert_eq!(reached.last_calls.len(), 3);
}

#[tokio::test]
async fn going_in_circles_is_noticed_and_ended() {
    // A result without a time in it: the same each time, however busy the machine is.
    let call = || Say::call("glob", &json!({"pattern": "nothing"}));
    let stage = Stage::new(Wire::AnthropicMessages, Script::new((0..20).map(|_| call()).collect::<Vec<_>>()));
    let mut driver = stage.create();
    let mut notices = driver.subscribe();
    let EndReason::Limit(reached) = ask(&mut driver, "go").await else { panic!() };
    assert_eq!(reached.which, LimitKind::Repeats);
    let events = events(&mut notices);
    let notes =
        events.iter().filter(|event| matches!(event, Event::UserMessage(message) if message.source == Source::System));
    assert_eq!(notes.count(), 1);
    let stopped = events.iter().filter(|event| {
        matches!(event, Event::ToolGated(gated) if gated.by.0 == "limit:repeats" && gated.decision == Verdict::Deny)
    });
    assert!(stopped.count() >= 1);
    assert_eq!(driver.state().counters().unanswered, 0, "no permission was asked for");
}

#[tokio::test]
async fn a_deadline_stops_a_stalled_request() {
    let behaviour =
        Behaviour::from(Script::new([Say::text("never")])).fault(Fault::always(FaultKind::Stall { at: Cut::Start }));
    let stage = Stage::new(Wire::OpenaiChat, behaviour);
    let mut driver = stage.create();
    let deadline = Some(stele_core::Millis(driver.state().turn().map_or(1_790_000_000_000, |turn| turn.started.0) + 1));
    let limits = TurnLimits { deadline, ..TurnLimits::default() };
    driver.command(Command::Prompt { text: "go".into(), source: Source::Person, limits }).unwrap();
    let EndReason::Limit(reached) = crate::stage::idle(&mut driver).await else { panic!() };
    assert_eq!(reached.which, LimitKind::Time);
}

#[tokio::test]
async fn wrong_calls_come_back_as_errors_the_model_can_use() {
    let script = Script::new([
        Say::raw_call("read", r#"{"path": "a"#),
        Say::call("reed", &json!({"path": "a.txt"})),
        Say::call("read", &json!({"path": 7})),
        Say::text("ok"),
    ]);
    let stage = Stage::new(Wire::AnthropicMessages, Behaviour::from(script));
    let mut driver = stage.create();
    let mut notices = driver.subscribe();
    assert_eq!(ask(&mut driver, "go").await, EndReason::Completed);
    let codes: Vec<String> = events(&mut notices)
        .into_iter()
        .filter_map(|event| match event {
            Event::ToolResult(result) => result.error.map(|error| error.code),
            _ => None,
        })
        .collect();
    assert_eq!(codes.len(), 3, "{codes:?}");
    assert_eq!(codes[1], "tool.unknown");
    assert_eq!(driver.state().counters().executions, 0);
}

#[tokio::test]
async fn an_answer_cut_at_the_maximum_ends_the_turn_so() {
    let script = Script::new([Say::text("as far as it we").stopped(Stop::MaxOutput)]);
    let stage = Stage::new(Wire::AnthropicMessages, Behaviour::from(script));
    let mut driver = stage.create();
    assert_eq!(ask(&mut driver, "go").await, EndReason::MaxOutput);
}

#[tokio::test]
async fn a_second_writer_is_refused_and_readers_are_not() {
    let stage = Stage::new(Wire::OpenaiChat, Behaviour::from(Script::new([Say::text("ok")])));
    let mut driver = stage.create();
    ask(&mut driver, "go").await;
    let session = driver.session().clone();
    let error = stele_agent::Driver::open(&stage.agent(), &session, OpenPolicy::Close).err().unwrap();
    assert_eq!(error.code(), "log.locked");
    assert!(stele_agent::verify(&stage.store(), &session).unwrap().is_clean());
}

#[tokio::test]
async fn ids_that_are_empty_or_look_like_ours_never_meet() {
    let answer = |calls: &str| {
        let delta = format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{calls}]}},"finish_reason":null}}]}}"#);
        let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
        format!("data: {delta}\n\ndata: {end}\n\ndata: [DONE]\n\n")
    };
    let call = |index: usize, id: &str| {
        format!(r#"{{"index":{index},"id":"{id}","function":{{"name":"read","arguments":"{{\"path\":\"a\"}}"}}}}"#)
    };
    let body = answer(&[call(0, "c2"), call(1, "")].join(","));
    let behaviour = Behaviour::answering(move |request| match request.answers() {
        0 => stele_testkit::Reply::raw("text/event-stream", body.clone()),
        _ => Say::text("ok").into(),
    });
    let stage = Stage::new(Wire::OpenaiChat, behaviour);
    stage.write("a", "content");
    let mut driver = stage.create();
    assert_eq!(ask(&mut driver, "go").await, EndReason::Completed);
    let last = stage.requests().pop().unwrap().json();
    let ids: Vec<&str> =
        last["messages"].as_array().unwrap().iter().filter_map(|message| message["tool_call_id"].as_str()).collect();
    assert_eq!(ids, ["c1", "c2"]);
}

#[tokio::test]
async fn a_call_of_gemini_goes_back_under_the_id_of_its_result() {
    let call = |id: &str| {
        format!(
            r#"{{"functionCall":{{"id":"{id}","name":"read","args":{{"path":"a","n":1e2}}}},"thoughtSignature":"S{id}"}}"#
        )
    };
    let answer = |parts: &[String]| {
        let parts = parts.join(",");
        format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{parts}]}},\"finishReason\":\"STOP\"}}]}}\n\n")
    };
    let bodies = [answer(&[call("dup"), call("dup"), call("a\\u0000b")]), answer(&[call("dup")])];
    let behaviour = Behaviour::answering(move |request| match bodies.get(request.answers()) {
        Some(body) => stele_testkit::Reply::raw("text/event-stream", body.clone()),
        None => Say::text("ok").into(),
    })
    .lenient();
    let stage = Stage::new(Wire::Gemini, behaviour);
    stage.write("a", "content");
    let mut driver = stage.create();
    assert_eq!(ask(&mut driver, "go").await, EndReason::Completed);
    let last = stage.requests().pop().unwrap().json();
    let parts = last["contents"].as_array().unwrap().iter().flat_map(|content| content["parts"].as_array().unwrap());
    let (mut calls, mut results, mut signatures) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        if part.get("functionCall").is_some() {
            calls.push(part["functionCall"]["id"].as_str());
            signatures.push(part["thoughtSignature"].as_str().unwrap());
        }
        if part.get("functionResponse").is_some() {
            results.push(part["functionResponse"]["id"].as_str());
        }
    }
    assert_eq!(calls, [Some("dup"), None, None, None]);
    assert_eq!(results, calls);
    assert_eq!(signatures, ["Sdup", "Sdup", "Sa\0b", "Sdup"]);
}
