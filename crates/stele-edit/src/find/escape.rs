//! Escape slips: text that was escaped once more than it should have been.

use std::collections::BTreeSet;

/// Families of escapes that slip in together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// `\n`, `\r`, `\t`.
    Control,
    /// `\"`, `\'`, `` \` ``.
    Quote,
    /// `\[`, `\.`, `\/` and other punctuation.
    Punctuation,
    /// `\\`.
    Backslash,
}

/// Which families are undone together; each gives one reading of the text.
const READINGS: &[&[Family]] = &[
    &[Family::Control],
    &[Family::Quote],
    &[Family::Punctuation],
    &[Family::Backslash],
    &[Family::Control, Family::Quote],
    &[Family::Quote, Family::Punctuation],
    &[Family::Quote, Family::Backslash],
    &[Family::Control, Family::Quote, Family::Backslash],
    &[Family::Control, Family::Quote, Family::Punctuation, Family::Backslash],
];

fn family(escaped: char) -> Option<(Family, char)> {
    Some(match escaped {
        'n' => (Family::Control, '\n'),
        'r' => (Family::Control, '\r'),
        't' => (Family::Control, '\t'),
        '"' | '\'' | '`' => (Family::Quote, escaped),
        '\\' => (Family::Backslash, '\\'),
        _ if escaped.is_ascii_punctuation() => (Family::Punctuation, escaped),
        _ => return None,
    })
}

/// One reading of a text without its slips.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub text: String,
    /// The slips that were undone, as the character after the backslash.
    pub slips: BTreeSet<char>,
}

/// Every distinct reading of a text that holds slips.
pub(crate) fn readings(text: &str) -> Vec<Reading> {
    if !text.contains('\\') {
        return Vec::new();
    }
    let mut found: Vec<Reading> = Vec::new();
    for families in READINGS {
        let reading = read(text, families);
        if !reading.slips.is_empty() && found.iter().all(|other| other.text != reading.text) {
            found.push(reading);
        }
    }
    found
}

fn read(text: &str, families: &[Family]) -> Reading {
    let mut reading = Reading { text: String::with_capacity(text.len()), slips: BTreeSet::new() };
    pairs(text, |plain, pair| {
        reading.text.push_str(plain);
        let Some(escaped) = pair else { return };
        match family(escaped).filter(|(family, _)| families.contains(family)) {
            Some((_, meant)) => {
                reading.text.push(meant);
                reading.slips.insert(escaped);
            }
            None => {
                reading.text.push('\\');
                reading.text.push(escaped);
            }
        }
    });
    reading.text = reading.text.replace("\r\n", "\n");
    reading
}

/// The first of the slips that a text carries too.
pub(crate) fn carries(text: &str, slips: &BTreeSet<char>) -> Option<char> {
    let mut found = None;
    pairs(text, |_, pair| {
        if found.is_none() {
            found = pair.filter(|escaped| slips.contains(escaped));
        }
    });
    found
}

/// Walks a text as stretches without a backslash, each followed by the character that a backslash escapes.
fn pairs(text: &str, mut visit: impl FnMut(&str, Option<char>)) {
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let mut after = rest[at + 1..].chars();
        match after.next() {
            Some(escaped) => visit(&rest[..at], Some(escaped)),
            None => break,
        }
        rest = after.as_str();
    }
    visit(rest, None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_of_slips() {
        let texts = |text: &str| readings(text).into_iter().map(|reading| reading.text).collect::<Vec<_>>();
        assert_eq!(texts(r"a\nb"), ["a\nb"]);
        assert_eq!(texts(r#"say(\"x\\n\")"#), [r#"say("x\\n")"#, r#"say(\"x\n\")"#, r#"say("x\n")"#]);
        assert_eq!(texts(r"a\[0\]"), ["a[0]"]);
        assert_eq!(texts("plain"), [""; 0]);
        assert_eq!(texts(r"C:\Users\x"), [""; 0]);
        assert_eq!(texts("end\\"), [""; 0]);
    }

    #[test]
    fn the_same_slips_are_seen() {
        let slips = readings(r#"\"a\""#)[0].slips.clone();
        assert_eq!(carries(r#"\"b\""#, &slips), Some('"'));
        assert_eq!(carries(r#""b\n""#, &slips), None);
        assert_eq!(carries(r#"\\"b"#, &slips), None);
    }
}
