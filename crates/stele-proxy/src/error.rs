//! Errors of this crate.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Result of using the proxy or its store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the proxy could not start, or its store could not be used. Each variant has a stable [code](Error::code).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server to forward to cannot be used.
    #[error("proxy.target: {0}")]
    Target(String),
    /// The server to forward to is the proxy itself.
    #[error("proxy.loops: {0} is this proxy's own address; name the server that it stands before")]
    Loops(SocketAddr),
    /// No listening socket can be had.
    #[error("proxy.listen: cannot listen on {address}: {cause}; free the port or give another one with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        cause: std::io::Error,
    },
    /// The address can be reached from other machines.
    #[error(
        "proxy.exposed: {0} can be reached from other machines, which could read and send requests through it; listen on 127.0.0.1, or say that others may"
    )]
    Exposed(SocketAddr),
    /// TLS cannot be set up.
    #[error(
        "proxy.tls: {0}; set SSL_CERT_FILE or STELE_CA_FILE to a PEM file with the certificate authorities to trust"
    )]
    Tls(String),
    /// What is stored is not what was written.
    #[error(
        "proxy.corrupt: {path:?} is damaged: {cause}; it was left as it is: move it away to go on recording, or set STELE_HOME to another folder"
    )]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// What is damaged.
        cause: String,
    },
    /// The database was written by a newer release.
    #[error(
        "proxy.newer: {path:?} is of format {found}, this build knows up to {known}; use the release that wrote it"
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format of this build.
        known: u32,
    },
    /// Nothing was recorded in this folder.
    #[error("proxy.nothing: nothing was recorded in {0:?}; run an agent through `stele proxy` first")]
    Nothing(PathBuf),
    /// The disk is full.
    #[error(
        "proxy.full: {0:?} cannot grow: the disk is full; free some space, or forget with `stele proxy gc --keep TIME`. Where that says the same, remove the file and those whose names begin like its name: then everything that was recorded is forgotten"
    )]
    Full(PathBuf),
    /// The store cannot be read or written.
    #[error("proxy.store: {path:?}: {cause}; check the disk and the folder's permissions")]
    Store {
        /// The file or folder.
        path: PathBuf,
        /// What happened.
        cause: String,
    },
}

impl Error {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Target(_) => "proxy.target",
            Self::Loops(_) => "proxy.loops",
            Self::Listen { .. } => "proxy.listen",
            Self::Exposed(_) => "proxy.exposed",
            Self::Tls(_) => "proxy.tls",
            Self::Corrupt { .. } => "proxy.corrupt",
            Self::Newer { .. } => "proxy.newer",
            Self::Nothing(_) => "proxy.nothing",
            Self::Full(_) => "proxy.full",
            Self::Store { .. } => "proxy.store",
        }
    }

    pub(crate) fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{DatabaseCorrupt, DiskFull, NotADatabase};
        let (path, cause) = (path.to_owned(), error.to_string());
        match error.sqlite_error_code() {
            Some(DatabaseCorrupt | NotADatabase) => Self::Corrupt { path, cause },
            Some(DiskFull) => Self::Full(path),
            _ => Self::Store { path, cause },
        }
    }

    pub(crate) fn no_recordings(path: PathBuf) -> Self {
        Self::Corrupt { path, cause: "it holds no recordings".to_owned() }
    }

    pub(crate) fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::Store { path: path.to_owned(), cause: error.to_string() }
    }
}
