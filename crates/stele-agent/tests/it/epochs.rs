//! Why epochs open, what each costs, and what the requests look like then.

use serde_json::{Value, json};
use stele_agent::{AgentOptions, Command, Driver, OpenPolicy, Taken, verify};
use stele_core::limits::TurnLimits;
use stele_core::{
    By, CacheTtl, EndReason, EpochOpened, EpochReason, Event, Micros, Price, Record, Seq, SessionId, Source, Text,
    Usage, Wire,
};
use stele_store::{Append, Durability, Start};
use stele_testkit::{Say, Script};

use crate::stage::{LATER, Stage, ask, config, idle, prompt_items};

/// A session of two requests, left alone.
pub async fn left(wire: Wire) -> (Stage, SessionId) {
    let script = Script::new([
        Say::call("read", &json!({"path": "a.txt"})),
        Say::text("one"),
        Say::text("two"),
        Say::text("three"),
        Say::text("four"),
    ]);
    let stage = Stage::new(wire, script);
    stage.write("a.txt", &"a line of the file\n".repeat(900));
    let mut driver = stage.create();
    assert_eq!(ask(&mut driver, "go").await, EndReason::Completed);
    let session = driver.session().clone();
    (stage, session)
}

pub fn records(stage: &Stage, session: &SessionId) -> Vec<Record> {
    let store = stage.store();
    let decode = |stored: stele_core::Stored| {
        Record::decode(stored.seq, &stored.bytes, &mut |hash| store.blob(hash).unwrap()).unwrap().unwrap()
    };
    store.read(session, Seq(0)).unwrap().map(|stored| decode(stored.unwrap())).collect()
}

pub fn epochs(stage: &Stage, session: &SessionId) -> Vec<EpochOpened> {
    let opened = |record: Record| match record.event {
        Event::EpochOpened(opened) => Some(opened),
        _ => None,
    };
    records(stage, session).into_iter().filter_map(opened).collect()
}

fn reasons(stage: &Stage, session: &SessionId) -> Vec<EpochReason> {
    epochs(stage, session).into_iter().map(|opened| opened.reason).collect()
}

/// Resumes in another process and asks once more; gives the driver after that.
pub async fn resumed(stage: &Stage, session: &SessionId, change: impl FnOnce(&mut AgentOptions)) -> Driver {
    let mut driver = stage.open_with(session, change);
    assert_eq!(ask(&mut driver, "and now?").await, EndReason::Completed);
    driver
}

pub fn assert_clean(stage: &Stage, driver: Driver) {
    let session = driver.session().clone();
    drop(driver);
    let verified = verify(&stage.store(), &session).unwrap();
    assert!(verified.is_clean(), "{verified:?}");
}

fn last_body(stage: &Stage) -> Value {
    stage.requests().last().unwrap().json()
}

fn extends(stage: &Stage) -> bool {
    let requests = stage.requests();
    let [.., before, last] = requests.as_slice() else { panic!("two requests") };
    let (before, last) = (prompt_items(before), prompt_items(last));
    last.get(..before.len()) == Some(&before[..])
}

pub fn without_patch(options: &mut AgentOptions) {
    options.tools.retain(|tool| tool.spec().name != "patch");
}

#[tokio::test]
async fn a_tool_that_was_turned_off_opens_an_epoch_with_its_price() {
    for wire in Wire::ALL {
        let (stage, session) = left(wire).await;
        let mut driver = stage.open_with(&session, without_patch);
        let changed = EpochReason::ToolsChanged { added: vec![], removed: vec!["patch".into()], changed: vec![] };
        let drift = driver.drift().unwrap().clone();
        assert_eq!((&drift.reason, drift.taken), (&changed, Taken::Now), "{wire}");
        assert!(drift.cost.tokens > 1_000, "{drift:?}");
        assert_eq!(driver.next_cut().unwrap().unwrap(), drift);
        assert_eq!(ask(&mut driver, "and now?").await, EndReason::Completed);
        assert!(driver.drift().is_none() && driver.next_cut().unwrap().is_none());
        assert_eq!(reasons(&stage, &session), [EpochReason::Initial, changed]);
        let opened = epochs(&stage, &session).pop().unwrap();
        // The new prompt is there by then.
        assert!(opened.cost.unwrap().tokens.abs_diff(drift.cost.tokens) < 50, "{wire}: {opened:?}");
        let bodies = stage.requests();
        let offered = |at: usize| String::from_utf8_lossy(&bodies[at].body).contains("\"patch\"");
        assert!(offered(0) && offered(1) && !offered(2), "{wire}");
        assert_clean(&stage, driver);
    }
}

#[tokio::test]
async fn a_person_can_keep_what_the_session_began_with() {
    let (stage, session) = left(Wire::AnthropicMessages).await;
    let mut driver = stage.open_with(&session, without_patch);
    driver.command(Command::KeepEpoch { by: By::person("test") }).unwrap();
    assert!(driver.next_cut().unwrap().is_none());
    assert_eq!(driver.drift().unwrap().taken, Taken::AtTheNextCut);
    assert_eq!(ask(&mut driver, "and now?").await, EndReason::Completed);
    assert_eq!(reasons(&stage, &session), [EpochReason::Initial]);
    assert!(extends(&stage));
    // What differs is taken with the next cut.
    driver
        .command(Command::SetModel { route: "other".into(), model: "model-b".into(), by: By::person("test") })
        .unwrap();
    ask(&mut driver, "go on").await;
    assert!(!last_body(&stage)["tools"].to_string().contains("\"patch\""));
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn what_is_as_it_was_opens_nothing_and_a_decision_that_does_not_hold_any_more_is_taken_back() {
    let (stage, session) = left(Wire::OpenaiChat).await;
    // Opened with other tools, and left again.
    drop(stage.open_with(&session, without_patch));
    let driver = resumed(&stage, &session, |_| {}).await;
    assert_eq!(reasons(&stage, &session), [EpochReason::Initial]);
    assert!(extends(&stage));
    let due: Vec<bool> = records(&stage, &session)
        .iter()
        .filter_map(|record| match &record.event {
            Event::EpochDue(due) => Some(due.reason.is_some()),
            _ => None,
        })
        .collect();
    assert_eq!(due, [true, false]);
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn another_system_text_of_the_same_release_is_taken_at_once() {
    let (stage, session) = left(Wire::OpenaiResponses).await;
    let driver = resumed(&stage, &session, |options| options.persona = Some("Answer in verse.".into())).await;
    let changed = EpochReason::SystemChanged { sections: vec!["persona".into()] };
    assert_eq!(reasons(&stage, &session), [EpochReason::Initial, changed]);
    assert!(last_body(&stage)["instructions"].as_str().unwrap().contains("in verse"));
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn another_release_keeps_the_logged_header_until_the_next_cut() {
    let (stage, session) = left(Wire::AnthropicMessages).await;
    let mut driver = stage.open_with(&session, |options| {
        options.version = "9.9.9".into();
        options.persona = Some("Newer text.".into());
    });
    let drift = driver.drift().unwrap();
    assert_eq!(drift.taken, Taken::AtTheNextCut);
    assert!(drift.cost.tokens > 1_000, "{drift:?}");
    assert!(driver.next_cut().unwrap().is_none());
    ask(&mut driver, "and now?").await;
    assert!(extends(&stage));
    driver
        .command(Command::SetModel { route: "other".into(), model: "model-b".into(), by: By::person("test") })
        .unwrap();
    ask(&mut driver, "with the other one").await;
    assert_eq!(reasons(&stage, &session), [EpochReason::Initial, EpochReason::ModelChanged]);
    let newest = epochs(&stage, &session).pop().unwrap();
    assert_eq!(newest.version, "9.9.9");
    assert!(last_body(&stage)["system"].to_string().contains("Newer text."));
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn another_release_is_taken_at_once_when_the_cache_is_gone_anyway_or_a_tool_is() {
    let (stage, session) = left(Wire::AnthropicMessages).await;
    let driver = resumed(&stage, &session, |options| {
        options.version = "9.9.9".into();
        options.clock = LATER;
        options.persona = Some("Newer text.".into());
    })
    .await;
    let changed = EpochReason::SystemChanged { sections: vec!["persona".into()] };
    assert_eq!(reasons(&stage, &session), [EpochReason::Initial, changed]);
    let cost = epochs(&stage, &session).pop().unwrap().cost.unwrap();
    assert_eq!((cost.tokens, cost.money), (0, Some(Micros(0))), "nothing that was still cached is lost");
    assert_clean(&stage, driver);

    let (stage, session) = left(Wire::AnthropicMessages).await;
    let driver = stage.open_with(&session, |options| {
        options.version = "9.9.9".into();
        without_patch(options);
    });
    assert_eq!(driver.drift().unwrap().taken, Taken::NowOfNecessity);
}

#[tokio::test]
async fn changed_parameters_open_an_epoch() {
    let (stage, session) = left(Wire::AnthropicMessages).await;
    let driver = resumed(&stage, &session, |options| {
        options.routes[0].parameters.effort = Some("low".into());
    })
    .await;
    assert_eq!(reasons(&stage, &session), [EpochReason::Initial, EpochReason::ParametersChanged]);
    assert_eq!(last_body(&stage)["output_config"]["effort"], "low");
    assert!(extends(&stage), "the prompt is the same");
    let opened = epochs(&stage, &session).pop().unwrap();
    assert!(opened.cost.unwrap().tokens > 1_000, "thinking counts for what is cached of the messages");
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn a_longer_life_is_asked_for_what_stands_before_the_history() {
    let (stage, session) = left(Wire::AnthropicMessages).await;
    let driver = resumed(&stage, &session, |options| options.routes[0].ttl = Some(CacheTtl::Hour)).await;
    let drift = EpochReason::ResumeDrift { what: "cache".into() };
    assert_eq!(reasons(&stage, &session), [EpochReason::Initial, drift]);
    let marks = |body: &Value| {
        let mut found = Vec::new();
        let system = body["system"].as_array().unwrap().iter();
        let blocks =
            body["messages"].as_array().unwrap().iter().flat_map(|message| message["content"].as_array().unwrap());
        for block in system.chain(blocks).filter(|block| !block["cache_control"].is_null()) {
            found.push(block["cache_control"]["ttl"].as_str().unwrap_or("5m").to_owned());
        }
        found
    };
    let bodies = stage.requests();
    assert_eq!(marks(&bodies[1].json()), ["5m"; 4]);
    assert_eq!(marks(&bodies[2].json()), ["1h", "1h", "5m", "5m"], "what was answered before stays marked");
    assert!(extends(&stage), "marks are no part of the prompt");
    assert_clean(&stage, driver);

    // A session that begins so writes its header for an hour and the rest for five minutes.
    let agent = stage.agent_with(|options| options.routes[0].ttl = Some(CacheTtl::Hour));
    let mut driver = Driver::create(&agent, &stage.start()).unwrap();
    stage.write("AGENTS.md", &"Mind the tests of this project. ".repeat(100));
    ask(&mut driver, "go").await;
    let usage = *driver.state().usage();
    assert!(usage.cache_write_1h.unwrap() > 500 && usage.cache_write_5m.unwrap() > 0, "{usage:?}");
    let session = driver.session().clone();
    assert_eq!(epochs(&stage, &session)[0].config.cache.ttl, CacheTtl::Hour);
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn a_model_switch_says_what_it_costs() {
    let (stage, session) = left(Wire::OpenaiResponses).await;
    let price = Price { input: Some(3_000_000), cache_read: Some(1_000_000), output: Some(1), ..Price::default() };
    let mut driver = stage.open_with(&session, |options| options.routes[1].own_price = Some(price));
    let sent = driver.state().epoch().unwrap().sent.clone().unwrap();
    let cost = driver.model_cost("other", "model-b").unwrap();
    assert_eq!(cost.tokens, sent.input.unwrap(), "all that was sent last is sent fresh");
    assert_eq!(cost.money, Some(Micros(cost.tokens * 2)));
    let unpriced = driver.model_cost("main", "model-c").unwrap();
    assert_eq!((unpriced.tokens, unpriced.money), (cost.tokens, None));
    assert_eq!(driver.model_cost("main", "model-a").unwrap().tokens, 0, "nothing changes");
    driver
        .command(Command::SetModel { route: "other".into(), model: "model-b".into(), by: By::person("test") })
        .unwrap();
    let cut = driver.next_cut().unwrap().unwrap();
    assert_eq!((cut.reason, cut.cost), (EpochReason::ModelChanged, cost));
    ask(&mut driver, "and now?").await;
    assert_eq!(epochs(&stage, &session).pop().unwrap().cost, Some(cost));
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn a_fork_opens_an_epoch_only_where_its_header_is_not_its_parents() {
    let (stage, session) = left(Wire::OpenaiChat).await;
    let mut same = Driver::fork(&stage.agent(), &session, None).unwrap();
    ask(&mut same, "one way").await;
    assert!(extends(&stage));
    assert_eq!(reasons(&stage, same.session()), [EpochReason::Initial]);
    assert_clean(&stage, same);
    let mut other = Driver::fork(&stage.agent_with(without_patch), &session, None).unwrap();
    ask(&mut other, "another way").await;
    assert_eq!(reasons(&stage, other.session()), [EpochReason::Initial, EpochReason::Forked]);
    assert_clean(&stage, other);
}

/// Writes a session again with something changed in its epoch, as another build may have written it.
fn forged(stage: &Stage, session: &SessionId, change: impl Fn(&mut EpochOpened)) -> SessionId {
    let records = records(stage, session);
    let store = stage.store();
    let id = stele_agent::new_session_id(records[0].ts);
    let start = Start { cwd: stage.folder.display().to_string(), created: records[0].ts, parent: None };
    let mut writer = store.create(id.clone(), start).unwrap();
    let batch: Vec<Append> = records
        .into_iter()
        .map(|mut record| {
            if let Event::EpochOpened(opened) = &mut record.event {
                change(opened);
            }
            Append { seq: record.seq, record: record.encode().unwrap(), search: None }
        })
        .collect();
    writer.append(&batch, Durability::Barrier, None).unwrap();
    id
}

#[tokio::test]
async fn requests_of_an_encoder_that_is_not_here_go_on_in_a_new_epoch() {
    let (stage, session) = left(Wire::Gemini).await;
    let session = forged(&stage, &session, |opened| opened.config.encoder = "gemini/0".into());
    let driver = resumed(&stage, &session, |_| {}).await;
    assert_eq!(reasons(&stage, &session), [EpochReason::Initial, EpochReason::Encoder]);
    assert!(extends(&stage), "nothing of the prompt is lost");
    let session = driver.session().clone();
    drop(driver);
    let verified = verify(&stage.store(), &session).unwrap();
    assert!(verified.is_clean(), "{verified:?}");
    assert_eq!(verified.requests, 1, "the requests of the other encoder cannot be built here");
}

#[tokio::test]
async fn a_header_that_is_not_the_one_described_is_composed_again() {
    let (stage, session) = left(Wire::OpenaiChat).await;
    let session = forged(&stage, &session, |opened| {
        let text = opened.segments[0].text.as_str().replacen('{', r#"{"more":1,"#, 1);
        opened.segments[0].text = Text::from(text).sealed();
    });
    let mut driver = stage.open(&session, OpenPolicy::Close);
    // What the resume found is the same thing from the other side; the fold is what counts.
    driver.command(Command::KeepEpoch { by: By::person("test") }).unwrap();
    assert_eq!(ask(&mut driver, "and now?").await, EndReason::Completed);
    assert_eq!(reasons(&stage, &session), [EpochReason::Initial, EpochReason::Restored]);
    let broken: Vec<String> = records(&stage, &session)
        .iter()
        .filter_map(|record| match &record.event {
            Event::PrefixBroken(broken) => Some(format!("{:?} {}", broken.zone, broken.segment)),
            _ => None,
        })
        .collect();
    assert_eq!(broken.len(), 1, "{broken:?}");
    assert!(broken[0].starts_with("Tools "), "{broken:?}");
    assert!(extends(&stage), "what is sent is what was sent");
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn segments_are_stored_once_however_many_epochs_list_them() {
    let (stage, session) = left(Wire::OpenaiChat).await;
    let driver = resumed(&stage, &session, |options| options.persona = Some("Another.".into())).await;
    let opened = epochs(&stage, &session);
    assert_eq!(opened.len(), 2);
    let shared = opened[0].segments.iter().filter(|segment| opened[1].segments.contains(segment)).count();
    assert_eq!(shared, opened[0].segments.len());
    for stored in stage.store().read(&session, Seq(0)).unwrap() {
        let bytes = stored.unwrap().bytes;
        let line = String::from_utf8_lossy(&bytes);
        if line.contains("epoch/opened") {
            assert!(line.len() < 4_096, "segments are listed, not repeated: {}", line.len());
        }
    }
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn a_step_with_sixty_results_is_read_as_predicted() {
    let many = (0..60).fold(Say::default(), |say, at| say.and_call("read", &json!({"path": format!("f{at}.txt")})));
    let script = Script::new([many.clone(), many, Say::text("read"), Say::text("again")]);
    let stage = Stage::new(Wire::AnthropicMessages, script);
    for at in 0..60 {
        stage.write(&format!("f{at}.txt"), &format!("line of file {at}\n").repeat(20 + at));
    }
    let mut driver = stage.create();
    let mut notices = driver.subscribe();
    ask(&mut driver, "read them all").await;
    ask(&mut driver, "and again?").await;
    let usages: Vec<Usage> = crate::stage::events(&mut notices)
        .into_iter()
        .filter_map(|event| match event {
            Event::AssistantMessage(message) => message.usage,
            _ => None,
        })
        .collect();
    assert_eq!(usages.len(), 4);
    for (before, now) in usages.iter().zip(&usages[1..]) {
        assert_eq!(now.cache_read, before.input(), "everything that was sent before is read");
    }
    for request in stage.requests() {
        assert!(String::from_utf8_lossy(&request.body).matches("cache_control").count() <= 4);
    }
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn a_session_and_its_forks_share_a_cache_key() {
    let stage = Stage::new(Wire::OpenaiResponses, Script::new([]));
    // A limit that nothing without a price can pass ends the turn once the epoch is open, so that nothing is sent.
    let nothing = TurnLimits { cost: Some(Micros(1)), ..TurnLimits::default() };
    let go = || Command::Prompt { text: "go".into(), source: Source::Person, limits: nothing };
    let vendor = |options: &mut AgentOptions| options.routes[0].base_url = "https://api.openai.com/v1".into();
    let mut driver = Driver::create(&stage.agent_with(vendor), &stage.start()).unwrap();
    driver.command(go()).unwrap();
    assert!(matches!(idle(&mut driver).await, EndReason::Failed { code, .. } if code == "limit.unpriced"));
    let key = config(&driver).cache.key.unwrap();
    assert_eq!(key, driver.session().to_string());
    let parent = driver.session().clone();
    drop(driver);
    let other = |options: &mut AgentOptions| {
        vendor(options);
        options.persona = Some("Another.".into());
    };
    let mut fork = Driver::fork(&stage.agent_with(other), &parent, None).unwrap();
    fork.command(go()).unwrap();
    idle(&mut fork).await;
    assert_eq!(reasons(&stage, fork.session()), [EpochReason::Initial, EpochReason::Forked]);
    assert_eq!(config(&fork).cache.key, Some(key));
    assert_eq!(stage.requests().len(), 0);
}
