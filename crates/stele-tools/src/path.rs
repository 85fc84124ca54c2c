//! From the name a model wrote to the file that is meant.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

pub(crate) use stele_core::name_on_a_line as one_line;
use stele_core::{SessionId, Subject, is_alike};

use crate::error::{Error, Result};
use crate::overwrite::InPlace;
use crate::spill::{self, Spill};

/// Entries of a folder that are looked at for a name that does not exist.
const SIBLINGS: usize = 10_000;
/// Files that are looked at for the same name elsewhere.
const WALKED: usize = 20_000;
/// Longest chain of symbolic links, as in Linux (`path_resolution(7)`).
const LINKS: usize = 40;

/// What the names of all sessions are resolved with.
#[derive(Clone, Debug)]
pub(crate) struct Roots {
    /// What `~` stands for.
    pub(crate) home: Option<PathBuf>,
    /// The folder of all spills.
    pub(crate) spill: Option<PathBuf>,
    /// How files are written in place.
    pub(crate) in_place: InPlace,
}

impl Roots {
    /// Where the names of a call are resolved.
    pub(crate) fn place(&self, cwd: &Path, session: &SessionId) -> Place {
        let spill = self.spill.as_ref().map(|folder| folder.join(session.as_str()));
        Place { cwd: cwd.to_owned(), home: self.home.clone(), spill, in_place: self.in_place.clone() }
    }

    /// A file that a call would change, for who judges calls.
    pub(crate) fn written(&self, path: String) -> Result<Subject> {
        if self.spill.is_some() {
            spill::refuse(&path)?;
        }
        Ok(Subject::Write(path))
    }

    /// The spill of a call or job.
    pub(crate) fn spill(&self, session: &SessionId, id: &str) -> Option<Spill> {
        self.spill.as_ref().map(|folder| Spill::new(folder, session, id))
    }
}

/// Where names are resolved.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The session's folder, absolute.
    pub(crate) cwd: PathBuf,
    /// What `~` stands for.
    pub(crate) home: Option<PathBuf>,
    /// The folder of the session's spills.
    pub(crate) spill: Option<PathBuf>,
    /// How files are written in place.
    pub(crate) in_place: InPlace,
}

/// An existing file or folder.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    /// The real path, without symbolic links.
    pub(crate) path: PathBuf,
    /// The name that was opened, when it is not the one asked for.
    pub(crate) instead: Option<String>,
}

impl Place {
    /// True for the name of a spill.
    pub(crate) fn is_spill(&self, asked: &str) -> bool {
        spill::resolve(self.spill.as_deref(), asked).is_some()
    }

    /// The absolute path a name stands for; nothing is looked up.
    pub(crate) fn join(&self, asked: &str) -> PathBuf {
        match (asked.strip_prefix('~'), &self.home) {
            (Some(""), Some(home)) => home.clone(),
            (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            _ => self.cwd.join(asked),
        }
    }

    /// Finds what exists. The exact name always wins; else a part of the path that does not exist
    /// is taken for the one sibling that looks the same.
    pub(crate) fn find(&self, asked: &str) -> Result<Found> {
        if let Some(path) = spill::resolve(self.spill.as_deref(), asked) {
            let gone = |_| Error::Missing { path: asked.to_owned(), hint: "; it is not kept any more".to_owned() };
            return path.canonicalize().map(|path| Found { path, instead: None }).map_err(gone);
        }
        let path = self.join(asked);
        match fs::canonicalize(&path) {
            Ok(path) => return Ok(Found { path, instead: None }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("open", asked)(error)),
        }
        let mut real = PathBuf::new();
        let mut instead = false;
        for component in path.components() {
            let next = real.join(component);
            if fs::symlink_metadata(&next).is_ok() {
                real = next;
                continue;
            }
            real.push(look_alike(&real, component, asked)?.ok_or_else(|| self.missing(asked))?);
            instead = true;
        }
        let shown = real.strip_prefix(&self.cwd).unwrap_or(&real).to_string_lossy().into_owned();
        match fs::canonicalize(&real) {
            Ok(path) => Ok(Found { path, instead: instead.then_some(shown) }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.missing(asked)),
            Err(error) => Err(Error::io("open", asked)(error)),
        }
    }

    /// The file that is written over or created through a name: [`Place::target`], but a part of the path that does not
    /// exist is taken for the one sibling that looks the same, so that nothing gets a twin that nobody can tell from it.
    pub(crate) fn writable(&self, asked: &str) -> Result<Found> {
        let target = self.target(asked)?;
        let mut real = PathBuf::new();
        let mut instead = false;
        let mut rest = target.components();
        for component in rest.by_ref() {
            let next = real.join(component);
            if fs::symlink_metadata(&next).is_ok() {
                real = next;
                continue;
            }
            match look_alike(&real, component, asked)? {
                Some(name) => real = deepest(&real.join(name)).map_err(Error::io("open", asked))?,
                None => {
                    real = next;
                    break;
                }
            }
            instead = true;
        }
        let path = self.not_kept(asked, rest.fold(real, |path, component| path.join(component)))?;
        let shown = path.strip_prefix(&self.cwd).unwrap_or(&path).to_string_lossy().into_owned();
        Ok(Found { instead: instead.then_some(shown), path })
    }

    /// What exists and only looks like a part of a path that does not: with the path, there would be two that nobody can
    /// tell apart.
    pub(crate) fn twin(&self, asked: &str) -> Result<Option<PathBuf>> {
        let mut real = PathBuf::new();
        for component in self.join(asked).components() {
            let next = real.join(component);
            if fs::symlink_metadata(&next).is_err() {
                return Ok(look_alike(&real, component, asked)?.map(|name| real.join(name)));
            }
            real = next;
        }
        Ok(None)
    }

    /// The real path that a write through this name reaches, whether it exists or not: symbolic
    /// links are followed, also one that points to nothing yet. Names are taken exactly. Kept output is out of reach.
    pub(crate) fn target(&self, asked: &str) -> Result<PathBuf> {
        let mut path = self.join(asked);
        if asked.ends_with('/') && !path.is_dir() {
            return Err(Error::Value(format!("{asked} ends with a slash, so it names a folder; name a file in it")));
        }
        for _ in 0..LINKS {
            match fs::read_link(&path) {
                Ok(to) => path = path.parent().unwrap_or(Path::new("/")).join(to),
                Err(_) => return self.not_kept(asked, deepest(&path).map_err(Error::io("open", asked))?),
            }
        }
        Err(Error::Loop { path: asked.to_owned() })
    }

    /// The real path of a name itself: its folder is resolved, and a symbolic link in the last place is not followed.
    pub(crate) fn name(&self, asked: &str) -> Result<PathBuf> {
        let path = self.join(asked);
        match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) => {
                self.not_kept(asked, deepest(folder).map_err(Error::io("open", asked))?.join(name))
            }
            _ => self.target(asked),
        }
    }

    /// The real path of what is to be changed, unless it is kept output, of whatever session.
    pub(crate) fn not_kept(&self, asked: &str, path: PathBuf) -> Result<PathBuf> {
        let Some(folder) = &self.spill else { return Ok(path) };
        spill::refuse(asked)?;
        match folder.parent().and_then(|all| all.canonicalize().ok()) {
            Some(all) if path.starts_with(&all) => Err(Error::Kept { path: asked.to_owned() }),
            _ => Ok(path),
        }
    }

    fn missing(&self, asked: &str) -> Error {
        let names = self.nearest(asked);
        let hint = if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(", ")) };
        Error::Missing { path: asked.to_owned(), hint }
    }

    /// Up to three names near one that does not exist: siblings spelt nearly so, and files of the
    /// same name elsewhere in the session's folder.
    fn nearest(&self, asked: &str) -> Vec<String> {
        let path = self.join(asked);
        let Some(wanted) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else { return Vec::new() };
        let mut near: Vec<(usize, String)> = Vec::new();
        if let Some(folder) = path.parent() {
            let show = |name: &str| folder.join(name).strip_prefix(&self.cwd).map(|path| path.display().to_string());
            for name in siblings(folder) {
                let name = name.to_string_lossy().into_owned();
                let distance = distance(&wanted.to_lowercase(), &name.to_lowercase());
                if distance <= wanted.chars().count() / 3 {
                    near.push((distance, show(&name).unwrap_or_else(|_| folder.join(&name).display().to_string())));
                }
            }
        }
        let walk = ignore::WalkBuilder::new(&self.cwd).build();
        for entry in walk.take(WALKED).flatten() {
            if entry.file_name().to_string_lossy() == wanted
                && let Ok(path) = entry.path().strip_prefix(&self.cwd)
            {
                near.push((1, path.display().to_string()));
            }
        }
        near.sort();
        near.dedup_by(|a, b| a.1 == b.1);
        near.into_iter().take(3).map(|(_, name)| name).collect()
    }
}

/// Resolves the deepest parent that exists and keeps the rest.
fn deepest(path: &Path) -> io::Result<PathBuf> {
    let mut rest = Vec::new();
    let mut at = path;
    loop {
        match fs::canonicalize(at) {
            Ok(real) => return Ok(rest.iter().rev().fold(real, |path, name| path.join(name))),
            // A file on the way may be about to go.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(error) => return Err(error),
        }
        match (at.file_name(), at.parent()) {
            (Some(name), Some(parent)) => {
                rest.push(name);
                at = parent;
            }
            // A path that goes up from a folder which does not exist has no meaning.
            _ => return Err(io::ErrorKind::NotFound.into()),
        }
    }
}

fn siblings(folder: &Path) -> Vec<OsString> {
    let mut names: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().take(SIBLINGS).flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    names
}

fn look_alikes(folder: &Path, name: &str) -> Vec<OsString> {
    siblings(folder).into_iter().filter(|sibling| is_alike(name, &sibling.to_string_lossy())).collect()
}

/// The one name in a folder that looks like a part of a path that does not exist there; several are an error.
fn look_alike(folder: &Path, component: Component<'_>, asked: &str) -> Result<Option<OsString>> {
    let Component::Normal(name) = component else { return Ok(None) };
    let mut alike = look_alikes(folder, &name.to_string_lossy());
    if alike.len() > 1 {
        let candidates = alike.iter().map(|name| format!("\"{}\"", escape(&name.to_string_lossy())));
        let candidates = candidates.collect::<Vec<_>>().join(", ");
        return Err(Error::AmbiguousName { path: asked.to_owned(), candidates });
    }
    Ok(alike.pop())
}

/// Shows a name so that look-alikes can be told apart.
pub(crate) fn escape(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii() { c.to_string() } else { c.escape_unicode().to_string() }).collect()
}

/// Edit distance, in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_expanded_only_as_a_whole_component() {
        let place =
            Place { cwd: "/w".into(), home: Some("/home/me".into()), spill: None, in_place: InPlace::default() };
        assert_eq!(place.join("~"), Path::new("/home/me"));
        assert_eq!(place.join("~/a"), Path::new("/home/me/a"));
        assert_eq!(place.join("~a"), Path::new("/w/~a"));
        assert_eq!(place.join("/etc"), Path::new("/etc"));
    }

    #[test]
    fn distances() {
        assert_eq!(distance("main.rs", "mian.rs"), 2);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}
