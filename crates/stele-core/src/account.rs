//! What a stretch of a log used and what it cost: one fold for all who show it.

use crate::{CacheTtl, Config, Coverage, Event, Micros, OptionalField, Price, Record, Usage, Wire};

/// Sums over attempts. A cost that cannot be known in full is absent.
#[derive(Clone, Debug)]
pub struct Account {
    usage: Usage,
    coverage: Coverage,
    /// False once an attempt that may have been billed did not say what it read from the cache.
    tells_reads: bool,
    cost: Option<Micros>,
    at_most: Option<Micros>,
    terms: Terms,
    /// The request that is under way.
    awaiting: Option<Awaited>,
    /// Who counts the tokens.
    counter: Option<(Wire, String)>,
    /// What that one counted last, as far as the last prompt still has it.
    counted: Option<Counted>,
}

/// What the requests of an epoch can cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms {
    price: Option<Price>,
    max_output: Option<u64>,
    longest: CacheTtl,
}

impl Terms {
    pub(crate) fn of(config: &Config, price: Option<Price>, max_output: Option<u64>) -> Self {
        let longest = if config.sends(OptionalField::CacheTtl) { CacheTtl::Hour } else { CacheTtl::FiveMinutes };
        Self { price, max_output, longest }
    }

    /// The most that a request of so many tokens can cost: nothing read from the cache, the answer as long as it may be.
    pub(crate) fn most(&self, tokens: u64) -> Option<Micros> {
        self.price?.at_most(tokens, self.max_output?, self.longest)
    }
}

/// A request that is under way.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    /// The most that it can cost, where that is known.
    bound: Option<Micros>,
    /// Bytes of its prompt.
    len: u64,
}

/// A prompt whose tokens the provider counted.
#[derive(Clone, Copy, Debug)]
struct Counted {
    /// Bytes of it, from the front, that every prompt since had as well.
    len: u64,
    input: u64,
}

impl Default for Account {
    fn default() -> Self {
        Self::under(Terms::default())
    }
}

impl Account {
    /// An empty account under a price and the longest answer.
    fn under(terms: Terms) -> Self {
        let (cost, at_most) = (Some(Micros(0)), Some(Micros(0)));
        let (usage, coverage) = (Usage::default(), Coverage::default());
        Self { usage, coverage, tells_reads: true, cost, at_most, terms, awaiting: None, counter: None, counted: None }
    }

    /// An empty account of what comes after this one, the end of a request that is under way included.
    #[must_use]
    pub fn from_here(&self) -> Self {
        let (counter, counted) = (self.counter.clone(), self.counted);
        Self { awaiting: self.awaiting, counter, counted, ..Self::under(self.terms) }
    }

    /// Folds the next record in; gives what an attempt reported, when this record says so.
    pub fn fold(&mut self, record: &Record) -> Option<Usage> {
        match &record.event {
            Event::EpochOpened(opened) => {
                self.terms = Terms::of(&opened.config, opened.price, opened.max_output);
                let counter = Some((opened.config.wire, opened.config.model.clone()));
                if self.counter != counter {
                    (self.counter, self.counted) = (counter, None);
                }
                None
            }
            Event::RequestSent(sent) => {
                // The process died while the one before was under way: nobody knows what came of that.
                if let Some(lost) = self.awaiting.take() {
                    self.report(None, true, Some(lost));
                }
                // What the next prompt shares with this one need not be what was counted: this one may have been cut.
                if let Some(counted) = &mut self.counted {
                    counted.len = counted.len.min(sent.prompt.shared);
                }
                let bound = self.terms.most(self.tokens_at_most(sent.prompt.len));
                self.awaiting = Some(Awaited { bound, len: sent.prompt.len });
                None
            }
            Event::RequestFailed(failed) => {
                let awaited = self.awaiting.take();
                self.report(failed.failure.usage, failed.failure.may_be_billed(), awaited)
            }
            Event::AssistantMessage(message) => match self.awaiting.take() {
                // It only closes a failed or unsent request, which was counted already, or was none.
                None if message.interrupted => None,
                awaited => self.report(message.usage, true, awaited),
            },
            _ => None,
        }
    }

    /// How many tokens a prompt can have: no tokenizer makes more than one of a byte, and of what was counted before, as
    /// far as it is the same, it makes as many again.
    fn tokens_at_most(&self, len: u64) -> u64 {
        let counted = self.counted.map(|counted| counted.input.saturating_add(len.saturating_sub(counted.len)));
        counted.map_or(len, |counted| counted.min(len))
    }

    /// An attempt that may have been billed and reported nothing makes the cost unknown; at most it cost its bound.
    fn report(&mut self, usage: Option<Usage>, billed: bool, awaited: Option<Awaited>) -> Option<Usage> {
        let bound = awaited.and_then(|awaited| awaited.bound);
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
        if let (Some(awaited), Some(input)) = (awaited, usage.counted()) {
            self.counted = Some(Counted { len: awaited.len, input });
        }
        self.tells_reads &= usage.tells_reads();
        let more = self.terms.price.and_then(|price| price.of(&usage));
        let at_most = more.or_else(|| self.most_of(&usage)).or(bound);
        (self.cost, self.at_most) = (plus(self.cost, more), plus(self.at_most, at_most));
        Some(usage)
    }

    /// The most that an attempt can have cost that reported its input: when it was cut before its output was counted, and
    /// when a part of the input has no price of its own.
    fn most_of(&self, usage: &Usage) -> Option<Micros> {
        let (price, output) = (self.terms.price?, usage.output.or(self.terms.max_output)?);
        let exact = price.of(&Usage { output: Some(output), ..*usage });
        exact.or_else(|| price.at_most(usage.counted()?, output, self.terms.longest))
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
        self.awaiting.map_or(self.at_most, |awaited| plus(self.at_most, awaited.bound))
    }
}

fn plus(sum: Option<Micros>, more: Option<Micros>) -> Option<Micros> {
    Some(Micros(sum?.0.saturating_add(more?.0)))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::{
        AssistantMessage, BodyDigest, EpochOpened, EpochReason, Hash, Millis, Producer, PromptDigest, Purpose,
        RequestSent, Seq, Stop, Wire,
    };

    fn terms(price: Option<Price>) -> Terms {
        Terms { price, max_output: Some(1_000), ..Terms::default() }
    }

    fn fold(account: &mut Account, event: impl Into<Event>) {
        account.fold(&Record { seq: Seq(0), ts: Millis(0), turn: None, step: None, event: event.into() });
    }

    fn config(model: &str) -> Config {
        Config {
            route: "r".into(),
            wire: Wire::OpenaiChat,
            base_url: "http://127.0.0.1:1".into(),
            model: model.into(),
            encoder: String::new(),
            derive_rev: 1,
            parameters: Default::default(),
            cache: Default::default(),
            dialect: None,
            images: Default::default(),
            headers: Default::default(),
            withheld: Default::default(),
        }
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
        let mut account = Account::under(terms(Some(price)));
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
        assert_eq!(account.at_most(), Some(Micros(7 + 99 + 1_000)));
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
        let mut whole = Account::under(terms(Some(price)));
        fold(&mut whole, sent());
        let mut rest = whole.from_here();
        assert_eq!((rest.cost(), rest.coverage().attempts), (Some(Micros(0)), 0));
        fold(&mut rest, answer(None, true));
        assert_eq!((rest.cost(), rest.at_most()), (None, Some(Micros(99 + 1_000))));
    }

    #[test]
    fn a_try_whose_end_nobody_saw_counts_with_the_most_it_can_have_cost() {
        let price = Price { input: Some(1_000_000), output: Some(1_000_000), ..Price::default() };
        let mut account = Account::under(terms(Some(price)));
        let told = Some(Usage { fresh: Some(5), output: Some(2), ..Usage::default() });
        fold(&mut account, sent());
        fold(&mut account, sent());
        fold(&mut account, answer(told, false));
        assert_eq!((account.coverage().known, account.coverage().attempts), (1, 2));
        assert_eq!((account.cost(), account.at_most()), (None, Some(Micros(7 + 99 + 1_000))));
        // Of a route without a price there is no most either.
        let mut account = Account::under(terms(None));
        fold(&mut account, sent());
        fold(&mut account, sent());
        assert_eq!((account.cost(), account.at_most()), (None, None));
    }

    #[test]
    fn what_has_no_price_of_its_own_counts_at_the_dearest_and_with_the_output_that_was_counted() {
        let price = Price { input: Some(1_000_000), output: Some(2_000_000), ..Price::default() };
        let mut account = Account::under(terms(Some(price)));
        let told = Usage { fresh: Some(5), cache_read: Some(80), output: Some(7), ..Usage::default() };
        fold(&mut account, sent());
        fold(&mut account, answer(Some(told), false));
        assert_eq!((account.cost(), account.at_most()), (None, Some(Micros(85 + 14))));
    }

    #[test]
    fn an_output_that_was_not_counted_is_as_long_as_it_may_be() {
        let price = Price { input: Some(1_000_000), output: Some(2_000_000), ..Price::default() };
        let mut account = Account::under(terms(Some(price)));
        let told = Usage { fresh: Some(5), ..Usage::default() };
        fold(&mut account, sent());
        fold(&mut account, answer(Some(told), true));
        assert_eq!((account.cost(), account.at_most()), (None, Some(Micros(5 + 2 * 1_000))));
    }

    #[test]
    fn another_model_counts_anew() {
        let price = Price { input: Some(1_000_000), output: Some(1_000_000), ..Price::default() };
        let mut account = Account::default();
        for ((model, counted), n) in [("m", 99), ("m", 10), ("n", 99)].into_iter().zip(1..) {
            let config = Box::new(config(model));
            let (reason, version, segments) = (EpochReason::ModelChanged, String::new(), Vec::new());
            let (price, max_output) = (Some(price), Some(1_000));
            fold(&mut account, EpochOpened { n, reason, version, cost: None, segments, config, price, max_output });
            let prompt = PromptDigest { shared: 99, ..sent().prompt };
            fold(&mut account, RequestSent { prompt, ..sent() });
            let spent = account.at_most().unwrap().0;
            assert_eq!(account.at_most_if_lost(), Some(Micros(spent + counted + 1_000)), "{n}");
            fold(&mut account, answer(Some(Usage { fresh: Some(10), output: Some(0), ..Usage::default() }), false));
        }
    }

    #[test]
    fn what_was_counted_is_counted_again_and_what_is_new_is_a_token_a_byte_at_most() {
        let price = Price { input: Some(1_000_000), output: Some(1_000_000), ..Price::default() };
        let mut account = Account::under(terms(Some(price)));
        let told = |fresh| Some(Usage { fresh: Some(fresh), output: Some(0), ..Usage::default() });
        let longer = |len, shared| {
            let prompt = PromptDigest { len, shared, ..sent().prompt };
            RequestSent { prompt, ..sent() }
        };
        fold(&mut account, longer(1_000, 0));
        fold(&mut account, answer(told(300), false));
        // A hundred bytes came, of which none has been counted.
        fold(&mut account, longer(1_100, 1_000));
        let mut lost = account.clone();
        fold(&mut lost, longer(1_100, 1_100));
        assert_eq!(lost.at_most(), Some(Micros(300 + (300 + 100) + 1_000)));
        // Half of what was counted left the history.
        fold(&mut account, answer(told(350), false));
        fold(&mut account, longer(600, 500));
        assert_eq!(account.at_most_if_lost(), Some(Micros(300 + 350 + (350 + 100) + 1_000)));
        // Without any of it the bytes alone tell.
        fold(&mut account, longer(200, 0));
        assert_eq!(account.at_most_if_lost().unwrap().0 - account.at_most().unwrap().0, 200 + 1_000);
    }

    /// What happens to a conversation: pieces of so many bytes each, of which the server makes so many tokens.
    #[derive(Clone, Debug)]
    enum Happens {
        /// A piece comes, and the prompt is sent.
        Grows { bytes: u64, tokens: u64 },
        /// All but the first pieces leave, as with an undo, and the prompt is sent in a new epoch.
        IsCut { keep: usize },
        /// The same prompt is sent again.
        IsRetried,
    }

    /// What comes of a request.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Comes {
        Counted,
        /// It failed, was billed, and nobody said for what.
        Billed,
        Refused,
        /// The process died.
        Nothing,
    }

    fn happens() -> impl Strategy<Value = Happens> {
        // Four bytes to a token, a token a byte, and anything between.
        let grows = (1..400_u64, 0..=4_u64)
            .prop_map(|(bytes, share)| Happens::Grows { bytes, tokens: bytes / 4 + (bytes - bytes / 4) * share / 4 });
        prop_oneof![4 => grows, 2 => (0..6_usize).prop_map(|keep| Happens::IsCut { keep }), 1 => Just(Happens::IsRetried)]
    }

    fn comes() -> impl Strategy<Value = Comes> {
        prop_oneof![3 => Just(Comes::Counted), 1 => Just(Comes::Billed), 1 => Just(Comes::Refused), 1 => Just(Comes::Nothing)]
    }

    proptest! {
        #[test]
        fn no_request_has_more_tokens_than_the_bound_says(story in vec((happens(), comes()), 1..24)) {
            let price = Price { input: Some(1_000_000), output: Some(1_000_000), ..Price::default() };
            let mut account = Account::under(terms(Some(price)));
            let (mut pieces, mut billed, mut lost) = (vec![(40, 40)], 0, 0);
            let mut before = 0;
            for (happens, comes) in story {
                let shared = match happens {
                    Happens::Grows { bytes, tokens } => {
                        pieces.push((bytes, tokens));
                        before
                    }
                    Happens::IsCut { keep } => {
                        pieces.truncate(keep.max(1));
                        pieces.iter().map(|(bytes, _)| bytes).sum::<u64>().min(before)
                    }
                    Happens::IsRetried => before,
                };
                let (len, tokens) = pieces.iter().fold((0, 0), |sum, piece| (sum.0 + piece.0, sum.1 + piece.1));
                before = len;
                let prompt = PromptDigest { len, shared, ..sent().prompt };
                fold(&mut account, RequestSent { prompt, ..sent() });
                // Whoever died under way was not seen to have been billed; it may have been, answer and all.
                billed += lost;
                let most = tokens + 1_000;
                let bound = account.at_most_if_lost().unwrap().0 - account.at_most().unwrap().0;
                prop_assert!(bound >= most, "{bound} of {tokens} tokens in {len} bytes, {shared} shared");
                prop_assert!(account.at_most().unwrap().0 >= billed);
                let told = Usage { fresh: Some(tokens), output: Some(0), ..Usage::default() };
                lost = 0;
                match comes {
                    Comes::Counted => {
                        billed += tokens;
                        fold(&mut account, answer(Some(told), false));
                    }
                    Comes::Billed => {
                        billed += most;
                        fold(&mut account, answer(None, true));
                    }
                    Comes::Refused => {
                        let failure = crate::Failure::new(crate::FailureCode::RateLimited, "later");
                        fold(&mut account, crate::RequestFailed { attempt: 1, failure });
                    }
                    Comes::Nothing => lost = most,
                }
            }
        }
    }
}
