//! Patterns of a schema: regular expressions as ECMA-262 means them, which is what JSON Schema asks for.

use regex::Regex;

/// Reads a pattern; none where it is no regular expression, or one that this engine has another meaning or none for.
pub fn compile(pattern: &str) -> Option<Regex> {
    Regex::new(&translated(pattern)?).ok()
}

/// The pattern in the words of the engine, for which classes go beyond ASCII, and may hold classes and operators.
fn translated(pattern: &str) -> Option<String> {
    let mut text = String::new();
    let mut in_class = false;
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next()? {
                'd' => text.push_str("[0-9]"),
                'D' => text.push_str("[^0-9]"),
                'w' => text.push_str("[0-9A-Za-z_]"),
                'W' => text.push_str("[^0-9A-Za-z_]"),
                's' => text.push_str(r"[\s\u{feff}&&[^\u{85}]]"),
                'S' => text.push_str(r"[\S\u{85}&&[^\u{feff}]]"),
                'b' if !in_class => text.push_str(r"(?-u:\b)"),
                escaped @ ('<' | '>') => text.push(escaped),
                escaped => text.extend(['\\', escaped]),
            },
            '.' if !in_class => text.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            '-' if in_class && characters.peek() == Some(&'-') => return None,
            '[' | '&' | '~' if in_class => text.extend(['\\', character]),
            _ => {
                in_class = character == '[' || in_class && character != ']';
                text.push(character);
            }
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_the_standard_says() {
        for (pattern, text, expect) in [
            (r"^\d+$", "42", true),
            (r"^\d+$", "४२", false),
            (r"^[\d.]+$", "4.2", true),
            (r"^[^\D]$", "4", true),
            (r"^\w$", "é", false),
            (r"^\W$", "é", true),
            (r"\bé", "aé", true),
            (r"^\s\S$", "\u{feff}x", true),
            (r"^[\s]$", "\u{85}", false),
            (r"^\S$", "\u{85}", true),
            (r"^.$", "\r", false),
            (r"^.$", "é", true),
            (r"^[.]$", "x", false),
            (r"^[[]$", "[", true),
            (r"^[a&&b]$", "&", true),
            (r"^\[a]$", "[a]", true),
            (r"^\<$", "<", true),
            (r"^\p{Lu}$", "É", true),
            ("a$", "a\n", false),
            ("b", "abc", true),
        ] {
            let regex = compile(pattern).unwrap_or_else(|| panic!("{pattern}"));
            assert_eq!(regex.is_match(text), expect, "{pattern} {text:?}");
        }
        for pattern in ["(?=a)", "(", "[+--]", r"(a)\1", r"\"] {
            assert!(compile(pattern).is_none(), "{pattern}");
        }
    }
}
