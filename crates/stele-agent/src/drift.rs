//! What differs between the open epoch and what would be composed now; `price` says what it costs to leave the epoch.
//!
//! A resume keeps the header of the log where it can. What the configuration changed is taken at once; what another
//! release changed waits for the next cut, as long as every tool that the log offers is there and it costs something.
//! A cut of the history takes nothing else by itself: what differs has a reason and a price of its own.

mod price;

use stele_core::{
    By, Epoch, EpochCost, EpochDue, EpochOpened, EpochReason, Header, Record, SegmentDigest, State, Zone,
};

use crate::driver::Driver;
use crate::{Result, compose, request};

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

/// When what differs is taken: of several differences the greatest of these holds for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Taken {
    /// When an epoch opens for another reason.
    AtTheNextCut,
    /// With the next request; the open epoch can be kept instead.
    Now,
    /// With the next request: the open epoch cannot be kept.
    NowOfNecessity,
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
    /// session's first epoch, or for a turn that was taken back or what a provider refused, when that is all.
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
        let cost = self.price_beside_cut(self.state(), &opened)?;
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
        self.price_beside_cut(&state, &opened)
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
        let state = self.state();
        // Another model, or a route that leads elsewhere, opens an epoch by itself; a route that is gone is an error
        // once it is needed.
        match state.next_epoch() {
            None | Some(EpochReason::Undo | EpochReason::Repair) => {}
            Some(reason) if Some(&reason) == state.epoch_due() => {}
            Some(_) => return Ok(None),
        }
        let Ok(opened) = self.composed(state, EpochReason::Initial) else { return Ok(None) };
        let found = differences(epoch, &opened);
        let Some(mut taken) = found.iter().map(|(_, taken)| *taken).max() else { return Ok(None) };
        let Some((reason, _)) = found.into_iter().next() else { return Ok(None) };
        let price = self.price_beside_cut(state, &opened);
        let free = price.as_ref().is_ok_and(|cost| cost.tokens == 0);
        if taken == Taken::AtTheNextCut && (free || state.cut_since().is_some()) {
            taken = Taken::Now;
        }
        let reason = if how == Opened::Forked && taken != Taken::AtTheNextCut { EpochReason::Forked } else { reason };
        Ok(Some(Drift { reason, taken, cost: price.unwrap_or_default() }))
    }

    /// What waits for a cut is taken with one that was just made.
    pub(crate) fn follow_cut(&mut self, by: By) -> Result<()> {
        let cut = self.state().cut_since().is_some();
        let waits = |drift: &&mut Drift| cut && drift.taken == Taken::AtTheNextCut;
        let Some(drift) = self.drift.as_mut().filter(waits) else { return Ok(()) };
        drift.taken = Taken::Now;
        let reason = Some(drift.reason.clone());
        self.append(EpochDue { reason, by })
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

    /// The `epoch/opened` that is owed, without its cost. A cut of the history takes nothing of today but the prices.
    pub(crate) fn composed(&self, state: &State, reason: EpochReason) -> Result<EpochOpened> {
        let epoch = state.epoch();
        let reason = match (reason, epoch) {
            (reason @ (EpochReason::Undo | EpochReason::Repair), Some(epoch)) => {
                match compose::kept(&self.agent, epoch, reason)? {
                    Some(opened) => return Ok(opened),
                    None => EpochReason::Restored,
                }
            }
            (reason, _) => reason,
        };
        let reading = self.agent.options.ledger.read();
        if let Some(error) = &reading.trouble {
            self.warn_of(error);
        }
        compose::epoch(&self.agent, state, self.lineage(), self.folder(), &reading.ledger, reason)
    }
}

/// All that differs, and when each is taken: what costs most of the prompt comes first. What only another release
/// changed waits for a cut.
fn differences(epoch: &Epoch, opened: &EpochOpened) -> Vec<(EpochReason, Taken)> {
    let (old, new) = (&epoch.config, &opened.config);
    let drift = |what: &str| EpochReason::ResumeDrift { what: what.to_owned() };
    let waits = if epoch.version == opened.version { Taken::Now } else { Taken::AtTheNextCut };
    let segments: Vec<SegmentDigest> = opened.segments.iter().map(stele_core::Segment::digest).collect();
    let encoder = (&old.encoder, old.derive_rev) != (&new.encoder, new.derive_rev);
    let tools = other_tools(&epoch.header, &epoch.segments, &segments, opened);
    let system = other_system(&epoch.segments, &segments);
    // A model that takes images after all sees them from the next cut on; one that takes none must not be sent any.
    let images = if new.images.is_noted() { Taken::Now } else { Taken::AtTheNextCut };
    let cache = (old.cache.marks, old.cache.ttl) != (new.cache.marks, new.cache.ttl);
    [
        encoder.then_some((EpochReason::Encoder, Taken::NowOfNecessity)),
        tools.map(|(reason, offered)| match offered {
            Offered::Differently => (reason, waits),
            // The same release has the tool still: it is only not offered any more.
            Offered::NoMore if waits == Taken::Now => (reason, Taken::Now),
            Offered::NoMore => (reason, Taken::NowOfNecessity),
        }),
        system.map(|reason| (reason, waits)),
        (old.parameters != new.parameters).then_some((EpochReason::ParametersChanged, Taken::Now)),
        (old.images != new.images).then(|| (drift("images"), images)),
        cache.then(|| (drift("cache"), Taken::Now)),
        (old.headers != new.headers).then(|| (drift("headers"), Taken::Now)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Whether this build still takes every call that the log's tools allow.
enum Offered {
    Differently,
    NoMore,
}

fn of(segments: &[SegmentDigest], zone: Zone) -> Vec<&SegmentDigest> {
    segments.iter().filter(|segment| segment.zone == zone).collect()
}

/// How the tools differ.
fn other_tools(
    logged: &Header,
    old: &[SegmentDigest],
    new: &[SegmentDigest],
    opened: &EpochOpened,
) -> Option<(EpochReason, Offered)> {
    let (old, new) = (of(old, Zone::Tools), of(new, Zone::Tools));
    if old == new {
        return None;
    }
    let named = |tools: &[&SegmentDigest], name: &str| tools.iter().find(|tool| tool.name == name).copied().cloned();
    let missing = |from: &[&SegmentDigest], among: &[&SegmentDigest]| -> Vec<String> {
        from.iter().filter(|tool| named(among, &tool.name).is_none()).map(|tool| tool.name.clone()).collect()
    };
    let (added, removed) = (missing(&new, &old), missing(&old, &new));
    let changed: Vec<String> = old
        .iter()
        .filter(|tool| named(&new, &tool.name).is_some_and(|new| new != ***tool))
        .map(|tool| tool.name.clone())
        .collect();
    let accepted = removed.is_empty() && changed.iter().all(|name| takes_the_same(logged, opened, name));
    let offered = if accepted { Offered::Differently } else { Offered::NoMore };
    Some((EpochReason::ToolsChanged { added, removed, changed }, offered))
}

/// How the system text differs.
fn other_system(old: &[SegmentDigest], new: &[SegmentDigest]) -> Option<EpochReason> {
    let (old, new) = (of(old, Zone::System), of(new, Zone::System));
    let differs = |from: &[&SegmentDigest], among: &[&SegmentDigest]| -> Vec<String> {
        from.iter().filter(|section| !among.contains(section)).map(|section| section.name.clone()).collect()
    };
    let mut sections = differs(&old, &new);
    sections.extend(differs(&new, &old));
    sections.sort();
    sections.dedup();
    (old != new).then_some(EpochReason::SystemChanged { sections })
}

/// True when a tool's arguments are what the log says: only its description is another one.
fn takes_the_same(logged: &Header, opened: &EpochOpened, name: &str) -> bool {
    let old = logged.tools.iter().find(|tool| tool.name == name);
    let new = opened.segments.iter().find(|segment| segment.zone == Zone::Tools && segment.name == name);
    let new = new.and_then(|segment| serde_json::from_str::<stele_core::ToolSchema>(segment.text.as_str()).ok());
    old.zip(new).is_some_and(|(old, new)| old.parameters.get() == new.parameters.get())
}
