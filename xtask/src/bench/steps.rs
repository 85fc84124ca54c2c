//! What a step costs, and whether the harness starts programs of its own.

use std::path::Path;

use anyhow::{Context, Result, bail};
use stele_core::Wire;
use stele_testkit::{Say, Script};

use super::ms;
use crate::figure::{Bar, Figure};
use crate::scripts;
use crate::stage::Stage;

const RUNS: usize = 15;
const STEPS: usize = 12;

pub fn run(stele: &Path) -> Result<Vec<Figure>> {
    let (mut walls, mut cpus) = (Vec::new(), Vec::new());
    let stage = Stage::new(stele, Wire::AnthropicMessages, scripts::read_only(STEPS))?;
    for round in 0..=RUNS {
        let earlier = stage.server.requests().len();
        let measured = stage.measure(&mut stage.run(&[scripts::PROMPT]))?;
        let requests = stage.server.requests();
        let [first, .., last] = requests.get(earlier..).context("no request arrived")? else {
            bail!("the run sent too few requests");
        };
        if requests.len() - earlier != STEPS {
            bail!("the run sent {} requests where {STEPS} were expected", requests.len() - earlier);
        }
        if round > 0 {
            walls.push(ms(last.at - first.at) / (STEPS - 1) as f64);
            cpus.push(ms(measured.cpu) / STEPS as f64);
        }
    }
    let programs = programs(stele)?;
    Ok(vec![
        Figure::of("steps", "CPU a step", "ms", &cpus, "12 steps of reading tools: CPU of the whole process, start and exit included, by 12")
            .bar(Bar::Most(3.0)),
        Figure::of("steps", "wall a step", "ms", &walls, "first to last request at the server by 11; barriers and the server's own work are in it")
            .bar(Bar::Most(15.0)),
        Figure::of(
            "steps",
            "programs started by the harness",
            "",
            &[programs],
            "12 steps that read, write and edit: page faults of children it waited for (cminflt, cmajflt) and processes it left to a subreaper; 0 says none",
        )
        .bar(Bar::Most(0.0)),
    ])
}

/// 0 when a run without shell commands starts no program.
fn programs(stele: &Path) -> Result<f64> {
    // That a program would be seen is shown by a run that has to start one.
    let command = Say::call("bash", &serde_json::json!({"command": "true"}));
    let control = Stage::new(stele, Wire::AnthropicMessages, Script::new([command, Say::text("Done.")]))?;
    if control.measure(&mut control.run(&[scripts::PROMPT]))?.child_faults == 0 {
        bail!("a shell command was not seen, so that nothing can be said of others");
    }
    let stage = Stage::new(stele, Wire::AnthropicMessages, scripts::read_and_edit(STEPS))?;
    let measured = stage.measure(&mut stage.run(&[scripts::PROMPT]))?;
    if !stage.work().join("src").join("new4.rs").exists() {
        bail!("the script's edits were not made");
    }
    Ok(measured.child_faults as f64 + f64::from(u8::from(measured.left_behind)))
}
