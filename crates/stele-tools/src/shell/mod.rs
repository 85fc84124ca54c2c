//! Starting a shell command and following it to its end.

pub(crate) mod environment;
mod output;
mod run;
mod status;

pub(crate) use output::Output;
pub(crate) use run::{Command, End, Follow, Outcome, lock, run};
pub(crate) use status::status;
