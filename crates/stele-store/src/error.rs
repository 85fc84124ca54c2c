//! Errors of this crate.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use stele_core::{Hash, Seq, SessionId};

use crate::lock::Holder;
use crate::search;

/// Result of using the store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the store could not do what it was asked. Each variant has a stable [code](Error::code).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another writer holds the session.
    #[error(
        "log.locked: session {session} is being written{}; look at it with `stele sessions show {session}` or continue a copy: `stele --fork {session}`, or `stele run --fork {session} \"…\"`",
        holder.as_ref().map(|holder| format!(" by {holder}")).unwrap_or_default()
    )]
    Locked {
        /// The session.
        session: SessionId,
        /// Who holds it, when that is known.
        holder: Option<Holder>,
    },
    /// No session has this id.
    #[error(
        "log.not_found: there is no session {wanted:?}{}; `stele sessions list` shows all of them",
        listed(.nearest)
    )]
    NotFound {
        /// What was asked for.
        wanted: String,
        /// Sessions whose ids are closest to it, the closest first.
        nearest: Vec<SessionId>,
    },
    /// Several sessions have an id that starts like this.
    #[error("log.ambiguous: {prefix:?} is the start of several session ids{}; give more of it", listed(.matches))]
    Ambiguous {
        /// What was asked for.
        prefix: String,
        /// Some of those it matches.
        matches: Vec<SessionId>,
    },
    /// A session was to be created whose id exists.
    #[error("log.exists: session {0} is there already; give a new session a new id")]
    Exists(SessionId),
    /// The database was written by a newer release.
    #[error(
        "log.newer: {path:?} is of format {found}, this build knows up to {known}; use the release that wrote it, or another STELE_HOME"
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format of this build.
        known: u32,
    },
    /// The database is older and must be migrated, which inspection never does.
    #[error(
        "log.older: {path:?} is of format {found}, this build reads {known}; any command that writes, such as `stele run`, migrates it after keeping a copy"
    )]
    Older {
        /// The database.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The format of this build.
        known: u32,
    },
    /// What is stored is not what was written.
    #[error("log.corrupt: {detail}; `stele verify --all` names everything that is damaged")]
    Corrupt {
        /// What is damaged.
        detail: String,
    },
    /// The search index is damaged. It is made from the records, of which none is damaged by that.
    #[error(
        "log.index_damaged: the search index in {path:?} is damaged ({cause}), no record is; `stele sessions gc` makes it again"
    )]
    Index {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        cause: String,
    },
    /// A blob is not the content its name says.
    #[error("log.corrupt: blob {blob} is damaged: {detail}; `stele verify --all` names everything that is damaged")]
    Blob {
        /// Its name.
        blob: Hash,
        /// What is wrong with it.
        detail: String,
    },
    /// Nothing of an append (or another change) was stored.
    #[error("log.write_failed: {cause}; nothing was stored")]
    WriteFailed {
        /// What happened, and what to do about it.
        cause: String,
    },
    /// Somebody else took the session over, or its log moved under the writer.
    #[error("log.fenced: session {0} was taken over by another writer; open it again to go on")]
    Fenced(SessionId),
    /// The database or a file of the store cannot be opened or read.
    #[error("log.unreadable: cannot read {path:?}: {cause}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why, and what to do about it.
        cause: String,
    },
    /// The folder or the database may not be written.
    #[error(
        "log.unwritable: cannot write {path:?}: {cause}; give its folder back its write permission, or set STELE_HOME to another folder"
    )]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// A change was asked of a store that was opened for inspection.
    #[error("log.read_only: this store was opened for inspection and never writes; open it for writing")]
    ReadOnly,
    /// The file system has no locks that exclude.
    #[error("log.no_locks: {path:?} cannot be locked: {cause}; put STELE_HOME on a local disk")]
    NoLocks {
        /// The lock file.
        path: PathBuf,
        /// What the file system answered.
        cause: String,
    },
    /// Records were appended out of order, which is a defect of the caller.
    #[error("log.order: session {session} expects record {expected} next; this is a defect, please report it")]
    Order {
        /// The session.
        session: SessionId,
        /// The position that has to come.
        expected: Seq,
    },
    /// A fork was asked for at a record that the parent does not have.
    #[error("log.fork_point: session {session} has no record {seq}; fork at one of its records up to its head")]
    ForkPoint {
        /// The parent.
        session: SessionId,
        /// The record that was asked for.
        seq: Seq,
    },
    /// A file to import holds no session.
    #[error("log.not_a_log: {detail}; expected a file written by `stele sessions export`")]
    NotALog {
        /// What was found instead.
        detail: String,
    },
    /// The other end of an export or import failed.
    #[error("log.stream: {0}")]
    Stream(#[from] std::io::Error),
}

impl Error {
    /// The code of a damaged search index.
    pub const INDEX_DAMAGED: &'static str = "log.index_damaged";

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Locked { .. } => "log.locked",
            Self::NotFound { .. } => "log.not_found",
            Self::Ambiguous { .. } => "log.ambiguous",
            Self::Exists(_) => "log.exists",
            Self::Newer { .. } => "log.newer",
            Self::Older { .. } => "log.older",
            Self::Corrupt { .. } | Self::Blob { .. } => "log.corrupt",
            Self::Index { .. } => Self::INDEX_DAMAGED,
            Self::WriteFailed { .. } => "log.write_failed",
            Self::Fenced(_) => "log.fenced",
            Self::Unreadable { .. } => "log.unreadable",
            Self::Unwritable { .. } => "log.unwritable",
            Self::ReadOnly => "log.read_only",
            Self::NoLocks { .. } => "log.no_locks",
            Self::Order { .. } => "log.order",
            Self::ForkPoint { .. } => "log.fork_point",
            Self::NotALog { .. } => "log.not_a_log",
            Self::Stream(_) => "log.stream",
        }
    }

    /// What SQLite said while something was read.
    pub(crate) fn reading(path: &Path, error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt) => {
                Self::Corrupt { detail: format!("the database {} is damaged: {error}", path.display()) }
            }
            Some(ErrorCode::NotADatabase) => Self::Unreadable {
                path: path.to_owned(),
                cause: "it is not a database of stele; move it away, or set STELE_HOME to another folder".to_owned(),
            },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Unreadable {
                path: path.to_owned(),
                cause: "another process keeps it locked; wait for it to finish and try again".to_owned(),
            },
            Some(ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => Self::Unreadable {
                path: path.to_owned(),
                cause: format!("{error}; check that the file and its folder may be read by you"),
            },
            _ => Self::Unreadable { path: path.to_owned(), cause: error.to_string() },
        }
    }

    /// What SQLite said while the search index was written.
    pub(crate) fn indexing(path: &Path, error: &rusqlite::Error) -> Self {
        Self::damaged_index(path, error).unwrap_or_else(|| Self::writing(path, error))
    }

    /// What SQLite said while the search index was read.
    pub(crate) fn searching(path: &Path, error: &rusqlite::Error) -> Self {
        Self::damaged_index(path, error).unwrap_or_else(|| Self::reading(path, error))
    }

    fn damaged_index(path: &Path, error: &rusqlite::Error) -> Option<Self> {
        search::is_damage(error).then(|| Self::Index { path: path.to_owned(), cause: error.to_string() })
    }

    /// What SQLite said while something was written.
    pub(crate) fn writing(path: &Path, error: &rusqlite::Error) -> Self {
        let cause = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => return Self::reading(path, error),
            Some(ErrorCode::DiskFull) => format!("the disk that holds {} is full: make room", path.display()),
            Some(ErrorCode::ReadOnly) => {
                format!("{} may not be written: give it back its write permission", path.display())
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                format!("another process kept {} locked for too long: try again", path.display())
            }
            Some(ErrorCode::SystemIoFailure) => {
                format!("writing {} failed ({error}): check the disk", path.display())
            }
            _ => format!("writing {} failed: {error}", path.display()),
        };
        Self::WriteFailed { cause }
    }
}

fn listed(ids: &[SessionId]) -> String {
    if ids.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = ids.iter().map(SessionId::as_str).collect();
    format!("; nearest: {}", names.join(", "))
}
