//! `write`: a whole file, atomically, never over something the model has not seen.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use stele_core::{
    CallCard, CardFile, CardKind, Effects, FileAction, FileMeta, Future, Hash, Invocation, ReadFiles, ResultCard,
    ResultMeta, Subject, Tool, ToolError, ToolOutput, ToolSpec,
};

use crate::announce::Announcer;
use crate::claim::{self, Claim};
use crate::declare::{Declared, blocking, finish};
use crate::error::{Error, Result};
use crate::path::{Found, Place, Roots};
use crate::preview::{self, Preview};
use crate::replacement::Replacement;
use crate::{Options, card, file, sanitise};

/// Bytes of the diff that a refusal shows.
const REFUSAL_DIFF: usize = 4 * 1024;
/// Ranges of lines that a refusal names.
const NAMED: usize = 5;

/// Arguments of `write`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    path: String,
    content: String,
}

/// The tool.
pub(crate) struct Write {
    declared: Declared<Arguments>,
    roots: Roots,
    limit: usize,
}

impl Write {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            declared: Declared::new("write", include_str!("write.md"), ""),
            roots: options.roots(),
            limit: options.limits.result_bytes,
        }
    }
}

impl Tool for Write {
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
        Ok(vec![self.roots.written(self.declared.parse(arguments)?.path)?])
    }

    fn call_card(&self, arguments: &str, cwd: &Path) -> CallCard {
        let Ok(arguments) = self.declared.parse(arguments) else { return self.declared.plain_card(CardKind::Edit) };
        let place = self.roots.location(&arguments.path, cwd, 1);
        CallCard::Diff {
            title: format!("Write {}", card::title(&card::relative(&arguments.path, cwd))),
            files: vec![CardFile { path: place.path.clone(), old: None, new: arguments.content }],
            locations: vec![place],
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
                let log = Announcer::new(&invocation.ahead, invocation.workspace);
                // Not cut short by a cancel: half a write helps nobody, and what it did must be known.
                blocking(move || claim::in_turn_of_a_call(|claim| write(&place, &arguments, (&seen, &log), claim)))
                    .await
            };
            finish(result.await, Some(self.limit))
        })
    }
}

/// What a write would make of its file as it is now.
pub(crate) fn preview(place: &Place, arguments: &str) -> Result<Option<Preview>> {
    let arguments = Declared::<Arguments>::new("write", "", "").parse(arguments)?;
    if preview::is_too_large(place, &arguments.path) {
        return Ok(None);
    }
    let target = place.writable(&arguments.path)?.path;
    let before = file::read_if_there(file::HELD, &target, &arguments.path)?;
    Ok(Some(Preview::of(target, before.as_deref(), arguments.content.as_bytes())))
}

/// Refuses to put other content over what the model has not seen all of, or what has changed since.
pub(crate) fn refuse_unseen(
    (target, shown, asked): (&Path, &str, &str),
    before: &[u8],
    content: &[u8],
    seen: &ReadFiles,
) -> Result<()> {
    let unread = |lines: &[RangeInclusive<u64>]| Err(Error::Unread { path: asked.to_owned(), lines: named(lines) });
    match seen.get(target) {
        None if before.is_empty() => Ok(()),
        None => unread(&[]),
        Some(known) if known.hash != Hash::of(before) => {
            let diff = file::change(target, shown, Some(before), content).diff;
            let diff = diff.map_or_else(String::new, |diff| sanitise::cut(diff.as_str(), REFUSAL_DIFF));
            Err(Error::Stale { path: asked.to_owned(), diff })
        }
        Some(known) if !known.unseen().is_empty() => unread(known.unseen()),
        Some(_) => Ok(()),
    }
}

/// The first few ranges of lines, for a refusal; nothing where there are none.
fn named(lines: &[RangeInclusive<u64>]) -> Option<String> {
    let one = |range: &RangeInclusive<u64>| format!("{}-{}", range.start(), range.end());
    let more = if lines.len() > NAMED { ", …" } else { "" };
    let named: Vec<String> = lines.iter().take(NAMED).map(one).collect();
    (!named.is_empty()).then(|| format!("{}{more}", named.join(", ")))
}

fn write(
    place: &Place,
    arguments: &Arguments,
    (seen, log): (&ReadFiles, &Announcer),
    claim: &mut Claim,
) -> Result<ToolOutput> {
    let asked = &arguments.path;
    let content = arguments.content.as_bytes();
    let Found { path: target, instead } = place.writable(asked)?;
    let shown = card::relative(&target.display().to_string(), &place.cwd);
    let before = file::read_if_there(file::HELD, &target, asked)?;
    if let Some(before) = &before {
        if before == content {
            // Who sends it knows it.
            let known = FileMeta { hash: Some(Hash::of(content)), ..file::seen(&target) };
            let meta = ResultMeta { files: vec![known], ..ResultMeta::default() };
            let content = format!("{shown} already has this content");
            return Ok(ToolOutput { content, meta, ..ToolOutput::default() });
        }
        refuse_unseen((&target, &shown, asked), before, content, seen)?;
    }
    let replacement = Replacement { path: &target, asked, before: before.as_deref(), after: content };
    let (changed, in_place) = replacement.carry_out(claim, log, &place.in_place)?;
    let change = file::change(&target, &shown, before.as_deref(), content);
    let lines = arguments.content.lines().count();
    let action = if change.action == FileAction::Created { "created" } else { "wrote" };
    let mut text = format!("{action} {shown} ({lines} line{})", if lines == 1 { "" } else { "s" });
    if let Some(why) = in_place {
        text.push_str(&format!("; written in place, since {why}"));
    }
    if let Some(name) = instead {
        text.push_str(&format!("\n[wrote over {name}, the only name that looks like the one asked for]"));
    }
    Ok(ToolOutput {
        content: text,
        meta: ResultMeta { files: vec![change], ..ResultMeta::default() },
        changed: vec![changed],
        ..ToolOutput::default()
    })
}
