//! A cold build, as the README says it, and one of everything.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Result, bail};

use crate::binary::Features;
use crate::figure::{Bar, Figure};
use crate::process::measure;

pub fn run(_stele: &Path) -> Result<Vec<Figure>> {
    let (cpu, wall) = cold(Features::Plain)?;
    let (cpu_complete, _) = cold(Features::Complete)?;
    let how = "cargo build --release into an empty folder: user and system time of all its processes";
    Ok(vec![
        Figure::of("build", "cold build, CPU", "s", &[cpu], how).bar(Bar::Most(500.0)),
        Figure::of("build", "the same, complete", "s", &[cpu_complete], "with every feature").bar(Bar::Most(1000.0)),
        Figure::of("build", "cold build, wall", "s", &[wall], "depends on cores and on what else runs"),
    ])
}

/// CPU and wall seconds.
fn cold(features: Features) -> Result<(f64, f64)> {
    let target = tempfile::Builder::new().prefix("stele-build-").tempdir()?;
    let mut command = crate::binary::cargo();
    command.current_dir(crate::workspace()?).args(["build", "--release", "--quiet"]).args(features.arguments());
    command.env("CARGO_TARGET_DIR", target.path()).stdin(Stdio::null());
    let measured = measure(&mut command, |_| {})?;
    if !measured.status.success() {
        bail!("the build failed");
    }
    Ok((measured.cpu.as_secs_f64(), (measured.ended - measured.started).as_secs_f64()))
}
