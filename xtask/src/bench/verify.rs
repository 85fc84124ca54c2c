//! `stele verify`: linear in the log.

use std::path::Path;

use anyhow::Result;

use super::ms;
use super::resume::large;
use crate::figure::{Bar, Figure, median};

const RUNS: usize = 5;

pub fn run(stele: &Path) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut rates = Vec::new();
    for records in [10_000, 30_000, 100_000] {
        let (stage, id, size) = large(stele, records)?;
        let mut times = Vec::new();
        for round in 0..=RUNS {
            let measured = stage.measure(&mut stage.command(["verify", id.as_str()]))?;
            if round > 0 {
                times.push(ms(measured.ended - measured.started));
            }
        }
        times.sort_by(f64::total_cmp);
        rates.push(size.megabytes() / (median(&times) / 1e3));
        figures.push(Figure::of(
            "verify",
            format!("verify {records} records ({:.0} MB)", size.megabytes()),
            "ms",
            &times,
            "chain, head, blobs, and every request rebuilt",
        ));
    }
    let (small, large) = (rates.first().copied().unwrap_or(f64::NAN), rates.last().copied().unwrap_or(f64::NAN));
    figures.push(Figure::of("verify", "verify: chain and requests", "MB/s", &[large], "of the largest session"));
    figures.push(
        Figure::of("verify", "verify: cost a byte, largest to smallest", "×", &[small / large], "1 is linear")
            .bar(Bar::Most(1.5)),
    );
    Ok(figures)
}
