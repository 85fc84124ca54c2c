//! From a place to the bytes that change there: lines that old and new text share keep the file's own bytes.

use std::ops::Range;

use similar::DiffOp;

use super::indent::{Shift, shifted, shifts};
use super::own;
use super::view::key;
use super::{Hit, Level, Match, Unit, Way};
use crate::compare;
use crate::refuse::{Code, Refusal};
use crate::text::{LineEnd, Source, blank, indentation, line_feeds, pieces};

/// A stretch of the file and what takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub range: Range<usize>,
    pub text: String,
}

/// An old text as whole lines.
pub(super) struct Whole {
    /// The text starts with the end of the line before.
    pub lead: bool,
    /// The text holds the end of its last line.
    pub tail: bool,
    pub lines: Vec<String>,
}

impl Whole {
    pub(super) fn new(unit: Unit, old: &str, skip_blank: bool) -> Self {
        let mut lines = pieces(old);
        let text = unit == Unit::Text && lines.len() > 1;
        let lead = text && lines[0].is_empty() && !skip_blank;
        let tail = text && lines[lines.len() - 1].is_empty();
        if tail {
            lines.pop();
        }
        if lead {
            lines.remove(0);
        }
        if skip_blank {
            lines.retain(|line| !blank(line));
        }
        Self { lead, tail, lines }
    }
}

/// The bytes that lines of the file cover as a place.
pub(super) fn range(source: &Source<'_>, unit: Unit, whole: &Whole, lines: Range<usize>) -> Range<usize> {
    let start =
        if whole.lead && lines.start > 0 { source.lines[lines.start - 1].end } else { source.lines[lines.start].start };
    let last = source.lines[lines.end - 1];
    start..if unit == Unit::Text && whole.tail { last.next } else { last.end }
}

/// The shifts that fit lines of the file; true when the first line was written without its indentation.
pub(super) fn line_shifts(
    source: &Source<'_>,
    unit: Unit,
    whole: &Whole,
    way: Way,
    lines: Range<usize>,
) -> (Vec<Shift>, bool) {
    if way == Way::Bytes {
        return (vec![Shift::None], false);
    }
    let there = lines.map(|line| source.content(line)).filter(|line| !key(line, Level::Indentation).is_empty());
    let written = whole.lines.iter().filter(|line| !blank(line));
    let pairs: Vec<(&str, &[u8])> = written
        .zip(there)
        .map(|(written, there)| {
            let rest = there.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(there.len());
            (indentation(written).0, &there[..rest])
        })
        .collect();
    let found = shifts(&pairs);
    if found.is_empty() && unit == Unit::Text && !whole.lead && pairs.len() > 1 && pairs[0].0.is_empty() {
        return (shifts(&pairs[1..]), true);
    }
    (found, false)
}

/// One line of the old text in the file.
#[derive(Clone, Debug)]
struct Piece {
    content: Range<usize>,
    /// Its line end, with blank lines that the old text does not have; empty where the text stops before it.
    end: Range<usize>,
    /// A blank line of the old text that the file does not have.
    absent: bool,
}

impl Piece {
    fn new(content: Range<usize>, end: Range<usize>) -> Self {
        Self { content, end, absent: false }
    }

    fn absent(at: usize) -> Self {
        Self { content: at..at, end: at..at, absent: true }
    }
}

/// The lines of the old text at a place.
struct Place<'a> {
    source: &'a Source<'a>,
    layout: &'a [Piece],
    old: &'a [String],
    /// The file may have them with another indentation.
    shifted: bool,
}

impl Place<'_> {
    /// What changes word by word where lines are replaced that look like the old ones, but are other bytes.
    fn words(&self, op: &DiffOp, new: impl FnOnce() -> String) -> Option<Vec<(Range<usize>, String)>> {
        let DiffOp::Replace { .. } = op else { return None };
        let lines = op.old_range().map(|line| {
            let piece = Some(&self.layout[line]).filter(|piece| !piece.absent)?;
            Some(own::Found {
                old: &self.old[line],
                there: &self.source.bytes[piece.content.clone()],
                start: piece.content.start,
                end: piece.end.clone(),
                shifted: self.shifted,
            })
        });
        own::changes(&lines.collect::<Option<Vec<_>>>()?, new)
    }
}

/// What changes at one place.
///
/// # Errors
/// `edit.not_found` when the new text cannot take the indentation of the place, `edit.encoding`.
pub(crate) fn changes(source: &Source<'_>, found: &Match, hit: &Hit) -> Result<Vec<Change>, Refusal> {
    let line_end = source.line_end_at(&hit.range);
    let new_text = found.texts.new.as_deref().unwrap_or_default();
    if found.unit == Unit::Text && found.level == Level::Exact {
        source.takes(new_text)?;
        return Ok(vec![Change { range: hit.range.clone(), text: with_line_ends(new_text, line_end) }]);
    }
    let mut old = pieces(&found.texts.old);
    let mut new = found.texts.new.as_deref().map(pieces).unwrap_or_default();
    let (layout, shifts, inner) = layout(source, found, hit, &mut old, &mut new);
    let ops = compare::steps(&old, &new);
    let mut added: Vec<usize> = ops.iter().flat_map(added_lines).collect();
    if inner {
        added.retain(|line| *line > 0);
    }
    let lines: Vec<&str> = added.iter().map(|line| new[*line].as_str()).collect();
    let Some(lines) = shifted(&shifts, &lines) else {
        return Err(Refusal::new(
            Code::NotFound,
            format!(
                "the old text is at line {} with another indentation, and how the new text has to be indented there \
                 cannot be told; copy the indentation of the file",
                hit.line + 1
            ),
        ));
    };
    for (at, line) in added.into_iter().zip(lines) {
        new[at] = line;
    }
    let at_end = hit.end_line == source.lines.len();
    let ends = match (found.unit, found.final_newline.filter(|_| at_end)) {
        (Unit::Text, _) => false,
        (Unit::Lines, Some(newline)) => newline,
        (Unit::Lines, None) => layout.last().is_some_and(|piece| !piece.end.is_empty() || piece.absent),
    };
    let place = Place { source, layout: &layout, old: &old, shifted: found.way != Way::Bytes };
    let mut rewritten = rewrite(&ops, &place, &new, line_end, ends);
    rewritten.iter_mut().for_each(|change| keep_line_end(source, change));
    for change in &rewritten {
        source.takes(&change.text)?;
    }
    Ok(without_last_line_end(source, found, rewritten, &new))
}

fn added_lines(op: &DiffOp) -> Range<usize> {
    if matches!(op, DiffOp::Equal { .. }) { 0..0 } else { op.new_range() }
}

/// Where each line of the old text is in the file. Lines that neither the file nor the new text has are dropped.
fn layout(
    source: &Source<'_>,
    found: &Match,
    hit: &Hit,
    old: &mut Vec<String>,
    new: &mut Vec<String>,
) -> (Vec<Piece>, Vec<Shift>, bool) {
    if found.way == Way::Bytes {
        let layout = by_bytes(source, &hit.range);
        if layout.len() < old.len() {
            drop_last_line_end(old, new);
        }
        return (layout, vec![Shift::None], false);
    }
    let whole = Whole::new(found.unit, &found.texts.old, found.way == Way::Blanks);
    let last = source.lines[hit.end_line - 1];
    if found.unit == Unit::Text && whole.tail && last.end == last.next {
        drop_last_line_end(old, new);
    }
    // Whole lines matched as they are need no shift.
    let exact = found.level < Level::Indentation;
    let (shifts, inner) = if exact {
        (vec![Shift::None], false)
    } else {
        line_shifts(source, found.unit, &whole, found.way, hit.line..hit.end_line)
    };
    let mut layout = match found.way {
        Way::Blanks => by_blanks(source, found.unit, hit, old),
        _ => by_lines(source, found.unit, hit, &whole, old.len()),
    };
    if inner && let Some(first) = layout.first_mut() {
        let content = &source.bytes[first.content.clone()];
        first.content.start += content.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    }
    while layout.len() > 1
        && new.len() > 1
        && layout.last().is_some_and(|piece| piece.absent)
        && old.last() == new.last()
    {
        layout.pop();
        old.pop();
        new.pop();
    }
    (layout, shifts, inner)
}

/// The file ends inside its last line: the old text has one line end too many, and so has the new one.
fn drop_last_line_end(old: &mut Vec<String>, new: &mut Vec<String>) {
    old.pop();
    if new.len() > 1 && new.last().is_some_and(String::is_empty) {
        new.pop();
    }
}

fn by_bytes(source: &Source<'_>, range: &Range<usize>) -> Vec<Piece> {
    let mut layout = Vec::new();
    let mut at = range.start;
    for line in &source.lines[source.line_at(range.start).min(source.lines.len())..] {
        if line.end == line.next || line.next > range.end {
            break;
        }
        layout.push(Piece::new(at.min(line.end)..line.end, line.end..line.next));
        at = line.next;
    }
    layout.push(Piece::new(at..range.end.max(at), range.end.max(at)..range.end.max(at)));
    layout
}

fn by_lines(source: &Source<'_>, unit: Unit, hit: &Hit, whole: &Whole, count: usize) -> Vec<Piece> {
    let mut layout = Vec::with_capacity(count);
    if whole.lead && hit.line > 0 {
        let before = source.lines[hit.line - 1];
        layout.push(Piece::new(before.end..before.end, before.end..before.next));
    }
    layout.extend(
        source.lines[hit.line..hit.end_line].iter().map(|line| Piece::new(line.start..line.end, line.end..line.next)),
    );
    close(&mut layout, unit, count);
    layout
}

/// Text stops before the end of its last line, or after it with one more, empty, piece.
fn close(layout: &mut Vec<Piece>, unit: Unit, count: usize) {
    let pieces = layout.len();
    let Some(last) = layout.last_mut().filter(|_| unit == Unit::Text) else { return };
    let at = last.end.end;
    if count > pieces {
        layout.push(Piece::new(at..at, at..at));
    } else {
        last.end = last.content.end..last.content.end;
    }
}

fn by_blanks(source: &Source<'_>, unit: Unit, hit: &Hit, old: &[String]) -> Vec<Piece> {
    let lines = &source.lines;
    let is_blank = |line: usize| key(source.content(line), Level::Indentation).is_empty();
    let mut layout = Vec::with_capacity(old.len());
    let leading = old.iter().take_while(|line| blank(line)).count();
    let there = (0..hit.line).rev().take(leading).take_while(|line| is_blank(*line)).count();
    let first = hit.line - there;
    layout.extend((there..leading).map(|_| Piece::absent(lines[first].start)));
    layout.extend(lines[first..hit.line].iter().map(|line| Piece::new(line.start..line.end, line.end..line.next)));
    let mut at = hit.line;
    let mut rest = old[leading..].iter().peekable();
    while rest.next().is_some() && at < hit.end_line {
        // One line that is not blank, then the blank ones after it on both sides.
        let line = lines[at];
        let mut written = 0;
        while rest.next_if(|line| blank(line)).is_some() {
            written += 1;
        }
        let next = (at + 1..hit.end_line).find(|line| !is_blank(*line));
        let mut piece = Piece::new(line.start..line.end, line.end..line.next);
        let Some(next) = next else {
            layout.push(piece);
            let marks_end = unit == Unit::Text && written > 0;
            let blanks = written - usize::from(marks_end);
            let mut last = at;
            for _ in 0..blanks {
                if last + 1 < lines.len() && is_blank(last + 1) {
                    last += 1;
                    layout.push(Piece::new(lines[last].start..lines[last].end, lines[last].end..lines[last].next));
                } else {
                    layout.push(Piece::absent(lines[last].next));
                }
            }
            if !layout.last().is_some_and(|piece| piece.absent) || marks_end {
                let count = layout.len() + usize::from(marks_end);
                close(&mut layout, unit, count);
            }
            break;
        };
        let gap = line.next..lines[next].start;
        if written == 0 {
            piece.end.end = gap.end;
            layout.push(piece);
        } else {
            layout.push(piece);
            layout.push(if gap.is_empty() {
                Piece::absent(gap.start)
            } else {
                Piece::new(gap.start..gap.start, gap.clone())
            });
            layout.extend((1..written).map(|_| Piece::absent(gap.end)));
        }
        at = next;
    }
    layout
}

/// Turns a difference of lines into changes of bytes; `ends` tells whether the last line keeps a line end.
fn rewrite(ops: &[DiffOp], place: &Place<'_>, new: &[String], line_end: LineEnd, ends: bool) -> Vec<Change> {
    let layout = place.layout;
    let mut changes: Vec<Change> = Vec::new();
    let mut push = |range: Range<usize>, text: &str| {
        if range.is_empty() && text.is_empty() {
            return;
        }
        match changes.last_mut().filter(|last| last.range.end == range.start) {
            Some(last) => {
                last.range.end = range.end;
                last.text.push_str(text);
            }
            None => changes.push(Change { range, text: text.to_owned() }),
        }
    };
    let wants_end = |line: usize| line + 1 < new.len() || ends;
    for op in ops {
        if let DiffOp::Equal { old_index, new_index, len } = *op {
            for step in 0..len {
                let piece = &layout[old_index + step];
                match (piece.absent, wants_end(new_index + step), piece.end.is_empty()) {
                    (false, true, true) => push(piece.end.clone(), line_end.as_str()),
                    (false, false, false) => push(piece.end.clone(), ""),
                    _ => {}
                }
            }
            continue;
        }
        let text = || op.new_range().map(|line| new[line].clone() + if wants_end(line) { "\n" } else { "" }).collect();
        if let Some(words) = place.words(op, text) {
            words.into_iter().for_each(|(range, text)| push(range, &text.replace('\n', line_end.as_str())));
            continue;
        }
        for piece in &layout[op.old_range()] {
            push(piece.content.start..piece.end.end, "");
        }
        let before = op.old_range().end.checked_sub(1).map(|line| layout[line].end.end);
        let at = layout.get(op.old_range().end).map(|piece| piece.content.start).or(before).unwrap_or_default();
        for line in op.new_range() {
            push(at..at, &new[line]);
            push(at..at, if wants_end(line) { line_end.as_str() } else { "" });
        }
    }
    changes
}

/// A line end that stays is no part of a change: what comes before it may be removed by another edit.
fn keep_line_end(source: &Source<'_>, change: &mut Change) {
    for end in ["\r\n", "\n", "\r"] {
        if change.text.ends_with(end) && source.bytes[change.range.clone()].ends_with(end.as_bytes()) {
            change.text.truncate(change.text.len() - end.len());
            change.range.end -= end.len();
            return;
        }
    }
}

/// Whole lines removed at the end of a file that ends inside a line take the line end before them along.
fn without_last_line_end(source: &Source<'_>, found: &Match, mut changes: Vec<Change>, new: &[String]) -> Vec<Change> {
    let (Unit::Lines, true, [only]) = (found.unit, new.is_empty(), changes.as_mut_slice()) else { return changes };
    if only.range.end == source.bytes.len() && source.cut_at_end() && found.final_newline != Some(true) {
        let first = source.line_at(only.range.start);
        if first > 0 {
            only.range.start = source.lines[first - 1].end;
        }
    }
    changes
}

/// Text with the line ends of the place it goes to.
pub(crate) fn with_line_ends(text: &str, line_end: LineEnd) -> String {
    let text = line_feeds(text);
    if line_end == LineEnd::Lf { text } else { text.replace('\n', line_end.as_str()) }
}
