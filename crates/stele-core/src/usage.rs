//! Token counts in disjoint buckets; a figure nobody reported stays absent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CacheTtl, Micros};

/// Tokens of one attempt, or a sum of attempts. `None` is unknown, never zero.
///
/// The buckets are disjoint, whatever the vendor includes in what (adapters subtract). `reasoning`
/// is the one exception: it is part of `output` and informational.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Input that was neither read from nor written to the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fresh: Option<u64>,
    /// Input read from the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Input written to the cache, where the vendor names no lifetime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// Input written to the cache for 5 minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_5m: Option<u64>,
    /// Input written to the cache for 1 hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<u64>,
    /// Output, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// The part of `output` that was reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

/// Most tokens of one attempt that are believed.
const TOKENS_MAX: u64 = 1 << 40;

impl Usage {
    /// Drops figures that no model can have used: what a server made up counts as not reported.
    #[must_use]
    pub fn plausible(self) -> Self {
        let keep = |tokens: Option<u64>| tokens.filter(|tokens| *tokens <= TOKENS_MAX);
        Self {
            fresh: keep(self.fresh),
            cache_read: keep(self.cache_read),
            cache_write: keep(self.cache_write),
            cache_write_5m: keep(self.cache_write_5m),
            cache_write_1h: keep(self.cache_write_1h),
            output: keep(self.output),
            reasoning: keep(self.reasoning),
        }
    }

    /// The same where all marks of the request asked for one life: what a server does not tell apart was written for that.
    #[must_use]
    pub fn written_for(self, life: Option<CacheTtl>) -> Self {
        let more = |known: Option<u64>| sum([known, self.cache_write]);
        match life {
            None => self,
            Some(CacheTtl::FiveMinutes) => {
                Self { cache_write: None, cache_write_5m: more(self.cache_write_5m), ..self }
            }
            Some(CacheTtl::Hour) => Self { cache_write: None, cache_write_1h: more(self.cache_write_1h), ..self },
        }
    }

    /// True when nothing at all was reported.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// All input tokens that were reported, absent when no input bucket was.
    #[must_use]
    pub fn input(&self) -> Option<u64> {
        sum([self.fresh, self.cache_read, self.cache_write, self.cache_write_5m, self.cache_write_1h])
    }

    /// The whole input as the provider counted it; absent where a part of it may be missing.
    #[must_use]
    pub(crate) fn counted(&self) -> Option<u64> {
        self.fresh?;
        self.input().filter(|input| *input > 0)
    }

    /// Size of the context after the answer: every known bucket, output included.
    #[must_use]
    pub fn context(&self) -> Option<u64> {
        sum([self.input(), self.output])
    }

    /// Tokens written to the cache in every bucket that was reported.
    #[must_use]
    pub fn writes(&self) -> Option<u64> {
        sum([self.cache_write, self.cache_write_5m, self.cache_write_1h])
    }

    /// `cache_read / (fresh + cache_read + all writes)`; absent when `fresh` or `cache_read` is
    /// unknown, or when there was no input. A write bucket that is not reported counts as nothing.
    #[must_use]
    pub fn hit_rate(&self) -> Option<f64> {
        let (fresh, read) = (self.fresh?, self.cache_read?);
        let total = fresh.saturating_add(read).saturating_add(self.writes().unwrap_or(0));
        (total > 0).then(|| read as f64 / total as f64)
    }

    /// True when it says what was read from the cache and what was not. A sum over attempts has a hit rate only where
    /// every one of them says so: a share of known and unknown together is the share of nothing.
    #[must_use]
    pub fn tells_reads(&self) -> bool {
        self.fresh.is_some() && self.cache_read.is_some()
    }

    /// Adds what another attempt reported: known plus unknown stays the known part.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.fresh, other.fresh),
            (&mut self.cache_read, other.cache_read),
            (&mut self.cache_write, other.cache_write),
            (&mut self.cache_write_5m, other.cache_write_5m),
            (&mut self.cache_write_1h, other.cache_write_1h),
            (&mut self.output, other.output),
            (&mut self.reasoning, other.reasoning),
        ] {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0).saturating_add(more));
            }
        }
    }
}

fn sum<const N: usize>(parts: [Option<u64>; N]) -> Option<u64> {
    parts.into_iter().flatten().reduce(u64::saturating_add)
}

/// Prices of a model in micro-units of money per million tokens. Absent means not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Price {
    /// Fresh input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Input read from the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Input written to the cache without a known lifetime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// Input written to the cache for 5 minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_5m: Option<u64>,
    /// Input written to the cache for 1 hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<u64>,
    /// What long requests cost instead, at vendors that ask more for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long: Option<LongPrice>,
}

/// What every token of a long request costs, in percent of the usual price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LongPrice {
    /// It counts for a request whose whole input, cached or not, is above so many tokens.
    pub above: u64,
    /// For input: fresh, read from the cache or written to it.
    pub input_percent: u64,
    /// For output.
    pub output_percent: u64,
}

impl Price {
    /// What some usage costs. `None` when nothing was reported, or when a bucket that was used has no
    /// price: unknown is never priced.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> Option<Micros> {
        if usage.fresh.is_none() || usage.output.is_none() {
            return None;
        }
        let (input, output) = self.percent(usage.input().unwrap_or(0));
        let buckets = [
            (usage.fresh, self.input, input),
            (usage.output, self.output, output),
            (usage.cache_read, self.cache_read, input),
            (usage.cache_write, self.cache_write, input),
            (usage.cache_write_5m, self.cache_write_5m, input),
            (usage.cache_write_1h, self.cache_write_1h, input),
        ];
        let mut total: u128 = 0;
        for (tokens, price, percent) in buckets {
            match (tokens.unwrap_or(0), price) {
                (0, _) => {}
                (tokens, Some(price)) => total += u128::from(tokens) * u128::from(price) * percent,
                (_, None) => return None,
            }
        }
        u64::try_from(total.div_ceil(100_000_000)).ok().map(Micros)
    }

    /// The key of a figure that some usage needs and this price does not have, when that is what keeps it unpriced.
    #[must_use]
    pub fn missing_for(&self, usage: &Usage) -> Option<&'static str> {
        let parts = [
            ("input", usage.fresh, self.input),
            ("output", usage.output, self.output),
            ("cache_read", usage.cache_read, self.cache_read),
            ("cache_write", usage.cache_write, self.cache_write),
            ("cache_write_5m", usage.cache_write_5m, self.cache_write_5m),
            ("cache_write_1h", usage.cache_write_1h, self.cache_write_1h),
        ];
        let missing = parts.into_iter().find(|(_, tokens, price)| tokens.unwrap_or(0) > 0 && price.is_none());
        missing.map(|(name, ..)| name)
    }

    /// The most that a request can cost: every input token at the dearest input price that it can cause, the full output.
    /// Nothing is written for longer than the longest life that it asks for.
    #[must_use]
    pub fn at_most(&self, input: u64, output: u64, longest: CacheTtl) -> Option<Micros> {
        let hour = self.cache_write_1h.filter(|_| longest == CacheTtl::Hour);
        let dearest = [self.input, self.cache_write, self.cache_write_5m, hour].into_iter().flatten().max()?;
        let (of_input, of_output) = self.percent(input);
        let total = u128::from(input) * u128::from(dearest) * of_input
            + u128::from(output) * u128::from(self.output?) * of_output;
        u64::try_from(total.div_ceil(100_000_000)).ok().map(Micros)
    }

    /// Percent of the usual price for input and output, by the length of the whole input.
    fn percent(&self, input: u64) -> (u128, u128) {
        match self.long.filter(|long| input > long.above) {
            Some(long) => (long.input_percent.into(), long.output_percent.into()),
            None => (100, 100),
        }
    }
}

/// For how many attempts usage is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// Attempts whose usage was reported.
    pub known: u64,
    /// Attempts that were answered or failed.
    pub attempts: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hit_rate_is_absent_when_a_part_is_unknown() {
        let usage = Usage { fresh: Some(10), ..Usage::default() };
        assert_eq!(usage.hit_rate(), None);
        let usage = Usage { fresh: Some(10), cache_read: Some(30), ..Usage::default() };
        assert_eq!(usage.hit_rate(), Some(0.75));
        assert_eq!(Usage::default().context(), None);
    }

    #[test]
    fn what_is_not_told_apart_was_written_for_as_long_as_all_marks_say() {
        let told = Usage { cache_write: Some(10), cache_write_5m: Some(1), ..Usage::default() };
        let writes = |life| {
            let usage = told.written_for(life);
            (usage.cache_write, usage.cache_write_5m, usage.cache_write_1h)
        };
        assert_eq!(writes(None), (Some(10), Some(1), None));
        assert_eq!(writes(Some(CacheTtl::FiveMinutes)), (None, Some(11), None));
        assert_eq!(writes(Some(CacheTtl::Hour)), (None, Some(1), Some(10)));
        assert_eq!(Usage::default().written_for(Some(CacheTtl::Hour)), Usage::default());
    }

    #[test]
    fn what_has_no_price_is_not_priced() {
        let price = Price { input: Some(3_000_000), output: Some(15_000_000), ..Price::default() };
        let usage = Usage { fresh: Some(1_000), output: Some(10), ..Usage::default() };
        assert_eq!(price.of(&usage), Some(Micros(3_150)));
        assert_eq!(price.of(&Usage { cache_read: Some(0), ..usage }), Some(Micros(3_150)));
        assert_eq!(price.of(&Usage { cache_read: Some(1), ..usage }), None);
        assert_eq!(price.missing_for(&Usage { cache_read: Some(1), ..usage }), Some("cache_read"));
        assert_eq!(price.missing_for(&usage), None);
        assert_eq!(price.of(&Usage { fresh: None, ..usage }), None);
    }

    #[test]
    fn unknown_is_not_zero_in_sums() {
        let mut sum = Usage::default();
        sum.add(&Usage { output: Some(5), ..Usage::default() });
        sum.add(&Usage { fresh: Some(2), ..Usage::default() });
        assert_eq!(sum, Usage { output: Some(5), fresh: Some(2), ..Usage::default() });
        assert_eq!(sum.context(), Some(7));
    }

    #[test]
    fn a_long_request_costs_more_for_every_token() {
        let long = Some(LongPrice { above: 1_000, input_percent: 200, output_percent: 150 });
        let price = Price {
            input: Some(2_000_000),
            cache_read: Some(100_000),
            output: Some(10_000_000),
            long,
            ..Price::default()
        };
        let usage =
            |fresh, read| Usage { fresh: Some(fresh), cache_read: Some(read), output: Some(100), ..Usage::default() };
        assert_eq!(price.of(&usage(500, 500)), Some(Micros(1_000 + 50 + 1_000)));
        assert_eq!(price.of(&usage(500, 510)), Some(Micros(2_000 + 102 + 1_500)));
        assert_eq!(price.at_most(1_000, 100, CacheTtl::FiveMinutes), Some(Micros(2_000 + 1_000)));
        assert_eq!(price.at_most(1_001, 100, CacheTtl::FiveMinutes), Some(Micros(4_004 + 1_500)));
    }

    #[test]
    fn what_is_written_for_an_hour_is_dear_only_where_an_hour_is_asked_for() {
        let price = Price {
            input: Some(4_000_000),
            output: Some(0),
            cache_write_5m: Some(5_000_000),
            cache_write_1h: Some(8_000_000),
            ..Price::default()
        };
        assert_eq!(price.at_most(1_000, 0, CacheTtl::FiveMinutes), Some(Micros(5_000)));
        assert_eq!(price.at_most(1_000, 0, CacheTtl::Hour), Some(Micros(8_000)));
    }
}
