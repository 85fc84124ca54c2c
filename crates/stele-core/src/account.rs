//! What a stretch of a log used and what it cost: one fold for all who show it.

use crate::{Coverage, Event, Micros, Price, Record, Usage};

/// Sums over attempts. A cost that cannot be known in full is absent.
#[derive(Clone, Debug)]
pub struct Account {
    usage: Usage,
    coverage: Coverage,
    cost: Option<Micros>,
    price: Option<Price>,
    /// True while a request is under way.
    awaiting: bool,
}

impl Default for Account {
    fn default() -> Self {
        Self::priced(None)
    }
}

impl Account {
    /// An empty account under the price of the open epoch.
    #[must_use]
    pub fn priced(price: Option<Price>) -> Self {
        Self { usage: Usage::default(), coverage: Coverage::default(), cost: Some(Micros(0)), price, awaiting: false }
    }

    /// Folds the next record in; gives what an attempt reported, when this record says so.
    pub fn fold(&mut self, record: &Record) -> Option<Usage> {
        match &record.event {
            Event::EpochOpened(opened) => {
                self.price = opened.price;
                None
            }
            Event::RequestSent(_) => {
                self.awaiting = true;
                None
            }
            Event::RequestFailed(failed) => {
                self.awaiting = false;
                self.report(failed.failure.usage, failed.failure.output)
            }
            // An answer that only closes a failed or unsent request was counted already, or was none.
            Event::AssistantMessage(message) if std::mem::take(&mut self.awaiting) || !message.interrupted => {
                self.report(message.usage, true)
            }
            _ => None,
        }
    }

    /// An attempt that may have been billed and reported nothing makes the cost unknown.
    fn report(&mut self, usage: Option<Usage>, billed: bool) -> Option<Usage> {
        self.coverage.attempts += 1;
        let Some(usage) = usage.filter(|usage| !usage.is_unknown()) else {
            self.cost = self.cost.filter(|_| !billed);
            return None;
        };
        self.coverage.known += 1;
        self.usage.add(&usage);
        let more = self.price.and_then(|price| price.of(&usage));
        self.cost = self.cost.zip(more).map(|(sum, more)| Micros(sum.0.saturating_add(more.0)));
        Some(usage)
    }

    /// Tokens reported.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// For how many attempts usage is known.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        self.coverage
    }

    /// The cost; absent as soon as one attempt could not be priced.
    #[must_use]
    pub fn cost(&self) -> Option<Micros> {
        self.cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AssistantMessage, BodyDigest, Hash, Millis, Producer, PromptDigest, Purpose, RequestSent, Seq, Stop, Wire,
    };

    fn fold(account: &mut Account, event: impl Into<Event>) {
        account.fold(&Record { seq: Seq(0), ts: Millis(0), turn: None, step: None, event: event.into() });
    }

    fn sent() -> RequestSent {
        let prompt = PromptDigest { hash: Hash::of(b""), len: 0, items: 0, shared: 0 };
        let body = BodyDigest { hash: Hash::of(b""), len: 0 };
        RequestSent { purpose: Purpose::Main, attempt: 1, body, prompt, marks: Vec::new() }
    }

    fn answer(usage: Option<Usage>, interrupted: bool) -> AssistantMessage {
        let producer = Producer { wire: Wire::OpenaiChat, model: "m".into() };
        let content = Vec::new();
        AssistantMessage { attempt: 1, producer, content, stop: Stop::Cut, usage, usage_raw: None, interrupted }
    }

    #[test]
    fn what_was_stopped_on_the_way_has_an_unknown_cost() {
        let price = Price { input: Some(1_000_000), output: Some(1_000_000), ..Price::default() };
        let mut account = Account::priced(Some(price));
        fold(&mut account, sent());
        fold(&mut account, answer(Some(Usage { fresh: Some(5), output: Some(2), ..Usage::default() }), false));
        assert_eq!(account.cost(), Some(Micros(7)));
        // Nothing was under way: this answer only closes a step.
        fold(&mut account, answer(None, true));
        assert_eq!((account.cost(), account.coverage().attempts), (Some(Micros(7)), 1));
        fold(&mut account, sent());
        fold(&mut account, answer(None, true));
        assert_eq!((account.cost(), account.coverage().attempts), (None, 2));
    }
}
