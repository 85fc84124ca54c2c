//! The ladder: where in a file is the text that an edit names?
//!
//! Each level forgives one more kind of slip and all those before it. A level is tried only when the one before found
//! nothing, and at every level the place must be the only one, or the edit is refused. All edits of a call climb
//! together, so that a level costs one pass over the file, however many edits there are.

mod anchor;
mod choose;
pub(crate) mod closest;
mod escape;
pub(crate) mod indent;
mod own;
pub(crate) mod pattern;
mod place;
mod scan;
pub(crate) mod scope;
mod sequence;
pub(crate) mod view;
pub(crate) mod wrapping;

use std::collections::BTreeSet;
use std::ops::Range;

pub(crate) use place::{Change, changes, with_line_ends};

use crate::limits::MAX_PLACES;
use crate::refuse::{Code, Refusal};
use crate::text::{Source, blank, pieces};
use crate::{Healed, OnAmbiguous};

/// How much is forgiven when two texts are compared; each level forgives what those before it do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Exact,
    LineEnds,
    TrailingSpace,
    Unicode,
    Indentation,
    Escapes,
    BlankLines,
    Anchored,
}

impl Level {
    fn healed(self) -> Option<Healed> {
        Some(match self {
            Self::Exact => return None,
            Self::LineEnds => Healed::LineEnds,
            Self::TrailingSpace => Healed::TrailingSpace,
            Self::Unicode => Healed::Unicode,
            Self::Indentation => Healed::Indentation,
            Self::Escapes => Healed::Escapes,
            Self::BlankLines => Healed::BlankLines,
            Self::Anchored => Healed::Anchored,
        })
    }
}

/// What an old text is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Any stretch of text, also inside a line.
    Text,
    /// Whole lines; their last line end is not part of the text.
    Lines,
}

/// Old and new text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Texts {
    pub old: String,
    /// Absent when whole lines are removed (an empty text is one empty line).
    pub new: Option<String>,
}

/// A stretch of lines that places are looked for in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    /// The blocks that the named lines open; a place inside one is taken before any other.
    pub blocks: Vec<Range<usize>>,
    /// No place starts before this line.
    pub after: usize,
}

/// One text to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sought {
    pub unit: Unit,
    pub texts: Texts,
    pub all: bool,
    /// From 1.
    pub near: Option<u64>,
    /// Only at the end of the file.
    pub at_end: bool,
    pub scope: Option<Scope>,
    /// Whether the file ends with a line end afterwards, where the input says so; only whole lines do.
    pub final_newline: Option<bool>,
}

/// How a place maps to the lines of the old text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Byte by byte, through a view.
    Bytes,
    /// Line by line.
    Lines,
    /// Line by line but for blank ones.
    Blanks,
}

/// A place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub range: Range<usize>,
    /// The first line, from 0.
    pub line: usize,
    /// The line after the last, from 0; only of use line by line.
    pub end_line: usize,
}

/// Where an old text is.
#[derive(Clone, Debug)]
pub(crate) struct Match {
    pub unit: Unit,
    pub texts: Texts,
    pub way: Way,
    pub level: Level,
    pub healed: Vec<Healed>,
    pub hits: Vec<Hit>,
    pub final_newline: Option<bool>,
    /// How many places there were; more than `hits` when one of them was picked.
    pub of: usize,
}

/// What became of one sought text.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Found(Box<Match>),
    /// Places that all fit: the first few, and how many.
    Several {
        hits: Vec<Hit>,
        count: usize,
        more: bool,
    },
    Refused(Refusal),
    Missing,
}

/// How far the ladder may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Climb {
    pub fuzzy: bool,
    pub on_ambiguous: OnAmbiguous,
}

/// One reading of a sought text.
struct Attempt {
    /// Which sought text.
    index: usize,
    texts: Texts,
    healed: Vec<Healed>,
    gutter: Option<wrapping::Gutter>,
    /// Escape slips that were undone in the old text.
    slips: BTreeSet<char>,
}

/// Finds every text in the file.
pub(crate) fn find(source: &Source<'_>, sought: &[Sought], climb: Climb) -> Vec<Outcome> {
    let mut ladder = Ladder { source, sought, climb, outcomes: vec![None; sought.len()] };
    let mut raw = ladder.attempts(|texts| vec![(texts.clone(), Vec::new(), None, BTreeSet::new())]);
    for level in [Level::Exact, Level::LineEnds, Level::TrailingSpace, Level::Unicode, Level::Indentation] {
        ladder.climb(level, level, &mut raw);
    }
    let mut read = ladder.attempts(|texts| {
        let read = escape::readings(&texts.old).into_iter();
        read.map(|it| (Texts { old: it.text, new: texts.new.clone() }, Vec::new(), None, it.slips)).collect()
    });
    for level in [Level::Unicode, Level::Indentation] {
        ladder.climb(level, Level::Escapes, &mut read);
    }
    ladder.climb(Level::BlankLines, Level::BlankLines, &mut raw);
    ladder.climb(Level::BlankLines, Level::BlankLines, &mut read);
    if climb.fuzzy {
        ladder.climb(Level::Anchored, Level::Anchored, &mut raw);
    }
    let mut bare = ladder.attempts(|texts| {
        let bare = wrapping::bare(&texts.old, texts.new.as_deref().unwrap_or_default()).into_iter();
        let texts = |old, new: String| Texts { old, new: texts.new.as_ref().map(|_| new) };
        bare.map(|it| (texts(it.old, it.new), it.healed, it.gutter, BTreeSet::new())).collect()
    });
    for level in [Level::Exact, Level::LineEnds, Level::TrailingSpace, Level::Unicode, Level::Indentation] {
        ladder.climb(level, level, &mut bare);
    }
    ladder.climb(Level::BlankLines, Level::BlankLines, &mut bare);
    ladder.outcomes.into_iter().map(|outcome| outcome.unwrap_or(Outcome::Missing)).collect()
}

type Reading = (Texts, Vec<Healed>, Option<wrapping::Gutter>, BTreeSet<char>);

struct Ladder<'a> {
    source: &'a Source<'a>,
    sought: &'a [Sought],
    climb: Climb,
    outcomes: Vec<Option<Outcome>>,
}

impl Ladder<'_> {
    /// Readings of the texts that are still to be found.
    fn attempts(&self, read: impl Fn(&Texts) -> Vec<Reading>) -> Vec<Attempt> {
        let pending = self.outcomes.iter().zip(self.sought).enumerate().filter(|(_, (outcome, _))| outcome.is_none());
        pending
            .flat_map(|(index, (_, sought))| {
                read(&sought.texts).into_iter().map(move |(texts, healed, gutter, slips)| Attempt {
                    index,
                    texts,
                    healed,
                    gutter,
                    slips,
                })
            })
            .collect()
    }

    /// One level for every reading that is still pending; `named` is what the level is called in the result.
    fn climb(&mut self, level: Level, named: Level, attempts: &mut Vec<Attempt>) {
        attempts.retain(|attempt| self.outcomes[attempt.index].is_none());
        if attempts.is_empty() {
            return;
        }
        let mut found: Vec<Vec<(usize, Hit)>> = vec![Vec::new(); self.sought.len()];
        let mut more = vec![false; self.sought.len()];
        let way = match level {
            Level::BlankLines => Way::Blanks,
            Level::Indentation | Level::Anchored => Way::Lines,
            _ => Way::Bytes,
        };
        let mut collect = |number: usize, hit: Hit| {
            let attempt = &attempts[number];
            let hits = &mut found[attempt.index];
            if hits.len() >= self.cap(attempt) {
                more[attempt.index] = true;
                return false;
            }
            if choose::allowed(self.source, &self.sought[attempt.index], attempt.gutter, &hit)
                && !hits.iter().rev().take(16).any(|(_, other)| other.range == hit.range)
            {
                hits.push((number, hit));
            }
            true
        };
        self.by_lines(level, way, attempts, &mut collect);
        if way == Way::Bytes {
            self.by_bytes(level, attempts, &mut collect);
        }
        for (index, hits) in found.into_iter().enumerate() {
            if self.outcomes[index].is_none() && !hits.is_empty() {
                let way = if self.sought[index].unit == Unit::Lines && way == Way::Bytes { Way::Lines } else { way };
                self.outcomes[index] = Some(self.settle(index, hits, more[index], way, named, attempts));
            }
        }
    }

    /// How many places of one text are looked at; less when the text is long, so that work stays bounded.
    fn cap(&self, attempt: &Attempt) -> usize {
        let sought = &self.sought[attempt.index];
        // Places, and bytes compared at all of them together.
        let (places, bytes) = match () {
            () if sought.all || self.climb.on_ambiguous == OnAmbiguous::Last => (MAX_PLACES, 1 << 28),
            () if sought.near.is_some() || sought.at_end || sought.scope.is_some() => (100_000, 1 << 26),
            () => (1_000, 1 << 24),
        };
        places.min(bytes / attempt.texts.old.len().max(1)).max(2)
    }

    fn by_bytes(&self, level: Level, attempts: &[Attempt], collect: &mut dyn FnMut(usize, Hit) -> bool) {
        let mut needles: Vec<(usize, Vec<u8>, bool)> = Vec::new();
        for (number, attempt) in attempts.iter().enumerate() {
            if self.sought[attempt.index].unit == Unit::Text {
                let (needle, cut) = match level {
                    Level::Exact => (attempt.texts.old.clone().into_bytes(), false),
                    _ => view::needle(&pieces(&attempt.texts.old), level),
                };
                if needle.iter().any(|byte| !byte.is_ascii_whitespace()) || level == Level::Exact && !needle.is_empty()
                {
                    needles.push((number, needle, cut));
                }
            }
        }
        if needles.is_empty() {
            return;
        }
        let view = (level > Level::Exact).then(|| view::View::new(self.source, level));
        let bytes = view.as_ref().map_or(self.source.bytes, |view| &view.bytes);
        let texts: Vec<&[u8]> = needles.iter().map(|(_, needle, _)| needle.as_slice()).collect();
        let caps: Vec<usize> = needles.iter().map(|(number, ..)| self.cap(&attempts[*number]) + 1).collect();
        for ((number, needle, cut), hits) in needles.iter().zip(scan::scan(bytes, &texts, &caps)) {
            let mut add = |start: usize, end: usize| {
                let range = match &view {
                    None => Some(start..end),
                    Some(view) => view.start(start).zip(view.end(end)).map(|(start, end)| start..end),
                };
                let ends_line = bytes.get(end).is_none_or(|byte| *byte == b'\n');
                let whole =
                    |range: &Range<usize>| !self.splits_line_end(range.start) && !self.splits_line_end(range.end);
                let Some(range) = range.filter(|range| (ends_line || !cut) && whole(range)) else { return true };
                let line = self.source.line_at(range.start);
                let end_line = self.source.line_at(range.end.max(range.start + 1) - 1) + 1;
                collect(*number, Hit { range, line, end_line })
            };
            if hits.at.into_iter().all(|at| add(at, at + needle.len())) && level > Level::Exact {
                // A text that ends its last line may end a file that does not.
                if let Some(open) =
                    needle.strip_suffix(b"\n").filter(|open| self.source.cut_at_end() && !open.is_empty())
                    && bytes.ends_with(open)
                {
                    add(bytes.len() - open.len(), bytes.len());
                }
            }
        }
    }

    /// True between the two bytes of a line end, where no text starts or stops.
    fn splits_line_end(&self, at: usize) -> bool {
        at > 0 && self.source.bytes[at - 1] == b'\r' && self.source.bytes.get(at) == Some(&b'\n')
    }

    fn by_lines(&self, level: Level, way: Way, attempts: &[Attempt], collect: &mut dyn FnMut(usize, Hit) -> bool) {
        let skip_blank = way == Way::Blanks;
        let mut needles: Vec<(usize, place::Whole)> = Vec::new();
        for (number, attempt) in attempts.iter().enumerate() {
            let unit = self.sought[attempt.index].unit;
            let useful = unit == Unit::Lines && level != Level::LineEnds || unit == Unit::Text && way != Way::Bytes;
            let whole = place::Whole::new(unit, &attempt.texts.old, skip_blank);
            let blank_only = whole.lines.iter().all(|line| blank(line));
            if useful && !whole.lines.is_empty() && (!blank_only || level == Level::Exact) {
                needles.push((number, whole));
            }
        }
        if needles.is_empty() {
            return;
        }
        let keyed = if way == Way::Bytes { level } else { Level::Indentation };
        let sought = needles.iter().flat_map(|(_, whole)| &whole.lines);
        let keys = sequence::Keys::new(self.source, keyed, skip_blank, sought);
        for (number, whole) in &needles {
            let unit = self.sought[attempts[*number].index].unit;
            let mut look = |first: usize, last: usize| {
                let fits = (!whole.lead || first > 0)
                    && (way == Way::Bytes
                        || !place::line_shifts(self.source, unit, whole, way, first..last + 1).0.is_empty());
                let range = place::range(self.source, unit, whole, first..last + 1);
                !fits || collect(*number, Hit { range, line: first, end_line: last + 1 })
            };
            if level == Level::Anchored {
                anchor::find(self.source, &keys, &whole.lines, &mut |first| look(first, first + whole.lines.len() - 1));
            } else {
                let count = whole.lines.len();
                keys.find(&whole.lines, &mut |at| look(keys.line(at), keys.line(at + count - 1)));
            }
        }
    }

    fn settle(
        &self,
        index: usize,
        hits: Vec<(usize, Hit)>,
        more: bool,
        way: Way,
        level: Level,
        attempts: &[Attempt],
    ) -> Outcome {
        let sought = &self.sought[index];
        let (numbers, hits): (Vec<usize>, Vec<Hit>) = hits.into_iter().unzip();
        let of = hits.len();
        let chosen = match choose::choose(sought, &hits, more, self.climb.on_ambiguous) {
            choose::Choice::These(chosen) => chosen,
            choose::Choice::Several => {
                return Outcome::Several { count: of, more, hits: hits.into_iter().take(5).collect() };
            }
            choose::Choice::Refused(refusal) => return Outcome::Refused(refusal),
        };
        let number = numbers[chosen[0]];
        if chosen.iter().any(|at| numbers[*at] != number) {
            return Outcome::Several { count: of, more, hits: hits.into_iter().take(5).collect() };
        }
        let attempt = &attempts[number];
        let new = attempt.texts.new.as_deref().unwrap_or_default();
        if let Some(slip) = escape::carries(new, &attempt.slips) {
            return Outcome::Refused(Refusal::new(
                Code::EscapeSlip,
                format!(
                    "the old text is in the file (line {}) only without its `\\{slip}` escapes, and the new text carries \
                     them too; send both texts with the characters themselves, escaped once by JSON and no more",
                    hits[chosen[0]].line + 1
                ),
            ));
        }
        let mut healed = attempt.healed.clone();
        healed.extend(level.healed());
        Outcome::Found(Box::new(Match {
            unit: sought.unit,
            texts: attempt.texts.clone(),
            way,
            level,
            healed,
            hits: chosen.into_iter().map(|at| hits[at].clone()).collect(),
            final_newline: sought.final_newline,
            of,
        }))
    }
}
