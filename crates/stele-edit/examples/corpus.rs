//! The corpus of edits: without arguments it writes it, with a file it scores the engine on it.
//!
//! ```text
//! cargo run -p stele-edit --example corpus > bench/edits/corpus.jsonl
//! cargo run -p stele-edit --example corpus bench/edits/corpus.jsonl
//! ```
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a program of its own, not the engine"
)]

#[path = "../tests/it/corpus/mod.rs"]
mod corpus;

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        print!("{}", corpus::generate::lines(&corpus::generate::cases(corpus::generate::SEED)));
        return ExitCode::SUCCESS;
    };
    let stored = std::fs::read_to_string(&path).ok().and_then(|lines| corpus::read(&lines));
    let Some(cases) = stored else {
        eprintln!("{path} is no corpus; write one with `cargo run -p stele-edit --example corpus > {path}`");
        return ExitCode::from(2);
    };
    let (table, [_, _, wrong]) = corpus::table(&cases);
    print!("{table}");
    ExitCode::from(u8::from(wrong > 0))
}
