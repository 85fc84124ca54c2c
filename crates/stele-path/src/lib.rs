//! Which file a name means: one answer for who judges a call and for who carries it out.
//!
//! A name is made absolute ([`absolute`]) and then followed part by part, as the system does it: links and `..` are
//! resolved, also where the last parts do not exist yet. [`resolve`] takes names exactly. [`resolve_alike`] takes for a
//! part that does not exist the one sibling that looks the same: accents composed or not, spaces that do not break,
//! typographic apostrophes.
//!
//! **Invariant:** this is the only place where `~` is expanded in the name of a file, and links and look-alikes are
//! followed. Whoever did it a second time would judge one file and open another.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use stele_core::is_alike;

/// Symbolic links followed before a path counts as a loop, as the Linux kernel does (`path_resolution(7)`).
const LINKS_MAX: usize = 40;

/// Entries of a folder that are looked at.
const SIBLINGS_MAX: usize = 10_000;

/// Where a name leads.
#[derive(Debug)]
pub struct Resolved {
    /// The real path: no link in it, no `.` and no `..`. Where the name leads nowhere, as far as it could be followed.
    pub path: PathBuf,
    /// What stands there.
    pub leads: Leads,
    /// What was taken for the first part that does not exist; absent where every name was taken as it is.
    pub alike: Option<Alike>,
}

/// A name that was taken for another one, since it alone looks the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alike {
    /// The name that is there, with its real folder; it may be a link.
    pub path: PathBuf,
    /// What was asked for beneath it.
    pub beneath: PathBuf,
}

/// What a name leads to.
#[derive(Debug)]
pub enum Leads {
    /// Something stands there.
    ToSomething,
    /// Nothing does, and something could.
    ToNothing,
    /// It cannot be opened: a part of it cannot be looked at, or it goes up from what is no folder.
    Nowhere(io::Error),
    /// Its links form a loop.
    InALoop,
    /// A part does not exist and looks like several that do.
    ToOneOf(Vec<OsString>),
}

/// The name beneath the home folder of what begins with `~/`, and of `~` itself; `None` for every other name, `~user`
/// included.
#[must_use]
pub fn beneath_home(name: &str) -> Option<&str> {
    let rest = name.strip_prefix('~')?;
    (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/'))
}

/// True for a name that means something else in another folder.
#[must_use]
pub fn is_relative(name: &str) -> bool {
    !name.starts_with('/') && beneath_home(name).is_none()
}

/// The path that a name stands for in a folder; nothing is looked up.
#[must_use]
pub fn absolute(name: &str, folder: &Path, home: Option<&Path>) -> PathBuf {
    match (beneath_home(name), home) {
        (Some(""), Some(home)) => folder.join(home),
        (Some(inner), Some(home)) => folder.join(home).join(inner),
        _ => folder.join(name),
    }
}

/// Follows a path; each part is taken exactly.
#[must_use]
pub fn resolve(path: &Path) -> Resolved {
    Walk::new(path, Missing::Stays).finish()
}

/// Follows a path; a part that does not exist is taken for the one sibling that looks the same.
#[must_use]
pub fn resolve_alike(path: &Path) -> Resolved {
    Walk::new(path, Missing::MayBeAlike).finish()
}

/// The names in a folder, sorted; none where it cannot be read.
#[must_use]
pub fn siblings(folder: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(folder).into_iter().flatten().take(SIBLINGS_MAX).flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    names.sort();
    names
}

/// What becomes of a part that does not exist.
#[derive(Clone, Copy, PartialEq)]
enum Missing {
    Stays,
    MayBeAlike,
}

/// A path on its way.
struct Walk {
    missing: Missing,
    parts: VecDeque<OsString>,
    links: usize,
    reached: Resolved,
}

impl Walk {
    fn new(path: &Path, missing: Missing) -> Self {
        let reached = Resolved { path: PathBuf::new(), leads: Leads::ToSomething, alike: None };
        Self { missing, parts: parts(path).collect(), links: 0, reached }
    }

    fn finish(mut self) -> Resolved {
        while let Some(part) = self.parts.pop_front() {
            if part == ".." {
                self.up()
            } else {
                self.down(&part)
            }
            if self.links > LINKS_MAX {
                return Resolved { leads: Leads::InALoop, ..self.reached };
            }
        }
        self.reached
    }

    /// What lies above a part that does not exist may exist, and be opened once the part does: the way goes on.
    fn up(&mut self) {
        match self.reached.leads {
            Leads::ToNothing => self.reached.leads = Leads::Nowhere(ErrorKind::NotFound.into()),
            Leads::ToSomething if !self.reached.path.is_dir() => self.stray(ErrorKind::NotADirectory.into()),
            _ => {}
        }
        self.reached.path.pop();
    }

    fn down(&mut self, part: &OsStr) {
        let next = self.reached.path.join(part);
        match fs::read_link(&next) {
            Ok(target) => {
                self.links += 1;
                parts(&target).rev().for_each(|part| self.parts.push_front(part));
            }
            Err(_) => match fs::symlink_metadata(&next) {
                Ok(_) => self.reached.path = next,
                Err(error) if error.kind() == ErrorKind::NotFound => self.lacking(part, next),
                // A file on the way may be about to go.
                Err(error) if error.kind() == ErrorKind::NotADirectory => self.new_from(next),
                Err(error) => {
                    self.stray(error);
                    self.reached.path = next;
                }
            },
        }
    }

    /// A part that does not exist.
    fn lacking(&mut self, part: &OsStr, next: PathBuf) {
        let looked_for = self.missing == Missing::MayBeAlike && matches!(self.reached.leads, Leads::ToSomething);
        let mut alike = if looked_for { self.alike(&part.to_string_lossy()) } else { Vec::new() };
        match alike.len() {
            0 => self.new_from(next),
            1 => {
                let beneath = || self.parts.iter().collect();
                let path = self.reached.path.join(&alike[0]);
                self.reached.alike.get_or_insert_with(|| Alike { path, beneath: beneath() });
                alike.pop().into_iter().for_each(|name| self.parts.push_front(name));
            }
            _ => {
                self.reached.leads = Leads::ToOneOf(alike);
                self.reached.path = next;
            }
        }
    }

    fn alike(&self, part: &str) -> Vec<OsString> {
        let siblings = siblings(&self.reached.path).into_iter();
        siblings.filter(|sibling| is_alike(part, &sibling.to_string_lossy())).collect()
    }

    fn new_from(&mut self, next: PathBuf) {
        if matches!(self.reached.leads, Leads::ToSomething) {
            self.reached.leads = Leads::ToNothing;
        }
        self.reached.path = next;
    }

    /// The first thing that was wrong is what is told.
    fn stray(&mut self, error: io::Error) {
        if matches!(self.reached.leads, Leads::ToSomething | Leads::ToNothing) {
            self.reached.leads = Leads::Nowhere(error);
        }
    }
}

/// The parts of a path, without `.`; an absolute path begins with its root, which restarts a join.
fn parts(path: &Path) -> impl DoubleEndedIterator<Item = OsString> + '_ {
    path.components().filter(|part| *part != Component::CurDir).map(|part| part.as_os_str().to_owned())
}

#[cfg(test)]
mod tests;
