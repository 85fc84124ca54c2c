//! How long nothing was shown, where no line can change in its place.

use std::time::{Duration, Instant};

/// The time since something was shown last.
pub struct Quiet {
    since: Instant,
    /// How often it was told since then.
    told: u32,
}

impl Default for Quiet {
    fn default() -> Self {
        Self { since: Instant::now(), told: 0 }
    }
}

impl Quiet {
    /// Something was shown.
    pub fn broken(&mut self) {
        *self = Self::default();
    }

    /// How long it was quiet, when it is time to say what goes on: after 3 s, and every 15 s.
    pub fn is_long(&mut self) -> Option<Duration> {
        let quiet = self.since.elapsed();
        let due = if self.told == 0 { 3 } else { 15 * u64::from(self.told) };
        (quiet >= Duration::from_secs(due)).then(|| {
            self.told += 1;
            quiet
        })
    }
}
