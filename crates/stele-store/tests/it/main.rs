//! Integration tests of the store.
//!
//! `contract` says what any store has to do, without a word of SQL: another database is tested by
//! giving `bed` another way to open one. The other modules are about this one's files.

// The lint configuration allows these in test functions; this whole binary is tests and what they share.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod bed;
mod collect;
mod contract;
mod damage;
mod files;
mod processes;
mod transfer;

#[test]
fn every_file_of_this_folder_is_a_module_here() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it");
    let main = include_str!("main.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|name| *name != "main") {
            assert!(main.contains(&format!("mod {module};")), "{name} is not compiled");
        }
    }
}
