//! Integration tests: recorded faults of endpoints, golden requests, properties over whole requests and answers, and
//! attempts over real sockets.
#![allow(clippy::unwrap_used, reason = "shared functions of tests stop at the first surprise, as tests do")]

mod answers;
mod conversation;
mod faults;
mod golden;
mod local;
mod requests;
mod rules;
mod server;
mod support;
mod transport;

/// Every module beside this file is part of the binary.
#[test]
fn no_file_was_forgotten() {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it");
    let main = include_str!("main.rs");
    for entry in std::fs::read_dir(here).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|module| *module != "main") {
            assert!(main.contains(&format!("mod {module};")), "{name} is not part of main.rs");
        }
    }
}
