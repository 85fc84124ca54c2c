//! Events of the Responses API. OpenAI, streaming responses, 2026-11.
//!
//! An item is shown as it streams and taken as it stands when it is done.

use serde::Deserialize;
use serde_json::value::RawValue;
use stele_core::{Stop, Wire};

use super::draft::Draft;
use super::{AnswerBlock, error, usage};

#[derive(Debug, Default)]
pub(super) struct State {
    items: Vec<Item>,
    refused: bool,
}

/// One output item.
#[derive(Debug)]
struct Item {
    index: u64,
    /// Its own id and that of its call, as far as it has them.
    ids: Ids,
    at: usize,
    /// True when its final form arrived.
    done: bool,
}

type Ids = (Option<String>, Option<String>);

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(default)]
    delta: Option<String>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(default)]
    status: Option<String>,
    #[serde(borrow, default)]
    output: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(default)]
    incomplete_details: Option<Incomplete>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Incomplete {
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize)]
struct ItemFields<'a> {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    call_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
    #[serde(default)]
    content: Option<Vec<Part>>,
    #[serde(default)]
    summary: Option<Vec<Part>>,
    #[serde(default)]
    encrypted_content: Option<String>,
    #[serde(borrow, default)]
    phase: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

impl State {
    pub(super) fn event(&mut self, name: Option<&str>, data: &str, draft: &mut Draft) -> serde_json::Result<()> {
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let event: Event<'_> = serde_json::from_str(data)?;
        let kind = event.kind.as_deref().or(name).unwrap_or_default();
        let more = event.delta.as_deref().unwrap_or_default();
        match kind {
            "response.output_item.added" | "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.item(event.output_index, item, kind.ends_with("done"), draft)?;
                }
            }
            "response.output_text.delta" => self.stream(event.output_index, Stream::Text, more, draft),
            "response.refusal.delta" => {
                self.refused = true;
                self.stream(event.output_index, Stream::Text, more, draft);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.stream(event.output_index, Stream::Reasoning, more, draft);
            }
            "response.function_call_arguments.delta" => self.stream(event.output_index, Stream::Arguments, more, draft),
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.done"
            | "response.cancelled" => {
                if let Some(response) = event.response {
                    self.response(response.get(), kind.trim_start_matches("response."), draft)?;
                }
                draft.ended = true;
                draft.done = true;
            }
            _ if kind == "error" || event.error.is_some_and(|error| error.get() != "null") => {
                let nested = event.error.filter(|error| error.get().starts_with('{'));
                let reported = error::object(nested.map_or(data, RawValue::get)).unwrap_or_default();
                draft.fail(error::failure(Wire::OpenaiResponses, None, reported));
            }
            _ => {}
        }
        Ok(())
    }

    /// A response that came as one document.
    pub(super) fn document(&mut self, json: &str, draft: &mut Draft) -> serde_json::Result<()> {
        self.response(json, "", draft)
    }

    pub(super) fn close(&mut self, draft: &mut Draft) {
        if self.refused && draft.ended {
            draft.stopped(Stop::Refusal);
        }
    }

    fn response(&mut self, json: &str, event: &str, draft: &mut Draft) -> serde_json::Result<()> {
        let response: Response<'_> = serde_json::from_str(json)?;
        // What was not streamed stands here.
        for (index, item) in response.output.unwrap_or_default().into_iter().enumerate() {
            let index = index as u64;
            if !self.items.iter().any(|known| known.index == index && known.done) {
                self.item(Some(index), item, true, draft)?;
            }
        }
        if let Some(raw) = response.usage.filter(|raw| raw.get() != "null") {
            draft.account(usage::responses(raw.get()), raw.get(), true);
        }
        let status = response.status.unwrap_or_else(|| event.to_owned());
        match status.as_str() {
            "completed" | "done" => draft.stopped(Stop::End),
            "incomplete" => {
                let reason = response.incomplete_details.and_then(|details| details.reason);
                draft.stopped(match reason.as_deref() {
                    Some("max_output_tokens") | None => Stop::MaxOutput,
                    Some("content_filter") => Stop::ContentFilter,
                    Some(other) => Stop::Other(other.to_owned()),
                });
            }
            "failed" | "cancelled" => {
                let reported = response.error.and_then(|error| error::object(error.get())).unwrap_or_default();
                draft.fail(error::failure(Wire::OpenaiResponses, None, reported));
            }
            _ => {}
        }
        Ok(())
    }

    /// Opens an item, or takes its final form.
    fn item(&mut self, index: Option<u64>, raw: &RawValue, done: bool, draft: &mut Draft) -> serde_json::Result<()> {
        let index = index.unwrap_or(self.items.len() as u64);
        let fields: ItemFields<'_> = serde_json::from_str(raw.get())?;
        let ids = (fields.id, fields.call_id);
        // Some servers give every item the same index; one that is done comes again only where its ids say so.
        let again = |item: &Item| !item.done || ids != Ids::default() && item.ids == ids;
        let known = self.items.iter().position(|item| item.index == index && again(item));
        let opened = known.map(|known| self.items[known].at);
        let at = match fields.kind.as_deref().unwrap_or_default() {
            "message" => {
                let at = opened.unwrap_or_else(|| draft.text(None, ""));
                if done {
                    let parts = fields.content.unwrap_or_default();
                    self.refused |= parts.iter().any(|part| part.refusal.is_some());
                    let text: String =
                        parts.into_iter().filter_map(|part| part.text.or(part.refusal)).collect::<Vec<_>>().concat();
                    complete(at, &text, draft);
                    // What the item says about its place in the answer has to go back; the rest is known.
                    if fields.phase.is_some_and(|phase| phase.get() != "null") {
                        draft.native(at, raw.get());
                    }
                }
                at
            }
            "reasoning" => {
                let at = opened.unwrap_or_else(|| draft.reasoning(None, ""));
                if done {
                    let parts =
                        fields.summary.unwrap_or_default().into_iter().chain(fields.content.unwrap_or_default());
                    let text = parts.filter_map(|part| part.text).collect::<Vec<_>>().join("\n\n");
                    complete(at, &text, draft);
                    // Nothing is stored at the provider, so an item without its content cannot be found again.
                    if fields.encrypted_content.is_some_and(|content| !content.is_empty()) {
                        draft.native(at, raw.get());
                    }
                }
                at
            }
            "function_call" => {
                let name = fields.name.unwrap_or_default();
                let at = opened.unwrap_or_else(|| draft.call(ids.1.as_deref(), &name));
                draft.name_call(at, &name);
                if done {
                    complete(at, &fields.arguments.unwrap_or_default(), draft);
                }
                at
            }
            _ => return Ok(()),
        };
        match known {
            Some(known) => self.items[known].done |= done,
            None => self.items.push(Item { index, ids, at, done }),
        }
        Ok(())
    }

    fn stream(&mut self, index: Option<u64>, stream: Stream, more: &str, draft: &mut Draft) {
        let open = match index {
            Some(index) => self.items.iter().rposition(|item| item.index == index),
            None => self.items.len().checked_sub(1),
        };
        let at = open.map(|open| self.items[open].at);
        match (stream, at) {
            (Stream::Text, Some(at)) => {
                draft.text(Some(at), more);
            }
            (Stream::Reasoning, Some(at)) => {
                draft.reasoning(Some(at), more);
            }
            (Stream::Arguments, Some(at)) => draft.arguments(at, more),
            // The opening is missing: only text tells by itself what it is.
            (Stream::Text, None) => {
                let at = draft.text(None, more);
                self.items.push(Item { index: index.unwrap_or(0), ids: Ids::default(), at, done: false });
            }
            (Stream::Reasoning | Stream::Arguments, None) => {}
        }
    }
}

#[derive(Clone, Copy)]
enum Stream {
    Text,
    Reasoning,
    Arguments,
}

/// Takes an item's final text: what was not streamed is shown now, and the final form counts.
fn complete(at: usize, whole: &str, draft: &mut Draft) {
    let unseen = match draft.blocks.get(at) {
        Some(AnswerBlock::Text { text, .. } | AnswerBlock::Reasoning { text, .. }) => text.is_empty(),
        Some(AnswerBlock::Call { arguments, .. }) => arguments.is_empty(),
        None => return,
    };
    if unseen {
        match draft.blocks.get(at) {
            Some(AnswerBlock::Text { .. }) => {
                draft.text(Some(at), whole);
            }
            Some(AnswerBlock::Reasoning { .. }) => {
                draft.reasoning(Some(at), whole);
            }
            _ => draft.arguments(at, whole),
        }
    } else if !whole.is_empty() {
        draft.replace(at, whole);
    }
}
