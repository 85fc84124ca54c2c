//! Size of what is shipped.

use std::path::Path;

use anyhow::Result;

use crate::binary::{Profile, build};
use crate::figure::{Bar, Figure};

pub fn run(stele: &Path) -> Result<Vec<Figure>> {
    let dist = std::fs::metadata(build(Profile::Dist)?)?.len() as f64 / 1e6;
    let release = std::fs::metadata(stele)?.len() as f64 / 1e6;
    Ok(vec![
        Figure::of("size", "binary, profile dist", "MB", &[dist], "length of the file").bar(Bar::Most(14.0)),
        Figure::of("size", "binary as measured here", "MB", &[release], "length of the file"),
    ])
}
