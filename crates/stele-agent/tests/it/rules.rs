//! The rules for context, seen in what a server receives and in the log (`docs/rules.md`). What is never done is in
//! `never.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use stele_agent::{Agent, AgentOptions, ChangedSince, Clock, Command, Driver};
use stele_core::limits::TurnLimits;
use stele_core::{By, EndReason, EpochReason, Event, Micros, Mode, Price, Record, Seq, SessionId, Source, Wire, Zone};
use stele_guard::{Layer, List};
use stele_provider::{Capability, Endpoint, Finding, How, LedgerFile, Lesson, Marks};
use stele_testkit::{Behaviour, Fault, FaultKind, ParsedRequest, Reply, Say, Script};

use crate::epochs::{assert_clean, epochs, left, records, resumed, without_patch};
use crate::images::draw;
use crate::stage::{LATER, Stage, ask, bash, config, idle, prompt_items, untimed};

/// More than is shown again rather than pointed at.
fn long(line: &str) -> String {
    format!("{line}\n").repeat(100)
}

fn body(stage: &Stage, at: usize) -> String {
    String::from_utf8(stage.requests()[at].body.to_vec()).unwrap()
}

/// The events of a stream, each as `data:`.
fn stream(events: &[&str]) -> Vec<u8> {
    events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>().into_bytes()
}

/// An answer of each wire as a vendor sends it, with a call, and what of it has to come back, byte for byte.
fn recorded(wire: Wire) -> (Vec<u8>, Vec<&'static str>) {
    match wire {
        Wire::AnthropicMessages => (
            stream(&[
                r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":1}}}"#,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":" hm \"é\"\n"}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Sig+/="}}"#,
                r#"{"type":"content_block_stop","index":0}"#,
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"xx"}}"#,
                r#"{"type":"content_block_stop","index":1}"#,
                // Newer models leave the text out.
                r#"{"type":"content_block_start","index":2,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
                r#"{"type":"content_block_delta","index":2,"delta":{"type":"signature_delta","signature":"Em\/pty="}}"#,
                r#"{"type":"content_block_stop","index":2}"#,
                r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_odd","name":"read","input":{}}}"#,
                r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{ \"path\" : \"a.txt\"}"}}"#,
                r#"{"type":"content_block_stop","index":3}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":40}}"#,
                r#"{"type":"message_stop"}"#,
            ]),
            vec![
                r#"{"type":"thinking","thinking":" hm \"é\"\n","signature":"Sig+/="}"#,
                r#"{"type":"redacted_thinking","data":"xx"}"#,
                r#"{"type":"thinking","thinking":"","signature":"Em/pty="}"#,
                r#"{"type":"tool_use","id":"toolu_odd","name":"read","input":{ "path" : "a.txt"}}"#,
                r#""tool_use_id":"toolu_odd""#,
            ],
        ),
        Wire::OpenaiResponses => (
            stream(&[
                r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[ ],"encrypted_content":"E\/x="}}"#,
                r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"call_odd","name":"read","arguments":"{ \"path\" : \"a.txt\"}"}}"#,
                r#"{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":5,"output_tokens":4}}}"#,
            ]),
            vec![
                // Nothing is stored at the provider, so the item's id would name nothing.
                r#"{"type":"reasoning","summary":[ ],"encrypted_content":"E\/x="}"#,
                r#""call_id":"call_odd","name":"read","arguments":"{ \"path\" : \"a.txt\"}""#,
                r#"{"type":"function_call_output","call_id":"call_odd""#,
            ],
        ),
        Wire::OpenaiChat => (
            stream(&[
                r#"{"choices":[{"delta":{"content":"I look.","tool_calls":[{"index":0,"id":"call_odd:0","function":{"name":"read","arguments":"{ \"path\" : \"a.txt\"}"}}]}}]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
                "[DONE]",
            ]),
            vec![
                r#"{"id":"call_odd:0","type":"function","function":{"name":"read","arguments":"{ \"path\" : \"a.txt\"}"}}"#,
                r#"{"role":"tool","tool_call_id":"call_odd:0""#,
            ],
        ),
        Wire::Gemini => (
            stream(&[
                r#"{"candidates":[{"content":{"parts":[{"functionCall": {"name":"read","args":{ "path" : "a.txt"}}, "thoughtSignature":"S\/G"}]},"finishReason":"STOP"}]}"#,
            ]),
            vec![
                r#"{"functionCall": {"name":"read","args":{ "path" : "a.txt"}}, "thoughtSignature":"S\/G"}"#,
                r#"{"functionResponse":{"#,
            ],
        ),
    }
}

#[tokio::test]
async fn ctx_03_native_blocks_come_back_byte_for_byte() {
    for wire in Wire::ALL {
        let (answer, native) = recorded(wire);
        let reply = move |request: &ParsedRequest| match request.answers() {
            0 => Reply::raw("text/event-stream", answer.clone()),
            _ => Say::text("ok").into(),
        };
        // The signatures are not this server's own.
        let stage = Stage::new(wire, Behaviour::answering(reply).lenient());
        stage.write("a.txt", "one\n");
        let mut driver = stage.create();
        assert_eq!(ask(&mut driver, "go").await, EndReason::Completed, "{wire}");
        let session = driver.session().clone();
        drop(driver);
        // In the same process, in another one, and after the turn.
        let driver = resumed(&stage, &session, |_| {}).await;
        for at in [1, 2] {
            let body = body(&stage, at);
            for native in &native {
                assert_eq!(body.matches(native).count(), 1, "{wire}: {native} in {body}");
            }
        }
        assert_clean(&stage, driver);
    }
}

/// The clock of an assembly that has to do without one: only the log may read the time.
const NO_DATE: Clock = Clock { now: LATER.now, today: unreadable };

fn unreadable() -> String {
    panic!("static text was composed with a clock")
}

fn another_day() -> String {
    "2031-12-24".to_owned()
}

/// Tools and system as the log has them.
fn static_text(stage: &Stage, session: &SessionId) -> Vec<(String, String)> {
    let opened = epochs(stage, session).pop().unwrap();
    let fixed = opened.segments.iter().filter(|segment| matches!(segment.zone, Zone::Tools | Zone::System));
    fixed.map(|segment| (segment.name.clone(), segment.text.as_str().to_owned())).collect()
}

#[tokio::test]
async fn ctx_04_static_text_is_composed_without_a_clock() {
    for wire in Wire::ALL {
        let (stage, session) = left(wire).await;
        let mut driver = stage.open_with(&session, |options| {
            options.clock = NO_DATE;
            options.persona = Some("Answer in verse.".into());
        });
        // A limit that nothing without a price can pass ends the turn once the epoch is open.
        let limits = TurnLimits { cost: Some(Micros(1)), ..TurnLimits::default() };
        driver.command(Command::Prompt { text: "and now?".into(), source: Source::Person, limits }).unwrap();
        assert!(
            matches!(idle(&mut driver).await, EndReason::Failed { code, .. } if code == "limit.unpriced"),
            "{wire}"
        );
        let last = epochs(&stage, &session).pop().unwrap();
        assert_eq!(
            (last.n, last.reason),
            (2, EpochReason::SystemChanged { sections: vec!["persona".into()] }),
            "{wire}"
        );
        let first = static_text(&stage, &session);
        drop(driver);

        // Another day, another folder, another project: the same text.
        let other = Stage::new(wire, Say::text("ok"));
        other.write("AGENTS.md", "Use tabs.");
        let agent = other.agent_with(|options| {
            options.clock = Clock { now: LATER.now, today: another_day };
            options.persona = Some("Answer in verse.".into());
        });
        let mut driver = Driver::create(&agent, &other.start()).unwrap();
        ask(&mut driver, "go").await;
        assert_eq!(static_text(&other, driver.session()), first, "{wire}");
        let body = body(&other, 0);
        assert_eq!(body.matches("2031-12-24").count(), 1, "{wire}: the date stands in the preface, once: {body}");
    }
}

#[tokio::test]
async fn ctx_05_every_cut_opens_an_epoch_with_the_next_number_and_its_reason() {
    for wire in Wire::ALL {
        let (stage, session) = left(wire).await;
        drop(resumed(&stage, &session, without_patch).await);
        let verse = |options: &mut AgentOptions| {
            without_patch(options);
            options.persona = Some("Answer in verse.".into());
        };
        drop(resumed(&stage, &session, verse).await);
        let warm = |options: &mut AgentOptions| {
            verse(options);
            options.routes.iter_mut().for_each(|route| route.parameters.temperature = Some(0.5));
        };
        let mut driver = resumed(&stage, &session, warm).await;
        let by = || By::person("test");
        let other = Command::SetModel { route: "other".into(), model: "model-b".into(), by: by() };
        driver.command(other).unwrap();
        ask(&mut driver, "with the other one").await;
        driver.undo(by(), ChangedSince::Leave).await.unwrap();
        ask(&mut driver, "in another way").await;
        // What cuts nothing opens nothing.
        ask(&mut driver, "go on").await;
        driver.undo(by(), ChangedSince::Leave).await.unwrap();
        driver.redo(by(), ChangedSince::Leave).await.unwrap();
        ask(&mut driver, "after all").await;

        let opened = epochs(&stage, &session);
        let numbers: Vec<u32> = opened.iter().map(|opened| opened.n).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7], "{wire}");
        let reasons: Vec<EpochReason> = opened.into_iter().map(|opened| opened.reason).collect();
        let expected = [
            EpochReason::Initial,
            EpochReason::ToolsChanged { added: vec![], removed: vec!["patch".into()], changed: vec![] },
            EpochReason::SystemChanged { sections: vec!["persona".into()] },
            EpochReason::ParametersChanged,
            EpochReason::ModelChanged,
            EpochReason::Undo,
            EpochReason::Undo,
        ];
        assert_eq!(reasons, expected, "{wire}");
        assert_clean(&stage, driver);
    }
}

#[tokio::test]
async fn ctx_05_a_repair_is_a_cut_like_others() {
    for wire in Wire::ALL {
        let body = json!({"error": {"type": "invalid_request_error", "message": "image: could not process image"}});
        let refused = FaultKind::Status { status: 400, headers: Vec::new(), body: Some(body.to_string()) };
        let script = Script::new([Say::call("read", &json!({"path": "a.png"})), Say::text("one"), Say::text("two")]);
        let mut stage = Stage::new(wire, Behaviour::from(script).fault(Fault::at(1, 1..=1, refused)));
        stage.images = Some(true);
        draw(&stage);
        let mut driver = stage.create();
        assert_eq!(ask(&mut driver, "look").await, EndReason::Completed, "{wire}");
        assert_eq!(ask(&mut driver, "and now?").await, EndReason::Completed, "{wire}");
        let opened = epochs(&stage, driver.session()).into_iter().map(|opened| (opened.n, opened.reason));
        let expected = [(1, EpochReason::Initial), (2, EpochReason::Repair)];
        assert_eq!(opened.collect::<Vec<_>>(), expected, "{wire}");
        // What is sent without the image is the first request of the new epoch, not the last of the old one.
        let mut kinds: Vec<&str> = records(&stage, driver.session()).iter().map(|record| record.event.kind()).collect();
        kinds.retain(|kind| matches!(*kind, "epoch/opened" | "request/sent" | "request/failed"));
        let (epoch, sent, failed) = ("epoch/opened", "request/sent", "request/failed");
        assert_eq!(kinds, [epoch, sent, sent, failed, epoch, sent, sent], "{wire}");
        assert_clean(&stage, driver);
    }
}

/// What a run left: files, texts of the model, and items of its requests without the folder's name.
type Left = (BTreeMap<String, Vec<u8>>, Vec<String>, Vec<Vec<String>>);

async fn worked(wire: Wire, marks: Marks) -> (Left, String) {
    let script = Script::new([
        Say::call("read", &json!({"path": "a.rs"})),
        Say::call("edit", &json!({"path": "a.rs", "edits": [{"old": "one", "new": "two  "}]})),
        Say::call("read", &json!({"path": "b.txt"})),
        Say::call("read", &json!({"path": "b.txt"})),
        Say::call("write", &json!({"path": "c.txt", "content": "\t trailing \r\n\n"}))
            .and_call("bash", &bash("cp b.txt d.txt")),
        Say::text("Done. "),
        Say::text("Still so."),
    ]);
    let stage = Stage::new(wire, script);
    stage.write("a.rs", &long("fn one() {}  ").replacen("one", "three", 99));
    stage.write("b.txt", &long("text \t"));
    // This endpoint is known to take keys, on the wires that have them.
    let endpoint = Endpoint::new(&stage.server.base_url(wire), wire, "model-a");
    let lesson =
        Lesson { capability: Capability::PromptCacheKey, finding: Finding::Works, says: "it was seen".to_owned() };
    LedgerFile::new(stage.ledger()).learn(&endpoint, &[lesson], How::Probe, "2026-11-29").unwrap();
    let agent = stage.agent_with(|options| options.routes.iter_mut().for_each(|route| route.marks = marks));
    let mut driver = Driver::create(&agent, &stage.start()).unwrap();
    let mut texts = Vec::new();
    for prompt in ["go", "and now?"] {
        assert_eq!(ask(&mut driver, prompt).await, EndReason::Completed, "{wire}");
        texts.push(driver.state().last_text());
    }
    let entries = std::fs::read_dir(&stage.folder).unwrap().map(|entry| entry.unwrap());
    let files =
        entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())).collect();
    let folder = stage.folder.display().to_string();
    let items = stage
        .requests()
        .iter()
        .map(|request| {
            prompt_items(request).into_iter().map(|item| untimed(&item.replace(&folder, "FOLDER"))).collect()
        })
        .collect();
    let last = body(&stage, stage.requests().len() - 1);
    ((files, texts, items), last)
}

#[tokio::test]
async fn ctx_06_files_and_answers_are_the_same_with_marks_and_keys_and_without() {
    for wire in Wire::ALL {
        let (with, marked) = worked(wire, Marks::Auto).await;
        let (without, plain) = worked(wire, Marks::Off).await;
        assert_eq!(with, without, "{wire}");
        assert_eq!(with.0["a.rs"].len(), long("fn one() {}  ").len() + 99 * 2 + 2, "{wire}: it did something");
        assert_eq!(with.0["c.txt"], b"\t trailing \r\n\n", "{wire}");
        let (has_marks, has_keys) = match wire {
            Wire::AnthropicMessages => (true, false),
            Wire::OpenaiResponses | Wire::OpenaiChat => (false, true),
            Wire::Gemini => (false, false),
        };
        let caches = |body: &str| (body.contains("\"cache_control\""), body.contains("\"prompt_cache_key\""));
        assert_eq!(caches(&marked), (has_marks, has_keys), "{wire}: {marked}");
        assert_eq!(caches(&plain), (false, false), "{wire}: {plain}");
    }
}

/// What a server of this wire takes that has never heard of prompt caching.
fn taken(wire: Wire) -> &'static [&'static str] {
    match wire {
        Wire::AnthropicMessages => &["model", "max_tokens", "stream", "tools", "system", "messages"],
        Wire::OpenaiResponses => {
            &["model", "instructions", "input", "tools", "stream", "store", "include", "max_output_tokens"]
        }
        Wire::OpenaiChat => &["model", "messages", "tools", "stream", "stream_options", "max_tokens"],
        Wire::Gemini => &["systemInstruction", "contents", "tools", "generationConfig"],
    }
}

#[tokio::test]
async fn ctx_07_a_server_that_knows_no_cache_fields_refuses_nothing() {
    for wire in Wire::ALL {
        for marks in [Marks::Auto, Marks::Off] {
            // Without its marks this wire has no caching: they are sent until they are refused.
            let tolerated = wire == Wire::AnthropicMessages && marks == Marks::Auto;
            let answer = move |request: &ParsedRequest| {
                let fields = request.raw.as_object().unwrap().keys();
                let mut unknown: Vec<&str> = fields.map(String::as_str).collect();
                unknown.retain(|field| !taken(wire).contains(field));
                if !tolerated && request.raw.to_string().contains("cache_control") {
                    unknown.push("cache_control");
                }
                let say = match request.answers() {
                    0 => Say::call("read", &json!({"path": "a.txt"})),
                    _ => Say::text("ok"),
                };
                match unknown.first() {
                    None => say.into(),
                    Some(field) => {
                        let body =
                            json!({"error": {"message": format!("Unknown parameter: '{field}'"), "param": field}});
                        let body = Some(body.to_string());
                        Reply::from(say).fault(FaultKind::Status { status: 400, headers: Vec::new(), body })
                    }
                }
            };
            let stage = Stage::new(wire, Behaviour::answering(answer));
            stage.write("a.txt", &long("text"));
            let agent = stage.agent_with(|options| options.routes.iter_mut().for_each(|route| route.marks = marks));
            let mut driver = Driver::create(&agent, &stage.start()).unwrap();
            assert_eq!(ask(&mut driver, "go").await, EndReason::Completed, "{wire}");
            assert_eq!(ask(&mut driver, "and now?").await, EndReason::Completed, "{wire}");
            let statuses: Vec<u16> = stage.requests().iter().map(|request| request.status).collect();
            assert_eq!(statuses, [200, 200, 200], "{wire}");
            assert_eq!(config(&driver).cache.key, None, "{wire}");
        }
    }
}

/// The wire's usage object with input and output alone, and with input alone.
fn usage_objects(wire: Wire) -> (Value, Value) {
    let (input, output) = match wire {
        Wire::AnthropicMessages | Wire::OpenaiResponses => ("input_tokens", "output_tokens"),
        Wire::OpenaiChat => ("prompt_tokens", "completion_tokens"),
        Wire::Gemini => ("promptTokenCount", "candidatesTokenCount"),
    };
    (json!({input: 100, output: 7}), json!({input: 100}))
}

async fn asked_twice(wire: Wire, fault: Fault) -> (Stage, Driver) {
    let price = Some(1_000_000);
    let price = Price { input: price, output: price, cache_read: price, cache_write_5m: price, ..Price::default() };
    let script = Script::new([Say::call("read", &json!({"path": "a.txt"})), Say::text("ok")]);
    let stage = Stage::new(wire, Behaviour::from(script).fault(fault));
    stage.write("a.txt", "text\n");
    let agent: Arc<Agent> = stage.agent_with(|options| options.routes[0].own_price = Some(price));
    let mut driver = Driver::create(&agent, &stage.start()).unwrap();
    assert_eq!(ask(&mut driver, "go").await, EndReason::Completed, "{wire}");
    (stage, driver)
}

#[tokio::test]
async fn ctx_09_a_figure_that_is_not_reported_is_not_zero() {
    for wire in Wire::ALL {
        let (without_cache, without_output) = usage_objects(wire);
        // No cached figure: what came in is known, what was read of it is not.
        let (_stage, driver) = asked_twice(wire, Fault::always(FaultKind::Usage(without_cache))).await;
        let usage = *driver.state().usage();
        assert_eq!((usage.fresh, usage.output), (Some(200), Some(14)), "{wire}");
        assert_eq!((usage.cache_read, usage.writes(), usage.hit_rate()), (None, None, None), "{wire}: {usage:?}");
        assert_eq!(driver.state().coverage().known, 2, "{wire}");

        // No output: it is not priced.
        let (_stage, driver) = asked_twice(wire, Fault::always(FaultKind::Usage(without_output))).await;
        assert_eq!(driver.state().cost(), None, "{wire}: {:?}", driver.state().usage());

        // Nothing at all, once: the sum is not the whole, and says so.
        let (stage, driver) = asked_twice(wire, Fault::at(1, 1..=1, FaultKind::NoUsage)).await;
        let coverage = driver.state().coverage();
        assert_eq!((coverage.known, coverage.attempts), (1, 2), "{wire}");
        assert_eq!(driver.state().cost(), None, "{wire}");
        let answers: Vec<bool> = records(&stage, driver.session())
            .into_iter()
            .filter_map(|record| match record.event {
                Event::AssistantMessage(message) => Some(message.usage.is_some()),
                _ => None,
            })
            .collect();
        assert_eq!(answers, [true, false], "{wire}: nothing is made up in the log");
    }
}

/// What became of the calls of a session, in order: each gate, start and result.
fn checks(log: &[Record], from: Seq) -> Vec<String> {
    let told = |record: &Record| match &record.event {
        Event::ToolGated(gated) => Some(format!("gated {} {:?}", gated.call, gated.decision)),
        Event::ToolStarted(started) => Some(format!("started {}", started.call)),
        Event::ToolResult(result) => {
            let ended = match (&result.error, &result.meta.read) {
                (Some(error), _) => error.code.clone(),
                (None, Some(read)) if read.unchanged => "pointer".to_owned(),
                _ => "ok".to_owned(),
            };
            Some(format!("result {} {ended}", result.call))
        }
        _ => None,
    };
    log.iter().filter(|record| record.seq >= from).filter_map(told).collect()
}

#[tokio::test]
async fn ctx_10_no_saving_skips_a_check() {
    let read = || Say::call("read", &json!({"path": "secret.txt"}));
    let script = Script::new([
        read(),
        read(),
        Say::call("bash", &bash("touch made && ls")),
        Say::text("one"),
        read(),
        Say::call("read", &json!({"path": "secret.txt", "offset": "first"})),
        Say::call("bash", &bash("touch made && ls")),
        Say::text("two"),
    ]);
    let mut stage = Stage::new(Wire::AnthropicMessages, script);
    stage.write("secret.txt", &long("the secret"));
    let mut driver = stage.create();
    assert_eq!(ask(&mut driver, "go").await, EndReason::Completed);
    let session = driver.session().clone();
    let from = driver.state().next_seq();
    drop(driver);
    // With every saving on, the same checks run: a pointer is gated as what it points at was.
    let expected = [
        "gated c1 Allow",
        "started c1",
        "result c1 ok",
        "gated c2 Allow",
        "started c2",
        "result c2 pointer",
        "gated c3 Allow",
        "started c3",
        "result c3 ok",
    ];
    assert_eq!(checks(&records(&stage, &session), Seq(0)), expected);

    // The same calls, in another process, where they are not allowed any more.
    std::fs::remove_file(stage.path("made")).unwrap();
    stage.policy.add(List::Deny, Layer::Flag, "read(secret*)").unwrap();
    let mut driver = stage.open(&session, stele_agent::OpenPolicy::Close);
    driver.command(Command::SetMode { mode: Mode::Ask, by: By::person("test") }).unwrap();
    assert_eq!(ask(&mut driver, "and now?").await, EndReason::Completed);
    let log = records(&stage, &session);
    let checks = checks(&log, from);
    assert!(checks.iter().all(|check| !check.starts_with("started")), "nothing ran: {checks:?}");
    assert!(checks.iter().all(|check| !check.ends_with("pointer") && !check.ends_with("ok")), "{checks:?}");
    let gated: Vec<&str> = checks.iter().filter(|check| check.starts_with("gated")).map(String::as_str).collect();
    assert_eq!(gated, ["gated c4 Deny", "gated c6 Ask"], "{checks:?}");
    assert!(checks.iter().any(|check| check.starts_with("result c5 tool.")), "arguments are checked: {checks:?}");
    assert!(!stage.path("made").exists());
    let last = body(&stage, stage.requests().len() - 1);
    assert_eq!(last.matches("has not changed since").count(), 1, "the pointer of the first turn alone");
    assert_clean(&stage, driver);
}
