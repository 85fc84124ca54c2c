//! The timeline: a pure fold of events, O(1) each, without prompts, arguments, results or free text.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    Account, Block, CallId, Coverage, EndReason, Event, LimitReached, Micros, Millis, Record, Reuse, Stop, Usage,
    Verdict,
};

/// Version of the timeline's shape.
pub const TIMELINE_SCHEMA: u32 = 1;
/// Entries that are kept; later ones are counted.
const MOST_ENTRIES: usize = 10_000;

/// What happened in a session, as steps and sums.
#[derive(Clone, Debug, Serialize)]
pub struct Timeline {
    /// Version of this shape.
    pub schema: u32,
    /// Where the session stands.
    pub status: Status,
    /// How the last turn ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<EndReason>,
    /// Tokens reported.
    pub usage: Usage,
    /// For how many attempts usage is known.
    pub coverage: Coverage,
    /// Share of the input that was read from the provider's cache; absent when unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_rate: Option<f64>,
    /// Cost; absent when some of it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Micros>,
    /// Results that were pointed at instead of sent again: no part of the provider's cache.
    #[serde(skip_serializing_if = "Reuse::is_none")]
    pub local_reuse: Reuse,
    /// What happened, in order.
    pub steps: Vec<Entry>,
    /// Entries that did not fit.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// The turns.
    pub turns: Vec<TurnSums>,
    /// The limit that ended the last turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exhaustion: Option<LimitReached>,
    #[serde(skip)]
    open: Open,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the shape serde asks for
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What is not closed yet, by its place in the list.
#[derive(Clone, Debug, Default)]
struct Open {
    model: Option<usize>,
    calls: BTreeMap<CallId, usize>,
    account: Account,
    /// Of the last turn alone.
    of_turn: Account,
}

/// One line of the timeline.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// What kind of thing it is.
    pub kind: EntryKind,
    /// Name: the tool, the model, the reason of an epoch.
    pub name: String,
    /// How it went.
    pub status: Status,
    /// When it began.
    pub at: Millis,
    /// How long it took, in milliseconds; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Turn, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// Step, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The call, of a tool or an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// HTTP tries, of a model step.
    #[serde(skip_serializing_if = "is_zero")]
    pub attempts: u64,
    /// Tokens, of a model step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why the model stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// The stable code of a failure or refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// What kind of thing an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A request that was answered, or not.
    Model,
    /// A tool call.
    Tool,
    /// A question to a person.
    Approval,
    /// A failed attempt that was tried again.
    Retry,
    /// A declared cut.
    Epoch,
}

/// How something went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It runs.
    Running,
    /// It did what was asked.
    Succeeded,
    /// It did not.
    Failed,
    /// It was refused.
    Denied,
    /// It was stopped.
    Aborted,
}

/// Sums of one turn. Steps, attempts and executions are never mixed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TurnSums {
    /// Its number, from 1.
    pub turn: u64,
    /// Steps: requests that were answered.
    pub steps: u64,
    /// HTTP tries.
    pub attempts: u64,
    /// Tool bodies run.
    pub executions: u64,
    /// Tokens reported.
    pub usage: Usage,
    /// For how many attempts usage is known.
    pub coverage: Coverage,
    /// Share of the input that was read from the cache; absent when unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_rate: Option<f64>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<EndReason>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            schema: TIMELINE_SCHEMA,
            status: Status::Succeeded,
            stop: None,
            usage: Usage::default(),
            coverage: Coverage::default(),
            hit_rate: None,
            cost: Some(Micros(0)),
            local_reuse: Reuse::default(),
            steps: Vec::new(),
            left_out: 0,
            turns: Vec::new(),
            exhaustion: None,
            open: Open::default(),
        }
    }
}

impl Timeline {
    /// Folds the next record in.
    pub fn fold(&mut self, record: &Record) {
        self.sum(record);
        self.local_reuse.fold(&record.event);
        match &record.event {
            Event::TurnStarted(_) => {
                self.status = Status::Running;
                self.open.of_turn = self.open.account.from_here();
                self.turns.push(TurnSums { turn: self.turns.len() as u64 + 1, ..TurnSums::default() });
            }
            Event::TurnEnded(ended) => self.end_turn(&ended.reason),
            Event::EpochOpened(opened) => {
                let name = format!("{} ({})", opened.reason.name(), opened.config.model);
                let mut entry = Entry::new(record, EntryKind::Epoch, &name);
                entry.close(record.ts, Status::Succeeded);
                self.push(entry);
            }
            Event::StepStarted(_) => {
                self.open.model = self.push(Entry::new(record, EntryKind::Model, "model"));
            }
            Event::RequestSent(_) => {
                if let Some(turn) = self.turns.last_mut() {
                    turn.attempts += 1;
                }
                if let Some(entry) = self.open.model.and_then(|at| self.steps.get_mut(at)) {
                    entry.attempts += 1;
                }
            }
            Event::RequestFailed(failed) => {
                let mut entry = Entry::new(record, EntryKind::Retry, "attempt");
                entry.code = Some(failed.failure.code.code().to_owned());
                entry.attempts = u64::from(failed.attempt);
                entry.close(record.ts, Status::Failed);
                self.push(entry);
            }
            Event::AssistantMessage(message) => {
                if let Some(turn) = self.turns.last_mut() {
                    turn.steps += u64::from(!message.interrupted);
                }
                let called = message.content.iter().any(|block| matches!(block, Block::Call { .. }));
                if let Some(entry) = self.open.model.take().and_then(|at| self.steps.get_mut(at)) {
                    entry.name.clone_from(&message.producer.model);
                    entry.usage = message.usage;
                    entry.stop = Some(if called { Stop::ToolCalls } else { message.stop.clone() });
                    entry.close(record.ts, if message.interrupted { Status::Failed } else { Status::Succeeded });
                }
            }
            Event::ToolCalled(called) => {
                let mut entry = Entry::new(record, EntryKind::Tool, &called.name);
                entry.call = Some(called.call);
                if let Some(at) = self.push(entry) {
                    self.open.calls.insert(called.call, at);
                }
            }
            Event::ToolGated(gated) if gated.decision == Verdict::Deny => {
                if let Some(entry) = self.call(gated.call) {
                    entry.status = Status::Denied;
                }
            }
            Event::ToolStarted(started) => {
                if let Some(turn) = self.turns.last_mut() {
                    turn.executions += 1;
                }
                if let Some(entry) = self.call(started.call) {
                    entry.at = record.ts;
                }
            }
            Event::ToolResult(result) => {
                let error = result.error.as_ref();
                if let Some(entry) = self.call(result.call) {
                    let refused = error.is_some_and(|error| error.class == crate::ToolErrorClass::Refused);
                    entry.code = error.map(|error| error.code.clone());
                    entry.close(
                        record.ts,
                        match error {
                            None => Status::Succeeded,
                            Some(_) if refused => Status::Denied,
                            Some(_) => Status::Failed,
                        },
                    );
                }
                self.open.calls.remove(&result.call);
            }
            Event::ApprovalDecided(decided) => {
                let mut entry = Entry::new(record, EntryKind::Approval, &decided.by.0);
                entry.call = Some(decided.call);
                let allowed =
                    matches!(decided.outcome, crate::ApprovalOutcome::Once | crate::ApprovalOutcome::Always { .. });
                entry.close(record.ts, if allowed { Status::Succeeded } else { Status::Denied });
                self.push(entry);
            }
            _ => {}
        }
    }

    fn sum(&mut self, record: &Record) {
        let Open { account, of_turn, .. } = &mut self.open;
        account.fold(record);
        of_turn.fold(record);
        if let Some(turn) = self.turns.last_mut() {
            (turn.usage, turn.coverage, turn.hit_rate) = (*of_turn.usage(), of_turn.coverage(), of_turn.hit_rate());
        }
        (self.usage, self.coverage, self.cost) = (*account.usage(), account.coverage(), account.cost());
        self.hit_rate = account.hit_rate();
    }

    fn end_turn(&mut self, reason: &EndReason) {
        self.status = match reason {
            EndReason::Completed => Status::Succeeded,
            EndReason::Aborted { .. } | EndReason::Interrupted => Status::Aborted,
            EndReason::Failed { .. } | EndReason::Limit(_) | EndReason::MaxOutput => Status::Failed,
        };
        self.exhaustion = match reason {
            EndReason::Limit(reached) => Some(reached.clone()),
            _ => None,
        };
        self.stop = Some(reason.clone());
        if let Some(turn) = self.turns.last_mut() {
            turn.stop = Some(reason.clone());
        }
        self.open.model = None;
        self.open.calls.clear();
    }

    fn push(&mut self, entry: Entry) -> Option<usize> {
        if self.steps.len() == MOST_ENTRIES {
            self.left_out += 1;
            return None;
        }
        self.steps.push(entry);
        Some(self.steps.len() - 1)
    }

    fn call(&mut self, call: CallId) -> Option<&mut Entry> {
        let at = *self.open.calls.get(&call)?;
        self.steps.get_mut(at)
    }
}

impl Entry {
    fn new(record: &Record, kind: EntryKind, name: &str) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            status: Status::Running,
            at: record.ts,
            duration_ms: None,
            turn: record.turn,
            step: record.step,
            call: None,
            attempts: 0,
            usage: None,
            stop: None,
            code: None,
        }
    }

    fn close(&mut self, at: Millis, status: Status) {
        self.duration_ms = u64::try_from(at.0 - self.at.0).ok();
        self.status = status;
    }
}
