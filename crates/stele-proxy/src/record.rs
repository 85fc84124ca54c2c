//! A request as it was recorded: what the analyses take.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stele_core::{BodyDigest, EpochCost, EpochReason, Millis, Usage, Wire};

use stele_provider::{CacheRules, Mechanism};

use crate::prompt::{Context, Mark, Segment};

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The answer was passed on to its end.
    Whole,
    /// The client left before.
    ClientLeft,
    /// The server's answer broke off.
    ServerBroke,
    /// No answer could be had.
    Unreachable,
}

impl Ending {
    /// The name in the store and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::ClientLeft => "client_left",
            Self::ServerBroke => "server_broke",
            Self::Unreachable => "unreachable",
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A declared cut: the prefix was left on purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Why, as the log has it; in JSON its name as `reason`, and what it holds besides as `details`.
    pub reason: EpochReason,
    /// What it was estimated to cost, before anything was sent.
    pub cost: Option<EpochCost>,
}

impl Serialize for Cut {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown<'a> {
            reason: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            details: Option<Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            cost: Option<EpochCost>,
        }
        let details = match serde_json::to_value(&self.reason) {
            Ok(Value::Object(fields)) => fields.into_iter().next().map(|(_, details)| details),
            _ => None,
        };
        Shown { reason: self.reason.name(), details, cost: self.cost }.serialize(serializer)
    }
}

/// A model at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place<'a> {
    wire: Wire,
    base_url: &'a str,
    model: &'a str,
}

/// One model request with what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Its number, unique in its store and growing with time.
    pub id: u64,
    /// When it began to arrive.
    pub at: Millis,
    /// Milliseconds from then to the first byte of the answer's head.
    pub first_byte_ms: Option<u64>,
    /// Milliseconds from then to the end.
    pub total_ms: Option<u64>,
    /// The protocol.
    pub wire: Wire,
    /// Scheme, host and port of the server, with the path before the wire's own.
    pub base_url: String,
    /// The model that was asked.
    pub model: String,
    /// What the client calls itself (`user-agent`).
    pub agent: Option<String>,
    /// The answer's status.
    pub status: Option<u16>,
    /// How the exchange ended.
    pub ending: Ending,
    /// Hash and length of the body as it was sent, content encoding included.
    pub body: BodyDigest,
    /// The prompt.
    pub segments: Vec<Segment>,
    /// What is not prompt.
    pub parameters: Map<String, Value>,
    /// Whether all of the prompt is here.
    pub context: Context,
    /// What the provider reported.
    pub usage: Option<Usage>,
    /// What the endpoint itself said about a miss, where it was asked to.
    pub miss_reason: Option<String>,
    /// The cut that was declared before this request; only Stele's own sessions declare one.
    pub cut: Option<Cut>,
    /// The session that it is known to belong to; absent where that has to be found out from the prompts.
    pub session: Option<String>,
}

impl Recorded {
    /// Bytes of the prompt.
    #[must_use]
    pub fn prompt_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes.len() as u64).sum()
    }

    /// True when the provider answered it, so that its prompt may be in the cache.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }

    /// Where it went to: requests to one place can read what each other leaves in a cache, and could be compared byte by
    /// byte.
    pub(crate) fn place(&self) -> Place<'_> {
        Place { wire: self.wire, base_url: &self.base_url, model: &self.model }
    }

    /// When its prompt can be read from the cache: with the first byte of the answer, and not before.
    #[must_use]
    pub(crate) fn readable_at(&self) -> Millis {
        Millis(self.at.0.saturating_add(i64::try_from(self.first_byte_ms.unwrap_or(0)).unwrap_or(i64::MAX)))
    }

    /// How long an entry lives at least that was written under a mark of this request, or by all of it.
    #[must_use]
    pub(crate) fn lifetime(&self, rules: &CacheRules, mark: Option<Mark>) -> Option<u64> {
        // OpenAI, prompt caching, 2026-11: "24h" asks for the longer retention.
        let asked = self.parameters.get("prompt_cache_retention").and_then(|value| value.as_str()) == Some("24h");
        rules.lifetime(mark == Some(Mark::Hour) || asked)
    }

    /// Whether nothing of it is cached without a mark (OpenAI, prompt caching, 2026-11: in the mode "explicit").
    #[must_use]
    pub(crate) fn needs_marks(&self, rules: &CacheRules) -> bool {
        let options = self.parameters.get("prompt_cache_options");
        let explicit = options.and_then(|options| options.get("mode")?.as_str()) == Some("explicit");
        rules.mechanism == Mechanism::Marks || rules.mechanism == Mechanism::Breakpoints && explicit
    }

    /// Input tokens as the provider counted them.
    #[must_use]
    pub(crate) fn input(&self) -> Option<u64> {
        self.usage.and_then(|usage| usage.input()).filter(|input| *input > 0)
    }

    /// Tokens of so many bytes of this prompt: by the provider's own count, else 3.6 bytes a token.
    #[must_use]
    pub(crate) fn tokens(&self, bytes: u64) -> u64 {
        self.tokens_of(bytes, self.prompt_bytes())
    }

    /// The same, where the bytes of the whole prompt have been counted already.
    #[must_use]
    pub(crate) fn tokens_of(&self, bytes: u64, prompt_bytes: u64) -> u64 {
        match self.input() {
            Some(input) => scale(bytes, input, prompt_bytes.max(1)),
            None => scale(bytes, 10, 36),
        }
    }
}

/// `value · by / over`, without overflow.
pub(crate) fn scale(value: u64, by: u64, over: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(by) / u128::from(over.max(1))).unwrap_or(u64::MAX)
}
