//! Times of day for people, where they are.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use stele_core::Millis;

/// `2026-11-30 14:05`; `?` for a time that is out of the calendar.
pub fn minute(at: Millis) -> String {
    format(at, "%Y-%m-%d %H:%M")
}

/// `2026-11-30`.
pub fn day(at: Millis) -> String {
    format(at, "%Y-%m-%d")
}

/// `14:05`.
pub fn clock(at: Millis) -> String {
    format(at, "%H:%M")
}

fn format(at: Millis, how: &str) -> String {
    let zoned = Timestamp::from_millisecond(at.0).map(|time| time.to_zoned_datetime(TimeZone::system()));
    zoned.map_or_else(|_| "?".to_owned(), |time| time.strftime(how).to_string())
}
