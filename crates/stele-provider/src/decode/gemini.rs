//! Chunks of `streamGenerateContent`. Gemini API, generate content and thought signatures, 2026-11.
//!
//! Signed parts go back exactly as they came: a part with a signature is never joined with its neighbours.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use stele_core::{Failure, FailureCode, Stop, Wire};

use super::draft::Draft;
use super::{error, usage};

#[derive(Debug, Default)]
pub(super) struct State {
    /// The block that unsigned text goes on with.
    last: Last,
    usage: usage::Gemini,
}

#[derive(Clone, Copy, Debug, Default)]
enum Last {
    #[default]
    Closed,
    Text(usize),
    Thought(usize),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow, default)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow, default)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(default)]
    prompt_feedback: Option<Feedback>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    #[serde(default)]
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(default)]
    thought_signature: Option<String>,
    #[serde(borrow, default)]
    function_call: Option<FunctionCall<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

impl State {
    pub(super) fn event(&mut self, data: &str, draft: &mut Draft) -> serde_json::Result<()> {
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let chunk: Chunk<'_> = serde_json::from_str(data)?;
        let account = chunk.usage_metadata.filter(|raw| raw.get() != "null");
        let content = self.content(chunk, account.is_some(), data, draft);
        if let Some(raw) = account {
            let later = serde_json::from_str::<usage::Gemini>(raw.get()).unwrap_or_default();
            self.usage.assign(later);
            draft.account(usage::known(self.usage.buckets()), raw.get(), later.counts_output());
        }
        content
    }

    /// Takes what a chunk says of the answer; `counted` says that it holds an account too.
    fn content(&mut self, chunk: Chunk<'_>, counted: bool, data: &str, draft: &mut Draft) -> serde_json::Result<()> {
        if let Some(error) = chunk.error.filter(|error| error.get() != "null") {
            let reported = error::object(error.get()).or_else(|| error::parse(data)).unwrap_or_default();
            draft.fail(error::failure(Wire::Gemini, None, reported));
            return Ok(());
        }
        if chunk.prompt_feedback.and_then(|feedback| feedback.block_reason).is_some() {
            draft.stopped(Stop::ContentFilter);
            draft.done = true;
        }
        for candidate in chunk.candidates.unwrap_or_default() {
            if candidate.index.unwrap_or(0) != 0 {
                continue;
            }
            for raw in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
                self.part(raw, draft)?;
            }
            if let Some(reason) = candidate.finish_reason.filter(|reason| !reason.is_empty()) {
                finish(reason, candidate.finish_message, draft);
                // The account comes with the last chunk; without it there may be one more.
                draft.done |= counted;
            }
        }
        Ok(())
    }

    /// An answer that came as one document: one chunk, or a list of them.
    pub(super) fn document(&mut self, json: &str, draft: &mut Draft) -> serde_json::Result<()> {
        if !json.starts_with('[') {
            return self.event(json, draft);
        }
        for chunk in serde_json::from_str::<Vec<&RawValue>>(json)? {
            self.event(chunk.get(), draft)?;
        }
        Ok(())
    }

    fn part(&mut self, raw: &RawValue, draft: &mut Draft) -> serde_json::Result<()> {
        let part: Part<'_> = serde_json::from_str(raw.get())?;
        let signed = part.thought_signature.is_some_and(|signature| !signature.is_empty());
        if let Some(call) = part.function_call {
            let at = draft.call(call.id.as_deref(), &call.name.unwrap_or_default());
            draft.arguments(at, call.args.map_or("{}", RawValue::get));
            draft.native(at, raw.get());
            self.last = Last::Closed;
            return Ok(());
        }
        let text = part.text.unwrap_or_default();
        if part.thought == Some(true) {
            let open = match self.last {
                Last::Thought(at) if !signed => Some(at),
                _ => None,
            };
            let at = draft.reasoning(open, &text);
            self.last = Last::Thought(at);
            if signed {
                draft.native(at, raw.get());
                self.last = Last::Closed;
            }
        } else if signed {
            // A signature may stand on a part without text: it still has to go back.
            let at = if text.is_empty() { draft.reasoning(None, "") } else { draft.text(None, &text) };
            draft.native(at, raw.get());
            self.last = Last::Closed;
        } else if !text.is_empty() {
            let open = match self.last {
                Last::Text(at) => Some(at),
                _ => None,
            };
            self.last = Last::Text(draft.text(open, &text));
        }
        Ok(())
    }
}

/// A call's part without the id in it, for an id that does not tell it from other calls.
#[must_use]
pub fn without_call_id(part: &str) -> String {
    type Members<'a> = BTreeMap<String, &'a RawValue>;
    let anonymous = || {
        let mut members: Members<'_> = serde_json::from_str(part).ok()?;
        let mut call: Members<'_> = serde_json::from_str(members.get("functionCall")?.get()).ok()?;
        call.remove("id")?;
        let call = serde_json::value::to_raw_value(&call).ok()?;
        members.insert("functionCall".to_owned(), &call);
        serde_json::to_string(&members).ok()
    };
    anonymous().unwrap_or_else(|| part.to_owned())
}

fn finish(reason: String, message: Option<String>, draft: &mut Draft) {
    match reason.as_str() {
        "STOP" => draft.stopped(Stop::End),
        "MAX_TOKENS" => draft.stopped(Stop::MaxOutput),
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => {
            draft.stopped(Stop::ContentFilter);
        }
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => {
            let said = message.unwrap_or_else(|| "it gave no details".to_owned());
            let failure = format!("the model wrote a call that the provider could not read ({reason}): {said}");
            draft.fail(Failure::new(FailureCode::Malformed, failure).taken());
        }
        _ => draft.stopped(Stop::Other(reason)),
    }
}
