//! Where a path really leads.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use stele_core::is_alike;

use crate::Error;

/// Symbolic links followed before a path counts as a loop, as the Linux kernel does (`path_resolution(7)`).
const LINKS_MAX: usize = 40;

/// Entries of a folder that are looked at for a name that does not exist.
const SIBLINGS: usize = 10_000;

/// Folders in which nothing is changed without asking, at any depth.
const PROTECTED: &[&str] = &[".git", ".stele"];

/// What the rules know about the machine around the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The person's home folder, for rules that begin with `~/`.
    pub home: Option<PathBuf>,
    /// The value of `PATH` that commands run with.
    pub search_path: Option<OsString>,
}

/// The folder an agent works in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    root: PathBuf,
    cwd: PathBuf,
    home: Option<PathBuf>,
    /// Entries of the search path that lie in the workspace: what is found there is not the
    /// system's program of that name.
    inner_programs: Vec<PathBuf>,
    /// True when the search path has an entry that depends on the current folder.
    relative_programs: bool,
}

/// A path, as it was written and as it resolves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Absolute, without `.` and `..`, links as they were written.
    pub(crate) written: PathBuf,
    /// Absolute, all links resolved.
    pub(crate) resolved: PathBuf,
}

impl Workspace {
    /// A workspace at `root`, with the current folder `cwd` inside it.
    ///
    /// # Errors
    /// `guard.workspace` when one of the folders does not exist or cannot be resolved.
    pub fn new(root: &Path, cwd: &Path, surroundings: &Surroundings) -> Result<Self, Error> {
        let canonical =
            |path: &Path| path.canonicalize().map_err(|source| Error::Workspace { path: path.to_owned(), source });
        let root = canonical(root)?;
        let cwd = canonical(cwd)?;
        let mut inner_programs = Vec::new();
        let mut relative_programs = false;
        for entry in surroundings.search_path.iter().flat_map(std::env::split_paths) {
            if entry.is_relative() {
                relative_programs = true;
            } else if resolve(&entry).is_none_or(|resolved| resolved.starts_with(&root)) {
                inner_programs.push(entry);
            }
        }
        Ok(Self { root, cwd, home: surroundings.home.clone(), inner_programs, relative_programs })
    }

    /// The root, canonical.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The current folder, canonical.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The person's home folder.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Resolves a path that is relative to `folder`; `None` when its links form a loop.
    pub(crate) fn place(&self, folder: &Path, path: &str) -> Option<Place> {
        let joined = folder.join(path);
        Some(Place { written: normalise(&joined), resolved: resolve(&joined)? })
    }

    /// The name of a file that a tool would open, or create, in the place of one that does not exist: each part that is not
    /// there is taken for the one sibling that looks the same. `None` where the name is taken as it is, or leads nowhere.
    pub(crate) fn look_alike(&self, path: &str) -> Option<String> {
        let joined = match (path.strip_prefix("~/"), &self.home) {
            (Some(inner), Some(home)) => home.join(inner),
            _ => self.cwd.join(path),
        };
        let mut real = PathBuf::new();
        let mut instead = false;
        for part in joined.components() {
            let next = real.join(part);
            if next.symlink_metadata().is_ok() {
                real = next;
                continue;
            }
            let Component::Normal(name) = part else { return None };
            let wanted = name.to_string_lossy();
            let entries = std::fs::read_dir(&real).into_iter().flatten();
            let siblings = entries.take(SIBLINGS).flatten().map(|entry| entry.file_name());
            let mut alike = siblings.filter(|sibling| is_alike(&wanted, &sibling.to_string_lossy()));
            match (alike.next(), alike.next()) {
                (Some(one), None) => {
                    real.push(one);
                    instead = true;
                }
                // What is written is new from here on.
                (None, _) => real = next,
                (Some(_), Some(_)) => return None,
            }
        }
        instead.then(|| real.to_string_lossy().into_owned())
    }

    /// True when the place lies in the workspace.
    pub(crate) fn holds(&self, place: &Place) -> bool {
        place.resolved.starts_with(&self.root)
    }

    /// True when the place may not be changed without asking, in whatever mode but `full`.
    pub(crate) fn protects(&self, place: &Place) -> bool {
        [&place.resolved, &place.written].into_iter().any(|path| {
            path.strip_prefix(&self.root).is_ok_and(|inner| {
                inner.components().any(|part| {
                    let part = part.as_os_str();
                    PROTECTED.iter().any(|protected| part.eq_ignore_ascii_case(protected))
                })
            })
        })
    }

    /// True when a bare program name may be something that the workspace brings along.
    pub(crate) fn brings(&self, program: &str) -> bool {
        self.relative_programs || self.inner_programs.iter().any(|folder| folder.join(program).exists())
    }

    /// The path from the root, `.` for the root itself; `None` outside.
    pub(crate) fn relative<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let inner = path.strip_prefix(&self.root).ok()?;
        Some(if inner.as_os_str().is_empty() { Path::new(".") } else { inner })
    }
}

/// Removes `.` and `..` without looking at links.
fn normalise(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// Resolves links and `..` as the system would, also where the last parts do not exist yet: a
/// dangling link counts as its target. `None` when the links form a loop.
pub(crate) fn resolve(path: &Path) -> Option<PathBuf> {
    let mut resolved = PathBuf::new();
    let mut parts: VecDeque<OsString> = components(path);
    let mut links = 0;
    while let Some(part) = parts.pop_front() {
        if part == ".." {
            resolved.pop();
            continue;
        }
        let next = resolved.join(&part);
        // A part that cannot be looked at cannot be opened either: it stays as it is written.
        match std::fs::read_link(&next) {
            Ok(target) => {
                links += 1;
                if links > LINKS_MAX {
                    return None;
                }
                for part in components(&target).into_iter().rev() {
                    parts.push_front(part);
                }
            }
            Err(_) => resolved = next,
        }
    }
    Some(resolved)
}

/// The parts of a path, without `.`; an absolute path begins with its root, which restarts a join.
fn components(path: &Path) -> VecDeque<OsString> {
    path.components().filter(|part| *part != Component::CurDir).map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_dropped_and_the_root_has_none() {
        assert_eq!(normalise(Path::new("/a/./b/../c")), Path::new("/a/c"));
        assert_eq!(normalise(Path::new("/../..")), Path::new("/"));
        assert_eq!(resolve(Path::new("/../..")), Some(PathBuf::from("/")));
    }

    #[test]
    fn what_does_not_exist_resolves_from_its_deepest_parent() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        assert_eq!(resolve(&root.join("link/a/../b")), Some(root.join("real/b")));
        std::os::unix::fs::symlink("loop", root.join("loop")).unwrap();
        assert_eq!(resolve(&root.join("loop/x")), None);
    }

    #[test]
    fn a_search_path_entry_in_the_workspace_brings_programs() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        std::fs::write(folder.path().join("bin/cat"), "").unwrap();
        let with = |path: String| Surroundings { home: None, search_path: Some(path.into()) };
        let outside = Workspace::new(folder.path(), folder.path(), &with("/usr/bin:/bin".into())).unwrap();
        assert!(!outside.brings("cat"));
        let inner = with(format!("{}/bin:/usr/bin", folder.path().display()));
        let inner = Workspace::new(folder.path(), folder.path(), &inner).unwrap();
        assert!(inner.brings("cat") && !inner.brings("ls"));
        let relative = Workspace::new(folder.path(), folder.path(), &with("/usr/bin:.".into())).unwrap();
        assert!(relative.brings("ls"));
    }
}
