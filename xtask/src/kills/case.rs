//! One kill: where it strikes, and what becomes of the run.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use stele_core::Wire;
use stele_testkit::{Behaviour, Cut, Fault, FaultKind};

use super::judge;
use crate::scripts;
use crate::stage::Stage;

/// How long anything here is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// Runs of one case: the killed one, and those that go on.
const RUNS: usize = 4;

/// Where a kill strikes.
#[derive(Clone, Copy, Debug)]
pub enum Case {
    /// So long after the start.
    Early { micros: u64 },
    /// When this many records were printed.
    AfterRecord { record: usize },
    /// When the server has sent so many bytes of a step's answer, and a while later.
    MidStream { step: usize, bytes: usize, pause_ms: u64 },
    /// While a command waits.
    InBody { marker: &'static str, place: Place },
}

/// Where a command waits.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Before its effect.
    Before,
    /// After its effect.
    After,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// What a run that nobody disturbed leaves behind.
#[derive(Debug)]
pub struct Undisturbed {
    /// Record lines that it printed.
    pub records: usize,
    /// The files of the workspace, by path.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
}

/// What became of a run that was killed.
#[derive(Debug)]
pub struct Died {
    /// Kind of the log's last record when the process was dead.
    pub last: String,
    /// Calls that the model was told an unknown outcome of.
    pub told: usize,
    /// Milliseconds until no process of the killed run was left.
    pub left_ms: u128,
    /// What is not as it should be.
    pub wrong: Vec<String>,
}

/// Plays the script to its end.
pub fn undisturbed(stele: &Path, wire: Wire) -> Result<Undisturbed> {
    let (stage, outside) = set(stele, wire, |behaviour| behaviour)?;
    stage.measure(&mut stage.run(&[scripts::PROMPT]))?;
    let records = stage.printed()?.lines().filter(|line| is_record(line)).count();
    let markers = fs::read_to_string(outside.join("markers"))?;
    if markers.lines().ne(scripts::MARKERS) {
        bail!("the undisturbed run left the markers {markers:?}");
    }
    Ok(Undisturbed { records, files: judge::files(&stage.work())? })
}

/// A stage with the script, and the folder outside the workspace.
fn set(stele: &Path, wire: Wire, adjust: impl FnOnce(Behaviour) -> Behaviour) -> Result<(Stage, PathBuf)> {
    let folder = tempfile::Builder::new().prefix("stele-kills-").tempdir()?;
    let outside = folder.path().join("outside");
    fs::create_dir(&outside)?;
    let made = Command::new("mkfifo").arg(outside.join("pipe")).status()?;
    if !made.success() {
        bail!("mkfifo failed");
    }
    let server = stele_testkit::Server::start(adjust(scripts::with_effects(&outside).into()))?;
    Ok((Stage::with_folder(stele, wire, server, folder)?, outside))
}

fn is_record(line: &str) -> bool {
    line.starts_with("{\"v\":")
}

impl Case {
    /// Its name in the histogram.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Early { .. } => "at the start",
            Self::AfterRecord { .. } => "at an event boundary",
            Self::MidStream { .. } => "in mid-stream",
            Self::InBody { place: Place::Before, .. } => "in a body, before its effect",
            Self::InBody { place: Place::After, .. } => "in a body, after its effect",
        }
    }

    /// Runs, kills, goes on, and judges.
    pub fn run(&self, stele: &Path, wire: Wire, undisturbed: &Undisturbed) -> Result<Died> {
        let (stage, outside) = set(stele, wire, |behaviour| match *self {
            Self::MidStream { step, bytes, .. } => {
                behaviour.fault(Fault::at(step, 1..=1, FaultKind::Stall { at: Cut::Bytes(bytes) }))
            }
            _ => behaviour,
        })?;
        if let Self::InBody { marker, place } = self {
            File::create(outside.join(format!("gate.{marker}.{}", place.name())))?;
        }
        self.strike(&stage, &outside)?;
        let dead = Instant::now();
        let mut wrong = Vec::new();
        let left_ms = match judge::wait_for_nobody(stage.root()) {
            Ok(()) => dead.elapsed().as_millis(),
            Err(left) => {
                wrong.push(format!("still running after the kill: {left}"));
                dead.elapsed().as_millis()
            }
        };
        for entry in fs::read_dir(&outside)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with("gate.") {
                fs::remove_file(entry.path())?;
            }
        }
        let last = judge::last_kind(&stage)?;
        if let Self::MidStream { step, bytes: bytes @ 1.., pause_ms } = *self
            && last != "request/sent"
        {
            // The answer was shorter than that, and whole: not what is meant here.
            return Self::MidStream { step, bytes: bytes / 2, pause_ms }.run(stele, wire, undisturbed);
        }
        go_on(&stage)?;
        let told = judge::judge(&stage, &outside, undisturbed, &mut wrong)?;
        Ok(Died { last, told, left_ms, wrong })
    }

    /// Starts a run and kills it.
    fn strike(&self, stage: &Stage, outside: &Path) -> Result<()> {
        let mut command = stage.run(&["--deltas", scripts::PROMPT]);
        command.stderr(Stdio::null());
        match *self {
            Self::AfterRecord { record } => {
                let mut child = command.stdout(Stdio::piped()).spawn()?;
                if let Some(out) = child.stdout.take() {
                    let lines = BufReader::new(out).lines().map_while(Result::ok);
                    // Reading ends at the record, or with the run.
                    let _ = lines.filter(|line| is_record(line)).nth(record - 1);
                }
                kill(&mut child)
            }
            Self::Early { micros } => {
                let mut child = command.stdout(Stdio::null()).spawn()?;
                std::thread::sleep(Duration::from_micros(micros));
                kill(&mut child)
            }
            Self::MidStream { step, pause_ms, .. } => {
                let mut child = command.stdout(Stdio::null()).spawn()?;
                let arrived = || Ok(stage.server.requests().iter().any(|request| request.step == Some(step)));
                wait_until(&mut child, arrived)?;
                std::thread::sleep(Duration::from_millis(pause_ms));
                kill(&mut child)
            }
            Self::InBody { .. } => {
                let mut child = command.stdout(Stdio::null()).spawn()?;
                let inside = outside.join("inside");
                wait_until(&mut child, || Ok(inside.try_exists()?))?;
                kill(&mut child)
            }
        }
    }
}

fn kill(child: &mut Child) -> Result<()> {
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// Looks again and again until something is so. The run must still be there then.
fn wait_until(child: &mut Child, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let begin = Instant::now();
    while !is_so()? {
        if let Some(status) = child.try_wait()? {
            bail!("the run ended with {status} before it could be killed");
        }
        if begin.elapsed() > PATIENCE {
            kill(child)?;
            bail!("the place of the kill was never reached");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Goes on with the session until its turn has ended; without a session the same command is given again.
fn go_on(stage: &Stage) -> Result<()> {
    for _ in 0..RUNS {
        match stage.session()? {
            None => stage.complete(&mut stage.run(&[scripts::PROMPT]))?,
            Some(id) => stage.complete(&mut stage.run(&["--resume", &id]))?,
        }
        if judge::last_kind(stage)? == "turn/ended" {
            return Ok(());
        }
    }
    bail!("the run did not come to its end")
}
