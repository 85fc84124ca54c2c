//! Programs that only read, with the options that keep them so.
//!
//! Every option is named: one that is not known here, or that is only known when the command
//! runs, makes the command ask.

mod table;

use crate::shell::Word;
use crate::wrapper::git_globals;
use table::{FIND, FIND_VALUED, GIT, Operands, PROGRAMS, Program};

/// What a program that only reads looks at.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Paths it may read, as they are written.
    pub(crate) paths: Vec<String>,
    /// Folders it starts in, one after the other (`git -C`).
    pub(crate) folders: Vec<String>,
    /// True when what it does depends on the configuration of the repository it is in.
    pub(crate) repository: bool,
}

/// What the command reads, when all it does is read.
pub(crate) fn reading(words: &[Word]) -> Option<Reading> {
    let name = words.first()?.literal()?;
    let arguments = &words[1..];
    match name.as_str() {
        "git" => git(words),
        "find" => find(arguments),
        "sed" => sed(arguments),
        "set" => set(arguments),
        "command" => match arguments {
            [option, name] if matches!(option.literal()?.as_str(), "-v" | "-V") => {
                name.literal()?;
                Some(Reading::default())
            }
            _ => None,
        },
        // `printf -v` sets a variable.
        "printf" if matches!(arguments.first()?.literal_start().chars().next(), None | Some('-')) => None,
        "test" => arguments.iter().all(|word| word.literal().is_some_and(|text| text != "-v")).then(Reading::default),
        "echo" => Some(Reading::default()),
        // `date` with a plain operand sets the clock.
        "date" => {
            let prints = arguments.iter().all(|word| word.literal_start().starts_with(['-', '+']));
            prints.then(|| named(PROGRAMS, "date")?.reading(arguments))?
        }
        name => named(PROGRAMS, name)?.reading(arguments),
    }
}

/// True when the program only prints its words: they name no files.
pub(crate) fn prints_its_words(words: &[Word]) -> bool {
    let name = words.first().and_then(Word::literal);
    name.and_then(|name| named(PROGRAMS, &name)).is_some_and(|program| program.operands == Operands::Text)
}

fn named(programs: &'static [Program], name: &str) -> Option<&'static Program> {
    programs.iter().find(|program| program.name == name)
}

impl Program {
    /// What it reads with these words behind its name; none when one of them may make it do more.
    fn reading(&self, words: &[Word]) -> Option<Reading> {
        let Self { flags, valued, long, operands, .. } = *self;
        let mut reading = Reading::default();
        let mut pattern = operands == Operands::PatternThenPaths;
        let mut plain = false;
        let mut at = 0;
        while let Some(word) = words.get(at) {
            at += 1;
            let start = word.literal_start();
            if !plain && start == "--" && word.literal().is_some() {
                plain = true;
                continue;
            }
            if !plain && (start.starts_with('-') && start.len() > 1) {
                let text = word.literal()?;
                if text.starts_with("--") {
                    let name = text.split('=').next().unwrap_or_default();
                    if !long.contains(&name) {
                        return None;
                    }
                    // `rg --files` takes no pattern.
                    pattern &= name != "--files";
                    continue;
                }
                for (index, option) in text.char_indices().skip(1) {
                    if valued.contains(option) {
                        if operands == Operands::PatternThenPaths && option == 'e' {
                            pattern = false;
                        }
                        if index + option.len_utf8() == text.len() {
                            words.get(at)?;
                            at += 1;
                        }
                        break;
                    }
                    if !flags.contains(option) {
                        return None;
                    }
                }
                continue;
            }
            // An unknown word may turn out to be an option.
            if !plain && start.is_empty() && word.literal().is_none() && operands != Operands::Text {
                return None;
            }
            match operands {
                Operands::None => return None,
                Operands::Text => {}
                Operands::PatternThenPaths if pattern => pattern = false,
                Operands::Paths | Operands::PatternThenPaths => {
                    let path = word.literal()?;
                    if path != "-" {
                        reading.paths.push(path);
                    }
                }
            }
        }
        Some(reading)
    }
}

fn git(words: &[Word]) -> Option<Reading> {
    let globals = git_globals(words);
    if globals.configures || globals.elsewhere {
        return None;
    }
    let rest = words.get(globals.rest?..)?;
    let name = rest.first()?.literal()?;
    let listed = match (name.as_str(), &rest[1..]) {
        ("branch" | "tag", [option, patterns @ ..]) if matches!(option.literal()?.as_str(), "--list" | "-l") => {
            patterns.iter().all(|word| !word.literal_start().starts_with('-') && word.literal().is_some())
        }
        ("tag", []) => true,
        ("stash" | "worktree", [word]) => word.literal()? == "list",
        ("remote", [word, name]) => word.literal()? == "get-url" && name.literal().is_some(),
        _ => false,
    };
    let mut reading = if listed { Reading::default() } else { named(GIT, &name)?.reading(&rest[1..])? };
    reading.folders = globals.folders;
    reading.repository = true;
    Some(reading)
}

fn find(words: &[Word]) -> Option<Reading> {
    let mut reading = Reading::default();
    let mut at = 0;
    // Paths come first; an expression begins with the first word that looks like one.
    while let Some(word) = words.get(at) {
        let text = word.literal()?;
        if text.starts_with(['-', '(', '!']) {
            break;
        }
        reading.paths.push(text);
        at += 1;
    }
    while let Some(word) = words.get(at) {
        let text = word.literal()?;
        at += 1;
        if FIND_VALUED.contains(&text.as_str()) {
            words.get(at)?;
            at += 1;
        } else if !FIND.contains(&text.as_str()) {
            return None;
        }
    }
    Some(reading)
}

/// `sed -n 12,40p FILE`: prints lines and nothing else.
fn sed(words: &[Word]) -> Option<Reading> {
    let [option, script, files @ ..] = words else { return None };
    if option.literal()? != "-n" {
        return None;
    }
    let script = script.literal()?;
    let lines = script.strip_suffix('p')?;
    if lines.is_empty() || !lines.chars().all(|character| character.is_ascii_digit() || matches!(character, ',' | '$'))
    {
        return None;
    }
    named(PROGRAMS, "sed")?.reading(files)
}

/// `set -euo pipefail`
fn set(words: &[Word]) -> Option<Reading> {
    let known = |word: &Word| {
        word.literal().is_some_and(|text| {
            text == "pipefail"
                || text.strip_prefix(['-', '+']).is_some_and(|set| set.chars().all(|c| "euxo".contains(c)))
        })
    };
    (!words.is_empty() && words.iter().all(known)).then(Reading::default)
}
