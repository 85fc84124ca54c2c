//! How the bytes of an answer are cut and timed.

use std::time::Duration;

/// Where a body is cut into pieces. A piece is one HTTP chunk and one write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Chunks {
    /// One piece for each event of the stream, as vendors send them.
    #[default]
    Events,
    /// One piece.
    Whole,
    /// Pieces of so many bytes; one for every byte when 1. Cuts characters and lines.
    Every(usize),
    /// Cuts at these byte offsets of the body; offsets that are not between its ends are left out.
    At(Vec<usize>),
}

/// The timing of an answer, and its pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Time before the status line.
    pub first: Duration,
    /// Time between two pieces.
    pub between: Duration,
    /// The pieces.
    pub chunks: Chunks,
}

impl Pace {
    /// No delay, these pieces.
    #[must_use]
    pub fn chunks(chunks: Chunks) -> Self {
        Self { chunks, ..Self::default() }
    }
}

/// The ends of the pieces, the last one being the body's end. `events` are the ends of its events.
pub(crate) fn ends(chunks: &Chunks, length: usize, events: &[usize]) -> Vec<usize> {
    let mut ends: Vec<usize> = match chunks {
        Chunks::Events => events.to_vec(),
        Chunks::Whole => Vec::new(),
        Chunks::Every(size) => {
            (1..).map(|piece: usize| piece.saturating_mul((*size).max(1))).take_while(|end| *end < length).collect()
        }
        Chunks::At(offsets) => offsets.clone(),
    };
    ends.retain(|end| *end > 0 && *end < length);
    ends.sort_unstable();
    ends.dedup();
    if length > 0 {
        ends.push(length);
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_piece_ends_with_the_body() {
        let check = |chunks: Chunks, expect: &[usize]| assert_eq!(ends(&chunks, 10, &[4, 10]), expect, "{chunks:?}");
        check(Chunks::Whole, &[10]);
        check(Chunks::Events, &[4, 10]);
        check(Chunks::Every(4), &[4, 8, 10]);
        check(Chunks::Every(0), &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        check(Chunks::At(vec![7, 0, 3, 3, 99]), &[3, 7, 10]);
        assert!(ends(&Chunks::Every(3), 0, &[]).is_empty());
    }
}
