//! A question about a call, and what a person's line answers.

use std::path::Path;

use stele_core::{ApprovalOutcome, Subject, Tool};
use stele_tools::PreviewOptions;

use crate::render::card;
use crate::render::inert::one_line;
use crate::render::style::Style;
use crate::render::text::ShownCall;

/// The question: the parsed command or the change, the rule that asked, the rule that `always` grants.
pub fn question(
    call: &ShownCall,
    tool: Option<&dyn Tool>,
    folder: &Path,
    previews: &PreviewOptions,
    style: Style,
) -> String {
    let mut lines = vec![style.bold(&format!("? may {} run?", one_line(&call.name)))];
    lines.extend(card::question(tool, &call.name, call.arguments.as_str(), folder, previews, style));
    if let Some(gated) = &call.gated {
        let reason = gated.reason.as_deref().map(|reason| format!(": {}", one_line(reason))).unwrap_or_default();
        lines.push(style.dim(&format!("  asked by {}{reason}", one_line(&gated.by.0))));
        if let Some(rule) = &gated.always {
            lines.push(style.dim(&format!("  always allows {} in this session", one_line(rule))));
        }
    }
    lines.join("\n")
}

/// What the answers are.
pub fn choices(call: &ShownCall) -> String {
    let always = call.gated.as_ref().is_some_and(|gated| gated.always.is_some());
    format!("  [y]es, {}[n]o, or n and a reason: ", if always { "[a]lways, " } else { "" })
}

/// What may be granted for a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grantable {
    /// The rule that `always` grants, as it was shown.
    pub always: Option<String>,
    /// The command line, where it is one: a wider rule may be written for it.
    pub command: Option<String>,
}

impl Grantable {
    /// What may be granted for a call that was shown.
    pub fn of(call: &ShownCall, tool: Option<&dyn Tool>) -> Self {
        let subjects = tool.and_then(|tool| tool.subjects(call.arguments.as_str()).ok()).unwrap_or_default();
        let command = subjects.into_iter().find_map(|subject| match subject {
            Subject::Command(command) => Some(command),
            _ => None,
        });
        Self { always: call.gated.as_ref().and_then(|gated| gated.always.clone()), command }
    }

    fn rule(&self, pattern: &str) -> Result<String, &'static str> {
        let always = self.always.as_ref();
        let always = always.ok_or("  (no rule is narrow enough to be granted for this call: y runs it this once)")?;
        if pattern.is_empty() {
            return Ok(always.clone());
        }
        let wider = self.command.as_ref().and_then(|command| stele_guard::granted(command, pattern));
        wider.ok_or("  (a pattern behind always has to cover this command, as a git push * covers git push origin x)")
    }
}

/// Reads a person's line.
///
/// # Errors
/// It is no answer, and why: ask again. Nothing but an explicit yes allows.
pub fn read(line: &str, grantable: &Grantable) -> Result<ApprovalOutcome, &'static str> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (word.to_lowercase().as_str(), rest.trim()) {
        ("y" | "yes", "") => Ok(ApprovalOutcome::Once),
        ("a" | "always", pattern) => grantable.rule(pattern).map(|rule| ApprovalOutcome::Always { rule }),
        ("n" | "no", reason) => Ok(reject(reason)),
        ("", "") => Err("  (the call waits for an answer; Ctrl-C stops the turn)"),
        (word, _) if word.starts_with('/') => {
            Err("  (commands are taken once the question is answered; Ctrl-C stops the turn)")
        }
        _ => Err("  (no answer; to say something to the agent: n and what to do instead)"),
    }
}

/// A refusal with its reason for the model.
pub fn reject(reason: &str) -> ApprovalOutcome {
    let reason = if reason.is_empty() { "the user said no" } else { reason };
    ApprovalOutcome::Reject { reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_allows() {
        let nothing = Grantable::default();
        assert_eq!(read(" Yes \n", &nothing), Ok(ApprovalOutcome::Once));
        assert_eq!(read("n not in main", &nothing), Ok(reject("not in main")));
        assert_eq!(read("no", &nothing), Ok(reject("")));
        for unclear in ["", "yes please", "ok", "always", "a maybe", "yn", "\u{1b}y"] {
            assert!(read(unclear, &nothing).is_err(), "{unclear:?}");
        }
    }

    #[test]
    fn always_grants_the_rule_that_was_shown_or_one_that_is_written_out() {
        let push = "git push origin x";
        let grantable = Grantable { always: Some(format!("bash({push})")), command: Some(push.to_owned()) };
        let rule = |line| match read(line, &grantable) {
            Ok(ApprovalOutcome::Always { rule }) => Some(rule),
            _ => None,
        };
        assert_eq!(rule("always").as_deref(), Some("bash(git push origin x)"));
        assert_eq!(rule("a git push origin *").as_deref(), Some("bash(git push origin *)"));
        assert_eq!((rule("a git pull *"), rule("a *"), rule("a please")), (None, None, None));
    }
}
