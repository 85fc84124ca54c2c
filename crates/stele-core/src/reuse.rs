//! Local reuse of tool results: what a pointer kept from being sent again. It has nothing to do with the provider's
//! prompt cache and is never added to its figures.

use serde::Serialize;

use crate::Event;

/// How often a pointer stood for a result that the model still saw, and what that saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reuse {
    /// Pointers.
    pub times: u64,
    /// Bytes that were not sent again.
    pub bytes: u64,
}

impl Reuse {
    /// Takes one event.
    pub fn fold(&mut self, event: &Event) {
        if let Event::ToolResult(result) = event
            && let Some(read) = result.meta.read.as_ref().filter(|read| read.unchanged)
        {
            self.add(&Self { times: 1, bytes: read.saved });
        }
    }

    /// Adds another sum.
    pub fn add(&mut self, other: &Self) {
        self.times += other.times;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    /// True when nothing was reused.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.times == 0
    }
}
