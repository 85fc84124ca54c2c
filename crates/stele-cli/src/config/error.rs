//! Why a configuration cannot be used.

use std::path::PathBuf;

use stele_core::Mode;

use super::Source;

/// Why a configuration cannot be used. Each message says where it stands and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// There is no place for configuration and data.
    #[error(
        "config.home: neither HOME nor STELE_HOME is set to an absolute path; set STELE_HOME to a folder for stele"
    )]
    Home,
    /// `STELE_HOME` is a relative path.
    #[error("config.home: STELE_HOME is {0:?}, which is no absolute path; set it to one, or leave it out")]
    RelativeHome(String),
    /// A file is there and cannot be read.
    #[error("config.unreadable: cannot read {}: {problem}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A file is no TOML.
    #[error("config.syntax: {at}: {problem}")]
    Syntax {
        /// File and line.
        at: Source,
        /// What the parser says.
        problem: String,
    },
    /// A key that nothing reads.
    #[error("config.unknown_key: {}`{key}` is no setting; did you mean `{nearest}`?", place(at.as_ref()))]
    UnknownKey {
        /// File and line; absent when it was asked for.
        at: Option<Source>,
        /// The key.
        key: String,
        /// The known key that is closest.
        nearest: String,
    },
    /// A variable with our prefix that nothing reads.
    #[error("config.unknown_variable: {name} is set and nothing reads it; {advice}")]
    UnknownVariable {
        /// The variable.
        name: String,
        /// What may have been meant.
        advice: String,
    },
    /// A key that cannot be set there.
    #[error("config.misplaced: {at}: `{key}` {problem}")]
    Misplaced {
        /// Where it is set.
        at: Source,
        /// The key.
        key: String,
        /// Where it belongs, or why it is fixed.
        problem: String,
    },
    /// A value that is not what its key takes.
    #[error("config.value: {at}: `{key}` {problem}")]
    Value {
        /// Where it is set.
        at: Source,
        /// The key.
        key: String,
        /// What was expected.
        problem: String,
    },
    /// A limit that is out of bounds.
    #[error("config.limit: {at}: {problem}")]
    Limit {
        /// Where it is set.
        at: Source,
        /// The limit with both its bounds.
        problem: String,
    },
    /// A permission rule that cannot be used.
    #[error("{}: {at}: {}", error.code(), plain(error))]
    Rule {
        /// Where it is set.
        at: Source,
        /// What is wrong with it.
        error: stele_guard::Error,
    },
    /// A mode above what the machine's policy allows.
    #[error(
        "config.mode: the mode {mode} ({set_by}) is above {highest}, the highest that {by} allows; choose a lower one"
    )]
    Mode {
        /// The mode.
        mode: Mode,
        /// What set it.
        set_by: Source,
        /// The highest mode.
        highest: Mode,
        /// What bounds it.
        by: Source,
    },
}

fn place(at: Option<&Source>) -> String {
    at.map(|at| format!("{at}: ")).unwrap_or_default()
}

/// The message without its code, which stands first.
fn plain(error: &stele_guard::Error) -> String {
    let message = error.to_string();
    message.strip_prefix(error.code()).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(&message).to_owned()
}

impl ConfigError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Home | Self::RelativeHome(_) => "config.home",
            Self::Unreadable { .. } => "config.unreadable",
            Self::Syntax { .. } => "config.syntax",
            Self::UnknownKey { .. } => "config.unknown_key",
            Self::UnknownVariable { .. } => "config.unknown_variable",
            Self::Misplaced { .. } => "config.misplaced",
            Self::Value { .. } => "config.value",
            Self::Limit { .. } => "config.limit",
            Self::Rule { error, .. } => error.code(),
            Self::Mode { .. } => "config.mode",
        }
    }
}
