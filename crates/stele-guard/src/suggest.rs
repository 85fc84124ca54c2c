//! The rule that "always" would grant: exactly the command that was asked about, or the folder of the file.

use crate::glob::CommandPattern;
use crate::paths::Workspace;
use crate::policy::{Access, Layer, Rule};
use crate::shell::{Script, Step, Word, joined, parse};
use crate::wrapper::{Inner, inner};

/// Longest rule that is suggested, in bytes: a person has to read it.
const RULE_MAX: usize = 160;

/// The rule for a command line of one simple command: exactly its words, since what else may follow them is anything,
/// `--force` included. `None` for anything compound or unclear.
pub(crate) fn command(script: &Script) -> Option<String> {
    let words = simple(script)?;
    let text = words.iter().map(Word::literal).collect::<Option<Vec<_>>>()?.join(" ");
    if text.contains('*') || text.chars().any(char::is_control) {
        return None;
    }
    checked(format!("bash({text})"), &words)
}

/// The rule of a pattern that a person wrote for a command that was asked about; `None` where it does not cover that very
/// command, or where no rule could.
#[must_use]
pub fn granted(command: &str, pattern: &str) -> Option<String> {
    let words = simple(&parse(command))?;
    let pattern = pattern.trim();
    let inner = pattern.strip_prefix("bash(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(pattern);
    checked(format!("bash({inner})"), &words)
}

/// The words of the one command that a command line runs, without what it is run through.
fn simple(script: &Script) -> Option<Vec<Word>> {
    if script.unclear.is_some() || script.risky.is_some() {
        return None;
    }
    let [Step::Command(words)] = script.steps.as_slice() else { return None };
    let mut words = words.clone();
    while let [Inner::Command { words: within, transparent: true, risky: None }] = inner(&words).as_slice() {
        words = within.clone();
    }
    Some(words)
}

/// A rule is suggested only when it is read back as a rule for this very command.
fn checked(rule: String, words: &[Word]) -> Option<String> {
    let parsed = Rule::parse(&rule, Layer::Session, 0).ok()?;
    let covers = parsed.command().is_some_and(|pattern: &CommandPattern| pattern.covers(&joined(words)));
    (covers && rule.len() <= RULE_MAX).then_some(rule)
}

/// The rule for a file's folder; outside the workspace without what lies deeper.
pub(crate) fn path(access: Access, tool: &str, path: &str, workspace: &Workspace) -> Option<String> {
    let place = workspace.place(workspace.cwd(), path)?;
    if access == Access::Write && workspace.protects(&place) {
        return None;
    }
    let name = match access {
        Access::Read => "read",
        Access::Write => "edit",
    };
    let escaped = |path: &std::path::Path| path.to_str().map(globset::escape);
    let pattern = if place.resolved.is_dir() {
        format!("{}/**", escaped(workspace.relative(&place.resolved).unwrap_or(&place.resolved))?)
    } else {
        let folder = place.resolved.parent()?;
        match workspace.relative(folder) {
            Some(folder) if folder == std::path::Path::new(".") => "*".to_owned(),
            Some(folder) => format!("{}/**", escaped(folder)?),
            None => format!("{}/*", escaped(folder)?.trim_end_matches('/')),
        }
    };
    let rule = format!("{name}({pattern})");
    let parsed = Rule::parse(&rule, Layer::Session, 0).ok()?;
    (parsed.permits(tool, access, &place, workspace) && rule.len() <= RULE_MAX).then_some(rule)
}
