//! What differs between the open epoch and what would be composed now, and what it costs to leave the epoch.
//!
//! A resume keeps the header of the log where it can. What the configuration changed is taken at once; what another
//! release changed waits for the next cut, as long as every tool that the log offers is there and the provider's cache
//! still lives.

use stele_core::{
    By, Config, EpochCost, EpochDue, EpochOpened, EpochReason, Header, Micros, Record, SegmentDigest, Sent, State,
    Wire, Zone,
};

use crate::driver::Driver;
use crate::request::{self, Encoded};
use crate::{Result, compose};

/// Bytes of a token where the provider has not counted any: 3.6, in tenths.
const TENTHS_OF_BYTES: u64 = 36;

/// What differs, and when it is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// What differs.
    pub reason: EpochReason,
    /// When the new one is taken.
    pub taken: Taken,
    /// What taking it at once costs.
    pub cost: EpochCost,
}

/// When a header that differs is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// With the next request; the open epoch can be kept instead.
    Now,
    /// With the next request: the open epoch cannot be kept.
    NowOfNecessity,
    /// When an epoch opens for another reason.
    AtTheNextCut,
}

/// Whether the folded header is the one that the log describes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compared {
    Same,
    Differs,
}

/// How a session was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    Resumed,
    Forked,
}

impl Driver {
    /// What differs between the open epoch and what would be composed now, as it was found when the session was opened.
    #[must_use]
    pub fn drift(&self) -> Option<&Drift> {
        self.drift.as_ref()
    }

    /// What the next request opens an epoch for and what that costs; nothing when it opens none, and nothing for a
    /// session's first epoch, for a turn that was taken back, or for what a provider refused.
    ///
    /// # Errors
    /// The route is not configured, or cannot express the configuration.
    pub fn next_cut(&self) -> Result<Option<Drift>> {
        let reason = match self.state().next_epoch() {
            None | Some(EpochReason::Initial | EpochReason::Undo | EpochReason::Repair) => return Ok(None),
            Some(reason) => reason,
        };
        let taken = match &self.drift {
            Some(drift) if drift.reason == reason => drift.taken,
            _ if matches!(reason, EpochReason::ModelChanged) => Taken::Now,
            _ => Taken::NowOfNecessity,
        };
        let opened = self.composed(self.state(), reason.clone())?;
        let cost = self.price_of(self.state(), &opened, None)?.0;
        Ok(Some(Drift { reason, taken, cost }))
    }

    /// What it would cost to go on with another route or model.
    ///
    /// # Errors
    /// The route is not configured, or cannot express the configuration.
    pub fn model_cost(&self, route: &str, model: &str) -> Result<EpochCost> {
        let mut state = self.state().clone();
        let event = self.model_set(route, model, By(String::new()))?.into();
        state.fold(&Record { seq: state.next_seq(), ts: self.agent.now(), turn: None, step: None, event });
        if state.epoch().is_none() || state.next_epoch().is_none() {
            return Ok(EpochCost::default());
        }
        let opened = self.composed(&state, EpochReason::ModelChanged)?;
        Ok(self.price_of(&state, &opened, None)?.0)
    }

    /// Keeps the open epoch, where it can be kept: what differs is taken at the next cut.
    ///
    /// # Errors
    /// The event cannot be written.
    pub(crate) fn keep_epoch(&mut self, by: By) -> Result<()> {
        let Some(drift) = self.drift.as_mut().filter(|drift| drift.taken == Taken::Now) else { return Ok(()) };
        drift.taken = Taken::AtTheNextCut;
        self.append(EpochDue { reason: None, by })
    }

    /// Looks for what differs, and says in the log what the next epoch is for.
    pub(crate) fn follow_header(&mut self, opened: Opened) -> Result<()> {
        self.drift = self.find_drift(opened)?;
        let now = self.drift.as_ref().filter(|drift| drift.taken != Taken::AtTheNextCut);
        let reason = now.map(|drift| drift.reason.clone());
        if self.state().epoch_due() != reason.as_ref() {
            let by = By(if opened == Opened::Forked { "fork" } else { "resume" }.to_owned());
            return self.append(EpochDue { reason, by });
        }
        Ok(())
    }

    fn find_drift(&self, how: Opened) -> Result<Option<Drift>> {
        let Some(epoch) = self.state().epoch() else { return Ok(None) };
        // Another model, or a route that leads elsewhere, opens an epoch by itself; a route that is gone is an error
        // once it is needed.
        if self.state().next_epoch().is_some_and(|reason| Some(&reason) != self.state().epoch_due()) {
            return Ok(None);
        }
        let Ok(opened) = self.composed(self.state(), EpochReason::Initial) else { return Ok(None) };
        let same_release = epoch.version == opened.version;
        let lifetime = rules(&epoch.config).lifetime(epoch.config.cache.ttl == stele_core::CacheTtl::Hour);
        let last = epoch.sent.as_ref().or(epoch.before.as_ref());
        let idle = last.and_then(|sent| u64::try_from(self.agent.now().0 - sent.at.0).ok());
        let expired = last.is_none() || idle.zip(lifetime).is_some_and(|(idle, lifetime)| idle > lifetime);
        let found = configured(&epoch.config, &opened.config).or_else(|| {
            let (reason, accepted) = header(&epoch.header, &epoch.segments, &opened)?;
            let taken = match (same_release, accepted) {
                (true, _) => Taken::Now,
                (false, false) => Taken::NowOfNecessity,
                (false, true) if expired => Taken::Now,
                (false, true) => Taken::AtTheNextCut,
            };
            Some((reason, taken))
        });
        let Some((reason, taken)) = found else { return Ok(None) };
        let reason = if how == Opened::Forked && taken != Taken::AtTheNextCut { EpochReason::Forked } else { reason };
        let cost = self.price_of(self.state(), &opened, None).map(|(cost, ..)| cost).unwrap_or_default();
        Ok(Some(Drift { reason, taken, cost }))
    }

    /// Compares the header that was folded with what the log says of it. A header that is not the one described would
    /// give requests that nobody can build again: it is composed anew, and the run goes on.
    pub(crate) fn compare_header(&mut self) -> Result<Compared> {
        let Some(epoch) = self.state().epoch().filter(|epoch| self.compared != Some(epoch.n)) else {
            return Ok(Compared::Same);
        };
        // One that was composed just now and differs all the same would differ again.
        let (n, again) = (epoch.n, epoch.reason == EpochReason::Restored);
        let broken = request::broken_header(epoch);
        self.compared = Some(n);
        let Some(broken) = broken else { return Ok(Compared::Same) };
        self.append(broken)?;
        if again {
            return Ok(Compared::Same);
        }
        self.append(EpochDue { reason: Some(EpochReason::Restored), by: By("fold".to_owned()) })?;
        Ok(Compared::Differs)
    }

    pub(crate) fn composed(&self, state: &State, reason: EpochReason) -> Result<EpochOpened> {
        let reading = self.agent.options.ledger.read();
        if let Some(error) = &reading.trouble {
            self.warn_of(error);
        }
        compose::epoch(&self.agent, state, self.lineage(), self.folder(), &reading.ledger, reason)
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
        let earlier = earlier.or_else(|| self.rebuilt(sent));
        let readable = earlier.as_ref().map_or(0, |earlier| readable(&epoch.config, &opened.config, &encoded, earlier));
        let cost = cost(&epoch.config, sent, encoded.len(), readable, opened, self.agent.now().0);
        Ok((cost, encoded, earlier))
    }
}

/// What the configuration says differently about everything but tools and system. Facts about a dialect come with the
/// release and wait for the next cut.
fn configured(old: &Config, new: &Config) -> Option<(EpochReason, Taken)> {
    let drift = |what: &str| EpochReason::ResumeDrift { what: what.to_owned() };
    if (&old.encoder, old.derive_rev) != (&new.encoder, new.derive_rev) {
        return Some((EpochReason::Encoder, Taken::NowOfNecessity));
    }
    if old.parameters != new.parameters {
        return Some((EpochReason::ParametersChanged, Taken::Now));
    }
    if (old.cache.marks, old.cache.ttl) != (new.cache.marks, new.cache.ttl) {
        return Some((drift("cache"), Taken::Now));
    }
    if old.headers != new.headers {
        return Some((drift("headers"), Taken::Now));
    }
    // A model that takes images after all sees them from the next cut on; one that takes none must not be sent any.
    let taken = if new.images.is_noted() { Taken::Now } else { Taken::AtTheNextCut };
    (old.images != new.images).then(|| (drift("images"), taken))
}

/// How tools and system differ, and whether this build still accepts every tool that the log offers.
fn header(logged: &Header, segments: &[SegmentDigest], opened: &EpochOpened) -> Option<(EpochReason, bool)> {
    let new: Vec<SegmentDigest> = opened.segments.iter().map(stele_core::Segment::digest).collect();
    let of = |segments: &[SegmentDigest], zone: Zone| -> Vec<SegmentDigest> {
        segments.iter().filter(|segment| segment.zone == zone).cloned().collect()
    };
    let (old_tools, new_tools) = (of(segments, Zone::Tools), of(&new, Zone::Tools));
    if old_tools != new_tools {
        let named = |tools: &[SegmentDigest], name: &str| tools.iter().find(|tool| tool.name == name).cloned();
        let missing = |from: &[SegmentDigest], among: &[SegmentDigest]| -> Vec<String> {
            from.iter().filter(|tool| named(among, &tool.name).is_none()).map(|tool| tool.name.clone()).collect()
        };
        let (added, removed) = (missing(&new_tools, &old_tools), missing(&old_tools, &new_tools));
        let changed: Vec<String> = old_tools
            .iter()
            .filter(|tool| named(&new_tools, &tool.name).is_some_and(|new| new != **tool))
            .map(|tool| tool.name.clone())
            .collect();
        let accepted = removed.is_empty() && changed.iter().all(|name| takes_the_same(logged, opened, name));
        return Some((EpochReason::ToolsChanged { added, removed, changed }, accepted));
    }
    let (old, new) = (of(segments, Zone::System), of(&new, Zone::System));
    let differs = |from: &[SegmentDigest], among: &[SegmentDigest]| -> Vec<String> {
        from.iter().filter(|section| !among.contains(section)).map(|section| section.name.clone()).collect()
    };
    let mut sections = differs(&old, &new);
    sections.extend(differs(&new, &old));
    sections.sort();
    sections.dedup();
    (old != new).then_some((EpochReason::SystemChanged { sections }, true))
}

/// True when a tool's arguments are what the log says: only its description is another one.
fn takes_the_same(logged: &Header, opened: &EpochOpened, name: &str) -> bool {
    let old = logged.tools.iter().find(|tool| tool.name == name);
    let new = opened.segments.iter().find(|segment| segment.zone == Zone::Tools && segment.name == name);
    let new = new.and_then(|segment| serde_json::from_str::<stele_core::ToolSchema>(segment.text.as_str()).ok());
    old.zip(new).is_some_and(|(old, new)| old.parameters.get() == new.parameters.get())
}

fn rules(config: &Config) -> stele_provider::CacheRules {
    stele_provider::cache_rules(config.wire, &config.base_url, &config.model)
}

/// Bytes of the new prompt that the provider can read from what it has of the earlier one.
fn readable(old: &Config, new: &Config, encoded: &Encoded, earlier: &Encoded) -> u64 {
    if (old.wire, &old.base_url, &old.model) != (new.wire, &new.base_url, &new.model) {
        return 0;
    }
    // Anthropic, prompt caching, what invalidates the cache, 2026-11: how the model thinks counts for the messages.
    let thinking = new.wire == Wire::AnthropicMessages && old.parameters.effort != new.parameters.effort;
    encoded.shared_with(earlier, &|zone| !thinking || matches!(zone, Zone::Tools | Zone::System))
}

/// Tokens that the request before left in the cache and that are sent fresh, at the difference of the new route's prices.
fn cost(old: &Config, sent: &Sent, len: u64, readable: u64, opened: &EpochOpened, now: i64) -> EpochCost {
    let rules = rules(old);
    let idle = u64::try_from(now - sent.at.0).unwrap_or(0);
    if rules.lifetime(old.cache.ttl == stele_core::CacheTtl::Hour).is_some_and(|lifetime| idle > lifetime) {
        // It would have been sent fresh anyway.
        return EpochCost { tokens: 0, money: Some(Micros(0)) };
    }
    let bytes = sent.prompt.len.min(len).saturating_sub(readable);
    let tokens = match sent.input.filter(|_| sent.prompt.len > 0) {
        Some(input) => u128::from(bytes) * u128::from(input) / u128::from(sent.prompt.len),
        None => u128::from(bytes) * 10 / u128::from(TENTHS_OF_BYTES),
    };
    let more = opened.price.and_then(|price| price.input?.checked_sub(price.cache_read?));
    let money = more.and_then(|more| u64::try_from(tokens * u128::from(more) / 1_000_000).ok()).map(Micros);
    EpochCost { tokens: u64::try_from(tokens).unwrap_or(u64::MAX), money }
}
