//! Where in the file is what comes nearest to a text that was not found?

use std::collections::BTreeSet;

use super::Level;
use super::view::key;
use crate::compare::{self, ratio};
use crate::text::{Source, blank, pieces};

/// Lines of a region that are compared and shown.
const LINES: usize = 60;
/// Bytes of a region that are compared.
const BYTES: usize = 8 * 1024;
/// Bytes of a text that is short: its lines are compared byte by byte.
const SHORT: usize = 24;
/// Regions that are compared in full.
const REGIONS: usize = 4;
/// Below this nothing is worth showing.
const WORTH: f64 = 0.4;

/// Lines of the file that come nearest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Closest {
    /// From 0.
    pub first: usize,
    pub lines: usize,
    /// From 0 to 1.
    pub similarity: f64,
}

/// The stretch of as many lines as the text has that shares most with it; absent when nothing comes near.
pub(crate) fn closest(source: &Source<'_>, old: &str) -> Option<Closest> {
    let mut written = pieces(old.trim_matches('\n'));
    written.truncate(LINES);
    let keys: Vec<Vec<u8>> = written.iter().map(|line| key(line.as_bytes(), Level::Indentation).into_owned()).collect();
    let weights = weights(source, &keys);
    let count = written.len().min(source.lines.len()).max(1);
    let mut best: Vec<(f64, usize)> = Vec::new();
    let mut sum: f64 = weights.iter().take(count).sum();
    for first in 0..source.lines.len().saturating_sub(count - 1) {
        if first > 0 {
            sum += weights[first + count - 1] - weights[first - 1];
        }
        if sum > 1e-6 && best.last().is_none_or(|(least, _)| best.len() < REGIONS || sum > *least) {
            let at = best.partition_point(|(other, _)| *other >= sum);
            best.insert(at, (sum, first));
            best.truncate(REGIONS);
        }
    }
    let text = joined(keys.iter().map(Vec::as_slice));
    best.into_iter()
        .map(|(_, first)| {
            let there: Vec<_> =
                (first..first + count).map(|line| key(source.content(line), Level::Indentation)).collect();
            let similarity = ratio(&text, &joined(there.iter().map(AsRef::as_ref)));
            Closest { first, lines: count, similarity }
        })
        .filter(|found| found.similarity >= WORTH)
        .max_by(|left, right| left.similarity.total_cmp(&right.similarity).then(right.first.cmp(&left.first)))
}

/// For each line of the file, how much of the text it may hold: all when it is one of its lines, else what the two have
/// in common.
fn weights(source: &Source<'_>, keys: &[Vec<u8>]) -> Vec<f64> {
    let lines: BTreeSet<&[u8]> = keys.iter().map(Vec::as_slice).filter(|line| !line.is_empty()).collect();
    let short = keys.iter().map(Vec::len).sum::<usize>() < SHORT;
    let common = if short { shared_bytes(keys) } else { shared_runs(keys) };
    (0..source.lines.len())
        .map(|line| {
            let key = key(source.content(line), Level::Indentation);
            if key.is_empty() {
                0.0
            } else if lines.contains(key.as_ref()) {
                1.0 + key.len().min(80) as f64 / 40.0
            } else {
                Some(common(&key)).filter(|share| *share > 0.3).unwrap_or(0.0)
            }
        })
        .collect()
}

/// How much a line has in common with a text, from 0 to 1.
type Common = Box<dyn Fn(&[u8]) -> f64>;

/// Twice the bytes that a line has in common with the line of the text that is most like it, whatever their order, over
/// all bytes of the two: a short text has hardly any runs.
fn shared_bytes(keys: &[Vec<u8>]) -> Common {
    let counted = |line: &[u8]| {
        let mut counts = [0_i32; 256];
        line.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        (counts, line.len())
    };
    let texts: Vec<_> = keys.iter().filter(|key| !key.is_empty()).map(|key| counted(key)).collect();
    Box::new(move |line| {
        if line.len() > 4 * SHORT {
            return 0.0;
        }
        let (there, length) = counted(line);
        let share = |(counts, size): &([i32; 256], usize)| {
            let common: i32 = line_bytes(line).map(|byte| counts[byte].min(there[byte])).sum();
            2.0 * f64::from(common) / (length + size) as f64
        };
        texts.iter().map(share).fold(0.0, f64::max)
    })
}

/// Each byte of a line once.
fn line_bytes(line: &[u8]) -> impl Iterator<Item = usize> {
    let mut seen = [false; 256];
    line.iter().map(|byte| usize::from(*byte)).filter(move |byte| !std::mem::replace(&mut seen[*byte], true))
}

/// The share of a line's runs of four bytes that occur in the text.
fn shared_runs(keys: &[Vec<u8>]) -> Common {
    let mut runs = vec![0_u64; 1024];
    let slot = |run: &[u8]| {
        let hash = run.iter().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
        (hash >> 16) as usize
    };
    for run in keys.iter().flat_map(|line| line.windows(4)) {
        runs[slot(run) / 64] |= 1 << (slot(run) % 64);
    }
    Box::new(move |line| {
        let seen = &line[..line.len().min(512)];
        let known = seen.windows(4).filter(|run| runs[slot(run) / 64] >> (slot(run) % 64) & 1 == 1).count();
        known as f64 / seen.len().saturating_sub(3).max(1) as f64
    })
}

fn joined<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut all = Vec::new();
    for (at, line) in lines.enumerate() {
        if at > 0 {
            all.push(b'\n');
        }
        all.extend_from_slice(line);
        if all.len() > BYTES {
            all.truncate(BYTES);
            break;
        }
    }
    all
}

/// The lines that were looked for against those of the region, as a short difference.
pub(crate) fn against(source: &Source<'_>, old: &str, found: &Closest) -> String {
    let mut written = pieces(old.trim_matches('\n'));
    written.truncate(LINES);
    let there: Vec<String> = (found.first..found.first + found.lines)
        .map(|line| String::from_utf8_lossy(source.content(line)).into_owned())
        .collect();
    let mut shown = String::new();
    for op in compare::steps(&written, &there) {
        let mut push = |mark: char, lines: &[String]| {
            for line in lines {
                shown.push(mark);
                shown.push_str(&visible(line));
                shown.push('\n');
            }
        };
        if let similar::DiffOp::Equal { new_index, len, .. } = op {
            push(' ', &there[new_index..new_index + len]);
        } else {
            push('-', &written[op.old_range()]);
            push('+', &there[op.new_range()]);
        }
    }
    shown
}

/// Characters of a line that a message shows.
const SHOWN: usize = 200;

fn cut(line: &str) -> String {
    line.chars().take(SHOWN).map(|it| if it.is_control() && it != '\t' { '\u{fffd}' } else { it }).collect()
}

/// A line as it can be copied from a message, cut where it is long.
pub(crate) fn plain(line: &str) -> String {
    cut(line) + if line.chars().nth(SHOWN).is_some() { "\u{2026}" } else { "" }
}

/// A line as a message shows it: cut where it is long, tabs and trailing spaces made visible.
pub(crate) fn visible(line: &str) -> String {
    let cut = cut(line);
    let mut shown = cut.replace('\t', "\u{21e5}\t");
    if !blank(line) && line.ends_with(' ') && cut.len() == line.len() {
        let kept = shown.trim_end_matches(' ').len();
        let spaces = shown.len() - kept;
        shown.truncate(kept);
        shown.push_str(&"\u{b7}".repeat(spaces));
    }
    if line.chars().nth(SHOWN).is_some() {
        shown.push('\u{2026}');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(file: &str, old: &str) -> Option<(usize, usize)> {
        let source = Source::new(file.as_bytes()).unwrap();
        closest(&source, old).map(|found| (found.first + 1, found.lines))
    }

    #[test]
    fn the_nearest_region() {
        let file = "fn a() {\n    one();\n}\n\nfn b() {\n    let total = sum(values);\n    print(total);\n}\n";
        assert_eq!(near(file, "    let total = sum(value);\n    print(total);"), Some((6, 2)));
        assert_eq!(near(file, "let totals = sum(values)"), Some((6, 1)));
        assert_eq!(near(file, "something quite different"), None);
        assert_eq!(near("", "a"), None);
    }

    #[test]
    fn short_texts_have_a_nearest_line_too() {
        let file = "one\nline 77\n    a\u{200b}b\nwait\u{2026}\nlet x = call(line 77, one, two, three);\n";
        assert_eq!(near(file, "lime 77"), Some((2, 1)));
        assert_eq!(near(file, "ab"), Some((3, 1)));
        assert_eq!(near(file, "wait..."), Some((4, 1)));
        assert_eq!(near(file, "x"), None);
        assert_eq!(near(file, "zzzz"), None);
        assert_eq!(near("a\n\nb\n", "c"), None);
    }

    #[test]
    fn differences_show_tabs_and_spaces() {
        let source = Source::new(b"\tfoo();  \n\tbar();\n").unwrap();
        let found = Closest { first: 0, lines: 2, similarity: 1.0 };
        assert_eq!(
            against(&source, "  foo();\n\tbar();", &found),
            "-  foo();\n+\u{21e5}\tfoo();\u{b7}\u{b7}\n \u{21e5}\tbar();\n"
        );
    }
}
