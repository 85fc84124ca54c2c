//! Turns and steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{By, Texts};
use crate::Hash;
use crate::limits::TurnLimits;

/// `turn/started`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnStarted {
    /// What bounds the turn.
    pub limits: TurnLimits,
}
impl Texts for TurnStarted {}

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
