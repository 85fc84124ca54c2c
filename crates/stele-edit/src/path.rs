//! Paths in patches, as text: this crate touches no file system.

use crate::refuse::{Code, Refusal};

/// The parts of a path without `.`; absent when it leaves where it starts.
fn parts(path: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts)
}

/// A path without `.` and `..`, as [`inside`] takes it; one that it refuses stays as it is.
pub(crate) fn plain(path: &str) -> String {
    let root = if path.starts_with('/') { "/" } else { "" };
    parts(path).map_or_else(|| path.to_owned(), |parts| format!("{root}{}", parts.join("/")))
}

/// True when two names may be the same file seen from different folders: one ends with all parts of the other.
pub(crate) fn same_file(one: &str, other: &str) -> bool {
    let (Some(one), Some(other)) = (parts(one), parts(other)) else { return one == other };
    !one.is_empty() && !other.is_empty() && (one.ends_with(&other) || other.ends_with(&one))
}

/// A path inside the folder, relative to it.
///
/// # Errors
/// `edit.outside` when it leads elsewhere or nowhere.
pub(crate) fn inside(root: Option<&str>, path: &str) -> Result<String, Refusal> {
    let outside = |why: &str| {
        let text = format!("the path {path:?} {why}; give one inside the folder, relative to it");
        Err(Refusal::new(Code::Outside, text))
    };
    if path.contains(['\0', '\n', '\r']) {
        return outside("holds a control character");
    }
    let drive = path.as_bytes().get(1) == Some(&b':') && path.as_bytes()[0].is_ascii_alphabetic();
    if drive || path.starts_with('\\') {
        return outside("is absolute");
    }
    let Some(parts_of_path) = parts(path) else { return outside("leads out of the folder") };
    let inner = if path.starts_with('/') {
        let Some(root) = root.and_then(parts) else { return outside("is absolute") };
        match parts_of_path.strip_prefix(root.as_slice()) {
            Some(inner) => inner.to_vec(),
            None => return outside("leads out of the folder"),
        }
    } else {
        parts_of_path
    };
    if inner.is_empty() {
        return outside("names no file");
    }
    if matches!(path.rsplit('/').next(), Some("" | "." | "..")) {
        return outside("ends as the name of a folder does");
    }
    Ok(inner.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_file() {
        assert!(same_file("src/a.rs", "/home/me/x/src/a.rs"));
        assert!(same_file("./a.rs", "src/a.rs"));
        assert!(!same_file("src/b.rs", "src/a.rs"));
        assert!(!same_file("ba.rs", "a.rs"));
    }

    #[test]
    fn a_plain_path_is_the_one_that_is_taken() {
        for path in ["./~/x", "d/../x", "~/../x", "a//b/./c"] {
            assert_eq!(plain(path), inside(None, path).unwrap(), "{path}");
        }
        assert_eq!(plain("/w//a/../b"), "/w/b");
        assert_eq!(plain("../a"), "../a");
    }

    #[test]
    fn paths_stay_inside() {
        assert_eq!(inside(None, "./src/../a.rs").unwrap(), "a.rs");
        assert_eq!(inside(Some("/w"), "/w/src//a.rs").unwrap(), "src/a.rs");
        for path in [
            "../a",
            "a/../../b",
            "/etc/passwd",
            "/w2/a",
            "C:\\a",
            "",
            ".",
            "/w",
            "a\0b",
            "a/",
            "a/.",
            "a/b/..",
            "/w/a//",
        ] {
            assert_eq!(inside(Some("/w"), path).unwrap_err().code, "edit.outside", "{path}");
        }
    }
}
