//! What a vendor answers to a request that it does not take.

use serde_json::{Value, json};
use stele_core::Wire;

/// A refusal, before it has the wire's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) message: String,
    /// The field that is wrong, where the wire's error body names it.
    pub(crate) field: Option<String>,
    /// The code that the OpenAI wires carry beside the kind.
    pub(crate) code: Option<&'static str>,
    /// The whole body, where it is none of the wire's own form.
    pub(crate) body: Option<Value>,
}

impl Refusal {
    /// A 400 with a message.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self { status: 400, message: message.into(), field: None, code: None, body: None }
    }

    /// A 400 about a field.
    pub(crate) fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status: 400, message: message.into(), field: Some(field.into()), code: None, body: None }
    }

    /// What the wire's vendor says with a status, when a script does not say it.
    pub(crate) fn of_status(wire: Wire, status: u16) -> Self {
        let message = match (status, wire) {
            (400, _) => "The request is not valid.",
            (401, Wire::AnthropicMessages) => "invalid x-api-key",
            (401, Wire::Gemini) => "API key not valid. Please pass a valid API key.",
            (401, _) => "Incorrect API key provided.",
            (402, _) => "Insufficient Balance",
            (403, _) => "The key has no permission for this resource.",
            (404, _) => "The model does not exist or you do not have access to it.",
            (413, _) => "Request exceeds the maximum size",
            (429, Wire::Gemini) => "Resource has been exhausted (e.g. check quota).",
            (429, _) => "Rate limit reached for requests.",
            (503, Wire::Gemini) => "The model is overloaded. Please try again later.",
            (503, _) => "Service temporarily unavailable.",
            (529, _) => "Overloaded",
            _ => "The server had an error while processing your request.",
        };
        let code = match status {
            401 => Some("invalid_api_key"),
            402 => Some("insufficient_quota"),
            404 => Some("model_not_found"),
            429 => Some("rate_limit_exceeded"),
            status if status >= 500 => Some("server_error"),
            _ => None,
        };
        Self { status, message: message.to_owned(), field: None, code, body: None }
    }

    /// A prompt that is longer than the model's window.
    pub(crate) fn too_long(wire: Wire, tokens: u64, window: u64) -> Self {
        let message = match wire {
            Wire::AnthropicMessages => format!("prompt is too long: {tokens} tokens > {window} maximum"),
            Wire::OpenaiResponses => {
                "Your input exceeds the context window of this model. Please adjust your input and try again."
                    .to_owned()
            }
            Wire::OpenaiChat => format!(
                "This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} \
                 tokens. Please reduce the length of the messages."
            ),
            Wire::Gemini => {
                format!("The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window}).")
            }
        };
        Self { code: Some("context_length_exceeded"), ..Self::invalid(message) }
    }

    /// The kind of error, in the wire's words.
    fn kind(&self, wire: Wire) -> &'static str {
        match wire {
            Wire::AnthropicMessages => match self.status {
                400 => "invalid_request_error",
                401 => "authentication_error",
                402 => "billing_error",
                403 => "permission_error",
                404 => "not_found_error",
                413 => "request_too_large",
                429 => "rate_limit_error",
                503 | 529 => "overloaded_error",
                _ => "api_error",
            },
            Wire::OpenaiResponses | Wire::OpenaiChat => match self.status {
                402 => "insufficient_quota",
                429 => "requests",
                status if status >= 500 => "server_error",
                _ => "invalid_request_error",
            },
            Wire::Gemini => match self.status {
                400 | 413 => "INVALID_ARGUMENT",
                401 => "UNAUTHENTICATED",
                402 | 403 => "PERMISSION_DENIED",
                404 => "NOT_FOUND",
                429 => "RESOURCE_EXHAUSTED",
                503 | 529 => "UNAVAILABLE",
                _ => "INTERNAL",
            },
        }
    }

    /// The error object in the wire's form: a whole body, and on most wires the data of an error event too.
    pub(crate) fn body(&self, wire: Wire) -> Value {
        if let Some(body) = &self.body {
            return body.clone();
        }
        let kind = self.kind(wire);
        match wire {
            Wire::AnthropicMessages => {
                json!({"type": "error", "error": {"type": kind, "message": self.message}})
            }
            Wire::OpenaiResponses | Wire::OpenaiChat => json!({
                "error": {"message": self.message, "type": kind, "param": self.field, "code": self.code}
            }),
            Wire::Gemini => json!({"error": {"code": self.status, "message": self.message, "status": kind}}),
        }
    }
}
