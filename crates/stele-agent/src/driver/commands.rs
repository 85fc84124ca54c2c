//! What comes from outside: commands, each of which becomes an event before it acts, and jobs that ended.

use stele_core::limits::TurnLimits;
use stele_core::{
    Action, ApprovalDecided, By, CallStage, InboxQueued, JobNotice, ModeSet, ModelSet, Part, Source, Target, TurnCancel,
};

use super::Driver;
use crate::{Command, Result};

impl Driver {
    /// Takes a command: it becomes an event before it acts.
    ///
    /// # Errors
    /// The event cannot be written.
    pub fn command(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Prompt { text, source, limits } => self.queue(text, source, Target::NextTurn, limits),
            Command::Steer { text } => self.queue(text, Source::Person, Target::NextStep, Default::default()),
            Command::Cancel { by } if self.state.turn().is_some() => self.append(TurnCancel { by }),
            Command::Cancel { .. } => Ok(()),
            Command::Decide { call, by, outcome } => {
                // The log says whether it was asked: a resumed question may be answered before it is in flight.
                self.in_flight.remove(&Action::Ask { call }.key());
                let calls = self.state.step().map_or(&[][..], |step| &step.calls);
                let asked = calls.iter().any(|open| open.call == call && open.stage == CallStage::Asked);
                if asked { self.append(ApprovalDecided { call, by, outcome }) } else { Ok(()) }
            }
            Command::SetMode { mode, by } => {
                self.append(ModeSet { mode: mode.min(self.agent.options.highest_mode), by })
            }
            Command::SetModel { route, model, by } => self.choose_model(&route, &model, by),
            Command::KeepEpoch { by } => self.keep_epoch(by),
        }
    }

    pub(crate) fn choose_model(&mut self, route: &str, model: &str, by: By) -> Result<()> {
        let event = self.model_set(route, model, by)?;
        self.append(event)
    }

    pub(crate) fn model_set(&self, route: &str, model: &str, by: By) -> Result<ModelSet> {
        let known = self.agent.route(route)?;
        let (wire, base_url) = (known.wire, known.base_url.clone());
        Ok(ModelSet { route: route.to_owned(), model: model.to_owned(), wire, base_url, by })
    }

    fn queue(&mut self, text: String, source: Source, target: Target, limits: TurnLimits) -> Result<()> {
        let item = self.state.next_item();
        self.append(InboxQueued {
            item,
            source,
            target,
            content: vec![Part::text(text)],
            limits,
            wake: true,
            jobs: Vec::new(),
        })
    }

    /// A job that ended while nobody waited for it is told at the next step; it opens no turn.
    pub(super) fn job_ended(&mut self, notice: JobNotice) -> Result<()> {
        let item = self.state.next_item();
        self.append(InboxQueued {
            item,
            source: Source::Job,
            target: Target::NextStep,
            content: vec![Part::text(notice.text)],
            limits: TurnLimits::default(),
            wake: false,
            jobs: vec![notice.job],
        })
    }
}
