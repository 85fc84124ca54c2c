//! Code fences around a whole input.

use crate::text::blank;

pub(super) enum Fenced {
    /// The input is one closed fence: what is inside.
    Whole(String),
    /// It starts as one, but is not closed, or it is not clear where.
    Cut(String),
    None,
}

/// Length of a fence of backticks or tildes that a line opens with, and its character.
pub(super) fn opening(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.chars().take_while(|other| *other == mark).count();
    (length >= 3 && !line[length..].contains('`')).then_some((mark, length))
}

pub(super) fn closes(line: &str, mark: char, length: usize) -> bool {
    let line = line.trim_end();
    line.len() >= length && line.chars().all(|other| other == mark)
}

/// True when a line opens or closes a fence.
pub(super) fn is_mark(line: &str) -> bool {
    opening(line.trim()).is_some()
}

/// True when a fence is somewhere in the input.
pub(super) fn holds(input: &str) -> bool {
    input.lines().any(is_mark)
}

/// Looks whether the input is one fence with nothing but blank lines around it.
pub(super) fn only(input: &str) -> Fenced {
    let trimmed = input.trim_matches(['\n', '\r', ' ', '\t']);
    let Some((first, rest)) = trimmed.split_once('\n') else { return Fenced::None };
    let Some((mark, length)) = opening(first.trim_end_matches('\r')) else { return Fenced::None };
    let lines: Vec<&str> = rest.split_inclusive('\n').collect();
    let closing: Vec<usize> = (0..lines.len()).filter(|at| closes(lines[*at], mark, length)).collect();
    let inner = |end: usize| lines[..end].concat();
    match closing.as_slice() {
        [only] if only + 1 == lines.len() => Fenced::Whole(inner(*only)),
        [] => Fenced::Cut("the code fence is not closed, so the text may be cut; send it whole".to_owned()),
        [.., last] if last + 1 == lines.len() => {
            // An inner pair of the same length cannot be told from two fences.
            if lines[..*last].iter().any(|line| opening(line.trim_end()).is_some_and(|(_, inner)| inner >= length)) {
                Fenced::Cut(format!(
                    "there are code fences inside the code fence, so where it ends is not clear; put the whole file in a \
                     longer one ({})",
                    mark.to_string().repeat(length + 1)
                ))
            } else {
                Fenced::None
            }
        }
        [first, ..] if lines[first + 1..].iter().all(|line| blank(line)) => Fenced::Whole(inner(*first)),
        _ => Fenced::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(input: &str) -> Option<String> {
        match only(input) {
            Fenced::Whole(inside) => Some(inside),
            _ => None,
        }
    }

    #[test]
    fn one_closed_fence() {
        assert_eq!(whole("```rust\nfn a() {}\n```\n").unwrap(), "fn a() {}\n");
        assert_eq!(whole("\n~~~\na\n~~~").unwrap(), "a\n");
        assert_eq!(whole("````md\n```sh\nls\n```\n````\n").unwrap(), "```sh\nls\n```\n");
        assert_eq!(whole("Here:\n```\na\n```\n"), None);
        assert_eq!(whole("```\na\n```\ndone\n"), None);
        assert!(matches!(only("```\na\n"), Fenced::Cut(_)));
        assert!(matches!(only("```\na\n```\n```\nb\n```\n"), Fenced::Cut(_)));
    }
}
