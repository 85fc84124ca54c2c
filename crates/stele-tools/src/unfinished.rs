//! What is written in place, kept until it is safe on disk.
//!
//! A file that has to keep its inode is written over, and a power cut in the middle of that leaves a mixture of old and
//! new. So its new content is put on disk first, in a folder of its own, and goes once the file itself is there. What a
//! start finds in that folder was cut off: most of it ended well, and the rest is a person's to decide, since nobody
//! knows who wrote to the file in the meantime.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use stele_core::Hash;

use crate::file;

/// How the name of a note ends; the content beside it has the same name without it.
const NOTE: &str = "note";

/// A write that was cut off: the file is neither what it was nor what it was to become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The file.
    pub path: PathBuf,
    /// What it was to become.
    pub content: PathBuf,
}

/// What is about to be written.
pub(crate) struct Kept {
    note: PathBuf,
    content: PathBuf,
    /// Locked as long as somebody writes.
    _writing: File,
}

impl Kept {
    /// Puts it on disk, in a folder that is there.
    pub(crate) fn begin(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<Self> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let content = folder.join(format!("{}-{}", since.as_nanos(), std::process::id()));
        let note = content.with_added_extension(NOTE);
        let create = |path: &Path| OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        // The note comes first and is empty: whoever looks meanwhile finds it locked.
        let mut writing = create(&note)?;
        writing.lock()?;
        let mut file = create(&content)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        let before = file::hash(path, "the file").map_or_else(|_| Hash::of(b""), |(hash, _)| hash);
        writing.write_all(format!("{before} {}\n", Hash::of(bytes)).as_bytes())?;
        writing.write_all(path.as_os_str().as_bytes())?;
        writing.sync_all()?;
        File::open(folder)?.sync_all()?;
        Ok(Self { note, content, _writing: writing })
    }

    /// The file is safe.
    pub(crate) fn end(self) {
        remove(&self.note, &self.content);
    }
}

/// Makes the folder, for its owner alone: what is written may be secret.
pub(crate) fn make(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| {
        let what = format!("no copy of what is written can be kept in {}: {error}", folder.display());
        io::Error::new(error.kind(), what)
    })
}

/// Removes a note and its content; the content last, so that no note is without one.
fn remove(note: &Path, content: &Path) {
    if fs::remove_file(note).is_ok() {
        let _ = fs::remove_file(content);
    }
}

/// The writes that were cut off, in the order they were begun. What ended well after all, or never began, is forgotten
/// here, and so is what nobody can use any more: that of a file that is gone.
#[must_use]
pub fn unfinished(folder: &Path) -> Vec<Unfinished> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let (mut notes, contents): (Vec<PathBuf>, Vec<PathBuf>) =
        entries.partition(|path| path.extension().is_some_and(|extension| extension == NOTE));
    // A note is there before its content; one without was taken away by a person.
    for content in contents.iter().filter(|content| !content.with_added_extension(NOTE).exists()) {
        let _ = fs::remove_file(content);
    }
    notes.sort();
    notes.into_iter().filter_map(|note| look(&note)).collect()
}

fn look(note: &Path) -> Option<Unfinished> {
    let opened = File::open(note).ok()?;
    if let Err(TryLockError::WouldBlock) = opened.try_lock() {
        return None;
    }
    let content = note.with_extension("");
    let Some((path, before, after)) = fs::read(note).ok().and_then(|bytes| parse(&bytes)) else {
        remove(note, &content);
        return None;
    };
    match file::hash(&path, "the file") {
        Ok((now, _)) if now != before && now != after => Some(Unfinished { path, content }),
        Err(_) if path.exists() => Some(Unfinished { path, content }),
        _ => {
            remove(note, &content);
            None
        }
    }
}

/// A note: the file, and the hashes of its content before and after. One that was not written to its end is none.
fn parse(note: &[u8]) -> Option<(PathBuf, Hash, Hash)> {
    let end = memchr::memchr(b'\n', note)?;
    let (before, after) = std::str::from_utf8(&note[..end]).ok()?.split_once(' ')?;
    let path = PathBuf::from(std::ffi::OsString::from_vec(note[end + 1..].to_vec()));
    Some((path, Hash::from_str(before).ok()?, Hash::from_str(after).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_mixture_that_nobody_writes_any_more_is_told() {
        let scratch = tempfile::tempdir().unwrap();
        let (folder, file) = (scratch.path().join("unfinished"), scratch.path().join("file"));
        let left = || fs::read_dir(&folder).unwrap().count();
        make(&folder).unwrap();
        fs::write(&file, "old").unwrap();
        assert_eq!(unfinished(&folder), []);
        let begin = || Kept::begin(&folder, &file, b"new").unwrap();
        begin().end();
        assert_eq!(left(), 0);
        // Somebody writes; then nobody does any more.
        let writing = begin();
        fs::write(&file, "nld").unwrap();
        assert_eq!(unfinished(&folder), []);
        let (note, content) = (writing.note.clone(), writing.content.clone());
        drop(writing);
        let told = Unfinished { path: file.clone(), content: content.clone() };
        assert_eq!(unfinished(&folder), [told]);
        assert_eq!(fs::read(&content).unwrap(), b"new");
        // A person finishes it, as they are told.
        fs::copy(&content, &file).unwrap();
        assert_eq!((unfinished(&folder), left()), (vec![], 0));
        // Nothing of it came to the disk, or the note itself did not.
        fs::write(&file, "old").unwrap();
        drop(begin());
        assert_eq!((unfinished(&folder), left()), (vec![], 0));
        fs::write(&content, "its note was removed").unwrap();
        assert_eq!((unfinished(&folder), left()), (vec![], 0));
        fs::write(&note, "cut off").unwrap();
        fs::write(&content, "n").unwrap();
        assert_eq!((unfinished(&folder), left()), (vec![], 0));
    }
}
