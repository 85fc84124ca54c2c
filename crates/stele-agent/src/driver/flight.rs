//! What is in flight, and what comes back from it.

use std::time::Duration;

use stele_core::{Action, CallId, Event, Failure, FileChange, JobNotice, Millis, ToolOutput};
use stele_provider::{Answer, Delta};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::Driver;
use crate::{Notice, Result};

/// An effect that was started.
pub(super) enum InFlight {
    /// An attempt; aborting it closes the connection.
    Attempt(AbortHandle),
    /// A time to wait for.
    Timer(AbortHandle),
    /// A tool's body, and the way to stop it.
    Body(Option<oneshot::Sender<()>>),
    /// A question to a person.
    Question,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Self::Attempt(handle) | Self::Timer(handle) = self {
            handle.abort();
        }
    }
}

/// What comes back from effects.
pub(super) enum Update {
    Delta {
        step: u64,
        attempt: u32,
        delta: Delta,
    },
    Answered {
        step: u64,
        attempt: u32,
        outcome: Box<Result<Answer, Failure>>,
    },
    Output {
        call: CallId,
        text: String,
    },
    /// A body is about to change files; it waits until they are in the log.
    Ahead {
        call: CallId,
        changes: Vec<FileChange>,
        logged: oneshot::Sender<()>,
    },
    Ran {
        call: CallId,
        output: Box<ToolOutput>,
    },
    /// A job ended, and nobody waited for it.
    Job(JobNotice),
    /// A time has come; with an event to append, or just to look again.
    Due {
        key: String,
        then: Option<Box<Event>>,
    },
}

impl Driver {
    /// Takes what has come back: it becomes an event, or a notice.
    pub(super) fn take(&mut self, update: Update) -> Result<()> {
        match update {
            Update::Delta { step, attempt, delta } => self.streamed(step, attempt, delta),
            Update::Output { call, text } => self.notify(Notice::Output { call, text: text.into() }),
            Update::Answered { step, attempt, outcome } => self.received(step, attempt, *outcome)?,
            Update::Ahead { call, changes, logged } => {
                self.announced(call, changes)?;
                // A body that is gone changes nothing.
                let _ = logged.send(());
            }
            Update::Ran { call, output } => {
                self.in_flight.remove(&Action::Run { call }.key());
                self.ran(call, *output)?;
            }
            Update::Job(notice) => self.job_ended(notice)?,
            Update::Due { key, then } => {
                self.in_flight.remove(&key);
                if let Some(event) = then {
                    self.append(*event)?;
                }
            }
        }
        Ok(())
    }

    /// Waits for a time; with an event to append then.
    pub(super) fn wait(&mut self, key: String, until: Millis, then: Option<Event>) {
        let left = Duration::from_millis(until.since(self.agent.now()));
        let updates = self.updates.0.clone();
        let due = key.clone();
        let task = tokio::spawn(async move {
            tokio::time::sleep(left).await;
            let _ = updates.send(Update::Due { key: due, then: then.map(Box::new) });
        });
        self.in_flight.insert(key, InFlight::Timer(task.abort_handle()));
    }
}
