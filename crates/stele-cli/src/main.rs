//! The `stele` binary.
#[allow(dead_code, reason = "no command reads it yet")]
mod config;

fn main() {}
