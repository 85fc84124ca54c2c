//! Patches over many files: all of it is worked out before anything is written.

use std::collections::{BTreeMap, BTreeSet};

use crate::Dialect;
use crate::dialect::{self, Action};
use crate::edit::{Healed, Options, requests};
use crate::input::{exists, missing};
use crate::path::{inside, plain};
use crate::perform::{Request, perform};
use crate::refuse::{Code, Refusal};
use crate::spot::{ByPath, Folder, Placed, in_order, joined};
use crate::text::refuse_nul;

/// What becomes of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Where the file is afterwards, relative to the folder; where it was, when it is deleted.
    pub path: String,
    /// What stands under the name, before and after.
    pub entry: Entry,
    /// Its bytes before; absent when it is created. For a symbolic link, where it points to.
    pub before: Option<Vec<u8>>,
    /// Its bytes after; absent when it is deleted. For a symbolic link, where it points to.
    pub after: Option<Vec<u8>>,
    /// Where it was, when it is moved.
    pub moved_from: Option<String>,
    /// The mode it is to have, as git writes it (`0o100755`), where the patch says so.
    pub mode: Option<u32>,
    /// What the model should know about how the places were found.
    pub notes: Vec<String>,
    /// Slips that were forgiven, each once.
    pub healed: Vec<Healed>,
}

/// What stands under a name that a patch changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A file; changes go through the links that lead to it.
    File,
    /// A symbolic link, which is deleted or moved itself: what it leads to stays.
    Link,
}

/// Works out a patch (an envelope or a unified diff) over files that `read` gives by their path relative to the folder;
/// `read` gives nothing for a file that does not exist.
///
/// # Errors
/// As [`edit_input`](crate::edit_input), with the file in front of the message; and `edit.exists`, `edit.missing`,
/// `edit.outside` for what cannot be created, changed or reached.
pub fn plan(patch: &str, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> Result<Vec<FileChange>, Refusal> {
    Options::default().plan(patch, read)
}

/// The files that a patch names, each once and by the name that [`plan`] takes, without `.` and `..`: those it moves to as
/// well. What becomes of them is not looked at.
///
/// # Errors
/// `edit.unparsed` and `edit.mixed`, as [`plan`].
pub fn paths(patch: &str) -> Result<Vec<String>, Refusal> {
    let mut paths: Vec<String> = Vec::new();
    for section in dialect::parse(patch)?.sections {
        let to = match section.action {
            Action::Change { moved_to, .. } => moved_to,
            _ => None,
        };
        for path in section.path.into_iter().chain(to).map(|path| plain(&path)) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    Ok(paths)
}

/// Names that other files of the patch come to, and leave.
#[derive(Default)]
struct Names {
    made: BTreeSet<Vec<u8>>,
    left: BTreeSet<Vec<u8>>,
}

/// What a patch does to one file, in all its sections.
#[derive(Default)]
pub(crate) struct Wanted {
    pub(crate) requests: Vec<Request>,
    changes: bool,
    pub(crate) moved_to: Option<String>,
    pub(crate) mode: Option<u32>,
    created: Option<Vec<u8>>,
    deleted: Option<Option<Vec<Request>>>,
}

impl Wanted {
    /// True when the file gets another path than this.
    pub(crate) fn moves(&self, path: &str) -> bool {
        self.moved_to.as_ref().is_some_and(|to| to != path)
    }

    /// True when the name goes.
    pub(crate) fn takes_name(&self, path: &str) -> bool {
        self.deleted.is_some() || self.moves(path)
    }

    /// True when a file that is there is changed under the name it has.
    pub(crate) fn stays(&self, path: &str) -> bool {
        self.created.is_none() && !self.takes_name(path)
    }
}

impl Options {
    /// [`plan`] with these options.
    ///
    /// # Errors
    /// As [`plan`].
    pub fn plan(&self, patch: &str, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> Result<Vec<FileChange>, Refusal> {
        self.plan_in(patch, &mut ByPath(read))
    }

    /// Works out a patch over a folder whose files may have several names: what is wanted of one file under several
    /// of them is done together. Content is changed through symbolic links; a link that is deleted, or moved without a
    /// change, is deleted or moved itself.
    ///
    /// # Errors
    /// As [`plan`]; and `edit.link` when a link is moved and its file changed in one section.
    pub fn plan_in(&self, patch: &str, folder: &mut dyn Folder) -> Result<Vec<FileChange>, Refusal> {
        let parsed = dialect::parse(patch)?;
        let mut order: Vec<(String, Wanted)> = Vec::new();
        let mut by_path: BTreeMap<String, usize> = BTreeMap::new();
        for section in parsed.sections {
            let Some(path) = section.path else {
                let text = "the input does not name the file to change; send a `*** Begin Patch` envelope, a unified diff \
                            with `---` and `+++` lines, or edit the one file";
                return Err(Refusal::new(Code::Unparsed, text));
            };
            let path = inside(self.root.as_deref(), &path)?;
            let at = *by_path.entry(path.clone()).or_insert(order.len());
            if at == order.len() {
                order.push((path.clone(), Wanted::default()));
            }
            self.add(&mut order[at].1, section.action).map_err(|refusal| refusal.about(&path))?;
        }
        let placed = in_order(joined(order, folder)?, folder);
        let mut names = Names::default();
        let mut plan = Vec::with_capacity(placed.len());
        for placed in placed {
            let path = placed.path.clone();
            let leaves = placed.leaves().cloned();
            let change = self.change(parsed.dialect, placed, folder, &mut names);
            plan.push(change.map_err(|refusal| refusal.about(&path).read_as(&parsed.notes))?);
            names.left.extend(leaves);
        }
        if let Some(first) = plan.first_mut() {
            first.notes.extend(parsed.notes);
        }
        Ok(plan)
    }

    fn add(&self, wanted: &mut Wanted, action: Action) -> Result<(), Refusal> {
        let twice = |text: &str| Err(Refusal::new(Code::Overlap, format!("{text}; say once what becomes of it")));
        if wanted.created.is_some() || wanted.deleted.is_some() {
            return twice("the patch has another section for a file that it creates or deletes");
        }
        match action {
            Action::Edits(edits) => {
                wanted.changes = true;
                wanted.requests.extend(requests(false, &edits)?);
            }
            Action::Change { requests, moved_to, mode } => {
                wanted.changes = true;
                wanted.requests.extend(requests);
                let moved_to = moved_to.map(|to| inside(self.root.as_deref(), &to)).transpose()?;
                if moved_to.is_some() && wanted.moved_to.is_some() && moved_to != wanted.moved_to {
                    return twice("the patch moves the file to two places");
                }
                wanted.moved_to = moved_to.or(wanted.moved_to.take());
                wanted.mode = mode.or(wanted.mode);
            }
            Action::Create { .. } | Action::Delete { .. } if wanted.changes => {
                return twice("the patch changes the file and creates or deletes it");
            }
            Action::Create { content, mode } => (wanted.created, wanted.mode) = (Some(content), mode),
            Action::Delete { shown } => wanted.deleted = Some(shown),
        }
        Ok(())
    }

    fn change(
        &self,
        dialect: Dialect,
        placed: Placed,
        folder: &mut dyn Folder,
        names: &mut Names,
    ) -> Result<FileChange, Refusal> {
        let Placed { path, spot, wanted, also } = placed;
        let link = spot.link.filter(|_| wanted.takes_name(&path));
        let entry = if link.is_some() { Entry::Link } else { Entry::File };
        let before = if entry == Entry::Link { link } else { folder.read(&path) };
        let joined = also.iter().map(|other| format!("{other} and {path} are one file; it has the changes of both"));
        let mut change = FileChange {
            path: path.clone(),
            entry,
            before: None,
            after: None,
            moved_from: None,
            mode: wanted.mode,
            notes: joined.collect(),
            healed: Vec::new(),
        };
        if let Some(content) = wanted.created {
            if before.is_some() || !names.made.insert(spot.target) {
                return Err(exists());
            }
            refuse_nul(&content)?;
            change.after = Some(content);
            return Ok(change);
        }
        let before = before.ok_or_else(missing)?;
        if let Some(shown) = wanted.deleted {
            self.refuse_other_content(dialect, &before, shown)?;
            if entry == Entry::Link {
                change.notes.push(format!("{path} was a symbolic link; what it leads to is as it was"));
            }
            change.before = Some(before);
            return Ok(change);
        }
        let moved_to = wanted.moved_to.filter(|to| *to != path);
        if let Some(to) = &moved_to {
            let there = folder.spot(to);
            // What follows a link would put a link behind it.
            let taken = entry == Entry::Link && there.link.is_some();
            let free = there.link.is_none() && names.left.contains(&there.name);
            if taken || !free && folder.read(to).is_some() || !names.made.insert(there.target) {
                return Err(exists().about(to));
            }
        }
        if entry == Entry::Link {
            if !wanted.requests.is_empty() || wanted.mode.is_some() {
                let text = "it is a symbolic link, which is moved alone; change the file that it leads to under that \
                            file's own name";
                return Err(Refusal::new(Code::Link, text));
            }
            change.notes.push(format!("{path} is a symbolic link and was moved as it is; what it leads to was not"));
        }
        if wanted.requests.is_empty() {
            if moved_to.is_none() && wanted.mode.is_none() {
                return Err(Refusal::new(Code::NoChange, "the file has no hunk; give one, or leave the file out"));
            }
            change.after = Some(before.clone());
        } else {
            let applied = perform(self, &before, &wanted.requests, dialect)?;
            change.notes.extend(applied.notes);
            (change.after, change.healed) = (Some(applied.bytes), applied.healed);
        }
        if let Some(to) = moved_to {
            change.moved_from = Some(std::mem::replace(&mut change.path, to));
        }
        change.before = Some(before);
        Ok(change)
    }

    /// A diff that deletes a file shows all of it.
    fn refuse_other_content(
        &self,
        dialect: Dialect,
        before: &[u8],
        shown: Option<Vec<Request>>,
    ) -> Result<(), Refusal> {
        let rest = match shown {
            None if dialect == Dialect::Envelope => return Ok(()),
            None => before.to_vec(),
            Some(shown) => perform(self, before, &shown, dialect)?.bytes,
        };
        if rest.is_empty() {
            return Ok(());
        }
        let text = "the diff deletes the file, but does not show all that is in it; read it again before it is deleted";
        Err(Refusal::new(Code::NotFound, text))
    }
}
