//! The command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use stele_core::{Hash, Micros, Mode};

use crate::values;

/// The first screen: one line for each command that exists.
const HELP: &str = "\
Stele: a coding agent whose log can be proved.

Usage: stele [OPTIONS] [PROMPT]     talk with the agent in this folder
       stele COMMAND --help         options of a command

Work       run, demo    one prompt in, an answer out; a show without a key
           edit, patch  change files by an edit in any form, from standard input
           undo         take the last turn back: its files, its conversation
Logs       sessions     list, show, search, export, import, rm, gc
           verify       prove that the log holds every byte the model saw
           cache        how the provider's prompt cache was used
           proxy        what any other agent does to it: recorded, explained
Set up     models       known models, routes and prices
           probe        what an endpoint takes and reports, found out
           config       what is set here, and by whom
           doctor       what is wrong here
           completions  completions for a shell

Options:   -c, --continue       go on with the latest session of this folder
           -r, --resume ID      go on with a session (the start of its id)
           -m, --model NAME     a model, a route, or ROUTE/MODEL
               --mode MODE      ask, edit or full: what needs no question
           -C, --cwd DIR        work in this folder
               --color WHEN     auto, always, never  -h, --help  -V, --version
";

/// A coding agent whose log can be proved.
#[derive(Debug, Parser)]
#[command(name = "stele", version, override_help = HELP, disable_help_subcommand = true, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,

    #[command(flatten)]
    pub session: SessionArgs,

    /// The first prompt.
    pub prompt: Option<OsString>,

    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Args, Clone, Debug, Default)]
pub struct Global {
    /// Work in this folder
    #[arg(short = 'C', long, value_name = "DIR", global = true)]
    pub cwd: Option<PathBuf>,

    /// When to use colours
    #[arg(long, value_name = "WHEN", global = true, default_value = "auto")]
    pub color: ColorChoice,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb
    #[default]
    Auto,
    Always,
    Never,
}

/// Which session, and how it goes on.
#[derive(Args, Clone, Debug, Default)]
pub struct SessionArgs {
    /// Go on with the latest session of this folder
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["resume", "fork"])]
    pub continue_latest: bool,

    /// Go on with this session; the start of its id is enough
    #[arg(short = 'r', long, value_name = "ID", conflicts_with = "fork", group = "existing")]
    pub resume: Option<String>,

    /// Go on with a copy of this session
    #[arg(long, value_name = "ID", group = "existing")]
    pub fork: Option<String>,

    /// With --resume or --fork: from now on it works in this folder, although its own is still there
    #[arg(long = "move", conflicts_with = "continue_latest", requires = "existing")]
    pub move_here: bool,

    /// A model, a route, or ROUTE/MODEL
    #[arg(short, long, value_name = "NAME")]
    pub model: Option<String>,

    /// What needs no question: ask (reading), edit (also editing here), full (everything)
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub mode: Option<Mode>,

    /// Allow what this rule covers, such as 'bash(cargo test*)'; may be given several times
    #[arg(long, value_name = "RULE")]
    pub allow: Vec<String>,

    /// Refuse what this rule covers, whatever else allows it; may be given several times
    #[arg(long, value_name = "RULE")]
    pub deny: Vec<String>,

    #[command(flatten)]
    pub limits: LimitArgs,
}

impl SessionArgs {
    /// True when any of them was given.
    pub fn is_given(&self) -> bool {
        self.continue_latest
            || self.move_here
            || !self.allow.is_empty()
            || !self.deny.is_empty()
            || self.mode.is_some()
            || [&self.resume, &self.fork, &self.model].into_iter().any(Option::is_some)
            || self.limits.is_given()
    }
}

fn parse_mode(text: &str) -> Result<Mode, String> {
    text.parse()
}

/// What bounds a turn.
#[derive(Args, Clone, Debug, Default)]
pub struct LimitArgs {
    /// Model requests answered in one turn
    #[arg(long, value_name = "N", value_parser = values::steps)]
    pub max_steps: Option<u64>,

    /// Tokens in one turn, input and output
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,

    /// US dollars in the whole session
    #[arg(long, value_name = "USD", value_parser = values::money, allow_hyphen_values = true)]
    pub max_cost: Option<Micros>,

    /// With --max-cost: also use a model whose price is not known
    #[arg(long, requires = "max_cost")]
    pub allow_unpriced: bool,

    /// Time for the whole run, such as 90s or 5m
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub timeout: Option<Duration>,
}

impl LimitArgs {
    fn is_given(&self) -> bool {
        self.allow_unpriced
            || self.max_cost.is_some()
            || self.timeout.is_some()
            || [self.max_steps, self.max_tokens].into_iter().any(|limit| limit.is_some())
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// One prompt in, an answer out
    Run(RunArgs),
    /// Watch it fix a failing test; no key, no network
    Demo(DemoArgs),
    /// Edit a file by standard input: edits, blocks, a diff, sed, in any form
    Edit(EditArgs),
    /// Apply a patch over many files from standard input, all of it or nothing
    Patch(PatchArgs),
    /// Take the last turn of a session back: its files, and its part of the conversation
    Undo(UndoArgs),
    /// The logs
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Prove that the log holds every byte the model saw
    Verify(VerifyArgs),
    /// How the provider's prompt cache was used
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Stand before any agent's provider, and record and explain its requests
    Proxy(ProxyArgs),
    /// Known models, routes and prices
    Models(ListArgs),
    /// Find out what an endpoint takes and reports; asks before it sends anything
    Probe(ProbeArgs),
    /// What is set here, and by whom
    Config(ConfigArgs),
    /// What is wrong here
    Doctor(ListArgs),
    /// Completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Args, Clone, Debug, Default)]
pub struct RunArgs {
    /// What to do; `-` reads it from standard input
    pub prompt: Option<OsString>,

    #[command(flatten)]
    pub session: SessionArgs,

    #[command(flatten)]
    pub output: OutputArgs,

    /// Answer with JSON that matches this schema
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,

    /// How standard input is read: one prompt, or one JSON line {"prompt": "…"} after another
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub input_format: InputFormat,
}

#[derive(Args, Clone, Debug, Default)]
pub struct OutputArgs {
    /// One record a line, then one line with the result
    #[arg(long)]
    pub json: bool,

    /// With --json: also pieces of answers as they arrive
    #[arg(long, requires = "json")]
    pub deltas: bool,

    /// Only the answer and errors
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    #[default]
    Text,
    Jsonl,
}

#[derive(Args, Clone, Debug, Default)]
pub struct DemoArgs {
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Args, Clone, Debug)]
pub struct EditArgs {
    /// The file; standard input is the edit
    pub path: OsString,

    #[command(flatten)]
    pub output: EditOutput,
}

#[derive(Args, Clone, Debug)]
pub struct PatchArgs {
    #[command(flatten)]
    pub output: EditOutput,
}

#[derive(Args, Clone, Debug, Default)]
pub struct EditOutput {
    /// One JSON line about what became of it
    #[arg(long)]
    pub json: bool,

    /// Only say what would be changed
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Args, Clone, Debug)]
pub struct UndoArgs {
    /// The session; the start of its id is enough; the latest one of this folder when it is left out
    pub id: Option<String>,

    /// Do the turn again that was taken back last
    #[arg(long)]
    pub redo: bool,

    /// Also replace files that were changed since
    #[arg(long)]
    pub overwrite: bool,

    /// Only list the turns and what they changed
    #[arg(long, conflicts_with_all = ["redo", "overwrite"])]
    pub list: bool,

    /// One JSON line about what was done, or a turn
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// The sessions, the last used first
    List {
        /// Only those of this folder
        #[arg(long)]
        here: bool,
        /// At most so many
        #[arg(short = 'n', long, value_name = "N", default_value = "20")]
        limit: u32,
        /// One JSON line a session
        #[arg(long)]
        json: bool,
    },
    /// What was said and done in a session
    Show {
        /// The session; the start of its id is enough
        id: String,
        /// What happened when, and what it cost
        #[arg(long)]
        timeline: bool,
        /// One JSON line a record, or a row of the timeline
        #[arg(long)]
        json: bool,
    },
    /// Find a session by what was said in it
    Search {
        /// Words; all of them have to occur
        #[arg(required = true)]
        query: Vec<String>,
        /// At most so many
        #[arg(short = 'n', long, value_name = "N", default_value = "20")]
        limit: u32,
        /// One JSON line a hit
        #[arg(long)]
        json: bool,
    },
    /// Write a session to a file, or to standard output
    Export {
        /// The session; the start of its id is enough
        id: String,
        /// The file
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Take in an exported session, also a damaged one
    Import {
        /// The file; `-` for standard input
        file: PathBuf,
        /// A JSON line about what was taken in
        #[arg(long)]
        json: bool,
    },
    /// Remove sessions
    Rm {
        /// The sessions; the start of an id is enough
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Give back the space that nothing needs any more
    Gc {
        /// Only say what would be removed
        #[arg(long)]
        dry_run: bool,
        /// A JSON line about what was removed
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// The session; the start of its id is enough
    #[arg(conflicts_with = "all")]
    pub id: Option<String>,
    /// Every session
    #[arg(long)]
    pub all: bool,
    /// The hash of the head as it was noted elsewhere
    #[arg(long, value_name = "HASH", conflicts_with = "all")]
    pub expect: Option<Hash>,
    /// One JSON line a session
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// What was read from the cache and what was not, request by request
    Report {
        /// The session; the start of its id is enough
        #[arg(conflicts_with_all = ["all", "since", "by"])]
        id: Option<String>,
        /// Sums over all sessions
        #[arg(long)]
        all: bool,
        /// Sums over what was sent in this last time, such as 24h
        #[arg(long, value_name = "TIME", value_parser = values::duration)]
        since: Option<Duration>,
        /// What the sums are by
        #[arg(long, value_name = "WHAT", default_value = "session")]
        by: SumBy,
        /// The vendor whose cache works like this server's
        #[arg(long, value_name = "NAME")]
        rules: Option<String>,
        /// JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Why a request read less than it could have
    Explain {
        /// The session; the start of its id is enough
        id: String,
        /// The request's number in the report; without it, the last one that missed
        request: Option<u64>,
        /// The vendor whose cache works like this server's
        #[arg(long, value_name = "NAME")]
        rules: Option<String>,
        /// A JSON line
        #[arg(long)]
        json: bool,
    },
    /// The same requests under another vendor's cache and prices; an estimate
    Simulate {
        /// The session; the start of its id is enough
        id: String,
        /// The vendor
        #[arg(long, value_name = "NAME")]
        vendor: String,
        /// The model whose price counts; without it, the vendor's default
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
        /// A JSON line
        #[arg(long)]
        json: bool,
    },
}

/// What sums are by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SumBy {
    Session,
    /// Where the person is.
    Day,
    /// The folder.
    Project,
    Model,
}

#[derive(Args, Debug)]
#[command(subcommand_negates_reqs = true)]
pub struct ProxyArgs {
    #[command(subcommand)]
    pub command: Option<ProxyCommand>,

    #[command(flatten)]
    pub serve: ServeArgs,

    /// JSON lines
    #[arg(long, global = true)]
    pub json: bool,
}

/// How requests are forwarded.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// The server: a vendor's name, or a base URL as that server's own SDK takes it
    #[arg(long, value_name = "NAME|URL", required = true)]
    pub to: Option<String>,

    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:8787]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,

    /// Let other machines connect, which can then read and send requests
    #[arg(long)]
    pub allow_remote: bool,

    /// Run this with its base URLs set, and end when it ends
    #[arg(last = true, value_name = "COMMAND")]
    pub run: Vec<OsString>,
}

impl ServeArgs {
    /// True when any of them was given.
    pub fn is_given(&self) -> bool {
        self.to.is_some() || self.listen.is_some() || self.allow_remote || !self.run.is_empty()
    }
}

#[derive(Debug, Subcommand)]
pub enum ProxyCommand {
    /// What was read from the cache and what was not, by conversation
    Report {
        /// Only what was sent in this last time, such as 2h
        #[arg(long, value_name = "TIME", value_parser = values::duration)]
        since: Option<Duration>,
        /// The vendor whose cache works like this server's
        #[arg(long, value_name = "NAME")]
        rules: Option<String>,
    },
    /// Why a request read less than it could have
    Explain {
        /// The request's number in the report; without it, the last one that missed
        id: Option<u64>,
        /// The vendor whose cache works like this server's
        #[arg(long, value_name = "NAME")]
        rules: Option<String>,
    },
    /// The same requests under another vendor's cache and prices; an estimate
    Simulate {
        /// The vendor
        #[arg(long, value_name = "NAME")]
        vendor: String,
        /// The model whose price counts; without it, the vendor's default
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
        /// Only what was sent in this last time, such as 2h
        #[arg(long, value_name = "TIME", value_parser = values::duration)]
        since: Option<Duration>,
    },
    /// Forget what was recorded before, and give its space back
    Gc {
        /// Keep what was sent in this last time, such as 48h
        #[arg(long, value_name = "TIME", value_parser = values::duration)]
        keep: Duration,
    },
}

#[derive(Args, Debug)]
pub struct ProbeArgs {
    /// A route, a model, or ROUTE/MODEL
    #[arg(value_name = "ROUTE", required_unless_present = "list")]
    pub route: Option<String>,
    /// Only show what is known already
    #[arg(long, conflicts_with = "yes")]
    pub list: bool,
    /// Send the requests without asking
    #[arg(short, long)]
    pub yes: bool,
    /// JSON lines
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ListArgs {
    /// One JSON line an entry
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ConfigArgs {
    /// Every key with its value and what set it (the default)
    #[arg(long)]
    pub effective: bool,
    /// What this key is for, what set it, and what was set below
    #[arg(long, value_name = "KEY", conflicts_with = "effective")]
    pub explain: Option<String>,
    /// One JSON line a key
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_first_screen_fits_and_lists_what_exists_and_nothing_else() {
        assert!(HELP.lines().count() <= 24, "{}", HELP.lines().count());
        assert!(HELP.lines().all(|line| line.chars().count() <= 80), "{HELP}");
        let listed: Vec<&str> = HELP
            .lines()
            .skip_while(|line| !line.starts_with("Work"))
            .take_while(|line| !line.is_empty())
            .filter_map(|line| line.get(11..23))
            .flat_map(|names| names.split([',', ' ']).filter(|name| !name.is_empty()))
            .collect();
        let command = Cli::command();
        let there: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        assert_eq!(listed, there);
    }

    #[test]
    fn options_stand_before_and_after_a_command() {
        let cli = Cli::try_parse_from(["stele", "--color", "never", "run", "-C", "/tmp", "do it"]).unwrap();
        assert_eq!(cli.global.cwd, Some(PathBuf::from("/tmp")));
        assert!(matches!(cli.command, Some(Command::Run(RunArgs { prompt: Some(_), .. }))));
    }

    #[test]
    fn one_session_at_a_time() {
        assert!(Cli::try_parse_from(["stele", "run", "--continue", "--resume", "ab"]).is_err());
        assert!(Cli::try_parse_from(["stele", "run", "--allow-unpriced", "x"]).is_err());
        assert!(Cli::try_parse_from(["stele", "run", "--max-steps", "0", "x"]).is_err());
        assert!(Cli::try_parse_from(["stele", "run", "--move", "x"]).is_err());
        assert!(Cli::try_parse_from(["stele", "--move"]).is_err());
        for existing in ["--resume", "--fork"] {
            assert!(Cli::try_parse_from(["stele", "run", existing, "ab", "--move", "x"]).is_ok());
        }
    }
}
