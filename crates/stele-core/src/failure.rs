//! What can go wrong with a request to a provider.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{OptionalField, Text, Usage};

/// Kind of a failed attempt. The stable code is `provider.` and the name below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// The key was refused.
    Auth,
    /// The account has no credit or quota left.
    Quota,
    /// Too many requests for now.
    RateLimited,
    /// The provider has no capacity for now.
    Overloaded,
    /// The prompt is longer than the model's window.
    ContextOverflow,
    /// The request was refused as it is; sending it again does not help.
    InvalidRequest,
    /// The model does not exist or may not be used.
    UnknownModel,
    /// The provider failed.
    Server,
    /// No connection within the limit.
    ConnectTimeout,
    /// The stream stood still for longer than the limit.
    IdleTimeout,
    /// The connection could not be made or broke.
    Transport,
    /// The stream ended without terminal evidence.
    Incomplete,
    /// What came back is not what the wire promises.
    Malformed,
    /// The answer is longer than any later request could carry.
    TooLarge,
    /// The answer had neither text nor a call.
    Empty,
    /// The model or the provider's filter refused to answer.
    Refused,
    /// The wire cannot express what was asked for.
    Unsupported,
    /// No credential is known for this route.
    NoCredential,
}

impl FailureCode {
    /// The stable code, such as `provider.rate_limited`.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Auth => "provider.auth",
            Self::Quota => "provider.quota",
            Self::RateLimited => "provider.rate_limited",
            Self::Overloaded => "provider.overloaded",
            Self::ContextOverflow => "provider.context_overflow",
            Self::InvalidRequest => "provider.invalid_request",
            Self::UnknownModel => "provider.unknown_model",
            Self::Server => "provider.server",
            Self::ConnectTimeout => "provider.connect_timeout",
            Self::IdleTimeout => "provider.idle_timeout",
            Self::Transport => "provider.transport",
            Self::Incomplete => "provider.incomplete",
            Self::Malformed => "provider.malformed",
            Self::TooLarge => "provider.too_large",
            Self::Empty => "provider.empty",
            Self::Refused => "provider.refused",
            Self::Unsupported => "provider.unsupported",
            Self::NoCredential => "provider.no_credential",
        }
    }

    /// True when the same bytes may succeed if they are sent again.
    #[must_use]
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::RateLimited
                | Self::Overloaded
                | Self::Server
                | Self::ConnectTimeout
                | Self::IdleTimeout
                | Self::Transport
                | Self::Incomplete
                | Self::Malformed
                | Self::Empty
        )
    }
}

/// One failed attempt, as the provider's adapter saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// What kind of failure it was.
    pub code: FailureCode,
    /// The server's own words where there are some, and what to do.
    pub message: Text,
    /// HTTP status, when there was an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the server asked to wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// True when some of the answer had already arrived.
    pub output: bool,
    /// True when the whole request may have been taken and no error was the answer: nobody knows what it cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken: bool,
    /// What the failed attempt reported, all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Optional fields that the server says it does not take.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<OptionalField>,
}

impl Failure {
    /// A failure with nothing but a code and a message.
    #[must_use]
    pub fn new(code: FailureCode, message: impl Into<Text>) -> Self {
        Self {
            code,
            message: message.into(),
            status: None,
            retry_after_ms: None,
            output: false,
            taken: false,
            usage: None,
            refused: Vec::new(),
        }
    }

    /// The same of a request that may have been taken, since no error was the answer.
    #[must_use]
    pub fn taken(self) -> Self {
        Self { taken: true, ..self }
    }

    /// True when the attempt may have been billed. One that was answered with an error before any output was not.
    #[must_use]
    pub fn may_be_billed(&self) -> bool {
        self.output || self.taken
    }
}
