//! The rule that "always" would grant: what was asked, and never more than its prefix or folder.

use crate::glob::CommandPattern;
use crate::paths::Workspace;
use crate::policy::{Access, Layer, Rule};
use crate::shell::{Script, Step, Word, joined};
use crate::wrapper::{Inner, inner};

/// Longest rule that is suggested, in bytes: a person has to read it.
const RULE_MAX: usize = 160;

/// Programs whose first word says what they do.
const SUBCOMMANDS: &[&str] = &[
    "apt",
    "apt-get",
    "brew",
    "bundle",
    "cargo",
    "composer",
    "dotnet",
    "gh",
    "git",
    "go",
    "gradle",
    "mvn",
    "npm",
    "pip",
    "pip3",
    "rails",
    "rustup",
    "terraform",
    "yarn",
];

/// Subcommands whose next word says what they run.
const RUNS: &[&str] = &["exec", "run", "run-script", "tool"];

/// Programs that may be granted with any arguments: builds and tests of the project itself.
const WHOLE: &[&str] = &["ctest", "jest", "make", "mypy", "ninja", "pytest", "ruff", "tsc", "vitest"];

/// The rule for a command line of one simple command; `None` for anything compound or unclear.
pub(crate) fn command(script: &Script) -> Option<String> {
    if script.unclear.is_some() || script.risky.is_some() {
        return None;
    }
    let [Step::Command(words)] = script.steps.as_slice() else { return None };
    let mut words = words.clone();
    while let [Inner::Command { words: within, transparent: true, risky: None }] = inner(&words).as_slice() {
        words = within.clone();
    }
    if !inner(&words).is_empty() {
        return exact(&words);
    }
    prefix(&words).or_else(|| exact(&words))
}

/// The program and its subcommand, with any further arguments.
fn prefix(words: &[Word]) -> Option<String> {
    let name = words.first()?.literal()?;
    let plain = |word: &Word| {
        word.literal().filter(|text| {
            !text.is_empty()
                && text.chars().all(|character| character.is_ascii_alphanumeric() || "-_:".contains(character))
                && !text.starts_with('-')
        })
    };
    let mut kept = vec![name.clone()];
    if SUBCOMMANDS.contains(&name.as_str()) {
        let subcommand = plain(words.get(1)?)?;
        let runs = RUNS.contains(&subcommand.as_str());
        kept.push(subcommand);
        if runs {
            match words.get(2) {
                Some(script) => kept.push(plain(script)?),
                None => return None,
            }
        }
    } else if !WHOLE.contains(&name.as_str()) {
        return None;
    }
    checked(format!("bash({} *)", kept.join(" ")), words)
}

/// Exactly this command.
fn exact(words: &[Word]) -> Option<String> {
    let words_text = words.iter().map(Word::literal).collect::<Option<Vec<_>>>()?;
    let text = words_text.join(" ");
    if text.contains('*') || text.chars().any(char::is_control) {
        return None;
    }
    checked(format!("bash({text})"), words)
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
