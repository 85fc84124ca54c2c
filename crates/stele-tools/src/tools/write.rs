//! `write`: a whole file, atomically, never over something the model has not seen.

use std::io;
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use stele_core::{
    Ahead, CallCard, CardFile, CardKind, Effects, FileAction, Future, Hash, Invocation, ReadFiles, ResultCard,
    ResultMeta, Subject, Tool, ToolError, ToolOutput, ToolSpec,
};

use crate::change::Before;
use crate::declare::{Declared, blocking, finish};
use crate::error::{Error, Result};
use crate::path::{Place, Roots};
use crate::preview::{self, Preview};
use crate::{Options, card, file, sanitise};

/// Bytes of the diff that a refusal shows.
const REFUSAL_DIFF: usize = 4 * 1024;

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
        let place = card::location(&arguments.path, cwd, 1);
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
                let ahead = Arc::clone(&invocation.ahead);
                // Not cut short by a cancel: half a write helps nobody, and what it did must be known.
                blocking(move || write(&place, &arguments, &seen, &ahead)).await
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
    let target = place.target(&arguments.path)?;
    let before = match file::read(&target, &arguments.path) {
        Ok(bytes) => Some(bytes),
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    Ok(Some(Preview::of(target, before.as_deref(), arguments.content.as_bytes())))
}

fn write(place: &Place, arguments: &Arguments, seen: &ReadFiles, ahead: &Ahead) -> Result<ToolOutput> {
    let asked = &arguments.path;
    let content = arguments.content.as_bytes();
    let target = place.target(asked)?;
    let shown = card::relative(&target.display().to_string(), &place.cwd);
    let before = match file::read(&target, asked) {
        Ok(bytes) => Some(bytes),
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if let Some(before) = &before {
        if before == content {
            return Ok(ToolOutput::text(format!("{shown} already has this content")));
        }
        match seen.get(&target) {
            None if before.is_empty() => {}
            None => return Err(Error::Unread { path: asked.clone() }),
            Some(hash) if *hash != Hash::of(before) => {
                let diff = file::change(&target, &shown, Some(before), content).diff;
                let diff = diff.map_or_else(String::new, |diff| sanitise::cut(diff.as_str(), REFUSAL_DIFF));
                return Err(Error::Stale { path: asked.clone(), diff });
            }
            Some(_) => {}
        }
    }
    let noted = Before::announced(&target, asked, before.as_deref(), content, ahead)?;
    let in_place = file::replace(&target, asked, content, &place.in_place)?;
    let change = file::change(&target, &shown, before.as_deref(), content);
    let lines = arguments.content.lines().count();
    let action = if change.action == FileAction::Created { "created" } else { "wrote" };
    let mut text = format!("{action} {shown} ({lines} line{})", if lines == 1 { "" } else { "s" });
    if let Some(why) = in_place {
        text.push_str(&format!("; written in place, since {why}"));
    }
    Ok(ToolOutput {
        content: text,
        meta: ResultMeta { files: vec![change], ..ResultMeta::default() },
        changed: vec![noted.became(Some(content))],
        ..ToolOutput::default()
    })
}
