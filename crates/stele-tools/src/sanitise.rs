//! The one place that makes the text of a result harmless.
//!
//! [`inert`] is what every result passes. [`Terminal`] reads the bytes a program printed, as a
//! terminal would: escape sequences vanish, a carriage return starts the line again.

/// Makes text inert: no NUL and no control character but line feed and tab. A line end of two
/// characters becomes one; any other control character is shown as its picture (`␛`, `␍`), so that
/// the reader knows it is there.
#[must_use]
pub fn inert(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut clean = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        // Nearly all text is plain; 0xC2 begins every control character beyond ASCII, and some that are none.
        let odd = |byte: &u8| matches!(byte, 0..=0x08 | 0x0b..=0x1f | 0x7f | 0xc2);
        let plain = bytes[at..].iter().position(odd).unwrap_or(text.len() - at);
        clean.push_str(&text[at..at + plain]);
        at += plain;
        let Some(c) = text[at..].chars().next() else { break };
        at += c.len_utf8();
        match c {
            '\r' if bytes.get(at) == Some(&b'\n') => {}
            '\0'..='\u{1f}' => clean.push(char::from_u32(0x2400 + c as u32).unwrap_or(char::REPLACEMENT_CHARACTER)),
            '\u{7f}' => clean.push('\u{2421}'),
            '\u{80}'..='\u{9f}' => clean.push(char::REPLACEMENT_CHARACTER),
            c => clean.push(c),
        }
    }
    clean
}

/// Cuts text to about `limit` bytes: head and tail, with what is left out named in between.
#[must_use]
pub fn cut(text: &str, limit: usize) -> String {
    cut_with(text, limit, None)
}

/// The same; `whole` says where all of it is.
pub(crate) fn cut_with(text: &str, limit: usize, whole: Option<&str>) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = floor(text, limit / 2);
    let tail = ceiling(text, text.len() - limit / 2);
    format!("{}{}{}", &text[..head], left_out((tail - head) as u64, whole), &text[tail..])
}

/// The line that stands for bytes which are not shown.
pub(crate) fn left_out(bytes: u64, whole: Option<&str>) -> String {
    let whole = whole.map_or_else(String::new, |whole| format!("; {whole}"));
    format!("\n[… {bytes} bytes left out{whole} …]\n")
}

/// The last character boundary at or before `at`.
pub(crate) fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The first character boundary at or after `at`.
pub(crate) fn ceiling(text: &str, mut at: usize) -> usize {
    while at < text.len() && !text.is_char_boundary(at) {
        at += 1;
    }
    at.min(text.len())
}

/// True when nothing in here means anything to a terminal but the ends of lines. 0xC2 begins every
/// control character beyond ASCII, and some that are none.
fn is_plain(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| !matches!(byte, 0..=0x08 | 0x0b..=0x1f | 0x7f | 0xc2))
}

/// True for a control character that a terminal does nothing for.
fn is_dropped(byte: u8) -> bool {
    matches!(byte, 0..=0x07 | 0x0b | 0x0c | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f)
}

/// A line longer than this is passed on in pieces and can no longer be started again.
const LINE: usize = 8 * 1024;

/// Reads what a program printed, chunk by chunk, in bounded memory.
#[derive(Debug, Default)]
pub struct Terminal {
    /// The end of a character whose other bytes have not arrived.
    partial: Vec<u8>,
    state: Escape,
    line: String,
    /// A carriage return came and nothing after it.
    returned: bool,
}

/// Where in an escape sequence the input is (ECMA-48, 5th edition, 5.4 and 8.3.89).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Escape {
    #[default]
    None,
    /// After ESC.
    Start,
    /// After ESC and an intermediate byte: one more byte ends it.
    Intermediate,
    /// In a control sequence: parameters until a final byte.
    Control,
    /// In a string that ends with BEL or ESC `\`.
    Text,
    /// After ESC in such a string.
    Closing,
}

impl Terminal {
    /// Takes bytes and appends to `out` what can no longer change.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        let joined;
        let mut bytes = if self.partial.is_empty() {
            bytes
        } else {
            self.partial.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.partial);
            joined.as_slice()
        };
        loop {
            match std::str::from_utf8(bytes) {
                Ok(text) => return self.text(text, out),
                Err(error) => {
                    let (good, rest) = bytes.split_at(error.valid_up_to());
                    self.text(&String::from_utf8_lossy(good), out);
                    let Some(bad) = error.error_len() else {
                        self.partial = rest.to_vec();
                        return;
                    };
                    self.char(char::REPLACEMENT_CHARACTER, out);
                    bytes = &rest[bad..];
                }
            }
        }
    }

    /// The end of the output: appends what is left.
    pub fn finish(&mut self, out: &mut String) {
        if !std::mem::take(&mut self.partial).is_empty() {
            self.char(char::REPLACEMENT_CHARACTER, out);
        }
        out.push_str(&std::mem::take(&mut self.line));
        *self = Self::default();
    }

    fn text(&mut self, mut text: &str, out: &mut String) {
        // Nearly all output is plain: its whole lines are taken at once.
        let lines = text.rfind('\n').map_or(0, |at| at + 1);
        if lines > 0 && self.state == Escape::None && !self.returned && is_plain(&text.as_bytes()[..lines]) {
            out.push_str(&self.line);
            self.line.clear();
            out.push_str(&text[..lines]);
            text = &text[lines..];
        }
        while let Some(&first) = text.as_bytes().first() {
            let run = self.run(first, text.as_bytes());
            if run > 0 && !self.swallows(first) {
                self.line.push_str(&text[..run]);
                self.overlong(out);
            }
            text = &text[run..];
            if run == 0
                && let Some(c) = text.chars().next()
            {
                self.char(c, out);
                text = &text[c.len_utf8()..];
            }
        }
    }

    /// True for a byte that leaves no trace where the input is now.
    fn swallows(&self, byte: u8) -> bool {
        match self.state {
            Escape::Text => !matches!(byte, 0x07 | b'\n' | 0x18 | 0x1a | 0x1b | 0xc2),
            Escape::None if self.returned => byte == b'\r',
            Escape::None => is_dropped(byte),
            _ => false,
        }
    }

    /// How many bytes from here on are all swallowed, or all text of the line: a run of NULs, of carriage returns, or of
    /// letters is taken at once. None where each has to be looked at.
    fn run(&self, first: u8, bytes: &[u8]) -> usize {
        let length = |ends: &dyn Fn(u8) -> bool| bytes.iter().position(|byte| ends(*byte)).unwrap_or(bytes.len());
        if self.swallows(first) {
            return length(&|byte| !self.swallows(byte));
        }
        match self.state {
            // 0xC2 begins every control character beyond ASCII, and some that are none.
            Escape::None if !self.returned => length(&|byte| matches!(byte, 0..=0x1f | 0x7f | 0xc2)),
            _ => 0,
        }
    }

    fn overlong(&mut self, out: &mut String) {
        if self.line.len() > LINE {
            out.push_str(&self.line);
            self.line.clear();
        }
    }

    fn char(&mut self, c: char, out: &mut String) {
        self.state = match (self.state, c) {
            (Escape::None, _) => return self.plain(c, out),
            // CAN and SUB end a sequence at once.
            (_, '\u{18}' | '\u{1a}') => Escape::None,
            (Escape::Closing, '\\') => Escape::None,
            (Escape::Text | Escape::Closing, '\u{7}' | '\u{9c}') => Escape::None,
            (_, '\u{1b}') if self.state != Escape::Text => Escape::Start,
            (Escape::Text, '\u{1b}') => Escape::Closing,
            // Another byte after ESC in a string: the string was not closed, a new sequence began.
            (Escape::Start | Escape::Closing, '[') => Escape::Control,
            (Escape::Start | Escape::Closing, ']' | 'P' | 'X' | '^' | '_') => Escape::Text,
            (Escape::Start | Escape::Closing, '\u{20}'..='\u{2f}') => Escape::Intermediate,
            (Escape::Intermediate, '\u{20}'..='\u{2f}') => Escape::Intermediate,
            (Escape::Control, '\u{20}'..='\u{3f}') => Escape::Control,
            // A line end inside a sequence is a broken sequence; the line end is kept.
            (Escape::Start | Escape::Intermediate | Escape::Control | Escape::Closing, '\n' | '\r')
            | (Escape::Text, '\n') => {
                self.state = Escape::None;
                return self.plain(c, out);
            }
            (Escape::Text, _) => Escape::Text,
            (Escape::Start | Escape::Intermediate | Escape::Control | Escape::Closing, _) => Escape::None,
        };
    }

    fn plain(&mut self, c: char, out: &mut String) {
        if self.returned && c != '\r' {
            self.returned = false;
            if c != '\n' {
                self.line.clear();
            }
        }
        match c {
            '\n' => {
                out.push_str(&self.line);
                out.push('\n');
                self.line.clear();
            }
            '\r' => self.returned = true,
            '\t' => self.line.push(c),
            // Overstrikes of a manual page: the second character replaces the first.
            '\u{8}' => {
                self.line.pop();
            }
            '\u{1b}' => self.state = Escape::Start,
            '\u{9b}' => self.state = Escape::Control,
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => self.state = Escape::Text,
            c if c.is_control() => {}
            c => {
                self.line.push(c);
                self.overlong(out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn terminal(chunks: &[&[u8]]) -> String {
        let (mut terminal, mut out) = (Terminal::default(), String::new());
        for chunk in chunks {
            terminal.push(chunk, &mut out);
        }
        terminal.finish(&mut out);
        out
    }

    #[track_caller]
    fn check(bytes: &[u8], expect: &str) {
        assert_eq!(terminal(&[bytes]), expect);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(terminal(&single), expect, "byte by byte");
    }

    #[test]
    fn bytes_that_are_no_text() {
        check(b"A\xff\xfeB\0C\n", "A\u{fffd}\u{fffd}BC\n");
        check(b"ok \xe2\x82", "ok \u{fffd}");
        check("é→😀\n".as_bytes(), "é→😀\n");
    }

    #[test]
    fn escape_sequences_vanish() {
        check(b"\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[?1049h\x1b[?1000h end\n", "red   end\n");
        check(b"a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb");
        check(b"a\x1bPq#0\x1b\\b\x1b(Bc\x1b7d\x1b=e", "abcde");
        check(b"cut \x1b[12", "cut ");
        check(b"broken \x1b]0;title\nnext\n", "broken \nnext\n");
        check("eight \u{9b}31mbit".as_bytes(), "eight bit");
    }

    #[test]
    fn carriage_returns_collapse() {
        check(b"p 10%\rp 90%\rdone\n", "done\n");
        check(b"dos\r\nline\r\n", "dos\nline\n");
        check(b"twice\r\r\n", "twice\n");
        check(b"kept\r", "kept");
        check(b"N\x08NA\x08A", "NA");
    }

    #[test]
    fn a_line_without_an_end_is_bounded() {
        let (mut terminal, mut out) = (Terminal::default(), String::new());
        for _ in 0..100 {
            terminal.push(&[b'x'; 1000], &mut out);
            assert!(terminal.line.len() <= LINE + 1000);
        }
        terminal.finish(&mut out);
        assert_eq!(out.len(), 100_000);
    }

    #[test]
    fn inert_text_shows_what_is_there() {
        assert_eq!(inert("a\0b\x1b[1m\r\nc\rd\te\u{85}\x7f"), "a␀b␛[1m\nc␍d\te\u{fffd}␡");
    }

    #[test]
    fn a_cut_names_what_is_left_out() {
        assert_eq!(cut("short", 10), "short");
        assert_eq!(cut("aéééééb", 6), "aé\n[… 6 bytes left out …]\néb");
    }

    /// Any bytes, and often those that mean something.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let meaning = prop::sample::select(b"\x1b\x1b[]P\\m0;\x07\r\n\x08\xc2\x9b\xe2\x82\xacab".to_vec());
        prop::collection::vec(prop_oneof![3 => meaning, 1 => any::<u8>()], 0..60)
    }

    /// What reads the same one character after the other, and decides nothing by runs.
    mod reference {
        use super::super::*;

        pub fn terminal(chunks: &[&[u8]]) -> String {
            let (mut terminal, mut out) = (Terminal::default(), String::new());
            for chunk in chunks {
                let mut bytes = std::mem::take(&mut terminal.partial);
                bytes.extend_from_slice(chunk);
                let mut rest = bytes.as_slice();
                while !rest.is_empty() {
                    let length = (1..=rest.len().min(4)).find(|length| std::str::from_utf8(&rest[..*length]).is_ok());
                    if let Some(length) = length {
                        let c = std::str::from_utf8(&rest[..length]).unwrap().chars().next().unwrap();
                        terminal.char(c, &mut out);
                        rest = &rest[length..];
                        continue;
                    }
                    let Some(bad) = std::str::from_utf8(rest).unwrap_err().error_len() else {
                        terminal.partial = rest.to_vec();
                        break;
                    };
                    terminal.char(char::REPLACEMENT_CHARACTER, &mut out);
                    rest = &rest[bad..];
                }
            }
            terminal.finish(&mut out);
            out
        }

        pub fn inert(text: &str) -> String {
            let mut rest = text.chars().peekable();
            let mut clean = String::new();
            while let Some(c) = rest.next() {
                match c {
                    '\n' | '\t' => clean.push(c),
                    '\r' if rest.peek() == Some(&'\n') => {}
                    '\0'..='\u{1f}' => clean.push(char::from_u32(0x2400 + c as u32).unwrap()),
                    '\u{7f}' => clean.push('\u{2421}'),
                    '\u{80}'..='\u{9f}' => clean.push(char::REPLACEMENT_CHARACTER),
                    c => clean.push(c),
                }
            }
            clean
        }
    }

    /// Runs of what leaves no trace, between what does.
    fn runs() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(
            [
                &b"\0"[..],
                b"\r",
                b"\x08",
                b"\x7f",
                b"\t",
                b"\n",
                b"a",
                b"\xc2\xa9",
                b"\x1b]",
                b"\x07",
                b"\x1b[",
                b"\xff",
            ]
            .to_vec(),
        );
        let run = (piece, 1usize..12).prop_map(|(piece, times)| piece.repeat(times));
        prop::collection::vec(run, 0..12).prop_map(|runs| runs.concat())
    }

    #[test]
    fn long_runs_are_taken_at_once() {
        let count = 8 * 1024 * 1024;
        assert_eq!(terminal(&[&vec![0; count]]), "");
        assert_eq!(terminal(&[&vec![b'\r'; count], b"x"]), "x");
        let mut string = b"\x1b]0;".to_vec();
        string.resize(count, b'x');
        assert_eq!(terminal(&[&string, b"\x07y"]), "y");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn runs_are_read_as_their_characters_are(bytes in prop_oneof![runs(), bytes()], at in 0usize..80) {
            let at = at.min(bytes.len());
            let chunks = [&bytes[..at], &bytes[at..]];
            prop_assert_eq!(terminal(&chunks), reference::terminal(&chunks));
            let text = String::from_utf8_lossy(&bytes);
            prop_assert_eq!(inert(&text), reference::inert(&text));
        }

        #[test]
        fn any_bytes_in_any_chunks_give_the_same_inert_text(bytes in bytes(), at in 0usize..60) {
            let at = at.min(bytes.len());
            let whole = terminal(&[&bytes]);
            prop_assert_eq!(&terminal(&[&bytes[..at], &bytes[at..]]), &whole);
            prop_assert_eq!(inert(&whole), whole);
        }

        #[test]
        fn any_text_becomes_inert_and_stays_so(text in any::<String>(), limit in 2usize..200) {
            let clean = inert(&text);
            prop_assert!(clean.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
            prop_assert_eq!(&inert(&clean), &clean);
            prop_assert!(cut(&clean, limit).len() <= limit + 60);
        }
    }
}
