//! Which prompts an endpoint may have in its cache, as the log tells.

use stele_core::{
    AssistantMessage, Block, BodyDigest, Config, EpochOpened, EpochReason, Event, Failure, FailureCode, Hash, Millis,
    PromptDigest, Purpose, Record, RequestFailed, RequestSent, State, StepEnded, StepStarted, Stop, TurnStarted, Usage,
    Wire,
};

use crate::world::{config, producer};

/// Folds events as a driver would append them.
struct Log(State);

impl Log {
    fn new(config: &Config) -> Self {
        let mut log = Self(State::new());
        log.append(TurnStarted { limits: Default::default() });
        log.open(config);
        log
    }

    fn append(&mut self, event: impl Into<Event>) {
        let record = Record::next(&self.0, Millis(1), event.into());
        self.0.fold(&record);
    }

    fn open(&mut self, config: &Config) {
        let n = self.0.epoch().map_or(1, |epoch| epoch.n + 1);
        let (reason, config) = (EpochReason::ModelChanged, Box::new(config.clone()));
        let (version, segments) = (String::new(), Vec::new());
        self.append(EpochOpened { n, reason, version, cost: None, segments, config, price: None, max_output: None });
    }

    /// Begins a step and sends its request, which is known by a letter.
    fn send(&mut self, prompt: &str) {
        if self.0.step().is_some() {
            self.append(StepEnded {});
        }
        self.append(StepStarted {});
        self.again(1, prompt);
    }

    fn again(&mut self, attempt: u32, prompt: &str) {
        let body = BodyDigest { hash: Hash::of(b""), len: 0 };
        self.append(RequestSent { purpose: Purpose::Main, attempt, body, prompt: digest(prompt), marks: Vec::new() });
    }

    fn answer(&mut self) {
        let content = vec![Block::Text { text: "so".into(), native: None }];
        let (usage, usage_raw, interrupted) = (None, None, false);
        let (producer, stop) = (producer(), Stop::End);
        self.append(AssistantMessage { attempt: 1, producer, content, stop, usage, usage_raw, interrupted });
    }

    fn fail(&mut self, output: bool, usage: Option<Usage>) {
        let failure = Failure { output, usage, ..Failure::new(FailureCode::Overloaded, "busy") };
        self.append(RequestFailed { attempt: 1, failure });
    }

    #[track_caller]
    fn ends_at(&self, prompts: &[&str]) {
        let expect: Vec<PromptDigest> = prompts.iter().map(|prompt| digest(prompt)).collect();
        assert_eq!(self.0.earlier_prompts(), expect);
    }
}

fn digest(prompt: &str) -> PromptDigest {
    let len = prompt.len() as u64;
    PromptDigest { hash: Hash::of(prompt.as_bytes()), len, items: len, shared: 0 }
}

fn of(derive_rev: u32, model: &str) -> Config {
    Config { derive_rev, model: model.into(), ..config() }
}

#[test]
fn a_request_that_failed_does_not_hide_the_one_that_was_answered() {
    let mut log = Log::new(&of(3, "m"));
    log.ends_at(&[]);
    log.send("a");
    log.ends_at(&[]);
    log.answer();
    log.send("ab");
    log.ends_at(&["a"]);
    log.fail(false, None);
    log.again(2, "ab");
    // A step's tries are marked alike.
    log.ends_at(&["a"]);
    log.fail(false, None);
    for prompt in ["abc", "abcd"] {
        log.send(prompt);
        log.fail(false, None);
    }
    log.append(StepEnded {});
    log.append(StepStarted {});
    log.ends_at(&["a", "abcd"]);
}

#[test]
fn what_began_to_be_answered_is_in_the_cache() {
    let told = Some(Usage { fresh: Some(7), ..Usage::default() });
    for (output, usage) in [(true, None), (false, told)] {
        let mut log = Log::new(&of(3, "m"));
        log.send("a");
        log.answer();
        log.send("ab");
        log.fail(output, usage);
        log.append(StepEnded {});
        log.append(StepStarted {});
        log.ends_at(&["ab"]);
    }
}

#[test]
fn logs_of_before_go_by_what_was_sent_last() {
    let mut log = Log::new(&of(2, "m"));
    log.send("a");
    log.answer();
    log.send("ab");
    log.fail(false, None);
    log.send("abc");
    log.answer();
    log.append(StepEnded {});
    log.append(StepStarted {});
    log.ends_at(&["abc"]);
    log.open(&of(2, "n"));
    log.open(&of(2, "m"));
    log.ends_at(&[]);
}

#[test]
fn what_one_endpoint_answered_is_in_no_others_cache() {
    let here = of(3, "m");
    let mut log = Log::new(&here);
    log.send("a");
    log.answer();
    log.append(StepEnded {});
    log.ends_at(&["a"]);
    let wire = if here.wire == Wire::Gemini { Wire::OpenaiChat } else { Wire::Gemini };
    let elsewhere = Config { base_url: "http://127.0.0.1:2".into(), ..here.clone() };
    for other in [of(3, "n"), elsewhere, Config { wire, ..here.clone() }] {
        log.open(&other);
        log.ends_at(&[]);
        log.open(&here);
        log.ends_at(&["a"]);
    }
}

#[test]
fn each_of_a_few_endpoints_keeps_what_it_answered_last() {
    let mut log = Log::new(&of(3, "m0"));
    for at in 0..10 {
        log.open(&of(3, &format!("m{at}")));
        log.ends_at(&[]);
        log.send(&format!("prompt {at}"));
        log.answer();
        log.append(StepEnded {});
    }
    for (at, known) in [(9, true), (2, true), (1, false), (0, false)] {
        log.open(&of(3, &format!("m{at}")));
        let prompt = format!("prompt {at}");
        let expect: &[&str] = if known { &[&prompt] } else { &[] };
        log.ends_at(expect);
    }
    assert!(log.0.answered_by(&of(3, "m9")).is_some_and(|answered| !answered.marked && answered.wire == config().wire));
}

#[test]
fn where_prompts_before_ended_is_remembered_with_their_last_use() {
    let mut log = Log::new(&of(3, "m"));
    for prompt in ["a", "ab", "abc"] {
        log.send(prompt);
        log.answer();
    }
    let ends = |log: &Log| {
        let answered = log.0.answered_by(&of(3, "m")).unwrap();
        answered.ends.iter().map(|(_, prompt)| *prompt).collect::<Vec<_>>()
    };
    assert_eq!(ends(&log), [digest("a"), digest("ab")]);
    // Another model's prompts are no part of it, nor what was sent under other parameters.
    log.open(&of(3, "n"));
    log.send("x");
    log.answer();
    log.open(&of(3, "m"));
    assert_eq!(ends(&log), [digest("a"), digest("ab")]);
    let mut thinking = of(3, "m");
    thinking.parameters.effort = Some("high".into());
    log.open(&thinking);
    log.send("abcd");
    log.answer();
    assert_eq!(ends(&log), []);
    for at in 0..100 {
        log.send(&format!("abcd{at}"));
        log.answer();
    }
    assert_eq!(ends(&log).len(), 64);
    assert_eq!(ends(&log).last(), Some(&digest("abcd98")));
}
