//! Which requests belong to one conversation, and where each one leaves the request it extends.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use stele_core::{Hash, Zone};

use crate::emulate::{Chain, common_prefix};
use crate::prompt::{Context, Segment};
use crate::record::Recorded;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A step of a conversation.
    Main,
    /// A title, a summary or another small request on the side: it declares no tools, while the same client's other
    /// requests do.
    Side,
}

/// How far a request goes along with an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// Index of the earlier request.
    pub(crate) index: usize,
    /// Segments that both share.
    pub(crate) segments: usize,
    /// Bytes that both share, those within the first segment that differs included.
    pub(crate) bytes: u64,
    /// Whether the earlier prompt is left before its end although its conversation goes on.
    pub(crate) broken: bool,
    /// Whether it belongs to the same conversation.
    pub(crate) same_conversation: bool,
}

/// Where a request stands among the others.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) kind: Kind,
    /// Index of the first request of its conversation; absent for a side request.
    pub(crate) conversation: Option<usize>,
    pub(crate) reference: Option<Reference>,
}

/// Requests of a conversation that are compared, counted from the latest.
const COMPARED: usize = 512;

/// The requests with their places. `requests` are in the order in which they were sent.
pub(crate) struct Lineage {
    pub(crate) chains: Vec<Chain>,
    pub(crate) places: Vec<Place>,
}

#[derive(Default)]
struct Conversation {
    members: Vec<usize>,
}

impl Lineage {
    pub(crate) fn trace(requests: &[&Recorded]) -> Self {
        let with_tools: HashSet<(&str, &str, Option<&str>)> =
            requests.iter().filter(|request| has_tools(request)).map(|request| client(request)).collect();
        let mut tracer = Tracer {
            requests,
            chains: Vec::new(),
            plain: Vec::new(),
            longest: HashMap::new(),
            conversations: Vec::new(),
        };
        let mut places: Vec<Place> = Vec::with_capacity(requests.len());
        for (index, request) in requests.iter().enumerate() {
            tracer
                .chains
                .push(Chain::new(&[request.wire.name(), &request.base_url, &request.model], &request.segments));
            tracer.plain.push(Chain::new(&[request.wire.name(), &request.base_url], &request.segments));
            let side = request.session.is_none() && !has_tools(request) && with_tools.contains(&client(request));
            let place = if side {
                Place { kind: Kind::Side, conversation: None, reference: None }
            } else {
                tracer.place(index)
            };
            if place.kind == Kind::Main && request.is_answered() {
                let chain = &tracer.plain[index];
                chain.hashes.iter().for_each(|hash| {
                    tracer.longest.insert(*hash, index);
                });
            }
            places.push(place);
        }
        Self { chains: tracer.chains, places }
    }
}

struct Tracer<'a> {
    requests: &'a [&'a Recorded],
    /// With the model.
    chains: Vec<Chain>,
    /// Without it.
    plain: Vec<Chain>,
    /// The latest request that begins with a prefix, whatever its model.
    longest: HashMap<Hash, usize>,
    conversations: Vec<Conversation>,
}

impl Tracer<'_> {
    fn place(&mut self, index: usize) -> Place {
        let request = self.requests[index];
        let found = if request.context == Context::Continued { None } else { self.conversation(index) };
        let reference = match found {
            Some(found) => self.within(index, found),
            None => self.elsewhere(index),
        };
        let conversation = found.unwrap_or_else(|| {
            self.conversations.push(Conversation::default());
            self.conversations.len() - 1
        });
        let members = &mut self.conversations[conversation].members;
        members.push(index);
        Place { kind: Kind::Main, conversation: members.first().copied(), reference }
    }

    /// The conversation that a request continues, as a position in the list.
    fn conversation(&self, index: usize) -> Option<usize> {
        let request = self.requests[index];
        if let Some(session) = &request.session {
            let first = |conversation: &Conversation| conversation.members.first().copied();
            let known = |at: usize| self.requests[at].session.as_ref() == Some(session);
            return self.conversations.iter().position(|conversation| first(conversation).is_some_and(known));
        }
        let candidates = || {
            self.conversations.iter().enumerate().rev().filter_map(|(at, conversation)| {
                let last = *conversation.members.last()?;
                let earlier = self.requests[last];
                (earlier.wire == request.wire && earlier.base_url == request.base_url).then_some((
                    at,
                    conversation,
                    last,
                ))
            })
        };
        let first = request.segments.iter().position(|segment| segment.zone == Zone::History);
        let header = first.unwrap_or(request.segments.len());
        let opening = header + opening(request);
        // By its beginning: it shares an answer with one of the conversation's requests, or extends one as a whole. What
        // stands before the first answer proves nothing, since agents begin each session with the same block.
        let by_prefix = candidates()
            .map(|(at, conversation, _)| {
                let longest = conversation.members.iter().rev().take(COMPARED).map(|member| {
                    let (shared, earlier) = (self.plain[index].shared(&self.plain[*member]), self.requests[*member]);
                    let needed = if earlier.model == request.model { 1 } else { 2 };
                    let continues = shared > opening || shared == earlier.segments.len();
                    (shared >= header + needed && continues).then_some(shared)
                });
                (longest.flatten().max(), at)
            })
            .filter(|(shared, _)| shared.is_some())
            .max_by_key(|(shared, at)| (*shared, *at));
        if let Some((_, at)) = by_prefix {
            return Some(at);
        }
        // By what its history holds, when something before it has changed.
        let own: HashSet<Hash> = history(request).map(block_hash).collect();
        let by_content = candidates().filter_map(|(at, _, last)| {
            let earlier = self.requests[last];
            let before: Vec<Hash> = telling(earlier).map(block_hash).collect();
            let kept = before.iter().filter(|hash| own.contains(*hash)).count();
            let needed = if earlier.model == request.model { 1 } else { 2 };
            (kept >= needed && kept * 2 >= before.len().min(own.len())).then_some((kept, at))
        });
        if let Some((_, at)) = by_content.max() {
            return Some(at);
        }
        // By the likeness of its opening, once there is an answer after it.
        candidates()
            .find(|(_, _, last)| {
                let earlier = self.requests[*last];
                let (before, after) = (history(earlier).count(), history(request).count());
                let alike = |(one, other): (&Segment, &Segment)| is_alike(one.block(), other.block());
                let all_alike = before > 0 && history(earlier).zip(history(request)).all(alike);
                earlier.model == request.model && before < after && before <= 2 && all_alike
            })
            .map(|(at, ..)| at)
    }

    /// The request of the same conversation that shares most, the latest of those that share as much.
    fn within(&self, index: usize, conversation: usize) -> Option<Reference> {
        let members = &self.conversations[conversation].members;
        let request = self.requests[index];
        // Another cache is no use, so what it was asked counts only when nothing else is there.
        let best = |same_cache: bool| {
            let fits = |member: &&usize| {
                let earlier = self.requests[**member];
                earlier.is_answered() && (earlier.place() == request.place()) == same_cache
            };
            let shared = |member: &usize| (*member, self.plain[index].shared(&self.plain[*member]));
            let fitting = members.iter().rev().take(COMPARED).filter(fits).map(shared);
            // Of those that share as much, the first is the latest.
            fitting.reduce(|best, next| if next.1 > best.1 { next } else { best })
        };
        let Some((member, shared)) = best(true) else {
            return best(false).map(|(member, shared)| self.reference(index, member, shared, true, true));
        };
        let left = shared < self.requests[member].segments.len() && shared < request.segments.len();
        if left && !self.survives(member, index, shared) {
            // Going back to where an earlier request ended is no break: that prompt is still whole.
            let whole = members.iter().rev().take(COMPARED).find(|member| {
                let earlier = self.requests[**member];
                earlier.is_answered()
                    && earlier.segments.len() == shared
                    && self.plain[index].shared(&self.plain[**member]) == shared
            });
            if let Some(whole) = whole {
                return Some(self.reference(index, *whole, shared, false, true));
            }
        }
        Some(self.reference(index, member, shared, left, true))
    }

    /// Whether the later request holds, after the break, something that the earlier one has after it.
    fn survives(&self, earlier: usize, later: usize, shared: usize) -> bool {
        let rest = |index: usize| self.requests[index].segments.get(shared + 1..).unwrap_or_default();
        let kept: HashSet<Hash> = rest(later).iter().map(block_hash).collect();
        rest(earlier).iter().any(|segment| kept.contains(&block_hash(segment)))
    }

    /// For the first request of a conversation: the earlier request of any other that shares most.
    fn elsewhere(&self, index: usize) -> Option<Reference> {
        let chain = &self.plain[index];
        let found = (0..=chain.len()).rev().find_map(|k| {
            let earlier = *self.longest.get(chain.hashes.get(k)?)?;
            Some((earlier, k))
        });
        let (earlier, shared) = found?;
        Some(self.reference(index, earlier, shared, false, false))
    }

    fn reference(
        &self,
        index: usize,
        earlier: usize,
        segments: usize,
        broken: bool,
        same_conversation: bool,
    ) -> Reference {
        let mut bytes = self.plain[index].bytes.get(segments).copied().unwrap_or(0);
        let next = |index: usize| self.requests[index].segments.get(segments);
        // Prompts of two wires are in another order: a byte that both have at some place means nothing.
        let comparable = self.plain[index].hashes.first() == self.plain[earlier].hashes.first();
        if let (true, Some(one), Some(other)) = (comparable, next(index), next(earlier)) {
            bytes += common_prefix(&one.bytes, &other.bytes) as u64;
        }
        Reference { index: earlier, segments, bytes, broken, same_conversation }
    }
}

fn has_tools(request: &Recorded) -> bool {
    request.segments.iter().any(|segment| segment.zone == Zone::Tools)
}

fn client<'a>(request: &&'a Recorded) -> (&'a str, &'a str, Option<&'a str>) {
    (request.wire.name(), &request.base_url, request.agent.as_deref())
}

fn history(request: &Recorded) -> impl Iterator<Item = &Segment> {
    request.segments.iter().filter(|segment| segment.zone == Zone::History)
}

/// How many segments of the history stand before the first answer.
pub(crate) fn opening(request: &Recorded) -> usize {
    history(request).take_while(|segment| matches!(segment.speaker(), Some("user" | "system" | "developer"))).count()
}

/// What of a history tells one conversation from another: all but its opening, or the last block of that where there is
/// no answer yet, which is the prompt.
fn telling(request: &Recorded) -> impl Iterator<Item = &Segment> {
    let (opening, all) = (opening(request), history(request).count());
    history(request).skip(if opening < all { opening } else { all.saturating_sub(1) })
}

/// The hash of a block without the role, which moves to the next block when the first one goes.
pub(crate) fn block_hash(segment: &Segment) -> Hash {
    if segment.block().len() == segment.bytes.len() { segment.hash } else { Hash::of(segment.block()) }
}

/// Whether two texts are the same but for a short piece in the middle.
fn is_alike(one: &[u8], other: &[u8]) -> bool {
    likeness(one, other) >= 80
}

/// How much of the longer of two texts is what both begin and end with, in percent.
pub(crate) fn likeness(one: &[u8], other: &[u8]) -> usize {
    let front = common_prefix(one, other);
    let rest = one.len().min(other.len()) - front;
    let back = one.iter().rev().zip(other.iter().rev()).take(rest).take_while(|(one, other)| one == other).count();
    (front + back) * 100 / one.len().max(other.len()).max(1)
}
