//! What keys make of a line: pure, so that it can be tested without a terminal.
//!
//! The terminal hands over every byte as it comes. Keys that stand for no character (arrows, function keys) are left
//! out whole; a paste is text, whatever is in it, and its line ends do not send it.

use unicode_width::UnicodeWidthChar;

use crate::render::inert::inert;

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// What a typed tab takes on the screen.
const TAB: &str = "    ";

/// The line that is being typed.
#[derive(Debug, Default)]
pub struct Editor {
    text: String,
    /// Some of it was pasted.
    pasted: bool,
    /// Keys without a character were pressed since the line began.
    keys: bool,
    /// Bytes that make no sense yet: the beginning of a character, of a key, or of a paste.
    rest: Vec<u8>,
    /// A paste has begun that is not over.
    pasting: bool,
}

/// What a key amounts to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    Line {
        text: String,
        pasted: bool,
        /// Keys without a character were pressed, and nothing else.
        keys: bool,
    },
    /// Ctrl-D on an empty line.
    End,
    /// Ctrl-Z.
    Suspend,
}

/// What came of some bytes: what the screen shows of them, and what they amount to, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fed {
    Echo(String),
    Typed(Typed),
}

impl Editor {
    /// True while something is typed that was not sent.
    pub fn is_typing(&self) -> bool {
        !self.text.is_empty() || self.pasting
    }

    /// Throws away what was not sent, and gives it. Of a paste that is still on its way the rest is taken as text.
    pub fn forget(&mut self) -> String {
        self.keys = false;
        self.pasted = self.pasting;
        std::mem::take(&mut self.text)
    }

    /// Takes bytes as the terminal gave them.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Fed> {
        let mut rest = std::mem::take(&mut self.rest);
        // Escape pressed alone is a key of its own, unless what follows makes it the beginning of another.
        if rest == [0x1b] && !self.pasting && !matches!(bytes.first(), Some(b'[' | b'O')) {
            rest.clear();
            self.keys = true;
        }
        let bytes = [&rest, bytes].concat();
        let mut fed = Out::default();
        let mut at = 0;
        while at < bytes.len() {
            let left = &bytes[at..];
            let taken = if self.pasting { self.paste(left, &mut fed) } else { self.key(left, &mut fed) };
            match taken {
                Some(taken) => at += taken,
                None => {
                    self.rest = left.to_vec();
                    break;
                }
            }
        }
        fed.0
    }

    /// Takes a piece of a paste; `None` when its end may have begun.
    fn paste(&mut self, left: &[u8], fed: &mut Out) -> Option<usize> {
        let end = left.windows(PASTE_ENDS.len()).position(|window| window == PASTE_ENDS);
        // A character, a line end or the mark of the end may go on in the next piece.
        let until = match end {
            Some(end) => end,
            None => whole(left)?,
        };
        let text = String::from_utf8_lossy(&left[..until]).replace("\r\n", "\n").replace('\r', "\n");
        if !text.is_empty() {
            self.pasted = true;
            self.text.push_str(&text);
            fed.echo(&inert(&text).replace('\t', TAB));
        }
        self.pasting = end.is_none();
        Some(until + end.map_or(0, |_| PASTE_ENDS.len()))
    }

    /// Takes one key; `None` when it is not whole.
    fn key(&mut self, left: &[u8], fed: &mut Out) -> Option<usize> {
        match left[0] {
            b'\r' | b'\n' => {
                let taken = if left.starts_with(b"\r\n") { 2 } else { 1 };
                // Nobody types so fast: text behind a line's end is a paste in a terminal that does not say so.
                if left[taken..].iter().any(|byte| !matches!(byte, b'\r' | b'\n' | 0x04)) {
                    self.pasted = true;
                    self.text.push('\n');
                    fed.echo("\n");
                } else {
                    self.enter(fed);
                }
                Some(taken)
            }
            0x04 => {
                if self.text.is_empty() {
                    fed.0.push(Fed::Typed(Typed::End));
                }
                Some(1)
            }
            0x1a => {
                fed.0.push(Fed::Typed(Typed::Suspend));
                Some(1)
            }
            0x08 | 0x7f => {
                self.erase(fed, |text| {
                    let base = text.char_indices().rev().find(|(_, letter)| columns(*letter) > 0);
                    base.map_or(0, |(at, _)| at)
                });
                Some(1)
            }
            0x15 => {
                self.erase(fed, |_| 0);
                Some(1)
            }
            0x17 => {
                self.erase(fed, |text| {
                    let word = text.trim_end();
                    word.rfind(char::is_whitespace)
                        .map_or(0, |at| at + word[at..].chars().next().map_or(0, char::len_utf8))
                });
                Some(1)
            }
            0x1b => self.escape(left),
            b'\t' => {
                self.text.push('\t');
                fed.echo(TAB);
                Some(1)
            }
            0..0x20 => {
                self.keys = true;
                Some(1)
            }
            _ => self.letter(left, fed),
        }
    }

    fn enter(&mut self, fed: &mut Out) {
        fed.echo("\n");
        let text = std::mem::take(&mut self.text);
        let keys = std::mem::take(&mut self.keys) && text.is_empty();
        fed.0.push(Fed::Typed(Typed::Line { text, pasted: std::mem::take(&mut self.pasted), keys }));
    }

    /// Takes a character.
    fn letter(&mut self, left: &[u8], fed: &mut Out) -> Option<usize> {
        let (text, taken) = match std::str::from_utf8(&left[..left.len().min(4)]) {
            Ok(text) => (text, 0),
            Err(error) if error.valid_up_to() > 0 => {
                (std::str::from_utf8(&left[..error.valid_up_to()]).unwrap_or_default(), 0)
            }
            // It may go on in the next piece.
            Err(error) => match error.error_len() {
                Some(wrong) => ("\u{fffd}", wrong),
                None => return None,
            },
        };
        let letter = text.chars().next().unwrap_or('\u{fffd}');
        let plain = inert(letter.encode_utf8(&mut [0; 4]));
        self.text.push_str(&plain);
        fed.echo(&plain);
        Some(if taken > 0 { taken } else { letter.len_utf8() })
    }

    /// Leaves a key out that begins with an escape; `None` when it is not whole.
    fn escape(&mut self, left: &[u8]) -> Option<usize> {
        if left.starts_with(PASTE_BEGINS) {
            self.pasting = true;
            return Some(PASTE_BEGINS.len());
        }
        let taken = match left.get(1)? {
            b'[' => {
                let end = left[2..].iter().position(|byte| !(0x20..0x40).contains(byte))?;
                // What cannot stand in a key does not belong to it.
                2 + end + usize::from((0x40..0x7f).contains(&left[2 + end]))
            }
            b'O' => {
                left.get(2)?;
                3
            }
            0x1b => 1,
            _ => 2,
        };
        self.keys = true;
        Some(taken)
    }

    /// Erases from where `keep` says on.
    fn erase(&mut self, fed: &mut Out, keep: impl Fn(&str) -> usize) {
        let gone = self.text.split_off(keep(&self.text));
        match gone.contains('\n') {
            false => fed.echo(&"\u{8} \u{8}".repeat(gone.chars().map(columns).sum())),
            // The line before stands above: it is shown again.
            true => fed.echo(&format!("\n{}", inert(&self.text).replace('\t', TAB))),
        }
        self.pasted &= !self.text.is_empty();
    }
}

#[derive(Default)]
struct Out(Vec<Fed>);

impl Out {
    fn echo(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(Fed::Echo(shown)) => shown.push_str(text),
            _ => self.0.push(Fed::Echo(text.to_owned())),
        }
    }
}

/// How much of a paste can be taken before its next piece is there; `None`: nothing.
fn whole(left: &[u8]) -> Option<usize> {
    let mark = (1..PASTE_ENDS.len()).rev().find(|length| left.ends_with(&PASTE_ENDS[..*length])).unwrap_or(0);
    let mut until = left.len() - mark - usize::from(mark == 0 && left.ends_with(b"\r"));
    if let Err(error) = std::str::from_utf8(&left[..until])
        && error.error_len().is_none()
    {
        until = error.valid_up_to();
    }
    (until > 0).then_some(until)
}

/// Columns that a character takes; a line end takes one, so that it can be erased.
fn columns(letter: char) -> usize {
    match letter {
        '\t' => TAB.len(),
        '\n' => 1,
        _ => letter.width().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn typed(pieces: &[&[u8]]) -> Vec<Typed> {
        let mut editor = Editor::default();
        let fed = pieces.iter().flat_map(|piece| editor.feed(piece)).collect::<Vec<_>>();
        fed.into_iter().filter_map(|fed| if let Fed::Typed(typed) = fed { Some(typed) } else { None }).collect()
    }

    fn line(text: &str) -> Typed {
        Typed::Line { text: text.to_owned(), pasted: false, keys: false }
    }

    fn paste(text: &str) -> Typed {
        Typed::Line { text: text.to_owned(), pasted: true, keys: false }
    }

    fn only_keys() -> Typed {
        Typed::Line { text: String::new(), pasted: false, keys: true }
    }

    #[test]
    fn keys_that_are_no_characters_are_left_out() {
        assert_eq!(typed(&[b"\x1b[A\r"]), [only_keys()]);
        assert_eq!(typed(&[b"\x1b", b"[A", b"\r"]), [only_keys()]);
        assert_eq!(typed(&[b"a\x1b[1;5Cb\x1bOPc\x0cd\x1b[3~\n"]), [line("abcd")]);
        assert_eq!(typed(&[b"\x1b", b"y\n"]), [line("y")]);
        assert_eq!(typed(&[b"\x1bfy\n"]), [line("y")]);
        assert_eq!(typed(&[b"\n"]), [line("")]);
    }

    #[test]
    fn a_line_is_edited_at_its_end() {
        assert_eq!(typed(&[b"abx\x7fc\n"]), [line("abc")]);
        assert_eq!(typed(&["a\u{6f22}\u{7f}e\u{301}\u{7f}b\n".as_bytes()]), [line("ab")]);
        assert_eq!(typed(&[b"one two\x17three\n"]), [line("one three")]);
        assert_eq!(typed(&[b"one\x15two\n"]), [line("two")]);
        assert_eq!(typed(&["h\u{e9}".as_bytes()[..2].into(), &"h\u{e9}".as_bytes()[2..], b"\n"]), [line("h\u{e9}")]);
        assert_eq!(typed(&[b"half\x04\x04\n"]), [line("half")]);
        assert_eq!(typed(&[b"\x04"]), [Typed::End]);
    }

    #[test]
    fn a_paste_is_one_text_as_it_stands() {
        let text = "fix this:\n\nTraceback:\n/undo\n  File \"x\"\ty\n";
        let bytes = format!("\x1b[200~{}\x1b[201~\r", text.replace('\n', "\r"));
        assert_eq!(typed(&[bytes.as_bytes()]), [paste(text)]);
        let pieces: Vec<&[u8]> = bytes.as_bytes().chunks(1).collect();
        assert_eq!(typed(&pieces), [paste(text)]);
        assert_eq!(typed(&[b"see \x1b[200~a\r\nb\x1b[201~ now\n", b"y\n"]), [paste("see a\nb now"), line("y")]);
        assert_eq!(typed(&[b"\x1b[200~a\x1b[201~\x15y\n"]), [line("y")]);
    }

    #[test]
    fn a_burst_of_lines_is_a_paste_too() {
        assert_eq!(typed(&[b"notes:\ny\nmore\n"]), [paste("notes:\ny\nmore")]);
        assert_eq!(typed(&[b"\n\n"]), [line(""), line("")]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn a_paste_does_not_depend_on_its_pieces(text in "[a-z\u{e9}\u{6f22}\\n\u{1b}\\[201]{0,40}", at in 0usize..60) {
            prop_assume!(!text.contains("\u{1b}[201~"));
            let bytes = format!("\u{1b}[200~{text}\u{1b}[201~\n").into_bytes();
            let (one, other) = bytes.split_at(at.min(bytes.len()));
            let expect = if text.is_empty() { line("") } else { paste(&text) };
            prop_assert_eq!(typed(&[one, other]), [expect]);
        }

        #[test]
        fn nothing_that_is_typed_controls_a_terminal(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            for typed in typed(&[&bytes]) {
                if let Typed::Line { text, pasted: false, .. } = typed {
                    prop_assert!(!text.chars().any(|letter| letter.is_control() && letter != '\t'), "{:?}", text);
                }
            }
        }
    }
}
