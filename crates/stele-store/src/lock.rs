//! The single-writer lock: an operating system lock on a file, held for the writer's life.
//!
//! The kernel gives it back when the process ends in whatever way, so there is no heartbeat, no
//! time-out and nothing to clean up by hand. Who holds it is told by the session's row.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use stele_core::{Millis, SessionId};

use crate::{Error, Result};

/// Who holds a session's lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Process id on its host.
    pub pid: u32,
    /// Name of the host.
    pub host: String,
    /// When it was taken.
    pub since: Millis,
}

impl Holder {
    /// This process, now.
    pub(crate) fn this_process() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            pid: std::process::id(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            since: Millis(i64::try_from(now.as_millis()).unwrap_or(i64::MAX)),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)
    }
}

/// A held lock; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct SessionLock {
    /// Keeps the lock: it lives as long as this file is open, here or in a process that inherited it.
    file: File,
    path: PathBuf,
    /// The session is in the database, so its lock file stays.
    pub(crate) stored: bool,
}

impl SessionLock {
    /// Takes the lock of a session; `None` when another writer holds it.
    pub(crate) fn acquire(folder: &Path, session: &SessionId) -> Result<Option<Self>> {
        Self::acquire_file(folder.join(session.as_str()))
    }

    /// Takes the lock that is this file.
    pub(crate) fn acquire_file(path: PathBuf) -> Result<Option<Self>> {
        loop {
            let file = open(&path).map_err(|error| unwritable(&path, &error))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(Error::NoLocks { path, cause: error.to_string() }),
            }
            // A remover may have unlinked the file between opening and locking it: then this lock
            // excludes nobody, and the next round makes a new file.
            if is_file_at(&file, &path) {
                return Ok(Some(Self { file, path, stored: true }));
            }
        }
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        if !self.stored {
            // Still locked here, so nobody else can be between opening and holding it unnoticed. A
            // file that cannot be removed is swept by the next collection.
            let _ = std::fs::remove_file(&self.path);
        }
        // Closing would not do: a program that another thread is just starting holds the open file until its exec, and
        // the lock with it. A lock that cannot be given back here goes with the file.
        let _ = self.file.unlock();
    }
}

/// Opens or makes a lock file.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Error {
    Error::Unwritable { path: path.to_owned(), cause: error.to_string() }
}

#[cfg(unix)]
fn is_file_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(held), Ok(there)) => held.dev() == there.dev() && held.ino() == there.ino(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_file_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Whether a lock on this file system keeps a second taker out; an error where that could not be tried.
pub(crate) fn locks_exclude(folder: &Path) -> io::Result<bool> {
    let path = folder.join(format!(".probe-{}", std::process::id()));
    let first = open(&path)?;
    let excludes = open(&path).map(|second| keeps_out(&first, &second).unwrap_or(false));
    std::fs::remove_file(&path)?;
    excludes
}

/// Whether the lock of one open file keeps the other out, for as long as it is held.
fn keeps_out(first: &File, second: &File) -> io::Result<bool> {
    first.try_lock().map_err(io::Error::from)?;
    let refused = matches!(second.try_lock(), Err(TryLockError::WouldBlock));
    first.unlock()?;
    Ok(refused && second.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_dropped_is_free_although_a_child_still_holds_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = SessionLock::acquire_file(path.clone()).unwrap().unwrap();
        let inherited = lock.file.try_clone().unwrap();
        assert!(SessionLock::acquire_file(path.clone()).unwrap().is_none());
        drop(lock);
        assert!(SessionLock::acquire_file(path).unwrap().is_some());
        drop(inherited);
    }
}
