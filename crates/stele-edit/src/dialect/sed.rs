//! `s/old/new/` and chains of it, alone or as a `sed` command line.

use super::{Fault, Section};
use crate::find::pattern::{Substitution, Token};
use crate::perform::Request;
use crate::refuse::{Code, Refusal};

/// Longest pattern and replacement; nobody writes longer ones by hand.
const PART: usize = 4096;

/// True for a line that is a command, or would be but for what is not done.
pub(super) fn marks(line: &str) -> bool {
    !matches!(parse(line), Err(Fault::Other | Fault::Broken { .. }))
}

pub(super) fn parse(input: &str) -> Result<Vec<Section>, Fault> {
    let trimmed = input.trim();
    let (scripts, path) = match command_line(trimmed)? {
        Some(found) => found,
        None => (vec![trimmed.to_owned()], None),
    };
    let mut requests = Vec::new();
    for script in &scripts {
        let mut rest = script.as_str();
        loop {
            rest = rest.trim_start_matches([' ', '\t', '\n', '\r', ';']);
            if rest.is_empty() {
                break;
            }
            let (command, after) = substitution(rest)?;
            requests.push(Request::Substitute(command));
            rest = after;
        }
    }
    if requests.is_empty() {
        return Err(Fault::Other);
    }
    let mut section = Section::unnamed(requests);
    section.path = path;
    Ok(vec![section])
}

/// Scripts and the file they are for.
type CommandLine = (Vec<String>, Option<String>);

/// The scripts and the file of `sed -i 's/a/b/' file`; none when the input is no such command line.
fn command_line(input: &str) -> Result<Option<CommandLine>, Fault> {
    let Some(rest) = input.strip_prefix("sed ") else { return Ok(None) };
    if input.contains('\n') {
        return Err(Fault::Other);
    }
    let Some(words) = words(rest) else { return Err(Fault::Other) };
    let (mut scripts, mut files, mut next_is_script) = (Vec::new(), Vec::new(), false);
    for word in words {
        match word.as_str() {
            "-e" => next_is_script = true,
            _ if next_is_script => {
                scripts.push(word);
                next_is_script = false;
            }
            "-i" | "-E" | "-r" | "-s" | "--in-place" => {}
            option if option.starts_with('-') => return Err(Fault::Other),
            _ if scripts.is_empty() => scripts.push(word),
            _ => files.push(word),
        }
    }
    match (scripts.is_empty(), files.as_slice()) {
        (true, _) | (_, [_, _, ..]) => Err(Fault::Other),
        (false, files) => Ok(Some((scripts, files.first().cloned()))),
    }
}

/// Words of a command line with plain quotes; none for anything a shell would expand.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '\'' => rest[1..].split_once('\'')?,
            '"' => rest[1..].split_once('"').filter(|(word, _)| !word.contains(['\\', '$', '`']))?,
            _ => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                Some(rest.split_at(end))
                    .filter(|(word, _)| !word.contains(['\'', '"', '\\', '$', '`', '|', '>', '<', '&']))?
            }
        };
        if !after.is_empty() && !after.starts_with(char::is_whitespace) {
            return None;
        }
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    Some(words)
}

/// One command at the start of a text, and what comes after it.
fn substitution(text: &str) -> Result<(Substitution, &str), Fault> {
    let mut characters = text.chars();
    let delimiter = match (characters.next(), characters.next()) {
        (Some('s'), Some(it)) if !it.is_alphanumeric() && !it.is_whitespace() && !matches!(it, '\\' | '_' | ';') => it,
        _ => return Err(Fault::Other),
    };
    let parts = part(characters.as_str(), delimiter)
        .and_then(|(pattern, rest)| part(rest, delimiter).map(|(replacement, rest)| (pattern, replacement, rest)));
    let Some((pattern, replacement, rest)) = parts else {
        // One delimiter is no mark of a command: `s.` starts many texts.
        let seen = text.lines().count() == 1 && text[1..].matches(delimiter).count() == 2;
        return Err(if seen { Fault::broken(0, "the last delimiter is missing") } else { Fault::Other });
    };
    let end = rest.find([';', '\n', '}']).unwrap_or(rest.len());
    let (flags, rest) = rest.split_at(end);
    let (mut global, mut ignore_case) = (false, false);
    for flag in flags.trim().chars() {
        match flag {
            'g' => global = true,
            'i' | 'I' => ignore_case = true,
            _ if flags
                .trim()
                .chars()
                .all(|flag| matches!(flag, 'g' | 'i' | 'I' | 'm' | 'M' | 'p' | 'e' | 'w' | '0'..='9')) =>
            {
                let text = format!("the sed flag `{flag}` is not done, only `g` and `i` are; give old and new text");
                return Err(Fault::Refused(Refusal::new(Code::Unparsed, text)));
            }
            _ => return Err(Fault::Other),
        }
    }
    if pattern.is_empty() {
        let text = "the sed pattern is empty; say what to replace";
        return Err(Fault::Refused(Refusal::new(Code::Unparsed, text)));
    }
    let pattern = unescape_delimiter(pattern, delimiter);
    Ok((Substitution { pattern, replacement: tokens(replacement, delimiter)?, global, ignore_case }, rest))
}

/// Text up to the next delimiter that is not escaped, and what comes after it. Only an escaped line end goes on.
fn part(text: &str, delimiter: char) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if at > PART => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return None,
            _ if character == delimiter => return Some((&text[..at], &text[at + delimiter.len_utf8()..])),
            _ => {}
        }
    }
    None
}

fn unescape_delimiter(pattern: &str, delimiter: char) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match (character, characters.clone().next()) {
            ('\\', Some(next)) => {
                characters.next();
                if next != delimiter {
                    text.push('\\');
                }
                text.push(next);
            }
            _ => text.push(character),
        }
    }
    text
}

const GROUPS: [&str; 10] = ["\\0", "\\1", "\\2", "\\3", "\\4", "\\5", "\\6", "\\7", "\\8", "\\9"];

/// A replacement in parts. A backslash is dropped before the delimiter, `&`, a line end and the characters that are
/// special in an expression.
fn tokens(replacement: &str, delimiter: char) -> Result<Vec<Token>, Fault> {
    let mut tokens = Vec::new();
    let mut text = String::new();
    let mut push = |text: &mut String, token: Token| {
        if !text.is_empty() {
            tokens.push(Token::Text(std::mem::take(text)));
        }
        tokens.push(token);
    };
    let mut characters = replacement.chars();
    while let Some(character) = characters.next() {
        let next = characters.clone().next();
        match (character, next) {
            ('&', _) => push(&mut text, Token::Group(0, "&")),
            ('\\', Some(escaped)) => {
                characters.next();
                match escaped {
                    _ if escaped == delimiter => text.push(escaped),
                    '0'..='9' => {
                        let group = escaped as usize - '0' as usize;
                        push(&mut text, Token::Group(group, GROUPS[group]));
                    }
                    'n' => push(&mut text, Token::Control("\\n")),
                    't' => push(&mut text, Token::Control("\\t")),
                    'r' => push(&mut text, Token::Control("\\r")),
                    'U' | 'L' | 'u' | 'l' | 'E' => {
                        let why = format!("`\\{escaped}` in a sed replacement is not done; give old and new text");
                        return Err(Fault::Refused(Refusal::new(Code::Unparsed, why)));
                    }
                    '&' | '\n' | '[' | ']' | '(' | ')' | '{' | '}' | '.' | '*' | '+' | '?' | '^' | '$' | '|' | '\\' => {
                        text.push(escaped);
                    }
                    other => text.extend(['\\', other]),
                }
            }
            _ => text.push(character),
        }
    }
    if !text.is_empty() {
        tokens.push(Token::Text(text));
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Action;

    fn commands(input: &str) -> Result<Vec<Substitution>, Fault> {
        let sections = parse(input)?;
        let Action::Change { requests, .. } = &sections[0].action else { panic!() };
        Ok(requests
            .iter()
            .map(|request| match request {
                Request::Substitute(command) => command.clone(),
                _ => panic!(),
            })
            .collect())
    }

    #[test]
    fn chains_and_delimiters() {
        let found = commands("s/a\\/b/c/g; s|x|y|i\ns#p#q#").unwrap();
        assert_eq!(found[0].pattern, "a/b");
        assert!(found[0].global && found[1].ignore_case && found.len() == 3);
        assert_eq!(commands("sed -i 's/a b/c/' src/x.rs").unwrap()[0].pattern, "a b");
        assert_eq!(parse("sed -i -e 's/a/b/' -e 's/c/d/' x").unwrap()[0].path.as_deref(), Some("x"));
    }

    #[test]
    fn replacements() {
        let tokens = |input: &str| commands(input).unwrap().swap_remove(0).replacement;
        assert_eq!(
            tokens("s/a/<&>\\1 \\& $1 \\[x\\/\\d/"),
            [
                Token::Text("<".into()),
                Token::Group(0, "&"),
                Token::Text(">".into()),
                Token::Group(1, "\\1"),
                Token::Text(" & $1 [x/\\d".into())
            ]
        );
        assert_eq!(commands("s/a/&\\1\\n/").unwrap()[0].literal_replacement(), "&\\1\\n");
    }

    #[test]
    fn what_is_no_command() {
        for input in
            ["so it goes", "s.o. said: a.b.c", "s/a", "plain text", "sed -n '1p' x", "5s/a/b/", "s/a/b/ and more"]
        {
            assert_eq!(commands(input), Err(Fault::Other), "{input}");
        }
        assert!(matches!(commands("s/a/b"), Err(Fault::Broken { .. })));
        assert!(matches!(commands("s/a/b/2"), Err(Fault::Refused(_))));
    }
}
