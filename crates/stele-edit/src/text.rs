//! A file as lines of bytes, with what has to stay: byte order mark, line ends, encoding.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memmem};

use crate::limits::MAX_FILE;
use crate::refuse::{Code, Refusal};

/// How lines end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineEnd {
    Lf,
    CrLf,
    /// Only where the file holds no line feed at all.
    Cr,
}

impl LineEnd {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
            Self::Cr => "\r",
        }
    }
}

/// One line: its content is `start..end`, its line end `end..next`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub start: usize,
    pub end: usize,
    pub next: usize,
}

/// The bytes of a file and their lines.
pub(crate) struct Source<'a> {
    pub bytes: &'a [u8],
    pub lines: Vec<Line>,
    /// The line end that most lines have.
    pub line_end: LineEnd,
    /// Bytes of the byte order mark, which belong to no line.
    pub mark: usize,
}

impl<'a> Source<'a> {
    /// Splits a file into lines.
    ///
    /// # Errors
    /// `edit.too_large`, `edit.encoding` (UTF-16, UTF-32), `edit.binary` (holds NUL).
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, Refusal> {
        if bytes.len() > MAX_FILE {
            return Err(Refusal::new(
                Code::TooLarge,
                format!("the file has {} bytes, the most is {MAX_FILE}; change it with a script", bytes.len()),
            ));
        }
        refuse_wide(bytes)?;
        let mark = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let only_cr = memchr(b'\n', bytes).is_none() && memchr(b'\r', bytes).is_some();
        let mut lines = Vec::new();
        let (mut start, mut crlf) = (mark, 0_usize);
        for at in memchr_iter(if only_cr { b'\r' } else { b'\n' }, bytes) {
            let with_cr = !only_cr && at > start && bytes[at - 1] == b'\r';
            crlf += usize::from(with_cr);
            lines.push(Line { start, end: at - usize::from(with_cr), next: at + 1 });
            start = at + 1;
        }
        let line_end = match () {
            () if only_cr => LineEnd::Cr,
            () if crlf * 2 > lines.len() => LineEnd::CrLf,
            () => LineEnd::Lf,
        };
        if start < bytes.len() {
            lines.push(Line { start, end: bytes.len(), next: bytes.len() });
        }
        Ok(Self { bytes, lines, line_end, mark })
    }

    /// The content of a line, without its end.
    pub(crate) fn content(&self, line: usize) -> &'a [u8] {
        let Line { start, end, .. } = self.lines[line];
        &self.bytes[start..end]
    }

    /// The index of the line that a byte belongs to (for the end of the file: the last line).
    pub(crate) fn line_at(&self, at: usize) -> usize {
        self.lines.partition_point(|line| line.next <= at).min(self.lines.len().saturating_sub(1))
    }

    /// True when the file ends inside a line.
    pub(crate) fn cut_at_end(&self) -> bool {
        self.lines.last().is_some_and(|line| line.end == line.next)
    }

    /// True for whole lines, white space at their ends aside.
    pub(crate) fn are_lines(&self, range: &Range<usize>) -> bool {
        let edge = |at: usize| {
            let line = self.lines.get(self.line_at(at));
            line.is_none_or(|line| {
                let (before, after) = (self.bytes.get(line.start..at), self.bytes.get(at..line.end));
                [before, after].into_iter().any(|side| side.unwrap_or_default().trim_ascii().is_empty())
            })
        };
        edge(range.start) && edge(range.end)
    }

    /// The line end that new text takes at a place: of the first line that ends inside it, else of its own line, else
    /// of the line before, else the usual one of the file.
    pub(crate) fn line_end_at(&self, range: &Range<usize>) -> LineEnd {
        if self.lines.is_empty() {
            return self.line_end;
        }
        let line = self.line_at(range.start);
        [Some(line), line.checked_sub(1)]
            .into_iter()
            .flatten()
            .find_map(|line| self.line_end_of(line))
            .unwrap_or(self.line_end)
    }

    fn line_end_of(&self, line: usize) -> Option<LineEnd> {
        let Line { end, next, .. } = self.lines[line];
        match &self.bytes[end..next] {
            b"\n" => Some(LineEnd::Lf),
            b"\r\n" => Some(LineEnd::CrLf),
            b"\r" => Some(LineEnd::Cr),
            _ => None,
        }
    }

    /// Refuses text that the file's encoding cannot hold.
    ///
    /// # Errors
    /// `edit.encoding`, with the encoding that the bytes look like.
    pub(crate) fn takes(&self, text: &str) -> Result<(), Refusal> {
        if text.is_ascii() {
            return Ok(());
        }
        match encoding(self.bytes) {
            None => Ok(()),
            Some(name) => Err(Refusal::new(
                Code::Encoding,
                format!(
                    "the file is not UTF-8 (it looks like {name}), so text that is not ASCII cannot be put in; write \
                     ASCII, or convert the file first"
                ),
            )),
        }
    }
}

/// Refuses what is no text in an encoding that extends ASCII.
fn refuse_wide(bytes: &[u8]) -> Result<(), Refusal> {
    let wide = |name: &str| {
        Err(Refusal::new(
            Code::Encoding,
            format!("the file is {name}, which `edit` does not change; convert it to UTF-8 first"),
        ))
    };
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => return wide("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return wide("UTF-16"),
        _ => {}
    }
    let Some(first) = memchr(0, bytes) else { return Ok(()) };
    let sample = &bytes[..bytes.len().min(4096)];
    let nul = |parity: usize| sample.iter().skip(parity).step_by(2).filter(|byte| **byte == 0).count() * 3;
    let half = sample.len() / 2;
    if half > 1 && (nul(0) > half * 2 && nul(1) == 0 || nul(1) > half * 2 && nul(0) == 0) {
        return wide("UTF-16 without a byte order mark");
    }
    Err(Refusal::new(Code::Binary, format!("the file holds a NUL at byte {first}: it is not text and was not changed")))
}

/// What bytes that are not UTF-8 look like; absent when they are UTF-8.
pub(crate) fn encoding(bytes: &[u8]) -> Option<&'static str> {
    std::str::from_utf8(bytes).err()?;
    let (mut pairs, mut lone, mut controls) = (0_usize, 0_usize, 0_usize);
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte < 0x80 {
            at += 1;
            continue;
        }
        controls += usize::from(byte < 0xa0);
        if bytes.get(at + 1).is_some_and(|next| *next >= 0x80) {
            pairs += 1;
            at += 2;
        } else {
            lone += 1;
            at += 1;
        }
    }
    if memmem::find(bytes, b"\x1b$").is_some() {
        return Some("ISO-2022-JP");
    }
    if is_shift_jis(bytes) {
        return Some("Shift_JIS");
    }
    Some(match () {
        () if pairs > 4 * lone.max(1) => "a multi-byte encoding such as Shift_JIS, EUC or GB18030",
        () if controls > 0 => "windows-1252",
        () => "ISO-8859-1",
    })
}

/// True when every byte fits Shift_JIS (JIS X 0208, appendix 1) and a good part of it is kana or punctuation: its second
/// bytes may be ASCII, so that pairs do not show by themselves.
fn is_shift_jis(bytes: &[u8]) -> bool {
    let (mut pairs, mut kana, mut at) = (0_usize, 0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            0x00..=0x7f | 0xa1..=0xdf => at += 1,
            0x81..=0x9f | 0xe0..=0xfc if matches!(bytes.get(at + 1), Some(0x40..=0x7e | 0x80..=0xfc)) => {
                pairs += 1;
                kana += usize::from(*byte <= 0x83);
                at += 2;
            }
            _ => return false,
        }
    }
    pairs > 1 && kana * 4 >= pairs
}

/// Text with every line end as a line feed.
pub(crate) fn line_feeds(text: &str) -> String {
    if memchr(b'\r', text.as_bytes()).is_none() { text.to_owned() } else { text.replace("\r\n", "\n") }
}

/// Text split at line feeds: one more piece than there are line feeds.
pub(crate) fn pieces(text: &str) -> Vec<String> {
    line_feeds(text).split('\n').map(str::to_owned).collect()
}

/// The white space that a line starts with, and the rest.
pub(crate) fn indentation(line: &str) -> (&str, &str) {
    line.split_at(line.len() - line.trim_start_matches([' ', '\t']).len())
}

/// True when nothing but white space is there.
pub(crate) fn blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// Refuses content that would not be text any more.
///
/// # Errors
/// `edit.binary`.
pub(crate) fn refuse_nul(after: &[u8]) -> Result<(), Refusal> {
    let Some(at) = memchr(0, after) else { return Ok(()) };
    let line = 1 + memchr_iter(b'\n', &after[..at]).count();
    let text = format!("the new text puts a NUL in line {line}, and the file would not be text any more; leave it out");
    Err(Refusal::new(Code::Binary, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_kind() {
        let source = Source::new(b"\xef\xbb\xbfa\r\nb\r\n\nc").unwrap();
        let contents: Vec<&[u8]> = (0..source.lines.len()).map(|line| source.content(line)).collect();
        assert_eq!(contents, [&b"a"[..], b"b", b"", b"c"]);
        assert_eq!(source.line_end, LineEnd::CrLf);
        assert!(source.cut_at_end());
        assert_eq!(source.line_at(3), 0);
        assert_eq!(source.line_at(6), 1);
        assert_eq!(source.line_end_at(&(9..9)), LineEnd::Lf);
        assert_eq!(Source::new(b"a\rb\r").unwrap().lines.len(), 2);
        assert!(Source::new(b"").unwrap().lines.is_empty());
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let code = |bytes: &[u8]| Source::new(bytes).err().map(|refusal| refusal.code);
        assert_eq!(code(b"\xff\xfea\0"), Some("edit.encoding"));
        assert_eq!(code(b"a\0b\0c\0\n\0"), Some("edit.encoding"));
        assert_eq!(code(b"\x7fELF\x01\0\0\0\0\x02\x03\x04"), Some("edit.binary"));
        assert_eq!(code(b"plain"), None);
    }

    #[test]
    fn encodings_are_told_apart() {
        assert_eq!(encoding("d\u{e9}".as_bytes()), None);
        assert_eq!(encoding(b"d\xe9j\xe0"), Some("ISO-8859-1"));
        assert_eq!(encoding(b"\x93quoted\x94"), Some("windows-1252"));
        assert_eq!(encoding(b"\x83e\x83X\x83g\x82\xcc\x83t\x83@\x83C\x83\x8b\n"), Some("Shift_JIS"));
        assert!(encoding(b"\xb4\xfa\xc2\xeb\xd6\xd0\xce\xc4\xd7\xa2\xca\xcd").unwrap().contains("GB18030"));
    }
}
