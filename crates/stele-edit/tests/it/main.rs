//! Behaviour of the edit engine.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod cases;
mod corpus;
mod dialects;
mod ladder;
mod patches;
mod properties;
mod refusals;
mod strict;
