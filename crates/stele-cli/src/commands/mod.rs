//! One module a command.

pub mod cache;
pub mod completions;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod edit;
pub mod line;
pub mod models;
pub mod probe;
pub mod proxy;
pub mod run;
pub mod sessions;
pub mod undo;
pub mod verify;
