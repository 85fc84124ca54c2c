//! `ls`: the tree of a folder, with sizes.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;
use stele_core::{
    CallCard, CardKind, Effects, Future, Invocation, ResultCard, ResultMeta, SearchMeta, Subject, Tool, ToolError,
    ToolOutput, ToolSpec,
};

use crate::error::{Error, Result};
use crate::look::Look;
use crate::path::{self, Place};
use crate::{Options, card, walk};

/// Entries that are shown.
const SHOWN: u64 = 1_000;
/// Levels that are shown by default, and at most.
const DEPTH: (u64, u64) = (2, 10);

/// Arguments of `ls`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    path: Option<String>,
    /// Levels: 2 by default, at most 10.
    depth: Option<u64>,
}

/// The tool.
pub(crate) struct Ls(Look<Arguments>);

impl Ls {
    pub(crate) fn new(options: &Options) -> Self {
        Self(Look::new(options, "ls", include_str!("ls.md")))
    }
}

impl Tool for Ls {
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
        let arguments = self.0.declared.parse(arguments)?;
        Ok(vec![Subject::Read(arguments.path.unwrap_or_else(|| ".".to_owned()))])
    }

    fn call_card(&self, arguments: &str, cwd: &Path) -> CallCard {
        let Ok(arguments) = self.0.declared.parse(arguments) else {
            return self.0.declared.plain_card(CardKind::Search);
        };
        let path = arguments.path.as_deref().unwrap_or(".");
        CallCard::Generic {
            title: card::title(&format!("List {}", card::relative(path, cwd))),
            kind: CardKind::Search,
            locations: vec![self.0.roots.location(path, cwd, 1)],
        }
    }

    fn result_card(&self, _: &str, content: &str, meta: &ResultMeta) -> ResultCard {
        card::search(content, meta)
    }

    fn run<'a>(&'a self, invocation: Invocation<'a>) -> Future<'a, ToolOutput> {
        self.0.run(invocation, list)
    }
}

fn list(place: &Place, arguments: &Arguments, limit: usize, stop: &AtomicBool) -> Result<ToolOutput> {
    let depth = arguments.depth.unwrap_or(DEPTH.0);
    if depth == 0 || depth > DEPTH.1 {
        return Err(Error::Value(format!("depth = {depth} is out of bounds: at least 1, at most {}", DEPTH.1)));
    }
    let asked = arguments.path.as_deref().unwrap_or(".");
    let base = place.find(asked)?.path;
    let mut text = String::new();
    let (mut shown, mut total) = (0, 0);
    for entry in walk::tree(&base, usize::try_from(depth).unwrap_or(usize::MAX)) {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        total += 1;
        let indent = "  ".repeat(entry.depth().saturating_sub(1));
        let name = entry.file_name().to_string_lossy();
        let name = path::one_line(&name);
        let kind = entry.file_type();
        let line = if kind.is_some_and(|kind| kind.is_dir()) {
            format!("{indent}{name}/\n")
        } else if kind.is_some_and(|kind| kind.is_symlink()) {
            let to = std::fs::read_link(entry.path()).map_or_else(|_| "?".to_owned(), |to| to.display().to_string());
            format!("{indent}{name} -> {}\n", path::one_line(&to))
        } else {
            let size = entry.metadata().map_or_else(|_| "?".to_owned(), |metadata| size(metadata.len()));
            format!("{indent}{name} {size}\n")
        };
        if shown == total - 1 && shown < SHOWN && text.len() + line.len() < limit {
            text.push_str(&line);
            shown += 1;
        }
    }
    let entries = |count: u64| if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") };
    if shown < total {
        let _ = write!(text, "[{shown} of {}; narrow the path or the depth]", entries(total));
    } else {
        let _ = write!(text, "[{}]", entries(total));
    }
    let search = SearchMeta { matches: shown, total, truncated: shown < total };
    Ok(ToolOutput {
        content: text,
        meta: ResultMeta { search: Some(search), ..ResultMeta::default() },
        ..ToolOutput::default()
    })
}

/// A size as people read it.
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}
