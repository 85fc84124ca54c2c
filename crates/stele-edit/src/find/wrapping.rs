//! What is copied around a text by mistake: code fences, line numbers, HTML escapes. Each is taken off only when the
//! text as it was written is nowhere in the file.

use super::Healed;
use crate::text::{blank, line_feeds};

/// The character between a line number and its line where `read` numbers lines.
pub const GUTTER: char = '\u{2192}';

/// Old and new text without what was around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bare {
    pub old: String,
    pub new: String,
    pub healed: Vec<Healed>,
    /// The line (from 1) that the first line's number named.
    pub gutter_line: Option<u64>,
}

/// Takes off what can be taken off, from the outside in: one candidate for each further wrapping.
pub(crate) fn bare(old: &str, new: &str) -> Vec<Bare> {
    let mut found: Vec<Bare> = Vec::new();
    let mut now = Bare { old: line_feeds(old), new: line_feeds(new), healed: Vec::new(), gutter_line: None };
    if let Some(inside) = fence(&now.old) {
        now.old = inside;
        now.new = fence(&now.new).unwrap_or(now.new);
        now.healed.push(Healed::Fence);
        found.push(now.clone());
    }
    if let Some((line, inside)) = numbered(&now.old)
        && let Some(new) = unnumbered(&now.new)
    {
        now.old = inside;
        now.new = new;
        now.gutter_line = Some(line);
        now.healed.push(Healed::Gutter);
        found.push(now.clone());
    }
    if let Some(inside) = unescaped(&now.old) {
        now.new = unescaped(&now.new).unwrap_or(now.new);
        now.old = inside;
        now.healed.push(Healed::Html);
        found.push(now);
    }
    found
}

/// The text inside one code fence.
fn fence(text: &str) -> Option<String> {
    let trimmed = text.trim();
    let (first, rest) = trimmed.split_once('\n')?;
    let ticks = first.len() - first.trim_start_matches('`').len();
    let info = &first[ticks..];
    let last = rest.rsplit('\n').next()?;
    if ticks < 3 || info.contains('`') || last.trim_end() != &first[..ticks] {
        return None;
    }
    Some(rest[..rest.len() - last.len()].strip_suffix('\n').unwrap_or_default().to_owned()).filter(|text| !blank(text))
}

/// A line's number and the line, in the style of `read`: perhaps spaces, digits, and an arrow.
fn gutter(line: &str) -> Option<(u64, &str)> {
    let digits = line.trim_start_matches(' ');
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    let rest = digits[count..].strip_prefix(GUTTER)?;
    Some((digits[..count].parse().ok()?, rest))
}

/// Lines that all carry consecutive numbers: the first number and the lines.
fn numbered(text: &str) -> Option<(u64, String)> {
    let mut first = None;
    let mut lines = Vec::new();
    let body = text.strip_suffix('\n');
    for line in body.unwrap_or(text).split('\n') {
        let (number, rest) = gutter(line)?;
        let start = *first.get_or_insert(number);
        if number != start.checked_add(lines.len() as u64)? {
            return None;
        }
        lines.push(rest);
    }
    Some((first?, lines.join("\n") + if body.is_some() { "\n" } else { "" }))
}

/// New text without line numbers: all its lines carry them or none does. Absent when only some do.
fn unnumbered(text: &str) -> Option<String> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let lines: Vec<&str> = body.split('\n').collect();
    let with = lines.iter().filter(|line| gutter(line).is_some()).count();
    if with == 0 {
        return Some(text.to_owned());
    }
    if lines.iter().any(|line| gutter(line).is_none() && !blank(line)) {
        return None;
    }
    let bare: Vec<&str> = lines.iter().map(|line| gutter(line).map_or("", |(_, rest)| rest)).collect();
    Some(bare.join("\n") + &text[body.len()..])
}

/// Text with the five HTML escapes undone once; absent when it holds none.
pub(crate) fn unescaped(text: &str) -> Option<String> {
    const ESCAPES: [(&str, &str); 8] = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&apos;", "'"),
        ("&amp;", "&"),
    ];
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let (escape, meant) = ESCAPES.iter().find(|(escape, _)| rest.starts_with(escape)).unwrap_or(&("&", "&"));
        plain.push_str(meant);
        rest = &rest[escape.len()..];
    }
    plain.push_str(rest);
    (plain != text).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences() {
        assert_eq!(fence("```rust\nfn a() {}\n```\n").unwrap(), "fn a() {}");
        assert_eq!(fence("```\na"), None);
        assert_eq!(fence("a\n```"), None);
    }

    #[test]
    fn gutters_are_consecutive_and_everywhere() {
        assert_eq!(numbered("     7\u{2192}a\n     8\u{2192}\tb\n").unwrap(), (7, "a\n\tb\n".to_owned()));
        assert_eq!(numbered("7\u{2192}a\n9\u{2192}b"), None);
        assert_eq!(numbered("7\u{2192}a\nb"), None);
        assert_eq!(numbered("7\ta\n8\tb"), None);
        assert_eq!(unnumbered("7\u{2192}a\n8\u{2192}B").unwrap(), "a\nB");
        assert_eq!(unnumbered("a\nB").unwrap(), "a\nB");
        assert_eq!(unnumbered("7\u{2192}a\nB"), None);
    }

    #[test]
    fn html_is_decoded_once() {
        assert_eq!(unescaped("a &lt; b &amp;&amp; c &amp;lt;").unwrap(), "a < b && c &lt;");
        assert_eq!(unescaped("a && b"), None);
    }
}
