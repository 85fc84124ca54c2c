//! Numbers as JSON means them: 1 is 1.0, and 19.99 is a multiple of 0.01.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// The number where it has no fraction, however it is written.
fn whole(number: &Number) -> Option<i128> {
    let float = |number: f64| (number.fract() == 0.0 && number.abs() < 1e36).then_some(number as i128);
    let exact = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    exact.or_else(|| number.as_f64().and_then(float))
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

/// True for a number without a fraction.
pub fn is_whole(number: &Number) -> bool {
    whole(number).is_some() || float(number).fract() == 0.0
}

/// A whole number from 0 on.
pub fn count(value: &Value) -> Option<u64> {
    value.as_number().and_then(whole).and_then(|number| u64::try_from(number).ok())
}

pub fn compare(one: &Number, other: &Number) -> Ordering {
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => float(one).total_cmp(&float(other)),
    }
}

/// `step` is above 0.
pub fn is_multiple(number: &Number, step: &Number) -> bool {
    match (whole(number), whole(step)) {
        (Some(number), Some(step)) => number % step == 0,
        _ => {
            let (number, step) = (float(number), float(step));
            // Decimal fractions are not exact in binary: each of the two may be off by half a unit of its last place.
            let times = number / step;
            let close = (times - times.round()).abs() <= times.abs() * 2.0 * f64::EPSILON;
            number % step == 0.0 || (times.is_finite() && close)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn numbers_are_compared_as_they_are_written() {
        for (one, other, expect) in [
            ("1", "1.0", Ordering::Equal),
            ("-0", "0", Ordering::Equal),
            ("-0.0", "0", Ordering::Equal),
            ("9007199254740993", "9007199254740992.0", Ordering::Greater),
            ("18446744073709551615", "-1", Ordering::Greater),
            ("0.5", "1", Ordering::Less),
            ("1e300", "1e299", Ordering::Greater),
        ] {
            assert_eq!(compare(&number(one), &number(other)), expect, "{one} {other}");
        }
    }

    #[test]
    fn decimal_fractions_are_multiples_and_near_misses_are_not() {
        for (value, step, expect) in [
            ("19.99", "0.01", true),
            ("0.0075", "0.0001", true),
            ("4.0", "2", true),
            ("1e308", "0.5", true),
            ("0", "0.01", true),
            ("0.005", "0.01", false),
            ("0.00751", "0.0001", false),
            ("1000000000000.5", "1", false),
            ("1e-20", "0.01", false),
            ("35", "1.5", false),
            ("1e308", "0.123456789", false),
        ] {
            assert_eq!(is_multiple(&number(value), &number(step)), expect, "{value} {step}");
        }
    }
}
