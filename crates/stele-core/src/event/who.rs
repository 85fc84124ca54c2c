//! Who wrote or did what an event tells of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
