//! Text kept as the JSON string that it is in a record, and will be in a request.

use std::sync::OnceLock;

/// A JSON string, quotes included, in the one form that this program writes.
///
/// A long history is mostly results of tools: they are read from a record's JSON and go into a request's JSON. Kept like
/// this, their bytes are the request's bytes, and nobody has to take the escapes out only to put them in again.
#[derive(Debug)]
pub struct Literal {
    json: Box<str>,
    /// Bytes of the text that it stands for.
    len: usize,
    /// That text, once somebody asked for it; never for one without escapes, which is in `json` as it is.
    plain: OnceLock<Box<str>>,
}

impl Literal {
    /// Takes a JSON string as it stands in a record; `None` when this program would have written it in another way, or
    /// when it is no string of the log (which has no NUL).
    pub(crate) fn read(json: &str) -> Option<Self> {
        let inner = json.strip_prefix('"')?.strip_suffix('"')?;
        Some(Self { len: plain_len(inner)?, json: json.into(), plain: OnceLock::new() })
    }

    /// Writes a text without NUL.
    pub(crate) fn write(text: &str) -> Self {
        let mut json = Vec::with_capacity(text.len() + text.len() / 16 + 2);
        // A vector takes every write and a `str` has no value that JSON lacks, so this cannot fail.
        let written = serde_json::to_writer(&mut json, text);
        debug_assert!(written.is_ok());
        let json = String::from_utf8(json).unwrap_or_default();
        Self { json: json.into(), len: text.len(), plain: OnceLock::new() }
    }

    /// The JSON string, quotes included.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The text. The first call takes the escapes out, where there are any.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let inner = self.inner();
        if inner.len() == self.len {
            return inner;
        }
        self.plain.get_or_init(|| serde_json::from_str::<Box<str>>(&self.json).unwrap_or_default())
    }

    /// Bytes of the text.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// True when the text has nothing but white space.
    pub(crate) fn is_blank(&self) -> bool {
        let mut letters = self.inner().chars();
        while let Some(letter) = letters.next() {
            let blank = match letter {
                '\\' => match letters.next() {
                    Some('u') => {
                        let code = letters.as_str().get(..4);
                        letters.nth(3);
                        code == Some("000b")
                    }
                    escaped => matches!(escaped, Some('n' | 't' | 'r' | 'f')),
                },
                letter => letter.is_whitespace(),
            };
            if !blank {
                return false;
            }
        }
        true
    }

    fn inner(&self) -> &str {
        self.json.get(1..self.json.len() - 1).unwrap_or_default()
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl Eq for Literal {}

/// Bytes of what stands between the quotes of a JSON string without its escapes; `None` when one of them is not
/// written as this program writes it.
fn plain_len(inner: &str) -> Option<usize> {
    let (mut len, mut rest) = (inner.len(), inner);
    while let Some(at) = rest.find('\\') {
        let escape = &rest.as_bytes()[at + 1..];
        let written = match escape.first()? {
            b'"' | b'\\' | b'b' | b't' | b'n' | b'f' | b'r' => 2,
            b'u' => match escape.get(1..5)? {
                // Those with a letter of their own are not written by number.
                [b'0', b'0', b'0', b'1'..=b'7' | b'b' | b'e' | b'f'] => 6,
                [b'0', b'0', b'1', b'0'..=b'9' | b'a'..=b'f'] => 6,
                _ => return None,
            },
            _ => return None,
        };
        len -= written - 1;
        rest = &rest[at + written..];
    }
    Some(len)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_this_program_writes_is_taken_as_it_is() {
        for json in [r#""""#, r#""plain é""#, r#""a\n\"b\"\\\t\r\b\f""#, r#""\u0001\u001f\u000b""#] {
            let literal = Literal::read(json).unwrap();
            let text: String = serde_json::from_str(json).unwrap();
            assert_eq!((literal.json(), literal.as_str(), literal.len()), (json, text.as_str(), text.len()));
            assert_eq!(Literal::write(&text), literal);
        }
        for other in
            [r#""\/""#, r#""\u00e9""#, r#""\u000a""#, r#""\u001F""#, r#""\u0000""#, r#""\ud83d\ude00""#, "null"]
        {
            assert_eq!(Literal::read(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn a_literal_is_its_text(text in "[\\x01-\\x7f\u{85}\u{a0}é€😀]*") {
            let written = Literal::write(&text);
            prop_assert_eq!(written.as_str(), &text);
            prop_assert_eq!(written.len(), text.len());
            prop_assert_eq!(written.json(), serde_json::to_string(&text).unwrap());
            prop_assert_eq!(Literal::read(written.json()), Some(written));
        }

        #[test]
        fn blank_is_what_has_no_letter(text in "[ \n\t\r\x0b\x0c\u{85}\u{a0}]*[x\x08\x1c\"]?") {
            prop_assert_eq!(Literal::write(&text).is_blank(), text.trim().is_empty());
        }

        #[test]
        fn reading_is_never_otherwise_than_serde_json(inner in r#"([ -~]|\\[bfnrtu"\\/]|\\u00[01][0-9a-fA-F])*"#) {
            let json = format!("\"{inner}\"");
            if let (Some(read), Ok(text)) = (Literal::read(&json), serde_json::from_str::<String>(&json)) {
                prop_assert_eq!(read.json(), serde_json::to_string(&text).unwrap());
                prop_assert_eq!(read.len(), text.len());
            }
        }
    }
}
