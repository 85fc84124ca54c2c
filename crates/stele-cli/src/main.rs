//! The binary `stele`: reads arguments, environment and files, and wires everything.

mod app;
mod approve;
mod args;
mod background;
mod chosen;
mod command;
mod commands;
mod config;
mod cut;
mod drive;
mod error;
mod feed;
mod front;
mod given;
mod keyboard;
mod misused;
mod output;
mod past;
mod person;
mod piped;
mod prompt;
mod render;
mod runtime;
mod schema;
mod sessions;
mod setup;
mod signals;
mod spill;
mod tally;
mod unfinished;
mod values;

use std::process::ExitCode;

use stele_core::nearest;

fn main() -> ExitCode {
    // A shell command's supervisor is this program again; it must not pay for anything below.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == setup::SUPERVISE) {
        return stele_tools::supervise(&arguments.collect::<Vec<_>>());
    }
    keep_to_itself();
    app::run()
}

/// Other processes of the same user, such as the commands of a model, cannot read this one's environment, in which the
/// providers' keys are, or its memory (`PR_SET_DUMPABLE`, prctl(2)). What it starts can be read again.
fn keep_to_itself() {
    // Where it fails nothing else does.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}
