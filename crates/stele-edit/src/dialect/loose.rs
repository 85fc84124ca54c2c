//! JSON as models write it by hand: bare keys, single quotes, trailing commas, raw line breaks in strings,
//! `search="…"`.

use serde_json::{Map, Value};

/// How deep values may be nested.
const DEPTH: usize = 16;

pub(super) enum Loose {
    Values(Vec<Value>),
    /// An object has this field twice, and so contradicts itself.
    Repeated(String),
    /// A string holds this escape, which is half a character.
    Half(String),
    Cut,
}

/// True for `name=` or `name:` at the start, with one of the names, quoted or bare.
pub(super) fn starts_with_field(input: &str, names: &[&str]) -> bool {
    let mut reader = Reader::new(input);
    let quoted = input.starts_with(['"', '\'']);
    let name = if quoted { reader.string() } else { reader.word().map(str::to_owned) };
    reader.space();
    name.is_some_and(|name| names.contains(&name.as_str())) && reader.rest.starts_with(['=', ':'])
}

/// Reads all of an input: values after each other, or the fields of one object without its braces.
pub(super) fn parse(input: &str) -> Loose {
    let mut reader = Reader::new(input);
    let mut values = Vec::new();
    if !input.starts_with(['{', '[']) {
        return match reader.fields(None, 0) {
            Some(object) if reader.rest.is_empty() => Loose::Values(vec![Value::Object(object)]),
            _ => reader.fault(),
        };
    }
    loop {
        reader.space();
        if reader.rest.is_empty() {
            return Loose::Values(values);
        }
        match reader.value(0) {
            Some(value) => values.push(value),
            None => return reader.fault(),
        }
        reader.space();
        reader.skip(',');
    }
}

struct Reader<'a> {
    rest: &'a str,
    /// What stopped it, where that is not the end of the text.
    fault: Option<Loose>,
}

impl<'a> Reader<'a> {
    fn new(rest: &'a str) -> Self {
        Self { rest, fault: None }
    }

    /// Why nothing was read.
    fn fault(self) -> Loose {
        self.fault.unwrap_or(Loose::Cut)
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn skip(&mut self, mark: char) -> bool {
        let found = self.rest.strip_prefix(mark);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    /// A bare key or a word such as `true` or a number.
    fn word(&mut self) -> Option<&'a str> {
        let is_word = |it: char| it.is_alphanumeric() || matches!(it, '_' | '-' | '.' | '$' | '+');
        let end = self.rest.find(|it| !is_word(it)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEPTH {
            return None;
        }
        self.space();
        if self.skip('{') {
            return self.fields(Some('}'), depth).map(Value::Object);
        }
        if self.skip('[') {
            let mut list = Vec::new();
            loop {
                self.space();
                if self.skip(']') {
                    return Some(Value::Array(list));
                }
                list.push(self.value(depth + 1)?);
                self.space();
                if !self.skip(',') && !self.rest.starts_with(']') {
                    return None;
                }
            }
        }
        if self.rest.starts_with(['"', '\'', '`']) {
            return self.string().map(Value::String);
        }
        match self.word()? {
            "true" | "True" => Some(Value::Bool(true)),
            "false" | "False" => Some(Value::Bool(false)),
            "null" | "None" => Some(Value::Null),
            word => word.parse::<u64>().ok().map(Value::from),
        }
    }

    /// Fields up to a closing mark, or to the end of the input.
    fn fields(&mut self, close: Option<char>, depth: usize) -> Option<Map<String, Value>> {
        let mut object = Map::new();
        loop {
            self.space();
            match close {
                Some(mark) if self.skip(mark) => return Some(object),
                None if self.rest.is_empty() => return Some(object),
                _ => {}
            }
            let key = if self.rest.starts_with(['"', '\'']) { self.string()? } else { self.word()?.to_owned() };
            self.space();
            if !self.skip(':') && !self.skip('=') {
                return None;
            }
            let value = self.value(depth + 1)?;
            if object.contains_key(&key) {
                self.fault = Some(Loose::Repeated(key));
                return None;
            }
            object.insert(key, value);
            let before = self.rest.len();
            self.space();
            let spaced = self.rest.len() < before;
            let ended = self.skip(',') || close.map_or(self.rest.is_empty(), |mark| self.rest.starts_with(mark));
            // `search="…" replace="…"` has no commas.
            if !ended && (close.is_some() || !spaced) {
                return None;
            }
        }
    }

    /// A quoted string, its escapes decoded once; an unknown escape stays as it is.
    fn string(&mut self) -> Option<String> {
        let quote = self.rest.chars().next()?;
        let mut text = String::new();
        let mut characters = self.rest[quote.len_utf8()..].chars();
        loop {
            match characters.next()? {
                it if it == quote => break,
                '\\' => match characters.next()? {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    'b' => text.push('\u{8}'),
                    'f' => text.push('\u{c}'),
                    it @ ('"' | '\'' | '\\' | '/' | '`') => text.push(it),
                    'u' => {
                        let escape = characters.as_str().get(..4);
                        match unicode(&mut characters) {
                            Some(character) => text.push(character),
                            None => {
                                self.fault =
                                    escape.filter(|it| is_surrogate(it)).map(|it| Loose::Half(format!("\\u{it}")));
                                return None;
                            }
                        }
                    }
                    other => text.extend(['\\', other]),
                },
                it => text.push(it),
            }
        }
        self.rest = characters.as_str();
        Some(text)
    }
}

/// True for the digits of half a surrogate pair.
fn is_surrogate(digits: &str) -> bool {
    u32::from_str_radix(digits, 16).is_ok_and(|unit| (0xd800..0xe000).contains(&unit))
}

/// The character of `\uXXXX`, or of two of them that are a surrogate pair.
fn unicode(characters: &mut std::str::Chars<'_>) -> Option<char> {
    let unit = |characters: &mut std::str::Chars<'_>| {
        let digits = characters.as_str().get(..4)?;
        characters.nth(3)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let first = unit(characters)?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first);
    }
    let second = characters.as_str().strip_prefix("\\u").map(str::chars)?;
    *characters = second;
    let second = unit(characters).filter(|unit| (0xdc00..0xe000).contains(unit))?;
    char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(input: &str) -> Option<String> {
        match parse(input) {
            Loose::Values(values) => Some(serde_json::to_string(&values).unwrap()),
            _ => None,
        }
    }

    #[test]
    fn what_models_write() {
        let expected = "[{\"search\":\"a\\nb\",\"replace\":\"c \\\"d\\\"\"}]";
        for input in [
            "{search: 'a\nb', replace: 'c \"d\"',}",
            "{\"search\": \"a\nb\", \"replace\": \"c \\\"d\\\"\"}",
            "search=\"a\nb\" replace='c \"d\"'",
            "search: \"a\\nb\",\nreplace: \"c \\u0022d\\\"\"",
            "{'search': \"a\\nb\", 'replace': `c \"d\"`}",
        ] {
            assert_eq!(one(input).as_deref(), Some(expected), "{input}");
        }
        assert_eq!(one("{a: '\\ud83d\\ude00 \\d'}").unwrap(), "[{\"a\":\"\u{1f600} \\\\d\"}]");
        assert_eq!(one("[{a: true}, {b: 7},]").unwrap(), "[[{\"a\":true},{\"b\":7}]]");
    }

    #[test]
    fn what_is_cut_or_contradicts_itself() {
        for input in [
            "{search: 'a",
            "{search 'a'}",
            "{a: 'b' c: 'd'}",
            "{a: 1, a: 2}",
            "{a: '\\ud83d'}",
            "search='a' x",
            "[1 2]",
        ] {
            assert_eq!(one(input), None, "{input}");
        }
        assert!(matches!(parse(&"[".repeat(100_000)), Loose::Cut));
        assert!(matches!(parse("{a: '\\udc00\\ud83d'}"), Loose::Half(escape) if escape == "\\udc00"));
    }
}
