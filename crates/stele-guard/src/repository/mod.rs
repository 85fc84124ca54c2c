//! What git may run by itself where it is only told to read: programs that a repository's own configuration names, and
//! hooks.
//!
//! Every repository that git could take from a folder is looked at, its submodules included. What is not known to run
//! nothing, or cannot be read as git would read it, counts as a program.

mod config;
mod index;
mod keys;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::paths::{Workspace, resolve};
use config::Setting;
use keys::Effect;

/// Repositories that are looked at, and files that one configuration includes, one in another.
const REPOSITORIES_MAX: usize = 64;
const INCLUDES_MAX: usize = 10;

/// Longest configuration and index that are read, in bytes.
const CONFIG_MAX: u64 = 1024 * 1024;
const INDEX_MAX: u64 = 128 * 1024 * 1024;

/// The one hook that reading runs: git refreshes the index on the way (git 2.51, `githooks(5)`).
const HOOK: &str = "post-index-change";

/// What may be run, in one sentence; `Err` so that looking ends where something is found.
type Look<T = ()> = Result<T, String>;

/// What git would run in the folders of one call, each looked at once.
pub(crate) struct Programs<'a> {
    workspace: &'a Workspace,
    known: RefCell<BTreeMap<PathBuf, Option<String>>>,
}

impl<'a> Programs<'a> {
    pub(crate) fn new(workspace: &'a Workspace) -> Self {
        Self { workspace, known: RefCell::default() }
    }

    /// Why git may run a program of the folder's own when it reads there; `None` where it does not.
    pub(crate) fn of(&self, folder: &Path) -> Option<String> {
        let look = || {
            let mut repositories = Repositories { workspace: self.workspace, seen: BTreeSet::new() };
            folder.ancestors().find_map(|folder| repositories.at(folder).err())
        };
        self.known.borrow_mut().entry(folder.to_owned()).or_insert_with(look).clone()
    }
}

struct Repositories<'a> {
    workspace: &'a Workspace,
    /// Those that were looked at, each with the folder of its files: two may share one repository.
    seen: BTreeSet<[Option<PathBuf>; 2]>,
}

/// What the configuration of a repository says besides what is harmless.
#[derive(Default)]
struct Configured {
    hooks: Vec<String>,
    worktrees: Vec<String>,
    wide_hashes: Option<bool>,
}

impl Repositories<'_> {
    /// Looks at the repository whose files lie in a folder, and at one that is the folder itself.
    fn at(&mut self, folder: &Path) -> Look {
        let inner = folder.join(".git");
        match std::fs::metadata(&inner) {
            Ok(found) if found.is_dir() => self.repository(&inner, folder)?,
            Ok(_) => {
                let text = self.text(&inner)?.unwrap_or_default();
                let target = text.strip_prefix("gitdir: ").ok_or_else(|| self.unreadable(&inner))?;
                self.repository(&folder.join(target.trim_end_matches(['\n', '\r'])), folder)?;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(_) => return Err(self.unreadable(&inner)),
        }
        if folder.join("HEAD").symlink_metadata().is_ok() {
            self.repository(folder, folder)?;
        }
        Ok(())
    }

    fn repository(&mut self, directory: &Path, worktree: &Path) -> Look {
        if !self.seen.insert([resolve(directory), resolve(worktree)]) {
            return Ok(());
        }
        if self.seen.len() > REPOSITORIES_MAX {
            return Err("it has more submodules than are looked at, and git may run a program in any".to_owned());
        }
        let common = match self.text(&directory.join("commondir"))? {
            Some(text) => directory.join(text.trim_end_matches(['\n', '\r'])),
            None => directory.to_owned(),
        };
        let mut configured = Configured::default();
        self.configuration(&common.join("config"), 0, &mut configured)?;
        self.configuration(&directory.join("config.worktree"), 1, &mut configured)?;
        let mut worktrees = vec![worktree.to_owned()];
        for path in &configured.worktrees {
            worktrees.push(self.inside(&directory.join(path))?);
        }
        self.hooks(&common.join("hooks"))?;
        for path in &configured.hooks {
            for base in worktrees.iter().map(PathBuf::as_path).chain([directory]) {
                self.hooks(&self.expanded(path, base)?)?;
            }
        }
        self.submodules(directory, &worktrees, configured.wide_hashes.unwrap_or_default())
    }

    /// Reads a file of settings; `depth` is 0 for the repository's own, which alone says what the repository is.
    fn configuration(&self, file: &Path, depth: usize, configured: &mut Configured) -> Look {
        let Some(bytes) = self.bytes(file, CONFIG_MAX)? else { return Ok(()) };
        let settings = config::parse(&bytes).filter(|_| depth <= INCLUDES_MAX).ok_or_else(|| self.unreadable(file))?;
        for setting in &settings {
            match keys::effect(setting) {
                Effect::Nothing => {}
                Effect::Program => return Err(self.sets(setting, file)),
                Effect::Include(path) => {
                    let base = file.parent().unwrap_or(file);
                    self.configuration(&self.expanded(&path, base)?, depth + 1, configured)?;
                }
                Effect::Hooks(path) => configured.hooks.push(path),
                Effect::Worktree(path) => configured.worktrees.push(path),
                Effect::Hashes { wide } if depth == 0 && configured.wide_hashes.is_none() => {
                    configured.wide_hashes = Some(wide);
                }
                Effect::Hashes { .. } => return Err(self.unreadable(file)),
            }
        }
        Ok(())
    }

    fn hooks(&self, folder: &Path) -> Look {
        let hook = folder.join(HOOK);
        match hook.symlink_metadata() {
            Ok(_) => Err(format!("git may run the hook {}", self.shown(&hook))),
            Err(_) => Ok(()),
        }
    }

    /// Git asks each submodule that is checked out what it has changed, by its own configuration.
    fn submodules(&mut self, directory: &Path, worktrees: &[PathBuf], wide_hashes: bool) -> Look {
        let file = directory.join("index");
        let Some(bytes) = self.bytes(&file, INDEX_MAX)? else { return Ok(()) };
        let paths = index::submodules(&bytes, wide_hashes).ok_or_else(|| self.unreadable(&file))?;
        for path in paths {
            for worktree in worktrees {
                self.at(&worktree.join(&path))?;
            }
        }
        Ok(())
    }

    fn inside(&self, path: &Path) -> Look<PathBuf> {
        let resolved = resolve(path).filter(|path| path.starts_with(self.workspace.root()));
        resolved.ok_or_else(|| format!("git would read {}", self.shown(path)))
    }

    /// A path as a configuration writes it.
    fn expanded(&self, path: &str, base: &Path) -> Look<PathBuf> {
        match (path.strip_prefix("~/"), self.workspace.home()) {
            (Some(inner), Some(home)) => Ok(home.join(inner)),
            (None, _) if !path.starts_with(['~', '%', ':']) => Ok(base.join(path)),
            _ => Err(format!("git may run a program that its configuration names through {path:?}")),
        }
    }

    fn text(&self, file: &Path) -> Look<Option<String>> {
        let bytes = self.bytes(file, CONFIG_MAX)?;
        bytes.map(|bytes| String::from_utf8(bytes).map_err(|_| self.unreadable(file))).transpose()
    }

    /// A regular file's content; `None` where there is none.
    fn bytes(&self, file: &Path, most: u64) -> Look<Option<Vec<u8>>> {
        match std::fs::metadata(file) {
            Ok(found) if found.is_file() && found.len() <= most => {
                std::fs::read(file).map(Some).map_err(|_| self.unreadable(file))
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Ok(_) | Err(_) => Err(self.unreadable(file)),
        }
    }

    fn sets(&self, setting: &Setting, file: &Path) -> String {
        format!("{} sets {}, and git may run a program for it", self.shown(file), setting.name())
    }

    fn unreadable(&self, file: &Path) -> String {
        format!("{} cannot be read as git reads it, and may name a program to run", self.shown(file))
    }

    fn shown(&self, path: &Path) -> String {
        let path = resolve(path).unwrap_or_else(|| path.to_owned());
        self.workspace.relative(&path).unwrap_or(&path).display().to_string()
    }
}
