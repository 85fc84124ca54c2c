//! The text view: the model's words on standard output, what the agent does on standard error.

mod calls;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stele_core::{
    Account, ApprovalOutcome, Block, CallId, EndReason, Event, Millis, Mode, Record, Seq, SessionId, State, TodoItem,
    TodoStatus, Tool,
};
use stele_provider::Delta;
use stele_store::Store;

use super::answer::{Answer, Show};
use super::card::Depth;
use super::inert::{inert, one_line, shorten};
use super::money::{elapsed, short};
use super::quiet::Quiet;
use super::screen::Screen;
use super::wrap::hanging;
use crate::drive::OUTPUT_CLOSED;

pub use calls::ShownCall;

/// What is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Only the last answer of each turn, and errors.
    pub quiet: bool,
    /// The answer is not streamed: it has to be checked first.
    pub hold_answer: bool,
    /// What goes on while nothing else is written is shown in one line that changes, or else in notes.
    pub progress: bool,
    /// How much of calls and results.
    pub depth: Depth,
}

/// The view.
pub struct TextView {
    pub screen: Screen,
    choice: Choice,
    tools: Vec<Arc<dyn Tool>>,
    pub folder: PathBuf,
    /// The highest mode that may be set.
    pub highest_mode: Mode,
    /// How changes are shown before they are made.
    pub previews: stele_tools::PreviewOptions,
    calls: BTreeMap<CallId, ShownCall>,
    answer: Answer,
    /// With little wanted: the last answer, once the turn is over.
    last_answer: String,
    /// The call whose title is the last line on standard error.
    last_title: Option<CallId>,
    route: Option<String>,
    /// The variable that holds a route's key, by route; nothing where a log is shown, whose keys nobody knows.
    pub keys: Option<BTreeMap<String, String>>,
    /// What the session cost so far.
    account: Account,
    /// A failed request whose note waits for what follows: the end of the turn says it itself.
    failure: Option<String>,
    /// Part of an answer had come when an attempt of this step failed: then it gets fewer.
    broke_off: bool,
    began: Instant,
    quiet: Quiet,
    steps: u64,
    tokens: u64,
    doing: String,
}

impl TextView {
    pub fn new(screen: Screen, choice: Choice, tools: Vec<Arc<dyn Tool>>, folder: PathBuf) -> Self {
        Self {
            screen,
            choice,
            tools,
            folder,
            highest_mode: Mode::Full,
            previews: stele_tools::PreviewOptions::default(),
            calls: BTreeMap::new(),
            answer: Answer::default(),
            last_answer: String::new(),
            last_title: None,
            route: None,
            keys: None,
            account: Account::default(),
            failure: None,
            broke_off: false,
            began: Instant::now(),
            quiet: Quiet::default(),
            steps: 0,
            tokens: 0,
            doing: String::new(),
        }
    }

    /// Makes the calls known that had no result before record `from`: those that are open, and those that
    /// opening the session closed.
    pub fn seed(&mut self, store: &Store, session: &SessionId, state: &State, from: Seq) {
        self.route = state.model().map(|model| model.route.clone());
        self.account = Account::default();
        let Ok(records) = crate::feed::records(store, session) else { return };
        for logged in records.map_while(|logged| logged.ok().filter(|logged| logged.record.seq < from)) {
            self.account.fold(&logged.record);
            match &logged.record.event {
                Event::ToolCalled(called) => self.called(called),
                Event::ToolGated(gated) => {
                    if let Some(call) = self.calls.get_mut(&gated.call) {
                        call.gated = Some(gated.clone());
                    }
                }
                Event::ToolResult(result) => drop(self.calls.remove(&result.call)),
                Event::TurnEnded(_) => self.calls.clear(),
                _ => {}
            }
        }
    }

    /// A line that is shown even when little is wanted.
    pub fn warn(&mut self, text: &str) {
        self.last_title = None;
        self.screen.note(text);
    }

    fn note(&mut self, text: &str) {
        if !self.choice.quiet {
            self.warn(text);
        }
    }

    /// Something beside the session is not as it should be.
    pub fn warning(&mut self, text: &str) {
        self.screen.end_line();
        let line = hanging(&format!("! {}", one_line(text)), self.screen.note_columns(), 2);
        let line = self.screen.style.yellow(&line);
        self.warn(&line);
    }

    /// A few words of Stele's own, broken at spaces.
    pub fn say(&mut self, text: &str) {
        let text = hanging(text, self.screen.note_columns(), 2);
        self.warn(&text);
    }

    /// A dim note, unless little is wanted.
    pub fn aside(&mut self, text: &str) {
        let text = hanging(text, self.screen.note_columns(), 2);
        self.note(&self.screen.style.dim(&text));
    }

    /// A warning, where little is wanted not at all.
    pub fn remark(&mut self, text: &str) {
        if !self.choice.quiet {
            self.warning(text);
        }
    }

    /// A piece of an answer.
    pub fn delta(&mut self, step: u64, attempt: u32, delta: &Delta) {
        match delta {
            Delta::Text(text) if !self.choice.hold_answer && !self.choice.quiet => {
                self.quiet.broken();
                if let Some(show) = self.answer.piece(step, attempt, text) {
                    self.show(show);
                }
            }
            Delta::Text(_) => {}
            Delta::Reasoning(_) => self.doing = "thinking".to_owned(),
            Delta::CallStarted { name, .. } => self.doing = format!("writing a call of {}", one_line(name)),
            Delta::CallArguments { .. } | Delta::Usage(_) => {}
        }
    }

    /// A tool's body printed something.
    pub fn output(&mut self, call: CallId, text: &str) {
        if let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) {
            let title = self.calls.get(&call).map(|call| call.title.clone()).unwrap_or_default();
            self.doing = format!("{}: {}", shorten(&title, 30), shorten(one_line(line).trim(), 40));
        }
    }

    /// Notices were lost; the records among them follow.
    pub fn lag(&mut self) {
        self.answer.fell_behind();
    }

    fn show(&mut self, show: Show) {
        match show {
            Show::More(text) => self.screen.answer(&text),
            Show::Anew(text) => {
                let note = self.screen.style.yellow("! that attempt broke off; the answer begins again");
                self.screen.end_line();
                self.warn(&note);
                self.screen.answer(&text);
            }
        }
    }

    /// The next attempt is due after some time.
    pub fn waits(&mut self, time: Millis, attempt: u32) {
        let wait = elapsed(Duration::from_millis(time.0.max(0).unsigned_abs()));
        let of = stele_core::limits::ATTEMPTS.default.max(u64::from(attempt));
        let of = if self.broke_off { String::new() } else { format!(" of {of}") };
        let line = self.screen.style.yellow(&format!("! trying again in {wait} (attempt {attempt}{of})"));
        self.note(&line);
    }

    /// A record was committed.
    pub fn record(&mut self, record: &Record) {
        let style = self.screen.style;
        self.quiet.broken();
        self.account.fold(record);
        let follows = match &record.event {
            Event::TurnEnded(ended) if matches!(ended.reason, EndReason::Failed { .. }) => {
                self.failure = None;
                false
            }
            Event::TurnEnded(_) | Event::RequestRetried(_) => true,
            _ => false,
        };
        if let Some(failure) = self.failure.take_if(|_| follows) {
            self.note(&failure);
        }
        match &record.event {
            Event::SessionMoved(moved) => {
                self.folder = PathBuf::from(&moved.cwd);
                self.note(&style.yellow(&format!("! this session goes on in {}", one_line(&moved.cwd))));
            }
            Event::ModelSet(set) => self.route = Some(set.route.clone()),
            Event::TurnStarted(_) => self.began = Instant::now(),
            Event::StepStarted(_) => {
                self.steps += 1;
                self.broke_off = false;
                "waiting for the model".clone_into(&mut self.doing);
            }
            Event::AssistantMessage(message) => {
                let texts = message.content.iter().filter_map(|block| match block {
                    Block::Text { text, .. } => Some(text.as_str()),
                    _ => None,
                });
                let text: String = texts.collect();
                if self.choice.quiet {
                    self.last_answer = text;
                } else if !self.choice.hold_answer {
                    let show = self.answer.whole(record.step.unwrap_or(0), &text);
                    self.show(show);
                    self.screen.end_line();
                }
                self.tokens = self.tokens.saturating_add(message.usage.and_then(|usage| usage.context()).unwrap_or(0));
            }
            Event::RequestFailed(failed) => {
                let code = failed.failure.code.code();
                let message = one_line(failed.failure.message.as_str());
                let message = message.strip_prefix(code).map_or(message.as_str(), |rest| rest.trim_start_matches(": "));
                self.screen.end_line();
                self.broke_off |= failed.failure.output;
                let line = format!("! {code}: {}", shorten(message, 300));
                self.failure = Some(style.yellow(&hanging(&line, self.screen.note_columns(), 2)));
            }
            Event::CapsSet(set) => {
                // It was no failure: the request goes again at once.
                self.failure = None;
                let names: Vec<_> = set.dropped.iter().map(|field| field.name()).collect();
                let names = names.join(", ");
                self.note(&style.dim(&format!("· this endpoint does not take {names}; sent again without")));
            }
            Event::RequestRetried(retried) => {
                self.waits(Millis(retried.at.0 - record.ts.0), retried.attempt);
            }
            Event::PrefixBroken(broken) => self.note(&style.yellow(&format!(
                "! the prompt's prefix changed at item {} ({}); this is a defect, please report it",
                broken.item,
                one_line(&broken.segment)
            ))),
            Event::ImportDamaged(damaged) => {
                self.note(&style.yellow(&format!("! record {}: {}", record.seq, one_line(&damaged.what))));
            }
            Event::ToolCalled(called) => {
                // What was said before a call is no answer.
                self.last_answer.clear();
                self.called(called);
            }
            Event::ToolGated(gated) => self.gated(gated),
            Event::ApprovalDecided(decided) => match &decided.outcome {
                ApprovalOutcome::Unanswered => self.unanswered(decided.call),
                ApprovalOutcome::Reject { reason } => self.rejected(decided.call, &decided.by, reason),
                ApprovalOutcome::Once | ApprovalOutcome::Always { .. } => {}
            },
            Event::ToolStarted(started) => self.started(started.call),
            Event::ToolResult(result) => self.result(result),
            Event::TodoSet(set) => self.todo(&set.items),
            Event::TurnEnded(ended) => self.ended(&ended.reason),
            _ => {}
        }
    }

    fn todo(&mut self, items: &[TodoItem]) {
        let style = self.screen.style;
        let lines: Vec<String> = items
            .iter()
            .map(|item| {
                let text = shorten(&one_line(&item.text), 70);
                match item.status {
                    TodoStatus::Done => format!("    {} {}", style.green("[x]"), style.dim(&text)),
                    TodoStatus::InProgress => format!("    {} {text}", style.yellow("[>]")),
                    TodoStatus::Pending => format!("    [ ] {text}"),
                }
            })
            .collect();
        if !lines.is_empty() {
            self.note(&lines.join("\n"));
        }
    }

    fn ended(&mut self, reason: &EndReason) {
        let style = self.screen.style;
        self.screen.clear_progress();
        self.rest();
        let answer = std::mem::take(&mut self.last_answer);
        if !self.choice.hold_answer && !answer.is_empty() {
            self.screen.answer(&inert(&answer));
            self.screen.end_line();
        }
        let line = match reason {
            EndReason::Completed => return,
            EndReason::Aborted { by } if by.0 == OUTPUT_CLOSED => return,
            EndReason::Failed { code, message } => {
                let message = one_line(message);
                let message =
                    message.strip_prefix(code.as_str()).map_or(message.as_str(), |rest| rest.trim_start_matches(": "));
                let message = if code == "provider.auth" { self.with_key(message) } else { message.to_owned() };
                let line = format!("✗ failed: {code}: {message}");
                self.warn(&style.red(&hanging(&line, self.screen.note_columns(), 2)));
                if let Some(advice) = crate::error::advice(code) {
                    self.warn(&format!("  {advice}"));
                }
                return;
            }
            EndReason::Aborted { by } if by.0 == "person:cli" => "■ stopped by you".to_owned(),
            EndReason::Aborted { by } => format!("■ stopped by {}", one_line(&by.0)),
            EndReason::Limit(reached) => {
                format!(
                    "■ limit reached: {}",
                    super::summary::reached(reached, self.account.cost(), self.account.at_most())
                )
            }
            EndReason::MaxOutput => "■ the answer was cut at the model's maximum of output tokens".to_owned(),
            EndReason::Interrupted => "■ the turn before was left open and is closed now".to_owned(),
        };
        self.warn(&style.yellow(&line));
    }

    /// What a server said, and which key it refused.
    fn with_key(&self, message: &str) -> String {
        let Some(route) = &self.route else { return message.to_owned() };
        let key = match self.keys.as_ref().map(|keys| keys.get(route)) {
            Some(Some(variable)) => format!(", key in {variable}"),
            Some(None) => ", which was given no key".to_owned(),
            None => String::new(),
        };
        let whose = format!("route {}{key})", one_line(route));
        match message.strip_suffix(')') {
            Some(open) => format!("{open}; {whose}"),
            None => format!("{message} ({whose}"),
        }
    }

    /// True when what goes on may be shown now.
    pub fn ticks(&self) -> bool {
        if self.choice.progress { self.screen.shows_progress() } else { !self.screen.is_line_open() }
    }

    /// Shows what goes on.
    pub fn tick(&mut self) {
        if self.choice.quiet || self.doing.is_empty() {
            return;
        }
        if !self.choice.progress {
            if let Some(time) = self.quiet.is_long() {
                let note = self.screen.style.dim(&format!("· {} · {}", elapsed(time), self.doing));
                self.warn(&note);
            }
            return;
        }
        let line = format!(
            "step {} · {} tokens · {} · {}",
            self.steps,
            short(self.tokens),
            elapsed(self.began.elapsed()),
            self.doing
        );
        self.screen.progress(&line);
    }
}
