//! `grep`: lines by regular expression, with ripgrep's own engine, on several threads, in bounded memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use schemars::JsonSchema;
use serde::Deserialize;
use stele_core::{
    CallCard, CardKind, Effects, Future, Invocation, ResultCard, ResultMeta, SearchMeta, Subject, Tool, ToolError,
    ToolOutput, ToolSpec,
};

use crate::error::{Error, Result};
use crate::look::Look;
use crate::path::{self, Place};
use crate::{Options, card, file, sanitise, walk};

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
/// Files that are not text and match, of which the names are shown.
const NAMED: usize = 5;
/// Largest window of a file that is held in memory, in bytes: a longer line ends the search of it.
const HEAP: usize = 8 * 1024 * 1024;
/// Bytes that a compiled pattern may take.
const COMPILED: usize = 16 * 1024 * 1024;

/// Arguments of `grep`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    pattern: String,
    /// File or folder.
    path: Option<String>,
    glob: Option<String>,
    context: Option<u64>,
    case_insensitive: Option<bool>,
    /// 100 by default, at most 1,000.
    limit: Option<u64>,
}

/// The tool.
pub(crate) struct Grep(Look<Arguments>);

impl Grep {
    pub(crate) fn new(options: &Options) -> Self {
        Self(Look::new(options, "grep", include_str!("grep.md")))
    }
}

impl Tool for Grep {
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
        self.0.run(invocation, grep)
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
    let asked = arguments.path.as_deref().unwrap_or(".");
    let base = place.find(asked)?.path;
    if !base.is_dir() {
        // A pipe or a device is neither waited for nor passed over in silence.
        file::open(&base, asked)?;
    }

    let context = usize::try_from(context).unwrap_or(0);
    let found = Mutex::new(Found { most, limit, ..Found::default() });
    walk::visit(&base, stop, || {
        let mut searcher = SearcherBuilder::new()
            .line_number(true)
            .before_context(context)
            .after_context(context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(HEAP))
            .build();
        // Of what is no text only whether it matches is told.
        let mut prober = SearcherBuilder::new().line_number(false).heap_limit(Some(HEAP)).build();
        let (found, matcher, glob, base) = (&found, &matcher, &glob, &base);
        move |path: &Path| {
            if glob.as_ref().is_some_and(|glob| !glob.matches(path, base)) {
                return;
            }
            let mut file = {
                let found = lock(found);
                let Some(wanted) = found.wants(path) else { return };
                InFile::new(matcher, stop, wanted, &found)
            };
            let mut failed = searcher.search_path(matcher, path, &mut file).is_err();
            if file.binary {
                failed = probe(&mut prober, matcher, path, file.counted_to, &mut file.in_binary).is_err();
            }
            if file.total > 0 || file.in_binary || failed {
                lock(found).take(path, file, failed);
            }
        }
    });
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Cancelled);
    }
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let name = |path: &Path| match &arguments.path {
        Some(asked) if place.is_spill(asked) => asked.clone(),
        _ => path::one_line(&path.strip_prefix(&place.cwd).unwrap_or(path).to_string_lossy()).into_owned(),
    };
    Ok(output(&found, &name))
}

fn lock<'a>(found: &'a Mutex<Found>) -> MutexGuard<'a, Found> {
    found.lock().unwrap_or_else(PoisonError::into_inner)
}

fn output(found: &Found, name: &dyn Fn(&Path) -> String) -> ToolOutput {
    let plural = |count: u64, word: &str, more: &str| format!("{count} {word}{}", if count == 1 { "" } else { more });
    let (mut text, shown) = found.text(name);
    let counts = if found.total >= COUNTED {
        format!("more than {COUNTED} matches")
    } else {
        format!("{} in {}", plural(found.total, "match", "es"), plural(found.files, "file", "s"))
    };
    let total = found.total.min(COUNTED);
    let truncated = shown < total;
    if found.total == 0 {
        text.push_str(if found.binary == 0 { "no match" } else { "no match in text" });
    } else if truncated {
        let _ = write!(text, "[{shown} of {counts}; narrow the pattern, path or glob]");
    } else {
        let _ = write!(text, "[{counts}]");
    }
    if found.failed > 0 {
        let _ = write!(text, "\n[{} could not be searched to the end]", plural(found.failed, "file", "s"));
    }
    if found.binary > 0 {
        let verb = if found.binary == 1 { "matches" } else { "match" };
        let named: Vec<String> = found.binary_named.iter().map(|path| name(path)).collect();
        let more = if found.binary > named.len() as u64 { ", …" } else { "" };
        let files = plural(found.binary, "file", "s");
        let _ = write!(text, "\n[binary: {files} {verb}, not shown: {}{more}]", named.join(", "));
    }
    let search = SearchMeta { matches: shown, total, truncated };
    ToolOutput {
        content: text,
        meta: ResultMeta { search: Some(search), ..ResultMeta::default() },
        ..ToolOutput::default()
    }
}

/// What was found so far. Threads come by in any order; of what will be shown, the first in the order of
/// the paths, no more is kept than can be shown.
#[derive(Default)]
struct Found {
    most: u64,
    limit: usize,
    first: BTreeMap<PathBuf, Vec<Line>>,
    /// Matches and bytes in `first`.
    matches: u64,
    bytes: usize,
    files: u64,
    total: u64,
    failed: u64,
    /// Files that are not text and match there.
    binary: u64,
    /// The first few of them.
    binary_named: BTreeSet<PathBuf>,
}

/// Which part of a file's matches is needed.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Lines,
    Count,
}

impl Found {
    fn full(&self) -> bool {
        self.matches >= self.most || self.bytes >= self.limit
    }

    /// What is needed of a file; `None` when it changes nothing any more.
    fn wants(&self, path: &Path) -> Option<Wanted> {
        let behind = self.full() && self.first.keys().next_back().is_some_and(|last| path > last.as_path());
        match behind {
            true if self.total >= COUNTED => None,
            true => Some(Wanted::Count),
            false => Some(Wanted::Lines),
        }
    }

    fn take(&mut self, path: &Path, file: InFile<'_>, failed: bool) {
        self.failed += u64::from(failed);
        if file.in_binary {
            self.binary += 1;
            self.binary_named.insert(path.to_owned());
            if self.binary_named.len() > NAMED {
                self.binary_named.pop_last();
            }
        }
        self.total += file.total;
        self.files += u64::from(file.total > 0);
        if self.wants(path) != Some(Wanted::Lines) || file.lines.is_empty() {
            return;
        }
        let size = |lines: &[Line]| -> (u64, usize) {
            (lines.iter().filter(|line| line.matched).count() as u64, lines.iter().map(|line| line.text.len()).sum())
        };
        let (matches, bytes) = size(&file.lines);
        self.matches += matches;
        self.bytes += bytes;
        self.first.insert(path.to_owned(), file.lines);
        // The last file goes when those before it fill the result.
        while let Some((last, lines)) = self.first.pop_last() {
            let (matches, bytes) = size(&lines);
            self.matches -= matches;
            self.bytes -= bytes;
            if !self.full() {
                self.matches += matches;
                self.bytes += bytes;
                self.first.insert(last, lines);
                return;
            }
        }
    }

    /// The text, and the number of matches in it.
    fn text(&self, name: &dyn Fn(&Path) -> String) -> (String, u64) {
        let mut text = String::new();
        let mut shown = 0;
        for (path, lines) in &self.first {
            let mut head = format!("{}{}\n", if text.is_empty() { "" } else { "\n" }, name(path));
            for line in lines {
                let full = line.matched && shown >= self.most;
                if full || text.len() + head.len() + line.text.len() > self.limit {
                    return (text, shown);
                }
                text.push_str(&std::mem::take(&mut head));
                text.push_str(&line.text);
                shown += u64::from(line.matched);
            }
        }
        (text, shown)
    }
}

/// A line to show, with the mark of a gap before it.
struct Line {
    text: String,
    matched: bool,
}

/// What was found in one file.
struct InFile<'a> {
    matcher: &'a RegexMatcher,
    stop: &'a AtomicBool,
    wanted: Wanted,
    most: u64,
    limit: usize,
    lines: Vec<Line>,
    bytes: usize,
    /// A gap lies before the next line.
    separate: bool,
    total: u64,
    /// Where the last match that was counted ends.
    counted_to: u64,
    /// It is no text: what was not counted is searched by itself.
    binary: bool,
    /// A match lies in what was not counted.
    in_binary: bool,
}

impl<'a> InFile<'a> {
    fn new(matcher: &'a RegexMatcher, stop: &'a AtomicBool, wanted: Wanted, found: &Found) -> Self {
        let (most, limit) = (found.most, found.limit);
        Self {
            matcher,
            stop,
            wanted,
            most,
            limit,
            lines: Vec::new(),
            bytes: 0,
            separate: false,
            total: 0,
            counted_to: 0,
            binary: false,
            in_binary: false,
        }
    }

    fn room(&self) -> bool {
        self.wanted == Wanted::Lines && self.total <= self.most && self.bytes < self.limit
    }

    fn line(&mut self, number: Option<u64>, mark: char, line: &[u8], matched: Option<usize>) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
        let from = match matched {
            Some(at) if at > LINE / 2 => sanitise::floor(&line, at - BEFORE),
            _ => 0,
        };
        let to = sanitise::floor(&line, from + LINE);
        let gap = if std::mem::take(&mut self.separate) { "--\n" } else { "" };
        let (before, after) = (if from > 0 { "…" } else { "" }, if to < line.len() { "…" } else { "" });
        let text = format!("{gap}{}{mark} {before}{}{after}\n", number.unwrap_or(0), &line[from..to]);
        self.bytes += text.len();
        self.lines.push(Line { text, matched: mark == ':' });
    }
}

impl Sink for InFile<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> std::io::Result<bool> {
        use grep_matcher::Matcher as _;
        self.total += 1;
        self.counted_to = found.absolute_byte_offset() + found.bytes().len() as u64;
        if self.room() {
            let at = self.matcher.find(found.bytes()).ok().flatten().map(|found| found.start());
            self.line(found.line_number(), ':', found.bytes(), at);
        }
        Ok(self.total < COUNTED && !self.stop.load(Ordering::Relaxed))
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> std::io::Result<bool> {
        if self.room() {
            self.line(context.line_number(), '-', context.bytes(), None);
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> std::io::Result<bool> {
        self.binary = true;
        Ok(!self.stop.load(Ordering::Relaxed))
    }

    fn context_break(&mut self, _: &Searcher) -> std::io::Result<bool> {
        self.separate = !self.lines.is_empty();
        Ok(!self.stop.load(Ordering::Relaxed))
    }
}

/// Whether a file matches from a byte on.
fn probe(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    path: &Path,
    from: u64,
    matches: &mut bool,
) -> std::io::Result<()> {
    let mut rest = File::open(path)?;
    rest.seek(SeekFrom::Start(from))?;
    searcher.search_reader(matcher, rest, Probe(matches))
}

/// Looks for one match.
struct Probe<'a>(&'a mut bool);

impl Sink for Probe<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, _: &SinkMatch<'_>) -> std::io::Result<bool> {
        *self.0 = true;
        Ok(false)
    }
}
