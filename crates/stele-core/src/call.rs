//! What a call is about, and what was decided about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CallId, Effects};

/// A tool call as the permission rules see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The call.
    pub id: CallId,
    /// The tool's name.
    pub tool: String,
    /// What it touches.
    pub subjects: Vec<Subject>,
    /// What its body may change.
    pub effects: Effects,
    /// True when it may run beside its neighbours.
    pub parallel: bool,
}

/// Something a call touches, for permission rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A shell command line, not yet parsed.
    Command(String),
    /// A path that is read, as the model wrote it.
    Read(String),
    /// A path that is written, as the model wrote it.
    Write(String),
}

/// Allowed, asked or refused. A later one in this order wins over an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It runs.
    Allow,
    /// A person decides.
    Ask,
    /// It does not run.
    Deny,
}

/// A verdict with its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallDecision {
    /// The verdict.
    pub verdict: Verdict,
    /// Who decided, such as `mode:edit` or `rule:flag:0`.
    pub by: String,
    /// Why, in one sentence.
    pub reason: Option<String>,
    /// The rules that "always" would grant; never wider than what was asked.
    pub always: Vec<String>,
    /// The rules that would have to stand on the command line for the call to run: as narrow as can be written, so with
    /// a `*` for what only the shell knows. Empty where none helps.
    pub settled_with: Vec<String>,
}
