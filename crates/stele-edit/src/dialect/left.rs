//! What an input holds beside the form that it is in: half a change must not pass for a whole one.

use super::{Dialect, conflict, fence, json, marks, sed, xml};
use crate::text::blank;

/// Lines of a JSON object that are looked at.
const OBJECT: usize = 40;

/// True for a line that starts another form by itself, and would be an odd line of a hunk.
pub(super) fn starts(line: &str) -> bool {
    !line.starts_with([' ', '+', '-'])
        && (conflict::names_itself(line)
            || xml::marks(line)
            || json::marks(line) && json::begins(line)
            || sed::marks(line))
}

/// The dialect that lines which belong to nothing are in, if they are in one.
pub(super) fn other(lines: &[&str], left: &[usize]) -> Option<Dialect> {
    let rest: Vec<&str> = left.iter().map(|line| lines[*line]).collect();
    if let Some(marked) = marks(&rest).first() {
        return Some(*marked);
    }
    for (at, line) in rest.iter().enumerate() {
        if json::marks(line) && json::begins(&rest[at..rest.len().min(at + OBJECT)].join("\n")) {
            return Some(Dialect::Json);
        }
        if sed::marks(line) {
            return Some(Dialect::Sed);
        }
    }
    whole(lines, left).then_some(Dialect::Whole)
}

/// True when a closed code fence holds nothing but lines that are left, and not only blank ones.
fn whole(lines: &[&str], left: &[usize]) -> bool {
    let mut at = 0;
    while at < left.len() {
        let open = at;
        at += 1;
        let Some((mark, length)) = fence::opening(lines[left[open]].trim()) else { continue };
        let Some(close) = (at..left.len()).find(|line| fence::closes(lines[left[*line]].trim_start(), mark, length))
        else {
            continue;
        };
        let inside = &left[at..close];
        if left[close] - left[open] == close - open && !inside.iter().all(|line| blank(lines[*line])) {
            return true;
        }
        at = close + 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(left: &str) -> Option<Dialect> {
        let lines: Vec<&str> = left.lines().collect();
        other(&lines, &(0..lines.len()).collect::<Vec<_>>())
    }

    #[test]
    fn other_forms_are_seen() {
        for (left, dialect) in [
            ("Then:\n{\"search\": \"b\", \"replace\": \"y\"}", Dialect::Json),
            ("{\n  \"path\": \"f\",\n  \"old_string\": \"b\",\n  \"new_string\": \"c\"\n}", Dialect::Json),
            ("{\"edits\": [{\"old\": \"b\"", Dialect::Json),
            ("search=\"b\" replace=\"y\"", Dialect::Json),
            ("and\n  s/b/c/", Dialect::Sed),
            ("sed -i 's/b/c/' f", Dialect::Sed),
            ("s/b/c/2", Dialect::Sed),
            ("The file:\n```\nwhole\n```", Dialect::Whole),
            ("<old_text>b</old_text>", Dialect::Xml),
        ] {
            assert_eq!(found(left), Some(dialect), "{left}");
        }
    }

    #[test]
    fn prose_is_none() {
        for left in [
            "",
            "src/a.rs\n```rust\n```",
            "This replaces the search: it was slow.",
            "{braces} and [brackets]",
            "{\"name\": \"x\"}",
            "so it goes; s.o. said it",
            "old: the loop. new: the map",
            "```\nnot closed",
        ] {
            assert_eq!(found(left), None, "{left}");
        }
    }

    #[test]
    fn a_fence_around_what_was_read_is_no_file() {
        let lines = ["```py", "src/a.py", "@@", "-a", "+b", "```"];
        assert_eq!(other(&lines, &[0, 1, 5]), None);
        assert_eq!(other(&["```py", "src/a.py", "```", "@@", "-a", "+b"], &[0, 1, 2]), Some(Dialect::Whole));
    }
}
