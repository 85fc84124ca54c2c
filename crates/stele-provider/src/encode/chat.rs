//! `POST {base}/chat/completions`, in the endpoint's dialect. OpenAI, Chat Completions, 2026-11.
//!
//! Content is always a string, and each text of a user is a message of its own. Results are text there, so the images
//! of a result come in a user's message after the last result: a message in parts.

use std::borrow::Cow;

use stele_core::{
    AssistantBlock, Config, Dialect, Failure, Header, Message, OptionalField, PromptOrder, SystemRole, ToolChoice,
    UserBlock, Zone,
};

use super::anthropic::number;
use super::writer::{Writer, arguments, data_url};
use super::{NO_ANSWER, choice, joined, unsupported};

/// Writes everything before the first message.
pub(super) fn head(writer: &mut Writer, header: &Header, config: &Config) -> Result<bool, Failure> {
    let dialect = dialect(config);
    let parameters = &config.parameters;
    writer.raw("{");
    writer.field("model", &config.model);
    writer.raw(r#","stream":true"#);
    if config.sends(OptionalField::StreamOptions) {
        writer.raw(r#","stream_options":{"include_usage":true}"#);
    }
    if let Some(maximum) = parameters.max_output_tokens {
        writer.raw(",");
        writer.string(&dialect.max_tokens_field);
        writer.raw(&format!(":{maximum}"));
    }
    if let Some(temperature) = parameters.temperature {
        writer.raw(&format!(r#","temperature":{}"#, number(temperature)));
    }
    if let Some(top_p) = parameters.top_p {
        writer.raw(&format!(r#","top_p":{}"#, number(top_p)));
    }
    choice::stop(writer, "stop", config);
    for (name, value, field) in [
        ("effort", &parameters.effort, &dialect.effort_field),
        ("verbosity", &parameters.verbosity, &dialect.verbosity_field),
    ] {
        let Some(value) = value else { continue };
        let Some(field) = field else {
            return Err(unsupported(format!(
                "the {} dialect of openai-chat takes no {name}; drop it from the route's parameters",
                dialect.name
            )));
        };
        writer.raw(",");
        writer.field(field, value);
    }
    match choice::tool_choice(header, config)? {
        None => {}
        Some(ToolChoice::Auto) => writer.raw(r#","tool_choice":"auto""#),
        Some(ToolChoice::None) => writer.raw(r#","tool_choice":"none""#),
        Some(ToolChoice::Required) => writer.raw(r#","tool_choice":"required""#),
        Some(ToolChoice::Tool(name)) => {
            writer.raw(r#","tool_choice":{"type":"function","function":{"#);
            writer.field("name", name);
            writer.raw("}}");
        }
    }
    if config.sends(OptionalField::CacheControl) {
        writer.raw(r#","cache_control":{"type":"ephemeral"}"#);
    }
    if let Some(key) = config.cache.key.as_ref().filter(|_| config.sends(OptionalField::PromptCacheKey)) {
        writer.raw(",");
        writer.field("prompt_cache_key", key);
    }
    let mut tools = Vec::new();
    if !header.tools.is_empty() {
        writer.raw(r#","tools":["#);
        for tool in &header.tools {
            writer.separate();
            let start = writer.at();
            writer.raw(r#"{"type":"function","function":{"#);
            writer.tool(tool, "parameters");
            writer.raw("}}");
            tools.push((Zone::Tools, tool.name.clone(), start..writer.at()));
        }
        writer.raw("]");
    }
    writer.raw(r#","messages":["#);
    let mut system = Vec::new();
    let text = joined(header.system.iter().map(|block| block.text.as_str()));
    if !text.is_empty() {
        let role = match dialect.system_role {
            SystemRole::System => "system",
            SystemRole::Developer => "developer",
        };
        let start = plain(writer, role, &text);
        system.push((Zone::System, "system".to_owned(), start..writer.at()));
    }
    // The prompt order is the endpoint's; the order in the body is ours.
    let ordered = match dialect.prompt_order {
        PromptOrder::SystemToolsMessages => [system, tools],
        PromptOrder::ToolsSystemMessages => [tools, system],
    };
    for (zone, label, range) in ordered.into_iter().flatten() {
        writer.item(zone, label, range, false);
    }
    let preface = joined(header.preface.iter().map(|block| block.text.as_str()));
    if !preface.is_empty() {
        let start = plain(writer, "user", &preface);
        writer.item(Zone::Preface, "preface".to_owned(), start..writer.at(), false);
    }
    Ok(false)
}

/// Appends a message of ours, which is one or more messages of the wire.
pub(super) fn message(writer: &mut Writer, message: &Message, config: &Config) {
    let dialect = dialect(config);
    match message {
        Message::User(blocks) => user(writer, blocks, &dialect),
        Message::Assistant(answer) => assistant(writer, &answer.blocks, &dialect),
    }
}

fn dialect(config: &Config) -> Cow<'_, Dialect> {
    config.dialect.as_ref().map_or_else(|| Cow::Owned(Dialect::default()), Cow::Borrowed)
}

/// `{"role": …, "content": …}`; gives its first byte.
fn plain(writer: &mut Writer, role: &str, content: &str) -> usize {
    writer.separate();
    let start = writer.at();
    writer.raw("{");
    writer.field("role", role);
    writer.raw(",");
    writer.field("content", content);
    writer.raw("}");
    start
}

fn user(writer: &mut Writer, blocks: &[UserBlock], dialect: &Dialect) {
    let last_result = blocks.iter().rposition(|block| matches!(block, UserBlock::Result { .. }));
    for (at, block) in blocks.iter().enumerate() {
        match block {
            UserBlock::Text(text) => {
                if dialect.user_after_tool || last_result.is_none_or(|last| at < last) {
                    let start = plain(writer, "user", text);
                    writer.history("user", start, false);
                }
            }
            UserBlock::Result { wire_id, text, .. } => {
                // Where no user message may follow a result, what was to follow goes into the last one.
                let mut content = Cow::Borrowed(text);
                if !dialect.user_after_tool && last_result == Some(at) {
                    for block in &blocks[at + 1..] {
                        if let UserBlock::Text(text) = block {
                            content = Cow::Owned(format!("{}\n\n{text}", content.as_str()).into());
                        }
                    }
                }
                writer.separate();
                let start = writer.at();
                writer.raw(r#"{"role":"tool","#);
                writer.field("tool_call_id", &call_id(wire_id, dialect));
                writer.raw(",");
                writer.text_field("content", &content);
                writer.raw("}");
                writer.history("tool", start, false);
                if last_result == Some(at) {
                    shown(writer, blocks, dialect);
                }
            }
        }
    }
}

/// The images of the results, each result's in a message that says whose they are.
fn shown(writer: &mut Writer, blocks: &[UserBlock], dialect: &Dialect) {
    for block in blocks {
        let UserBlock::Result { wire_id, name, images, .. } = block else { continue };
        if images.is_empty() || !dialect.user_after_tool {
            continue;
        }
        writer.separate();
        let start = writer.at();
        writer.raw(r#"{"role":"user","content":[{"type":"text","#);
        writer.field("text", &format!("[shown by {name}, call {}]", call_id(wire_id, dialect)));
        writer.raw("}");
        for image in images {
            writer.raw(r#",{"type":"image_url","image_url":{"url":"#);
            data_url(writer, image);
            writer.raw("}}");
        }
        writer.raw("]}");
        writer.history("user", start, false);
    }
}

fn assistant(writer: &mut Writer, blocks: &[AssistantBlock], dialect: &Dialect) {
    let text = joined(blocks.iter().filter_map(|block| match block {
        AssistantBlock::Text { text, .. } => Some(text.as_ref()),
        _ => None,
    }));
    let calls: Vec<_> = blocks
        .iter()
        .filter_map(|block| match block {
            AssistantBlock::Call { wire_id, name, arguments, .. } => Some((wire_id, name, arguments)),
            _ => None,
        })
        .collect();
    writer.separate();
    let start = writer.at();
    writer.raw(r#"{"role":"assistant","content":"#);
    match (text.is_empty(), calls.is_empty()) {
        (false, _) => writer.string(&text),
        (true, false) => writer.raw("null"),
        (true, true) => writer.string(NO_ANSWER),
    }
    if let Some(field) = &dialect.reasoning_field {
        // Once an endpoint wants its reasoning back, an answer without the field is refused, also where it is empty.
        let reasoning = joined(blocks.iter().filter_map(|block| match block {
            AssistantBlock::Reasoning { text, .. } => Some(text.as_ref()),
            _ => None,
        }));
        writer.raw(",");
        writer.field(field, &reasoning);
    }
    if !calls.is_empty() {
        writer.raw(r#","tool_calls":["#);
        for (id, name, raw) in calls {
            writer.separate();
            writer.raw("{");
            writer.field("id", &call_id(id, dialect));
            writer.raw(r#","type":"function","function":{"#);
            writer.field("name", name);
            writer.raw(",");
            // Many endpoints parse the string into an object before they render it, so it has to be one.
            writer.field("arguments", &arguments(raw));
            writer.raw("}}");
        }
        writer.raw("]");
    }
    writer.raw("}");
    writer.history("assistant", start, false);
}

/// The call's id, or nine letters and digits made from it where the endpoint takes no others (Mistral, 2026-11).
fn call_id<'a>(id: &'a str, dialect: &Dialect) -> Cow<'a, str> {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    if !dialect.short_call_ids || (id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
        return Cow::Borrowed(id);
    }
    let hash = stele_core::Hash::of(id.as_bytes());
    Cow::Owned(hash.0[..9].iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect())
}
