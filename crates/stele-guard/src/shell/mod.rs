//! Shell command lines, taken apart into the simple commands they may run.
//!
//! The parse is tree-sitter's, and it is not trusted by itself: every byte must belong to a token,
//! every node must be of a kind that is known here, and what is left over makes the whole line
//! *unclear*. The commands that were found are judged all the same, so that a refusal is not lost.

mod heredoc;
mod variable;
mod walk;
mod word;

use std::path::Path;

use crate::glob::{Unit, Usual};

pub(crate) use variable::is_risky as is_risky_variable;
pub(crate) use walk::is_reserved;

/// Longest command line that is looked at, in bytes; a longer one asks.
const LENGTH_MAX: usize = 64 * 1024;

/// A command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Script {
    /// What it does, in the order of the text.
    pub(crate) steps: Vec<Step>,
    /// Why it is not certain that these are all the steps.
    pub(crate) unclear: Option<&'static str>,
    /// A variable it sets that changes how programs are found or behave.
    pub(crate) risky: Option<String>,
    /// True when some steps may run later or more than once: loops, functions, traps.
    pub(crate) repeats: bool,
}

/// One thing a command line does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Runs a simple command.
    Command(Vec<Word>),
    /// Opens a file for reading.
    Input(Word),
    /// Opens a file for writing.
    Output(Word),
}

/// A word after the shell's quoting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) Vec<Unit>);

impl Word {
    /// A word that is certain.
    pub(crate) fn certain(text: &str) -> Self {
        Self(text.chars().map(Unit::Char).collect())
    }

    /// A word of which nothing is known.
    pub(crate) fn unknown() -> Self {
        Self(vec![Unit::Unknown])
    }

    /// The text, when all of it is certain.
    pub(crate) fn literal(&self) -> Option<String> {
        self.0
            .iter()
            .map(|unit| match unit {
                Unit::Char(character) => Some(*character),
                Unit::Unknown | Unit::Usual(_) => None,
            })
            .collect()
    }

    /// What the word certainly begins with.
    pub(crate) fn literal_start(&self) -> String {
        self.0
            .iter()
            .map_while(|unit| match unit {
                Unit::Char(character) => Some(*character),
                Unit::Unknown | Unit::Usual(_) => None,
            })
            .collect()
    }

    /// The word as it most likely turns out: the shell's short names stand for the folders that they usually are.
    pub(crate) fn supposed(&self, home: Option<&Path>) -> Self {
        let text = |usual: Usual| match usual {
            Usual::Home => home?.to_str(),
            Usual::Current => Some("."),
        };
        let units = self.0.iter().flat_map(|unit| match unit {
            Unit::Usual(usual) => {
                text(*usual).map_or_else(|| vec![*unit], |text| text.chars().map(Unit::Char).collect())
            }
            Unit::Char(_) | Unit::Unknown => vec![*unit],
        });
        Self(units.collect())
    }

    fn is_unknown(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|unit| !matches!(unit, Unit::Char(_)))
    }
}

/// A command as one text, its words separated by one space.
pub(crate) fn joined(words: &[Word]) -> Vec<Unit> {
    let mut units = Vec::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            units.push(Unit::Char(' '));
        }
        units.extend_from_slice(&word.0);
    }
    units
}

/// The same where an unknown word may also be several or none, its spaces included.
pub(crate) fn joined_loosely(words: &[Word]) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut gap = false;
    for word in words {
        if gap && !word.is_unknown() {
            units.push(Unit::Char(' '));
        }
        units.extend_from_slice(&word.0);
        gap = !word.is_unknown();
    }
    units
}

/// Takes a command line apart. Never panics, whatever the text.
pub(crate) fn parse(source: &str) -> Script {
    if source.len() > LENGTH_MAX {
        return Script { unclear: Some("the command is too long to be read"), ..Script::default() };
    }
    if source.chars().any(|character| character.is_control() && character != '\n' && character != '\t') {
        return Script { unclear: Some("the command has control characters"), ..Script::default() };
    }
    walk::walk(source).unwrap_or_else(|| Script { unclear: Some("the command cannot be parsed"), ..Script::default() })
}

#[cfg(test)]
mod tests;
