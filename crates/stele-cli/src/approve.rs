//! A question about a call, and what a person's line answers.

use std::path::Path;

use stele_core::{ApprovalOutcome, Mode, Tool};
use stele_tools::PreviewOptions;

use crate::render::card;
use crate::render::inert::one_line;
use crate::render::style::Style;
use crate::render::text::ShownCall;

/// The question: the parsed command or the change, the rule that asked, the rules that `always` grants.
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
        let granted = |rule: &String| style.dim(&format!("  always allows {} in this session", one_line(rule)));
        lines.extend(gated.always.iter().map(granted));
        if gated.always.is_empty() {
            lines.push(style.dim("  always is no answer here: no rule can be made for exactly this call"));
        }
    }
    lines.join("\n")
}

/// What the answers are.
pub fn choices(call: &ShownCall) -> String {
    let always = call.gated.as_ref().is_some_and(|gated| !gated.always.is_empty());
    format!("  [y]es, {}[n]o, or n and a reason: ", if always { "[a]lways, a PATTERN, " } else { "" })
}

/// True when a call needs no question in a mode.
pub fn is_settled_by(call: &ShownCall, mode: Mode) -> bool {
    call.gated.as_ref().and_then(|gated| gated.settled_by).is_some_and(|least| mode >= least)
}

/// What `always` grants for a call that was shown.
pub fn grantable(call: &ShownCall) -> &[String] {
    call.gated.as_ref().map_or(&[], |gated| &gated.always)
}

/// The rules that an `always` grants: those that were shown, or a pattern that is written out for some of them.
fn granted(always: &[String], pattern: &str) -> Result<Vec<String>, &'static str> {
    if always.is_empty() {
        return Err("  (no rule is narrow enough to be granted for this call: y runs it this once)");
    }
    if pattern.is_empty() {
        return Ok(always.to_vec());
    }
    stele_guard::widened(always, pattern).ok_or(
        "  (a pattern behind always has to cover a rule that is shown, as a git push * covers git push origin x)",
    )
}

/// Reads a person's line.
///
/// # Errors
/// It is no answer, and why: ask again. Nothing but an explicit yes allows.
pub fn read(line: &str, always: &[String]) -> Result<ApprovalOutcome, &'static str> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (word.to_lowercase().as_str(), rest.trim()) {
        ("y" | "yes", "") => Ok(ApprovalOutcome::Once),
        ("a" | "always", pattern) => granted(always, pattern).map(|rules| ApprovalOutcome::Always { rules }),
        ("n" | "no", reason) => Ok(reject(reason)),
        ("", "") => Err("  (the call waits for an answer; Ctrl-C stops the turn)"),
        (word, _) if word.starts_with('/') => {
            Err("  (/mode NAME is taken here; other commands once the question is answered)")
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
        assert_eq!(read(" Yes \n", &[]), Ok(ApprovalOutcome::Once));
        assert_eq!(read("n not in main", &[]), Ok(reject("not in main")));
        assert_eq!(read("no", &[]), Ok(reject("")));
        for unclear in ["", "yes please", "ok", "always", "a maybe", "yn", "\u{1b}y"] {
            assert!(read(unclear, &[]).is_err(), "{unclear:?}");
        }
    }

    #[test]
    fn always_grants_the_rules_that_were_shown_or_one_that_is_written_out() {
        let always = ["bash(git push origin x)".to_owned(), "edit(src/a.rs)".to_owned()];
        let granted = |line| match read(line, &always) {
            Ok(ApprovalOutcome::Always { rules }) => rules.join(" "),
            other => format!("{other:?}"),
        };
        assert_eq!(granted("always"), "bash(git push origin x) edit(src/a.rs)");
        assert_eq!(granted("a git push origin *"), "bash(git push origin *) edit(src/a.rs)");
        assert_eq!(granted("a src/**"), "bash(git push origin x) edit(src/**)");
        for other in ["a git pull *", "a *", "a please", "a lib/**"] {
            assert!(read(other, &always).is_err(), "{other}");
        }
    }
}
