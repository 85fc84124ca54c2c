//! The limit of cost: nothing is sent that could pass it.

use proptest::prelude::*;
use stele_core::limits::{LimitKind, TurnLimits};
use stele_core::{
    Action, AssistantMessage, Block, BodyDigest, CacheTtl, EndReason, EpochDue, EpochOpened, EpochReason, Event,
    Failure, FailureCode, Hash, InboxQueued, Micros, OptionalField, Part, Price, PromptDigest, Purpose, RequestFailed,
    RequestSent, Segment, Source, State, Stop, Target, Text, Usage, Zone, may_send_again, owed, partial_answer,
};

use crate::world::{Run, World, config, producer};

/// A dollar for a thousand tokens of input, ten for as many of output.
const PRICE: Price = Price {
    input: Some(1_000_000_000),
    output: Some(10_000_000_000),
    cache_read: None,
    cache_write: None,
    cache_write_5m: None,
    cache_write_1h: None,
    long: None,
};

/// What the longest answer costs.
const LONGEST: u64 = 100 * 10_000;

/// The most that a request under the open epoch can cost.
fn bound(state: &State) -> Option<Micros> {
    let epoch = state.epoch()?;
    epoch.price?.at_most(state.input_at_most(), epoch.max_output?, CacheTtl::FiveMinutes)
}

fn prompt(run: &mut Run, limits: TurnLimits) {
    run.append(InboxQueued {
        item: run.state.next_item(),
        source: Source::Person,
        target: Target::NextTurn,
        content: vec![Part::text("go")],
        limits,
        wake: true,
        jobs: Vec::new(),
    });
}

fn open(run: &mut Run, reason: EpochReason, price: Option<Price>) {
    let schema = r#"{"name":"tool","description":"","parameters":{}}"#;
    let tool = Segment { zone: Zone::Tools, name: "tool".into(), text: Text::from(schema).sealed() };
    let n = run.state.epoch().map_or(1, |epoch| epoch.n + 1);
    let (config, segments) = (config(), vec![tool]);
    let version = String::new();
    run.append(EpochOpened {
        n,
        reason,
        version,
        cost: None,
        segments,
        config: Box::new(config),
        price,
        max_output: Some(100),
    });
}

fn send(run: &mut Run, attempt: u32) {
    let body = BodyDigest { hash: Hash::of(b""), len: 0 };
    // Nothing leaves these histories, and their header stays the same.
    let before = run.log.iter().rev().find_map(|record| match &record.event {
        Event::RequestSent(sent) => Some(sent.prompt.len),
        _ => None,
    });
    let shared = before.unwrap_or(0);
    let prompt = PromptDigest { hash: Hash::of(b""), len: run.state.prompt_bytes(), items: 0, shared };
    run.append(RequestSent { purpose: Purpose::Main, attempt, body, prompt, marks: Vec::new() });
}

/// How an attempt ends: every kind of failure with or without usage, an answer with or without a call.
fn end(run: &mut Run, world: World, id: u64, attempt: u32) {
    // One tokenizer in each world, which makes at most a token of a byte.
    let eighths = 1 + world.draw("tokenizer", 0, 8);
    let input = run.state.prompt_bytes() * eighths / 8;
    assert!(input <= run.state.input_at_most());
    let told = Usage { fresh: Some(input), output: Some(world.draw("output", id, 101)), ..Usage::default() };
    let usage = Some(told).filter(|_| world.draw("told", id, 12) != 0);
    let failed = |code, output| Failure { output, usage, ..Failure::new(code, "no") };
    let failure = match world.draw("end", id, 8) {
        0 => failed(FailureCode::Overloaded, true),
        1 => failed(FailureCode::Incomplete, true),
        2 => failed(FailureCode::Server, false),
        3 => {
            let field = OptionalField::ALL[usize::try_from(world.draw("field", id, 6)).unwrap()];
            Failure { refused: vec![field], ..failed(FailureCode::InvalidRequest, false) }
        }
        4 => failed(FailureCode::InvalidRequest, false),
        _ => {
            let mut content = vec![Block::Text { text: "so".into(), native: None }];
            let call = run.state.next_call();
            let calls = world.draw("calls", id, 3) > 0;
            content.extend(calls.then_some(Block::Call { call, native: None }));
            let (producer, stop) = (producer(), Stop::End);
            let (usage_raw, interrupted) = (None, false);
            run.append(AssistantMessage { attempt, producer, content, stop, usage, usage_raw, interrupted });
            if calls {
                let arguments = Text::from(format!("{{\"n\":{id}}}"));
                run.append(stele_core::ToolCalled { call, vendor_id: None, name: "tool".into(), arguments });
            }
            return;
        }
    };
    run.append(RequestFailed { attempt, failure });
}

/// Drives to the end; the price changes from epoch to epoch, and a header turns out to be damaged now and then.
fn drive(run: &mut Run, world: World) {
    for _ in 0..2_000 {
        match owed(&run.state).into_iter().next() {
            None => return,
            Some(Action::Compose { reason }) => {
                let n = u64::from(run.state.epoch().map_or(0, |epoch| epoch.n));
                let times = 1 + world.draw("price", n, 3);
                let dearer = |price: Option<u64>| price.map(|price| price * times);
                let price = Price { input: dearer(PRICE.input), output: dearer(PRICE.output), ..PRICE };
                open(run, reason, Some(price).filter(|_| world.draw("priced", n, 9) != 0));
            }
            Some(Action::Send { step, attempt, .. }) => {
                let id = step * 1_000 + u64::from(attempt) * 10 + u64::from(run.state.epoch().unwrap().n) % 10;
                if world.draw("damaged", id, 12) == 0 && run.state.epoch().unwrap().reason != EpochReason::Restored {
                    run.append(EpochDue { reason: Some(EpochReason::Restored), by: stele_core::By("fold".into()) });
                    continue;
                }
                if !may_send_again(&run.state) {
                    run.append(partial_answer(&run.state, attempt, "", None));
                    continue;
                }
                send(run, attempt);
                end(run, world, id, attempt);
            }
            Some(_) => run.step(world),
        }
    }
    panic!("no end: {:?}", owed(&run.state));
}

fn check(run: &Run, limits: TurnLimits) -> Result<(), TestCaseError> {
    let maximum = limits.cost.unwrap();
    let mut state = State::new();
    for record in &run.log {
        state.fold(record);
        if let Event::RequestSent(_) = record.event {
            match (state.cost_at_most(), bound(&state)) {
                (Some(spent), Some(next)) => prop_assert!(spent.0 + next.0 <= maximum.0, "{} + {}", spent.0, next.0),
                unknown => prop_assert!(limits.allow_unpriced, "{unknown:?}"),
            }
        }
        if !limits.allow_unpriced {
            prop_assert!(state.cost_at_most().is_none_or(|spent| spent <= maximum));
        }
    }
    prop_assert!(state.turn().is_none());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_request_is_sent_that_could_pass_the_limit(seed: u64, answers in 0_u64..8, allow_unpriced: bool) {
        let world = World { seed };
        let limits = TurnLimits { cost: Some(Micros(answers * LONGEST)), allow_unpriced, ..TurnLimits::default() };
        let mut run = Run::new();
        for _ in 0..2 {
            prompt(&mut run, limits);
            drive(&mut run, world);
        }
        check(&run, limits)?;
    }

    #[test]
    fn a_driver_that_takes_over_sends_nothing_that_could_pass_the_limit(seed: u64, answers in 1_u64..6, at: prop::sample::Index) {
        let world = World { seed };
        let limits = TurnLimits { cost: Some(Micros(answers * LONGEST)), ..TurnLimits::default() };
        let mut whole = Run::new();
        prompt(&mut whole, limits);
        drive(&mut whole, world);
        let mut taken_over = Run::resumed(&whole.log[..=at.index(whole.log.len())]);
        drive(&mut taken_over, world);
        check(&taken_over, limits)?;
    }
}

/// A turn under a limit of so many tenths of the longest answer whose first request failed so.
fn failed(tenths: u64, failure: Failure) -> Run {
    let mut run = Run::new();
    let cost = Some(Micros(LONGEST * tenths / 10));
    prompt(&mut run, TurnLimits { cost, ..TurnLimits::default() });
    while owed(&run.state) != [Action::Compose { reason: EpochReason::Initial }] {
        run.step(World { seed: 1 });
    }
    open(&mut run, EpochReason::Initial, Some(PRICE));
    run.step(World { seed: 1 });
    send(&mut run, 1);
    run.append(RequestFailed { attempt: 1, failure });
    run
}

fn overloaded(usage: Option<Usage>) -> Failure {
    Failure { output: true, usage, ..Failure::new(FailureCode::Overloaded, "too busy") }
}

fn ended(mut run: Run) -> EndReason {
    let sent = |run: &Run| run.log.iter().filter(|record| matches!(record.event, Event::RequestSent(_))).count();
    drive(&mut run, World { seed: 1 });
    assert_eq!(sent(&run), 1, "nothing more is sent");
    run.state.last_end().cloned().unwrap()
}

#[test]
fn another_try_that_could_pass_the_limit_ends_the_turn_with_it() {
    let output = |tokens| Some(Usage { fresh: Some(10), output: Some(tokens), ..Usage::default() });
    let run = failed(25, overloaded(output(100)));
    assert_eq!(owed(&run.state), [Action::Backoff { step: 1, attempt: 1 }], "there is room for one more");
    let EndReason::Limit(reached) = ended(failed(25, overloaded(output(150)))) else { panic!("no limit") };
    assert_eq!((reached.which, reached.maximum), (LimitKind::Cost, LONGEST * 5 / 2));
    assert!(reached.observed > reached.maximum);
}

#[test]
fn a_try_of_unknown_cost_counts_with_the_most_it_can_have_cost() {
    let run = failed(25, overloaded(None));
    assert_eq!((run.state.cost(), owed(&run.state)), (None, vec![Action::Backoff { step: 1, attempt: 1 }]));
    let EndReason::Limit(reached) = ended(failed(15, overloaded(None))) else { panic!("no limit") };
    assert_eq!(reached.which, LimitKind::Cost);
}

#[test]
fn what_was_counted_holds_without_a_new_header_and_for_no_other_model() {
    let mut run = failed(25, overloaded(Some(Usage { fresh: Some(1), output: Some(1), ..Usage::default() })));
    let all = run.state.prompt_bytes();
    assert_eq!(run.state.input_at_most(), 1);
    // The two bytes of the prompt were counted as one token.
    open(&mut run, EpochReason::Restored, Some(PRICE));
    assert_eq!(run.state.input_at_most(), all - 2 + 1);
    let Some(Event::EpochOpened(mut opened)) = run.log.last().map(|record| record.event.clone()) else { panic!() };
    (opened.n, opened.config.model) = (opened.n + 1, "another".into());
    run.append(opened);
    assert_eq!(run.state.input_at_most(), all);
}

#[test]
fn a_try_whose_end_nobody_saw_is_sent_again_only_within_the_limit() {
    for (tenths, sends) in [(25, 2), (15, 1)] {
        let whole = failed(tenths, overloaded(None));
        let sent = whole.log.iter().position(|record| matches!(record.event, Event::RequestSent(_))).unwrap();
        let mut run = Run::resumed(&whole.log[..=sent]);
        assert_eq!(may_send_again(&run.state), sends == 2);
        drive(&mut run, World { seed: 1 });
        let sent = run.log.iter().filter(|record| matches!(record.event, Event::RequestSent(_))).count();
        assert!(sent >= sends, "{sent}");
        if sends == 1 {
            assert_eq!(sent, 1);
            let end = run.state.last_end().unwrap();
            assert!(matches!(end, EndReason::Limit(reached) if reached.which == LimitKind::Cost), "{end:?}");
        }
    }
}

#[test]
fn a_failure_that_would_not_be_tried_again_is_what_ends_the_turn() {
    let usage = Some(Usage { fresh: Some(10), output: Some(250), ..Usage::default() });
    let refused = Failure { usage, ..Failure::new(FailureCode::Auth, "no") };
    assert!(matches!(ended(failed(25, refused)), EndReason::Failed { code, .. } if code == "provider.auth"));
}
