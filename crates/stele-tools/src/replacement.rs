//! Replacing one file, with what the log is told of it before and after.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use stele_core::{Content, FileChange, FileVersion, limits};

use crate::announce::Announcer;
use crate::change::{first_made, remove_empty};
use crate::claim::Claim;
use crate::error::Result;
use crate::overwrite::InPlace;
use crate::stands::{KIND, Was, described, metadata_of};
use crate::{file, names};

/// The mode that a new file is taken to get before it has one.
const USUAL_MODE: u32 = 0o100_644;

/// A file that is about to be changed, as the log describes it.
#[derive(Clone)]
pub(crate) struct Before {
    path: PathBuf,
    version: Option<FileVersion>,
    kept: Option<Content>,
    made: Option<PathBuf>,
    linked: Option<Vec<String>>,
}

impl Before {
    /// Takes note of what stands at a real path, if it exists: a file with its content, or a symbolic link that is
    /// changed itself, with where it points to.
    pub(crate) fn note(path: &Path, bytes: Option<&[u8]>) -> Self {
        let mode = fs::symlink_metadata(path).map_or(0, |metadata| metadata.mode());
        let kept = bytes.filter(|bytes| bytes.len() as u64 <= limits::UNDO_FILE_BYTES.default);
        Self {
            path: path.to_owned(),
            version: bytes.map(|bytes| described(bytes, mode)),
            kept: kept.map(Content::new),
            made: first_made(path),
            linked: names::others(path),
        }
    }

    /// What is about to be changed: it gets this content, and keeps its mode where none is given.
    pub(crate) fn becomes(&self, bytes: Option<&[u8]>, mode: Option<u32>) -> FileChange {
        let was = self.version.map_or(USUAL_MODE, |version| version.mode);
        let mode = mode.map_or(was, |mode| if mode & KIND == 0 { (was & KIND) | mode } else { mode });
        self.clone().change(bytes.map(|bytes| described(bytes, mode)))
    }

    /// What was changed, now that it has this content.
    pub(crate) fn became(self, bytes: Option<&[u8]>) -> FileChange {
        let mode = fs::symlink_metadata(&self.path).map_or(0, |metadata| metadata.mode());
        self.change(bytes.map(|bytes| described(bytes, mode)))
    }

    fn change(self, after: Option<FileVersion>) -> FileChange {
        FileChange {
            path: self.path.display().to_string(),
            before: self.version,
            after,
            kept: self.kept,
            made: self.made.map(|made| made.display().to_string()),
            linked: self.linked,
        }
    }
}

/// Gives one file, which nobody else has changed meanwhile, other content, once the log has it.
pub(crate) struct Replacement<'a> {
    /// The real path.
    pub(crate) path: &'a Path,
    /// The name in messages.
    pub(crate) asked: &'a str,
    /// What it was; absent where there was no such file.
    pub(crate) before: Option<&'a [u8]>,
    /// What it is to be.
    pub(crate) after: &'a [u8],
}

impl Replacement<'_> {
    /// Gives what was changed, and why it was written in place, if it was. One that nobody may write is refused.
    pub(crate) fn carry_out(
        &self,
        claim: &mut Claim,
        log: &Announcer,
        how: &InPlace,
    ) -> Result<(FileChange, Option<&'static str>)> {
        claim.hold([self.path]);
        if let Some(metadata) = metadata_of(self.path, self.asked)? {
            file::refuse_read_only(&metadata, self.asked)?;
        }
        let was = Was::of(self.before);
        claim.watch(was.check(self.path, self.asked))?;
        let noted = Before::note(self.path, self.before);
        claim.announce(vec![noted.becomes(Some(self.after), None)], log)?;
        let written = file::replace(self.path, self.asked, was, self.after, how);
        // The folders that were made for a file go with it.
        let written = written.inspect_err(|_| remove_empty(self.path, noted.made.as_deref()));
        let in_place = claim.watch(written)?;
        Ok((noted.became(Some(self.after)), in_place))
    }
}
