//! What stands under a name: as it is, as the log describes it, and whether it still is what it was.

use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use stele_core::{FileVersion, Hash, ToolError};

use crate::error::{Error, Result};
use crate::file;
use crate::overwrite::InPlace;
use crate::path::{Found, Place};

/// The bits of a mode that say what a file is (`inode(7)`).
pub(crate) const KIND: u32 = 0o170_000;
/// What they are for a symbolic link.
pub(crate) const LINK: u32 = 0o120_000;

/// What stands under a name, links not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its bytes; for a symbolic link, where it points to.
    pub bytes: Vec<u8>,
    /// Its type and mode, as `st_mode`.
    pub mode: u32,
}

impl Version {
    /// True for a symbolic link.
    #[must_use]
    pub fn is_link(&self) -> bool {
        is_link(self.mode)
    }
}

/// True for the mode of a symbolic link.
pub(crate) fn is_link(mode: u32) -> bool {
    mode & KIND == LINK
}

/// A name that somebody gave, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The real path, links followed.
    pub path: PathBuf,
    /// The name that was taken, where it only looks like the one that was given.
    pub instead: Option<String>,
    /// Its content; absent when there is no such file.
    pub bytes: Option<Vec<u8>>,
}

/// Finds a file to be changed. The exact name wins; else the one name that looks the same is taken; else it is a
/// file that does not exist yet.
///
/// # Errors
/// `file.*` for a name that leads nowhere or to what is no regular file, `edit.too_large`.
pub fn locate(folder: &Path, asked: &str) -> Result<Located, ToolError> {
    let place = Place { cwd: folder.to_owned(), home: None, spill: None, in_place: InPlace::default() };
    let located = place.writable(asked).and_then(|Found { path, instead }| {
        let bytes = file::read_if_there(file::LARGEST, &path, asked)?;
        Ok(Located { path, instead, bytes })
    });
    located.map_err(ToolError::from)
}

/// What stands under a real path; absent when there is nothing.
///
/// # Errors
/// `file.*` for what is neither a regular file nor a link, or cannot be read; `edit.too_large`.
pub fn version(path: &Path) -> Result<Option<Version>, ToolError> {
    look(path, &path.display().to_string()).map_err(ToolError::from)
}

/// What stands under a real path, as the log describes it; absent when there is nothing. Of any size: nothing is kept in
/// memory.
///
/// # Errors
/// `file.*` for what is neither a regular file nor a link, or cannot be read.
pub fn described_at(path: &Path) -> Result<Option<FileVersion>, ToolError> {
    let asked = path.display().to_string();
    let described = |metadata: Metadata| match metadata.is_symlink() {
        true => Ok(described(&target_of(path, &asked)?, metadata.mode())),
        false => {
            let (hash, len) = file::hash(path, &asked)?;
            Ok(FileVersion { hash, len, mode: metadata.mode() })
        }
    };
    metadata_of(path, &asked).and_then(|found| found.map(described).transpose()).map_err(ToolError::from)
}

pub(crate) fn look(path: &Path, asked: &str) -> Result<Option<Version>> {
    let Some(metadata) = metadata_of(path, asked)? else { return Ok(None) };
    let bytes =
        if metadata.is_symlink() { target_of(path, asked)? } else { file::read_up_to(file::HELD, path, asked)? };
    Ok(Some(Version { bytes, mode: metadata.mode() }))
}

pub(crate) fn metadata_of(path: &Path, asked: &str) -> Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Error::io("read", asked)(error)),
    }
}

/// Where a link points to.
fn target_of(path: &Path, asked: &str) -> Result<Vec<u8>> {
    Ok(fs::read_link(path).map_err(Error::io("read", asked))?.into_os_string().into_vec())
}

pub(crate) fn described(bytes: &[u8], mode: u32) -> FileVersion {
    FileVersion { hash: Hash::of(bytes), len: bytes.len() as u64, mode }
}

/// What a change was worked out from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Was {
    /// It does not matter.
    Anything,
    /// There was no such file.
    Nothing,
    /// A file with this content, or a symbolic link that points to it.
    Content {
        /// Hash of the bytes.
        hash: Hash,
        /// Number of bytes.
        len: u64,
    },
}

impl Was {
    /// What was read; nothing where there was no such file.
    #[must_use]
    pub fn of(bytes: Option<&[u8]>) -> Self {
        bytes.map_or(Self::Nothing, |bytes| Self::Content { hash: Hash::of(bytes), len: bytes.len() as u64 })
    }

    /// True when that still stands under a real path.
    pub(crate) fn stands(self, path: &Path) -> bool {
        // What cannot be looked at is neither nothing nor what was read.
        let found = || metadata_of(path, "");
        match self {
            Self::Anything => true,
            Self::Nothing => matches!(found(), Ok(None)),
            Self::Content { len, .. } => {
                matches!(found(), Ok(Some(found)) if found.len() == len)
                    && described_at(path).is_ok_and(|now| Self::from(now) == self)
            }
        }
    }

    pub(crate) fn check(self, path: &Path, shown: &str) -> Result<()> {
        if self.stands(path) { Ok(()) } else { Err(Error::Changed { path: shown.to_owned() }) }
    }
}

impl From<Option<FileVersion>> for Was {
    fn from(version: Option<FileVersion>) -> Self {
        version.map_or(Self::Nothing, |FileVersion { hash, len, .. }| Self::Content { hash, len })
    }
}

/// As an argument of a process: `HASH LENGTH`, or a word.
impl fmt::Display for Was {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anything => f.write_str("anything"),
            Self::Nothing => f.write_str("nothing"),
            Self::Content { hash, len } => write!(f, "{hash} {len}"),
        }
    }
}

impl FromStr for Was {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "anything" => Ok(Self::Anything),
            "nothing" => Ok(Self::Nothing),
            _ => {
                let (hash, len) = text.split_once(' ').ok_or(())?;
                Ok(Self::Content { hash: hash.parse().map_err(drop)?, len: len.parse().map_err(drop)? })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn what_was_read_is_known_by_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        assert!(Was::of(None).stands(&path));
        fs::write(&path, "one").unwrap();
        let was = Was::of(Some(b"one"));
        for it in [was, Was::Nothing, Was::Anything] {
            assert_eq!(it.to_string().parse(), Ok(it));
        }
        assert!(was.stands(&path) && Was::Anything.stands(&path));
        assert!(!Was::of(None).stands(&path) && !Was::of(Some(b"once")).stands(&path));
        // As long, and as old.
        let time = path.metadata().unwrap().modified().unwrap();
        fs::write(&path, "two").unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        assert!(!was.stands(&path));
        fs::remove_file(&path).unwrap();
        assert!(!was.stands(&path));
        std::os::unix::fs::symlink("one", &path).unwrap();
        assert!(was.stands(&path));
        // Nobody knows what is behind a loop.
        std::os::unix::fs::symlink("loop", folder.path().join("loop")).unwrap();
        assert!(!Was::Nothing.stands(&folder.path().join("loop/x")) && Was::Nothing.stands(&path.join("x")));
    }
}
