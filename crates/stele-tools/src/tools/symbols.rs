//! `symbols`: outlines.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;
use stele_core::{CallCard, CardKind, Effects, Future, Invocation, Subject, Tool, ToolError, ToolOutput, ToolSpec};

use crate::error::{Error, Result};
use crate::look::Look;
use crate::path::Place;
use crate::{Options, card, file, outline, walk};

/// Largest file, in bytes, that is parsed.
const PARSED: u64 = 4 * 1024 * 1024;
/// Files of a folder that are parsed.
const FILES: usize = 300;

/// Arguments of `symbols`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    path: String,
}

/// The tool.
pub(crate) struct Symbols(Look<Arguments>);

impl Symbols {
    pub(crate) fn new(options: &Options) -> Self {
        Self(Look::new(options, "symbols", include_str!("symbols.md")))
    }
}

impl Tool for Symbols {
    fn spec(&self) -> &ToolSpec {
        &self.0.declared.spec
    }

    fn effects(&self) -> Effects {
        Effects::None
    }

    fn parallel(&self, _: &str) -> bool {
        true
    }

    fn subjects(&self, arguments: &str) -> Result<Vec<Subject>, ToolError> {
        Ok(vec![Subject::Read(self.0.declared.parse(arguments)?.path)])
    }

    fn call_card(&self, arguments: &str, cwd: &Path) -> CallCard {
        let Ok(arguments) = self.0.declared.parse(arguments) else {
            return self.0.declared.plain_card(CardKind::Search);
        };
        CallCard::Generic {
            title: card::title(&format!("Symbols of {}", card::relative(&arguments.path, cwd))),
            kind: CardKind::Search,
            locations: vec![self.0.roots.location(&arguments.path, cwd, 1)],
        }
    }

    fn run<'a>(&'a self, invocation: Invocation<'a>) -> Future<'a, ToolOutput> {
        self.0.run(invocation, symbols)
    }
}

fn symbols(place: &Place, arguments: &Arguments, limit: usize, stop: &AtomicBool) -> Result<ToolOutput> {
    let asked = arguments.path.as_str();
    let base = place.find(asked)?.path;
    if !base.is_dir() {
        let text = of_file(&base, asked)?;
        let text = if text.is_empty() { "[no definitions]".to_owned() } else { text };
        return Ok(ToolOutput::text(text));
    }
    let found = Mutex::new(BTreeSet::<PathBuf>::new());
    walk::visit(&base, stop, || {
        |path: &Path| {
            if outline::language(path).is_some() {
                found.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
            }
        }
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut text = String::new();
    let mut shown = 0;
    for path in found.iter().take(FILES) {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let name = path.strip_prefix(&place.cwd).unwrap_or(path).display().to_string();
        let outline = of_file(path, &name).unwrap_or_else(|error| format!("[{error}]\n"));
        if text.len() + name.len() + outline.len() > limit {
            break;
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = write!(text, "{gap}{name}\n{outline}");
        shown += 1;
    }
    let files = found.len();
    if shown < files {
        let _ = write!(text, "[{shown} of {files} files; narrow the path]");
    } else {
        let _ = write!(text, "[{files} file{}]", if files == 1 { "" } else { "s" });
    }
    Ok(ToolOutput::text(text))
}

fn of_file(path: &Path, asked: &str) -> Result<String> {
    let Some(language) = outline::language(path) else {
        let known = outline::extensions();
        return Err(Error::Value(format!("{asked} has no outline; files that do end in {known}. Use grep or read")));
    };
    let (_, metadata) = file::open(path, asked)?;
    if metadata.len() > PARSED {
        return Err(Error::Value(format!("{asked} has {} bytes, too many for an outline; use grep", metadata.len())));
    }
    let source = file::read(path, asked)?;
    outline::outline(language, &source)
        .ok_or_else(|| Error::Value(format!("{asked} took too long to parse; use grep or read")))
}
