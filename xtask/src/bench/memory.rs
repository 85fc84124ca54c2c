//! Peak memory of a short and of a long run.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Result, bail};
use stele_core::Wire;

use crate::figure::{Bar, Figure};
use crate::process::peak_of;
use crate::scripts;
use crate::stage::Stage;

const RUNS: usize = 5;
/// Turns of the long run, and steps in each: together 1,000.
pub const TURNS: usize = 5;
pub const STEPS: usize = 200;

pub fn run(stele: &Path) -> Result<Vec<Figure>> {
    let stage = Stage::new(stele, Wire::AnthropicMessages, scripts::read_only(12))?;
    let short: Vec<f64> = (0..RUNS)
        .map(|_| Ok(peak_of(&stage.run(&[scripts::PROMPT]), Stdio::null(), stage.root())? as f64 * 1024.0 / 1e6))
        .collect::<Result<_>>()?;
    let stage = Stage::new(stele, Wire::AnthropicMessages, scripts::turns_of_reading(TURNS, STEPS))?;
    let prompts = prompts(&stage)?;
    let long = peak_of(&stage.run(&["--input-format", "jsonl"]), prompts, stage.root())? as f64 * 1024.0 / 1e6;
    let requests = stage.server.requests().len();
    if requests != TURNS * STEPS {
        bail!("the long run sent {requests} requests where {} were expected", TURNS * STEPS);
    }
    Ok(vec![
        Figure::of("memory", "peak of 12 steps", "MB", &short, "ru_maxrss of the process").bar(Bar::Most(20.0)),
        Figure::of(
            "memory",
            "peak of 1,000 steps",
            "MB",
            &[long],
            "the same; five prompts of 200 steps in one process",
        )
        .bar(Bar::Most(60.0)),
    ])
}

/// Standard input with a prompt for each turn.
pub fn prompts(stage: &Stage) -> Result<Stdio> {
    let path = stage.root().join("prompts");
    let mut file = std::fs::File::create(&path)?;
    for turn in 1..=TURNS {
        writeln!(file, "{{\"prompt\": \"Read on, part {turn}.\"}}")?;
    }
    Ok(std::fs::File::open(path)?.into())
}
