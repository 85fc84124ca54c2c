//! The session itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Texts;
use crate::{Seq, SessionId};

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

/// What a fork continues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parent {
    /// The parent session.
    pub session: SessionId,
    /// The last record of the parent that belongs to the fork.
    pub seq: Seq,
}

/// `session/moved`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionMoved {
    /// The folder from here on, canonical.
    pub cwd: String,
}
impl Texts for SessionMoved {}

/// `import/damaged`, written by the store in place of what a damaged file does not hold any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportDamaged {
    /// What this record stands for.
    pub what: String,
}
impl Texts for ImportDamaged {}
