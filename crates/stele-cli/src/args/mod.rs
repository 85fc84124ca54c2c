//! The command line: the first screen here, the options of each group of commands in a file of its own.

mod logs;
mod proxy;
mod session;
mod set_up;
mod work;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub use logs::{CacheCommand, SessionList, SessionsArgs, SessionsCommand, SumBy, VerifyArgs};
pub use proxy::{ProxyArgs, ProxyCommand, ServeArgs};
pub use session::{LimitArgs, SessionArgs};
pub use set_up::{ConfigArgs, ListArgs, ProbeArgs};
pub use work::{DemoArgs, EditArgs, EditOutput, InputFormat, OutputArgs, PatchArgs, RunArgs, UndoArgs};

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
           -r, --resume ID      go on with a session; --fork ID: with a copy
           -m, --model NAME     a model, a route, or ROUTE/MODEL
               --mode MODE      ask, edit or full: what needs no question
           -C, --cwd DIR        work in this folder; --move: so does the session
               --version; --allow, --deny, --max-cost …: as in stele run --help
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
    Sessions(SessionsArgs),
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
