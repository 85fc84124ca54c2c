//! Patches over many files: all of it is worked out before anything is written.

use std::collections::BTreeMap;

use crate::Dialect;
use crate::dialect::{self, Action};
use crate::edit::{Healed, Options, requests};
use crate::input::{exists, missing};
use crate::path::inside;
use crate::perform::{Request, perform};
use crate::refuse::{Code, Refusal};

/// What becomes of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Where the file is afterwards, relative to the folder; where it was, when it is deleted.
    pub path: String,
    /// Its bytes before; absent when it is created.
    pub before: Option<Vec<u8>>,
    /// Its bytes after; absent when it is deleted.
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

/// Works out a patch (an envelope or a unified diff) over files that `read` gives by their path relative to the folder;
/// `read` gives nothing for a file that does not exist.
///
/// # Errors
/// As [`edit_input`](crate::edit_input), with the file in front of the message; and `edit.exists`, `edit.missing`,
/// `edit.outside` for what cannot be created, changed or reached.
pub fn plan(patch: &str, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> Result<Vec<FileChange>, Refusal> {
    Options::default().plan(patch, read)
}

/// The files that a patch names, as it writes them and each once: those it moves to as well. What becomes of them
/// is not looked at.
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
        for path in section.path.into_iter().chain(to) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    Ok(paths)
}

/// What a patch does to one file, in all its sections.
#[derive(Default)]
struct Wanted {
    requests: Vec<Request>,
    changes: bool,
    moved_to: Option<String>,
    mode: Option<u32>,
    created: Option<Vec<u8>>,
    deleted: Option<Option<Vec<Request>>>,
}

impl Options {
    /// [`plan`] with these options.
    ///
    /// # Errors
    /// As [`plan`].
    pub fn plan(&self, patch: &str, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> Result<Vec<FileChange>, Refusal> {
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
        let mut targets: BTreeMap<String, String> = BTreeMap::new();
        let mut plan = Vec::with_capacity(order.len());
        for (path, wanted) in order {
            let change = self
                .change(parsed.dialect, &path, wanted, read, &mut targets)
                .map_err(|refusal| refusal.about(&path))?;
            plan.push(change);
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
        path: &str,
        wanted: Wanted,
        read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
        targets: &mut BTreeMap<String, String>,
    ) -> Result<FileChange, Refusal> {
        let before = read(path);
        let mut change = FileChange {
            path: path.to_owned(),
            before: None,
            after: None,
            moved_from: None,
            mode: wanted.mode,
            notes: Vec::new(),
            healed: Vec::new(),
        };
        if let Some(content) = wanted.created {
            if before.is_some() || targets.insert(path.to_owned(), path.to_owned()).is_some() {
                return Err(exists());
            }
            change.after = Some(content);
            return Ok(change);
        }
        let before = before.ok_or_else(missing)?;
        if let Some(shown) = wanted.deleted {
            self.refuse_other_content(dialect, &before, shown)?;
            change.before = Some(before);
            return Ok(change);
        }
        let moved_to = wanted.moved_to.filter(|to| to != path);
        if let Some(to) = &moved_to
            && (read(to).is_some() || targets.insert(to.clone(), path.to_owned()).is_some())
        {
            return Err(exists().about(to));
        }
        if wanted.requests.is_empty() {
            if moved_to.is_none() && wanted.mode.is_none() {
                return Err(Refusal::new(Code::NoChange, "the file has no hunk; give one, or leave the file out"));
            }
            change.after = Some(before.clone());
        } else {
            let applied = perform(self, &before, &wanted.requests, dialect)?;
            (change.after, change.notes, change.healed) = (Some(applied.bytes), applied.notes, applied.healed);
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
