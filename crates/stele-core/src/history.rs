//! What turns changed, and which of them were taken back.

use std::collections::BTreeMap;

use crate::cut::Origin;
use crate::{
    FileChange, FileChanged, JobId, RedoApplied, Seq, SurfaceItem, TodoItem, ToolErrorClass, ToolResult, UndoApplied,
};

/// Most characters of a title.
const TITLE: usize = 80;

/// What a prompt is named by in lists: its first line, cut after 80 characters, which an ellipsis tells.
#[must_use]
pub fn title(prompt: &str) -> String {
    let line = prompt.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(TITLE) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.trim_end().to_owned(),
    }
}

/// What a turn is named by so far: what is further down goes before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    #[default]
    Nothing,
    Notice,
    Turn,
    Person,
}

/// What one turn changed: one entry of the undo list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnChanges {
    /// The turn, from 1.
    pub turn: u64,
    /// The first line of its prompt, see [`title`].
    pub title: String,
    named: Named,
    /// Where its part of the surface began; absent when it left nothing there.
    first: Option<Seq>,
    /// The number that the first job had which was started in it, or would have had.
    first_job: JobId,
    /// Its files, by path: from before its first change to after its last one.
    pub files: BTreeMap<String, FileChange>,
    /// Effects that an undo does not reach, in words.
    pub not_covered: Vec<String>,
    /// The things to do before it.
    pub todo: Vec<TodoItem>,
}

/// A turn that was taken back.
#[derive(Clone, Debug, PartialEq)]
pub struct Undone {
    /// What it had changed.
    pub changes: TurnChanges,
    /// The files that were restored, with what they were just before.
    pub files: Vec<FileChange>,
    /// The things to do before it was taken back.
    pub todo: Vec<TodoItem>,
    /// The records that left the surface.
    pub(crate) items: Vec<Seq>,
}

/// The undo list of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    open: Option<TurnChanges>,
    done: Vec<TurnChanges>,
    undone: Vec<Undone>,
}

impl History {
    /// Turns that are over and not taken back, in order.
    #[must_use]
    pub fn done(&self) -> &[TurnChanges] {
        &self.done
    }

    /// Turns that were taken back and can be done again, the next one last.
    #[must_use]
    pub fn undone(&self) -> &[Undone] {
        &self.undone
    }

    /// True when the open turn changed this file before.
    #[must_use]
    pub fn knows(&self, path: &str) -> bool {
        self.open.as_ref().is_some_and(|open| open.files.contains_key(path))
    }

    /// A turn opens: what was taken back before cannot be done again.
    pub(crate) fn begin(&mut self, turn: u64, first_job: JobId, todo: &[TodoItem]) {
        self.end();
        self.undone.clear();
        self.open = Some(TurnChanges { turn, first_job, todo: todo.to_vec(), ..TurnChanges::default() });
    }

    pub(crate) fn end(&mut self) {
        self.done.extend(self.open.take().filter(|open| open.first.is_some() || !open.files.is_empty()));
    }

    /// An item came to the surface.
    pub(crate) fn surfaced(&mut self, seq: Seq, item: &SurfaceItem, origin: &Origin) {
        let Some(open) = &mut self.open else { return };
        open.first.get_or_insert(seq);
        let named = match origin {
            Origin::Notice { .. } => Named::Notice,
            Origin::Turn => Named::Turn,
            Origin::Person => Named::Person,
        };
        if let (SurfaceItem::User(parts), true) = (item, named > open.named)
            && let Some(crate::Part::Text { text }) = parts.first()
        {
            open.title = title(text.as_str());
            open.named = named;
        }
    }

    /// Where the surface of the last turn began that is over, and the number of its first job.
    pub(crate) fn last_begin(&self) -> Option<(Seq, JobId)> {
        let last = self.done.last()?;
        Some((last.first?, last.first_job))
    }

    pub(crate) fn changed(&mut self, changed: &FileChanged) {
        let Some(open) = &mut self.open else { return };
        let change = &changed.change;
        match open.files.get_mut(&change.path) {
            Some(known) => known.after = change.after,
            None => drop(open.files.insert(change.path.clone(), change.clone())),
        }
    }

    /// A call ended: what it did beyond what is known of files.
    pub(crate) fn result(&mut self, result: &ToolResult, tool: &str) {
        let Some(open) = &mut self.open else { return };
        let unknown = result.error.as_ref().is_some_and(|error| error.class == ToolErrorClass::OutcomeUnknown);
        let unknown =
            unknown.then(|| format!("what {tool} ({}) did before it was interrupted: nobody knows", result.call));
        for words in result.meta.not_covered.iter().cloned().chain(unknown) {
            if !open.not_covered.contains(&words) {
                open.not_covered.push(words);
            }
        }
    }

    pub(crate) fn undo(&mut self, applied: &UndoApplied, todo: &[TodoItem], items: Vec<Seq>) {
        if self.done.last().is_some_and(|last| last.turn == applied.turn)
            && let Some(changes) = self.done.pop()
        {
            self.undone.push(Undone { changes, files: applied.files.clone(), todo: todo.to_vec(), items });
        }
    }

    pub(crate) fn redo(&mut self, applied: &RedoApplied) {
        if self.undone.last().is_some_and(|last| last.changes.turn == applied.turn)
            && let Some(undone) = self.undone.pop()
        {
            self.done.push(undone.changes);
        }
    }
}
