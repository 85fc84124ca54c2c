//! Values of options: lengths of time, money, session ids.

use std::time::Duration;

use stele_core::{Hash, Micros, Seq};

/// The head of a session as it was noted elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotedHead {
    /// Its position, where that was noted too.
    pub seq: Option<Seq>,
    pub hash: Hash,
}

/// Reads a head as it is printed, `head 101 HASH`, or its end.
///
/// # Errors
/// The text is no such head.
pub fn noted_head(text: &str) -> Result<NotedHead, String> {
    let shape =
        |problem: String| format!("{problem}; expected a head as it is printed, \"101 HASH\", or the hash alone");
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = words.strip_prefix(&["head"]).unwrap_or(&words);
    let (seq, hash) = match words {
        [hash] => (None, hash),
        [seq, hash] => (Some(seq), hash),
        _ => return Err(shape(format!("got {} words", words.len()))),
    };
    let seq = seq.map(|seq| seq.parse().map(Seq).map_err(|_| shape(format!("{seq:?} is no number of a record"))));
    Ok(NotedHead { seq: seq.transpose()?, hash: hash.parse().map_err(shape)? })
}

/// Reads `500ms`, `90s`, `5m`, `2h`.
///
/// # Errors
/// The text is none of these, or zero.
pub fn duration(text: &str) -> Result<Duration, String> {
    let shape = || format!("expected a length of time such as 90s, 5m or 2h, got {text:?}");
    let digits = text.find(|character: char| !character.is_ascii_digit()).ok_or_else(shape)?;
    let number: u64 = text[..digits].parse().map_err(|_| shape())?;
    let unit = match &text[digits..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(shape()),
    };
    match number.checked_mul(unit) {
        Some(millis) if (1..=30 * 24 * 3_600_000).contains(&millis) => Ok(Duration::from_millis(millis)),
        _ => Err(format!("{text} is out of bounds: more than nothing, at most 720h")),
    }
}

/// Reads an amount of US dollars with at most six decimals, such as `0.50`; a `$` in front is fine.
///
/// # Errors
/// The text is no such amount, or zero.
pub fn money(text: &str) -> Result<Micros, String> {
    let shape = || format!("expected an amount of US dollars such as 0.50, got {text:?}");
    let plain = text.strip_prefix('$').unwrap_or(text);
    let (whole, decimals) = plain.split_once('.').unwrap_or((plain, ""));
    let only_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if plain.is_empty() || !only_digits(whole) || !only_digits(decimals) || decimals.len() > 6 {
        return Err(shape());
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| shape())? };
    let decimals: u64 = format!("{decimals:0<6}").parse().map_err(|_| shape())?;
    match whole.checked_mul(1_000_000).and_then(|micros| micros.checked_add(decimals)) {
        Some(micros) if micros > 0 => Ok(Micros(micros)),
        _ => Err(shape()),
    }
}

/// Reads a number that a limit of the table bounds.
///
/// # Errors
/// The text is no number, or over the hard maximum; the message names both numbers.
pub fn steps(text: &str) -> Result<u64, String> {
    let number = text.parse().map_err(|_| format!("expected a number of steps, got {text:?}"))?;
    stele_core::limits::STEPS.check(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_taken_as_it_is_printed() {
        let hash = Hash::of(b"x");
        for (text, seq) in [
            (format!("{hash}"), None),
            (format!("101 {hash}"), Some(Seq(101))),
            (format!(" head     101 {hash}\n"), Some(Seq(101))),
            (format!("head {hash}"), None),
        ] {
            assert_eq!(noted_head(&text), Ok(NotedHead { seq, hash }), "{text}");
        }
        for text in ["", "head", "head 1", &format!("x {hash}"), &format!("1 2 {hash}"), "0123"] {
            assert!(noted_head(text).unwrap_err().contains("101 HASH"), "{text}");
        }
    }

    #[test]
    fn lengths_of_time() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "90", "s", "-1s", "1.5m", "0s", "5 m", "99999999999999999999s", "1000h", "5µs"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn amounts_of_money() {
        assert_eq!(money("0.50"), Ok(Micros(500_000)));
        assert_eq!(money("$12"), Ok(Micros(12_000_000)));
        assert_eq!(money(".000001"), Ok(Micros(1)));
        for wrong in ["", "$", "0", "0.0", "-1", "1e3", "0.0000001", "1,5", "99999999999999999999", "1.-5", "é"] {
            assert!(money(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_limit_over_its_hard_maximum_names_both() {
        let message = steps("10001").unwrap_err();
        assert!(message.contains("10001") && message.contains("10000"), "{message}");
    }
}
