//! Requests: the header they share, the bytes that are sent, and when they are sent again.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use stele_core::{EpochReason, Millis, Phase, Purpose, RequestRetried, RequestSent, Sent, may_send_again, retry};
use stele_provider::Body;

use super::Driver;
use super::answers::Partial;
use super::flight::{InFlight, Update};
use crate::Result;
use crate::drift::Compared;
use crate::request::{self, Encoded, Ready};

impl Driver {
    pub(super) fn compose(&mut self, reason: EpochReason) -> Result<()> {
        let mut opened = self.composed(&self.state, reason)?;
        if self.state.epoch().is_some() {
            // A wire that cannot express the configuration says so before anything is sent.
            // What was encoded and never sent is nothing to compare with.
            let was_sent = self.state.epoch().is_some_and(|epoch| epoch.sent.is_some());
            let at_hand = if was_sent { self.encoded.take() } else { self.earlier.take() };
            let (cost, encoded, earlier) = self.price_of(&self.state, &opened, at_hand)?;
            opened.cost = Some(cost);
            self.earlier = earlier;
            self.encoded = Some(encoded);
        }
        // A cut of the history takes nothing of what differs.
        if !matches!(opened.reason, EpochReason::Undo | EpochReason::Repair) {
            self.drift = None;
        }
        self.append(opened)?;
        request::update(&mut self.encoded, &self.state)
    }

    /// Sends a request, or waits for its time. True when something else is owed first.
    pub(super) fn send(&mut self, key: String, step: u64, attempt: u32, not_before: Option<Millis>) -> Result<bool> {
        if let Some(at) = not_before
            && at > self.agent.now()
        {
            self.wait(key, at, None);
            return Ok(false);
        }
        if !may_send_again(&self.state) {
            self.interrupt(step, attempt)?;
            return Ok(true);
        }
        if self.compare_header()? == Compared::Differs {
            return Ok(true);
        }
        request::update(&mut self.encoded, &self.state)?;
        if let Some(epoch) = self.state.epoch()
            && let (None, None, Some(before)) = (&epoch.sent, &self.earlier, &epoch.before)
        {
            self.earlier = self.rebuilt(before);
        }
        let Some((encoded, epoch)) = self.encoded.as_ref().zip(self.state.epoch()) else { return Ok(false) };
        let ready = encoded.ready(epoch.sent.as_ref(), self.earlier.as_ref());
        let config = epoch.config.clone();
        if let Some(sent) = &epoch.sent
            && encoded.broken(sent, None).is_some()
            && let Some(broken) = encoded.broken(sent, self.rebuilt(sent).as_ref())
        {
            self.append(broken)?;
        }
        let Ready { body, digest, prompt } = ready;
        let Body { pieces, marks } = body;
        self.append(RequestSent { purpose: Purpose::Main, attempt, body: digest, prompt, marks })?;
        self.earlier = None;
        self.partial = Partial::of(step, attempt);
        self.commit()?;
        let agent = Arc::clone(&self.agent);
        let updates = self.updates.0.clone();
        let task = tokio::spawn(async move {
            let deltas = updates.clone();
            let mut on_delta = move |delta| {
                let _ = deltas.send(Update::Delta { step, attempt, delta });
            };
            let outcome = match agent.credential(&config) {
                Ok(credential) => agent.options.client.send(&config, credential.as_ref(), pieces, &mut on_delta).await,
                Err(failure) => Err(failure),
            };
            let _ = updates.send(Update::Answered { step, attempt, outcome: Box::new(outcome) });
        });
        self.in_flight.insert(key, InFlight::Attempt(task.abort_handle()));
        Ok(false)
    }

    /// An earlier request, built again from the log alone.
    pub(crate) fn rebuilt(&self, sent: &Sent) -> Option<Encoded> {
        // A fork of which nothing is stored yet has sent nothing of its own.
        let parent = self.writer.parent().filter(|_| !self.stored);
        let session = parent.map_or(&self.session, |parent| &parent.session);
        let state = crate::open::fold(self.agent.store(), session, sent.seq.before()).ok()?;
        let mut encoded = None;
        request::update(&mut encoded, &state).ok()?;
        encoded
    }

    pub(super) fn back_off(&mut self, step: u64, attempt: u32) -> Result<()> {
        let wait = self.state.step().filter(|open| open.number == step).and_then(|open| {
            let Phase::Failed { failure, .. } = &open.phase else { return None };
            let draw = RandomState::new().build_hasher().finish();
            retry::next(failure, open.failed + open.failed_after_output, open.failed_after_output, draw)
        });
        let at = Millis(self.agent.now().0.saturating_add_unsigned(wait.unwrap_or(0)));
        self.append(RequestRetried { attempt: attempt + 1, at })
    }
}
