//! The commands about logs.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::values::{self, NotedHead};

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct SessionsArgs {
    /// What to do; without it, they are listed.
    #[command(subcommand)]
    pub command: Option<SessionsCommand>,
    #[command(flatten)]
    pub list: SessionList,
}

#[derive(Args, Clone, Copy, Debug)]
pub struct SessionList {
    /// Only those of this folder
    #[arg(long)]
    pub here: bool,
    /// At most so many
    #[arg(short = 'n', long, value_name = "N", default_value = "20")]
    pub limit: u32,
    /// One JSON line a session
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// The sessions, the last used first
    List(SessionList),
    /// What was said and done in a session
    Show {
        /// The session; the start of its id is enough; the latest one of this folder when it is left out
        id: Option<String>,
        /// What happened when, and what it cost
        #[arg(long)]
        timeline: bool,
        /// Commands and results whole, not only their ends
        #[arg(long, conflicts_with_all = ["timeline", "json"])]
        full: bool,
        /// One JSON line a record, or a row of the timeline
        #[arg(long)]
        json: bool,
    },
    /// Find a session by what was said in it
    Search {
        /// Words; one record, or the title, has to have all of them
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
    /// The session; the start of its id is enough; the latest one of this folder when it is left out
    #[arg(conflicts_with = "all")]
    pub id: Option<String>,
    /// Every session
    #[arg(long)]
    pub all: bool,
    /// The head as it was noted elsewhere, now or earlier: "101 HASH", or the hash alone
    #[arg(long, value_name = "HEAD", conflicts_with = "all", value_parser = values::noted_head)]
    pub expect: Option<NotedHead>,
    /// One JSON line a session
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// What was read from the cache and what was not, request by request
    Report {
        /// The session; the start of its id is enough; the latest one of this folder when it is left out
        #[arg(conflicts_with_all = ["all", "since", "by"])]
        id: Option<String>,
        /// Sums over all sessions
        #[arg(long)]
        all: bool,
        /// Sums over what was sent in this last time, such as 24h
        #[arg(long, value_name = "TIME", value_parser = values::duration)]
        since: Option<Duration>,
        /// What the sums are by; sums over all sessions, unless --since says otherwise [default: session]
        #[arg(long, value_name = "WHAT")]
        by: Option<SumBy>,
        /// The vendor whose cache works like this server's
        #[arg(long, value_name = "NAME")]
        rules: Option<String>,
        /// JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Why a request read less than it could have
    Explain {
        /// The session; the start of its id is enough; the latest one of this folder when it is left out
        id: Option<String>,
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
        /// The session; the start of its id is enough; the latest one of this folder when it is left out
        id: Option<String>,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SumBy {
    #[default]
    Session,
    /// Where the person is.
    Day,
    /// The folder.
    Project,
    Model,
}
