//! `stele undo`, and what the line interface says of undo, redo and changes.

use std::io::{self, Write as _};
use std::path::Path;

use serde::Serialize;
use stele_agent::{Approvals, ChangedSince, Driver, OpenPolicy, Restored};
use stele_core::{By, FileChange, FileLeft, LeftWhy, Restoring, SessionId, State, TurnChanges};
use stele_store::Store;

use crate::args::UndoArgs;
use crate::error::{CommandError, Result};
use crate::output::{self, View};
use crate::render::WIDTH;
use crate::render::card::relative;
use crate::render::inert::{one_line, shorten};
use crate::render::json;
use crate::render::money::plural;
use crate::render::style::Style;
use crate::runtime::runtime;
use crate::sessions::{Asker, named_or_latest};
use crate::setup::Setup;
use crate::signals;

/// The command that does it in a session.
fn command(way: Restoring, id: &SessionId) -> String {
    let option = if way == Restoring::Redo { " --redo" } else { "" };
    format!("stele undo {id}{option}")
}

fn done(way: Restoring) -> &'static str {
    match way {
        Restoring::Undo => "took back",
        Restoring::Redo => "did again",
    }
}

/// Does it.
pub async fn carry_out(way: Restoring, driver: &mut Driver, changed_since: ChangedSince) -> Result<Restored> {
    let by = By::person("cli");
    let restored = match way {
        Restoring::Undo => driver.undo(by, changed_since).await,
        Restoring::Redo => driver.redo(by, changed_since).await,
    };
    restored.map_err(|error| CommandError::from(error).after_work())
}

/// What it would do.
pub fn preview(way: Restoring, state: &State, store: &Store, since: ChangedSince) -> Result<Option<Restored>> {
    Ok(match way {
        Restoring::Undo => stele_agent::preview_undo(state, store, since)?,
        Restoring::Redo => stele_agent::preview_redo(state, store, since)?,
    })
}

/// Says what was cut off before, and what became of it. Among JSON lines it comes with the first prompt.
pub fn tell_finished(driver: &mut Driver, view: &mut View) {
    let Some(text) = view.text() else { return };
    driver.finished().iter().for_each(|finished| text.warning(&finished.to_string()));
}

/// Takes a turn of a session back, does it again, or lists the turns.
pub fn main(setup: &Setup, args: &UndoArgs) -> Result<u8> {
    let looked_at = setup.logs()?;
    let id = named_or_latest(&looked_at, args.id.as_deref(), &setup.folder, asker(args))?;
    if args.list {
        return list(&looked_at, &id, args.json, setup.look.stdout());
    }
    drop(looked_at);
    let way = if args.redo { Restoring::Redo } else { Restoring::Undo };
    let changed_since = if args.overwrite { ChangedSince::Overwrite } else { ChangedSince::Leave };
    // No model is asked, so no route is needed.
    let agent = setup.agent(Vec::new(), Approvals::Nobody, setup.tools(None))?;
    signals::hold()?;
    let mut driver = Driver::open(&agent, &id, OpenPolicy::Close)?;
    let folder = driver.state().session().map(|session| session.cwd.clone()).unwrap_or_default();
    let restored = runtime()?.block_on(carry_out(way, &mut driver, changed_since));
    let style = setup.look.stderr();
    for finished in driver.finished() {
        // Standard error that cannot be written has nobody to be told.
        let _ = writeln!(io::stderr(), "{} {}", style.yellow("!"), one_line(&finished.to_string()));
    }
    if restored.as_ref().is_err_and(|error| args.json && error.code == "undo.nothing") {
        output::print(&json::line(&Report::of(&id, way, None)))?;
    }
    let restored = restored?;
    let text = if args.json {
        json::line(&Report::of(&id, way, Some(&restored)))
    } else {
        let mut lines = lines(way, &restored, Path::new(&folder), setup.look.stdout());
        if restored.left.iter().any(|left| overwritable(&left.why)) {
            let back = command(way.other(), &id);
            lines.push("to replace what others changed or would be lost as well:".to_owned());
            lines.push(format!("  {back} && {} --overwrite", command(way, &id)));
        }
        if !restored.replaced.is_empty() {
            lines.push(format!("what was changed since is kept; to bring it back:\n  {}", command(way.other(), &id)));
        }
        lines.join("\n")
    };
    output::print(&text)?;
    // Where it knows of effects and reached none of them, nothing was undone.
    let in_vain = restored.files.is_empty() && !restored.not_covered.is_empty();
    Ok(u8::from(in_vain || !restored.left.is_empty()))
}

fn asker(args: &UndoArgs) -> Asker {
    Asker::Undo(match (args.list, args.redo) {
        (true, _) => " --list",
        (false, true) => " --redo",
        (false, false) => "",
    })
}

/// What `--json` prints of an undo or redo.
#[derive(Debug, Serialize)]
struct Report<'a> {
    session: &'a SessionId,
    way: &'static str,
    /// Absent, as its title is, when there was none to take back or do again.
    turn: Option<u64>,
    title: Option<&'a str>,
    files: Vec<FileReport<'a>>,
    left: &'a [FileLeft],
    /// Files in which the opposite brings back what somebody had changed since.
    replaced: &'a [String],
    notes: &'a [String],
    not_covered: &'a [String],
}

#[derive(Debug, Serialize)]
struct FileReport<'a> {
    path: &'a str,
    action: &'static str,
}

impl<'a> Report<'a> {
    fn of(session: &'a SessionId, way: Restoring, restored: Option<&'a Restored>) -> Self {
        Self {
            session,
            way: way.name(),
            turn: restored.map(|restored| restored.turn),
            title: restored.map(|restored| restored.title.as_str()),
            files: restored.iter().flat_map(|restored| &restored.files).map(file_report).collect(),
            left: restored.map_or(&[], |restored| &restored.left),
            replaced: restored.map_or(&[], |restored| &restored.replaced),
            notes: restored.map_or(&[], |restored| &restored.notes),
            not_covered: restored.map_or(&[], |restored| &restored.not_covered),
        }
    }
}

fn file_report(change: &FileChange) -> FileReport<'_> {
    let action = match (change.before, change.after) {
        (None, _) => "created",
        (_, None) => "deleted",
        (Some(before), Some(after)) if before.hash == after.hash => "mode",
        _ => "changed",
    };
    FileReport { path: &change.path, action }
}

/// What was done, for a person.
pub fn lines(way: Restoring, restored: &Restored, folder: &Path, style: Style) -> Vec<String> {
    let files = plural(restored.files.len() as u64, "file");
    let (head, tail) = (format!("{} turn {}: ", done(way), restored.turn), format!(" · {files} restored"));
    let mut lines = vec![format!("{head}{}{tail}", title(&restored.title, head.len() + tail.chars().count()))];
    lines.extend(restored.files.iter().map(|change| file_line(change, folder, style)));
    lines.extend(restored.notes.iter().map(|note| format!("  {} {}", style.yellow("!"), one_line(note))));
    lines.extend(left_lines(&restored.left, folder, style));
    lines.extend(restored.not_covered.iter().flat_map(|words| not_covered(words, style)));
    lines
}

/// A turn's title in what `beside` leaves of the line.
fn title(title: &str, beside: usize) -> String {
    shorten(&one_line(title), WIDTH.saturating_sub(beside))
}

/// Effects that an undo does not reach, broken between words.
fn not_covered(words: &str, style: Style) -> Vec<String> {
    let mut lines = vec!["  not covered:".to_owned()];
    for word in one_line(words).split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("    {word}")),
        }
    }
    lines.iter().map(|line| style.dim(line)).collect()
}

/// True for what is left only as long as nobody asks to overwrite it.
pub fn overwritable(why: &LeftWhy) -> bool {
    matches!(why, LeftWhy::ChangedSince | LeftWhy::ChangedBetween | LeftWhy::WouldBeLost)
}

/// The files that stay as they are, for a person.
pub fn left_lines(left: &[FileLeft], folder: &Path, style: Style) -> Vec<String> {
    let line = |left: &FileLeft| {
        let why = match &left.why {
            LeftWhy::ChangedSince => "changed since".to_owned(),
            LeftWhy::ChangedBetween => "somebody else changed it between two calls of that turn".to_owned(),
            LeftWhy::NotKept => "what it was is not kept".to_owned(),
            LeftWhy::WouldBeLost => "too large to be kept, so it would be lost".to_owned(),
            LeftWhy::Blocked { detail } => one_line(detail),
        };
        format!("  {} {} left as it is: {why}", style.yellow("!"), relative(&left.path, folder))
    };
    left.iter().map(line).collect()
}

fn file_line(change: &FileChange, folder: &Path, style: Style) -> String {
    let mark = match file_report(change).action {
        "created" => style.green("A"),
        "deleted" => style.red("D"),
        "mode" => "m".to_owned(),
        _ => "M".to_owned(),
    };
    format!("  {mark} {}", relative(&change.path, folder))
}

#[derive(Debug, Serialize)]
struct Turn<'a> {
    turn: u64,
    title: &'a str,
    /// True for a turn that was taken back and can be done again.
    undone: bool,
    files: Vec<FileReport<'a>>,
    not_covered: &'a [String],
}

fn list(store: &Store, id: &SessionId, as_json: bool, style: Style) -> Result<u8> {
    let state = stele_agent::state(store, id)?;
    if !as_json {
        output::print(&changes(&state, style).join("\n"))?;
        return Ok(0);
    }
    let line = |(turn, undone): (&TurnChanges, bool)| {
        let files = net(turn).map(file_report).collect();
        json::line(&Turn { turn: turn.turn, title: &turn.title, undone, files, not_covered: &turn.not_covered })
    };
    let turns: Vec<String> = turns(&state).map(line).collect();
    output::print(&turns.join("\n"))?;
    Ok(0)
}

/// The turns in order; those that were taken back last.
fn turns(state: &State) -> impl Iterator<Item = (&TurnChanges, bool)> {
    let history = state.history();
    let done = history.done().iter().map(|turn| (turn, false));
    done.chain(history.undone().iter().rev().map(|undone| (&undone.changes, true)))
}

/// What is different after a turn; what it only did and undid itself is not.
fn net(turn: &TurnChanges) -> impl Iterator<Item = &FileChange> {
    turn.files.values().filter(|change| change.before != change.after)
}

/// The turns of a session and what they changed, for a person.
pub fn changes(state: &State, style: Style) -> Vec<String> {
    let folder = state.session().map(|session| session.cwd.clone()).unwrap_or_default();
    let mut lines = Vec::new();
    for (turn, undone) in turns(state) {
        let mark = if undone { style.dim(" (taken back)") } else { String::new() };
        let head = format!("turn {}: ", turn.turn);
        let beside = head.len() + if undone { " (taken back)".len() } else { 0 };
        lines.push(format!("{head}{}{mark}", title(&turn.title, beside)));
        lines.extend(net(turn).map(|change| file_line(change, Path::new(&folder), style)));
        lines.extend(turn.not_covered.iter().flat_map(|words| not_covered(words, style)));
    }
    if lines.is_empty() {
        lines.push("nothing was done yet".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_covered_breaks_between_words() {
        let words = "what commands did outside of the workspace, in .git, and to files that .gitignore leaves out";
        let lines = not_covered(words, Style::Plain);
        assert_eq!(
            lines,
            [
                "  not covered: what commands did outside of the workspace, in .git, and to files",
                "    that .gitignore leaves out"
            ]
        );
        assert_eq!(title(&"word ".repeat(40), 20).chars().count(), WIDTH - 20);
    }
}
