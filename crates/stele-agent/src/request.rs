//! The next request of a session: encoded piece by piece, checked against the one before.

use stele_core::{PrefixBroken, PromptDigest, Sent, State, Text, Zone};
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
        let prompt = self.encoder.prompt_digest(self.shared(sent, earlier));
        let body = self.encoder.body();
        Ready { body: body.bytes, marks: body.marks, prompt }
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

    /// What is logged of a break: the first item that differs, with the bytes around the difference,
    /// from `before`, the earlier request built again from the log.
    pub(crate) fn broken(&self, sent: &Sent, before: Option<&Self>) -> Option<PrefixBroken> {
        if self.extends(sent) {
            return None;
        }
        let now = &self.encoder;
        let last = usize::try_from(sent.prompt.items).unwrap_or(usize::MAX).saturating_sub(1);
        let old = |at: usize| {
            let encoder = &before?.encoder;
            encoder.items().get(at).map(|item| encoder.item_bytes(item))
        };
        let new = |at: usize| now.items().get(at).map_or(&[][..], |item| now.item_bytes(item));
        let at = (0..=last).find(|at| old(*at).is_some_and(|bytes| bytes != new(*at))).unwrap_or(last);
        let (old, new) = (old(at).unwrap_or_default(), new(at));
        let differs = old.iter().zip(new).take_while(|(one, other)| one == other).count();
        let item = now.items().get(at);
        Some(PrefixBroken {
            item: at as u64,
            zone: item.map_or(Zone::History, |item| item.zone),
            segment: item.map(|item| item.label.clone()).unwrap_or_default(),
            before: excerpt(old, differs),
            after: excerpt(new, differs),
        })
    }
}

/// The text around a place.
fn excerpt(bytes: &[u8], at: usize) -> Text {
    let range = at.saturating_sub(40)..(at + 80).min(bytes.len());
    Text::from(String::from_utf8_lossy(bytes.get(range).unwrap_or_default()).into_owned())
}
