//! `stele completions`: completions for a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::error::Result;
use crate::output;

/// Writes the completions to standard output.
pub fn main(shell: Shell) -> Result<u8> {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "stele", &mut bytes);
    output::print(&String::from_utf8_lossy(&bytes))?;
    Ok(0)
}
