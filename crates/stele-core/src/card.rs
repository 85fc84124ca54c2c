//! What a frontend shows of a call and of its result: pure functions of what is logged.

use serde::Serialize;

/// Kind of a card, as editors know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CardKind {
    /// Reads files.
    Read,
    /// Changes files.
    Edit,
    /// Looks for something.
    Search,
    /// Runs a command.
    Execute,
    /// Asks somewhere else.
    Fetch,
    /// Anything else.
    Other,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Location {
    /// Absolute path.
    pub path: String,
    /// Line, from 1.
    pub line: u64,
}

/// A file before and after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CardFile {
    /// Absolute path.
    pub path: String,
    /// The text that is replaced; absent for a new file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The text that replaces it.
    pub new: String,
}

/// What a call is about to do. Titles are short and relative to the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CallCard {
    /// Anything.
    Generic {
        /// Title.
        title: String,
        /// Kind.
        kind: CardKind,
        /// Places it touches.
        locations: Vec<Location>,
    },
    /// A command.
    Terminal {
        /// Title.
        title: String,
        /// The command line.
        command: String,
        /// The folder that the call names for it; absent where it runs in the session's.
        #[serde(skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
    },
    /// A change of files.
    Diff {
        /// Title.
        title: String,
        /// The files.
        files: Vec<CardFile>,
        /// Places it touches.
        locations: Vec<Location>,
    },
}

impl CallCard {
    /// The title, whatever the card.
    #[must_use]
    pub fn title(&self) -> &str {
        match self {
            Self::Generic { title, .. } | Self::Terminal { title, .. } | Self::Diff { title, .. } => title,
        }
    }
}

/// What a call did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResultCard {
    /// Anything.
    Generic {
        /// The text.
        content: String,
    },
    /// A command's output.
    Terminal {
        /// The output.
        output: String,
        /// Exit code.
        exit: Option<i32>,
        /// Signal.
        signal: Option<i32>,
    },
    /// Changed files, as unified diffs.
    Diff {
        /// One diff a file.
        diffs: Vec<String>,
    },
    /// A search.
    Search {
        /// Matches shown.
        matches: u64,
        /// Matches there are.
        total: u64,
        /// True when not all are shown.
        truncated: bool,
    },
    /// A file that was read.
    Read {
        /// Absolute path.
        path: String,
        /// First line, from 1.
        offset: u64,
        /// Lines shown.
        lines: u64,
        /// Lines there are.
        total: u64,
    },
}
