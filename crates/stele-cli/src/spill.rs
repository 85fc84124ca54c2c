//! The files of long results, a folder for each session: what becomes of them when the session goes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use stele_core::SessionId;
use stele_store::Store;

use crate::error::Result;

/// The folder of all of them.
pub fn folder(data: &Path) -> PathBuf {
    data.join("spill")
}

/// Removes the files of a session that was removed.
///
/// # Errors
/// They are there and cannot be removed.
pub fn remove(data: &Path, session: &SessionId) -> io::Result<()> {
    match fs::remove_dir_all(folder(data).join(session.as_str())) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Sessions that have files here and are in no list any more.
pub fn strays(data: &Path, store: &Store) -> Result<Vec<SessionId>> {
    let mut strays = Vec::new();
    let Ok(entries) = fs::read_dir(folder(data)) else { return Ok(strays) };
    for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        let Ok(id) = SessionId::new(name) else { continue };
        // Files come after the first request, with which a session is stored.
        match store.session(&id) {
            Ok(_) => {}
            Err(stele_store::Error::NotFound { .. }) => strays.push(id),
            Err(error) => return Err(error.into()),
        }
    }
    strays.sort();
    Ok(strays)
}
