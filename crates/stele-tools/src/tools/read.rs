//! `read`: windows of text files, folders, notebooks, documents, images; several at once.

#[cfg(feature = "documents")]
mod documents;
#[cfg(not(feature = "documents"))]
mod lacking;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;
use stele_core::{
    CallCard, CardKind, Effects, FileMeta, FilePart, Future, Hash, Hasher, Image, ImageInput, Invocation, ReadMeta,
    ResultCard, ResultMeta, Shown, ShownFiles, Subject, Tool, ToolError, ToolOutput, ToolSpec,
};

use crate::declare::{Declared, finish, stoppable};
use crate::document;
use crate::error::{Error, Result};
use crate::path::{self, Found, Place, Roots};
use crate::picture;
use crate::window::Window;
use crate::{Limits, Options, card, file};

/// Bytes at the beginning of a file that tell text from other content.
const PROBE: usize = 8 * 1024;
/// Bytes at the beginning of a file that tell what kind of image or document it is.
const HEAD: usize = 16;
/// Entries of a folder that are listed.
const ENTRIES: usize = 500;
/// Larger files, in bytes, are shown but not hashed: nothing here can change them.
const HASHED: u64 = file::HELD;
/// Files of one call.
const PATHS: usize = 20;
/// Characters of base64 that the images of one result may have.
const IMAGES: usize = 8 * 1024 * 1024;
/// Shorter text, in bytes, is shown again rather than pointed at.
const POINTED: usize = 1024;

/// Arguments of `read`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    path: Option<String>,
    paths: Option<Vec<String>>,
    /// First line, from 1.
    offset: Option<u64>,
    limit: Option<u64>,
}

impl Arguments {
    /// The files, in the order they were asked for; or what is wrong with them.
    fn paths(&self) -> Result<Vec<&str>, String> {
        let mut paths: Vec<&str> = self.path.iter().chain(self.paths.iter().flatten()).map(String::as_str).collect();
        let mut seen = std::collections::BTreeSet::new();
        paths.retain(|path| seen.insert(*path));
        match paths.len() {
            0 => Err("path is missing: name a file".to_owned()),
            _ if seen.contains("") => Err("path is empty: name a file, or `.` for the folder".to_owned()),
            1..=PATHS => Ok(paths),
            many => Err(format!("paths has {many} entries; at most {PATHS}")),
        }
    }
}

/// The tool.
pub(crate) struct Read {
    declared: Declared<Arguments>,
    roots: Roots,
    limits: Limits,
    reader: Option<Vec<OsString>>,
}

impl Read {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            declared: Declared::new("read", include_str!("read.md"), ""),
            roots: options.roots(),
            limits: options.limits,
            reader: options.supervisor.clone(),
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
        let arguments = self.declared.parse(arguments)?;
        let paths = arguments.paths().map_err(|problem| self.declared.wrong(problem))?;
        Ok(paths.into_iter().map(|path| Subject::Read(path.to_owned())).collect())
    }

    fn call_card(&self, arguments: &str, cwd: &Path) -> CallCard {
        let plain = || self.declared.plain_card(CardKind::Read);
        let Ok(arguments) = self.declared.parse(arguments) else { return plain() };
        let Ok(paths) = arguments.paths() else { return plain() };
        let first = arguments.offset.unwrap_or(1).max(1);
        let window = match (arguments.offset, arguments.limit) {
            (_, Some(limit)) => format!(" ({first} - {})", first.saturating_add(limit.max(1)) - 1),
            (Some(_), None) => format!(" ({first} - )"),
            (None, None) => String::new(),
        };
        let names: Vec<String> = paths.iter().map(|path| card::relative(path, cwd)).collect();
        CallCard::Generic {
            title: format!("Read {}{window}", card::title(&names.join(", "))),
            kind: CardKind::Read,
            locations: paths.iter().map(|path| self.roots.location(path, cwd, first)).collect(),
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
                let (limits, images) = (self.limits, invocation.images);
                let (shown, reader) = (Arc::clone(&invocation.shown_files), self.reader.clone());
                arguments.paths().map_err(|problem| self.declared.wrong(problem))?;
                stoppable(invocation.cancelled, move |stop| {
                    Reading { place, limits, shown, images, reader, stop: Arc::clone(stop) }.all(&arguments)
                })
                .await
            };
            finish(result.await, None)
        })
    }
}

/// What all files of a call are read with.
struct Reading {
    place: Place,
    limits: Limits,
    shown: Arc<ShownFiles>,
    images: ImageInput,
    /// The program that reads a document in a process of its own.
    #[cfg_attr(not(feature = "documents"), expect(dead_code))]
    reader: Option<Vec<OsString>>,
    stop: Arc<AtomicBool>,
}

impl Reading {
    fn all(&self, arguments: &Arguments) -> Result<ToolOutput> {
        let paths = arguments.paths().map_err(Error::Value)?;
        if let [path] = paths.as_slice() {
            return self.one(path, arguments, self.limits, true);
        }
        let mut output = ToolOutput::default();
        let mut first_error = None;
        for (index, path) in paths.iter().enumerate() {
            // What one file leaves of its share goes to the next ones.
            let left = self.limits.read_bytes.saturating_sub(output.content.len());
            let limits = Limits { read_bytes: left / (paths.len() - index), ..self.limits };
            let text = match self.one(path, arguments, limits, false) {
                Ok(one) => {
                    output.meta.files.extend(one.meta.files);
                    let size = |images: &[Image]| images.iter().map(|image| image.data.len()).sum::<usize>();
                    if size(&output.images) + size(&one.images) > IMAGES {
                        format!("{}; left out, since the images before fill the result: read it alone", one.content)
                    } else {
                        output.images.extend(one.images);
                        one.content
                    }
                }
                Err(Error::Cancelled) => return Err(Error::Cancelled),
                Err(error) => {
                    let text = format!("[{error}]");
                    first_error.get_or_insert(error);
                    text
                }
            };
            let gap = if index == 0 { "" } else { "\n" };
            let _ = writeln!(output.content, "{gap}==> {path} <==\n{}", text.trim_end_matches('\n'));
        }
        match first_error {
            Some(error) if output.meta.files.is_empty() && !output.content.contains("is a folder with") => Err(error),
            _ => Ok(output),
        }
    }

    fn one(&self, asked: &str, arguments: &Arguments, limits: Limits, alone: bool) -> Result<ToolOutput> {
        let found = self.place.find(asked)?;
        if found.path.is_dir() {
            return list(&found, asked);
        }
        let (head, size) = file::head(&found.path, asked, HEAD)?;
        if let Some(kind) = picture::Kind::of(&head) {
            return self.picture(kind, size, &found, asked);
        }
        let mut window = Window::new(arguments.offset, arguments.limit, limits);
        let mut notes = Vec::new();
        if let Some(name) = &found.instead {
            notes.push(format!("opened {name}, the only name that looks like the one asked for"));
        }
        let document = match document::kind(&found.path) {
            _ if head.starts_with(document::PDF_MAGIC) => Some(self.pdf(size, &found, asked)?),
            Some(kind) => document::text(kind, &found.path, asked)?,
            None => None,
        };
        let hash = match document {
            Some(document) => {
                notes.push(document.note);
                window.push(document.text.as_bytes());
                Some(document.hash)
            }
            None => self.stream(&found, asked, &mut window)?,
        };
        window.finish();
        if window.shown == 0 && window.total > 0 {
            return Err(Error::PastEnd { path: asked.to_owned(), total: window.total, offset: window.first });
        }
        if self.place.is_spill(asked) {
            return Ok(ToolOutput::text(window.text(notes)));
        }
        let mut read =
            ReadMeta { offset: window.first, lines: window.shown, total: window.total, ..ReadMeta::default() };
        let part = FilePart {
            offset: window.first,
            // Of a line that was cut nobody knows what follows.
            lines: if window.cut == 0 { window.shown } else { 0 },
            total: window.total,
        };
        let part = Some(part).filter(|part| part.lines < window.total);
        let file = FileMeta { hash, part, ..file::seen(&found.path) };
        let mut content = window.text(notes);
        if let Some(shown) = self.shown.get(&found.path).filter(|shown| alone && covers(shown, hash, &read))
            && content.len() > POINTED
        {
            read.unchanged = true;
            read.offset = shown.offset;
            read.lines = shown.lines;
            let last = shown.offset + shown.lines.saturating_sub(1);
            let pointer = format!(
                "{asked} has not changed since it was read above (lines {}-{last} of {}): look there. \
                 To be shown it again, read it once more.",
                shown.offset, read.total
            );
            read.saved = (content.len() as u64).saturating_sub(pointer.len() as u64);
            content = pointer;
        }
        let meta = ResultMeta { read: Some(read), files: vec![file], ..ResultMeta::default() };
        Ok(ToolOutput { content, meta, ..ToolOutput::default() })
    }

    /// Streams a text file through the window; its hash, unless it is too large.
    fn stream(&self, found: &Found, asked: &str, window: &mut Window) -> Result<Option<Hash>> {
        let (mut file, metadata) = file::open(&found.path, asked)?;
        let mut hasher = (metadata.len() <= HASHED).then(Hasher::new);
        let mut buffer = vec![0; 64 * 1024];
        let mut filled = 0;
        let mut probed = false;
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            let count = file.read(&mut buffer[filled..]).map_err(Error::io("read", asked))?;
            filled += count;
            if !probed && (count == 0 || filled >= PROBE) {
                if let Some((kind, hint)) = binary(&buffer[..filled.min(PROBE)]) {
                    return Err(Error::Binary { path: asked.to_owned(), kind, size: metadata.len(), hint });
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
                return Ok(hasher.as_ref().map(Hash::from));
            }
        }
    }
}

/// True when the model sees the same lines of the same content, and did not ask for them twice.
fn covers(shown: &Shown, hash: Option<Hash>, read: &ReadMeta) -> bool {
    Some(shown.hash) == hash
        && !shown.pointed
        && shown.offset <= read.offset
        && read.offset + read.lines <= shown.offset + shown.lines
}

fn list(found: &Found, asked: &str) -> Result<ToolOutput> {
    let mut names = Vec::new();
    for entry in fs::read_dir(&found.path).map_err(Error::io("list", asked))?.flatten() {
        let folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name();
        names.push(format!("{}{}", path::one_line(&name.to_string_lossy()), if folder { "/" } else { "" }));
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
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Some(("UTF-16 text", "; read it with bash: iconv -f UTF-16 -t UTF-8"));
    }
    bytes.contains(&0).then_some(("binary data", ""))
}
