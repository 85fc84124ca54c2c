//! Numbers for people: money, tokens, sizes, lengths of time.

use std::time::Duration;

use stele_core::{Micros, Usage};

/// An amount of US dollars with as many decimals as say something.
pub fn money(amount: Micros) -> String {
    let micros = amount.0;
    match micros {
        0 => "$0".to_owned(),
        1..100 => format!("${:.6}", micros as f64 / 1e6),
        100..1_000_000 => format!("${:.4}", micros as f64 / 1e6),
        _ => format!("${:.2}", micros as f64 / 1e6),
    }
}

/// The cost of something, or why there is none.
pub fn cost(amount: Option<Micros>) -> String {
    amount.map_or_else(|| "unpriced".to_owned(), money)
}

/// A whole number with separators.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count that may be unknown, which is not nothing.
pub fn known(number: Option<u64>) -> String {
    number.map_or_else(|| "?".to_owned(), count)
}

/// A number with its noun.
pub fn plural(number: u64, noun: &str) -> String {
    match (number, noun.ends_with("ch")) {
        (1, _) => format!("1 {noun}"),
        (_, true) => format!("{} {noun}es", count(number)),
        (_, false) => format!("{} {noun}s", count(number)),
    }
}

/// A short number: `950`, `12.3k`, `4.0M`.
pub fn short(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{:.1}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// A length of time: `240 ms`, `1.3 s`, `12 s`, `3 min 5 s`.
pub fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..10 => format!("{:.1} s", time.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A share as a percentage; one that is unknown says so.
pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "unknown".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// What was read from the provider's cache, to stand behind the tokens; nothing where nobody reported it.
pub fn from_cache(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| format!(" · {} from cache", percent(Some(share))))
}

/// Tokens in their disjoint buckets; what nobody reported is `?`.
pub fn tokens(usage: &Usage) -> String {
    if usage.is_unknown() {
        return "not reported".to_owned();
    }
    let writes = usage.writes().filter(|writes| *writes > 0).map(|writes| format!(" · {} written", count(writes)));
    format!(
        "{} fresh · {} read{} · {} output",
        known(usage.fresh),
        known(usage.cache_read),
        writes.unwrap_or_default(),
        known(usage.output)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts() {
        assert_eq!(money(Micros(7)), "$0.000007");
        assert_eq!(money(Micros(12_345)), "$0.0123");
        assert_eq!(money(Micros(3_456_789)), "$3.46");
        assert_eq!(cost(None), "unpriced");
    }

    #[test]
    fn numbers() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(short(12_345), "12.3k");
        assert_eq!(plural(1, "match"), "1 match");
        assert_eq!(plural(2, "match"), "2 matches");
        assert_eq!(plural(1_000, "line"), "1,000 lines");
        assert_eq!(elapsed(Duration::from_millis(240)), "240 ms");
        assert_eq!(elapsed(Duration::from_millis(1_340)), "1.3 s");
        assert_eq!(elapsed(Duration::from_secs(185)), "3 min 5 s");
    }

    #[test]
    fn unknown_is_not_nothing() {
        assert_eq!(tokens(&Usage::default()), "not reported");
        let usage = Usage { fresh: Some(1_200), output: Some(0), ..Usage::default() };
        assert_eq!(tokens(&usage), "1,200 fresh · ? read · 0 output");
        assert_eq!(percent(None), "unknown");
        assert_eq!((from_cache(None).as_str(), from_cache(Some(0.5)).as_str()), ("", " · 50 % from cache"));
    }
}
