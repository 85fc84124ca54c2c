//! The next request of a session: encoded piece by piece, checked against the one before.

use stele_core::{Hash, PrefixBroken, PromptDigest, Sent, State, Text, Zone};
use stele_provider::Encoder;

use crate::{Error, Result};

/// The encoded requests of the open epoch. Messages are closed, so each is encoded once.
pub(crate) struct Encoded {
    epoch: u32,
    encoder: Encoder,
    /// How much of the surface is encoded.
    surface: usize,
}

/// A request that is ready to be sent.
pub(crate) struct Ready {
    pub(crate) body: Vec<u8>,
    pub(crate) marks: Vec<u64>,
    pub(crate) prompt: PromptDigest,
    pub(crate) broken: Option<PrefixBroken>,
}

/// Brings the encoder up to the state's surface: what is new is encoded, what was sent is kept.
pub(crate) fn update(encoded: &mut Option<Encoded>, state: &State) -> Result<()> {
    let Some(epoch) = state.epoch() else { return Ok(()) };
    if encoded.as_ref().is_none_or(|encoded| encoded.epoch != epoch.n) {
        let encoder = Encoder::new(&epoch.header, &epoch.config).map_err(Error::Request)?;
        *encoded = Some(Encoded { epoch: epoch.n, encoder, surface: 0 });
    }
    if let Some(encoded) = encoded {
        if encoded.surface < state.surface_len() {
            for message in state.messages(encoded.surface) {
                encoded.encoder.push(&message);
            }
            encoded.surface = state.surface_len();
        }
        if let Some(items) = state.previous_items() {
            encoded.encoder.set_previous_items(usize::try_from(items).unwrap_or(usize::MAX));
        }
    }
    Ok(())
}

impl Encoded {
    pub(crate) fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The request, with how it relates to the last one that was sent: `earlier` is the encoder of
    /// the epoch before, when this is an epoch's first request.
    pub(crate) fn ready(&self, sent: Option<&Sent>, earlier: Option<&Self>) -> Ready {
        let broken = sent.and_then(|sent| self.broken(sent));
        let prompt = self.encoder.prompt_digest(self.shared(sent, earlier));
        let body = self.encoder.body();
        Ready { body: body.bytes, marks: body.marks, prompt, broken }
    }

    /// Item bytes that the request before had as well, from the front.
    pub(crate) fn shared(&self, sent: Option<&Sent>, earlier: Option<&Self>) -> u64 {
        match (sent, earlier) {
            (Some(sent), _) if self.extends(sent) => sent.prompt.len,
            (None, Some(earlier)) => {
                let pairs = self.encoder.items().iter().zip(earlier.encoder.items());
                pairs
                    .map(|(item, old)| (self.encoder.item_bytes(item), earlier.encoder.item_bytes(old)))
                    .take_while(|(bytes, old)| bytes == old)
                    .map(|(bytes, _)| bytes.len() as u64)
                    .sum()
            }
            _ => 0,
        }
    }

    /// The prefix check: the items of the last request are the first items of this one.
    fn extends(&self, sent: &Sent) -> bool {
        let items = usize::try_from(sent.prompt.items).unwrap_or(usize::MAX);
        self.encoder.digest_at(items) == Some(sent.prompt.hash)
    }

    /// What is logged of a break. The earlier request's bytes are not at hand; its hash is.
    fn broken(&self, sent: &Sent) -> Option<PrefixBroken> {
        if self.extends(sent) {
            return None;
        }
        let items = self.encoder.items();
        let last = usize::try_from(sent.prompt.items).unwrap_or(usize::MAX).min(items.len()).saturating_sub(1);
        let now = self.encoder.digest_at(last + 1).unwrap_or(Hash::of(b""));
        Some(PrefixBroken {
            item: last as u64,
            zone: items.get(last).map_or(Zone::History, |item| item.zone),
            segment: items.get(last).map(|item| item.label.clone()).unwrap_or_default(),
            before: Text::from(sent.prompt.hash.to_string()),
            after: Text::from(now.to_string()),
        })
    }
}
