//! The loop: append what the log decides, start what is owed, wait for one thing to happen.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use stele_core::{
    Action, ApprovalDecided, ApprovalOutcome, AssistantMessage, Block, By, Call, CallId, CallSession, CallStage,
    Effects, EpochReason, Event, Failure, FailureCode, FileChanged, InboxQueued, Invocation, JobNotice, ModeSet,
    ModelSet, Part, Phase, Purpose, Record, RequestFailed, RequestRetried, RequestSent, SessionId, Source, State,
    Target, Text, TodoSet, ToolCalled, ToolError, ToolErrorClass, ToolGated, ToolOutput, ToolResult, ToolStarted,
    TurnCancel, Verdict, Watch, owed, partial_answer, retry,
};
use stele_guard::Workspace;
use stele_provider::{Answer, AnswerBlock, Body, Delta};
use stele_store::{Append, Durability, Summary, Writer};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use crate::drift::{Compared, Drift};
use crate::request::{self, Encoded, Ready};
use crate::{Agent, Approvals, Command, Error, Logged, Notice, Result};

/// When [`Driver::run`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// As soon as nothing is owed.
    Idle,
    /// When the commands' sender is gone and nothing is owed.
    Closed,
}

/// How often streamed text is saved while it arrives.
const PARTIAL_EVERY: Duration = Duration::from_millis(250);

/// One session's log, open for writing.
pub struct Driver {
    pub(crate) agent: Arc<Agent>,
    session: SessionId,
    /// The session that this one's lineage began with.
    lineage: SessionId,
    /// The session's own folder.
    folder: PathBuf,
    /// The folder in which calls run now: a command may have changed it.
    cwd: PathBuf,
    workspace: Workspace,
    writer: Writer,
    state: State,
    /// Appended and folded, not committed yet.
    staged: Vec<Logged>,
    /// True when the log, or one that it continues, came from a file.
    foreign: bool,
    /// True once something of this session is in the store.
    stored: bool,
    encoded: Option<Encoded>,
    /// The encoder of the epoch before, until the first request of the open one was sent.
    earlier: Option<Encoded>,
    /// The epoch whose header was compared with what the log says of it.
    pub(crate) compared: Option<u32>,
    /// What differs from what would be composed now, since the session was opened.
    pub(crate) drift: Option<Drift>,
    in_flight: BTreeMap<String, InFlight>,
    updates: (mpsc::UnboundedSender<Update>, mpsc::UnboundedReceiver<Update>),
    pub(crate) notices: broadcast::Sender<Notice>,
    partial: Partial,
    /// Dropped with the driver: jobs end when nobody holds their session any more.
    open: watch::Sender<()>,
}

/// An effect that was started.
enum InFlight {
    /// An attempt; aborting it closes the connection.
    Attempt(AbortHandle),
    /// A time to wait for.
    Timer(AbortHandle),
    /// A tool's body, and the way to stop it.
    Body(Option<oneshot::Sender<()>>),
    /// A question to a person.
    Question,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Self::Attempt(handle) | Self::Timer(handle) = self {
            handle.abort();
        }
    }
}

/// What comes back from effects.
enum Update {
    Delta {
        step: u64,
        attempt: u32,
        delta: Delta,
    },
    Answered {
        step: u64,
        attempt: u32,
        outcome: Box<std::result::Result<Answer, Failure>>,
    },
    Output {
        call: CallId,
        text: String,
    },
    Ran {
        call: CallId,
        output: Box<ToolOutput>,
    },
    /// A job ended, and nobody waited for it.
    Job(JobNotice),
    /// A time has come; with an event to append, or just to look again.
    Due {
        key: String,
        then: Option<Box<Event>>,
    },
}

/// The text of an answer that is arriving.
#[derive(Default)]
struct Partial {
    step: u64,
    attempt: u32,
    text: String,
    saved: usize,
}

impl Driver {
    pub(crate) fn new(
        agent: &Arc<Agent>,
        session: SessionId,
        lineage: SessionId,
        writer: Writer,
        state: State,
        folder: PathBuf,
        stored: bool,
    ) -> Result<Self> {
        let root = crate::instructions::repository_root(&folder);
        let store = &agent.options.store;
        let continued = writer.parent().is_some_and(|parent| crate::open::is_foreign(store, &parent.session));
        let foreign = continued || crate::open::is_foreign(store, &session);
        let mut driver = Self {
            agent: Arc::clone(agent),
            session,
            lineage,
            workspace: Workspace::new(&root, &folder, &agent.options.surroundings)?,
            cwd: folder.clone(),
            folder,
            writer,
            state,
            staged: Vec::new(),
            foreign,
            stored,
            encoded: None,
            earlier: None,
            compared: None,
            drift: None,
            in_flight: BTreeMap::new(),
            updates: mpsc::unbounded_channel(),
            notices: crate::open::notices(),
            partial: Partial::default(),
            open: watch::Sender::default(),
        };
        driver.follow_cwd()?;
        Ok(driver)
    }

    /// Goes where the last command ended, as long as that folder is there.
    pub(crate) fn follow_cwd(&mut self) -> Result<()> {
        let chosen = self.state.cwd().filter(|cwd| cwd.starts_with(self.workspace.root()) && cwd.is_dir());
        let cwd = chosen.unwrap_or(&self.folder).to_owned();
        if cwd != self.cwd {
            self.workspace = Workspace::new(self.workspace.root(), &cwd, &self.agent.options.surroundings)?;
            self.cwd = cwd;
        }
        Ok(())
    }

    pub(crate) fn lineage(&self) -> &SessionId {
        &self.lineage
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// The session's id.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The state of the log, staged events included.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// True when the log, or one that it continues, came from a file: its grants do not count here.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// True once something of this session is in the store.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.stored
    }

    /// Takes a command: it becomes an event before it acts.
    ///
    /// # Errors
    /// The event cannot be written.
    pub fn command(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Prompt { text, source, limits } => self.queue(text, source, Target::NextTurn, limits),
            Command::Steer { text } => self.queue(text, Source::Person, Target::NextStep, Default::default()),
            Command::Cancel { by } if self.state.turn().is_some() => self.append(TurnCancel { by }),
            Command::Cancel { .. } => Ok(()),
            Command::Decide { call, by, outcome } => {
                // The log says whether it was asked: a resumed question may be answered before it is in flight.
                self.in_flight.remove(&Action::Ask { call }.key());
                let calls = self.state.step().map_or(&[][..], |step| &step.calls);
                let asked = calls.iter().any(|open| open.call == call && open.stage == CallStage::Asked);
                if asked { self.append(ApprovalDecided { call, by, outcome }) } else { Ok(()) }
            }
            Command::SetMode { mode, by } => {
                self.append(ModeSet { mode: mode.min(self.agent.options.highest_mode), by })
            }
            Command::SetModel { route, model, by } => self.choose_model(&route, &model, by),
            Command::KeepEpoch { by } => self.keep_epoch(by),
            // Between turns only: what a turn does is taken back once it is over.
            Command::Undo { .. } | Command::Redo { .. } if self.state.turn().is_some() => Ok(()),
            Command::Undo { by, changed_since } => self.undo(by, changed_since).map(drop),
            Command::Redo { by, changed_since } => self.redo(by, changed_since).map(drop),
        }
    }

    pub(crate) fn choose_model(&mut self, route: &str, model: &str, by: By) -> Result<()> {
        let event = self.model_set(route, model, by)?;
        self.append(event)
    }

    pub(crate) fn model_set(&self, route: &str, model: &str, by: By) -> Result<ModelSet> {
        let known = self.agent.route(route)?;
        let (wire, base_url) = (known.wire, known.base_url.clone());
        Ok(ModelSet { route: route.to_owned(), model: model.to_owned(), wire, base_url, by })
    }

    fn queue(
        &mut self,
        text: String,
        source: Source,
        target: Target,
        limits: stele_core::limits::TurnLimits,
    ) -> Result<()> {
        let item = self.state.next_item();
        self.append(InboxQueued {
            item,
            source,
            target,
            content: vec![Part::text(text)],
            limits,
            wake: true,
            jobs: Vec::new(),
        })
    }

    /// Goes on with what is owed, taking commands as they come.
    ///
    /// # Errors
    /// The log could not be written, or the next request could not be composed. Nothing was sent or
    /// run that is not logged.
    pub async fn run(&mut self, commands: &mut mpsc::UnboundedReceiver<Command>, until: Until) -> Result<()> {
        let mut open = true;
        loop {
            while let Ok(command) = commands.try_recv() {
                self.command(command)?;
            }
            // What has come in meanwhile is known before the next request is built.
            while let Ok(update) = self.updates.1.try_recv() {
                self.take(update)?;
            }
            let effects = self.settle()?;
            if self.reconcile(effects)? {
                continue;
            }
            self.commit()?;
            // A question that nobody can answer any more stays in the log.
            let over = self.in_flight.values().all(|flight| !open && matches!(flight, InFlight::Question));
            if over && (until == Until::Idle || !open) {
                return Ok(());
            }
            tokio::select! {
                biased;
                command = commands.recv(), if open => match command {
                    Some(command) => self.command(command)?,
                    None => open = false,
                },
                Some(update) = self.updates.1.recv() => self.take(update)?,
                () = tokio::time::sleep(PARTIAL_EVERY), if self.partial.saved < self.partial.text.len() => self.save_partial()?,
            }
        }
    }

    /// Appends all that the log alone decides and does what needs no waiting; gives the effects.
    fn settle(&mut self) -> Result<Vec<Action>> {
        loop {
            let actions = owed(&self.state);
            let Some(action) = actions.iter().find(|action| self.is_immediate(action)) else { return Ok(actions) };
            match action.clone() {
                Action::Append(event) => {
                    if let Event::CapsSet(set) = &event {
                        self.learn_refused(set);
                    }
                    self.append(event)?;
                }
                Action::Compose { reason } => self.compose(reason)?,
                Action::Consult { call, at_least } => self.consult(call, at_least)?,
                Action::Backoff { step, attempt } => self.back_off(step, attempt)?,
                Action::Interrupt { step, attempt } => self.interrupt(step, attempt)?,
                Action::Ask { call } => {
                    let by = By("headless".to_owned());
                    self.append(ApprovalDecided { call, by, outcome: ApprovalOutcome::Unanswered })?;
                }
                Action::Send { .. } | Action::Run { .. } | Action::Stop { .. } | Action::Wait { .. } => {}
            }
        }
    }

    fn is_immediate(&self, action: &Action) -> bool {
        match action {
            Action::Ask { .. } => self.agent.options.approvals == Approvals::Nobody,
            Action::Send { .. } | Action::Run { .. } | Action::Stop { .. } | Action::Wait { .. } => false,
            _ => true,
        }
    }

    /// Drops what is in flight and no longer owed, and starts what is owed and not in flight. True
    /// when something was appended on the way, so that what is owed has to be asked again.
    fn reconcile(&mut self, effects: Vec<Action>) -> Result<bool> {
        let owed: BTreeMap<String, Action> = effects.into_iter().map(|action| (action.key(), action)).collect();
        // A body is never dropped: it is stopped, and its result is waited for.
        self.in_flight.retain(|key, flight| owed.contains_key(key) || matches!(flight, InFlight::Body(_)));
        let mut appended = false;
        for (key, action) in owed {
            if self.in_flight.contains_key(&key) {
                continue;
            }
            match action {
                Action::Send { step, attempt, not_before } => appended |= self.send(key, step, attempt, not_before)?,
                Action::Run { call } => self.start(key, call)?,
                Action::Stop { call } => appended |= self.stop(call)?,
                Action::Ask { .. } => {
                    self.in_flight.insert(key, InFlight::Question);
                }
                Action::Wait { until, then } => self.wait(key, until.0, Some(then)),
                _ => {}
            }
        }
        Ok(appended)
    }

    fn take(&mut self, update: Update) -> Result<()> {
        match update {
            Update::Delta { step, attempt, delta } => {
                if let Delta::Text(text) = &delta {
                    if (self.partial.step, self.partial.attempt) != (step, attempt) {
                        self.partial = Partial { step, attempt, ..Partial::default() };
                    }
                    self.partial.text.push_str(text);
                }
                self.notify(Notice::Delta { step, attempt, delta: Arc::new(delta) });
                Ok(())
            }
            Update::Output { call, text } => {
                self.notify(Notice::Output { call, text: text.into() });
                Ok(())
            }
            Update::Answered { step, attempt, outcome } => {
                let key = Action::Send { step, attempt, not_before: None }.key();
                if self.in_flight.remove(&key).is_none() {
                    return Ok(());
                }
                if std::mem::take(&mut self.partial).saved > 0 {
                    self.writer.clear_partial()?;
                }
                match *outcome {
                    Ok(answer) => self.answered(attempt, answer),
                    Err(failure) => self.append(RequestFailed { attempt, failure }),
                }
            }
            Update::Ran { call, output } => {
                self.in_flight.remove(&Action::Run { call }.key());
                self.ran(call, *output)
            }
            Update::Job(notice) => {
                let item = self.state.next_item();
                self.append(InboxQueued {
                    item,
                    source: Source::Job,
                    target: Target::NextStep,
                    content: vec![Part::text(notice.text)],
                    limits: Default::default(),
                    wake: false,
                    jobs: vec![notice.job],
                })
            }
            Update::Due { key, then } => {
                self.in_flight.remove(&key);
                then.map_or(Ok(()), |event| self.append(*event))
            }
        }
    }

    // ---- the log ----

    /// Stages an event: it is folded now and written with the next commit.
    pub(crate) fn append(&mut self, event: impl Into<Event>) -> Result<()> {
        let event = event.into();
        let counters = self.state.counters();
        let turn = match &event {
            Event::TurnStarted(_) => Some(counters.turns + 1),
            _ => self.state.turn().map(|turn| turn.number),
        };
        let step = match &event {
            Event::StepStarted(_) => Some(counters.steps + 1),
            _ => self.state.step().map(|step| step.number),
        };
        let mut record = Record { seq: self.state.next_seq(), ts: self.agent.now(), turn, step, event };
        let stored = record.encode()?;
        self.state.fold(&record);
        self.staged.push(Logged { record, stored });
        Ok(())
    }

    /// Writes what is staged, in one transaction. Before a session's first request nothing is
    /// written, unless a turn has already ended.
    pub(crate) fn commit(&mut self) -> Result<()> {
        let begun = |logged: &Logged| matches!(logged.record.event, Event::RequestSent(_) | Event::TurnEnded(_));
        if self.staged.is_empty() || !(self.stored || self.staged.iter().any(begun)) {
            return Ok(());
        }
        let barrier = self.staged.iter().any(|logged| self.is_barrier(&logged.record.event));
        let durability = if barrier { Durability::Barrier } else { Durability::Normal };
        let batch: Vec<Append> = self
            .staged
            .iter()
            .map(|logged| Append {
                seq: logged.record.seq,
                record: logged.stored.clone(),
                search: search_text(&logged.record.event),
            })
            .collect();
        let summary = self.summary();
        self.writer.append(&batch, durability, Some(&summary))?;
        self.stored = true;
        for mut logged in std::mem::take(&mut self.staged) {
            // Whoever is slow to take notices must not hold what files were.
            logged.record.drop_files();
            logged.stored.files.clear();
            self.notify(Notice::Event(Arc::new(logged)));
        }
        Ok(())
    }

    fn is_barrier(&self, event: &Event) -> bool {
        match event {
            Event::RequestSent(_) | Event::TurnEnded(_) => true,
            Event::ToolStarted(started) => {
                let calls = self.state.step().map_or(&[][..], |step| &step.calls);
                calls.iter().any(|call| call.call == started.call && call.effects != Effects::None)
            }
            _ => false,
        }
    }

    fn summary(&self) -> Summary {
        let counters = self.state.counters();
        let title = self.state.first_prompt().map(stele_core::title);
        Summary {
            title,
            model: self.state.model().map(|model| model.model.clone()),
            turns: counters.turns,
            steps: counters.steps,
            updated: self.agent.now(),
            cost: self.state.cost(),
            cwd: self.state.session().map(|session| session.cwd.clone()).unwrap_or_default(),
        }
    }

    pub(crate) fn notify(&self, notice: Notice) {
        // Nobody listening is no error.
        let _ = self.notices.send(notice);
    }

    fn save_partial(&mut self) -> Result<()> {
        let Partial { step, attempt, text, .. } = &self.partial;
        self.writer.put_partial(&stele_store::Partial { step: *step, attempt: *attempt, text: text.clone() })?;
        self.partial.saved = self.partial.text.len();
        Ok(())
    }

    // ---- requests ----

    fn compose(&mut self, reason: EpochReason) -> Result<()> {
        let mut opened = self.composed(&self.state, reason)?;
        if self.state.epoch().is_some() {
            // A wire that cannot express the configuration says so before anything is sent.
            // What was encoded and never sent is nothing to compare with.
            let was_sent = self.state.epoch().is_some_and(|epoch| epoch.sent.is_some());
            let at_hand = if was_sent { self.encoded.take() } else { self.earlier.take() };
            let (cost, encoded, earlier) = self.price_of(&self.state, &opened, at_hand)?;
            opened.cost = Some(cost);
            self.earlier = earlier;
            self.encoded = Some(encoded);
        }
        // A cut of the history takes nothing of what differs.
        if !matches!(opened.reason, EpochReason::Undo | EpochReason::Repair) {
            self.drift = None;
        }
        self.append(opened)?;
        request::update(&mut self.encoded, &self.state)
    }

    /// Sends a request, or waits for its time. True when something else is owed first.
    fn send(&mut self, key: String, step: u64, attempt: u32, not_before: Option<stele_core::Millis>) -> Result<bool> {
        if let Some(at) = not_before
            && at > self.agent.now()
        {
            self.wait(key, at.0, None);
            return Ok(false);
        }
        if self.compare_header()? == Compared::Differs {
            return Ok(true);
        }
        request::update(&mut self.encoded, &self.state)?;
        if let Some(epoch) = self.state.epoch()
            && let (None, None, Some(before)) = (&epoch.sent, &self.earlier, &epoch.before)
        {
            self.earlier = self.rebuilt(before);
        }
        let Some((encoded, epoch)) = self.encoded.as_ref().zip(self.state.epoch()) else { return Ok(false) };
        let ready = encoded.ready(epoch.sent.as_ref(), self.earlier.as_ref());
        let config = epoch.config.clone();
        if let Some(sent) = &epoch.sent
            && encoded.broken(sent, None).is_some()
            && let Some(broken) = encoded.broken(sent, self.rebuilt(sent).as_ref())
        {
            self.append(broken)?;
        }
        let Ready { body, digest, prompt } = ready;
        let Body { pieces, marks } = body;
        self.append(RequestSent { purpose: Purpose::Main, attempt, body: digest, prompt, marks })?;
        self.earlier = None;
        self.partial = Partial { step, attempt, ..Partial::default() };
        self.commit()?;
        let agent = Arc::clone(&self.agent);
        let updates = self.updates.0.clone();
        let task = tokio::spawn(async move {
            let deltas = updates.clone();
            let mut on_delta = move |delta| {
                let _ = deltas.send(Update::Delta { step, attempt, delta });
            };
            let outcome = match agent.credential(&config) {
                Ok(credential) => agent.options.client.send(&config, credential.as_ref(), pieces, &mut on_delta).await,
                Err(failure) => Err(failure),
            };
            let _ = updates.send(Update::Answered { step, attempt, outcome: Box::new(outcome) });
        });
        self.in_flight.insert(key, InFlight::Attempt(task.abort_handle()));
        Ok(false)
    }

    /// An earlier request, built again from the log alone.
    pub(crate) fn rebuilt(&self, sent: &stele_core::Sent) -> Option<Encoded> {
        // A fork of which nothing is stored yet has sent nothing of its own.
        let parent = self.writer.parent().filter(|_| !self.stored);
        let session = parent.map_or(&self.session, |parent| &parent.session);
        let state = crate::open::fold(self.agent.store(), session, sent.seq.before()).ok()?;
        let mut encoded = None;
        request::update(&mut encoded, &state).ok()?;
        encoded
    }

    fn answered(&mut self, attempt: u32, answer: Answer) -> Result<()> {
        let Some(producer) = self.state.producer() else { return Ok(()) };
        self.learn_from(&answer);
        let mut next = self.state.next_call();
        let mut called: Vec<ToolCalled> = Vec::new();
        let native = |raw: Option<String>| raw.map(Text::from);
        let content = answer
            .blocks
            .into_iter()
            .map(|block| match block {
                AnswerBlock::Text { text, native: raw } => Block::Text { text: text.into(), native: native(raw) },
                AnswerBlock::Reasoning { text, native: raw } => {
                    Block::Reasoning { text: text.into(), native: native(raw) }
                }
                AnswerBlock::Call { vendor_id, name, arguments, native: raw } => {
                    let call = next;
                    next = CallId(call.0 + 1);
                    let vendor_id = vendor_id.filter(|id| {
                        let here = called.iter().any(|other| other.vendor_id.as_ref() == Some(id));
                        // One that looks like ours could be taken for another call.
                        let ours = id.parse::<CallId>().is_ok();
                        !id.is_empty() && !ours && !here && !self.state.knows_vendor_id(id)
                    });
                    called.push(ToolCalled { call, vendor_id, name, arguments: arguments.into() });
                    Block::Call { call, native: native(raw) }
                }
            })
            .collect();
        self.append(AssistantMessage {
            attempt,
            producer,
            content,
            stop: answer.stop,
            usage: answer.usage,
            usage_raw: answer.usage_raw.map(Text::from),
            interrupted: false,
        })?;
        for call in called {
            self.append(call)?;
        }
        Ok(())
    }

    fn back_off(&mut self, step: u64, attempt: u32) -> Result<()> {
        let wait = self.state.step().filter(|open| open.number == step).and_then(|open| {
            let Phase::Failed { failure, .. } = &open.phase else { return None };
            let draw = RandomState::new().build_hasher().finish();
            retry::next(failure, open.failed + open.failed_after_output, open.failed_after_output, draw)
        });
        let at = stele_core::Millis(self.agent.now().0.saturating_add_unsigned(wait.unwrap_or(0)));
        self.append(RequestRetried { attempt: attempt + 1, at })
    }

    fn interrupt(&mut self, step: u64, attempt: u32) -> Result<()> {
        self.in_flight.remove(&Action::Send { step, attempt, not_before: None }.key());
        let text = if (self.partial.step, self.partial.attempt) == (step, attempt) {
            std::mem::take(&mut self.partial).text
        } else {
            let saved = self.agent.store().partial(&self.session)?;
            saved
                .filter(|saved| (saved.step, saved.attempt) == (step, attempt))
                .map(|saved| saved.text)
                .unwrap_or_default()
        };
        let event = partial_answer(&self.state, attempt, &text);
        self.append(event)
    }

    fn wait(&mut self, key: String, until: i64, then: Option<Event>) {
        let left = Duration::from_millis(u64::try_from(until - self.agent.now().0).unwrap_or(0));
        let updates = self.updates.0.clone();
        let due = key.clone();
        let task = tokio::spawn(async move {
            tokio::time::sleep(left).await;
            let _ = updates.send(Update::Due { key: due, then: then.map(Box::new) });
        });
        self.in_flight.insert(key, InFlight::Timer(task.abort_handle()));
    }

    // ---- tools ----

    /// Validates a call and asks rules and mode about it.
    fn consult(&mut self, id: CallId, at_least: Verdict) -> Result<()> {
        let Some(record) = self.state.call(id) else { return Ok(()) };
        let Some(tool) = self.agent.tool(&record.name) else {
            let message = format!("the tool {:?} is not part of this version of the program", record.name);
            return self.append(failed(id, &ToolError::new("tool.unavailable", ToolErrorClass::Refused, message)));
        };
        let arguments = record.arguments.as_str();
        let subjects = match tool.subjects(arguments) {
            Ok(subjects) => subjects,
            Err(error) => return self.append(failed(id, &error)),
        };
        let call = Call {
            id,
            tool: record.name.clone(),
            subjects,
            effects: tool.effects(),
            parallel: tool.parallel(arguments),
        };
        let grants = if self.is_foreign() { &[] } else { self.state.grants() };
        let mut decision = self.agent.permit(&call, self.state.mode(), grants, &self.workspace);
        if decision.verdict < at_least {
            // Where nobody can be asked, a call that goes in circles is not run.
            let nobody = self.agent.options.approvals == Approvals::Nobody;
            decision.verdict = if nobody { Verdict::Deny } else { at_least };
            decision.by = "limit:repeats".to_owned();
            decision.reason = Some("the same call was made several times with the same result".to_owned());
            decision.always = None;
        }
        self.append(ToolGated {
            call: id,
            decision: decision.verdict,
            by: By(decision.by),
            reason: decision.reason,
            always: decision.always,
            effects: call.effects,
            parallel: call.parallel,
        })
    }

    fn start(&mut self, key: String, call: CallId) -> Result<()> {
        let Some((tool, arguments)) = self
            .state
            .call(call)
            .and_then(|record| Some((Arc::clone(self.agent.tool(&record.name)?), record.arguments.shared())))
        else {
            return Ok(());
        };
        self.append(ToolStarted { call })?;
        self.commit()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let updates = self.updates.0.clone();
        self.follow_cwd()?;
        let (cwd, workspace) = (self.cwd.clone(), self.workspace.root().to_owned());
        let read_files = Arc::clone(self.state.read_files());
        let shown_files = Arc::clone(self.state.shown_files());
        let images = self.state.epoch().map(|epoch| epoch.config.images).unwrap_or_default();
        let watch = self.watch(call);
        let session = self.call_session();
        let progress = {
            let updates = updates.clone();
            move |text: &str| {
                let _ = updates.send(Update::Output { call, text: text.to_owned() });
            }
        };
        let body = tokio::spawn(async move {
            let cancelled = Box::pin(async move {
                // A sender that is gone never stops anything.
                if stopped.await.is_err() {
                    std::future::pending::<()>().await;
                }
            });
            let invocation = Invocation {
                call,
                arguments: &arguments,
                cwd: &cwd,
                workspace: &workspace,
                session,
                read_files,
                shown_files,
                images,
                watch,
                cancelled,
                progress: &progress,
            };
            tool.run(invocation).await
        });
        tokio::spawn(async move {
            let output = body.await.unwrap_or_else(|_| {
                let message = "the tool failed inside; this is a defect of stele, and nothing is known of its effects";
                ToolError::new("tool.panicked", ToolErrorClass::OutcomeUnknown, message).into()
            });
            let _ = updates.send(Update::Ran { call, output: Box::new(output) });
        });
        self.in_flight.insert(key, InFlight::Body(Some(stop)));
        Ok(())
    }

    /// A command that was found to only read needs nobody to look for what it changed.
    fn watch(&self, call: CallId) -> Watch {
        let calls = self.state.step().map_or(&[][..], |step| &step.calls);
        let by = calls.iter().find(|open| open.call == call).and_then(|open| open.gated_by.as_ref());
        if by.is_some_and(|by| by.0 == stele_guard::READ_ONLY) { Watch::Nothing } else { Watch::Workspace }
    }

    fn call_session(&self) -> CallSession {
        let updates = self.updates.0.clone();
        let mut open = self.open.subscribe();
        CallSession {
            id: self.session.clone(),
            next_job: self.state.next_job(),
            notify: Arc::new(move |notice| {
                let _ = updates.send(Update::Job(notice));
            }),
            closed: Box::pin(async move { while open.changed().await.is_ok() {} }),
        }
    }

    /// Stops a body that runs. True when there is none here, and its result was appended instead.
    fn stop(&mut self, call: CallId) -> Result<bool> {
        match self.in_flight.get_mut(&Action::Run { call }.key()) {
            Some(InFlight::Body(stop)) => {
                if let Some(stop) = stop.take() {
                    let _ = stop.send(());
                }
                Ok(false)
            }
            _ => {
                let message = "outcome_unknown: the call was interrupted; check what it did before you repeat it";
                self.append(failed(
                    call,
                    &ToolError::new("tool.outcome_unknown", ToolErrorClass::OutcomeUnknown, message),
                ))?;
                Ok(true)
            }
        }
    }

    fn ran(&mut self, call: CallId, mut output: ToolOutput) -> Result<()> {
        for mut change in std::mem::take(&mut output.changed) {
            // What a file was before the turn is kept once.
            if self.state.history().knows(&change.path) {
                change.kept = None;
            }
            self.append(FileChanged { call, change })?;
        }
        let content = output.logged_content();
        self.append(ToolResult { call, content, images: output.images, error: output.error, meta: output.meta })?;
        self.follow_cwd()?;
        match output.todo {
            Some(items) => self.append(TodoSet { items }),
            None => Ok(()),
        }
    }
}

fn failed(call: CallId, error: &ToolError) -> Event {
    ToolResult {
        call,
        content: Text::from(error.message.as_str()),
        images: Vec::new(),
        error: Some(error.clone()),
        meta: Default::default(),
    }
    .into()
}

/// What the search index holds of an event: what people and the model said.
#[must_use]
pub fn search_text(event: &Event) -> Option<String> {
    let text = match event {
        Event::UserMessage(message) => {
            message.content.iter().map(|Part::Text { text }| text.as_str()).collect::<Vec<_>>().join("\n")
        }
        Event::AssistantMessage(message) => message
            .content
            .iter()
            .filter_map(|block| match block {
                Block::Text { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect::<Vec<_>>()
            .join("\n"),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

impl Agent {
    /// The credential of a route, looked up anew for each request.
    fn credential(&self, config: &stele_core::Config) -> std::result::Result<Option<stele_provider::Secret>, Failure> {
        let route =
            self.route(&config.route).map_err(|error| Failure::new(FailureCode::NoCredential, error.to_string()))?;
        route.credential(config)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Request(failure)
    }
}
