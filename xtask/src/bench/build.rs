//! A cold build, as the README says it.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Result, bail};

use crate::figure::{Bar, Figure};
use crate::process::measure;

pub fn run(_stele: &Path) -> Result<Vec<Figure>> {
    let target = tempfile::Builder::new().prefix("stele-build-").tempdir()?;
    let mut command = crate::binary::cargo();
    command.current_dir(crate::workspace()?).args(["build", "--release", "--quiet"]);
    command.env("CARGO_TARGET_DIR", target.path()).stdin(Stdio::null());
    let measured = measure(&mut command, |_| {})?;
    if !measured.status.success() {
        bail!("the build failed");
    }
    let wall = (measured.ended - measured.started).as_secs_f64();
    Ok(vec![
        Figure::of(
            "build",
            "cold build, CPU",
            "s",
            &[measured.cpu.as_secs_f64()],
            "cargo build --release into an empty folder: user and system time of all its processes",
        )
        .bar(Bar::Most(500.0)),
        Figure::of("build", "cold build, wall", "s", &[wall], "the same; depends on cores and on what else runs"),
    ])
}
