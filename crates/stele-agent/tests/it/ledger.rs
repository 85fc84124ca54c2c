//! What endpoints refuse and report: learnt from traffic, kept from session to session.

use std::sync::Arc;

use serde_json::{Value, json};
use stele_agent::{Notice, OpenPolicy, verify};
use stele_core::{CacheTtl, EndReason, Event, OptionalField, Parameters, Price, SessionId, Wire};
use stele_provider::{Capability, Endpoint, Finding, How, Ledger, LedgerFile, Lesson, Status};
use stele_testkit::{Behaviour, Fault, FaultKind, Say, Script, Wording};
use tokio::sync::broadcast;

use crate::stage::{Stage, ask, bash, config, events, kinds, prompt_items};

/// Fields that some endpoint's cache takes, and no other endpoint may be sent.
const CACHE_FIELDS: [&str; 4] = ["prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "cache_control"];

fn script() -> Script {
    Script::new([Say::call("bash", &bash("true")), Say::text("Done.")])
}

fn known(stage: &Stage) -> Ledger {
    let reading = LedgerFile::new(stage.ledger()).read();
    assert_eq!(reading.trouble, None);
    reading.ledger
}

fn standing(stage: &Stage, capability: Capability) -> Status {
    let endpoint = Endpoint::new(&stage.server.base_url(stage.wire), stage.wire, "model-a");
    known(stage).standing(&endpoint, capability).status
}

fn statuses(stage: &Stage) -> Vec<u16> {
    stage.requests().iter().map(|request| request.status).collect()
}

/// True when a body has the field, wherever it may stand.
fn carries(body: &Value, field: &str) -> bool {
    match body {
        Value::Object(object) => object.iter().any(|(key, value)| key == field || carries(value, field)),
        Value::Array(list) => list.iter().any(|value| carries(value, field)),
        _ => false,
    }
}

fn assert_verified(stage: &Stage, session: &SessionId) {
    let verification = verify(&stage.store(), session).unwrap();
    assert!(verification.is_clean() && verification.requests > 0, "{verification:?}");
}

#[tokio::test]
async fn a_refused_field_is_dropped_for_good_and_the_request_repeated_at_once() {
    for (wire, field, capability, wording) in [
        (Wire::AnthropicMessages, "cache_control", Capability::CacheControl, Wording::ExtraInputs),
        (Wire::AnthropicMessages, "cache_control", Capability::CacheControl, Wording::Pydantic),
        (Wire::AnthropicMessages, "cache_control.ttl", Capability::CacheTtl, Wording::ExtraInputs),
        (Wire::AnthropicMessages, "cache_control.ttl", Capability::CacheTtl, Wording::Plain),
        (Wire::OpenaiChat, "stream_options", Capability::StreamOptions, Wording::Plain),
        (Wire::OpenaiChat, "stream_options", Capability::StreamOptions, Wording::Argument),
        (Wire::OpenaiResponses, "store", Capability::Store, Wording::Parameter),
        (Wire::OpenaiResponses, "store", Capability::Store, Wording::UnknownName),
    ] {
        let mut stage = Stage::new(wire, Behaviour::from(script()).without_fields([field], wording));
        stage.ttl = (capability == Capability::CacheTtl).then_some(CacheTtl::Hour);
        let field = field.rsplit('.').next().unwrap();
        let mut driver = stage.create();
        let mut notices = driver.subscribe();
        assert_eq!(ask(&mut driver, "go").await, EndReason::Completed, "{wire} {wording:?}");
        assert_eq!(statuses(&stage)[0] / 100, 4);
        assert_eq!(statuses(&stage)[1..], [200, 200], "it is refused once");
        let requests = stage.requests();
        assert!(carries(&requests[0].json(), field));
        assert!(requests[1..].iter().all(|request| !carries(&request.json(), field)), "{wire}");
        assert_eq!(prompt_items(&requests[0]), prompt_items(&requests[1]), "{wire}: the prompt is the same");
        let kinds = kinds(&mut notices);
        for (kind, count) in [("caps/set", 1), ("request/failed", 1), ("request/retried", 0), ("prefix/broken", 0)] {
            assert_eq!(kinds.iter().filter(|own| **own == kind).count(), count, "{kind}");
        }
        assert_eq!(standing(&stage, capability), Status::Rejected);
        let session = driver.session().clone();
        drop(driver);
        assert_verified(&stage, &session);

        // Another session never sends it; this one goes by its log, whatever becomes of the ledger.
        let mut other = stage.create();
        assert_eq!(ask(&mut other, "go").await, EndReason::Completed);
        std::fs::remove_file(stage.ledger()).unwrap();
        let mut again = stage.open(&session, OpenPolicy::Close);
        assert_eq!(ask(&mut again, "and now").await, EndReason::Completed);
        assert!(statuses(&stage)[3..].iter().all(|status| *status == 200), "{:?}", statuses(&stage));
        assert_eq!(again.state().epoch().unwrap().n, 1);
        drop((other, again));
        assert_verified(&stage, &session);
    }
}

#[tokio::test]
async fn a_server_that_refuses_one_field_after_the_other_is_served() {
    let fields = ["store", "include", "prompt_cache_key"];
    for wording in Wording::ALL {
        let mut stage = Stage::new(Wire::OpenaiResponses, Behaviour::from(script()).without_fields(fields, wording));
        stage.parameters = Parameters { effort: Some("high".to_owned()), ..Parameters::default() };
        let endpoint = Endpoint::new(&stage.server.base_url(stage.wire), stage.wire, "model-a");
        let works =
            Lesson { capability: Capability::PromptCacheKey, finding: Finding::Works, says: "it was seen".to_owned() };
        LedgerFile::new(stage.ledger()).learn(&endpoint, &[works], How::Probe, "2026-11-29").unwrap();
        let mut driver = stage.create();
        let mut notices = driver.subscribe();
        assert_eq!(ask(&mut driver, "go").await, EndReason::Completed, "{wording:?}");
        let statuses = statuses(&stage);
        assert_eq!(statuses.len(), 5, "{statuses:?}");
        assert_eq!(statuses[3..], [200, 200]);
        assert!(fields.iter().all(|field| carries(&stage.requests()[0].json(), field)));
        let sets: Vec<_> = events(&mut notices)
            .into_iter()
            .filter_map(|event| match event {
                Event::CapsSet(set) => Some((set.fields.len(), set.dropped)),
                _ => None,
            })
            .collect();
        let expected = [
            (2, vec![OptionalField::Store]),
            (1, vec![OptionalField::Include]),
            (0, vec![OptionalField::PromptCacheKey]),
        ];
        assert_eq!(sets, expected, "{wording:?}");
        assert_eq!(config(&driver).optional_fields(), []);
        let counters = driver.state().counters();
        assert_eq!((counters.steps, counters.attempts), (2, 5));
    }
}

#[tokio::test]
async fn what_is_refused_without_the_field_as_well_teaches_nothing_of_the_field() {
    let body = json!({"error": {"message": "messages.0.content.0.cache_control: Extra inputs are not permitted"}});
    let refused = FaultKind::Status { status: 400, headers: Vec::new(), body: Some(body.to_string()) };
    let stage = Stage::new(Wire::AnthropicMessages, Behaviour::from(script()).fault(Fault::at(0, 1..=2, refused)));
    let mut driver = stage.create();
    let EndReason::Failed { code, .. } = ask(&mut driver, "go").await else { panic!("it was refused") };
    assert_eq!((code.as_str(), statuses(&stage)), ("provider.invalid_request", vec![400, 400]));
    assert_eq!(known(&stage), Ledger::default());
    // The next session marks its prompt again.
    let mut other = stage.create();
    assert_eq!(ask(&mut other, "go").await, EndReason::Completed);
    assert!(carries(&stage.requests()[2].json(), "cache_control"));
}

#[tokio::test]
async fn what_else_is_refused_is_an_ordinary_failure() {
    let refusals = [
        json!({"error": {"message": "Unknown parameter: 'frobnicate'.", "param": "frobnicate", "code": "unknown_parameter"}}),
        json!({"error": {"message": "Unknown parameter: 'cache_control'.", "param": "cache_control"}}),
        json!({"error": {"message": "messages: Field required"}}),
    ];
    for body in refusals {
        let refused = FaultKind::Status { status: 400, headers: Vec::new(), body: Some(body.to_string()) };
        let behaviour = Behaviour::from(script()).fault(Fault::at(0, 1..=1, refused));
        let stage = Stage::new(Wire::OpenaiChat, behaviour);
        let mut driver = stage.create();
        let EndReason::Failed { code, .. } = ask(&mut driver, "go").await else { panic!("{body}") };
        assert_eq!(code, "provider.invalid_request");
        assert_eq!(statuses(&stage), [400], "{body}");
        assert_eq!(known(&stage), Ledger::default());
    }
}

#[tokio::test]
async fn ctx_07_no_cache_field_that_the_endpoint_may_not_take() {
    for wire in Wire::ALL {
        let unknown = CACHE_FIELDS.iter().filter(|field| {
            // Without marks this wire has no caching: they go out until they are refused.
            !(wire == Wire::AnthropicMessages && **field == "cache_control")
        });
        let stage = Stage::new(wire, Behaviour::from(script()).without_fields(unknown.copied(), Wording::Parameter));
        let mut driver = stage.create();
        assert_eq!(ask(&mut driver, "go").await, EndReason::Completed, "{wire}");
        assert_eq!(statuses(&stage), [200, 200], "{wire}");
    }
}

#[tokio::test]
async fn ctx_09_missing_usage_is_unknown() {
    for wire in Wire::ALL {
        let behaviour = Behaviour::from(script()).fault(Fault::at(1, 1..=1, FaultKind::NoUsage));
        let mut stage = Stage::new(wire, behaviour);
        stage.price = Some(Price {
            input: Some(1_000_000),
            output: Some(1_000_000),
            cache_read: Some(1_000_000),
            cache_write: Some(1_000_000),
            cache_write_5m: Some(1_000_000),
            ..Price::default()
        });
        let mut driver = stage.create();
        assert_eq!(ask(&mut driver, "go").await, EndReason::Completed, "{wire}");
        let coverage = driver.state().coverage();
        assert_eq!((coverage.known, coverage.attempts), (1, 2), "{wire}");
        assert_eq!(driver.state().cost(), None, "{wire}");

        let silent = Behaviour::from(script()).fault(Fault::always(FaultKind::NoUsage));
        let mut quiet = Stage::new(wire, silent);
        quiet.price = stage.price;
        let mut driver = quiet.create();
        assert_eq!(ask(&mut driver, "go").await, EndReason::Completed, "{wire}");
        assert_eq!(driver.state().usage().hit_rate(), None, "{wire}");
        assert_eq!(driver.state().coverage().known, 0, "{wire}");
        assert_eq!(driver.state().cost(), None, "{wire}");
        assert_eq!(known(&quiet), Ledger::default(), "{wire}: an answer alone proves nothing");
    }
}

#[tokio::test]
async fn what_is_reported_is_learnt() {
    // Longer than any of the vendors' minimums.
    let long = "Look at this. ".repeat(2_000);
    for wire in Wire::ALL {
        let stage = Stage::new(wire, script());
        let mut driver = stage.create();
        assert_eq!(ask(&mut driver, &long).await, EndReason::Completed, "{wire}");
        assert_eq!(standing(&stage, Capability::Usage), Status::Verified, "{wire}");
        assert_eq!(standing(&stage, Capability::CacheRead), Status::Verified, "{wire}");
        let marks = if wire == Wire::AnthropicMessages { Status::Verified } else { Status::Unknown };
        assert_eq!(standing(&stage, Capability::CacheControl), marks, "{wire}");
    }
}

#[tokio::test]
async fn a_damaged_ledger_is_set_aside_and_the_session_goes_on() {
    let stage = Stage::new(Wire::AnthropicMessages, script());
    std::fs::write(stage.ledger(), b"{\"base_url\": \xff\n").unwrap();
    let mut driver = stage.create();
    let mut notices = driver.subscribe();
    assert_eq!(ask(&mut driver, "go").await, EndReason::Completed);
    let warnings = warnings(&mut notices);
    let [(code, text)] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(*code == "ledger.damaged" && text.contains("ledger.damaged-1"), "{text}");
    assert_eq!(standing(&stage, Capability::CacheRead), Status::Verified);
}

#[tokio::test]
async fn what_is_wrong_with_the_ledger_is_said_once_whatever_else_is_wrong_between() {
    let stage = Stage::new(Wire::AnthropicMessages, script());
    let damage = || std::fs::write(stage.ledger(), b"{\"base_url\": \xff\n").unwrap();
    damage();
    let mut driver = stage.create();
    let mut notices = driver.subscribe();
    ask(&mut driver, "go").await;
    // What another model would cost is worked out with the ledger.
    let look = || driver.model_cost("other", "model-b").unwrap();
    std::fs::remove_file(stage.ledger()).unwrap();
    std::fs::create_dir(stage.ledger()).unwrap();
    look();
    std::fs::remove_dir(stage.ledger()).unwrap();
    damage();
    look();
    assert!(stage.home.path().join("ledger.damaged-2").exists(), "it was damaged once more");
    let codes: Vec<&str> = warnings(&mut notices).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, ["ledger.damaged", "ledger.unusable"]);
}

/// What was said of things beside the session.
fn warnings(notices: &mut broadcast::Receiver<Notice>) -> Vec<(&'static str, Arc<str>)> {
    let mut warnings = Vec::new();
    while let Ok(notice) = notices.try_recv() {
        if let Notice::Warning { code, text } = notice {
            warnings.push((code, text));
        }
    }
    warnings
}
