//! Laws of the log: folding, deriving, what is owed, and the record format.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

mod answered;
mod caps;
mod catalogue;
mod cost;
mod derive;
mod laws;
mod records;
mod restored;
mod rules;
mod world;
