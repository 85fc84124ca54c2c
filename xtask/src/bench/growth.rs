//! What step N costs, for several N: the work of a step does not grow with the session, but for the bytes sent.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, bail};
use stele_core::Wire;
use stele_testkit::{Behaviour, Reply};

use super::memory::{STEPS, TURNS, prompts};
use crate::figure::{Bar, Figure};
use crate::scripts;
use crate::stage::Stage;

/// Steps around N over which the median is taken.
const WINDOW: usize = 8;

pub fn run(stele: &Path) -> Result<Vec<Figure>> {
    let script = scripts::turns_of_reading(TURNS, STEPS);
    let pid = Arc::new(AtomicU32::new(0));
    let samples = Arc::new(Mutex::new(Vec::new()));
    let behaviour = {
        let (pid, samples) = (Arc::clone(&pid), Arc::clone(&samples));
        Behaviour::answering(move |request| {
            if let Ok(mut samples) = samples.lock() {
                samples.push(cpu_ns(pid.load(Ordering::Relaxed)));
            }
            Reply::from(script.position(request).1)
        })
    };
    let stage = Stage::new(stele, Wire::AnthropicMessages, behaviour)?;
    let mut command = stage.run(&["--input-format", "jsonl"]);
    command.stdin(prompts(&stage)?);
    stage.measure_with(&mut command, |number| pid.store(number, Ordering::Relaxed))?;
    let samples = samples.lock().ok().context("the server panicked")?.clone();
    let requests = stage.server.requests();
    if samples.len() != TURNS * STEPS || samples.len() != requests.len() {
        bail!("{} samples of {} requests", samples.len(), requests.len());
    }
    let at = |n: usize| -> (Vec<f64>, f64) {
        let window = n.saturating_sub(WINDOW / 2)..(n + WINDOW / 2).min(samples.len() - 1);
        let cpu = window.clone().map(|step| (samples[step + 1] - samples[step]) as f64 / 1e6).collect();
        (cpu, requests[n - 1].body.len() as f64 / 1024.0)
    };
    let mut figures = Vec::new();
    for n in [10, 100, 990] {
        let (cpu, kib) = at(n);
        let what = format!("CPU of step {n} ({kib:.0} KiB sent)");
        figures.push(Figure::of(
            "growth",
            what,
            "ms",
            &cpu,
            "time of all its threads between two requests of one run of 1,000 steps",
        ));
    }
    let ((early, small), (late, large)) = (at(10), at(990));
    let middle = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        crate::figure::median(&values)
    };
    let per_mib = (middle(late) - middle(early)) / ((large - small) / 1024.0);
    figures.push(
        Figure::of(
            "growth",
            "CPU for each further MiB of request",
            "ms",
            &[per_mib],
            "what step 990 costs more than step 10, by what it sends more",
        )
        .bar(Bar::Most(5.0)),
    );
    Ok(figures)
}

/// Time on a processor of all threads of a process, in nanoseconds (`/proc/PID/task/*/schedstat`, first field).
fn cpu_ns(pid: u32) -> u64 {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|stat| stat.split_whitespace().next()?.parse::<u64>().ok())
        .sum()
}
