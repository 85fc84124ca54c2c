//! What folding a log gives: everything the next decision and the next request need.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use crate::cut::{Mark, Origin, Showing};
use crate::limits::TurnLimits;
use crate::repeats::Repeats;
use crate::surface::{CallRecord, SurfaceItem, derive, derive_each};
use crate::{
    Account, ApprovalOutcome, Block, CallId, Config, Coverage, CutReason, Effects, EndReason, EpochOpened, EpochReason,
    Event, Failure, FileAction, FileMeta, Header, History, ItemId, JobId, JobMeta, JobStatus, Message, Micros, Millis,
    Mode, ModelSet, PrefaceBlock, Price, Producer, PromptDigest, ReadFiles, ReadMeta, Record, Request, Segment,
    SegmentDigest, Seq, SessionStarted, Shown, ShownFiles, Source, Stop, SystemBlock, TodoItem, ToolErrorClass,
    ToolResult, ToolSchema, Usage, Verdict, Zone,
};

/// The state of a session after some prefix of its log.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(crate) next_seq: Seq,
    pub(crate) session: Option<SessionStarted>,
    pub(crate) epoch: Option<Epoch>,
    pub(crate) surface: Vec<SurfaceItem>,
    /// One for each item of the surface.
    pub(crate) marks: Vec<Mark>,
    /// Items that an undo took from the surface, as long as they can come back.
    pub(crate) set_aside: BTreeMap<Seq, (SurfaceItem, Mark)>,
    /// Why the surface was cut last, if it was since the last epoch opened.
    pub(crate) cut: Option<CutReason>,
    /// Why the next request opens an epoch, as far as a record says so.
    pub(crate) due: Option<EpochReason>,
    pub(crate) history: History,
    pub(crate) surface_bytes: u64,
    pub(crate) calls: BTreeMap<CallId, CallRecord>,
    pub(crate) vendor_ids: BTreeSet<String>,
    pub(crate) inbox: VecDeque<Waiting>,
    pub(crate) next_item: u64,
    pub(crate) turn: Option<Turn>,
    pub(crate) step: Option<Step>,
    pub(crate) counters: Counters,
    pub(crate) mode: Mode,
    pub(crate) model: Option<ModelSet>,
    pub(crate) todo: Vec<TodoItem>,
    pub(crate) grants: Vec<String>,
    pub(crate) read_files: Arc<ReadFiles>,
    pub(crate) account: Account,
    pub(crate) shown_files: Arc<ShownFiles>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) jobs: BTreeMap<JobId, JobMeta>,
    pub(crate) last_end: Option<EndReason>,
}

/// What the requests of a stretch share.
#[derive(Clone, Debug)]
pub struct Epoch {
    /// Its number, from 1.
    pub n: u32,
    /// Why it opened.
    pub reason: EpochReason,
    /// Version of the program that composed it; empty when that was not written.
    pub version: String,
    /// Tools, system, preface.
    pub header: Header,
    /// What the log says that the header is made of.
    pub segments: Vec<SegmentDigest>,
    /// What else shapes the bytes.
    pub config: Config,
    /// What the route costs.
    pub price: Option<Price>,
    /// The most tokens that one answer can have.
    pub max_output: Option<u64>,
    /// The last `main` request of this epoch.
    pub sent: Option<Sent>,
    /// The last `main` request before this epoch.
    pub before: Option<Sent>,
    header_bytes: u64,
}

/// A request that was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// Its record.
    pub seq: Seq,
    /// When.
    pub at: Millis,
    /// Its input tokens, once they were reported.
    pub input: Option<u64>,
    /// Its items.
    pub prompt: PromptDigest,
    /// How much of the surface it held.
    pub surface: usize,
    /// Where the request before it ended, in items; absent for the epoch's first.
    pub previous_items: Option<u64>,
    /// Its step.
    pub step: u64,
}

/// An item of the inbox.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// The item.
    pub queued: crate::InboxQueued,
    /// True once it was taken into the open turn; its message is still owed.
    pub claimed: bool,
}

/// The open turn.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// Its number, from 1.
    pub number: u64,
    /// What bounds it.
    pub limits: TurnLimits,
    /// When it started.
    pub started: Millis,
    /// Who asked it to stop.
    pub cancel: Option<crate::By>,
    /// Steps so far.
    pub steps: u64,
    /// Tool bodies run so far.
    pub executions: u64,
    /// Tokens reported so far.
    pub tokens: u64,
    /// Steps in a row in which every call failed.
    pub failed_steps: u64,
    /// True when the surface ends with something the model has not answered.
    pub unanswered: bool,
    /// True when a step opened or an item was claimed.
    pub begun: bool,
    /// How it will end once the open step is closed.
    pub ending: Option<EndReason>,
    pub(crate) repeats: Repeats,
    pub(crate) warned_of_repeats: bool,
}

/// The open step.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its number in the session, from 1.
    pub number: u64,
    /// Where it stands.
    pub phase: Phase,
    /// Attempts that failed before any output.
    pub failed: u32,
    /// True when its request was refused and the history was repaired.
    pub repaired: bool,
    /// Attempts that failed after some output.
    pub failed_after_output: u32,
    /// Its calls, in the model's order.
    pub calls: Vec<StepCall>,
}

/// Where a step stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Its request was not sent yet.
    Composing,
    /// Its request was sent and is not answered.
    Sending {
        /// The try.
        attempt: u32,
    },
    /// The last attempt failed.
    Failed {
        /// The try.
        attempt: u32,
        /// How it failed.
        failure: Failure,
    },
    /// The next attempt is due.
    Backoff {
        /// The try.
        attempt: u32,
        /// When.
        at: Millis,
    },
    /// It was answered; its calls, if any, are being worked on.
    Answered,
}

/// A call of the open step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepCall {
    /// The call.
    pub call: CallId,
    /// Where it stands.
    pub stage: CallStage,
    /// What its body may change; known once it was gated.
    pub effects: Effects,
    /// Who let it pass or not; known once it was gated.
    pub gated_by: Option<crate::By>,
    /// True when it may run beside its neighbours; known once it was gated.
    pub parallel: bool,
    /// The code of the error it ended with, if it did.
    pub error: Option<String>,
}

/// Where a call stands.
#[derive(Clone, Debug, PartialEq)]
pub enum CallStage {
    /// It has arrived.
    Received,
    /// A person has to be asked.
    Gated {
        /// Why.
        reason: Option<String>,
    },
    /// A person is being asked.
    Asked,
    /// It was refused; the model is not told yet.
    Refused {
        /// Who refused.
        by: String,
        /// Why.
        reason: Option<String>,
        /// True when there was nobody to ask.
        unanswered: bool,
    },
    /// It may run.
    Cleared,
    /// Its body was started.
    Running,
    /// It has a result.
    Done,
}

/// Counts of a session. Steps, attempts and executions are never mixed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Turns opened.
    pub turns: u64,
    /// Steps opened.
    pub steps: u64,
    /// HTTP tries.
    pub attempts: u64,
    /// Calls made by the model.
    pub calls: u64,
    /// Tool bodies run.
    pub executions: u64,
    /// Questions that nobody answered.
    pub unanswered: u64,
}

impl State {
    /// The state of an empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Passes over a record that says nothing to this build: only its position counts.
    pub fn pass(&mut self, seq: Seq) {
        self.next_seq = seq.next();
    }

    /// Folds the next record in. Total: a record that does not fit where the log stands changes as
    /// little as possible and never panics.
    pub fn fold(&mut self, record: &Record) {
        self.next_seq = record.seq.next();
        if let (Some(usage), Some(turn)) = (self.account.fold(record), &mut self.turn) {
            turn.tokens = turn.tokens.saturating_add(usage.context().unwrap_or(0));
        }
        match &record.event {
            Event::SessionStarted(started) => self.session = Some(started.clone()),
            Event::SessionMoved(moved) => {
                // Where a command went to lies in the folder that was left.
                self.cwd = None;
                if let Some(session) = &mut self.session {
                    session.cwd.clone_from(&moved.cwd);
                }
            }
            Event::InboxQueued(queued) => {
                self.next_item = self.next_item.max(queued.item.0 + 1);
                self.tell_of(&queued.jobs);
                self.inbox.push_back(Waiting { queued: queued.clone(), claimed: false });
            }
            Event::InboxClaimed(claimed) => {
                for waiting in &mut self.inbox {
                    waiting.claimed |= claimed.items.contains(&waiting.queued.item);
                }
                if let Some(turn) = &mut self.turn {
                    turn.begun = true;
                }
            }
            Event::InboxRemoved(removed) => self.inbox.retain(|waiting| waiting.queued.item != removed.item),
            Event::TurnStarted(started) => {
                self.counters.turns += 1;
                self.history.begin(self.counters.turns, self.next_job(), &self.todo);
                self.set_aside.clear();
                self.turn = Some(Turn {
                    number: self.counters.turns,
                    limits: started.limits,
                    started: record.ts,
                    ..Turn::default()
                });
            }
            Event::TurnCancel(cancel) => {
                if let Some(turn) = &mut self.turn {
                    turn.cancel.get_or_insert_with(|| cancel.by.clone());
                }
            }
            Event::TurnEnded(ended) => {
                self.history.end();
                self.turn = None;
                self.step = None;
                self.last_end = Some(ended.reason.clone());
            }
            Event::StepStarted(_) => self.start_step(),
            Event::StepEnded(_) => self.end_step(),
            Event::UserMessage(message) => {
                let waiting = self.inbox.iter().position(|waiting| Some(waiting.queued.item) == message.item);
                let waiting = waiting.and_then(|at| self.inbox.remove(at)).map(|waiting| waiting.queued);
                let origin = Origin::of(message.source, waiting.as_ref());
                if let Some(turn) = &mut self.turn {
                    turn.unanswered = true;
                    turn.begun = true;
                    turn.warned_of_repeats |= message.source == Source::System && message.item.is_none();
                }
                self.push(SurfaceItem::User(message.content.clone()), Mark { origin, ..Mark::default() });
            }
            Event::AssistantMessage(message) => self.answer(message),
            Event::ToolResult(result) => self.result(result),
            Event::EpochDue(due) => self.due.clone_from(&due.reason),
            Event::EpochOpened(opened) => self.open_epoch(opened),
            Event::CapsSet(set) => self.set_caps(set, record.ts),
            Event::RequestSent(sent) => {
                self.counters.attempts += 1;
                let (surface, previous_items) = (self.surface.len(), self.previous_items());
                if let Some(step) = &mut self.step {
                    step.phase = Phase::Sending { attempt: sent.attempt };
                    if let Some(epoch) = &mut self.epoch {
                        let (seq, prompt) = (record.seq, sent.prompt);
                        let (at, step) = (record.ts, step.number);
                        epoch.sent = Some(Sent { seq, at, input: None, prompt, surface, previous_items, step });
                    }
                }
            }
            Event::RequestFailed(failed) => self.fail(failed.attempt, &failed.failure),
            Event::RequestRetried(retried) => {
                if let Some(step) = &mut self.step {
                    step.phase = Phase::Backoff { attempt: retried.attempt, at: retried.at };
                }
            }
            Event::PrefixBroken(_) | Event::ImportDamaged(_) => {}
            Event::ToolCalled(called) => {
                self.counters.calls = self.counters.calls.max(called.call.0);
                if let Some(id) = &called.vendor_id {
                    self.vendor_ids.insert(id.clone());
                }
                if let Some(wire) = self.epoch.as_ref().map(|epoch| epoch.config.wire) {
                    let record = CallRecord {
                        wire,
                        vendor_id: called.vendor_id.clone(),
                        name: called.name.clone(),
                        arguments: called.arguments.clone(),
                    };
                    self.calls.insert(called.call, record);
                }
                self.surface_bytes += called.arguments.len() as u64;
            }
            Event::ToolGated(gated) => {
                let by = gated.by.0.clone();
                let reason = gated.reason.clone();
                if let Some(call) = self.call_mut(gated.call) {
                    call.gated_by = Some(gated.by.clone());
                    call.effects = gated.effects;
                    call.parallel = gated.parallel;
                    call.stage = match gated.decision {
                        Verdict::Allow => CallStage::Cleared,
                        Verdict::Ask => CallStage::Gated { reason },
                        Verdict::Deny => CallStage::Refused { by, reason, unanswered: false },
                    };
                }
            }
            Event::ToolStarted(started) => {
                self.counters.executions += 1;
                if let Some(turn) = &mut self.turn {
                    turn.executions += 1;
                }
                if let Some(call) = self.call_mut(started.call) {
                    call.stage = CallStage::Running;
                }
            }
            Event::ApprovalAsked(asked) => {
                if let Some(call) = self.call_mut(asked.call) {
                    call.stage = CallStage::Asked;
                }
            }
            Event::ApprovalDecided(decided) => self.decide(decided),
            Event::ModeSet(set) => self.mode = set.mode,
            Event::ModelSet(set) => self.model = Some(set.clone()),
            Event::TodoSet(set) => self.todo.clone_from(&set.items),
            Event::SurfaceReplaced(replaced) => {
                self.cut(replaced);
                if let (CutReason::Repair, Some(step)) = (replaced.reason, &mut self.step)
                    && let Phase::Failed { attempt, .. } = step.phase
                {
                    step.repaired = true;
                    step.phase = Phase::Backoff { attempt: attempt + 1, at: record.ts };
                }
            }
            Event::FileChanged(changed) => self.history.changed(changed),
            Event::UndoApplied(applied) => {
                let items = self.undo_items();
                self.history.undo(applied, &self.todo, items);
            }
            Event::RedoApplied(applied) => self.history.redo(applied),
        }
    }

    /// Takes over what is known of jobs. The end of one can be told before its start was.
    fn tell_of(&mut self, jobs: &[JobMeta]) {
        for job in jobs {
            let known = self.jobs.get(&job.job).map_or(JobStatus::Running, |known| known.status);
            if known == JobStatus::Running {
                self.jobs.insert(job.job, job.clone());
            }
        }
    }

    fn start_step(&mut self) {
        self.counters.steps += 1;
        if let Some(turn) = &mut self.turn {
            turn.steps += 1;
            turn.begun = true;
        }
        self.step = Some(Step {
            number: self.counters.steps,
            phase: Phase::Composing,
            failed: 0,
            repaired: false,
            failed_after_output: 0,
            calls: Vec::new(),
        });
    }

    fn end_step(&mut self) {
        let Some(step) = self.step.take() else { return };
        if let Some(turn) = &mut self.turn {
            let all_failed = !step.calls.is_empty() && step.calls.iter().all(|call| call.error.is_some());
            turn.failed_steps = if all_failed { turn.failed_steps + 1 } else { 0 };
        }
    }

    fn answer(&mut self, message: &crate::AssistantMessage) {
        let given_up = crate::owed::given_up(self, message);
        if let (Some(reason), Some(turn)) = (given_up, &mut self.turn) {
            turn.ending.get_or_insert(reason);
        }
        if let Some(step) = &mut self.step {
            step.phase = Phase::Answered;
            if let Some(sent) = self.epoch.as_mut().and_then(|epoch| epoch.sent.as_mut()) {
                sent.input = message.usage.and_then(|usage| usage.input()).or(sent.input);
            }
            step.calls = message
                .content
                .iter()
                .filter_map(|block| match block {
                    Block::Call { call, .. } => Some(StepCall {
                        call: *call,
                        stage: CallStage::Received,
                        effects: Effects::Local,
                        gated_by: None,
                        parallel: false,
                        error: None,
                    }),
                    _ => None,
                })
                .collect();
        }
        if let Some(turn) = &mut self.turn {
            turn.unanswered = false;
            let called = message.content.iter().any(|block| matches!(block, Block::Call { .. }));
            if !called && turn.ending.is_none() && !message.interrupted {
                turn.ending = match &message.stop {
                    Stop::MaxOutput => Some(EndReason::MaxOutput),
                    Stop::Refusal | Stop::ContentFilter => Some(EndReason::Failed {
                        code: crate::FailureCode::Refused.code().to_owned(),
                        message: "the model or the provider's filter refused to answer; ask differently, or choose another model".to_owned(),
                    }),
                    _ => None,
                };
            }
        }
        let item = SurfaceItem::Assistant {
            producer: message.producer.clone(),
            content: message.content.clone(),
            interrupted: message.interrupted,
        };
        self.push(item, Mark::default());
    }

    fn result(&mut self, result: &ToolResult) {
        if let Some(call) = self.call_mut(result.call) {
            call.stage = CallStage::Done;
            call.error = result.error.as_ref().map(|error| error.code.clone());
        }
        let call = self.calls.get(&result.call);
        let changed = result.meta.files.iter().any(|file| file.action != FileAction::Read);
        if let Some(turn) = &mut self.turn {
            turn.unanswered = true;
            if changed {
                turn.repeats.clear();
                turn.warned_of_repeats = false;
            } else if let Some(call) = call {
                let refused = result.error.as_ref().is_some_and(|error| error.class == ToolErrorClass::Refused);
                // A refusal is no new result: the call goes on repeating what it gave before.
                let before = if refused { turn.repeats.last_result(call) } else { None };
                turn.repeats.push(call, before.unwrap_or_else(|| result.content.clone()));
            }
        }
        self.tell_of(&result.meta.jobs);
        let tool = self.calls.get(&result.call).map_or("a tool", |record| record.name.as_str());
        self.history.result(result, tool);
        let files = result.meta.files.iter().map(|file| (PathBuf::from(&file.path), file.hash)).collect();
        let shown = match (&result.meta.read, result.meta.files.as_slice()) {
            (Some(read), [file]) => showing(file, read),
            _ => None,
        };
        let mark = Mark { files, shown, cwd: result.meta.cwd.as_ref().map(PathBuf::from), ..Mark::default() };
        let item = SurfaceItem::Result {
            call: result.call,
            content: result.content.clone(),
            error: result.error.clone(),
            images: result.images.clone(),
        };
        self.push(item, mark);
    }

    fn open_epoch(&mut self, opened: &EpochOpened) {
        let mut header = Header::default();
        for segment in &opened.segments {
            let (name, text) = (segment.name.clone(), segment.text.as_str().to_owned());
            match segment.zone {
                Zone::Tools => header.tools.extend(serde_json::from_str::<ToolSchema>(&text).ok()),
                Zone::System => header.system.push(SystemBlock { name, text }),
                Zone::Preface => header.preface.push(PrefaceBlock { name, text }),
                Zone::History => {}
            }
        }
        let header_bytes = opened.segments.iter().map(|segment| segment.text.len() as u64).sum();
        let before = self.epoch.take().and_then(|epoch| epoch.sent.or(epoch.before));
        self.cut = None;
        // A repair takes nothing but the cut.
        if opened.reason != EpochReason::Repair {
            self.due = None;
        }
        self.epoch = Some(Epoch {
            n: opened.n,
            reason: opened.reason.clone(),
            version: opened.version.clone(),
            header,
            segments: opened.segments.iter().map(Segment::digest).collect(),
            config: opened.config.clone(),
            price: opened.price,
            max_output: opened.max_output,
            sent: None,
            before,
            header_bytes,
        });
    }

    /// The refused request is due again at once, and its attempt counts as none that failed.
    fn set_caps(&mut self, set: &crate::CapsSet, now: Millis) {
        if let Some(epoch) = &mut self.epoch {
            epoch.config.keep_fields(&set.fields);
        }
        if let Some(step) = &mut self.step
            && let Phase::Failed { attempt, .. } = step.phase
        {
            step.failed = step.failed.saturating_sub(1);
            step.phase = Phase::Backoff { attempt: attempt + 1, at: now };
        }
    }

    fn fail(&mut self, attempt: u32, failure: &Failure) {
        if let Some(step) = &mut self.step {
            if failure.output {
                step.failed_after_output += 1;
            } else {
                step.failed += 1;
            }
            step.phase = Phase::Failed { attempt, failure: failure.clone() };
        }
    }

    fn decide(&mut self, decided: &crate::ApprovalDecided) {
        if let ApprovalOutcome::Always { rule } = &decided.outcome
            && !self.grants.contains(rule)
        {
            self.grants.push(rule.clone());
        }
        let unanswered = decided.outcome == ApprovalOutcome::Unanswered;
        self.counters.unanswered += u64::from(unanswered);
        let by = decided.by.0.clone();
        if let Some(call) = self.call_mut(decided.call) {
            call.stage = match &decided.outcome {
                ApprovalOutcome::Once | ApprovalOutcome::Always { .. } => CallStage::Cleared,
                ApprovalOutcome::Reject { reason } => {
                    CallStage::Refused { by, reason: Some(reason.clone()), unanswered: false }
                }
                ApprovalOutcome::Unanswered => CallStage::Refused { by, reason: None, unanswered: true },
            };
        }
    }

    fn call_mut(&mut self, call: CallId) -> Option<&mut StepCall> {
        self.step.as_mut()?.calls.iter_mut().find(|own| own.call == call)
    }
}

/// Which lines of a file a result shows.
fn showing(file: &FileMeta, read: &ReadMeta) -> Option<(PathBuf, Showing)> {
    let hash = file.hash?;
    let lines = Shown { hash, offset: read.offset, lines: read.lines, pointed: false };
    Some((PathBuf::from(&file.path), if read.unchanged { Showing::Pointer } else { Showing::Lines(lines) }))
}

/// What others may ask of the state.
impl State {
    /// Position of the next record.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        self.next_seq
    }

    /// Number of the next inbox item.
    #[must_use]
    pub fn next_item(&self) -> ItemId {
        ItemId(self.next_item)
    }

    /// Id of the next call.
    #[must_use]
    pub fn next_call(&self) -> CallId {
        CallId(self.counters.calls + 1)
    }

    /// Number of the next job.
    #[must_use]
    pub fn next_job(&self) -> JobId {
        JobId(self.jobs.keys().next_back().map_or(1, |last| last.0 + 1))
    }

    /// Jobs that run, as far as the log tells.
    pub fn open_jobs(&self) -> impl Iterator<Item = &JobMeta> {
        self.jobs.values().filter(|job| job.status == JobStatus::Running)
    }

    /// The folder in which calls run, once a command has changed it.
    #[must_use]
    pub fn cwd(&self) -> Option<&std::path::Path> {
        self.cwd.as_deref()
    }

    /// True when a vendor's call id was seen before in this session.
    #[must_use]
    pub fn knows_vendor_id(&self, id: &str) -> bool {
        self.vendor_ids.contains(id)
    }

    /// The session's first record of its own, with the folder that it works in now.
    #[must_use]
    pub fn session(&self) -> Option<&SessionStarted> {
        self.session.as_ref()
    }

    /// The open epoch.
    #[must_use]
    pub fn epoch(&self) -> Option<&Epoch> {
        self.epoch.as_ref()
    }

    /// Why the next request opens an epoch, if it does.
    #[must_use]
    pub fn next_epoch(&self) -> Option<EpochReason> {
        crate::owed::epoch_reason(self)
    }

    /// What a record says the next epoch is for.
    #[must_use]
    pub fn epoch_due(&self) -> Option<&EpochReason> {
        self.due.as_ref()
    }

    /// Why the history was cut, until an epoch opens.
    #[must_use]
    pub fn cut_since(&self) -> Option<CutReason> {
        self.cut
    }

    /// The open turn.
    #[must_use]
    pub fn turn(&self) -> Option<&Turn> {
        self.turn.as_ref()
    }

    /// The open step.
    #[must_use]
    pub fn step(&self) -> Option<&Step> {
        self.step.as_ref()
    }

    /// Items that wait.
    pub fn inbox(&self) -> impl Iterator<Item = &Waiting> {
        self.inbox.iter()
    }

    /// A call of this session.
    #[must_use]
    pub fn call(&self, call: CallId) -> Option<&CallRecord> {
        self.calls.get(&call)
    }

    /// Counts so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The permission mode.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The chosen route and model; absent before the first choice.
    #[must_use]
    pub fn model(&self) -> Option<&ModelSet> {
        self.model.as_ref()
    }

    /// Things to do.
    #[must_use]
    pub fn todo(&self) -> &[TodoItem] {
        &self.todo
    }

    /// Rules that a person granted in this session.
    #[must_use]
    pub fn grants(&self) -> &[String] {
        &self.grants
    }

    /// Files the model was shown or changed, with the hash of their content then.
    #[must_use]
    pub fn read_files(&self) -> &Arc<ReadFiles> {
        &self.read_files
    }

    /// What the model still sees of files.
    #[must_use]
    pub fn shown_files(&self) -> &Arc<ShownFiles> {
        &self.shown_files
    }

    /// What turns changed, and which of them were taken back.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Tokens reported so far.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        self.account.usage()
    }

    /// For how many attempts usage is known.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        self.account.coverage()
    }

    /// Cost so far; absent as soon as one attempt could not be priced.
    #[must_use]
    pub fn cost(&self) -> Option<Micros> {
        self.account.cost()
    }

    /// How the last turn ended.
    #[must_use]
    pub fn last_end(&self) -> Option<&EndReason> {
        self.last_end.as_ref()
    }

    /// Length of the surface, in events.
    #[must_use]
    pub fn surface_len(&self) -> usize {
        self.surface.len()
    }

    /// Bytes of header and surface: what the next request holds, without its framing.
    #[must_use]
    pub fn prompt_bytes(&self) -> u64 {
        self.surface_bytes + self.epoch.as_ref().map_or(0, |epoch| epoch.header_bytes)
    }

    /// The first text that came from a person; what a list of sessions shows.
    #[must_use]
    pub fn first_prompt(&self) -> Option<&str> {
        let first = self.surface.iter().zip(&self.marks).find_map(|(item, mark)| match (item, &mark.origin) {
            (SurfaceItem::User(parts), Origin::Person) => parts.first(),
            _ => None,
        });
        first.map(|crate::Part::Text { text }| text.as_str())
    }

    /// The text of the last answer, without reasoning.
    #[must_use]
    pub fn last_text(&self) -> String {
        let last = self.surface.iter().rev().find_map(|item| match item {
            SurfaceItem::Assistant { content, .. } => Some(content),
            _ => None,
        });
        let texts = last.into_iter().flatten().filter_map(|block| match block {
            Block::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// Where the `main` request before the open step's ended, in items; absent for an epoch's first.
    #[must_use]
    pub fn previous_items(&self) -> Option<u64> {
        let sent = self.epoch.as_ref()?.sent.as_ref()?;
        match &self.step {
            Some(step) if step.number == sent.step => sent.previous_items,
            _ => Some(sent.prompt.items),
        }
    }

    /// The messages from a place of the surface on, see [`derive`]; none before the first epoch.
    #[must_use]
    pub fn messages(&self, from: usize) -> Vec<Message> {
        let Some(epoch) = &self.epoch else { return Vec::new() };
        derive(&self.surface, from, &self.calls, &epoch.config)
    }

    /// Takes the same messages one after the other.
    pub fn each_message(&self, from: usize, take: &mut dyn FnMut(Message)) {
        if let Some(epoch) = &self.epoch {
            derive_each(&self.surface, from, &self.calls, &epoch.config, take);
        }
    }

    /// The producer of an answer to a request of the open epoch.
    #[must_use]
    pub fn producer(&self) -> Option<Producer> {
        let config = &self.epoch.as_ref()?.config;
        Some(Producer { wire: config.wire, model: config.model.clone() })
    }
}

/// The next request: header and configuration of the open epoch, and the whole history.
///
/// `None` before the first epoch.
#[must_use]
pub fn assemble(state: &State) -> Option<Request<'_>> {
    let epoch = state.epoch.as_ref()?;
    Some(Request { header: &epoch.header, config: &epoch.config, messages: state.messages(0) })
}
