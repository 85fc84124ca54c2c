//! `read`: a window of a text file, in memory bounded by the window.

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;
use stele_core::{
    CallCard, CardKind, Effects, FileAction, FileMeta, Future, Hash, Hasher, Invocation, ReadMeta, ResultCard,
    ResultMeta, Subject, Tool, ToolError, ToolOutput, ToolSpec,
};

use crate::declare::{Declared, blocking, finish};
use crate::error::{Error, Result};
use crate::path::{Found, Place, Roots};
use crate::{Limits, Options, card, file};

/// Bytes of one line that are shown.
const LINE: usize = 2_000;
/// Bytes at the beginning of a file that tell text from other content.
const PROBE: usize = 8 * 1024;
/// Entries of a folder that are listed.
const ENTRIES: usize = 500;
/// Larger files, in bytes, are shown but not hashed: nothing here can change them.
const HASHED: u64 = file::LARGEST;

/// Arguments of `read`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    path: String,
    /// First line, from 1.
    offset: Option<u64>,
    /// Lines.
    limit: Option<u64>,
}

/// The tool.
pub(crate) struct Read {
    declared: Declared<Arguments>,
    roots: Roots,
    limits: Limits,
}

impl Read {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            declared: Declared::new("read", include_str!("read.md"), ""),
            roots: options.roots(),
            limits: options.limits,
        }
    }
}

impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &self.declared.spec
    }

    fn effects(&self) -> Effects {
        Effects::None
    }

    fn parallel(&self, _: &str) -> bool {
        true
    }

    fn subjects(&self, arguments: &str) -> Result<Vec<Subject>, ToolError> {
        Ok(vec![Subject::Read(self.declared.parse(arguments)?.path)])
    }

    fn call_card(&self, arguments: &str, cwd: &Path) -> CallCard {
        let Ok(arguments) = self.declared.parse(arguments) else { return self.declared.plain_card(CardKind::Read) };
        let first = arguments.offset.unwrap_or(1).max(1);
        let window = match (arguments.offset, arguments.limit) {
            (_, Some(limit)) => format!(" ({first} - {})", first.saturating_add(limit.max(1)) - 1),
            (Some(_), None) => format!(" ({first} - )"),
            (None, None) => String::new(),
        };
        CallCard::Generic {
            title: format!("Read {}{window}", card::title(&card::relative(&arguments.path, cwd))),
            kind: CardKind::Read,
            locations: vec![card::location(&arguments.path, cwd, first)],
        }
    }

    fn result_card(&self, _: &str, content: &str, meta: &ResultMeta) -> ResultCard {
        match (&meta.read, meta.files.first()) {
            (Some(read), Some(file)) => {
                ResultCard::Read { path: file.path.clone(), offset: read.offset, lines: read.lines, total: read.total }
            }
            _ => ResultCard::Generic { content: content.to_owned() },
        }
    }

    fn run<'a>(&'a self, invocation: Invocation<'a>) -> Future<'a, ToolOutput> {
        Box::pin(async move {
            let result = async {
                let arguments = self.declared.parse(invocation.arguments)?;
                let place = self.roots.place(invocation.cwd, &invocation.session.id);
                let limits = self.limits;
                let stop = Arc::new(AtomicBool::new(false));
                let stopped = Arc::clone(&stop);
                tokio::select! {
                    biased;
                    () = invocation.cancelled => {
                        stop.store(true, Ordering::Relaxed);
                        Err(Error::Cancelled)
                    }
                    output = blocking(move || read(&place, &arguments, limits, &stopped)) => output,
                }
            };
            finish(result.await, None)
        })
    }
}

fn read(place: &Place, arguments: &Arguments, limits: Limits, stop: &AtomicBool) -> Result<ToolOutput> {
    let found = place.find(&arguments.path)?;
    if found.path.is_dir() {
        return list(&found, &arguments.path);
    }
    let (mut file, metadata) = file::open(&found.path, &arguments.path)?;
    let mut window = Window::new(arguments, limits);
    let mut hasher = (metadata.len() <= HASHED).then(Hasher::new);
    let mut buffer = vec![0; 64 * 1024];
    let mut filled = 0;
    let mut probed = false;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let count = file.read(&mut buffer[filled..]).map_err(Error::io("read", &arguments.path))?;
        filled += count;
        if !probed && (count == 0 || filled >= PROBE) {
            if let Some((kind, hint)) = binary(&buffer[..filled.min(PROBE)]) {
                return Err(Error::Binary { path: arguments.path.clone(), kind, size: metadata.len(), hint });
            }
            probed = true;
        }
        if probed {
            if let Some(hasher) = &mut hasher {
                hasher.update(&buffer[..filled]);
            }
            window.push(&buffer[..filled]);
            filled = 0;
        }
        if count == 0 {
            break;
        }
    }
    window.finish();
    if window.shown == 0 && window.total > 0 {
        return Err(Error::PastEnd { path: arguments.path.clone(), total: window.total, offset: window.first });
    }
    let meta = ResultMeta {
        read: Some(ReadMeta { offset: window.first, lines: window.shown, total: window.total }),
        files: if place.is_spill(&arguments.path) { Vec::new() } else { vec![seen(&found, hasher.as_ref())] },
        ..ResultMeta::default()
    };
    Ok(ToolOutput { content: window.text(&found), meta, ..ToolOutput::default() })
}

/// The file as it was shown.
fn seen(found: &Found, hasher: Option<&Hasher>) -> FileMeta {
    FileMeta {
        path: found.path.display().to_string(),
        action: FileAction::Read,
        hash: hasher.map(Hash::from),
        added: 0,
        removed: 0,
        diff: None,
    }
}

/// The lines that are shown, and the count of all.
struct Window {
    first: u64,
    last: u64,
    bytes: usize,
    text: String,
    shown: u64,
    total: u64,
    /// The bytes limit was reached.
    full: bool,
    /// The current line as far as it is shown.
    line: Vec<u8>,
    /// Its length.
    length: u64,
    cut: u64,
    invalid: bool,
    carriage: u64,
}

impl Window {
    fn new(arguments: &Arguments, limits: Limits) -> Self {
        let first = arguments.offset.unwrap_or(1).max(1);
        let lines = arguments.limit.map_or(limits.read_lines, |limit| limit.clamp(1, limits.read_lines));
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
        }
    }

    /// The current line is number `total + 1`.
    fn wanted(&self) -> bool {
        !self.full && (self.first..=self.last).contains(&(self.total + 1))
    }

    fn push(&mut self, mut bytes: &[u8]) {
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
                self.end_line();
            }
            bytes = &bytes[part.len() + usize::from(end.is_some())..];
        }
    }

    fn finish(&mut self) {
        if self.length > 0 {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        if self.wanted() {
            self.show();
        }
        self.total += 1;
        self.line.clear();
        self.length = 0;
    }

    fn show(&mut self) {
        let whole = self.line.len() as u64 == self.length;
        let mut line = self.line.as_slice();
        if whole && let Some(rest) = line.strip_suffix(b"\r") {
            line = rest;
            self.length -= 1;
            self.carriage += 1;
        }
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
    fn text(&self, found: &Found) -> String {
        let mut text = self.text.clone();
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
        if self.invalid {
            notes.push("not UTF-8: bytes that are no text are shown as \u{fffd}".to_owned());
        }
        if let Some(name) = &found.instead {
            notes.push(format!("opened {name}, the only name that looks like the one asked for"));
        }
        if !notes.is_empty() {
            let _ = writeln!(text, "[{}]", notes.join("; "));
        }
        text
    }
}

fn list(found: &Found, asked: &str) -> Result<ToolOutput> {
    let mut names = Vec::new();
    for entry in fs::read_dir(&found.path).map_err(Error::io("list", asked))?.flatten() {
        let folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        names.push(format!("{}{}", entry.file_name().to_string_lossy(), if folder { "/" } else { "" }));
    }
    names.sort();
    let total = names.len();
    names.truncate(ENTRIES);
    let more = if total > ENTRIES { format!("\n[{} more; use glob]", total - ENTRIES) } else { String::new() };
    let entries = if total == 1 { "entry" } else { "entries" };
    let colon = if total == 0 { "" } else { ":\n" };
    Ok(ToolOutput::text(format!("{asked} is a folder with {total} {entries}{colon}{}{more}", names.join("\n"))))
}

/// What content that is not text seems to be, from its first bytes, with a hint.
fn binary(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    const KINDS: &[(&[u8], &str)] = &[
        (b"\x89PNG\r\n\x1a\n", "PNG image"),
        (b"\xff\xd8\xff", "JPEG image"),
        (b"GIF8", "GIF image"),
        (b"%PDF-", "PDF document"),
        (b"PK\x03\x04", "ZIP archive"),
        (b"\x1f\x8b", "gzip data"),
        (b"\x28\xb5\x2f\xfd", "zstd data"),
        (b"\x7fELF", "ELF program"),
        (b"\0asm", "WebAssembly module"),
        (b"SQLite format 3\0", "SQLite database"),
    ];
    if let Some((_, kind)) = KINDS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Some((kind, ""));
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some(("WebP image", ""));
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Some(("UTF-16 text", "; read it with bash: iconv -f UTF-16 -t UTF-8"));
    }
    bytes.contains(&0).then_some(("binary data", ""))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window(bytes: &[u8], chunk: usize, offset: u64, limit: u64) -> Window {
        let arguments = Arguments { path: String::new(), offset: Some(offset), limit: Some(limit) };
        let mut window = Window::new(&arguments, Limits::default());
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
