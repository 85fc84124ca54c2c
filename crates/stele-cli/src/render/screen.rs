//! The two streams of a terminal: the answer on standard output, everything else on standard error.
//!
//! On a terminal they are one place, so a note has to begin on a line of its own and a progress line
//! has to be gone before anything else is written.

use std::io::{self, Write};

use super::style::Style;

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
    progress: bool,
    /// True when the person's answer is still to come on this line.
    asked: bool,
    /// What writing to standard output met first.
    fault: Option<io::Error>,
}

impl Screen {
    pub fn new(out: Box<dyn Write>, err: Box<dyn Write>, style: Style, terminals: Terminals) -> Self {
        Self { out, err, style, terminals, open_line: false, progress: false, asked: false, fault: None }
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

    /// True when a progress line can be shown now.
    pub fn shows_progress(&self) -> bool {
        self.terminals.err && !(self.terminals.out && self.open_line)
    }

    /// Shows or replaces the progress line. It is not part of the transcript.
    pub fn progress(&mut self, text: &str) {
        if self.shows_progress() {
            let _ = write!(self.err, "\r\u{1b}[K{}", self.style.dim(text));
            let _ = self.err.flush();
            self.progress = true;
        }
    }

    /// Takes the progress line away.
    pub fn clear_progress(&mut self) {
        if std::mem::take(&mut self.progress) {
            let _ = write!(self.err, "\r\u{1b}[K");
            let _ = self.err.flush();
        }
    }

    fn keep(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.fault.get_or_insert(error);
        }
    }
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
