//! Answers: their text while it arrives, and what the log holds of them in the end.

use std::sync::Arc;

use stele_core::{
    Action, AssistantMessage, Block, CallId, Failure, RequestFailed, Text, ToolCalled, Usage, partial_answer,
};
use stele_provider::{Answer, AnswerBlock, Delta, without_call_id};

use super::Driver;
use crate::{Notice, Result};

/// The text of an answer that is arriving.
#[derive(Default)]
pub(super) struct Partial {
    step: u64,
    attempt: u32,
    text: String,
    /// Bytes of the text that are in the store.
    saved: usize,
    /// What the provider has reported of it.
    usage: Option<Usage>,
}

impl Partial {
    pub(super) fn of(step: u64, attempt: u32) -> Self {
        Self { step, attempt, ..Self::default() }
    }

    fn is_of(&self, step: u64, attempt: u32) -> bool {
        (self.step, self.attempt) == (step, attempt)
    }

    /// True when a crash would lose some of it.
    pub(super) fn is_unsaved(&self) -> bool {
        self.saved < self.text.len()
    }
}

impl Driver {
    /// Takes a piece of an answer.
    pub(super) fn streamed(&mut self, step: u64, attempt: u32, delta: Delta) {
        if !self.partial.is_of(step, attempt) {
            self.partial = Partial::of(step, attempt);
        }
        match &delta {
            Delta::Text(text) => self.partial.text.push_str(text),
            Delta::Usage(usage) => self.partial.usage = Some(*usage),
            Delta::Reasoning(_) | Delta::CallStarted { .. } | Delta::CallArguments { .. } => {}
        }
        self.notify(Notice::Delta { step, attempt, delta: Arc::new(delta) });
    }

    pub(super) fn save_partial(&mut self) -> Result<()> {
        let Partial { step, attempt, text, .. } = &self.partial;
        self.writer.put_partial(&stele_store::Partial { step: *step, attempt: *attempt, text: text.clone() })?;
        self.partial.saved = self.partial.text.len();
        Ok(())
    }

    /// Takes the end of an attempt, unless it is no longer waited for.
    pub(super) fn received(&mut self, step: u64, attempt: u32, outcome: Result<Answer, Failure>) -> Result<()> {
        let key = Action::Send { step, attempt, not_before: None }.key();
        if self.in_flight.remove(&key).is_none() {
            return Ok(());
        }
        if std::mem::take(&mut self.partial).saved > 0 {
            self.writer.clear_partial()?;
        }
        match outcome {
            Ok(answer) => self.answered(attempt, answer),
            Err(failure) => self.append(RequestFailed { attempt, failure }),
        }
    }

    /// Logs an answer and the calls it makes.
    fn answered(&mut self, attempt: u32, answer: Answer) -> Result<()> {
        let Some(producer) = self.state.producer() else { return Ok(()) };
        self.learn_from(&answer);
        let mut next = self.state.next_call();
        let mut called: Vec<ToolCalled> = Vec::new();
        let native = |raw: Option<String>| raw.map(Text::from);
        let content = answer
            .blocks
            .into_iter()
            .map(|block| match block {
                AnswerBlock::Text { text, native: raw } => Block::Text { text: text.into(), native: native(raw) },
                AnswerBlock::Reasoning { text, native: raw } => {
                    Block::Reasoning { text: text.into(), native: native(raw) }
                }
                AnswerBlock::Call { vendor_id, name, arguments, native: raw } => {
                    let call = next;
                    next = CallId(call.0 + 1);
                    let vendor_id = vendor_id.filter(|id| {
                        let here = called.iter().any(|other| other.vendor_id.as_ref() == Some(id));
                        // One that looks like ours could be taken for another call.
                        let ours = id.parse::<CallId>().is_ok();
                        !id.is_empty() && !ours && !here && !self.state.knows_vendor_id(id)
                    });
                    // Call and result go back under one id.
                    let raw = if vendor_id.is_some() { raw } else { raw.map(|raw| without_call_id(&raw)) };
                    called.push(ToolCalled { call, vendor_id, name, arguments: arguments.into() });
                    Block::Call { call, native: native(raw) }
                }
            })
            .collect();
        self.append(AssistantMessage {
            attempt,
            producer,
            content,
            stop: answer.stop,
            usage: answer.usage,
            usage_raw: answer.usage_raw.map(Text::from),
            interrupted: false,
        })?;
        for call in called {
            self.append(call)?;
        }
        Ok(())
    }

    /// Closes a step whose answer will not come: what had arrived is the answer.
    pub(super) fn interrupt(&mut self, step: u64, attempt: u32) -> Result<()> {
        self.in_flight.remove(&Action::Send { step, attempt, not_before: None }.key());
        let (text, usage) = if self.partial.is_of(step, attempt) {
            let Partial { text, usage, .. } = std::mem::take(&mut self.partial);
            (text, usage)
        } else {
            let saved = self.agent.store().partial(&self.session)?;
            let saved = saved.filter(|saved| (saved.step, saved.attempt) == (step, attempt));
            (saved.map(|saved| saved.text).unwrap_or_default(), None)
        };
        let event = partial_answer(&self.state, attempt, &text, usage);
        self.append(event)
    }
}
