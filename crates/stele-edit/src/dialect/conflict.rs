//! Search/replace blocks between conflict markers.

use super::{Action, Fault, Read, Section, fence};
use crate::find::{Sought, Texts, Unit};
use crate::perform::{InsertAt, Request};
use crate::text::blank;

/// Words that follow a marker where there is no doubt what it is.
const OPENING: [&str; 6] = ["SEARCH", "ORIGINAL", "HEAD", "OLD", "BEFORE", "FIND"];
const CLOSING: [&str; 6] = ["REPLACE", "UPDATED", "UPDATE", "NEW", "AFTER", "END"];

/// The length of a marker line and the text after it.
fn marker(line: &str, mark: char) -> Option<(usize, &str)> {
    let line = line.trim_end();
    let length = line.len() - line.trim_start_matches(mark).len();
    let words = &line[length..];
    ((3..=12).contains(&length) && (words.is_empty() || words.starts_with([' ', '\t'])))
        .then_some((length, words.trim()))
}

fn says(words: &str, known: &[&str]) -> bool {
    let first = words.split([' ', ':', '\t']).next().unwrap_or_default();
    known.iter().any(|word| first.eq_ignore_ascii_case(word))
}

/// Where blocks may start in an input.
pub(super) struct Marks {
    /// By length, the line after the last divider and after the last end.
    dividers: [usize; 13],
    ends: [usize; 13],
}

impl Marks {
    pub(super) fn new(lines: &[&str]) -> Self {
        let mut marks = Self { dividers: [0; 13], ends: [0; 13] };
        for (at, line) in lines.iter().enumerate() {
            if let Some((length, "")) = marker(line, '=') {
                marks.dividers[length] = at + 1;
            }
            if let Some((length, _)) = marker(line, '>') {
                marks.ends[length] = at + 1;
            }
        }
        marks
    }

    /// True when a block starts here: a marker that says so, or one of the usual length, or one whose block is whole.
    pub(super) fn opens(&self, lines: &[&str], at: usize) -> bool {
        let Some((length, words)) = marker(lines[at], '<') else { return false };
        says(words, &OPENING)
            || length >= 7
            || (words.is_empty() || length > 3) && self.dividers[length] > at && self.ends[length] > at
    }
}

/// True for a marker that says in a word that a block starts.
pub(super) fn names_itself(line: &str) -> bool {
    marker(line, '<').is_some_and(|(_, words)| says(words, &OPENING))
}

fn is_divider(line: &str, length: usize) -> bool {
    let line = line.trim_end();
    line.len() == length && line.bytes().all(|byte| byte == b'=')
}

pub(super) fn parse(lines: &[&str]) -> Result<Read, Fault> {
    let marks = Marks::new(lines);
    let mut sections: Vec<Section> = Vec::new();
    let mut left = Vec::new();
    let (mut at, mut last) = (0, 0);
    while at < lines.len() {
        let Some((length, _)) = marker(lines[at], '<').filter(|_| marks.opens(lines, at)) else {
            if stray(lines[at]) {
                return Err(Fault::broken(at, "there is a marker that belongs to no block"));
            }
            left.push(at);
            at += 1;
            continue;
        };
        let (search, replace, next) = block(lines, &marks, at, length)?;
        let path = name_above(&lines[last..at]);
        let request = request(search, replace);
        match sections.last_mut() {
            Some(Section { path: named, action: Action::Change { requests, .. } })
                if path.is_none() || path == *named =>
            {
                requests.push(request);
            }
            _ => sections.push(Section { path, ..Section::unnamed(vec![request]) }),
        }
        (at, last) = (next, next);
    }
    Ok(Read { sections, left, notes: Vec::new() })
}

/// The file that is named above a block or its code fence, as some agents' models do: a line that is a name with a folder or
/// an extension, and nothing else. What is above the next block without a name is for the same file.
fn name_above(lines: &[&str]) -> Option<String> {
    let line = lines.iter().rev().find(|line| !blank(line) && !fence::is_mark(line))?.trim();
    let name = line.trim_matches(['*', '`', '#', ' ']).trim_end_matches(':').trim_matches(['*', '`']);
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_extension = (1..=8).contains(&extension.len())
        && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && extension.starts_with(|first: char| first.is_ascii_alphabetic());
    let is_name =
        !name.contains(|it: char| it.is_whitespace() || "<>\"'()[]{},;=".contains(it)) && !name.contains("://");
    (is_name && !name.ends_with(['/', '.']) && (is_extension && !stem.is_empty() || name.contains('/')))
        .then(|| name.to_owned())
}

/// A closing marker that says what it is, outside a block.
fn stray(line: &str) -> bool {
    marker(line, '>').is_some_and(|(length, words)| length >= 5 && (words.is_empty() || says(words, &CLOSING)))
}

type Block<'a, 'b> = (&'b [&'a str], &'b [&'a str], usize);

fn block<'a, 'b>(lines: &'b [&'a str], marks: &Marks, at: usize, length: usize) -> Result<Block<'a, 'b>, Fault> {
    // The block cannot reach into the next one.
    let same = |line: usize| marker(lines[line], '<').is_some_and(|(other, _)| other == length);
    let opens_next = |line: &usize| same(*line) && marks.opens(lines, *line);
    let limit = (at + 1..lines.len()).find(opens_next).unwrap_or(lines.len());
    let dividers: Vec<usize> = (at + 1..limit).filter(|line| is_divider(lines[*line], length)).collect();
    let divider = match dividers.as_slice() {
        [only] => *only,
        [] => {
            return Err(Fault::broken(
                at,
                format!("the block that starts here has no divider ({})", "=".repeat(length)),
            ));
        }
        _ => {
            return Err(Fault::broken(
                dividers[1],
                "the block has several dividers; use markers of another length, from 3 to 12, than any line of the text",
            ));
        }
    };
    let ends: Vec<(usize, &str)> = (divider + 1..limit)
        .filter_map(|line| {
            marker(lines[line], '>').filter(|(other, _)| *other == length).map(|(_, words)| (line, words))
        })
        .collect();
    let named: Vec<usize> = ends.iter().filter(|(_, words)| says(words, &CLOSING)).map(|(line, _)| *line).collect();
    let bare: Vec<usize> = ends.iter().filter(|(_, words)| words.is_empty()).map(|(line, _)| *line).collect();
    let end = match (ends.as_slice(), named.as_slice(), bare.as_slice()) {
        ([(only, _)], _, _) | (_, [only], _) | (_, [], [only]) => *only,
        ([], _, _) => {
            return Err(Fault::broken(at, format!("the block that starts here has no end ({})", ">".repeat(length))));
        }
        _ => return Err(Fault::broken(at, "the block that starts here has several ends; use longer markers")),
    };
    Ok((&lines[at + 1..divider], &lines[divider + 1..end], end + 1))
}

fn request(search: &[&str], replace: &[&str]) -> Request {
    let (near, search) = start_line(search);
    let replace = match replace.split_first() {
        // Some write the divider of dashes a second time.
        Some((first, rest)) if near.is_some() && is_dashes(first) => rest,
        _ => replace,
    };
    if search.iter().all(|line| blank(line)) {
        let lines = replace.iter().map(|line| (*line).to_owned()).collect();
        return Request::Insert { at: InsertAt::End, lines, final_newline: None };
    }
    Request::Find {
        sought: Sought {
            unit: Unit::Lines,
            texts: Texts { old: search.join("\n"), new: (!replace.is_empty()).then(|| replace.join("\n")) },
            all: false,
            near,
            at_end: false,
            scope: None,
            final_newline: None,
        },
        names: Vec::new(),
        names_must_be_there: false,
    }
}

fn is_dashes(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 5 && line.bytes().all(|byte| byte == b'-')
}

/// `:start_line:12`, perhaps `:end_line:15`, then a line of dashes: one agent's models name the line that way.
fn start_line<'a, 'b>(search: &'b [&'a str]) -> (Option<u64>, &'b [&'a str]) {
    let number = |line: &str, name: &str| line.trim().strip_prefix(name)?.trim().parse().ok();
    let Some(near) = search.first().and_then(|line| number(line, ":start_line:")) else { return (None, search) };
    let end = search.get(1).is_some_and(|line| number(line, ":end_line:").is_some());
    let rest = &search[1 + usize::from(end)..];
    match rest.split_first() {
        Some((first, rest)) if is_dashes(first) => (Some(near), rest),
        _ => (None, search),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(input: &str) -> Result<Vec<(String, Option<String>)>, Fault> {
        let lines: Vec<&str> = input.lines().collect();
        let sections = parse(&lines)?.sections;
        let super::super::Action::Change { requests, .. } = &sections[0].action else { panic!() };
        Ok(requests
            .iter()
            .map(|request| match request {
                Request::Find { sought, .. } => (sought.texts.old.clone(), sought.texts.new.clone()),
                Request::Insert { lines, .. } => (String::new(), Some(lines.join("\n"))),
                _ => panic!(),
            })
            .collect())
    }

    fn pair(old: &str, new: Option<&str>) -> (String, Option<String>) {
        (old.to_owned(), new.map(str::to_owned))
    }

    #[test]
    fn blocks() {
        assert_eq!(
            texts("a.rs\n```\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```\n<<<<<<<\nc\n=======\n>>>>>>>\n")
                .unwrap(),
            [pair("a", Some("b")), pair("c", None)]
        );
        assert_eq!(texts("<<< HEAD\na\n===\n>>> x()\n>>> REPLACE\n").unwrap(), [pair("a", Some(">>> x()"))]);
        assert_eq!(texts("<<<<<<< SEARCH\n=======\na\n>>>>>>> REPLACE").unwrap(), [pair("", Some("a"))]);
        assert_eq!(
            texts("<<<<< SEARCH\nTitle\n=======\n=====\nName\n=======\n>>>>> REPLACE").unwrap(),
            [pair("Title\n=======", Some("Name\n======="))]
        );
    }

    #[test]
    fn files_above_blocks() {
        for (above, name) in [
            ("x.py\n```python", Some("x.py")),
            ("**src/x.rs**\n\n```", Some("src/x.rs")),
            ("### `src/Makefile`:", Some("src/Makefile")),
            ("```\nx.py", Some("x.py")),
            ("Change x.py:\n```", None),
            ("Now.", None),
            ("Step 2.1", None),
            ("2.1", None),
            ("see https://example.org/x.py", None),
            ("https://example.org/x.py", None),
            ("obj.method()", None),
            ("```", None),
        ] {
            let lines: Vec<&str> = above.lines().collect();
            assert_eq!(name_above(&lines).as_deref(), name, "{above}");
        }
    }

    #[test]
    fn what_is_cut_is_refused() {
        for input in [
            "<<<<<<< SEARCH\na\n=======\nb\n",
            "<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n",
            "<<<<<<< SEARCH\na\n=======\nb\n=======\nc\n>>>>>>> REPLACE\n",
            "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n>>>>>>> REPLACE\nx",
            "<<<<<<< SEARCH\na\n<<<<<<< SEARCH\nb\n=======\nc\n>>>>>>> REPLACE\n",
        ] {
            assert!(matches!(texts(input), Err(Fault::Broken { .. })), "{input}");
        }
    }
}
