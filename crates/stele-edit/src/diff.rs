//! Unified diffs over bytes.

use std::fmt::Write as _;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// The difference between two versions of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// The unified diff as text; bytes that are not UTF-8 are shown as U+FFFD.
    pub text: String,
    /// Lines added.
    pub added: u32,
    /// Lines removed.
    pub removed: u32,
    /// The exact bytes where they are not the text's.
    exact: Option<Vec<u8>>,
}

impl Diff {
    /// The diff byte for byte: applied to the version before it gives the version after.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.exact.as_deref().unwrap_or(self.text.as_bytes())
    }
}

/// The unified diff that turns `before` into `after`; empty when they are equal.
#[must_use]
pub fn unified_diff(path: &str, before: &[u8], after: &[u8]) -> Diff {
    if before == after {
        return Diff::default();
    }
    let old: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
    let new: Vec<&[u8]> = after.split_inclusive(|byte| *byte == b'\n').collect();
    let mut bytes = format!("--- a/{path}\n+++ b/{path}\n").into_bytes();
    let (mut added, mut removed) = (0, 0);
    for group in similar::group_diff_ops(capture_diff_slices(Algorithm::Myers, &old, &new), CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let mut header = String::new();
        let _ = writeln!(
            header,
            "@@ -{} +{} @@",
            span(first.old_range().start..last.old_range().end),
            span(first.new_range().start..last.new_range().end)
        );
        bytes.extend_from_slice(header.as_bytes());
        for op in group {
            if let DiffOp::Equal { old_index, len, .. } = op {
                lines(&mut bytes, b' ', &old[old_index..old_index + len]);
            } else {
                removed += lines(&mut bytes, b'-', &old[op.old_range()]);
                added += lines(&mut bytes, b'+', &new[op.new_range()]);
            }
        }
    }
    match String::from_utf8(bytes) {
        Ok(text) => Diff { text, added, removed, exact: None },
        Err(error) => {
            let bytes = error.into_bytes();
            Diff { text: String::from_utf8_lossy(&bytes).into_owned(), added, removed, exact: Some(bytes) }
        }
    }
}

fn span(range: Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        count => format!("{},{count}", range.start + 1),
    }
}

fn lines(out: &mut Vec<u8>, mark: u8, lines: &[&[u8]]) -> u32 {
    for line in lines {
        out.push(mark);
        out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            out.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
    u32::try_from(lines.len()).unwrap_or(u32::MAX)
}
