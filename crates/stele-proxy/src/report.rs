//! `cache report`: every request with its cache figures, by conversation, and what they add up to.

use std::collections::BTreeMap;

use serde::Serialize;
use stele_core::{Coverage, Micros, Millis, Usage, Wire, Zone};

use crate::change::Change;
use crate::departure::Departure;
use crate::judge::{Judged, Judging, Verdict, in_order, is_line, judge};
use crate::lineage::Kind;
use crate::record::Recorded;

/// All requests, by conversation.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The conversations, in the order in which they began.
    pub conversations: Vec<Conversation>,
    /// Titles, summaries and other small requests, which belong to no conversation.
    pub side: Sum,
    /// Requests that got no answer, or an error.
    pub failed: u64,
    /// The conversations and the side requests together.
    pub total: Sum,
}

/// The requests of one conversation.
#[derive(Clone, Debug, Serialize)]
pub struct Conversation {
    /// Id of its first request.
    pub id: u64,
    /// What the client calls itself.
    pub agent: Option<String>,
    /// Its answered requests, in order.
    pub requests: Vec<Line>,
    /// What they add up to.
    pub sum: Sum,
}

/// One answered request.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Its id.
    pub id: u64,
    /// When it was sent.
    pub at: Millis,
    /// The protocol.
    pub wire: Wire,
    /// The server.
    pub base_url: String,
    /// The model.
    pub model: String,
    /// Name of the rules it is judged by.
    pub rules: &'static str,
    /// Bytes of the prompt.
    pub prompt_bytes: u64,
    /// Bytes that it shares with the request it extends.
    pub shared_bytes: u64,
    /// Tokens of these bytes, estimated by the provider's own count where there is one.
    pub shared_tokens: u64,
    /// Tokens that should have been read; absent when the request does not hold its whole prompt.
    pub predicted: Option<u64>,
    /// Tokens that were reported as read.
    pub reported: Option<u64>,
    /// All input tokens.
    pub input: Option<u64>,
    /// What to make of it.
    pub verdict: Verdict,
    /// Where the request leaves the one before, whatever that cost.
    pub leaves: Option<Leaves>,
    /// Tokens in which the endpoint counts what is read, from its vendor's page or from its own figures; absent when
    /// neither tells.
    pub step: Option<u64>,
    /// Tokens that could have been read and were not; without a `step`, that is the most they can be.
    pub lost: u64,
    /// What that cost more, when it is known.
    pub lost_cost: Option<Micros>,
    /// What the request cost; absent when it is unpriced or its usage is not known.
    pub cost: Option<Micros>,
}

/// Where a request leaves the one it extends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Leaves {
    /// The request it leaves.
    pub request: u64,
    /// The segment that differs, or that is gone; of a change that concerns all of it, the parameter.
    pub segment: String,
    /// The part of the prompt.
    pub zone: Zone,
    /// The position, from 0, of the segment from which on nothing of the earlier request is any use.
    pub index: usize,
    /// What kind of change it is.
    pub change: Option<Change>,
}

/// What some requests add up to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sum {
    /// Number of requests.
    pub requests: u64,
    /// Tokens, as far as they were reported.
    pub usage: Usage,
    /// For how many requests they were.
    pub coverage: Coverage,
    /// Share of the input that was read from the cache; absent when it is not known for all requests.
    pub hit_rate: Option<f64>,
    /// Requests that do not say what they read.
    #[serde(skip)]
    silent: u64,
    /// What the priced requests cost.
    pub cost: Option<Micros>,
    /// Requests without a price or without usage.
    pub unpriced: u64,
    /// Tokens that could have been read and were not.
    pub lost: u64,
    /// How many of them may be none: nothing tells in which steps their endpoint counts.
    pub lost_at_most: u64,
    /// What those of them that have a price cost more; absent when none has one.
    pub lost_cost: Option<Micros>,
    /// How many of them have no price.
    pub lost_unpriced: u64,
}

impl Sum {
    fn add(&mut self, request: &Recorded, judged: &Judged) {
        self.requests += 1;
        self.coverage.attempts += 1;
        if let Some(usage) = request.usage.filter(|usage| !usage.is_unknown()) {
            self.coverage.known += 1;
            self.usage.add(&usage);
        }
        self.silent += u64::from(!request.usage.is_some_and(|usage| usage.tells_reads()));
        match judged.cost {
            Some(cost) => self.cost = Some(Micros(self.cost.unwrap_or_default().0.saturating_add(cost.0))),
            None => self.unpriced += 1,
        }
        self.lost += judged.lost;
        self.lost_at_most += judged.lost_at_most;
        match judged.lost_cost {
            Some(cost) => self.lost_cost = Some(Micros(self.lost_cost.unwrap_or_default().0.saturating_add(cost.0))),
            None => self.lost_unpriced += judged.lost,
        }
    }

    /// The two together.
    #[must_use]
    pub fn join(mut self, other: &Self) -> Self {
        self.requests += other.requests;
        self.usage.add(&other.usage);
        self.coverage.known += other.coverage.known;
        self.coverage.attempts += other.coverage.attempts;
        self.silent += other.silent;
        let both = |one: Option<Micros>, other: Option<Micros>| match (one, other) {
            (Some(one), Some(other)) => Some(Micros(one.0.saturating_add(other.0))),
            (one, other) => one.or(other),
        };
        self.cost = both(self.cost, other.cost);
        self.unpriced += other.unpriced;
        self.lost += other.lost;
        self.lost_at_most += other.lost_at_most;
        self.lost_cost = both(self.lost_cost, other.lost_cost);
        self.lost_unpriced += other.lost_unpriced;
        self.close()
    }

    /// A rate over a part of the requests would look like one over all of them, and what requests that lost nothing lost
    /// is no price for what the others did.
    fn close(mut self) -> Self {
        self.hit_rate = self.usage.hit_rate().filter(|_| self.silent == 0);
        self.lost_cost = self.lost_cost.filter(|_| self.lost == 0 || self.lost_unpriced < self.lost);
        self
    }
}

/// Judges recorded requests; they may come in any order.
#[must_use]
pub fn report(requests: &[Recorded], judging: &Judging<'_>) -> Report {
    let requests = in_order(requests);
    let judged = judge(&requests, judging);
    let mut conversations: Vec<(usize, Conversation)> = Vec::new();
    let (mut side, mut total, mut failed) = (Sum::default(), Sum::default(), 0);
    for (request, judged) in requests.iter().zip(&judged) {
        if !request.is_answered() {
            failed += 1;
            continue;
        }
        total.add(request, judged);
        if judged.place.kind == Kind::Side {
            side.add(request, judged);
        }
        if !is_line(request, judged) {
            continue;
        }
        let Some(first) = judged.place.conversation else { continue };
        let at = conversations.iter().position(|(index, _)| *index == first).unwrap_or_else(|| {
            conversations.push((first, conversation(request)));
            conversations.len() - 1
        });
        if let Some((_, conversation)) = conversations.get_mut(at) {
            conversation.sum.add(request, judged);
            conversation.requests.push(line(&requests, request, judged));
        }
    }
    let conversations = conversations.into_iter().map(|(_, conversation)| {
        let sum = conversation.sum.close();
        Conversation { sum, ..conversation }
    });
    Report { conversations: conversations.collect(), side: side.close(), failed, total: total.close() }
}

/// Sums of the answered requests by some key of them, such as their model; `None` leaves one out, though those after it
/// are judged by it.
#[must_use]
pub fn sums<K: Ord>(
    requests: &[Recorded],
    judging: &Judging<'_>,
    key: &dyn Fn(&Recorded) -> Option<K>,
) -> BTreeMap<K, Sum> {
    let requests = in_order(requests);
    let mut sums: BTreeMap<K, Sum> = BTreeMap::new();
    for (request, judged) in requests.iter().zip(&judge(&requests, judging)) {
        if let Some(key) = key(request).filter(|_| request.is_answered()) {
            sums.entry(key).or_default().add(request, judged);
        }
    }
    sums.into_iter().map(|(key, sum)| (key, sum.close())).collect()
}

fn conversation(request: &Recorded) -> Conversation {
    Conversation { id: request.id, agent: request.agent.clone(), requests: Vec::new(), sum: Sum::default() }
}

fn line(requests: &[&Recorded], request: &Recorded, judged: &Judged) -> Line {
    let reference = judged.place.reference;
    let shared_bytes = reference.map_or(0, |reference| reference.bytes);
    let leaves = reference.zip(judged.leaves.clone()).and_then(|(reference, departure)| {
        let Departure { segment, zone, index, change } = departure;
        Some(Leaves { request: requests.get(reference.index)?.id, segment, zone, index, change })
    });
    Line {
        id: request.id,
        at: request.at,
        wire: request.wire,
        base_url: request.base_url.clone(),
        model: request.model.clone(),
        rules: judged.rules.name,
        prompt_bytes: request.prompt_bytes(),
        shared_bytes,
        shared_tokens: request.tokens(shared_bytes),
        predicted: judged.predicted,
        reported: request.usage.and_then(|usage| usage.cache_read),
        input: request.input(),
        verdict: judged.verdict.clone(),
        leaves,
        step: judged.rules.granularity,
        lost: judged.lost,
        lost_cost: judged.lost_cost,
        cost: judged.cost,
    }
}
