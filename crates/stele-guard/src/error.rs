//! Errors of this crate.

use std::path::PathBuf;

/// Why a rule or a workspace cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The rule is not `tool` or `tool(pattern)`.
    #[error(
        "rule.syntax: {rule:?} is no rule: {detail}; write `tool` or `tool(pattern)`, such as `bash(cargo test *)`"
    )]
    Syntax {
        /// The rule as it was written.
        rule: String,
        /// What is wrong with it.
        detail: String,
    },
    /// No tool has this name.
    #[error("rule.tool: {rule:?} names no tool; {}", nearest.map_or_else(tools, |name| format!("did you mean `{name}`?")))]
    Tool {
        /// The rule as it was written.
        rule: String,
        /// The known tool whose name is close to it, if there is one.
        nearest: Option<&'static str>,
    },
    /// The pattern is not one that this tool's rules understand.
    #[error("rule.pattern: {rule:?} has a pattern that cannot be used: {detail}")]
    Pattern {
        /// The rule as it was written.
        rule: String,
        /// What is wrong and what to write.
        detail: String,
    },
    /// The workspace's folder cannot be resolved.
    #[error("guard.workspace: cannot resolve the folder {}: {source}; start stele in a folder that exists", path.display())]
    Workspace {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl Error {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Syntax { .. } => "rule.syntax",
            Self::Tool { .. } => "rule.tool",
            Self::Pattern { .. } => "rule.pattern",
            Self::Workspace { .. } => "guard.workspace",
        }
    }
}

fn tools() -> String {
    let names: Vec<&str> = crate::policy::tools().collect();
    format!("the tools are {}", names.join(", "))
}
