//! What the engine takes on. Beyond a limit it refuses with `edit.too_large`; it never cuts.

/// Bytes of a file that is edited.
pub const MAX_FILE: usize = 64 * 1024 * 1024;
/// Bytes of one input, or of all old and new texts of one call together.
pub const MAX_INPUT: usize = 8 * 1024 * 1024;
/// Edits, blocks or hunks of one call.
pub const MAX_EDITS: usize = 5_000;
/// Places that one call may change or look at.
pub const MAX_PLACES: usize = 1_000_000;
/// Lines that a place may lie away from the line that `near_line` names.
pub const NEAR_LINES: u64 = 20;
