//! Lines broken at spaces, for terminals only: what goes into a pipe or a file keeps its lines.
//!
//! Nothing that is to be copied is broken: code between fences, tables, and words that are longer than a line.

use std::mem;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns between two stops of a tab.
const TAB: usize = 8;

/// A whole text, its continued lines indented by so much. Nothing is broken without a number of columns.
pub fn hanging(text: &str, columns: Option<usize>, indent: usize) -> String {
    broken(Wrap { least: indent, ..Wrap::default() }, text, columns)
}

/// The rest of a line of which something stands there already, up to a column.
pub fn behind(column: usize, text: &str, columns: Option<usize>, indent: usize) -> String {
    broken(Wrap { column, begun: true, indent, least: indent, ..Wrap::default() }, text, columns)
}

fn broken(mut wrap: Wrap, text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    let mut wrapped = wrap.feed(text, columns);
    wrapped.push_str(&wrap.end(columns));
    wrapped
}

/// A text that comes in pieces. The word that a piece ends with is held back until it is whole.
#[derive(Clone, Debug, Default)]
pub struct Wrap {
    /// The column that is written next.
    column: usize,
    /// White space before the word, not written yet.
    space: String,
    /// The word, as far as it came.
    word: String,
    /// Continued lines of this line begin there.
    indent: usize,
    /// They never begin before.
    least: usize,
    /// Something of this line was written.
    begun: bool,
    /// This line stays as it is.
    verbatim: bool,
    /// Between two fences.
    fenced: bool,
}

impl Wrap {
    /// What of a piece can be written now.
    pub fn feed(&mut self, piece: &str, columns: usize) -> String {
        let mut out = String::with_capacity(piece.len());
        for letter in piece.chars() {
            match letter {
                '\n' => {
                    self.write_word(&mut out, columns);
                    out.push_str(&mem::take(&mut self.space));
                    out.push('\n');
                    (self.column, self.indent) = (0, self.least);
                    (self.begun, self.verbatim) = (false, false);
                }
                ' ' | '\t' => {
                    self.write_word(&mut out, columns);
                    self.space.push(letter);
                }
                _ => self.word.push(letter),
            }
        }
        out
    }

    /// What is held back; the line may go on.
    pub fn end(&mut self, columns: usize) -> String {
        let mut out = String::new();
        self.write_word(&mut out, columns);
        out.push_str(&mem::take(&mut self.space));
        out
    }

    fn write_word(&mut self, out: &mut String, most: usize) {
        if self.word.is_empty() {
            return;
        }
        let (word, space) = (mem::take(&mut self.word), mem::take(&mut self.space));
        let after_space = space.chars().fold(self.column, advance);
        let end = after_space + columns(&word);
        if !self.begun {
            self.begin(&word, after_space);
        } else if !self.verbatim && !space.is_empty() && end > most && self.indent + columns(&word) <= most {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', self.indent));
            out.push_str(&word);
            self.column = self.indent + columns(&word);
            return;
        }
        out.push_str(&space);
        out.push_str(&word);
        self.column = end;
    }

    /// The first word of a line says what the line is.
    fn begin(&mut self, word: &str, column: usize) {
        let fence = word.starts_with("```") || word.starts_with("~~~");
        self.verbatim = self.fenced || fence || word.starts_with('|');
        self.fenced ^= fence;
        let number =
            word.strip_suffix(['.', ')']).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let marker = if number || matches!(word, "-" | "*" | "+" | ">") { word.len() + 1 } else { 0 };
        self.indent = (column + marker).max(self.least);
        self.begun = true;
    }
}

/// The columns of a word; what changes its look has none.
fn columns(word: &str) -> usize {
    let mut pieces = word.split("\u{1b}[");
    let first = pieces.next().map_or(0, UnicodeWidthStr::width);
    let styled = |piece: &str| piece.split_once('m').map_or(0, |(_, shown)| shown.width());
    first + pieces.map(styled).sum::<usize>()
}

fn advance(column: usize, letter: char) -> usize {
    match letter {
        '\t' => (column / TAB + 1) * TAB,
        letter => column + letter.width().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, columns: usize, expect: &str) {
        assert_eq!(hanging(text, Some(columns), 0), expect);
        // The same in the smallest pieces.
        let mut wrap = Wrap::default();
        let mut out: String = text.chars().map(|letter| wrap.feed(&letter.to_string(), columns)).collect();
        out.push_str(&wrap.end(columns));
        assert_eq!(out, expect, "in pieces");
    }

    #[test]
    fn lines_are_broken_at_spaces() {
        check("one two three", 7, "one two\nthree");
        check("one two three", 8, "one two\nthree");
        check("one\ntwo three four\n", 9, "one\ntwo three\nfour\n");
        check("漢字 漢字 漢字", 9, "漢字 漢字\n漢字");
        check("fits", 4, "fits");
        check("\u{1b}[2mone two\u{1b}[0m three", 8, "\u{1b}[2mone two\u{1b}[0m\nthree");
        check("ends in space  \n", 5, "ends\nin\nspace  \n");
    }

    #[test]
    fn continued_lines_of_a_list_stand_beneath_its_text() {
        check("- one two three", 9, "- one two\n  three");
        check("  12. one two", 10, "  12. one\n      two");
        assert_eq!(hanging("tokens   1 2 3 4", Some(14), 9), "tokens   1 2 3\n         4");
        assert_eq!(behind(8, " 1 2 3", Some(10), 2), " 1\n  2 3");
        assert_eq!(behind(12, " 1 2 3", Some(10), 2), "\n  1 2 3");
    }

    #[test]
    fn what_is_copied_is_not_broken() {
        check("a https://long.example/path b", 10, "a https://long.example/path\nb");
        check("```\none two three\n```\none two", 6, "```\none two three\n```\none\ntwo");
        check("| one | two |", 6, "| one | two |");
        assert_eq!(hanging("one two", None, 0), "one two");
    }

    proptest! {
        #[test]
        fn nothing_but_spaces_and_line_ends_changes(text in "[a-z`|\\- \n漢]{0,80}", columns in 1_usize..20) {
            let bare = |text: &str| text.chars().filter(|letter| !letter.is_whitespace()).collect::<String>();
            prop_assert_eq!(bare(&hanging(&text, Some(columns), 2)), bare(&text));
        }
    }
}
