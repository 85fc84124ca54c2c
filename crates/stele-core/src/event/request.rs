//! Requests as they are sent, and what becomes of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Texts;
use crate::{Failure, Hash, Millis, Text, Zone};

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
