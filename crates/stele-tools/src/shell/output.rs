//! What a command printed: head and tail in bounded memory, and a live view for people.

use stele_core::SpillMeta;

use crate::sanitise::{Terminal, ceiling, floor, left_out};
use crate::spill::{self, Spill};

/// Bytes of one piece of the live view; what comes faster is left out of it.
const LIVE: usize = 4 * 1024;

/// Bytes that a person is shown of what came last.
const RECENT: usize = 2 * 1024;

/// Collects output.
pub(crate) struct Output {
    terminal: Terminal,
    head: String,
    tail: String,
    /// Bytes for the head and for the tail.
    half: usize,
    left_out: u64,
    live: String,
    live_left_out: u64,
    /// What came last, whether it was taken or not.
    recent: String,
    /// Bytes as they were printed.
    pub(crate) printed: u64,
    spill: Option<Spill>,
}

impl Output {
    /// At most about `limit` bytes will be shown; once that is not all, all of it goes to the spill.
    pub(crate) fn new(limit: usize, spill: Option<Spill>) -> Self {
        Self {
            terminal: Terminal::default(),
            head: String::new(),
            tail: String::new(),
            half: limit / 2,
            left_out: 0,
            live: String::new(),
            live_left_out: 0,
            recent: String::new(),
            printed: 0,
            spill,
        }
    }

    /// From the first byte on all goes to the spill, since what is shown will be taken in pieces.
    pub(crate) fn spill_now(&mut self) {
        if let Some(spill) = &mut self.spill {
            spill.write("");
        }
    }

    /// Takes what was printed.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.printed += bytes.len() as u64;
        let mut text = String::new();
        self.terminal.push(bytes, &mut text);
        self.keep(&text);
    }

    fn keep(&mut self, text: &str) {
        if let Some(spill) = self.spill.as_mut().filter(|spill| spill.begun()) {
            spill.write(text);
        }
        self.recent.push_str(&text[ceiling(text, text.len().saturating_sub(RECENT))..]);
        if self.recent.len() > 2 * RECENT {
            self.recent.drain(..ceiling(&self.recent, self.recent.len() - RECENT));
        }
        let room = LIVE.saturating_sub(self.live.len());
        let live = floor(text, room);
        self.live.push_str(&text[..live]);
        self.live_left_out += (text.len() - live) as u64;

        let mut rest = text;
        if self.tail.is_empty() {
            let head = floor(text, self.half - self.head.len());
            self.head.push_str(&text[..head]);
            rest = &text[head..];
        }
        self.tail.push_str(rest);
        // Dropped in large pieces, so that keeping the tail costs little.
        if self.tail.len() > 4 * self.half {
            self.shorten();
        }
    }

    /// Drops what is in the middle. What is dropped first finds head and tail still whole.
    fn shorten(&mut self) {
        if let Some(spill) = self.spill.as_mut().filter(|spill| !spill.begun()) {
            spill.write(&self.head);
            spill.write(&self.tail);
        }
        let keep = ceiling(&self.tail, self.tail.len() - self.half);
        self.left_out += keep as u64;
        self.tail.drain(..keep);
    }

    /// What came since the last time, for the live view; nothing when nothing came.
    pub(crate) fn take_live(&mut self) -> Option<String> {
        if self.live.is_empty() && self.live_left_out == 0 {
            return None;
        }
        let mut live = std::mem::take(&mut self.live);
        match std::mem::take(&mut self.live_left_out) {
            0 => {}
            bytes => live.push_str(&left_out(bytes, None)),
        }
        Some(live)
    }

    /// What came last, in whole lines where it is more than that, without blank lines at its end.
    pub(crate) fn recent(&self) -> &str {
        let recent = &self.recent[ceiling(&self.recent, self.recent.len().saturating_sub(RECENT))..];
        let whole = if self.recent.len() > RECENT { recent.find('\n').map_or(0, |end| end + 1) } else { 0 };
        without_blank_lines(&recent[whole..])
    }

    /// The text to show, without blank lines at its end.
    pub(crate) fn finish(&mut self) -> String {
        let mut rest = String::new();
        self.terminal.finish(&mut rest);
        self.keep(&rest);
        self.take()
    }

    /// The text to show of what came since the last time, without blank lines at its end.
    pub(crate) fn take(&mut self) -> String {
        if self.tail.len() > self.half {
            self.shorten();
        }
        let spill = self.spill();
        let gap = match std::mem::take(&mut self.left_out) {
            0 => String::new(),
            bytes => left_out(bytes, spill.as_ref().map(spill::pointer).as_deref()),
        };
        let mut text = format!("{}{gap}{}", std::mem::take(&mut self.head), std::mem::take(&mut self.tail));
        text.truncate(without_blank_lines(&text).len());
        text
    }

    /// Where all of it is kept, if it had to be.
    pub(crate) fn spill(&self) -> Option<SpillMeta> {
        self.spill.as_ref().and_then(Spill::meta)
    }
}

/// A text without the blank lines at its end and without its last line end. The white space of its last line is output.
fn without_blank_lines(text: &str) -> &str {
    let said = text.trim_end().len();
    let line = text[said..].find(['\r', '\n']).map_or(text.len(), |at| said + at);
    if said == 0 { "" } else { &text[..line] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_whole() {
        let mut output = Output::new(100, None);
        output.push(b"one\n");
        output.push("zw\u{f6}lf\n\n".as_bytes());
        assert_eq!(output.take_live().as_deref(), Some("one\nzw\u{f6}lf\n\n"));
        assert_eq!(output.take_live(), None);
        assert_eq!(output.finish(), "one\nzw\u{f6}lf");
        assert_eq!(output.printed, 12);
    }

    #[test]
    fn blank_lines_at_the_end_are_left_out_and_the_last_line_is_whole() {
        for (printed, kept) in
            [("a \t", "a \t"), ("a  \n", "a  "), ("a\n \n\n  ", "a"), (" \n", ""), ("\n a ", "\n a "), ("", "")]
        {
            assert_eq!(without_blank_lines(printed), kept, "{printed:?}");
        }
    }

    #[test]
    fn long_output_keeps_head_and_tail_in_bounded_memory() {
        let mut output = Output::new(200, None);
        for number in 0..10_000 {
            output.push(format!("line {number}\n").as_bytes());
            assert!(output.recent.len() <= 2 * RECENT);
            assert!(output.head.len() <= 100 && output.tail.len() <= 400 && output.live.len() <= LIVE);
        }
        let recent = output.recent();
        assert!(recent.starts_with("line ") && recent.ends_with("\nline 9999") && recent.len() <= RECENT);
        let text = output.finish();
        assert!(text.starts_with("line 0\nline 1\n") && text.ends_with("line 9998\nline 9999"));
        let shown: usize = text.lines().filter(|line| !line.starts_with("[…")).map(|line| line.len() + 1).sum();
        let named: usize = text.split("[… ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        // What is shown and what is said to be left out is everything; the marker's own line ends
        // and the last line end are the difference.
        assert!((output.printed as usize).abs_diff(shown + named) <= 2, "{shown} + {named} of {}", output.printed);
    }
}
