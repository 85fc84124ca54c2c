//! What traffic teaches of an endpoint: from here into the ledger.

use stele_core::{CapsSet, Failure, Phase};
use stele_provider::{Answer, Endpoint, Finding, How, LedgerError, Lesson, seen};

use crate::Notice;
use crate::driver::Driver;

impl Driver {
    /// Notes what an answer shows.
    pub(crate) fn learn_from(&self, answer: &Answer) {
        if let Some(epoch) = self.state().epoch() {
            self.note(&seen(&epoch.config, answer), How::Traffic);
        }
    }

    /// Notes which fields were refused just now. The log says that they are not sent any more; the ledger keeps later
    /// sessions from finding out again.
    pub(crate) fn learn_refused(&self, set: &CapsSet) {
        let Some(Phase::Failed { failure: Failure { message, .. }, .. }) = self.state().step().map(|step| &step.phase)
        else {
            return;
        };
        let lesson = |field: &stele_core::OptionalField| Lesson {
            capability: (*field).into(),
            finding: Finding::Refused,
            says: message.as_str().to_owned(),
        };
        let lessons: Vec<Lesson> = set.dropped.iter().map(lesson).collect();
        self.note(&lessons, How::Refusal);
    }

    fn note(&self, lessons: &[Lesson], how: How) {
        let Some(epoch) = self.state().epoch() else { return };
        let options = &self.agent.options;
        let today = (options.clock.today)();
        if let Err(error) = options.ledger.learn(&Endpoint::of(&epoch.config), lessons, how, &today) {
            self.warn_of(&error);
        }
    }

    /// Nothing depends on the ledger, so what is wrong with it is said, once, and no more.
    pub(crate) fn warn_of(&self, error: &LedgerError) {
        if self.is_news(error.code().to_owned()) {
            self.notify(Notice::Warning { code: error.code(), text: error.to_string().into() });
        }
    }
}
