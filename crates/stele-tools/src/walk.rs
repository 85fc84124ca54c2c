//! Walking a tree as git would see it.

use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder, WalkState};

use crate::error::{Error, Result};

/// Visits the regular files beneath a path, on several threads and in no order; `visitor` makes what each
/// thread calls for a file. What `.gitignore` and `.ignore` files exclude is left out, and so is `.git`;
/// other hidden files are not. A path that is itself a file gives that file. Links are not followed.
pub(crate) fn visit<'a, F>(base: &Path, stop: &'a AtomicBool, visitor: impl Fn() -> F)
where
    F: FnMut(&Path) + Send + 'a,
{
    builder(base).build_parallel().run(|| {
        let mut visitor = visitor();
        Box::new(move |entry| {
            if stop.load(Ordering::Relaxed) {
                return WalkState::Quit;
            }
            if let Ok(entry) = entry
                && entry.file_type().is_some_and(|kind| kind.is_file())
            {
                visitor(entry.path());
            }
            WalkState::Continue
        })
    });
}

/// The entries beneath a folder down to a depth, folder by folder in the order of their names' bytes.
pub(crate) fn tree(base: &Path, depth: usize) -> impl Iterator<Item = DirEntry> + use<> {
    sorted(base, Some(depth))
}

/// All entries beneath a folder, in the order of [`tree`].
pub(crate) fn all(base: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    sorted(base, None)
}

fn sorted(base: &Path, depth: Option<usize>) -> impl Iterator<Item = DirEntry> + use<> {
    builder(base)
        .max_depth(depth)
        .sort_by_file_name(|a, b| a.as_encoded_bytes().cmp(b.as_encoded_bytes()))
        .build()
        .flatten()
        .filter(|entry| entry.depth() > 0)
}

fn builder(base: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(base);
    builder
        .hidden(false)
        .require_git(false)
        // A person's own global excludes would make the same call differ between machines.
        .git_global(false)
        .filter_entry(|entry| entry.file_name() != ".git");
    builder
}

/// A glob over paths, or over names at any depth.
#[derive(Debug)]
pub(crate) struct Pattern {
    matcher: GlobMatcher,
    name_only: bool,
}

impl Pattern {
    /// `name_only`: it is matched against the name, whatever the folder.
    pub(crate) fn new(pattern: &str, name_only: bool) -> Result<Self> {
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .build()
            .map_err(|error| Error::Value(format!("the glob {pattern:?} is not valid: {}", error.kind())))?;
        Ok(Self { matcher: glob.compile_matcher(), name_only })
    }

    /// True when the file at `path`, found beneath `base`, is meant.
    pub(crate) fn matches(&self, path: &Path, base: &Path) -> bool {
        if self.name_only {
            return path.file_name().is_some_and(|name| self.matcher.is_match(name));
        }
        self.matcher.is_match(path.strip_prefix(base).unwrap_or(path))
    }
}

/// Splits a glob into the folder that it plainly names and the rest, so that only that folder is
/// walked: `src/**/*.rs` gives `src` and `**/*.rs`.
pub(crate) fn split(pattern: &str) -> (PathBuf, String) {
    let mut folder = PathBuf::new();
    let mut rest = Vec::new();
    let components: Vec<Component<'_>> =
        Path::new(pattern).components().filter(|component| *component != Component::CurDir).collect();
    for (index, component) in components.iter().enumerate() {
        let plain = !component.as_os_str().to_string_lossy().contains(['*', '?', '[', '{', '\\']);
        // The last component is always matched, never walked into.
        if rest.is_empty() && plain && index + 1 < components.len() {
            folder.push(component);
        } else {
            rest.push(component.as_os_str().to_string_lossy().into_owned());
        }
    }
    (folder, rest.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_is_split_at_its_first_wildcard() {
        let check = |pattern: &str, folder: &str, rest: &str| {
            assert_eq!(split(pattern), (PathBuf::from(folder), rest.to_owned()));
        };
        check("src/**/*.rs", "src", "**/*.rs");
        check("*.rs", "", "*.rs");
        check("/w/src/a.rs", "/w/src", "a.rs");
        check("a/{b,c}/d", "a", "{b,c}/d");
        check("./src/*.rs", "src", "*.rs");
    }

    #[test]
    fn a_pattern_matches_names_or_whole_paths() {
        let base = Path::new("/w");
        assert!(Pattern::new("*.rs", true).unwrap().matches(Path::new("/w/a/b.rs"), base));
        assert!(!Pattern::new("a/*.rs", false).unwrap().matches(Path::new("/w/a/b/c.rs"), base));
        assert!(Pattern::new("**/*.rs", false).unwrap().matches(Path::new("/w/c.rs"), base));
        assert_eq!(Pattern::new("a[", true).unwrap_err().code(), "tool.value");
    }
}
