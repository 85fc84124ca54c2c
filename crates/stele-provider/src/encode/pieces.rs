//! Bytes that only grow, in pieces that are shared and never copied again once they are full.
//!
//! A request may have tens of megabytes. Growing one buffer would copy them over and over, and sending them would need
//! a second copy of all; pieces are written once, hashed where they are, and handed to the connection as they are.

use std::ops::Range;

use bytes::Bytes;

/// Bytes after which the last piece is closed at the next place where that is allowed.
const FULL: usize = 64 << 10;

/// Bytes in pieces. Places count from the first byte of all.
#[derive(Clone, Default)]
pub(super) struct Pieces {
    /// Full pieces, each with the place where it begins.
    full: Vec<(usize, Bytes)>,
    /// Bytes in full pieces.
    closed: usize,
    last: Vec<u8>,
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

    /// Where the next bytes are written.
    pub(super) fn end(&mut self) -> &mut Vec<u8> {
        &mut self.last
    }

    /// Closes the last piece when it is full; true when it was. No range that is read as one may go on behind it.
    pub(super) fn close_full(&mut self) -> bool {
        if self.last.len() < FULL {
            return false;
        }
        let piece = Bytes::from(std::mem::replace(&mut self.last, Vec::with_capacity(FULL + FULL / 4)));
        self.full.push((self.closed, piece.clone()));
        self.closed += piece.len();
        true
    }

    /// Bytes that were written between two places where a piece may have been closed.
    pub(super) fn get(&self, range: &Range<usize>) -> &[u8] {
        if range.start >= self.closed {
            return &self.last[range.start - self.closed..range.end - self.closed];
        }
        let (start, piece) = &self.full[self.piece_of(range.start)];
        &piece[range.start - start..range.end - start]
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
            return self.last;
        }
        let mut all = Vec::with_capacity(self.len());
        self.each(0..self.len(), &mut |part| all.extend_from_slice(part));
        all
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
                pieces.end().extend_from_slice(&bytes);
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
