//! `<old_text>` and `<new_text>`.

use super::{Action, Fault, Read, Section};
use crate::Edit;

/// True for a line that opens one of the tags.
pub(super) fn marks(line: &str) -> bool {
    let mut rest = line.trim_start();
    // Other tags may be in front of them, such as `<edits>`.
    for _ in 0..4 {
        if tag(rest, "old_text").is_some() || tag(rest, "new_text").is_some() {
            return true;
        }
        match rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
            Some((_, after)) => rest = after.trim_start(),
            None => return false,
        }
    }
    false
}

/// Attributes and the rest after a tag that the text starts with.
fn tag<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let rest = text.strip_prefix('<')?.strip_prefix(name)?;
    if !rest.starts_with(['>', ' ', '\t']) {
        return None;
    }
    rest.split_once('>').filter(|(attributes, _)| attributes.len() < 100 && !attributes.contains('\n'))
}

pub(super) fn parse(lines: &[&str]) -> Result<Read, Fault> {
    let first = lines.iter().position(|line| marks(line)).unwrap_or(0);
    let text = lines[first..].join("\n");
    let mut left: Vec<usize> = (0..first).collect();
    let mut edits = Vec::new();
    let mut rest = text.as_str();
    let line_of = |rest: &str| first + text[..text.len() - rest.len()].matches('\n').count();
    while let Some(at) = next_tag(rest) {
        outside(lines, line_of(rest), line_of(&rest[at..]), &mut left);
        let here = &rest[at..];
        let (near_line, old, after) = element(here, "old_text").map_err(|why| Fault::broken(line_of(here), why))?;
        let gap = after.len() - after.trim_start().len();
        let (_, new, after) = element(&after[gap..], "new_text").map_err(|why| Fault::broken(line_of(after), why))?;
        edits.push(Edit { old, new, all: false, near_line });
        rest = after;
    }
    outside(lines, line_of(rest), lines.len(), &mut left);
    let sections =
        if edits.is_empty() { Vec::new() } else { vec![Section { path: None, action: Action::Edits(edits) }] };
    Ok(Read { sections, left, notes: Vec::new() })
}

/// Whole lines between two elements; the lines that hold their tags are no dialect's.
fn outside(lines: &[&str], from: usize, to: usize, left: &mut Vec<usize>) {
    left.extend((from..to).filter(|line| lines.get(*line).is_some_and(|it| !it.contains("_text>") && !marks(it))));
}

fn next_tag(text: &str) -> Option<usize> {
    ["<old_text", "<new_text"].iter().filter_map(|tag| text.find(tag)).min()
}

/// One element: the line it names, its text, and what comes after it.
fn element<'a>(text: &'a str, name: &str) -> Result<(Option<u64>, String, &'a str), String> {
    let (attributes, inside) = tag(text, name).ok_or_else(|| format!("a <{name}> is missing"))?;
    let close = format!("</{name}>");
    let end = inside.find(&close).ok_or_else(|| format!("<{name}> is not closed"))?;
    let near = attributes
        .trim()
        .strip_prefix("line")
        .and_then(|value| value.trim_start().strip_prefix('=')?.trim().trim_matches(['"', '\'']).parse().ok());
    let content = &inside[..end];
    // The line breaks next to the tags are for the eye.
    let content = content.strip_prefix('\n').unwrap_or(content);
    let content = content.strip_suffix('\n').unwrap_or(content);
    Ok((near, content.to_owned(), &inside[end + close.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edits(input: &str) -> Result<(Vec<Edit>, Vec<String>), Fault> {
        let lines: Vec<&str> = input.lines().collect();
        let Read { sections, left, .. } = parse(&lines)?;
        let Some(Section { action: Action::Edits(edits), .. }) = sections.into_iter().next() else { panic!() };
        Ok((edits, left.into_iter().map(|line| lines[line].to_owned()).collect()))
    }

    #[test]
    fn pairs() {
        let (found, left) = edits(
            "Now:\n<edits>\n<old_text line=12>\n  a\n</old_text>\n<new_text>\n  b\n</new_text>\n--- x\n<old_text>c</old_text><new_text></new_text>\n</edits>\n",
        )
        .unwrap();
        assert_eq!(found[0], Edit { old: "  a".into(), new: "  b".into(), all: false, near_line: Some(12) });
        assert_eq!(found[1], Edit { old: "c".into(), ..Edit::default() });
        assert_eq!(left, ["Now:", "<edits>", "--- x", "</edits>"]);
    }

    #[test]
    fn what_is_cut_is_refused() {
        for input in ["<old_text>\na\n</old_text>\n", "<old_text>a</old_text>\n<new_text>b", "<new_text>b</new_text>"] {
            assert!(matches!(edits(input), Err(Fault::Broken { .. })), "{input}");
        }
    }
}
