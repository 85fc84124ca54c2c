//! The kill test: a run of twelve steps is killed (`SIGKILL`) everywhere, gone on with by a new process, and compared
//! with a run that nobody disturbed.
//!
//! Everything is judged from outside: the files of the workspace, the markers that the commands left, the processes
//! that still run, the requests that the server received, and `stele verify`.

mod case;
mod judge;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};
use stele_core::Wire;

use crate::random::Random;
use crate::scripts::MARKERS;
use case::{Case, Died, Place};

/// Kills in mid-stream, and inside tool bodies.
const KILLS: usize = 20;
/// Kills before the first record can be there.
const EARLY: usize = 6;

/// Runs the kill test and prints what became of every kill.
pub fn main(stele: &Path, seed: u64, wire: Wire) -> Result<ExitCode> {
    let undisturbed = case::undisturbed(stele, wire)?;
    crate::say(&format!("undisturbed: {} records, {} files", undisturbed.records, undisturbed.files.len()));
    let cases = plan(undisturbed.records, &mut Random::new(seed));
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let died = case.run(stele, wire, &undisturbed);
                    if let Ok(mut done) = done.lock() {
                        done.push((*case, died));
                    }
                }
            });
        }
    });
    let done = done.into_inner().ok().context("a case panicked")?;
    if done.len() != cases.len() {
        bail!("only {} of {} cases ended", done.len(), cases.len());
    }
    Ok(crate::exit_code(report(&done)))
}

/// Every event boundary, and what is drawn.
fn plan(records: usize, random: &mut Random) -> Vec<Case> {
    let mut cases: Vec<Case> = (1..=records).map(|record| Case::AfterRecord { record }).collect();
    cases.extend((0..EARLY).map(|_| Case::Early { micros: random.below(12_000) }));
    cases.extend((0..KILLS).map(|nth| {
        // Half of them late enough for the text that streamed to be kept beside the log.
        let pause_ms = if nth % 2 == 0 { random.below(30) } else { 260 + random.below(200) };
        Case::MidStream { step: nth % 12, bytes: usize::try_from(random.below(1_500)).unwrap_or(0), pause_ms }
    }));
    cases.extend((0..KILLS).map(|nth| {
        let place = if nth % 2 == 0 { Place::Before } else { Place::After };
        Case::InBody { marker: MARKERS[(nth / 2) % MARKERS.len()], place }
    }));
    cases
}

/// Prints the histogram and what went wrong; true when nothing did.
fn report(done: &[(Case, Result<Died>)]) -> bool {
    let mut rows: BTreeMap<(String, &str), (usize, usize, usize)> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut slowest = 0;
    for (case, died) in done {
        let (last, told, good) = match died {
            Ok(died) => (died.last.clone(), died.told, died.wrong.is_empty()),
            Err(_) => ("(the case itself failed)".to_owned(), 0, false),
        };
        let row = rows.entry((last, case.kind())).or_default();
        *row = (row.0 + 1, row.1 + usize::from(good), row.2 + told);
        match died {
            Ok(died) => {
                slowest = slowest.max(died.left_ms);
                wrong.extend(died.wrong.iter().map(|what| format!("{case:?}: {what}")));
            }
            Err(error) => wrong.push(format!("{case:?}: {error:#}")),
        }
    }
    crate::say("\n| the log ended with | killed | times | same files, no loss | calls told outcome_unknown |");
    crate::say("|---|---|---|---|---|");
    for ((last, kind), (times, good, told)) in &rows {
        crate::say(&format!("| {last} | {kind} | {times} | {good} | {told} |"));
    }
    let good = done.iter().filter(|(_, died)| died.as_ref().is_ok_and(|died| died.wrong.is_empty())).count();
    crate::say(&format!(
        "\n{} kills, {good} as they should be; the last process of a killed run was gone after at most {slowest} ms",
        done.len()
    ));
    for what in &wrong {
        crate::say(&format!("✗ {what}"));
    }
    wrong.is_empty()
}
