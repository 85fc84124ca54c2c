//! What a person sees of a tool call and of its result, from what is logged alone.

use std::path::Path;
use std::time::Duration;

use stele_core::{CallCard, CardKind, FileAction, FileMeta, JobStatus, ResultMeta, Tool, ToolResult, name_on_a_line};

use super::diff;
use super::inert::{inert, one_line, shorten};
use super::money::{count, elapsed, plural};
use super::style::Style;
use super::word::shell_word;

/// Columns of a title.
const TITLE: usize = 72;

/// Lines of a command's output that are shown, from its end.
const TAIL: usize = 5;

/// Columns of such a line.
const COLUMNS: usize = 160;

/// Lines of a diff in a question to a person.
const QUESTION_LINES: usize = 80;

/// How much of a call and of its result is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// What tells how it went.
    #[default]
    Brief,
    /// All of it.
    Full,
}

/// A call's title; the tool's name and arguments when the tool is not part of this version.
pub fn title(tool: Option<&dyn Tool>, name: &str, arguments: &str, folder: &Path, depth: Depth) -> String {
    let title = match tool {
        Some(tool) => match tool.call_card(arguments, folder) {
            CallCard::Terminal { command, cwd, .. } => format!("$ {}{command}", entering(cwd.as_deref())),
            card => card.title().to_owned(),
        },
        None => format!("{name} {arguments}"),
    };
    match depth {
        Depth::Brief => shorten(one_line(&title).trim(), TITLE),
        Depth::Full => one_line(&title).trim().to_owned(),
    }
}

/// The way into the folder of a command, as a person would type it.
fn entering(cwd: Option<&str>) -> String {
    cwd.map_or_else(String::new, |cwd| format!("cd {} && ", shell_word(cwd)))
}

/// What a person is asked about: the whole command, or the change.
pub fn question(
    tool: Option<&dyn Tool>,
    name: &str,
    arguments: &str,
    folder: &Path,
    previews: &stele_tools::PreviewOptions,
    style: Style,
) -> Vec<String> {
    let Some(tool) = tool else { return vec![inert(&format!("{name} {arguments}"))] };
    match stele_tools::preview(name, arguments, folder, previews) {
        Some(Ok(preview)) => {
            return previewed(&preview, &title(Some(tool), name, arguments, folder, Depth::Brief), style);
        }
        Some(Err(problem)) => {
            let title = style.bold(&title(Some(tool), name, arguments, folder, Depth::Brief));
            return vec![title, style.yellow(&format!("  it would fail: {}", one_line(&problem)))];
        }
        None => {}
    }
    match tool.call_card(arguments, folder) {
        CallCard::Terminal { command, cwd, .. } => {
            indented("  $ ", &inert(&format!("{}{command}", entering(cwd.as_deref()))))
        }
        CallCard::Diff { title, files, .. } => {
            let mut lines = vec![style.bold(&one_line(&title))];
            for file in files {
                let old = file.old.unwrap_or_default();
                lines.extend(compared(&difference(&old, &file.new), style));
            }
            lines
        }
        CallCard::Generic { title, kind, .. } => {
            let mut lines = vec![style.bold(&one_line(&title))];
            if kind == CardKind::Other {
                lines.extend(indented("  ", &inert(arguments)));
            }
            lines
        }
    }
}

/// The change as it would be made to the file as it is now.
fn previewed(preview: &stele_tools::Preview, title: &str, style: Style) -> Vec<String> {
    let before = preview.before.as_deref();
    let difference = difference(before.unwrap_or_default(), &preview.after);
    let what = match before {
        None => "a new file".to_owned(),
        Some(before) if before == preview.after => "changes nothing".to_owned(),
        Some(_) => format!("replaces {}", plural(difference.removed.into(), "line")),
    };
    let mut lines = vec![format!("{} {}", style.bold(title), style.dim(&format!("({what})")))];
    lines.extend(compared(&difference, style));
    lines
}

fn difference(old: &str, new: &str) -> stele_edit::Diff {
    stele_edit::unified_diff("", old.as_bytes(), new.as_bytes())
}

fn compared(difference: &stele_edit::Diff, style: Style) -> impl Iterator<Item = String> + use<> {
    diff::lines(&difference.text, style, QUESTION_LINES).into_iter().map(|line| format!("  {line}"))
}

fn indented(first: &str, text: &str) -> Vec<String> {
    let rest = " ".repeat(first.chars().count());
    text.lines().enumerate().map(|(at, line)| format!("{}{line}", if at == 0 { first } else { &rest })).collect()
}

/// A result in a few words, and lines that belong beneath it.
pub fn result(result: &ToolResult, folder: &Path, style: Style, depth: Depth) -> (String, Vec<String>) {
    let (words, below) = brief(result, folder, style, depth);
    let changed = result.meta.files.iter().any(|file| file.diff.is_some());
    match depth {
        // A diff is the better account of an edit, and is whole already.
        Depth::Full if !changed => {
            (words, inert(result.content.as_str()).lines().map(|line| style.dim(line)).collect())
        }
        _ => (words, below),
    }
}

fn brief(result: &ToolResult, folder: &Path, style: Style, depth: Depth) -> (String, Vec<String>) {
    let meta = &result.meta;
    if let Some(error) = &result.error {
        if let Some(stopped) = stopped(&error.code, result, style) {
            return stopped;
        }
        let said = one_line(result.content.as_str());
        let said = said.strip_prefix(&error.code).map_or(said.as_str(), |rest| rest.trim_start_matches(": "));
        // Some texts begin with the last part of the code, which is what the model is told to look for.
        let last = error.code.rsplit('.').next().unwrap_or_default();
        let said = said.strip_prefix(last).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(said);
        return (style.red(&format!("{}: {}", error.code, shorten(said, 160))), Vec::new());
    }
    let mut words = Vec::new();
    let mut below = Vec::new();
    if let Some(process) = &meta.process {
        let ended = match (process.exit, process.signal) {
            _ if process.timed_out => "timed out".to_owned(),
            (Some(exit), _) => format!("exit {exit}"),
            (None, Some(signal)) => format!("killed by signal {signal}"),
            (None, None) => "ended in an unknown way".to_owned(),
        };
        let good = process.exit == Some(0) && !process.timed_out;
        words.push(if good { style.green(&ended) } else { style.red(&ended) });
        below = tail(result.content.as_str(), process.output_bytes, style);
    }
    if let Some(search) = &meta.search {
        let mut found = plural(search.total, "match");
        if search.truncated {
            found.push_str(&format!(", {} shown", search.matches));
        }
        words.push(found);
    }
    if let Some(read) = &meta.read {
        let shown = plural(read.lines, "line");
        words.push(if read.lines < read.total { format!("{shown} of {}", read.total) } else { shown });
    }
    for file in meta.files.iter().filter(|file| file.action != FileAction::Read) {
        words.push(change(file, style));
        if let Some(text) = &file.diff {
            let limit = if depth == Depth::Full { usize::MAX } else { diff::LINES };
            below.extend(diff::lines(text.as_str(), style, limit));
        }
    }
    if meta.files.iter().filter(|file| file.action != FileAction::Read).count() > 1 {
        words = vec![changed_files(meta, folder)];
    }
    if let Some(millis) = meta.duration_ms.filter(|_| meta.process.is_some()) {
        words.push(elapsed(Duration::from_millis(millis)));
    }
    if let Some(left) = meta.process.as_ref().and_then(|process| process.left.as_ref()) {
        words.push(style.yellow(&format!("still running: {}", one_line(left))));
    }
    if meta.process.is_none() {
        words.extend(
            meta.jobs.iter().filter(|job| job.status == JobStatus::Running).map(|job| format!("{} runs", job.job)),
        );
    }
    if words.is_empty() {
        words.push(plural(result.content.as_str().lines().count() as u64, "line"));
    }
    (words.join(" · "), below)
}

/// What was said when a call did not run to its end because its turn ended: no fault, so in words and without a code.
fn stopped(code: &str, result: &ToolResult, style: Style) -> Option<(String, Vec<String>)> {
    match code {
        "tool.not_started" => Some((style.yellow(&one_line(result.content.as_str())), Vec::new())),
        "tool.cancelled" => {
            let printed = result.meta.process.as_ref().map_or(0, |process| process.output_bytes);
            Some((style.yellow("stopped with the turn"), tail(result.content.as_str(), printed, style)))
        }
        _ => None,
    }
}

/// What came of a question of the model's.
pub fn answered(result: &ToolResult) -> String {
    let said = result.content.as_str();
    match said.starts_with("Nobody can be asked") {
        true => "nobody to ask; the model decides".to_owned(),
        false => format!("answered: {}", shorten(&one_line(said), TITLE)),
    }
}

fn changed_files(meta: &ResultMeta, folder: &Path) -> String {
    let names =
        meta.files.iter().filter(|file| file.action != FileAction::Read).map(|file| relative(&file.path, folder));
    names.collect::<Vec<_>>().join(", ")
}

/// How a file changed: `created`, `deleted`, and its lines.
pub fn change(file: &FileMeta, style: Style) -> String {
    let mut words = match file.action {
        FileAction::Created => "new ".to_owned(),
        FileAction::Deleted => "deleted ".to_owned(),
        FileAction::Changed | FileAction::Read => String::new(),
    };
    words.push_str(&counts(u64::from(file.added), u64::from(file.removed), style));
    words
}

/// Lines added and removed.
pub fn counts(added: u64, removed: u64, style: Style) -> String {
    format!("{} {}", style.green(&format!("+{added}")), style.red(&format!("-{removed}")))
}

/// A path as a person in the folder would write it.
pub fn relative(path: &str, folder: &Path) -> String {
    let short = Path::new(path).strip_prefix(folder).ok().map(|path| path.display().to_string());
    name_on_a_line(&short.filter(|short| !short.is_empty()).unwrap_or_else(|| path.to_owned())).into_owned()
}

/// The last lines of a command's output, and how many come before them; of output that the model was not shown whole,
/// how much was `printed` in all.
fn tail(output: &str, printed: u64, style: Style) -> Vec<String> {
    let inert = inert(output);
    let mut lines: Vec<(usize, &str)> = inert.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
    // The tool's own last line says how the command ended, which is shown already.
    lines.pop_if(|(_, line)| line.starts_with('[') && line.ends_with(']'));
    lines.pop_if(|(_, line)| *line == "(no output)");
    let (before, shown) = lines.split_at(lines.len().saturating_sub(TAIL));
    let cut = before.iter().any(|(_, line)| line.starts_with("[… "));
    let above = shown.first().filter(|_| !before.is_empty()).map(|(at, _)| match cut {
        true => format!("… more before, {} bytes in all", count(printed)),
        false => format!("… {} before", plural(*at as u64, "line")),
    });
    let shown = shown.iter().map(|(_, line)| shorten(line, COLUMNS));
    above.into_iter().chain(shown).map(|line| style.dim(&line)).collect()
}

#[cfg(test)]
mod tests {
    use stele_core::{CallId, ProcessMeta, ReadMeta, SearchMeta, Text, ToolError, ToolErrorClass};

    use super::*;

    fn check(meta: ResultMeta, content: &str, expect: &str, below: &[&str]) {
        let result =
            ToolResult { call: CallId(1), content: Text::from(content), images: Vec::new(), error: None, meta };
        let (words, lines) = super::result(&result, Path::new("/work"), Style::Plain, Depth::Brief);
        assert_eq!((words.as_str(), lines), (expect, below.iter().map(ToString::to_string).collect()));
    }

    #[test]
    fn commands() {
        let process = |exit, timed_out| Some(ProcessMeta { exit, timed_out, ..ProcessMeta::default() });
        let meta = ResultMeta { process: process(Some(0), false), duration_ms: Some(120), ..ResultMeta::default() };
        check(meta, "ok\n[exit 0]", "exit 0 · 120 ms", &["ok"]);
        let silent = ResultMeta { process: process(Some(0), false), ..ResultMeta::default() };
        check(silent, "(no output)\n[exit 0]", "exit 0", &[]);
        let left = ProcessMeta { exit: Some(0), left: Some("sleep (7)".to_owned()), ..ProcessMeta::default() };
        let left = ResultMeta { process: Some(left), ..ResultMeta::default() };
        check(left, "up\n[exit 0; still running: sleep (7)]", "exit 0 · still running: sleep (7)", &["up"]);
        let meta = ResultMeta { process: process(Some(1), false), ..ResultMeta::default() };
        check(meta, "one\n\n\u{1b}[31mtwo\n", "exit 1", &["one", "two"]);
        let meta = ResultMeta { process: process(None, true), ..ResultMeta::default() };
        check(meta, "", "timed out", &[]);
        let long: String = (1..=12).map(|line| format!("l{line}\n")).collect();
        let meta = ResultMeta { process: process(Some(2), false), ..ResultMeta::default() };
        check(meta, &format!("{long}[exit 2]"), "exit 2", &["… 7 lines before", "l8", "l9", "l10", "l11", "l12"]);
    }

    #[test]
    fn all_of_a_result_is_all_of_it() {
        let long: String = (1..=40).map(|line| format!("l{line} {}\n", "x".repeat(300))).collect();
        let meta = ResultMeta { process: Some(ProcessMeta::default()), ..ResultMeta::default() };
        let result =
            ToolResult { call: CallId(1), content: Text::from(long.as_str()), images: Vec::new(), error: None, meta };
        let (_, lines) = super::result(&result, Path::new("/"), Style::Plain, Depth::Full);
        assert_eq!(lines.join("\n") + "\n", long);
    }

    #[test]
    fn searches_reads_and_edits() {
        let search = Some(SearchMeta { matches: 2, total: 5, truncated: true });
        check(ResultMeta { search, ..ResultMeta::default() }, "", "5 matches, 2 shown", &[]);
        let read = Some(ReadMeta { offset: 1, lines: 10, total: 40, ..ReadMeta::default() });
        check(ResultMeta { read, ..ResultMeta::default() }, "", "10 lines of 40", &[]);
        let file = FileMeta {
            path: "/work/a".to_owned(),
            action: FileAction::Created,
            hash: None,
            added: 1,
            removed: 0,
            diff: Some(Text::from("--- a\n+++ a\n@@ -0,0 +1 @@\n+x\n")),
            part: None,
        };
        let meta = ResultMeta { files: vec![file], ..ResultMeta::default() };
        check(meta, "", "new +1 -0", &["@@ -0,0 +1 @@", "+x"]);
        check(ResultMeta::default(), "a\nb", "2 lines", &[]);
    }

    #[test]
    fn errors_are_one_line_with_their_code() {
        let error = ToolError::new("edit.ambiguous", ToolErrorClass::Argument, "");
        let content = Text::from("edit.ambiguous: two places\nfit");
        let result = ToolResult {
            call: CallId(1),
            content,
            images: Vec::new(),
            error: Some(error),
            meta: ResultMeta::default(),
        };
        let (words, _) = super::result(&result, Path::new("/"), Style::Plain, Depth::Brief);
        assert_eq!(words, "edit.ambiguous: two places fit");
        let error = ToolError::new("tool.outcome_unknown", ToolErrorClass::OutcomeUnknown, "");
        let content = Text::from("outcome_unknown: look at it");
        let result = ToolResult {
            call: CallId(1),
            content,
            images: Vec::new(),
            error: Some(error),
            meta: ResultMeta::default(),
        };
        assert_eq!(
            super::result(&result, Path::new("/"), Style::Plain, Depth::Brief).0,
            "tool.outcome_unknown: look at it"
        );
    }

    #[test]
    fn what_ended_with_its_turn_is_told_in_words() {
        let ended = |code: &str, content: &str| {
            let error = Some(ToolError::new(code, ToolErrorClass::Refused, ""));
            let meta = ResultMeta::default();
            let result = ToolResult { call: CallId(1), content: Text::from(content), images: Vec::new(), error, meta };
            super::result(&result, Path::new("/"), Style::Plain, Depth::Brief)
        };
        let unstarted = "not run: the turn was stopped first";
        assert_eq!(ended("tool.not_started", unstarted), (unstarted.to_owned(), Vec::new()));
        let cut = ended("tool.cancelled", "half\n[stopped: cancelled; ended by signal 15 (TERM)]");
        assert_eq!(cut, ("stopped with the turn".to_owned(), vec!["half".to_owned()]));
    }

    #[test]
    fn a_call_of_a_tool_that_is_gone_still_has_a_title() {
        assert_eq!(title(None, "fetch", "{\"a\":\n1}", Path::new("/"), Depth::Brief), "fetch {\"a\": 1}");
    }
}
