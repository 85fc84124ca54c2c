//! `stele proxy` and its own commands.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::values;

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
