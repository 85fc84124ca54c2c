//! The `stele` binary.
fn main() {}
