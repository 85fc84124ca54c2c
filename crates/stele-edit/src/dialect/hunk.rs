//! One hunk of a unified diff: what its header says, and which lines belong to it.

use super::{Fault, fence, left};
use crate::text::blank;

/// What an `@@` line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// First line and count of the old side.
    pub(super) old: Option<(u64, u64)>,
    pub(super) new: Option<(u64, u64)>,
    /// The text after the second `@@`, or all of it where there are no numbers.
    pub(super) name: String,
}

impl Header {
    pub(super) fn read(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("@@").filter(|rest| !rest.starts_with('@'))?.trim();
        let side = |text: &str, mark: char| -> Option<(u64, u64)> {
            let (first, count) = text.strip_prefix(mark)?.split_once(',').unwrap_or((&text[1..], "1"));
            Some((first.parse().ok()?, count.parse().ok()?))
        };
        let mut words = rest.splitn(3, ' ');
        let old = words.next().and_then(|word| side(word, '-'));
        let new = words.next().and_then(|word| side(word.trim_end_matches('@'), '+'));
        if old.is_none() {
            let name = rest.strip_suffix("@@").unwrap_or(rest).trim();
            let name =
                if name.bytes().all(|byte| matches!(byte, b'.' | b'-' | b'+' | b',' | b' ')) { "" } else { name };
            return Some(Self { old: None, new: None, name: name.to_owned() });
        }
        let after = words.next().unwrap_or_default().trim_start();
        Some(Self { old, new, name: after.strip_prefix("@@").unwrap_or(after).trim().to_owned() })
    }
}

/// The side or sides of a line of a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Same,
    Old,
    New,
}

#[derive(Default)]
pub(super) struct Hunk<'a> {
    pub(super) lines: Vec<(Mark, &'a str)>,
    /// Lines with `\ No newline at end of file` after them.
    pub(super) open: Vec<usize>,
    /// The first line of the input that has no mark and was taken as context.
    pub(super) unmarked: Option<usize>,
}

impl<'a> Hunk<'a> {
    fn push(&mut self, line: &'a str) -> bool {
        let mark = match line.as_bytes().first() {
            None => {
                self.lines.push((Mark::Same, ""));
                return true;
            }
            Some(b' ') => Mark::Same,
            Some(b'-') => Mark::Old,
            Some(b'+') => Mark::New,
            Some(b'\\') => {
                self.open.extend(self.lines.len().checked_sub(1));
                return true;
            }
            Some(_) => return false,
        };
        self.lines.push((mark, &line[1..]));
        true
    }

    pub(super) fn side(&self, without: Mark) -> Vec<&'a str> {
        self.lines.iter().filter(|(mark, _)| *mark != without).map(|(_, line)| *line).collect()
    }

    /// True when the last line of a side is marked as one without a line end.
    pub(super) fn ends_open(&self, without: Mark) -> bool {
        let last = self.lines.iter().rposition(|(mark, _)| *mark != without);
        last.is_some_and(|last| self.open.contains(&last))
    }

    /// True when a header counts more lines than there are.
    fn is_short_of(&self, header: &Header) -> bool {
        let less = |without: Mark, counted: Option<(u64, u64)>| {
            let there = self.lines.iter().filter(|(mark, _)| *mark != without).count() as u64;
            counted.is_some_and(|(_, count)| there < count)
        };
        less(Mark::New, header.old) || less(Mark::Old, header.new)
    }

    /// Whether the file ends with a line end afterwards, where the markers say that it changes.
    pub(super) fn final_newline(&self) -> Option<bool> {
        let (old, new) = (self.ends_open(Mark::New), self.ends_open(Mark::Old));
        (old != new).then_some(old)
    }
}

/// `--- old` with `+++ new` after it.
pub(super) fn file_header(lines: &[&str], at: usize) -> bool {
    lines[at].starts_with("--- ") && lines.get(at + 1).is_some_and(|line| line.starts_with("+++ "))
}

/// The hunk as its header counts it, when that ends where a hunk can end.
pub(super) fn counted<'a>(lines: &[&'a str], start: usize, header: &Header) -> Option<(Hunk<'a>, usize)> {
    let (mut old, mut new) = (header.old?.1, header.new?.1);
    let mut hunk = Hunk::default();
    let mut at = start;
    while old > 0 || new > 0 {
        let line = lines.get(at)?;
        if !hunk.push(line) {
            return None;
        }
        let (takes_old, takes_new) = match line.as_bytes().first() {
            Some(b'-') => (1, 0),
            Some(b'+') => (0, 1),
            Some(b'\\') => (0, 0),
            _ => (1, 1),
        };
        (old, new) = (old.checked_sub(takes_old)?, new.checked_sub(takes_new)?);
        at += 1;
    }
    if lines.get(at).is_some_and(|line| line.starts_with('\\')) {
        hunk.push(lines[at]);
        at += 1;
    }
    // Marked lines after it show that the counts are wrong: half a hunk must not be taken for a whole one.
    let end = (at..lines.len()).find(|at| boundary(lines, *at)).unwrap_or(lines.len());
    let after = (at..end).find(|at| !lines[*at].is_empty()).unwrap_or(end);
    let more = lines[after..end].iter().take_while(|line| !line.is_empty()).any(|line| line.starts_with(' '))
        || lines[at..end].iter().any(|line| line.starts_with(['+', '-']));
    (!more).then_some((hunk, at))
}

/// True where a hunk ends whatever its header says.
fn boundary(lines: &[&str], at: usize) -> bool {
    let line = lines[at];
    line.starts_with("@@")
        || line.starts_with("diff --git ")
        || line.starts_with("*** ")
        || line == "-- "
        || fence::is_mark(line) && !line.starts_with([' ', '+', '-'])
        || file_header(lines, at) && lines.get(at + 2).is_some_and(|line| line.starts_with("@@"))
        || left::starts(line)
}

/// The hunk up to where one can end, whatever its header counts. A line without a mark is context that lost its space:
/// where it is none, the hunk fits nowhere. Only what stands apart at the end, after a blank line, may be no part of it.
///
/// # Errors
/// The header counts more lines than there are marked ones, and lines without a mark stand at the end.
pub(super) fn loose<'a>(lines: &[&'a str], start: usize, header: &Header) -> Result<(Hunk<'a>, usize), Fault> {
    let limit = (start..lines.len()).find(|at| boundary(lines, *at)).unwrap_or(lines.len());
    let last = (start..limit).rev().find(|at| lines[*at].starts_with(['+', '-', '\\', ' ']));
    let apart = last.map_or(start, |last| last + 1);
    let end = (apart..limit).find(|at| blank(lines[*at])).unwrap_or(limit);
    let mut hunk = Hunk::default();
    for (at, line) in lines.iter().enumerate().take(end).skip(start) {
        if !hunk.push(line) {
            hunk.lines.push((Mark::Same, line));
            hunk.unmarked.get_or_insert(at);
        }
    }
    while hunk.lines.len() > 1 && hunk.lines.last().is_some_and(|(mark, line)| *mark == Mark::Same && blank(line)) {
        hunk.lines.pop();
    }
    if let Some(unmarked) = (end..limit).find(|at| !blank(lines[*at])).filter(|_| hunk.is_short_of(header)) {
        let why = "the header counts more lines than its hunk has, and this line has no mark; put a space, `+` or `-` in \
                   front of every line of the hunk, also of those inside a string";
        return Err(Fault::broken(unmarked, why));
    }
    Ok((hunk, end))
}
