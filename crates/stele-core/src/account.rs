//! What a stretch of a log used and what it cost: one fold for all who show it.

use crate::{Coverage, Event, Micros, Price, Record, Usage};

/// Sums over attempts. A cost that cannot be known in full is absent.
#[derive(Clone, Debug)]
pub struct Account {
    usage: Usage,
    coverage: Coverage,
    /// False once an attempt that may have been billed did not say what it read from the cache.
    tells_reads: bool,
    cost: Option<Micros>,
    at_most: Option<Micros>,
    price: Option<Price>,
    max_output: Option<u64>,
    /// While a request is under way: the most that it can cost, where that is known.
    awaiting: Option<Option<Micros>>,
}

impl Default for Account {
    fn default() -> Self {
        Self::under(None, None)
    }
}

impl Account {
    /// An empty account under a price and the longest answer.
    fn under(price: Option<Price>, max_output: Option<u64>) -> Self {
        let (cost, at_most) = (Some(Micros(0)), Some(Micros(0)));
        let (usage, coverage) = (Usage::default(), Coverage::default());
        Self { usage, coverage, tells_reads: true, cost, at_most, price, max_output, awaiting: None }
    }

    /// An empty account of what comes after this one, the end of a request that is under way included.
    #[must_use]
    pub fn from_here(&self) -> Self {
        Self { awaiting: self.awaiting, ..Self::under(self.price, self.max_output) }
    }

    /// Folds the next record in; gives what an attempt reported, when this record says so.
    pub fn fold(&mut self, record: &Record) -> Option<Usage> {
        match &record.event {
            Event::EpochOpened(opened) => {
                (self.price, self.max_output) = (opened.price, opened.max_output);
                None
            }
            Event::RequestSent(sent) => {
                // The process died while the one before was under way: nobody knows what came of that.
                if let Some(bound) = self.awaiting.take() {
                    self.report(None, true, bound);
                }
                self.awaiting = Some(most(self.price, sent.prompt.len, self.max_output));
                None
            }
            Event::RequestFailed(failed) => {
                let bound = self.awaiting.take().flatten();
                self.report(failed.failure.usage, failed.failure.may_be_billed(), bound)
            }
            Event::AssistantMessage(message) => match self.awaiting.take() {
                // It only closes a failed or unsent request, which was counted already, or was none.
                None if message.interrupted => None,
                bound => self.report(message.usage, true, bound.flatten()),
            },
            _ => None,
        }
    }

    /// An attempt that may have been billed and reported nothing makes the cost unknown; at most it cost its `bound`.
    fn report(&mut self, usage: Option<Usage>, billed: bool, bound: Option<Micros>) -> Option<Usage> {
        self.coverage.attempts += 1;
        let Some(usage) = usage.filter(|usage| !usage.is_unknown()) else {
            if billed {
                self.tells_reads = false;
                (self.cost, self.at_most) = (None, plus(self.at_most, bound));
            }
            return None;
        };
        self.coverage.known += 1;
        self.usage.add(&usage);
        self.tells_reads &= usage.tells_reads();
        let more = self.price.and_then(|price| price.of(&usage));
        let at_most = more.or_else(|| self.most_of(&usage)).or(bound);
        (self.cost, self.at_most) = (plus(self.cost, more), plus(self.at_most, at_most));
        Some(usage)
    }

    /// The most that an attempt can have cost that reported its input and was cut before its output was counted.
    fn most_of(&self, usage: &Usage) -> Option<Micros> {
        let output = Some(usage.output.or(self.max_output)?);
        self.price?.of(&Usage { output, ..*usage })
    }

    /// Tokens reported.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Share of the input that was read from the provider's cache; absent unless every attempt that may have been billed
    /// says what it read.
    #[must_use]
    pub fn hit_rate(&self) -> Option<f64> {
        self.usage.hit_rate().filter(|_| self.tells_reads)
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

    /// The cost at most: the same, but for attempts that could not be priced, which count with the most that they can
    /// have cost. Absent where that has no bound either.
    #[must_use]
    pub fn at_most(&self) -> Option<Micros> {
        self.at_most
    }

    /// The same, should nobody see the end of the request that is under way.
    pub(crate) fn at_most_if_lost(&self) -> Option<Micros> {
        self.awaiting.map_or(self.at_most, |bound| plus(self.at_most, bound))
    }
}

fn plus(sum: Option<Micros>, more: Option<Micros>) -> Option<Micros> {
    Some(Micros(sum?.0.saturating_add(more?.0)))
}

/// The most that a request with so many bytes of prompt can cost: nothing read from the cache, the answer as long as it
/// may be.
pub(crate) fn most(price: Option<Price>, prompt_bytes: u64, max_output: Option<u64>) -> Option<Micros> {
    // No known tokenizer makes more than a token of two bytes of text on average.
    price?.at_most(prompt_bytes.div_ceil(2), max_output?)
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
        let prompt = PromptDigest { hash: Hash::of(b""), len: 99, items: 0, shared: 0 };
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
        let mut account = Account::under(Some(price), Some(1_000));
        let told = Some(Usage { fresh: Some(5), output: Some(2), ..Usage::default() });
        fold(&mut account, sent());
        fold(&mut account, answer(told, false));
        assert_eq!((account.cost(), account.at_most()), (Some(Micros(7)), Some(Micros(7))));
        // Nothing was under way: this answer only closes a step.
        fold(&mut account, answer(None, true));
        assert_eq!((account.cost(), account.coverage().attempts), (Some(Micros(7)), 1));
        fold(&mut account, sent());
        fold(&mut account, answer(None, true));
        assert_eq!((account.cost(), account.coverage().attempts), (None, 2));
        assert_eq!(account.at_most(), Some(Micros(7 + 50 + 1_000)));
    }

    #[test]
    fn a_rate_is_known_for_all_or_for_none() {
        let told =
            |fresh, read| Some(Usage { fresh: Some(fresh), cache_read: read, output: Some(1), ..Usage::default() });
        let mut account = Account::default();
        fold(&mut account, answer(told(100, Some(900)), false));
        assert_eq!(account.hit_rate(), Some(0.9));
        // An attempt that was refused read nothing and was not billed.
        let failure = crate::Failure::new(crate::FailureCode::RateLimited, "later");
        fold(&mut account, crate::RequestFailed { attempt: 1, failure });
        assert_eq!((account.hit_rate(), account.coverage().attempts), (Some(0.9), 2));
        for unknown in [None, told(1_000, None)] {
            let mut account = account.clone();
            fold(&mut account, answer(unknown, false));
            assert_eq!(account.hit_rate(), None, "{unknown:?}");
            assert_eq!(account.from_here().hit_rate(), None);
        }
    }

    #[test]
    fn who_goes_on_counts_the_end_of_what_was_under_way() {
        let price = Price { input: Some(1_000_000), output: Some(1_000_000), ..Price::default() };
        let mut whole = Account::under(Some(price), Some(1_000));
        fold(&mut whole, sent());
        let mut rest = whole.from_here();
        assert_eq!((rest.cost(), rest.coverage().attempts), (Some(Micros(0)), 0));
        fold(&mut rest, answer(None, true));
        assert_eq!((rest.cost(), rest.at_most()), (None, Some(Micros(50 + 1_000))));
    }

    #[test]
    fn a_try_whose_end_nobody_saw_counts_with_the_most_it_can_have_cost() {
        let price = Price { input: Some(1_000_000), output: Some(1_000_000), ..Price::default() };
        let mut account = Account::under(Some(price), Some(1_000));
        let told = Some(Usage { fresh: Some(5), output: Some(2), ..Usage::default() });
        fold(&mut account, sent());
        fold(&mut account, sent());
        fold(&mut account, answer(told, false));
        assert_eq!((account.coverage().known, account.coverage().attempts), (1, 2));
        assert_eq!((account.cost(), account.at_most()), (None, Some(Micros(7 + 50 + 1_000))));
        // Of a route without a price there is no most either.
        let mut account = Account::under(None, Some(1_000));
        fold(&mut account, sent());
        fold(&mut account, sent());
        assert_eq!((account.cost(), account.at_most()), (None, None));
    }
}
