//! Judging the files that a call touches.

use std::path::Path;

use stele_core::Mode;

use super::{Folders, Judge};
use crate::builtin::prints_its_words;
use crate::paths::Target;
use crate::policy::{Access, Layer, Rule};
use crate::shell::Word;
use crate::standing::{Level, Standing};
use crate::suggest::Lack;

impl Judge<'_> {
    /// Judges a file that a tool is told to read or write.
    pub(crate) fn named(&self, access: Access, name: &str) -> Standing {
        let mut standing = self.leading_to(access, self.workspace.named(name));
        if let Some(alike) = self.workspace.look_alike(name) {
            standing.raise(self.file(access, &alike));
        }
        standing
    }

    /// Judges a path of a command line, relative to a folder.
    fn path_from(&self, folder: &Path, access: Access, path: &str) -> Standing {
        self.leading_to(access, self.workspace.target(folder, path))
    }

    fn leading_to(&self, access: Access, target: Option<Target>) -> Standing {
        match target {
            Some(target) => self.file(access, &target),
            None => Standing::new(Level::Denied, "builtin:path", "the path is a loop of symbolic links"),
        }
    }

    fn file(&self, access: Access, target: &Target) -> Standing {
        let restrains = |rule: &&Rule| rule.restrains(self.tool, access, target, self.workspace);
        let permits = |rule: &&Rule| rule.permits(self.tool, access, target, self.workspace);
        let protected = access == Access::Write && self.workspace.protects(target);
        let lack = || vec![Lack::File { access, path: target.resolved.clone(), protected }];
        if let Some(rule) = self.policy.denies().iter().find(restrains) {
            return Standing::denied(rule);
        }
        if let Some(rule) = self.policy.allows().iter().filter(|rule| rule.layer() == Layer::Session).find(permits) {
            return Standing::allowed(rule.identity());
        }
        if let Some(rule) = self.policy.asks().iter().find(restrains) {
            return Standing::asked(rule).lacking(lack());
        }
        if let Some(rule) = self.policy.allows().iter().find(permits) {
            return Standing::allowed(rule.identity());
        }
        let inside = self.workspace.holds(target);
        let reason = match access {
            Access::Read if inside => return Standing::allowed(crate::READ_ONLY),
            Access::Read => "it reads outside the workspace",
            Access::Write if !inside => "it writes outside the workspace",
            Access::Write if protected => "it changes a protected folder",
            Access::Write if self.mode >= Mode::Edit => return Standing::allowed(format!("mode:{}", self.mode)),
            Access::Write => "it changes a file",
        };
        self.open(reason).lacking(lack())
    }

    /// Judges the target of a redirection.
    pub(super) fn redirected(&self, access: Access, word: &Word, folders: &Folders) -> Standing {
        let Some(path) = word.literal() else {
            return self.unclear("the target of a redirection is only known when it runs");
        };
        let harmless = match access {
            Access::Read => path == "/dev/null",
            Access::Write => matches!(path.as_str(), "/dev/null" | "/dev/stdout" | "/dev/stderr"),
        };
        if harmless {
            return Standing::allowed(crate::READ_ONLY);
        }
        self.path_in(folders, access, &path)
    }

    /// Judges a path in every folder the command line may be in.
    pub(super) fn path_in(&self, folders: &Folders, access: Access, path: &str) -> Standing {
        match folders {
            None if !path.starts_with('/') => self.unclear("the folder is only known when it runs"),
            None => self.path_from(Path::new("/"), access, path),
            Some(folders) => {
                let mut standing = Standing::allowed(crate::READ_ONLY);
                for folder in folders {
                    standing.raise(self.path_from(folder, access, path));
                }
                standing
            }
        }
    }

    /// A command that is no known reader and names a file that a rule denies.
    pub(super) fn names_denied_files(&self, words: &[Word], folders: &Folders, floor: &mut Standing) {
        if prints_its_words(words) {
            return;
        }
        // Where the folder is only known when it runs, what is certain of it is where it began.
        let began = [self.workspace.cwd().to_owned()];
        let folders = folders.as_deref().unwrap_or(&began);
        let words = words.iter().skip(1).filter_map(Word::literal);
        let values = words.map(|word| word.split_once('=').map_or(word.clone(), |(_, value)| value.to_owned()));
        let targets: Vec<Target> = values
            .filter(|value| !value.is_empty())
            .flat_map(|value| folders.iter().filter_map(move |folder| self.workspace.target(folder, &value)))
            .collect();
        let restrains = |rule: &Rule, target: &Target| {
            let access = [Access::Read, Access::Write];
            access.into_iter().any(|access| rule.restrains(self.tool, access, target, self.workspace))
        };
        for rule in self.policy.denies().iter().filter(|rule| rule.is_about_paths()) {
            if targets.iter().any(|target| restrains(rule, target)) {
                floor.raise(Standing::doubtful(rule));
            }
        }
    }
}
