//! Here-documents, checked against the text: where the body begins and ends, and what it expands.

use tree_sitter::Node;

/// What is known about a here-document once it has been checked.
pub(super) struct Heredoc {
    /// True when nothing in the body is expanded.
    pub(super) quoted: bool,
}

/// Checks one `heredoc_redirect` node; an error says why it is unclear.
pub(super) fn check(node: Node<'_>, source: &str) -> Result<Heredoc, &'static str> {
    const UNCLEAR: &str = "a here-document in it is unclear";
    let start = part(node, "heredoc_start").ok_or(UNCLEAR)?;
    let end = part(node, "heredoc_end").ok_or("a here-document in it is not terminated")?;
    let strips_tabs = part(node, "<<-").is_some();
    let written = source.get(start.clone()).ok_or(UNCLEAR)?;
    if written.contains(['$', '`', '\n']) {
        return Err(UNCLEAR);
    }
    let quoted = written.contains(['\'', '"', '\\']);
    let delimiter: String = written.chars().filter(|character| !matches!(character, '\'' | '"' | '\\')).collect();
    if delimiter.is_empty() {
        return Err(UNCLEAR);
    }

    // The body begins on the next line, unless the rest of this line opens something else.
    let rest = source.get(start.end..).ok_or(UNCLEAR)?;
    let line = rest.split('\n').next().unwrap_or_default();
    if !line.is_empty() && !line.starts_with([' ', '\t', ';', '&', '|', '<', '>', ')']) {
        return Err(UNCLEAR);
    }
    let odd = |quote: char| line.matches(quote).count() % 2 == 1;
    if line.contains("<<") || line.contains(['\\', '`']) || odd('\'') || odd('"') {
        return Err(UNCLEAR);
    }
    let body = start.end + line.len() + 1;

    // It ends at the first line that is the delimiter.
    let mut position = body;
    let mut found = None;
    for line in source.get(body..).ok_or(UNCLEAR)?.split('\n') {
        let content = if strips_tabs { line.trim_start_matches('\t') } else { line };
        if content == delimiter {
            found = Some(position + (line.len() - content.len()));
            break;
        }
        position += line.len() + 1;
    }
    if found != Some(end.start) {
        return Err(UNCLEAR);
    }
    let text = source.get(body..end.start).ok_or(UNCLEAR)?;
    if !quoted && (text.contains("\\\n") || has_active(text, '`')) {
        return Err("a here-document in it runs a command");
    }
    Ok(Heredoc { quoted })
}

fn part(node: Node<'_>, kind: &str) -> Option<std::ops::Range<usize>> {
    node.children(&mut node.walk()).find(|child| child.kind() == kind).map(|child| child.byte_range())
}

/// True when the character stands there without a backslash before it.
pub(super) fn has_active(text: &str, wanted: char) -> bool {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\\' {
            characters.next();
        } else if character == wanted {
            return true;
        }
    }
    false
}

/// True when an expansion begins there that the parser took for plain text.
pub(super) fn has_expansion(text: &str) -> bool {
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '`' => return true,
            '$' if matches!(characters.peek(), Some('(' | '{' | '[')) => return true,
            _ => {}
        }
    }
    false
}
