//! What developers repeat: `cargo xtask bench`, `cargo xtask peers`, `cargo xtask kills`, `cargo xtask flips`.
//!
//! Everything here drives the real binary from outside, as a person or a script would, against the scripted model
//! server; what it judges by are files, processes, logs and the bytes that the server received.

mod bench;
mod binary;
mod figure;
mod flips;
mod kills;
mod peers;
mod process;
mod proxied;
mod random;
mod scripts;
mod session;
mod stage;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use stele_core::Wire;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Measure, and write bench/results.json and bench/results.md
    Bench {
        /// Only the groups whose name starts with this; may be given several times
        #[arg(long, value_name = "NAME")]
        only: Vec<String>,
        /// A binary that is there, in place of building one
        #[arg(long, value_name = "PATH")]
        stele: Option<PathBuf>,
        /// Another binary, measured in turn with the first
        #[arg(long, value_name = "PATH")]
        compare: Option<PathBuf>,
    },
    /// Kill a 12-step run everywhere, go on, and compare with a run that was left alone
    Kills {
        /// Seed of what is drawn
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
        /// The wire to speak
        #[arg(long, value_name = "WIRE", default_value = "anthropic-messages")]
        wire: Wire,
        /// A binary that is there, in place of building one
        #[arg(long, value_name = "PATH")]
        stele: Option<PathBuf>,
    },
    /// Flip a bit in each record and each blob of a session in turn; `verify` has to name each
    Flips {
        /// Seed of what is drawn
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
        /// A binary that is there, in place of building one
        #[arg(long, value_name = "PATH")]
        stele: Option<PathBuf>,
    },
    /// Run the same task through Stele and other agents, and write bench/peers.json and bench/peers.md
    Peers {
        /// A folder with agents' programs, before those of PATH; may be given several times
        #[arg(long, value_name = "DIR")]
        path: Vec<PathBuf>,
        /// Only the agents whose name starts with this; may be given several times
        #[arg(long, value_name = "NAME")]
        only: Vec<String>,
        /// Further sessions that times are taken from
        #[arg(long, value_name = "N", default_value_t = 3)]
        runs: usize,
        /// A binary of Stele that is there, in place of building one
        #[arg(long, value_name = "PATH")]
        stele: Option<PathBuf>,
    },
    /// Run a command and write its peak memory in KiB to a file (used by `bench`)
    #[command(hide = true)]
    Peak {
        /// The file
        file: PathBuf,
        /// The command
        #[arg(required = true, last = true)]
        command: Vec<std::ffi::OsString>,
    },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Bench { only, stele, compare } => bench::main(&only, stele, compare),
        Task::Kills { seed, wire, stele } => binary::find(stele).and_then(|stele| kills::main(&stele, seed, wire)),
        Task::Flips { seed, stele } => binary::find(stele).and_then(|stele| flips::main(&stele, seed)),
        Task::Peers { path, only, runs, stele } => {
            binary::find(stele).and_then(|stele| peers::main(&stele, &peers::Wanted { folders: path, only, runs }))
        }
        Task::Peak { file, command } => return process::peak(&file, &command),
    };
    match done {
        Ok(exit) => exit,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Writes a line for whoever started this. Nobody reading is no error.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// 0 when everything is as it should be, else 1.
fn exit_code(good: bool) -> ExitCode {
    ExitCode::from(u8::from(!good))
}

/// The folder of the workspace.
fn workspace() -> Result<PathBuf> {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    own.parent().map(PathBuf::from).ok_or_else(|| anyhow::anyhow!("the workspace's folder is gone"))
}
