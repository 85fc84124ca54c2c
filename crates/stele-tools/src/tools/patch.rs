//! `patch`: many files, worked out whole by the edit engine, written all or not at all.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use stele_core::{
    CallCard, CardKind, Effects, FileAction, FileMeta, Future, Hash, Invocation, ReadFiles, ResultCard, ResultMeta,
    Subject, Tool, ToolError, ToolOutput, ToolSpec,
};
use stele_edit::FileChange;

use crate::announce::Announcer;
use crate::change::{self, Becomes};
use crate::claim::{self, Claim};
use crate::declare::{Declared, blocking, finish};
use crate::error::{Error, Result};
use crate::path::{Place, Roots};
use crate::replacement::Before;
use crate::tree::{self, Reach};
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
    engine: stele_edit::Options,
}

impl Patch {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            declared: Declared::new("patch", include_str!("patch.md"), ""),
            roots: options.roots(),
            limit: options.limits.result_bytes,
            engine: options.edit.clone(),
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
        Ok(self.paths(arguments)?.into_iter().map(|path| self.roots.written(path)).collect::<Result<_>>()?)
    }

    fn call_card(&self, arguments: &str, cwd: &Path) -> CallCard {
        let Ok(paths) = self.paths(arguments) else { return self.declared.plain_card(CardKind::Edit) };
        let names: Vec<String> = paths.iter().map(|path| card::relative(path, cwd)).collect();
        CallCard::Generic {
            title: card::title(&format!("Patch {}", names.join(", "))),
            kind: CardKind::Edit,
            locations: paths.iter().map(|path| self.roots.location(path, cwd, 1)).collect(),
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
                let (engine, log) = (self.engine.clone(), Announcer::new(&invocation.ahead, invocation.workspace));
                blocking(move || {
                    let patch = |claim: &mut Claim| patch(&place, &arguments.patch, &engine, (&seen, &log), claim);
                    claim::in_turn_of_a_call(patch)
                })
                .await
            };
            finish(result.await, Some(self.limit))
        })
    }
}

fn refused(refusal: stele_edit::Refusal) -> Error {
    Error::Refused { code: refusal.code, message: refusal.message }
}

fn patch(
    place: &Place,
    input: &str,
    engine: &stele_edit::Options,
    (seen, log): (&ReadFiles, &Announcer),
    claim: &mut Claim,
) -> Result<ToolOutput> {
    let planned = tree::worked_out(place, Reach::Links, engine, input)?;
    let (plan, changes) = (&planned.plan, planned.steps()?);
    claim.hold(change::paths(&changes));
    // What the log is told has to be what is there.
    claim.watch(change::check(&changes))?;
    // What is moved is given up in one place and created in another.
    let befores: BTreeMap<&Path, &[u8]> = plan
        .iter()
        .filter_map(|change| {
            let name = change.moved_from.as_ref().unwrap_or(&change.path);
            let step = changes.iter().find(|step| step.shown == name.as_str())?;
            Some((step.path.as_path(), change.before.as_deref()?))
        })
        .collect();
    let noted: Vec<Before> =
        changes.iter().map(|step| Before::note(&step.path, befores.get(step.path.as_path()).copied())).collect();
    let after = changes.iter().map(|step| match &step.becomes {
        Becomes::Content(wanted) => (Some(wanted.bytes), wanted.mode),
        Becomes::Gone { .. } | Becomes::Moved(_) => (None, None),
    });
    let steps = noted.iter().zip(after.clone());
    claim.announce(steps.map(|(before, (bytes, mode))| before.becomes(bytes, mode)).collect(), log)?;
    let mut notes = claim.watch(change::make(&changes, &place.in_place))?;
    notes.extend(claim.note().map(str::to_owned));
    let changed = noted.into_iter().zip(after).map(|(before, (bytes, _))| before.became(bytes)).collect();
    Ok(ToolOutput { changed, ..told(place, plan, seen, &notes) })
}

fn told(place: &Place, plan: &[FileChange], seen: &ReadFiles, notes: &[String]) -> ToolOutput {
    let mut files = Vec::new();
    let mut text = String::new();
    for change in plan {
        let path = tree::place_of(place, change).unwrap_or_else(|_| place.join(&change.path));
        let from = change.moved_from.as_ref().map(|from| place.name(from).unwrap_or_else(|_| place.join(from)));
        let (was_at, before) = (from.as_deref().unwrap_or(&path), change.before.as_deref());
        let meta = match &change.after {
            Some(after) => FileMeta {
                part: file::known_of(seen, was_at, before, after),
                ..file::change(&path, &change.path, before, after)
            },
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
        if let (Some(known), Some(before)) = (seen.get(was_at), before)
            && known.hash != Hash::of(before)
        {
            text.push_str("[it had changed since it was read; the text was found in what is there now]\n");
        }
        if let Some(from) = from {
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
        part: None,
    }
}
