//! Which files an undo or redo changes, and how.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use stele_core::{Content, FileChange, FileLeft, FileVersion, Hash, LeftWhy, ToolError, limits};
use stele_store::Store;
use stele_tools::change::{self, Becomes, Change, Moved, Wanted};
use stele_tools::claim::Claim;
use stele_tools::stands::{self, Was};
use stele_tools::{InPlace, names};

use super::Restored;
use super::owing::{Owing, was_another};
use crate::{ChangedSince, Error, Result};

/// What it takes to bring files back to before they were changed.
pub(super) struct Plan {
    steps: Vec<Step>,
    /// The files that are as they should be already, as the log has them: whoever did that, the way back is the same.
    already: Vec<FileChange>,
    pub(super) left: Vec<FileLeft>,
}

/// One file that is to be brought back.
struct Step {
    path: PathBuf,
    name: String,
    now: Option<FileVersion>,
    /// Its bytes now, as far as the log keeps them.
    bytes: Option<Vec<u8>>,
    /// What it is to be, and where that is.
    to: Option<(FileVersion, Source)>,
    /// The first folder that goes with it, when it goes.
    made: Option<PathBuf>,
    /// The first folder that is made for it, when it comes back.
    makes: Option<PathBuf>,
    /// The other names that it had then.
    linked: Option<Vec<String>>,
    /// True when somebody else changed it since, or between two changes of the turn.
    others: bool,
    /// Which file it is, by device and inode, where it has several names now.
    file: Option<(u64, u64)>,
    /// True where that is another file than it was: it becomes a file of its own again.
    alone: bool,
}

/// Where the content of a file is that comes back.
enum Source {
    /// In the log.
    Kept(Vec<u8>),
    /// Under another name: the turn moved it, and what it is was never read into the log.
    At(PathBuf),
}

/// The rank of a step that moves a file back.
const MOVES: u8 = 1;
/// The rank of a step that writes what stands there.
const WRITES: u8 = 3;

impl Step {
    /// True when all that stands there now is in the log once it is replaced.
    fn is_kept(&self) -> bool {
        self.now.is_none() || self.bytes.is_some()
    }

    /// Its place in the order: what goes, what moves, what is written. What gets a file of its own does so before that
    /// file is written under its other names, and what is joined to another name comes when that is what it was.
    fn rank(&self) -> u8 {
        match self.to {
            None => 0,
            Some((_, Source::At(_))) => MOVES,
            Some((_, Source::Kept(_))) if self.alone => 2,
            Some((_, Source::Kept(_))) if self.now.is_none() && self.linked.is_some() => 4,
            Some((_, Source::Kept(_))) => WRITES,
        }
    }

    /// What is written once under whichever name comes first: the same file, to become the same.
    fn shared(&self) -> Option<((u64, u64), Hash, u32)> {
        let (version, _) = self.to.as_ref().filter(|_| self.rank() == WRITES)?;
        Some((self.file?, version.hash, version.mode))
    }
}

impl Plan {
    /// Works out how to bring files from what they became back to what they were before.
    pub(super) fn backwards(owing: &Owing, store: &Store, changed_since: ChangedSince) -> Result<Self> {
        let all: Vec<&FileChange> = owing.changes.iter().collect();
        let changes: Vec<&FileChange> = all.iter().copied().filter(|change| change.before != change.after).collect();
        let mut plan = Self { steps: Vec::new(), already: Vec::new(), left: Vec::new() };
        let mut moved = Vec::new();
        for change in &changes {
            if change.before.is_some() && bytes_before(change, store)?.is_none() {
                moved.push(*change);
            }
        }
        let is_moved = |change: &&FileChange| moved.iter().any(|moved| moved.path == change.path);
        // What goes makes room for what comes: a file for a folder, a folder for a file. What was moved comes last, when
        // it is known which files leave their place.
        let goes = changes.iter().filter(|change| change.before.is_none());
        let comes = changes.iter().filter(|change| change.before.is_some() && !is_moved(change));
        for change in goes.copied().chain(comes.copied()).chain(moved.iter().copied()) {
            let gone: BTreeSet<PathBuf> =
                plan.steps.iter().filter(|step| step.to.is_none()).map(|step| step.path.clone()).collect();
            let only_copy = moved.iter().any(|moved| same_content(moved.before, change.after));
            let between = owing.between.contains(&change.path);
            match plan.step((change, between), &gone, store, changed_since)? {
                Ok(Some(step)) if step.is_kept() || only_copy || changed_since == ChangedSince::Overwrite => {
                    plan.steps.push(step);
                }
                Ok(Some(_)) => plan.left.push(FileLeft { path: change.path.clone(), why: LeftWhy::WouldBeLost }),
                Ok(None) => plan.already.push(already(change, store)),
                Err(why) => plan.left.push(FileLeft { path: change.path.clone(), why }),
            }
        }
        plan.keep_only_copies(&moved);
        plan.keep_what_has_no_way_back(&changes);
        plan.left.sort_by(|one, other| one.path.cmp(&other.path));
        plan.steps.sort_by_key(|step| (step.rank(), std::cmp::Reverse(step.path.clone())));
        plan.share_folders(&all);
        Ok(plan)
    }

    /// What was moved and cannot go back stays where it is: nothing else has its content.
    fn keep_only_copies(&mut self, moved: &[&FileChange]) {
        let sources = self.sources();
        let kept = self.steps.iter().enumerate().find_map(|(at, step)| {
            let of = moved.iter().find(|moved| same_content(moved.before, step.now) && moved.path != step.name)?;
            (!sources.contains(&step.path)).then_some((at, of))
        });
        let Some((at, of)) = kept else { return };
        let path = self.steps.remove(at).name;
        let detail = format!("it was moved here from {}, where it cannot go back to", of.path);
        self.left.push(FileLeft { path, why: LeftWhy::Blocked { detail } });
        // What was to move away from there may have been the only copy of another one.
        self.keep_only_copies(moved);
    }

    /// What the turn took from a place that has to be left as it is stays where it went, also when the log keeps it.
    fn keep_what_has_no_way_back(&mut self, changes: &[&FileChange]) {
        let is_left = |change: &&&FileChange| self.left.iter().any(|left| left.path == change.path);
        let homeless: Vec<&FileChange> =
            changes.iter().filter(|change| change.before.is_some()).filter(is_left).copied().collect();
        let (stays, goes) = std::mem::take(&mut self.steps).into_iter().partition::<Vec<_>, _>(|step| {
            let has_content = step.now.is_some_and(|now| now.len > 0);
            has_content && step.to.is_none() && homeless.iter().any(|change| came_from(change, step))
        });
        self.steps = goes;
        for step in stays {
            let from = homeless.iter().find(|change| came_from(change, &step)).map_or("", |change| &change.path);
            let detail = format!("it was moved here from {from}, where it cannot go back to");
            self.left.push(FileLeft { path: step.name, why: LeftWhy::Blocked { detail } });
        }
    }

    /// The places from which files move back.
    fn sources(&self) -> BTreeSet<PathBuf> {
        let from = |step: &Step| match &step.to {
            Some((_, Source::At(from))) => Some(from.clone()),
            _ => None,
        };
        self.steps.iter().filter_map(from).collect()
    }

    /// Where the content of a file stands that the log does not have: under the name that the turn moved it to, as long
    /// as it leaves that name.
    fn at_another_place(&self, version: FileVersion, path: &Path) -> Option<Source> {
        let taken = self.sources();
        let found = self.steps.iter().filter(|step| step.rank() != MOVES && !taken.contains(&step.path));
        let mut found = found.filter(|step| same_content(step.now, Some(version)) && !path.starts_with(&step.path));
        // What moves away itself is no place to move to: the one would have to come before the other.
        found.next().filter(|_| !taken.contains(path)).map(|step| Source::At(step.path.clone()))
    }

    /// A folder goes with the last file in it, whichever file it was made for, also one that came and went.
    fn share_folders(&mut self, changes: &[&FileChange]) {
        let comes = self.steps.iter().filter(|step| step.to.is_some()).map(|step| step.path.clone());
        let made = changes.iter().filter(|change| change.before.is_none()).filter_map(|change| change.made.as_ref());
        let made = made.map(PathBuf::from);
        let folders: BTreeSet<PathBuf> = comes.chain(made).collect();
        for step in self.steps.iter_mut().filter(|step| step.to.is_none()) {
            let first = step.path.ancestors().skip(1).filter(|folder| folders.contains(*folder)).last();
            step.made = first.map(Path::to_owned);
        }
    }

    /// Changes the files. Gives what a person has to know about it.
    pub(super) fn carry_out(&self, in_place: &InPlace) -> Result<Vec<String>> {
        let sources = self.sources();
        let made = |from: &Path| self.steps.iter().find(|step| step.path == from).and_then(|step| step.made.clone());
        let mut shared = BTreeSet::new();
        let changes: Vec<Change<'_>> = self
            .steps
            .iter()
            .filter(|step| step.to.is_some() || !sources.contains(&step.path))
            .filter(|step| step.shared().is_none_or(|file| shared.insert(file)))
            .map(|step| {
                let becomes = match &step.to {
                    None => Becomes::Gone { made: step.made.clone() },
                    Some((version, Source::Kept(bytes))) => {
                        let (mode, linked) = (Some(version.mode), step.linked.as_deref());
                        Becomes::Content(Wanted { bytes, mode, linked, alone: step.alone })
                    }
                    Some((version, Source::At(from))) => {
                        Becomes::Moved(Moved { from: from.clone(), made: made(from), mode: version.mode })
                    }
                };
                Change { shown: &step.name, path: step.path.clone(), was: Was::from(step.now), becomes }
            })
            .collect();
        match change::apply(&changes, in_place, &mut Claim::default()) {
            Ok(notes) => Ok(notes),
            Err(error) if error.code == "patch.half_done" => Err(Error::HalfRestored(error)),
            Err(error) => Err(Error::Restore(error)),
        }
    }

    /// What it does, for a person.
    pub(super) fn restored(&self, turn: u64, title: String, not_covered: Vec<String>) -> Restored {
        let replaced = self.steps.iter().filter(|step| step.others && step.is_kept() && step.now.is_some());
        Restored {
            turn,
            title,
            files: self.files(),
            left: self.left.clone(),
            replaced: replaced.map(|step| step.name.clone()).collect(),
            notes: Vec::new(),
            not_covered,
        }
    }

    /// All that is as it was then, for the log: what is restored, and what was so already.
    pub(super) fn logged(&self) -> Vec<FileChange> {
        let mut files = self.files();
        files.extend(self.already.iter().cloned());
        files.sort_by(|one, other| one.path.cmp(&other.path));
        files
    }

    /// The changes as the log has them: from what stands there now to what is restored.
    fn files(&self) -> Vec<FileChange> {
        let by_path: BTreeMap<&str, &Step> = self.steps.iter().map(|step| (step.name.as_str(), step)).collect();
        let sources = self.sources();
        let linked = names::of_each(by_path.keys().copied());
        let file = |step: &Step| {
            // What only moves away is not lost.
            let kept = step.bytes.as_deref().filter(|_| !sources.contains(&step.path));
            FileChange {
                path: step.name.clone(),
                before: step.now,
                after: step.to.as_ref().map(|(version, _)| *version),
                kept: kept.map(Content::new),
                made: step.makes.as_ref().map(|made| made.display().to_string()),
                linked: linked.get(step.name.as_str()).cloned(),
            }
        };
        by_path.into_values().map(file).collect()
    }

    /// The step that brings one file back; nothing when it is there already, or why it has to stay as it is.
    fn step(
        &self,
        (change, between): (&FileChange, bool),
        gone: &BTreeSet<PathBuf>,
        store: &Store,
        changed_since: ChangedSince,
    ) -> Result<std::result::Result<Option<Step>, LeftWhy>> {
        let path = PathBuf::from(&change.path);
        // What stands in place of a folder on the way and goes first does not count, wherever it leads.
        let in_the_way = path.ancestors().skip(1).filter(|folder| gone.contains(*folder)).last();
        if let Some(detail) = detour(in_the_way.unwrap_or(&path)) {
            return Ok(Err(LeftWhy::Blocked { detail }));
        }
        let now = match in_the_way.is_some() || is_emptied(&path, gone) {
            true => Ok((None, None)),
            false => standing(&path),
        };
        let (now, bytes) = match now {
            Ok(now) => now,
            Err(error) => return Ok(Err(LeftWhy::Blocked { detail: in_its_place(error) })),
        };
        if now == change.before {
            return Ok(Ok(None));
        }
        let is_changed = now != change.after;
        if (is_changed || between) && changed_since == ChangedSince::Leave {
            return Ok(Err(if is_changed { LeftWhy::ChangedSince } else { LeftWhy::ChangedBetween }));
        }
        let to = match change.before {
            None => None,
            Some(version) => {
                let kept = bytes_before(change, store)?.map(Source::Kept);
                match kept.or_else(|| self.at_another_place(version, &path)) {
                    Some(source) => Some((version, source)),
                    None => return Ok(Err(LeftWhy::NotKept)),
                }
            }
        };
        let is_made = |folder: &&Path| gone.contains(*folder) || !folder.is_dir();
        let makes = path.ancestors().skip(1).filter(is_made).last().filter(|_| to.is_some()).map(Path::to_owned);
        let linked = change.linked.clone();
        let file = names::several(&path);
        Ok(Ok(Some(Step {
            path,
            name: change.path.clone(),
            now,
            bytes,
            to,
            made: None,
            makes,
            linked,
            others: is_changed || between,
            file,
            alone: file.is_some_and(|file| was_another(change, file)),
        })))
    }
}

/// What stands under a name, with its bytes as far as the log keeps them.
fn standing(path: &Path) -> std::result::Result<(Option<FileVersion>, Option<Vec<u8>>), ToolError> {
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.len() > limits::UNDO_FILE_BYTES.default) {
        return Ok((stands::described_at(path)?, None));
    }
    let read = stands::version(path)?;
    let now = read.as_ref().map(|read| FileVersion {
        hash: Hash::of(&read.bytes),
        len: read.bytes.len() as u64,
        mode: read.mode,
    });
    Ok((now, read.map(|read| read.bytes)))
}

/// Why what stands under a name cannot be looked at.
fn in_its_place(error: ToolError) -> String {
    match error.code.as_str() {
        "file.folder" => "a folder that holds other things stands there now".to_owned(),
        "file.special" => "what stands there now is no file".to_owned(),
        _ => error.message,
    }
}

/// The bytes that a file had before, where the log has them: those that were not kept for this change may have been for
/// another.
fn bytes_before(change: &FileChange, store: &Store) -> Result<Option<Vec<u8>>> {
    let kept = change.kept.as_ref().map(|kept| kept.at().blob);
    Ok(match kept.or(change.before.map(|version| version.hash)) {
        Some(hash) => store.blob_bytes(&hash)?,
        None => None,
    })
}

fn same_content(one: Option<FileVersion>, other: Option<FileVersion>) -> bool {
    one.is_some() && one.map(|version| version.hash) == other.map(|version| version.hash)
}

/// The way back of a file that is already as it should be: the log may have what it was, from elsewhere.
fn already(change: &FileChange, store: &Store) -> FileChange {
    // Bytes that are lost or damaged are no reason to stop: a redo then says that they are not kept.
    let found = change.after.and_then(|version| store.blob_bytes(&version.hash).ok()?);
    FileChange {
        path: change.path.clone(),
        before: change.after,
        after: change.before,
        kept: found.map(Content::new),
        made: None,
        linked: names::of_each([change.path.as_str()]).remove(change.path.as_str()),
    }
}

/// True when a turn took this file from its place and what it was stands where this step is.
fn came_from(change: &FileChange, step: &Step) -> bool {
    change.after.is_none() && same_content(change.before, step.now)
}

/// True for a folder that holds nothing but files that go.
fn is_emptied(folder: &Path, gone: &BTreeSet<PathBuf>) -> bool {
    let is_folder = fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir());
    let Some(entries) = is_folder.then(|| fs::read_dir(folder).ok()).flatten() else { return false };
    let mut entries = entries.peekable();
    entries.peek().is_some()
        && entries.all(|entry| entry.is_ok_and(|entry| gone.contains(&entry.path()) || is_emptied(&entry.path(), gone)))
}

/// Why a path does not lead any more where it led: a folder on the way is a link now.
fn detour(path: &Path) -> Option<String> {
    let folder = path.ancestors().skip(1).find(|folder| folder.exists())?;
    let real = folder.canonicalize().ok()?;
    (real != folder).then(|| format!("{} leads to {} now", folder.display(), real.display()))
}
