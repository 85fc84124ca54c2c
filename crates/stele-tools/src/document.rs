//! Files that are no plain text and can be shown as text: notebooks.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;
use stele_core::Hash;

use crate::error::Result;
use crate::file;

/// Largest notebook, in bytes, that is shown as cells.
const NOTEBOOK: u64 = 64 * 1024 * 1024;
/// What a PDF begins with (ISO 32000-1, 7.5.2).
pub(crate) const PDF_MAGIC: &[u8] = b"%PDF-";
/// What it is called.
pub(crate) const PDF: &str = "PDF document";
/// Bytes of one output of a cell that are shown.
const OUTPUT: usize = 4 * 1024;

/// A kind of document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Jupyter notebook (nbformat 3 and 4, nbformat.readthedocs.io, 2026-11).
    Notebook,
}

/// A document as text.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) text: String,
    /// What the reader has to know about it.
    pub(crate) note: String,
    /// Hash of the file, not of the text.
    pub(crate) hash: Hash,
}

/// The kind of a file, by its name.
pub(crate) fn kind(path: &Path) -> Option<Kind> {
    let extension = path.extension()?.to_str()?;
    extension.eq_ignore_ascii_case("ipynb").then_some(Kind::Notebook)
}

/// The text of a document; `None` when the file is not what its name says.
pub(crate) fn text(kind: Kind, path: &Path, asked: &str) -> Result<Option<Document>> {
    let Kind::Notebook = kind;
    let (_, metadata) = file::open(path, asked)?;
    if metadata.len() > NOTEBOOK {
        return Ok(None);
    }
    let bytes = file::read(path, asked)?;
    Ok(notebook(&bytes).map(|(text, cells)| {
        let note = format!("a notebook of {cells} cells, shown as text; edit changes the JSON behind it");
        Document { text, note, hash: Hash::of(&bytes) }
    }))
}

/// The cells of a notebook, each with its outputs, and their number.
fn notebook(bytes: &[u8]) -> Option<(String, usize)> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let cells = value
        .get("cells")
        .or_else(|| value.get("worksheets").and_then(|sheets| sheets.get(0)).and_then(|sheet| sheet.get("cells")))?
        .as_array()?;
    let mut text = String::new();
    for (index, cell) in cells.iter().enumerate() {
        let kind = cell.get("cell_type").and_then(Value::as_str).unwrap_or("cell");
        let _ = writeln!(text, "## cell {} ({kind})", index + 1);
        line(&mut text, &joined(cell.get("source").or_else(|| cell.get("input"))));
        for output in cell.get("outputs").and_then(Value::as_array).into_iter().flatten() {
            text.push_str("## output\n");
            line(&mut text, &shown(output));
        }
        text.push('\n');
    }
    Some((text, cells.len()))
}

fn line(text: &mut String, more: &str) {
    text.push_str(more);
    if !more.is_empty() && !more.ends_with('\n') {
        text.push('\n');
    }
}

/// Text is stored as one string or as a list of lines.
fn joined(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

fn shown(output: &Value) -> String {
    let data = output.get("data");
    let plain = |name: &str| joined(data.and_then(|data| data.get(name)));
    let text = [joined(output.get("text")), plain("text/plain"), plain("text/markdown"), joined(output.get("evalue"))];
    let text = text.into_iter().find(|text| !text.is_empty());
    let images = data.and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str());
    match text {
        Some(text) => crate::sanitise::cut(&text, OUTPUT),
        None => format!("({})", images.collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cells_are_shown_with_their_outputs() {
        let json = r##"{"cells":[{"cell_type":"markdown","source":["# A\n","b"]},{"cell_type":"code","source":"1/0","outputs":[
            {"output_type":"stream","text":["out\n"]},{"data":{"image/png":"xx"}},{"ename":"E","evalue":"division"},
            {"data":{"text/plain":["7"],"image/png":"xx"}}]}],"nbformat":4}"##;
        let (text, cells) = notebook(json.as_bytes()).unwrap();
        assert_eq!(cells, 2);
        insta::assert_snapshot!(text, @r"
        ## cell 1 (markdown)
        # A
        b

        ## cell 2 (code)
        1/0
        ## output
        out
        ## output
        (image/png)
        ## output
        division
        ## output
        7
        ");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn whatever_the_bytes_it_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[\\[\\]{}\":,a-z]{0,60}") {
            let _ = notebook(&bytes);
            let _ = notebook(format!("{{\"cells\":[{text}]}}").as_bytes());
        }
    }
}
