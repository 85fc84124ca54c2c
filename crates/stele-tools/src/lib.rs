//! The built-in tools: read, write, edit, bash, glob, grep, todo, ask, jobs.
//!
//! [`builtin`] gives them in a fixed order, each behind [`stele_core::Tool`]. What a tool is told of
//! the world (environment, limits, how to ask a person, how to start the supervisor of a shell
//! command) comes in through [`Options`]; nothing here reads the environment or the configuration.
//!
//! [`supervise`] is the body of a hidden subcommand of the program: every shell command runs beneath
//! a small supervisor, so that nothing of it outlives its call or the agent unnoticed.
//!
//! **Invariant:** every result passes [`sanitise::inert`] on its way out: valid text, no NUL, no
//! escape sequence that a terminal would act on.

mod card;
mod declare;
mod document;
mod error;
mod file;
mod jobs;
mod path;
pub mod sanitise;
mod schema;
mod shell;
mod spill;
mod supervise;
mod tools;
mod walk;
mod window;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use stele_core::{Future, Tool, limits};

pub use supervise::supervise;

/// Asks a person and waits for the answer; `None` when nobody can be asked or nobody answered.
pub type Ask = Arc<dyn Fn(String) -> Future<'static, Option<String>> + Send + Sync>;

/// What the tools are told of the world.
#[derive(Clone, Default)]
pub struct Options {
    /// The agent's own environment; shell commands see an allow-listed part of it.
    pub environment: Vec<(OsString, OsString)>,
    /// Further variables that shell commands may see: a name, or a prefix ending in `*`.
    pub pass: Vec<String>,
    /// The program and leading arguments that end up in [`supervise`]. Absent: shell commands run
    /// directly beneath the agent, and what leaves their process group is not followed.
    pub supervisor: Option<Vec<OsString>>,
    /// The folder, absolute, for results that are too long to be shown: each session has one of its own in
    /// it. Absent: what is left out of a result is gone.
    pub spill: Option<PathBuf>,
    /// How a person is asked; absent when nobody can be.
    pub ask: Option<Ask>,
    /// The limits in force.
    pub limits: Limits,
}

impl Options {
    /// What names are resolved with; the home folder is the one that the environment names.
    fn roots(&self) -> path::Roots {
        let home = self.environment.iter().find(|(name, _)| name == "HOME").map(|(_, home)| PathBuf::from(home));
        path::Roots { home, spill: self.spill.clone() }
    }
}

/// The limits of the tools, in the units of [`stele_core::limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a result that the model is shown.
    pub result_bytes: usize,
    /// Lines in one window of `read`.
    pub read_lines: u64,
    /// Bytes in one window of `read`.
    pub read_bytes: usize,
    /// Milliseconds a shell command may run when the call does not say.
    pub shell_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            result_bytes: limits::RESULT_BYTES.default as usize,
            read_lines: limits::READ_LINES.default,
            read_bytes: limits::READ_BYTES.default as usize,
            shell_ms: limits::SHELL_MS.default,
        }
    }
}

/// The built-in tools, always in this order.
#[must_use]
pub fn builtin(options: &Options) -> Vec<Arc<dyn Tool>> {
    let jobs = Arc::default();
    vec![
        Arc::new(tools::read::Read::new(options)),
        Arc::new(tools::write::Write::new(options)),
        Arc::new(tools::edit::Edit::new(options)),
        Arc::new(tools::bash::Bash::new(options, &jobs)),
        Arc::new(tools::glob::Glob::new(options)),
        Arc::new(tools::grep::Grep::new(options)),
        Arc::new(tools::todo::Todo::new()),
        Arc::new(tools::ask::Ask::new(options)),
        Arc::new(tools::jobs::JobsTool::new(options, &jobs)),
    ]
}
