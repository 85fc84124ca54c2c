//! A file as one level of the ladder sees it: normalised bytes, with the way back to the file's own.

use std::borrow::Cow;

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::Level;
use crate::text::Source;

/// A stretch of normalised bytes. Copied stretches map byte by byte; folded ones only as a whole.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    view: u32,
    file: u32,
    folded: bool,
}

/// Normalised bytes of a file.
pub(crate) struct View {
    pub bytes: Vec<u8>,
    stretches: Vec<Stretch>,
    file_len: usize,
}

impl View {
    /// Normalises a file for a level that looks at text byte by byte: from `LineEnds` to `Unicode`.
    pub(crate) fn new(source: &Source<'_>, level: Level) -> Self {
        let mut view =
            Self { bytes: Vec::with_capacity(source.bytes.len()), stretches: Vec::new(), file_len: source.bytes.len() };
        view.copy(source.bytes, 0..source.mark);
        for line in &source.lines {
            let content = source.bytes.get(line.start..line.end).unwrap_or_default();
            let end = if level >= Level::Unicode {
                fold(content, &mut |piece| match piece {
                    Piece::Same(range) => view.copy(source.bytes, line.start + range.start..line.start + range.end),
                    Piece::Folded { range, text } => view.folded(line.start + range.start, text.as_bytes()),
                });
                view.trim(line.end)
            } else {
                let kept = if level >= Level::TrailingSpace { trim_end(content) } else { content };
                view.copy(source.bytes, line.start..line.start + kept.len());
                line.start + kept.len()
            };
            match &source.bytes[end..line.next] {
                b"" => {}
                b"\n" => view.copy(source.bytes, end..line.next),
                _ => view.folded(end, if line.next > line.end { b"\n" } else { b"" }),
            }
        }
        view
    }

    fn copy(&mut self, from: &[u8], range: std::ops::Range<usize>) {
        if range.is_empty() {
            return;
        }
        let (view, file) = (offset(self.bytes.len()), offset(range.start));
        let continues =
            self.stretches.last().is_some_and(|last| !last.folded && last.file + (view - last.view) == file);
        if !continues {
            self.stretches.push(Stretch { view, file, folded: false });
        }
        self.bytes.extend_from_slice(&from[range]);
    }

    fn folded(&mut self, file: usize, text: &[u8]) {
        self.stretches.push(Stretch { view: offset(self.bytes.len()), file: offset(file), folded: true });
        self.bytes.extend_from_slice(text);
    }

    /// Takes white space off the end of the line just written; returns where in the file the rest of it ends.
    fn trim(&mut self, line_end: usize) -> usize {
        let kept = trim_end(&self.bytes).len();
        if kept == self.bytes.len() {
            return line_end;
        }
        let mut end = line_end;
        while let Some(last) = self.stretches.last().copied() {
            let view = last.view as usize;
            if view < kept {
                if !last.folded {
                    end = last.file as usize + (kept - view);
                }
                break;
            }
            end = last.file as usize;
            self.stretches.pop();
        }
        self.bytes.truncate(kept);
        end
    }

    /// The byte of the file where a match that starts here starts; absent inside a folded stretch.
    pub(crate) fn start(&self, at: usize) -> Option<usize> {
        let index = self.stretches.partition_point(|stretch| stretch.view as usize <= at).checked_sub(1)?;
        let stretch = self.stretches[index];
        let inside = at - stretch.view as usize;
        match (stretch.folded, inside) {
            (true, 0) => Some(stretch.file as usize),
            (true, _) => None,
            (false, _) => Some(stretch.file as usize + inside),
        }
    }

    /// The byte of the file where a match that ends here ends; absent inside a folded stretch.
    pub(crate) fn end(&self, at: usize) -> Option<usize> {
        let last = at.checked_sub(1)?;
        let index = self.stretches.partition_point(|stretch| stretch.view as usize <= last).checked_sub(1)?;
        let stretch = self.stretches[index];
        if !stretch.folded {
            return Some(stretch.file as usize + (at - stretch.view as usize));
        }
        let next = self.stretches.get(index + 1);
        let (view_end, file_end) =
            next.map_or((self.bytes.len(), self.file_len), |next| (next.view as usize, next.file as usize));
        (view_end == at).then_some(file_end)
    }
}

/// Files are far smaller than 4 GiB: see [`crate::limits::MAX_FILE`].
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

enum Piece<'a> {
    Same(std::ops::Range<usize>),
    Folded { range: std::ops::Range<usize>, text: Cow<'a, str> },
}

/// Splits a line into what stays and what look-alikes are folded: quotes, dashes and spaces to their ASCII form,
/// and composed characters to one form (NFC).
fn fold<'a>(line: &'a [u8], piece: &mut dyn FnMut(Piece<'a>)) {
    let mut at = 0;
    for chunk in line.utf8_chunks() {
        fold_text(chunk.valid(), at, piece);
        at += chunk.valid().len();
        if !chunk.invalid().is_empty() {
            piece(Piece::Same(at..at + chunk.invalid().len()));
            at += chunk.invalid().len();
        }
    }
}

fn fold_text<'a>(text: &'a str, base: usize, piece: &mut dyn FnMut(Piece<'a>)) {
    let (mut same, mut at) = (0, 0);
    while at < text.len() {
        // Plain ASCII stays, but for the last character before something that may join it.
        let ascii = text.as_bytes()[at..].iter().position(|byte| !byte.is_ascii()).unwrap_or(text.len() - at);
        if at + ascii == text.len() {
            break;
        }
        let joins = text[at + ascii..].chars().next().is_some_and(continues);
        at += ascii - usize::from(ascii > 0 && joins);
        let cluster = &text[at..at + cluster_len(&text[at..])];
        let folded = fold_cluster(cluster);
        if folded.as_ref() != cluster {
            if same < at {
                piece(Piece::Same(base + same..base + at));
            }
            piece(Piece::Folded { range: base + at..base + at + cluster.len(), text: folded });
            same = at + cluster.len();
        }
        at += cluster.len();
    }
    if same < text.len() {
        piece(Piece::Same(base + same..base + text.len()));
    }
}

/// True for what composes with the character before it.
fn continues(character: char) -> bool {
    !character.is_ascii()
        && (canonical_combining_class(character) != 0
            || is_nfc_quick(std::iter::once(character)) == IsNormalized::Maybe)
}

/// A run of joining characters longer than this is cut: nobody writes it, and work stays bounded.
const CLUSTER_MAX: usize = 32;

/// Length of the first character of a text with what joins it.
pub(crate) fn cluster_len(text: &str) -> usize {
    let mut characters = text.chars();
    let first = characters.next().map_or(0, char::len_utf8);
    first
        + characters.take(CLUSTER_MAX).take_while(|character| continues(*character)).map(char::len_utf8).sum::<usize>()
}

fn fold_cluster(cluster: &str) -> Cow<'_, str> {
    let mut characters = cluster.chars();
    if let (Some(only), None) = (characters.next(), characters.next()) {
        if let Some(plain) = look_alike(only) {
            return Cow::Borrowed(plain);
        }
        if is_nfc_quick(std::iter::once(only)) == IsNormalized::Yes {
            return Cow::Borrowed(cluster);
        }
    }
    Cow::Owned(cluster.nfc().collect())
}

/// The ASCII form of typographic quotes, dashes and spaces (Unicode 16, general categories Pi, Pf, Pd, Zs).
fn look_alike(character: char) -> Option<&'static str> {
    Some(match character {
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{ff07}' | '\u{02bc}' => "'",
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ff02}' => "\"",
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' => "-",
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => " ",
        _ => return None,
    })
}

/// A line with its look-alikes folded.
pub(crate) fn folded(line: &[u8]) -> Cow<'_, [u8]> {
    if line.is_ascii() {
        return Cow::Borrowed(line);
    }
    let mut bytes = Vec::with_capacity(line.len());
    fold(line, &mut |piece| match piece {
        Piece::Same(range) => bytes.extend_from_slice(&line[range]),
        Piece::Folded { text, .. } => bytes.extend_from_slice(text.as_bytes()),
    });
    Cow::Owned(bytes)
}

/// What a line is compared by at a level that looks at whole lines.
pub(crate) fn key(line: &[u8], level: Level) -> Cow<'_, [u8]> {
    match level {
        Level::Exact | Level::LineEnds => Cow::Borrowed(line),
        Level::TrailingSpace => Cow::Borrowed(trim_end(line)),
        Level::Unicode => match folded(line) {
            Cow::Borrowed(line) => Cow::Borrowed(trim_end(line)),
            Cow::Owned(line) => Cow::Owned(trim_end(&line).to_vec()),
        },
        _ => match folded(line) {
            Cow::Borrowed(line) => Cow::Borrowed(trim(line)),
            Cow::Owned(line) => Cow::Owned(trim(&line).to_vec()),
        },
    }
}

fn trim_end(line: &[u8]) -> &[u8] {
    &line[..line.len() - line.iter().rev().take_while(|byte| is_space(**byte)).count()]
}

fn trim(line: &[u8]) -> &[u8] {
    let line = trim_end(line);
    &line[line.iter().take_while(|byte| is_space(**byte)).count()..]
}

/// Text as a level sees it; the white space at its very end is told apart, since only the file knows whether its
/// line goes on there.
pub(crate) fn needle(pieces: &[String], level: Level) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let mut cut = false;
    for (index, piece) in pieces.iter().enumerate() {
        if index > 0 {
            bytes.push(b'\n');
        }
        let last = index + 1 == pieces.len();
        let line = match level {
            Level::Unicode => folded(piece.as_bytes()),
            _ => Cow::Borrowed(piece.as_bytes()),
        };
        let kept = if level >= Level::TrailingSpace { trim_end(&line) } else { &line };
        cut = last && kept.len() < line.len();
        bytes.extend_from_slice(kept);
    }
    (bytes, cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(file: &[u8], level: Level) -> View {
        View::new(&Source::new(file).unwrap(), level)
    }

    #[test]
    fn line_ends_and_trailing_space_map_back() {
        let file = b"a  \r\nb\t\r\nc ";
        let seen = view(file, Level::TrailingSpace);
        assert_eq!(seen.bytes, b"a\nb\nc");
        assert_eq!((seen.start(0), seen.end(1)), (Some(0), Some(1)));
        assert_eq!((seen.start(1), seen.end(2)), (Some(1), Some(5)));
        assert_eq!((seen.start(4), seen.end(5)), (Some(9), Some(10)));
        assert_eq!(view(file, Level::LineEnds).bytes, b"a  \nb\t\nc ");
    }

    #[test]
    fn look_alikes_and_forms_are_folded() {
        let file = "\u{201c}caf\u{65}\u{301}\u{201d}\u{a0}\u{2014} \u{212b}\u{3000}\n".as_bytes();
        let seen = view(file, Level::Unicode);
        assert_eq!(String::from_utf8_lossy(&seen.bytes), "\"caf\u{e9}\" - \u{c5}\n");
        assert_eq!(seen.start(4), Some(6));
        // The middle of the composed character is no place.
        assert_eq!(seen.start(5), None);
        assert_eq!(seen.end(5), None);
        assert_eq!(seen.end(6), Some(9));
        assert_eq!(key(&file[..file.len() - 1], Level::Unicode), "\"caf\u{e9}\" - \u{c5}".as_bytes());
    }

    #[test]
    fn stray_bytes_stay() {
        let seen = view(b"a\xe9 \xff\xa0\n", Level::Unicode);
        assert_eq!(seen.bytes, b"a\xe9 \xff\xa0\n");
        assert_eq!(seen.end(5), Some(5));
    }
}
