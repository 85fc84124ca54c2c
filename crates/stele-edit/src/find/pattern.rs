//! Places of a `sed` command: as a regular expression, line by line, and as literal text.

use regex::bytes::{Regex, RegexBuilder};

use super::place::with_line_ends;
use super::{Change, scan};
use crate::limits::MAX_PLACES;
use crate::refuse::{Code, Refusal};
use crate::text::Source;

/// Bytes that a compiled expression may take (the crate's own measure).
const COMPILED: usize = 512 * 1024;
/// A line longer than this is not searched with an expression: searching all of a line may be quadratic in it.
const LINE: usize = 16 * 1024;

/// One `s` command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Substitution {
    /// As it is written, but with the delimiter itself instead of its escape.
    pub pattern: String,
    pub replacement: Vec<Token>,
    pub global: bool,
    pub ignore_case: bool,
}

/// A part of a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Text(String),
    /// `&` (0) or `\1` to `\9`, with how it is written.
    Group(usize, &'static str),
    /// `\n`, `\t` or `\r`: in some programs a control character, in code more often the two characters.
    Control(&'static str),
}

/// What was found.
pub(crate) enum Found {
    Places(Vec<Change>),
    /// Lines of places of which none is meant more than the others.
    Several(Vec<usize>),
    /// Neither as an expression nor as the exact text.
    Nowhere,
}

impl Substitution {
    /// True when the command was surely meant as an expression: it uses groups.
    pub(crate) fn uses_groups(&self) -> bool {
        self.replacement.iter().any(|token| matches!(token, Token::Group(1.., _)))
    }

    /// The replacement as plain text, as when the pattern is no expression.
    pub(crate) fn literal_replacement(&self) -> String {
        let parts = self.replacement.iter().map(|token| match token {
            Token::Text(text) => text.as_str(),
            Token::Group(_, written) | Token::Control(written) => written,
        });
        parts.collect()
    }
}

/// Finds the places of a command in the original.
///
/// # Errors
/// `edit.unparsed` when `\n` in the replacement may mean two things, `edit.too_large`, `edit.encoding`.
pub(crate) fn locate(source: &Source<'_>, command: &Substitution) -> Result<Found, Refusal> {
    let literal = literal_places(source, command)?;
    let plain = regex::escape(&command.pattern) == command.pattern;
    for expression in expressions(command) {
        let places = expression_places(source, command, &expression)?;
        let changes = |change: &Change| source.bytes[change.range.clone()] != *change.text.as_bytes();
        if !places.iter().any(changes) {
            continue;
        }
        let ranges = |changes: &[Change]| changes.iter().map(|change| change.range.clone()).collect::<Vec<_>>();
        if plain || literal.is_empty() || ranges(&places) == ranges(&literal) {
            refuse_control(command, false)?;
            return Ok(settle(source, command, places));
        }
        break;
    }
    refuse_control(command, true)?;
    if literal.is_empty() {
        return Ok(Found::Nowhere);
    }
    Ok(settle(source, command, literal))
}

fn settle(source: &Source<'_>, command: &Substitution, places: Vec<Change>) -> Found {
    if places.len() > 1 && !command.global {
        return Found::Several(places.iter().map(|change| source.line_at(change.range.start)).collect());
    }
    Found::Places(places)
}

/// Refuses `\n` and its like where it is not clear what is meant: the pattern, taken literally, has it too, or it is not.
fn refuse_control(command: &Substitution, literal: bool) -> Result<(), Refusal> {
    for token in &command.replacement {
        if let Token::Control(written) = token
            && !(literal && command.pattern.contains(written))
        {
            return Err(Refusal::new(
                Code::Unparsed,
                format!(
                    "`{written}` in a sed replacement may mean a control character or the two characters; write \
                         `\\{written}` for the two characters, or send old and new text instead"
                ),
            ));
        }
    }
    Ok(())
}

fn literal_places(source: &Source<'_>, command: &Substitution) -> Result<Vec<Change>, Refusal> {
    let pattern = command.pattern.as_bytes();
    if pattern.is_empty() {
        return Ok(Vec::new());
    }
    let hits = scan::scan(source.bytes, &[pattern], &[MAX_PLACES]).swap_remove(0);
    if hits.more {
        return Err(too_many());
    }
    let new = command.literal_replacement();
    source.takes(&new)?;
    let mut end = 0;
    let apart = |at: &usize| {
        let free = *at >= end || !command.global;
        if free {
            end = at + pattern.len();
        }
        free
    };
    Ok(hits
        .at
        .into_iter()
        .filter(apart)
        .map(|at| {
            let range = at..at + pattern.len();
            let text = with_line_ends(&new, source.line_end_at(&range));
            Change { range, text }
        })
        .collect())
}

fn too_many() -> Refusal {
    Refusal::new(Code::TooLarge, format!("the pattern is at more than {MAX_PLACES} places; use a script"))
}

/// The pattern as extended and as basic syntax would read it, as far as it compiles and has the groups that are used.
fn expressions(command: &Substitution) -> Vec<Regex> {
    let groups = command.replacement.iter().map(|token| if let Token::Group(group, _) = token { *group } else { 0 });
    let groups = groups.max().unwrap_or(0);
    let mut found: Vec<Regex> = Vec::new();
    for pattern in [command.pattern.clone(), extended(&command.pattern)] {
        if found.iter().any(|regex| regex.as_str() == pattern) {
            continue;
        }
        let built = RegexBuilder::new(&pattern)
            .case_insensitive(command.ignore_case)
            .size_limit(COMPILED)
            .dfa_size_limit(2 * COMPILED)
            .nest_limit(50)
            .build();
        found.extend(built.ok().filter(|regex| regex.captures_len() > groups));
    }
    found
}

/// Basic syntax as extended: `\(`, `\)`, `\{`, `\}`, `\|`, `\+`, `\?` are the operators, the bare characters are text.
fn extended(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(operator @ ('(' | ')' | '{' | '}' | '|' | '+' | '?')) => out.push(operator),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            '(' | ')' | '{' | '}' | '|' | '+' | '?' => out.extend(['\\', character]),
            _ => out.push(character),
        }
    }
    out
}

fn expression_places(source: &Source<'_>, command: &Substitution, regex: &Regex) -> Result<Vec<Change>, Refusal> {
    let mut places = Vec::new();
    if source.lines.iter().any(|line| line.end - line.start > LINE) {
        return Ok(places);
    }
    for line in &source.lines {
        for captures in regex.captures_iter(&source.bytes[line.start..line.end]) {
            let Some(whole) = captures.get(0) else { continue };
            if places.len() == MAX_PLACES {
                return Err(too_many());
            }
            let mut new = Vec::new();
            for token in &command.replacement {
                match token {
                    Token::Text(text) => {
                        source.takes(text)?;
                        new.extend_from_slice(text.as_bytes());
                    }
                    Token::Control(written) => new.extend_from_slice(written.as_bytes()),
                    Token::Group(group, _) => {
                        new.extend_from_slice(captures.get(*group).map_or(&b""[..], |group| group.as_bytes()));
                    }
                }
            }
            let range = line.start + whole.start()..line.start + whole.end();
            let Ok(text) = String::from_utf8(new) else {
                return Err(Refusal::new(
                    Code::Encoding,
                    format!(
                        "line {} is not UTF-8 where the pattern matches; send old and new text without those bytes",
                        source.line_at(range.start) + 1
                    ),
                ));
            };
            places.push(Change { text: with_line_ends(&text, source.line_end_at(&range)), range });
        }
    }
    Ok(places)
}
