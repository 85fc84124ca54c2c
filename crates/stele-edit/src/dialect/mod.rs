//! What models write edits in, and which of it an input is.
//!
//! The first dialect whose mark appears decides; it has to parse completely, and what it leaves over must not be marked
//! as another one.

mod conflict;
mod envelope;
mod fence;
mod hunk;
mod json;
mod left;
mod loose;
mod sed;
mod unified;
mod xml;

pub(crate) use json::structured;
pub use json::{ALL, NEAR, NEW, OLD, PATH};

use crate::Edit;
use crate::find::wrapping::unescaped;
use crate::limits::{MAX_EDITS, MAX_INPUT};
use crate::perform::Request;
use crate::refuse::{Code, Refusal};
use crate::text::blank;

/// What an edit was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// `{"edits": [{"old", "new", "all"?, "near_line"?}]}`.
    Structured,
    /// Blocks between conflict markers.
    Conflict,
    /// A unified diff.
    Unified,
    /// `*** Begin Patch` … `*** End Patch`.
    Envelope,
    /// `<old_text>` and `<new_text>`.
    Xml,
    /// `{"search": …, "replace": …}`, strict or loose.
    Json,
    /// `s/old/new/`.
    Sed,
    /// The whole file in one code fence.
    Whole,
}

impl Dialect {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Structured => "structured",
            Self::Conflict => "conflict",
            Self::Unified => "unified",
            Self::Envelope => "envelope",
            Self::Xml => "xml",
            Self::Json => "json",
            Self::Sed => "sed",
            Self::Whole => "whole",
        }
    }

    /// What one of several is called in a message.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Structured | Self::Xml | Self::Json | Self::Whole => "edit",
            Self::Conflict => "block",
            Self::Unified | Self::Envelope => "hunk",
            Self::Sed => "command",
        }
    }

    fn described(self) -> &'static str {
        match self {
            Self::Structured => "structured JSON edits",
            Self::Conflict => "search/replace blocks with conflict markers",
            Self::Unified => "a unified diff",
            Self::Envelope => "a `*** Begin Patch` envelope",
            Self::Xml => "<old_text>/<new_text> XML",
            Self::Json => "search/replace JSON",
            Self::Sed => "sed commands",
            Self::Whole => "a whole file in a code fence",
        }
    }
}

/// An input, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parsed {
    pub dialect: Dialect,
    pub sections: Vec<Section>,
    /// What the model should know about how it was read.
    pub notes: Vec<String>,
}

/// What is to happen to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// The file, where the dialect names it.
    pub path: Option<String>,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Edits whose meaning depends on whether there is a file.
    Edits(Vec<Edit>),
    Change {
        requests: Vec<Request>,
        moved_to: Option<String>,
        mode: Option<u32>,
    },
    Create {
        content: Vec<u8>,
        mode: Option<u32>,
    },
    /// With what the input shows of the content, which must be all of it; absent when it shows nothing.
    Delete {
        shown: Option<Vec<Request>>,
    },
}

impl Section {
    fn unnamed(requests: Vec<Request>) -> Self {
        Self { path: None, action: Action::Change { requests, moved_to: None, mode: None } }
    }
}

/// Why a dialect did not parse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The input is in another dialect.
    Other,
    /// The input is in this dialect, but cut or wrong, at a line (from 0).
    Broken { line: usize, why: String },
    /// The input is in this dialect and asks for what is not done.
    Refused(Refusal),
}

impl Fault {
    fn broken(line: usize, why: impl Into<String>) -> Self {
        Self::Broken { line, why: why.into() }
    }
}

/// What one dialect makes of an input.
#[derive(Debug, Default)]
struct Read {
    sections: Vec<Section>,
    /// The lines (from 0) that belong to no section, in order.
    left: Vec<usize>,
    notes: Vec<String>,
}

/// Understands an input.
///
/// # Errors
/// `edit.unparsed`, `edit.mixed`, `edit.too_large`, and what a dialect refuses to do.
pub(crate) fn parse(input: &str) -> Result<Parsed, Refusal> {
    if input.len() > MAX_INPUT {
        let size = format!("the input has {} bytes, the most is {MAX_INPUT}", input.len());
        return Err(Refusal::new(Code::TooLarge, size + "; send it in parts"));
    }
    let input = input.strip_prefix('\u{feff}').unwrap_or(input);
    if blank(input) {
        return Err(Refusal::new(Code::Unparsed, "the input is empty; send an edit"));
    }
    let parsed = match understand(input)? {
        Some(parsed) => parsed,
        // Text that went through an HTML escape has no mark of its own left.
        None => match unescaped(input).map(|plain| understand(&plain)).transpose()?.flatten() {
            Some(parsed) if parsed.dialect != Dialect::Whole => parsed,
            _ => return Err(no_dialect(input)),
        },
    };
    let count: usize = parsed.sections.iter().map(|section| section.action.count()).sum();
    if count > MAX_EDITS {
        let count = format!("there are {count} edits, the most is {MAX_EDITS}; send them in parts");
        return Err(Refusal::new(Code::TooLarge, count));
    }
    Ok(parsed)
}

impl Action {
    fn count(&self) -> usize {
        match self {
            Self::Edits(edits) => edits.len(),
            Self::Change { requests, .. } => requests.len().max(1),
            Self::Create { .. } => 1,
            Self::Delete { shown } => shown.as_ref().map_or(1, Vec::len).max(1),
        }
    }
}

fn no_dialect(input: &str) -> Refusal {
    let why = if fence::holds(input) {
        "there is text around the code fence, and a whole file is taken only from one fence with nothing around it"
    } else {
        "the input is in no known form"
    };
    Refusal::new(
        Code::Unparsed,
        format!(
            "{why}; send {{\"edits\": [{{\"old\": …, \"new\": …}}]}}, search/replace blocks, a unified diff, a `*** Begin \
             Patch` envelope, <old_text>/<new_text>, or the whole file in one code fence"
        ),
    )
}

fn understand(input: &str) -> Result<Option<Parsed>, Refusal> {
    let fenced = fence::only(input);
    let text = match &fenced {
        fence::Fenced::Whole(inside) => inside.as_str(),
        _ => input,
    };
    match json::parse(text) {
        Ok((dialect, sections)) => return Ok(Some(Parsed { dialect, sections, notes: Vec::new() })),
        Err(Fault::Other) => {}
        Err(fault) => {
            let lines: Vec<&str> = text.lines().collect();
            let other = marks(&lines).first().copied().filter(|_| matches!(fault, Fault::Broken { .. }));
            return Err(other.map_or_else(|| refusal(Dialect::Json, fault, &[]), |other| mixed(Dialect::Json, other)));
        }
    }
    let lines: Vec<&str> = text.lines().map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    if let Some(dialect) = marks(&lines).first().copied() {
        let parsed = match dialect {
            Dialect::Conflict => conflict::parse(&lines),
            Dialect::Unified => unified::parse(&lines),
            Dialect::Envelope => envelope::parse(&lines),
            _ => xml::parse(&lines),
        };
        let Read { sections, left, notes } = parsed.map_err(|fault| refusal(dialect, fault, &lines))?;
        if let Some(other) = left::other(&lines, &left) {
            return Err(mixed(dialect, other));
        }
        if sections.is_empty() {
            let none = format!("this looks like {}, but holds no change; send it whole", dialect.described());
            return Err(Refusal::new(Code::Unparsed, none));
        }
        return Ok(Some(Parsed { dialect, sections, notes }));
    }
    match sed::parse(text) {
        Ok(sections) => return Ok(Some(Parsed { dialect: Dialect::Sed, sections, notes: Vec::new() })),
        Err(Fault::Other) => {}
        Err(fault) => return Err(refusal(Dialect::Sed, fault, &[])),
    }
    match fenced {
        fence::Fenced::Whole(inside) => {
            let sections = vec![Section::unnamed(vec![Request::Whole(inside)])];
            Ok(Some(Parsed { dialect: Dialect::Whole, sections, notes: Vec::new() }))
        }
        fence::Fenced::Cut(why) => Err(Refusal::new(Code::Unparsed, why)),
        fence::Fenced::None => Ok(None),
    }
}

/// The dialects whose marks the lines carry, in the order of their first marks.
fn marks(lines: &[&str]) -> Vec<Dialect> {
    let blocks = conflict::Marks::new(lines);
    let mut found = Vec::new();
    for at in 0..lines.len() {
        let mark = match () {
            () if blocks.opens(lines, at) => Dialect::Conflict,
            () if envelope::marks(lines[at]) => Dialect::Envelope,
            () if unified::marks(lines, at) => Dialect::Unified,
            () if xml::marks(lines[at]) => Dialect::Xml,
            () => continue,
        };
        if !found.contains(&mark) {
            found.push(mark);
        }
    }
    found
}

fn mixed(one: Dialect, other: Dialect) -> Refusal {
    let text = format!("the input mixes {} and {}; send one of them", one.described(), other.described());
    Refusal::new(Code::Mixed, text)
}

/// A fault as a refusal; where the line at fault carries the mark of another dialect, that is what is wrong.
fn refusal(dialect: Dialect, fault: Fault, lines: &[&str]) -> Refusal {
    match fault {
        Fault::Refused(refusal) => refusal,
        Fault::Broken { line, why } => {
            let other = lines.get(line..).map(marks).unwrap_or_default().first().copied();
            match other.filter(|other| *other != dialect && at_first(*other, &lines[line..])) {
                Some(other) => mixed(dialect, other),
                None => {
                    let at = if lines.is_empty() { String::new() } else { format!(" (line {})", line + 1) };
                    let text = format!("this looks like {}, but {why}{at}; send it whole", dialect.described());
                    Refusal::new(Code::Unparsed, text)
                }
            }
        }
        Fault::Other => no_dialect(""),
    }
}

fn at_first(dialect: Dialect, lines: &[&str]) -> bool {
    match dialect {
        Dialect::Conflict => conflict::Marks::new(lines).opens(lines, 0),
        Dialect::Unified => unified::marks(lines, 0),
        Dialect::Envelope => envelope::marks(lines[0]),
        _ => xml::marks(lines[0]),
    }
}
