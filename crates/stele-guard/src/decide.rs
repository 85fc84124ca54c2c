//! The verdict on a call.

use stele_core::{Call, CallDecision, Effects, Mode, Subject, Verdict};

use crate::judge::{Judge, Level, Standing};
use crate::paths::Workspace;
use crate::policy::{Access, Layer, Policy};
use crate::{shell, suggest};

/// Says whether a call runs, asks a person or is refused.
///
/// Looks at the file system to resolve links, and at nothing else.
#[must_use]
pub fn decide(call: &Call, mode: Mode, policy: &Policy, workspace: &Workspace) -> CallDecision {
    let tool = call.tool.as_str();
    let judge = Judge { policy, mode, workspace, tool };
    let mut standing = Standing::allowed(crate::READ_ONLY);

    if let Some(rule) = policy.denies().iter().find(|rule| rule.is_whole_tool(tool)) {
        standing.raise(Standing::denied(rule));
    }
    let whole = policy.allows().iter().find(|rule| rule.is_whole_tool(tool));
    let granted = policy.allows().iter().any(|rule| rule.layer() == Layer::Session && rule.is_whole_tool(tool));
    if let Some(rule) = policy.asks().iter().find(|rule| rule.is_whole_tool(tool) && !granted) {
        standing.raise(Standing::new(Level::Asked, rule.identity(), format!("{} asks", rule.text())));
    }

    let mut suggestion = None;
    let mut changes = false;
    for subject in &call.subjects {
        match subject {
            Subject::Command(text) => {
                changes = true;
                let script = shell::parse(text);
                standing.raise(judge.command_line(&script));
                suggestion = suggest::command(&script);
            }
            Subject::Read(path) => {
                standing.raise(judge.path(Access::Read, path));
                // Tools open the one name that looks like one that does not exist.
                if let Some(real) = workspace.look_alike(path) {
                    standing.raise(judge.path(Access::Read, &real));
                }
                suggestion = suggest::path(Access::Read, tool, path, workspace);
            }
            Subject::Write(path) => {
                changes = true;
                standing.raise(judge.path(Access::Write, path));
                if let Some(real) = workspace.look_alike(path) {
                    standing.raise(judge.path(Access::Write, &real));
                }
                suggestion = suggest::path(Access::Write, tool, path, workspace);
            }
        }
    }
    if !changes && call.effects != Effects::None {
        let reason = format!("{tool} changes something that it does not name");
        standing.raise(Standing::new(Level::Open, format!("mode:{mode}"), reason));
    }

    if mode == Mode::Full && (Level::Open..=Level::Asked).contains(&standing.level) {
        standing = Standing::allowed("mode:full");
    } else if let Some(rule) = whole.filter(|_| (Level::Open..=Level::Unclear).contains(&standing.level)) {
        standing = Standing::allowed(rule.identity());
    }
    let verdict = match standing.level {
        Level::Allowed => Verdict::Allow,
        Level::Open | Level::Unclear | Level::Asked | Level::Doubtful => Verdict::Ask,
        Level::Denied => Verdict::Deny,
    };
    // A grant answers what nothing allows and what a rule asks about, never what is unclear.
    let always =
        suggestion.filter(|_| call.subjects.len() == 1 && matches!(standing.level, Level::Open | Level::Asked));
    CallDecision { verdict, by: standing.by, reason: standing.reason, always }
}
