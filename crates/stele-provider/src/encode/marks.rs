//! Where cache marks stand in a body, and the hash of the part of it in which none can move any more.

use std::ops::Range;

use stele_core::{CacheTtl, Hasher, OptionalField, PromptDigest, Zone};

use super::Encoder;

/// Bytes of a body that are hashed at once, at least: fewer are too short for the hash's own speed.
pub(super) const ROLLED: usize = 8 << 10;

/// Anthropic, prompt caching, 2026-11: five minutes is the default lifetime.
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;
/// The same page: so many marks, at most.
const MARKS_MAX: usize = 4;
/// Of them those on ends of earlier requests: one is for the end of this one, one for what stands before the history.
const EARLIER_MAX: usize = MARKS_MAX - 2;
/// The same page: an hour where it is asked for; such marks have to stand before those of five minutes.
const HOUR_MARK: &str = r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#;

/// A stretch of a body.
pub(super) enum Stretch {
    /// Bytes of the unmarked body.
    Own(Range<usize>),
    /// A mark or the closer.
    Fixed(&'static str),
}

/// Hash of the body up to a byte that no later request of the epoch can change.
#[derive(Clone, Default)]
pub(super) struct Rolled {
    pub(super) hasher: Hasher,
    pub(super) at: usize,
}

impl Encoder {
    /// Whether all items of an earlier prompt are the first items of this one.
    #[must_use]
    pub fn begins_with(&self, prompt: &PromptDigest) -> bool {
        usize::try_from(prompt.items).is_ok_and(|items| self.digest_at(items) == Some(prompt.hash))
    }

    /// Marks the ends of earlier prompts, as far as this one begins with them.
    pub fn mark_ends_of(&mut self, prompts: &[PromptDigest]) {
        let ends = prompts.iter().filter(|prompt| self.begins_with(prompt));
        let ends: Vec<usize> = ends.filter_map(|prompt| usize::try_from(prompt.items).ok()).collect();
        self.set_earlier(&ends);
    }

    /// Says that earlier requests consisted of the first so many items: the last blocks of two of them, the longest, keep
    /// their marks.
    pub fn set_earlier(&mut self, ends: &[usize]) {
        let mut ends: Vec<usize> = ends.iter().map(|items| (*items).min(self.writer.items.len())).collect();
        ends.sort_unstable();
        ends.dedup();
        ends.drain(..ends.len().saturating_sub(EARLIER_MAX));
        self.earlier = ends;
        if !self.marked() {
            return;
        }
        let first = self.earlier.iter().find_map(|items| self.markable(*items)).map(|first| self.mark_at(first));
        // Beside two of them the preface's mark may be missing, and no mark may stand in what was taken.
        if self.earlier.len() > 1 || first.is_some_and(|first| first < self.rolled.at) {
            self.rolled = Rolled::default();
        } else if let Some(first) = first.filter(|first| *first >= self.rolled.at + ROLLED) {
            self.roll(first);
        }
    }

    /// Indices of the items that carry a cache mark, or for which one at the top of the body stands.
    #[must_use]
    pub fn marks(&self) -> Vec<usize> {
        if !self.marked() && self.config.sends(OptionalField::CacheControl) {
            return self.writer.items.len().checked_sub(1).into_iter().collect();
        }
        self.block_marks()
    }

    /// Indices of the items that carry a cache mark.
    pub(super) fn block_marks(&self) -> Vec<usize> {
        if !self.marked() {
            return Vec::new();
        }
        let mut marks = self.fixed_marks.clone();
        marks.extend(self.earlier.iter().filter_map(|items| self.markable(*items)));
        marks.extend(self.markable(self.writer.items.len()));
        marks.sort_unstable();
        marks.dedup();
        if let (true, [_, preface]) = (marks.len() > MARKS_MAX, self.fixed_marks.as_slice()) {
            marks.retain(|mark| mark != preface);
        }
        marks
    }

    /// True when this wire has marks on blocks, the route wants them and the endpoint takes them.
    pub(super) fn marked(&self) -> bool {
        self.config.marks_blocks() && self.config.sends(OptionalField::CacheControl)
    }

    /// End of the system (of the tools when there is none), which covers what stands before it, and end of the preface.
    pub(super) fn fixed_marks(&self) -> Vec<usize> {
        let last = |zones: &[Zone]| self.writer.items.iter().rposition(|item| zones.contains(&item.zone));
        [last(&[Zone::Tools, Zone::System]), last(&[Zone::Preface])].into_iter().flatten().collect()
    }

    /// The last of the first `items` items, when it is history, or the nearest before it that takes a mark.
    ///
    /// The mark on the end of an answered request needs no help of the vendor's look-back (20 blocks, Anthropic, prompt
    /// caching, 2026-11): it stands exactly where that request wrote its entry, however many blocks a step added, so
    /// that no further mark is needed in between.
    fn markable(&self, items: usize) -> Option<usize> {
        let history = self.writer.items.get(..items)?.iter().enumerate().rev();
        history.take_while(|(_, item)| item.zone == Zone::History).find(|(_, item)| item.markable).map(|(at, _)| at)
    }

    /// How long what a mark on this item covers is asked to be kept: longer lives stand before shorter ones, so that they
    /// are for what stands before the history.
    #[must_use]
    pub fn mark_ttl(&self, item: usize) -> CacheTtl {
        let history = self.writer.items.get(item).is_none_or(|item| item.zone == Zone::History);
        let hour = !history && self.config.sends(OptionalField::CacheTtl);
        if hour { CacheTtl::Hour } else { CacheTtl::FiveMinutes }
    }

    fn mark(&self, item: usize) -> &'static str {
        match self.mark_ttl(item) {
            CacheTtl::FiveMinutes => MARK,
            CacheTtl::Hour => HOUR_MARK,
        }
    }

    pub(super) fn mark_bytes(&self, marks: &[usize]) -> usize {
        marks.iter().map(|mark| self.mark(*mark).len()).sum()
    }

    /// Where a mark goes into an item: before the brace that ends its block.
    fn mark_at(&self, item: usize) -> usize {
        self.writer.items[item].range.end - 1
    }

    /// Gives the stretches of the body from a byte of the unmarked body on.
    pub(super) fn lay_out(&self, from: usize, marks: &[usize], take: &mut dyn FnMut(Stretch)) {
        let mut at = from;
        for &mark in marks {
            let end = self.mark_at(mark);
            if end >= from {
                take(Stretch::Own(at..end));
                take(Stretch::Fixed(self.mark(mark)));
                at = end;
            }
        }
        take(Stretch::Own(at..self.writer.bytes.len()));
        take(Stretch::Fixed(self.closer()));
    }

    /// Takes the hash of the body up to `to`, where no mark can move any more.
    pub(super) fn roll(&mut self, to: usize) {
        if self.marked() {
            for mark in 0..self.fixed_marks.len() {
                let end = self.mark_at(self.fixed_marks[mark]);
                if (self.rolled.at..to).contains(&end) {
                    self.roll_plain(end);
                    self.rolled.hasher.update(self.mark(self.fixed_marks[mark]).as_bytes());
                }
            }
        }
        self.roll_plain(to);
    }

    fn roll_plain(&mut self, to: usize) {
        if self.rolled.at < to {
            self.writer.bytes.hash(self.rolled.at..to, &mut self.rolled.hasher);
            self.rolled.at = to;
        }
    }
}
