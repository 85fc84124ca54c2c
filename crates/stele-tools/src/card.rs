//! Pieces of cards: short titles, counts, diffs.

use std::path::Path;

use stele_core::{ResultCard, ResultMeta};

/// Longest title, in characters.
const TITLE: usize = 80;

/// The path as a person in `cwd` would write it.
pub(crate) fn relative(path: &str, cwd: &Path) -> String {
    match Path::new(path).strip_prefix(cwd) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
        Ok(rest) => rest.display().to_string(),
        Err(_) => path.to_owned(),
    }
}

/// A title: one line, not too long.
pub(crate) fn title(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(TITLE).collect();
    if short.len() < text.trim().len() {
        short.push('…');
    }
    short
}

/// The card of a result that changed files: the diffs, or the text where there are none.
pub(crate) fn changes(content: &str, meta: &ResultMeta) -> ResultCard {
    let diffs: Vec<String> =
        meta.files.iter().filter_map(|file| file.diff.as_ref().map(|diff| diff.as_str().to_owned())).collect();
    if diffs.is_empty() { ResultCard::Generic { content: content.to_owned() } } else { ResultCard::Diff { diffs } }
}

/// The card of a search: its counts, or the text where it failed.
pub(crate) fn search(content: &str, meta: &ResultMeta) -> ResultCard {
    match &meta.search {
        Some(search) => {
            ResultCard::Search { matches: search.matches, total: search.total, truncated: search.truncated }
        }
        None => ResultCard::Generic { content: content.to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_short_in_titles() {
        let cwd = Path::new("/w/p");
        assert_eq!(relative("/w/p/src/a.rs", cwd), "src/a.rs");
        assert_eq!(relative("/w/p", cwd), ".");
        assert_eq!(relative("/etc/hosts", cwd), "/etc/hosts");
    }

    #[test]
    fn a_title_is_one_short_line() {
        assert_eq!(title("ls\nrm"), "ls…");
        assert_eq!(title(" ls "), "ls");
        assert_eq!(title(&"é".repeat(90)).chars().count(), TITLE + 1);
    }
}
