//! `cargo xtask peers`: the same scripted task through Stele and through every other agent that is installed, all
//! through the proxy against the scripted server; one table.

mod adapters;
mod outcome;
mod scene;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

use adapters::{ADAPTERS, Adapter};
use table::Peers;

/// What the person asked for.
pub struct Wanted {
    /// Folders to look for programs in, before those of `PATH`.
    pub folders: Vec<PathBuf>,
    /// Agents, by the start of their name; all when empty.
    pub only: Vec<String>,
    /// Further sessions that times are taken from.
    pub runs: usize,
}

/// Runs every agent that is there, and writes `bench/peers.json` and `bench/peers.md`.
pub fn main(stele: &Path, wanted: &Wanted) -> Result<ExitCode> {
    let folder = crate::workspace()?.join("bench");
    // What is not run now stays as it was.
    let mut peers = Peers::kept(&folder).unwrap_or_default();
    peers.version = env!("CARGO_PKG_VERSION").to_owned();
    peers.drop_others(|name| ADAPTERS.iter().any(|adapter| adapter.name == name && !is_wanted(adapter, &wanted.only)));
    for adapter in ADAPTERS.iter().filter(|adapter| is_wanted(adapter, &wanted.only)) {
        let program =
            if adapter.name == "Stele" { Some(stele.to_owned()) } else { adapters::find(adapter, &wanted.folders) };
        let Some(program) = program else {
            peers.missing.push(adapter.name.to_owned());
            continue;
        };
        for wire in adapter.wires {
            crate::say(&format!("running {} over {wire}", adapter.name));
            match outcome::of(stele, adapter, &program, *wire, wanted.runs) {
                Ok(outcome) => peers.outcomes.push(outcome),
                Err(error) => {
                    crate::say(&format!("✗ {} over {wire}: {error:#}", adapter.name));
                    // What was said is of that machine; the table only says that it failed.
                    peers.failed.push(format!("{} over {wire}", adapter.name));
                }
            }
            // One after the other, so that a run that is broken off has lost only the last one.
            peers.keep(&folder)?;
        }
    }
    peers.sort_by(|name| ADAPTERS.iter().position(|adapter| adapter.name == name));
    peers.keep(&folder)?;
    crate::say(&peers.markdown());
    Ok(crate::exit_code(peers.failed.is_empty()))
}

fn is_wanted(adapter: &Adapter, only: &[String]) -> bool {
    let name = adapter.name.to_lowercase();
    only.is_empty() || only.iter().any(|start| name.starts_with(&start.to_lowercase()))
}
