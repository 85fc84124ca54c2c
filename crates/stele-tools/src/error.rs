//! Why a tool did not do what was asked.

use std::io;

use stele_core::{NotLogged, ToolError, ToolErrorClass, ToolOutput};

/// Result of a step of a tool.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a tool did not do what was asked. The message is what the model reads.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The arguments are not what the schema asks for.
    #[error("{tool}: {problem}; expected {shape}")]
    Arguments {
        /// The tool.
        tool: String,
        /// Which field, and what is wrong with it.
        problem: String,
        /// The right shape.
        shape: String,
    },
    /// A value has the right type but is out of bounds or cannot be used.
    #[error("{0}")]
    Value(String),
    /// There is no such file.
    #[error("no such file: {path}{hint}")]
    Missing {
        /// The path as it was asked for.
        path: String,
        /// The nearest names, or nothing.
        hint: String,
    },
    /// Several files have a name that looks like the one asked for.
    #[error("{path} does not exist, and several names look like it: {candidates}; use one of them exactly")]
    AmbiguousName {
        /// The path as it was asked for.
        path: String,
        /// The names, escaped so that they can be told apart.
        candidates: String,
    },
    /// A chain of symbolic links has no end.
    #[error("{path} is a loop of symbolic links; name the real file")]
    Loop {
        /// The path as it was asked for.
        path: String,
    },
    /// The path is a folder where a file is needed.
    #[error("{path} is a folder; name a file in it")]
    Folder {
        /// The path as it was asked for.
        path: String,
    },
    /// A pipe, socket or device.
    #[error("{path} is a {kind}, not a regular file; it is neither read nor written")]
    Special {
        /// The path as it was asked for.
        path: String,
        /// What it is.
        kind: &'static str,
    },
    /// The file is not text.
    #[error("{path} is not text: {kind}, {size} bytes{hint}")]
    Binary {
        /// The path as it was asked for.
        path: String,
        /// What it seems to be.
        kind: &'static str,
        /// Its size in bytes.
        size: u64,
        /// What to do, or nothing.
        hint: &'static str,
    },
    /// The window starts after the last line.
    #[error("{path} has {total} lines; offset {offset} is past the end")]
    PastEnd {
        /// The path as it was asked for.
        path: String,
        /// Lines there are.
        total: u64,
        /// The offset that was asked for.
        offset: u64,
    },
    /// The file is too large to be held in memory.
    #[error("{path} has {size} bytes, the most is {limit}; change it with a script")]
    TooLarge {
        /// The path as it was asked for.
        path: String,
        /// Its size in bytes.
        size: u64,
        /// The largest size in bytes.
        limit: u64,
    },
    /// The file's mode says that nobody may write it.
    #[error("{path} is read-only (mode {mode:04o}); change its mode first if it is meant to be changed")]
    ReadOnly {
        /// The path as it was asked for.
        path: String,
        /// Its mode bits.
        mode: u32,
    },
    /// What a command printed, which is kept as it was.
    #[error("{path} is kept output: a record that read and grep look at and nothing changes; write a file of your own")]
    Kept {
        /// The path as it was asked for.
        path: String,
    },
    /// An existing file that the model has not been shown, or not whole, would be replaced.
    #[error(
        "{path} exists and {} not read in this session; read {} first, or use edit",
        lines.as_ref().map_or("was".to_owned(), |lines| format!("its lines {lines} were")),
        if lines.is_some() { "them" } else { "it" }
    )]
    Unread {
        /// The path as it was asked for.
        path: String,
        /// The lines that were not shown; absent where nothing was.
        lines: Option<String>,
    },
    /// A file changed since the model was shown it.
    #[error(
        "{path} changed since it was read; nothing was written. Read it again. From what is there to what you sent:\n{diff}"
    )]
    Stale {
        /// The path as it was asked for.
        path: String,
        /// What the write would have changed.
        diff: String,
    },
    /// A file is not what a change was worked out from, again and again.
    #[error("{path} is being changed by somebody else; nothing was written. Do it again once that is over")]
    Changed {
        /// The path as it was asked for.
        path: String,
    },
    /// The edit engine refused.
    #[error("{message}")]
    Refused {
        /// The engine's code.
        code: &'static str,
        /// Its message.
        message: String,
    },
    /// A patch failed, and not all of it could be taken back.
    #[error("{reason}; and what was done before it could not be taken back in {files}: look at them")]
    HalfDone {
        /// Why it failed.
        reason: String,
        /// The files that are not what they were.
        files: String,
    },
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The path as it was asked for.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// The shell could not be started.
    #[error("the command was not started: {0}")]
    Spawn(String),
    /// The time limit ended the command.
    #[error("stopped at the time limit")]
    TimedOut,
    /// The command's supervisor ended before the command did.
    #[error("the supervisor of the command ended before it; nobody knows how far the command got")]
    Unsupervised,
    /// The web did not give what was asked for.
    #[cfg_attr(not(feature = "web"), allow(dead_code))]
    #[error("{message}")]
    Web {
        /// The code.
        code: &'static str,
        /// What happened.
        message: String,
    },
    /// There is no such job.
    #[error("there is no job {job} here; known: {known}")]
    NoJob {
        /// The name as it was asked for.
        job: String,
        /// The jobs there are.
        known: String,
    },
    /// The call was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// What was to be changed could not be put into the log.
    #[error("nothing was changed, since it could not be logged first")]
    NotLogged,
    /// A tool's body failed in a way that is a defect of this program.
    #[error("the tool failed inside; this is a defect of stele, please report it: {0}")]
    Defect(String),
}

impl Error {
    /// The stable code.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Arguments { .. } => "tool.arguments",
            Self::Value(_) => "tool.value",
            Self::Missing { .. } => "file.missing",
            Self::AmbiguousName { .. } => "file.ambiguous_name",
            Self::Loop { .. } => "file.loop",
            Self::Folder { .. } => "file.folder",
            Self::Special { .. } => "file.special",
            Self::Binary { .. } => "read.binary",
            Self::PastEnd { .. } => "read.past_end",
            Self::TooLarge { .. } => "edit.too_large",
            Self::ReadOnly { .. } => "file.read_only",
            Self::Kept { .. } => "file.kept",
            Self::Unread { .. } => "write.unread",
            Self::Stale { .. } | Self::Changed { .. } => "edit.stale",
            Self::Refused { code, .. } => code,
            Self::HalfDone { .. } => "patch.half_done",
            Self::Io { .. } => "file.io",
            Self::Spawn(_) => "bash.spawn",
            Self::TimedOut => "bash.timeout",
            Self::Unsupervised => "bash.unsupervised",
            Self::Web { code, .. } => code,
            Self::NoJob { .. } => "jobs.unknown",
            Self::Cancelled => "tool.cancelled",
            Self::NotLogged => "tool.not_logged",
            Self::Defect(_) => "tool.defect",
        }
    }

    /// The kind of error, as the loop sees it.
    pub(crate) fn class(&self) -> ToolErrorClass {
        match self {
            Self::Io { .. } | Self::Spawn(_) | Self::Stale { .. } | Self::Changed { .. } | Self::Defect(_) => {
                ToolErrorClass::Transient
            }
            Self::TimedOut
            | Self::Cancelled
            | Self::Kept { .. }
            | Self::NotLogged
            | Self::Unread { .. }
            | Self::ReadOnly { .. } => ToolErrorClass::Refused,
            Self::Unsupervised | Self::HalfDone { .. } => ToolErrorClass::OutcomeUnknown,
            Self::Web { code: "web.timeout" | "web.failed", .. } => ToolErrorClass::Transient,
            Self::Web { code: "web.blocked_address", .. } => ToolErrorClass::Refused,
            _ => ToolErrorClass::Argument,
        }
    }

    /// Names the path in an error of the operating system.
    pub(crate) fn io(action: &'static str, path: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| match rustix::io::Errno::from_io_error(&source) {
            Some(rustix::io::Errno::LOOP) => Self::Loop { path: path.to_owned() },
            Some(rustix::io::Errno::ISDIR) => Self::Folder { path: path.to_owned() },
            _ => Self::Io { action, path: path.to_owned(), source },
        }
    }
}

impl From<NotLogged> for Error {
    fn from(_: NotLogged) -> Self {
        Self::NotLogged
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        Self::new(error.code(), error.class(), error.to_string())
    }
}

impl From<Error> for ToolOutput {
    fn from(error: Error) -> Self {
        ToolError::from(error).into()
    }
}
