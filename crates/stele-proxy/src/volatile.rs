//! Text that changes from hour to hour and from place to place.

use std::sync::LazyLock;

use regex::Regex;

use crate::change::Change;
use crate::emulate::common_prefix;

/// Bytes around a difference that are searched for what changes from hour to hour and from place to place.
const WINDOW: usize = 64;

// The patterns are constant; a test keeps one that does not compile from being shipped.
static PATHS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| compile(&[r#"(?:^|[\s"'=(:`,>]|\\n|\\t)((?:~?/|\.\.?/|[A-Za-z]:\\)[^\s"'`<>|/\\][^\s"'`<>|]*)"#]));
static IDS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| compile(&[r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"]));
static CLOCKS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    compile(&[
        r"(\d{4}-\d{1,2}-\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?(?:Z|[+-]\d{2}:?\d{2})?)",
        r"(\d{1,2}:\d{2}(?::\d{2})?(?:\s?[AaPp]\.?[Mm])?)",
        r"(\d{1,2}[/.]\d{1,2}[/.]\d{2,4})",
        r"(?i)((?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b,?(?:\s+[a-z]{3,9}\.?\s+\d{1,2})?)",
        r"(?i)((?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)[a-z]*\.?\s+\d{1,2}(?:st|nd|rd|th)?(?:,?\s+\d{4})?)",
        r"(?i)(\d{1,2}\.?\s+(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)[a-z]*(?:,?\s+\d{4})?)",
        r"\b(1\d{9}(?:\d{3})?)\b",
    ])
});
static RANDOM: LazyLock<Vec<Regex>> = LazyLock::new(|| compile(&[r"([0-9a-fA-F]{4,})", r"([A-Za-z0-9_-]{8,})"]));

fn compile(patterns: &[&str]) -> Vec<Regex> {
    patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
}

/// What kind of volatile text stands where two texts part, when it is one.
pub(crate) fn volatile(before: &[u8], after: &[u8]) -> Option<Change> {
    let mut at = common_prefix(before, after);
    // Two characters that begin alike differ from their first byte on.
    let inside = |bytes: &[u8], at: usize| bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    while at > 0 && (inside(before, at) || inside(after, at)) {
        at -= 1;
    }
    let (before, after) = (window(before, at), window(after, at));
    let both = |patterns: &[Regex], fits: &dyn Fn(&str, &str) -> bool| {
        patterns.iter().any(|pattern| match (covering(pattern, &before), covering(pattern, &after)) {
            (Some(one), Some(other)) => fits(one, other),
            _ => false,
        })
    };
    let tree = |(text, _): &(String, usize)| text.contains(['├', '└']);
    if tree(&before) && tree(&after) {
        return Some(Change::Listing);
    }
    if both(&PATHS, &|_, _| true) {
        return Some(Change::Path);
    }
    if both(&IDS, &|_, _| true) {
        return Some(Change::RandomId);
    }
    if both(&CLOCKS, &|_, _| true) {
        return Some(Change::Clock);
    }
    let mixed = |text: &str| {
        text.bytes().any(|byte| byte.is_ascii_digit()) && text.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    let random = |one: &str, other: &str| one.len() == other.len() && (mixed(one) || mixed(other));
    both(&RANDOM, &random).then_some(Change::RandomId)
}

/// Some text around an offset, and the offset in it.
fn window(bytes: &[u8], at: usize) -> (String, usize) {
    let front = String::from_utf8_lossy(bytes.get(at.saturating_sub(WINDOW)..at).unwrap_or_default()).into_owned();
    let back = String::from_utf8_lossy(bytes.get(at..bytes.len().min(at + WINDOW)).unwrap_or_default()).into_owned();
    let offset = front.len();
    (front + &back, offset)
}

/// The match of a pattern's first group that covers an offset.
fn covering<'a>(pattern: &Regex, (text, at): &'a (String, usize)) -> Option<&'a str> {
    let groups = pattern.captures_iter(text).filter_map(|captures| captures.get(1));
    groups.filter(|found| found.start() <= *at && *at <= found.end()).map(|found| found.as_str()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str, expect: Option<Change>) {
        assert_eq!(volatile(before.as_bytes(), after.as_bytes()), expect, "{before} → {after}");
    }

    #[test]
    fn every_pattern_compiles() {
        assert_eq!((PATHS.len(), IDS.len(), CLOCKS.len(), RANDOM.len()), (1, 1, 7, 2));
    }

    #[test]
    fn volatile_text_is_named() {
        check("Today is 2026-11-30.", "Today is 2026-12-01.", Some(Change::Clock));
        check("It is 10:41:07 PM now", "It is 10:41:09 PM now", Some(Change::Clock));
        check("Date: Mon Nov 30 2026", "Date: Tue Dec 1 2026", Some(Change::Clock));
        check("on November 30, 2026", "on November 29, 2026", Some(Change::Clock));
        check("at 1796032000 s", "at 1796032061 s", Some(Change::Clock));
        check("cwd: /home/a/one\\nx", "cwd: /home/a/two\\nx", Some(Change::Path));
        check("in ~/work/2026-11-30/x", "in ~/work/2026-11-31/x", Some(Change::Path));
        check(
            "id 0197f0aa-0000-7000-8000-000000000001",
            "id 0197f0ab-0000-7000-8000-000000000002",
            Some(Change::RandomId),
        );
        check("cch=1f3a9;", "cch=77c01;", Some(Change::RandomId));
        check("session_8fKq2Zp1", "session_0aLm7Rt3", Some(Change::RandomId));
        check("src/\n└───lib.rs\n", "src/\n├───id.rs\n└───lib.rs\n", Some(Change::Listing));
        check("be brief", "be verbose", None);
        check("three apples", "three pears", None);
    }
}
