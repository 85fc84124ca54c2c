//! The event kinds, one struct each.
//!
//! A kind exists once something writes it. State-carrying events (`mode/set`, `model/set`,
//! `todo/set`) carry the whole value after the change: the last one wins.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::Verdict;
use crate::limits::TurnLimits;
use crate::{
    CallId, Config, Content, Effects, Failure, Hash, Image, ItemId, JobId, Micros, Millis, OptionalField, Price, Seq,
    SessionId, Text, ToolError, Usage, Wire, Zone,
};

/// Declares the enum of events with its kinds, and what is the same for each of them.
macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $kind:literal,)*) => {
        /// What happened: the kind and the data of a record.
        #[derive(Clone, Debug, PartialEq)]
        // The large one is written once an epoch; events are not kept in bulk.
        #[allow(clippy::large_enum_variant)]
        pub enum Event {
            $($(#[$doc])* $name($name),)*
        }

        impl Event {
            /// Every kind that this build writes, with its data's schema.
            #[must_use]
            pub fn catalogue(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
                vec![$(($kind, generator.subschema_for::<$name>()),)*]
            }

            /// The kind, such as `turn/started`.
            #[must_use]
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$name(_) => $kind,)* }
            }

            /// The data as JSON, large texts as references to their blobs.
            pub(crate) fn data(&self) -> serde_json::Result<String> {
                match self { $(Self::$name(data) => serde_json::to_string(data),)* }
            }

            /// Reads the data of a kind; `None` for a kind that this build does not know.
            pub(crate) fn read<'de, D: serde::Deserializer<'de>>(kind: &str, data: D) -> Option<Result<Self, D::Error>> {
                Some(match kind {
                    $($kind => $name::deserialize(data).map(Self::$name),)*
                    _ => return None,
                })
            }

            /// Parses the data of a kind; `None` for a kind that this build does not know.
            pub(crate) fn parse(kind: &str, data: &str) -> Option<serde_json::Result<Self>> {
                let mut json = serde_json::Deserializer::from_str(data);
                let event = Self::read(kind, &mut json)?;
                Some(event.and_then(|event| json.end().map(|()| event)))
            }

            /// Visits every text that may be stored as a blob, in a fixed order.
            pub(crate) fn texts(&mut self, visit: &mut dyn FnMut(&mut Text)) {
                match self { $(Self::$name(data) => data.texts(visit),)* }
            }

            /// Visits the bytes of files, in a fixed order.
            pub(crate) fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
                match self { $(Self::$name(data) => data.contents(visit),)* }
            }
        }

        $(impl From<$name> for Event {
            fn from(data: $name) -> Self { Self::$name(data) }
        })*
    };
}

/// Data that may hold large texts.
trait Texts {
    fn texts(&mut self, _visit: &mut dyn FnMut(&mut Text)) {}

    fn contents(&mut self, _visit: &mut dyn FnMut(&mut Content)) {}
}

events! {
    /// The session's own first record.
    SessionStarted = "session/started",
    /// The session goes on in another folder.
    SessionMoved = "session/moved",
    /// A prompt or a message waits to be claimed.
    InboxQueued = "inbox/queued",
    /// Items were taken into the open turn.
    InboxClaimed = "inbox/claimed",
    /// An item was dropped before it was claimed.
    InboxRemoved = "inbox/removed",
    /// A turn opened.
    TurnStarted = "turn/started",
    /// Somebody asked the open turn to stop.
    TurnCancel = "turn/cancel",
    /// The turn closed.
    TurnEnded = "turn/ended",
    /// A step opened: one request that will be answered, with the tool executions it causes.
    StepStarted = "step/started",
    /// The step closed.
    StepEnded = "step/ended",
    /// Content in the user's role.
    UserMessage = "user/message",
    /// The model's answer to a step's request.
    AssistantMessage = "assistant/message",
    /// How a tool call ended, as the model is told.
    ToolResult = "tool/result",
    /// The next request has to open an epoch, or has not any more.
    EpochDue = "epoch/due",
    /// An epoch opened: the header and configuration of the requests to come.
    EpochOpened = "epoch/opened",
    /// The optional fields of the epoch's requests from here on: the endpoint refused some.
    CapsSet = "caps/set",
    /// A request is about to be sent.
    RequestSent = "request/sent",
    /// An attempt failed.
    RequestFailed = "request/failed",
    /// The next attempt is due at a time.
    RequestRetried = "request/retried",
    /// Inside an epoch an item changed: a defect.
    PrefixBroken = "prefix/broken",
    /// The model asked for a tool.
    ToolCalled = "tool/called",
    /// A call was allowed, refused or put to a person.
    ToolGated = "tool/gated",
    /// A tool's body is about to run.
    ToolStarted = "tool/started",
    /// A person is asked about a call.
    ApprovalAsked = "approval/asked",
    /// The person's answer.
    ApprovalDecided = "approval/decided",
    /// The permission mode from here on.
    ModeSet = "mode/set",
    /// The route and model from here on.
    ModelSet = "model/set",
    /// The whole list of things to do.
    TodoSet = "todo/set",
    /// A part of the surface was cut, or brought back.
    SurfaceReplaced = "surface/replaced",
    /// A call changed a file.
    FileChanged = "file/changed",
    /// A turn was taken back.
    UndoApplied = "undo/applied",
    /// A turn that was taken back was done again.
    RedoApplied = "redo/applied",
    /// An import found damage: it stands for a record that was lost, or keeps the damaged bytes.
    ImportDamaged = "import/damaged",
}

/// `session/started`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionStarted {
    /// Version of the program that wrote it.
    pub version: String,
    /// The folder, canonical. An attribute of the session, not its key.
    pub cwd: String,
    /// In a fork: what it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
}
impl Texts for SessionStarted {}

/// `session/moved`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionMoved {
    /// The folder from here on, canonical.
    pub cwd: String,
}
impl Texts for SessionMoved {}

/// What a fork continues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parent {
    /// The parent session.
    pub session: SessionId,
    /// The last record of the parent that belongs to the fork.
    pub seq: Seq,
}

/// Who produced content. Content without a source cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A person.
    Person,
    /// Stele itself: a notice.
    System,
    /// A command in the background that ended.
    Job,
}

/// When a waiting item is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// It opens a turn of its own.
    NextTurn,
    /// It joins the open turn at its next step.
    NextStep,
}

/// A part of a user's content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: Text,
    },
}

impl Part {
    /// A text part.
    #[must_use]
    pub fn text(text: impl Into<Text>) -> Self {
        Self::Text { text: text.into() }
    }
}

fn parts(content: &mut [Part], visit: &mut dyn FnMut(&mut Text)) {
    for Part::Text { text } in content {
        visit(text);
    }
}

/// `inbox/queued`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InboxQueued {
    /// Number of the item, a counter of the session.
    pub item: ItemId,
    /// Who wrote it.
    pub source: Source,
    /// When it is taken.
    pub target: Target,
    /// What it says.
    pub content: Vec<Part>,
    /// Limits of the turn that it opens.
    #[serde(default, skip_serializing_if = "TurnLimits::is_default")]
    pub limits: TurnLimits,
    /// False for what opens no turn by itself: it waits for the next one, and a cancel does not drop it.
    #[serde(default = "wakes", skip_serializing_if = "Clone::clone")]
    pub wake: bool,
    /// Jobs that it tells of, as they are now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobMeta>,
}

/// What `wake` is where nothing is said.
fn wakes() -> bool {
    true
}

impl Texts for InboxQueued {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut Text)) {
        parts(&mut self.content, visit);
    }
}

/// `inbox/claimed`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InboxClaimed {
    /// The items, in the order in which they were queued.
    pub items: Vec<ItemId>,
}
impl Texts for InboxClaimed {}

/// `inbox/removed`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InboxRemoved {
    /// The item.
    pub item: ItemId,
    /// Why it was dropped.
    pub why: RemovedWhy,
}
impl Texts for InboxRemoved {}

/// Why a waiting item was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RemovedWhy {
    /// The turn that it should have joined was stopped.
    Cancelled,
}

/// `turn/started`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnStarted {
    /// What bounds the turn.
    pub limits: TurnLimits,
}
impl Texts for TurnStarted {}

/// Who did something that only a person, a frontend or a limit does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct By(pub String);

impl By {
    /// A person at this frontend, such as `person:cli`.
    #[must_use]
    pub fn person(frontend: &str) -> Self {
        Self(format!("person:{frontend}"))
    }
}

/// `turn/cancel`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnCancel {
    /// Who stopped it: `person:cli`, `signal:term`, `limit:time`.
    pub by: By,
}
impl Texts for TurnCancel {}

/// `turn/ended`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnEnded {
    /// Why the turn is over.
    pub reason: EndReason,
}
impl Texts for TurnEnded {}

/// Why a turn is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EndReason {
    /// The model had nothing more to do.
    Completed,
    /// Somebody stopped it.
    Aborted {
        /// Who.
        by: By,
    },
    /// The request failed for good.
    Failed {
        /// The stable code.
        code: String,
        /// What happened and what to do.
        message: String,
    },
    /// A limit was reached.
    Limit(LimitReached),
    /// The answer was cut at the route's maximum of output tokens.
    MaxOutput,
    /// The process went away and a new prompt closed the turn.
    Interrupted,
}

/// Which limit ended a turn, and the others that were close.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitReached {
    /// The limit.
    pub which: crate::limits::LimitKind,
    /// Its maximum.
    pub maximum: u64,
    /// What was observed.
    pub observed: u64,
    /// The three closest other limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closest: Vec<LimitNear>,
    /// The last ten calls by name and hash of their arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_calls: Vec<CallDigest>,
}

/// How near a limit was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitNear {
    /// The limit.
    pub which: crate::limits::LimitKind,
    /// Its maximum.
    pub maximum: u64,
    /// What was observed.
    pub observed: u64,
}

/// A call by name and the hash of its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallDigest {
    /// The tool's name.
    pub name: String,
    /// Hash of the raw arguments.
    pub arguments: Hash,
}

/// `step/started`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepStarted {}
impl Texts for StepStarted {}

/// `step/ended`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepEnded {}
impl Texts for StepEnded {}

/// `user/message`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserMessage {
    /// The inbox item it was; absent for a notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// Who wrote it.
    pub source: Source,
    /// What it says.
    pub content: Vec<Part>,
}
impl Texts for UserMessage {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut Text)) {
        parts(&mut self.content, visit);
    }
}

/// `assistant/message`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantMessage {
    /// The attempt that was answered.
    pub attempt: u32,
    /// Who made it: native blocks are replayed only to the same wire and model.
    pub producer: Producer,
    /// The blocks, in the model's order.
    pub content: Vec<Block>,
    /// Why the model stopped.
    pub stop: Stop,
    /// What the provider reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The provider's own usage object, raw JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_raw: Option<Text>,
    /// True when the stream was cut by a person, a crash or a new prompt; the text is what had arrived.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}
impl Texts for AssistantMessage {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut Text)) {
        for block in &mut self.content {
            match block {
                Block::Text { text, native } | Block::Reasoning { text, native } => {
                    visit(text);
                    if let Some(native) = native {
                        visit(native);
                    }
                }
                Block::Call { native, .. } => {
                    if let Some(native) = native {
                        visit(native);
                    }
                }
            }
        }
        if let Some(raw) = &mut self.usage_raw {
            visit(raw);
        }
    }
}

/// The wire and model that made an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Producer {
    /// The wire.
    pub wire: Wire,
    /// The model, as it was asked for.
    pub model: String,
}

/// A block of an answer. `native` is the block's raw JSON where the wire needs it back unchanged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text for the person.
    Text {
        /// The text.
        text: Text,
        /// Raw block for replay (Gemini signs text parts).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        native: Option<Text>,
    },
    /// The model's reasoning, as far as it is shown.
    Reasoning {
        /// The text; may be empty when it is encrypted.
        text: Text,
        /// Raw block for replay, with its signature or encrypted content.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        native: Option<Text>,
    },
    /// A tool call; name and arguments are in its `tool/called`.
    Call {
        /// The call.
        call: CallId,
        /// Raw block for replay (Gemini signs call parts).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        native: Option<Text>,
    },
}

/// Why the model stopped. The presence of complete calls decides what happens, not this word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It was done.
    End,
    /// It waits for tool results.
    ToolCalls,
    /// The maximum of output tokens was reached.
    MaxOutput,
    /// A stop sequence was reached.
    StopSequence,
    /// The model refused.
    Refusal,
    /// The provider's filter cut the answer.
    ContentFilter,
    /// The stream was cut before it said why.
    Cut,
    /// A reason this build does not know, as it was sent.
    Other(String),
}

/// `tool/called`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCalled {
    /// Our id.
    pub call: CallId,
    /// The vendor's id, kept for native replay; absent when it was empty or a repetition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor_id: Option<String>,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments as the model wrote them: raw text that should be a JSON object.
    pub arguments: Text,
}
impl Texts for ToolCalled {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut Text)) {
        visit(&mut self.arguments);
    }
}

/// `tool/gated`: written for every call that passed validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolGated {
    /// The call.
    pub call: CallId,
    /// Allowed, asked or refused.
    pub decision: Verdict,
    /// Who decided: `mode:edit`, `rule:flag:0`, `builtin:read-only`, `limit:repeats`.
    pub by: By,
    /// Why, for a person and, in a refusal, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The rule that "always" would grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<String>,
    /// What the body may change.
    pub effects: Effects,
    /// True when it may run beside its neighbours.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parallel: bool,
}
impl Texts for ToolGated {}

/// `tool/started`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolStarted {
    /// The call.
    pub call: CallId,
}
impl Texts for ToolStarted {}

/// `tool/result`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The call.
    pub call: CallId,
    /// What the model reads; a fixed text stands for nothing when the request is built.
    pub content: Text,
    /// What the model sees beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Set when the call did not do what was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// Facts for people, cards and the fold.
    #[serde(default, skip_serializing_if = "ResultMeta::is_empty")]
    pub meta: ResultMeta,
}
impl Texts for ToolResult {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut Text)) {
        visit(&mut self.content);
        for image in &mut self.images {
            visit(&mut image.data);
        }
        for file in &mut self.meta.files {
            if let Some(diff) = &mut file.diff {
                visit(diff);
            }
        }
    }
}

/// Facts about a tool's execution that are not for the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ResultMeta {
    /// Files that were read or changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileMeta>,
    /// How a command ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessMeta>,
    /// What a search found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchMeta>,
    /// Which part of a file was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<ReadMeta>,
    /// How long the body ran, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Jobs that were started, or that the model was told of, as they are after the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobMeta>,
    /// The folder, absolute, in which later calls run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Where the whole of a result is kept that was too long to be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spill: Option<SpillMeta>,
    /// Effects of the call that an undo does not reach, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_covered: Vec<String>,
}

impl ResultMeta {
    /// True when there is nothing to store.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A command in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobMeta {
    /// Its number.
    pub job: JobId,
    /// What it runs, in one short line.
    pub title: String,
    /// How far it is.
    pub status: JobStatus,
}

/// How far a command in the background is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JobStatus {
    /// It runs.
    Running,
    /// It ended by itself.
    Ended {
        /// Exit code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<i32>,
        /// The signal that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
    },
    /// It was stopped: by the model, or at its time limit.
    Stopped,
    /// The process that ran it is gone, and the job with it.
    Lost,
}

/// Where the whole of a result is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpillMeta {
    /// The name that `read` takes, such as `spill:c14`.
    pub name: String,
    /// Bytes that are kept.
    pub bytes: u64,
}

/// A file that a tool read or changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileMeta {
    /// Absolute path.
    pub path: String,
    /// What was done.
    pub action: FileAction,
    /// Hash of the content as it is after the call; absent after a deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<Hash>,
    /// Lines added.
    #[serde(default)]
    pub added: u32,
    /// Lines removed.
    #[serde(default)]
    pub removed: u32,
    /// Unified diff, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<Text>,
}

/// What a tool did with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileAction {
    /// Its content was shown to the model.
    Read,
    /// It did not exist before.
    Created,
    /// Its content was changed.
    Changed,
    /// It was removed.
    Deleted,
}

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProcessMeta {
    /// Exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// True when the time limit ended it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// Bytes of output, shown or not.
    pub output_bytes: u64,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SearchMeta {
    /// Matches that are shown.
    pub matches: u64,
    /// Matches there are, as far as was counted.
    pub total: u64,
    /// True when not all are shown.
    pub truncated: bool,
}

/// Which part of a file was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReadMeta {
    /// First line, from 1.
    pub offset: u64,
    /// Lines shown.
    pub lines: u64,
    /// Lines there are.
    pub total: u64,
    /// True when a pointer to what had been shown before stands for the lines.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unchanged: bool,
    /// Bytes that the pointer kept from being sent again.
    #[serde(skip_serializing_if = "is_zero")]
    pub saved: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the shape serde asks for
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// `epoch/due`: what the next epoch opens for, beside what the log itself says (a cut, another model). It is written by
/// whoever found that header or configuration differ from what the open epoch has, so that the log alone decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EpochDue {
    /// Why; absent when the open epoch is kept after all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<EpochReason>,
    /// Who found it: `resume`, `fork`, `fold`, or the person who chose to keep the open epoch.
    pub by: By,
}
impl Texts for EpochDue {}

/// `epoch/opened`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EpochOpened {
    /// Number of the epoch, from 1.
    pub n: u32,
    /// Why the last one ended.
    pub reason: EpochReason,
    /// Version of the program that composed it; empty in logs from before it was written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// What leaving the last one was estimated to cost; absent for a session's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<EpochCost>,
    /// The header, in order: tools, system, preface.
    pub segments: Vec<Segment>,
    /// What else shapes the bytes of a request.
    pub config: Config,
    /// What the route costs, as it was known then; absent for an unpriced route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The most tokens that one answer can have, as it was known then: what bounds the cost of a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
}
impl Texts for EpochOpened {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut Text)) {
        for segment in &mut self.segments {
            visit(&mut segment.text);
        }
    }
}

/// What it costs to leave a prefix that the provider has in its cache: an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EpochCost {
    /// Tokens that would have been read from the cache and are sent fresh.
    pub tokens: u64,
    /// What that costs more, in millionths of a dollar; absent where the route has no price for one of the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<Micros>,
}

/// Why an epoch opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EpochReason {
    /// The session's first request.
    Initial,
    /// Another model or route was chosen.
    ModelChanged,
    /// The route leads elsewhere than when the log was left.
    ResumeDrift {
        /// What differs.
        what: String,
    },
    /// A turn was taken back, or done again.
    Undo,
    /// The provider refused the history as it was.
    Repair,
    /// Other tools are offered.
    ToolsChanged {
        /// Tools that were not offered before.
        added: Vec<String>,
        /// Tools that are not offered any more.
        removed: Vec<String>,
        /// Tools whose description or schema is another one.
        changed: Vec<String>,
    },
    /// The system text is another one.
    SystemChanged {
        /// The sections that came, went or changed.
        sections: Vec<String>,
    },
    /// The model's parameters are other ones.
    ParametersChanged,
    /// This build encodes requests in another way.
    Encoder,
    /// A fork whose header or parameters are not its parent's.
    Forked,
    /// The header that the log gave was not the one that it describes: it was composed again.
    Restored,
}

impl EpochReason {
    /// The name in the log and in reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::ModelChanged => "model_changed",
            Self::ResumeDrift { .. } => "resume_drift",
            Self::Undo => "undo",
            Self::Repair => "repair",
            Self::ToolsChanged { .. } => "tools_changed",
            Self::SystemChanged { .. } => "system_changed",
            Self::ParametersChanged => "parameters_changed",
            Self::Encoder => "encoder",
            Self::Forked => "forked",
            Self::Restored => "restored",
        }
    }
}

/// A named part of the header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Segment {
    /// Where it stands.
    pub zone: Zone,
    /// Name: the tool's, the section's, or the source of a piece of the preface.
    pub name: String,
    /// A tool's canonical JSON, or text; always a blob, so that equal segments are stored once.
    pub text: Text,
}

impl Segment {
    /// What the log holds of it beside the text.
    #[must_use]
    pub fn digest(&self) -> SegmentDigest {
        let text = self.text.as_str();
        let (zone, name) = (self.zone, self.name.clone());
        SegmentDigest { zone, name, hash: Hash::of(text.as_bytes()), len: text.len() as u64 }
    }
}

/// A named part of the header by its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentDigest {
    /// Where it stands.
    pub zone: Zone,
    /// Its name.
    pub name: String,
    /// BLAKE3 of its text.
    pub hash: Hash,
    /// Bytes of its text.
    pub len: u64,
}

/// `request/sent`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestSent {
    /// What the request is for.
    pub purpose: Purpose,
    /// The try, from 1 within its step.
    pub attempt: u32,
    /// Exactly the bytes on the wire.
    pub body: BodyDigest,
    /// The prompt as items.
    pub prompt: PromptDigest,
    /// Items that carry a cache mark, by index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<u64>,
}
impl Texts for RequestSent {}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The conversation itself.
    Main,
}

/// Hash and length of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BodyDigest {
    /// BLAKE3 of the body.
    pub hash: Hash,
    /// Bytes.
    pub len: u64,
}

/// Hash and length of a request's prompt: its items in prompt order, without cache marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptDigest {
    /// BLAKE3 over the items; each is preceded by its length (8 bytes, little endian).
    pub hash: Hash,
    /// Bytes of all items.
    pub len: u64,
    /// Number of items.
    pub items: u64,
    /// Item bytes that are the same as in the `main` request before, from the front.
    pub shared: u64,
}

/// `request/failed`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestFailed {
    /// The try that failed.
    pub attempt: u32,
    /// How.
    #[serde(flatten)]
    pub failure: Failure,
}
impl Texts for RequestFailed {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut Text)) {
        visit(&mut self.failure.message);
    }
}

/// `caps/set`: the request that was refused is sent again at once, without what was dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapsSet {
    /// Every optional field that is still sent.
    pub fields: Vec<OptionalField>,
    /// Those that were dropped now.
    pub dropped: Vec<OptionalField>,
}
impl Texts for CapsSet {}

/// `request/retried`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestRetried {
    /// The try that is due.
    pub attempt: u32,
    /// When, jitter included.
    pub at: Millis,
}
impl Texts for RequestRetried {}

/// `prefix/broken`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PrefixBroken {
    /// Index of the first item that differs.
    pub item: u64,
    /// Its zone.
    pub zone: Zone,
    /// Its name in the header, or its role and place in the history.
    pub segment: String,
    /// The bytes around the difference in the earlier request.
    pub before: Text,
    /// The bytes around the difference now.
    pub after: Text,
}
impl Texts for PrefixBroken {}

/// `approval/asked`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalAsked {
    /// The call.
    pub call: CallId,
}
impl Texts for ApprovalAsked {}

/// `approval/decided`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalDecided {
    /// The call.
    pub call: CallId,
    /// Who decided; `headless` when there was nobody to ask.
    pub by: By,
    /// What was decided.
    pub outcome: ApprovalOutcome,
}
impl Texts for ApprovalDecided {}

/// A person's answer to a question about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ApprovalOutcome {
    /// This call only.
    Once,
    /// This call, and every later one that the rule covers, in this session.
    Always {
        /// The rule, as the person read it.
        rule: String,
    },
    /// Not this call.
    Reject {
        /// Why, for the model.
        reason: String,
    },
    /// There was nobody to ask.
    Unanswered,
}

/// How much the agent may do without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Reading is free; everything else asks.
    #[default]
    Ask,
    /// Edits in the workspace are free as well.
    Edit,
    /// Nothing asks. Denies hold.
    Full,
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ask => "ask",
            Self::Edit => "edit",
            Self::Full => "full",
        })
    }
}

impl std::str::FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ask" => Ok(Self::Ask),
            "edit" => Ok(Self::Edit),
            "full" => Ok(Self::Full),
            _ => Err(format!("unknown mode {text:?}; the modes are ask, edit and full")),
        }
    }
}

/// `mode/set`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModeSet {
    /// The mode from here on.
    pub mode: Mode,
    /// Who set it.
    pub by: By,
}
impl Texts for ModeSet {}

/// `model/set`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelSet {
    /// Name of the route in the configuration.
    pub route: String,
    /// The model that is asked for.
    pub model: String,
    /// The protocol it speaks.
    pub wire: Wire,
    /// Where it is, without user information.
    pub base_url: String,
    /// Who set it.
    pub by: By,
}
impl Texts for ModelSet {}

/// `todo/set`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TodoSet {
    /// The whole list.
    pub items: Vec<TodoItem>,
}
impl Texts for TodoSet {}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TodoItem {
    /// What to do, in a few words.
    pub text: String,
    /// How far it is.
    pub status: TodoStatus,
}

/// How far a thing to do is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Done,
}

/// `surface/replaced`: one cut, all of it or nothing. The next request opens an epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SurfaceReplaced {
    /// Why.
    pub reason: CutReason,
    /// Stretches of the surface, which do not overlap.
    pub spans: Vec<Span>,
}
impl Texts for SurfaceReplaced {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut Text)) {
        for item in self.spans.iter_mut().flat_map(|span| &mut span.with) {
            if let Replacement::Result { result } = item {
                visit(&mut result.content);
                for image in &mut result.images {
                    visit(&mut image.data);
                }
            }
        }
    }
}

/// Why a part of the surface was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CutReason {
    /// A turn was taken back.
    Undo,
    /// A turn that was taken back was done again.
    Redo,
    /// The provider refused the history as it was.
    Repair,
}

/// A stretch of the surface and what stands there from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// What is replaced; absent for what is put at the end.
    #[serde(flatten)]
    pub range: Option<SpanRange>,
    /// What takes its place, in order.
    pub with: Vec<Replacement>,
}

/// Items of the surface, by the records that they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpanRange {
    /// The first one.
    pub first: Seq,
    /// The last one.
    pub last: Seq,
}

/// What stands on the surface from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Replacement {
    /// An item that was there before.
    Back(ItemRef),
    /// A result as it reads from now on.
    Result {
        /// The result.
        result: ResultStub,
    },
}

/// A result as it reads from now on: it keeps its call and its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResultStub {
    /// The record whose place it takes; it is among the replaced items.
    pub of: Seq,
    /// The call.
    pub call: CallId,
    /// What the model reads.
    pub content: Text,
    /// Set when the call did not do what was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// What the model sees beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// An item that was on the surface before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ItemRef {
    /// Its record.
    #[serde(rename = "ref")]
    pub seq: Seq,
}

/// What a file was at some time, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileVersion {
    /// Hash of its bytes; of a symbolic link, of where it points to.
    pub hash: Hash,
    /// Number of bytes.
    pub len: u64,
    /// Type and mode, as `st_mode`.
    pub mode: u32,
}

/// A file before and after it was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// Absolute path, without symbolic links on the way.
    pub path: String,
    /// What it was; absent when it did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<FileVersion>,
    /// What it is; absent when it does not exist any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<FileVersion>,
    /// The bytes it had; absent when they are not kept, or were kept for an earlier change of its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Content>,
    /// The first of the folders that were made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<String>,
}

/// `file/changed`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChanged {
    /// The call that changed it.
    pub call: CallId,
    /// The file.
    #[serde(flatten)]
    pub change: FileChange,
}
impl Texts for FileChanged {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        self.change.kept.iter_mut().for_each(visit);
    }
}

/// A file that an undo or redo left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileLeft {
    /// Absolute path.
    pub path: String,
    /// Why.
    pub why: LeftWhy,
}

/// Why a file was left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeftWhy {
    /// It is not what the turn left: somebody changed it since.
    ChangedSince,
    /// The bytes it had are not kept.
    NotKept,
    /// What stands there is more than is kept of one file, so that it would be lost.
    WouldBeLost,
    /// What stands there cannot be looked at or replaced.
    Blocked {
        /// Why not.
        detail: String,
    },
}

/// `undo/applied`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UndoApplied {
    /// The turn that was taken back.
    pub turn: u64,
    /// Who asked for it.
    pub by: By,
    /// The files that are restored, with what they were just before, or, where they were as before the turn already,
    /// with what the turn had made of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileChange>,
    /// The files that were left as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<FileLeft>,
    /// Effects of the turn that an undo does not reach, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_covered: Vec<String>,
}
impl Texts for UndoApplied {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        self.files.iter_mut().filter_map(|file| file.kept.as_mut()).for_each(visit);
    }
}

/// `redo/applied`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RedoApplied {
    /// The turn that was done again.
    pub turn: u64,
    /// Who asked for it.
    pub by: By,
    /// The files that were changed again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileChange>,
    /// The files that were left as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<FileLeft>,
}
impl Texts for RedoApplied {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        self.files.iter_mut().filter_map(|file| file.kept.as_mut()).for_each(visit);
    }
}

/// `import/damaged`, written by the store in place of what a damaged file does not hold any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportDamaged {
    /// What this record stands for.
    pub what: String,
}
impl Texts for ImportDamaged {}

/// Headers of a route that may be logged, by name.
pub type PlainHeaders = BTreeMap<String, String>;
