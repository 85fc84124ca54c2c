//! Reads a schema: every keyword has to be one that can be checked, with a value that it takes.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use percent_encoding::percent_decode_str;
use regex::Regex;
use serde_json::{Map, Value};

use super::keyword::{self, Shape};
use super::number::count;
use super::pattern;
use crate::nearest::{closest, distance};

/// Schemas that may follow each other for one place.
const DEEPEST: usize = 100;

/// The patterns of a schema, by their text.
///
/// # Errors
/// It is no schema, or it uses what is not supported here; the message says where.
pub fn patterns(root: &Value) -> Result<BTreeMap<String, Regex>, String> {
    let mut reader = Reader { root, patterns: BTreeMap::new(), begun: BTreeMap::new(), later: VecDeque::new() };
    reader.later.push_back((root, "#".to_owned()));
    while let Some((schema, at)) = reader.later.pop_front() {
        reader.schema(schema, &at, 0)?;
    }
    Ok(reader.patterns)
}

struct Reader<'a> {
    root: &'a Value,
    patterns: BTreeMap<String, Regex>,
    /// Schemas by where they are in memory, so that references may go round; true until all is read that they ask of the
    /// same place of a value.
    begun: BTreeMap<*const Value, bool>,
    /// Schemas of other places, which are read after the one at hand.
    later: VecDeque<(&'a Value, String)>,
}

impl<'a> Reader<'a> {
    fn schema(&mut self, schema: &'a Value, at: &str, depth: usize) -> Result<(), String> {
        let here = std::ptr::from_ref(schema);
        match self.begun.get(&here) {
            Some(true) => return Err(format!("{at}: this schema refers to itself, so that checking it has no end")),
            Some(false) => return Ok(()),
            None if depth > DEEPEST => return Err(format!("{at}: more than {DEEPEST} schemas follow each other here")),
            None => self.begun.insert(here, true),
        };
        match schema {
            Value::Bool(_) => {}
            Value::Object(keywords) => {
                for (keyword, value) in keywords {
                    self.keyword(keyword, value, at, depth)?;
                }
            }
            _ => return Err(format!("{at}: a schema is an object or a boolean")),
        }
        self.begun.insert(here, false);
        Ok(())
    }

    fn keyword(&mut self, keyword: &str, value: &'a Value, at: &str, depth: usize) -> Result<(), String> {
        let here = format!("{at}/{}", escaped(keyword));
        let expect = |fits: bool, what: &str| if fits { Ok(()) } else { Err(format!("{here}: {what} is expected")) };
        let Some(shape) = keyword::shape(keyword) else {
            let meant = closest(keyword, keyword::names()).filter(|name| distance(keyword, name) <= 2);
            let advice = meant.map_or_else(
                || "take it out, or let its name begin with x-".to_owned(),
                |name| format!("did you mean {name}?"),
            );
            return Err(format!("{here}: there is no such keyword; {advice}"));
        };
        match shape {
            Shape::Note | Shape::Value => Ok(()),
            Shape::Refused => Err(format!("{here}: this keyword is not supported")),
            Shape::Values => expect(value.is_array(), "a list"),
            Shape::Types => expect(is_types(value), "one of the seven types, or a list of them"),
            Shape::Number => expect(value.is_number(), "a number"),
            Shape::Step => expect(value.as_f64().is_some_and(|step| step > 0.0), "a number above 0"),
            Shape::Count => expect(count(value).is_some(), "a whole number from 0 on"),
            Shape::Switch => expect(value.is_boolean(), "a boolean"),
            Shape::Names => expect(is_names(value), "a list of names"),
            Shape::NamesByName => {
                let fits = value.as_object().is_some_and(|names| names.values().all(is_names));
                expect(fits, "an object of lists of names")
            }
            Shape::Pattern => match value.as_str() {
                Some(pattern) => self.pattern(pattern, &here),
                None => expect(false, "a regular expression"),
            },
            Shape::Schema => self.schema(value, &here, depth + 1),
            Shape::Schemas | Shape::SchemasByName => parts(value, shape == Shape::Schemas, &here)?
                .into_iter()
                .try_for_each(|(schema, at)| self.schema(schema, &at, depth + 1)),
            Shape::Inner => {
                self.later.push_back((value, here));
                Ok(())
            }
            Shape::Inners | Shape::InnersByName | Shape::InnersByPattern => {
                self.later.extend(parts(value, shape == Shape::Inners, &here)?);
                let patterns = value.as_object().into_iter().flat_map(Map::keys);
                let patterns = patterns.filter(|_| shape == Shape::InnersByPattern);
                patterns.into_iter().try_for_each(|pattern| self.pattern(pattern, &here))
            }
            Shape::Reference => {
                let Some(reference) = value.as_str() else { return expect(false, "a reference") };
                match find(self.root, reference) {
                    Some(target) => self.schema(target, reference, depth + 1),
                    None => Err(format!("{here}: {reference} is not a place in this schema, such as #/$defs/name")),
                }
            }
            Shape::Id => expect(at == "#" && value.is_string(), "no id but the whole schema's own"),
            Shape::Draft => {
                let draft = value.as_str().and_then(|draft| draft.split_once("://"));
                expect(
                    draft.is_some_and(|(_, draft)| draft.starts_with("json-schema.org/")),
                    "a draft of json-schema.org",
                )
            }
        }
    }

    fn pattern(&mut self, text: &str, here: &str) -> Result<(), String> {
        let Some(regex) = pattern::compile(text) else {
            return Err(format!("{here}: {text:?} is no regular expression that can be used here"));
        };
        self.patterns.insert(text.to_owned(), regex);
        Ok(())
    }
}

/// The schemas of a list or of an object, each with its place.
fn parts<'a>(value: &'a Value, listed: bool, here: &str) -> Result<Vec<(&'a Value, String)>, String> {
    match value {
        Value::Array(schemas) if listed && !schemas.is_empty() => {
            Ok(schemas.iter().enumerate().map(|(at, schema)| (schema, format!("{here}/{at}"))).collect())
        }
        Value::Object(schemas) if !listed => {
            Ok(schemas.iter().map(|(name, schema)| (schema, format!("{here}/{}", escaped(name)))).collect())
        }
        _ if listed => Err(format!("{here}: a list of schemas is expected")),
        _ => Err(format!("{here}: an object of schemas is expected")),
    }
}

fn is_types(value: &Value) -> bool {
    let is_type =
        |name: &str| matches!(name, "null" | "boolean" | "object" | "array" | "number" | "string" | "integer");
    match value {
        Value::String(name) => is_type(name),
        Value::Array(names) => !names.is_empty() && names.iter().all(|name| name.as_str().is_some_and(is_type)),
        _ => false,
    }
}

fn is_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string))
}

/// A name as a part of a JSON pointer (RFC 6901).
pub fn escaped(name: &str) -> Cow<'_, str> {
    if name.contains(['~', '/']) { name.replace('~', "~0").replace('/', "~1").into() } else { name.into() }
}

/// A place in the schema: `#`, or `#/` and a JSON pointer, written as a part of a URI.
pub fn find<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(&percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()?)
}
