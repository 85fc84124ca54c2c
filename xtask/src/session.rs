//! Large sessions, made with the core's own rules and written through the real store: the log says what the driver
//! would have written, only that answers and results are drawn instead of being waited for.

use anyhow::{Context, Result, bail};
use serde_json::json;
use stele_core::{
    Action, AssistantMessage, Block, By, CallId, Effects, Event, FileAction, FileMeta, Hash, InboxQueued, Millis, Part,
    ProcessMeta, Purpose, Record, RequestSent, ResultMeta, Seq, SessionId, Source, State, Stop, Target, TodoItem,
    TodoSet, TodoStatus, ToolCalled, ToolGated, ToolResult, ToolStarted, Usage, Verdict, owed,
};
use stele_provider::Encoder;
use stele_store::{Append, Durability, Store, Summary, Writer};

use crate::random::Random;

/// Records of one transaction.
const BATCH: usize = 1_000;

/// What was made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Size {
    /// Records.
    pub records: u64,
    /// Bytes of records.
    pub record_bytes: u64,
    /// Bytes of the blobs they cite, unpacked, each once.
    pub blob_bytes: u64,
    /// Bytes of the last request's body.
    pub request_bytes: u64,
}

impl Size {
    /// Everything in megabytes.
    pub fn megabytes(&self) -> f64 {
        (self.record_bytes + self.blob_bytes) as f64 / 1e6
    }
}

/// How large results are.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Bytes of an ordinary result, about.
    pub result: u64,
}

/// Goes on with a session until its log has so many records and no turn is open. The session must be idle.
pub fn grow(store: &Store, session: &SessionId, records: u64, mix: Mix, random: &mut Random) -> Result<Size> {
    let mut grower = Grower::open(store, session, mix, random)?;
    while grower.state.next_seq().0 < records {
        // A turn of about 40 steps is some 330 records.
        let left = records - grower.state.next_seq().0;
        let steps = grower.random.between(10, 70).min(left / 8);
        grower.turn(steps.max(1))?;
    }
    grower.write()?;
    Ok(grower.size)
}

struct Grower<'a> {
    state: State,
    encoder: Encoder,
    encoded: usize,
    writer: Writer,
    batch: Vec<Append>,
    now: Millis,
    size: Size,
    mix: Mix,
    random: &'a mut Random,
}

impl<'a> Grower<'a> {
    fn open(store: &Store, session: &SessionId, mix: Mix, random: &'a mut Random) -> Result<Self> {
        let writer = store.writer(session)?;
        let (mut state, mut now, mut size) = (State::new(), Millis(0), Size::default());
        for stored in store.read(session, Seq(0))? {
            let stored = stored?;
            let fetch = &mut |hash: &Hash| store.blob(hash).ok().flatten();
            let record = Record::decode(stored.seq, &stored.bytes, fetch)?.context("a record is of an unknown kind")?;
            (size.records, size.record_bytes) = (size.records + 1, size.record_bytes + stored.bytes.len() as u64);
            now = record.ts;
            state.fold(&record);
        }
        if state.turn().is_some() {
            bail!("a turn is open in the session");
        }
        let epoch = state.epoch().context("the session has sent no request")?;
        let encoder = Encoder::new(&epoch.header, &epoch.config).map_err(|failure| anyhow::anyhow!("{failure:?}"))?;
        Ok(Self { state, encoder, encoded: 0, writer, batch: Vec::new(), now, size, mix, random })
    }

    fn turn(&mut self, steps: u64) -> Result<()> {
        let text = self.random.text(200);
        self.append(InboxQueued {
            item: self.state.next_item(),
            source: Source::Person,
            target: Target::NextTurn,
            content: vec![Part::text(text)],
            limits: Default::default(),
            wake: true,
            jobs: Vec::new(),
        })?;
        let last = self.state.counters().steps + steps;
        loop {
            let actions = owed(&self.state);
            let Some(action) = actions.into_iter().find(|action| !matches!(action, Action::Wait { .. })) else {
                return Ok(());
            };
            match action {
                Action::Append(event) => self.append(event)?,
                Action::Consult { call, .. } => self.gate(call)?,
                Action::Send { step, attempt, .. } => self.exchange(attempt, step >= last)?,
                Action::Run { call } => self.execute(call)?,
                other => bail!("the session owes {other:?}, which nobody here does"),
            }
        }
    }

    /// A request and its answer.
    fn exchange(&mut self, attempt: u32, last: bool) -> Result<()> {
        self.state.each_message(self.encoded, &mut |message| self.encoder.push(&message));
        self.encoded = self.state.surface_len();
        self.encoder.mark_ends_of(&self.state.earlier_prompts());
        let shared = self.state.epoch().and_then(|epoch| epoch.sent.as_ref()).map_or(0, |sent| sent.prompt.len);
        let body = self.encoder.body_digest();
        self.size.request_bytes = body.len;
        let marks = self.encoder.marks().into_iter().map(|mark| mark as u64).collect();
        let prompt = self.encoder.prompt_digest(shared);
        self.append(RequestSent { purpose: Purpose::Main, attempt, body, prompt, marks })?;
        // Tokens of some four bytes; all but what is new was read from the cache.
        let (known, all) = (shared / 4, prompt.len / 4);
        let output = self.random.between(40, 400);
        let usage = Usage {
            fresh: Some(4),
            cache_read: Some(known),
            cache_write: Some(all.saturating_sub(known + 4)),
            output: Some(output),
            ..Usage::default()
        };
        let raw = json!({"input_tokens": 4, "cache_read_input_tokens": known,
            "cache_creation_input_tokens": all.saturating_sub(known + 4), "output_tokens": output});
        let mut content = Vec::new();
        if last || self.random.below(3) == 0 {
            let bytes = self.random.between(60, 500);
            content.push(Block::Text { text: self.random.text(usize::try_from(bytes)?).into(), native: None });
        }
        let calls = if last { 0 } else { self.random.between(1, 8).saturating_sub(6).max(1) };
        let first = self.state.next_call().0;
        content.extend((first..first + calls).map(|call| Block::Call { call: CallId(call), native: None }));
        let producer = self.state.producer().context("no model was chosen")?;
        let stop = if last { Stop::End } else { Stop::ToolCalls };
        let usage_raw = Some(raw.to_string().into());
        self.append(AssistantMessage {
            attempt,
            producer,
            content,
            stop,
            usage: Some(usage),
            usage_raw,
            interrupted: false,
        })?;
        for call in first..first + calls {
            let (name, arguments) = self.call(call);
            let vendor_id = Some(format!("toolu_{:020}", call));
            self.append(ToolCalled {
                call: CallId(call),
                vendor_id,
                name: name.to_owned(),
                arguments: arguments.into(),
            })?;
        }
        Ok(())
    }

    /// A call as a model makes them: mostly reading, some edits, some commands.
    fn call(&mut self, number: u64) -> (&'static str, String) {
        let path = format!("src/module{}/file{}.rs", self.random.below(40), self.random.below(400));
        match self.random.below(20) {
            0..=7 => ("read", json!({"path": path, "offset": number % 900 + 1, "limit": 60}).to_string()),
            8..=10 => ("grep", json!({"pattern": format!("fn item{number}"), "path": "src"}).to_string()),
            11..=14 => {
                let (old, new) = (self.random.text(180), self.random.text(220));
                ("edit", json!({"path": path, "edits": [{"old": old, "new": new}]}).to_string())
            }
            15 => {
                let item = json!({"text": format!("do part {number}"), "status": "pending"});
                ("todo", json!({"items": [item]}).to_string())
            }
            _ => (
                "bash",
                json!({"command": format!("cargo test --package part{} -- case{number}", number % 40)}).to_string(),
            ),
        }
    }

    fn gate(&mut self, call: CallId) -> Result<()> {
        let name = self.name(call)?;
        let changes = matches!(name.as_str(), "edit" | "bash");
        self.append(ToolGated {
            call,
            decision: Verdict::Allow,
            by: By(if changes { "mode:full" } else { "builtin:read-only" }.to_owned()),
            reason: None,
            always: Vec::new(),
            settled_with: Vec::new(),
            settled_by: None,
            effects: if changes { Effects::Local } else { Effects::None },
            parallel: !changes && name != "todo",
        })
    }

    fn execute(&mut self, call: CallId) -> Result<()> {
        let name = self.name(call)?;
        self.append(ToolStarted { call })?;
        // Most results are short, some are so long that they are blobs.
        let most = match self.random.below(20) {
            0 => self.mix.result * 6,
            1..=5 => self.mix.result * 2,
            _ => self.mix.result,
        };
        let bytes = self.random.between(most / 8, most);
        let mut meta = ResultMeta { duration_ms: Some(self.random.below(900)), ..ResultMeta::default() };
        let mut bytes = usize::try_from(bytes)?;
        let path = || format!("/work/src/file{}.rs", call.0 % 400);
        match name.as_str() {
            "bash" => {
                meta.process = Some(ProcessMeta { exit: Some(0), output_bytes: bytes as u64, ..ProcessMeta::default() })
            }
            "edit" => {
                let diff = Some(self.random.text(600).into());
                let hash = Some(Hash::of(&call.0.to_le_bytes()));
                let (path, action) = (path(), FileAction::Changed);
                meta.files.push(FileMeta { path, action, hash, added: 4, removed: 3, diff, part: None });
                bytes = bytes.min(200);
            }
            "read" => {
                let hash = Some(Hash::of(&call.0.to_le_bytes()));
                let (path, action) = (path(), FileAction::Read);
                meta.files.push(FileMeta { path, action, hash, added: 0, removed: 0, diff: None, part: None });
            }
            _ => {}
        }
        let content = self.random.text(bytes);
        self.append(ToolResult { call, content: content.into(), images: Vec::new(), error: None, meta })?;
        if name == "todo" {
            let items = vec![TodoItem { text: format!("do part {}", call.0), status: TodoStatus::Pending }];
            self.append(TodoSet { items })?;
        }
        Ok(())
    }

    fn name(&self, call: CallId) -> Result<String> {
        Ok(self.state.call(call).context("an unknown call is open")?.name.clone())
    }

    /// Appends an event as the driver does, with its turn and step.
    fn append(&mut self, event: impl Into<Event>) -> Result<()> {
        self.now = Millis(self.now.0 + 7);
        let mut record = Record::next(&self.state, self.now, event.into());
        let search = transcript(&record.event);
        let stored = record.encode()?;
        self.state.fold(&record);
        self.size.records += 1;
        self.size.record_bytes += stored.bytes.len() as u64;
        self.size.blob_bytes += stored.blobs.iter().map(|(_, text)| text.len() as u64).sum::<u64>();
        self.batch.push(Append { seq: record.seq, record: stored, search });
        if self.batch.len() >= BATCH { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let counters = self.state.counters();
        let summary = Summary {
            cwd: self.state.session().map(|session| session.cwd.clone()).unwrap_or_default(),
            updated: self.now,
            title: self.state.first_prompt().map(|prompt| prompt.chars().take(80).collect()),
            model: self.state.model().map(|model| model.model.clone()),
            turns: counters.turns,
            steps: counters.steps,
            cost: self.state.cost(),
        };
        if !self.batch.is_empty() {
            self.writer.append(&self.batch, Durability::Normal, Some(&summary))?;
            self.batch.clear();
        }
        Ok(())
    }
}

/// What the search index holds of an event.
fn transcript(event: &Event) -> Option<String> {
    match event {
        Event::UserMessage(message) => {
            let Part::Text { text } = message.content.first()?;
            Some(text.as_str().to_owned())
        }
        Event::AssistantMessage(message) => message.content.iter().find_map(|block| match block {
            Block::Text { text, .. } => Some(text.as_str().to_owned()),
            _ => None,
        }),
        _ => None,
    }
}
