//! Tool calls, from the model's asking to the result.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{By, ResultMeta, Texts};
use crate::call::Verdict;
use crate::{CallId, Effects, Image, Mode, Text, ToolError};

/// `tool/called`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCalled {
    /// Our id.
    pub call: CallId,
    /// The vendor's id, kept for native replay; absent when it was empty or a repetition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor_id: Option<String>,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments as the model wrote them: raw text that should be a JSON object.
    pub arguments: Text,
}
impl Texts for ToolCalled {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut Text)) {
        visit(&mut self.arguments);
    }
}

/// `tool/gated`: written for every call that passed validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolGated {
    /// The call.
    pub call: CallId,
    /// Allowed, asked or refused.
    pub decision: Verdict,
    /// Who decided: `mode:edit`, `rule:flag:0`, `builtin:read-only`, `limit:repeats`.
    pub by: By,
    /// Why, for a person and, in a refusal, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The rules that "always" would grant. Earlier logs have one, as a string.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    pub always: Vec<String>,
    /// The rules with which it would run without a question, were they given on the command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settled_with: Vec<String>,
    /// The lowest mode above the session's own in which it would run without a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_by: Option<Mode>,
    /// What the body may change.
    pub effects: Effects,
    /// True when it may run beside its neighbours.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parallel: bool,
}
impl Texts for ToolGated {}

/// `approval/asked`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalAsked {
    /// The call.
    pub call: CallId,
}
impl Texts for ApprovalAsked {}

/// `approval/decided`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalDecided {
    /// The call.
    pub call: CallId,
    /// Who decided; `headless` when there was nobody to ask.
    pub by: By,
    /// What was decided.
    pub outcome: ApprovalOutcome,
}
impl Texts for ApprovalDecided {}

/// A person's answer to a question about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ApprovalOutcome {
    /// This call only.
    Once,
    /// This call, and every later one that the rules cover, in this session.
    Always {
        /// The rules, as the person read them. Earlier logs have one, as `rule`.
        #[serde(alias = "rule", deserialize_with = "one_or_many")]
        rules: Vec<String>,
    },
    /// Not this call.
    Reject {
        /// Why, for the model.
        reason: String,
    },
    /// There was nobody to ask.
    Unanswered,
}

/// `tool/started`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolStarted {
    /// The call.
    pub call: CallId,
}
impl Texts for ToolStarted {}

/// `tool/result`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The call.
    pub call: CallId,
    /// What the model reads; a fixed text stands for nothing when the request is built.
    #[serde(deserialize_with = "crate::text::as_literal")]
    pub content: Text,
    /// What the model sees beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Set when the call did not do what was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// Facts for people, cards and the fold.
    #[serde(default, skip_serializing_if = "ResultMeta::is_empty")]
    pub meta: ResultMeta,
}
impl Texts for ToolResult {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut Text)) {
        visit(&mut self.content);
        for image in &mut self.images {
            visit(&mut image.data);
        }
        for file in &mut self.meta.files {
            if let Some(diff) = &mut file.diff {
                visit(diff);
            }
        }
    }
}

/// A list, or the one string that stood in its place in earlier logs.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(rule) => vec![rule],
        OneOrMany::Many(rules) => rules,
    })
}
