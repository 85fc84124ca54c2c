//! Where in the file is what comes nearest to a text that was not found?

use std::collections::BTreeSet;

use super::Level;
use super::anchor::ratio;
use super::view::key;
use crate::text::{Source, blank, pieces};

/// Lines of a region that are compared and shown.
const LINES: usize = 60;
/// Bytes of a region that are compared.
const BYTES: usize = 8 * 1024;
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
        if sum > 1e-6 && best.last().is_none_or(|(least, _)| best.len() < 4 || sum > *least) {
            let at = best.partition_point(|(other, _)| *other >= sum);
            best.insert(at, (sum, first));
            best.truncate(4);
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

/// For each line of the file, how much of the text it may hold: all when it is one of its lines, else the share of its
/// runs of four bytes that occur in the text.
fn weights(source: &Source<'_>, keys: &[Vec<u8>]) -> Vec<f64> {
    let lines: BTreeSet<&[u8]> = keys.iter().map(Vec::as_slice).filter(|line| !line.is_empty()).collect();
    let mut runs = vec![0_u64; 1024];
    let slot = |run: &[u8]| {
        let hash = run.iter().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
        (hash >> 16) as usize
    };
    for run in keys.iter().flat_map(|line| line.windows(4)) {
        runs[slot(run) / 64] |= 1 << (slot(run) % 64);
    }
    (0..source.lines.len())
        .map(|line| {
            let key = key(source.content(line), Level::Indentation);
            if key.is_empty() {
                return 0.0;
            }
            if lines.contains(key.as_ref()) {
                return 1.0 + key.len().min(80) as f64 / 40.0;
            }
            let seen = &key[..key.len().min(512)];
            let known = seen.windows(4).filter(|run| runs[slot(run) / 64] >> (slot(run) % 64) & 1 == 1).count();
            let share = known as f64 / seen.len().saturating_sub(3).max(1) as f64;
            if share > 0.3 { share } else { 0.0 }
        })
        .collect()
}

fn joined<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut all = Vec::new();
    for line in lines {
        all.extend_from_slice(line);
        all.push(b'\n');
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
    for op in similar::capture_diff_slices(similar::Algorithm::Myers, &written, &there) {
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

/// A line as a message shows it: cut at 200 characters, tabs and trailing spaces made visible.
pub(crate) fn visible(line: &str) -> String {
    let cut: String =
        line.chars().take(200).map(|it| if it.is_control() && it != '\t' { '\u{fffd}' } else { it }).collect();
    let mut shown = cut.replace('\t', "\u{21e5}\t");
    if !blank(line) && line.ends_with(' ') && cut.len() == line.len() {
        let kept = shown.trim_end_matches(' ').len();
        let spaces = shown.len() - kept;
        shown.truncate(kept);
        shown.push_str(&"\u{b7}".repeat(spaces));
    }
    if cut.chars().count() < line.chars().count() {
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
    fn differences_show_tabs_and_spaces() {
        let source = Source::new(b"\tfoo();  \n\tbar();\n").unwrap();
        let found = Closest { first: 0, lines: 2, similarity: 1.0 };
        assert_eq!(
            against(&source, "  foo();\n\tbar();", &found),
            "-  foo();\n+\u{21e5}\tfoo();\u{b7}\u{b7}\n \u{21e5}\tbar();\n"
        );
    }
}
