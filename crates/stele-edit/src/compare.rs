//! What two sequences of texts share. In one place and for one kind of item: each further one would be a copy of the whole
//! comparison.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The steps that turn the one sequence into the other.
pub(crate) fn steps<T: AsRef<[u8]>>(old: &[T], new: &[T]) -> Vec<DiffOp> {
    fn bytes<T: AsRef<[u8]>>(texts: &[T]) -> Vec<&[u8]> {
        texts.iter().map(AsRef::as_ref).collect()
    }
    between(&bytes(old), &bytes(new))
}

fn between(old: &[&[u8]], new: &[&[u8]]) -> Vec<DiffOp> {
    capture_diff_slices(Algorithm::Myers, old, new)
}

/// Twice the common bytes over all bytes; 1 of nothing and nothing.
pub(crate) fn ratio(left: &[u8], right: &[u8]) -> f64 {
    if left.is_empty() && right.is_empty() {
        return 1.0;
    }
    let (one, other): (Vec<&[u8]>, Vec<&[u8]>) = (left.chunks(1).collect(), right.chunks(1).collect());
    f64::from(similar::diff_ratio(&between(&one, &other), left.len(), right.len()))
}
