//! Where a path really leads.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use stele_path::{Leads, Resolved, absolute, resolve_alike};

use crate::Error;

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
    /// The home folder as it is spelled, and as it resolves.
    homes: Vec<PathBuf>,
    /// Entries of the search path that lie in the workspace: what is found there is not the
    /// system's program of that name.
    inner_programs: Vec<PathBuf>,
    /// True when the search path has an entry that depends on the current folder.
    relative_programs: bool,
}

/// What a path leads to: as it was written and as it resolves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
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
        let home = surroundings.home.clone();
        let mut homes: Vec<PathBuf> = home.iter().cloned().chain(home.as_deref().and_then(resolve)).collect();
        homes.dedup();
        Ok(Self { root, cwd, home, homes, inner_programs, relative_programs })
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

    /// What a path leads to that is relative to `folder`; `None` when its links form a loop.
    pub(crate) fn target(&self, folder: &Path, path: &str) -> Option<Target> {
        let joined = folder.join(path);
        Some(Target { written: normalise(&joined), resolved: resolve(&joined)? })
    }

    /// What a name leads to that a tool is given: `~` is the home folder. `None` when its links form a loop.
    pub(crate) fn named(&self, name: &str) -> Option<Target> {
        let joined = self.absolute(name);
        Some(Target { written: normalise(&joined), resolved: resolve(&joined)? })
    }

    /// What a tool would open, or create, in the place of what does not exist, since it alone looks the same; `None` where
    /// the name is taken as it is.
    pub(crate) fn look_alike(&self, name: &str) -> Option<Target> {
        let Resolved { path, alike, .. } = resolve_alike(&self.absolute(name));
        alike.map(|alike| Target { written: normalise(&alike.path.join(alike.beneath)), resolved: path })
    }

    fn absolute(&self, name: &str) -> PathBuf {
        absolute(name, &self.cwd, self.home.as_deref())
    }

    /// True when the target lies in the workspace.
    pub(crate) fn holds(&self, target: &Target) -> bool {
        target.resolved.starts_with(&self.root)
    }

    /// True when the target may not be changed without asking, in whatever mode but `full`.
    pub(crate) fn protects(&self, target: &Target) -> bool {
        [&target.resolved, &target.written].into_iter().any(|path| {
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
        beneath(&self.root, path)
    }

    /// The path from the home folder, `.` for that itself; `None` outside.
    pub(crate) fn beneath_home<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        self.homes.iter().find_map(|home| beneath(home, path))
    }
}

fn beneath<'a>(folder: &Path, path: &'a Path) -> Option<&'a Path> {
    let inner = path.strip_prefix(folder).ok()?;
    Some(if inner.as_os_str().is_empty() { Path::new(".") } else { inner })
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

/// Resolves links and `..`, also where the last parts do not exist yet. `None` when the links form a loop.
pub(crate) fn resolve(path: &Path) -> Option<PathBuf> {
    let Resolved { path, leads, .. } = stele_path::resolve(path);
    (!matches!(leads, Leads::InALoop)).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_dropped_and_the_root_has_none() {
        assert_eq!(normalise(Path::new("/a/./b/../c")), Path::new("/a/c"));
        assert_eq!(normalise(Path::new("/../..")), Path::new("/"));
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
