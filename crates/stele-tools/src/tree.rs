//! Patches over a folder on disk: which files the names in them lead to, and what becomes of each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::ops::Bound;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use stele_core::ToolError;
use stele_edit::{Entry, FileChange, Folder, Options, Spot};

use crate::change::{Becomes, Change, Wanted};
use crate::error::{Error, Result};
use crate::file;
use crate::overwrite::InPlace;
use crate::path::{Place, escape};
use crate::stands::{LINK, Was};

/// The mode of a symbolic link (`symlink(7)`).
const LINK_MODE: u32 = LINK | 0o777;

/// How far a patch reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Into the folder, whatever its links point to.
    Inside,
    /// Wherever links lead: somebody else decided that it may.
    Links,
}

/// A patch that was worked out over a folder, before anything is written.
#[derive(Debug)]
pub struct Planned {
    /// What becomes of each file.
    pub plan: Vec<FileChange>,
    place: Place,
    reach: Reach,
}

/// Works out a patch over the files of a folder; names are taken exactly, and what a link leads to outside the folder is
/// out of reach.
///
/// # Errors
/// `edit.*` when the engine refuses it, `file.*` for a name that leads nowhere or to what cannot be read.
pub fn plan(folder: &Path, options: &Options, patch: &str) -> Result<Planned, ToolError> {
    let place = Place { cwd: folder.to_owned(), home: None, spill: None, in_place: InPlace::default() };
    worked_out(&place, Reach::Inside, options, patch).map_err(ToolError::from)
}

pub(crate) fn worked_out(place: &Place, reach: Reach, options: &Options, patch: &str) -> Result<Planned> {
    let options = Options { root: Some(place.cwd.display().to_string()), ..options.clone() };
    let mut tree = Tree { place, reach, error: None };
    let plan = options.plan_in(patch, &mut tree);
    // What could not be looked at is no missing file.
    if let Some(error) = tree.error {
        return Err(error);
    }
    let plan = plan.map_err(|refusal| {
        let alike = (refusal.code == "edit.missing").then(|| alike(place, patch, &refusal.message)).flatten();
        let hint = alike.map_or_else(String::new, |name| format!("; one that only looks like it is there: {name}"));
        Error::Refused { code: refusal.code, message: format!("{}{hint}", refusal.message) }
    })?;
    refuse_twins(place, &plan)?;
    Ok(Planned { plan, place: place.clone(), reach })
}

/// Refuses to make a name beside one that looks the same, unless that one goes.
fn refuse_twins(place: &Place, plan: &[FileChange]) -> Result<()> {
    let goes = |change: &FileChange| match (&change.moved_from, &change.after) {
        (Some(from), _) => place.name(from).ok(),
        (None, None) => place.name(&change.path).ok(),
        (None, Some(_)) => None,
    };
    let going: BTreeSet<PathBuf> = plan.iter().filter_map(goes).collect();
    for change in plan.iter().filter(|change| change.before.is_none() || change.moved_from.is_some()) {
        if let Some(twin) = place.twin(&change.path)?.filter(|twin| !going.contains(twin)) {
            let shown = twin.strip_prefix(&place.cwd).unwrap_or(&twin).to_string_lossy();
            let text = format!(
                "{}: a name that looks the same is there already: {}; use that one, or take another name",
                escape(&change.path),
                escape(&shown)
            );
            return Err(Error::Refused { code: "edit.exists", message: text });
        }
    }
    Ok(())
}

/// The file that a name looks like which a refusal says does not exist: names in a patch are taken exactly.
fn alike(place: &Place, patch: &str, refusal: &str) -> Option<String> {
    let paths = stele_edit::paths(patch).ok()?;
    let path = paths.iter().find(|path| refusal.starts_with(&format!("{path}:")))?;
    Some(escape(&place.find(path).ok()?.instead?))
}

impl Planned {
    /// What is to be done, name by name: what is new comes before what goes.
    ///
    /// # Errors
    /// `file.*` for a name that leads nowhere, `edit.outside` for one that leads out of the folder, `edit.link` for a
    /// link that is reached through another link.
    pub fn changes(&self) -> Result<Vec<Change<'_>>, ToolError> {
        self.steps().map_err(ToolError::from)
    }

    pub(crate) fn steps(&self) -> Result<Vec<Change<'_>>> {
        let mut changes = Vec::new();
        for change in &self.plan {
            let shown = change.path.as_str();
            let path = place_of(&self.place, change)?;
            let from = change.moved_from.as_deref();
            let from = from.map(|from| Ok::<_, Error>((from, self.place.name(from)?))).transpose()?;
            // What is moved comes to where nothing was.
            let before = Was::of(change.before.as_deref());
            let was = if from.is_some() { Was::Nothing } else { before };
            if change.entry == Entry::Link {
                for (shown, path) in from.iter().map(|(shown, path)| (*shown, path)).chain([(shown, &path)]) {
                    refuse_detour(&self.place, shown, path)?;
                }
            }
            if let Some(after) = &change.after {
                // A patch says which bits a file has, not what it is; a file that is only moved keeps them.
                let kept =
                    || from.as_ref().and_then(|(_, from)| fs::metadata(from).ok()).map(|was| was.mode() & 0o7777);
                let mode = match change.entry {
                    Entry::Link => Some(LINK_MODE),
                    Entry::File => change.mode.map(|mode| mode & 0o777).or_else(kept),
                };
                let becomes = Becomes::Content(Wanted { bytes: after, mode, linked: None, alone: false });
                changes.push(Change { shown, path: path.clone(), was, becomes });
            } else {
                changes.push(Change { shown, path, was, becomes: Becomes::Gone { made: None } });
            }
            if let Some((shown, path)) = from {
                changes.push(Change { shown, path, was: before, becomes: Becomes::Gone { made: None } });
            }
        }
        in_order(&mut changes)?;
        for change in &changes {
            within(&self.place, self.reach, change.shown, &change.path)?;
            self.refuse_read_only(change)?;
        }
        Ok(changes)
    }

    /// The real path and the mode of what a change starts from; absent where it creates a file.
    #[must_use]
    pub fn origin(&self, change: &FileChange) -> Option<(PathBuf, u32)> {
        change.before.as_ref()?;
        let name = change.moved_from.as_deref().unwrap_or(&change.path);
        let followed = change.entry == Entry::File && change.after.is_some() && change.moved_from.is_none();
        let path = if followed { self.place.target(name) } else { self.place.name(name) }.ok()?;
        let metadata = if change.entry == Entry::Link { fs::symlink_metadata(&path) } else { fs::metadata(&path) };
        Some((path, metadata.ok()?.mode()))
    }

    /// The real path of what a change leads to; absent where it deletes.
    #[must_use]
    pub fn result(&self, change: &FileChange) -> Option<PathBuf> {
        change.after.as_ref()?;
        place_of(&self.place, change).ok()
    }

    /// Refuses to delete, move away or overwrite what nobody may write, as an edit does; its mode may be changed.
    fn refuse_read_only(&self, change: &Change<'_>) -> Result<()> {
        let Ok(metadata) = fs::symlink_metadata(&change.path) else { return Ok(()) };
        let of_mode = |it: &&FileChange| it.mode.is_some() && it.moved_from.is_none() && it.before == it.after;
        if self.plan.iter().filter(of_mode).any(|it| it.path == change.shown) {
            return Ok(());
        }
        file::refuse_read_only(&metadata, change.shown)
    }
}

/// Puts first what goes to make room for a folder, and leaves out what goes from a name that something else takes: it is
/// replaced in one go.
fn in_order(changes: &mut Vec<Change<'_>>) -> Result<()> {
    let made = |change: &Change<'_>| matches!(change.becomes, Becomes::Content(_)).then(|| change.path.clone());
    let made: BTreeSet<PathBuf> = changes.iter().filter_map(made).collect();
    let goes = |change: &Change<'_>| matches!(change.becomes, Becomes::Gone { .. });
    for change in changes.iter().filter(|change| goes(change) && made.contains(&change.path)) {
        if fs::metadata(&change.path).is_ok_and(|metadata| metadata.nlink() > 1) {
            let text =
                "it has other names (hard links), which would get what is moved here; move it in a patch of its own";
            return Err(Error::Refused { code: "edit.exists", message: format!("{}: {text}", change.shown) });
        }
    }
    let replaced = changes.extract_if(.., |change| goes(change) && made.contains(&change.path));
    let stood: BTreeMap<PathBuf, Was> = replaced.map(|change| (change.path, change.was)).collect();
    for change in &mut *changes {
        if let Some(was) = stood.get(&change.path) {
            change.was = *was;
        }
    }
    let makes_room = |change: &Change<'_>| {
        let beneath = made.range::<Path, _>((Bound::Excluded(change.path.as_path()), Bound::Unbounded)).next();
        goes(change) && beneath.is_some_and(|path| path.starts_with(&change.path))
    };
    changes.sort_by_key(|change| !makes_room(change));
    Ok(())
}

/// The real path of what a change is about, as it stands after it: a link that is followed, or not.
pub(crate) fn place_of(place: &Place, change: &FileChange) -> Result<PathBuf> {
    match (change.entry, &change.after) {
        (Entry::File, Some(_)) => place.target(&change.path),
        _ => place.name(&change.path),
    }
}

/// What asks for permission follows links: a link that is reached through another one is not what it was asked about.
fn refuse_detour(place: &Place, shown: &str, path: &Path) -> Result<()> {
    let root = place.target(".")?;
    if path == root.join(shown) {
        return Ok(());
    }
    let text = format!(
        "{shown}: a symbolic link is deleted or moved only by its own name, and this one leads through another link; \
         name {}",
        path.display()
    );
    Err(Error::Refused { code: "edit.link", message: text })
}

fn within(place: &Place, reach: Reach, shown: &str, path: &Path) -> Result<()> {
    if reach == Reach::Links || path.starts_with(place.target(".")?) {
        return Ok(());
    }
    let text = format!("{shown} leads to {}, out of the folder; work in that folder instead", path.display());
    Err(Error::Refused { code: "edit.outside", message: text })
}

/// Nothing is there, though something may come to be once the file goes.
fn is_beneath_a_file(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotADirectory)
}

/// A folder on disk, for the engine. What cannot be looked at is remembered.
struct Tree<'a> {
    place: &'a Place,
    reach: Reach,
    error: Option<Error>,
}

impl Tree<'_> {
    fn content(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let target = self.place.target(path)?;
        within(self.place, self.reach, path, &target)?;
        match file::read_if_there(file::LARGEST, &target, path) {
            Err(error) if is_beneath_a_file(&error) => Ok(None),
            content => content,
        }
    }

    fn known<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.error.get_or_insert(error)).ok()
    }
}

impl Folder for Tree<'_> {
    fn read(&mut self, path: &str) -> Option<Vec<u8>> {
        let content = self.content(path);
        self.known(content).flatten()
    }

    fn spot(&mut self, path: &str) -> Spot {
        let spot = spot(self.place, path);
        self.known(spot).unwrap_or_else(|| Spot::plain(path))
    }
}

fn spot(place: &Place, path: &str) -> Result<Spot> {
    let nothing =
        |kind| matches!(kind, io::ErrorKind::InvalidInput | io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    let name = place.name(path)?;
    let link = match fs::read_link(&name) {
        Ok(to) => Some(to.into_os_string().into_vec()),
        // It is something else, or nothing.
        Err(error) if nothing(error.kind()) => None,
        Err(error) => return Err(Error::io("read", path)(error)),
    };
    let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
    // A link that leads nowhere can still be deleted and moved; what follows it is told when it is read.
    let target = place.target(path).unwrap_or_else(|_| name.clone());
    let file = match fs::metadata(&target) {
        Ok(metadata) => format!("{} {}", metadata.dev(), metadata.ino()).into_bytes(),
        Err(_) => bytes(&target),
    };
    Ok(Spot { name: bytes(&name), target: bytes(&target), file, link })
}
