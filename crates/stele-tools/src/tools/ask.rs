//! `ask`: questions to the person.

use std::fmt::Write as _;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use stele_core::{CallCard, CardKind, Effects, Future, Invocation, Subject, Tool, ToolError, ToolOutput, ToolSpec};

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

    fn run<'a>(&'a self, invocation: Invocation<'a>) -> Future<'a, ToolOutput> {
        Box::pin(async move {
            let result = async {
                let questions = self.declared.parse(invocation.arguments)?.questions;
                check(&questions)?;
                let Some(ask) = &self.ask else { return Ok(ToolOutput::text(NOBODY)) };
                tokio::select! {
                    text = converse(ask, &questions) => Ok(ToolOutput::text(text)),
                    () = invocation.cancelled => Err(Error::Cancelled),
                }
            };
            finish(result.await, Some(self.limit))
        })
    }
}

fn check(questions: &[Question]) -> Result<()> {
    if questions.is_empty() || questions.len() > QUESTIONS {
        return Err(Error::Value(format!("questions has {} entries; 1 to {QUESTIONS}", questions.len())));
    }
    Ok(())
}

/// Asks one question after the other, until somebody leaves. Several answers are numbered as the questions.
async fn converse(ask: &crate::Ask, questions: &[Question]) -> String {
    let mut answers = Vec::new();
    for (at, question) in questions.iter().enumerate() {
        let Some(answer) = ask(sanitise::inert(&shown(question, at, questions.len()))).await else { break };
        answers.push(question.meant(answer));
    }
    match answers.as_slice() {
        [] => NOBODY.to_owned(),
        [only] if questions.len() == 1 => only.clone(),
        several => {
            let mut text = String::new();
            for (at, answer) in several.iter().enumerate() {
                let _ = writeln!(text, "{}. {answer}", at + 1);
            }
            if several.len() < questions.len() {
                let _ = writeln!(text, "The rest was not answered. {NOBODY}");
            }
            text.trim_end().to_owned()
        }
    }
}

/// A question as a person reads it, its options numbered.
fn shown(question: &Question, at: usize, of: usize) -> String {
    let mut text = if of > 1 { format!("({} of {of}) ", at + 1) } else { String::new() };
    text.push_str(question.question.trim());
    for (number, option) in question.options.iter().flatten().enumerate() {
        let _ = write!(text, "\n   {}. {}", number + 1, option.trim());
    }
    text
}

impl Question {
    /// The answer; the number of an option stands for it.
    fn meant(&self, answer: String) -> String {
        let number = answer.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let option = number.and_then(|number| self.options.as_ref()?.get(number));
        option.map_or(answer, |option| option.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test]
    async fn questions_are_put_one_by_one_and_a_number_is_an_option() {
        let one = Question { question: "Which? ".to_owned(), options: Some(vec!["a".to_owned(), "b".to_owned()]) };
        let two = Question { question: "Why?".to_owned(), options: None };
        let heard = Arc::new(Mutex::new(Vec::new()));
        let answers = Mutex::new(vec![None, Some("2".to_owned()), Some("2".to_owned())]);
        let ask: crate::Ask = {
            let heard = Arc::clone(&heard);
            Arc::new(move |text| {
                heard.lock().unwrap().push(text);
                let answer = answers.lock().unwrap().pop().flatten();
                Box::pin(std::future::ready(answer))
            })
        };
        let questions = [one, two];
        assert_eq!(converse(&ask, &questions).await, "1. b\n2. 2");
        assert_eq!(*heard.lock().unwrap(), ["(1 of 2) Which?\n   1. a\n   2. b", "(2 of 2) Why?"]);
        assert_eq!(converse(&ask, &questions[..1]).await, NOBODY);
        assert_eq!(check(&[]).unwrap_err().code(), "tool.value");
    }
}
