//! What turns changed, and which of them were taken back.

use std::collections::BTreeMap;

use crate::{
    FileChange, FileChanged, RedoApplied, Seq, SpanRange, SurfaceItem, TodoItem, ToolErrorClass, ToolResult,
    UndoApplied,
};

/// Characters of a prompt that name its turn.
const TITLE: usize = 80;

/// What one turn changed: one entry of the undo list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnChanges {
    /// The turn, from 1.
    pub turn: u64,
    /// The first line of its prompt.
    pub title: String,
    /// Its part of the surface; absent when it left nothing there.
    pub(crate) range: Option<SpanRange>,
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
    pub(crate) fn begin(&mut self, turn: u64, todo: &[TodoItem]) {
        self.end();
        self.undone.clear();
        self.open = Some(TurnChanges { turn, todo: todo.to_vec(), ..TurnChanges::default() });
    }

    pub(crate) fn end(&mut self) {
        self.done.extend(self.open.take().filter(|open| open.range.is_some() || !open.files.is_empty()));
    }

    /// An item came to the surface.
    pub(crate) fn surfaced(&mut self, seq: Seq, item: &SurfaceItem) {
        let Some(open) = &mut self.open else { return };
        let range = open.range.get_or_insert(SpanRange { first: seq, last: seq });
        range.last = seq;
        if let (SurfaceItem::User(parts), true) = (item, open.title.is_empty())
            && let Some(crate::Part::Text { text }) = parts.first()
        {
            open.title = text.as_str().trim().lines().next().unwrap_or_default().chars().take(TITLE).collect();
        }
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
