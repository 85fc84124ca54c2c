//! The driver against the scripted server: real tools, real files, a real database.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod drift;
mod epochs;
mod faults;
mod flow;
mod images;
mod jobs;
mod ledger;
mod marks;
mod meanwhile;
mod never;
mod restored;
mod rules;
mod stage;
mod takeover;
mod undo;
mod whereabouts;
