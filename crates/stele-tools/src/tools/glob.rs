//! `glob`: files by name.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

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

/// Files that are shown.
const SHOWN: usize = 500;

/// Arguments of `glob`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    pattern: String,
    path: Option<String>,
}

/// The tool.
pub(crate) struct Glob(Look<Arguments>);

impl Glob {
    pub(crate) fn new(options: &Options) -> Self {
        Self(Look::new(options, "glob", include_str!("glob.md")))
    }
}

/// The folder that is walked, as the model named it, and what is matched beneath it.
fn split(arguments: &Arguments) -> (String, String) {
    let (folder, rest) = walk::split(&arguments.pattern);
    let base = Path::new(arguments.path.as_deref().unwrap_or(".")).join(folder);
    // Without a folder of its own the glob keeps its meaning "at any depth".
    (base.display().to_string(), rest)
}

impl Tool for Glob {
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
        Ok(vec![Subject::Read(split(&self.0.declared.parse(arguments)?).0)])
    }

    fn call_card(&self, arguments: &str, cwd: &Path) -> CallCard {
        let Ok(arguments) = self.0.declared.parse(arguments) else {
            return self.0.declared.plain_card(CardKind::Search);
        };
        let place =
            arguments.path.as_deref().map_or_else(String::new, |path| format!(" in {}", card::relative(path, cwd)));
        CallCard::Generic {
            title: card::title(&format!("Glob {}{place}", arguments.pattern)),
            kind: CardKind::Search,
            locations: Vec::new(),
        }
    }

    fn result_card(&self, _: &str, content: &str, meta: &ResultMeta) -> ResultCard {
        card::search(content, meta)
    }

    fn run<'a>(&'a self, invocation: Invocation<'a>) -> Future<'a, ToolOutput> {
        self.0.run(invocation, glob)
    }
}

fn glob(place: &Place, arguments: &Arguments, limit: usize, stop: &AtomicBool) -> Result<ToolOutput> {
    let (folder, rest) = split(arguments);
    // Without a wildcard the whole is one name, and the file may still be anywhere beneath.
    let pattern = walk::Pattern::new(&rest, !arguments.pattern.contains('/'))?;
    let base = place.find(&folder)?.path;
    let found = Mutex::new(Found::default());
    walk::visit(&base, stop, || {
        |path: &Path| {
            if pattern.matches(path, &base) {
                found.lock().unwrap_or_else(PoisonError::into_inner).take(path);
            }
        }
    });
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Cancelled);
    }
    let Found { first, total } = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut text = String::new();
    let mut shown = 0u64;
    for path in first {
        let path = path.strip_prefix(&place.cwd).unwrap_or(&path).to_string_lossy();
        let path = path::one_line(&path);
        if text.len() + path.len() >= limit {
            break;
        }
        let _ = writeln!(text, "{path}");
        shown += 1;
    }
    let files = |count: u64| if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    if shown < total {
        let _ = write!(text, "[{shown} of {}; narrow the pattern or the path]", files(total));
    } else if total == 0 {
        let _ = write!(text, "no file matches {}", arguments.pattern);
    } else {
        let _ = write!(text, "[{}]", files(total));
    }
    let search = SearchMeta { matches: shown, total, truncated: shown < total };
    Ok(ToolOutput {
        content: text,
        meta: ResultMeta { search: Some(search), ..ResultMeta::default() },
        ..ToolOutput::default()
    })
}

/// The first files in the order of their names, and the count of all.
#[derive(Default)]
struct Found {
    first: BTreeSet<PathBuf>,
    total: u64,
}

impl Found {
    fn take(&mut self, path: &Path) {
        self.total += 1;
        let full = self.first.len() >= SHOWN;
        if full && self.first.last().is_some_and(|last| path > last) {
            return;
        }
        self.first.insert(path.to_owned());
        if full {
            self.first.pop_last();
        }
    }
}
