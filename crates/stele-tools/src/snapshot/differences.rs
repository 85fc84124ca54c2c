//! What differs between two looks.

use std::io;
use std::path::Path;
use std::sync::Arc;

use stele_core::{Content, FileChange, FileVersion};

use super::entry::Entry;

/// What differs between two looks.
#[derive(Default)]
pub(crate) struct Differences {
    pub(crate) changed: Vec<FileChange>,
    /// What could have changed unseen, or cannot be brought back, in words.
    pub(crate) not_covered: Vec<String>,
}

impl Differences {
    /// A file that is gone.
    pub(super) fn deleted(&mut self, path: &Path, before: &Entry) {
        match &before.content {
            Some((hash, bytes)) => {
                let kept = Some(Content::new(Arc::clone(bytes)));
                self.note(path, Some(before.version(*hash)), kept, None, None);
            }
            None => self.lost(path, before),
        }
    }

    /// A file that is there in both looks.
    pub(super) fn compared(&mut self, path: &Path, before: &Entry, after: &Entry) {
        if before.stamp == after.stamp && before.settled() {
            return;
        }
        match (&before.content, &after.content) {
            (Some((old, _)), Some((new, _))) if old == new && before.stamp.mode == after.stamp.mode => {}
            (Some((hash, bytes)), _) => {
                let kept = Some(Content::new(Arc::clone(bytes)));
                self.note(path, Some(before.version(*hash)), kept, Some(after.version_at(path)), None);
            }
            (None, _) if before.stamp == after.stamp => {}
            (None, _) => self.lost(path, before),
        }
    }

    fn lost(&mut self, path: &Path, before: &Entry) {
        let (path, size) = (path.display(), before.stamp.size);
        self.not_covered.push(format!(
            "{path}, which a command changed: its {size} bytes were not read before, so only a copy elsewhere has them"
        ));
    }

    /// Takes down one file: what it was, with the bytes that are kept of it, and what it is.
    pub(super) fn note(
        &mut self,
        path: &Path,
        before: Option<FileVersion>,
        kept: Option<Content>,
        after: Option<io::Result<FileVersion>>,
        made: Option<String>,
    ) {
        let Some(name) = path.to_str() else {
            self.not_covered.push(format!("{}, since its name is not UTF-8", path.display()));
            return;
        };
        match after.transpose() {
            Ok(after) => {
                self.changed.push(FileChange { path: name.to_owned(), before, after, kept, made, linked: None })
            }
            Err(error) => self.not_covered.push(format!("{name}, which cannot be read: {error}")),
        }
    }
}
