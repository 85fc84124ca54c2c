//! One module for each wire: what its vendor refuses, and the form of an answer.

pub(crate) mod anthropic;
pub(crate) mod chat;
pub(crate) mod gemini;
pub(crate) mod responses;

use serde_json::Value;
use stele_core::Wire;

use crate::cache::{Counted, TOKEN};
use crate::http::Head;
use crate::parsed::ParsedRequest;
use crate::refusal::Refusal;
use crate::script::{Part, Say};

/// When answers say they were made, in seconds since 1970: fixed, so that a run can be repeated byte for byte.
const CREATED: u64 = 1_790_000_000;

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    event: Option<&'static str>,
    data: String,
}

impl Frame {
    /// An event without a name.
    pub(crate) fn unnamed(data: &Value) -> Self {
        Self { event: None, data: data.to_string() }
    }

    /// A named event.
    pub(crate) fn named(event: &'static str, data: &Value) -> Self {
        Self { event: Some(event), data: data.to_string() }
    }

    /// The end mark of the chat wire.
    pub(crate) fn done() -> Self {
        Self { event: None, data: "[DONE]".to_owned() }
    }

    /// The bytes on the wire.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if let Some(event) = self.event {
            out.extend_from_slice(format!("event: {event}\n").as_bytes());
        }
        out.extend_from_slice(format!("data: {}\n\n", self.data).as_bytes());
    }
}

/// An answer that is to be given its wire's form.
pub(crate) struct Answer<'a> {
    pub(crate) request: &'a ParsedRequest,
    pub(crate) say: &'a Say,
    /// The step, which call ids depend on.
    pub(crate) step: usize,
    /// The usage object, if one is reported.
    pub(crate) usage: Option<Value>,
}

impl Answer<'_> {
    /// The parts, each call with its place among the calls.
    fn parts(&self) -> impl Iterator<Item = (&Part, usize)> {
        let mut calls = 0;
        self.say.parts().iter().map(move |part| {
            let call = calls;
            calls += usize::from(matches!(part, Part::Call(_)));
            (part, call)
        })
    }
}

/// Refuses what the wire's vendor refuses.
pub(crate) fn check(request: &ParsedRequest, head: &Head) -> Result<(), Refusal> {
    match request.wire {
        Wire::AnthropicMessages => anthropic::check(request, head),
        Wire::OpenaiResponses => responses::check(request),
        Wire::OpenaiChat => chat::check(request),
        Wire::Gemini => gemini::check(request),
    }
}

/// The events of a streamed answer.
pub(crate) fn stream(answer: &Answer<'_>) -> Vec<Frame> {
    match answer.request.wire {
        Wire::AnthropicMessages => anthropic::stream(answer),
        Wire::OpenaiResponses => responses::stream(answer),
        Wire::OpenaiChat => chat::stream(answer),
        Wire::Gemini => gemini::stream(answer),
    }
}

/// An answer that is not streamed.
pub(crate) fn whole(answer: &Answer<'_>) -> Value {
    match answer.request.wire {
        Wire::AnthropicMessages => anthropic::whole(answer),
        Wire::OpenaiResponses => responses::whole(answer),
        Wire::OpenaiChat => chat::whole(answer),
        Wire::Gemini => gemini::whole(answer),
    }
}

/// The usage object of a wire.
pub(crate) fn usage(wire: Wire, counted: &Counted) -> Value {
    match wire {
        Wire::AnthropicMessages => anthropic::usage(counted),
        Wire::OpenaiResponses => responses::usage(counted),
        Wire::OpenaiChat => chat::usage(counted),
        Wire::Gemini => gemini::usage(counted),
    }
}

/// An error in mid-stream, after `before` events.
pub(crate) fn error(request: &ParsedRequest, refusal: &Refusal, before: usize) -> Frame {
    match request.wire {
        Wire::AnthropicMessages => Frame::named("error", &refusal.body(request.wire)),
        Wire::OpenaiResponses => responses::failed(request, refusal, before),
        Wire::OpenaiChat | Wire::Gemini => Frame::unnamed(&refusal.body(request.wire)),
    }
}

/// The tokens of an answer, and those of its reasoning.
pub(crate) fn output_tokens(say: &Say) -> (u64, u64) {
    let tokens = |bytes: usize| bytes.div_ceil(TOKEN) as u64;
    let mut output = 0;
    let mut reasoning = 0;
    for part in say.parts() {
        match part {
            Part::Text(text) => output += tokens(text.len()),
            Part::Call(call) => output += tokens(call.name.len() + call.arguments.len()),
            Part::Reasoning(text) => reasoning += tokens(text.len()),
        }
    }
    ((output + reasoning).max(1), reasoning)
}

/// A text in the pieces in which it is streamed: at least a few bytes each, not more than a few dozen pieces, cut
/// between characters.
fn pieces(text: &str) -> Vec<&str> {
    let size = (text.len() / 48).max(12);
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let cut = (size..rest.len()).find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(cut);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// The first top-level field that is not among these.
fn unknown_field<'a>(body: &'a Value, known: &[&str]) -> Option<&'a str> {
    body.as_object()?.keys().map(String::as_str).find(|key| !known.contains(key))
}

/// True for names that are made of letters, digits, `_` and `-`, and not longer than `longest`.
fn is_name(name: &str, longest: usize) -> bool {
    !name.is_empty()
        && name.len() <= longest
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// The first name that stands twice.
fn repeated(names: &[String]) -> Option<&String> {
    names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text_and_end_between_characters() {
        for text in ["", "short", "温度は 21℃ 🙂 ok, and some more words", &"long ".repeat(10_000)] {
            assert_eq!(pieces(text).concat(), text);
            assert!(pieces(text).len() <= 50);
        }
        assert!(pieces("some words that are more than one piece").len() > 1);
    }
}
