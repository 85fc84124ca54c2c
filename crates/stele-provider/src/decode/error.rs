//! What a provider's error means.
//!
//! Kinds are told apart by the vendor's own code or type first, then by the status, and by the wording only where
//! vendors give nothing else (an overlong prompt, an empty account). The server's own message is always kept.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use stele_core::{Failure, FailureCode, Wire};

use super::refused;

/// Bytes of the server's own words that are kept.
const MESSAGE_MAX: usize = 2048;

/// What a server says about an error, whatever the shape of its JSON.
#[derive(Debug, Default)]
pub(super) struct Reported {
    /// Machine-readable words: `type`, `code`, `status`, reasons; lower case, separated by spaces.
    pub kinds: String,
    /// An HTTP status inside the body.
    pub status: Option<u16>,
    /// The server's words.
    pub message: String,
    /// The field that is at fault.
    pub field: Option<String>,
    /// How long to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

/// A failure from an HTTP status that is no success, with the body that came with it.
///
/// `retry_after_ms` is the `Retry-After` header, already in milliseconds.
#[must_use]
pub fn http_failure(wire: Wire, status: u16, retry_after_ms: Option<u64>, body: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(body);
    let json = stele_core::repair_surrogates(&text);
    let mut reported = parse(&json).unwrap_or_else(|| Reported { message: plain_text(&text), ..Reported::default() });
    reported.retry_after_ms = retry_after_ms.or(reported.retry_after_ms);
    failure(wire, Some(status), reported)
}

/// A failure from what a server reported, over HTTP or inside a stream.
pub(super) fn failure(wire: Wire, status: Option<u16>, reported: Reported) -> Failure {
    let code = classify(status, &reported);
    let mut said = sanitised(&reported.message);
    if said.is_empty() {
        said = match status {
            Some(status) => format!("the server answered {status} without a message"),
            None => "the server reported an error without a message".to_owned(),
        };
    }
    if let Some(field) = reported.field.as_deref().filter(|field| !said.contains(field)) {
        said.push_str(&format!(" (field {})", sanitised(field)));
    }
    let refused = if code == FailureCode::InvalidRequest { refused::fields(&reported) } else { Vec::new() };
    // What is refused for an optional field goes again without it.
    let message = match hint(code, status, wire).filter(|_| refused.is_empty()) {
        Some(hint) => format!("{}; {hint}", said.trim_end_matches('.')),
        None => said,
    };
    Failure { status, retry_after_ms: reported.retry_after_ms, refused, ..Failure::new(code, message) }
}

fn hint(code: FailureCode, status: Option<u16>, wire: Wire) -> Option<Cow<'static, str>> {
    Some(Cow::Borrowed(match code {
        FailureCode::Auth => "check this route's key",
        FailureCode::Quota => "add credit to this account or choose another route",
        FailureCode::ContextOverflow => "start a new session or choose a model with a larger window",
        FailureCode::UnknownModel => "choose a model that this endpoint has",
        FailureCode::InvalidRequest if status == Some(404) => {
            return Some(Cow::Owned(format!("check the route's base URL: nothing there speaks {wire}")));
        }
        FailureCode::InvalidRequest => "the same would be refused again: choose another model, or ask differently",
        _ => return None,
    }))
}

fn classify(status: Option<u16>, reported: &Reported) -> FailureCode {
    use FailureCode as Code;
    let status = status.filter(|status| *status >= 300).or(reported.status);
    let kinds = reported.kinds.as_str();
    let message = reported.message.to_ascii_lowercase();
    let kind = |words: &[&str]| words.iter().any(|word| kinds.contains(word));
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));

    if kind(&["context_length_exceeded", "exceed_context_size", "context_window_exceeded", "request_too_large"])
        || (!kind(&["rate_limit"]) && !matches!(status, Some(401 | 403 | 429)) && says(OVERFLOWS))
    {
        return Code::ContextOverflow;
    }
    if kind(&["insufficient_quota", "billing", "insufficient_balance", "credit_balance"])
        || status == Some(402)
        || says(&["credit balance is too low", "insufficient balance", "insufficient credits"])
    {
        return Code::Quota;
    }
    if kind(&["rate_limit", "resource_exhausted", "too_many_requests"]) || status == Some(429) {
        return Code::RateLimited;
    }
    if kind(&["authentication", "invalid_api_key", "api_key_invalid", "permission", "unauthenticated", "unauthorized"])
        || matches!(status, Some(401 | 403))
    {
        return Code::Auth;
    }
    if kind(&["overloaded", "slow_down", "unavailable"]) || matches!(status, Some(503 | 529)) {
        return Code::Overloaded;
    }
    if kind(&["model_not_found", "unknown_model", "model_not_available"]) {
        return Code::UnknownModel;
    }
    if kind(&["not_found"]) || matches!(status, Some(404)) {
        return if says(&["model"]) { Code::UnknownModel } else { Code::InvalidRequest };
    }
    if kind(&["content_policy", "content_filter", "data_inspection_failed"]) {
        return Code::Refused;
    }
    match status {
        Some(408 | 409 | 425 | 500..) => Code::Server,
        Some(413) => Code::ContextOverflow,
        Some(300..) => Code::InvalidRequest,
        _ if kind(&["invalid_request", "invalid_argument", "invalid_prompt", "failed_precondition"]) => {
            Code::InvalidRequest
        }
        _ => Code::Server,
    }
}

/// How servers word an overlong prompt where no code says it (Anthropic, OpenAI, Gemini, vLLM, llama.cpp, 2026-11).
const OVERFLOWS: &[&str] = &[
    "prompt is too long",
    "context length",
    "context window",
    "maximum context",
    "exceeds the available context",
    "input token count",
    "exceeds the maximum number of tokens",
    "input is too long",
];

/// Reads the shapes that error bodies have: `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}`, or
/// a list of these.
pub(super) fn parse(json: &str) -> Option<Reported> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        error: Option<&'a RawValue>,
        #[serde(borrow)]
        detail: Option<&'a RawValue>,
        #[serde(borrow)]
        message: Option<&'a RawValue>,
    }
    let json = json.trim();
    if json.starts_with('[') {
        let list: Vec<&RawValue> = serde_json::from_str(json).ok()?;
        return list.first().and_then(|first| parse(first.get()));
    }
    let body: Body<'_> = serde_json::from_str(json).ok()?;
    if let Some(error) = body.error.filter(|error| error.get() != "null") {
        return Some(object(error.get()).unwrap_or_else(|| Reported { message: words(error), ..Reported::default() }));
    }
    if body.message.is_some() {
        return object(json);
    }
    body.detail.map(|detail| Reported { message: words(detail), ..Reported::default() })
}

/// Reads an error object.
pub(super) fn object(json: &str) -> Option<Reported> {
    #[derive(Deserialize)]
    struct Fields<'a> {
        #[serde(rename = "type", borrow)]
        kind: Option<&'a RawValue>,
        #[serde(borrow)]
        code: Option<&'a RawValue>,
        #[serde(borrow)]
        status: Option<&'a RawValue>,
        #[serde(borrow)]
        message: Option<&'a RawValue>,
        #[serde(borrow)]
        param: Option<&'a RawValue>,
        #[serde(borrow)]
        details: Option<&'a RawValue>,
    }
    let fields: Fields<'_> = serde_json::from_str(json).ok()?;
    let mut reported = Reported::default();
    for raw in [fields.kind, fields.code, fields.status].into_iter().flatten() {
        let word = words(raw);
        match word.parse::<u16>() {
            Ok(status @ 300..=599) => reported.status = Some(status),
            _ => {
                reported.kinds.push_str(&word.to_ascii_lowercase());
                reported.kinds.push(' ');
            }
        }
    }
    reported.message = fields.message.map(words).unwrap_or_default();
    reported.field = fields.param.map(words).filter(|field| !field.is_empty());
    if let Some(details) = fields.details {
        detail_facts(details.get(), &mut reported);
    }
    Some(reported)
}

/// Gemini says why and how long to wait in a list of details (Google API error model, 2026-11).
fn detail_facts(json: &str, reported: &mut Reported) {
    #[derive(Deserialize)]
    struct Detail {
        reason: Option<String>,
        #[serde(rename = "retryDelay")]
        retry_delay: Option<String>,
    }
    let Ok(details) = serde_json::from_str::<Vec<Detail>>(json) else { return };
    for detail in details {
        if let Some(reason) = detail.reason {
            reported.kinds.push_str(&reason.to_ascii_lowercase());
            reported.kinds.push(' ');
        }
        let seconds = detail.retry_delay.as_deref().and_then(|delay| delay.strip_suffix('s')?.parse::<f64>().ok());
        if let Some(seconds) = seconds.filter(|seconds| (0.0..86_400.0).contains(seconds)) {
            reported.retry_after_ms = Some((seconds * 1000.0).ceil() as u64);
        }
    }
}

/// A JSON value as words: a string's content, anything else as it is written, nothing for `null`.
fn words(raw: &RawValue) -> String {
    match raw.get() {
        "null" => String::new(),
        json => serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned()),
    }
}

/// The words of a page that is no JSON: without tags.
fn plain_text(body: &str) -> String {
    let mut text = String::new();
    let mut in_tag = false;
    for character in body.chars().take(4 * MESSAGE_MAX) {
        match character {
            '<' => in_tag = true,
            '>' if in_tag => {
                in_tag = false;
                text.push(' ');
            }
            _ if !in_tag => text.push(character),
            _ => {}
        }
    }
    text
}

/// One line without control characters, at most [`MESSAGE_MAX`] bytes: it is shown in terminals and logged.
fn sanitised(text: &str) -> String {
    let mut line = String::new();
    for word in text.split(|character: char| character.is_whitespace() || character.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > MESSAGE_MAX {
            line.truncate(line.floor_char_boundary(MESSAGE_MAX));
            line.push('…');
            break;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wire: Wire, status: u16, body: &str, code: FailureCode, said: &str) -> Failure {
        let failure = http_failure(wire, status, None, body.as_bytes());
        assert_eq!(failure.code, code, "{}", failure.message.as_str());
        assert!(failure.message.as_str().contains(said), "{}", failure.message.as_str());
        assert_eq!(failure.status, Some(status));
        failure
    }

    #[test]
    fn anthropic_errors() {
        use FailureCode as Code;
        let body = |kind: &str, message: &str| {
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"r"}}"#)
        };
        for (status, kind, message, code) in [
            (401, "authentication_error", "invalid x-api-key", Code::Auth),
            (403, "permission_error", "not allowed", Code::Auth),
            (400, "invalid_request_error", "Your credit balance is too low to access the API", Code::Quota),
            (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", Code::ContextOverflow),
            (413, "request_too_large", "Request exceeds the maximum size", Code::ContextOverflow),
            (400, "invalid_request_error", "messages: at least one message is required", Code::InvalidRequest),
            (404, "not_found_error", "model: claude-none", Code::UnknownModel),
            (429, "rate_limit_error", "too many requests", Code::RateLimited),
            (500, "api_error", "Internal server error", Code::Server),
            (529, "overloaded_error", "Overloaded", Code::Overloaded),
        ] {
            check(Wire::AnthropicMessages, status, &body(kind, message), code, message);
        }
    }

    #[test]
    fn openai_errors() {
        use FailureCode as Code;
        let wire = Wire::OpenaiChat;
        let quota = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#;
        check(wire, 429, quota, Code::Quota, "exceeded your current quota");
        let overflow = r#"{"error":{"message":"too long","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#;
        check(wire, 400, overflow, Code::ContextOverflow, "(field messages)");
        let model = r#"{"error":{"message":"The model `x` does not exist","type":"invalid_request_error","code":"model_not_found"}}"#;
        check(wire, 404, model, Code::UnknownModel, "`x`");
        let key = r#"{"error":{"message":"Incorrect API key provided: abc","type":"invalid_request_error","code":"invalid_api_key"}}"#;
        check(wire, 401, key, Code::Auth, "Incorrect API key");
        // llama.cpp, 2026-11.
        let window = r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":8}}"#;
        check(wire, 400, window, Code::ContextOverflow, "available context size");
        let loading = r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#;
        check(wire, 503, loading, Code::Overloaded, "Loading model");
        let unparsable = r#"{"error":{"code":500,"message":"The model produced output that does not match the expected format","type":"server_error"}}"#;
        check(wire, 500, unparsable, Code::Server, "does not match");
        // Tokens per minute are a rate, whatever the status.
        let rate = r#"{"error":{"message":"Request too large for model on tokens per minute (TPM): context window","type":"tokens","code":"rate_limit_exceeded"}}"#;
        check(wire, 413, rate, Code::RateLimited, "TPM");
    }

    #[test]
    fn gemini_errors() {
        use FailureCode as Code;
        let wire = Wire::Gemini;
        let limited = r#"[{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.074s"}]}}]"#;
        let failure = check(wire, 429, limited, Code::RateLimited, "quota");
        assert_eq!(failure.retry_after_ms, Some(34_074));
        let key = r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#;
        check(wire, 400, key, Code::Auth, "API key not valid");
        let overflow = r#"{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}"#;
        check(wire, 400, overflow, Code::ContextOverflow, "input token count");
        check(
            wire,
            404,
            r#"{"error":{"code":404,"message":"models/x is not found","status":"NOT_FOUND"}}"#,
            Code::UnknownModel,
            "models/x",
        );
    }

    #[test]
    fn other_shapes_keep_the_servers_words() {
        use FailureCode as Code;
        check(Wire::OpenaiChat, 404, r#"{"error":"model 'x' not found"}"#, Code::UnknownModel, "model 'x' not found");
        check(
            Wire::OpenaiChat,
            422,
            r#"{"detail":[{"loc":["body"],"msg":"bad"}]}"#,
            Code::InvalidRequest,
            r#""msg":"bad""#,
        );
        check(Wire::OpenaiChat, 404, r#"{"detail":"Not Found"}"#, Code::InvalidRequest, "check the route's base URL");
        check(Wire::OpenaiChat, 502, "<html><h1>Bad\tGateway</h1></html>", Code::Server, "Bad Gateway");
        check(Wire::OpenaiChat, 500, "", Code::Server, "answered 500 without a message");
        check(Wire::OpenaiChat, 307, "", Code::InvalidRequest, "answered 307");
    }

    #[test]
    fn the_message_is_bounded_and_holds_no_control_characters() {
        let body = format!(r#"{{"error":{{"message":"\u001b[2J\r\n{} \ud83d"}}}}"#, "é".repeat(4000));
        let failure = http_failure(Wire::OpenaiChat, 400, Some(5), body.as_bytes());
        assert!(failure.message.len() < 2200 && failure.message.as_str().starts_with("[2J é"));
        assert_eq!(failure.retry_after_ms, Some(5));
    }
}
