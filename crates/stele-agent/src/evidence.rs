//! What traffic teaches of an endpoint: from here into the ledger.

use stele_core::{CapsSet, Failure, Phase};
use stele_provider::{Answer, Endpoint, Finding, How, LedgerError, Lesson, seen};

use crate::Notice;
use crate::driver::Driver;

impl Driver {
    /// Notes what an answer shows, also of the fields that were left out of its request.
    pub(crate) fn learn_from(&mut self, answer: &Answer) {
        self.note_refused();
        if let Some(epoch) = self.state().epoch() {
            self.note(&seen(&epoch.config, answer), How::Traffic);
        }
    }

    /// Remembers which fields were refused just now. The log says that they are not sent any more; the ledger keeps later
    /// sessions from finding out again, once the request without them is not refused for them: else they were not what
    /// was wrong.
    pub(crate) fn learn_refused(&mut self, set: &CapsSet) {
        // Another field is named now, so the ones before were.
        self.note_refused();
        let Some(Phase::Failed { failure: Failure { message, .. }, .. }) = self.state().step().map(|step| &step.phase)
        else {
            return;
        };
        let lesson = |field: &stele_core::OptionalField| Lesson {
            capability: (*field).into(),
            finding: Finding::Refused,
            says: message.as_str().to_owned(),
        };
        self.refused = set.dropped.iter().map(lesson).collect();
    }

    fn note_refused(&mut self) {
        let lessons = std::mem::take(&mut self.refused);
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
