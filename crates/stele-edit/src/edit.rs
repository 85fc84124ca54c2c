//! Structured edits.

use std::ops::Range;

use memchr::memmem;

use crate::Refusal;

/// One replacement in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// The text to find.
    pub old: String,
    /// What takes its place.
    pub new: String,
    /// Replace every place instead of the only one.
    pub all: bool,
    /// Of several places, the one nearest to this line (counted from 1).
    pub near_line: Option<u64>,
}

/// A file after its edits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The whole file.
    pub bytes: Vec<u8>,
    /// What the model should know about how the places were found.
    pub notes: Vec<String>,
}

/// Applies all edits or none; each is found in the original.
///
/// # Errors
/// An edit has no place or several, two overlap, or one changes nothing.
pub fn apply(original: &[u8], edits: &[Edit]) -> Result<Applied, Refusal> {
    let crlf = memmem::find(original, b"\r\n").is_some();
    let mut notes = Vec::new();
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        let which = if edits.len() > 1 { format!("edit {} of {}: ", index + 1, edits.len()) } else { String::new() };
        let refuse = |code, text: &str| Err(Refusal::new(code, format!("{which}{text}")));
        if edit.old.is_empty() {
            if original.is_empty() {
                changes.push((0..0, edit.new.clone()));
                continue;
            }
            return refuse("edit.exists", "the old text is empty, but the file is not; give the text to replace");
        }
        if edit.old == edit.new {
            return refuse("edit.no_change", "old and new text are the same; nothing was changed");
        }
        let mut old = edit.old.clone();
        let mut places = occurrences(original, old.as_bytes());
        if places.is_empty() && crlf {
            old = old.replace("\r\n", "\n").replace('\n', "\r\n");
            places = occurrences(original, old.as_bytes());
            if !places.is_empty() {
                notes.push(format!("{which}matched with the file's line ends (CRLF)"));
            }
        }
        if places.is_empty() {
            return refuse("edit.not_found", "the old text is not in the file; read the file again and copy the text");
        }
        if places.len() > 1 && !edit.all {
            let lines: Vec<String> = places.iter().map(|at| line_of(original, *at).to_string()).collect();
            let Some(near) = nearest(original, &places, edit.near_line) else {
                return refuse(
                    "edit.ambiguous",
                    &format!(
                        "the old text is at {} places (lines {}); add lines around it until it is unique",
                        lines.len(),
                        lines.join(", ")
                    ),
                );
            };
            places = vec![near];
        }
        let new = if crlf { edit.new.replace("\r\n", "\n").replace('\n', "\r\n") } else { edit.new.clone() };
        changes.extend(places.into_iter().map(|at| (at..at + old.len(), new.clone())));
    }
    changes.sort_by_key(|(range, _)| (range.start, range.end));
    if changes.windows(2).any(|pair| pair[1].0.start < pair[0].0.end) {
        return Err(Refusal::new("edit.overlap", "two edits touch the same text; join them into one"));
    }
    let mut bytes = Vec::with_capacity(original.len());
    let mut at = 0;
    for (range, new) in &changes {
        bytes.extend_from_slice(&original[at..range.start]);
        bytes.extend_from_slice(new.as_bytes());
        at = range.end;
    }
    bytes.extend_from_slice(&original[at..]);
    if bytes == original {
        return Err(Refusal::new("edit.no_change", "the edits change nothing"));
    }
    Ok(Applied { bytes, notes })
}

fn occurrences(text: &[u8], old: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = memmem::find(&text[at..], old) {
        found.push(at + next);
        at += next + 1;
    }
    found
}

fn line_of(text: &[u8], at: usize) -> u64 {
    memchr::memchr_iter(b'\n', &text[..at]).count() as u64 + 1
}

fn nearest(text: &[u8], places: &[usize], near: Option<u64>) -> Option<usize> {
    let near = near?;
    let mut by_distance: Vec<(u64, usize)> = places
        .iter()
        .map(|at| (line_of(text, *at).abs_diff(near), *at))
        .filter(|(distance, _)| *distance <= 20)
        .collect();
    by_distance.sort_unstable();
    match by_distance.as_slice() {
        [(_, at)] => Some(*at),
        [(first, at), (second, _), ..] if first < second => Some(*at),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str, new: &str) -> Edit {
        Edit { old: old.into(), new: new.into(), ..Edit::default() }
    }

    #[test]
    fn line_ends_of_the_file_are_kept() {
        let applied = apply(b"alpha\r\nbeta\r\ngamma\r\n", &[edit("alpha\nbeta", "alpha\nBETA\nbeta2")]).unwrap();
        assert_eq!(applied.bytes, b"alpha\r\nBETA\r\nbeta2\r\ngamma\r\n");
    }

    #[test]
    fn several_places_are_refused() {
        assert_eq!(apply(b"0, 0, 0", &[edit("0, 0", "1")]).unwrap_err().code, "edit.ambiguous");
        assert_eq!(apply(b"a", &[edit("b", "c")]).unwrap_err().code, "edit.not_found");
    }
}
