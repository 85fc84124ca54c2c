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
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use stele_core::{Ahead, FileChange, FileVersion, Hash, ToolOutput};

use crate::change::described_at;
use crate::error::{Error, Result};

/// Times that a change is worked out again.
const AGAIN: u32 = 20;
/// Longest wait for a lock. Whoever holds one works on a handful of files.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Between two tries to get it.
const LOOK: Duration = Duration::from_millis(2);

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
        let found = fs::symlink_metadata(path).ok();
        match self {
            Self::Anything => true,
            Self::Nothing => found.is_none(),
            Self::Content { len, .. } if found.is_none_or(|found| found.len() != len) => false,
            // What cannot be read any more is not what was read.
            Self::Content { .. } => described_at(path).is_ok_and(|now| Self::from(now) == self),
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

/// A turn at changing files: the locks on their folders, and whether somebody else was faster.
#[derive(Debug, Default)]
pub struct Claim {
    held: BTreeMap<PathBuf, Option<File>>,
    /// What the log was told of last; none of it came to be where somebody else was faster.
    announced: Vec<FileChange>,
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
    claim.attempt(&mut attempt).or_else(|error| {
        let announced = std::mem::take(&mut claim.announced).into_iter();
        let changed: Vec<_> = announced.map(|change| FileChange { after: change.before, ..change }).collect();
        if changed.is_empty() { Err(error) } else { Ok(ToolOutput { changed, ..error.into() }) }
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
    pub(crate) fn announce(&mut self, changes: Vec<FileChange>, ahead: &Ahead) -> Result<()> {
        let light = |change: &FileChange| FileChange { kept: None, ..change.clone() };
        let announced = changes.iter().map(light).collect();
        ahead(changes)?;
        self.announced = announced;
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
    }

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
