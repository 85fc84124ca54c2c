//! What a person and a program see: text on two streams, JSON lines on one.

pub mod answer;
pub mod card;
pub mod diff;
pub mod explained;
pub mod inert;
pub mod input;
pub mod json;
pub mod money;
pub mod quiet;
pub mod requests;
pub mod screen;
pub mod served;
pub mod spent;
pub mod style;
pub mod summary;
pub mod text;
pub mod time;
pub mod timeline;
pub mod word;
pub mod wrap;

/// Columns that a line takes at most, where it can be helped.
pub const WIDTH: usize = 80;
