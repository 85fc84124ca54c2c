//! The verdict on a call.

use stele_core::{Call, CallDecision, Effects, Mode, Subject, Verdict};

use crate::judge::Judge;
use crate::paths::Workspace;
use crate::policy::{Access, Layer, Policy};
use crate::repository::Programs;
use crate::shell;
use crate::standing::{Level, Standing};
use crate::suggest::{self, Lack, RULES_MAX, Width};

/// Says whether a call runs, asks a person or is refused, and which rules would let it run.
///
/// Looks at the file system to resolve links and to read the configuration of repositories that git would be run in, and
/// at nothing else.
#[must_use]
pub fn decide(call: &Call, mode: Mode, policy: &Policy, workspace: &Workspace) -> CallDecision {
    let case = Case::new(call, mode, workspace);
    let standing = case.stand(policy);
    let verdict = standing.level.verdict();
    let suggested = |layer, width| match verdict {
        Verdict::Ask => suggest::rules(&case, policy, standing.clone(), (layer, width)),
        Verdict::Allow | Verdict::Deny => Vec::new(),
    };
    let always = suggested(Layer::Session, Width::Exact);
    let settled_with = suggested(Layer::Flag, Width::Narrowest);
    let uncertain = standing.lacks.iter().flatten().find_map(Lack::uncertain).filter(|_| verdict == Verdict::Ask);
    let many = standing.lacks.as_ref().is_some_and(|lacks| lacks.len() > RULES_MAX);
    let reason = match standing.reason {
        Some(reason) if many && settled_with.is_empty() => {
            Some(format!("{reason}, and {RULES_MAX} rules would not be enough for all that it does"))
        }
        Some(reason) if always.is_empty() => match uncertain {
            Some(part) => Some(format!("{reason}; what `{part}` does is only known when it runs")),
            None => Some(reason),
        },
        reason => reason,
    };
    CallDecision { verdict, by: standing.by, reason, always, settled_with }
}

/// The same without the rules that would let it run, which take a judgement each to be found.
#[must_use]
pub fn verdict(call: &Call, mode: Mode, policy: &Policy, workspace: &Workspace) -> Verdict {
    Case::new(call, mode, workspace).stand(policy).level.verdict()
}

/// A call and what it is judged in, whatever the policy.
pub(crate) struct Case<'a> {
    call: &'a Call,
    mode: Mode,
    pub(crate) workspace: &'a Workspace,
    programs: Programs<'a>,
}

impl<'a> Case<'a> {
    fn new(call: &'a Call, mode: Mode, workspace: &'a Workspace) -> Self {
        Self { call, mode, workspace, programs: Programs::new(workspace) }
    }

    /// Where the call stands with the rules and the mode.
    pub(crate) fn stand(&self, policy: &Policy) -> Standing {
        let Self { call, mode, workspace, ref programs } = *self;
        let tool = call.tool.as_str();
        let judge = Judge { policy, mode, workspace, tool, programs };
        let mut standing = Standing::allowed(crate::READ_ONLY);

        if let Some(rule) = policy.denies().iter().find(|rule| rule.is_whole_tool(tool)) {
            standing.raise(Standing::denied(rule));
        }
        let whole = policy.allows().iter().find(|rule| rule.is_whole_tool(tool));
        let granted = policy.allows().iter().any(|rule| rule.layer() == Layer::Session && rule.is_whole_tool(tool));
        if let Some(rule) = policy.asks().iter().find(|rule| rule.is_whole_tool(tool) && !granted) {
            standing.raise(Standing::new(Level::Asked, rule.identity(), format!("{} asks", rule.text())));
        }

        let mut changes = false;
        for subject in &call.subjects {
            match subject {
                Subject::Command(text) => {
                    changes = true;
                    standing.raise(judge.command_line(&shell::parse(text)));
                }
                Subject::Read(path) => standing.raise(judge.named(Access::Read, path)),
                Subject::Write(path) => {
                    changes = true;
                    standing.raise(judge.named(Access::Write, path));
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
        standing
    }
}
