//! From requests to the new bytes of one file: find all, check that they agree, replace.

mod said;

use std::collections::BTreeSet;
use std::ops::Range;

use crate::Dialect;
use crate::edit::{Applied, Healed, OnAmbiguous, Options, Place};
use crate::find::pattern::{self, Substitution};
use crate::find::{self, Change, Climb, Hit, Match, Outcome, Sought, Texts, Unit, with_line_ends};
use crate::refuse::{Code, Refusal};
use crate::text::{LineEnd, Source, line_feeds, refuse_nul};

/// One thing to do to a file, whatever it was written in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Replace a text; `names` are the lines of `@@`, which narrow down where.
    Find { sought: Sought, names: Vec<String>, names_must_be_there: bool },
    /// Put in whole lines.
    Insert { at: InsertAt, lines: Vec<String>, final_newline: Option<bool> },
    /// A `sed` command.
    Substitute(Substitution),
    /// Replace everything.
    Whole(String),
}

/// Where lines are put in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InsertAt {
    End,
    /// After that many lines.
    AfterLine(u64),
    /// After the only line that these `@@` lines lead to.
    AfterNames(Vec<String>),
}

/// What one request comes to.
struct Piece {
    request: usize,
    region: Range<usize>,
    line: usize,
    /// False for hunks, whose unchanged lines others may share.
    solid: bool,
    changes: Vec<Change>,
}

/// How many failed edits one refusal tells about.
const FAILURES: usize = 3;

/// Does all requests to a file or none.
pub(crate) fn perform(
    options: &Options,
    original: &[u8],
    requests: &[Request],
    dialect: Dialect,
) -> Result<Applied, Refusal> {
    let source = Source::new(original)?;
    let mut work = Work { source: &source, requests, dialect, options, notes: Vec::new(), healed: BTreeSet::new() };
    let pieces = work.pieces()?;
    refuse_overlap(&source, &pieces, dialect, requests.len())?;
    let mut places: Vec<(usize, Place)> = pieces
        .iter()
        .map(|piece| (piece.region.start, Place { edit: piece.request, line: piece.line as u64 + 1 }))
        .collect();
    places.sort_by_key(|(at, place)| (*at, place.edit));
    let mut changes: Vec<Change> = pieces.into_iter().flat_map(|piece| piece.changes).collect();
    changes.sort_by_key(|change| (change.range.start, change.range.end));
    let bytes = replace(original, &changes);
    if bytes == original {
        return Err(Refusal::new(Code::NoChange, "the file would stay as it is; nothing was changed"));
    }
    refuse_nul(&bytes)?;
    Ok(Applied {
        bytes,
        notes: work.notes,
        healed: work.healed.into_iter().collect(),
        places: places.into_iter().map(|(_, place)| place).collect(),
        dialect,
    })
}

fn replace(original: &[u8], changes: &[Change]) -> Vec<u8> {
    let grown: usize = changes.iter().map(|change| change.text.len()).sum();
    let mut bytes = Vec::with_capacity(original.len() + grown);
    let mut at = 0;
    for change in changes {
        bytes.extend_from_slice(&original[at..change.range.start]);
        bytes.extend_from_slice(change.text.as_bytes());
        at = change.range.end;
    }
    bytes.extend_from_slice(&original[at..]);
    bytes
}

/// `edit 2 of 3`, or nothing when there is only one.
fn label(dialect: Dialect, request: usize, of: usize) -> String {
    if of > 1 { format!("{} {} of {of}", dialect.noun(), request + 1) } else { String::new() }
}

struct Work<'a> {
    source: &'a Source<'a>,
    requests: &'a [Request],
    dialect: Dialect,
    options: &'a Options,
    notes: Vec<String>,
    healed: BTreeSet<Healed>,
}

impl Work<'_> {
    fn label(&self, request: usize) -> String {
        label(self.dialect, request, self.requests.len())
    }

    fn note(&mut self, request: usize, note: String) {
        let label = self.label(request);
        self.notes.push(if label.is_empty() { note } else { format!("{label}: {note}") });
    }

    fn pieces(&mut self) -> Result<Vec<Piece>, Refusal> {
        let mut pieces = Vec::new();
        let mut sought: Vec<(usize, Sought)> = Vec::new();
        let mut failures: Vec<(usize, Refusal)> = Vec::new();
        for (index, request) in self.requests.iter().enumerate() {
            let done = match request {
                Request::Find { sought: one, names, names_must_be_there } => {
                    self.scoped(one, names, *names_must_be_there).map(|one| sought.push((index, one)))
                }
                Request::Insert { at, lines, final_newline } => {
                    self.insert(index, at, lines, *final_newline).map(|piece| pieces.push(piece))
                }
                Request::Substitute(command) => self.substitute(index, command, &mut pieces, &mut sought),
                Request::Whole(text) => self.whole(index, text).map(|piece| pieces.push(piece)),
            };
            failures.extend(done.err().map(|refusal| (index, refusal)));
        }
        let (indexes, texts): (Vec<usize>, Vec<Sought>) = sought.into_iter().unzip();
        let climb = Climb { fuzzy: self.options.fuzzy, on_ambiguous: self.options.on_ambiguous };
        let mut explained = 0;
        for ((index, sought), outcome) in indexes.into_iter().zip(&texts).zip(find::find(self.source, &texts, climb)) {
            let done = match outcome {
                Outcome::Found(found) => self.found(index, &found, &mut pieces),
                Outcome::Refused(refusal) => Err(refusal),
                Outcome::Several { hits, count, more } => {
                    Err(said::several(self.source, self.dialect, &hits, count, more))
                }
                // Looking for the closest region is worth its time only for what is shown.
                Outcome::Missing if explained < FAILURES => {
                    explained += 1;
                    Err(said::missing(self.source, sought))
                }
                Outcome::Missing => Err(Refusal::new(Code::NotFound, String::new())),
            };
            failures.extend(done.err().map(|refusal| (index, refusal)));
        }
        let same = |piece: &Piece| {
            piece.changes.iter().all(|change| self.source.bytes[change.range.clone()] == *change.text.as_bytes())
        };
        let changing: BTreeSet<usize> = pieces.iter().filter(|piece| !same(piece)).map(|piece| piece.request).collect();
        let idle = pieces.iter().filter(|piece| !changing.contains(&piece.request));
        failures.extend(idle.map(|piece| {
            let text = format!("it changes nothing (line {}); leave it out or correct it", piece.line + 1);
            (piece.request, Refusal::new(Code::NoChange, text))
        }));
        self.refuse(failures)?;
        Ok(pieces)
    }

    /// The first failure, with up to two more in its message.
    fn refuse(&self, mut failures: Vec<(usize, Refusal)>) -> Result<(), Refusal> {
        failures.sort_by_key(|(index, _)| *index);
        failures.dedup_by_key(|(index, _)| *index);
        let Some((_, first)) = failures.first() else { return Ok(()) };
        let code = first.code;
        let shown = failures.iter().filter(|(_, refusal)| !refusal.message.is_empty()).take(FAILURES);
        let shown: Vec<String> =
            shown.map(|(index, refusal)| refusal.clone().about(&self.label(*index)).message).collect();
        let rest = failures.len() - shown.len();
        let mut message = shown.join("\n\n");
        if rest > 0 {
            message.push_str(&format!("\n\nand {rest} more failed"));
        }
        if self.requests.len() > 1 {
            message.push_str("\n\nnothing was changed, the others were not applied either");
        }
        Err(Refusal { code, message })
    }

    fn scoped(&self, sought: &Sought, names: &[String], must: bool) -> Result<Sought, Refusal> {
        let mut sought = sought.clone();
        if !names.is_empty() {
            sought.scope = find::scope::scope(self.source, names);
            if sought.scope.is_none() && must {
                return Err(said::no_such_name(names));
            }
        }
        Ok(sought)
    }

    fn found(&mut self, index: usize, found: &Match, pieces: &mut Vec<Piece>) -> Result<(), Refusal> {
        for hit in &found.hits {
            let changes = find::changes(self.source, found, hit)?;
            pieces.push(Piece {
                request: index,
                region: hit.range.clone(),
                line: hit.line,
                solid: found.unit == Unit::Text,
                changes,
            });
        }
        if !found.healed.is_empty() {
            let names: Vec<&str> = found.healed.iter().map(|healed| healed.as_str()).collect();
            self.note(index, format!("the text matched only after forgiving: {}", names.join(", ")));
            self.healed.extend(found.healed.iter().copied());
        }
        let all = matches!(&self.requests[index], Request::Find { sought, .. } if sought.all);
        if self.options.on_ambiguous == OnAmbiguous::Last && found.of > found.hits.len() && !all {
            let line = found.hits.first().map_or(0, |hit| hit.line + 1);
            let text = format!("the text is at {} places, line {line} was changed; give more context", found.of);
            self.note(index, text);
        }
        Ok(())
    }

    fn insert(
        &mut self,
        index: usize,
        at: &InsertAt,
        lines: &[String],
        final_newline: Option<bool>,
    ) -> Result<Piece, Refusal> {
        let count = self.source.lines.len();
        let after = match at {
            InsertAt::End => count,
            InsertAt::AfterLine(line) => {
                usize::try_from(*line).ok().filter(|line| *line <= count).ok_or_else(|| {
                    Refusal::new(
                        Code::NotFound,
                        format!("line {line} is beyond the file's {count} lines; give context lines"),
                    )
                })?
            }
            InsertAt::AfterNames(names) => {
                let found = find::scope::scope(self.source, names).ok_or_else(|| said::no_such_name(names))?;
                let [only] = found.blocks.as_slice() else {
                    let hits: Vec<Hit> =
                        found.blocks.iter().take(5).map(|block| hit(self.source, block.start)).collect();
                    return Err(said::several(self.source, self.dialect, &hits, found.blocks.len(), false));
                };
                only.start + 1
            }
        };
        let end = self.source.lines.get(after).map_or(self.source.bytes.len(), |line| line.start);
        let line_end = self.source.line_end_at(&(end..end)).as_str();
        let text = lines.join(line_end);
        self.source.takes(&text)?;
        // An empty search with nothing to put in.
        if lines.is_empty() {
            return Err(Refusal::new(Code::NoChange, "there is nothing to find and nothing to put in; leave it out"));
        }
        let at_end = after == count;
        let cut = self.source.cut_at_end();
        // The end of the file stays as it was, unless the input says how it is to be.
        let closes = !at_end || final_newline.unwrap_or(count == 0 || !cut);
        let opens = at_end && cut && count > 0;
        let text = format!("{}{text}{}", if opens { line_end } else { "" }, if closes { line_end } else { "" });
        if matches!(at, InsertAt::End) {
            let done = if count == 0 { "filled the empty file" } else { "was appended at the end of the file" };
            self.note(index, format!("there was nothing to find, so the text {done}"));
        }
        if let InsertAt::AfterNames(_) = at {
            self.note(index, format!("there was nothing to find, so the text was put after line {after}"));
        }
        Ok(Piece {
            request: index,
            region: end..end,
            line: after.min(count.saturating_sub(1)),
            solid: false,
            changes: vec![Change { range: end..end, text }],
        })
    }

    fn substitute(
        &mut self,
        index: usize,
        command: &Substitution,
        pieces: &mut Vec<Piece>,
        sought: &mut Vec<(usize, Sought)>,
    ) -> Result<(), Refusal> {
        match pattern::locate(self.source, command)? {
            pattern::Found::Places(changes) => {
                pieces.extend(changes.into_iter().map(|change| Piece {
                    request: index,
                    region: change.range.clone(),
                    line: self.source.line_at(change.range.start),
                    solid: true,
                    changes: vec![change],
                }));
                Ok(())
            }
            pattern::Found::Several(lines) => {
                let hits: Vec<Hit> = lines.iter().take(5).map(|line| hit(self.source, *line)).collect();
                Err(said::several(self.source, self.dialect, &hits, lines.len(), false))
            }
            pattern::Found::Nowhere if command.uses_groups() => {
                let text = "the pattern matches nothing, neither as an expression nor as text; give old and new text";
                Err(Refusal::new(Code::NotFound, text))
            }
            pattern::Found::Nowhere => {
                let new = command.literal_replacement();
                let texts = Texts { old: command.pattern.clone(), new: Some(new) };
                let one = Sought {
                    unit: Unit::Text,
                    texts,
                    all: command.global,
                    near: None,
                    at_end: false,
                    scope: None,
                    final_newline: None,
                };
                sought.push((index, one));
                Ok(())
            }
        }
    }

    fn whole(&self, index: usize, text: &str) -> Result<Piece, Refusal> {
        let source = self.source;
        let text = text.strip_prefix('\u{feff}').filter(|_| source.mark > 0).unwrap_or(text);
        source.takes(text)?;
        let keeps = !source.lines.is_empty();
        let text = if keeps { with_line_ends(text, source.line_end) } else { text.to_owned() };
        // As every other change, this one leaves the end of the file as it was.
        let text = match text.strip_suffix(source.line_end.as_str()) {
            Some(open) if source.cut_at_end() && self.dialect == Dialect::Whole => open.to_owned(),
            _ => text,
        };
        let start = source.mark;
        Ok(Piece {
            request: index,
            region: start..source.bytes.len(),
            line: 0,
            solid: true,
            changes: vec![Change { range: start..source.bytes.len(), text }],
        })
    }
}

fn hit(source: &Source<'_>, line: usize) -> Hit {
    let range = source.lines.get(line).map_or(0..0, |line| line.start..line.end);
    Hit { range, line, end_line: line + 1 }
}

/// Refuses requests that touch the same text. Hunks may share lines that neither changes.
fn refuse_overlap(source: &Source<'_>, pieces: &[Piece], dialect: Dialect, of: usize) -> Result<(), Refusal> {
    let mut order: Vec<&Piece> = pieces.iter().collect();
    order.sort_by_key(|piece| (piece.region.start, piece.region.end));
    let mut open: Vec<&Piece> = Vec::new();
    for piece in order {
        let from = piece.changes.iter().map(|change| change.range.start).min().unwrap_or(usize::MAX);
        open.retain(|other| {
            let end = other.changes.iter().map(|change| change.range.end).max().unwrap_or(0).max(other.region.end);
            end > piece.region.start.min(from)
        });
        if let Some(other) = open.iter().find(|other| clash(other, piece)) {
            let names = match other.request == piece.request {
                true => "two places of one edit touch".to_owned(),
                false => {
                    format!("{} and {} touch", label(dialect, other.request, of), label(dialect, piece.request, of))
                }
            };
            let line = source.line_at(piece.region.start) + 1;
            let text = format!("{names} the same text (line {line}); join them into one that says what it becomes");
            return Err(Refusal::new(Code::Overlap, text));
        }
        open.push(piece);
    }
    Ok(())
}

/// Hunks clash only where both change something; other texts must be apart altogether.
fn clash(left: &Piece, right: &Piece) -> bool {
    let overlaps = |one: &Range<usize>, other: &Range<usize>| one.start < other.end && other.start < one.end;
    let changes_in =
        |piece: &Piece, region: &Range<usize>| piece.changes.iter().any(|change| overlaps(&change.range, region));
    if left.solid || right.solid {
        return overlaps(&left.region, &right.region)
            || changes_in(left, &right.region)
            || changes_in(right, &left.region);
    }
    left.changes.iter().any(|change| changes_in(right, &change.range))
}

/// A new file's text: as it is given, ending with a line end when it is lines.
pub(crate) fn created(lines: &[String], final_newline: Option<bool>) -> Vec<u8> {
    let mut text = line_feeds(&lines.join(LineEnd::Lf.as_str()));
    if !lines.is_empty() && final_newline.unwrap_or(true) {
        text.push('\n');
    }
    text.into_bytes()
}
