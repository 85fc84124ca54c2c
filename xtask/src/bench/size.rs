//! Size of what is shipped.

use std::path::Path;

use anyhow::Result;

use crate::binary::{Features, Profile, build};
use crate::figure::{Bar, Figure};

pub fn run(stele: &Path) -> Result<Vec<Figure>> {
    let dist = |features| anyhow::Ok(std::fs::metadata(build(Profile::Dist, features)?)?.len() as f64 / 1e6);
    let (complete, plain) = (dist(Features::Complete)?, dist(Features::Plain)?);
    let release = std::fs::metadata(stele)?.len() as f64 / 1e6;
    Ok(vec![
        Figure::of("size", "binary, profile dist", "MB", &[plain], "length of the file").bar(Bar::Most(14.0)),
        Figure::of("size", "the same, complete", "MB", &[complete], "with every feature").bar(Bar::Most(26.0)),
        Figure::of("size", "binary as measured here", "MB", &[release], "length of the file"),
    ])
}
