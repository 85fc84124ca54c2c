//! `cargo xtask bench`: every figure, against the real binary.
//!
//! Ratios within one run count; absolute times on a shared machine do not.

mod append;
mod build;
mod fifty;
mod growth;
mod memory;
mod prefix;
mod proxy;
mod resume;
mod size;
mod start;
mod steps;
mod verify;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::figure::{Figure, Results};

/// Groups of figures.
struct Group {
    name: &'static str,
    run: fn(&Path) -> Result<Vec<Figure>>,
    /// Whether it runs without being named.
    always: bool,
}

const GROUPS: &[Group] = &[
    Group { name: "start", run: start::run, always: true },
    Group { name: "steps", run: steps::run, always: true },
    Group { name: "memory", run: memory::run, always: true },
    Group { name: "growth", run: growth::run, always: true },
    Group { name: "resume", run: resume::run, always: true },
    Group { name: "verify", run: verify::run, always: true },
    Group { name: "append", run: append::run, always: true },
    Group { name: "prefix", run: prefix::run, always: true },
    Group { name: "fifty", run: fifty::run, always: true },
    Group { name: "proxy", run: proxy::run, always: true },
    Group { name: "size", run: size::run, always: true },
    Group { name: "build", run: build::run, always: false },
];

/// Runs the groups, prints the table and writes the files.
pub fn main(only: &[String], stele: Option<PathBuf>, compare: Option<PathBuf>) -> Result<ExitCode> {
    let chosen: Vec<&Group> = GROUPS
        .iter()
        .filter(|group| match only {
            [] => group.always,
            only => only.iter().any(|name| group.name.starts_with(name.as_str())),
        })
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
        bail!("there is no such group; the groups are {}", names.join(", "));
    }
    let stele = crate::binary::find(stele)?;
    let compare = compare.map(|path| crate::binary::find(Some(path))).transpose()?;
    let folder = crate::workspace()?.join("bench");
    // What is not measured now stays as it was.
    let mut figures = Results::kept(&folder).map_or_else(Vec::new, |kept| kept.figures);
    for group in &chosen {
        crate::say(&format!("measuring {}", group.name));
        let mut found = (group.run)(&stele)?;
        if let Some(compare) = &compare {
            for (figure, other) in found.iter_mut().zip((group.run)(compare)?) {
                figure.other = Some(other.value);
            }
        }
        found.iter().for_each(|figure| crate::say(&figure.row()));
        figures.retain(|figure| figure.group != group.name);
        figures.extend(found);
    }
    let place = |figure: &Figure| GROUPS.iter().position(|group| group.name == figure.group);
    figures.sort_by_key(place);
    let results = Results { version: env!("CARGO_PKG_VERSION").to_owned(), machine: machine(), figures };
    results.keep(&folder)?;
    // What was measured some other time is not what was asked about.
    let measured = |group: &str| chosen.iter().any(|chosen| chosen.name == group);
    let missed = results.missed(measured);
    crate::say(&format!("{missed} bars missed; see {}", folder.join("results.md").display()));
    Ok(crate::exit_code(missed == 0))
}

/// Cores and system: what a reader needs to judge absolute figures.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{} {}, {cores} cores", std::env::consts::OS, std::env::consts::ARCH)
}

fn ms(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
