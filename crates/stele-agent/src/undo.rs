//! Taking a turn back, and doing it again: its files and its part of the conversation.
//!
//! What is about to be replaced is in the log, with the record that says so, before the first file is touched: a process
//! that is killed on the way leaves a turn that counts as taken back, and whoever opens the session next finishes it. All
//! files of one undo change or none; when none could, the record is taken back.
//!
//! **Invariant:** a file is touched only while it is exactly what the log says it was left as, and only when the log
//! keeps what it is, unless somebody asked for more.

mod owing;
mod plan;

use stele_core::{
    By, Event, FileChange, FileLeft, RedoApplied, RestoreEnded, Restoring, State, SurfaceReplaced, TodoItem, TodoSet,
    UndoApplied,
};
use stele_store::Store;

use crate::driver::Driver;
use crate::{ChangedSince, Error, Result};
use owing::Owing;
use plan::{Plan, kept_again};

/// What an undo or redo did, or would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The turn.
    pub turn: u64,
    /// The first line of its prompt.
    pub title: String,
    /// The files that were changed, with what they were just before.
    pub files: Vec<FileChange>,
    /// The files that were left as they are.
    pub left: Vec<FileLeft>,
    /// The files among the changed ones in which something was replaced that somebody had changed since, and that the
    /// opposite brings back.
    pub replaced: Vec<String>,
    /// What a person has to know of how files were changed, in words.
    pub notes: Vec<String>,
    /// Effects of the turn that an undo does not reach, in words.
    pub not_covered: Vec<String>,
}

/// An undo or redo that was cut off, and that whoever opened the session next has finished.
#[derive(Debug)]
pub struct Finished {
    /// Which of the two.
    pub way: Restoring,
    /// What was still to be done, or why it could not be: then the next start tries again.
    pub outcome: Result<Restored>,
}

/// What it would do to take the last turn back; nothing when there is none.
///
/// # Errors
/// The store cannot be read.
pub fn preview_undo(state: &State, store: &Store, changed_since: ChangedSince) -> Result<Option<Restored>> {
    let Some(last) = state.history().done().last() else { return Ok(None) };
    let plan = Plan::backwards(&Owing::before(last, state), store, changed_since)?;
    Ok(Some(plan.restored(last.turn, last.title.clone(), last.not_covered.clone())))
}

/// What it would do to do the last turn that was taken back again; nothing when there is none.
///
/// # Errors
/// The store cannot be read.
pub fn preview_redo(state: &State, store: &Store, changed_since: ChangedSince) -> Result<Option<Restored>> {
    let Some(undone) = state.history().undone().last() else { return Ok(None) };
    let plan = Plan::backwards(&Owing::at_once(undone.files.clone()), store, changed_since)?;
    Ok(Some(plan.restored(undone.changes.turn, undone.changes.title.clone(), Vec::new())))
}

impl Driver {
    /// Takes the last turn back: its files, and its part of the conversation. The next request opens an epoch.
    ///
    /// # Errors
    /// A turn is open, there is none to take back, the files cannot be restored (then none is), or the log cannot be
    /// written.
    pub fn undo(&mut self, by: By, changed_since: ChangedSince) -> Result<Restored> {
        if self.state().turn().is_some() {
            return Err(Error::TurnOpen);
        }
        if let Some(restored) = self.finish_first(Restoring::Undo)? {
            return Ok(restored);
        }
        let Some(last) = self.state().history().done().last().cloned() else { return Err(Error::NothingTo("undo")) };
        let plan = Plan::backwards(&Owing::before(&last, self.state()), self.agent.store(), changed_since)?;
        let todo = self.state().todo().to_vec();
        let undone = UndoApplied {
            turn: last.turn,
            by: by.clone(),
            files: plan.logged(),
            left: plan.left.clone(),
            not_covered: last.not_covered.clone(),
        };
        let restored = plan.restored(last.turn, last.title, last.not_covered);
        self.log_restored(undone, State::undo_cut, by.clone(), &last.todo)?;
        let notes = self.carry_out(&plan, last.turn, |driver| {
            let redone = RedoApplied { turn: last.turn, by: by.clone(), files: Vec::new(), left: Vec::new() };
            driver.log_restored(redone, State::redo_cut, by, &todo)
        })?;
        Ok(Restored { notes, ..restored })
    }

    /// Does the turn again that was taken back last, as long as no other turn came since.
    ///
    /// # Errors
    /// As for [`Driver::undo`].
    pub fn redo(&mut self, by: By, changed_since: ChangedSince) -> Result<Restored> {
        if self.state().turn().is_some() {
            return Err(Error::TurnOpen);
        }
        if let Some(restored) = self.finish_first(Restoring::Redo)? {
            return Ok(restored);
        }
        let Some(undone) = self.state().history().undone().last().cloned() else {
            return Err(Error::NothingTo("redo"));
        };
        let plan = Plan::backwards(&Owing::at_once(undone.files.clone()), self.agent.store(), changed_since)?;
        let (todo, turn) = (self.state().todo().to_vec(), undone.changes.turn);
        let redone = RedoApplied { turn, by: by.clone(), files: plan.logged(), left: plan.left.clone() };
        let restored = plan.restored(turn, undone.changes.title.clone(), Vec::new());
        self.log_restored(redone, State::redo_cut, by.clone(), &undone.todo)?;
        let notes = self.carry_out(&plan, turn, |driver| {
            let files = undone.files.iter().map(|file| kept_again(file, driver.agent.store())).collect();
            let not_covered = undone.changes.not_covered.clone();
            let taken_back = UndoApplied { turn, by: by.clone(), files, left: Vec::new(), not_covered };
            driver.log_restored(taken_back, State::undo_cut, by, &todo)
        })?;
        Ok(Restored { notes, ..restored })
    }

    /// Finishes an undo or redo that was cut off, or that could not be logged when it was asked for: files that are still
    /// what they were just before become what the log says.
    ///
    /// # Errors
    /// The log cannot be written or read; that files cannot be changed is an outcome.
    fn finish_restoring(&mut self) -> Result<()> {
        let Some(owed) = self.state().history().unrestored().cloned() else { return Ok(()) };
        self.commit()?;
        let plan = Plan::backwards(&Owing::at_once(owed.files), self.agent.store(), ChangedSince::Leave)?;
        let restored = plan.restored(owed.turn, self.title_of(owed.turn), Vec::new());
        let outcome = plan.carry_out(&self.agent.options.in_place).map(|notes| Restored { notes, ..restored });
        if outcome.is_ok() {
            self.append(RestoreEnded { turn: owed.turn })?;
            self.commit()?;
            self.follow_cwd()?;
        }
        self.finished = Some(Finished { way: owed.way, outcome });
        Ok(())
    }

    /// The same without being asked. A log that came from a file changes no file by itself.
    pub(crate) fn finish_by_itself(&mut self) -> Result<()> {
        if self.is_foreign() { Ok(()) } else { self.finish_restoring() }
    }

    /// The same for who asks for an undo or redo: what is finished may be what they ask for.
    fn finish_first(&mut self, way: Restoring) -> Result<Option<Restored>> {
        if self.state().history().unrestored().is_none() {
            return Ok(None);
        }
        self.finish_restoring()?;
        let Some(finished) = self.finished.take_if(|finished| finished.way == way) else { return Ok(None) };
        finished.outcome.map(Some)
    }

    /// The undo or redo that was cut off, and finished when the session was opened; once.
    pub fn finished(&mut self) -> Option<Finished> {
        self.finished.take()
    }

    fn title_of(&self, turn: u64) -> String {
        let history = self.state().history();
        let mut turns = history.done().iter().chain(history.undone().iter().map(|undone| &undone.changes));
        turns.find(|changes| changes.turn == turn).map(|changes| changes.title.clone()).unwrap_or_default()
    }

    /// Logs that a turn is taken back or done again, with what that does to the conversation and the list of things to do.
    fn log_restored(
        &mut self,
        applied: impl Into<Event>,
        cut: fn(&State) -> Option<SurfaceReplaced>,
        by: By,
        todo: &[TodoItem],
    ) -> Result<()> {
        let cut = cut(self.state());
        self.append(applied)?;
        if let Some(cut) = cut {
            self.append(cut)?;
        }
        self.follow_cut(by)?;
        self.restore_todo(todo)?;
        self.commit()
    }

    /// Changes the files of what was logged; when none could be changed, that is taken back. Gives what to know about it.
    fn carry_out(
        &mut self,
        plan: &Plan,
        turn: u64,
        take_back: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Vec<String>> {
        let outcome = plan.carry_out(&self.agent.options.in_place);
        match &outcome {
            Ok(_) => self.follow_cwd()?,
            Err(Error::Restore(_)) => take_back(self)?,
            Err(_) => return outcome,
        }
        self.append(RestoreEnded { turn })?;
        self.commit()?;
        outcome
    }

    fn restore_todo(&mut self, items: &[TodoItem]) -> Result<()> {
        if self.state().todo() == items {
            return Ok(());
        }
        self.append(TodoSet { items: items.to_vec() })
    }
}
