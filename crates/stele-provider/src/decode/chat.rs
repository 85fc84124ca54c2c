//! Chunks of Chat Completions, as OpenAI documents them (2026-11) and as compatible servers send them.

use serde::Deserialize;
use serde_json::value::RawValue;
use stele_core::{Stop, Wire};

use super::draft::{Draft, is_object};
use super::{AnswerBlock, error, usage};

#[derive(Debug, Default)]
pub(super) struct State {
    reasoning: Option<usize>,
    text: Option<usize>,
    calls: Vec<Call>,
    usage: Option<String>,
    timings: Option<String>,
}

#[derive(Debug)]
struct Call {
    index: Option<u64>,
    id: Option<String>,
    at: usize,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    /// Groq reports here.
    #[serde(borrow, default)]
    x_groq: Option<Account<'a>>,
    /// llama.cpp's own account.
    #[serde(borrow, default)]
    timings: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Account<'a> {
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Option<u64>,
    /// A chunk of a stream.
    #[serde(borrow, default)]
    delta: Option<Fields<'a>>,
    /// A document that came whole.
    #[serde(borrow, default)]
    message: Option<Fields<'a>>,
    #[serde(default)]
    finish_reason: Option<String>,
    /// Moonshot reports here.
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    /// OpenRouter reports a failure of its upstream here.
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning: Option<&'a RawValue>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<CallFields<'a>>>,
}

#[derive(Deserialize)]
struct CallFields<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(default)]
    name: Option<String>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// A part of content that is a list (Mistral, 2026-11).
#[derive(Deserialize)]
struct Part<'a> {
    #[serde(default)]
    text: Option<String>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
}

impl State {
    pub(super) fn event(&mut self, data: &str, draft: &mut Draft) -> serde_json::Result<()> {
        if data.trim() == "[DONE]" {
            draft.ended = true;
            draft.done = true;
            return Ok(());
        }
        let chunk: Chunk<'_> = serde_json::from_str(data)?;
        let mut account = chunk.x_groq.and_then(|groq| groq.usage);
        let mut failed = chunk.error;
        for choice in chunk.choices.unwrap_or_default() {
            // Only one choice was asked for; another one is none of ours.
            if choice.index.unwrap_or(0) != 0 {
                continue;
            }
            account = choice.usage.or(account);
            failed = choice.error.or(failed);
            if let Some(fields) = choice.delta.or(choice.message) {
                self.fields(fields, draft);
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                draft.stopped(stop(reason));
            }
        }
        let counted = |raw: &&RawValue| raw.get() != "null";
        let usage = chunk.usage.filter(counted).or(account.filter(counted)).map(|raw| raw.get().to_owned());
        let timings = chunk.timings.filter(counted).map(|raw| raw.get().to_owned());
        if usage.is_some() || timings.is_some() {
            self.usage = usage.or_else(|| self.usage.take());
            self.timings = timings.or_else(|| self.timings.take());
            let told = usage::chat(self.usage.as_deref(), self.timings.as_deref());
            let raw = self.usage.as_ref().or(self.timings.as_ref()).cloned().unwrap_or_default();
            draft.account(told, raw, true);
        }
        if let Some(error) = failed.filter(counted) {
            let reported = error::object(error.get()).or_else(|| error::parse(data)).unwrap_or_default();
            draft.fail(error::failure(Wire::OpenaiChat, None, reported));
        }
        Ok(())
    }

    /// Puts the blocks into the order in which they go back: reasoning, text, calls.
    pub(super) fn close(&mut self, draft: &mut Draft) {
        draft.blocks.sort_by_key(|block| match block {
            AnswerBlock::Reasoning { .. } => 0,
            AnswerBlock::Text { .. } => 1,
            AnswerBlock::Call { .. } => 2,
        });
    }

    fn fields(&mut self, fields: Fields<'_>, draft: &mut Draft) {
        // Where both are there they say the same.
        let reasoning = [fields.reasoning_content, fields.reasoning].into_iter().flatten().map(string).next();
        if let Some(more) = reasoning.filter(|more| !more.is_empty()) {
            self.reasoning = Some(draft.reasoning(self.reasoning, &more));
        }
        if let Some(content) = fields.content {
            let (thinking, text) = content_of(content);
            if !thinking.is_empty() {
                self.reasoning = Some(draft.reasoning(self.reasoning, &thinking));
            }
            if !text.is_empty() {
                self.text = Some(draft.text(self.text, &text));
            }
        }
        if let Some(refusal) = fields.refusal.filter(|refusal| !refusal.is_empty()) {
            self.text = Some(draft.text(self.text, &refusal));
        }
        for call in fields.tool_calls.unwrap_or_default() {
            self.call(call, draft);
        }
    }

    /// Finds the call that a piece belongs to, or opens one.
    fn call(&mut self, piece: CallFields<'_>, draft: &mut Draft) {
        let id = piece.id.filter(|id| !id.is_empty());
        let (name, arguments) = match piece.function {
            Some(function) => (function.name.unwrap_or_default(), function.arguments.map(string).unwrap_or_default()),
            None => (String::new(), String::new()),
        };
        let known = match (&id, piece.index) {
            (Some(id), _)
                if self.calls.iter().any(|call| call.id.as_ref() == Some(id) && call.index == piece.index) =>
            {
                self.calls.iter().rposition(|call| call.id.as_ref() == Some(id) && call.index == piece.index)
            }
            // A new id opens a new call, also on an index that is taken: some servers number every call 0.
            (Some(_), index) => {
                self.calls.iter().rposition(|call| call.id.is_none() && index.is_some() && call.index == index)
            }
            (None, Some(_)) => self.calls.iter().rposition(|call| call.index == piece.index),
            (None, None) => self.calls.len().checked_sub(1),
        };
        // Without an id, a name after whole arguments can only be the next call.
        let known = known.filter(|&known| {
            id.is_some()
                || name.is_empty()
                || !matches!(draft.blocks.get(self.calls[known].at),
                Some(AnswerBlock::Call { arguments, .. }) if is_object(arguments))
        });
        let known = known.unwrap_or_else(|| {
            let at = draft.call(id.as_deref(), &name);
            self.calls.push(Call { index: piece.index, id: id.clone(), at });
            self.calls.len() - 1
        });
        let call = &mut self.calls[known];
        if let (None, Some(id)) = (&call.id, &id) {
            if let Some(AnswerBlock::Call { vendor_id, .. }) = draft.blocks.get_mut(call.at) {
                *vendor_id = Some(id.clone());
            }
            call.id = Some(id.clone());
        }
        draft.name_call(call.at, &name);
        draft.arguments(call.at, &arguments);
    }
}

/// A JSON string's content; any other value as it is written (some servers send arguments as an object), `null` as
/// nothing.
fn string(raw: &RawValue) -> String {
    match raw.get() {
        "null" => String::new(),
        json => serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned()),
    }
}

/// Reasoning and text of a content, which is a string or a list of parts.
fn content_of(raw: &RawValue) -> (String, String) {
    if !raw.get().starts_with('[') {
        return (String::new(), if raw.get().starts_with('"') { string(raw) } else { String::new() });
    }
    let parts: Vec<Part<'_>> = serde_json::from_str(raw.get()).unwrap_or_default();
    let mut content = (String::new(), String::new());
    for part in parts {
        if let Some(thinking) = part.thinking {
            content.0.push_str(&content_of(thinking).1);
        }
        content.1.push_str(&part.text.unwrap_or_default());
    }
    content
}

fn stop(reason: String) -> Stop {
    match reason.as_str() {
        "stop" => Stop::End,
        "length" => Stop::MaxOutput,
        "tool_calls" | "function_call" => Stop::ToolCalls,
        "content_filter" => Stop::ContentFilter,
        _ => Stop::Other(reason),
    }
}
