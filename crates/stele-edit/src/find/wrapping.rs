//! What is put around a text by mistake: CDATA sections, code fences, line numbers, HTML escapes. Each is taken off only when the
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
    /// The line numbers that were in front of the old text.
    pub gutter: Option<Gutter>,
}

/// Line numbers that were copied along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gutter {
    /// The first line's number, from 1.
    pub line: u64,
    pub style: Style,
}

/// What stands between a line number and its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// The arrow of `read` and of refusals.
    Arrow,
    /// `12: ` of a line that `grep` found, `12- ` of one around it. Files hold such lines too, so that the rest has to be
    /// whole lines of the file, and the new text has to be numbered from the same line or not at all.
    Grep,
}

/// Takes off what can be taken off, from the outside in: one candidate for each further wrapping.
pub(crate) fn bare(old: &str, new: &str) -> Vec<Bare> {
    let mut found: Vec<Bare> = Vec::new();
    let mut now = Bare { old: line_feeds(old), new: line_feeds(new), healed: Vec::new(), gutter: None };
    if let Some(inside) = section(&now.old) {
        now.new = section(&now.new).unwrap_or(now.new);
        now.old = inside;
        now.healed.push(Healed::Cdata);
        found.push(now.clone());
    }
    if let Some(inside) = fence(&now.old) {
        now.old = inside;
        now.new = fence(&now.new).unwrap_or(now.new);
        now.healed.push(Healed::Fence);
        found.push(now.clone());
    }
    if let Some((gutter, inside)) = numbered(&now.old)
        && let Some(new) = unnumbered(&now.new, gutter)
    {
        now.old = inside;
        now.new = new;
        now.gutter = Some(gutter);
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

/// The text inside one CDATA section; the line breaks next to its marks are for the eye.
fn section(text: &str) -> Option<String> {
    let inside = text.trim().strip_prefix("<![CDATA[")?.strip_suffix("]]>")?;
    let inside = inside.strip_prefix('\n').unwrap_or(inside);
    let inside = inside.strip_suffix('\n').unwrap_or(inside);
    (!inside.contains("]]>") && !blank(inside)).then(|| inside.to_owned())
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

/// A line's number, what separates it, and the line: perhaps spaces, digits, and an arrow or the mark of `grep`.
fn numbered_line(line: &str) -> Option<(u64, Style, &str)> {
    let digits = line.trim_start_matches(' ');
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = (digits[..count].parse().ok()?, &digits[count..]);
    if let Some(rest) = rest.strip_prefix(GUTTER) {
        return Some((number, Style::Arrow, rest));
    }
    let rest = rest.strip_prefix([':', '-'])?;
    // An empty line may have lost the space.
    rest.strip_prefix(' ').or(Some(rest).filter(|rest| rest.is_empty())).map(|rest| (number, Style::Grep, rest))
}

/// Lines that all carry consecutive numbers of one style: the gutter and the lines.
fn numbered(text: &str) -> Option<(Gutter, String)> {
    let mut gutter: Option<Gutter> = None;
    let mut lines = Vec::new();
    let body = text.strip_suffix('\n');
    for line in body.unwrap_or(text).split('\n') {
        let (number, style, rest) = numbered_line(line)?;
        let first = *gutter.get_or_insert(Gutter { line: number, style });
        if style != first.style || number != first.line.checked_add(lines.len() as u64)? {
            return None;
        }
        lines.push(rest);
    }
    Some((gutter?, lines.join("\n") + if body.is_some() { "\n" } else { "" }))
}

/// New text without line numbers as the old one had them: all its lines carry them or none does. Absent when that is not
/// so.
fn unnumbered(text: &str, of: Gutter) -> Option<String> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let bare = |line| numbered_line(line).filter(|(_, style, _)| *style == of.style);
    let lines: Vec<Option<(u64, Style, &str)>> = body.split('\n').map(bare).collect();
    if lines.iter().all(Option::is_none) {
        return Some(text.to_owned());
    }
    if of.style == Style::Grep {
        return numbered(text).filter(|(gutter, _)| *gutter == of).map(|(_, inside)| inside);
    }
    if lines.iter().zip(body.split('\n')).any(|(found, line)| found.is_none() && !blank(line)) {
        return None;
    }
    let bare: Vec<&str> = lines.iter().map(|found| found.map_or("", |(.., rest)| rest)).collect();
    Some(bare.join("\n") + &text[body.len()..])
}

/// Text without line numbers, whatever they are; absent when a line has none. Only to show what comes near it.
pub(crate) fn without_numbers(text: &str) -> Option<String> {
    let lines = text.trim_end_matches('\n').split('\n');
    let bare: Option<Vec<&str>> = lines.map(|line| numbered_line(line).map(|(.., rest)| rest)).collect();
    bare.map(|lines| lines.join("\n")).filter(|text| !blank(text))
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
    fn sections() {
        assert_eq!(section("<![CDATA[a<b]]>").unwrap(), "a<b");
        assert_eq!(section("<![CDATA[\n  a\n]]>\n").unwrap(), "  a");
        for other in ["<![CDATA[a]]>b]]>", "x<![CDATA[a]]>", "<![CDATA[a", "<![CDATA[ ]]>"] {
            assert_eq!(section(other), None, "{other}");
        }
    }

    #[test]
    fn gutters_are_consecutive_and_everywhere() {
        let arrow = Gutter { line: 7, style: Style::Arrow };
        assert_eq!(numbered("     7\u{2192}a\n     8\u{2192}\tb\n").unwrap(), (arrow, "a\n\tb\n".to_owned()));
        assert_eq!(numbered("7\u{2192}a\n9\u{2192}b"), None);
        assert_eq!(numbered("7\u{2192}a\nb"), None);
        assert_eq!(numbered("7\ta\n8\tb"), None);
        assert_eq!(unnumbered("7\u{2192}a\n8\u{2192}B", arrow).unwrap(), "a\nB");
        assert_eq!(unnumbered("a\nB", arrow).unwrap(), "a\nB");
        assert_eq!(unnumbered("7\u{2192}a\nB", arrow), None);
    }

    #[test]
    fn gutters_of_grep_are_taken_with_more_care() {
        let grep = Gutter { line: 7, style: Style::Grep };
        assert_eq!(numbered("7: a\n8-\n9-   b").unwrap(), (grep, "a\n\n  b".to_owned()));
        for other in ["7: a\n9: b", "7: a\n8\u{2192}b", "7:a", "7. a", ": a", "7: a\n--\n8: b"] {
            assert_eq!(numbered(other), None, "{other}");
        }
        assert_eq!(unnumbered("7: A\n8: B\n", grep).unwrap(), "A\nB\n");
        assert_eq!(unnumbered("A\nB", grep).unwrap(), "A\nB");
        // Perhaps the line itself starts with a number.
        assert_eq!(unnumbered("1: A", grep), None);
        assert_eq!(unnumbered("7: A\nB", grep), None);
        assert_eq!(without_numbers("7: a\n30: b\n").unwrap(), "a\nb");
        assert_eq!(without_numbers("7: a\nb"), None);
    }

    #[test]
    fn html_is_decoded_once() {
        assert_eq!(unescaped("a &lt; b &amp;&amp; c &amp;lt;").unwrap(), "a < b && c &lt;");
        assert_eq!(unescaped("a && b"), None);
    }
}
