//! Unified diffs, of any quality.

use super::hunk::{Header, Mark, counted, file_header, loose};
use super::{Action, Fault, Read, Section, fence};
use crate::find::closest::visible;
use crate::find::{Sought, Texts, Unit};
use crate::perform::{InsertAt, Request, created};
use crate::refuse::{Code, Refusal};
use crate::text::blank;

/// True when a diff starts here.
pub(super) fn marks(lines: &[&str], at: usize) -> bool {
    let line = lines[at];
    line.starts_with("diff --git ")
        || file_header(lines, at)
        || line.starts_with("@@") && Header::read(line).is_some_and(|header| header.old.is_some())
        || line.trim_end() == "@@" && lines.get(at + 1).is_some_and(|line| line.starts_with([' ', '+', '-']))
        || line.starts_with("@@ ") && lines[at + 1..].iter().take(50).any(|line| line.starts_with(['+', '-']))
}

#[derive(Default)]
struct File<'a> {
    old: Option<&'a str>,
    new: Option<&'a str>,
    requests: Vec<Request>,
    /// Lines more (or fewer) that the hunks so far bring.
    drift: i64,
    created: bool,
    deleted: bool,
    renamed: Option<(String, String)>,
    mode: Option<u32>,
    content: Option<(Vec<String>, bool)>,
    hunks: usize,
    git: Option<(String, String)>,
}

pub(super) fn parse(lines: &[&str]) -> Result<Read, Fault> {
    let mut sections = Vec::new();
    let mut left = Vec::new();
    let mut file: Option<File<'_>> = None;
    let mut unmarked = None;
    let first = lines.iter().position(|line| line.starts_with("@@")).unwrap_or(lines.len());
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if let Some(names) = line.strip_prefix("diff --git ") {
            sections.extend(finish(file.take(), at)?);
            let mut next = File { git: git_names(names), ..File::default() };
            at = git_header(lines, at + 1, &mut next)?;
            file = Some(next);
        } else if file_header(lines, at) {
            if file.as_ref().is_none_or(|file| file.old.is_some() || file.hunks > 0) {
                sections.extend(finish(file.take(), at)?);
            }
            let now = file.get_or_insert_default();
            (now.old, now.new) = (Some(&line[4..]), Some(&lines[at + 1][4..]));
            at += 2;
            if !lines.get(at).is_some_and(|line| line.starts_with("@@")) && now.git.is_none() {
                return Err(Fault::broken(at - 2, "the file header has no hunk (`@@`) after it"));
            }
        } else if line.starts_with("@@") {
            let Some(header) = Header::read(line) else {
                return Err(Fault::broken(at, "a merge diff (`@@@`) cannot be applied"));
            };
            let (next, lost) = hunk(lines, at, &header, file.get_or_insert_default())?;
            (at, unmarked) = (next, unmarked.or(lost));
        } else {
            left.push(at);
            at += 1;
        }
    }
    sections.extend(finish(file, lines.len().saturating_sub(1))?);
    let taken = unmarked.map(|line| {
        let text = visible(lines[line]);
        format!("line {} of the input has no mark and was taken as context: {text}", line + 1)
    });
    let notes = taken.into_iter().chain(left_out(lines, &left, first)).collect();
    Ok(Read { sections, left, notes })
}

/// What to say of lines after the first hunk that are no part of one: a mark that was lost makes a line look like that.
fn left_out(lines: &[&str], left: &[usize], first: usize) -> Option<String> {
    let says = |at: &&usize| **at > first && !blank(lines[**at]) && !fence::is_mark(lines[**at]);
    let mut out = left.iter().filter(says);
    let line = out.next()?;
    let many = if out.next().is_some() { ", and others" } else { "" };
    Some(format!("line {} of the input is in no hunk and was left out{many}: {}", line + 1, visible(lines[*line])))
}

/// The lines between `diff --git` and the first hunk; returns the line after them.
fn git_header(lines: &[&str], mut at: usize, file: &mut File<'_>) -> Result<usize, Fault> {
    let (mut from, mut to, mut old_mode) = (None, None, None);
    while at < lines.len() {
        let line = lines[at];
        match line {
            _ if line.starts_with("index ")
                || line.starts_with("similarity ")
                || line.starts_with("dissimilarity ") => {}
            _ if line.starts_with("old mode ") => old_mode = mode(&line[9..]).ok(),
            _ if line.starts_with("new mode ") => {
                file.mode = Some(mode(&line[9..])?).filter(|it| Some(*it) != old_mode)
            }
            _ if line.starts_with("new file mode ") => {
                file.created = true;
                file.mode = Some(mode(&line[14..])?).filter(|mode| *mode != 0o100_644);
            }
            _ if line.starts_with("deleted file mode ") => file.deleted = true,
            _ if line.starts_with("rename from ") => from = Some(name(&line[12..])),
            _ if line.starts_with("rename to ") => to = Some(name(&line[10..])),
            _ if line.starts_with("copy from ") || line.starts_with("copy to ") => {
                let text = "a diff that copies a file cannot be applied; create the copy with its whole content";
                return Err(Fault::Refused(Refusal::new(Code::Unparsed, text)));
            }
            _ if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") => {
                let text = "a diff of a binary file cannot be applied; nothing was changed";
                return Err(Fault::Refused(Refusal::new(Code::Binary, text)));
            }
            _ => break,
        }
        at += 1;
    }
    file.renamed = from.zip(to);
    Ok(at)
}

/// A mode that git writes for a file.
fn mode(text: &str) -> Result<u32, Fault> {
    let why = match u32::from_str_radix(text.trim(), 8) {
        Ok(mode @ (0o100_644 | 0o100_755)) => return Ok(mode),
        Ok(0o120_000 | 0o160_000) => "the diff makes a link or a submodule, which is not done".to_owned(),
        _ => format!("the diff gives the mode {}, and only 100644 and 100755 are done", visible(text.trim())),
    };
    Err(Fault::Refused(Refusal::new(Code::Unparsed, why + "; nothing was changed")))
}

/// The two names of `diff --git`, which are the same but for their prefixes unless they are quoted.
fn git_names(names: &str) -> Option<(String, String)> {
    if let Some(quoted) = names.strip_prefix('"') {
        let mut escaped = false;
        let closes = |it: char| {
            let inside = std::mem::replace(&mut escaped, false);
            escaped = it == '\\' && !inside;
            it == '"' && !inside
        };
        let end = quoted.find(closes)? + 2;
        return Some((name(&names[..end]), name(names[end..].trim())));
    }
    let middle = names.len() / 2;
    let (old, new) = (names.get(..middle)?, names.get(middle..)?.strip_prefix(' ')?);
    (old.get(2..) == new.get(2..)).then(|| (old.to_owned(), new.to_owned()))
}

/// A file name without its time stamp and its quotes.
fn name(text: &str) -> String {
    let text = text.split('\t').next().unwrap_or_default().trim();
    let Some(quoted) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else { return text.to_owned() };
    let mut bytes = Vec::new();
    let mut rest = quoted.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let octal = rest.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            bytes.push(byte);
            rest = &rest[3..];
        } else if let Some((escaped, after)) = rest.split_first() {
            bytes.push(match escaped {
                b'n' => b'\n',
                b't' => b'\t',
                other => *other,
            });
            rest = after;
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| quoted.to_owned())
}

/// Names without the prefixes that git puts in front of both.
fn without_prefixes(old: String, new: String) -> (String, String) {
    const PAIRS: [(&str, &str); 6] =
        [("a/", "b/"), ("b/", "a/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/")];
    for (one, other) in PAIRS {
        let strip = |name: &str, prefix: &str| {
            if name == "/dev/null" { Some(name.to_owned()) } else { name.strip_prefix(prefix).map(str::to_owned) }
        };
        if let (Some(old), Some(new)) = (strip(&old, one), strip(&new, other)) {
            return (old, new);
        }
    }
    (old, new)
}

fn finish(file: Option<File<'_>>, at: usize) -> Result<Option<Section>, Fault> {
    let Some(file) = file else { return Ok(None) };
    let names = match (file.old, file.new) {
        (Some(old), Some(new)) => Some((name(old), name(new))),
        _ => file.git,
    };
    let names = names.map(|(old, new)| without_prefixes(old, new));
    let (old, new) = names.map_or((None, None), |(old, new)| (Some(old), Some(new)));
    let created = file.created || old.as_deref() == Some("/dev/null");
    let deleted = file.deleted || new.as_deref() == Some("/dev/null");
    if created {
        let (lines, open) = match (file.content, file.requests.is_empty()) {
            (Some(content), true) => content,
            (None, true) if file.created => (Vec::new(), false),
            _ => return Err(Fault::broken(at, "the new file has lines that are not added ones")),
        };
        let action = Action::Create { content: created_content(&lines, open), mode: file.mode };
        return Ok(Some(Section { path: new, action }));
    }
    let mut requests = file.requests;
    if let Some((lines, open)) = file.content {
        // Only additions, for an empty file: at its start, unless other hunks show that it is not empty.
        if file.hunks == 1 {
            let text = "the diff is for an empty file, but adds to one that may be there; give context lines, or \
                        `--- /dev/null` to create it";
            return Err(Fault::Refused(Refusal::new(Code::Exists, text)));
        }
        requests.insert(0, Request::Insert { at: InsertAt::AfterLine(0), lines, final_newline: open.then_some(false) });
    }
    if deleted {
        return Ok(Some(Section { path: old, action: Action::Delete { shown: (file.hunks > 0).then_some(requests) } }));
    }
    let moved_to = file.renamed.as_ref().map(|(_, to)| to.clone());
    let path = file.renamed.map(|(from, _)| from).or(new);
    if requests.is_empty() && moved_to.is_none() && file.mode.is_none() {
        return Err(Fault::broken(at, "the file has no hunk"));
    }
    Ok(Some(Section { path, action: Action::Change { requests, moved_to, mode: file.mode } }))
}

fn created_content(lines: &[String], open: bool) -> Vec<u8> {
    created(lines, open.then_some(false))
}

/// Reads one hunk; returns the line after it, and the first of its lines that has no mark.
fn hunk<'a>(
    lines: &[&'a str],
    at: usize,
    header: &Header,
    file: &mut File<'a>,
) -> Result<(usize, Option<usize>), Fault> {
    let (hunk, next) = match counted(lines, at + 1, header) {
        Some(counted) => counted,
        None => loose(lines, at + 1, header)?,
    };
    if hunk.lines.is_empty() {
        return Err(Fault::broken(at, "the hunk has no lines"));
    }
    let (old, new) = (hunk.side(Mark::New), hunk.side(Mark::Old));
    let (removed, added) = (old.len() as i64, new.len() as i64);
    file.hunks += 1;
    let final_newline = hunk.final_newline();
    let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<String>>();
    if old.is_empty() {
        let creates = file.old.is_some_and(|old| name(old) == "/dev/null") || file.created;
        match header.old {
            _ if creates => add_content(file, owned(&new), hunk.ends_open(Mark::Old), at)?,
            Some((0, _)) => add_content(file, owned(&new), hunk.ends_open(Mark::Old), at)?,
            Some((line, count)) => {
                // Without an old line, `-N,0` is after line N. Other counts are wrong, and count only when the other
                // side names the same place.
                let after = match header.new {
                    _ if count == 0 => line,
                    Some((other, _)) if i128::from(other) == i128::from(line) + i128::from(file.drift) => line - 1,
                    _ => return Err(nowhere()),
                };
                let at = InsertAt::AfterLine(after);
                file.requests.push(Request::Insert { at, lines: owned(&new), final_newline });
            }
            None if header.name.is_empty() => return Err(nowhere()),
            None => {
                let at = InsertAt::AfterNames(vec![header.name.clone()]);
                file.requests.push(Request::Insert { at, lines: owned(&new), final_newline });
            }
        }
    } else {
        let names =
            if header.old.is_none() && !header.name.is_empty() { vec![header.name.clone()] } else { Vec::new() };
        file.requests.push(Request::Find {
            sought: Sought {
                unit: Unit::Lines,
                texts: Texts { old: old.join("\n"), new: (!new.is_empty()).then(|| new.join("\n")) },
                all: false,
                near: header.old.map(|(line, _)| line),
                at_end: !hunk.open.is_empty(),
                scope: None,
                final_newline,
            },
            names,
            names_must_be_there: false,
        });
    }
    file.drift += added - removed;
    Ok((next, hunk.unmarked))
}

fn add_content(file: &mut File<'_>, lines: Vec<String>, open: bool, at: usize) -> Result<(), Fault> {
    if file.content.is_some() {
        return Err(Fault::broken(at, "two hunks are for an empty file"));
    }
    file.content = Some((lines, open));
    Ok(())
}

fn nowhere() -> Fault {
    let text = "a hunk adds lines, but neither context nor a line number says where; give context lines";
    Fault::Refused(Refusal::new(Code::NotFound, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(input: &str) -> Result<Vec<Section>, Fault> {
        parse(&input.lines().collect::<Vec<_>>()).map(|read| read.sections)
    }

    fn texts(input: &str) -> Vec<(String, Option<String>, Option<u64>)> {
        let sections = sections(input).unwrap();
        let Action::Change { requests, .. } = &sections[0].action else { panic!("{sections:?}") };
        requests
            .iter()
            .map(|request| match request {
                Request::Find { sought, .. } => (sought.texts.old.clone(), sought.texts.new.clone(), sought.near),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn one(old: &str, new: &str, near: Option<u64>) -> Vec<(String, Option<String>, Option<u64>)> {
        vec![(old.to_owned(), Some(new.to_owned()), near)]
    }

    #[test]
    fn headers_of_any_quality() {
        for (header, near) in [
            ("@@ -3,2 +3,2 @@", Some(3)),
            ("@@ -3,9 +3,7 @@ fn a()", Some(3)),
            ("@@ -3 +3 @@", Some(3)),
            ("@@", None),
            ("@@ ... @@", None),
            ("@@ -3,2 +3,2", Some(3)),
        ] {
            let input = format!("--- a/x\n+++ b/x\n{header}\n a\n-b\n+c\n");
            assert_eq!(texts(&input), one("a\nb", "a\nc", near), "{header}");
        }
    }

    #[test]
    fn lines_that_look_like_headers_are_counted() {
        let input = "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,2 @@\n--- old comment\n+++ new comment\n a\n";
        assert_eq!(texts(input), one("-- old comment\na", "++ new comment\na", Some(1)));
    }

    #[test]
    fn counts_that_are_too_small_do_not_cut() {
        let input = "@@ -1,2 +1,2 @@\n a\n-b\n+c\nd\n-e\n+f\n";
        assert_eq!(texts(input), one("a\nb\nd\ne", "a\nc\nd\nf", Some(1)));
    }

    #[test]
    fn context_that_lost_its_space_and_prose_after() {
        for header in ["@@ -1,4 +1,4 @@", "@@ -1,2 +1,2 @@"] {
            let input = format!("{header}\n a\n\nb\n-c\n+d\n\nThis replaces c.\n");
            assert_eq!(texts(&input), one("a\n\nb\nc", "a\n\nb\nd", Some(1)));
            let read = parse(&input.lines().collect::<Vec<_>>()).unwrap();
            let [taken, left] = read.notes.as_slice() else { panic!("{:?}", read.notes) };
            assert!(taken.contains("line 4") && taken.ends_with("context: b"), "{taken}");
            assert!(left.contains("line 8") && left.ends_with("This replaces c."), "{left}");
        }
    }

    #[test]
    fn a_line_that_lost_its_mark_is_never_left_out() {
        for (hunk, old, new) in [
            ("@@ -1,2 +1,3 @@\n a\n+x\ny = 2\n foo\n", "a\ny = 2\nfoo", "a\nx\ny = 2\nfoo"),
            ("@@ -1,5 +1,6 @@\n a\n+x\ny = 2\n", "a\ny = 2", "a\nx\ny = 2"),
            ("@@\n a\n+s = [\none\n\ntwo\n foo\n", "a\none\n\ntwo\nfoo", "a\ns = [\none\n\ntwo\nfoo"),
            ("@@\n a\n+x\ny = 2\n\nProse.\n", "a\ny = 2", "a\nx\ny = 2"),
            ("@@ -1 +1,2 @@\n a\n+x\ny = 2\n foo\n", "a\ny = 2\nfoo", "a\nx\ny = 2\nfoo"),
        ] {
            assert_eq!(texts(hunk)[0].0, old, "{hunk}");
            assert_eq!(texts(hunk)[0].1.as_deref(), Some(new), "{hunk}");
        }
        let cut = "@@ -1,1 +1,5 @@\n a\n+s = [\n+one\n\ntwo\n";
        assert!(matches!(sections(cut), Err(Fault::Broken { line: 5, .. })), "{:?}", sections(cut));
    }

    #[test]
    fn modes_that_git_does_not_write_are_refused() {
        for line in ["new mode 104755", "new mode 100000", "new mode 100664", "new mode x", "new file mode 104755"] {
            let input = format!("diff --git a/s b/s\nold mode 100644\n{line}\n");
            assert!(matches!(sections(&input), Err(Fault::Refused(it)) if it.code == "edit.unparsed"), "{line}");
        }
    }

    #[test]
    fn files_of_git() {
        let input = "diff --git a/o.rs b/n.rs\nsimilarity index 100%\nrename from o.rs\nrename to n.rs\ndiff --git a/s.sh b/s.sh\nold mode 100644\nnew mode 100755\ndiff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n";
        let found = sections(input).unwrap();
        assert_eq!(found[0].path.as_deref(), Some("o.rs"));
        assert!(matches!(&found[0].action, Action::Change { moved_to: Some(to), .. } if to == "n.rs"));
        assert!(matches!(&found[1].action, Action::Change { mode: Some(0o100_755), .. }));
        assert!(matches!(&found[2].action, Action::Create { content, .. } if content.is_empty()));
        assert_eq!(name("\"a/na\\303\\251.txt\"\t2026"), "a/na\u{e9}.txt");
    }
}
