//! The last level, only on demand: first and last line as written, and a body that is nearly the same.

use super::Level;
use super::sequence::Keys;
use super::view::key;
use crate::compare::ratio;
use crate::text::{Source, blank};

/// How much of the body must be the same.
const SIMILAR: f64 = 0.9;
/// Bytes of a body that is still compared, and how many first lines are tried.
const BODY: usize = 8 * 1024;
const CANDIDATES: usize = 100;

/// Calls `hit` with the first line of every stretch of as many lines whose ends are the same and whose body is nearly so.
pub(super) fn find(source: &Source<'_>, keys: &Keys<'_>, lines: &[String], hit: &mut dyn FnMut(usize) -> bool) {
    let ([first, body @ .., last], true) = (lines, lines.len() >= 3) else { return };
    if blank(first) || blank(last) || body.iter().map(String::len).sum::<usize>() > BODY {
        return;
    }
    let mut tried = 0;
    keys.find(std::slice::from_ref(first), &mut |at| {
        let end = at + lines.len();
        if end > source.lines.len()
            || key(source.content(end - 1), Level::Indentation) != key(last.as_bytes(), Level::Indentation)
        {
            return true;
        }
        tried += 1;
        let there = (at + 1..end - 1).map(|line| source.content(line));
        let alike = there.clone().map(<[u8]>::len).sum::<usize>() <= 2 * BODY
            && similarity(body.iter().map(String::as_bytes), there) >= SIMILAR;
        tried <= CANDIDATES && (!alike || hit(at))
    });
}

/// How much two bodies have in common: twice the common bytes over all bytes, without white space at line ends.
fn similarity<'a>(written: impl Iterator<Item = &'a [u8]>, there: impl Iterator<Item = &'a [u8]>) -> f64 {
    let join = |lines: &mut dyn Iterator<Item = &'a [u8]>| {
        lines.fold(Vec::new(), |mut all, line| {
            all.extend_from_slice(&key(line, Level::Indentation));
            all.push(b'\n');
            all
        })
    };
    let (written, there) = (join(&mut { written }), join(&mut { there }));
    if may_be_similar(&written, &there) { ratio(&written, &there) } else { 0.0 }
}

/// No two texts are more alike than their bytes are when order does not count.
fn may_be_similar(left: &[u8], right: &[u8]) -> bool {
    let mut counts = [0_i64; 256];
    left.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    right.iter().for_each(|byte| counts[usize::from(*byte)] -= 1);
    let apart: i64 = counts.iter().map(|count| count.abs()).sum();
    apart as f64 <= (1.0 - SIMILAR) * (left.len() + right.len()) as f64
}
