//! Find and apply an edit: pure, usable alone.

mod diff;
mod edit;
mod refuse;

pub use diff::{Diff, unified_diff};
pub use edit::{Applied, Edit, apply};
pub use refuse::Refusal;
