//! `cache explain`: why a request read less than it could have, with the two requests side by side at the break.

use serde::Serialize;
use stele_core::{Micros, Zone};

use crate::change::Change;
use crate::departure::Departure;
use crate::emulate::common_prefix;
use crate::judge::{Bound, Judging, Verdict, in_order, judge};
use crate::record::Recorded;

/// Bytes that are shown before a break, and after it.
const BEFORE: usize = 48;
const AFTER: usize = 96;

/// Why a request read what it read.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The request.
    pub request: u64,
    /// The verdict on it.
    pub verdict: Verdict,
    /// The earlier request that it was compared with; absent when there was none.
    pub earlier: Option<u64>,
    /// Whether the two belong to one conversation; else the earlier one is another's that begins alike.
    pub same_conversation: bool,
    /// Milliseconds between the two.
    pub gap_ms: Option<u64>,
    /// Milliseconds that an entry lives at least, where that is known.
    pub lifetime_ms: Option<u64>,
    /// Bytes that the two share.
    pub shared_bytes: u64,
    /// Where they part; absent when the later one extends the earlier one.
    pub parting: Option<Parting>,
    /// What kind of change parts them, or makes the cache miss although the prompt is whole.
    pub change: Option<Change>,
    /// Other segments before the conversation that differ too: mending the first one alone would not do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// What the endpoint itself said about a miss, where it was asked to.
    pub miss_reason: Option<String>,
    /// Tokens that should have been read.
    pub predicted: Option<u64>,
    /// Why that is less than the two share; absent where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Tokens that were.
    pub reported: Option<u64>,
    /// Tokens in which the endpoint counts what is read; absent when nothing tells.
    pub step: Option<u64>,
    /// Tokens that could have been read and were not; without a `step`, that is the most they can be.
    pub lost: u64,
    /// What that cost more, when it is known.
    pub lost_cost: Option<Micros>,
}

/// Where two requests part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parting {
    /// What the segment, or the block of it, is called: in the earlier request if the later one does not have it any more,
    /// else in the later; of a change of wire, server or model, that parameter.
    pub segment: String,
    /// The part of the prompt.
    pub zone: Zone,
    /// Its position, from 0.
    pub index: usize,
    /// Offset of the first byte that differs, in the segment or the parameter.
    pub offset: u64,
    /// The earlier request around it.
    pub before: Excerpt,
    /// The later request around it.
    pub after: Excerpt,
}

/// Some text around an offset. What is no UTF-8 is shown as U+FFFD.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Excerpt {
    /// What both have before it.
    pub shared: String,
    /// What follows.
    pub differs: String,
}

/// Explains one of some recorded requests, which may come in any order; `None` when there is no such id.
#[must_use]
pub fn explain(requests: &[Recorded], id: u64, judging: &Judging<'_>) -> Option<Explanation> {
    let requests = in_order(requests);
    let at = requests.iter().position(|request| request.id == id)?;
    let (request, judged) = (requests[at], judge(&requests, judging).into_iter().nth(at)?);
    let reference = judged.place.reference;
    let earlier = reference.and_then(|reference| requests.get(reference.index).copied());
    // Where nothing left the prefix: for a new conversation, what parts it from the other one.
    let left = judged.leaves.is_some();
    let departure = judged.leaves.or_else(|| {
        let (reference, earlier) = reference.zip(earlier)?;
        Departure::at(earlier, request, reference.segments)
    });
    let wanted = left || judged.verdict.is_miss() || reference.is_some_and(|reference| !reference.same_conversation);
    let also = match (earlier, &departure) {
        (Some(earlier), Some(departure)) if wanted => departure.also(earlier, request),
        _ => Vec::new(),
    };
    let parting = reference
        .zip(earlier)
        .zip(departure.as_ref())
        .and_then(|((reference, earlier), departure)| parting(earlier, request, reference.segments, departure));
    let change = departure.and_then(|departure| departure.change).filter(|_| wanted);
    Some(Explanation {
        request: id,
        verdict: judged.verdict,
        earlier: earlier.map(|earlier| earlier.id),
        same_conversation: reference.is_some_and(|reference| reference.same_conversation),
        gap_ms: earlier.and_then(|earlier| u64::try_from(request.at.0 - earlier.at.0).ok()),
        lifetime_ms: earlier.and_then(|earlier| {
            let mark = earlier.segments.iter().filter_map(|segment| segment.mark).next_back();
            earlier.lifetime(&judged.rules, mark)
        }),
        shared_bytes: reference.map_or(0, |reference| reference.bytes),
        parting,
        change,
        also,
        miss_reason: request.miss_reason.clone(),
        predicted: judged.predicted,
        bound: judged.bound,
        reported: request.usage.and_then(|usage| usage.cache_read),
        step: judged.rules.granularity,
        lost: judged.lost,
        lost_cost: judged.lost_cost,
    })
}

/// The two sides of a departure; a change of where requests go shows from where and to where.
fn parting(earlier: &Recorded, later: &Recorded, index: usize, departure: &Departure) -> Option<Parting> {
    let (index, before, after) = match &departure.change {
        Some(Change::Wire { before, after } | Change::Server { before, after } | Change::Model { before, after }) => {
            (departure.index, before.as_bytes(), after.as_bytes())
        }
        _ => (index, &*earlier.segments.get(index)?.bytes, &*later.segments.get(index)?.bytes),
    };
    let offset = common_prefix(before, after);
    Some(Parting {
        segment: departure.segment.clone(),
        zone: departure.zone,
        index,
        offset: offset as u64,
        before: excerpt(before, offset),
        after: excerpt(after, offset),
    })
}

fn excerpt(bytes: &[u8], at: usize) -> Excerpt {
    // A character that both begin alike is shown whole on the side that differs.
    let inside = |offset: usize| bytes.get(offset).is_some_and(|byte| byte & 0xc0 == 0x80);
    let at = (at.saturating_sub(3)..=at).rev().find(|offset| !inside(*offset)).unwrap_or(at);
    let from = (at.saturating_sub(BEFORE)..=at).find(|offset| !inside(*offset)).unwrap_or(at);
    let end = bytes.len().min(at + AFTER);
    let to = (end.saturating_sub(3)..=end).rev().find(|offset| !inside(*offset)).unwrap_or(end).max(at);
    let text =
        |range: std::ops::Range<usize>| String::from_utf8_lossy(bytes.get(range).unwrap_or_default()).into_owned();
    Excerpt { shared: text(from..at), differs: text(at..to) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_excerpt_keeps_characters_whole(text in "[aé🙂]{0,80}", other in "[aé🙂]{0,80}") {
            let at = common_prefix(text.as_bytes(), other.as_bytes());
            let excerpt = excerpt(text.as_bytes(), at);
            let joined = format!("{}{}", excerpt.shared, excerpt.differs);
            prop_assert!(text.contains(&joined));
        }
    }
}
