//! Where a value comes from.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

/// What set a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nothing: it is the default.
    Default,
    /// A line of the machine's policy.
    Managed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A line of the user's configuration.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A variable.
    Environment(String),
    /// A flag.
    Flag(&'static str),
}

impl Source {
    /// The layer's place: a higher one wins.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::Managed { .. } => 1,
            Self::File { .. } => 2,
            Self::Environment(_) => 3,
            Self::Flag(_) => 4,
        }
    }

    /// The same source at another line.
    pub(super) fn at_line(&self, line: usize) -> Self {
        match self {
            Self::Managed { path, .. } => Self::Managed { path: path.clone(), line },
            Self::File { path, .. } => Self::File { path: path.clone(), line },
            other => other.clone(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Managed { path, line } | Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

impl Serialize for Source {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A key with its value and everything that set it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// The key, such as `limits.steps`.
    pub key: String,
    /// The value as TOML; absent when it is not set and has no default.
    pub value: Option<String>,
    /// What it is for.
    pub about: String,
    /// What was set, the one that counts last; in lists all count.
    pub set: Vec<Contribution>,
}

impl Setting {
    /// What set the value that counts.
    pub fn source(&self) -> Source {
        self.set.last().map_or(Source::Default, |last| last.source.clone())
    }

    pub(super) fn rank(&self) -> u8 {
        self.source().rank()
    }
}

/// A value that one layer set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contribution {
    /// Where.
    pub source: Source,
    /// What, as TOML.
    pub value: String,
}
