//! Changing files, many at once: all of it is done or nothing.
//!
//! Each file is written as `write` and `edit` write theirs: a reader sees the old content or the new one, also after a
//! crash; links are followed, not replaced; mode, owner and hard links are kept.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use stele_core::ToolError;

use crate::claim::Claim;
use crate::error::{Error, Result};
use crate::file;
use crate::names;
use crate::overwrite::InPlace;
use crate::stands::{Version, Was, is_link, look};

/// The bits of a mode that can be set.
const BITS: u32 = 0o7777;
/// The one that lets a file's owner write it.
const OWNER_WRITES: u32 = 0o200;

/// The first folder on the way to a file that does not exist yet.
pub(crate) fn first_made(path: &Path) -> Option<PathBuf> {
    path.ancestors().skip(1).take_while(|folder| !folder.is_dir()).last().map(Path::to_owned)
}

/// What is to become of one name.
#[derive(Debug)]
pub struct Change<'a> {
    /// The name in messages.
    pub shown: &'a str,
    /// The real path.
    pub path: PathBuf,
    /// What stood there when this was worked out.
    pub was: Was,
    /// What is to stand there.
    pub becomes: Becomes<'a>,
}

/// What is to stand under a name.
#[derive(Clone, Debug)]
pub enum Becomes<'a> {
    /// Nothing.
    Gone {
        /// The first folder that was made for what stood there: it goes as well, as far as it is empty then.
        made: Option<PathBuf>,
    },
    /// This content.
    Content(Wanted<'a>),
    /// The file that stands under another name, which is gone then: also one that is too large to be read.
    Moved(Moved),
}

/// A content.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The bytes; for a symbolic link, where it points to.
    pub bytes: &'a [u8],
    /// Type and mode as `st_mode`, or the mode alone; absent to keep the mode there is.
    pub mode: Option<u32>,
    /// Other names of the file that this was (hard links), as far as they are known; absent when it had none. A file that
    /// comes back is the one that another of its names leads to, where that has its content.
    pub linked: Option<&'a [String]>,
    /// True for one that becomes a file of its own where it is a name of another by now: the other names stay what they are.
    pub alone: bool,
}

/// A file under another name.
#[derive(Clone, Debug)]
pub struct Moved {
    /// Where it stands.
    pub from: PathBuf,
    /// The first folder that was made for it there: it goes as well, as far as it is empty then.
    pub made: Option<PathBuf>,
    /// The mode it gets.
    pub mode: u32,
}

impl Change<'_> {
    /// The name that nothing stands under afterwards.
    fn leaves(&self) -> Option<&Path> {
        match &self.becomes {
            Becomes::Gone { .. } => Some(&self.path),
            Becomes::Content(_) => None,
            Becomes::Moved(moved) => Some(&moved.from),
        }
    }
}

/// Makes all changes, in order; when one fails, those before it are taken back. Gives a note for each file that could
/// not be replaced in one go.
///
/// # Errors
/// `file.*`, or `edit.stale` where somebody else was faster, with nothing changed; `patch.half_done` when a change could not
/// be taken back either.
pub fn apply(changes: &[Change<'_>], in_place: &InPlace, claim: &mut Claim) -> Result<Vec<String>, ToolError> {
    claim.hold(paths(changes));
    claim.watch(make(changes, in_place)).map_err(ToolError::from)
}

/// The names that are touched.
pub(crate) fn paths<'a>(changes: &'a [Change<'_>]) -> impl Iterator<Item = &'a Path> {
    changes.iter().flat_map(|change| change.leaves().into_iter().chain([change.path.as_path()]))
}

/// Refuses where something is not what the changes were worked out from.
pub(crate) fn check(changes: &[Change<'_>]) -> Result<()> {
    changes.iter().try_for_each(|change| change.was.check(&change.path, change.shown))
}

pub(crate) fn make(changes: &[Change<'_>], in_place: &InPlace) -> Result<Vec<String>> {
    let mut going = BTreeSet::new();
    let mut steps = Vec::new();
    for change in changes {
        steps.push(if waits(&change.path, &going) { None } else { Some(Step::new(change, change.was)?) });
        going.extend(change.leaves());
    }
    let (mut done, mut notes) = (Vec::new(), Vec::new());
    for (change, step) in changes.iter().zip(steps) {
        // What stands there once an earlier change was made is no surprise.
        let was = step.as_ref().map_or(Was::Anything, |_| change.was);
        let step = match step.map_or_else(|| Step::new(change, was), Ok) {
            Ok(step) => step,
            Err(error) => return Err(undone(&done, error, in_place, None)),
        };
        match step.take(in_place) {
            Ok(note) => notes.extend(note),
            // What stands there is somebody else's.
            Err(error @ Error::Changed { .. }) => {
                remove_empty(&change.path, step.made.as_deref());
                return Err(undone(&done, error, in_place, None));
            }
            Err(error) => {
                let failed = step.back(in_place).is_err().then_some(change.shown);
                return Err(undone(&done, error, in_place, failed));
            }
        }
        done.push(step);
    }
    notes.extend(changes.iter().filter_map(parted));
    Ok(notes)
}

/// What to say of a file that was one of several names and is none any more.
fn parted(change: &Change<'_>) -> Option<String> {
    let Becomes::Content(Wanted { linked: Some(_), .. }) = change.becomes else { return None };
    let alone = fs::symlink_metadata(&change.path).is_ok_and(|metadata| metadata.nlink() == 1);
    alone.then(|| format!("{} had other names (hard links) and is a file of its own now", change.shown))
}

/// True when nobody can tell what stands at a path before an earlier change was made: what goes stands there, is a folder
/// on its way, or stands beneath it.
fn waits(path: &Path, going: &BTreeSet<&Path>) -> bool {
    let beneath = going.range::<Path, _>((Bound::Excluded(path), Bound::Unbounded)).next();
    beneath.is_some_and(|gone| gone.starts_with(path)) || path.ancestors().any(|folder| going.contains(folder))
}

/// Takes back what was done, and says why. What somebody else changed since is theirs.
fn undone<'a>(done: &[Step<'_, 'a>], error: Error, in_place: &InPlace, began: Option<&'a str>) -> Error {
    let failed = done.iter().rev().filter(|step| !step.is_as_left() || step.back(in_place).is_err());
    let failed: Vec<&str> = failed.map(|step| step.change.shown).chain(began).collect();
    match failed.is_empty() {
        true => error,
        false => Error::HalfDone { reason: error.to_string(), files: failed.join(", ") },
    }
}

/// A change, with what there was before.
struct Step<'c, 'a> {
    change: &'c Change<'a>,
    was: Was,
    before: Option<Version>,
    /// The mode of the file that is moved.
    mode: u32,
    /// The first folder that did not exist.
    made: Option<PathBuf>,
}

impl<'c, 'a> Step<'c, 'a> {
    fn new(change: &'c Change<'a>, was: Was) -> Result<Self> {
        was.check(&change.path, change.shown)?;
        let before = look(&change.path, change.shown)?;
        let mode = match &change.becomes {
            Becomes::Moved(moved) => fs::metadata(&moved.from).map_err(Error::io("move", change.shown))?.mode(),
            Becomes::Gone { .. } | Becomes::Content(_) => 0,
        };
        Ok(Self { change, was, before, mode, made: first_made(&change.path) })
    }

    /// True when what this made is what stands there.
    fn is_as_left(&self) -> bool {
        match &self.change.becomes {
            Becomes::Gone { .. } => Was::Nothing.stands(&self.change.path),
            Becomes::Content(wanted) => Was::of(Some(wanted.bytes)).stands(&self.change.path),
            Becomes::Moved(_) => true,
        }
    }

    /// Does it; a note where the file was not replaced in one go.
    fn take(&self, in_place: &InPlace) -> Result<Option<String>> {
        let (path, shown) = (self.change.path.as_path(), self.change.shown);
        match &self.change.becomes {
            Becomes::Gone { made } => {
                if self.before.is_some() {
                    self.was.check(path, shown)?;
                    fs::remove_file(path).map_err(Error::io("delete", shown))?;
                    remove_empty(path, made.as_deref());
                }
                Ok(None)
            }
            Becomes::Content(wanted) => put(path, shown, (self.was, self.before.as_ref()), *wanted, in_place),
            Becomes::Moved(moved) => {
                make_folder_of(path, shown)?;
                self.was.check(path, shown)?;
                fs::rename(&moved.from, path).map_err(Error::io("move", shown))?;
                set_mode(path, shown, moved.mode)?;
                remove_empty(&moved.from, moved.made.as_deref());
                Ok(None)
            }
        }
    }

    /// Takes it back.
    fn back(&self, in_place: &InPlace) -> Result<()> {
        let (path, shown) = (self.change.path.as_path(), self.change.shown);
        if let Becomes::Moved(moved) = &self.change.becomes
            && fs::symlink_metadata(&moved.from).is_err()
        {
            make_folder_of(&moved.from, shown)?;
            fs::rename(path, &moved.from).map_err(Error::io("move", shown))?;
            set_mode(&moved.from, shown, self.mode)?;
        }
        let now = look(path, shown)?;
        match &self.before {
            Some(before) if now.as_ref() == Some(before) => Ok(()),
            Some(before) => {
                let wanted = Wanted { bytes: &before.bytes, mode: Some(before.mode), linked: None, alone: false };
                put(path, shown, (Was::Anything, now.as_ref()), wanted, in_place).map(drop)
            }
            None => {
                if now.is_some() {
                    fs::remove_file(path).map_err(Error::io("delete", shown))?;
                }
                remove_empty(path, self.made.as_deref());
                Ok(())
            }
        }
    }
}

/// Puts something under a name where `now` stands, while it is what it was. Where it is another thing by then
/// (`edit.stale`), that is left as it is.
fn put(
    path: &Path,
    shown: &str,
    (was, now): (Was, Option<&Version>),
    wanted: Wanted<'_>,
    how: &InPlace,
) -> Result<Option<String>> {
    if wanted.mode.is_some_and(is_link) {
        let stands = now.is_some_and(|now| now.is_link() && now.bytes == wanted.bytes);
        return if stands { Ok(None) } else { put_link(path, shown, was, wanted.bytes).map(|()| None) };
    }
    if now.is_none() && names::join(path, wanted) {
        return Ok(None);
    }
    let file = now.filter(|now| !now.is_link());
    if wanted.alone && file.is_some() && names::several(path).is_some() {
        file::part(path, shown, was, wanted.bytes)?;
        wanted.mode.map_or(Ok(()), |mode| set_mode(path, shown, mode))?;
        return Ok(Some(format!("{shown} had got other names (hard links) and is a file of its own again")));
    }
    let mut in_place = None;
    if file.is_none_or(|file| file.bytes != wanted.bytes) {
        let made_writable = file.filter(|file| wanted.mode.is_some() && file.mode & 0o222 == 0);
        made_writable.map_or(Ok(()), |file| set_mode(path, shown, file.mode | OWNER_WRITES))?;
        in_place = match file::replace(path, shown, was, wanted.bytes, how) {
            Ok(in_place) => in_place,
            // Another of its names was written before (hard links), or somebody made the same of it.
            Err(Error::Changed { .. }) if Was::of(Some(wanted.bytes)).stands(path) => None,
            Err(error) => {
                made_writable.map_or(Ok(()), |file| make_read_only(path, shown, file.mode))?;
                return Err(error);
            }
        };
    }
    if let Some(mode) = wanted.mode {
        set_mode(path, shown, mode)?;
    }
    Ok(in_place.map(|why| format!("{shown} was written in place, since {why}")))
}

/// Puts a symbolic link under a name, in one go with what stands there going.
fn put_link(path: &Path, shown: &str, was: Was, to: &[u8]) -> Result<()> {
    make_folder_of(path, shown)?;
    let failed = |error: io::Error| Error::io("create", shown)(error.kind().into());
    let to = OsStr::from_bytes(to);
    let folder = path.parent().unwrap_or(Path::new("/"));
    let new = file::beside().make_in(folder, |name| std::os::unix::fs::symlink(to, name)).map_err(failed)?;
    was.check(path, shown)?;
    new.persist(path).map(drop).map_err(|error| failed(error.error))
}

/// Takes the right to write back from a file that was given it, unless it is another file by now.
fn make_read_only(path: &Path, shown: &str, mode: u32) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(now) if now.mode() == mode | OWNER_WRITES => set_mode(path, shown, mode),
        _ => Ok(()),
    }
}

fn set_mode(path: &Path, shown: &str, mode: u32) -> Result<()> {
    let mode = fs::Permissions::from_mode(mode & BITS);
    fs::set_permissions(path, mode).map_err(Error::io("change the mode of", shown))
}

fn make_folder_of(path: &Path, shown: &str) -> Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(Error::io("create the folder of", shown))
}

/// Removes the folders above a file that is gone, from the last to `first`, as far as they are empty.
pub(crate) fn remove_empty(path: &Path, first: Option<&Path>) {
    let Some(first) = first else { return };
    let folders = path.ancestors().skip(1).take_while(|folder| folder.starts_with(first));
    folders.take_while(|folder| fs::remove_dir(folder).is_ok()).for_each(drop);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stands::{described, described_at, version};

    fn apply(changes: &[Change<'_>]) -> Result<Vec<String>, ToolError> {
        super::apply(changes, &InPlace::default(), &mut Claim::default())
    }

    fn change<'a>(path: &Path, to: Option<Wanted<'a>>) -> Change<'a> {
        let becomes = to.map_or(Becomes::Gone { made: None }, Becomes::Content);
        Change { shown: "f", path: path.to_owned(), was: Was::Anything, becomes }
    }

    #[test]
    fn what_fails_takes_back_what_was_done() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, link, blocked) = (folder.path().join("kept"), folder.path().join("link"), folder.path().join("x/y"));
        fs::write(&kept, "old").unwrap();
        fs::set_permissions(&kept, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("kept", &link).unwrap();
        fs::write(folder.path().join("x"), "a file, no folder").unwrap();
        let new = Wanted { bytes: b"new", mode: Some(0o100_755), linked: None, alone: false };
        let made = folder.path().join("deep/er/file");
        let error = apply(&[
            change(&kept, Some(new)),
            change(&link, None),
            change(&made, Some(new)),
            change(&blocked, Some(new)),
        ])
        .unwrap_err();
        assert_eq!(error.code, "file.io");
        assert_eq!(version(&kept).unwrap(), Some(Version { bytes: b"old".to_vec(), mode: 0o100_640 }));
        assert!(version(&link).unwrap().unwrap().is_link());
        assert!(!folder.path().join("deep").exists());
    }

    #[test]
    fn what_somebody_else_changed_is_left_to_them_with_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "old").unwrap();
        // A file with two names is written by a process, before which somebody comes.
        fs::hard_link(&path, folder.path().join("other")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        let others = ["sh", "-c", "printf theirs >$4; printf changed; exit 1", "sh"];
        let how = InPlace { writer: Some(others.map(Into::into).to_vec()), kept: None };
        let wanted = Wanted { bytes: b"new", mode: Some(0o100_444), linked: None, alone: false };
        let made = Change { was: Was::of(Some(b"old")), ..change(&path, Some(wanted)) };
        let error = super::apply(&[made], &how, &mut Claim::default()).unwrap_err();
        assert_eq!(error.code, "edit.stale");
        assert_eq!(version(&path).unwrap(), Some(Version { bytes: b"theirs".to_vec(), mode: 0o100_444 }));
    }

    #[test]
    fn links_files_and_read_only_files_take_each_others_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let versions = [
            Version { bytes: b"text".to_vec(), mode: 0o100_444 },
            Version { bytes: b"elsewhere".to_vec(), mode: 0o120_777 },
            Version { bytes: b"\x00\xff".to_vec(), mode: 0o100_755 },
            Version { bytes: b"\x00\xff".to_vec(), mode: 0o100_444 },
            Version { bytes: b"more".to_vec(), mode: 0o100_600 },
        ];
        for wanted in &versions {
            apply(&[change(
                &path,
                Some(Wanted { bytes: &wanted.bytes, mode: Some(wanted.mode), linked: None, alone: false }),
            )])
            .unwrap();
            assert_eq!(version(&path).unwrap().as_ref(), Some(wanted));
        }
        apply(&[change(&path, None)]).unwrap();
        assert_eq!(version(&path).unwrap(), None);
        apply(&[change(&path, None)]).unwrap();
    }

    #[test]
    fn what_is_moved_takes_another_place_and_goes_back_when_something_fails() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("made")).unwrap();
        fs::write(at("made/large"), "large").unwrap();
        fs::write(at("small"), "small").unwrap();
        fs::set_permissions(at("made/large"), fs::Permissions::from_mode(0o600)).unwrap();
        let moved = Moved { from: at("made/large"), made: Some(at("made")), mode: 0o100_755 };
        let moves =
            || Change { shown: "f", path: at("back/large"), was: Was::Nothing, becomes: Becomes::Moved(moved.clone()) };
        let new = Some(Wanted { bytes: b"new", mode: None, linked: None, alone: false });
        let failed = apply(&[moves(), change(&at("made/large"), new), change(&at("small/er"), new)]);
        assert_eq!(failed.unwrap_err().code, "file.io");
        let is = |name: &str, bytes: &[u8], mode| {
            assert_eq!(version(&at(name)).unwrap(), Some(Version { bytes: bytes.to_vec(), mode }), "{name}");
        };
        is("made/large", b"large", 0o100_600);
        assert!(!at("back").exists());
        apply(&[moves()]).unwrap();
        is("back/large", b"large", 0o100_755);
        assert!(!at("made").exists());
        assert_eq!(described_at(&at("back/large")).unwrap().unwrap(), described(b"large", 0o100_755));
    }
}
