//! What each request should have read from the cache, what was reported, and the verdict.

use serde::Serialize;
use stele_core::{Micros, Price, Usage, Zone};

use crate::departure::Departure;
use crate::emulate::{Asked, Cache, Read};
use crate::lineage::{Kind, Lineage, Place, Reference};
use crate::parameter::invalidating;
use crate::prompt::{Context, Segment};
use crate::record::{Cut, Recorded, scale};
use crate::step::Shown;
use stele_provider::{CacheRules, Mechanism, WriteBucket, cache_rules, cache_rules_named};

/// What judgements need to be told.
#[derive(Clone, Copy)]
pub struct Judging<'a> {
    /// The rules to judge by, by name, where the endpoint's host does not tell: a gateway, a scripted server.
    pub rules: Option<&'a str>,
    /// What a request's model costs; `None` when it is unpriced.
    pub price: &'a dyn Fn(&Recorded) -> Option<Price>,
}

impl Default for Judging<'_> {
    /// The rules of each endpoint's host, and list prices.
    fn default() -> Self {
        Self { rules: None, price: &list_price }
    }
}

impl std::fmt::Debug for Judging<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Judging").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Judging<'_> {
    fn rules(&self, request: &Recorded) -> CacheRules {
        let named = self.rules.and_then(|name| cache_rules_named(name, &request.model));
        named.unwrap_or_else(|| cache_rules(request.wire, &request.base_url, &request.model))
    }
}

/// The list price of a request's model.
fn list_price(request: &Recorded) -> Option<Price> {
    stele_provider::list_price(&request.model).map(|row| row.price)
}

/// What to make of a request's cache figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing that could have been read was sent before.
    First,
    /// What was predicted was read, or more.
    Hit,
    /// Less was read than predicted.
    Partial,
    /// What is shared is shorter than the endpoint caches.
    BelowMinimum,
    /// The entry had outlived its lifetime.
    Expired,
    /// A declared cut stands before this request.
    Cut(Cut),
    /// The request leaves the one it extends.
    Broken {
        /// The segment that differs, or that is gone.
        segment: String,
    },
    /// On a wire whose cache needs marks, none stands where it could be read.
    NotMarked,
    /// It was sent before the answer to the request that it shares most with had begun.
    Concurrent,
    /// The provider reported no cached tokens.
    NotReported,
    /// Nothing known explains it.
    Unexplained,
}

impl Verdict {
    /// The name, as in JSON.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Hit => "hit",
            Self::Partial => "partial",
            Self::BelowMinimum => "below_minimum",
            Self::Expired => "expired",
            Self::Cut(_) => "cut",
            Self::Broken { .. } => "broken",
            Self::NotMarked => "not_marked",
            Self::Concurrent => "concurrent",
            Self::NotReported => "not_reported",
            Self::Unexplained => "unexplained",
        }
    }

    /// True when less was read than the conversation would have allowed.
    #[must_use]
    pub fn is_miss(&self) -> bool {
        !matches!(self, Self::First | Self::Hit | Self::BelowMinimum | Self::NotReported)
    }
}

/// Why not all that two requests share can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The answer to the earlier request had not begun.
    Concurrent,
    /// The entry had outlived its lifetime.
    Expired,
    /// It is shorter than the endpoint caches.
    BelowMinimum,
    /// Only what ends at a mark is kept, and no mark of an earlier request stands where it would be found.
    NotMarked,
    /// What this cache keeps ends elsewhere, such as at the end of an earlier prompt.
    NoEntry,
}

impl Bound {
    fn of(read: &Read, shared_tokens: u64, request: &Recorded, rules: &CacheRules) -> Option<Self> {
        if read.unready > read.tokens {
            Some(Self::Concurrent)
        } else if read.expired > read.tokens {
            Some(Self::Expired)
        } else if shared_tokens < rules.minimum {
            Some(Self::BelowMinimum)
        } else if request.needs_marks(rules) {
            Some(Self::NotMarked)
        } else {
            (rules.mechanism != Mechanism::Prefix).then_some(Self::NoEntry)
        }
    }

    /// The verdict where nothing can be read, if this is reason enough.
    fn verdict(self) -> Option<Verdict> {
        match self {
            Self::Concurrent => Some(Verdict::Concurrent),
            Self::Expired => Some(Verdict::Expired),
            Self::BelowMinimum => Some(Verdict::BelowMinimum),
            Self::NotMarked => Some(Verdict::NotMarked),
            Self::NoEntry => None,
        }
    }
}

/// One request, judged.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    pub(crate) place: Place,
    pub(crate) rules: CacheRules,
    /// Absent where the prompt is not all there.
    pub(crate) predicted: Option<u64>,
    pub(crate) verdict: Verdict,
    /// Why less is predicted than it shares, where that is so.
    pub(crate) bound: Option<Bound>,
    /// Where it leaves the request that it extends.
    pub(crate) leaves: Option<Departure>,
    /// Tokens of this request that were not read, as far as an unbroken prefix would have read as many.
    pub(crate) lost: u64,
    /// Of `lost`, what may be no loss: nothing tells in which steps this endpoint counts.
    pub(crate) lost_at_most: u64,
    pub(crate) lost_cost: Option<Micros>,
    pub(crate) cost: Option<Micros>,
}

/// The requests in the order in which they were sent.
pub(crate) fn in_order(requests: &[Recorded]) -> Vec<&Recorded> {
    let mut sorted: Vec<&Recorded> = requests.iter().collect();
    sorted.sort_by_key(|request| (request.at, request.id));
    sorted
}

/// Judges requests that are in order.
pub(crate) fn judge(requests: &[&Recorded], judging: &Judging<'_>) -> Vec<Judged> {
    let lineage = Lineage::trace(requests);
    let shown = Shown::by(requests);
    let mut cache = Cache::default();
    let mut judged = Vec::with_capacity(requests.len());
    for (index, (request, place)) in requests.iter().zip(lineage.places).enumerate() {
        let rules = shown.complete(judging.rules(request), request);
        let asked = Asked { index, request, chain: &lineage.chains[index], rules: &rules, all: requests };
        let read = cache.ask(&asked);
        // What is read cannot be more than there is, however another request's tokens were counted.
        let read = Read { tokens: request.input().map_or(read.tokens, |input| read.tokens.min(input)), ..read };
        judged.push(one(requests, request, place, rules, read, judging));
    }
    judged
}

fn one(
    requests: &[&Recorded],
    request: &Recorded,
    place: Place,
    rules: CacheRules,
    read: Read,
    judging: &Judging<'_>,
) -> Judged {
    let whole = request.context == Context::Whole;
    let earlier =
        place.reference.and_then(|reference| requests.get(reference.index).map(|earlier| (reference, *earlier)));
    let unbroken = earlier
        .filter(|(reference, _)| reference.same_conversation)
        .map_or(0, |(_, earlier)| if outlived(&rules, earlier, request) { 0 } else { cacheable(&rules, earlier) });
    let reported = request.usage.and_then(|usage| usage.cache_read);
    let missing = unbroken.saturating_sub(reported.unwrap_or(read.tokens));
    let is_missing = missing > rules.tolerance(unbroken);
    let leaves = earlier.and_then(|(reference, earlier)| leaves(&reference, earlier, request, &rules, is_missing));
    let broken = leaves.as_ref().filter(|_| is_missing);
    let predicted = whole.then_some(read.tokens);
    let shared_tokens = earlier.map_or(0, |(reference, earlier)| earlier.tokens(reference.bytes));
    let bound = Bound::of(&read, shared_tokens, request, &rules);
    let near = |predicted: u64, reported: u64| reported + rules.tolerance(predicted) >= predicted;
    let verdict = match (predicted, reported) {
        _ if let Some(cut) = &request.cut => Verdict::Cut(cut.clone()),
        _ if let Some(broken) = broken => Verdict::Broken { segment: broken.segment.clone() },
        (Some(predicted), Some(_)) if bound == Some(Bound::NotMarked) && !near(unbroken, predicted) => {
            Verdict::NotMarked
        }
        (_, Some(reported)) if reported > 0 && near(predicted.unwrap_or(0), reported) => Verdict::Hit,
        _ if earlier.is_none() && whole => Verdict::First,
        (_, None) => Verdict::NotReported,
        (None, Some(_)) => Verdict::Unexplained,
        (Some(0), Some(_)) if let Some(verdict) = bound.and_then(Bound::verdict) => verdict,
        (Some(0), Some(_)) if shared_tokens <= rules.tolerance(0) => Verdict::First,
        (Some(_), Some(0)) => Verdict::Unexplained,
        (Some(_), Some(_)) => Verdict::Partial,
    };
    // What a request outside a broken prefix lost is told against the prediction.
    let unread = request.input().map_or(u64::MAX, |input| input.saturating_sub(reported.unwrap_or(read.tokens)));
    let lost = match verdict {
        Verdict::Broken { .. } | Verdict::Cut(_) | Verdict::NotMarked => missing.min(unread),
        Verdict::Partial | Verdict::Unexplained => read.tokens.saturating_sub(reported.unwrap_or(0)),
        _ => 0,
    };
    let unmarked = || {
        let (reference, earlier) = earlier?;
        let extends = reference.same_conversation && !reference.broken;
        extends.then(|| Departure::unmarked(earlier, request)).flatten()
    };
    let leaves = if verdict == Verdict::NotMarked { leaves.or_else(unmarked) } else { leaves };
    let lost_at_most = if rules.granularity.is_none() { lost } else { 0 };
    let price = (judging.price)(request);
    let cost = price.zip(request.usage).and_then(|(price, usage)| price.of(&usage));
    let lost_cost = if lost == 0 {
        Some(Micros(0))
    } else {
        price.and_then(|price| extra_cost(&rules, &price, request.usage, lost))
    };
    // Where a parameter or another cache is what keeps it from being read, the change says so.
    let parts = |reference: &Reference, earlier: &Recorded| {
        earlier.place() == request.place() && (reference.broken || leaves.is_none())
    };
    let in_question = earlier.is_some_and(|(reference, earlier)| parts(&reference, earlier));
    let bound = bound.filter(|_| in_question && !near(shared_tokens, read.tokens));
    Judged { place, rules, predicted, bound, verdict, leaves, lost, lost_at_most, lost_cost, cost }
}

/// Where a request leaves the one it extends: where the prompts part, or where a parameter makes what is cached of them
/// useless.
fn leaves(
    reference: &Reference,
    earlier: &Recorded,
    request: &Recorded,
    rules: &CacheRules,
    is_missing: bool,
) -> Option<Departure> {
    if reference.broken {
        return Departure::at(earlier, request, reference.segments);
    }
    if !reference.same_conversation {
        return None;
    }
    if rules.mechanism != Mechanism::Marks {
        // No page says which parameters count; one that differs where all the rest is equal does, if something is missing.
        return Departure::by_parameter(earlier, request, None).filter(|_| is_missing);
    }
    if invalidating(earlier) == invalidating(request) {
        return None;
    }
    let first = |segment: &Segment| matches!(segment.zone, Zone::Preface | Zone::History);
    Departure::by_parameter(earlier, request, request.segments.iter().position(first))
}

fn outlived(rules: &CacheRules, earlier: &Recorded, request: &Recorded) -> bool {
    let mark = earlier.segments.iter().filter_map(|segment| segment.mark).next_back();
    let idle = u64::try_from(request.at.0.saturating_sub(earlier.at.0)).unwrap_or(0);
    earlier.lifetime(rules, mark).is_some_and(|lifetime| idle > lifetime)
}

/// Tokens of a request that a later one can read when it extends it.
fn cacheable(rules: &CacheRules, request: &Recorded) -> u64 {
    if !request.needs_marks(rules) {
        return rules.floor(request.tokens(request.prompt_bytes()));
    }
    let Some(last) = request.segments.iter().rposition(|segment| segment.mark.is_some()) else { return 0 };
    let bytes: u64 = request.segments.iter().take(last + 1).map(|segment| segment.bytes.len() as u64).sum();
    rules.floor(request.tokens(bytes))
}

/// What so many tokens cost more than they would have, had they been read: they count as what most of the request's other
/// input was reported as, or as the rules have it where nothing was reported.
fn extra_cost(rules: &CacheRules, price: &Price, usage: Option<Usage>, tokens: u64) -> Option<Micros> {
    let ruled = rules.usage(1, 0, writes(rules, price), None);
    let told = usage.filter(|usage| usage.fresh.is_some() || usage.writes().is_some());
    let Usage { fresh, cache_write, cache_write_5m, cache_write_1h, .. } = told.unwrap_or(ruled);
    let billed = [
        (cache_write_5m, price.cache_write_5m),
        (cache_write_1h, price.cache_write_1h),
        (cache_write, price.cache_write),
        (fresh, price.input),
    ];
    let (_, paid) = billed.into_iter().max_by_key(|(tokens, _)| *tokens)?;
    let more = paid?.checked_sub(price.cache_read?)?;
    Some(Micros(scale(tokens, more, 1_000_000)))
}

/// Whether what is not read is written to the cache at a price of its own.
pub(crate) fn writes(rules: &CacheRules, price: &Price) -> bool {
    match rules.write {
        WriteBucket::None => false,
        WriteBucket::FiveMinutes => true,
        WriteBucket::Unnamed => price.cache_write.is_some(),
    }
}

/// True for the requests of which a report has a line.
pub(crate) fn is_line(request: &Recorded, judged: &Judged) -> bool {
    request.is_answered() && judged.place.kind == Kind::Main
}
