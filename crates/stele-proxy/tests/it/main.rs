//! The proxy over real connections, its store, and its analyses.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "shared functions of tests stop at the first surprise")]

mod breaks;
mod forward;
mod losses;
mod odd;
mod recorded;
mod secure;
mod seeded;
mod store;
mod support;
mod verdicts;
