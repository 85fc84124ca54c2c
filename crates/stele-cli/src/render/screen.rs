//! The two streams of a terminal: the answer on standard output, everything else on standard error.
//!
//! On a terminal they are one place, so a note has to begin on a line of its own and a progress line
//! has to be gone before anything else is written.

use std::io::{self, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::style::Style;

/// Columns of a progress line where the terminal does not say how many it has.
const COLUMNS: usize = 80;

/// Asks how many columns the terminal has now; `None` when it does not say.
pub type Width = Box<dyn Fn() -> Option<usize>>;

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
    width: Width,
    /// True when the person's answer is still to come on this line.
    asked: bool,
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
            width: Box::new(|| None),
            asked: false,
            fault: None,
        }
    }

    /// The same, told where to ask for the terminal's width.
    pub fn of_width(self, width: Width) -> Self {
        Self { width, ..self }
    }

    /// What writing to standard output met, once.
    pub fn take_fault(&mut self) -> Option<io::Error> {
        self.fault.take()
    }

    /// A piece of the answer.
    pub fn answer(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.clear_progress();
        self.leave_prompt();
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        self.keep(written);
        self.open_line = !text.ends_with('\n');
    }

    /// Ends the answer's last line, if it is open.
    pub fn end_line(&mut self) {
        if self.open_line {
            self.answer("\n");
        }
    }

    /// The person ended the line, which the terminal has shown.
    pub fn answered(&mut self) {
        self.asked = false;
    }

    /// What keys do to the line that is being typed.
    pub fn echo(&mut self, text: &str) {
        self.clear_progress();
        let _ = write!(self.err, "{text}");
        let _ = self.err.flush();
        self.asked = !text.ends_with('\n');
    }

    /// Ends the line of a question that nobody answers any more.
    pub fn leave_prompt(&mut self) {
        if std::mem::take(&mut self.asked) {
            let _ = writeln!(self.err);
        }
    }

    /// Lines for a person.
    pub fn note(&mut self, text: &str) {
        self.clear_progress();
        self.leave_prompt();
        if self.terminals.out && self.terminals.err {
            self.end_line();
        }
        // Standard error that cannot be written has nobody to be told.
        let _ = writeln!(self.err, "{text}");
    }

    /// A line that the person's answer stands on.
    pub fn prompt(&mut self, text: &str) {
        self.clear_progress();
        if self.terminals.out && self.terminals.err {
            self.end_line();
        }
        let _ = write!(self.err, "{text}");
        let _ = self.err.flush();
        self.asked = true;
    }

    /// True while the answer's last line goes on.
    pub fn is_line_open(&self) -> bool {
        self.open_line
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
        (self.width)().filter(|columns| *columns > 0).unwrap_or(COLUMNS)
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
            .of_width(Box::new(move || Some(now.load(Ordering::Relaxed))));
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

    #[test]
    fn what_comes_before_an_answer_does_not_stand_on_its_line() {
        let err = Transcript::default();
        let terminals = Terminals { out: false, err: true };
        let mut screen = Screen::new(Box::new(io::sink()), Box::new(err.clone()), Style::Plain, terminals);
        screen.prompt("well? ");
        screen.note("never mind");
        screen.prompt("well? ");
        screen.answered();
        screen.note("good");
        assert_eq!(err.text(), "well? \nnever mind\nwell? good\n");
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
