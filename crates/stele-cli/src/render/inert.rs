//! Text from outside, made inert: nothing in it moves the cursor, colours, or hides from the reader.
//!
//! Control characters, terminal sequences (CSI, OSC, DCS and the like, with their content) and the
//! characters that change the direction of text are left out. Line ends and tabs stay. It works on
//! pieces: a sequence that is cut between two pieces is still left out.

/// The filter, with what it has to remember between pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inert {
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// Between ESC and the last byte of a two- or three-character sequence.
    Intermediate,
    /// Inside CSI.
    Sequence,
    /// Inside a string such as OSC, up to BEL or ST.
    String,
    /// After ESC inside a string.
    StringEscape,
}

/// Longest string sequence that is swallowed; an unterminated one must not swallow the rest of an answer.
const STRING_MAX: usize = 4096;

impl Inert {
    /// The inert part of a piece.
    pub fn feed(&mut self, piece: &str) -> String {
        let mut plain = String::with_capacity(piece.len());
        let mut swallowed = 0;
        for character in piece.chars() {
            self.state = match self.state {
                State::Text => match character {
                    '\u{1b}' => State::Escape,
                    '\u{9b}' => State::Sequence,
                    '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => State::String,
                    _ => {
                        if is_plain(character) {
                            plain.push(character);
                        }
                        State::Text
                    }
                },
                State::Escape => match character {
                    '[' => State::Sequence,
                    ']' | 'P' | 'X' | '^' | '_' => State::String,
                    ' '..='/' => State::Intermediate,
                    '\u{1b}' => State::Escape,
                    '\n' => {
                        plain.push('\n');
                        State::Text
                    }
                    _ => State::Text,
                },
                State::Intermediate => match character {
                    ' '..='/' => State::Intermediate,
                    _ => State::Text,
                },
                State::Sequence => match character {
                    '@'..='~' => State::Text,
                    ' '..='?' => State::Sequence,
                    '\u{1b}' => State::Escape,
                    // No sequence after all.
                    _ => {
                        if is_plain(character) {
                            plain.push(character);
                        }
                        State::Text
                    }
                },
                State::String => {
                    swallowed += 1;
                    match character {
                        '\u{7}' | '\u{9c}' => State::Text,
                        '\u{1b}' => State::StringEscape,
                        _ if swallowed > STRING_MAX => State::Text,
                        _ => State::String,
                    }
                }
                State::StringEscape => match character {
                    '\\' => State::Text,
                    '[' => State::Sequence,
                    _ => State::String,
                },
            };
        }
        plain
    }
}

/// Makes one whole text inert.
pub fn inert(text: &str) -> String {
    Inert::default().feed(text)
}

/// Makes a text inert and one line: line ends and tabs become spaces.
pub fn one_line(text: &str) -> String {
    inert(text).replace(['\n', '\t'], " ")
}

/// The first characters of a text, with a mark when some are missing.
pub fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

fn is_plain(character: char) -> bool {
    matches!(character, '\n' | '\t') || !stele_core::is_hidden(character)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(input: &str, expect: &str) {
        assert_eq!(inert(input), expect);
    }

    #[test]
    fn sequences_are_left_out_with_their_content() {
        check("a\u{1b}[31mred\u{1b}[0m b", "ared b");
        check("a\u{1b}]0;title\u{7}b", "ab");
        check("a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\b", "alinkb");
        check("\u{1b}[?1049h\u{1b}[?1000hx\u{1b}(By", "xy");
        check("a\u{9b}2Jb\u{8}c\r\nd\u{0}", "abc\nd");
        check("safe \u{202e}txt.exe", "safe txt.exe");
    }

    #[test]
    fn a_sequence_may_be_cut_between_pieces() {
        let mut filter = Inert::default();
        let pieces = ["a\u{1b}", "[3", "1mb\u{1b}]0;x", "y\u{7}c"];
        let plain: String = pieces.iter().map(|piece| filter.feed(piece)).collect();
        assert_eq!(plain, "abc");
    }

    #[test]
    fn a_string_that_never_ends_does_not_swallow_the_rest() {
        let text = format!("\u{1b}]{}end", "x".repeat(STRING_MAX));
        assert!(inert(&text).ends_with("nd"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn nothing_that_acts_is_left(text in ".{0,40}", glue in "[\\x00-\\x1f\\x7f-\\x9f\\[\\]?0-9;a-zA-Z\\\\]{0,20}", at in 0usize..40) {
            let cut = text.char_indices().nth(at).map_or(text.len(), |(at, _)| at);
            let mixed = format!("{}{glue}{}", &text[..cut], &text[cut..]);
            let plain = inert(&mixed);
            prop_assert!(plain.chars().all(is_plain));
            prop_assert_eq!(inert(&plain), plain.clone());
        }
    }
}
