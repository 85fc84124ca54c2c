//! The real binary against scripted model servers: one module for each thing that a person relies on.

// Helpers beside the tests may unwrap as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod applied;
mod bad_input;
mod between;
mod cache;
mod cut;
mod demo;
mod edit;
mod endings;
mod fifty;
mod goes_on;
mod hard_links;
mod interface;
mod json;
mod keys;
mod killed;
mod logs;
mod moved;
mod names;
mod probe;
mod prompts;
mod proxy;
mod restore;
mod rules;
mod said;
mod secrets;
mod sessions;
mod signals;
mod structure;
mod support;
mod terminal;
mod typing;
mod undo;
