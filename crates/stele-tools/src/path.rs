//! From the name a model wrote to the file that is meant.

use std::io;
use std::path::{Path, PathBuf};

pub(crate) use stele_core::name_on_a_line as one_line;
use stele_core::{Location, SessionId, Subject, nearest};
use stele_path::{Leads, Resolved, absolute, resolve, resolve_alike, siblings};

use crate::error::{Error, Result};
use crate::overwrite::InPlace;
use crate::spill::{self, Spill};

/// Files that are looked at for the same name elsewhere.
const WALKED: usize = 20_000;

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

    /// A folder as the shell takes it, which expands no `~` in quotes.
    pub(crate) fn for_the_shell(&self, folder: &str) -> String {
        match (stele_path::is_relative(folder), &self.home) {
            (false, Some(home)) => absolute(folder, home, Some(home)).display().to_string(),
            _ => folder.to_owned(),
        }
    }

    /// The place a name stands for, for a card; nothing is looked up.
    pub(crate) fn location(&self, asked: &str, cwd: &Path, line: u64) -> Location {
        Location { path: absolute(asked, cwd, self.home.as_deref()).display().to_string(), line }
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
        absolute(asked, &self.cwd, self.home.as_deref())
    }

    /// Finds what exists. The exact name always wins; else a part of the path that does not exist
    /// is taken for the one sibling that looks the same.
    pub(crate) fn find(&self, asked: &str) -> Result<Found> {
        if let Some(path) = spill::resolve(self.spill.as_deref(), asked) {
            let gone = |_| Error::Missing { path: asked.to_owned(), hint: "; it is not kept any more".to_owned() };
            return path.canonicalize().map(|path| Found { path, instead: None }).map_err(gone);
        }
        let resolved = resolve_alike(&self.join(asked));
        self.refuse_missing(asked, &resolved)?;
        self.found(asked, resolved)
    }

    /// The folder of this name, which is taken exactly.
    pub(crate) fn folder(&self, asked: &str) -> Result<PathBuf> {
        let resolved = resolve(&self.join(asked));
        self.refuse_missing(asked, &resolved)?;
        let path = reachable(asked, resolved)?.path;
        if path.is_dir() { Ok(path) } else { Err(Error::Value(format!("cwd = {asked:?} is not a folder"))) }
    }

    /// The file that is written over or created through a name: [`Place::target`], but a part of the path that does not
    /// exist is taken for the one sibling that looks the same, so that nothing gets a twin that nobody can tell from it.
    pub(crate) fn writable(&self, asked: &str) -> Result<Found> {
        let path = self.join(asked);
        refuse_folder(asked, &path)?;
        let found = self.found(asked, resolve_alike(&path))?;
        Ok(Found { path: self.not_kept(asked, found.path)?, ..found })
    }

    /// What exists and only looks like a part of a path that does not: with the path, there would be two that nobody can
    /// tell apart.
    pub(crate) fn twin(&self, asked: &str) -> Result<Option<PathBuf>> {
        let resolved = reachable(asked, resolve_alike(&self.join(asked)))?;
        Ok(resolved.alike.map(|alike| alike.path))
    }

    /// The real path that a write through this name reaches, whether it exists or not: symbolic
    /// links are followed, also one that points to nothing yet. Names are taken exactly. Kept output is out of reach.
    pub(crate) fn target(&self, asked: &str) -> Result<PathBuf> {
        let path = self.join(asked);
        refuse_folder(asked, &path)?;
        self.not_kept(asked, reachable(asked, resolve(&path))?.path)
    }

    /// The real path of a name itself: its folder is resolved, and a symbolic link in the last place is not followed.
    pub(crate) fn name(&self, asked: &str) -> Result<PathBuf> {
        let path = self.join(asked);
        match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) => self.not_kept(asked, reachable(asked, resolve(folder))?.path.join(name)),
            _ => self.target(asked),
        }
    }

    fn found(&self, asked: &str, resolved: Resolved) -> Result<Found> {
        let Resolved { path, alike, .. } = reachable(asked, resolved)?;
        let shown = || path.strip_prefix(&self.cwd).unwrap_or(&path).to_string_lossy().into_owned();
        Ok(Found { instead: alike.is_some().then(shown), path })
    }

    fn refuse_missing(&self, asked: &str, resolved: &Resolved) -> Result<()> {
        match &resolved.leads {
            Leads::ToNothing => Err(self.missing(asked)),
            Leads::Nowhere(error) if error.kind() == io::ErrorKind::NotFound => Err(self.missing(asked)),
            _ => Ok(()),
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

    /// Says that a name does not exist, with those near it.
    pub(crate) fn missing(&self, asked: &str) -> Error {
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
                let distance = nearest::distance(&wanted.to_lowercase(), &name.to_lowercase());
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

/// Refuses what cannot be opened, whatever is there.
fn reachable(asked: &str, resolved: Resolved) -> Result<Resolved> {
    match resolved.leads {
        Leads::ToSomething | Leads::ToNothing => Ok(resolved),
        Leads::Nowhere(error) => Err(Error::io("open", asked)(error)),
        Leads::InALoop => Err(Error::Loop { path: asked.to_owned() }),
        Leads::ToOneOf(names) => {
            let candidates = names.iter().map(|name| format!("\"{}\"", escape(&name.to_string_lossy())));
            let candidates = candidates.collect::<Vec<_>>().join(", ");
            Err(Error::AmbiguousName { path: asked.to_owned(), candidates })
        }
    }
}

fn refuse_folder(asked: &str, path: &Path) -> Result<()> {
    match asked.ends_with('/') && !path.is_dir() {
        true => Err(Error::Value(format!("{asked} ends with a slash, so it names a folder; name a file in it"))),
        false => Ok(()),
    }
}

/// Shows a name so that look-alikes can be told apart.
pub(crate) fn escape(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii() { c.to_string() } else { c.escape_unicode().to_string() }).collect()
}
