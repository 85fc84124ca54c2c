//! Appending, against SQLite doing the same writes: the store's own benchmark, read from its table.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::figure::{Bar, Figure};

pub fn run(_stele: &Path) -> Result<Vec<Figure>> {
    let output =
        crate::binary::cargo().args(["bench", "--quiet", "--package", "stele-store", "--bench", "log"]).output()?;
    if !output.status.success() {
        bail!("the store's benchmark failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows: Vec<Vec<&str>> =
        text.lines().map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect();
    let mut figures = Vec::new();
    for row in &rows {
        let [name, ours, _, ratio] = row.as_slice() else { continue };
        let Ok(ratio) = ratio.parse::<f64>() else { continue };
        let micros: f64 = ours.trim_end_matches(" µs").parse().context("the store's benchmark has another form")?;
        let what = format!("append, {name}: ratio to SQLite alone");
        figures.push(
            Figure::of("append", what, "×", &[ratio], "best of three rounds; search index and hash chain are in ours")
                .bar(Bar::Most(1.5)),
        );
        figures.push(Figure::of("append", format!("append, {name}"), "µs", &[micros], "the same"));
    }
    if let Some([_, _, rate]) = rows.iter().find(|row| row.first() == Some(&"check")).map(Vec::as_slice) {
        let rate = rate.trim_end_matches(" MB/s").parse().context("the store's benchmark has another form")?;
        figures.push(
            Figure::of("append", "verify: chain alone", "MB/s", &[rate], "the store's check of 100,000 records")
                .bar(Bar::Least(200.0)),
        );
    }
    if figures.is_empty() {
        bail!("the store's benchmark printed no table: {text}");
    }
    Ok(figures)
}
