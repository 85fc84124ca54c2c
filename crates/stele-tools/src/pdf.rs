//! PDF as text, page by page.
//!
//! A PDF is a program of sorts, and its reader is large: it works in a process of its own, with bounded memory and
//! time, so that nothing in a file can take the agent down or hold it up. What was read until then is shown.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lopdf::content::Content;
use lopdf::{Encoding, LoadOptions, Object};
use rustix::process::{Resource, Rlimit, setrlimit};
use stele_core::Hash;

use crate::document::{self, Document};
use crate::error::{Error, Result};
use crate::file;

/// The first argument of [`crate::supervise`]: read a PDF from standard input.
pub(crate) const READ: &str = "pdf";
/// Largest PDF, in bytes.
const LARGEST: u64 = 64 * 1024 * 1024;
/// Pages that are read.
const PAGES: usize = 2_000;
/// Bytes of text that are kept.
const TEXT: usize = 8 * 1024 * 1024;
/// Bytes that one compressed part may become.
const INFLATED: usize = 64 * 1024 * 1024;
/// Bytes of memory that the reading process may take.
const MEMORY: u64 = 2 * 1024 * 1024 * 1024;
/// How long it may work.
const TIME: Duration = Duration::from_secs(20);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// The text of a PDF.
///
/// # Errors
/// It is too large, encrypted, or no PDF.
pub(crate) fn text(path: &Path, asked: &str, reader: Option<&[OsString]>, stop: &AtomicBool) -> Result<Document> {
    let refused = |size, hint| Error::Binary { path: asked.to_owned(), kind: document::PDF, size, hint };
    let (_, metadata) = file::open(path, asked)?;
    if metadata.len() > LARGEST {
        return Err(refused(metadata.len(), "; it is too large to be read here"));
    }
    let bytes = file::read(path, asked)?;
    let out = match reader {
        Some(reader) => elsewhere(&bytes, reader, stop).map_err(Error::io("read", asked))?,
        None => {
            let mut out = Vec::new();
            // The reader is not ours: what fails inside it is a file that cannot be read.
            let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| extract(&bytes, &mut out)));
            Output { bytes: out, whole: matches!(read, Ok(Ok(()))) }
        }
    };
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Cancelled);
    }
    let shown = String::from_utf8_lossy(&out.bytes);
    let Some((pages, text)) = shown.split_once('\n').and_then(|(head, text)| Some((head.parse::<usize>().ok()?, text)))
    else {
        let encrypted = shown.starts_with(ENCRYPTED);
        let hint = if encrypted { "; it is encrypted" } else { "; it cannot be read as one" };
        return Err(refused(bytes.len() as u64, hint));
    };
    let mut note = format!("a PDF of {pages} {}, shown as text", if pages == 1 { "page" } else { "pages" });
    let empty = text.lines().all(|line| line.is_empty() || line.starts_with(PAGE));
    if empty {
        note.push_str("; there is no text in it: its pages may be pictures");
    }
    if !out.whole {
        let _ = write!(note, "; only what could be read of it within {} s", TIME.as_secs());
    }
    Ok(Document { text: text.to_owned(), note, hash: Hash::of(&bytes) })
}

/// What stands before a page's text.
const PAGE: &str = "## page ";
/// What is said of a PDF that needs a password.
const ENCRYPTED: &str = "encrypted";

/// What the reader wrote.
struct Output {
    bytes: Vec<u8>,
    /// False when it did not come to its end.
    whole: bool,
}

/// Reads in a process of its own.
fn elsewhere(bytes: &[u8], reader: &[OsString], stop: &AtomicBool) -> std::io::Result<Output> {
    let (mut input, mut output) = (tempfile::tempfile()?, tempfile::tempfile()?);
    input.write_all(bytes)?;
    input.rewind()?;
    let [program, leading @ ..] = reader else { return Err(std::io::ErrorKind::NotFound.into()) };
    let mut child = Command::new(program)
        .args(leading)
        .arg(READ)
        .stdin(input)
        .stdout(output.try_clone()?)
        .stderr(Stdio::null())
        .spawn()?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if stop.load(Ordering::Relaxed) || begun.elapsed() > TIME {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(LOOK);
    };
    let mut bytes = Vec::new();
    output.rewind()?;
    output.take(2 * TEXT as u64).read_to_end(&mut bytes)?;
    Ok(Output { bytes, whole: status.is_some_and(|status| status.success()) })
}

/// The body of the process: a PDF comes in, its text goes out.
pub(crate) fn serve() -> ExitCode {
    for (resource, most) in [(Resource::As, MEMORY), (Resource::Cpu, TIME.as_secs()), (Resource::Core, 0)] {
        // Where a limit cannot be set the agent's own watch remains.
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
    let mut bytes = Vec::new();
    if std::io::stdin().lock().take(LARGEST + 1).read_to_end(&mut bytes).is_err() {
        return ExitCode::FAILURE;
    }
    match extract(&bytes, &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Writes the number of pages in a line, then each page behind a mark; what cannot be read of a page is left out.
fn extract(bytes: &[u8], out: &mut dyn Write) -> std::io::Result<()> {
    let options = LoadOptions { max_decompressed_size: Some(INFLATED), ..LoadOptions::default() };
    let Ok(document) = lopdf::Document::load_mem_with_options(bytes, options) else {
        return Err(std::io::ErrorKind::InvalidData.into());
    };
    // As a reference or as it stands (ISO 32000-1, 7.5.5); the crate looks for the first only.
    if document.trailer.has(b"Encrypt") {
        out.write_all(ENCRYPTED.as_bytes())?;
        return Err(std::io::ErrorKind::PermissionDenied.into());
    }
    let pages = document.get_pages();
    // Every PDF has a page: this is one whose tree of pages leads nowhere.
    if pages.is_empty() {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    writeln!(out, "{}", pages.len())?;
    let mut written = 0;
    for (number, page) in pages.iter().take(PAGES) {
        let text = page_text(&document, *page).unwrap_or_default();
        let mut page = format!("{PAGE}{number}\n");
        for line in text.lines().map(str::trim_end) {
            page.push_str(line);
            page.push('\n');
        }
        written += page.len();
        if written > TEXT {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        out.write_all(page.as_bytes())?;
    }
    out.flush()?;
    if pages.len() > PAGES { Err(std::io::ErrorKind::FileTooLarge.into()) } else { Ok(()) }
}

/// The text of a page in the order in which it is drawn, a line for each line.
fn page_text(document: &lopdf::Document, page: lopdf::ObjectId) -> lopdf::Result<String> {
    let fonts = document.get_page_fonts(page)?;
    let encodings: BTreeMap<Vec<u8>, Encoding<'_>> = fonts
        .into_iter()
        .filter_map(|(name, font)| Some((name, font.get_font_encoding_with_limit(document, INFLATED).ok()?)))
        .collect();
    let content = Content::decode(&document.get_page_content_with_limit(page, INFLATED)?)?;
    let mut pen = Pen { scale: (1.0, 1.0), size: 1.0, ..Pen::default() };
    let mut encoding = None;
    for operation in &content.operations {
        let operands = operation.operands.as_slice();
        let number = |at: usize| operands.get(at).and_then(|operand| operand.as_float().ok()).unwrap_or(0.0);
        // Text operators, ISO 32000-1, 9.4.
        match operation.operator.as_str() {
            "BT" => pen.place((0.0, 0.0), (1.0, 1.0)),
            "Tf" => {
                encoding = operands.first().and_then(|name| name.as_name().ok()).and_then(|name| encodings.get(name));
                pen.size = number(1);
            }
            "TL" => pen.leading = number(0),
            "Td" => pen.step(number(0), number(1)),
            "TD" => {
                pen.leading = -number(1);
                pen.step(number(0), number(1));
            }
            "Tm" => pen.place((number(4), number(5)), (number(0).hypot(number(1)), number(2).hypot(number(3)))),
            "T*" => pen.step(0.0, -pen.leading),
            "'" | "\"" => {
                pen.step(0.0, -pen.leading);
                pen.show(operands.last(), encoding);
            }
            "Tj" | "TJ" => pen.show(operands.first(), encoding),
            _ => {}
        }
        if pen.text.len() > TEXT {
            break;
        }
    }
    Ok(pen.text)
}

/// Part of an em, in thousandths, that stands for a space between two pieces of a string.
const SPACE: f32 = -200.0;

/// Where text is drawn, as far as that tells lines and words apart.
#[derive(Default)]
struct Pen {
    text: String,
    /// Where the line begins.
    at: (f32, f32),
    scale: (f32, f32),
    size: f32,
    leading: f32,
    /// Characters that were drawn since the pen was moved.
    drawn: usize,
}

impl Pen {
    fn step(&mut self, right: f32, up: f32) {
        self.place((self.at.0 + right * self.scale.0, self.at.1 + up * self.scale.1), self.scale);
    }

    fn place(&mut self, to: (f32, f32), scale: (f32, f32)) {
        let size = (self.size * scale.1).abs();
        let (right, up) = (to.0 - self.at.0, to.1 - self.at.1);
        let open = !self.text.is_empty() && !self.text.ends_with(['\n', ' ']);
        if open && up.abs() > 0.3 * size {
            self.text.push('\n');
        } else if open && (self.drawn > 1 && right.abs() > f32::EPSILON || right > 0.9 * size) {
            // Words may be placed one by one, and so may letters.
            self.text.push(' ');
        }
        (self.at, self.scale, self.drawn) = (to, scale, 0);
    }

    fn show(&mut self, operand: Option<&Object>, encoding: Option<&Encoding<'_>>) {
        let (Some(operand), Some(encoding)) = (operand, encoding) else { return };
        let pieces = match operand {
            Object::Array(pieces) => pieces.as_slice(),
            other => std::slice::from_ref(other),
        };
        for piece in pieces {
            match piece {
                Object::String(bytes, _) => {
                    let text = lopdf::Document::decode_text(encoding, bytes).unwrap_or_default();
                    self.drawn += text.chars().count();
                    self.text.push_str(&text);
                }
                moved => {
                    if moved.as_float().is_ok_and(|moved| moved < SPACE) && !self.text.ends_with([' ', '\n']) {
                        self.text.push(' ');
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A PDF with a page for each text.
    fn written(pages: &[&str]) -> Vec<u8> {
        let kids: Vec<String> = (0..pages.len()).map(|at| format!("{} 0 R", 4 + 2 * at)).collect();
        let mut objects = vec![
            "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
            format!("<</Type/Pages/Kids[{}]/Count {}>>", kids.join(" "), pages.len()),
            "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>".to_owned(),
        ];
        for (at, text) in pages.iter().enumerate() {
            let content =
                format!("BT /F1 12 Tf 72 700 Td ({text}) Tj 0 -14 Td [(sec)10(ond)-300(line)] TJ 70 0 Td (end) Tj ET");
            objects.push(format!(
                "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents {} 0 R>>",
                5 + 2 * at
            ));
            objects.push(format!("<</Length {}>>stream\n{content}\nendstream", content.len()));
        }
        let mut file = String::from("%PDF-1.4\n");
        let mut places = Vec::new();
        for (at, object) in objects.iter().enumerate() {
            places.push(file.len());
            let _ = write!(file, "{} 0 obj\n{object}\nendobj\n", at + 1);
        }
        let start = file.len();
        let _ = write!(file, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
        for place in places {
            let _ = writeln!(file, "{place:010} 00000 n ");
        }
        let _ = write!(file, "trailer<</Size {}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n", objects.len() + 1);
        file.into_bytes()
    }

    #[test]
    fn pages_come_one_after_the_other_behind_their_marks() {
        let mut out = Vec::new();
        extract(&written(&["First page", "And the next"]), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "2\n## page 1\nFirst page\nsecond line end\n## page 2\nAnd the next\nsecond line end\n");
    }

    /// The file with other words in it, of the same length so that all stays in its place.
    fn with(words: &str, instead: &str) -> Vec<u8> {
        assert_eq!(words.len(), instead.len());
        let file = String::from_utf8(written(&["one"])).unwrap();
        assert!(file.contains(words));
        file.replace(words, instead).into_bytes()
    }

    fn refused(bytes: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pdf");
        std::fs::write(&path, bytes).unwrap();
        text(&path, "a.pdf", None, &AtomicBool::new(false)).map(|document| document.note).unwrap_err().to_string()
    }

    #[test]
    fn what_has_no_pages_or_needs_a_password_is_refused() {
        let looped = refused(&with("/Kids[4 0 R]", "/Kids[2 0 R]"));
        assert!(looped.ends_with("; it cannot be read as one"), "{looped}");
        let plain = String::from_utf8(written(&["one"])).unwrap();
        let direct = plain.replace("/Root 1 0 R>>", "/Root 1 0 R/Encrypt<</Filter/Standard/V 1/R 2/P -4>>>>");
        let direct = refused(direct.as_bytes());
        assert!(direct.ends_with("; it is encrypted"), "{direct}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn whatever_the_bytes_it_ends(
            at in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
            cut in any::<prop::sample::Index>(),
            tail in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut bytes = written(&["one", "two"]);
            for (index, byte) in at {
                let index = index.index(bytes.len());
                bytes[index] = byte;
            }
            bytes.truncate(cut.index(bytes.len() * 2) + 1);
            bytes.extend(tail);
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.pdf");
            std::fs::write(&path, &bytes).unwrap();
            if let Ok(document) = text(&path, "a.pdf", None, &AtomicBool::new(false)) {
                prop_assert_eq!(document.hash, Hash::of(&bytes));
            }
        }
    }
}
