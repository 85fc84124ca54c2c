//! `POST {base}/v1beta/models/{model}:streamGenerateContent?alt=sse`. Gemini API, 2026-11. The model is in the URL.

use serde::Deserialize;
use stele_core::{AssistantBlock, CallId, Config, Failure, Header, Message, ToolChoice, UserBlock, Zone};

use super::anthropic::number;
use super::writer::{Writer, arguments, base64_of, object};
use super::{NO_ANSWER, choice, joined};

/// What stands for the signature of a call that this model did not make: without one, newer models refuse the request
/// (Gemini API, thought signatures, 2026-11).
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// Writes everything before the first message; true when the first message was opened for the preface.
pub(super) fn head(writer: &mut Writer, header: &Header, config: &Config) -> Result<bool, Failure> {
    choice::none_of(config, "verbosity", config.parameters.verbosity.as_ref())?;
    let tool_choice = choice::tool_choice(header, config)?;
    writer.raw("{");
    let system = joined(header.system.iter().map(|block| block.text.as_str()));
    if !system.is_empty() {
        writer.raw(r#""systemInstruction":"#);
        let start = writer.at();
        writer.raw(r#"{"parts":["#);
        text(writer, &system);
        writer.raw("]}");
        writer.item(Zone::System, "system".to_owned(), start..writer.at(), false);
    }
    if !header.tools.is_empty() {
        writer.separate();
        writer.raw(r#""tools":[{"functionDeclarations":["#);
        for tool in &header.tools {
            writer.separate();
            let start = writer.at();
            writer.raw("{");
            // `parameters` takes a subset of OpenAPI only; this field takes JSON Schema.
            writer.tool(tool, "parametersJsonSchema");
            writer.raw("}");
            writer.item(Zone::Tools, tool.name.clone(), start..writer.at(), false);
        }
        writer.raw("]}]");
    }
    if let Some(choice) = tool_choice {
        calling(writer, choice);
    }
    generation(writer, config);
    writer.separate();
    writer.raw(r#""contents":["#);
    let mut open = false;
    for block in header.preface.iter().filter(|block| !block.text.is_empty()) {
        let start = begin(writer, "user", open);
        open = true;
        text(writer, &block.text);
        writer.item(Zone::Preface, block.name.clone(), start..writer.at(), false);
    }
    Ok(open)
}

fn calling(writer: &mut Writer, choice: &ToolChoice) {
    let mode = match choice {
        ToolChoice::Auto => "AUTO",
        ToolChoice::None => "NONE",
        ToolChoice::Required | ToolChoice::Tool(_) => "ANY",
    };
    writer.separate();
    writer.raw(r#""toolConfig":{"functionCallingConfig":{"#);
    writer.field("mode", mode);
    if let ToolChoice::Tool(name) = choice {
        writer.raw(r#","allowedFunctionNames":["#);
        writer.string(name);
        writer.raw("]");
    }
    writer.raw("}}");
}

fn generation(writer: &mut Writer, config: &Config) {
    let parameters = &config.parameters;
    let mut fields = Vec::new();
    if let Some(maximum) = parameters.max_output_tokens {
        fields.push(format!(r#""maxOutputTokens":{maximum}"#));
    }
    if let Some(temperature) = parameters.temperature {
        fields.push(format!(r#""temperature":{}"#, number(temperature)));
    }
    if let Some(top_p) = parameters.top_p {
        fields.push(format!(r#""topP":{}"#, number(top_p)));
    }
    let stops = parameters.stop.as_ref().is_some_and(|stop| !stop.is_empty());
    if fields.is_empty() && parameters.effort.is_none() && !stops {
        return;
    }
    writer.separate();
    writer.raw(r#""generationConfig":{"#);
    writer.raw(&fields.join(","));
    choice::stop(writer, "stopSequences", config);
    if let Some(effort) = &parameters.effort {
        writer.separate();
        writer.raw(r#""thinkingConfig":{"includeThoughts":true,"#);
        writer.field("thinkingLevel", effort);
        writer.raw("}");
    }
    writer.raw("}");
}

/// Appends a message; `continues` says that the first message is open after the preface.
pub(super) fn message(writer: &mut Writer, message: &Message, continues: bool) {
    match message {
        Message::User(blocks) => {
            let mut open = continues;
            let last_result = blocks.iter().rposition(|block| matches!(block, UserBlock::Result { .. }));
            for (at, block) in blocks.iter().enumerate() {
                let start = begin(writer, "user", open);
                open = true;
                match block {
                    UserBlock::Text(content) => text(writer, content),
                    UserBlock::Result { call, wire_id, name, text, error, .. } => {
                        writer.raw(r#"{"functionResponse":{"#);
                        id(writer, *call, wire_id);
                        writer.field("name", name);
                        writer.raw(r#","response":{"#);
                        writer.text_field(if *error { "error" } else { "output" }, text);
                        writer.raw("}}}");
                    }
                }
                writer.history("user", start, false);
                if last_result == Some(at) {
                    shown(writer, blocks);
                }
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
            let mut calls = 0;
            for block in &answer.blocks {
                let Some(part) = part(block, &mut calls) else { continue };
                let start = begin(writer, "model", open);
                open = true;
                writer.raw(&part);
                writer.history("model", start, false);
            }
            if !open {
                let start = begin(writer, "model", false);
                text(writer, NO_ANSWER);
                writer.history("model", start, false);
            }
            writer.raw("]}");
        }
    }
}

/// The images of the results, as parts after the last result: each says whose it is.
fn shown(writer: &mut Writer, blocks: &[UserBlock]) {
    for block in blocks {
        let UserBlock::Result { call, name, images, .. } = block else { continue };
        for image in images {
            let start = begin(writer, "user", true);
            text(writer, &format!("[shown by {name}, call {call}]"));
            writer.history("user", start, false);
            let start = begin(writer, "user", true);
            writer.raw(r#"{"inlineData":{"#);
            writer.field("mimeType", image.media_type.name());
            writer.raw(",");
            writer.field("data", &base64_of(image));
            writer.raw("}}");
            writer.history("user", start, false);
        }
    }
}

/// Starts a part, and its message when it is not open yet. The opening belongs to the first part's item.
fn begin(writer: &mut Writer, role: &str, open: bool) -> usize {
    writer.separate();
    let start = writer.at();
    if !open {
        writer.raw("{");
        writer.field("role", role);
        writer.raw(r#","parts":["#);
    }
    start
}

fn text(writer: &mut Writer, content: &str) {
    writer.raw("{");
    writer.field("text", content);
    writer.raw("}");
}

/// The id of a call, where the vendor made it. One of ours it has never seen.
fn id(writer: &mut Writer, call: CallId, wire_id: &str) {
    if wire_id != call.to_string() {
        writer.field("id", wire_id);
        writer.raw(",");
    }
}

/// A part of an answer as it goes back; signed parts byte for byte.
fn part(block: &AssistantBlock, calls: &mut usize) -> Option<String> {
    let native = match block {
        AssistantBlock::Text { native, .. }
        | AssistantBlock::Reasoning { native, .. }
        | AssistantBlock::Call { native, .. } => native.as_deref().and_then(object),
    };
    let mut writer = Writer::new();
    match block {
        AssistantBlock::Text { text: content, .. } => match native {
            Some(native) => writer.raw(&native),
            None => text(&mut writer, content),
        },
        AssistantBlock::Reasoning { .. } => writer.raw(&native?),
        AssistantBlock::Call { call, wire_id, name, arguments: raw, .. } => {
            *calls += 1;
            // Without arguments that are an object the vendor would refuse its own part.
            match native.filter(|native| has_call(native)) {
                Some(native) => writer.raw(&native),
                None => {
                    writer.raw(r#"{"functionCall":{"#);
                    id(&mut writer, *call, wire_id);
                    writer.field("name", name);
                    writer.raw(r#","args":"#);
                    writer.raw(&arguments(raw));
                    writer.raw("}");
                    if *calls == 1 {
                        writer.raw(",");
                        writer.field("thoughtSignature", FOREIGN_SIGNATURE);
                    }
                    writer.raw("}");
                }
            }
        }
    }
    Some(writer.into_text())
}

fn has_call(native: &str) -> bool {
    #[derive(Deserialize)]
    struct Part {
        #[serde(rename = "functionCall")]
        function_call: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_str::<Part>(native).is_ok_and(|part| part.function_call.is_some())
}
