//! A cut: what stands on the surface from now on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Texts;
use crate::{CallId, Image, Seq, Text, ToolError};

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
