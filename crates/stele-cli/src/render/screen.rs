//! The two streams of a terminal: the answer on standard output, everything else on standard error.
//!
//! On a terminal they are one place, so a note has to begin on a line of its own and a progress line
//! has to be gone before anything else is written.

use std::io::{self, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::input::{Draft, Input, Terminal};
use super::style::Style;

/// Columns and rows of a terminal that does not say how many it has.
const SIZE: (usize, usize) = (80, 24);

/// Asks how many columns and rows the terminal has now; `None` when it does not say.
pub type Size = Box<dyn Fn() -> Option<(usize, usize)>>;

/// Where standard output and standard error lead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminals {
    pub out: bool,
    pub err: bool,
}

/// The two streams.
pub struct Screen {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    /// Colours of standard error.
    pub style: Style,
    terminals: Terminals,
    /// True when the last thing on standard output did not end its line.
    open_line: bool,
    /// Columns of the progress line that stands there; none when there is none.
    progress: usize,
    size: Size,
    /// The line that is being typed, with its prompt.
    input: Option<Input>,
    /// The end of the answer that has no whole line yet: it would stand where a person types.
    held: String,
    /// What writing to standard output met first.
    fault: Option<io::Error>,
}

impl Screen {
    pub fn new(out: Box<dyn Write>, err: Box<dyn Write>, style: Style, terminals: Terminals) -> Self {
        Self {
            out,
            err,
            style,
            terminals,
            open_line: false,
            progress: 0,
            size: Box::new(|| None),
            input: None,
            held: String::new(),
            fault: None,
        }
    }

    /// The same, told where to ask for the terminal's size.
    pub fn of_size(self, size: Size) -> Self {
        Self { size, ..self }
    }

    /// What writing to standard output met, once.
    pub fn take_fault(&mut self) -> Option<io::Error> {
        self.fault.take()
    }

    /// A piece of the answer. While somebody types it comes line by line, above what is typed.
    pub fn answer(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.clear_progress();
        if self.input.is_none() || !self.is_one_place() {
            self.write_answer(text);
            return;
        }
        self.held.push_str(text);
        if let Some(end) = self.held.rfind('\n') {
            let whole: String = self.held.drain(..=end).collect();
            self.hide();
            self.write_answer(&whole);
            self.show();
        }
    }

    fn write_answer(&mut self, text: &str) {
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        self.keep(written);
        self.open_line = !text.ends_with('\n');
    }

    /// Ends the answer's last line, if it is open.
    pub fn end_line(&mut self) {
        if self.is_line_open() {
            self.answer("\n");
        }
    }

    /// How the line that is being typed stands now.
    pub fn typed(&mut self, draft: Draft) {
        self.clear_progress();
        if self.input.is_none() && draft.text.is_empty() {
            return;
        }
        let terminal = self.terminal();
        let shown = match &mut self.input {
            Some(input) => input.change(draft, terminal),
            None => {
                self.break_line();
                self.input.insert(Input::default()).change(draft, terminal)
            }
        };
        self.tell(&shown);
        if self.input.as_ref().is_some_and(Input::is_empty) {
            self.input = None;
            self.release();
        }
    }

    /// The line that is being typed begins a line of its own.
    fn break_line(&mut self) {
        if self.is_one_place() && std::mem::take(&mut self.open_line) {
            self.tell("\n");
        }
    }

    /// The line that was typed is over, or nobody goes on with it: what follows begins a new one.
    pub fn leave_line(&mut self) {
        if let Some(input) = self.input.take() {
            let end = input.end(self.terminal());
            self.tell(&end);
            self.release();
        }
    }

    /// Takes the line that is being typed away, with its prompt.
    pub fn drop_line(&mut self) {
        self.hide();
        self.input = None;
        self.release();
    }

    /// Draws the line that is being typed again, where something else wrote.
    pub fn show(&mut self) {
        if let Some(input) = &self.input {
            let drawn = input.draw(self.terminal());
            self.tell(&drawn);
        }
    }

    fn hide(&mut self) {
        if let Some(input) = &self.input {
            let hidden = input.hide(self.terminal());
            self.tell(&hidden);
        }
    }

    /// What was held of the answer goes on.
    fn release(&mut self) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            self.write_answer(&held);
        }
    }

    /// Lines for a person.
    pub fn note(&mut self, text: &str) {
        self.clear_progress();
        if self.is_one_place() {
            self.end_line();
        }
        self.hide();
        self.tell(&format!("{text}\n"));
        self.show();
    }

    /// A line that the person's answer stands on, instead of the one that is there; only the last line of the text is it.
    pub fn prompt(&mut self, text: &str) {
        self.drop_line();
        let (above, prompt) = text.rsplit_once('\n').map_or((None, text), |(above, prompt)| (Some(above), prompt));
        self.clear_progress();
        if self.is_one_place() {
            self.end_line();
        }
        if let Some(above) = above {
            self.tell(&format!("{above}\n"));
        }
        self.input = Some(Input::new(prompt));
        self.show();
    }

    /// True where both streams lead to the terminal.
    fn is_one_place(&self) -> bool {
        self.terminals.out && self.terminals.err
    }

    /// Writes to standard error. Where that cannot be written, nobody is to be told.
    fn tell(&mut self, text: &str) {
        let _ = self.err.write_all(text.as_bytes());
        let _ = self.err.flush();
    }

    /// True while the answer's last line goes on.
    pub fn is_line_open(&self) -> bool {
        self.open_line || !self.held.is_empty()
    }

    /// True when a progress line can be shown now.
    pub fn shows_progress(&self) -> bool {
        self.terminals.err && !(self.terminals.out && self.open_line)
    }

    /// Shows or replaces the progress line, cut to what the terminal has room for now: a line that wrapped could not be
    /// taken away again. It is not part of the transcript.
    pub fn progress(&mut self, text: &str) {
        if self.shows_progress() {
            let columns = self.columns();
            // In the last column the cursor would wait to wrap.
            let text = cut(text, columns.saturating_sub(1));
            let back = self.back(columns);
            let _ = write!(self.err, "{back}{}", self.style.dim(&text));
            let _ = self.err.flush();
            self.progress = text.width();
        }
    }

    /// Takes the progress line away.
    pub fn clear_progress(&mut self) {
        if self.progress > 0 {
            let back = self.back(self.columns());
            let _ = write!(self.err, "{back}");
            let _ = self.err.flush();
            self.progress = 0;
        }
    }

    fn columns(&self) -> usize {
        self.terminal().columns
    }

    fn terminal(&self) -> Terminal {
        let (columns, rows) = (self.size)().filter(|(columns, rows)| *columns > 0 && *rows > 0).unwrap_or(SIZE);
        Terminal { columns, rows, moves: self.terminals.err }
    }

    /// To the beginning of the progress line, with nothing left of it. A terminal that became narrower has wrapped it.
    fn back(&self, columns: usize) -> String {
        match self.progress.saturating_sub(1) / columns {
            0 => "\r\u{1b}[K".to_owned(),
            rows => format!("\r\u{1b}[{rows}A\u{1b}[J"),
        }
    }

    fn keep(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.fault.get_or_insert(error);
        }
    }
}

/// The beginning of a text that fits into so many columns, with a mark when some of it is missing.
fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut room = columns.saturating_sub(1);
    let fits = |letter: &char| {
        let wide = letter.width().unwrap_or(0);
        room.checked_sub(wide).map(|rest| room = rest).is_some()
    };
    let kept: String = text.chars().take_while(fits).collect();
    format!("{}{}", kept.trim_end(), if columns == 0 { "" } else { "…" })
}

#[cfg(test)]
pub mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Both streams in one transcript, as a terminal shows them.
    #[derive(Clone, Default)]
    pub struct Transcript(Arc<Mutex<Vec<u8>>>);

    impl Transcript {
        pub fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Transcript {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_note_begins_on_its_own_line_and_progress_is_gone_first() {
        let both = Transcript::default();
        let terminals = Terminals { out: true, err: true };
        let mut screen = Screen::new(Box::new(both.clone()), Box::new(both.clone()), Style::Plain, terminals);
        screen.progress("working");
        screen.answer("half");
        screen.progress("not now");
        screen.note("a note");
        screen.note("another");
        assert_eq!(both.text(), "\r\u{1b}[Kworking\r\u{1b}[Khalf\na note\nanother\n");
    }

    #[test]
    fn a_progress_line_never_wraps_also_after_a_resize() {
        use std::sync::atomic::{AtomicUsize, Ordering};

        let columns = Arc::new(AtomicUsize::new(20));
        let (now, err) = (Arc::clone(&columns), Transcript::default());
        let terminals = Terminals { out: false, err: true };
        let mut screen = Screen::new(Box::new(io::sink()), Box::new(err.clone()), Style::Plain, terminals)
            .of_size(Box::new(move || Some((now.load(Ordering::Relaxed), 24))));
        screen.progress("step 1 · 12 tokens · waiting");
        columns.store(8, Ordering::Relaxed);
        screen.progress("step 1 · 漢字漢字");
        screen.note("done");
        let expect = "\r\u{1b}[Kstep 1 · 12 tokens…\r\u{1b}[2A\u{1b}[Jstep 1…\r\u{1b}[Kdone\n";
        assert_eq!(err.text(), expect);
    }

    #[test]
    fn a_line_is_cut_by_the_columns_that_it_takes() {
        for (text, columns, expect) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("漢字漢字", 5, "漢字…"),
            ("漢字漢字", 4, "漢…"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
        ] {
            assert_eq!(cut(text, columns), expect, "{text} {columns}");
            assert!(cut(text, columns).width() <= columns);
        }
    }

    /// A screen of so many columns, six rows, and what it shows.
    fn screen(columns: usize) -> (Screen, impl Fn() -> String) {
        let both = Transcript::default();
        let terminals = Terminals { out: true, err: true };
        let screen = Screen::new(Box::new(both.clone()), Box::new(both.clone()), Style::Plain, terminals);
        let shows = move || super::super::input::tests::shown(&both.text(), columns, 6);
        (screen.of_size(Box::new(move || Some((columns, 6)))), shows)
    }

    fn draft(text: &str, cursor: usize) -> Draft {
        Draft { text: text.to_owned(), cursor }
    }

    #[test]
    fn what_comes_while_a_line_stands_there_is_shown_above_it() {
        let (mut screen, shows) = screen(20);
        screen.prompt("well? ");
        screen.note("never mind");
        assert_eq!(shows(), "never mind\nwell? |");
        screen.typed(draft("go", 2));
        screen.note("good");
        assert_eq!(shows(), "never mind\ngood\nwell? go|");
        screen.prompt("really? ");
        assert_eq!(shows(), "never mind\ngood\nreally? |");
        screen.typed(draft("yes", 1));
        screen.leave_line();
        screen.note("done");
        assert_eq!(shows(), "never mind\ngood\nreally? yes\ndone\n|");
    }

    #[test]
    fn an_answer_comes_line_by_line_while_somebody_types() {
        let (mut screen, shows) = screen(20);
        screen.answer("one two");
        screen.typed(draft("wait", 2));
        assert_eq!(shows(), "one two\nwa|it");
        screen.answer(" three");
        assert_eq!(shows(), "one two\nwa|it");
        screen.answer(" four\nfive");
        assert_eq!(shows(), "one two\n three four\nwa|it");
        screen.typed(draft("", 0));
        assert_eq!(shows(), "one two\n three four\nfive|");
        screen.answer(" six\n");
        assert_eq!(shows(), "one two\n three four\nfive six\n|");
    }

    #[test]
    fn a_pipe_gets_the_answer_alone() {
        let (out, err) = (Transcript::default(), Transcript::default());
        let mut screen = Screen::new(Box::new(out.clone()), Box::new(err.clone()), Style::Plain, Terminals::default());
        screen.answer("half");
        screen.progress("nothing without a terminal");
        screen.note("a note");
        screen.answer(" and half\n");
        screen.end_line();
        assert_eq!(out.text(), "half and half\n");
        assert_eq!(err.text(), "a note\n");
    }
}
