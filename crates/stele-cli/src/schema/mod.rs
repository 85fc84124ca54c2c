//! The answer as JSON that matches a schema: asked for in the prompt, checked when it is there.

mod keyword;
mod number;
mod pattern;
mod reader;
mod validator;

use std::io::Read;
use std::path::Path;

use serde_json::Value;

use crate::error::{CommandError, Result};
use crate::given;
use validator::Validator;

/// Bytes of a schema: it goes into the prompt.
const SCHEMA_MAX: usize = 64 * 1024;

/// Faults that the model is told.
const FAULTS: usize = 10;

/// A schema, ready to check.
pub struct Schema {
    text: String,
    validator: Validator,
}

impl Schema {
    /// Reads a schema from a file.
    pub fn read(path: &Path) -> Result<Self> {
        let mut bytes = Vec::new();
        // One byte more than may be there tells that it is too long.
        given::open(path).and_then(|file| file.take(SCHEMA_MAX as u64 + 1).read_to_end(&mut bytes)).map_err(
            |error| CommandError::usage("usage.schema", format!("cannot read the schema {}: {error}", path.display())),
        )?;
        Self::parse(&bytes).map_err(|problem| {
            CommandError::usage("usage.schema", format!("{} is no JSON Schema: {problem}", path.display()))
        })
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > SCHEMA_MAX {
            return Err(format!("it is longer than {SCHEMA_MAX} bytes"));
        }
        let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        Ok(Self { text: value.to_string(), validator: Validator::new(value)? })
    }

    /// The prompt that asks for such an answer.
    pub fn ask(&self, prompt: &str) -> String {
        format!(
            "{prompt}\n\nYour final answer must be JSON only, without any other text, and match this JSON Schema:\n{}",
            self.text
        )
    }

    /// The prompt that asks again.
    pub fn ask_again(&self, faults: &[String]) -> String {
        format!(
            "The final answer does not match the JSON Schema:\n- {}\nAnswer again with JSON only.",
            faults.join("\n- ")
        )
    }

    /// Checks an answer; the faults are for the model and for people.
    ///
    /// # Errors
    /// What does not match.
    pub fn check(&self, answer: &str) -> Result<Value, Vec<String>> {
        let value: Value =
            serde_json::from_str(bare(answer)).map_err(|error| vec![format!("it is no JSON: {error}")])?;
        let faults: Vec<String> = self
            .validator
            .faults(&value, FAULTS)
            .into_iter()
            .map(|fault| {
                let place = if fault.place.is_empty() { "the answer" } else { &fault.place };
                let said: String = fault.what.chars().take(300).collect();
                format!("{place}: {said}")
            })
            .collect();
        if faults.is_empty() { Ok(value) } else { Err(faults) }
    }
}

/// The JSON of an answer that is a single code block, or the answer itself.
fn bare(answer: &str) -> &str {
    let answer = answer.trim();
    let inner = answer.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match inner.and_then(|inner| inner.split_once('\n')) {
        Some((language, body)) if matches!(language.trim(), "" | "json" | "JSON") => body.trim(),
        _ => answer,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn schema() -> Schema {
        let text =
            r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}"#;
        Schema::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn an_answer_matches_or_says_where_it_does_not() {
        assert_eq!(schema().check("{\"n\": 3}").unwrap()["n"], 3);
        assert_eq!(schema().check("```json\n{\"n\": 3}\n```\n").unwrap()["n"], 3);
        let faults = schema().check("{\"n\": \"x\"}").unwrap_err();
        assert!(faults[0].starts_with("/n: "), "{faults:?}");
        assert!(schema().check("The answer is 3").unwrap_err()[0].starts_with("it is no JSON"));
    }

    #[test]
    fn a_schema_that_is_none_is_refused() {
        assert!(Schema::parse(b"{").is_err());
        assert!(Schema::parse(br#"{"type": "nonsense"}"#).is_err());
        assert!(Schema::parse(&vec![b' '; SCHEMA_MAX + 1]).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_answer_is_checked(answer in ".{0,60}|```(json)?\n?.{0,20}```") {
            let _ = schema().check(&answer);
        }
    }
}
