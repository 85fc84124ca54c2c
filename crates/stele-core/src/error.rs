//! Errors of this crate.

use crate::{Hash, Seq};

/// Result of reading a log.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a log could not be read or folded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A record is not what this program writes.
    #[error("log.corrupt: record {seq} cannot be read: {detail}; `stele verify` names what is damaged")]
    Corrupt {
        /// Position of the record.
        seq: Seq,
        /// What is wrong with it.
        detail: String,
    },
    /// A record's blob is not there or is not the bytes its name says.
    #[error(
        "log.corrupt: record {seq} cites blob {blob}, which is missing or damaged; `stele verify` names what is damaged"
    )]
    Blob {
        /// Position of the record.
        seq: Seq,
        /// The blob it cites.
        blob: Hash,
    },
    /// A record of a kind or version that this build does not know.
    #[error("log.unsupported: record {seq} is of kind {kind:?} (format {version}), written by a {} version of stele; open it with that version", if *newer { "newer" } else { "much older" })]
    Unsupported {
        /// Position of the record.
        seq: Seq,
        /// Its kind.
        kind: String,
        /// Its record format.
        version: u32,
        /// True when the log is newer than this build.
        newer: bool,
    },
}

impl Error {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Corrupt { .. } | Self::Blob { .. } => "log.corrupt",
            Self::Unsupported { .. } => "log.unsupported",
        }
    }
}
