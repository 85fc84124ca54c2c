//! What kind of change made a request leave the one it extends.

use std::fmt;

use serde::Serialize;

/// A kind of change, as far as it can be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Change {
    /// Another protocol was used: the whole prompt is written in another way.
    Wire {
        /// The protocol before.
        before: String,
        /// The protocol now.
        after: String,
    },
    /// Another server was asked.
    Server {
        /// Its base URL before.
        before: String,
        /// Its base URL now.
        after: String,
    },
    /// Another model was asked.
    Model {
        /// The model before.
        before: String,
        /// The model now.
        after: String,
    },
    /// Thinking or effort was set differently.
    Thinking {
        /// The parameter.
        parameter: String,
    },
    /// Another parameter changed that invalidates what is cached.
    Parameter {
        /// The parameter.
        parameter: String,
    },
    /// The same tools in another order.
    ToolOrder,
    /// Tools came or went.
    ToolSet {
        /// Tools that were not there before.
        added: Vec<String>,
        /// Tools that are gone.
        removed: Vec<String>,
    },
    /// A tool's description or schema changed.
    ToolSchema {
        /// The tool.
        tool: String,
    },
    /// A date or a time of day.
    Clock,
    /// A listing of files, as a tree.
    Listing,
    /// A path of the file system.
    Path,
    /// An id or another random value.
    RandomId,
    /// Blocks that were there before are gone.
    Dropped {
        /// What they were called.
        blocks: Vec<String>,
    },
    /// Blocks stand at other places.
    Moved {
        /// What they are called.
        blocks: Vec<String>,
    },
    /// Blocks stand before what was sent last time.
    Inserted {
        /// What they are called.
        blocks: Vec<String>,
    },
    /// The same JSON value in other bytes: another order of keys, or other white space in encoded arguments.
    Reserialised,
    /// The same text, once as a string and once as a list of parts, as a moved cache mark leaves it.
    Shape,
    /// An image is gone.
    ImageRemoved,
    /// A tool's result was shortened or replaced by a note.
    ResultTruncated,
    /// A tool's result became another one.
    ResultChanged,
    /// Nothing of the earlier history is left, as after a compaction.
    HistoryReplaced,
    /// The cache mark that was there is gone, and no other one stands where what is cached would be found.
    Unmarked {
        /// The segment that carried it.
        segment: String,
    },
    /// Text became other text.
    Text,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wire { before, after } => write!(f, "the wire changed from {before} to {after}"),
            Self::Server { before, after } => write!(f, "the server changed from {before} to {after}"),
            Self::Model { before, after } => write!(f, "the model changed from {before} to {after}"),
            Self::Thinking { parameter } => write!(f, "thinking was set differently ({parameter})"),
            Self::Parameter { parameter } => write!(f, "{parameter} was set differently"),
            Self::ToolOrder => f.write_str("the tools are in another order"),
            Self::ToolSet { added, removed } => match (added.as_slice(), removed.as_slice()) {
                (added, []) => write!(f, "tools were added: {}", added.join(", ")),
                ([], removed) => write!(f, "tools were removed: {}", removed.join(", ")),
                (added, removed) => {
                    write!(f, "tools were added ({}) and removed ({})", added.join(", "), removed.join(", "))
                }
            },
            Self::ToolSchema { tool } => write!(f, "the description or schema of tool {tool} changed"),
            Self::Clock => f.write_str("a date or time changed"),
            Self::Listing => f.write_str("a listing of files was made anew"),
            Self::Path => f.write_str("a path changed"),
            Self::RandomId => f.write_str("an id or another random value changed"),
            Self::Dropped { blocks } => write!(f, "what was sent before is gone: {}", blocks.join(", ")),
            Self::Moved { blocks } => write!(f, "what was sent before stands at another place: {}", blocks.join(", ")),
            Self::Inserted { blocks } => write!(f, "something was put in before it: {}", blocks.join(", ")),
            Self::Reserialised => f.write_str("the same value was written in other bytes"),
            Self::Shape => f.write_str("the same text was written in another shape (a string, a list of parts)"),
            Self::ImageRemoved => f.write_str("an image was removed"),
            Self::ResultTruncated => f.write_str("a tool's result was shortened after it had been sent"),
            Self::ResultChanged => f.write_str("a tool's result was changed after it had been sent"),
            Self::HistoryReplaced => f.write_str("the whole history was replaced"),
            Self::Unmarked { segment } => {
                write!(f, "the cache mark at {segment} is gone, and no other stands where its entry would be found")
            }
            Self::Text => f.write_str("the text changed"),
        }
    }
}
