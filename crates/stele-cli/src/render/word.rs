//! Words of a command line that is shown, to be copied.

/// A name as a shell takes it as one word.
pub fn shell_word(name: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+,:@%".contains(letter);
    if !name.is_empty() && name.chars().all(plain) {
        return name.to_owned();
    }
    format!("'{}'", name.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_for_a_shell() {
        for (name, expect) in [("/a/b-c.d", "/a/b-c.d"), ("/a b", "'/a b'"), ("it's", r"'it'\''s'"), ("", "''")] {
            assert_eq!(shell_word(name), expect);
        }
    }
}
