//! When a failed attempt is tried again: a pure policy. The caller draws the random number and logs
//! the resulting moment, so that a replay waits for the same one.

use crate::Failure;
use crate::limits::{ATTEMPTS, ATTEMPTS_AFTER_OUTPUT, RETRY_AFTER_MS, RETRY_CEILING_MS, RETRY_FLOOR_MS};

/// Milliseconds to wait before the next attempt of a step, or `None` when there is none.
///
/// `failed_attempts` counts the step's failed attempts, this one included, and
/// `failed_after_output` those of them that broke after part of the answer had arrived: five tries
/// that bring nothing, and two more after partial output ([`ATTEMPTS`], [`ATTEMPTS_AFTER_OUTPUT`]).
/// The wait is `draw` spread evenly over zero to a bound that doubles with each failure (full jitter),
/// and never shorter than what the server asked for. A server that asks for more than
/// [`RETRY_AFTER_MS`] is not waited for.
#[must_use]
pub fn next(failure: &Failure, failed_attempts: u32, failed_after_output: u32, draw: u64) -> Option<u64> {
    if !failure.code.is_transient() {
        return None;
    }
    let spent = if failure.output {
        u64::from(failed_after_output) > ATTEMPTS_AFTER_OUTPUT.default
    } else {
        u64::from(failed_attempts.saturating_sub(failed_after_output)) >= ATTEMPTS.default
    };
    if spent {
        return None;
    }
    let asked = failure.retry_after_ms.unwrap_or(0);
    if asked > RETRY_AFTER_MS.default {
        return None;
    }
    let doublings = failed_attempts.saturating_sub(1).min(32);
    let bound = (RETRY_FLOOR_MS.default << doublings).min(RETRY_CEILING_MS.default);
    Some(asked.max(draw % (bound + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FailureCode;

    fn failure(code: FailureCode) -> Failure {
        Failure::new(code, "no")
    }

    #[test]
    fn five_tries_before_output() {
        let overloaded = failure(FailureCode::Overloaded);
        for failed in 1..5 {
            assert!(next(&overloaded, failed, 0, 7).is_some(), "{failed}");
        }
        assert_eq!(next(&overloaded, 5, 0, 7), None);
    }

    #[test]
    fn two_more_after_partial_output() {
        let cut = Failure { output: true, ..failure(FailureCode::Incomplete) };
        assert!(next(&cut, 1, 1, 0).is_some());
        assert!(next(&cut, 4, 2, 0).is_some());
        assert_eq!(next(&cut, 3, 3, 0), None);
    }

    #[test]
    fn what_the_same_bytes_cannot_cure_is_not_tried_again() {
        for code in [FailureCode::Auth, FailureCode::InvalidRequest, FailureCode::ContextOverflow, FailureCode::Quota] {
            assert_eq!(next(&failure(code), 1, 0, 0), None, "{code:?}");
        }
    }

    #[test]
    fn the_wait_doubles_up_to_the_ceiling_and_covers_the_whole_span() {
        let server = failure(FailureCode::Server);
        for (failed, bound) in [(1, 500), (2, 1_000), (3, 2_000), (4, 4_000)] {
            assert_eq!(next(&server, failed, 0, bound), Some(bound));
            assert_eq!(next(&server, failed, 0, bound + 1), Some(0));
        }
        assert_eq!(next(&server, 100, 99, 30_000), Some(30_000));
        assert_eq!(next(&server, u32::MAX, u32::MAX, 30_001), Some(0));
    }

    #[test]
    fn the_server_is_never_asked_earlier_than_it_said() {
        let limited = |ms| Failure { retry_after_ms: Some(ms), ..failure(FailureCode::RateLimited) };
        assert_eq!(next(&limited(60_000), 1, 0, 3), Some(60_000));
        assert_eq!(next(&limited(1), 1, 0, 400), Some(400));
        assert_eq!(next(&limited(60_001), 1, 0, 3), None);
    }
}
