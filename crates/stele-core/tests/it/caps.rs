//! Optional fields that an endpoint refuses.

use stele_core::{
    Action, BodyDigest, CapsSet, Config, EndReason, Event, Failure, FailureCode, Hash, OptionalField, Parameters,
    Phase, PromptDigest, Purpose, RequestFailed, RequestSent, Target, Wire, limits, owed,
};

use crate::world::{Run, World, config};

/// Goes on until a request is under way; false when the turn is over first.
fn send(run: &mut Run) -> bool {
    loop {
        match owed(&run.state).into_iter().next() {
            Some(Action::Send { attempt, .. }) => {
                let body = BodyDigest { hash: Hash::of(b""), len: 0 };
                let prompt = PromptDigest { hash: Hash::of(b""), len: 0, items: 0, shared: 0 };
                run.append(RequestSent { purpose: Purpose::Main, attempt, body, prompt, marks: Vec::new() });
                return true;
            }
            Some(_) => run.step(World { seed: 1 }),
            None => return false,
        }
    }
}

/// A step whose request is under way.
fn sending() -> Run {
    let mut run = Run::new();
    run.prompt("go", Target::NextTurn);
    assert!(send(&mut run));
    run
}

fn refused(code: FailureCode, fields: &[OptionalField]) -> Failure {
    Failure { refused: fields.to_vec(), ..Failure::new(code, "unknown field") }
}

fn fail(run: &mut Run, failure: Failure) {
    let Phase::Sending { attempt } = run.state.step().unwrap().phase else { panic!("nothing is under way") };
    run.append(RequestFailed { attempt, failure });
}

#[test]
fn what_is_refused_is_dropped_and_the_request_is_due_at_once() {
    let mut run = sending();
    let sent = run.state.epoch().unwrap().config.optional_fields();
    assert_eq!(sent, [OptionalField::StreamOptions]);
    let surface = run.state.messages(0);
    fail(&mut run, refused(FailureCode::InvalidRequest, &sent));
    let [Action::Append(event)] = &owed(&run.state)[..] else { panic!("{:?}", owed(&run.state)) };
    assert_eq!(*event, CapsSet { fields: Vec::new(), dropped: sent }.into());
    run.append(event.clone());
    let step = run.state.step().unwrap();
    assert_eq!((step.failed, step.failed_after_output), (0, 0), "it is none of the tries");
    let now = run.log.last().unwrap().ts;
    assert_eq!(step.phase, Phase::Backoff { attempt: 2, at: now });
    assert_eq!(run.state.epoch().unwrap().config.optional_fields(), []);
    assert_eq!(run.state.messages(0), surface);
    // All the tries that there are for other reasons are left.
    let mut tries = 0;
    while send(&mut run) {
        tries += 1;
        fail(&mut run, Failure::new(FailureCode::Server, "busy"));
    }
    assert_eq!(tries, limits::ATTEMPTS.default);
}

#[test]
fn a_refusal_of_what_was_not_sent_is_an_ordinary_failure() {
    for failure in [
        refused(FailureCode::InvalidRequest, &[OptionalField::CacheControl]),
        refused(FailureCode::InvalidRequest, &[]),
        refused(FailureCode::Auth, &[OptionalField::StreamOptions]),
        Failure { output: true, ..refused(FailureCode::InvalidRequest, &[OptionalField::StreamOptions]) },
    ] {
        let mut run = sending();
        fail(&mut run, failure.clone());
        run.drive(World { seed: 1 });
        assert!(!run.log.iter().any(|record| matches!(record.event, Event::CapsSet(_))), "{failure:?}");
        assert!(matches!(run.state.last_end(), Some(EndReason::Failed { .. })), "{failure:?}");
    }
}

#[test]
fn a_configuration_that_was_logged_before_has_every_field() {
    let json = serde_json::to_value(config()).unwrap();
    assert_eq!(json.get("withheld"), None);
    let read: stele_core::Config = serde_json::from_value(json).unwrap();
    assert_eq!(read, config());
}

#[test]
fn encrypted_reasoning_is_asked_for_always_and_in_logs_of_before_with_an_effort() {
    let asks = |derive_rev, effort: Option<&str>| {
        let parameters = Parameters { effort: effort.map(str::to_owned), ..Parameters::default() };
        let config = Config { wire: Wire::OpenaiResponses, derive_rev, parameters, ..config() };
        config.sends(OptionalField::Include)
    };
    assert_eq!([asks(3, None), asks(3, Some("low"))], [true, true]);
    assert_eq!([asks(2, None), asks(2, Some("low"))], [false, true]);
}
