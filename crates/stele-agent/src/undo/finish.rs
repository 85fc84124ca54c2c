//! Undos and redos that were cut off, that failed half-way or that could not be logged when they were asked for: they are
//! finished when the session is opened, before a turn begins, and before another undo or redo.
//!
//! Files that are still what they were just before become what the log says. Until that is done they stay owed, whatever
//! turns come, unless a turn changes them.

use std::fmt;
use std::sync::Arc;

use stele_core::{RestoreEnded, Restoring, Unrestored, name_on_a_line};

use super::owing::Owing;
use super::plan::Plan;
use super::{Restored, beside};
use crate::driver::Driver;
use crate::{Agent, ChangedSince, Error, Notice, Result};

/// Files that are named of one undo or redo.
const NAMED: usize = 8;

/// An undo or redo that was cut off, and what came of finishing it.
#[derive(Debug)]
pub struct Finished {
    /// Which of the two.
    pub way: Restoring,
    /// The turn.
    pub turn: u64,
    /// The files that were owed, by their absolute paths.
    pub files: Vec<String>,
    /// What was still to be done, or why it could not be: then it is tried again.
    pub outcome: Result<Restored>,
}

impl Finished {
    fn new(owed: Unrestored, outcome: Result<Restored>) -> Self {
        let files = owed.files.into_iter().map(|file| file.path).collect();
        Self { way: owed.way, turn: owed.turn, files, outcome }
    }

    fn code(&self) -> &'static str {
        if self.outcome.is_ok() { "undo.finished" } else { "undo.unfinished" }
    }
}

/// What a person has to know of it.
impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (way, turn) = (self.way.name(), self.turn);
        match &self.outcome {
            Ok(restored) => {
                let count = restored.files.len();
                let files = if count == 1 { "file" } else { "files" };
                write!(f, "the {way} of turn {turn} was cut off the last time; it is finished now: ")?;
                write!(f, "{count} {files} restored")?;
                if !restored.left.is_empty() {
                    let left = restored.left.iter().map(|left| left.path.as_str());
                    write!(f, "; left as they are: {}", names(left))?;
                }
                restored.notes.iter().try_for_each(|note| write!(f, "; {note}"))
            }
            Err(error) => {
                write!(f, "the {way} of turn {turn} that was cut off the last time could not be finished: {error}. ")?;
                write!(f, "Not known to be restored: {}. ", names(self.files.iter().map(String::as_str)))?;
                f.write_str("The next prompt, undo or start tries again")
            }
        }
    }
}

/// Some names on one line.
fn names<'a>(all: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = all.len().saturating_sub(NAMED);
    let mut named = all.take(NAMED).map(name_on_a_line).collect::<Vec<_>>().join(", ");
    if more > 0 {
        named.push_str(&format!(" and {more} more"));
    }
    named
}

impl Driver {
    /// What undos and redos that were cut off came to, as far as it was not told yet.
    pub fn finished(&mut self) -> Vec<Finished> {
        let mut finished = std::mem::take(&mut self.finished);
        finished.retain(|it| self.is_news(it.to_string()));
        finished
    }

    /// Finishes what is owed. A log that came from a file changes no file by itself.
    pub(crate) fn finish_at_opening(&mut self) -> Result<()> {
        for owed in self.owed()? {
            let outcome = if self.is_foreign() { Err(Error::NotByItself) } else { finish(&self.agent, &owed) };
            self.note_finished(owed, outcome)?;
        }
        Ok(())
    }

    /// Finishes what is owed before a turn may begin, and tells of it.
    pub(crate) async fn finish_before_a_turn(&mut self) -> Result<()> {
        if !self.is_foreign() {
            self.finish_all().await?;
        }
        for finished in self.finished() {
            let code = finished.code();
            self.notify(Notice::Warning { code, text: format!("{code}: {finished}").into() });
        }
        Ok(())
    }

    /// Finishes what is owed for somebody who asks for an undo or redo: one of them may be what they ask for.
    pub(super) async fn finish_first(&mut self, way: Restoring) -> Result<Option<Restored>> {
        self.finish_all().await?;
        let history = self.state().history();
        let is_asked_for = |it: &Finished| it.way == way && history.is_last(way, it.turn);
        let Some(at) = self.finished.iter().position(is_asked_for) else { return Ok(None) };
        self.finished.remove(at).outcome.map(Some)
    }

    async fn finish_all(&mut self) -> Result<()> {
        for owed in self.owed()? {
            let agent = Arc::clone(&self.agent);
            let (owed, outcome) = beside(move || {
                let outcome = finish(&agent, &owed);
                (owed, outcome)
            })
            .await;
            self.note_finished(owed, outcome)?;
        }
        Ok(())
    }

    /// What is owed, in its order, once it is on disk; nothing while a turn is open.
    fn owed(&mut self) -> Result<Vec<Unrestored>> {
        let owed = self.state().history().unrestored();
        if owed.is_empty() || self.state().turn().is_some() {
            return Ok(Vec::new());
        }
        let owed = owed.to_vec();
        self.commit()?;
        Ok(owed)
    }

    fn note_finished(&mut self, owed: Unrestored, outcome: Result<Restored>) -> Result<()> {
        if outcome.is_ok() {
            self.append(RestoreEnded { turn: owed.turn })?;
            self.commit()?;
            self.follow_cwd()?;
        }
        self.finished.retain(|before| before.turn != owed.turn);
        self.finished.push(Finished::new(owed, outcome));
        Ok(())
    }
}

fn finish(agent: &Agent, owed: &Unrestored) -> Result<Restored> {
    let plan = Plan::backwards(&Owing::at_once(owed.files.clone()), agent.store(), ChangedSince::Leave)?;
    let restored = plan.restored(owed.turn, owed.title.clone(), Vec::new());
    let notes = plan.carry_out(&agent.options.in_place)?;
    Ok(Restored { notes, ..restored })
}
