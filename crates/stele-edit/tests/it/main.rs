//! Behaviour of the edit engine.

mod cases;
mod dialects;
mod ladder;
mod patches;
mod refusals;
