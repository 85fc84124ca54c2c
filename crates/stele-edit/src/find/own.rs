//! Where a line was found by its look, what old and new text share of it keeps the file's own bytes: word by word.

use std::ops::Range;

use similar::DiffOp;

use super::view::{cluster_len, folded};
use crate::compare;
use crate::text::{blank, indentation};

/// Words on both sides that are still compared; longer blocks are replaced by lines.
const WORDS: usize = 8_000;

/// A line of the old text and where the file has it.
pub(super) struct Found<'a> {
    pub old: &'a str,
    /// The file's bytes of it, without the line end.
    pub there: &'a [u8],
    /// Where they start in the file.
    pub start: usize,
    /// Its line end in the file; empty where the text stops before it.
    pub end: Range<usize>,
    /// The file has the line with another indentation.
    pub shifted: bool,
}

/// A word, a line end or a single character, and its bytes in the file.
type Word<'a> = (&'a str, Range<usize>);

/// What has to change in the file for the old lines to become the new text, word by word; absent when no line looks other
/// than it was written, or when the two cannot be brought together.
pub(super) fn changes(old: &[Found<'_>], new: impl FnOnce() -> String) -> Option<Vec<(Range<usize>, String)>> {
    if old.iter().all(|line| line.there.is_ascii() && line.old.is_ascii()) {
        return None;
    }
    let mut words: Vec<Word<'_>> = Vec::new();
    for line in old {
        let (indent, there) = indentation(std::str::from_utf8(line.there).ok()?);
        match line.shifted {
            // The indentation is the file's on both sides.
            true => {
                let start = line.start + indent.len();
                words.extend((!indent.is_empty()).then_some((indent, line.start..start)));
                aligned(indentation(line.old).1, there, start, &mut words)?;
            }
            false => aligned(line.old, std::str::from_utf8(line.there).ok()?, line.start, &mut words)?,
        }
        if !line.end.is_empty() {
            words.push(("\n", line.end.clone()));
        }
    }
    let new = new();
    let new: Vec<&str> = split(&new).collect();
    if words.len() + new.len() > WORDS {
        return None;
    }
    let written: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let ends = words.last().map(|(_, range)| range.end)?;
    let ops = compare::steps(&written, &new);
    let changed = ops.into_iter().filter(|op| !matches!(op, DiffOp::Equal { .. })).map(|op| {
        let gone = &words[op.old_range()];
        let at = words.get(op.old_range().start).map_or(ends, |(_, range)| range.start);
        (at..gone.last().map_or(at, |(_, range)| range.end), new[op.new_range()].concat())
    });
    Some(changed.collect())
}

/// The words of a line with their bytes in the file, where it starts at `start`; absent when the two do not look the same.
fn aligned<'a>(text: &'a str, there: &'a str, start: usize, words: &mut Vec<Word<'a>>) -> Option<()> {
    let mut at = 0;
    let mut rest = split(text).peekable();
    while let Some(word) = rest.next() {
        let first = at;
        let mut inside = word;
        while !inside.is_empty() && at < there.len() {
            let (one, other) = (cluster_len(inside), cluster_len(&there[at..]));
            if folded(&inside.as_bytes()[..one]) != folded(&there.as_bytes()[at..at + other]) {
                break;
            }
            (inside, at) = (&inside[one..], at + other);
        }
        let (seen, absent) = word.split_at(word.len() - inside.len());
        // White space at the end of a line is no part of how it looks.
        if !blank(absent) || rest.peek().is_some() && !absent.is_empty() {
            return None;
        }
        words.extend((!seen.is_empty()).then_some((seen, start + first..start + at)));
    }
    let over = &there[at..];
    words.extend((!over.is_empty()).then_some((over, start + at..start + there.len())));
    blank(over).then_some(())
}

/// Words, and every other character by itself.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let is_word = |it: char| it.is_alphanumeric() || it == '_';
        let word = rest.len() - rest.trim_start_matches(is_word).len();
        let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let mut length = [word, blank].into_iter().max().filter(|length| *length > 0);
        if let Some(length) = &mut length {
            // A mark that joins the last character goes with it.
            let last = rest[..*length].char_indices().next_back()?.0;
            *length = last + cluster_len(&rest[last..]);
        }
        let length = length.or_else(|| Some(cluster_len(rest)).filter(|length| *length > 0))?;
        let (found, after) = rest.split_at(length);
        rest = after;
        Some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn becomes(there: &str, old: &str, new: &str) -> Option<String> {
        let found = Found { old, there: there.as_bytes(), start: 0, end: 0..0, shifted: false };
        let mut text = there.to_owned();
        for (range, new) in changes(&[found], || new.to_owned())?.into_iter().rev() {
            text.replace_range(range, &new);
        }
        Some(text)
    }

    #[test]
    fn words_that_stay_keep_their_bytes() {
        for (there, old, new, right) in [
            (
                "say \u{201c}hi\u{201d} and \u{201c}yo\u{201d}",
                "say \"hi\" and \"yo\"",
                "say \"hi\" and \"you\"",
                "say \u{201c}hi\u{201d} and \u{201c}you\u{201d}",
            ),
            ("cafe\u{301} = na\u{ef}ve;  ", "caf\u{e9} = na\u{ef}ve;", "caf\u{e9} = nice;", "cafe\u{301} = nice;"),
            ("a\u{a0}\u{2014} b", "a - b", "a - c", "a\u{a0}\u{2014} c"),
            ("\u{2018}a\u{2019}", "'a'", "\"a\"", "\"a\""),
            ("\u{2018}a\u{2019}  ", "'a'", "'a' b", "\u{2018}a\u{2019} b"),
            ("\u{2018}a\u{2019}", "'a' ", "'a' b", "\u{2018}a\u{2019} b"),
        ] {
            assert_eq!(becomes(there, old, new).as_deref(), Some(right), "{there}");
        }
        assert_eq!(becomes("plain", "plain", "other"), None);
        assert_eq!(becomes("\u{201c}a", "\"b", "\"c"), None);
    }

    #[test]
    fn every_byte_is_in_one_word() {
        for text in ["", "a_1 = \"b\";", "e\u{301}e\u{301}x \u{301}", "\t  x", "\u{1100}\u{1161}\u{ac01}"] {
            assert_eq!(split(text).collect::<String>(), text);
        }
        assert_eq!(split("a_1 =\te\u{301}(").collect::<Vec<_>>(), ["a_1", " ", "=", "\t", "e\u{301}", "("]);
    }
}
