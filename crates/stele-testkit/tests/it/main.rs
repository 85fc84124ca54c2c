//! The scripted model server, seen from outside: over plain TCP, without any code of ours that speaks a wire.

// `clippy.toml` allows these in test functions; here the functions beside them are tests too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agent;
mod arbitrary;
mod cache;
mod client;
mod faults;
mod http;
mod refusals;
mod scripts;
mod streams;

#[test]
fn no_file_is_forgotten() {
    let own = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/main.rs")).unwrap();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.trim_end_matches(".rs");
        assert!(module == "main" || own.contains(&format!("mod {module};")), "{name} is not a module");
    }
}
