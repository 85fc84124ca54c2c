//! The prompt that a provider sees in a request, in the provider's order, as bytes.
//!
//! **Invariant:** shares no code with the encoders, so that it can be used as a judge.

use std::borrow::Cow;

use serde_json::{Value, json};
use stele_core::Wire;

/// A piece of the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// What it is.
    pub part: Part,
    /// It as compact JSON, without cache marks.
    pub bytes: String,
}

/// Where a piece belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A tool's declaration.
    Tool,
    /// System text.
    System,
    /// A message, or a block of one.
    Message,
}

/// The pieces of a request's prompt, whoever wrote it.
///
/// Their order is the order in which each vendor renders them (documentation of prompt caching, 2026-11): Anthropic
/// has tools, system, messages; the others have system, tools, messages.
#[must_use]
pub fn pieces(wire: Wire, body: &Value) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut add = |part, value: &Value| {
        let mut value = value.clone();
        unmark(&mut value);
        pieces.push(Piece { part, bytes: value.to_string() });
    };
    match wire {
        Wire::AnthropicMessages => {
            list(&body["tools"]).iter().for_each(|tool| add(Part::Tool, tool));
            blocks(&body["system"]).iter().for_each(|block| add(Part::System, block));
            for message in list(&body["messages"]) {
                add(Part::Message, &message["role"]);
                blocks(&message["content"]).iter().for_each(|block| add(Part::Message, block));
            }
        }
        Wire::OpenaiResponses => {
            if !body["instructions"].is_null() {
                add(Part::System, &body["instructions"]);
            }
            list(&body["tools"]).iter().for_each(|tool| add(Part::Tool, tool));
            blocks(&body["input"]).iter().for_each(|item| {
                let mut item = item.clone();
                // Names that the vendor gave to what it said; they are no part of the prompt.
                if let Value::Object(item) = &mut item {
                    item.shift_remove("id");
                    item.shift_remove("status");
                }
                add(Part::Message, &item);
            });
        }
        Wire::OpenaiChat => {
            let messages = list(&body["messages"]);
            let system = messages.iter().take_while(|message| is_system(message)).count();
            messages[..system].iter().for_each(|message| add(Part::System, message));
            list(&body["tools"]).iter().for_each(|tool| add(Part::Tool, tool));
            messages[system..].iter().for_each(|message| add(Part::Message, message));
        }
        Wire::Gemini => {
            if !body["systemInstruction"].is_null() {
                add(Part::System, &body["systemInstruction"]);
            }
            list(&body["tools"]).iter().for_each(|tool| add(Part::Tool, tool));
            for content in list(&body["contents"]) {
                add(Part::Message, &content["role"]);
                list(&content["parts"]).iter().for_each(|part| add(Part::Message, part));
            }
        }
    }
    pieces
}

/// All pieces in one text.
#[must_use]
pub fn joined(pieces: &[Piece]) -> String {
    pieces.iter().map(|piece| piece.bytes.as_str()).collect::<Vec<_>>().join("\n")
}

/// The pieces before the one that holds the prompt.
#[must_use]
pub fn before<'a>(pieces: &'a [Piece], prompt: &str) -> &'a [Piece] {
    let quoted = Value::from(prompt).to_string();
    let at = pieces.iter().position(|piece| piece.bytes.contains(quoted.trim_matches('"')));
    &pieces[..at.unwrap_or(pieces.len())]
}

/// Bytes that two texts share from the front.
#[must_use]
pub fn shared(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
}

fn is_system(message: &Value) -> bool {
    matches!(message["role"].as_str(), Some("system" | "developer"))
}

/// A content as blocks: a string is one block of text, which is how vendors read it.
fn blocks(content: &Value) -> Cow<'_, [Value]> {
    match content {
        Value::String(text) => Cow::Owned(vec![json!({"type": "text", "text": text})]),
        other => Cow::Borrowed(list(other)),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Takes cache marks out: they are no part of the prompt.
fn unmark(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.shift_remove("cache_control");
            object.values_mut().for_each(unmark);
        }
        Value::Array(array) => array.iter_mut().for_each(unmark),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_no_part_of_the_prompt() {
        let text = |marked: bool| {
            let mut block = json!({"type": "text", "text": "hello"});
            if marked {
                block["cache_control"] = json!({"type": "ephemeral"});
            }
            json!({"tools": [{"name": "t"}], "system": [block], "messages": [{"role": "user", "content": [block]}]})
        };
        let (plain, marked) =
            (pieces(Wire::AnthropicMessages, &text(false)), pieces(Wire::AnthropicMessages, &text(true)));
        assert_eq!(plain, marked);
        let parts: Vec<Part> = plain.iter().map(|piece| piece.part).collect();
        assert_eq!(parts, [Part::Tool, Part::System, Part::Message, Part::Message]);
        assert_eq!(before(&plain, "hello").len(), 1);
    }

    #[test]
    fn a_string_is_a_block_of_text_and_ids_are_no_part_of_the_prompt() {
        let block = json!([{"type": "text", "text": "hello"}]);
        let anthropic = |content: &Value| {
            pieces(
                Wire::AnthropicMessages,
                &json!({"system": content, "messages": [{"role": "user", "content": content}]}),
            )
        };
        assert_eq!(anthropic(&json!("hello")), anthropic(&block));
        let item = |id: &str| {
            pieces(Wire::OpenaiResponses, &json!({"input": [{"id": id, "status": "completed", "role": "user"}]}))
        };
        assert_eq!(item("a"), item("b"));
    }

    #[test]
    fn the_system_message_comes_before_the_tools_in_a_chat() {
        let body = json!({"tools": [{"t": 1}], "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "p"}]});
        let parts: Vec<Part> = pieces(Wire::OpenaiChat, &body).iter().map(|piece| piece.part).collect();
        assert_eq!(parts, [Part::System, Part::Tool, Part::Message]);
    }
}
