//! What the log is told before files change: of each file under every name that it has.
//!
//! A file with several names (hard links) is written in place, so that what changes under one name changes under all of
//! them. An undo goes by names, also by those that are there no more, and so the log has to have each.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stele_core::{Ahead, FileChange, limits};

use crate::error::{Error, Result};
use crate::{names, walk};

/// The way of a call's announcements into the log.
pub(crate) struct Announcer {
    ahead: Ahead,
    workspace: PathBuf,
}

impl Announcer {
    pub(crate) fn new(ahead: &Ahead, workspace: &Path) -> Self {
        Self { ahead: Arc::clone(ahead), workspace: workspace.to_owned() }
    }

    /// Tells the log; it is on disk then.
    pub(crate) fn tell(&self, changes: Vec<FileChange>) -> Result<()> {
        (self.ahead)(changes).map_err(Error::from)
    }

    /// The changes with those that they make under other names, and what to say of names that are out of reach.
    pub(crate) fn under_every_name(&self, mut changes: Vec<FileChange>) -> (Vec<FileChange>, Vec<String>) {
        let mut told: BTreeSet<String> = changes.iter().map(|change| change.path.clone()).collect();
        let (mut more, mut elsewhere) = (Vec::new(), Vec::new());
        for change in &mut changes {
            // What takes a name away leaves the others what they are.
            if change.linked.is_none() || change.before.is_none() || change.after.is_none() {
                continue;
            }
            let (names, missing) = all(Path::new(&change.path), &self.workspace);
            let others = |name: &String| names.iter().filter(|other| *other != name).cloned().collect();
            for name in names.iter().filter(|name| told.insert((*name).clone())) {
                more.push(FileChange { path: name.clone(), made: None, linked: Some(others(name)), ..change.clone() });
            }
            elsewhere.extend((missing > 0).then(|| out_of_reach(&change.path, missing)));
            change.linked = Some(others(&change.path));
        }
        changes.extend(more);
        (changes, elsewhere)
    }
}

fn out_of_reach(path: &str, missing: u64) -> String {
    let (names, are) = if missing == 1 { ("name", "is") } else { ("names", "are") };
    format!(
        "{missing} more {names} (hard links) of {path}, which {are} elsewhere: what it is undone to shows there as long as they are one file"
    )
}

/// All names of the file at a path, as far as they are in its folder or can be seen in the workspace, and how many more it
/// has.
fn all(path: &Path, workspace: &Path) -> (BTreeSet<String>, u64) {
    let own = path.to_str().map(str::to_owned);
    let mut found: BTreeSet<String> = own.into_iter().chain(names::others(path).into_iter().flatten()).collect();
    let Ok(file) = fs::symlink_metadata(path) else { return (found, 0) };
    let is_it =
        |entry: &ignore::DirEntry| entry.metadata().is_ok_and(|it| (it.dev(), it.ino()) == (file.dev(), file.ino()));
    let most = usize::try_from(limits::SNAPSHOT_FILES.default).unwrap_or(usize::MAX);
    let mut walked = walk::all(workspace).take(most);
    while (found.len() as u64) < file.nlink() {
        let Some(entry) = walked.find(is_it) else { break };
        found.extend(entry.path().to_str().map(str::to_owned));
    }
    let missing = file.nlink().saturating_sub(found.len() as u64);
    (found, missing)
}
