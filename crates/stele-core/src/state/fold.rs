//! How each event changes the state.

use std::path::PathBuf;

use super::{Answered, CallStage, Counted, Epoch, Phase, Sent, State, Step, StepCall, Turn, Waiting};
use crate::cut::{Mark, Origin, Showing, Told};
use crate::surface::{CallRecord, SurfaceItem};
use crate::{
    ApprovalOutcome, Block, CallId, CutReason, Effects, EndReason, EpochOpened, EpochReason, Event, Failure,
    FileAction, FileMeta, Header, JobMeta, JobStatus, Millis, OptionalField, PrefaceBlock, ReadMeta, Record, Segment,
    Seq, Shown, Source, Stop, SystemBlock, ToolErrorClass, ToolResult, ToolSchema, Usage, Verdict, Zone,
};

/// Endpoints whose last prompt is remembered, at most: nobody goes back and forth between more within a cache's life.
const ENDPOINTS_MAX: usize = 8;

impl State {
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
            Event::SessionStarted(started) => {
                self.session = Some(started.clone());
                // What the session before was about to change is not a fork's to do.
                self.history.owe_nothing();
            }
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
                let (surface, surface_bytes) = (self.surface.len(), self.surface_bytes);
                let earlier = self.earlier_prompts();
                if let Some(step) = &mut self.step {
                    step.phase = Phase::Sending { attempt: sent.attempt };
                    if let Some(epoch) = &mut self.epoch {
                        let (seq, prompt) = (record.seq, sent.prompt);
                        let (at, step) = (record.ts, step.number);
                        let input = None;
                        epoch.sent = Some(Sent { seq, at, input, prompt, surface, surface_bytes, earlier, step });
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
                if let Some(call) = self.call_mut(gated.call) {
                    call.gated_by = Some(gated.by.clone());
                    call.effects = gated.effects;
                    call.parallel = gated.parallel;
                    call.stage = match gated.decision {
                        Verdict::Allow => CallStage::Cleared,
                        Verdict::Ask => CallStage::Gated { reason: gated.reason.clone() },
                        Verdict::Deny => CallStage::Refused {
                            by: gated.by.0.clone(),
                            reason: gated.reason.clone(),
                            unanswered: false,
                        },
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
            Event::FileChanged(changed) => {
                let background = self.open_jobs().next().is_some();
                self.history.changed(changed, background);
            }
            Event::UndoApplied(applied) => {
                let items = self.undo_items();
                self.history.undo(applied, &self.todo, items);
            }
            Event::RedoApplied(applied) => self.history.redo(applied),
            Event::RestoreEnded(ended) => self.history.restored(ended.turn),
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
            moved: false,
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
        self.counters.answered += u64::from(!message.interrupted);
        let given_up = crate::owed::given_up(self, message);
        if let (Some(reason), Some(turn)) = (given_up, &mut self.turn) {
            turn.ending.get_or_insert(reason);
        }
        if self.step.as_ref().is_some_and(|step| matches!(step.phase, Phase::Sending { .. })) {
            self.hear(message.usage, !message.interrupted || !message.content.is_empty());
        }
        if let Some(step) = &mut self.step {
            step.phase = Phase::Answered;
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
        if let Some(step) = self.step.as_mut().filter(|_| result.meta.cwd.is_some()) {
            step.moved = true;
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
        let files = result.meta.files.iter();
        let part = |file: &FileMeta| file.part.or_else(|| result.meta.read.as_ref().and_then(ReadMeta::window));
        let files = files.map(|file| (PathBuf::from(&file.path), file.hash.map(|hash| (hash, part(file))))).collect();
        let shown = match (&result.meta.read, result.meta.files.as_slice()) {
            (Some(read), [file]) => showing(file, read),
            _ => None,
        };
        let told = Told { files, shown, cwd: result.meta.cwd.as_ref().map(PathBuf::from) };
        let mark = Mark { told: told.boxed(), ..Mark::default() };
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
        let before = self.epoch.take();
        let counts =
            |epoch: &Epoch| (epoch.config.wire, &epoch.config.model) == (opened.config.wire, &opened.config.model);
        // Another model counts in another way.
        if !before.as_ref().is_some_and(counts) {
            self.counted = None;
        }
        let before = before.and_then(|epoch| epoch.sent.or(epoch.before));
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
            config: (*opened.config).clone(),
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

    /// Takes in what an answer shows of the prompt, `begun` where some of it arrived: then the endpoint has the prompt in
    /// its cache.
    fn hear(&mut self, usage: Option<Usage>, begun: bool) {
        let Some(epoch) = &mut self.epoch else { return };
        let Some(sent) = &mut epoch.sent else { return };
        let usage = usage.unwrap_or_default();
        sent.input = usage.input().or(sent.input);
        if let Some(input) = usage.counted() {
            self.counted = Some(Counted { input, epoch: epoch.n, surface_bytes: sent.surface_bytes });
        }
        if begun || !usage.is_unknown() {
            let (config, prompt, at) = (&epoch.config, sent.prompt, sent.at);
            let (wire, base_url, model) = (config.wire, config.base_url.clone(), config.model.clone());
            let (marked, parameters) = (config.sends(OptionalField::CacheControl), config.parameters.clone());
            let before = self.answered.iter().position(|answered| answered.is_of(config));
            let before = before.map(|index| self.answered.remove(index));
            let alike = before.filter(|before| before.marked == marked && before.parameters == parameters);
            let ends = alike.map_or_else(Vec::new, |before| before.followed_by(&prompt, at));
            if self.answered.len() == ENDPOINTS_MAX {
                self.answered.remove(0);
            }
            self.answered.push(Answered { wire, base_url, model, at, marked, parameters, prompt, ends });
        }
    }

    fn fail(&mut self, attempt: u32, failure: &Failure) {
        self.hear(failure.usage, failure.output);
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
        if let ApprovalOutcome::Always { rules } = &decided.outcome {
            for rule in rules {
                if !self.grants.contains(rule) {
                    self.grants.push(rule.clone());
                }
            }
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
