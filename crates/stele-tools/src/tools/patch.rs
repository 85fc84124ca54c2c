//! `patch`: many files, worked out whole by the edit engine, written all or not at all.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use stele_core::{
    CallCard, CardKind, Effects, FileAction, FileMeta, Future, Hash, Invocation, ReadFiles, ResultCard, ResultMeta,
    Subject, Tool, ToolError, ToolOutput, ToolSpec,
};
use stele_edit::FileChange;

use crate::declare::{Declared, blocking, finish};
use crate::error::{Error, Result};
use crate::path::{Place, Roots};
use crate::{Options, card, file, sanitise};

/// Bytes of the diffs that the model is shown of its own change.
const EXCERPT: usize = 3_000;

/// Arguments of `patch`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    patch: String,
}

/// The tool.
pub(crate) struct Patch {
    declared: Declared<Arguments>,
    roots: Roots,
    limit: usize,
}

impl Patch {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            declared: Declared::new("patch", include_str!("patch.md"), ""),
            roots: options.roots(),
            limit: options.limits.result_bytes,
        }
    }

    fn paths(&self, arguments: &str) -> Result<Vec<String>> {
        let arguments = self.declared.parse(arguments)?;
        stele_edit::paths(&arguments.patch).map_err(refused)
    }
}

impl Tool for Patch {
    fn spec(&self) -> &ToolSpec {
        &self.declared.spec
    }

    fn effects(&self) -> Effects {
        Effects::Local
    }

    fn parallel(&self, _: &str) -> bool {
        false
    }

    fn subjects(&self, arguments: &str) -> Result<Vec<Subject>, ToolError> {
        Ok(self.paths(arguments)?.into_iter().map(Subject::Write).collect())
    }

    fn call_card(&self, arguments: &str, cwd: &Path) -> CallCard {
        let Ok(paths) = self.paths(arguments) else { return self.declared.plain_card(CardKind::Edit) };
        let names: Vec<String> = paths.iter().map(|path| card::relative(path, cwd)).collect();
        CallCard::Generic {
            title: card::title(&format!("Patch {}", names.join(", "))),
            kind: CardKind::Edit,
            locations: paths.iter().map(|path| card::location(path, cwd, 1)).collect(),
        }
    }

    fn result_card(&self, _: &str, content: &str, meta: &ResultMeta) -> ResultCard {
        card::changes(content, meta)
    }

    fn run<'a>(&'a self, invocation: Invocation<'a>) -> Future<'a, ToolOutput> {
        Box::pin(async move {
            let result = async {
                let arguments = self.declared.parse(invocation.arguments)?;
                let place = self.roots.place(invocation.cwd, &invocation.session.id);
                let seen = Arc::clone(&invocation.read_files);
                // Not cut short by a cancel: what it did must be known.
                blocking(move || patch(&place, &arguments.patch, &seen)).await
            };
            finish(result.await, Some(self.limit))
        })
    }
}

fn refused(refusal: stele_edit::Refusal) -> Error {
    Error::Refused { code: refusal.code, message: refusal.message }
}

fn patch(place: &Place, input: &str, seen: &ReadFiles) -> Result<ToolOutput> {
    let options = stele_edit::Options { root: Some(place.cwd.display().to_string()), ..stele_edit::Options::default() };
    let mut unreadable = None;
    let mut read = |path: &str| match place.target(path).and_then(|target| file::read(&target, path)) {
        Ok(bytes) => Some(bytes),
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            unreadable.get_or_insert(error);
            None
        }
    };
    let plan = options.plan(input, &mut read);
    // What could not be read is no missing file.
    if let Some(error) = unreadable {
        return Err(error);
    }
    let plan = plan.map_err(refused)?;

    let mut steps = Vec::new();
    for change in &plan {
        let gone = change.moved_from.as_ref().or_else(|| change.after.is_none().then_some(&change.path));
        if let Some(after) = &change.after {
            steps.push(Step::new(place, &change.path, Some(after), change.mode)?);
        }
        if let Some(gone) = gone {
            steps.push(Step::new(place, gone, None, None)?);
        }
    }
    let mut notes = Vec::new();
    for at in 0..steps.len() {
        match steps[at].take() {
            Ok(note) => notes.extend(note),
            Err(error) => return Err(undone(&steps[..=at], error)),
        }
    }
    Ok(told(place, &plan, seen, &notes))
}

/// Takes back what was done, and says why.
fn undone(done: &[Step<'_>], error: Error) -> Error {
    let failed: Vec<&str> = done.iter().rev().filter(|step| step.back().is_err()).map(|step| step.asked).collect();
    match failed.is_empty() {
        true => error,
        false => Error::HalfDone { reason: error.to_string(), files: failed.join(", ") },
    }
}

/// What becomes of one name.
struct Step<'a> {
    asked: &'a str,
    path: PathBuf,
    /// The new content; absent when the file goes.
    content: Option<&'a [u8]>,
    mode: Option<u32>,
    /// Content and mode of what was there.
    before: Option<(Vec<u8>, u32)>,
    /// The first folder that did not exist.
    made: Option<PathBuf>,
}

impl<'a> Step<'a> {
    fn new(place: &Place, asked: &'a str, content: Option<&'a Vec<u8>>, mode: Option<u32>) -> Result<Self> {
        let path = place.target(asked)?;
        let before = match file::read(&path, asked) {
            Ok(bytes) => {
                let mode = fs::metadata(&path).map_err(Error::io("read", asked))?.mode();
                Some((bytes, mode & 0o7777))
            }
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let made = path.ancestors().skip(1).take_while(|folder| !folder.exists()).last().map(Path::to_owned);
        Ok(Self { asked, path, content: content.map(Vec::as_slice), mode, before, made })
    }

    /// Does it; a note where the file was not replaced in one go.
    fn take(&self) -> Result<Option<String>> {
        let Some(content) = self.content else {
            fs::remove_file(&self.path).map_err(Error::io("delete", self.asked))?;
            return Ok(None);
        };
        let in_place = file::replace(&self.path, self.asked, content)?;
        if let Some(mode) = self.mode {
            let mode = fs::Permissions::from_mode(mode & 0o777);
            fs::set_permissions(&self.path, mode).map_err(Error::io("change the mode of", self.asked))?;
        }
        Ok(in_place.map(|why| format!("{} was written in place, since {why}", self.asked)))
    }

    /// Takes it back.
    fn back(&self) -> Result<()> {
        match &self.before {
            Some((bytes, mode)) => {
                let same = fs::read(&self.path).is_ok_and(|now| now == *bytes);
                if !same {
                    file::replace(&self.path, self.asked, bytes)?;
                }
                fs::set_permissions(&self.path, fs::Permissions::from_mode(*mode))
                    .map_err(Error::io("change the mode of", self.asked))
            }
            None => {
                match fs::remove_file(&self.path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(Error::io("delete", self.asked)(error));
                    }
                    _ => {}
                }
                // Folders that were made for it go as well, as far as they are empty.
                if let Some(made) = &self.made {
                    let folders = self.path.ancestors().skip(1).take_while(|folder| folder.starts_with(made));
                    folders.take_while(|folder| fs::remove_dir(folder).is_ok()).for_each(drop);
                }
                Ok(())
            }
        }
    }
}

fn told(place: &Place, plan: &[FileChange], seen: &ReadFiles, notes: &[String]) -> ToolOutput {
    let mut files = Vec::new();
    let mut text = String::new();
    for change in plan {
        let path = place.target(&change.path).unwrap_or_else(|_| place.join(&change.path));
        let meta = match &change.after {
            Some(after) => file::change(&path, &change.path, change.before.as_deref(), after),
            None => deleted(&path, change.before.as_deref()),
        };
        let what = match (&change.moved_from, &change.before, &change.after) {
            (Some(from), ..) => format!("moved {from} to"),
            (None, None, _) => "created".to_owned(),
            (None, Some(_), None) => "deleted".to_owned(),
            (None, Some(_), Some(_)) => "edited".to_owned(),
        };
        let _ = writeln!(text, "{what} {}: +{} -{}", change.path, meta.added, meta.removed);
        for note in &change.notes {
            let _ = writeln!(text, "[{note}]");
        }
        if let (Some(hash), Some(before)) = (seen.get(&path), &change.before)
            && *hash != Hash::of(before)
        {
            text.push_str("[it had changed since it was read; the text was found in what is there now]\n");
        }
        if let Some(from) = &change.moved_from {
            let from = place.target(from).unwrap_or_else(|_| place.join(from));
            files.push(FileMeta { added: 0, removed: 0, ..deleted(&from, None) });
        }
        files.push(meta);
    }
    for note in notes {
        let _ = writeln!(text, "[{note}]");
    }
    let diffs: Vec<&str> = files.iter().filter_map(|file| Some(file.diff.as_ref()?.as_str())).collect();
    text.push_str(&sanitise::cut(diffs.join("\n").trim_end(), EXCERPT));
    ToolOutput { content: text, meta: ResultMeta { files, ..ResultMeta::default() }, ..ToolOutput::default() }
}

fn deleted(path: &Path, before: Option<&[u8]>) -> FileMeta {
    let lines = before.map_or(0, |before| {
        memchr::memchr_iter(b'\n', before).count() + usize::from(!before.is_empty() && !before.ends_with(b"\n"))
    });
    FileMeta {
        path: path.display().to_string(),
        action: FileAction::Deleted,
        hash: None,
        added: 0,
        removed: u32::try_from(lines).unwrap_or(u32::MAX),
        diff: None,
    }
}
