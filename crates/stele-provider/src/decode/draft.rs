//! An answer while it is put together, and the rules that hold for every wire.

use stele_core::{Failure, FailureCode, Stop, Usage};

use super::{Answer, AnswerBlock, Delta};

/// Most bytes of one answer that are kept.
const ANSWER_MAX: usize = 32 << 20;

#[derive(Debug, Default)]
pub(super) struct Draft {
    pub blocks: Vec<AnswerBlock>,
    /// What was not handed out yet.
    pub deltas: Vec<Delta>,
    /// True once any output arrived.
    output: bool,
    /// Bytes of text, reasoning and arguments so far.
    size: usize,
    stop: Option<Stop>,
    /// True once the provider said how the answer ended.
    pub ended: bool,
    /// True once nothing more is read.
    pub done: bool,
    failure: Option<Failure>,
    usage: Option<Usage>,
    usage_raw: Option<String>,
    /// What was handed out of it.
    told: Option<Usage>,
    /// True when output arrived after its tokens were last counted.
    uncounted: bool,
}

impl Draft {
    /// Appends text to a block, or opens one; gives the block.
    pub(super) fn text(&mut self, at: Option<usize>, more: &str) -> usize {
        let at = at.unwrap_or_else(|| self.open(AnswerBlock::Text { text: String::new(), native: None }));
        if let (Some(AnswerBlock::Text { text, .. }), false) = (self.blocks.get_mut(at), more.is_empty()) {
            let more = clean(more);
            text.push_str(&more);
            self.measure(more.len());
            self.show(Delta::Text(more));
        }
        at
    }

    /// Appends reasoning to a block, or opens one; gives the block.
    pub(super) fn reasoning(&mut self, at: Option<usize>, more: &str) -> usize {
        let at = at.unwrap_or_else(|| self.open(AnswerBlock::Reasoning { text: String::new(), native: None }));
        if let (Some(AnswerBlock::Reasoning { text, .. }), false) = (self.blocks.get_mut(at), more.is_empty()) {
            let more = clean(more);
            text.push_str(&more);
            self.measure(more.len());
            self.show(Delta::Reasoning(more));
        }
        at
    }

    /// Opens a call; gives the block. An empty id is no id, nor is one that no text can hold.
    pub(super) fn call(&mut self, id: Option<&str>, name: &str) -> usize {
        let vendor_id = id.filter(|id| !id.is_empty() && !id.contains('\0')).map(str::to_owned);
        let at =
            self.open(AnswerBlock::Call { vendor_id, name: String::new(), arguments: String::new(), native: None });
        self.name_call(at, name);
        at
    }

    /// Gives a call its name, if it has none.
    pub(super) fn name_call(&mut self, at: usize, given: &str) {
        let call = self.ordinal(at);
        if let (Some(AnswerBlock::Call { name, .. }), false) = (self.blocks.get_mut(at), given.is_empty())
            && name.is_empty()
        {
            *name = clean(given);
            let name = name.clone();
            self.show(Delta::CallStarted { call, name });
        }
    }

    /// Appends to a call's raw arguments.
    pub(super) fn arguments(&mut self, at: usize, more: &str) {
        let call = self.ordinal(at);
        if let (Some(AnswerBlock::Call { arguments, .. }), false) = (self.blocks.get_mut(at), more.is_empty()) {
            let json = clean(more);
            arguments.push_str(&json);
            self.measure(json.len());
            self.show(Delta::CallArguments { call, json });
        }
    }

    /// Takes a block's final text, where it differs from what was streamed.
    pub(super) fn replace(&mut self, at: usize, whole: &str) {
        if let Some(
            AnswerBlock::Text { text: content, .. }
            | AnswerBlock::Reasoning { text: content, .. }
            | AnswerBlock::Call { arguments: content, .. },
        ) = self.blocks.get_mut(at)
        {
            *content = clean(whole);
        }
    }

    /// An answer that no later request could carry is not kept.
    fn measure(&mut self, more: usize) {
        self.size += more;
        if self.size > ANSWER_MAX {
            let message = format!("the answer is longer than {} MiB and was not kept; ask for less", ANSWER_MAX >> 20);
            self.fail(Failure::new(FailureCode::TooLarge, message).taken());
        }
    }

    /// Notes a block's raw JSON.
    pub(super) fn native(&mut self, at: usize, raw: impl Into<String>) {
        if let Some(
            AnswerBlock::Text { native, .. } | AnswerBlock::Reasoning { native, .. } | AnswerBlock::Call { native, .. },
        ) = self.blocks.get_mut(at)
        {
            *native = Some(raw.into());
            self.output = true;
            self.uncounted |= !self.ended;
        }
    }

    /// Notes what the provider reports so far; `output` says that this report counts the output.
    pub(super) fn account(&mut self, usage: Option<Usage>, raw: impl Into<String>, output: bool) {
        self.usage = usage;
        self.usage_raw = Some(raw.into());
        self.uncounted &= !output;
        let input = self.usage.map(|usage| Usage { output: None, reasoning: None, ..usage.plausible() });
        if input != self.told {
            self.told = input;
            self.deltas.extend(input.filter(|usage| !usage.is_unknown()).map(Delta::Usage));
        }
    }

    /// What the answer used. A count of the output that was made before its end says nothing of the whole.
    fn used(&self) -> Option<Usage> {
        let whole = self.ended && !self.uncounted;
        let usage = self.usage?.plausible();
        let usage = if whole { usage } else { Usage { output: None, reasoning: None, ..usage } };
        (!usage.is_unknown()).then_some(usage)
    }

    /// Notes why the model stopped: the last reason wins, and what the answer holds corrects it.
    pub(super) fn stopped(&mut self, stop: Stop) {
        self.ended = true;
        self.stop = Some(stop);
    }

    /// The answer failed: nothing more is read.
    pub(super) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
        self.done = true;
    }

    /// The failure with what had arrived before it.
    pub(super) fn noted(&self, failure: Failure) -> Failure {
        Failure { output: failure.output || self.output, usage: failure.usage.or_else(|| self.used()), ..failure }
    }

    /// The answer, or why there is none.
    pub(super) fn finish(mut self) -> Result<Answer, Failure> {
        if let Some(failure) = self.failure.take() {
            return Err(self.noted(failure));
        }
        if !self.ended {
            let message = "the connection closed before the provider said that the answer was over";
            return Err(self.noted(Failure::new(FailureCode::Incomplete, message).taken()));
        }
        let mut stop = self.stop.take().unwrap_or(Stop::End);
        let cut = stop == Stop::MaxOutput;
        self.blocks.retain(|block| match block {
            AnswerBlock::Text { text, native } | AnswerBlock::Reasoning { text, native } => {
                !text.is_empty() || native.is_some()
            }
            // A call that the end of the output cut off must not run with what had arrived of it.
            AnswerBlock::Call { arguments, .. } => !cut || is_object(arguments),
        });
        let (mut calls, mut texts) = (0_usize, 0_usize);
        for block in &mut self.blocks {
            match block {
                AnswerBlock::Text { .. } => texts += 1,
                AnswerBlock::Reasoning { .. } => {}
                AnswerBlock::Call { name, .. } if name.is_empty() => {
                    let message = "the model called a tool without naming it";
                    return Err(self.noted(Failure::new(FailureCode::Malformed, message).taken()));
                }
                AnswerBlock::Call { arguments, .. } => {
                    calls += 1;
                    if arguments.trim().is_empty() {
                        "{}".clone_into(arguments);
                    }
                }
            }
        }
        match stop {
            Stop::End if calls > 0 => stop = Stop::ToolCalls,
            Stop::ToolCalls if calls == 0 => stop = Stop::End,
            _ => {}
        }
        let explained = matches!(stop, Stop::MaxOutput | Stop::Refusal | Stop::ContentFilter);
        if calls == 0 && texts == 0 && !explained {
            let message = "the model answered with neither text nor a call";
            return Err(self.noted(Failure::new(FailureCode::Empty, message).taken()));
        }
        Ok(Answer { usage: self.used(), blocks: self.blocks, stop, usage_raw: self.usage_raw })
    }

    fn open(&mut self, block: AnswerBlock) -> usize {
        self.blocks.push(block);
        self.blocks.len() - 1
    }

    fn show(&mut self, delta: Delta) {
        self.output = true;
        self.uncounted = true;
        self.deltas.push(delta);
    }

    /// Which call a block is, from 0.
    fn ordinal(&self, at: usize) -> usize {
        self.blocks.iter().take(at).filter(|block| matches!(block, AnswerBlock::Call { .. })).count()
    }
}

/// NUL has no place in text.
fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// True when arguments are a whole JSON object.
pub(super) fn is_object(arguments: &str) -> bool {
    arguments.trim_start().starts_with('{')
        && serde_json::from_str::<serde::de::IgnoredAny>(&stele_core::repair_surrogates(arguments)).is_ok()
}
