//! From the syntax tree to the steps.

use std::ops::Range;

use tree_sitter::{Node, Parser};

use super::heredoc;
use super::variable::is_risky;
use super::{Script, Step, Word};

/// Deepest nesting that is followed; a chain of `&&` nests once a link.
const DEPTH_MAX: usize = 200;

/// Words that begin or end a construct: as a command's name they mean that the parse went wrong.
const RESERVED: &[&str] = &[
    "!", "[", "]", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "until", "while",
];

/// Tokens between statements, of which nothing needs to be known.
const TOKENS: &[&str] = &[
    ";", "\n", "&", "&&", "||", "|", "|&", "(", ")", "{", "}", "$(", "`", "<(", ">(", "!", "if", "then", "elif",
    "else", "fi", "while", "until", "for", "select", "in", "do", "done", "case", "esac", ";;", ";&", ";;&", "function",
];

/// Nodes that are a word, or a part of one.
pub(super) const WORDS: &[&str] = &[
    "word",
    "string",
    "raw_string",
    "concatenation",
    "number",
    "simple_expansion",
    "expansion",
    "command_substitution",
];

/// Nodes whose inside is not made of tokens that cover the text.
const WHOLE: &[&str] = &["string", "raw_string", "ansi_c_string", "comment", "heredoc_body", "translated_string"];

/// True for a word of the shell's grammar that is no command.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

pub(super) struct Walker<'a> {
    pub(super) source: &'a str,
    script: Script,
    depth: usize,
}

/// Parses and walks; `None` when there is no parse at all.
pub(super) fn walk(source: &str) -> Option<Script> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let tree = parser.parse(source, None)?;
    let root = tree.root_node();
    let mut walker = Walker { source, script: Script::default(), depth: 0 };
    if root.has_error() {
        walker.unclear("the command cannot be parsed");
    }
    walker.check_coverage(root);
    walker.statement(root);
    Some(walker.script)
}

impl<'a> Walker<'a> {
    /// Notes the first reason why the command is not certain.
    pub(super) fn unclear(&mut self, why: &'static str) {
        self.script.unclear.get_or_insert(why);
    }

    pub(super) fn text(&self, node: Node<'_>) -> &'a str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    pub(super) fn children<'tree>(&self, node: Node<'tree>) -> Vec<Node<'tree>> {
        node.children(&mut node.walk()).collect()
    }

    /// Goes one level down; false when it is too deep or the node is an error.
    pub(super) fn enter(&mut self, node: Node<'_>) -> bool {
        if node.is_error() || node.is_missing() {
            self.unclear("the command cannot be parsed");
        }
        if self.depth >= DEPTH_MAX {
            self.unclear("the command is nested too deeply");
            return false;
        }
        self.depth += 1;
        true
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    fn step(&mut self, step: Step) {
        self.script.steps.push(step);
    }

    fn sets(&mut self, name: &str) {
        if is_risky(name) {
            self.script.risky.get_or_insert_with(|| name.to_owned());
        }
    }

    /// Every byte belongs to a token; between tokens there is nothing but white space.
    fn check_coverage(&mut self, root: Node<'_>) {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut cursor = root.walk();
        loop {
            let node = cursor.node();
            let whole = node.child_count() == 0 || WHOLE.contains(&node.kind());
            if whole && node.kind() != "program" {
                ranges.push(node.byte_range());
            }
            if !whole && cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    self.check_gaps(&ranges);
                    return;
                }
            }
        }
    }

    fn check_gaps(&mut self, ranges: &[Range<usize>]) {
        let ends = std::iter::once(0).chain(ranges.iter().map(|range| range.end));
        let starts = ranges.iter().map(|range| range.start).chain(std::iter::once(self.source.len()));
        for (end, start) in ends.zip(starts) {
            let Some(gap) = self.source.get(end..start) else {
                // Overlapping or not at a character's edge.
                self.unclear("the command cannot be parsed");
                return;
            };
            let mut blank = gap.replace("\\\n", "");
            // The grammar loses a `-` before a here-document; it says no more than "standard input".
            if blank.trim() == "-" && self.source[start..].starts_with("<<") {
                blank = blank.replace('-', " ");
            }
            if !blank.chars().all(|character| matches!(character, ' ' | '\t' | '\n')) {
                self.unclear("the command cannot be parsed");
            }
            // A continued line inside a word, or one beside a real line break, which the parser loses.
            if gap.contains("\\\n") && (blank.is_empty() || blank.contains('\n')) {
                self.unclear("a continued line in it is ambiguous");
            }
        }
    }

    /// A word of the grammar stands by itself, and a closing brace begins a command.
    fn check_boundaries(&mut self, node: Node<'_>) {
        let kind = node.kind();
        if !is_reserved(kind) {
            return;
        }
        let before = self.source.get(..node.start_byte()).unwrap_or_default();
        let after = self.source.get(node.end_byte()..).unwrap_or_default().chars().next();
        let separates = |character: char| " \t\n;&|()".contains(character);
        let begins = before.chars().next_back().is_none_or(separates);
        let ends = match kind {
            "{" | "!" | "[[" | "[" => after.is_some_and(|after| " \t\n".contains(after)),
            _ => after.is_none_or(|after| separates(after) || "<>".contains(after)),
        };
        let closes = kind != "}" || before.trim_end_matches([' ', '\t']).ends_with([';', '&', '\n', ')', '}']);
        if !(begins && ends && closes) {
            self.unclear("the command cannot be parsed");
        }
    }

    /// The parts of a word touch each other.
    pub(super) fn check_touching(&mut self, node: Node<'_>) {
        let children = self.children(node);
        if children.windows(2).any(|pair| pair[0].end_byte() != pair[1].start_byte()) {
            self.unclear("the command cannot be parsed");
        }
    }

    pub(super) fn statements(&mut self, node: Node<'_>) {
        for child in self.children(node) {
            self.statement(child);
        }
    }

    /// Walks a node that is no word.
    pub(super) fn statement(&mut self, node: Node<'_>) {
        if !node.is_named() && !node.is_error() && !node.is_missing() {
            if !TOKENS.contains(&node.kind()) {
                self.unclear("it uses a part of the shell's language that is not judged");
            }
            self.check_boundaries(node);
            return;
        }
        if !self.enter(node) {
            return;
        }
        match node.kind() {
            "program"
            | "list"
            | "pipeline"
            | "subshell"
            | "if_statement"
            | "elif_clause"
            | "else_clause"
            | "negated_command"
            | "variable_assignments"
            | "do_group"
            | "redirected_statement" => {
                self.statements(node);
            }
            "compound_statement" => {
                if self.children(node).first().is_none_or(|first| first.kind() != "{") {
                    self.unclear("it calculates, which is not judged");
                }
                self.statements(node);
            }
            "while_statement" => {
                self.script.repeats = true;
                self.statements(node);
            }
            "for_statement" | "case_statement" | "case_item" => self.heads(node),
            "function_definition" => {
                self.script.repeats = true;
                for child in self.children(node) {
                    if child.kind() != "word" {
                        self.statement(child);
                    }
                }
            }
            "command" => self.command(node),
            "declaration_command" | "unset_command" => self.declaration(node),
            "variable_assignment" => {
                self.assignment(node);
            }
            "test_command" => self.test(node),
            "file_redirect" => self.file_redirect(node),
            "heredoc_redirect" => self.heredoc_redirect(node),
            "herestring_redirect" => {
                let mut words = self.children(node);
                words.retain(|child| child.is_named() && child.kind() != "file_descriptor");
                if words.len() > 1 {
                    self.unclear("it has words after a redirection");
                }
                for word in words {
                    self.word(word);
                }
            }
            "comment" => {
                let before = self.source.get(..node.start_byte()).and_then(|before| before.chars().next_back());
                if before.is_some_and(|before| !matches!(before, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')')) {
                    self.unclear("the command cannot be parsed");
                }
            }
            "file_descriptor" | "heredoc_start" | "heredoc_end" => {}
            _ => {
                self.unclear("it uses a part of the shell's language that is not judged");
                self.statements(node);
            }
        }
        self.leave();
    }

    /// `for` and `case`: words at the head, statements after it.
    fn heads(&mut self, node: Node<'_>) {
        self.script.repeats |= node.kind() == "for_statement";
        let mut cursor = node.walk();
        let children: Vec<_> = node.children(&mut cursor).collect();
        for (index, child) in children.into_iter().enumerate() {
            match node.field_name_for_child(u32::try_from(index).unwrap_or(u32::MAX)) {
                Some("variable") => {
                    let name = self.text(child);
                    self.sets(name);
                }
                Some("value") if child.is_named() => {
                    self.word(child);
                }
                _ => self.statement(child),
            }
        }
    }

    fn command(&mut self, node: Node<'_>) {
        let mut words: Vec<Word> = Vec::new();
        for (index, child) in self.children(node).into_iter().enumerate() {
            match (node.field_name_for_child(u32::try_from(index).unwrap_or(u32::MAX)), child.kind()) {
                (_, "variable_assignment") => {
                    self.assignment(child);
                }
                (Some("name"), _) => {
                    let quoted = self.children(child).first().is_none_or(|first| first.kind() != "word");
                    for part in self.children(child) {
                        words.push(self.word(part));
                    }
                    let name = words.last().and_then(Word::literal);
                    if !quoted && name.is_some_and(|name| name != "[" && is_reserved(&name)) {
                        self.unclear("the command cannot be parsed");
                    }
                }
                (Some("argument"), _) if child.is_named() => words.push(self.word(child)),
                (Some("redirect"), _) => self.statement(child),
                _ => {
                    self.unclear("it uses a part of the shell's language that is not judged");
                    self.statement(child);
                }
            }
        }
        // A `trap` runs what it holds at some later time.
        self.script.repeats |= words.first().and_then(Word::literal).is_some_and(|name| name == "trap");
        if !words.is_empty() {
            self.step(Step::Command(words));
        }
    }

    /// `export`, `declare`, `local`, `readonly`, `typeset`, `unset`.
    fn declaration(&mut self, node: Node<'_>) {
        let mut words = Vec::new();
        for child in self.children(node) {
            match child.kind() {
                "variable_assignment" => words.push(self.assignment(child)),
                _ if !child.is_named() => words.push(Word::certain(self.text(child))),
                _ => {
                    let word = self.word(child);
                    let start = word.literal_start();
                    let name = start.split(['=', '+']).next().unwrap_or_default();
                    self.sets(name);
                    if start.contains('[') || (word.literal().is_none() && !start.contains('=')) {
                        self.unclear("it sets a variable that is only known when it runs");
                    }
                    words.push(word);
                }
            }
        }
        self.step(Step::Command(words));
    }

    /// `name=value`; gives the whole as a word.
    fn assignment(&mut self, node: Node<'_>) -> Word {
        self.check_touching(node);
        let mut word = Word::default();
        for (index, child) in self.children(node).into_iter().enumerate() {
            match (node.field_name_for_child(u32::try_from(index).unwrap_or(u32::MAX)), child.kind()) {
                (Some("name"), "variable_name") => {
                    let name = self.text(child);
                    self.sets(name);
                    word.0.extend(Word::certain(name).0);
                }
                (Some("value"), "array") => {
                    for element in child.named_children(&mut child.walk()) {
                        self.word(element);
                    }
                    word.0.extend(Word::unknown().0);
                }
                (Some("value"), _) => {
                    let value = self.word(child);
                    word.0.extend(value.0);
                }
                (_, "=" | "+=") => word.0.extend(Word::certain(child.kind()).0),
                _ => {
                    self.unclear("it sets a variable in a way that is not judged");
                    self.statement(child);
                    word.0.extend(Word::unknown().0);
                }
            }
        }
        word
    }

    /// `[ … ]` and `[[ … ]]`. In single brackets `<` and `>` are redirections, in double ones
    /// comparing numbers evaluates text.
    fn test(&mut self, node: Node<'_>) {
        let double = self.text(node).starts_with("[[");
        for child in self.children(node) {
            self.test_part(child, double);
        }
    }

    fn test_part(&mut self, node: Node<'_>, double: bool) {
        if !self.enter(node) {
            return;
        }
        match node.kind() {
            "[" | "]" | "[[" | "]]" | "!" => self.check_boundaries(node),
            "=" | "==" | "!=" => {}
            "&&" | "||" | "(" | ")" | "<" | ">" if double => {}
            "test_operator" => {
                let operator = self.text(node);
                let counts = matches!(operator, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge");
                if matches!(operator, "-v" | "-R") || (double && counts) {
                    self.unclear("it calculates, which is not judged");
                }
            }
            "binary_expression" | "unary_expression" | "parenthesized_expression" => {
                for child in self.children(node) {
                    self.test_part(child, double);
                }
            }
            kind if WORDS.contains(&kind) => {
                self.word(node);
            }
            "extglob_pattern" | "regex" if !self.text(node).contains(['$', '`', '(']) => {}
            _ => {
                self.unclear("it uses a part of the shell's language that is not judged");
                self.statements(node);
            }
        }
        self.leave();
    }

    fn file_redirect(&mut self, node: Node<'_>) {
        let mut operator = "";
        let mut targets = Vec::new();
        for child in self.children(node) {
            match child.kind() {
                "file_descriptor" => {}
                kind if !child.is_named() => operator = kind,
                _ => targets.push((self.word(child), child.kind())),
            }
        }
        let closes = matches!(operator, "<&-" | ">&-");
        if targets.len() != usize::from(!closes) {
            // The parser takes further words for targets; to the shell they are arguments.
            self.unclear("it has words after a redirection");
        }
        for (target, kind) in targets {
            match operator {
                ">&" | "<&" if kind == "number" => {}
                "<" => self.step(Step::Input(target)),
                ">" | ">>" | "&>" | "&>>" | ">|" | ">&" => self.step(Step::Output(target)),
                _ => self.unclear("it has a redirection that is not judged"),
            }
        }
    }

    fn heredoc_redirect(&mut self, node: Node<'_>) {
        let quoted = match heredoc::check(node, self.source) {
            Ok(heredoc) => heredoc.quoted,
            Err(why) => {
                self.unclear(why);
                true
            }
        };
        for (index, child) in self.children(node).into_iter().enumerate() {
            match (node.field_name_for_child(u32::try_from(index).unwrap_or(u32::MAX)), child.kind()) {
                (_, "heredoc_body") if !quoted => self.heredoc_body(child),
                (_, "heredoc_body" | "<<" | "<<-") => {}
                (Some("argument"), _) => {
                    self.unclear("it has words after a redirection");
                    self.word(child);
                }
                _ => self.statement(child),
            }
        }
    }

    /// A body whose expansions run.
    fn heredoc_body(&mut self, node: Node<'_>) {
        let mut position = node.start_byte();
        for child in self.children(node) {
            if child.kind() == "heredoc_content" {
                continue;
            }
            self.heredoc_text(position, child.start_byte());
            self.word(child);
            position = child.end_byte();
        }
        self.heredoc_text(position, node.end_byte());
    }

    fn heredoc_text(&mut self, start: usize, end: usize) {
        if heredoc::has_expansion(self.source.get(start..end).unwrap_or_default()) {
            self.unclear("a here-document in it runs a command");
        }
    }
}
