//! `cache simulate`: the same requests under another vendor's rules and prices.

use std::collections::HashSet;

use serde::Serialize;
use stele_core::{Hash, Micros, Price, Usage, Zone};

use crate::emulate::{Asked, Cache, Chain};
use crate::judge::{in_order, writes};
use crate::prompt::Mark;
use crate::record::Recorded;
use stele_provider::{Mechanism, cache_rules_named};

/// The requests as they would be counted elsewhere. All figures are estimates: another vendor cuts tokens differently.
#[derive(Clone, Debug, Serialize)]
pub struct Simulation {
    /// The rules.
    pub rules: &'static str,
    /// The model whose minimum and price are used.
    pub model: String,
    /// Whether a price is known for it.
    pub priced: bool,
    /// The answered requests, in order.
    pub requests: Vec<Simulated>,
    /// Their tokens.
    pub usage: Usage,
    /// Share of the input that would be read.
    pub hit_rate: Option<f64>,
    /// What they would cost; absent when the model is unpriced or a figure is missing for one of them.
    pub cost: Option<Micros>,
}

/// One request elsewhere.
#[derive(Clone, Debug, Serialize)]
pub struct Simulated {
    /// Its id.
    pub id: u64,
    /// Its tokens; the output is the one that was reported.
    pub usage: Usage,
    /// What it would cost.
    pub cost: Option<Micros>,
}

/// Puts what is written under marks with the longer life into the bucket of that life.
fn for_an_hour(usage: Usage, tokens: u64) -> Usage {
    match usage.cache_write_5m {
        Some(written) if tokens > 0 => {
            let hour = tokens.min(written);
            Usage { cache_write_5m: Some(written - hour), cache_write_1h: Some(hour), ..usage }
        }
        _ => usage,
    }
}

/// Counts recorded requests by the rules of a vendor, given by name, and prices them.
///
/// Where that vendor's cache needs marks and the client set none, the marks are put where they pay most: at the end of
/// what stands before the conversation, at the end of the longest earlier prompt that the request extends, and at the end
/// of its own.
///
/// # Errors
/// There are no rules of this name; the message lists those there are.
pub fn simulate(requests: &[Recorded], vendor: &str, model: &str, price: Option<Price>) -> Result<Simulation, String> {
    let Some(rules) = cache_rules_named(vendor, model) else {
        let names = stele_provider::cache_rule_names().join(", ");
        return Err(format!("no rules are known for {vendor:?}; take one of {names}"));
    };
    let mut ends = HashSet::new();
    let marked: Vec<Recorded> = in_order(requests)
        .into_iter()
        .filter(|request| request.is_answered())
        .map(
            |request| {
                if rules.mechanism == Mechanism::Marks { with_marks(request, &mut ends) } else { request.clone() }
            },
        )
        .collect();
    let all: Vec<&Recorded> = marked.iter().collect();
    let mut cache = Cache::default();
    let mut usage = Usage::default();
    let mut simulated = Vec::with_capacity(all.len());
    for (index, request) in all.iter().enumerate() {
        // One model is asked, whichever it was.
        let chain = Chain::new(&[], &request.segments);
        let asked = Asked { index, request, chain: &chain, rules: &rules, all: &all };
        let read = cache.ask(&asked).tokens;
        let input = request.input().unwrap_or_else(|| request.tokens(request.prompt_bytes()));
        let written = input >= rules.minimum && price.as_ref().is_some_and(|price| writes(&rules, price));
        let output = request.usage.and_then(|usage| usage.output);
        let own = rules.usage(input, read.min(input), written, output);
        let own = for_an_hour(own, asked.kept_for_an_hour().saturating_sub(read));
        usage.add(&own);
        simulated.push(Simulated { id: request.id, usage: own, cost: price.and_then(|price| price.of(&own)) });
    }
    let costs = simulated.iter().map(|request| request.cost).collect::<Option<Vec<Micros>>>();
    let cost = costs.filter(|costs| !costs.is_empty()).map(|costs| Micros(costs.iter().map(|cost| cost.0).sum()));
    Ok(Simulation {
        rules: rules.name,
        model: model.to_owned(),
        priced: price.is_some(),
        requests: simulated,
        hit_rate: usage.hit_rate(),
        usage,
        cost,
    })
}

/// A request with marks, if it has none of its own; `ends` are those of the prompts before it, and its own afterwards.
fn with_marks(request: &Recorded, ends: &mut HashSet<Hash>) -> Recorded {
    let mut request = request.clone();
    let chain = Chain::new(&[], &request.segments);
    if request.segments.iter().all(|segment| segment.mark.is_none()) {
        let header = request.segments.iter().rposition(|segment| segment.zone != Zone::History);
        let extended = (1..=chain.len()).rev().find(|k| chain.hashes.get(*k).is_some_and(|hash| ends.contains(hash)));
        let last = request.segments.len().checked_sub(1);
        for at in [header, extended.map(|k| k - 1), last].into_iter().flatten() {
            if let Some(segment) = request.segments.get_mut(at) {
                segment.mark = Some(Mark::FiveMinutes);
            }
        }
    }
    ends.extend(chain.hashes.last());
    request
}
