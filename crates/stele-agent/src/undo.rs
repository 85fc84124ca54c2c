//! Taking a turn back, and doing it again: its files and its part of the conversation.
//!
//! What is about to be replaced is in the log, with the record that says so, before the first file is touched: a process
//! that is killed on the way leaves a turn that counts as taken back, and whoever goes on next finishes it (`finish`). All
//! files of one undo change or none; when none could, the record is taken back. Files are read and written beside the
//! driver's thread: for their folders it may have to wait.
//!
//! **Invariant:** a file is touched only while it is exactly what the log says it was left as, and only when the log
//! keeps what it is, unless somebody asked for more.

mod finish;
mod owing;
mod plan;

use std::path::PathBuf;
use std::sync::Arc;

use stele_core::{
    By, Event, FileChange, FileLeft, RedoApplied, RestoreEnded, Restoring, State, SurfaceReplaced, TodoItem, TodoSet,
    UndoApplied,
};
use stele_store::Store;

use crate::driver::Driver;
use crate::{Agent, ChangedSince, Error, Result};
pub use finish::Finished;
use owing::Owing;
use plan::Plan;

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

/// What it would do to take the last turn back; nothing when there is none.
///
/// # Errors
/// The store cannot be read.
pub fn preview_undo(state: &State, store: &Store, changed_since: ChangedSince) -> Result<Option<Restored>> {
    let Some(last) = state.history().done().last() else { return Ok(None) };
    let plan = Plan::backwards(&Owing::before(last, &folder(state)), store, changed_since)?;
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
    pub async fn undo(&mut self, by: By, changed_since: ChangedSince) -> Result<Restored> {
        if self.state().turn().is_some() {
            return Err(Error::TurnOpen);
        }
        if let Some(restored) = self.finish_first(Restoring::Undo).await? {
            return Ok(restored);
        }
        let Some(last) = self.state().history().done().last().cloned() else { return Err(Error::NothingTo("undo")) };
        let (turn, folder) = (last.clone(), folder(self.state()));
        let plan = planned(&self.agent, move || Owing::before(&turn, &folder), changed_since).await?;
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
        let take_back = |driver: &mut Self| {
            let redone = RedoApplied { turn: last.turn, by: by.clone(), files: Vec::new(), left: Vec::new() };
            driver.log_restored(redone, State::redo_cut, by, &todo)
        };
        let notes = self.carry_out(plan, last.turn, take_back).await?;
        Ok(Restored { notes, ..restored })
    }

    /// Does the turn again that was taken back last, as long as no other turn came since.
    ///
    /// # Errors
    /// As for [`Driver::undo`].
    pub async fn redo(&mut self, by: By, changed_since: ChangedSince) -> Result<Restored> {
        if self.state().turn().is_some() {
            return Err(Error::TurnOpen);
        }
        if let Some(restored) = self.finish_first(Restoring::Redo).await? {
            return Ok(restored);
        }
        let Some(undone) = self.state().history().undone().last().cloned() else {
            return Err(Error::NothingTo("redo"));
        };
        let files = undone.files.clone();
        let plan = planned(&self.agent, move || Owing::at_once(files), changed_since).await?;
        let (todo, turn) = (self.state().todo().to_vec(), undone.changes.turn);
        let redone = RedoApplied { turn, by: by.clone(), files: plan.logged(), left: plan.left.clone() };
        let restored = plan.restored(turn, undone.changes.title.clone(), Vec::new());
        self.log_restored(redone, State::redo_cut, by.clone(), &undone.todo)?;
        let take_back = |driver: &mut Self| {
            // Their bytes are in the log since the undo.
            let files = undone.files.clone();
            let not_covered = undone.changes.not_covered.clone();
            let taken_back = UndoApplied { turn, by: by.clone(), files, left: Vec::new(), not_covered };
            driver.log_restored(taken_back, State::undo_cut, by, &todo)
        };
        let notes = self.carry_out(plan, turn, take_back).await?;
        Ok(Restored { notes, ..restored })
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
    async fn carry_out(
        &mut self,
        plan: Plan,
        turn: u64,
        take_back: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Vec<String>> {
        let agent = Arc::clone(&self.agent);
        let outcome = beside(move || plan.carry_out(&agent.options.in_place)).await;
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

/// Works out how files go back.
async fn planned(
    agent: &Arc<Agent>,
    owing: impl FnOnce() -> Owing + Send + 'static,
    changed_since: ChangedSince,
) -> Result<Plan> {
    let agent = Arc::clone(agent);
    beside(move || Plan::backwards(&owing(), agent.store(), changed_since)).await
}

/// The folder whose files commands are watched for.
fn folder(state: &State) -> PathBuf {
    state.session().map(|session| PathBuf::from(&session.cwd)).unwrap_or_default()
}

/// Does what reads and writes files, and waits for others to be done with their folders, beside the driver's thread.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await.map_err(tokio::task::JoinError::try_into_panic) {
        Ok(done) => done,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The runtime goes down: nothing is polled any more.
        Err(Err(_)) => std::future::pending().await,
    }
}
