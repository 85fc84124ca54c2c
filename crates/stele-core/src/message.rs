//! Messages as the model sees them, before a wire encodes them.

use std::sync::Arc;

use crate::{CallId, Image, Text};

/// One closed message: once sent, nothing is ever added to it. Roles alternate.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Everything between two answers: results first, in the order of their calls, then texts.
    User(Vec<UserBlock>),
    /// One answer.
    Assistant(AssistantTurn),
}

/// A block of a user message.
#[derive(Clone, Debug, PartialEq)]
pub enum UserBlock {
    /// Text; never empty.
    Text(Arc<str>),
    /// The result of a call.
    Result {
        /// Our id.
        call: CallId,
        /// The id on this wire: the vendor's own where it made one, else ours.
        wire_id: String,
        /// Name of the tool.
        name: String,
        /// The text; never empty.
        text: Text,
        /// True when the call did not do what was asked.
        error: bool,
        /// What is shown beside the text; none with an error, and none on a route that takes none.
        images: Vec<Image>,
    },
}

/// An answer. It has at least one block.
#[derive(Clone, Debug, PartialEq)]
pub struct AssistantTurn {
    /// The blocks, in the model's order.
    pub blocks: Vec<AssistantBlock>,
}

/// A block of an answer. `native` is the raw JSON that this wire and model made, for exact replay;
/// it is absent when another wire or model is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum AssistantBlock {
    /// Text; never empty.
    Text {
        /// The text.
        text: Arc<str>,
        /// Raw block.
        native: Option<Arc<str>>,
    },
    /// Reasoning; only for the wire and model that made it.
    Reasoning {
        /// The text; may be empty when `native` holds it encrypted.
        text: Arc<str>,
        /// Raw block.
        native: Option<Arc<str>>,
    },
    /// A call.
    Call {
        /// Our id.
        call: CallId,
        /// The id on this wire.
        wire_id: String,
        /// Name of the tool.
        name: String,
        /// The raw arguments with lone surrogates repaired; usually a JSON object, perhaps no JSON at all.
        arguments: Arc<str>,
        /// Raw block.
        native: Option<Arc<str>>,
    },
}
