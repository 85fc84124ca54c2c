//! The built-in tools: read, write, edit, bash, glob, grep, todo, ask, jobs.
//!
//! [`builtin`] gives them in a fixed order, each behind [`stele_core::Tool`]. What a tool is told of
//! the world (environment, limits, how to ask a person, how to start the supervisor of a shell
//! command) comes in through [`Options`]; nothing here reads the environment or the configuration.
//!
//! [`supervise`] is the body of a hidden subcommand of the program: every shell command runs beneath
//! a small supervisor, so that nothing of it outlives its call or the agent unnoticed. A PDF is read there too.
//!
//! A build has what few need with a feature of the crate: `documents` (images and PDF), `symbols`, `web`.
//!
//! **Invariant:** every result passes [`sanitise::inert`] on its way out: valid text, no NUL, no
//! escape sequence that a terminal would act on.

mod announce;
mod attributes;
mod card;
pub mod change;
pub mod claim;
mod declare;
mod document;
mod error;
mod file;
mod jobs;
mod look;
pub mod names;
#[cfg(feature = "symbols")]
mod outline;
mod overwrite;
mod path;
#[cfg(feature = "documents")]
mod pdf;
mod picture;
mod preview;
mod remains;
mod replacement;
pub mod sanitise;
mod schema;
mod shell;
mod slips;
mod snapshot;
mod spill;
pub mod stands;
mod supervise;
mod tools;
pub mod tree;
mod unfinished;
mod walk;
#[cfg(feature = "web")]
mod web;
mod window;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use stele_core::{Future, Tool, limits};

pub use jobs::{JobView, Jobs};
pub use overwrite::InPlace;
pub use preview::{Preview, PreviewOptions, preview};
pub use snapshot::in_view;
pub use supervise::{leads_session, supervise};
pub use unfinished::{Unfinished, unfinished};

/// What this build can have and whether it has it, by the names of the cargo features.
pub const FEATURES: [(&str, bool); 3] = [
    ("documents", cfg!(feature = "documents")),
    ("symbols", cfg!(feature = "symbols")),
    ("web", cfg!(feature = "web")),
];

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
    /// The folder, absolute, for what is written in place, until it is safe on disk ([`unfinished`]). Absent: a power cut
    /// in the middle of that leaves a mixture of which nobody is told.
    pub unfinished: Option<PathBuf>,
    /// How a person is asked; absent when nobody can be.
    pub ask: Option<Ask>,
    /// The limits in force.
    pub limits: Limits,
    /// Tools that are offered beyond the usual ones.
    pub offer: Vec<Offer>,
    /// What the tools of the web may do.
    pub web: Web,
    /// What runs in the background; whoever passes it in can look at it.
    pub jobs: Arc<Jobs>,
    /// How the edit engine works; where paths in patches are in is not looked at.
    pub edit: stele_edit::Options,
}

/// A tool that is offered only where the configuration says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Offer {
    /// Changing many files at once, by an envelope or a unified diff.
    Patch,
    /// The tree of a folder.
    Ls,
    /// Outlines; part of the build with the feature `symbols`.
    Symbols,
    /// Fetching a page; part of the build with the feature `web`.
    WebFetch,
    /// Searching the web; part of the build with the feature `web`, and in need of [`Web::search`].
    WebSearch,
}

impl Offer {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Patch, Self::Ls, Self::Symbols, Self::WebFetch, Self::WebSearch];

    /// The tool's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Patch => "patch",
            Self::Ls => "ls",
            Self::Symbols => "symbols",
            Self::WebFetch => "web_fetch",
            Self::WebSearch => "web_search",
        }
    }

    /// The cargo feature that a build without the tool lacks.
    fn feature(self) -> Option<&'static str> {
        let feature = match self {
            Self::Patch | Self::Ls => return None,
            Self::Symbols => "symbols",
            Self::WebFetch | Self::WebSearch => "web",
        };
        FEATURES.contains(&(feature, false)).then_some(feature)
    }

    fn tool(self, options: &Options) -> Option<Arc<dyn Tool>> {
        match self {
            Self::Patch => Some(Arc::new(tools::patch::Patch::new(options))),
            Self::Ls => Some(Arc::new(tools::ls::Ls::new(options))),
            #[cfg(feature = "symbols")]
            Self::Symbols => Some(Arc::new(tools::symbols::Symbols::new(options))),
            #[cfg(feature = "web")]
            Self::WebFetch => Some(Arc::new(tools::web_fetch::WebFetch::new(options))),
            #[cfg(feature = "web")]
            Self::WebSearch => {
                let search = options.web.search.clone()?;
                Some(Arc::new(tools::web_search::WebSearch::new(options, search)))
            }
            #[cfg(not(all(feature = "symbols", feature = "web")))]
            _ => None,
        }
    }
}

impl std::str::FromStr for Offer {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|offer| offer.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("there is no tool {name:?} to offer; there are {known}")
        })?;
        match found.feature() {
            Some(feature) => {
                Err(format!("{name} is not part of this build; build it with the cargo feature {feature}"))
            }
            None => Ok(found),
        }
    }
}

/// What the tools of the web may do.
#[derive(Clone, Debug, Default)]
pub struct Web {
    /// Hosts, as `name` or `name:port`, that may be fetched by plain http and whatever their address is.
    pub trusted_hosts: Vec<String>,
    /// Where searches go.
    pub search: Option<Search>,
}

/// Where searches go.
#[derive(Clone)]
pub struct Search {
    /// How it is asked.
    pub kind: SearchKind,
    /// Its address, without the path of the search.
    pub url: String,
    /// The key, where it takes one; never shown.
    pub key: Option<String>,
}

impl std::fmt::Debug for Search {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Search").field("kind", &self.kind).field("url", &self.url).finish_non_exhaustive()
    }
}

/// How a search service is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchKind {
    /// `GET /search?format=json` (SearXNG, Search API, docs.searxng.org, 2026-11).
    Searxng,
    /// `GET /res/v1/web/search` (Brave Search API, api-dashboard.search.brave.com, 2026-11).
    Brave,
}

impl Options {
    /// What names are resolved with; the home folder is the one that the environment names.
    fn roots(&self) -> path::Roots {
        let home = self.environment.iter().find(|(name, _)| name == "HOME").map(|(_, home)| PathBuf::from(home));
        let in_place = InPlace { writer: self.supervisor.clone(), kept: self.unfinished.clone() };
        path::Roots { home, spill: self.spill.clone(), in_place }
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

/// The built-in tools, always in this order; what is offered besides comes last, in the order of [`Offer`].
#[must_use]
pub fn builtin(options: &Options) -> Vec<Arc<dyn Tool>> {
    let jobs = &options.jobs;
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(tools::read::Read::new(options)),
        Arc::new(tools::write::Write::new(options)),
        Arc::new(tools::edit::Edit::new(options)),
        Arc::new(tools::bash::Bash::new(options, jobs)),
        Arc::new(tools::glob::Glob::new(options)),
        Arc::new(tools::grep::Grep::new(options)),
        Arc::new(tools::todo::Todo::new()),
        Arc::new(tools::ask::Ask::new(options)),
        Arc::new(tools::jobs::JobsTool::new(options, jobs)),
    ];
    tools.extend(
        Offer::ALL.into_iter().filter(|offer| options.offer.contains(offer)).filter_map(|offer| offer.tool(options)),
    );
    tools
}
