//! Changing a file only while it is what the change was worked out from.
//!
//! Between the reading of a file and its replacement others write: an editor, a formatter, a command in the background,
//! another session. So its content is compared right before it is replaced, and where it is another one, the change is
//! worked out again on what is there now. Times would not do for that: two writes within one tick of the clock have the
//! same.
//!
//! Processes of Stele queue besides, by a lock on the folder of the file (`flock(2)`), so that between the comparison and
//! the rename no other one comes. The lock leaves nothing behind and is nobody's duty: where a file system has none, or
//! its holder stands still, the comparison alone has to do.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use stele_core::{FileChange, ToolOutput};

use crate::announce::Announcer;
use crate::error::{Error, Result};

/// Times that a change is worked out again.
const AGAIN: u32 = 20;
/// Longest wait for a lock. Whoever holds one works on a handful of files.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Between two tries to get it.
const LOOK: Duration = Duration::from_millis(2);

/// A turn at changing files: the locks on their folders, and whether somebody else was faster.
#[derive(Debug, Default)]
pub struct Claim {
    /// Folders with the lock on each; without one where there is none to be had, or not in time: such a folder is not tried
    /// again.
    held: BTreeMap<PathBuf, Option<File>>,
    /// What the log was told of last; none of it came to be where somebody else was faster.
    announced: Vec<FileChange>,
    /// What to say of names of the files that are out of reach.
    elsewhere: Vec<String>,
    changed: bool,
    again: u32,
}

/// Works a change out and makes it; again on what is there then, where a file was changed in between.
///
/// # Errors
/// Those of the last attempt.
pub fn in_turn<T, E>(mut attempt: impl FnMut(&mut Claim) -> Result<T, E>) -> Result<T, E> {
    Claim::default().attempt(&mut attempt)
}

/// The same for a call. Where nothing came of what it had announced, its result says so.
pub(crate) fn in_turn_of_a_call(mut attempt: impl FnMut(&mut Claim) -> Result<ToolOutput>) -> Result<ToolOutput> {
    let mut claim = Claim::default();
    let outcome = claim.attempt(&mut attempt).or_else(|error| {
        let announced = std::mem::take(&mut claim.announced).into_iter();
        let changed: Vec<_> = announced.map(|change| FileChange { after: change.before, ..change }).collect();
        if changed.is_empty() { Err(error) } else { Ok(ToolOutput { changed, ..error.into() }) }
    });
    outcome.map(|mut output| {
        output.meta.not_covered.append(&mut claim.elsewhere);
        output
    })
}

impl Claim {
    fn attempt<T, E>(&mut self, attempt: &mut impl FnMut(&mut Self) -> Result<T, E>) -> Result<T, E> {
        loop {
            self.changed = false;
            let outcome = attempt(self);
            if outcome.is_ok() || !self.changed || self.again == AGAIN {
                return outcome;
            }
            self.again += 1;
        }
    }

    /// Tells the log what is about to be changed.
    pub(crate) fn announce(&mut self, changes: Vec<FileChange>, log: &Announcer) -> Result<()> {
        let (changes, elsewhere) = log.under_every_name(changes);
        let light = |change: &FileChange| FileChange { kept: None, ..change.clone() };
        let announced = changes.iter().map(light).collect();
        log.tell(changes)?;
        (self.announced, self.elsewhere) = (announced, elsewhere);
        Ok(())
    }

    /// What to say of a change that had to be worked out again.
    #[must_use]
    pub fn note(&self) -> Option<&'static str> {
        (self.again > 0).then_some("somebody else changed it meanwhile; this was worked out on what was there then")
    }

    /// Remembers whether somebody else was faster. Any other failure may have come in the middle: then what was announced
    /// is not known to be void.
    pub(crate) fn watch<T>(&mut self, outcome: Result<T>) -> Result<T> {
        match &outcome {
            Err(Error::Changed { .. }) => self.changed = true,
            _ => self.announced.clear(),
        }
        outcome
    }

    /// Waits until no other process of Stele changes files in the folders of these. All at once and in one order, so that
    /// no two wait for each other.
    pub(crate) fn hold<'a>(&mut self, paths: impl IntoIterator<Item = &'a Path>) {
        let mut folders: BTreeMap<PathBuf, Option<File>> =
            paths.into_iter().filter_map(folder_of).map(|folder| (folder, None)).collect();
        if folders.keys().all(|folder| self.held.contains_key(folder)) {
            return;
        }
        self.held.clear();
        let until = Instant::now() + LONGEST_WAIT;
        for (folder, lock) in &mut folders {
            *lock = File::open(folder).ok().filter(|folder| wait_for(folder, until));
        }
        self.held = folders;
    }
}

/// The folder of a file; of one that is yet to be made the first there is.
fn folder_of(path: &Path) -> Option<PathBuf> {
    path.ancestors().skip(1).find(|folder| folder.is_dir()).map(Path::to_owned)
}

/// True once the folder is locked; false where it cannot be, or not in time.
fn wait_for(folder: &File, until: Instant) -> bool {
    loop {
        match folder.try_lock() {
            Ok(()) => return true,
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(LOOK),
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_is_held_by_one_at_a_time_and_keeps_nothing_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("not/there/yet");
        let mut first = Claim::default();
        first.hold([path.as_path(), &folder.path().join("f")]);
        let other = File::open(folder.path()).unwrap();
        assert!(!wait_for(&other, Instant::now()));
        drop(first);
        assert!(wait_for(&other, Instant::now()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn it_is_worked_out_again_only_where_somebody_was_faster_and_not_for_ever() {
        let mut attempts = 0;
        let outcome: Result<()> = in_turn(|claim| {
            attempts += 1;
            claim.watch(Err(Error::Changed { path: "f".to_owned() }))
        });
        assert!(matches!(outcome, Err(Error::Changed { .. })) && attempts == AGAIN + 1);
        let other: Result<()> = in_turn(|claim| claim.watch(Err(Error::NotLogged)));
        assert!(matches!(other, Err(Error::NotLogged)));
        let mut faster = true;
        let outcome = in_turn(|claim| match std::mem::take(&mut faster) {
            true => claim.watch(Err(Error::Changed { path: "f".to_owned() })),
            false => Ok(claim.note().is_some()),
        });
        assert!(outcome.unwrap());
    }
}
