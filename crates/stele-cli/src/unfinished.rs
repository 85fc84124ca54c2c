//! Writes in place that were cut off: what a person is told of them.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::render::inert::one_line;
use crate::render::style::Style;
use crate::render::word::shell_word;

/// The folder of what is being written in place.
pub fn folder(data: &Path) -> PathBuf {
    data.join("unfinished")
}

/// A line for each write that was cut off, with what to do.
pub fn lines(data: &Path) -> Vec<String> {
    let line = |it: &stele_tools::Unfinished| {
        let (path, content) = (it.path.display().to_string(), it.content.display().to_string());
        one_line(&format!(
            "writing {path} was cut off, and it holds neither what it did nor what it was to; \
             to finish: cp {content} {path}; to leave it: rm {note}",
            content = shell_word(&content),
            path = shell_word(&path),
            note = shell_word(&format!("{content}.note")),
        ))
    };
    stele_tools::unfinished(&folder(data)).iter().map(line).collect()
}

/// Says so on standard error.
pub fn tell(data: &Path, style: Style) {
    for line in lines(data) {
        // Standard error that cannot be written has nobody to be told.
        let _ = writeln!(std::io::stderr(), "{} {line}", style.yellow("! file.unfinished:"));
    }
}
