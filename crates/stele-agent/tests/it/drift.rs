//! What differs from the log when a session is resumed: all of it is found, priced and named.

use stele_agent::{AgentOptions, ChangedSince, Clock, Command, Driver, Taken};
use stele_core::{By, CacheTtl, EndReason, EpochCost, EpochReason, Micros, Millis, Price, SessionId, Wire};
use stele_provider::Marks;
use stele_testkit::{Say, Script};

use crate::epochs::{assert_clean, epochs, left, records, resumed, without_patch};
use crate::stage::{LATER, Stage, ask};

const PRICE: Price = Price {
    input: Some(10_000_000),
    output: Some(50_000_000),
    cache_read: Some(1_000_000),
    cache_write: None,
    cache_write_5m: None,
    cache_write_1h: None,
    long: None,
};

/// The same where what is written to the cache has prices of its own.
const WRITES: Price = Price { cache_write_5m: Some(12_500_000), cache_write_1h: Some(20_000_000), ..PRICE };

fn another_persona(options: &mut AgentOptions) {
    options.routes[0].own_price = Some(PRICE);
    options.persona = Some("Answer in verse.".into());
}

fn system_changed() -> EpochReason {
    EpochReason::SystemChanged { sections: vec!["persona".into()] }
}

async fn undo(driver: &mut Driver) {
    driver.undo(By::person("test"), ChangedSince::Leave).await.unwrap();
}

fn keep(driver: &mut Driver) {
    driver.command(Command::KeepEpoch { by: By::person("test") }).unwrap();
}

fn reasons(stage: &Stage, session: &SessionId) -> Vec<EpochReason> {
    epochs(stage, session).into_iter().map(|opened| opened.reason).collect()
}

fn last_body(stage: &Stage) -> String {
    String::from_utf8(stage.requests().pop().unwrap().body.to_vec()).unwrap()
}

/// A session of two turns whose second one another process has taken back.
async fn taken_back(wire: Wire) -> (Stage, SessionId) {
    let (stage, session) = left(wire).await;
    let mut driver = resumed(&stage, &session, |_| {}).await;
    undo(&mut driver).await;
    (stage, session)
}

#[tokio::test]
async fn an_undo_alone_keeps_header_and_configuration_and_asks_nothing() {
    for wire in Wire::ALL {
        let (stage, session) = taken_back(wire).await;
        let driver = stage.open_with(&session, |_| {});
        assert!(driver.drift().is_none() && driver.next_cut().unwrap().is_none(), "{wire}");
        drop(driver);
        let driver = resumed(&stage, &session, |options| options.routes[0].own_price = Some(PRICE)).await;
        let epochs = epochs(&stage, &session);
        assert_eq!(reasons(&stage, &session), [EpochReason::Initial, EpochReason::Undo], "{wire}");
        assert_eq!(epochs[1].price, Some(PRICE), "{wire}: what it costs is what it costs today");
        assert_eq!(epochs[0].segments, epochs[1].segments, "{wire}");
        assert_eq!(epochs[0].config, epochs[1].config, "{wire}");
        assert_clean(&stage, driver);
    }
}

#[tokio::test]
async fn what_the_configuration_changed_has_a_price_of_its_own_after_an_undo() {
    for wire in Wire::ALL {
        let (stage, session) = taken_back(wire).await;
        let mut driver = stage.open_with(&session, another_persona);
        let drift = driver.drift().unwrap().clone();
        assert_eq!((&drift.reason, drift.taken), (&system_changed(), Taken::Now), "{wire}");
        assert_eq!(driver.next_cut().unwrap().as_ref(), Some(&drift), "{wire}");
        assert!(drift.cost.tokens > 100 && drift.cost.money.is_some_and(|money| money.0 > 900), "{wire}: {drift:?}");
        assert_eq!(ask(&mut driver, "and now?").await, EndReason::Completed);
        assert_eq!(reasons(&stage, &session), [EpochReason::Initial, system_changed()], "{wire}");
        // The epoch's own price is that of both.
        let whole = epochs(&stage, &session).pop().unwrap().cost.unwrap();
        assert!(whole.tokens >= drift.cost.tokens, "{wire}: {whole:?} {drift:?}");
        assert!(last_body(&stage).contains("in verse"), "{wire}");
        assert_clean(&stage, driver);
    }
}

#[tokio::test]
async fn what_an_undo_loses_anyway_is_not_in_the_price_of_what_differs() {
    let answer = "No mark ends at an answer. ".repeat(400);
    let script = Script::new([Say::text(&answer), Say::text("two"), Say::text("three")]);
    let stage = Stage::new(Wire::AnthropicMessages, script);
    let mut driver = stage.create();
    ask(&mut driver, "go").await;
    ask(&mut driver, "and now?").await;
    undo(&mut driver).await;
    let session = driver.session().clone();
    drop(driver);
    let mut driver = stage.open_with(&session, another_persona);
    let beside = driver.drift().unwrap().cost;
    assert_eq!(ask(&mut driver, "again").await, EndReason::Completed);
    let whole = epochs(&stage, &session).pop().unwrap().cost.unwrap();
    assert!(beside.tokens > 100 && beside.tokens + 2_000 < whole.tokens, "{beside:?} {whole:?}");
    assert!(beside.money.unwrap().0 + 10_000 < whole.money.unwrap().0, "{beside:?} {whole:?}");
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn what_stands_before_a_turn_of_several_steps_is_not_lost_with_it() {
    for wire in Wire::ALL {
        let bash = |command: &str| Say::call("bash", &serde_json::json!({"command": command}));
        let script = Script::new([
            bash("seq 4000"),
            Say::text("one"),
            bash("echo one"),
            bash("echo two"),
            Say::text("two"),
            Say::text("three"),
        ]);
        let stage = Stage::new(wire, script);
        let mut driver = stage.create();
        ask(&mut driver, "go").await;
        ask(&mut driver, "and now?").await;
        undo(&mut driver).await;
        ask(&mut driver, "again").await;
        let opened = epochs(&stage, driver.session()).pop().unwrap();
        assert_eq!(opened.reason, EpochReason::Undo, "{wire}");
        let (told, counted) = (opened.cost.unwrap().tokens, stage.requests().pop().unwrap().counted.unwrap());
        let anew = counted.input - counted.cache_read;
        assert!(counted.cache_read > 4_000, "{wire}: {counted:?}");
        assert!(told <= anew + 100, "{wire}: {told} were said to be lost, {anew} were sent anew");
        assert_clean(&stage, driver);
    }
}

#[tokio::test]
async fn what_is_declined_after_an_undo_is_not_taken_with_it() {
    let (stage, session) = taken_back(Wire::AnthropicMessages).await;
    let mut driver = stage.open_with(&session, |options| {
        another_persona(options);
        options.routes[0].parameters.effort = Some("low".into());
        without_patch(options);
    });
    assert!(driver.next_cut().unwrap().is_some());
    keep(&mut driver);
    assert!(driver.next_cut().unwrap().is_none());
    assert_eq!(ask(&mut driver, "and now?").await, EndReason::Completed);
    let opened = epochs(&stage, &session);
    assert_eq!(reasons(&stage, &session), [EpochReason::Initial, EpochReason::Undo]);
    assert_eq!((&opened[0].segments, &opened[0].config), (&opened[1].segments, &opened[1].config));
    // It waits for the next one still, and has its price again.
    assert_eq!(driver.drift().unwrap().taken, Taken::AtTheNextCut);
    undo(&mut driver).await;
    let cut = driver.next_cut().unwrap().unwrap();
    assert!(matches!(cut.reason, EpochReason::ToolsChanged { .. }) && cut.taken == Taken::Now, "{cut:?}");
    assert_eq!(ask(&mut driver, "and now?").await, EndReason::Completed);
    assert!(last_body(&stage).contains("in verse"));
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn what_another_release_changed_is_taken_with_an_undo_under_its_own_name() {
    let newer = |options: &mut AgentOptions| {
        options.version = "9.9.9".into();
        another_persona(options);
    };
    // In one process, and in two.
    for at_once in [true, false] {
        let (stage, session) = left(Wire::OpenaiResponses).await;
        let mut driver = stage.open_with(&session, newer);
        assert_eq!(driver.drift().unwrap().taken, Taken::AtTheNextCut);
        undo(&mut driver).await;
        if !at_once {
            drop(driver);
            driver = stage.open_with(&session, newer);
        }
        let cut = driver.next_cut().unwrap().unwrap();
        assert_eq!((&cut.reason, cut.taken), (&system_changed(), Taken::Now));
        assert_eq!(ask(&mut driver, "and now?").await, EndReason::Completed);
        assert_eq!(reasons(&stage, &session), [EpochReason::Initial, system_changed()]);
        assert_eq!(epochs(&stage, &session).pop().unwrap().version, "9.9.9");
        assert_clean(&stage, driver);
    }
}

#[tokio::test]
async fn another_model_is_what_an_epoch_opens_for_when_a_turn_was_taken_back_as_well() {
    let (stage, session) = taken_back(Wire::OpenaiChat).await;
    let mut driver = stage.open_with(&session, |_| {});
    let (route, model) = ("other".to_owned(), "model-b".to_owned());
    driver.command(Command::SetModel { route, model, by: By::person("test") }).unwrap();
    let cut = driver.next_cut().unwrap().unwrap();
    assert_eq!((&cut.reason, cut.taken), (&EpochReason::ModelChanged, Taken::Now));
    assert!(cut.cost.tokens > 0);
    assert_eq!(ask(&mut driver, "and now?").await, EndReason::Completed);
    assert_eq!(reasons(&stage, &session), [EpochReason::Initial, EpochReason::ModelChanged]);
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn what_waits_hides_nothing_that_does_not() {
    let (stage, session) = left(Wire::AnthropicMessages).await;
    let mut driver = stage.open_with(&session, |options| {
        another_persona(options);
        options.routes[0].own_images = Some(true);
    });
    let drift = driver.drift().unwrap();
    assert_eq!((&drift.reason, drift.taken), (&system_changed(), Taken::Now));
    assert!(drift.cost.tokens > 100, "{drift:?}");
    assert_eq!(ask(&mut driver, "and now?").await, EndReason::Completed);
    assert!(last_body(&stage).contains("in verse"));
    // An epoch opened: what waited came with it.
    assert!(!driver.state().epoch().unwrap().config.images.is_noted());
    let due = records(&stage, &session).into_iter().filter(|record| record.event.kind() == "epoch/due").count();
    assert_eq!(due, 1);
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn of_several_differences_the_one_that_costs_most_is_named() {
    let (stage, session) = left(Wire::AnthropicMessages).await;
    let named = |change: &dyn Fn(&mut AgentOptions)| {
        let driver = stage.open_with(&session, change);
        driver.drift().map(|drift| (drift.reason.name(), drift.taken)).unwrap()
    };
    let hour = |options: &mut AgentOptions| options.routes[0].ttl = Some(CacheTtl::Hour);
    let effort = |options: &mut AgentOptions| options.routes[0].parameters.effort = Some("low".into());
    assert_eq!(named(&hour), ("resume_drift", Taken::Now));
    let both = |options: &mut AgentOptions| {
        hour(options);
        effort(options);
    };
    assert_eq!(named(&both), ("parameters_changed", Taken::Now));
    let three = |options: &mut AgentOptions| {
        both(options);
        another_persona(options);
    };
    assert_eq!(named(&three), ("system_changed", Taken::Now));
    let four = |options: &mut AgentOptions| {
        three(options);
        without_patch(options);
    };
    assert_eq!(named(&four), ("tools_changed", Taken::Now));
    // What cannot be kept makes all of it come at once.
    let newer = |options: &mut AgentOptions| {
        four(options);
        options.version = "9.9.9".into();
    };
    assert_eq!(named(&newer), ("tools_changed", Taken::NowOfNecessity));
}

#[tokio::test]
async fn images_are_taken_at_once_when_none_was_left_out() {
    let (stage, session) = left(Wire::AnthropicMessages).await;
    let driver = resumed(&stage, &session, |options| options.routes[0].own_images = Some(true)).await;
    let images = EpochReason::ResumeDrift { what: "images".into() };
    assert_eq!(reasons(&stage, &session), [EpochReason::Initial, images]);
    assert_eq!(epochs(&stage, &session).pop().unwrap().cost.unwrap().tokens, 0);
    assert_clean(&stage, driver);

    // One that was left out stands in the middle of what is cached: it waits, at its own price.
    let look = Say::call("read", &serde_json::json!({"path": "a.png"}));
    let read = Say::call("read", &serde_json::json!({"path": "a.txt"}));
    let says = [look, read, Say::text("one"), Say::text("two"), Say::text("three")];
    let mut stage = Stage::new(Wire::AnthropicMessages, Script::new(says));
    stage.images = Some(true);
    crate::images::draw(&stage);
    stage.write("a.txt", &"a line of the file\n".repeat(900));
    let mut driver = stage.create();
    assert_eq!(ask(&mut driver, "look").await, EndReason::Completed);
    let session = driver.session().clone();
    drop(driver);
    // While the prompt with the image is cached still, it could be gone back to for next to nothing.
    let without = |options: &mut AgentOptions| options.routes[0].own_images = Some(false);
    let later = |options: &mut AgentOptions| options.clock = LATER;
    drop(resumed(&stage, &session, |options| [without, later].iter().for_each(|change| change(options))).await);
    let mut driver = stage.open_with(&session, later);
    let drift = driver.drift().unwrap();
    assert_eq!(drift.taken, Taken::AtTheNextCut);
    let sent = driver.state().epoch().unwrap().sent.clone().unwrap();
    assert!(drift.cost.tokens > 1_000 && drift.cost.tokens < sent.input.unwrap() - 1_000, "{drift:?} {sent:?}");
    assert_eq!(ask(&mut driver, "and now?").await, EndReason::Completed);
    assert_eq!(reasons(&stage, &session).len(), 2, "the one that left it out is open still");
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn marks_that_are_turned_off_cost_all_that_was_cached_and_after_them_nothing_is_lost() {
    let (stage, session) = left(Wire::AnthropicMessages).await;
    let off = |options: &mut AgentOptions| {
        options.routes[0].own_price = Some(PRICE);
        options.routes[0].marks = Marks::Off;
    };
    let mut driver = stage.open_with(&session, off);
    let drift = driver.drift().unwrap().clone();
    assert_eq!(drift.reason, EpochReason::ResumeDrift { what: "cache".into() });
    let usage = driver.state().usage();
    assert!(drift.cost.tokens > usage.input().unwrap() / 4, "{drift:?} {usage:?}");
    assert_eq!(drift.cost.money.unwrap().0, drift.cost.tokens * 9);
    assert_eq!(ask(&mut driver, "and now?").await, EndReason::Completed);
    assert!(!last_body(&stage).contains("cache_control"));
    drop(driver);
    let driver = stage.open_with(&session, |options| {
        off(options);
        another_persona(options);
    });
    assert_eq!(driver.drift().unwrap().cost.tokens, 0);
    assert_clean(&stage, driver);
}

#[tokio::test]
async fn a_longer_life_costs_nothing_while_the_entries_live_and_the_dearer_writing_after() {
    let (stage, session) = left(Wire::AnthropicMessages).await;
    let hour = |options: &mut AgentOptions| {
        options.routes[0].own_price = Some(WRITES);
        options.routes[0].ttl = Some(CacheTtl::Hour);
    };
    // What is there is read on, whatever it was written for.
    let lives = stage.open_with(&session, hour).drift().unwrap().clone();
    assert_eq!(lives.reason, EpochReason::ResumeDrift { what: "cache".into() });
    assert_eq!(lives.cost, EpochCost { tokens: 0, money: Some(Micros(0)) });
    // Two hours later all of it is written anew: what stands before the history at twice the input's price.
    let later = |options: &mut AgentOptions| {
        hour(options);
        options.clock = LATER;
    };
    let expired = stage.open_with(&session, later).drift().unwrap().cost;
    let driver = resumed(&stage, &session, hour).await;
    let sent = driver.state().epoch().unwrap().sent.clone().unwrap();
    drop(driver);
    assert_eq!(expired.tokens, 0);
    let (money, whole) = (expired.money.unwrap().0, sent.input.unwrap());
    assert!(money > 500 * 7 && money < whole * 15 / 2, "{money} for a part of {whole} tokens");
    // And back again nothing is dearer.
    let back = |options: &mut AgentOptions| {
        options.routes[0].own_price = Some(WRITES);
        options.clock = LATER;
    };
    assert_eq!(stage.open_with(&session, back).drift().unwrap().cost.money, Some(Micros(0)));
}

#[tokio::test]
async fn what_is_lost_is_priced_as_what_writing_it_again_costs() {
    for (life, dearest) in [(CacheTtl::FiveMinutes, 23), (CacheTtl::Hour, 38)] {
        let (mut stage, _) = left(Wire::AnthropicMessages).await;
        stage.ttl = Some(life);
        stage.write("AGENTS.md", &"Mind the tests of this project. ".repeat(400));
        let mut driver = stage.create();
        ask(&mut driver, &"Think of all of it. ".repeat(400)).await;
        let session = driver.session().clone();
        drop(driver);
        let cost_at = |clock: Option<Clock>| {
            let changed = |options: &mut AgentOptions| {
                another_persona(options);
                options.routes[0].own_price = Some(WRITES);
                options.clock = clock.unwrap_or(options.clock);
            };
            stage.open_with(&session, changed).drift().unwrap().cost
        };
        let cost = cost_at(None);
        // In halves of a millionth: 11.5 for what is kept for five minutes, 19 for what is kept for an hour.
        let (money, least, most) = (cost.money.unwrap().0 * 2 + 2, cost.tokens * 23, cost.tokens * dearest);
        assert!(money >= least && money <= most + 4, "{life:?}: {cost:?}");
        assert_eq!(money > least + 1_000, life == CacheTtl::Hour, "{life:?}: {cost:?}");
        // The history is never kept for an hour.
        assert_eq!(money + 10_000 < most, life == CacheTtl::Hour, "{life:?}: {cost:?}");
        let half_an_hour_later = Clock { now: || Millis((LATER.now)().0 - 90 * 60_000), ..LATER };
        assert_eq!(cost_at(Some(half_an_hour_later)).tokens > 0, life == CacheTtl::Hour, "{life:?}");
    }
}
