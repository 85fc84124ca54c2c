//! Starting a shell command and following it to its end.

pub(crate) mod environment;
pub(crate) mod output;
mod run;

pub(crate) use run::{Command, End, Outcome, run};
