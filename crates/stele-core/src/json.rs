//! JSON from outside, read leniently and kept as raw text.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::Deserializer;
use serde::de::Visitor;

/// Replaces each lone UTF-16 surrogate escape (`\ud800` … `\udfff` without its partner) in raw JSON
/// by `\ufffd`; a good pair stays as it is. Strict parsers refuse lone surrogates.
#[must_use]
pub fn repair_surrogates(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let mut lone = Vec::new();
    let mut at = 0;
    while at + 1 < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match unit_at(bytes, at) {
            Some(0xd800..=0xdbff) if matches!(unit_at(bytes, at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                lone.push(at);
                at += 6;
            }
            _ => at += 2,
        }
    }
    if lone.is_empty() {
        return Cow::Borrowed(json);
    }
    let mut repaired = String::with_capacity(json.len());
    let mut from = 0;
    for at in lone {
        repaired.push_str(&json[from..at]);
        repaired.push_str("\\ufffd");
        from = at + 6;
    }
    repaired.push_str(&json[from..]);
    Cow::Owned(repaired)
}

/// The UTF-16 unit of a `\uXXXX` escape that starts here.
fn unit_at(bytes: &[u8], at: usize) -> Option<u32> {
    let escape = bytes.get(at..at + 6)?;
    if &escape[..2] != b"\\u" || !escape[2..].iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    std::str::from_utf8(&escape[2..]).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok())
}

/// Parses JSON from outside: bytes that are not UTF-8 and lone surrogates become U+FFFD.
///
/// # Errors
/// The text is no JSON of the expected shape; the error holds the position.
pub fn parse_lenient<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    let text = String::from_utf8_lossy(bytes);
    serde_json::from_str(&repair_surrogates(&text))
}

/// Reads what is written as a string, without a copy of the string.
pub(crate) fn parsed<'de, T: FromStr<Err = String>, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
) -> Result<T, D::Error> {
    struct Parsed<T>(&'static str, PhantomData<T>);
    impl<T: FromStr<Err = String>> Visitor<'_> for Parsed<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }
    }
    deserializer.deserialize_str(Parsed(expected, PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &str, expect: &str) {
        assert_eq!(repair_surrogates(input), expect);
    }

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_kept() {
        check(r#""ok \ud83d\ude00 cut \ud83d…""#, r#""ok \ud83d\ude00 cut \ufffd…""#);
        check(r#"{"k\udc00":"v"}"#, r#"{"k\ufffd":"v"}"#);
        check(r#""\udfff""#, r#""\ufffd""#);
        check(r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#);
    }

    #[test]
    fn an_escaped_backslash_before_u_is_no_escape() {
        check(r#""\\ud83d""#, r#""\\ud83d""#);
        check(r#""\\\ud83d""#, r#""\\\ufffd""#);
    }
}
