//! The next request of a session: encoded piece by piece, checked against the one before.

use std::collections::BTreeSet;

use stele_core::{
    BodyDigest, Epoch, OptionalField, PrefixBroken, PromptDigest, SegmentDigest, Sent, State, Text, Zone,
};
use stele_provider::{Body, Encoder};

use crate::{Error, Result};

/// The encoded requests of the open epoch. Messages are closed, so each is encoded once.
pub(crate) struct Encoded {
    epoch: u32,
    /// Optional fields that it leaves out; an endpoint may refuse more of them inside an epoch.
    withheld: BTreeSet<OptionalField>,
    encoder: Encoder,
    /// How much of the surface is encoded.
    surface: usize,
}

/// A request that is ready to be sent.
pub(crate) struct Ready {
    /// The bytes to send.
    pub(crate) body: Body,
    /// Their hash and length.
    pub(crate) digest: BodyDigest,
    pub(crate) prompt: PromptDigest,
}

/// Brings the encoder up to the state's surface: what is new is encoded, what was sent is kept.
pub(crate) fn update(encoded: &mut Option<Encoded>, state: &State) -> Result<()> {
    extend(encoded, state)?;
    if let Some(encoded) = encoded {
        encoded.encoder.mark_ends_of(&state.earlier_prompts());
    }
    Ok(())
}

/// Encodes what is new on the surface.
fn extend(encoded: &mut Option<Encoded>, state: &State) -> Result<()> {
    let Some(epoch) = state.epoch() else { return Ok(()) };
    if encoded.as_ref().is_none_or(|encoded| !encoded.is_of(epoch)) {
        let encoder = Encoder::new(&epoch.header, &epoch.config).map_err(Error::Request)?;
        *encoded = Some(Encoded { epoch: epoch.n, withheld: epoch.config.withheld.clone(), encoder, surface: 0 });
    }
    if let Some(encoded) = encoded
        && encoded.surface < state.surface_len()
    {
        // What the last request ended with is compared in a moment.
        if let Some(sent) = &epoch.sent {
            encoded.encoder.keep_digest_at(count(sent.prompt.items));
        }
        state.each_message(encoded.surface, &mut |message| encoded.encoder.push(&message));
        encoded.surface = state.surface_len();
    }
    Ok(())
}

/// The requests of a log, encoded while it is folded.
#[derive(Default)]
pub(crate) struct Along {
    encoded: Option<Encoded>,
    /// Length of the surface when the encoder was begun.
    begun: usize,
}

impl Along {
    /// Brings the encoder up to a request that was sent, before that is folded. In a log of many epochs it is begun anew
    /// only where the history is twice as long as the last time; else all of it would be encoded over and over.
    pub(crate) fn sent(&mut self, state: &State) {
        let Some(epoch) = state.epoch() else { return };
        if self.encoded.as_ref().is_none_or(|encoded| !encoded.is_of(epoch)) {
            self.encoded = None;
            if state.surface_len() < 2 * self.begun {
                return;
            }
            self.begun = state.surface_len();
        }
        // What cannot be encoded here is an error once it is needed.
        if extend(&mut self.encoded, state).is_err() {
            self.encoded = None;
        }
    }

    /// The last request, where it is at hand.
    pub(crate) fn last(self, state: &State) -> Option<Encoded> {
        self.encoded.filter(|encoded| state.epoch().is_some_and(|epoch| encoded.is_of(epoch)))
    }
}

/// The last request of the open epoch, from what the state holds of it; nothing where it holds that no more.
pub(crate) fn last(state: &State) -> Option<Encoded> {
    let epoch = state.epoch()?;
    let sent = epoch.sent.as_ref()?;
    let mut encoder = Encoder::new(&epoch.header, &epoch.config).ok()?;
    state.each_message_sent(&mut |message| encoder.push(&message));
    let withheld = epoch.config.withheld.clone();
    let mut encoded = Encoded { epoch: epoch.n, withheld, encoder, surface: sent.surface };
    encoded.encoder.mark_ends_of(&sent.earlier);
    (encoded.encoder.prompt_digest(0).hash == sent.prompt.hash).then_some(encoded)
}

impl Encoded {
    fn is_of(&self, epoch: &Epoch) -> bool {
        self.epoch == epoch.n && self.withheld == epoch.config.withheld
    }

    pub(crate) fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The request, with how it relates to the last one that was sent: `earlier` is the encoder of
    /// the epoch before, when this is an epoch's first request.
    pub(crate) fn ready(&self, sent: Option<&Sent>, earlier: Option<&Self>) -> Ready {
        let prompt = self.encoder.prompt_digest(self.shared(sent, earlier));
        Ready { body: self.encoder.body(), digest: self.encoder.body_digest(), prompt }
    }

    /// Item bytes that the request before had as well, from the front.
    pub(crate) fn shared(&self, sent: Option<&Sent>, earlier: Option<&Self>) -> u64 {
        match (sent, earlier) {
            (Some(sent), _) if self.extends(sent) => sent.prompt.len,
            (None, Some(earlier)) => self.shared_with(earlier, &|_| true),
            _ => 0,
        }
    }

    /// Item bytes that an earlier request had as well, from the front, as long as they stand in a zone that counts.
    pub(crate) fn shared_with(&self, earlier: &Self, counts: &dyn Fn(Zone) -> bool) -> u64 {
        let pairs = self.encoder.items().iter().zip(earlier.encoder.items());
        pairs
            .take_while(|(item, _)| counts(item.zone))
            .map(|(item, old)| (self.encoder.item_bytes(item), earlier.encoder.item_bytes(old)))
            .take_while(|(bytes, old)| bytes == old)
            .map(|(bytes, _)| bytes.len() as u64)
            .sum()
    }

    /// Of the item bytes that an earlier request had as well those that can be read by marks: up to the last item of them
    /// that the earlier one marked and a mark of this one looks back to, over so many items.
    pub(crate) fn readable_by_marks(&self, earlier: &Self, look_back: usize, counts: &dyn Fn(Zone) -> bool) -> u64 {
        let shared = self.shared_with(earlier, counts);
        let entries = earlier.encoder.marks().into_iter().filter(|entry| self.finds(*entry, look_back));
        let up_to = |entry: usize| earlier.len_of(entry + 1);
        entries.map(up_to).filter(|bytes| *bytes <= shared).max().unwrap_or(0)
    }

    /// Whether a mark of this one finds an entry that ends with an item, looking back over so many.
    fn finds(&self, item: usize, look_back: usize) -> bool {
        self.encoder.marks().iter().any(|mark| (item..item + look_back).contains(mark))
    }

    /// Whether a mark of this one finds an entry where an earlier prompt ended.
    pub(crate) fn looks_back_to(&self, prompt: &PromptDigest, look_back: usize) -> bool {
        count(prompt.items).checked_sub(1).is_some_and(|last| self.finds(last, look_back))
    }

    /// Bytes of the first items.
    fn len_of(&self, items: usize) -> u64 {
        let items = self.encoder.items().iter().take(items);
        items.map(|item| self.encoder.item_bytes(item).len() as u64).sum()
    }

    /// Bytes of the items before the history.
    pub(crate) fn header_len(&self) -> u64 {
        let header = self.encoder.items().iter().take_while(|item| item.zone != Zone::History);
        self.len_of(header.count())
    }

    /// Bytes of all items.
    pub(crate) fn len(&self) -> u64 {
        self.encoder.prompt_digest(0).len
    }

    /// The prefix check: the items of the last request are the first items of this one.
    fn extends(&self, sent: &Sent) -> bool {
        self.begins_with(&sent.prompt)
    }

    /// Whether all items of an earlier prompt are the first items of this one.
    pub(crate) fn begins_with(&self, prompt: &PromptDigest) -> bool {
        self.encoder.begins_with(prompt)
    }

    /// What is logged of a break: the first item that differs, with the bytes around the difference,
    /// from `before`, the earlier request built again from the log.
    pub(crate) fn broken(&self, sent: &Sent, before: Option<&Self>) -> Option<PrefixBroken> {
        if self.extends(sent) {
            return None;
        }
        let now = &self.encoder;
        let last = count(sent.prompt.items).saturating_sub(1);
        let old = |at: usize| {
            let encoder = &before?.encoder;
            encoder.items().get(at).map(|item| encoder.item_bytes(item))
        };
        let new = |at: usize| now.items().get(at).map(|item| now.item_bytes(item)).unwrap_or_default();
        let at = (0..=last).find(|at| old(*at).is_some_and(|bytes| bytes != new(*at))).unwrap_or(last);
        let (old, new) = (old(at).unwrap_or_default(), new(at));
        let differs = old.iter().zip(&*new).take_while(|(one, other)| one == other).count();
        let item = now.items().get(at);
        Some(PrefixBroken {
            item: at as u64,
            zone: item.map_or(Zone::History, |item| item.zone),
            segment: item.map(stele_provider::Item::label).unwrap_or_default(),
            before: excerpt(&old, differs),
            after: excerpt(&new, differs),
        })
    }
}

/// What differs between an epoch's header as it was folded and as the log describes it, if anything.
pub(crate) fn broken_header(epoch: &Epoch) -> Option<PrefixBroken> {
    let folded = epoch.header.digests();
    let described = epoch.segments.len().max(folded.len());
    let at = (0..described).find(|at| folded.get(*at) != epoch.segments.get(*at))?;
    let segment = epoch.segments.get(at).or_else(|| folded.get(at));
    let told = |segment: Option<&SegmentDigest>| {
        segment.map_or_else(String::new, |segment| format!("{} {} {} bytes", segment.name, segment.hash, segment.len))
    };
    Some(PrefixBroken {
        item: at as u64,
        zone: segment.map_or(Zone::Tools, |segment| segment.zone),
        segment: segment.map(|segment| segment.name.clone()).unwrap_or_default(),
        before: told(epoch.segments.get(at)).into(),
        after: told(folded.get(at)).into(),
    })
}

fn count(items: u64) -> usize {
    usize::try_from(items).unwrap_or(usize::MAX)
}

/// The text around a place.
fn excerpt(bytes: &[u8], at: usize) -> Text {
    let range = at.saturating_sub(40)..(at + 80).min(bytes.len());
    Text::from(String::from_utf8_lossy(bytes.get(range).unwrap_or_default()).into_owned())
}

#[cfg(test)]
mod tests {
    use stele_core::{
        Config, EpochOpened, EpochReason, Event, Header, Message, Millis, Parameters, Part, Record, Source,
        StepStarted, TurnStarted, UserBlock, UserMessage, Wire, partial_answer,
    };

    use super::*;

    fn fold(state: &mut State, event: impl Into<Event>) {
        let record = Record::next(state, Millis(1), event.into());
        state.fold(&record);
    }

    fn say(state: &mut State, text: &str) {
        fold(state, UserMessage { item: None, source: Source::Person, content: vec![Part::text(text)] });
    }

    fn config(wire: Wire) -> Config {
        Config {
            route: "r".into(),
            wire,
            base_url: "http://127.0.0.1:1".into(),
            model: "m".into(),
            encoder: stele_provider::revision(wire).into(),
            derive_rev: stele_core::derive_rev(wire),
            withheld: BTreeSet::new(),
            parameters: Parameters { max_output_tokens: Some(1), ..Parameters::default() },
            cache: Default::default(),
            dialect: None,
            images: Default::default(),
            headers: Default::default(),
        }
    }

    fn open(state: &mut State, n: u32) {
        let config = config(Wire::OpenaiChat);
        let opened = EpochOpened {
            n,
            reason: EpochReason::ModelChanged,
            version: String::new(),
            cost: None,
            segments: Vec::new(),
            config: Box::new(config),
            price: None,
            max_output: None,
        };
        fold(state, opened);
    }

    #[test]
    fn what_is_encoded_along_is_what_is_encoded_afterwards() {
        let (mut state, mut along) = (State::new(), Along::default());
        fold(&mut state, TurnStarted { limits: Default::default() });
        open(&mut state, 1);
        fold(&mut state, StepStarted {});
        for text in ["one", "two", "three"] {
            say(&mut state, text);
            along.sent(&state);
            let answer = partial_answer(&state, 1, "Yes.", None);
            fold(&mut state, answer);
        }
        let (mut along, mut afterwards) = (along.last(&state), None);
        for encoded in [&mut along, &mut afterwards] {
            update(encoded, &state).unwrap();
        }
        let [along, afterwards] = [along, afterwards].map(|encoded| encoded.unwrap().encoder().body().to_vec());
        assert!(along == afterwards && along.ends_with(br#""Yes."}]}"#));
    }

    #[test]
    fn a_mark_reads_what_ends_as_far_before_it_as_the_provider_looks_back() {
        let encoded = |blocks: usize| {
            let encoder = Encoder::new(&Header::default(), &config(Wire::AnthropicMessages)).unwrap();
            let mut encoded = Encoded { epoch: 1, withheld: BTreeSet::new(), encoder, surface: 0 };
            let say = |at: usize| UserBlock::Text(at.to_string().into());
            encoded.encoder.push(&Message::User(vec![say(0)]));
            (1..=blocks).for_each(|at| encoded.encoder.push(&Message::User(vec![say(at)])));
            encoded
        };
        let before = encoded(0);
        let read = |blocks| encoded(blocks).readable_by_marks(&before, 20, &|_| true);
        assert_eq!([read(1), read(19), read(20)], [before.len(), before.len(), 0]);
    }

    #[test]
    fn a_log_of_many_epochs_is_not_encoded_over_and_over() {
        let (mut state, mut along, mut begun) = (State::new(), Along::default(), 0);
        for n in 1..=64 {
            open(&mut state, n);
            say(&mut state, "more");
            along.sent(&state);
            begun += usize::from(along.encoded.is_some());
        }
        assert_eq!(begun, 7);
        open(&mut state, 65);
        assert!(along.last(&state).is_none());
    }
}
