//! Rules for what nothing allows: as narrow as can be written, and tried before they are suggested.

use std::path::PathBuf;

use crate::decide::Case;
use crate::glob::Unit;
use crate::paths::Workspace;
use crate::policy::{Access, Layer, List, Policy, Rule};
use crate::shell::{Word, joined};
use crate::standing::{Level, Standing};

/// Most rules that are suggested for a call, and the length of one in bytes: a person has to read them.
pub(crate) const RULES_MAX: usize = 3;
const RULE_MAX: usize = 160;

/// Something that a rule would have to allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// A simple command.
    Command(Vec<Word>),
    /// A file, as it resolves.
    File {
        /// How it is touched.
        access: Access,
        /// The path.
        path: PathBuf,
        /// True in a folder where nothing is changed without asking: no grant for a session reaches it.
        protected: bool,
    },
}

/// How narrow a rule has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// Exactly what was asked, so that a person grants it with a word.
    Exact,
    /// With a `*` for what only the shell knows, and for what is too long to read.
    Narrowest,
}

/// The rules that would let a call run without a question were they of this layer; empty where none would.
///
/// They are found by trying: what still lacks a rule with the ones before is added.
pub(crate) fn rules(
    case: &Case<'_>,
    policy: &Policy,
    mut standing: Standing,
    (layer, width): (Layer, Width),
) -> Vec<String> {
    let mut policy = policy.clone();
    let mut rules: Vec<String> = Vec::new();
    while standing.level != Level::Allowed {
        let known = rules.len();
        for lack in standing.lacks.unwrap_or_default() {
            let Some(rule) = lack.rule(width, case.workspace).filter(|rule| !rules.contains(rule)) else { continue };
            if policy.add(List::Allow, layer, &rule).is_err() {
                return Vec::new();
            }
            rules.push(rule);
        }
        if rules.len() == known || rules.len() > RULES_MAX {
            return Vec::new();
        }
        standing = case.stand(&policy);
    }
    rules
}

impl Lack {
    /// True for a command all of whose words are certain, and for every file.
    pub(crate) fn is_certain(&self) -> bool {
        match self {
            Self::Command(words) => words.iter().all(|word| word.literal().is_some()),
            Self::File { .. } => true,
        }
    }

    /// A command with words that only the shell knows, as far as it can be read.
    pub(crate) fn uncertain(&self) -> Option<String> {
        match self {
            Self::Command(words) if !self.is_certain() => {
                let rule = command(words, Width::Narrowest)?;
                Some(rule.strip_prefix("bash(")?.strip_suffix(')')?.to_owned())
            }
            Self::Command(_) | Self::File { .. } => None,
        }
    }

    fn rule(&self, width: Width, workspace: &Workspace) -> Option<String> {
        match self {
            Self::Command(words) => command(words, width),
            Self::File { protected: true, .. } if width == Width::Exact => None,
            Self::File { access, path, .. } => file(*access, path, workspace),
        }
    }
}

/// The rule for a simple command: its words, since what else may follow them is anything, `--force` included.
fn command(words: &[Word], width: Width) -> Option<String> {
    let units = joined(words);
    let uncertain = |unit: &Unit| match unit {
        Unit::Char(character) => *character == '*' || character.is_control(),
        Unit::Unknown | Unit::Usual(_) => true,
    };
    let length: usize = "bash()".len() + units.iter().map(length).sum::<usize>();
    match width {
        Width::Exact if length > RULE_MAX || units.iter().any(uncertain) => return None,
        Width::Exact | Width::Narrowest => {}
    }
    let mut pattern = String::new();
    for unit in &units {
        match unit {
            _ if pattern.len() >= RULE_MAX => break,
            Unit::Char(character) if !uncertain(unit) => pattern.push(*character),
            _ if pattern.ends_with('*') => {}
            _ => pattern.push('*'),
        }
    }
    if length > RULE_MAX && !pattern.ends_with('*') {
        pattern.push('*');
    }
    Some(format!("bash({pattern})"))
}

fn length(unit: &Unit) -> usize {
    match unit {
        Unit::Char(character) => character.len_utf8(),
        Unit::Unknown | Unit::Usual(_) => 1,
    }
}

/// The rule for a file, or for a folder and what lies below it.
fn file(access: Access, path: &std::path::Path, workspace: &Workspace) -> Option<String> {
    let name = match access {
        Access::Read => "read",
        Access::Write => "edit",
    };
    let pattern = globset::escape(workspace.relative(path).unwrap_or(path).to_str()?);
    let below = if path.is_dir() { "/**" } else { "" };
    Some(format!("{name}({}{below})", pattern.trim_end_matches('/'))).filter(|rule| rule.len() <= RULE_MAX)
}

/// The rules that a person grants who writes a wider pattern out: it stands in the place of those that it covers. `None`
/// where it covers none.
#[must_use]
pub fn widened(rules: &[String], pattern: &str) -> Option<Vec<String>> {
    let pattern = pattern.trim();
    let mut granted: Vec<String> = Vec::new();
    let mut covers = false;
    for rule in rules {
        let wider = wider(rule, pattern);
        covers |= wider.is_some();
        let rule = wider.unwrap_or_else(|| rule.clone());
        if !granted.contains(&rule) {
            granted.push(rule);
        }
    }
    covers.then_some(granted)
}

/// The pattern as a rule of the same tool, if it covers what the rule covers.
fn wider(rule: &str, pattern: &str) -> Option<String> {
    let (tool, exact) = rule.strip_suffix(')')?.split_once('(')?;
    let of_tool = |text: &'_ str| Some(text.strip_prefix(tool)?.strip_prefix('(')?.strip_suffix(')')?.to_owned());
    let wider = format!("{tool}({})", of_tool(pattern).unwrap_or_else(|| pattern.to_owned()));
    let parsed = Rule::parse(&wider, Layer::Session, 0).ok()?;
    (parsed.covers_exactly(exact) && wider.len() <= RULE_MAX).then_some(wider)
}
