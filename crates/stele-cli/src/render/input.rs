//! The line that is being typed, as it stands on the screen: how it is drawn, changed and taken away again.
//!
//! The terminal wraps it by itself, so that it also does so after a resize. What is typed at its end is only written,
//! which any terminal can show and any screen reader can read; all else draws it anew.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::inert::inert;

/// Columns that a typed tab takes: it is shown as so many spaces.
pub const TAB: usize = 4;

/// A text that is being typed, as it is shown, and the byte before which the cursor stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    pub text: String,
    pub cursor: usize,
}

impl Draft {
    fn is_at_end(&self) -> bool {
        self.cursor == self.text.len()
    }
}

/// What the terminal can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    pub columns: usize,
    pub rows: usize,
    /// It knows how to move the cursor.
    pub moves: bool,
}

/// A prompt and what is typed behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    prompt: String,
    draft: Draft,
}

impl Input {
    /// A prompt, of one line, with nothing behind it.
    pub fn new(prompt: &str) -> Self {
        Self { prompt: prompt.to_owned(), draft: Draft::default() }
    }

    /// True when nothing of it is to be seen.
    pub fn is_empty(&self) -> bool {
        self.prompt.is_empty() && self.draft.text.is_empty()
    }

    /// Draws it, from the begin of a line on.
    pub fn draw(&self, terminal: Terminal) -> String {
        if !terminal.moves {
            return format!("{}{}", self.prompt, self.draft.text);
        }
        let rows = self.rows(terminal.columns);
        match self.window(&rows, terminal) {
            None => {
                let drawn = format!("{}{}", self.prompt, self.draft.text);
                let end = rows.place(usize::MAX);
                format!("{drawn}{}{}", rows.wrapped(), walk(end, self.cursor(&rows)))
            }
            Some((first, count)) => {
                let shown: Vec<&str> = (first..first + count).map(|row| rows.text(row)).collect();
                let (row, column) = self.cursor(&rows);
                let end = (first + count - 1, shown.last().map_or(0, |row| row.width().min(terminal.columns - 1)));
                format!("{}{}", shown.join("\n"), walk(end, (row, column)))
            }
        }
    }

    /// Takes it away, from where the cursor was left, which goes to where it began.
    pub fn hide(&self, terminal: Terminal) -> String {
        if !terminal.moves {
            return if self.is_empty() { String::new() } else { "\n".to_owned() };
        }
        let rows = self.rows(terminal.columns);
        let above = self.cursor(&rows).0 - self.window(&rows, terminal).map_or(0, |(first, _)| first);
        format!("{}\u{1b}[J", up(above))
    }

    /// Changes what is typed, and shows that.
    pub fn change(&mut self, draft: Draft, terminal: Terminal) -> String {
        let after = Self { prompt: self.prompt.clone(), draft };
        let shown = self.difference(&after, terminal);
        let shown = shown.unwrap_or_else(|| format!("{}{}", self.hide(terminal), after.draw(terminal)));
        *self = after;
        shown
    }

    /// Goes behind it, to the next line. What did not fit is shown whole.
    pub fn end(&self, terminal: Terminal) -> String {
        let rows = self.rows(terminal.columns);
        if !terminal.moves {
            return "\n".to_owned();
        }
        if self.window(&rows, terminal).is_some() {
            return format!("{}{}{}\n", self.hide(terminal), self.prompt, self.draft.text);
        }
        let end = rows.place(usize::MAX);
        let moved = walk(self.cursor(&rows), end);
        // Where the last row is full the cursor stands in the next one already.
        if rows.wrapped().is_empty() { format!("{moved}\n") } else { moved }
    }

    /// What to write for a small change; `None` where it has to be drawn anew.
    fn difference(&self, after: &Self, terminal: Terminal) -> Option<String> {
        let (old, new) = (&self.draft, &after.draft);
        let (before, now) = (self.rows(terminal.columns), after.rows(terminal.columns));
        if self.window(&before, terminal).or(after.window(&now, terminal)).is_some() && terminal.moves {
            return None;
        }
        if old.text == new.text {
            let moved = || walk(self.cursor(&before), after.cursor(&now));
            return Some(if terminal.moves { moved() } else { String::new() });
        }
        if !old.is_at_end() || !new.is_at_end() {
            return None;
        }
        // What has no width changes the character before; a line end changes how that wraps.
        let stands_alone =
            |text: &str| text.chars().next().is_some_and(|letter| columns(letter) > 0) && !text.contains('\n');
        if let Some(added) = new.text.strip_prefix(&old.text) {
            let written = || format!("{added}{}", if terminal.moves { now.wrapped() } else { "" });
            return stands_alone(added).then(written);
        }
        let gone = old.text.strip_prefix(&new.text).filter(|_| terminal.moves)?;
        let (from, to) = (before.place(usize::MAX), now.place(usize::MAX));
        (from.0 == to.0 && stands_alone(gone)).then(|| format!("{}\u{1b}[K", walk(from, to)))
    }

    fn rows(&self, columns: usize) -> Rows {
        Rows::of(format!("{}{}", inert(&self.prompt), self.draft.text), columns.max(1))
    }

    /// The row and column of the cursor.
    fn cursor(&self, rows: &Rows) -> (usize, usize) {
        rows.place(rows.text.len() - (self.draft.text.len() - self.draft.cursor))
    }

    /// The first row that is shown and how many are, where there is no room for all.
    fn window(&self, rows: &Rows, terminal: Terminal) -> Option<(usize, usize)> {
        // One row stays free for what stands above it.
        let room = terminal.rows.saturating_sub(1).max(1);
        (rows.starts.len() > room).then(|| ((self.cursor(rows).0 + 1).saturating_sub(room), room))
    }
}

/// A text as a terminal of so many columns wraps it.
struct Rows {
    text: String,
    columns: usize,
    /// The byte at which each row begins.
    starts: Vec<usize>,
    /// The last row is full.
    full: bool,
}

impl Rows {
    fn of(text: String, columns: usize) -> Self {
        let (mut starts, mut column) = (vec![0], 0);
        for (at, letter) in text.char_indices() {
            let width = self::columns(letter);
            if letter == '\n' {
                starts.push(at + 1);
                column = 0;
            } else if width > 0 && column + width > columns && column > 0 {
                starts.push(at);
                column = width;
            } else {
                column += width;
            }
        }
        let full = column >= columns;
        if full {
            starts.push(text.len());
        }
        Self { text, columns, starts, full }
    }

    /// The row and column before a byte, or behind all.
    fn place(&self, at: usize) -> (usize, usize) {
        let at = at.min(self.text.len());
        let row = self.starts.iter().rposition(|start| *start <= at).unwrap_or(0);
        let column = self.text[self.starts[row]..at].chars().map(columns).sum::<usize>();
        (row, column.min(self.columns - 1))
    }

    /// One row.
    fn text(&self, row: usize) -> &str {
        let end = self.starts.get(row + 1).copied().unwrap_or(self.text.len());
        self.text[self.starts[row]..end].trim_end_matches('\n')
    }

    /// What brings the cursor out of the last column, where a terminal leaves it until something follows.
    fn wrapped(&self) -> &'static str {
        if self.full { " \r" } else { "" }
    }
}

/// Moves the cursor up, to the begin of a line.
fn up(rows: usize) -> String {
    if rows == 0 { "\r".to_owned() } else { format!("\r\u{1b}[{rows}A") }
}

/// Moves the cursor from one place to another.
fn walk(from: (usize, usize), to: (usize, usize)) -> String {
    let rows = match to.0.cmp(&from.0) {
        std::cmp::Ordering::Equal => String::new(),
        std::cmp::Ordering::Less => format!("\u{1b}[{}A", from.0 - to.0),
        std::cmp::Ordering::Greater => format!("\u{1b}[{}B", to.0 - from.0),
    };
    let columns = match to.1.cmp(&from.1) {
        std::cmp::Ordering::Equal => String::new(),
        std::cmp::Ordering::Less => format!("\u{1b}[{}D", from.1 - to.1),
        std::cmp::Ordering::Greater => format!("\u{1b}[{}C", to.1 - from.1),
    };
    format!("{rows}{columns}")
}

/// Columns that a character takes; a line end takes one, so that the cursor can stand before it.
pub fn columns(letter: char) -> usize {
    match letter {
        '\t' => TAB,
        '\n' => 1,
        _ => letter.width().unwrap_or(0),
    }
}

#[cfg(test)]
pub mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a terminal shows that was written this, with `|` where the cursor stands; rows that scrolled away included.
    pub fn shown(written: &str, columns: usize, height: usize) -> String {
        let (mut rows, mut row, mut column, mut pending) = (vec![Vec::new()], 0_usize, 0_usize, false);
        let mut letters = written.chars().peekable();
        while let Some(letter) = letters.next() {
            let top = rows.len().saturating_sub(height);
            match letter {
                '\r' => (column, pending) = (0, false),
                // The terminal makes a line feed a new line (`ONLCR`).
                '\n' => {
                    (row, column, pending) = (row + 1, 0, false);
                    if row == rows.len() {
                        rows.push(Vec::new());
                    }
                }
                '\u{1b}' => {
                    assert_eq!(letters.next(), Some('['));
                    let mut count = String::new();
                    let command = loop {
                        match letters.next().unwrap() {
                            digit if digit.is_ascii_digit() => count.push(digit),
                            command => break command,
                        }
                    };
                    let count = count.parse().unwrap_or(1);
                    pending = false;
                    match command {
                        'A' => row = row.saturating_sub(count).max(top),
                        'B' => row = (row + count).min(rows.len() - 1),
                        'C' => column = (column + count).min(columns - 1),
                        'D' => column = column.saturating_sub(count),
                        'K' => rows[row].truncate(column),
                        'J' => {
                            rows[row].truncate(column);
                            rows.truncate(row + 1);
                        }
                        'm' => {}
                        other => panic!("{other}"),
                    }
                }
                letter => {
                    let width = columns_of(letter);
                    if width > 0 && (pending || column + width > columns) {
                        (row, column, pending) = (row + 1, 0, false);
                        if row == rows.len() {
                            rows.push(Vec::new());
                        }
                    }
                    while rows[row].len() < column + width {
                        rows[row].push(String::from(" "));
                    }
                    if width == 0 {
                        let before = if pending { column } else { column.saturating_sub(1) };
                        rows[row].get_mut(before).map(|cell| cell.push(letter)).unwrap_or_default();
                        continue;
                    }
                    rows[row][column] = letter.to_string();
                    (1..width).for_each(|more| rows[row][column + more].clear());
                    column += width;
                    if column == columns {
                        (column, pending) = (columns - 1, true);
                    }
                }
            }
        }
        while rows[row].len() < column + usize::from(pending) {
            rows[row].push(String::from(" "));
        }
        rows[row].insert(column + usize::from(pending), "|".to_owned());
        rows.iter().map(|row| row.concat().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    fn columns_of(letter: char) -> usize {
        letter.width().unwrap_or(0)
    }

    fn draft(text: &str, cursor: usize) -> Draft {
        Draft { text: text.to_owned(), cursor }
    }

    const SMALL: Terminal = Terminal { columns: 8, rows: 6, moves: true };

    #[test]
    fn a_line_wraps_and_is_changed_where_the_cursor_is() {
        let mut input = Input::new("> ");
        let mut written = input.draw(SMALL);
        for (text, cursor, expect) in [
            ("abc", 3, "> abc|"),
            ("abcdef", 6, "> abcdef\n|"),
            ("abcdefgh", 8, "> abcdef\ngh|"),
            ("abcdefgh", 2, "> ab|cdef\ngh"),
            ("abXcdefgh", 3, "> abX|cde\nfgh"),
            ("abXcdefgh", 9, "> abXcde\nfgh|"),
            ("abXcdefg", 8, "> abXcde\nfg|"),
            ("abXcd", 5, "> abXcd|"),
            ("\u{6f22}\u{6f22}\u{6f22}\u{6f22}", 12, "> \u{6f22}\u{6f22}\u{6f22}\n\u{6f22}|"),
            ("a\u{6f22}\u{6f22}\u{6f22}", 10, "> a\u{6f22}\u{6f22}\n\u{6f22}|"),
            ("one\ntwo", 2, "> on|e\ntwo"),
            ("abcdef\ntwo", 8, "> abcdef\nt|wo"),
        ] {
            written.push_str(&input.change(draft(text, cursor), SMALL));
            assert_eq!(shown(&written, 8, 6), expect, "{text} {cursor}");
        }
        written.push_str(&input.end(SMALL));
        assert_eq!(shown(&written, 8, 6), "> abcdef\ntwo\n|");
    }

    #[test]
    fn what_is_typed_at_the_end_is_only_written() {
        let mut input = Input::new("> ");
        assert_eq!(input.change(draft("ab", 2), SMALL), "ab");
        assert_eq!(input.change(draft("abc", 3), SMALL), "c");
        assert_eq!(input.change(draft("a", 1), SMALL), "\u{1b}[2D\u{1b}[K");
        let dumb = Terminal { moves: false, ..SMALL };
        assert_eq!(input.change(draft("abcdefgh", 8), dumb), "bcdefgh");
        assert_eq!(input.change(draft("abcdefgh", 2), dumb), "");
        assert_eq!(input.change(draft("abXcdefgh", 3), dumb), "\n> abXcdefgh");
    }

    #[test]
    fn of_what_is_longer_than_the_screen_the_part_around_the_cursor_is_shown() {
        let text: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let mut input = Input::new("> ");
        let mut written = input.draw(SMALL);
        written.push_str(&input.change(draft(&text, text.len()), SMALL));
        assert_eq!(shown(&written, 8, 6), "17\n18\n19\n20\n|");
        written.push_str(&input.change(draft(&text, 0), SMALL));
        assert_eq!(shown(&written, 8, 6), "> |1\n2\n3\n4\n5");
        written.push_str(&input.end(SMALL));
        assert_eq!(shown(&written, 8, 6), format!("> {text}\n|"));
    }

    #[test]
    fn a_terminal_that_became_narrower_has_wrapped_it() {
        let mut input = Input::new("> ");
        let wide = Terminal { columns: 20, ..SMALL };
        let drawn = format!("above\n{}{}", input.draw(wide), input.change(draft("abcdefgh", 8), wide));
        let written = format!("{drawn}{}done", input.hide(SMALL));
        assert_eq!(shown(&written, 8, 6), "above\ndone|");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// Whatever was drawn before, the screen shows what is there now.
        #[test]
        fn a_change_shows_what_drawing_anew_would(
            drafts in proptest::collection::vec(("[ab\u{6f22}\u{301}\\n]{0,24}", 0..25usize), 1..6),
        ) {
            let mut input = Input::new("> ");
            let mut written = input.draw(SMALL);
            for (text, at) in drafts {
                let cursor = text.char_indices().map(|(at, _)| at).nth(at).unwrap_or(text.len());
                written.push_str(&input.change(draft(&text, cursor), SMALL));
                prop_assert_eq!(shown(&written, 8, 6), shown(&input.draw(SMALL), 8, 6));
            }
        }
    }
}
