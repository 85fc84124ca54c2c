//! Unified diffs over bytes.

use std::fmt::Write as _;
use std::ops::Range;

use similar::DiffOp;

use crate::compare;

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

/// What stands under a name, for [`git_diff`].
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    /// The path, relative to the folder that the diff is for.
    pub path: &'a str,
    /// Type and mode, as `st_mode`; of the bits git knows only whether a file can be executed.
    pub mode: u32,
    /// The content; where it points to, for a symbolic link.
    pub bytes: &'a [u8],
}

impl Version<'_> {
    /// The mode as git writes it.
    fn git_mode(&self) -> &'static str {
        match (self.mode & 0o170_000, self.mode & 0o100) {
            (0o120_000, _) => "120000",
            (_, 0) => "100644",
            _ => "100755",
        }
    }
}

/// The unified diff that turns `before` into `after`; empty when they are equal.
#[must_use]
pub fn unified_diff(path: &str, before: &[u8], after: &[u8]) -> Diff {
    if before == after {
        return Diff::default();
    }
    difference(format!("--- a/{path}\n+++ b/{path}\n"), before, after)
}

/// The difference of one file as `git apply` takes it: what is created, deleted, moved or gets another mode included.
/// Empty when nothing is other than before.
#[must_use]
pub fn git_diff(before: Option<Version<'_>>, after: Option<Version<'_>>) -> Diff {
    let (Some(old), Some(new)) = (before.or(after), after.or(before)) else { return Diff::default() };
    let mut header = format!("diff --git {} {}\n", name("a/", old.path), name("b/", new.path));
    let fixed = header.len();
    let mut line = |text: &str, value: &str| header.extend([text, " ", value, "\n"]);
    match (before, after) {
        (None, _) => line("new file mode", new.git_mode()),
        (_, None) => line("deleted file mode", old.git_mode()),
        _ => {
            if old.git_mode() != new.git_mode() {
                line("old mode", old.git_mode());
                line("new mode", new.git_mode());
            }
            if old.path != new.path {
                line("rename from", &name("", old.path));
                line("rename to", &name("", new.path));
            }
        }
    }
    let was = before.map_or(&b""[..], |version| version.bytes);
    let is = after.map_or(&b""[..], |version| version.bytes);
    if was == is {
        let same = header.len() == fixed;
        return if same { Diff::default() } else { Diff { text: header, ..Diff::default() } };
    }
    let side = |version: Option<Version<'_>>, prefix| match version {
        None => "/dev/null".to_owned(),
        // What follows a name with a space in it could be taken for a part of it.
        Some(Version { path, .. }) => name(prefix, path) + if path.contains(' ') { "\t" } else { "" },
    };
    header.push_str(&format!("--- {}\n+++ {}\n", side(before, "a/"), side(after, "b/")));
    difference(header, was, is)
}

/// A name as git writes it: quoted, with bytes in octal, where it holds what would break a line or is not seen.
fn name(prefix: &str, path: &str) -> String {
    let plain = |it: char| it.is_alphanumeric() || it.is_ascii() && !it.is_ascii_control() && !matches!(it, '"' | '\\');
    if path.chars().all(plain) {
        return format!("{prefix}{path}");
    }
    let mut quoted = format!("\"{prefix}");
    for character in path.chars() {
        match character {
            _ if plain(character) => quoted.push(character),
            '"' | '\\' => quoted.extend(['\\', character]),
            _ => {
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(quoted, "\\{byte:03o}");
                }
            }
        }
    }
    quoted + "\""
}

/// The hunks between two contents, after a header.
fn difference(header: String, before: &[u8], after: &[u8]) -> Diff {
    let old: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
    let new: Vec<&[u8]> = after.split_inclusive(|byte| *byte == b'\n').collect();
    let mut bytes = header.into_bytes();
    let (mut added, mut removed) = (0, 0);
    for group in similar::group_diff_ops(compare::steps(&old, &new), CONTEXT) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn version<'a>(path: &'a str, mode: u32, bytes: &'a str) -> Option<Version<'a>> {
        Some(Version { path, mode, bytes: bytes.as_bytes() })
    }

    #[test]
    fn headers_of_git() {
        for (before, after, text) in [
            (None, version("e", 0o100_664, ""), "diff --git a/e b/e\nnew file mode 100644\n"),
            (
                version("a b", 0o100_700, "x\n"),
                None,
                "diff --git a/a b b/a b\ndeleted file mode 100755\n--- a/a b\t\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
            ),
            (
                version("x", 0o100_644, ""),
                version("y\"\u{202e}\u{e9}", 0o100_755, ""),
                "diff --git a/x \"b/y\\\"\\342\\200\\256\u{e9}\"\nold mode 100644\nnew mode 100755\nrename from x\n\
                 rename to \"y\\\"\\342\\200\\256\u{e9}\"\n",
            ),
            (version("x", 0o100_600, "a"), version("x", 0o100_644, "a"), ""),
            (None, None, ""),
        ] {
            assert_eq!(git_diff(before, after).text, text);
        }
    }
}
