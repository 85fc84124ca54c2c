//! Find and apply an edit: pure, usable alone.
