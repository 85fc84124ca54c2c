//! A window of lines: what is shown of a text, in memory bounded by the window.

use std::fmt::Write as _;

use crate::Limits;

/// Bytes of one line that are shown.
const LINE: usize = 2_000;

/// The lines that are shown, and the count of all.
pub(crate) struct Window {
    /// Number of the first line.
    pub(crate) first: u64,
    last: u64,
    bytes: usize,
    text: String,
    /// Lines that are shown.
    pub(crate) shown: u64,
    /// Lines there are.
    pub(crate) total: u64,
    /// The bytes limit was reached.
    full: bool,
    /// The current line as far as it is shown.
    line: Vec<u8>,
    /// Its length.
    length: u64,
    /// Lines of which only the beginning is shown.
    pub(crate) cut: u64,
    invalid: bool,
    carriage: u64,
    /// Carriage returns stand in the last line, which no line feed ends.
    inner: bool,
}

/// What a line ended with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    LineFeed,
    File,
}

impl Window {
    /// A window of `limit` lines from `offset` on, of at most so many bytes.
    pub(crate) fn new(offset: Option<u64>, limit: Option<u64>, limits: Limits) -> Self {
        let first = offset.unwrap_or(1).max(1);
        let lines = limit.map_or(limits.read_lines, |limit| limit.clamp(1, limits.read_lines));
        Self {
            first,
            last: first.saturating_add(lines - 1),
            bytes: limits.read_bytes,
            text: String::new(),
            shown: 0,
            total: 0,
            full: false,
            line: Vec::new(),
            length: 0,
            cut: 0,
            invalid: false,
            carriage: 0,
            inner: false,
        }
    }

    /// The current line is number `total + 1`.
    fn wanted(&self) -> bool {
        !self.full && (self.first..=self.last).contains(&(self.total + 1))
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if !self.wanted() && self.total >= self.first {
                // Behind the window only line ends matter.
                self.total += memchr::memchr_iter(b'\n', bytes).count() as u64;
                let rest = memchr::memrchr(b'\n', bytes).map_or(bytes, |at| &bytes[at + 1..]);
                self.length =
                    if rest.len() == bytes.len() { self.length + rest.len() as u64 } else { rest.len() as u64 };
                return;
            }
            let end = memchr::memchr(b'\n', bytes);
            let part = &bytes[..end.unwrap_or(bytes.len())];
            if self.wanted() {
                // One byte more, for the carriage return of a line that just fits.
                let room = (LINE + 1).saturating_sub(self.line.len());
                self.line.extend_from_slice(&part[..part.len().min(room)]);
            }
            self.length += part.len() as u64;
            if end.is_some() {
                self.end_line(Ended::LineFeed);
            }
            bytes = &bytes[part.len() + usize::from(end.is_some())..];
        }
    }

    /// The end of the bytes.
    pub(crate) fn finish(&mut self) {
        if self.length > 0 {
            self.end_line(Ended::File);
        }
    }

    fn end_line(&mut self, ended: Ended) {
        if self.wanted() {
            self.show(ended);
        }
        self.total += 1;
        self.line.clear();
        self.length = 0;
    }

    fn show(&mut self, ended: Ended) {
        let whole = self.line.len() as u64 == self.length;
        let mut line = self.line.as_slice();
        let taken = line.len();
        if whole && let Some(rest) = line.strip_suffix(b"\r") {
            line = rest;
            self.length -= 1;
            self.carriage += u64::from(ended == Ended::LineFeed);
        }
        self.inner |= ended == Ended::File && (line.contains(&b'\r') || line.len() < taken);
        let mut shown = LINE.min(line.len());
        // Not in the middle of a character.
        while shown < line.len() && shown > 0 && (line[shown] & 0xc0) == 0x80 {
            shown -= 1;
        }
        let line = &line[..shown];
        let text = String::from_utf8_lossy(line);
        let number = self.total + 1;
        if self.shown > 0 && self.text.len() + text.len() + 12 > self.bytes {
            self.full = true;
            return;
        }
        self.invalid |= matches!(text, std::borrow::Cow::Owned(_));
        let _ = write!(self.text, "{number}→{text}");
        let rest = self.length - line.len() as u64;
        if rest > 0 {
            self.cut += 1;
            let _ = write!(self.text, "… [{rest} bytes more]");
        }
        self.text.push('\n');
        self.shown += 1;
    }

    /// The text for the model: the lines, then what there is to know about them.
    pub(crate) fn text(&self, notes: Vec<String>) -> String {
        let mut text = self.text.clone();
        let more = notes;
        let mut notes = Vec::new();
        if self.total == 0 {
            notes.push("empty file".to_owned());
        }
        let last = self.first + self.shown.saturating_sub(1);
        if self.shown < self.total {
            let mut note = format!("lines {}-{last} of {}", self.first, self.total);
            if last < self.total {
                let _ = write!(note, "; go on with offset {}", last + 1);
            }
            notes.push(note);
        }
        if self.carriage > 0 {
            notes.push("line ends are CRLF".to_owned());
        }
        if self.inner && self.total == 1 && self.carriage == 0 {
            notes.push("line ends are CR alone, so all of it is one line here".to_owned());
        }
        if self.invalid {
            notes.push("not UTF-8: bytes that are no text are shown as \u{fffd}".to_owned());
        }
        notes.extend(more);
        if !notes.is_empty() {
            let _ = writeln!(text, "[{}]", notes.join("; "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window(bytes: &[u8], chunk: usize, offset: u64, limit: u64) -> Window {
        let mut window = Window::new(Some(offset), Some(limit), Limits::default());
        bytes.chunks(chunk.max(1)).for_each(|chunk| window.push(chunk));
        window.finish();
        window
    }

    #[test]
    fn lines_are_numbered_and_counted() {
        let all = window(b"a\n\nc", 100, 1, 10);
        assert_eq!((all.text.as_str(), all.shown, all.total), ("1→a\n2→\n3→c\n", 3, 3));
        let middle = window(b"a\r\nb\r\nc\r\n", 2, 2, 1);
        assert_eq!((middle.text.as_str(), middle.shown, middle.total, middle.carriage), ("2→b\n", 1, 3, 1));
        assert_eq!(window(b"a\nb\n", 100, 3, 1).shown, 0);
        assert_eq!(window(b"", 100, 1, 1).total, 0);
    }

    #[test]
    fn line_ends_are_named_as_they_are() {
        let notes = |bytes: &[u8]| window(bytes, 2, 1, 10).text(Vec::new()).lines().last().unwrap().to_owned();
        assert_eq!(notes(b"a\r\nb\r\n"), "[line ends are CRLF]");
        assert_eq!(notes(b"a\r\n"), "[line ends are CRLF]");
        let alone = "[line ends are CR alone, so all of it is one line here]";
        assert_eq!(notes(b"a\rb\r"), alone);
        assert_eq!(notes(b"a\rb"), alone);
        assert_eq!(notes(b"a\r"), alone);
        assert_eq!(notes(b"a\nb\r"), "2\u{2192}b");
        assert_eq!(notes(b"a\rb\n"), "1\u{2192}a\rb");
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let line = format!("{}é tail", "x".repeat(LINE - 1));
        let cut = window(line.as_bytes(), 777, 1, 1);
        assert_eq!(cut.text, format!("1→{}… [7 bytes more]\n", "x".repeat(LINE - 1)));
        assert!(!cut.invalid);
        let fits = window(format!("{}\r\n", "x".repeat(LINE)).as_bytes(), 777, 1, 1);
        assert_eq!(fits.text, format!("1→{}\n", "x".repeat(LINE)));
    }

    #[test]
    fn the_window_ends_at_its_bytes() {
        let text = format!("{}\n", "y".repeat(1000)).repeat(100);
        let window = window(text.as_bytes(), 4096, 1, 100);
        assert!(window.full && window.shown < 70 && window.text.len() <= 64 * 1024);
        assert_eq!(window.total, 100);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn any_bytes_in_any_chunks(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..200), chunk in 1usize..50, offset in 1u64..8, limit in 1u64..8) {
            let whole = window(&bytes, 1000, offset, limit);
            let parts = window(&bytes, chunk, offset, limit);
            prop_assert_eq!(&parts.text, &whole.text);
            let total = memchr::memchr_iter(b'\n', &bytes).count() as u64 + u64::from(!bytes.is_empty() && !bytes.ends_with(b"\n"));
            prop_assert_eq!((parts.total, whole.total), (total, total));
            prop_assert_eq!(whole.shown, total.saturating_sub(offset - 1).min(limit));
        }
    }
}
