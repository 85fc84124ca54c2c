//! What goes in and comes out, and structured edits.

use crate::Dialect;
use crate::find::{Sought, Texts, Unit};
use crate::limits::{MAX_EDITS, MAX_INPUT};
use crate::perform::{Request, perform};
use crate::refuse::{Code, Refusal};

/// One replacement in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// The text to find; empty only where the file is empty or is to be created.
    pub old: String,
    /// What takes its place.
    pub new: String,
    /// Replace every place instead of the only one.
    pub all: bool,
    /// Of several places, the one nearest to this line (counted from 1) and at most 20 lines away.
    pub near_line: Option<u64>,
}

/// What to do when a text is at several places and nothing tells which is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnAmbiguous {
    /// Refuse with `edit.ambiguous`.
    #[default]
    Refuse,
    /// Change the last one and say so.
    Last,
}

/// How the engine works; the default is the strictest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Also take a place whose first and last line are as written and whose body is at least 90 % the same.
    pub fuzzy: bool,
    /// What to do about several places.
    pub on_ambiguous: OnAmbiguous,
    /// The folder that paths in patches are in, absolute; without it absolute paths are refused.
    pub root: Option<String>,
}

/// A slip that was forgiven to find a place or to read a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Healed {
    /// `\n` against the file's `\r\n`, or a line end too many at the end of the file.
    LineEnds,
    /// White space at the ends of lines.
    TrailingSpace,
    /// Typographic quotes, dashes and spaces; composed and decomposed characters.
    Unicode,
    /// The same shift of indentation on every line.
    Indentation,
    /// Text that was escaped twice.
    Escapes,
    /// Blank lines too many or too few.
    BlankLines,
    /// Only first and last line and most of the body are as written.
    Anchored,
    /// An XML section around the text, in which nothing is escaped.
    Cdata,
    /// A code fence around the text.
    Fence,
    /// Line numbers in front of the lines.
    Gutter,
    /// HTML escapes.
    Html,
}

impl Healed {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LineEnds => "line_ends",
            Self::TrailingSpace => "trailing_space",
            Self::Unicode => "unicode",
            Self::Indentation => "indentation",
            Self::Escapes => "escapes",
            Self::BlankLines => "blank_lines",
            Self::Anchored => "anchored",
            Self::Cdata => "cdata",
            Self::Fence => "fence",
            Self::Gutter => "gutter",
            Self::Html => "html",
        }
    }
}

/// Where one edit changed the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which edit, from 0.
    pub edit: usize,
    /// The first line that was found, in the original, from 1.
    pub line: u64,
}

/// A file after its edits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The whole file.
    pub bytes: Vec<u8>,
    /// What the model should know: how places were found, what a dialect made of an empty search.
    pub notes: Vec<String>,
    /// Slips that were forgiven, each once.
    pub healed: Vec<Healed>,
    /// Where the file was changed, in the order of the file.
    pub places: Vec<Place>,
    /// What the edits were written in.
    pub dialect: Dialect,
}

/// Applies all edits or none; each is found in the original.
///
/// An empty `original` stands for a file that is empty or not there: one edit with an empty `old` fills it.
///
/// # Errors
/// An edit has no place or several, two overlap, one changes nothing, or the file cannot be edited; see
/// [`CODES`](crate::CODES).
pub fn apply(original: &[u8], edits: &[Edit]) -> Result<Applied, Refusal> {
    Options::default().apply(original, edits)
}

impl Options {
    /// [`apply`] with these options.
    ///
    /// # Errors
    /// As [`apply`].
    pub fn apply(&self, original: &[u8], edits: &[Edit]) -> Result<Applied, Refusal> {
        let size: usize = edits.iter().map(|edit| edit.old.len() + edit.new.len()).sum();
        if size > MAX_INPUT {
            let size = format!("old and new texts have {size} bytes, the most is {MAX_INPUT}");
            return Err(Refusal::new(Code::TooLarge, size + "; make several calls"));
        }
        perform(self, original, &requests(original.is_empty(), edits)?, Dialect::Structured)
    }
}

/// Structured edits as requests; `empty` when there is nothing in the file.
pub(crate) fn requests(empty: bool, edits: &[Edit]) -> Result<Vec<Request>, Refusal> {
    if edits.is_empty() {
        return Err(Refusal::new(Code::Unparsed, "there is no edit; send at least one {\"old\", \"new\"}"));
    }
    if edits.len() > MAX_EDITS {
        let count = format!("there are {} edits, the most is {MAX_EDITS}; make several calls", edits.len());
        return Err(Refusal::new(Code::TooLarge, count));
    }
    let several = edits.len() > 1;
    edits
        .iter()
        .enumerate()
        .map(|(index, edit)| {
            request(empty && !several, edit).map_err(|refusal| {
                refusal.about(&if several { format!("edit {} of {}", index + 1, edits.len()) } else { String::new() })
            })
        })
        .collect()
}

fn request(may_create: bool, edit: &Edit) -> Result<Request, Refusal> {
    if edit.all && edit.near_line.is_some() {
        return Err(Refusal::new(Code::Unparsed, "`all` and `near_line` contradict each other; give one of them"));
    }
    if edit.old.is_empty() {
        if may_create {
            return Ok(Request::Whole(edit.new.clone()));
        }
        let there = "the old text is empty, but that only creates a file, and the file is there";
        return Err(Refusal::new(Code::Exists, format!("{there}; give the text to replace")));
    }
    if edit.old == edit.new {
        return Err(Refusal::new(Code::NoChange, "old and new text are the same; give the text as it should become"));
    }
    Ok(Request::Find {
        sought: Sought {
            unit: Unit::Text,
            texts: Texts { old: edit.old.clone(), new: Some(edit.new.clone()) },
            all: edit.all,
            near: edit.near_line,
            at_end: false,
            scope: None,
            final_newline: None,
        },
        names: Vec::new(),
        names_must_be_there: false,
    })
}
