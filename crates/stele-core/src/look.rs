//! Names that look the same.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// What a file's name looks like: names that give the same text look the same. Composed or decomposed accents, spaces
/// that do not break, typographic apostrophes.
fn look(name: &str) -> String {
    name.nfc()
        .map(|letter| match letter {
            '\u{a0}' | '\u{202f}' | '\u{2007}' | '\u{2009}' => ' ',
            '\u{2018}' | '\u{2019}' | '\u{2bc}' => '\'',
            letter => letter,
        })
        .collect()
}

/// True when a name that does not exist can stand for a file of this name: it looks the same, or it is what a list
/// shows of it.
#[must_use]
pub fn is_alike(asked: &str, name: &str) -> bool {
    look(name) == look(asked) || (name != asked && name_on_a_line(name) == asked)
}

/// A name as one line of a result: what is no letter on a line is written as an escape of Rust's, `\n` or `\u{1b}`.
#[must_use]
pub fn name_on_a_line(name: &str) -> Cow<'_, str> {
    if !name.contains(is_hidden) {
        return Cow::Borrowed(name);
    }
    let shown = |letter: char| if is_hidden(letter) { letter.escape_default().to_string() } else { letter.into() };
    Cow::Owned(name.chars().map(shown).collect())
}

/// True for what a reader does not see, though it acts: control characters, marks, embeddings, overrides and isolates that
/// change the direction of text, and invisible tags.
#[must_use]
pub fn is_hidden(letter: char) -> bool {
    match letter {
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}' => true,
        '\u{e0000}'..='\u{e007f}' => true,
        _ => letter.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_have_one_look() {
        assert_eq!(look("caf\u{e9}\u{202f}d\u{2019}un"), look("cafe\u{301} d'un"));
        assert_ne!(look("a b"), look("ab"));
        assert_eq!(name_on_a_line("a\u{202e}txt\u{e0041}"), "a\\u{202e}txt\\u{e0041}");
        assert!(is_alike("a\\nb", "a\nb") && !is_alike("a\nb", "a\\nb"));
    }
}
