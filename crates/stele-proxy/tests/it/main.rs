//! The proxy over real connections, its store, and its analyses.

mod breaks;
mod forward;
mod odd;
mod recorded;
mod secure;
mod store;
mod support;
mod verdicts;
