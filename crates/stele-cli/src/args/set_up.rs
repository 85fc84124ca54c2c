//! The commands about what is set up here.

use clap::Args;

#[derive(Args, Debug)]
pub struct ProbeArgs {
    /// A route, a model, or ROUTE/MODEL; may be left out where there is one route
    #[arg(value_name = "ROUTE")]
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

#[derive(Args, Debug)]
pub struct ListArgs {
    /// One JSON line an entry
    #[arg(long)]
    pub json: bool,
}
