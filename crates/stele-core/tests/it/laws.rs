//! Laws of fold and owed over recorded logs.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use stele_core::{
    Action, Block, CallId, CallStage, CutReason, Effects, EndReason, EpochReason, Event, Failure, FailureCode,
    FileAction, FileMeta, Hash, Image, InboxRemoved, ItemRef, JobId, Message, Phase, ReadMeta, RemovedWhy, Replacement,
    RequestFailed, ResultMeta, Seq, Span, SpanRange, State, SurfaceReplaced, Target, ToolResult, TurnCancel, UserBlock,
    close, owed,
};

use crate::derive::assert_acceptable;
use crate::world::{Run, World, image};

fn recorded(seed: u64, prompts: usize) -> Run {
    let world = World { seed };
    let mut run = Run::new();
    for n in 0..prompts {
        run.prompt(&format!("prompt {n}"), Target::NextTurn);
        run.drive(world);
    }
    run
}

/// What a person does between turns.
#[derive(Clone, Copy, Debug)]
enum Move {
    Prompt,
    Notice,
    Undo,
    Redo,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one =
        prop_oneof![3 => Just(Move::Prompt), 2 => Just(Move::Notice), 2 => Just(Move::Undo), 2 => Just(Move::Redo)];
    proptest::collection::vec(one, 1..8)
}

fn moved(seed: u64, moves: &[Move]) -> Run {
    let mut run = recorded(seed, 1);
    for (n, one) in moves.iter().enumerate() {
        match one {
            Move::Prompt => run.prompt(&format!("prompt {n} of several"), Target::NextTurn),
            Move::Notice => run.notice(&format!("notice {n}"), None),
            Move::Undo => drop(run.undo()),
            Move::Redo => drop(run.redo()),
        }
        run.drive(World { seed });
    }
    run
}

fn kinds(run: &Run) -> Vec<&'static str> {
    run.log.iter().map(|record| record.event.kind()).collect()
}

/// True when a request was refused for an image.
fn repaired(run: &Run) -> bool {
    run.log
        .iter()
        .any(|record| matches!(&record.event, Event::SurfaceReplaced(replaced) if replaced.reason == CutReason::Repair))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_turn_ends_and_nothing_is_left_open(seed: u64) {
        let run = recorded(seed, 3);
        prop_assert!(run.state.turn().is_none());
        let ended = run.log.iter().filter(|record| matches!(record.event, Event::TurnEnded(_))).count();
        prop_assert_eq!(ended, 3);
    }

    #[test]
    fn a_driver_that_takes_over_at_any_commit_comes_to_the_same_end(seed: u64) {
        let whole = recorded(seed, 1);
        for &at in &whole.commits {
            let mut taken_over = Run::resumed(&whole.log[..at]);
            let unknown = taken_over.log.len() > at;
            taken_over.drive(World { seed });
            if unknown {
                // A body with effects had been started: the model is told, and the turn still ends.
                prop_assert!(taken_over.state.turn().is_none());
            } else {
                // What had been sent and not answered is sent again.
                let mut expected = kinds(&whole);
                if matches!(whole.log[at - 1].event, Event::RequestSent(_)) {
                    expected.insert(at, "request/sent");
                }
                if matches!(whole.log[at - 1].event, Event::ToolStarted(_)) {
                    expected.insert(at, "tool/started");
                }
                prop_assert_eq!(kinds(&taken_over), expected, "at {}", at);
            }
        }
    }

    #[test]
    fn any_prefix_folds_and_comes_to_an_end(seed: u64) {
        let whole = recorded(seed, 2);
        for at in 0..=whole.log.len() {
            let mut taken_over = Run::resumed(&whole.log[..at]);
            taken_over.drive(World { seed });
            prop_assert!(taken_over.state.turn().is_none());
            assert_acceptable(&taken_over.state.messages(0));
        }
    }

    #[test]
    fn within_an_epoch_each_request_extends_the_one_before(seed: u64) {
        let run = recorded(seed, 3);
        for pair in run.requests.windows(2) {
            if pair[0].0 == pair[1].0 {
                prop_assert!(pair[1].1.starts_with(&pair[0].1));
            }
        }
        for (_, messages) in &run.requests {
            assert_acceptable(messages);
        }
    }

    #[test]
    fn deriving_in_pieces_is_deriving_at_once(seed: u64) {
        let world = World { seed };
        let mut run = Run::new();
        let mut pieces = Vec::new();
        let mut done = 0;
        for n in 0..3 {
            run.prompt(&format!("prompt {n}"), Target::NextTurn);
            run.drive(world);
        }
        prop_assume!(!repaired(&run));
        let mut state = State::new();
        for record in &run.log {
            if matches!(record.event, Event::RequestSent(_)) && state.surface_len() > done {
                pieces.extend(state.messages(done));
                done = state.surface_len();
            }
            state.fold(record);
        }
        let whole = run.state.messages(0);
        prop_assert!(whole.starts_with(&pieces));
    }

    #[test]
    fn a_turn_taken_back_was_never_there_and_comes_back_whole(seed: u64, turns in 1_usize..4) {
        let mut run = recorded(seed, turns);
        let mut before = Vec::new();
        while !run.state.history().done().is_empty() {
            before.push((run.state.messages(0), run.state.prompt_bytes()));
            prop_assert!(run.undo());
            assert_acceptable(&run.state.messages(0));
        }
        prop_assert!(!run.undo());
        prop_assert_eq!(run.state.surface_len(), 0);
        for n in (0..before.len()).rev() {
            prop_assert!(run.redo());
            let now = (run.state.messages(0), run.state.prompt_bytes());
            prop_assert_eq!(&now, &before[n]);
        }
        prop_assert!(!run.redo());
        // What stands on the surface alone decides what is sent next.
        run.undo();
        run.prompt("another", Target::NextTurn);
        run.drive(World { seed });
        prop_assert!(!run.redo(), "a new turn ends what can be done again");
        // An image that was refused does not come back with an undo.
        prop_assume!(!repaired(&run));
        let straight = recorded(seed, turns - 1).state.messages(0);
        prop_assert!(run.state.messages(0).starts_with(&straight));
    }

    #[test]
    fn notices_outlast_their_turns_and_stand_where_they_stood_after_a_redo(
        seed: u64, turns in proptest::collection::vec((0_usize..3, proptest::option::of(0_usize..40)), 1..4)
    ) {
        let world = World { seed };
        let mut run = Run::new();
        let mut told = Vec::new();
        for (n, (before, within)) in turns.iter().enumerate() {
            for m in 0..*before {
                told.push(format!("notice {n}.{m}"));
                run.notice(&told[told.len() - 1], None);
            }
            run.prompt(&format!("prompt {n}"), Target::NextTurn);
            for _ in 0..within.unwrap_or_default() {
                run.step(world);
            }
            if within.is_some() {
                told.push(format!("notice {n} within"));
                run.notice(&told[told.len() - 1], None);
            }
            run.drive(world);
        }
        // One that came too late for the last turn waits for the next.
        run.prompt("the last", Target::NextTurn);
        run.drive(world);
        let mut before = Vec::new();
        while !run.state.history().done().is_empty() {
            before.push((run.state.messages(0), run.state.prompt_bytes()));
            run.undo();
            let left = texts(&run.state.messages(0));
            prop_assert_eq!(left.iter().filter(|text| text.starts_with("notice")).count(), told.len());
        }
        prop_assert_eq!(texts(&run.state.messages(0)), told);
        for before in before.iter().rev() {
            run.redo();
            prop_assert_eq!(&(run.state.messages(0), run.state.prompt_bytes()), before);
        }
    }

    #[test]
    fn the_laws_hold_over_cuts(seed: u64, moves in moves()) {
        let run = moved(seed, &moves);
        for pair in run.requests.windows(2) {
            if pair[0].0 == pair[1].0 {
                prop_assert!(pair[1].1.starts_with(&pair[0].1));
            }
        }
        // A cut is never followed by a request of the same epoch.
        let mut cut = false;
        for record in &run.log {
            match record.event {
                Event::SurfaceReplaced(_) => cut = true,
                Event::EpochOpened(_) => cut = false,
                Event::RequestSent(_) => prop_assert!(!cut),
                _ => {}
            }
        }
        for at in 0..=run.log.len() {
            let mut taken_over = Run::resumed(&run.log[..at]);
            taken_over.drive(World { seed });
            assert_acceptable(&taken_over.state.messages(0));
            let mut closed = Run::new();
            for record in &run.log[..at] {
                closed.state.fold(record);
            }
            for event in close(&closed.state, "half") {
                closed.append(event);
            }
            closed.undo();
            assert_acceptable(&closed.state.messages(0));
        }
    }

    #[test]
    fn any_cut_leaves_a_history_that_a_provider_takes(seed: u64, spans in proptest::collection::vec((0_u64..80, 0_u64..80, proptest::collection::vec(0_u64..80, 0..3)), 1..3)) {
        let mut run = recorded(seed, 2);
        let spans = spans.into_iter().map(|(first, last, with)| Span {
            range: Some(SpanRange { first: Seq(first), last: Seq(last) }),
            with: with.into_iter().map(|seq| Replacement::Back(ItemRef { seq: Seq(seq) })).collect(),
        });
        run.append(SurfaceReplaced { reason: CutReason::Undo, spans: spans.collect() });
        assert_acceptable(&run.state.messages(0));
        run.prompt("another", Target::NextTurn);
        run.drive(World { seed });
        assert_acceptable(&run.state.messages(0));
    }

    #[test]
    fn a_refused_image_is_noted_once_a_step_and_in_a_new_epoch(seed: u64) {
        let run = recorded(seed, 3);
        let mut state = State::new();
        let mut repairs = BTreeMap::new();
        for record in &run.log {
            let before = state.messages(0);
            state.fold(record);
            if let Event::SurfaceReplaced(_) = &record.event {
                let step = state.step().unwrap();
                *repairs.entry(step.number).or_insert(0) += 1;
                let waits = matches!(step.phase, Phase::Backoff { .. });
                prop_assert!(waits);
                let now = state.messages(0);
                let (was, is) = (images(&before), images(&now));
                prop_assert!(is.len() < was.len());
                let notes = |messages: &[Message]| format!("{messages:?}").matches("[image left out").count();
                prop_assert_eq!(notes(&now) - notes(&before), was.len() - is.len());
            }
        }
        prop_assert!(repairs.values().all(|count| *count == 1));
    }

    #[test]
    fn closing_at_any_prefix_leaves_a_history_that_can_go_on(seed: u64) {
        let whole = recorded(seed, 1);
        for at in 0..=whole.log.len() {
            let mut run = Run::new();
            for record in &whole.log[..at] {
                run.state.fold(record);
            }
            for event in close(&run.state, "half an ans") {
                run.append(event);
            }
            prop_assert!(run.state.turn().is_none());
            run.prompt("another", Target::NextTurn);
            run.drive(World { seed });
            assert_acceptable(&run.state.messages(0));
        }
    }

    #[test]
    fn a_cancelled_turn_ends_at_once_and_pairs_every_call(seed: u64, at in 0_usize..60) {
        let whole = recorded(seed, 1);
        let mut run = Run::new();
        for record in whole.log.iter().take(at) {
            run.state.fold(record);
        }
        prop_assume!(run.state.turn().is_some());
        run.append(TurnCancel { by: stele_core::By::person("test") });
        let requests = run.requests.len();
        run.drive(World { seed });
        prop_assert!(run.requests.len() <= requests + 1);
        prop_assert!(run.state.turn().is_none());
        assert_acceptable(&run.state.messages(0));
    }

    #[test]
    fn a_body_with_effects_never_runs_twice(seed: u64) {
        let whole = recorded(seed, 2);
        for at in 0..=whole.log.len() {
            let mut state = State::new();
            for record in &whole.log[..at] {
                state.fold(record);
            }
            let started: Vec<_> = state
                .step()
                .into_iter()
                .flat_map(|step| &step.calls)
                .filter(|call| call.stage == CallStage::Running && call.effects != Effects::None)
                .map(|call| call.call)
                .collect();
            let run = Run::resumed(&whole.log[..at]);
            for call in started {
                let told = run.log[at..].iter().any(|record| {
                    matches!(&record.event, Event::ToolResult(result) if result.call == call
                        && result.error.as_ref().is_some_and(|error| error.code == "tool.outcome_unknown"))
                });
                prop_assert!(told);
            }
        }
    }
}

/// What users say in a request.
fn texts(messages: &[Message]) -> Vec<String> {
    let users = messages.iter().filter_map(|message| match message {
        Message::User(blocks) => Some(blocks),
        Message::Assistant(_) => None,
    });
    let said = users.flatten().filter_map(|block| match block {
        UserBlock::Text(text) => Some(text.to_string()),
        UserBlock::Result { .. } => None,
    });
    said.collect()
}

/// The images that a request shows.
fn images(messages: &[Message]) -> Vec<&Image> {
    let users = messages.iter().filter_map(|message| match message {
        Message::User(blocks) => Some(blocks),
        Message::Assistant(_) => None,
    });
    let shown = users.flatten().filter_map(|block| match block {
        UserBlock::Result { images, .. } => Some(images),
        UserBlock::Text(_) => None,
    });
    shown.flatten().collect()
}

/// A session whose last request was refused with this message; its four images are in results 1 to 3.
fn refused(message: &str, status: u16) -> Run {
    let mut run = Run::new();
    run.prompt("look", Target::NextTurn);
    let blocks = (1..=3).map(|n| Block::Call { call: CallId(n), native: None }).collect();
    run.drive_to_request();
    run.answer_with(blocks);
    for n in 1..=3 {
        let images = if n == 2 { vec![image(20), image(21)] } else { vec![image(n)] };
        run.append(ToolResult {
            call: CallId(n),
            content: format!("picture {n}").into(),
            images,
            error: None,
            meta: Default::default(),
        });
    }
    run.drive_to_request();
    let failure = Failure { status: Some(status), ..Failure::new(FailureCode::InvalidRequest, message) };
    run.append(RequestFailed { attempt: 1, failure });
    run
}

#[track_caller]
fn check_repair(message: &str, status: u16, left: &[Image]) {
    let mut run = refused(message, status);
    let Some(Action::Append(cut)) = owed(&run.state).into_iter().next() else { panic!("{:?}", owed(&run.state)) };
    run.append(cut);
    let messages = run.state.messages(0);
    assert_eq!(images(&messages), left.iter().collect::<Vec<_>>(), "{message}");
    let Some(Action::Compose { reason }) = owed(&run.state).into_iter().next() else { panic!("no epoch") };
    assert_eq!(reason, EpochReason::Repair);
}

#[test]
fn the_image_that_the_server_names_is_the_one_that_goes() {
    let all = [image(1), image(20), image(21), image(3)];
    let without = |at: &[usize]| -> Vec<Image> {
        all.iter().enumerate().filter(|(n, _)| !at.contains(n)).map(|(_, image)| image.clone()).collect()
    };
    check_repair("messages.2.content.0.tool_result.content.1.image.source.base64: too large", 400, &without(&[0]));
    check_repair("messages.2.content.1.tool_result.content.2.image.source: no", 400, &without(&[2]));
    check_repair("messages.2.content.1.image.source.base64.data: At least one …", 400, &without(&[1, 2]));
    // Nothing says which, or what is named is none.
    check_repair("Invalid image data (field input)", 400, &[]);
    check_repair("messages.9.content.0.image.source: too large", 400, &[]);
    check_repair("Unable to process input image", 400, &[]);
    // A request of too many bytes keeps what was asked for last.
    check_repair("request too large", 413, &without(&[0, 1, 2]));
}

#[test]
fn a_refusal_that_names_no_image_ends_the_turn() {
    let mut run = refused("temperature: Extra inputs are not permitted", 400);
    run.drive(World { seed: 1 });
    assert!(!kinds(&run).contains(&"surface/replaced"));
    assert!(matches!(run.state.last_end(), Some(EndReason::Failed { code, .. }) if code == "provider.invalid_request"));
}

#[test]
fn what_was_shown_of_a_file_is_known_while_it_is_on_the_surface() {
    let mut run = Run::new();
    let read = |run: &mut Run, n: u64, unchanged: bool| {
        run.prompt("read it", Target::NextTurn);
        run.drive_to_request();
        run.answer_with(vec![Block::Call { call: CallId(n), native: None }]);
        let file = FileMeta {
            path: "/w/a".into(),
            action: FileAction::Read,
            hash: Some(Hash::of(b"x")),
            added: 0,
            removed: 0,
            diff: None,
            part: None,
        };
        let read = ReadMeta { offset: 1, lines: 9, total: 9, unchanged, saved: 0 };
        let meta = ResultMeta { files: vec![file], read: Some(read), ..ResultMeta::default() };
        run.append(ToolResult { call: CallId(n), content: "1→x".into(), images: Vec::new(), error: None, meta });
        run.drive_to_request();
        run.answer_with(vec![Block::Text { text: "done".into(), native: None }]);
        run.drive(World { seed: 1 });
    };
    let shown = |run: &Run| run.state.shown_files().get(Path::new("/w/a")).map(|shown| (shown.lines, shown.pointed));
    read(&mut run, 1, false);
    assert_eq!(shown(&run), Some((9, false)));
    read(&mut run, 2, true);
    assert_eq!(shown(&run), Some((9, true)));
    run.undo();
    assert_eq!(shown(&run), Some((9, false)), "the pointer is gone, the lines are not");
    run.undo();
    assert_eq!(shown(&run), None, "the lines are gone");
    run.redo();
    run.redo();
    assert_eq!(shown(&run), Some((9, true)));
    // A pointer whose lines were cut points at nothing.
    let first = run.log.iter().find(|record| matches!(record.event, Event::ToolResult(_))).unwrap().seq;
    let span = Span { range: Some(SpanRange { first, last: first }), with: Vec::new() };
    run.append(SurfaceReplaced { reason: CutReason::Undo, spans: vec![span] });
    assert_eq!(shown(&run), None);
}

/// Logs of before a file's part was noted have the window of a read beside it alone.
#[test]
fn a_window_of_an_older_log_is_no_whole_file() {
    let mut run = Run::new();
    run.prompt("read it", Target::NextTurn);
    run.drive_to_request();
    run.answer_with(vec![Block::Call { call: CallId(1), native: None }]);
    let meta = r#"{"files":[{"path":"/w/a","action":"read","hash":"HASH"}],"read":{"offset":2,"lines":3,"total":9}}"#;
    let meta = meta.replace("HASH", &Hash::of(b"x").to_string());
    let meta: ResultMeta = serde_json::from_str(&meta).unwrap();
    run.append(ToolResult { call: CallId(1), content: "2→x".into(), images: Vec::new(), error: None, meta });
    let unseen = |run: &Run| run.state.read_files()[Path::new("/w/a")].unseen().to_vec();
    assert_eq!(unseen(&run), [1..=1, 5..=9]);
}

/// Answers what is asked, without a call.
fn turn(run: &mut Run, prompt: &str) {
    run.prompt(prompt, Target::NextTurn);
    run.drive_to_request();
    run.answer_with(vec![Block::Text { text: "done".into(), native: None }]);
    run.drive(World { seed: 1 });
}

#[test]
fn what_is_told_of_a_job_stays_as_long_as_the_job_was_begun() {
    let mut run = Run::new();
    turn(&mut run, "first");
    // The first turn began job 1; its end is told in the second one, that of job 2 as well.
    run.notice("j1 ended", Some(JobId(1)));
    turn(&mut run, "second");
    run.prompt("third", Target::NextTurn);
    run.drive_to_request();
    run.notice("j2 ended", Some(JobId(2)));
    run.answer_with(vec![Block::Call { call: CallId(1), native: None }]);
    run.drive_to_request();
    run.answer_with(vec![Block::Text { text: "done".into(), native: None }]);
    run.drive(World { seed: 1 });
    assert_eq!(texts(&run.state.messages(0)), ["first", "j1 ended", "second", "third", "j2 ended"]);
    let names: Vec<&str> = run.state.history().done().iter().map(|turn| turn.title.as_str()).collect();
    assert_eq!(names, ["first", "second", "third"]);
    run.undo();
    assert_eq!(texts(&run.state.messages(0)), ["first", "j1 ended", "second"], "job 2 was begun in the third turn");
    run.undo();
    assert_eq!(texts(&run.state.messages(0)), ["first", "j1 ended"]);
    run.undo();
    assert_eq!(run.state.surface_len(), 0);
    for _ in 0..3 {
        run.redo();
    }
    assert_eq!(texts(&run.state.messages(0)), ["first", "j1 ended", "second", "third", "j2 ended"]);
}

#[test]
fn a_notice_joins_a_step_that_comes_anyway_and_brings_none() {
    let mut run = Run::new();
    run.prompt("first", Target::NextTurn);
    run.drive_to_request();
    run.notice("for the next step", None);
    run.answer_with(vec![Block::Call { call: CallId(1), native: None }]);
    run.drive_to_request();
    assert_eq!(texts(&run.state.messages(0)), ["first", "for the next step"]);
    run.notice("for the next prompt", None);
    run.answer_with(vec![Block::Text { text: "done".into(), native: None }]);
    run.drive(World { seed: 1 });
    assert_eq!(run.state.last_end(), Some(&EndReason::Completed));
    assert_eq!(run.state.counters().attempts, 2);
    assert_eq!(run.state.last_text(), "done");
    run.prompt("second", Target::NextTurn);
    run.drive_to_request();
    assert_eq!(texts(&run.state.messages(0)), ["first", "for the next step", "for the next prompt", "second"]);
    // A word of a person does bring a step, and the notice comes with it.
    run.notice("with the steering", None);
    run.prompt("mind this", Target::NextStep);
    run.answer_with(vec![Block::Text { text: "done".into(), native: None }]);
    run.drive_to_request();
    assert_eq!(texts(&run.state.messages(0))[4..], ["with the steering", "mind this"]);
}

#[test]
fn a_turn_that_lost_its_prompt_ends_and_its_notices_wait() {
    let mut run = Run::new();
    run.prompt("never mind", Target::NextTurn);
    run.notice("later", None);
    run.step(World { seed: 1 });
    assert!(run.state.turn().is_some());
    let item = run.state.inbox().next().unwrap().queued.item;
    run.append(InboxRemoved { item, why: RemovedWhy::Cancelled });
    run.drive(World { seed: 1 });
    assert_eq!(run.state.last_end(), Some(&EndReason::Completed));
    assert_eq!((run.state.counters().attempts, run.state.inbox().count()), (0, 1));
}

#[test]
fn steering_joins_the_open_turn_at_its_next_step() {
    let mut run = Run::new();
    run.prompt("first", Target::NextTurn);
    run.prompt("and mind this", Target::NextStep);
    run.drive(World { seed: 1 });
    let turns = run.log.iter().filter(|record| matches!(record.event, Event::TurnStarted(_))).count();
    assert_eq!(turns, 1);
}
