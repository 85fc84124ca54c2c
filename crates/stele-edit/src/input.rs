//! Any dialect against one file.

use crate::dialect::{self, Action, Parsed};
use crate::edit::{Applied, Options, requests};
use crate::once::Once;
use crate::path::same_file;
use crate::perform::{InsertAt, Request, perform};
use crate::refuse::{Code, Refusal};
use crate::text::refuse_nul;
use crate::{Dialect, Edit};

/// Applies an input in any dialect to one file, all of it or nothing.
///
/// `path` is only compared with the names in the input; `original` is absent when the file does not exist.
///
/// # Errors
/// The input is in no dialect or in several, it names another file, or it cannot be applied; see
/// [`CODES`](crate::CODES).
pub fn edit_input(path: Option<&str>, original: Option<&[u8]>, input: &str) -> Result<Applied, Refusal> {
    Options::default().edit_input(path, original, input)
}

/// Reads structured edits: `{"edits": [{"old", "new", "all"?, "near_line"?}]}`.
///
/// # Errors
/// `edit.unparsed`, naming the field that is missing or of the wrong kind.
pub fn parse_structured(json: &str) -> Result<Vec<Edit>, Refusal> {
    let value = serde_json::from_str(json).map(|Once(value)| value).map_err(|error| {
        let text = format!(
            "the edits cannot be read as JSON ({error}); send {{\"edits\": [{{\"old\": \"…\", \"new\": \"…\"}}]}}"
        );
        Refusal::new(Code::Unparsed, text)
    })?;
    dialect::structured(&value)
}

impl Options {
    /// [`edit_input`] with these options.
    ///
    /// # Errors
    /// As [`edit_input`].
    pub fn edit_input(&self, path: Option<&str>, original: Option<&[u8]>, input: &str) -> Result<Applied, Refusal> {
        let Parsed { dialect, sections, notes } = dialect::parse(input)?;
        let mut all = Vec::new();
        let mut other_name = None;
        let count = sections.len();
        for section in sections {
            if let (Some(named), Some(path)) = (&section.path, path)
                && !same_file(named, path)
            {
                if dialect != Dialect::Unified || count > 1 {
                    return Err(outside(&format!("the input names {named}, but the file to change is {path}")));
                }
                other_name = Some(named.clone());
            }
            match section.action {
                Action::Edits(edits) => {
                    let empty = original.is_none_or(<[u8]>::is_empty);
                    if original.is_none() && !(edits.len() == 1 && edits[0].old.is_empty()) {
                        return Err(missing());
                    }
                    all.extend(requests(empty, &edits)?);
                }
                Action::Change { moved_to: Some(_), .. } => return Err(outside("the input moves the file")),
                Action::Change { mode: Some(_), .. } => return Err(outside("the input changes the file's mode")),
                Action::Change { requests, .. } => all.extend(requests),
                Action::Delete { .. } => return Err(outside("the input deletes the file")),
                Action::Create { .. } if original.is_some() => return Err(exists()),
                Action::Create { .. } if count > 1 => return Err(outside("the input creates a file and changes more")),
                Action::Create { .. } if other_name.is_some() => {
                    return Err(outside("the diff creates a file of another name"));
                }
                Action::Create { mode: Some(_), .. } => return Err(outside("the input sets the file's mode")),
                Action::Create { content, .. } => {
                    refuse_nul(&content)?;
                    return Ok(Applied { notes, ..Applied::created(content, dialect) });
                }
            }
        }
        if all.is_empty() {
            return Err(Refusal::new(Code::NoChange, "the input holds no change; give at least one hunk"));
        }
        // Only lines that are found show that a diff of another name is for this file.
        if let Some(name) = &other_name
            && !all.iter().all(|request| matches!(request, Request::Find { .. }))
        {
            return Err(outside(&format!("the diff names {name}, and has no context that would show that it fits")));
        }
        let creates =
            |request: &Request| matches!(request, Request::Whole(_) | Request::Insert { at: InsertAt::End, .. });
        if original.is_none() && !all.iter().all(creates) {
            return Err(missing());
        }
        let mut applied =
            perform(self, original.unwrap_or_default(), &all, dialect).map_err(|refusal| refusal.read_as(&notes))?;
        applied.notes.extend(notes);
        if let Some(name) = other_name {
            applied.notes.push(format!("the diff names {name}, but it fits this file and was applied to it"));
        }
        Ok(applied)
    }
}

impl Applied {
    pub(crate) fn created(bytes: Vec<u8>, dialect: Dialect) -> Self {
        Self { bytes, notes: Vec::new(), healed: Vec::new(), places: Vec::new(), dialect }
    }
}

fn outside(what: &str) -> Refusal {
    Refusal::new(Code::Outside, format!("{what}; send it as a patch over several files, which may do that"))
}

pub(crate) fn missing() -> Refusal {
    Refusal::new(Code::Missing, "the file does not exist; check the path, or create it with its whole content")
}

pub(crate) fn exists() -> Refusal {
    Refusal::new(Code::Exists, "the file exists already; change it instead of creating it, or take another name")
}

/// Refuses to write over a file that is not what was read, with the difference where the old content is known; absent
/// when nothing changed.
#[must_use]
pub fn stale(path: &str, as_read: Option<&[u8]>, now: &[u8]) -> Option<Refusal> {
    let text = format!("{path} has changed since it was read; read it again and decide what to keep");
    let Some(before) = as_read else { return Some(Refusal::new(Code::Stale, text)) };
    if before == now {
        return None;
    }
    let mut diff = crate::unified_diff(path, before, now).text;
    if diff.len() > 4096 {
        diff.truncate(diff.floor_char_boundary(4096));
        diff.push_str("\n…\n");
    }
    Some(Refusal::new(Code::Stale, format!("{text}. What changed:\n{diff}")))
}
