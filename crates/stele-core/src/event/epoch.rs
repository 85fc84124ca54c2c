//! Epochs: the header and the configuration of the requests to come.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{By, Texts};
use crate::{Config, Hash, Micros, OptionalField, Price, Text, Zone};

/// `epoch/due`: what the next epoch opens for, beside what the log itself says (a cut, another model). It is written by
/// whoever found that header or configuration differ from what the open epoch has, so that the log alone decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EpochDue {
    /// Why; absent when the open epoch is kept after all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<EpochReason>,
    /// Who found it: `resume`, `fork`, `fold`, or the person who chose to keep the open epoch.
    pub by: By,
}
impl Texts for EpochDue {}

/// `epoch/opened`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EpochOpened {
    /// Number of the epoch, from 1.
    pub n: u32,
    /// Why the last one ended.
    pub reason: EpochReason,
    /// Version of the program that composed it; empty in logs from before it was written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// What leaving the last one was estimated to cost; absent for a session's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<EpochCost>,
    /// The header, in order: tools, system, preface.
    pub segments: Vec<Segment>,
    /// What else shapes the bytes of a request.
    pub config: Box<Config>,
    /// What the route costs, as it was known then; absent for an unpriced route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The most tokens that one answer can have, as it was known then: what bounds the cost of a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
}
impl Texts for EpochOpened {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut Text)) {
        for segment in &mut self.segments {
            visit(&mut segment.text);
        }
    }
}

/// What it costs to leave a prefix that the provider has in its cache: an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EpochCost {
    /// Tokens that would have been read from the cache and are sent fresh.
    pub tokens: u64,
    /// What that costs more, in millionths of a dollar; absent where the route has no price for one of the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<Micros>,
}

/// Why an epoch opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EpochReason {
    /// The session's first request.
    Initial,
    /// Another model or route was chosen.
    ModelChanged,
    /// The route leads elsewhere than when the log was left.
    ResumeDrift {
        /// What differs.
        what: String,
    },
    /// A turn was taken back, or done again.
    Undo,
    /// The provider refused the history as it was.
    Repair,
    /// Other tools are offered.
    ToolsChanged {
        /// Tools that were not offered before.
        added: Vec<String>,
        /// Tools that are not offered any more.
        removed: Vec<String>,
        /// Tools whose description or schema is another one.
        changed: Vec<String>,
    },
    /// The system text is another one.
    SystemChanged {
        /// The sections that came, went or changed.
        sections: Vec<String>,
    },
    /// The model's parameters are other ones.
    ParametersChanged,
    /// This build encodes requests in another way.
    Encoder,
    /// A fork whose header or parameters are not its parent's.
    Forked,
    /// The header that the log gave was not the one that it describes: it was composed again.
    Restored,
}

impl EpochReason {
    /// The name in the log and in reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::ModelChanged => "model_changed",
            Self::ResumeDrift { .. } => "resume_drift",
            Self::Undo => "undo",
            Self::Repair => "repair",
            Self::ToolsChanged { .. } => "tools_changed",
            Self::SystemChanged { .. } => "system_changed",
            Self::ParametersChanged => "parameters_changed",
            Self::Encoder => "encoder",
            Self::Forked => "forked",
            Self::Restored => "restored",
        }
    }
}

/// A named part of the header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Segment {
    /// Where it stands.
    pub zone: Zone,
    /// Name: the tool's, the section's, or the source of a piece of the preface.
    pub name: String,
    /// A tool's canonical JSON, or text; always a blob, so that equal segments are stored once.
    pub text: Text,
}

impl Segment {
    /// What the log holds of it beside the text.
    #[must_use]
    pub fn digest(&self) -> SegmentDigest {
        let text = self.text.as_str();
        let (zone, name) = (self.zone, self.name.clone());
        SegmentDigest { zone, name, hash: Hash::of(text.as_bytes()), len: text.len() as u64 }
    }
}

/// A named part of the header by its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentDigest {
    /// Where it stands.
    pub zone: Zone,
    /// Its name.
    pub name: String,
    /// BLAKE3 of its text.
    pub hash: Hash,
    /// Bytes of its text.
    pub len: u64,
}

/// `caps/set`: the request that was refused is sent again at once, without what was dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapsSet {
    /// Every optional field that is still sent.
    pub fields: Vec<OptionalField>,
    /// Those that were dropped now.
    pub dropped: Vec<OptionalField>,
}
impl Texts for CapsSet {}
