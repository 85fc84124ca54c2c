//! What it costs to leave an epoch: the tokens that the provider can read from its cache, and that are sent anew.

use stele_core::{
    Config, EpochCost, EpochOpened, EpochReason, Micros, Millis, OptionalField, Parameters, Price, PromptDigest,
    Record, Sent, State, Wire, Zone,
};
use stele_provider::{Mechanism, WriteBucket};

use crate::driver::Driver;
use crate::request::{self, Encoded};
use crate::{Result, compose};

/// Bytes of a token where the provider has not counted any: 3.6, in tenths.
const TENTHS_OF_BYTES: u64 = 36;

impl Driver {
    /// What it costs to take another header or configuration, beside what a cut of the history costs anyway.
    pub(super) fn price_beside_cut(&self, state: &State, opened: &EpochOpened) -> Result<EpochCost> {
        let whole = self.price_of(state, opened, None)?.0;
        let Some(epoch) = state.epoch().filter(|_| state.cut_since().is_some()) else { return Ok(whole) };
        let Some(kept) = compose::kept(&self.agent, epoch, EpochReason::Undo)? else { return Ok(whole) };
        let anyway = self.price_of(state, &EpochOpened { price: opened.price, ..kept }, None)?.0;
        Ok(EpochCost {
            tokens: whole.tokens.saturating_sub(anyway.tokens),
            money: whole.money.zip(anyway.money).map(|(whole, anyway)| Micros(whole.0.saturating_sub(anyway.0))),
        })
    }

    /// What an epoch would cost, with the encoder of its first request and the one of the last request before, as far
    /// as it could be built; `earlier` is that one, where it is at hand.
    pub(crate) fn price_of(
        &self,
        state: &State,
        opened: &EpochOpened,
        earlier: Option<Encoded>,
    ) -> Result<(EpochCost, Encoded, Option<Encoded>)> {
        let mut after = state.clone();
        let event = opened.clone().into();
        after.fold(&Record { seq: state.next_seq(), ts: self.agent.now(), turn: None, step: None, event });
        let mut encoded = None;
        request::update(&mut encoded, &after)?;
        let Some(encoded) = encoded else { return Err(crate::Error::NothingTo("compose")) };
        let Some((epoch, sent)) =
            state.epoch().and_then(|epoch| Some((epoch, epoch.sent.as_ref().or(epoch.before.as_ref())?)))
        else {
            return Ok((EpochCost::default(), encoded, None));
        };
        // Only a request that the state does not hold any more needs the log.
        let earlier = earlier.or_else(|| request::last(state)).or_else(|| self.rebuilt(sent));
        let now = self.agent.now();
        let before = earlier.as_ref().map_or(0, |earlier| readable(&epoch.config, &opened.config, &encoded, earlier));
        let readable = before.max(left_there(state, &opened.config, &encoded, now));
        let cost = cost(&epoch.config, sent, &Prompt::of(&encoded, readable), opened, now);
        Ok((cost, encoded, earlier))
    }
}

fn rules(config: &Config) -> stele_provider::CacheRules {
    stele_provider::cache_rules(config.wire, &config.base_url, &config.model)
}

/// Whether anything of such requests is cached: by some rules only what is marked is.
fn caches(config: &Config) -> bool {
    rules(config).mechanism != Mechanism::Marks || config.sends(OptionalField::CacheControl)
}

/// Bytes of the new prompt that the provider can read from what it has of the request before.
fn readable(old: &Config, new: &Config, encoded: &Encoded, earlier: &Encoded) -> u64 {
    if (old.wire, &old.base_url, &old.model) != (new.wire, &new.base_url, &new.model) || !caches(new) {
        return 0;
    }
    let keeps = keeps_messages(new, &old.parameters);
    let counts = |zone| keeps || matches!(zone, Zone::Tools | Zone::System);
    match rules(new) {
        rules if rules.mechanism == Mechanism::Marks => encoded.readable_by_marks(earlier, rules.look_back, &counts),
        _ => encoded.shared_with(earlier, &counts),
    }
}

/// Anthropic, prompt caching, what invalidates the cache, 2026-11: how the model thinks and whether it has to call counts
/// for the messages.
fn keeps_messages(new: &Config, old: &Parameters) -> bool {
    let shape = |parameters: &Parameters| (parameters.effort.clone(), parameters.tool_choice.clone());
    new.wire != Wire::AnthropicMessages || shape(old) == shape(&new.parameters)
}

/// Bytes of the new prompt that the provider can read from what it answered with the same model: the longest prompt that is
/// still cached and that the new one goes on with, as after an undo.
fn left_there(state: &State, new: &Config, encoded: &Encoded, now: Millis) -> u64 {
    let Some(left) = state.answered_by(new).filter(|left| keeps_messages(new, &left.parameters)) else { return 0 };
    let rules = rules(new);
    let by_marks = rules.mechanism == Mechanism::Marks;
    if by_marks && !(left.marked && new.sends(OptionalField::CacheControl)) {
        return 0;
    }
    let alive = |at: Millis| rules.lifetime(false).is_none_or(|lifetime| now.since(at) <= lifetime);
    let found = |prompt: &PromptDigest| {
        encoded.begins_with(prompt) && (!by_marks || encoded.looks_back_to(prompt, rules.look_back))
    };
    let last = (left.at, left.prompt);
    let ends = left.ends.iter().chain([&last]);
    ends.filter(|(at, prompt)| alive(*at) && found(prompt)).map(|(_, prompt)| prompt.len).max().unwrap_or(0)
}

/// The new prompt, as far as its price goes.
struct Prompt {
    /// Bytes of all of it.
    len: u64,
    /// Bytes before the history.
    header: u64,
    /// Bytes that the provider can read from what it has of the request before.
    readable: u64,
}

impl Prompt {
    fn of(encoded: &Encoded, readable: u64) -> Self {
        Self { len: encoded.len(), header: encoded.header_len(), readable }
    }
}

/// What the tokens cost more that the request before left in the cache and that are sent anew, and those that are sent
/// anew anyway and are written for longer.
fn cost(old: &Config, sent: &Sent, prompt: &Prompt, opened: &EpochOpened, now: Millis) -> EpochCost {
    let cached = caches(old) && !expired(old, sent, now);
    if !cached && written(old) == written(&opened.config) {
        // It would have been sent anew anyway, and at the same price.
        return EpochCost { tokens: 0, money: Some(Micros(0)) };
    }
    let common = sent.prompt.len.min(prompt.len);
    let readable = if cached { prompt.readable } else { 0 };
    let tokens = |bytes: u64| match sent.input.filter(|_| sent.prompt.len > 0) {
        Some(input) => u128::from(bytes) * u128::from(input) / u128::from(sent.prompt.len),
        None => u128::from(bytes) * 10 / u128::from(TENTHS_OF_BYTES),
    };
    let anew = tokens(common.saturating_sub(readable));
    let header = tokens(common.min(prompt.header).saturating_sub(readable));
    let more = |part: Part| {
        let price = opened.price.as_ref()?;
        let instead = if cached { price.cache_read? } else { billed(price, old, part)? };
        Some(u128::from(billed(price, &opened.config, part)?.saturating_sub(instead)))
    };
    let money = || {
        let sum = header * more(Part::Header)? + (anew - header) * more(Part::History)?;
        u64::try_from(sum / 1_000_000).ok().map(Micros)
    };
    let tokens = if cached { anew } else { 0 };
    EpochCost { tokens: u64::try_from(tokens).unwrap_or(u64::MAX), money: money() }
}

/// Whether the entries of a request have outlived what they were marked for.
fn expired(config: &Config, sent: &Sent, now: Millis) -> bool {
    let idle = now.since(sent.at);
    rules(config).lifetime(config.sends(OptionalField::CacheTtl)).is_some_and(|lifetime| idle > lifetime)
}

/// What decides at which price a prompt is written to the cache: marks, longer life, the vendor's count.
fn written(config: &Config) -> (bool, bool, WriteBucket) {
    let sends = |field| config.sends(field);
    (sends(OptionalField::CacheControl), sends(OptionalField::CacheTtl), rules(config).write)
}

/// A part of the prompt that is kept in the cache for a time of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Tools, system text and preface.
    Header,
    History,
}

/// What a token is billed as that is not read from the cache: as written to it for as long as its mark says, or as fresh
/// input, where nothing is written or that has no price of its own.
fn billed(price: &Price, config: &Config, part: Part) -> Option<u64> {
    let written = match rules(config).write {
        WriteBucket::FiveMinutes if !config.sends(OptionalField::CacheControl) => None,
        WriteBucket::FiveMinutes if part == Part::Header && config.sends(OptionalField::CacheTtl) => {
            price.cache_write_1h
        }
        WriteBucket::FiveMinutes => price.cache_write_5m,
        WriteBucket::Unnamed => price.cache_write,
        WriteBucket::None => None,
    };
    written.or(price.input)
}
