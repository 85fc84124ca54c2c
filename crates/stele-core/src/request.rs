//! A request before its wire encodes it.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Hash, ImageInput, Message, OptionalField, SegmentDigest};

/// A protocol that a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Wire {
    /// Anthropic Messages.
    #[serde(rename = "anthropic-messages")]
    AnthropicMessages,
    /// OpenAI Responses.
    #[serde(rename = "openai-responses")]
    OpenaiResponses,
    /// OpenAI Chat Completions and everything compatible with it.
    #[serde(rename = "openai-chat")]
    OpenaiChat,
    /// Gemini `generateContent`.
    #[serde(rename = "gemini")]
    Gemini,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::AnthropicMessages, Self::OpenaiResponses, Self::OpenaiChat, Self::Gemini];

    /// The name in configuration and log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::OpenaiResponses => "openai-responses",
            Self::OpenaiChat => "openai-chat",
            Self::Gemini => "gemini",
        }
    }
}

impl std::fmt::Display for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Wire {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|wire| wire.name() == text)
            .ok_or_else(|| format!("unknown wire {text:?}; the wires are {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// A part of the request. The wire decides the order of tools and system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Zone {
    /// Tool schemas.
    Tools,
    /// Identity, guidance, policies.
    System,
    /// Project instructions and the facts of the folder.
    Preface,
    /// The conversation.
    History,
}

impl Zone {
    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::System => "system",
            Self::Preface => "preface",
            Self::History => "history",
        }
    }
}

/// What stands before the history, in an epoch.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// Tools, in their order.
    pub tools: Vec<ToolSchema>,
    /// System blocks, in their order.
    pub system: Vec<SystemBlock>,
    /// Preface blocks, in their order.
    pub preface: Vec<PrefaceBlock>,
}

impl Header {
    /// Its parts by their content, in the order of the log. A header that was folded from the log gives what the log says,
    /// or it is not the header that the log describes.
    #[must_use]
    pub fn digests(&self) -> Vec<SegmentDigest> {
        let digest = |zone, name: &str, text: &str| SegmentDigest {
            zone,
            name: name.to_owned(),
            hash: Hash::of(text.as_bytes()),
            len: text.len() as u64,
        };
        let tools = self.tools.iter().map(|tool| {
            // A schema is JSON already: this cannot fail.
            digest(Zone::Tools, &tool.name, &serde_json::to_string(tool).unwrap_or_default())
        });
        let system = self.system.iter().map(|block| digest(Zone::System, &block.name, &block.text));
        let preface = self.preface.iter().map(|block| digest(Zone::Preface, &block.name, &block.text));
        tools.chain(system).chain(preface).collect()
    }
}

/// A tool as the model sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolSchema {
    /// Name.
    pub name: String,
    /// Description.
    pub description: String,
    /// JSON Schema of the arguments, as raw bytes.
    pub parameters: Box<RawValue>,
}

/// A block of the system zone.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemBlock {
    /// Name of the section.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A block of the preface.
#[derive(Clone, Debug, PartialEq)]
pub struct PrefaceBlock {
    /// Where it comes from.
    pub name: String,
    /// The text.
    pub text: String,
}

/// What shapes a request's bytes besides header and history; constant in an epoch, and logged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Config {
    /// Name of the route.
    pub route: String,
    /// The protocol.
    pub wire: Wire,
    /// What the vendor's own SDK takes as its base URL; without user information.
    pub base_url: String,
    /// The model.
    pub model: String,
    /// Wire and revision of the encoder, such as `anthropic-messages/1`.
    pub encoder: String,
    /// Revision of the rules that derive messages from the surface, and of what else of a request follows from the log.
    pub derive_rev: u32,
    /// Model parameters.
    #[serde(default)]
    pub parameters: Parameters,
    /// Cache marks and the cache key.
    #[serde(default)]
    pub cache: CacheMarks,
    /// Facts about the endpoint's way to speak `openai-chat`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
    /// Whether images are sent.
    #[serde(default, skip_serializing_if = "ImageInput::is_noted")]
    pub images: ImageInput,
    /// Headers without secrets that the route adds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Optional fields that are not sent, since the endpoint does not take them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub withheld: BTreeSet<OptionalField>,
}

/// Model parameters. A wire that cannot express one answers `unsupported` before sending.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Most tokens of one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Texts at which the model stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
    /// How hard the model should think, in the vendor's words (`low`, `medium`, `high`, …).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Whether the model calls tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// How much the model says, in the vendor's words (`low`, `medium`, `high`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<String>,
}

/// Whether the model calls tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// None.
    None,
    /// At least one in each answer.
    Required,
    /// This one in each answer.
    Tool(String),
}

/// How the provider's prompt cache is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CacheMarks {
    /// True when the wire's cache marks are sent.
    pub marks: bool,
    /// How long what stands before the history is kept, on wires whose marks say so.
    #[serde(skip_serializing_if = "CacheTtl::is_default")]
    pub ttl: CacheTtl,
    /// Key that routes requests of one lineage to one cache; absent where the endpoint may not take it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl Default for CacheMarks {
    fn default() -> Self {
        Self { marks: true, ttl: CacheTtl::default(), key: None }
    }
}

/// How long the provider is asked to keep what is marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CacheTtl {
    /// Five minutes after the last use.
    #[default]
    #[serde(rename = "5m")]
    FiveMinutes,
    /// An hour after the last use, at a higher price for writing.
    #[serde(rename = "1h")]
    Hour,
}

impl CacheTtl {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl std::str::FromStr for CacheTtl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "5m" => Ok(Self::FiveMinutes),
            "1h" => Ok(Self::Hour),
            _ => Err(format!("takes \"5m\" or \"1h\", found {text:?}")),
        }
    }
}

/// Facts about one way to speak `openai-chat`. They are data, and logged, since they shape bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dialect {
    /// Name in `dialects.toml`.
    pub name: String,
    /// Where the endpoint renders the tools.
    pub prompt_order: PromptOrder,
    /// Role of the system message.
    pub system_role: SystemRole,
    /// Field that bounds the answer: `max_tokens` or `max_completion_tokens`.
    pub max_tokens_field: String,
    /// Field in which reasoning is sent back, where it must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_field: Option<String>,
    /// True when `stream_options.include_usage` is sent.
    pub stream_usage: bool,
    /// False when no user message may follow a tool's result: notices go into the last result.
    pub user_after_tool: bool,
    /// True when call ids must be nine letters or digits.
    pub short_call_ids: bool,
    /// Field that takes the effort; absent when the endpoint takes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort_field: Option<String>,
    /// Field that takes the verbosity; absent when the endpoint takes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbosity_field: Option<String>,
    /// Beginnings of the names of models of which only what is marked is cached: one mark at the top of the body stands for
    /// one on the last block.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marked_models: Vec<String>,
}

impl Default for Dialect {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            prompt_order: PromptOrder::SystemToolsMessages,
            system_role: SystemRole::System,
            max_tokens_field: "max_tokens".to_owned(),
            reasoning_field: None,
            stream_usage: true,
            user_after_tool: true,
            short_call_ids: false,
            effort_field: None,
            verbosity_field: None,
            marked_models: Vec::new(),
        }
    }
}

/// Where an endpoint renders the tools in the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptOrder {
    /// After the system message.
    #[default]
    SystemToolsMessages,
    /// Before everything.
    ToolsSystemMessages,
}

/// Role of the system message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SystemRole {
    /// `system`
    #[default]
    System,
    /// `developer`
    Developer,
}

/// A request, ready for its wire's encoder.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Tools, system, preface.
    pub header: &'a Header,
    /// What else shapes the bytes.
    pub config: &'a Config,
    /// The history.
    pub messages: Vec<Message>,
}
