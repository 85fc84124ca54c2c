//! What a provider's cache would hold and read, request by request, under the rules of [`CacheRules`].

use std::collections::HashMap;

use stele_core::{Hash, Hasher, Millis, Zone};

use crate::parameter::invalidating;
use crate::prompt::{Mark, Segment};
use crate::record::Recorded;
use stele_provider::{CacheRules, Mechanism};

/// The hashes of a request's prefixes: entry `k` stands for its first `k` segments.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(crate) hashes: Vec<Hash>,
    /// Bytes of the first `k` segments.
    pub(crate) bytes: Vec<u64>,
}

impl Chain {
    /// The prefixes of some segments; `scope` tells apart what can never share an entry.
    pub(crate) fn new(scope: &[&str], segments: &[Segment]) -> Self {
        let mut hasher = Hasher::new();
        for part in scope {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let mut total = 0;
        let (mut hashes, mut bytes) = (vec![Hash::from(&hasher)], vec![0]);
        for segment in segments {
            hasher.update(&segment.hash.0);
            hashes.push(Hash::from(&hasher));
            total += segment.bytes.len() as u64;
            bytes.push(total);
        }
        Self { hashes, bytes }
    }

    /// Number of segments.
    pub(crate) fn len(&self) -> usize {
        self.hashes.len() - 1
    }

    /// How many segments two requests share; nothing when their scopes differ.
    pub(crate) fn shared(&self, other: &Self) -> usize {
        // A prefix that is equal is equal in all its own prefixes.
        let (mut low, mut high) = (0, self.len().min(other.len()));
        while low < high {
            let middle = (low + high).div_ceil(2);
            if self.hashes[middle] == other.hashes[middle] { low = middle } else { high = middle - 1 }
        }
        low
    }
}

/// Length of the common prefix.
pub(crate) fn common_prefix(left: &[u8], right: &[u8]) -> usize {
    const PAGE: usize = 4_096;
    let pages = left.chunks_exact(PAGE).zip(right.chunks_exact(PAGE)).take_while(|(left, right)| left == right);
    let whole = pages.count() * PAGE;
    let (left, right) = (left.get(whole..).unwrap_or_default(), right.get(whole..).unwrap_or_default());
    whole + left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    tokens: u64,
    last_use: Millis,
    readable_at: Millis,
    lifetime_ms: Option<u64>,
    /// The latest request that begins like this.
    request: usize,
}

impl Entry {
    fn is_alive(&self, at: Millis) -> bool {
        let idle = u64::try_from(at.0.saturating_sub(self.last_use.0)).unwrap_or(0);
        self.lifetime_ms.is_none_or(|lifetime| idle <= lifetime)
    }
}

/// What a request should have read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Read {
    /// Tokens.
    pub(crate) tokens: u64,
    /// Tokens that an entry held which had outlived its lifetime.
    pub(crate) expired: u64,
    /// Tokens of a request that was not answered yet when this one was sent.
    pub(crate) unready: u64,
}

/// The entries that earlier requests left behind.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    entries: HashMap<(Hash, Hash), Entry>,
    /// Every prefix of every prompt, for what two of them have in common.
    seen: HashMap<(Hash, Hash), ()>,
}

/// One request, as the cache looks at it.
pub(crate) struct Asked<'a> {
    pub(crate) index: usize,
    pub(crate) request: &'a Recorded,
    pub(crate) chain: &'a Chain,
    pub(crate) rules: &'a CacheRules,
    /// All requests, the earlier ones among them.
    pub(crate) all: &'a [&'a Recorded],
}

impl Asked<'_> {
    fn segments(&self) -> &[Segment] {
        &self.request.segments
    }

    /// The key of the first `k` segments. At Anthropic, what is cached of the messages depends on some parameters too
    /// (prompt caching, what invalidates the cache, 2026-11).
    fn key(&self, k: usize) -> (Hash, Hash) {
        let history = self.rules.mechanism == Mechanism::Marks
            && k > 0
            && self.segments().get(k - 1).is_some_and(|segment| matches!(segment.zone, Zone::Preface | Zone::History));
        let parameters = if history { invalidating(self.request) } else { Hash::of(b"") };
        (self.chain.hashes.get(k).copied().unwrap_or(Hash::of(b"")), parameters)
    }

    /// Tokens up to the last mark that asks for the longer life.
    pub(crate) fn kept_for_an_hour(&self) -> u64 {
        self.segments().iter().rposition(|segment| segment.mark == Some(Mark::Hour)).map_or(0, |at| self.tokens(at + 1))
    }

    fn tokens(&self, k: usize) -> u64 {
        let bytes = |k: usize| self.chain.bytes.get(k).copied().unwrap_or(0);
        self.request.tokens_of(bytes(k), bytes(self.chain.len()))
    }
}

impl Cache {
    /// What the request should read; then its own prompt is in the cache, if it was answered.
    pub(crate) fn ask(&mut self, asked: &Asked<'_>) -> Read {
        let read = match asked.rules.mechanism {
            Mechanism::Marks => self.read_marks(asked),
            Mechanism::Breakpoints | Mechanism::Units => self.read_longest(asked, false),
            Mechanism::Prefix => self.read_longest(asked, true),
        };
        if asked.request.is_answered() {
            self.keep(asked);
        }
        read
    }

    fn read_marks(&mut self, asked: &Asked<'_>) -> Read {
        let mut read = Read::default();
        let mut used = None;
        let marked = asked.segments().iter().enumerate().filter(|(_, segment)| segment.mark.is_some());
        for (index, _) in marked {
            let end = index + 1;
            for k in (end.saturating_sub(asked.rules.look_back) + 1..=end).rev() {
                let key = asked.key(k);
                let Some(entry) = self.entries.get(&key) else { continue };
                if self.judge(entry, asked, entry.tokens, &mut read) {
                    used = Some(key);
                }
                break;
            }
        }
        if let Some(entry) = used.and_then(|key| self.entries.get_mut(&key)) {
            entry.last_use = asked.request.at;
        }
        read
    }

    /// Notes what an entry gives; true when it is the best so far.
    fn judge(&self, entry: &Entry, asked: &Asked<'_>, tokens: u64, read: &mut Read) -> bool {
        if !entry.is_alive(asked.request.at) {
            read.expired = read.expired.max(tokens);
            false
        } else if entry.readable_at > asked.request.at {
            read.unready = read.unready.max(tokens);
            false
        } else if tokens > read.tokens {
            read.tokens = tokens;
            true
        } else {
            false
        }
    }

    fn read_longest(&mut self, asked: &Asked<'_>, within: bool) -> Read {
        let mut read = Read::default();
        for k in (0..=asked.chain.len()).rev() {
            let Some(entry) = self.entries.get(&asked.key(k)) else { continue };
            let Some(earlier) = asked.all.get(entry.request) else { continue };
            let mut bytes = asked.chain.bytes.get(k).copied().unwrap_or(0);
            if within && let (Some(one), Some(other)) = (asked.segments().get(k), earlier.segments.get(k)) {
                bytes += common_prefix(&one.bytes, &other.bytes) as u64;
            }
            // How long a token is shows best in the request that was counted.
            let tokens = if earlier.input().is_some() { earlier.tokens(bytes) } else { asked.request.tokens(bytes) };
            let before = (read.expired, read.unready);
            self.judge(entry, asked, asked.rules.floor(tokens), &mut read);
            if before == (read.expired, read.unready) {
                break;
            }
        }
        read
    }

    fn keep(&mut self, asked: &Asked<'_>) {
        let end = asked.chain.len();
        match asked.rules.mechanism {
            Mechanism::Marks => {
                for (index, segment) in asked.segments().iter().enumerate() {
                    let Some(mark) = segment.mark else { continue };
                    if asked.tokens(index + 1) >= asked.rules.minimum {
                        self.insert(asked, index + 1, asked.request.lifetime(asked.rules, Some(mark)));
                    }
                }
            }
            Mechanism::Breakpoints => {
                let lifetime = asked.request.lifetime(asked.rules, None);
                for (index, segment) in asked.segments().iter().enumerate() {
                    if segment.mark.is_some() {
                        self.insert(asked, index + 1, lifetime);
                    }
                }
                if !asked.request.needs_marks(asked.rules) {
                    self.insert(asked, end, lifetime);
                }
            }
            Mechanism::Units => {
                let common = (0..=end).rev().find(|k| self.seen.contains_key(&asked.key(*k))).unwrap_or(0);
                let lifetime = asked.request.lifetime(asked.rules, None);
                self.insert(asked, common, lifetime);
                self.insert(asked, end, lifetime);
                self.seen.extend((0..=end).map(|k| (asked.key(k), ())));
            }
            Mechanism::Prefix => {
                let lifetime = asked.request.lifetime(asked.rules, None);
                (0..=end).for_each(|k| self.insert(asked, k, lifetime));
            }
        }
    }

    fn insert(&mut self, asked: &Asked<'_>, k: usize, lifetime_ms: Option<u64>) {
        let at = asked.request.at;
        let key = asked.key(k);
        let alive = self.entries.get(&key).filter(|entry| entry.is_alive(at));
        let readable_at = alive.map_or_else(|| asked.request.readable_at(), |entry| entry.readable_at);
        let readable_at = readable_at.min(asked.request.readable_at());
        let entry = Entry { tokens: asked.tokens(k), last_use: at, readable_at, lifetime_ms, request: asked.index };
        self.entries.insert(key, entry);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segments(texts: &[String]) -> Vec<Segment> {
        texts.iter().map(|text| Segment::new(Zone::History, "m", text.clone().into_bytes(), None)).collect()
    }

    proptest! {
        #[test]
        fn a_chain_shares_what_its_segments_share(
            left in prop::collection::vec("[ab]{0,2}", 0..12), right in prop::collection::vec("[ab]{0,2}", 0..12),
        ) {
            let expect = left.iter().zip(&right).take_while(|(left, right)| left == right).count();
            let (one, other) = (Chain::new(&["s"], &segments(&left)), Chain::new(&["s"], &segments(&right)));
            prop_assert_eq!(one.shared(&other), expect);
            prop_assert_eq!(one.shared(&one), left.len());
            prop_assert_eq!(*one.bytes.last().unwrap(), left.concat().len() as u64);
        }

        #[test]
        fn common_prefixes_are_right_across_pages(
            shared in prop::collection::vec(any::<u8>(), 0..9_000), left in prop::collection::vec(any::<u8>(), 0..40),
            right in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let (one, other) = ([shared.clone(), left.clone()].concat(), [shared.clone(), right.clone()].concat());
            let tail = left.iter().zip(&right).take_while(|(left, right)| left == right).count();
            prop_assert_eq!(common_prefix(&one, &other), shared.len() + tail);
        }
    }

    #[test]
    fn another_scope_shares_nothing() {
        let texts = ["a".to_owned()];
        assert_eq!(Chain::new(&["s"], &segments(&texts)).shared(&Chain::new(&["t"], &segments(&texts))), 0);
    }
}
