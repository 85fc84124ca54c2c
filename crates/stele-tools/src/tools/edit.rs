//! `edit`: exact replacements by the edit engine, with the file work around it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use stele_core::{
    CallCard, CardFile, CardKind, Effects, FileMeta, Future, Hash, Invocation, ReadFiles, ResultCard, ResultMeta,
    Subject, Tool, ToolError, ToolOutput, ToolSpec,
};
use stele_edit::names;

use crate::announce::Announcer;
use crate::claim::{self, Claim};
use crate::declare::{Declared, blocking, finish};
use crate::error::{Error, Result};
use crate::path::{Found, Place, Roots};
use crate::preview::{self, Preview};
use crate::replacement;
use crate::slips::{Fields, rename};
use crate::tools::write;
use crate::{Options, card, file, sanitise};

/// Bytes of the diff that the model is shown of its own change.
const EXCERPT: usize = 1_500;

/// Arguments of `edit`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    path: String,
    edits: Option<Vec<Replacement>>,
    /// Instead of edits: search/replace blocks, a diff, sed.
    input: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Replacement {
    old: String,
    new: String,
    all: Option<bool>,
    near_line: Option<u64>,
}

fn declared() -> Declared<Arguments> {
    Declared::new("edit", include_str!("edit.md"), "").forgiving(|fields| {
        if fields.get("edits").is_none_or(Value::is_null) && fields.get("input").is_none_or(Value::is_null) {
            let is_of_an_edit = |name: &&str| fields.contains_key(*name);
            let of_edits = [&names::OLD[..], &names::NEW, &names::ALL, &names::NEAR].concat();
            let own: Vec<&str> = of_edits.into_iter().filter(is_of_an_edit).collect();
            let edit: Fields = own.into_iter().filter_map(|name| fields.remove_entry(name)).collect();
            if !edit.is_empty() {
                fields.insert("edits".to_owned(), Value::Array(vec![Value::Object(edit)]));
            }
        }
        let edits = fields.get_mut("edits").and_then(Value::as_array_mut).into_iter().flatten();
        edits.filter_map(Value::as_object_mut).try_for_each(|edit| {
            [&names::OLD[..], &names::NEW, &names::ALL, &names::NEAR].iter().try_for_each(|names| rename(edit, names))
        })
    })
}

/// The tool.
pub(crate) struct Edit {
    declared: Declared<Arguments>,
    roots: Roots,
    limit: usize,
    engine: stele_edit::Options,
}

impl Edit {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            declared: declared(),
            roots: options.roots(),
            limit: options.limits.result_bytes,
            engine: options.edit.clone(),
        }
    }
}

impl Tool for Edit {
    fn spec(&self) -> &ToolSpec {
        &self.declared.spec
    }

    fn effects(&self) -> Effects {
        Effects::Local
    }

    // Calls on one file queue in the model's order, and each reads the file again.
    fn parallel(&self, _: &str) -> bool {
        false
    }

    fn subjects(&self, arguments: &str) -> Result<Vec<Subject>, ToolError> {
        Ok(vec![self.roots.written(self.declared.parse(arguments)?.path)?])
    }

    fn call_card(&self, arguments: &str, cwd: &Path) -> CallCard {
        let Ok(arguments) = self.declared.parse(arguments) else { return self.declared.plain_card(CardKind::Edit) };
        let path = self.roots.location(&arguments.path, cwd, 1).path;
        let edits = arguments.edits.as_deref().unwrap_or_default();
        let files = edits
            .iter()
            .map(|edit| CardFile { path: path.clone(), old: Some(edit.old.clone()), new: edit.new.clone() })
            .collect();
        let lines = edits.iter().filter_map(|edit| edit.near_line);
        let mut locations: Vec<_> = lines.map(|line| self.roots.location(&arguments.path, cwd, line.max(1))).collect();
        if locations.is_empty() {
            locations.push(self.roots.location(&arguments.path, cwd, 1));
        }
        let title = format!("Edit {}", card::title(&card::relative(&arguments.path, cwd)));
        CallCard::Diff { title, files, locations }
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
                let (engine, log) = (self.engine.clone(), Announcer::new(&invocation.ahead, invocation.workspace));
                blocking(move || {
                    let edit = |claim: &mut Claim| edit(&place, &arguments, &engine, (&seen, &log), claim);
                    claim::in_turn_of_a_call(edit)
                })
                .await
            };
            finish(result.await, Some(self.limit))
        })
    }
}

impl From<&Replacement> for stele_edit::Edit {
    fn from(edit: &Replacement) -> Self {
        let (old, new) = (edit.old.clone(), edit.new.clone());
        Self { old, new, all: edit.all.unwrap_or(false), near_line: edit.near_line }
    }
}

fn refused(asked: &str, refusal: &stele_edit::Refusal) -> Error {
    Error::Refused { code: refusal.code, message: format!("{asked}: {}", refusal.message) }
}

/// An edit that fits, before anything is written.
struct Planned {
    /// The name that was taken, where it only looks like the one asked for.
    instead: Option<String>,
    target: PathBuf,
    shown: String,
    before: Option<Vec<u8>>,
    applied: stele_edit::Applied,
}

fn plan(place: &Place, arguments: &Arguments, engine: &stele_edit::Options) -> Result<Planned> {
    let asked = &arguments.path;
    let edits = arguments.edits.as_ref().filter(|edits| !edits.is_empty());
    let creates = match (&edits, &arguments.input) {
        (Some(edits), None) => edits.iter().all(|edit| edit.old.is_empty()),
        // Whether an input creates a file only its dialect knows.
        (None, Some(_)) => true,
        (None, None) => {
            return Err(declared().wrong("edits is missing; give at least one".to_owned()));
        }
        (Some(_), Some(_)) => return Err(Error::Value("give edits or input, not both".to_owned())),
    };
    let Found { path: target, instead } = place.writable(asked)?;
    let before = file::read_if_there(file::LARGEST, &target, asked)?;
    // The nearest names help more than what the engine says.
    let missing = || before.is_none().then(|| place.missing(asked));
    if let Some(missing) = (!creates).then(missing).flatten() {
        return Err(missing);
    }
    let shown = card::relative(&target.display().to_string(), &place.cwd);
    let applied = match (edits, &arguments.input) {
        (_, Some(input)) => engine.edit_input(Some(&shown), before.as_deref(), input),
        (edits, None) => {
            let edits: Vec<_> = edits.into_iter().flatten().map(stele_edit::Edit::from).collect();
            engine.apply(before.as_deref().unwrap_or_default(), &edits)
        }
    };
    let applied = applied.map_err(|refusal| {
        let nearest = (refusal.code == "edit.missing").then(missing).flatten();
        nearest.unwrap_or_else(|| refused(asked, &refusal))
    })?;
    Ok(Planned { instead, target, shown, before, applied })
}

/// What an edit would make of its file as it is now.
pub(crate) fn preview(place: &Place, arguments: &str, engine: &stele_edit::Options) -> Result<Option<Preview>> {
    let arguments = declared().parse(arguments)?;
    if preview::is_too_large(place, &arguments.path) {
        return Ok(None);
    }
    let planned = plan(place, &arguments, engine)?;
    Ok(Some(Preview::of(planned.target, planned.before.as_deref(), &planned.applied.bytes)))
}

fn edit(
    place: &Place,
    arguments: &Arguments,
    engine: &stele_edit::Options,
    (seen, log): (&ReadFiles, &Announcer),
    claim: &mut Claim,
) -> Result<ToolOutput> {
    let Planned { instead, target, shown, before, applied } = plan(place, arguments, engine)?;
    let (asked, before, after) = (arguments.path.as_str(), before.as_deref(), applied.bytes.as_slice());
    // It says as little of what was there as a write does.
    if let (stele_edit::Dialect::Whole, Some(before)) = (applied.dialect, before) {
        write::refuse_unseen((&target, &shown, asked), before, after, seen)?;
    }
    let replacement = replacement::Replacement { path: &target, asked, before, after };
    let (changed, in_place) = replacement.carry_out(claim, log, &place.in_place)?;
    let part = file::known_of(seen, &target, before, after);
    let change = FileMeta { part, ..file::change(&target, &shown, before, after) };

    let action = if before.is_none() { "created" } else { "edited" };
    let mut text = format!("{action} {shown}: +{} -{}", change.added, change.removed);
    for note in &applied.notes {
        let _ = write!(text, "\n[{note}]");
    }
    if let Some(name) = instead {
        let _ = write!(text, "\n[opened {name}, the only name that looks like the one asked for]");
    }
    if let (Some(known), Some(before)) = (seen.get(&target), before)
        && known.hash != Hash::of(before)
    {
        text.push_str("\n[the file had changed since it was read; the text was found in what is there now]");
    }
    if let Some(note) = claim.note() {
        let _ = write!(text, "\n[{note}]");
    }
    if let Some(why) = in_place {
        let _ = write!(text, "\n[written in place, since {why}]");
    }
    if let Some(diff) = &change.diff {
        let hunks = diff.as_str().find("\n@@").map_or("", |at| &diff.as_str()[at + 1..]);
        let _ = write!(text, "\n{}", sanitise::cut(hunks.trim_end(), EXCERPT));
    }
    Ok(ToolOutput {
        content: text,
        meta: ResultMeta { files: vec![change], ..ResultMeta::default() },
        changed: vec![changed],
        ..ToolOutput::default()
    })
}
