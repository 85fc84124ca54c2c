//! The loop: append what the log decides, start what is owed, wait for one thing to happen.

use std::collections::BTreeMap;
use std::time::Duration;

use stele_core::{Action, ApprovalDecided, ApprovalOutcome, By, Event, owed};
use tokio::sync::mpsc;

use super::Driver;
use super::flight::InFlight;
use crate::{Approvals, Command, Result};

/// When [`Driver::run`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// As soon as nothing is owed.
    Idle,
    /// When the commands' sender is gone and nothing is owed.
    Closed,
}

/// How often streamed text is saved while it arrives.
const PARTIAL_EVERY: Duration = Duration::from_millis(250);

impl Driver {
    /// Goes on with what is owed, taking commands as they come.
    ///
    /// # Errors
    /// The log could not be written, or the next request could not be composed. Nothing was sent or
    /// run that is not logged.
    pub async fn run(&mut self, commands: &mut mpsc::UnboundedReceiver<Command>, until: Until) -> Result<()> {
        self.finish_before_a_turn().await?;
        let mut open = true;
        loop {
            while let Ok(command) = commands.try_recv() {
                self.command(command)?;
            }
            // What has come in meanwhile is known before the next request is built.
            while let Ok(update) = self.updates.1.try_recv() {
                self.take(update)?;
            }
            let effects = self.settle()?;
            if self.reconcile(effects)? {
                continue;
            }
            self.commit()?;
            // A question that nobody can answer any more stays in the log.
            let over = self.in_flight.values().all(|flight| !open && matches!(flight, InFlight::Question));
            if over && (until == Until::Idle || !open) {
                return Ok(());
            }
            tokio::select! {
                biased;
                command = commands.recv(), if open => match command {
                    Some(command) => self.command(command)?,
                    None => open = false,
                },
                Some(update) = self.updates.1.recv() => self.take(update)?,
                () = tokio::time::sleep(PARTIAL_EVERY), if self.partial.is_unsaved() => self.save_partial()?,
            }
        }
    }

    /// Appends all that the log alone decides and does what needs no waiting; gives the effects.
    fn settle(&mut self) -> Result<Vec<Action>> {
        loop {
            let actions = owed(&self.state);
            let Some(action) = actions.iter().find(|action| self.is_immediate(action)) else { return Ok(actions) };
            match action.clone() {
                Action::Append(event) => {
                    if let Event::CapsSet(set) = &event {
                        self.learn_refused(set);
                    }
                    self.append(event)?;
                }
                Action::Compose { reason } => self.compose(reason)?,
                Action::Consult { call, at_least } => self.consult(call, at_least)?,
                Action::Backoff { step, attempt } => self.back_off(step, attempt)?,
                Action::Interrupt { step, attempt } => self.interrupt(step, attempt)?,
                Action::Ask { call } => {
                    let by = By("headless".to_owned());
                    self.append(ApprovalDecided { call, by, outcome: ApprovalOutcome::Unanswered })?;
                }
                Action::Send { .. } | Action::Run { .. } | Action::Stop { .. } | Action::Wait { .. } => {}
            }
        }
    }

    fn is_immediate(&self, action: &Action) -> bool {
        match action {
            Action::Ask { .. } => self.agent.options.approvals == Approvals::Nobody,
            Action::Send { .. } | Action::Run { .. } | Action::Stop { .. } | Action::Wait { .. } => false,
            _ => true,
        }
    }

    /// Drops what is in flight and no longer owed, and starts what is owed and not in flight. True
    /// when something was appended on the way, so that what is owed has to be asked again.
    fn reconcile(&mut self, effects: Vec<Action>) -> Result<bool> {
        let owed: BTreeMap<String, Action> = effects.into_iter().map(|action| (action.key(), action)).collect();
        // A body is never dropped: it is stopped, and its result is waited for.
        self.in_flight.retain(|key, flight| owed.contains_key(key) || matches!(flight, InFlight::Body(_)));
        let mut appended = false;
        for (key, action) in owed {
            if self.in_flight.contains_key(&key) {
                continue;
            }
            match action {
                Action::Send { step, attempt, not_before } => appended |= self.send(key, step, attempt, not_before)?,
                Action::Run { call } => appended |= self.start(key, call)?,
                Action::Stop { call } => appended |= self.stop(call)?,
                Action::Ask { .. } => {
                    self.in_flight.insert(key, InFlight::Question);
                }
                Action::Wait { until, then } => self.wait(key, until, Some(then)),
                _ => {}
            }
        }
        Ok(appended)
    }
}
