//! Judging what a call touches: files ([`files`]), and the steps of a command line.

mod files;

use std::path::PathBuf;

use stele_core::Mode;

use crate::builtin::{Reading, reading};
use crate::paths::Workspace;
use crate::policy::{Access, Layer, Policy, Rule};
use crate::repository::Programs;
use crate::shell::{self, Script, Step, Word, joined, joined_loosely};
use crate::standing::{Level, Standing};
use crate::suggest::Lack;
use crate::wrapper::{Inner, git_globals, git_without_globals, inner};

/// Command lines inside command lines that are followed.
const SCRIPTS_MAX: usize = 4;
/// Folders a command line may be in at the same time before it is given up.
const FOLDERS_MAX: usize = 16;

/// The folders a command line may be in; `None` once that cannot be told.
type Folders = Option<Vec<PathBuf>>;

/// What is judged against.
pub(crate) struct Judge<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) mode: Mode,
    pub(crate) workspace: &'a Workspace,
    pub(crate) tool: &'a str,
    pub(crate) programs: &'a Programs<'a>,
}

impl Judge<'_> {
    /// Nothing allows it.
    fn open(&self, reason: impl Into<String>) -> Standing {
        Standing::new(Level::Open, format!("mode:{}", self.mode), reason)
    }

    /// Judges a command line.
    pub(crate) fn command_line(&self, script: &Script) -> Standing {
        let mut folders = Some(vec![self.workspace.cwd().to_owned()]);
        // A step that runs again, or later, may run in a folder that a later step changes to.
        if script.repeats && script.steps.iter().any(changes_folder) {
            folders = None;
        }
        self.script(script, &mut folders, 0)
    }

    fn script(&self, script: &Script, folders: &mut Folders, depth: usize) -> Standing {
        let mut standing = Standing::allowed(crate::READ_ONLY);
        if let Some(why) = script.unclear {
            standing.raise(self.unclear(why));
        }
        if let Some(name) = &script.risky {
            let reason = format!("it sets {name}, which changes how programs are found or behave");
            standing.raise(Standing::new(Level::Unclear, "builtin:variable", reason));
        }
        for step in &script.steps {
            standing.raise(match step {
                Step::Command(words) => self.simple(words, folders, depth),
                Step::Input(word) => self.redirected(Access::Read, word, folders),
                Step::Output(word) => self.redirected(Access::Write, word, folders),
            });
        }
        standing
    }

    /// What cannot be read may hide what a rule denies.
    fn unclear(&self, why: &str) -> Standing {
        let level =
            if self.policy.denies().iter().any(Rule::concerns_shell) { Level::Doubtful } else { Level::Unclear };
        Standing::new(level, "builtin:unclear", why)
    }

    /// Judges one simple command and what it runs.
    fn simple(&self, words: &[Word], folders: &mut Folders, depth: usize) -> Standing {
        let name = words.first().and_then(Word::literal);
        let mut floor = Standing::allowed(crate::READ_ONLY);
        match &name {
            None => floor.raise(self.unclear("the program's name is only known when it runs")),
            // A rule could take a part of the name for an argument.
            Some(name) if name.contains(char::is_whitespace) => {
                floor.raise(self.unclear("the program's name has white space"));
            }
            Some(_) => {}
        }
        self.rules_over(words, &mut floor);

        // What it runs besides itself.
        let mut through: Option<Standing> = None;
        let inner = inner(words);
        let alone = inner.len() == 1;
        for inner in inner {
            let (standing, transparent) = match inner {
                Inner::Command { words, transparent, risky } => {
                    let mut standing = self.simple(&words, folders, depth);
                    if let Some(name) = risky {
                        let reason = format!("it sets {name}, which changes how programs are found or behave");
                        standing.raise(Standing::new(Level::Unclear, "builtin:variable", reason));
                    }
                    (standing, transparent)
                }
                Inner::Script { text, transparent } if depth < SCRIPTS_MAX => {
                    let script = shell::parse(&text);
                    if script.repeats && script.steps.iter().any(changes_folder) {
                        *folders = None;
                    }
                    (self.script(&script, folders, depth + 1), transparent)
                }
                Inner::Script { .. } | Inner::Opaque => {
                    *folders = None;
                    (self.hidden("it runs commands that cannot be read from here"), false)
                }
                Inner::Launcher => (self.launched(&words[1..], depth), false),
            };
            if standing.level > Level::Open {
                floor.raise(standing);
            } else if alone && transparent {
                through = Some(standing);
            }
        }

        let read = reading(words).filter(|_| name.as_deref().is_some_and(|name| !self.workspace.brings(name)));
        let read = read.map(|read| self.reads(&read, folders));
        match &read {
            // A refusal of what it reads holds whatever else allows the command.
            Some(standing) if standing.level > Level::Open => floor.raise(standing.clone()),
            Some(_) => {}
            None => self.supposed(words, folders, &mut floor),
        }
        let entered = (name.as_deref() == Some("cd")).then(|| self.enters(words, folders));
        if floor.level > Level::Open {
            return floor;
        }
        if let Some(rule) = self.allows(words, folders) {
            return Standing::allowed(rule.identity());
        }
        let through = match through {
            Some(through) if through.level == Level::Allowed => return through,
            through => through,
        };
        let standing = entered.or(read).unwrap_or_else(|| {
            self.open(match &name {
                Some(name) => format!("no rule allows `{}`", shown(name, words)),
                None => "no rule allows it".to_owned(),
            })
        });
        match standing.level {
            Level::Allowed => standing,
            _ => standing.lacking(lacking(words, through)),
        }
    }

    /// A command that is no known reader as it stands: what it reads or names once the shell's short names for folders
    /// are what they usually are. That may be refused, and allows nothing.
    fn supposed(&self, words: &[Word], folders: &Folders, floor: &mut Standing) {
        let supposed: Vec<Word> = words.iter().map(|word| word.supposed(self.workspace.home())).collect();
        if let Some(read) = reading(&supposed) {
            let standing = self.reads(&read, folders);
            if standing.level > Level::Open {
                floor.raise(standing);
            }
        }
        self.names_denied_files(&supposed, folders, floor);
    }

    /// Something hidden matters when a rule might refuse or ask about it.
    fn hidden(&self, why: &str) -> Standing {
        let asks = self.policy.asks().iter().any(Rule::concerns_shell);
        let denies = self.policy.denies().iter().any(Rule::concerns_shell);
        let level = match (denies, asks) {
            (true, _) => Level::Doubtful,
            (false, true) => Level::Unclear,
            (false, false) => Level::Open,
        };
        Standing::new(level, "builtin:unclear", why)
    }

    /// Deny and ask rules over every form of the command.
    fn rules_over(&self, words: &[Word], floor: &mut Standing) {
        let forms = forms(words);
        let exact: Vec<_> = forms.iter().map(|form| joined(form)).collect();
        let loose: Vec<_> = forms.iter().map(|form| joined_loosely(form)).collect();
        for rule in self.policy.denies() {
            let Some(pattern) = rule.command() else { continue };
            if exact.iter().any(|form| pattern.covers(form)) {
                floor.raise(Standing::denied(rule));
            } else if loose.iter().any(|form| pattern.touches(form)) {
                floor.raise(Standing::doubtful(rule));
            }
        }
        let granted = self.policy.allows().iter().filter(|rule| rule.layer() == Layer::Session);
        let granted = granted.filter_map(Rule::command).any(|pattern| pattern.covers(&joined(words)));
        for rule in self.policy.asks().iter().filter(|_| !granted) {
            let Some(pattern) = rule.command() else { continue };
            if exact.iter().any(|form| pattern.covers(form)) || loose.iter().any(|form| pattern.touches(form)) {
                floor.raise(Standing::asked(rule).lacking(vec![Lack::Command(words.to_vec())]));
            }
        }
    }

    /// A launcher runs some of its words: any of them may be the command.
    fn launched(&self, words: &[Word], depth: usize) -> Standing {
        let mut worst = self.hidden_if_unknown(words);
        for at in 0..words.len() {
            let mut standing = Standing::allowed(crate::READ_ONLY);
            self.rules_over(&words[at..], &mut standing);
            let text = words[at].literal().filter(|text| text.contains([' ', ';', '&', '|', '\n']));
            if let Some(text) = text.filter(|_| depth < SCRIPTS_MAX) {
                standing.raise(self.script(&shell::parse(&text), &mut None, depth + 1));
            }
            // Which of the words it runs is a guess, and a guess asks.
            if standing.level >= Level::Asked {
                let level = standing.level.min(Level::Doubtful);
                worst.raise(Standing { level, ..standing });
            }
        }
        worst
    }

    fn hidden_if_unknown(&self, words: &[Word]) -> Standing {
        if words.iter().any(|word| word.literal().is_none()) {
            self.hidden("it runs commands that cannot be read from here")
        } else {
            self.open("it runs another program")
        }
    }

    /// The first allow rule over the command as it is written, or over git without its global options
    /// when they stay in the workspace.
    fn allows(&self, words: &[Word], folders: &Folders) -> Option<&Rule> {
        let mut forms = vec![joined(words)];
        if let Some(stripped) = git_without_globals(words) {
            let globals = git_globals(words);
            let stays = !globals.configures && !globals.elsewhere && self.stays(&globals.folders, folders).is_some();
            if stays && words.first().and_then(Word::literal).as_deref() == Some("git") {
                forms.push(joined(&stripped));
            }
        }
        self.policy
            .allows()
            .iter()
            .find(|rule| rule.command().is_some_and(|pattern| forms.iter().any(|form| pattern.covers(form))))
    }

    /// The folders after entering these one after the other, when all lie in the workspace.
    fn stays(&self, entered: &[String], folders: &Folders) -> Option<Vec<PathBuf>> {
        let mut current = folders.clone()?;
        for entered in entered {
            current = current
                .iter()
                .map(|folder| {
                    let target = self.workspace.target(folder, entered)?;
                    self.workspace.holds(&target).then_some(target.resolved)
                })
                .collect::<Option<Vec<_>>>()?;
        }
        Some(current)
    }

    /// Judges what a known reader reads.
    fn reads(&self, read: &Reading, folders: &Folders) -> Standing {
        let outside = || self.open("it reads outside the workspace");
        let folders = match (read.folders.is_empty(), folders) {
            (true, folders) => folders.clone(),
            (false, _) => match self.stays(&read.folders, folders) {
                Some(folders) => Some(folders),
                None => return outside(),
            },
        };
        let mut standing = match &folders {
            Some(_) => Standing::allowed(crate::READ_ONLY),
            // Without a path it reads the current folder, wherever that is.
            None if read.paths.is_empty() => outside(),
            None => Standing::allowed(crate::READ_ONLY),
        };
        if read.repository {
            let program = match &folders {
                Some(folders) => folders.iter().find_map(|folder| self.programs.of(folder)),
                None => Some("the folder is only known when it runs".to_owned()),
            };
            program.into_iter().for_each(|why| standing.raise(self.open(why)));
        }
        for path in read.paths.iter().filter(|path| path.as_str() != "/dev/null") {
            standing.raise(self.path_in(&folders, Access::Read, path));
        }
        standing
    }

    /// `cd`: the folders it may lead to are added to those the command line may be in.
    fn enters(&self, words: &[Word], folders: &mut Folders) -> Standing {
        let unknown = self.open("it changes to a folder outside the workspace");
        let target = match words {
            [_, target] => target.literal().filter(|target| !target.starts_with('-')),
            // `-` is the folder before this one, also here.
            [_, end, target] if end.literal().as_deref() == Some("--") => {
                target.literal().filter(|target| target != "-")
            }
            _ => None,
        };
        let (Some(target), Some(current)) = (target, folders.as_mut()) else {
            *folders = None;
            return unknown;
        };
        let mut inside = true;
        let mut entered = Vec::new();
        for folder in current.iter() {
            match self.workspace.target(folder, &target) {
                Some(target) => {
                    inside &= self.workspace.holds(&target);
                    // The shell follows `..` in the path as it was written, programs in the real one.
                    entered.extend([target.written, target.resolved]);
                }
                None => inside = false,
            }
        }
        for folder in entered {
            if !current.contains(&folder) {
                current.push(folder);
            }
        }
        if current.len() > FOLDERS_MAX {
            *folders = None;
            return unknown;
        }
        if inside { Standing::allowed(crate::READ_ONLY) } else { unknown }
    }
}

/// What a simple command lacks that nothing allows: a rule for what it runs, where that is all that it does and an exact
/// rule can be written for it; else one for itself.
fn lacking(words: &[Word], through: Option<Standing>) -> Vec<Lack> {
    let itself = Lack::Command(words.to_vec());
    match through.and_then(|through| through.lacks) {
        Some(lacks) if lacks.iter().all(Lack::is_certain) || !itself.is_certain() => lacks,
        _ => vec![itself],
    }
}

fn changes_folder(step: &Step) -> bool {
    let Step::Command(words) = step else { return false };
    words
        .iter()
        .filter_map(Word::literal)
        .any(|word| matches!(word.as_str(), "cd" | "pushd" | "popd" | "eval" | "source" | "."))
}

/// The forms in which a refusal looks at a command: as it is written, by the bare name of a
/// program that is spelled as a path, and without git's global options.
fn forms(words: &[Word]) -> Vec<Vec<Word>> {
    let mut forms = vec![words.to_vec()];
    if let Some(stripped) = git_without_globals(words) {
        forms.push(stripped);
    }
    let bare: Vec<Vec<Word>> = forms
        .iter()
        .filter_map(|form| {
            let name = form.first()?.literal()?;
            let base = name.rsplit('/').next().filter(|base| *base != name)?;
            let mut bare = form.clone();
            bare[0] = Word::certain(base);
            Some(bare)
        })
        .collect();
    forms.extend(bare);
    forms
}

/// The program and what may be its subcommand, short enough for a sentence.
fn shown(name: &str, words: &[Word]) -> String {
    let subcommand = words.get(1).and_then(Word::literal).filter(|word| {
        word.len() <= 24 && word.chars().all(|character| character.is_ascii_lowercase() || character == '-')
    });
    let name: String = name.chars().filter(|character| !character.is_control()).take(40).collect();
    match subcommand {
        Some(subcommand) => format!("{name} {subcommand}"),
        None => name,
    }
}
