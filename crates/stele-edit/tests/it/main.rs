//! Behaviour of the edit engine.

mod cases;
mod dialects;
mod ladder;
mod patches;
mod properties;
mod refusals;
mod strict;
