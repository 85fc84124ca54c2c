//! Words: quotes resolved, expansions marked as unknown.

use tree_sitter::Node;

use super::Word;
use super::heredoc::has_expansion;
use super::walk::{WORDS, Walker};
use crate::glob::{Unit, Usual};

/// A word under construction.
#[derive(Default)]
struct Builder {
    units: Vec<Unit>,
    /// Positions of unquoted characters that open, separate and close a brace expansion.
    open: bool,
    separated: bool,
    braces: bool,
}

impl Builder {
    fn literal(&mut self, text: &str) {
        self.units.extend(text.chars().map(Unit::Char));
    }

    fn unknown(&mut self) {
        if self.units.last() != Some(&Unit::Unknown) {
            self.units.push(Unit::Unknown);
        }
    }

    /// What an expansion gives.
    fn expanded(&mut self, text: &str) {
        match text {
            "$HOME" | "${HOME}" => self.units.push(Unit::Usual(Usual::Home)),
            "$PWD" | "${PWD}" => self.units.push(Unit::Usual(Usual::Current)),
            _ => self.unknown(),
        }
    }

    /// `~` where it begins a folder's short name, before the rest of its word; gives what follows that name.
    fn tilde<'a>(&mut self, rest: &'a str) -> &'a str {
        let (name, _) = rest.split_once('/').unwrap_or((rest, ""));
        match name {
            "" => self.units.push(Unit::Usual(Usual::Home)),
            "+" => self.units.push(Unit::Usual(Usual::Current)),
            _ => {
                self.unknown();
                return rest;
            }
        }
        &rest[name.len()..]
    }

    fn finish(self) -> Word {
        if self.braces { Word::unknown() } else { Word(self.units) }
    }
}

impl Walker<'_> {
    /// Reads a word and walks the commands that are substituted in it.
    pub(super) fn word(&mut self, node: Node<'_>) -> Word {
        let mut builder = Builder::default();
        self.piece(node, &mut builder);
        builder.finish()
    }

    fn piece(&mut self, node: Node<'_>, builder: &mut Builder) {
        if !self.enter(node) {
            return;
        }
        match node.kind() {
            "word" | "variable_name" | "extglob_pattern" => {
                let text = self.text(node);
                self.bare(text, builder);
            }
            "number" if node.named_child_count() == 0 => {
                let text = self.text(node);
                builder.literal(text);
            }
            "raw_string" => {
                let text = self.text(node);
                match text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
                    Some(text) => builder.literal(text),
                    None => self.unclear("the command cannot be parsed"),
                }
            }
            "string" => self.string(node, builder),
            "concatenation" => {
                self.check_touching(node);
                for child in self.children(node) {
                    self.piece(child, builder);
                }
            }
            // What the escapes of `$'…'` stand for is not worked out.
            "ansi_c_string" => builder.unknown(),
            "brace_expression" => builder.braces = true,
            "simple_expansion" => {
                self.check_touching(node);
                builder.expanded(self.text(node));
            }
            "expansion" => {
                self.expansion(node);
                builder.expanded(self.text(node));
            }
            "command_substitution" | "process_substitution" => {
                self.substitution(node);
                builder.unknown();
            }
            _ => {
                self.unclear("it uses a part of the shell's language that is not judged");
                self.statements(node);
                builder.unknown();
            }
        }
        self.leave();
    }

    /// Text outside quotes.
    fn bare(&mut self, text: &str, builder: &mut Builder) {
        if builder.units.is_empty() && text.starts_with('#') {
            self.unclear("the command cannot be parsed");
        }
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                '\\' => match characters.next() {
                    Some('\n') | None => self.unclear("a line break in it splits a word"),
                    Some(escaped) => builder.units.push(Unit::Char(escaped)),
                },
                '*' | '?' => builder.unknown(),
                // A set of characters: where it ends is left open.
                '[' => {
                    builder.unknown();
                    return;
                }
                '~' if matches!(builder.units.last(), None | Some(Unit::Char('=' | ':'))) => {
                    characters = builder.tilde(characters.as_str()).chars();
                }
                '{' => {
                    builder.open = true;
                    builder.units.push(Unit::Char('{'));
                }
                ',' | '.' => {
                    builder.separated |= builder.open;
                    builder.units.push(Unit::Char(character));
                }
                '}' => {
                    builder.braces |= builder.separated;
                    builder.units.push(Unit::Char('}'));
                }
                '$' | '`' | '\'' | '"' | ';' | '|' | '&' | '<' | '>' | '(' | ')' => {
                    self.unclear("the command cannot be parsed");
                    builder.unknown();
                }
                other if other.is_whitespace() => self.unclear("it has unusual white space"),
                other => builder.units.push(Unit::Char(other)),
            }
        }
    }

    /// Text in double quotes: only `$`, backquotes and four escapes are special.
    fn string(&mut self, node: Node<'_>, builder: &mut Builder) {
        let source = self.source;
        let children = self.children(node);
        let (Some(first), Some(last)) = (children.first(), children.last()) else {
            self.unclear("the command cannot be parsed");
            return;
        };
        if children.len() < 2 || first.kind() != "\"" || last.kind() != "\"" {
            self.unclear("the command cannot be parsed");
        }
        let mut position = node.start_byte() + 1;
        for child in &children {
            let plain = matches!(child.kind(), "string_content" | "\"" | "$");
            if plain {
                continue;
            }
            self.quoted(source.get(position..child.start_byte()).unwrap_or_default(), builder);
            self.piece(*child, builder);
            position = child.end_byte();
        }
        self.quoted(source.get(position..node.end_byte().saturating_sub(1)).unwrap_or_default(), builder);
    }

    fn quoted(&mut self, text: &str, builder: &mut Builder) {
        if has_expansion(text) {
            self.unclear("the command cannot be parsed");
        }
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match (character, characters.peek()) {
                ('\\', Some('\n')) => {
                    characters.next();
                }
                ('\\', Some(&escaped @ ('\\' | '"' | '$' | '`'))) => {
                    builder.units.push(Unit::Char(escaped));
                    characters.next();
                }
                // An expansion the parser did not see: `$name` as plain text.
                ('$', Some(next)) if next.is_ascii_alphanumeric() || "_@*#?!-".contains(*next) => {
                    self.unclear("the command cannot be parsed");
                    builder.unknown();
                }
                (other, _) => builder.units.push(Unit::Char(other)),
            }
        }
    }

    /// `${…}`: what it holds is walked; forms that set variables or evaluate text are unclear.
    fn expansion(&mut self, node: Node<'_>) {
        self.check_touching(node);
        for child in self.children(node) {
            match child.kind() {
                "variable_name"
                | "special_variable_name"
                | "${"
                | "}"
                | ":-"
                | "-"
                | ":+"
                | "+"
                | ":?"
                | "?"
                | "#"
                | "##"
                | "%"
                | "%%"
                | "/"
                | "//"
                | "/#"
                | "/%"
                | "^"
                | "^^"
                | ","
                | ",," => {}
                "regex" => {
                    if self.text(child).contains(['$', '`']) {
                        self.unclear("it uses an expansion that is not judged");
                    }
                }
                kind if WORDS.contains(&kind) => {
                    self.word(child);
                }
                _ => {
                    self.unclear("it uses an expansion that is not judged");
                    self.statement(child);
                }
            }
        }
    }

    /// `$(…)`, backquotes, `<(…)`, `>(…)`.
    fn substitution(&mut self, node: Node<'_>) {
        let text = self.text(node);
        // Inside backquotes a backslash quotes once more, which the parser does not follow.
        if text.starts_with('`') && text.contains('\\') {
            self.unclear("it quotes inside backquotes");
        }
        self.statements(node);
    }
}
