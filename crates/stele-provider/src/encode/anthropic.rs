//! `POST {base}/v1/messages`. Anthropic, Messages API, 2026-11.

use stele_core::{AssistantBlock, Config, Failure, Header, Message, ToolChoice, UserBlock, Zone};

use super::writer::{Writer, arguments, base64_of, object};
use super::{NO_ANSWER, choice, joined, unsupported};

/// Writes everything before the first message; true when the first message was opened for the preface.
pub(super) fn head(writer: &mut Writer, header: &Header, config: &Config) -> Result<bool, Failure> {
    let parameters = &config.parameters;
    let Some(max_tokens) = parameters.max_output_tokens else {
        return Err(unsupported("anthropic-messages needs max_output_tokens; set it in the route's parameters"));
    };
    if parameters.effort.is_some() && parameters.temperature.is_some() {
        return Err(unsupported("anthropic-messages takes no temperature together with effort; drop one of them"));
    }
    choice::none_of(config, "verbosity", parameters.verbosity.as_ref())?;
    let tool_choice = choice::tool_choice(header, config)?;
    // Anthropic, thinking with tool use, 2026-11.
    if parameters.effort.is_some() && matches!(tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_))) {
        return Err(unsupported("anthropic-messages asks for no call together with effort; drop one of them"));
    }
    writer.raw("{");
    writer.field("model", &config.model);
    writer.raw(&format!(r#","max_tokens":{max_tokens},"stream":true"#));
    if let Some(temperature) = parameters.temperature {
        writer.raw(&format!(r#","temperature":{}"#, number(temperature)));
    }
    if let Some(top_p) = parameters.top_p {
        writer.raw(&format!(r#","top_p":{}"#, number(top_p)));
    }
    choice::stop(writer, "stop_sequences", config);
    if let Some(effort) = &parameters.effort {
        // Adaptive thinking with `output_config.effort` replaces thinking budgets, which newer models refuse, and those
        // models leave the text of their thinking out unless it is asked for (Anthropic, adaptive thinking, 2026-11).
        writer.raw(r#","thinking":{"type":"adaptive","display":"summarized"},"output_config":{"#);
        writer.field("effort", effort);
        writer.raw("}");
    }
    if !header.tools.is_empty() {
        writer.raw(r#","tools":["#);
        for tool in &header.tools {
            writer.separate();
            let start = writer.at();
            writer.raw("{");
            writer.tool(tool, "input_schema");
            writer.raw("}");
            writer.item(Zone::Tools, tool.name.clone(), start..writer.at(), true);
        }
        writer.raw("]");
    }
    match tool_choice {
        None => {}
        Some(ToolChoice::Auto) => writer.raw(r#","tool_choice":{"type":"auto"}"#),
        Some(ToolChoice::None) => writer.raw(r#","tool_choice":{"type":"none"}"#),
        Some(ToolChoice::Required) => writer.raw(r#","tool_choice":{"type":"any"}"#),
        Some(ToolChoice::Tool(name)) => {
            writer.raw(r#","tool_choice":{"type":"tool","#);
            writer.field("name", name);
            writer.raw("}");
        }
    }
    let system = joined(header.system.iter().map(|block| block.text.as_str()));
    if !system.is_empty() {
        writer.raw(r#","system":["#);
        let start = writer.at();
        text(writer, &system);
        writer.item(Zone::System, "system".to_owned(), start..writer.at(), true);
        writer.raw("]");
    }
    writer.raw(r#","messages":["#);
    let mut open = false;
    for block in header.preface.iter().filter(|block| !block.text.trim().is_empty()) {
        let start = begin(writer, "user", open);
        open = true;
        text(writer, &block.text);
        writer.item(Zone::Preface, block.name.clone(), start..writer.at(), true);
    }
    Ok(open)
}

/// Appends a message; `continues` says that the first message is open after the preface.
pub(super) fn message(writer: &mut Writer, message: &Message, continues: bool) {
    match message {
        Message::User(blocks) => {
            let mut open = continues;
            for block in blocks {
                let start = begin(writer, "user", open);
                open = true;
                user_block(writer, block);
                writer.history("user", start, true);
            }
            if open {
                writer.raw("]}");
            }
        }
        Message::Assistant(answer) => {
            if continues {
                writer.raw("]}");
            }
            let mut open = false;
            for replay in replayed(&answer.blocks) {
                let start = begin(writer, "assistant", open);
                open = true;
                let markable = replay.write(writer);
                writer.history("assistant", start, markable);
            }
            if !open {
                let start = begin(writer, "assistant", false);
                text(writer, NO_ANSWER);
                writer.history("assistant", start, true);
            }
            writer.raw("]}");
        }
    }
}

/// Starts a block, and its message when it is not open yet. The opening belongs to the first block's item.
fn begin(writer: &mut Writer, role: &str, open: bool) -> usize {
    writer.separate();
    let start = writer.at();
    if !open {
        writer.raw("{");
        writer.field("role", role);
        writer.raw(r#","content":["#);
    }
    start
}

fn text(writer: &mut Writer, content: &str) {
    writer.raw(r#"{"type":"text","#);
    writer.field("text", visible(content));
    writer.raw("}");
}

/// A text block without anything but white space is refused by the endpoint.
fn visible(content: &str) -> &str {
    if content.trim().is_empty() { "(blank)" } else { content }
}

fn user_block(writer: &mut Writer, block: &UserBlock) {
    match block {
        UserBlock::Text(content) => text(writer, content),
        UserBlock::Result { wire_id, text: content, error, images, .. } => {
            writer.raw(r#"{"type":"tool_result","#);
            writer.field("tool_use_id", wire_id);
            writer.raw(r#","content":["#);
            if content.is_blank() {
                text(writer, content.as_str());
            } else {
                writer.raw(r#"{"type":"text","#);
                writer.text_field("text", content);
                writer.raw("}");
            }
            for image in images {
                // Anthropic, vision, 2026-11.
                writer.raw(r#",{"type":"image","source":{"type":"base64","#);
                writer.field("media_type", image.media_type.name());
                writer.raw(",");
                writer.field("data", &base64_of(image));
                writer.raw("}}");
            }
            writer.raw(if *error { r#"],"is_error":true}"# } else { "]}" });
        }
    }
}

/// A block of an answer as it goes back.
enum Replay<'a> {
    Text(&'a str),
    Call {
        id: &'a str,
        name: &'a str,
        arguments: &'a str,
    },
    /// Thinking: byte for byte, and without a cache mark, which it does not take.
    Native(String),
}

impl Replay<'_> {
    /// Writes the block; true when it takes a cache mark.
    fn write(&self, writer: &mut Writer) -> bool {
        match self {
            Self::Text(content) => text(writer, content),
            Self::Call { id, name, arguments: raw } => {
                writer.raw(r#"{"type":"tool_use","#);
                writer.field("id", id);
                writer.raw(",");
                writer.field("name", name);
                writer.raw(r#","input":"#);
                writer.raw(&arguments(raw));
                writer.raw("}");
            }
            Self::Native(raw) => writer.raw(raw),
        }
        !matches!(self, Self::Native(_))
    }
}

/// The blocks that can go back. White space alone is no text block here, and no answer may end in thinking. Which
/// thinking goes back at all is the derivation's to say.
fn replayed(blocks: &[AssistantBlock]) -> Vec<Replay<'_>> {
    let mut replayed: Vec<_> = blocks
        .iter()
        .filter_map(|block| match block {
            AssistantBlock::Text { text, .. } => (!text.trim().is_empty()).then_some(Replay::Text(text)),
            AssistantBlock::Reasoning { native, .. } => {
                object(native.as_deref()?).map(|raw| Replay::Native(raw.into_owned()))
            }
            AssistantBlock::Call { wire_id, name, arguments, .. } => {
                Some(Replay::Call { id: wire_id, name, arguments })
            }
        })
        .collect();
    while matches!(replayed.last(), Some(Replay::Native(_))) {
        replayed.pop();
    }
    replayed
}

/// A finite number as JSON.
pub(super) fn number(value: f64) -> String {
    serde_json::Number::from_f64(value).map_or_else(|| "0".to_owned(), |number| number.to_string())
}
