//! The `*** Begin Patch` envelope.

use super::{Action, Fault, Read, Section};
use crate::find::{Sought, Texts, Unit};
use crate::perform::{InsertAt, Request, created};
use crate::refuse::{Code, Refusal};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";
const ADD: &str = "*** Add File:";
const UPDATE: &str = "*** Update File:";
const DELETE: &str = "*** Delete File:";
const MOVE: &str = "*** Move to:";

/// True for a line that only an envelope has.
pub(super) fn marks(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("*** ")
        && (line == BEGIN || line == END || [ADD, UPDATE, DELETE].iter().any(|mark| line.starts_with(mark)))
}

pub(super) fn parse(lines: &[&str]) -> Result<Read, Fault> {
    let begin = lines.iter().position(|line| marks(line)).unwrap_or(0);
    if lines.get(begin).is_none_or(|line| line.trim() != BEGIN) {
        return Err(Fault::broken(begin, format!("it does not start with `{BEGIN}`")));
    }
    let mut sections = Vec::new();
    let mut at = begin + 1;
    loop {
        let Some(line) = lines.get(at).map(|line| line.trim()) else {
            return Err(Fault::broken(lines.len() - 1, format!("`{END}` is missing, so it may be cut")));
        };
        let path = |mark: &str| line.strip_prefix(mark).map(|path| path.trim().to_owned());
        if line == END {
            if lines[at + 1..].iter().any(|line| marks(line)) {
                return Err(Fault::Refused(Refusal::new(Code::Unparsed, second(at))));
            }
            let left = (0..begin).chain(at + 1..lines.len()).collect();
            return Ok(Read { sections, left, notes: Vec::new() });
        }
        let (path, action, next) = if let Some(path) = path(ADD) {
            let (action, next) = add(lines, at + 1)?;
            (path, action, next)
        } else if let Some(path) = path(DELETE) {
            (path, Action::Delete { shown: None }, at + 1)
        } else if let Some(path) = path(UPDATE) {
            let (action, next) = update(lines, at + 1)?;
            (path, action, next)
        } else if line.is_empty() {
            at += 1;
            continue;
        } else {
            return Err(Fault::broken(at, "there is a line that belongs to no file"));
        };
        if path.is_empty() {
            return Err(Fault::broken(at, "a file has no name"));
        }
        sections.push(Section { path: Some(path), action });
        at = next;
    }
}

fn second(end: usize) -> String {
    format!(
        "there is a second envelope after `{END}` (line {}); send one, with all files between `{BEGIN}` and `{END}`",
        end + 1
    )
}

fn add(lines: &[&str], start: usize) -> Result<(Action, usize), Fault> {
    let mut content = Vec::new();
    let mut at = start;
    while let Some(line) = lines.get(at) {
        if let Some(added) = line.strip_prefix('+') {
            content.push(added.to_owned());
            at += 1;
            continue;
        }
        // Blank lines belong to the file when more of it follows.
        let full = (at..lines.len()).find(|at| !lines[*at].is_empty()).unwrap_or(lines.len());
        if full == at || !lines.get(full).is_some_and(|line| line.starts_with('+')) {
            at = full;
            break;
        }
        content.extend((at..full).map(|_| String::new()));
        at = full;
    }
    if lines.get(at).is_some_and(|line| !line.is_empty() && !line.trim_start().starts_with("*** ")) {
        return Err(Fault::broken(at, "a line of a new file does not start with `+`"));
    }
    Ok((Action::Create { content: created(&content, None), mode: None }, at))
}

fn update(lines: &[&str], start: usize) -> Result<(Action, usize), Fault> {
    let mut at = start;
    let mut moved_to = None;
    if let Some(to) = lines.get(at).and_then(|line| line.trim().strip_prefix(MOVE)) {
        moved_to = Some(to.trim().to_owned()).filter(|to| !to.is_empty());
        if moved_to.is_none() {
            return Err(Fault::broken(at, "`*** Move to:` names no file"));
        }
        at += 1;
    }
    let mut requests = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let mut near = None;
    let mut hunk: Vec<&str> = Vec::new();
    let mut opened = at;
    let mut in_hunk = false;
    loop {
        let line = lines.get(at).copied();
        let trimmed = line.map(str::trim_end);
        let ends_file = trimmed == Some(END_OF_FILE);
        let header = trimmed.is_some_and(|line| line.starts_with("@@"));
        let done = line.is_none() || ends(lines, at, in_hunk) && !ends_file;
        if header || ends_file || done {
            if !hunk.is_empty() || ends_file {
                requests.push(request(&hunk, std::mem::take(&mut names), near.take(), ends_file, opened)?);
                hunk.clear();
            } else if in_hunk && done && (!names.is_empty() || requests.is_empty()) {
                return Err(Fault::broken(opened, "a hunk has no lines"));
            }
        }
        let Some(line) = line.filter(|_| !done) else { break };
        if let Some(rest) = line.strip_prefix("@@") {
            (in_hunk, opened) = (true, at);
            match numbers(rest) {
                Some(line) => near = Some(line),
                None => names.extend(name(rest)),
            }
        } else if !ends_file {
            if unified_header(lines, at) {
                return Err(Fault::broken(at, "there is the header of a unified diff in it"));
            }
            if !line.is_empty() && !line.starts_with([' ', '+', '-']) {
                return Err(Fault::broken(at, "a line of a hunk starts with none of space, `+`, `-`"));
            }
            if !line.is_empty() || in_hunk || !hunk.is_empty() {
                hunk.push(line);
                in_hunk = true;
            }
        }
        at += 1;
    }
    Ok((Action::Change { requests, moved_to, mode: None }, at))
}

/// True where the next file or the end starts. Inside a hunk a line that starts with a space is context, but for the
/// last line of all, which many pad.
fn ends(lines: &[&str], at: usize, in_hunk: bool) -> bool {
    let line = lines[at];
    let bare = if in_hunk { line } else { line.trim_start() };
    let last = line.trim() == END && lines[at + 1..].iter().all(|line| !line.trim_start().starts_with("*** "));
    bare.starts_with("*** ") || last
}

/// `--- old`, `+++ new`, `@@`: no hunk starts like that by chance.
fn unified_header(lines: &[&str], at: usize) -> bool {
    lines[at].starts_with("--- ")
        && lines.get(at + 1).is_some_and(|line| line.starts_with("+++ "))
        && lines.get(at + 2).is_some_and(|line| line.starts_with("@@"))
}

/// The first old line of `@@ -3,4 +3,5 @@`.
fn numbers(rest: &str) -> Option<u64> {
    let rest = rest.trim().strip_prefix('-')?;
    let digits = rest.len() - rest.trim_start_matches(|it: char| it.is_ascii_digit()).len();
    rest[digits..].starts_with([',', ' ']).then(|| rest[..digits].parse().ok()).flatten()
}

fn name(rest: &str) -> Option<String> {
    let name = rest.trim();
    let name = name.strip_suffix(" @@").unwrap_or(name).trim_end();
    (!name.is_empty() && name != "@@").then(|| name.to_owned())
}

fn request(
    hunk: &[&str],
    names: Vec<String>,
    near: Option<u64>,
    at_end: bool,
    opened: usize,
) -> Result<Request, Fault> {
    let mut hunk = hunk.to_vec();
    // Blank lines before the next mark are for the eye.
    while hunk.last().is_some_and(|line| line.is_empty()) {
        hunk.pop();
    }
    let side = |without: char| -> Vec<&str> {
        hunk.iter().filter(|line| !line.starts_with(without)).map(|line| line.get(1..).unwrap_or_default()).collect()
    };
    let (old, new) = (side('+'), side('-'));
    if hunk.is_empty() {
        return Err(Fault::broken(opened, "a hunk has no lines"));
    }
    if old.is_empty() {
        let lines = new.iter().map(|line| (*line).to_owned()).collect();
        let at = if names.is_empty() || at_end { InsertAt::End } else { InsertAt::AfterNames(names) };
        return Ok(Request::Insert { at, lines, final_newline: None });
    }
    let texts = Texts { old: old.join("\n"), new: (!new.is_empty()).then(|| new.join("\n")) };
    Ok(Request::Find {
        sought: Sought { unit: Unit::Lines, texts, all: false, near, at_end, scope: None, final_newline: None },
        names,
        names_must_be_there: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(input: &str) -> Result<Vec<Section>, Fault> {
        parse(&input.lines().collect::<Vec<_>>()).map(|read| read.sections)
    }

    #[test]
    fn every_section() {
        let found = sections(
            "apply_patch <<'EOF'\n  *** Begin Patch\n*** Add File: n.py\n+a\n\n+b\n*** Delete File: d.py\n*** Update File: u.py \n*** Move to: m.py\n@@ class A\n@@ def f\n x\n-y\n+z\n*** End of File\n@@\n+tail\n\n  *** End Patch  \nEOF\n",
        )
        .unwrap();
        assert_eq!(found.len(), 3);
        assert!(matches!(&found[0].action, Action::Create { content, .. } if content == b"a\n\nb\n"));
        assert!(matches!(&found[1].action, Action::Delete { shown: None }));
        let Action::Change { requests, moved_to, .. } = &found[2].action else { panic!() };
        assert_eq!(moved_to.as_deref(), Some("m.py"));
        assert!(matches!(&requests[0], Request::Find { names, sought, .. } if names.len() == 2 && sought.at_end));
        assert!(matches!(&requests[1], Request::Insert { at: InsertAt::End, lines, .. } if lines == &["tail"]));
    }

    #[test]
    fn a_hunk_without_its_mark_and_a_rename() {
        let found =
            sections("*** Begin Patch\n*** Update File: a\n-x\n+y\n*** Update File: b\n*** Move to: c\n*** End Patch")
                .unwrap();
        assert!(matches!(&found[0].action, Action::Change { requests, .. } if requests.len() == 1));
        assert!(matches!(&found[1].action, Action::Change { requests, .. } if requests.is_empty()));
    }

    #[test]
    fn what_is_cut_is_refused() {
        for input in [
            "*** Begin Patch\n*** Update File: a\n-x\n+y\n",
            "*** Update File: a\n-x\n+y\n*** End Patch\n",
            "*** Begin Patch\n*** Add File: a\nx\n*** End Patch\n",
            "*** Begin Patch\n*** Update File: a\n@@\nx\n*** End Patch\n",
            "*** Begin Patch\nx\n*** End Patch\n",
            "*** Begin Patch\n*** Update File: a\n@@\n*** End Patch\n",
        ] {
            assert!(matches!(sections(input), Err(Fault::Broken { .. })), "{input}");
        }
    }
}
