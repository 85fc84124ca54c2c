//! Patterns over normalised commands: `*` matches anything, every other character itself.

/// A command with its quotes resolved, as patterns see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A character that is certain.
    Char(char),
    /// Text that only the shell knows when it runs: an expansion, a file pattern, a substitution.
    /// It may be anything, several words or nothing.
    Unknown,
    /// What the shell puts there unless it was told something else (`~`, `$HOME`, `~+`, `$PWD`). Where something is
    /// permitted it is as unknown as the rest; what it most likely is may be refused.
    Usual(Usual),
}

/// A folder that the shell has a short name for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usual {
    /// The home folder.
    Home,
    /// The current folder.
    Current,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Char(char),
    Star,
}

/// A compiled pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandPattern {
    tokens: Vec<Token>,
    /// The pattern without its trailing ` *`: `git *` also means a bare `git`.
    bare: Option<Vec<Token>>,
}

impl CommandPattern {
    /// Compiles a pattern; `git:*` is another spelling of `git *`.
    pub(crate) fn new(text: &str) -> Self {
        let text = text.trim();
        let text = text.strip_suffix(":*").map_or_else(|| text.to_owned(), |prefix| format!("{prefix} *"));
        let mut tokens: Vec<Token> = Vec::new();
        for character in text.chars() {
            match character {
                '*' if tokens.last() == Some(&Token::Star) => {}
                '*' => tokens.push(Token::Star),
                other => tokens.push(Token::Char(other)),
            }
        }
        let bare = match tokens.as_slice() {
            [head @ .., Token::Char(' '), Token::Star] if !head.is_empty() => Some(head.to_vec()),
            _ => None,
        };
        Self { tokens, bare }
    }

    /// True for `*` alone: it says no more than the tool's name.
    pub(crate) fn is_everything(&self) -> bool {
        self.tokens == [Token::Star]
    }

    /// True when the command matches whatever its unknown parts turn out to be.
    pub(crate) fn covers(&self, command: &[Unit]) -> bool {
        covers(&self.tokens, command) || self.bare.as_ref().is_some_and(|bare| covers(bare, command))
    }

    /// True when the command matches for some value of its unknown parts.
    pub(crate) fn touches(&self, command: &[Unit]) -> bool {
        touches(&self.tokens, command) || self.bare.as_ref().is_some_and(|bare| touches(bare, command))
    }
}

/// The usual two-pointer match: on a mismatch the last star takes one unit more.
fn covers(pattern: &[Token], text: &[Unit]) -> bool {
    let (mut at, mut position) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while position < text.len() {
        match (pattern.get(at), text[position]) {
            (Some(Token::Star), _) => {
                star = Some((at, position));
                at += 1;
            }
            (Some(Token::Char(expected)), Unit::Char(found)) if *expected == found => {
                at += 1;
                position += 1;
            }
            _ => match star {
                Some((star_at, taken)) => {
                    star = Some((star_at, taken + 1));
                    at = star_at + 1;
                    position = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|token| *token == Token::Star)
}

/// Whether two patterns, one with `*` and one with unknown parts, have a common string.
fn touches(pattern: &[Token], text: &[Unit]) -> bool {
    // reach[i]: pattern[..i] and the text read so far have a common string.
    let mut reach = vec![false; pattern.len() + 1];
    reach[0] = true;
    skip_stars(pattern, &mut reach);
    for unit in text {
        let mut next = vec![false; pattern.len() + 1];
        match unit {
            // The unknown part may swallow any number of the pattern's tokens.
            Unit::Unknown | Unit::Usual(_) => {
                let mut reached = false;
                for (index, slot) in next.iter_mut().enumerate() {
                    reached |= reach[index];
                    *slot = reached;
                }
            }
            Unit::Char(found) => {
                for (index, token) in pattern.iter().enumerate() {
                    match token {
                        Token::Star => next[index] |= reach[index],
                        Token::Char(expected) => next[index + 1] |= reach[index] && expected == found,
                    }
                }
            }
        }
        skip_stars(pattern, &mut next);
        reach = next;
        if !reach.iter().any(|reached| *reached) {
            return false;
        }
    }
    reach[pattern.len()]
}

/// A star may match nothing.
fn skip_stars(pattern: &[Token], reach: &mut [bool]) {
    for (index, token) in pattern.iter().enumerate() {
        if *token == Token::Star && reach[index] {
            reach[index + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `?` stands for an unknown part.
    fn units(text: &str) -> Vec<Unit> {
        text.chars().map(|c| if c == '?' { Unit::Unknown } else { Unit::Char(c) }).collect()
    }

    #[track_caller]
    fn check(pattern: &str, command: &str, covered: bool, touched: bool) {
        let compiled = CommandPattern::new(pattern);
        assert_eq!(compiled.covers(&units(command)), covered, "covers: {pattern} on {command}");
        assert_eq!(compiled.touches(&units(command)), touched, "touches: {pattern} on {command}");
    }

    #[test]
    fn a_star_matches_anything_and_a_trailing_word_is_optional() {
        check("cargo test*", "cargo test", true, true);
        check("cargo test*", "cargo test -p x", true, true);
        check("cargo test*", "cargo tests", true, true);
        check("cargo test *", "cargo test", true, true);
        check("cargo test *", "cargo tests", false, false);
        check("git:*", "git", true, true);
        check("git:*", "git push --force", true, true);
        check("git:*", "gitk", false, false);
        check("* --version", "cargo --version", true, true);
        check("a*b*c", "aXbYbZc", true, true);
        check("a*b*c", "aXbY", false, false);
        check("*", "", true, true);
    }

    #[test]
    fn an_unknown_part_is_covered_only_by_a_star_and_touches_whatever_it_might_be() {
        check("cargo test*", "cargo test ?", true, true);
        check("cargo test*", "cargo ?", false, true);
        check("rm *", "? x", false, true);
        check("rm *", "echo ?", false, false);
        check("git push*", "git ?push", false, true);
        check("git push", "git ?", false, true);
        check("git push", "?", false, true);
        check("x", "??", false, true);
    }

    proptest::proptest! {
        #[test]
        fn what_is_covered_is_touched(pattern in "[ab* ]{0,8}", command in "[ab? ]{0,12}") {
            let pattern = CommandPattern::new(&pattern);
            if pattern.covers(&units(&command)) {
                assert!(pattern.touches(&units(&command)));
            }
        }

        #[test]
        fn without_unknown_parts_both_agree(pattern in "[ab* ]{0,8}", command in "[ab ]{0,12}") {
            let pattern = CommandPattern::new(&pattern);
            assert_eq!(pattern.covers(&units(&command)), pattern.touches(&units(&command)));
        }

        #[test]
        fn a_value_of_the_unknown_part_that_matches_is_found(
            pattern in "[ab* ]{0,8}", before in "[ab ]{0,5}", value in "[ab ]{0,5}", after in "[ab ]{0,5}",
        ) {
            let pattern = CommandPattern::new(&pattern);
            if pattern.covers(&units(&format!("{before}{value}{after}"))) {
                assert!(pattern.touches(&units(&format!("{before}?{after}"))));
            }
        }
    }
}
