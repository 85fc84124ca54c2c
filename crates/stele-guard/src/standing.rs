//! How a call, or a part of one, stands with the rules.

use stele_core::Verdict;

use crate::policy::Rule;
use crate::suggest::Lack;

/// How far something is from being allowed. A later one wins over an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// It is allowed.
    Allowed,
    /// Nothing allows it; a rule or a freer mode may.
    Open,
    /// It is not certain what it does; a rule for the whole tool or the mode `full` may allow it.
    Unclear,
    /// A rule wants a person asked.
    Asked,
    /// A refusal may reach it, and that cannot be told from here.
    Doubtful,
    /// A rule refuses it.
    Denied,
}

impl Level {
    pub(crate) fn verdict(self) -> Verdict {
        match self {
            Self::Allowed => Verdict::Allow,
            Self::Open | Self::Unclear | Self::Asked | Self::Doubtful => Verdict::Ask,
            Self::Denied => Verdict::Deny,
        }
    }
}

/// The level of something, who set it and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) level: Level,
    pub(crate) by: String,
    pub(crate) reason: Option<String>,
    /// What rules would have to allow; `None` where no rule helps.
    pub(crate) lacks: Option<Vec<Lack>>,
}

impl Standing {
    pub(crate) fn new(level: Level, by: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { level, by: by.into(), reason: Some(reason.into()), lacks: None }
    }

    pub(crate) fn allowed(by: impl Into<String>) -> Self {
        Self { level: Level::Allowed, by: by.into(), reason: None, lacks: Some(Vec::new()) }
    }

    pub(crate) fn lacking(self, lacks: Vec<Lack>) -> Self {
        Self { lacks: Some(lacks), ..self }
    }

    pub(crate) fn denied(rule: &Rule) -> Self {
        Self::new(Level::Denied, rule.identity(), format!("{} is denied", rule.text()))
    }

    pub(crate) fn asked(rule: &Rule) -> Self {
        Self::new(Level::Asked, rule.identity(), format!("{} asks", rule.text()))
    }

    pub(crate) fn doubtful(rule: &Rule) -> Self {
        Self::new(Level::Doubtful, rule.identity(), format!("it may be what {} denies", rule.text()))
    }

    /// Keeps the further of both; of equals the first, but a rule rather than a built-in reason. What either lacks is
    /// lacking.
    pub(crate) fn raise(&mut self, mut other: Self) {
        self.lacks = self.lacks.take().zip(other.lacks.take()).map(|(mut lacks, more)| {
            for lack in more {
                if !lacks.contains(&lack) {
                    lacks.push(lack);
                }
            }
            lacks
        });
        let named = other.level == self.level && self.by.starts_with("builtin:") && !other.by.starts_with("builtin:");
        if other.level > self.level || named {
            *self = Self { lacks: self.lacks.take(), ..other };
        }
    }
}
