//! What holds from here on: the mode, the model, the things to do. Each event carries the whole value.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{By, Texts};
use crate::Wire;

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
