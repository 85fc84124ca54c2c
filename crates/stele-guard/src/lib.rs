//! Permission modes and rules, on parsed shell commands and resolved paths.
//!
//! [`decide`] takes a [`stele_core::Call`] and says whether it runs, asks a person or is refused.
//! Deny beats ask beats allow, whatever the layer; what is not understood is never allowed by a
//! rule for something else:
//!
//! - a command line is parsed, and every simple command in it is judged by itself, inside lists,
//!   pipelines, substitutions, function bodies and wrappers such as `timeout` or `sh -c`;
//! - a path is judged as the file it leads to, after symbolic links and `..`;
//! - git is only known to read where its repository's own configuration runs nothing;
//! - what cannot be read with certainty asks.
//!
//! **Invariant:** a verdict is only ever raised by looking closer. The rules keep an agent from
//! surprising its user; they do not contain a hostile program, which needs a sandbox.

mod builtin;
mod decide;
mod error;
mod glob;
mod judge;
mod paths;
mod policy;
mod repository;
mod shell;
mod standing;
mod suggest;
mod wrapper;

pub use decide::{decide, verdict};
pub use error::Error;
pub use paths::{Surroundings, Workspace};
pub use policy::{Layer, List, Policy, Rule};
pub use suggest::widened;

/// Who lets a call pass that was found to change nothing.
pub const READ_ONLY: &str = "builtin:read-only";
