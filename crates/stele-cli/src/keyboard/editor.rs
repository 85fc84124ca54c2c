//! What keys make of a line: pure, so that it can be tested without a terminal.
//!
//! The terminal hands over every byte as it comes. Keys that mean nothing here (function keys) are left out whole; a
//! paste is text, whatever is in it, and its line ends do not send it.

use super::history::{Earlier, History, Past};
use super::line::{Line, Motion};
use crate::render::inert::inert;
use crate::render::input::Draft;

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// The line that is being typed.
#[derive(Default)]
pub struct Editor {
    line: Line,
    /// Some of it was pasted.
    pasted: bool,
    /// Bytes that make no sense yet: the beginning of a character, of a key, or of a paste.
    rest: Vec<u8>,
    /// A paste has begun that is not over.
    pasting: bool,
    /// Its beginning was thrown away, and so is the rest.
    dropping: bool,
    /// Lines came at once, in the piece that is being read.
    burst: bool,
    history: History,
    /// The line answers a question: nothing from before does, and only an Enter of its own sends it.
    pub asked: bool,
    /// The line changed since it was given last.
    changed: bool,
    /// How many bytes it had then.
    given: usize,
}

/// What a key amounts to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    Line {
        text: String,
        pasted: bool,
    },
    /// Ctrl-D on an empty line.
    End,
    /// Ctrl-Z.
    Suspend,
}

/// What came of some bytes, in this order: what was sent, and how the line stood right before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fed {
    Draft(Draft),
    Typed(Typed),
}

impl Editor {
    /// An editor that has a past.
    pub fn with(earlier: Earlier) -> Self {
        Self { history: History::with(earlier), ..Self::default() }
    }

    /// True while something is typed that was not sent.
    pub fn is_typing(&self) -> bool {
        !self.line.is_empty() || self.pasting && !self.dropping
    }

    /// How the line stands.
    pub fn draft(&self) -> Draft {
        self.line.draft()
    }

    /// How the line stands, if that changed. To show it takes time that grows with the line: of what is being pasted, in
    /// any number of pieces, it is given when the line is twice as long as before, and at the end.
    pub fn changed(&mut self) -> Option<Draft> {
        let held = self.pasting && self.line.len() < 2 * self.given;
        (!held && self.changed).then(|| self.give())
    }

    fn give(&mut self) -> Draft {
        (self.changed, self.given) = (false, self.line.len());
        self.line.draft()
    }

    /// Throws away what was not sent, and gives it; of a paste that is still on its way the rest as well.
    pub fn forget(&mut self) -> String {
        (self.changed, self.given) = (false, 0);
        self.pasted = false;
        self.dropping = self.pasting;
        self.history.leave();
        std::mem::take(&mut self.line).into_text()
    }

    /// True when an escape came and nothing behind it: a key of its own, unless it is the beginning of one that comes in pieces.
    pub fn escape_waits(&self) -> bool {
        self.rest == [0x1b] && !self.pasting
    }

    /// Nothing came behind an escape for a while: it was the key.
    pub fn take_escape(&mut self) -> bool {
        let waits = self.escape_waits();
        if waits {
            self.rest.clear();
        }
        waits
    }

    /// Takes bytes as the terminal gave them. How the line stands behind them is what [`Self::changed`] gives.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Fed> {
        let mut rest = std::mem::take(&mut self.rest);
        // Escape pressed alone is a key of its own, unless what follows makes it the beginning of another.
        if rest == [0x1b] && !self.pasting && !matches!(bytes.first(), Some(b'[' | b'O')) {
            rest.clear();
        }
        let bytes = [&rest, bytes].concat();
        self.burst = false;
        let mut fed = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let left = &bytes[at..];
            let taken = if self.pasting { self.paste(left) } else { self.key(left, &mut fed) };
            match taken {
                Some(taken) => at += taken,
                None => {
                    self.rest = left.to_vec();
                    break;
                }
            }
        }
        fed
    }

    /// Takes a piece of a paste; `None` when its end may have begun.
    fn paste(&mut self, left: &[u8]) -> Option<usize> {
        let end = left.windows(PASTE_ENDS.len()).position(|window| window == PASTE_ENDS);
        // A character, a line end or the mark of the end may go on in the next piece.
        let until = match end {
            Some(end) => end,
            None => whole(left)?,
        };
        let text = String::from_utf8_lossy(&left[..until]).replace("\r\n", "\n").replace('\r', "\n");
        if !text.is_empty() && !self.dropping {
            self.pasted = true;
            self.line.insert(&text);
            self.changed = true;
        }
        self.pasting = end.is_none();
        self.dropping &= self.pasting;
        Some(until + end.map_or(0, |_| PASTE_ENDS.len()))
    }

    /// Takes one key; `None` when it is not whole.
    fn key(&mut self, left: &[u8], fed: &mut Vec<Fed>) -> Option<usize> {
        let key = match left[0] {
            b'\r' | b'\n' => {
                let taken = if left.starts_with(b"\r\n") { 2 } else { 1 };
                // Nobody types so fast: text behind a line's end is a paste in a terminal that does not say so.
                if left[taken..].iter().any(|byte| !matches!(byte, b'\r' | b'\n' | 0x04)) {
                    (self.pasted, self.burst) = (true, true);
                    self.line.insert("\n");
                    self.changed = true;
                } else if !(self.burst && self.asked) {
                    self.enter(fed);
                }
                return Some(taken);
            }
            0x1b => {
                let (taken, key) = self.escape(left)?;
                self.press(key);
                return Some(taken);
            }
            0x04 => {
                if self.line.is_empty() {
                    self.typed(fed, Typed::End);
                }
                Key::Nothing
            }
            0x1a => {
                self.typed(fed, Typed::Suspend);
                Key::Nothing
            }
            0x01 => Key::Go(Motion::Begin),
            0x02 => Key::Go(Motion::Back),
            0x05 => Key::Go(Motion::End),
            0x06 => Key::Go(Motion::Forth),
            0x08 | 0x7f => Key::Erase(Motion::Back),
            0x0b => Key::Erase(Motion::Last),
            0x0e => Key::Newer,
            0x10 => Key::Older,
            0x15 => Key::Erase(Motion::First),
            0x17 => Key::Erase(Motion::WordBack),
            b'\t' => {
                self.line.insert("\t");
                self.changed = true;
                Key::Nothing
            }
            0..0x20 => Key::Nothing,
            _ => return self.letter(left),
        };
        self.press(key);
        Some(1)
    }

    /// Does what a key without a character does.
    fn press(&mut self, key: Key) {
        match key {
            Key::Nothing => return,
            Key::Go(motion) => drop(self.line.go(motion)),
            Key::Erase(motion) => self.line.erase(motion),
            Key::Older => {
                if !self.line.go(Motion::Up) && !self.asked {
                    let shown = Past { line: self.line.clone(), pasted: self.pasted };
                    let older = self.history.older(&shown);
                    self.recall(older);
                }
            }
            Key::Newer => {
                if !self.line.go(Motion::Down) && !self.asked {
                    let newer = self.history.newer();
                    self.recall(newer);
                }
            }
        }
        self.pasted &= !self.line.is_empty();
        self.changed = true;
    }

    fn recall(&mut self, past: Option<Past>) {
        if let Some(past) = past {
            (self.line, self.pasted) = (past.line, past.pasted);
        }
    }

    fn show(&mut self, fed: &mut Vec<Fed>) {
        if self.changed {
            fed.push(Fed::Draft(self.give()));
        }
    }

    /// Before something that was typed, the line is shown as it stood.
    fn typed(&mut self, fed: &mut Vec<Fed>, typed: Typed) {
        self.show(fed);
        fed.push(Fed::Typed(typed));
    }

    fn enter(&mut self, fed: &mut Vec<Fed>) {
        self.show(fed);
        self.given = 0;
        let (text, pasted) = (std::mem::take(&mut self.line).into_text(), std::mem::take(&mut self.pasted));
        self.history.leave();
        if !self.asked {
            self.history.push(&text, pasted);
        }
        fed.push(Fed::Typed(Typed::Line { text, pasted }));
    }

    /// Takes a character.
    fn letter(&mut self, left: &[u8]) -> Option<usize> {
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
        self.line.insert(&inert(letter.encode_utf8(&mut [0; 4])));
        self.changed = true;
        Some(if taken > 0 { taken } else { letter.len_utf8() })
    }

    /// A key that begins with an escape, and its bytes; `None` when it is not whole.
    fn escape(&mut self, left: &[u8]) -> Option<(usize, Key)> {
        if left.starts_with(PASTE_BEGINS) {
            self.pasting = true;
            return Some((PASTE_BEGINS.len(), Key::Nothing));
        }
        match left.get(1)? {
            b'[' => {
                let end = 2 + left[2..].iter().position(|byte| !(0x20..0x40).contains(byte))?;
                // What cannot stand in a key does not belong to it.
                let is_key = (0x40..0x7f).contains(&left[end]);
                Some((end + usize::from(is_key), if is_key { named(&left[2..end], left[end]) } else { Key::Nothing }))
            }
            b'O' => Some((3, named(&[], *left.get(2)?))),
            0x1b => Some((1, Key::Nothing)),
            b'b' => Some((2, Key::Go(Motion::WordBack))),
            b'f' => Some((2, Key::Go(Motion::WordForth))),
            b'd' => Some((2, Key::Erase(Motion::WordForth))),
            0x08 | 0x7f => Some((2, Key::Erase(Motion::WordBack))),
            _ => Some((2, Key::Nothing)),
        }
    }
}

/// A key without a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Nothing,
    Go(Motion),
    Erase(Motion),
    Older,
    Newer,
}

/// A key by its control sequence, as xterm sends it (XTerm Control Sequences, "PC-Style Function Keys", 2026-11), and the
/// numbers that other terminals have for Home and End.
fn named(parameters: &[u8], last: u8) -> Key {
    // With Alt (3) or Ctrl (5) it goes by words.
    let words = parameters.ends_with(b";3") || parameters.ends_with(b";5");
    match (last, parameters) {
        (b'A', _) => Key::Older,
        (b'B', _) => Key::Newer,
        (b'C', _) => Key::Go(if words { Motion::WordForth } else { Motion::Forth }),
        (b'D', _) => Key::Go(if words { Motion::WordBack } else { Motion::Back }),
        (b'H', _) | (b'~', b"1" | b"7") => Key::Go(Motion::Begin),
        (b'F', _) | (b'~', b"4" | b"8") => Key::Go(Motion::End),
        (b'~', b"3") => Key::Erase(Motion::Forth),
        (b'~', b"3;3" | b"3;5") => Key::Erase(Motion::WordForth),
        _ => Key::Nothing,
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
        Typed::Line { text: text.to_owned(), pasted: false }
    }

    fn paste(text: &str) -> Typed {
        Typed::Line { text: text.to_owned(), pasted: true }
    }

    #[test]
    fn keys_that_mean_nothing_are_left_out() {
        assert_eq!(typed(&[b"a\x1b[1;2Pb\x1bOPc\x0cd\x1b[15~\n"]), [line("abcd")]);
        assert_eq!(typed(&[b"\x1b", b"y\n"]), [line("y")]);
        assert_eq!(typed(&[b"\x1bxy\n"]), [line("y")]);
        assert_eq!(typed(&[b"\n"]), [line("")]);
    }

    #[test]
    fn the_line_is_edited_where_the_cursor_is() {
        for (keys, text) in [
            (&b"ac\x1b[Db\r"[..], "abc"),
            (b"ac\x1bODb\r", "abc"),
            (b"bc\x01a\x05d\r", "abcd"),
            (b"bc\x1b[Ha\x1b[Fd\r", "abcd"),
            (b"bc\x1b[1~a\x1b[4~d\r", "abcd"),
            (b"abc\x1b[D\x1b[D\x1b[3~\r", "ac"),
            (b"abc\x1b[D\x7f\r", "ac"),
            (b"abc\x02\x02\x0b\r", "a"),
            (b"abc\x02\x15x\r", "xc"),
            (b"one two three\x1bb\x1bb\x1bd\r", "one  three"),
            (b"one two\x1b[1;5D\x1b[1;3Dx\x1b[1;5Cy\r", "xoney two"),
            (b"one two three\x1bb\x17\r", "one three"),
        ] {
            assert_eq!(typed(&[keys]), [line(text)], "{keys:?}");
            let pieces: Vec<&[u8]> = keys.chunks(1).collect();
            if !keys.windows(2).any(|keys| keys[0] == 0x1b && keys[1].is_ascii_lowercase()) {
                assert_eq!(typed(&pieces), [line(text)], "one by one: {keys:?}");
            }
        }
        assert_eq!(
            typed(&["\u{6f22}\u{5b57}\x1b[D\x1b[De\u{301}\x1b[Cx\r".as_bytes()]),
            [line("e\u{301}\u{6f22}x\u{5b57}")]
        );
        assert_eq!(typed(&[b"ad\x02\x1b[200~b\rc\x1b[201~\r"]), [paste("ab\ncd")]);
    }

    #[test]
    fn what_was_sent_comes_back_with_what_it_was() {
        let earlier = || vec![Past::new("/mode full".to_owned(), true), Past::new("one\ntwo".to_owned(), false)];
        let mut editor = Editor::with(Box::new(earlier));
        let mut sent = |keys: &[u8]| match editor.feed(keys).pop() {
            Some(Fed::Typed(Typed::Line { text, pasted })) => (text, pasted),
            other => panic!("{other:?}"),
        };
        assert_eq!(sent(b"three\r"), ("three".to_owned(), false));
        assert_eq!(sent(b"four\x1b[A\x1b[B\r"), ("four".to_owned(), false));
        assert_eq!(sent(b"\x10\x10\x10\r"), ("one\ntwo".to_owned(), false), "past four and three");
        // Up goes to the line before first, where there are several.
        assert_eq!(sent(b"\x1b[A!\x1b[A?\r"), ("one?\ntwo!".to_owned(), false));
        assert_eq!(sent(b"\x10\x10\x10\x10\x10\x10\x10\x10\x10\x10\r"), ("/mode full".to_owned(), true));
        editor.asked = true;
        let fed = editor.feed(b"\x1b[A\r");
        assert!(fed.contains(&Fed::Typed(line(""))), "no question is answered with it: {fed:?}");
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
    fn showing_a_paste_costs_no_more_than_it_is_long() {
        let text = "a line of a long log\r".repeat(10_000);
        let mut editor = Editor::default();
        editor.feed(b"\x1b[200~");
        let mut shown = 0;
        for piece in text.as_bytes().chunks(1024) {
            editor.feed(piece);
            shown += editor.changed().map_or(0, |draft| draft.text.len());
        }
        assert!(shown > 0 && shown < 2 * text.len(), "{shown} bytes were shown of {}", text.len());
        editor.feed(b"\x1b[201~");
        assert_eq!(editor.changed().unwrap().text.len(), text.len(), "the whole of it stands there in the end");
        assert_eq!(editor.changed(), None);
        // The next one is shown from its begin on.
        editor.feed(b"\r");
        editor.feed(b"\x1b[200~next");
        assert_eq!(editor.changed().unwrap().text, "next");
    }

    #[test]
    fn a_burst_of_lines_is_a_paste_too() {
        assert_eq!(typed(&[b"notes:\ny\nmore\n"]), [paste("notes:\ny\nmore")]);
        assert_eq!(typed(&[b"\n\n"]), [line(""), line("")]);
    }

    #[test]
    fn a_paste_answers_no_question_before_an_enter_of_its_own() {
        let mut editor = Editor { asked: true, ..Editor::default() };
        let sent = |fed: Vec<Fed>| fed.into_iter().find(|fed| matches!(fed, Fed::Typed(_)));
        assert_eq!(sent(editor.feed(b"notes:\ny\n")), None);
        assert_eq!(sent(editor.feed(b"\r")), Some(Fed::Typed(paste("notes:\ny"))));
        assert_eq!(sent(editor.feed(b"\x1b[200~half")), None);
        editor.forget();
        assert_eq!(sent(editor.feed(b" of it\ry\x1b[201~\r")), Some(Fed::Typed(line(""))), "it began before");
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
