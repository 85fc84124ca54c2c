//! Which session, and what bounds its turns.

use std::time::Duration;

use clap::Args;
use stele_core::{Micros, Mode};

use crate::values;

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

    /// Allow what this rule covers, such as 'bash(cargo test *)'; may be given several times
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
