//! `ask`: questions to the person.

use std::fmt::Write as _;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use stele_core::{
    CallCard, CardKind, Effects, Future, Invocation, ResultCard, ResultMeta, Subject, Tool, ToolError, ToolOutput,
    ToolSpec,
};

use crate::declare::{Declared, finish};
use crate::error::{Error, Result};
use crate::{Options, card, sanitise};

/// Questions in one call.
const QUESTIONS: usize = 10;
/// What the model is told where no person is.
const NOBODY: &str = "Nobody can be asked. Decide yourself, and say in your answer what you assumed.";

/// Arguments of `ask`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    questions: Vec<Question>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Question {
    question: String,
    options: Option<Vec<String>>,
}

/// The tool.
pub(crate) struct Ask {
    declared: Declared<Arguments>,
    ask: Option<crate::Ask>,
    limit: usize,
}

impl Ask {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            declared: Declared::new("ask", include_str!("ask.md"), ""),
            ask: options.ask.clone(),
            limit: options.limits.result_bytes,
        }
    }
}

impl Tool for Ask {
    fn spec(&self) -> &ToolSpec {
        &self.declared.spec
    }

    fn effects(&self) -> Effects {
        Effects::None
    }

    // One question after the other.
    fn parallel(&self, _: &str) -> bool {
        false
    }

    fn subjects(&self, arguments: &str) -> Result<Vec<Subject>, ToolError> {
        self.declared.parse(arguments)?;
        Ok(Vec::new())
    }

    fn call_card(&self, arguments: &str, _: &Path) -> CallCard {
        match self.declared.parse(arguments).ok().as_ref().and_then(|arguments| arguments.questions.first()) {
            Some(first) => CallCard::Generic {
                title: card::title(&format!("Ask: {}", first.question)),
                kind: CardKind::Other,
                locations: Vec::new(),
            },
            None => self.declared.plain_card(CardKind::Other),
        }
    }

    fn result_card(&self, _: &str, content: &str, _: &ResultMeta) -> ResultCard {
        ResultCard::Generic { content: content.to_owned() }
    }

    fn run<'a>(&'a self, invocation: Invocation<'a>) -> Future<'a, ToolOutput> {
        Box::pin(async move {
            let result = async {
                let text = sanitise::inert(&question(&self.declared.parse(invocation.arguments)?.questions)?);
                let Some(ask) = &self.ask else { return Ok(ToolOutput::text(NOBODY)) };
                tokio::select! {
                    answer = ask(text) => Ok(ToolOutput::text(answer.unwrap_or_else(|| NOBODY.to_owned()))),
                    () = invocation.cancelled => Err(Error::Cancelled),
                }
            };
            finish(result.await, Some(self.limit))
        })
    }
}

/// The questions as a person reads them.
fn question(questions: &[Question]) -> Result<String> {
    if questions.is_empty() || questions.len() > QUESTIONS {
        return Err(Error::Value(format!("questions has {} entries; 1 to {QUESTIONS}", questions.len())));
    }
    let mut text = String::new();
    for (index, question) in questions.iter().enumerate() {
        if questions.len() > 1 {
            let _ = write!(text, "{}. ", index + 1);
        }
        let _ = writeln!(text, "{}", question.question.trim());
        for option in question.options.iter().flatten() {
            let _ = writeln!(text, "   - {}", option.trim());
        }
    }
    text.truncate(text.trim_end().len());
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_laid_out_for_a_person() {
        let one = Question { question: "Which? ".to_owned(), options: Some(vec!["a".to_owned(), "b".to_owned()]) };
        let two = Question { question: "Why?".to_owned(), options: None };
        assert_eq!(question(&[one, two]).unwrap(), "1. Which?\n   - a\n   - b\n2. Why?");
        assert_eq!(question(&[]).unwrap_err().code(), "tool.value");
    }
}
