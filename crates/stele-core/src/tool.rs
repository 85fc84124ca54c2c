//! The contract of a tool.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    CallCard, CallId, FileChange, Hash, Image, ImageInput, JobId, JobMeta, ReadFiles, ResultCard, ResultMeta,
    SessionId, Subject, Text, TodoItem,
};

/// A boxed future.
pub type Future<'a, T> = Pin<Box<dyn std::future::Future<Output = T> + Send + 'a>>;

/// What a tool's body may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effects {
    /// Nothing: it may run again after a crash.
    None,
    /// Something on this machine.
    Local,
    /// Something elsewhere.
    External,
}

/// What the model is told about a tool, and where its guidance stands.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    /// Group in the order of tools: built-in tools come first.
    pub group: u16,
    /// Name.
    pub name: String,
    /// Description, from the `.md` file beside the code.
    pub description: String,
    /// JSON Schema of the arguments: canonical bytes, in the subset every wire accepts.
    pub parameters: Box<RawValue>,
    /// Guidance for the system text; empty when there is none.
    pub guidance: String,
}

/// A tool. Everything but [`Tool::run`] is pure.
pub trait Tool: Send + Sync {
    /// Name, description, schema, guidance.
    fn spec(&self) -> &ToolSpec;

    /// What the body may change.
    fn effects(&self) -> Effects;

    /// True when this call may run beside its neighbours. Only asked of valid arguments.
    fn parallel(&self, arguments: &str) -> bool;

    /// What the call touches, for the permission rules.
    ///
    /// # Errors
    /// The arguments are not what the schema asks for: an error of class `argument` that names the
    /// field and shows the right shape.
    fn subjects(&self, arguments: &str) -> Result<Vec<Subject>, ToolError>;

    /// What a frontend shows of the call; the generic card when the arguments do not parse.
    fn call_card(&self, arguments: &str, cwd: &Path) -> CallCard;

    /// What a frontend shows of the result: what the model reads, where a tool knows nothing better.
    fn result_card(&self, _arguments: &str, content: &str, _meta: &ResultMeta) -> ResultCard {
        ResultCard::Generic { content: content.to_owned() }
    }

    /// Runs the body. It never panics and always ends: at its own limits, or when cancelled.
    fn run<'a>(&'a self, invocation: Invocation<'a>) -> Future<'a, ToolOutput>;
}

/// What of a file the model was last shown, and still sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Hash of the whole content.
    pub hash: Hash,
    /// First line, from 1.
    pub offset: u64,
    /// Lines.
    pub lines: u64,
    /// True once a pointer was given in the place of the lines: who asks again is shown them.
    pub pointed: bool,
}

/// Files that the model sees, by absolute path.
pub type ShownFiles = BTreeMap<PathBuf, Shown>;

/// What a body is given.
pub struct Invocation<'a> {
    /// The call.
    pub call: CallId,
    /// The arguments as the model wrote them.
    pub arguments: &'a str,
    /// The folder in which the call runs, absolute.
    pub cwd: &'a Path,
    /// The workspace, absolute: a command that ends in another folder of it changes the folder of later calls.
    pub workspace: &'a Path,
    /// The session that the call belongs to.
    pub session: CallSession,
    /// Files that the model was shown, and how much of them.
    pub read_files: Arc<ReadFiles>,
    /// What the model still sees of files.
    pub shown_files: Arc<ShownFiles>,
    /// Whether the model is sent images.
    pub images: ImageInput,
    /// Where a body whose effects nobody knows beforehand looks for them.
    pub watch: Watch,
    /// Takes what the body is about to change, before it does.
    pub ahead: Ahead,
    /// Ends when the call is cancelled.
    pub cancelled: Future<'a, ()>,
    /// Takes output for people while the body runs; never blocks.
    pub progress: &'a (dyn Fn(&str) + Send + Sync),
}

/// Puts what a body is about to change into the log, with the bytes that it replaces: nothing that is not there may be
/// changed. Blocks until all of it is on disk; where it fails, nothing must be changed.
pub type Ahead = Arc<dyn Fn(Vec<FileChange>) -> Result<(), NotLogged> + Send + Sync>;

/// The log could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotLogged;

/// Where a body whose effects nobody knows beforehand looks for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watch {
    /// Nowhere: it was found to change nothing.
    Nothing,
    /// In the workspace.
    #[default]
    Workspace,
}

/// What a body may know of its session, and what may outlive the call.
pub struct CallSession {
    /// Its id.
    pub id: SessionId,
    /// Number for a job that the call starts.
    pub next_job: JobId,
    /// Takes the notice of a job that ended, also after the call; never blocks.
    pub notify: Arc<dyn Fn(JobNotice) + Send + Sync>,
    /// Ends when the session is closed: jobs end with it.
    pub closed: Future<'static, ()>,
}

/// A job ended, and nobody waited for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobNotice {
    /// The job as it is now.
    pub job: JobMeta,
    /// What the model is told.
    pub text: String,
}

/// What a body gives back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: String,
    /// What the model sees beside it.
    pub images: Vec<Image>,
    /// Set when the call did not do what was asked.
    pub error: Option<ToolError>,
    /// Facts for people, cards and the fold.
    pub meta: ResultMeta,
    /// Files that the body changed, so that it can be taken back.
    pub changed: Vec<FileChange>,
    /// The new list of things to do, when the tool sets it.
    pub todo: Option<Vec<TodoItem>>,
}

impl ToolOutput {
    /// A plain result.
    #[must_use]
    pub fn text(content: impl Into<String>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }

    /// An error: its message is what the model reads.
    #[must_use]
    pub fn failed(error: ToolError, message: impl Into<String>) -> Self {
        Self { content: message.into(), error: Some(error), ..Self::default() }
    }

    /// The text as it is logged.
    #[must_use]
    pub fn logged_content(&self) -> Text {
        Text::from(self.content.as_str())
    }
}

/// Why a call did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolError {
    /// The stable code, such as `edit.ambiguous`.
    pub code: String,
    /// What kind of error it is.
    pub class: ToolErrorClass,
    /// What happened and what to do; it is the result's content and not stored twice.
    #[serde(skip)]
    pub message: String,
}

impl ToolError {
    /// An error with its message.
    #[must_use]
    pub fn new(code: &str, class: ToolErrorClass, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), class, message: message.into() }
    }
}

impl From<ToolError> for ToolOutput {
    fn from(error: ToolError) -> Self {
        let content = error.message.clone();
        Self::failed(error, content)
    }
}

/// Kind of a tool error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorClass {
    /// The arguments are wrong.
    Argument,
    /// It may succeed when tried again.
    Transient,
    /// It started and nobody knows how it ended.
    OutcomeUnknown,
    /// It was not allowed, not started or stopped.
    Refused,
}
