//! Bytes that only grow, in pieces that are shared and never copied again once they are closed.
//!
//! A request may have tens of megabytes. Growing one buffer would copy them over and over, and sending them would need
//! a second copy of all; pieces are written once, hashed where they are, and handed to the connection as they are. Long
//! texts that are JSON already are not even written: the piece is the memory that the history keeps them in.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use stele_core::{Hasher, Literal};

/// Bytes after which the last piece is closed at the next place where that is allowed.
const FULL: usize = 64 << 10;
/// A text that is shorter is copied: a piece of its own would cost as much.
const SHARED: usize = 1 << 10;
/// Short pieces are hashed together: one by one they are too short for the hash's own speed.
const HASHED: usize = 32 << 10;

/// Bytes in pieces. Places count from the first byte of all.
#[derive(Clone, Default)]
pub(super) struct Pieces {
    /// Closed pieces, each with the place where it begins.
    full: Vec<(usize, Bytes)>,
    /// Bytes in closed pieces.
    closed: usize,
    last: BytesMut,
}

/// What a text of the history is kept in, as a piece.
struct Shared(Arc<Literal>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.json().as_bytes()
    }
}

impl Pieces {
    /// Number of bytes.
    pub(super) fn len(&self) -> usize {
        self.closed + self.last.len()
    }

    /// Bytes in pieces that are closed.
    pub(super) fn closed(&self) -> usize {
        self.closed
    }

    /// The last byte.
    pub(super) fn last(&self) -> Option<u8> {
        self.last.last().or_else(|| self.full.last()?.1.last()).copied()
    }

    /// Writes bytes to the end.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.last.extend_from_slice(bytes);
    }

    /// Where further bytes can be written.
    pub(super) fn end(&mut self) -> impl io::Write {
        (&mut self.last).writer()
    }

    /// Puts a text to the end that is JSON already.
    pub(super) fn put_literal(&mut self, literal: &Arc<Literal>) {
        if literal.json().len() < SHARED {
            return self.put(literal.json().as_bytes());
        }
        self.close();
        self.add(Bytes::from_owner(Shared(Arc::clone(literal))));
    }

    /// Closes the last piece when it is full.
    pub(super) fn close_full(&mut self) {
        if self.last.len() >= FULL {
            self.close();
        }
    }

    fn close(&mut self) {
        if self.last.is_empty() {
            return;
        }
        let piece = self.last.split().freeze();
        if self.full.is_empty() {
            // What was split off a long buffer goes on in it, and then in another one as long.
            self.last = BytesMut::with_capacity(FULL);
        }
        self.add(piece);
    }

    fn add(&mut self, piece: Bytes) {
        let start = self.closed;
        self.closed += piece.len();
        self.full.push((start, piece));
    }

    /// The bytes of a range.
    pub(super) fn get(&self, range: &Range<usize>) -> Cow<'_, [u8]> {
        if range.start >= self.closed {
            return Cow::Borrowed(&self.last[range.start - self.closed..range.end - self.closed]);
        }
        let (start, piece) = &self.full[self.piece_of(range.start)];
        match piece.get(range.start - start..range.end - start) {
            Some(whole) => Cow::Borrowed(whole),
            None => {
                let mut whole = Vec::with_capacity(range.len());
                self.each(range.clone(), &mut |part| whole.extend_from_slice(part));
                Cow::Owned(whole)
            }
        }
    }

    /// Hashes the bytes of a range.
    pub(super) fn hash(&self, range: Range<usize>, hasher: &mut Hasher) {
        let mut together = Vec::new();
        self.each(range, &mut |part| {
            if together.len() + part.len() > HASHED {
                hasher.update(&together);
                together.clear();
            }
            if part.len() > HASHED {
                hasher.update(part);
            } else {
                together.extend_from_slice(part);
            }
        });
        hasher.update(&together);
    }

    /// Visits the bytes of a range, piece by piece.
    pub(super) fn each(&self, range: Range<usize>, visit: &mut dyn FnMut(&[u8])) {
        for (start, piece) in self.overlapping(&range) {
            let end = (start + piece.len()).min(range.end);
            visit(&piece[range.start.saturating_sub(*start)..end - start]);
        }
        if range.end > self.closed {
            visit(&self.last[range.start.saturating_sub(self.closed)..range.end - self.closed]);
        }
    }

    /// The bytes of a range: full pieces are shared, what stands in the last one is copied.
    pub(super) fn share(&self, range: Range<usize>, into: &mut Vec<Bytes>) {
        for (start, piece) in self.overlapping(&range) {
            let end = (start + piece.len()).min(range.end);
            into.push(piece.slice(range.start.saturating_sub(*start)..end - start));
        }
        if range.end > self.closed {
            let copied = &self.last[range.start.saturating_sub(self.closed)..range.end - self.closed];
            into.push(Bytes::copy_from_slice(copied));
        }
    }

    /// Everything, as one.
    pub(super) fn into_vec(self) -> Vec<u8> {
        if self.full.is_empty() {
            return self.last.into();
        }
        self.get(&(0..self.len())).into_owned()
    }

    fn overlapping(&self, range: &Range<usize>) -> &[(usize, Bytes)] {
        if range.start >= range.end.min(self.closed) {
            return &[];
        }
        let (first, last) = (self.piece_of(range.start), self.piece_of(range.end.min(self.closed) - 1));
        &self.full[first..=last]
    }

    /// The full piece that holds a place.
    fn piece_of(&self, at: usize) -> usize {
        self.full.partition_point(|(start, _)| *start <= at) - 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn pieces_are_the_bytes_that_were_written(
            writes in prop::collection::vec((0..FULL, any::<bool>()), 0..8),
            ends in any::<[prop::sample::Index; 2]>(),
        ) {
            let (mut pieces, mut whole, mut written) = (Pieces::default(), Vec::new(), Vec::new());
            for (at, (len, close)) in writes.into_iter().enumerate() {
                let bytes: Vec<u8> = (0..len).map(|byte| (byte % 251) as u8 ^ at as u8).collect();
                written.push(whole.len()..whole.len() + len);
                whole.extend_from_slice(&bytes);
                pieces.put(&bytes);
                if close {
                    pieces.close_full();
                }
                prop_assert_eq!((pieces.len(), pieces.last()), (whole.len(), whole.last().copied()));
            }
            for range in written {
                prop_assert_eq!(pieces.get(&range), &whole[range]);
            }
            let [one, other] = ends.map(|end| end.index(whole.len() + 1));
            let range = one.min(other)..one.max(other);
            let (mut visited, mut shared) = (Vec::new(), Vec::new());
            pieces.each(range.clone(), &mut |part| visited.extend_from_slice(part));
            pieces.share(range.clone(), &mut shared);
            prop_assert_eq!(&visited[..], &whole[range]);
            prop_assert_eq!(shared.concat(), visited);
            prop_assert_eq!(pieces.into_vec(), whole);
        }
    }
}
