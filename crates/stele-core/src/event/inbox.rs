//! What waits to be claimed by a turn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::message::parts;
use super::{JobMeta, Part, Source, Texts};
use crate::limits::TurnLimits;
use crate::{ItemId, Text};

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

impl Texts for InboxQueued {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut Text)) {
        parts(&mut self.content, visit);
    }
}

/// What `wake` is where nothing is said.
fn wakes() -> bool {
    true
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
