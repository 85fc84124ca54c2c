//! What the model says, step by step.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use stele_core::Stop;

use crate::parsed::{Exchange, ParsedRequest, Role};

/// One answer of the model: its parts in their order, and why it stopped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Say {
    parts: Vec<Part>,
    stop: Option<Stop>,
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Visible text.
    Text(String),
    /// Reasoning; signed or encrypted as the wire does it, and refused later when it does not come back unchanged.
    Reasoning(String),
    /// A tool call.
    Call(SayCall),
}

/// A tool call as the model writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SayCall {
    /// The tool's name.
    pub name: String,
    /// The arguments: raw text, which should be a JSON object.
    pub arguments: String,
}

impl Say {
    /// A final text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().and_text(text)
    }

    /// One tool call.
    pub fn call(name: impl Into<String>, arguments: &Value) -> Self {
        Self::default().and_call(name, arguments)
    }

    /// One tool call whose arguments are sent as they are, valid JSON or not.
    pub fn raw_call(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self::default().and_raw_call(name, arguments)
    }

    /// An answer that begins with reasoning.
    pub fn reasoning(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::Reasoning(text.into())], stop: None }
    }

    /// Adds a text.
    #[must_use]
    pub fn and_text(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::Text(text.into()));
        self
    }

    /// Adds a call.
    #[must_use]
    pub fn and_call(self, name: impl Into<String>, arguments: &Value) -> Self {
        self.and_raw_call(name, arguments.to_string())
    }

    /// Adds a call whose arguments are sent as they are.
    #[must_use]
    pub fn and_raw_call(mut self, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.parts.push(Part::Call(SayCall { name: name.into(), arguments: arguments.into() }));
        self
    }

    /// Says why the model stopped, in place of the natural reason: calls when there are calls, otherwise the end.
    #[must_use]
    pub fn stopped(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// The parts, in their order.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Why the model stopped.
    #[must_use]
    pub fn stop(&self) -> Stop {
        match &self.stop {
            Some(stop) => stop.clone(),
            None if self.calls() > 0 => Stop::ToolCalls,
            None => Stop::End,
        }
    }

    /// How many calls it makes.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part, Part::Call(_))).count()
    }

    /// All texts, joined.
    fn whole_text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None })
            .collect()
    }
}

type React = Arc<dyn Fn(&[Exchange<'_>]) -> Vec<Say> + Send + Sync>;

/// What the model says in a whole session: a list of answers. An answer without calls is a final text and ends a
/// turn; the next answer is given to the next prompt.
#[derive(Clone, Default)]
pub struct Script {
    steps: Vec<Say>,
    react: Option<React>,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("steps", &self.steps).field("reacts", &self.react.is_some()).finish()
    }
}

impl From<Say> for Script {
    fn from(say: Say) -> Self {
        Self::new([say])
    }
}

impl Script {
    /// A script of these answers.
    pub fn new(steps: impl IntoIterator<Item = Say>) -> Self {
        Self { steps: steps.into_iter().collect(), react: None }
    }

    /// Adds answers that depend on results: `react` sees the calls and results of each step that was answered, in the
    /// order of the history, and what it returns is said before the rest of the script. It must be a pure function,
    /// since it is asked again at every request; what it adds is seen by it too once it was answered.
    #[must_use]
    pub fn reacting(mut self, react: impl Fn(&[Exchange<'_>]) -> Vec<Say> + Send + Sync + 'static) -> Self {
        self.react = Some(Arc::new(react));
        self
    }

    /// The number of answers that do not depend on results.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// True when it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(crate) fn step(&self, number: usize) -> Say {
        self.steps.get(number).cloned().unwrap_or_else(ended)
    }

    /// Which step the request asks for, counted from 0 with what was added, and what is said in it. Walks the
    /// history: a step with calls is over when as many results came back, a final text when it is there.
    #[must_use]
    pub fn position(&self, request: &ParsedRequest) -> (usize, Say) {
        let mut left: VecDeque<Cow<'_, Say>> = self.steps.iter().map(Cow::Borrowed).collect();
        let mut played = 0;
        let mut answered: Vec<Exchange<'_>> = Vec::new();
        let exchanges = request.exchanges();
        let mut exchanges = exchanges.iter();
        for message in &request.messages {
            match message.role {
                Role::Assistant => {
                    let said = message.calls.is_empty()
                        && left.front().is_some_and(|say| {
                            say.calls() == 0 && say.whole_text().trim() == message.texts.concat().trim()
                        });
                    if said {
                        left.pop_front();
                        played += 1;
                    }
                }
                Role::User => {
                    for _ in &message.results {
                        answered.extend(exchanges.next().copied());
                        let calls = left.front().map_or(0, |say| say.calls());
                        if calls == 0 {
                            answered.clear();
                        } else if answered.len() >= calls {
                            left.pop_front();
                            played += 1;
                            let added = self.react.as_ref().map(|react| react(&answered)).unwrap_or_default();
                            for say in added.into_iter().rev() {
                                left.push_front(Cow::Owned(say));
                            }
                            answered.clear();
                        }
                    }
                }
            }
        }
        (played, left.pop_front().map_or_else(ended, Cow::into_owned))
    }
}

/// What is said after the last step: a text, so that whoever goes on gets an answer.
fn ended() -> Say {
    Say::text("(the script has ended)")
}
