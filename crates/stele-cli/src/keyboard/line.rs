//! The line that is being typed: its text and the cursor in it.

use std::ops::Range;

use crate::render::inert::inert;
use crate::render::input::{Draft, TAB, columns};

/// Joins what stands on both sides of it into one character (Unicode, emoji sequences).
const JOINER: char = '\u{200d}';

/// Where the cursor may go from where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    Back,
    Forth,
    WordBack,
    WordForth,
    /// To the begin of the line, of several that were pasted.
    Begin,
    End,
    /// To the begin of all of it.
    First,
    Last,
    Up,
    Down,
}

/// The text that is being typed, with a cursor that stands before a character and never within one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    text: String,
    at: usize,
}

impl Line {
    /// A text with the cursor behind it.
    pub fn of(text: String) -> Self {
        Self { at: text.len(), text }
    }

    pub fn into_text(self) -> String {
        self.text
    }

    /// In bytes.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Puts a text in before the cursor.
    pub fn insert(&mut self, text: &str) {
        self.text.insert_str(self.at, text);
        self.at += text.len();
    }

    /// Moves the cursor; false where it is there already.
    pub fn go(&mut self, motion: Motion) -> bool {
        let to = self.target(motion);
        std::mem::replace(&mut self.at, to) != to
    }

    /// Erases what the cursor would go over.
    pub fn erase(&mut self, motion: Motion) {
        let to = self.target(motion);
        self.text.drain(to.min(self.at)..to.max(self.at));
        self.at = to.min(self.at);
    }

    /// As the screen shows it.
    pub fn draft(&self) -> Draft {
        let shown = |text: &str| inert(text).replace('\t', &" ".repeat(TAB));
        Draft { cursor: shown(&self.text[..self.at]).len(), text: shown(&self.text) }
    }

    fn target(&self, motion: Motion) -> usize {
        let (before, after) = self.text.split_at(self.at);
        match motion {
            Motion::Back => boundaries(&self.text).take_while(|at| *at < self.at).last().unwrap_or(0),
            Motion::Forth => boundaries(&self.text).find(|at| *at > self.at).unwrap_or(self.text.len()),
            Motion::WordBack => {
                let word = before.trim_end();
                word.rfind(char::is_whitespace).map_or(0, |at| at + word[at..].chars().next().map_or(0, char::len_utf8))
            }
            Motion::WordForth => {
                let space = after.len() - after.trim_start().len();
                self.at + space + after[space..].find(char::is_whitespace).unwrap_or(after.len() - space)
            }
            Motion::Begin => self.row(self.at).start,
            Motion::End => self.row(self.at).end,
            Motion::First => 0,
            Motion::Last => self.text.len(),
            Motion::Up => match self.row(self.at).start {
                0 => self.at,
                start => self.below(start, self.row(start - 1)),
            },
            Motion::Down => match self.row(self.at) {
                row if row.end == self.text.len() => self.at,
                row => self.below(row.start, self.row(row.end + 1)),
            },
        }
    }

    /// The line, of several, that a place is in.
    fn row(&self, at: usize) -> Range<usize> {
        let start = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        start..self.text[at..].find('\n').map_or(self.text.len(), |end| at + end)
    }

    /// The place in another line that is as far from its begin as the cursor is from `start`.
    fn below(&self, start: usize, row: Range<usize>) -> usize {
        let far = boundaries(&self.text[start..self.at]).count();
        let text = &self.text[row.clone()];
        row.start + boundaries(text).nth(far).unwrap_or(text.len())
    }
}

/// Where the characters of a text begin, as a person sees them: what has no width belongs to the one before.
fn boundaries(text: &str) -> impl Iterator<Item = usize> {
    let mut joined = false;
    text.char_indices().filter_map(move |(at, letter)| {
        let begins = at == 0 || !joined && columns(letter) > 0;
        joined = letter == JOINER;
        begins.then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A text with its cursor at `|`.
    fn line(text: &str) -> Line {
        let at = text.find('|').unwrap();
        Line { text: text.replace('|', ""), at }
    }

    #[track_caller]
    fn goes(from: &str, motion: Motion, to: &str) {
        let mut moved = line(from);
        moved.go(motion);
        assert_eq!(moved, line(to), "{from} {motion:?}");
    }

    #[test]
    fn the_cursor_goes_by_what_a_person_sees() {
        goes("ab|", Motion::Back, "a|b");
        goes("|ab", Motion::Back, "|ab");
        goes("a\u{6f22}|b", Motion::Back, "a|\u{6f22}b");
        goes("ae\u{301}|", Motion::Back, "a|e\u{301}");
        goes("|e\u{301}a", Motion::Forth, "e\u{301}|a");
        goes("a\u{1f469}\u{200d}\u{1f4bb}|", Motion::Back, "a|\u{1f469}\u{200d}\u{1f4bb}");
        goes("one two  |", Motion::WordBack, "one |two  ");
        goes("|one two", Motion::WordForth, "one| two");
        goes("one|  two three", Motion::WordForth, "one  two| three");
        goes("a\nbc|d\ne", Motion::Begin, "a\n|bcd\ne");
        goes("a\nbc|d\ne", Motion::End, "a\nbcd|\ne");
        goes("a\nbc|d\ne", Motion::Up, "a|\nbcd\ne");
        goes("a\nbc|d\nefg", Motion::Down, "a\nbcd\nef|g");
        goes("a|b", Motion::Up, "a|b");
        goes("a\nb|", Motion::Down, "a\nb|");
    }

    #[test]
    fn what_the_cursor_would_go_over_is_erased() {
        for (from, motion, to) in [
            ("ab|c", Motion::Back, "a|c"),
            ("a|e\u{301}c", Motion::Forth, "a|c"),
            ("one two|!", Motion::WordBack, "one |!"),
            ("one| two", Motion::WordForth, "one|"),
            ("a\nb|c", Motion::First, "|c"),
            ("a|b\nc", Motion::Last, "a|"),
        ] {
            let mut erased = line(from);
            erased.erase(motion);
            assert_eq!(erased, line(to), "{from} {motion:?}");
        }
    }

    #[test]
    fn the_screen_shows_tabs_as_spaces_and_nothing_that_controls_it() {
        let draft = line("a\t\u{1b}[31mb|c").draft();
        assert_eq!((draft.text.as_str(), draft.cursor), ("a    bc", 6));
    }

    proptest! {
        #[test]
        fn the_cursor_stays_between_characters(
            text in "[a \u{301}\u{200d}\u{6f22}\u{1f469}\\n]{0,12}",
            motions in proptest::collection::vec(0..10usize, 0..20),
        ) {
            use Motion::*;
            let all = [Back, Forth, WordBack, WordForth, Begin, End, First, Last, Up, Down];
            let mut line = Line::of(text);
            for motion in motions {
                line.go(all[motion]);
                prop_assert!(line.text.is_char_boundary(line.at));
                line.draft();
            }
        }
    }
}
