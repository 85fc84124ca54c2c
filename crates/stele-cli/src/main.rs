//! The `stele` binary.
#[allow(dead_code, unused_imports, reason = "no command reads it yet")]
mod config;

fn main() {}
