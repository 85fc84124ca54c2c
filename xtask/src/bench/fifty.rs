//! Fifty steps with everything that could move a byte: what stays, and what the cache reads.

use std::path::Path;

use anyhow::{Result, bail};
use stele_core::Wire;
use stele_testkit::fifty;

use crate::figure::{Bar, Figure};

pub fn run(stele: &Path) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for wire in Wire::ALL {
        let folder = tempfile::Builder::new().prefix("stele-xtask-").tempdir()?;
        let session = fifty::play(stele, wire, &folder.path().canonicalize()?)?;
        let found = session.judge().map_err(anyhow::Error::msg)?;
        for line in &found.unlike {
            crate::say(&format!("{wire}: {line}"));
        }
        if let Some((what, _)) = found.happened.iter().find(|(_, count)| *count == 0) {
            bail!("{what}: nothing of it happened in the session");
        }
        let cuts = format!("epochs: {}", found.cuts.join(", "));
        let pairs = format!(
            "worst of {} pairs inside an epoch, from the bodies that arrived; todo updates, modes, steering, jobs, an undo, two resumes elsewhere",
            found.pairs
        );
        let unreasoned = found.cuts.iter().filter(|reason| reason.is_empty()).count() + found.unpriced;
        let figure = |what: &str, unit: &str, value: f64, how: &str, bar: Bar| {
            Figure::of("fifty", format!("50 steps: {what}, {wire}"), unit, &[value], how).bar(bar)
        };
        figures.extend([
            figure("prefix kept", "%", found.kept * 100.0, &pairs, Bar::Least(100.0)),
            figure(
                "input read from the cache",
                "%",
                found.read * 100.0,
                "after the first step, by the server's cache",
                Bar::Least(95.0),
            ),
            figure(
                "requests that read otherwise than predicted",
                "",
                found.unlike.len() as f64,
                "to 2 % and one unit of the vendor's counting",
                Bar::Most(0.0),
            ),
            figure("cuts without reason or price", "", unreasoned as f64, &cuts, Bar::Most(0.0)),
        ]);
    }
    Ok(figures)
}
