//! Events of the Messages API. Anthropic, streaming messages, 2026-11.

use serde::Deserialize;
use serde_json::value::RawValue;
use stele_core::{CacheTtl, Stop, Wire};

use super::draft::Draft;
use super::{error, usage};

#[derive(Debug, Default)]
pub(super) struct State {
    /// Open blocks: the vendor's index and what became of it. The last of an index counts.
    open: Vec<(u64, Open)>,
    usage: usage::Anthropic,
    /// How long all that the request marked is kept, where that is one time.
    life: Option<CacheTtl>,
    /// True once the message has begun.
    begun: bool,
    /// The raw accounts, in their order.
    raw: Vec<String>,
}

#[derive(Debug)]
enum Open {
    Text(usize),
    Thinking {
        at: usize,
        signature: String,
    },
    Call {
        at: usize,
        input: Option<String>,
    },
    /// A kind that this build does not know.
    Ignored,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content_block: Option<&'a RawValue>,
    #[serde(default)]
    delta: Option<DeltaFields>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DeltaFields {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct MessageFields<'a> {
    #[serde(borrow, default)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct BlockFields<'a> {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    signature: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

impl State {
    pub(super) fn new(life: Option<CacheTtl>) -> Self {
        Self { life, ..Self::default() }
    }

    pub(super) fn event(&mut self, name: Option<&str>, data: &str, draft: &mut Draft) -> serde_json::Result<()> {
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let event: Event<'_> = serde_json::from_str(data)?;
        let index = event.index.unwrap_or(0);
        match event.kind.as_deref().or(name).unwrap_or_default() {
            // A server may say again that it begins; another message after output would be taken for a part of this one.
            "message_start" if self.begun && !draft.blocks.is_empty() => {
                draft.fail(super::malformed(Wire::AnthropicMessages, "a second message in one answer"));
            }
            "message_start" => {
                self.begun = true;
                if let Some(message) = event.message {
                    let message: MessageFields<'_> = serde_json::from_str(message.get())?;
                    self.account(message.usage, draft);
                }
            }
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    let open = self.start(block.get(), draft)?;
                    self.open.push((index, open));
                }
            }
            "content_block_delta" => self.delta(index, event.delta.unwrap_or_default(), draft),
            "content_block_stop" => self.stop_block(index, draft),
            "message_delta" => {
                self.account(event.usage, draft);
                if let Some(reason) = event.delta.and_then(|delta| delta.stop_reason).filter(|word| !word.is_empty()) {
                    draft.stopped(stop(reason));
                }
            }
            "message_stop" => {
                draft.ended = true;
                draft.done = true;
            }
            _ => {}
        }
        if let Some(error) = event.error.filter(|error| error.get() != "null") {
            let reported = error::object(error.get()).or_else(|| error::parse(data)).unwrap_or_default();
            draft.fail(error::failure(Wire::AnthropicMessages, None, reported));
        }
        Ok(())
    }

    /// A message that came as one document.
    pub(super) fn document(&mut self, json: &str, draft: &mut Draft) -> serde_json::Result<()> {
        let message: MessageFields<'_> = serde_json::from_str(json)?;
        for (index, block) in message.content.unwrap_or_default().into_iter().enumerate() {
            let open = self.start(block.get(), draft)?;
            if let Open::Thinking { at, .. } = open {
                draft.native(at, block.get());
            } else {
                self.open.push((index as u64, open));
                self.stop_block(index as u64, draft);
            }
        }
        self.account(message.usage, draft);
        if let Some(reason) = message.stop_reason.filter(|word| !word.is_empty()) {
            draft.stopped(stop(reason));
        }
        Ok(())
    }

    /// The stream is over: blocks that were not closed keep what arrived.
    pub(super) fn close(&mut self, draft: &mut Draft) {
        while let Some((index, _)) = self.open.last() {
            let index = *index;
            self.stop_block(index, draft);
        }
    }

    fn start(&mut self, json: &str, draft: &mut Draft) -> serde_json::Result<Open> {
        let block: BlockFields<'_> = serde_json::from_str(json)?;
        Ok(match block.kind.as_deref().unwrap_or_default() {
            "text" => Open::Text(draft.text(None, &block.text.unwrap_or_default())),
            "thinking" => {
                let at = draft.reasoning(None, &block.thinking.unwrap_or_default());
                Open::Thinking { at, signature: block.signature.unwrap_or_default() }
            }
            "redacted_thinking" => {
                let at = draft.reasoning(None, "");
                draft.native(at, json);
                Open::Ignored
            }
            "tool_use" => {
                let at = draft.call(block.id.as_deref(), &block.name.unwrap_or_default());
                Open::Call { at, input: block.input.map(|input| input.get().to_owned()) }
            }
            _ => Open::Ignored,
        })
    }

    fn delta(&mut self, index: u64, delta: DeltaFields, draft: &mut Draft) {
        let open = self.open.iter_mut().rev().find(|(known, _)| *known == index).map(|(_, open)| open);
        match open {
            Some(Open::Text(at)) => {
                draft.text(Some(*at), &delta.text.unwrap_or_default());
            }
            Some(Open::Thinking { at, signature }) => {
                draft.reasoning(Some(*at), &delta.thinking.unwrap_or_default());
                signature.push_str(&delta.signature.unwrap_or_default());
            }
            Some(Open::Call { at, .. }) => draft.arguments(*at, &delta.partial_json.unwrap_or_default()),
            Some(Open::Ignored) => {}
            // Some compatible servers leave the opening out.
            None => {
                if let Some(text) = delta.text {
                    self.open.push((index, Open::Text(draft.text(None, &text))));
                }
            }
        }
    }

    fn stop_block(&mut self, index: u64, draft: &mut Draft) {
        let Some(found) = self.open.iter().rposition(|(known, _)| *known == index) else { return };
        match self.open.remove(found).1 {
            Open::Thinking { at, signature } => {
                if let Some(super::AnswerBlock::Reasoning { text, .. }) = draft.blocks.get(at)
                    && !(text.is_empty() && signature.is_empty())
                {
                    let native = thinking(text, &signature);
                    draft.native(at, native);
                }
            }
            Open::Call { at, input } => {
                // The input stands in the opening where it is not streamed.
                let streamed = matches!(draft.blocks.get(at),
                    Some(super::AnswerBlock::Call { arguments, .. }) if !arguments.is_empty());
                if let (false, Some(input)) = (streamed, input.filter(|input| input != "{}" && input != "null")) {
                    draft.arguments(at, &input);
                }
            }
            Open::Text(_) | Open::Ignored => {}
        }
    }

    fn account(&mut self, raw: Option<&RawValue>, draft: &mut Draft) {
        let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return };
        let later = serde_json::from_str::<usage::Anthropic>(raw.get()).unwrap_or_default();
        self.usage.assign(later);
        self.raw.push(raw.get().to_owned());
        let raw = match self.raw.as_slice() {
            [only] => only.clone(),
            [first, .., last] => format!("[{first},{last}]"),
            [] => return,
        };
        draft.account(usage::known(self.usage.buckets().written_for(self.life)), raw, later.counts_output());
    }
}

/// A thinking block as it goes back: what was streamed, put together again. Servers that do not sign get it without a
/// signature.
fn thinking(text: &str, signature: &str) -> String {
    let string = |text: &str| serde_json::to_string(text).unwrap_or_default();
    if signature.is_empty() {
        format!(r#"{{"type":"thinking","thinking":{}}}"#, string(text))
    } else {
        format!(r#"{{"type":"thinking","thinking":{},"signature":{}}}"#, string(text), string(signature))
    }
}

fn stop(reason: String) -> Stop {
    match reason.as_str() {
        "end_turn" => Stop::End,
        "tool_use" => Stop::ToolCalls,
        // The window filled up while the model wrote: like a maximum, the answer is cut.
        "max_tokens" | "model_context_window_exceeded" => Stop::MaxOutput,
        "stop_sequence" => Stop::StopSequence,
        "refusal" => Stop::Refusal,
        _ => Stop::Other(reason),
    }
}
