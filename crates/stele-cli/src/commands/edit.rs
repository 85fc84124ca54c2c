//! `stele edit` and `stele patch`: the edit engine alone, on real files.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, IsTerminal, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde::Serialize;
use stele_core::{Hash, ToolError, name_on_a_line};
use stele_edit::limits::MAX_INPUT;
use stele_edit::{Diff, FileChange, Healed, Refusal, Version, git_diff};
use stele_tools::InPlace;
use stele_tools::change::{self, Becomes, Change, Wanted};
use stele_tools::claim::{self, Claim};
use stele_tools::stands::{self, Was};
use stele_tools::tree::{self, Planned};

use crate::args::{EditArgs, EditOutput, Global, PatchArgs};
use crate::error::{CommandError, Result};
use crate::output::{self, Look};
use crate::render::inert::inert;
use crate::render::json;
use crate::setup::{self, Environment};
use crate::signals;

/// What `--json` prints.
#[derive(Debug, Default, Serialize)]
struct Report {
    ok: bool,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// Slips that were forgiven.
    healed: Vec<&'static str>,
    files: Vec<FileReport>,
    message: String,
}

/// What became, or would become, of one file.
#[derive(Debug, Serialize)]
struct FileReport {
    path: String,
    /// Where it was, when it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_from: Option<String>,
    /// Hash of the content before; null when it did not exist.
    before: Option<Hash>,
    /// Hash of the content after; null when it was deleted.
    after: Option<Hash>,
    /// The mode that it is given, as git writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    /// As `git apply` takes it; bytes that are not UTF-8 are shown as U+FFFD.
    diff: String,
    /// The same byte for byte, where that is not the text's.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff_base64: Option<String>,
    #[serde(skip)]
    exact: Diff,
}

/// A file in the folder that a diff is for.
struct Stand {
    path: String,
    mode: u32,
}

impl Stand {
    fn with<'a>(&'a self, bytes: Option<&'a [u8]>) -> Option<Version<'a>> {
        bytes.map(|bytes| Version { path: &self.path, mode: self.mode, bytes })
    }
}

/// The mode of a file that is new, as git writes it.
const NEW: u32 = 0o100_644;

/// Why nothing was changed.
struct Refused {
    code: String,
    message: String,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { code: refusal.code.to_owned(), message: refusal.message }
    }
}

impl From<ToolError> for Refused {
    fn from(error: ToolError) -> Self {
        Self { code: error.code, message: error.message }
    }
}

/// Edits one file by an input in any form.
pub fn edit(environment: &Environment, global: &Global, args: &EditArgs) -> Result<u8> {
    let (folder, look) = (setup::folder(global)?, environment.look(global.color));
    let Some(asked) = args.path.to_str() else {
        return Err(CommandError::usage("usage.path", "the path is not UTF-8, which the forms of an edit cannot name"));
    };
    let input = input()?;
    signals::hold()?;
    let outcome = input.and_then(|input| {
        let writing = Writing::of(environment, &args.output);
        claim::in_turn(|claim| edit_one(&folder, asked, &input, &writing, claim))
    });
    finish(outcome, &args.output, look)
}

/// Applies a patch to the files of a folder.
pub fn patch(environment: &Environment, global: &Global, args: &PatchArgs) -> Result<u8> {
    let (folder, look) = (setup::folder(global)?, environment.look(global.color));
    let input = input()?;
    signals::hold()?;
    let outcome = input.and_then(|input| {
        let writing = Writing::of(environment, &args.output);
        claim::in_turn(|claim| patch_many(&folder, &input, &writing, claim))
    });
    finish(outcome, &args.output, look)
}

/// Whether something is written, and how.
struct Writing {
    dry_run: bool,
    in_place: InPlace,
}

impl Writing {
    fn of(environment: &Environment, output: &EditOutput) -> Self {
        Self { dry_run: output.dry_run, in_place: setup::in_place(setup::data(environment).as_deref()) }
    }
}

/// The input; what is not text is in none of the forms.
fn input() -> Result<Result<String, Refused>> {
    let mut bytes = Vec::new();
    // One byte more than is taken, so that the engine sees that it is too much.
    io::stdin()
        .lock()
        .take(MAX_INPUT as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CommandError::usage("usage.input", format!("cannot read standard input: {error}")))?;
    if bytes.len() > MAX_INPUT {
        let message = format!("the input has more than {MAX_INPUT} bytes; send it in several parts");
        return Ok(Err(Refused { code: "edit.too_large".to_owned(), message }));
    }
    Ok(String::from_utf8(bytes).map_err(|error| {
        let message = format!("the input is not UTF-8 (byte {}); send text", error.utf8_error().valid_up_to());
        Refused { code: "edit.unparsed".to_owned(), message }
    }))
}

fn edit_one(folder: &Path, asked: &str, input: &str, writing: &Writing, claim: &mut Claim) -> Result<Report, Refused> {
    let located = stands::locate(folder, asked)?;
    let named = located.instead.as_deref().unwrap_or(asked);
    let before = located.bytes.as_deref();
    let applied = stele_edit::edit_input(Some(named), before, input)?;
    let mut notes = applied.notes;
    if located.instead.is_some() {
        notes.push(format!("opened {named}, the only name that looks like the one asked for"));
    }
    let mode = fs::metadata(&located.path).map_or(NEW, |metadata| metadata.mode());
    let stand = Stand { path: in_folder(folder, &located.path, named), mode };
    if !writing.dry_run {
        let becomes = Becomes::Content(Wanted { bytes: &applied.bytes, mode: None, linked: None, alone: false });
        let change = Change { shown: named, path: located.path, was: Was::of(before), becomes };
        notes.extend(change::apply(&[change], &writing.in_place, claim)?);
        notes.extend(claim.note().map(str::to_owned));
    }
    let diff = git_diff(stand.with(before), stand.with(Some(&applied.bytes)));
    let file = file_report(named, before, Some(&applied.bytes), diff);
    Ok(report(vec![file], &applied.healed, &notes, writing.dry_run))
}

fn patch_many(folder: &Path, input: &str, writing: &Writing, claim: &mut Claim) -> Result<Report, Refused> {
    let planned = tree::plan(folder, &stele_edit::Options::default(), input)?;
    // Also what is only shown has to be possible.
    let changes = planned.changes()?;
    let plan = &planned.plan;
    let mut notes: Vec<String> = plan.iter().flat_map(|change| change.notes.iter().cloned()).collect();
    let files: Vec<FileReport> = plan.iter().map(|change| changed(folder, &planned, change)).collect();
    if !writing.dry_run {
        notes.extend(change::apply(&changes, &writing.in_place, claim)?);
        notes.extend(claim.note().map(str::to_owned));
    }
    let mut healed: Vec<Healed> = plan.iter().flat_map(|change| change.healed.iter().copied()).collect();
    healed.sort_unstable();
    healed.dedup();
    Ok(report(files, &healed, &notes, writing.dry_run))
}

/// The name of a real path in the folder, for a diff that is applied there; as it was given where it is elsewhere.
fn in_folder(folder: &Path, path: &Path, given: &str) -> String {
    let root = fs::canonicalize(folder);
    let inside = root.ok().and_then(|root| path.strip_prefix(root).ok()?.to_str().map(str::to_owned));
    inside.unwrap_or_else(|| given.to_owned())
}

fn changed(folder: &Path, planned: &Planned, change: &FileChange) -> FileReport {
    let given = change.moved_from.as_deref().unwrap_or(&change.path);
    let old = planned.origin(change).map(|(path, mode)| Stand { path: in_folder(folder, &path, given), mode });
    let mode = change.mode.or(old.as_ref().map(|old| old.mode)).unwrap_or(NEW);
    let new = planned.result(change).map(|path| Stand { path: in_folder(folder, &path, &change.path), mode });
    let (before, after) = (change.before.as_deref(), change.after.as_deref());
    let diff = git_diff(old.as_ref().and_then(|old| old.with(before)), new.as_ref().and_then(|new| new.with(after)));
    FileReport {
        moved_from: change.moved_from.clone(),
        mode: change.mode.map(|mode| format!("{mode:o}")),
        ..file_report(&change.path, before, after, diff)
    }
}

fn file_report(path: &str, before: Option<&[u8]>, after: Option<&[u8]>, diff: Diff) -> FileReport {
    let lossy = diff.bytes() != diff.text.as_bytes();
    FileReport {
        path: path.to_owned(),
        moved_from: None,
        before: before.map(Hash::of),
        after: after.map(Hash::of),
        mode: None,
        diff: diff.text.clone(),
        diff_base64: lossy.then(|| BASE64.encode(diff.bytes())),
        exact: diff,
    }
}

fn report(files: Vec<FileReport>, healed: &[Healed], notes: &[String], dry_run: bool) -> Report {
    let mut message = String::new();
    for file in &files {
        let what = match (&file.moved_from, file.before, file.after) {
            (Some(from), ..) => format!("moved {} to", name_on_a_line(from)),
            (None, None, _) => "created".to_owned(),
            (None, Some(_), None) => "deleted".to_owned(),
            (None, Some(_), Some(_)) => "edited".to_owned(),
        };
        let _ = write!(message, "{what} {}: +{} -{}", name_on_a_line(&file.path), file.exact.added, file.exact.removed);
        if let Some(mode) = &file.mode {
            let _ = write!(message, ", mode {mode}");
        }
        message.push('\n');
    }
    let healed: Vec<&'static str> = healed.iter().map(|healed| healed.as_str()).collect();
    for note in notes {
        let _ = writeln!(message, "{note}");
    }
    if dry_run {
        message.push_str("nothing was written: this is a dry run\n");
    }
    Report { ok: true, code: None, healed, files, message: message.trim_end().to_owned() }
}

/// Prints what became of it: the diff on standard output, what to know about it on standard error.
fn finish(outcome: Result<Report, Refused>, wanted: &EditOutput, look: Look) -> Result<u8> {
    let report = outcome.unwrap_or_else(|refused| Report {
        code: Some(refused.code),
        message: refused.message,
        ..Report::default()
    });
    if wanted.json {
        output::print(&json::line(&report))?;
    } else if let Some(code) = &report.code {
        crate::app::report(&CommandError::failed(code, report.message.clone()), look.stderr());
    } else {
        let screen = io::stdout().is_terminal();
        for file in &report.files {
            // Where it can be applied it has to be exact, and on a screen it must not act.
            match screen {
                true => output::print(&inert(&file.diff))?,
                false => output::write(file.exact.bytes())?,
            }
        }
        let mut text = inert(&report.message);
        text.push('\n');
        // Standard error that cannot be written has nobody to be told.
        let _ = io::Write::write_all(&mut io::stderr(), text.as_bytes());
    }
    Ok(u8::from(!report.ok))
}
