//! A driver without I/O: it does what is owed, with outcomes that depend on ids alone.

use std::collections::BTreeMap;

use stele_core::limits::TurnLimits;
use stele_core::{
    Action, ApprovalDecided, ApprovalOutcome, AssistantMessage, Block, BodyDigest, By, CacheMarks, CallId, Config,
    Effects, EpochOpened, Event, Failure, FailureCode, Hash, Image, ImageInput, InboxQueued, JobId, JobMeta, JobStatus,
    MediaType, Message, Millis, Parameters, Part, Producer, PromptDigest, Purpose, Record, RedoApplied, RequestFailed,
    RequestRetried, RequestSent, Segment, Source, State, Stop, Target, Text, ToolCalled, ToolGated, ToolResult,
    ToolStarted, UndoApplied, Usage, Verdict, Wire, Zone, owed, partial_answer,
};

/// Decides how everything ends, from a seed and the ids involved.
#[derive(Clone, Copy, Debug)]
pub struct World {
    pub seed: u64,
}

/// A session that is being driven.
#[derive(Clone)]
pub struct Run {
    pub state: State,
    pub log: Vec<Record>,
    /// Lengths of the log at which a real driver commits: before it waits for anything.
    pub commits: Vec<usize>,
    /// Messages of each request, with the epoch they belong to.
    pub requests: Vec<(u32, Vec<Message>)>,
    ran: BTreeMap<CallId, u32>,
}

pub fn config() -> Config {
    Config {
        route: "test".into(),
        wire: Wire::OpenaiChat,
        base_url: "http://127.0.0.1/v1".into(),
        model: "model-a".into(),
        encoder: "openai-chat/1".into(),
        derive_rev: stele_core::derive_rev(Wire::OpenaiChat),
        withheld: Default::default(),
        parameters: Parameters::default(),
        cache: CacheMarks::default(),
        dialect: None,
        images: ImageInput::Sent,
        headers: BTreeMap::new(),
    }
}

pub fn image(n: u64) -> Image {
    Image::new(MediaType::Png, format!("{n:04}"), 640, 480)
}

pub fn producer() -> Producer {
    Producer { wire: Wire::OpenaiChat, model: "model-a".into() }
}

impl Run {
    pub fn new() -> Self {
        Self { state: State::new(), log: Vec::new(), commits: Vec::new(), requests: Vec::new(), ran: BTreeMap::new() }
    }

    pub fn resumed(log: &[Record]) -> Self {
        let mut run = Self::new();
        for record in log {
            run.state.fold(record);
        }
        run.log = log.to_vec();
        for event in stele_core::resume(&run.state) {
            run.append(event);
        }
        run
    }

    pub fn append(&mut self, event: impl Into<Event>) {
        let seq = self.state.next_seq();
        let ts = Millis(1_000 + i64::try_from(seq.0).unwrap());
        let record = Record { seq, ts, turn: None, step: None, event: event.into() };
        self.state.fold(&record);
        self.log.push(record);
    }

    pub fn prompt(&mut self, text: &str, target: Target) {
        let item = self.state.next_item();
        let content = vec![Part::text(text)];
        self.append(InboxQueued {
            item,
            source: Source::Person,
            target,
            content,
            limits: TurnLimits::default(),
            wake: true,
            jobs: Vec::new(),
        });
    }

    /// Something that the model is to know, and that wakes nobody: of a job, or of the folder.
    pub fn notice(&mut self, text: &str, job: Option<JobId>) {
        let jobs = job.map(|job| JobMeta { job, title: "job".into(), status: JobStatus::Lost });
        self.append(InboxQueued {
            item: self.state.next_item(),
            source: if job.is_some() { Source::Job } else { Source::System },
            target: Target::NextStep,
            content: vec![Part::text(text)],
            limits: TurnLimits::default(),
            wake: false,
            jobs: jobs.into_iter().collect(),
        });
    }

    /// Takes the last turn back, or brings the last one that was taken back; false when there is none.
    pub fn undo(&mut self) -> bool {
        let Some(turn) = self.state.history().done().last().map(|last| last.turn) else { return false };
        let cut = self.state.undo_cut();
        let by = By::person("test");
        self.append(UndoApplied { turn, by, files: Vec::new(), left: Vec::new(), not_covered: Vec::new() });
        cut.into_iter().for_each(|cut| self.append(cut));
        true
    }

    pub fn redo(&mut self) -> bool {
        let Some(turn) = self.state.history().undone().last().map(|last| last.changes.turn) else { return false };
        let cut = self.state.redo_cut();
        self.append(RedoApplied { turn, by: By::person("test"), files: Vec::new(), left: Vec::new() });
        cut.into_iter().for_each(|cut| self.append(cut));
        true
    }

    fn commit(&mut self) {
        if self.commits.last() != Some(&self.log.len()) {
            self.commits.push(self.log.len());
        }
    }

    /// Drives until nothing is owed; panics if that takes too long.
    pub fn drive(&mut self, world: World) {
        for _ in 0..2_000 {
            let Some(action) = owed(&self.state).into_iter().next() else {
                self.commit();
                return;
            };
            self.act(world, action);
        }
        panic!("no end: {:?}", owed(&self.state));
    }

    /// Drives until a request is owed, and sends it.
    pub fn drive_to_request(&mut self) {
        for _ in 0..100 {
            match owed(&self.state).into_iter().next() {
                Some(Action::Send { attempt, .. }) => return self.request(attempt),
                Some(action) => self.act(World { seed: 0 }, action),
                None => panic!("no request is owed"),
            }
        }
    }

    /// Answers the open request.
    pub fn answer_with(&mut self, content: Vec<Block>) {
        let calls: Vec<CallId> = content
            .iter()
            .filter_map(|block| match block {
                Block::Call { call, .. } => Some(*call),
                _ => None,
            })
            .collect();
        self.append(AssistantMessage {
            attempt: 1,
            producer: producer(),
            content,
            stop: Stop::End,
            usage: None,
            usage_raw: None,
            interrupted: false,
        });
        for call in calls {
            let arguments = Text::from("{}");
            self.append(ToolCalled { call, vendor_id: None, name: "tool".into(), arguments });
        }
    }

    fn request(&mut self, attempt: u32) {
        let digest = BodyDigest { hash: Hash::of(b""), len: 0 };
        let prompt = PromptDigest { hash: Hash::of(b""), len: 0, items: 0, shared: 0 };
        self.append(RequestSent { purpose: Purpose::Main, attempt, body: digest, prompt, marks: Vec::new() });
    }

    /// Does the first thing that is owed.
    pub fn step(&mut self, world: World) {
        if let Some(action) = owed(&self.state).into_iter().next() {
            self.act(world, action);
        }
    }

    fn act(&mut self, world: World, action: Action) {
        match action {
            Action::Append(event) => self.append(event),
            Action::Compose { reason } => {
                let n = self.state.epoch().map_or(1, |epoch| epoch.n + 1);
                let schema = r#"{"name":"tool","description":"","parameters":{}}"#;
                let tool = Segment { zone: Zone::Tools, name: "tool".into(), text: Text::from(schema).sealed() };
                self.append(EpochOpened {
                    n,
                    reason,
                    version: "test".into(),
                    cost: None,
                    segments: vec![tool],
                    config: Box::new(config()),
                    price: None,
                    max_output: None,
                });
            }
            Action::Consult { call, at_least } => {
                let verdict = match world.draw("gate", call.0, 10) {
                    0 => Verdict::Deny,
                    1 => Verdict::Ask,
                    _ => Verdict::Allow,
                };
                let effects = if world.draw("effects", call.0, 2) == 0 { Effects::None } else { Effects::Local };
                self.append(ToolGated {
                    call,
                    decision: verdict.max(at_least),
                    by: By("test".into()),
                    reason: None,
                    always: Vec::new(),
                    settled_with: Vec::new(),
                    settled_by: None,
                    effects,
                    parallel: effects == Effects::None,
                });
            }
            Action::Send { step, attempt, .. } => self.send(world, step, attempt),
            Action::Backoff { attempt, .. } => self.append(RequestRetried { attempt: attempt + 1, at: Millis(0) }),
            Action::Interrupt { attempt, .. } => {
                let event = partial_answer(&self.state, attempt, "", None);
                self.append(event);
            }
            Action::Ask { call } => {
                self.commit();
                let outcome = match world.draw("ask", call.0, 3) {
                    0 => ApprovalOutcome::Once,
                    1 => ApprovalOutcome::Reject { reason: "no".into() },
                    _ => ApprovalOutcome::Unanswered,
                };
                self.append(ApprovalDecided { call, by: By("person:test".into()), outcome });
            }
            Action::Run { call } => {
                self.append(ToolStarted { call });
                self.commit();
                *self.ran.entry(call).or_default() += 1;
                let kind = world.draw("result", call.0, 4);
                let error =
                    (kind == 0).then(|| stele_core::ToolError::new("x", stele_core::ToolErrorClass::Transient, ""));
                self.append(ToolResult {
                    call,
                    content: Text::from(if kind == 1 { String::new() } else { format!("result of {call}") }),
                    images: if kind == 2 { vec![image(call.0)] } else { Vec::new() },
                    error,
                    meta: Default::default(),
                });
            }
            Action::Stop { call } => self.append(ToolResult {
                call,
                content: Text::from("stopped"),
                images: Vec::new(),
                error: None,
                meta: Default::default(),
            }),
            Action::Wait { .. } => panic!("no deadline was set"),
        }
    }

    fn send(&mut self, world: World, step: u64, attempt: u32) {
        let epoch = self.state.epoch().expect("an epoch is open").n;
        self.requests.push((epoch, self.state.messages(0)));
        self.request(attempt);
        self.commit();
        let id = step * 100 + u64::from(attempt);
        match world.draw("send", id, 8) {
            0 => self.append(RequestFailed { attempt, failure: Failure::new(FailureCode::Server, "busy") }),
            2 => {
                let message = match world.draw("image", id, 2) {
                    0 => "messages.2.content.0.tool_result.content.1.image.source: too large",
                    _ => "invalid image",
                };
                self.append(RequestFailed { attempt, failure: Failure::new(FailureCode::InvalidRequest, message) });
            }
            1 if world.draw("auth", id, 6) == 0 => {
                self.append(RequestFailed { attempt, failure: Failure::new(FailureCode::Auth, "no") });
            }
            3 if world.draw("refuses", id, 2) == 0 => {
                let fields = stele_core::OptionalField::ALL;
                let field = fields[usize::try_from(world.draw("field", id, fields.len() as u64)).unwrap()];
                let failure = Failure::new(FailureCode::InvalidRequest, "unknown field");
                self.append(RequestFailed { attempt, failure: Failure { refused: vec![field], ..failure } });
            }
            _ => self.answer(world, step, attempt),
        }
    }

    fn answer(&mut self, world: World, step: u64, attempt: u32) {
        let calls = if step % 6 == 5 { 0 } else { world.draw("calls", step, 4) };
        let mut content = vec![Block::Text { text: Text::from(format!("step {step}")), native: None }];
        let first = self.state.next_call();
        let ids: Vec<CallId> = (0..calls).map(|n| CallId(first.0 + n)).collect();
        content.extend(ids.iter().map(|call| Block::Call { call: *call, native: None }));
        self.append(AssistantMessage {
            attempt,
            producer: producer(),
            content,
            stop: Stop::End,
            usage: Some(Usage { output: Some(1), ..Usage::default() }),
            usage_raw: None,
            interrupted: false,
        });
        for call in ids {
            let name = if world.draw("name", call.0, 12) == 0 { "tol" } else { "tool" };
            let arguments = Text::from(format!("{{\"n\":{call}}}").as_str());
            self.append(ToolCalled { call, vendor_id: None, name: name.into(), arguments });
        }
    }
}

impl World {
    /// A number below `most`, the same for the same question.
    pub fn draw(self, what: &str, id: u64, most: u64) -> u64 {
        let hash = Hash::of(format!("{}/{what}/{id}", self.seed).as_bytes());
        u64::from_le_bytes(hash.0[..8].try_into().unwrap()) % most
    }
}
