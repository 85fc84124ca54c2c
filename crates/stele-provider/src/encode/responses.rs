//! `POST {base}/responses`. OpenAI, Responses API, 2026-11.
//!
//! Nothing is stored at the provider (`store: false`), so every item goes back whole and without its id: an id names
//! something stored, and one that cannot be found there is refused.

use serde::Deserialize;
use stele_core::{
    AssistantBlock, Config, Failure, Header, Image, Message, OptionalField, Text, ToolChoice, UserBlock, Zone,
};

use super::anthropic::number;
use super::writer::{Writer, arguments, data_url, object, without};
use super::{NO_ANSWER, choice, joined};

/// Writes everything before the first message.
pub(super) fn head(writer: &mut Writer, header: &Header, config: &Config) -> Result<bool, Failure> {
    let parameters = &config.parameters;
    choice::none_of(config, "stop", parameters.stop.as_ref())?;
    let tool_choice = choice::tool_choice(header, config)?;
    writer.raw("{");
    writer.field("model", &config.model);
    writer.raw(r#","stream":true"#);
    if config.sends(OptionalField::Store) {
        writer.raw(r#","store":false"#);
    }
    if let Some(maximum) = parameters.max_output_tokens {
        writer.raw(&format!(r#","max_output_tokens":{maximum}"#));
    }
    if let Some(temperature) = parameters.temperature {
        writer.raw(&format!(r#","temperature":{}"#, number(temperature)));
    }
    if let Some(top_p) = parameters.top_p {
        writer.raw(&format!(r#","top_p":{}"#, number(top_p)));
    }
    if let Some(effort) = &parameters.effort {
        writer.raw(r#","reasoning":{"#);
        writer.field("effort", effort);
        writer.raw("}");
    }
    if let Some(verbosity) = &parameters.verbosity {
        writer.raw(r#","text":{"#);
        writer.field("verbosity", verbosity);
        writer.raw("}");
    }
    match tool_choice {
        None => {}
        Some(ToolChoice::Auto) => writer.raw(r#","tool_choice":"auto""#),
        Some(ToolChoice::None) => writer.raw(r#","tool_choice":"none""#),
        Some(ToolChoice::Required) => writer.raw(r#","tool_choice":"required""#),
        Some(ToolChoice::Tool(name)) => {
            writer.raw(r#","tool_choice":{"type":"function","#);
            writer.field("name", name);
            writer.raw("}");
        }
    }
    // Models that do not reason may refuse it: then it is left out.
    if config.sends(OptionalField::Include) {
        writer.raw(r#","include":["reasoning.encrypted_content"]"#);
    }
    if let Some(key) = config.cache.key.as_ref().filter(|_| config.sends(OptionalField::PromptCacheKey)) {
        writer.raw(",");
        writer.field("prompt_cache_key", key);
    }
    let system = joined(header.system.iter().map(|block| block.text.as_str()));
    if !system.is_empty() {
        writer.raw(r#","instructions":"#);
        let start = writer.at();
        writer.string(&system);
        writer.item(Zone::System, "system".to_owned(), start..writer.at(), false);
    }
    if !header.tools.is_empty() {
        writer.raw(r#","tools":["#);
        for tool in &header.tools {
            writer.separate();
            let start = writer.at();
            writer.raw(r#"{"type":"function","#);
            writer.tool(tool, "parameters");
            writer.raw(r#","strict":false}"#);
            writer.item(Zone::Tools, tool.name.clone(), start..writer.at(), false);
        }
        writer.raw("]");
    }
    writer.raw(r#","input":["#);
    let preface: Vec<_> =
        header.preface.iter().map(|block| block.text.as_str()).filter(|text| !text.is_empty()).collect();
    if !preface.is_empty() {
        let start = content(writer, "user", "input_text", &preface);
        writer.item(Zone::Preface, "preface".to_owned(), start..writer.at(), false);
    }
    Ok(false)
}

/// Appends a message: one input item for each block.
pub(super) fn message(writer: &mut Writer, message: &Message) {
    match message {
        Message::User(blocks) => {
            for block in blocks {
                match block {
                    UserBlock::Text(text) => {
                        let start = content(writer, "user", "input_text", &[text]);
                        writer.history("user", start, false);
                    }
                    UserBlock::Result { wire_id, text, images, .. } => {
                        writer.separate();
                        let start = writer.at();
                        writer.raw(r#"{"type":"function_call_output","#);
                        writer.field("call_id", wire_id);
                        writer.raw(",");
                        output(writer, text, images);
                        writer.raw("}");
                        writer.history("result", start, false);
                    }
                }
            }
        }
        Message::Assistant(answer) => {
            let before = writer.block;
            for (at, block) in answer.blocks.iter().enumerate() {
                // Reasoning must be followed by what it led to.
                let last = at + 1 == answer.blocks.len();
                assistant_block(writer, block, last);
            }
            if writer.block == before {
                let start = content(writer, "assistant", "output_text", &[NO_ANSWER]);
                writer.history("assistant", start, false);
            }
        }
    }
}

/// A result: a string, or a list of parts where there are images (OpenAI, function calling, 2026-11).
fn output(writer: &mut Writer, text: &Text, images: &[Image]) {
    if images.is_empty() {
        return writer.text_field("output", text);
    }
    writer.raw(r#""output":[{"type":"input_text","#);
    writer.text_field("text", text);
    writer.raw("}");
    for image in images {
        writer.raw(r#",{"type":"input_image","detail":"auto","image_url":"#);
        data_url(writer, image);
        writer.raw("}");
    }
    writer.raw("]");
}

fn assistant_block(writer: &mut Writer, block: &AssistantBlock, last: bool) {
    match block {
        AssistantBlock::Text { text, native } => {
            let start = match native.as_deref().and_then(|native| item(native, "message")) {
                Some(native) => native_item(writer, &native),
                None => content(writer, "assistant", "output_text", &[text]),
            };
            writer.history("assistant", start, false);
        }
        AssistantBlock::Reasoning { native, .. } => {
            if !last && let Some(native) = native.as_deref().and_then(|native| item(native, "reasoning")) {
                let start = native_item(writer, &native);
                writer.history("assistant", start, false);
            }
        }
        AssistantBlock::Call { wire_id, name, arguments: raw, .. } => {
            writer.separate();
            let start = writer.at();
            writer.raw(r#"{"type":"function_call","#);
            writer.field("call_id", wire_id);
            writer.raw(",");
            writer.field("name", name);
            writer.raw(",");
            writer.field("arguments", &arguments(raw));
            writer.raw("}");
            writer.history("assistant", start, false);
        }
    }
}

fn native_item(writer: &mut Writer, native: &str) -> usize {
    writer.separate();
    let start = writer.at();
    writer.raw(native);
    start
}

/// A message with parts of text; gives its first byte.
fn content(writer: &mut Writer, role: &str, kind: &str, texts: &[&str]) -> usize {
    writer.separate();
    let start = writer.at();
    writer.raw(r#"{"type":"message","#);
    writer.field("role", role);
    writer.raw(r#","content":["#);
    for text in texts {
        writer.separate();
        writer.raw("{");
        writer.field("type", kind);
        writer.raw(",");
        writer.field("text", text);
        writer.raw("}");
    }
    writer.raw("]}");
    start
}

/// An item of an earlier answer as it goes back: of the expected type, without its id and status.
fn item(native: &str, expected: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "type")]
        kind: String,
    }
    let native = object(native)?;
    let kind: Kind = serde_json::from_str(&native).ok()?;
    (kind.kind == expected).then(|| without(&native, &["id", "status"])).flatten()
}
