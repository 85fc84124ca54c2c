//! `grep`: lines by regular expression, with ripgrep's own engine, in bounded memory.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use schemars::JsonSchema;
use serde::Deserialize;
use stele_core::{
    CallCard, CardKind, Effects, Future, Invocation, ResultCard, ResultMeta, SearchMeta, Subject, Tool, ToolError,
    ToolOutput, ToolSpec,
};

use crate::declare::{Declared, blocking, finish};
use crate::error::{Error, Result};
use crate::path::{Place, Roots};
use crate::{Options, card, sanitise, walk};

/// Matching lines that are shown by default, and at most.
const SHOWN: (u64, u64) = (100, 1_000);
/// Lines of context, at most.
const CONTEXT: u64 = 20;
/// Matching lines after which the count ends.
const COUNTED: u64 = 100_000;
/// Bytes of a line that are shown.
const LINE: usize = 400;
/// Bytes of a line that are shown before the match, when it is not at the beginning.
const BEFORE: usize = 120;
/// Largest window of a file that is held in memory, in bytes: a longer line ends the search of it.
const HEAP: usize = 8 * 1024 * 1024;
/// Bytes that a compiled pattern may take.
const COMPILED: usize = 16 * 1024 * 1024;
/// Bytes kept free for the last line.
const STATUS: usize = 256;

/// Arguments of `grep`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    pattern: String,
    /// File or folder to look in.
    path: Option<String>,
    /// Only files of this glob.
    glob: Option<String>,
    /// Lines to show around a match.
    context: Option<u64>,
    case_insensitive: Option<bool>,
    /// Matches to show: 100 by default, at most 1,000.
    limit: Option<u64>,
}

/// The tool.
pub(crate) struct Grep {
    declared: Declared<Arguments>,
    roots: Roots,
    limit: usize,
}

impl Grep {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            declared: Declared::new("grep", include_str!("grep.md"), ""),
            roots: options.roots(),
            limit: options.limits.result_bytes,
        }
    }
}

impl Tool for Grep {
    fn spec(&self) -> &ToolSpec {
        &self.declared.spec
    }

    fn effects(&self) -> Effects {
        Effects::None
    }

    fn parallel(&self, _: &str) -> bool {
        true
    }

    fn subjects(&self, arguments: &str) -> Result<Vec<Subject>, ToolError> {
        let arguments = self.declared.parse(arguments)?;
        Ok(vec![Subject::Read(arguments.path.unwrap_or_else(|| ".".to_owned()))])
    }

    fn call_card(&self, arguments: &str, cwd: &Path) -> CallCard {
        let Ok(arguments) = self.declared.parse(arguments) else { return self.declared.plain_card(CardKind::Search) };
        let mut title = format!("Grep {}", arguments.pattern);
        if let Some(path) = &arguments.path {
            let _ = write!(title, " in {}", card::relative(path, cwd));
        }
        if let Some(glob) = &arguments.glob {
            let _ = write!(title, " ({glob})");
        }
        CallCard::Generic { title: card::title(&title), kind: CardKind::Search, locations: Vec::new() }
    }

    fn result_card(&self, _: &str, content: &str, meta: &ResultMeta) -> ResultCard {
        card::search(content, meta)
    }

    fn run<'a>(&'a self, invocation: Invocation<'a>) -> Future<'a, ToolOutput> {
        Box::pin(async move {
            let result = async {
                let arguments = self.declared.parse(invocation.arguments)?;
                let place = self.roots.place(invocation.cwd, &invocation.session.id);
                let limit = self.limit.saturating_sub(STATUS);
                let stop = Arc::new(AtomicBool::new(false));
                let stopped = Arc::clone(&stop);
                tokio::select! {
                    biased;
                    () = invocation.cancelled => {
                        stop.store(true, Ordering::Relaxed);
                        Err(Error::Cancelled)
                    }
                    output = blocking(move || grep(&place, &arguments, limit, &stopped)) => output,
                }
            };
            finish(result.await, Some(self.limit))
        })
    }
}

fn grep(place: &Place, arguments: &Arguments, limit: usize, stop: &AtomicBool) -> Result<ToolOutput> {
    let most = arguments.limit.unwrap_or(SHOWN.0);
    if most == 0 || most > SHOWN.1 {
        return Err(Error::Value(format!("limit = {most} is out of bounds: at least 1, at most {}", SHOWN.1)));
    }
    let context = arguments.context.unwrap_or(0);
    if context > CONTEXT {
        return Err(Error::Value(format!("context = {context} is out of bounds: at most {CONTEXT}")));
    }
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(arguments.case_insensitive.unwrap_or(false))
        .line_terminator(Some(b'\n'))
        .size_limit(COMPILED)
        .build(&arguments.pattern)
        .map_err(|error| Error::Value(format!("the pattern is not a valid regular expression: {error}")))?;
    let glob = arguments.glob.as_ref().map(|glob| walk::Pattern::new(glob, !glob.contains('/'))).transpose()?;
    let base = place.find(arguments.path.as_deref().unwrap_or("."))?.path;

    let context = usize::try_from(context).unwrap_or(0);
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(HEAP))
        .build();
    let mut found = Found {
        matcher: &matcher,
        stop,
        most,
        limit,
        text: String::new(),
        file: String::new(),
        block: String::new(),
        separate: false,
        shown: 0,
        total: 0,
        full: false,
    };
    let (mut files, mut failed) = (0u64, 0u64);
    for entry in walk::files(&base) {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        if glob.as_ref().is_some_and(|glob| !glob.matches(entry.path(), &base)) {
            continue;
        }
        let before = found.total;
        let path = entry.path().strip_prefix(&place.cwd).unwrap_or(entry.path());
        found.file = match &arguments.path {
            Some(asked) if place.is_spill(asked) => asked.clone(),
            _ => path.to_string_lossy().into_owned(),
        };
        found.separate = false;
        if searcher.search_path(&matcher, entry.path(), &mut found).is_err() {
            failed += 1;
        }
        found.end_file();
        files += u64::from(found.total > before);
        if found.total >= COUNTED {
            break;
        }
    }
    Ok(output(found, files, failed))
}

fn output(found: Found<'_>, files: u64, failed: u64) -> ToolOutput {
    let plural = |count: u64, word: &str, more: &str| format!("{count} {word}{}", if count == 1 { "" } else { more });
    let mut text = found.text;
    let more = if found.total >= COUNTED { "+" } else { "" };
    let counts = format!("{}{more} in {}", plural(found.total, "match", "es"), plural(files, "file", "s"));
    let truncated = found.shown < found.total;
    if found.total == 0 {
        text.push_str("no match");
    } else if truncated {
        let _ = write!(text, "[{} of {counts}; narrow the pattern, path or glob]", found.shown);
    } else {
        let _ = write!(text, "[{counts}]");
    }
    if failed > 0 {
        let _ = write!(text, "\n[{} could not be searched to the end]", plural(failed, "file", "s"));
    }
    let search = SearchMeta { matches: found.shown, total: found.total, truncated };
    ToolOutput {
        content: text,
        meta: ResultMeta { search: Some(search), ..ResultMeta::default() },
        ..ToolOutput::default()
    }
}

/// What was found so far.
struct Found<'a> {
    matcher: &'a RegexMatcher,
    stop: &'a AtomicBool,
    most: u64,
    limit: usize,
    text: String,
    /// The file that is searched.
    file: String,
    /// Lines of that file which are not in the text yet.
    block: String,
    /// A gap lies before the next line.
    separate: bool,
    shown: u64,
    total: u64,
    full: bool,
}

impl Found<'_> {
    fn line(&mut self, number: Option<u64>, mark: char, line: &[u8], matched: Option<usize>) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
        let from = match matched {
            Some(at) if at > LINE / 2 => sanitise::floor(&line, at - BEFORE),
            _ => 0,
        };
        let to = sanitise::floor(&line, from + LINE);
        if self.separate {
            self.block.push_str("--\n");
            self.separate = false;
        }
        let (before, after) = (if from > 0 { "…" } else { "" }, if to < line.len() { "…" } else { "" });
        let _ = writeln!(self.block, "{}{mark} {before}{}{after}", number.unwrap_or(0), &line[from..to]);
    }

    fn end_file(&mut self) {
        if self.block.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let _ = write!(self.text, "{}\n{}", self.file, self.block);
        self.block.clear();
    }
}

impl Sink for Found<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> std::io::Result<bool> {
        use grep_matcher::Matcher as _;
        self.total += 1;
        self.full |=
            self.shown >= self.most || self.text.len() + self.block.len() + self.file.len() + LINE > self.limit;
        if !self.full {
            let at = self.matcher.find(found.bytes()).ok().flatten().map(|found| found.start());
            self.line(found.line_number(), ':', found.bytes(), at);
            self.shown += 1;
        }
        Ok(self.total < COUNTED && !self.stop.load(Ordering::Relaxed))
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> std::io::Result<bool> {
        if !self.full && self.text.len() + self.block.len() + LINE < self.limit {
            self.line(context.line_number(), '-', context.bytes(), None);
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> std::io::Result<bool> {
        self.separate = !self.block.is_empty();
        Ok(!self.stop.load(Ordering::Relaxed))
    }

    fn finish(&mut self, _: &Searcher, _: &SinkFinish) -> std::io::Result<()> {
        self.separate = false;
        Ok(())
    }
}
