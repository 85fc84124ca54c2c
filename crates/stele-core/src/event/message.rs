//! What was said: by the user's side, and by the model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Source, Texts};
use crate::{CallId, ItemId, Text, Usage, Wire};

/// `user/message`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserMessage {
    /// The inbox item it was; absent for a notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// Who wrote it.
    pub source: Source,
    /// What it says.
    pub content: Vec<Part>,
}
impl Texts for UserMessage {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut Text)) {
        parts(&mut self.content, visit);
    }
}

/// A part of a user's content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: Text,
    },
}

impl Part {
    /// A text part.
    #[must_use]
    pub fn text(text: impl Into<Text>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// Visits the texts of a user's content.
pub(super) fn parts(content: &mut [Part], visit: &mut dyn FnMut(&mut Text)) {
    for Part::Text { text } in content {
        visit(text);
    }
}

/// `assistant/message`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantMessage {
    /// The attempt that was answered.
    pub attempt: u32,
    /// Who made it: native blocks are replayed only to the same wire and model.
    pub producer: Producer,
    /// The blocks, in the model's order.
    pub content: Vec<Block>,
    /// Why the model stopped.
    pub stop: Stop,
    /// What the provider reported; of an interrupted answer, what it had reported by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The provider's own usage object, raw JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_raw: Option<Text>,
    /// True when the stream was cut by a person, a crash or a new prompt; the text is what had arrived.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}
impl Texts for AssistantMessage {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut Text)) {
        for block in &mut self.content {
            let (text, native) = match block {
                Block::Text { text, native } | Block::Reasoning { text, native } => (Some(text), native),
                Block::Call { native, .. } => (None, native),
            };
            text.into_iter().chain(native).for_each(&mut *visit);
        }
        self.usage_raw.iter_mut().for_each(visit);
    }
}

/// The wire and model that made an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Producer {
    /// The wire.
    pub wire: Wire,
    /// The model, as it was asked for.
    pub model: String,
}

/// A block of an answer. `native` is the block's raw JSON where the wire needs it back unchanged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text for the person.
    Text {
        /// The text.
        text: Text,
        /// Raw block for replay (Gemini signs text parts).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        native: Option<Text>,
    },
    /// The model's reasoning, as far as it is shown.
    Reasoning {
        /// The text; may be empty when it is encrypted.
        text: Text,
        /// Raw block for replay, with its signature or encrypted content.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        native: Option<Text>,
    },
    /// A tool call; name and arguments are in its `tool/called`.
    Call {
        /// The call.
        call: CallId,
        /// Raw block for replay (Gemini signs call parts).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        native: Option<Text>,
    },
}

/// Why the model stopped. The presence of complete calls decides what happens, not this word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It was done.
    End,
    /// It waits for tool results.
    ToolCalls,
    /// The maximum of output tokens was reached.
    MaxOutput,
    /// A stop sequence was reached.
    StopSequence,
    /// The model refused.
    Refusal,
    /// The provider's filter cut the answer.
    ContentFilter,
    /// The stream was cut before it said why.
    Cut,
    /// A reason this build does not know, as it was sent.
    Other(String),
}
