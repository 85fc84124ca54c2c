//! Which optional fields a server says it does not take.
//!
//! Servers say so in many words, and most of them in none that a program could read. What counts: the error says that
//! something is unknown or not supported, and names the field, where errors name fields.

use serde::Deserialize;
use serde_json::Value;
use stele_core::OptionalField;

use super::error::Reported;

/// How much of the server's words is looked at: what follows may repeat the request.
const LOOKED_AT: usize = 400;

/// How servers say that they do not take something (OpenAI, Anthropic, Gemini, pydantic, serde and JSON-schema
/// validators, 2026-11).
const NOT_TAKEN: &[&str] = &[
    "unknown parameter",
    "unknown_parameter",
    "unknown field",
    "unknown name",
    "unknown argument",
    "unrecognized",
    "unrecognised",
    "unsupported",
    "not supported",
    "not support ",
    "not permitted",
    "not allowed",
    "extra_forbidden",
    "extra fields",
    "unexpected field",
    "unexpected keyword",
    "unexpected parameter",
    "unexpected property",
    "additional properties",
    "cannot find field",
];

/// What stands before a field's name where it is no quotation.
const INTRODUCES: &[&str] = &["parameter", "field", "argument", "property", "supplied", "name", "key"];

/// The optional fields that an error refuses.
pub(super) fn fields(reported: &Reported) -> Vec<OptionalField> {
    let mut found = Vec::new();
    let mut add = |field: Option<OptionalField>| {
        if let Some(field) = field.filter(|field| !found.contains(field)) {
            found.push(field);
        }
    };
    if let Some(complaints) = complaints(&reported.message) {
        for complaint in complaints.iter().filter(|complaint| complaint.is_refusal()) {
            add(OptionalField::named(&complaint.path()));
        }
        return found;
    }
    let message = &reported.message[..reported.message.floor_char_boundary(LOOKED_AT)];
    if refuses(&reported.kinds) || refuses(message) {
        add(reported.field.as_deref().and_then(OptionalField::named));
        named(message).into_iter().for_each(|field| add(Some(field)));
    }
    found
}

fn refuses(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    NOT_TAKEN.iter().any(|words| text.contains(words))
}

/// The fields that a sentence names.
fn named(message: &str) -> Vec<OptionalField> {
    const QUOTES: [char; 4] = ['\'', '"', '`', '’'];
    let mut found = Vec::new();
    let mut before = "";
    for (at, word) in message.split_whitespace().enumerate() {
        let bare = word.trim_matches(|character: char| "()[]{},;:.".contains(character));
        let path = bare.trim_matches(QUOTES);
        let quoted = bare.starts_with(QUOTES) && bare.ends_with(QUOTES);
        let introduced = INTRODUCES.iter().any(|word| before.trim_end_matches(['s', ':']).ends_with(word));
        let heads = at == 0 && word.ends_with(':');
        // A name of two words is none of the language; one such as `store` may be.
        if let Some(field) = OptionalField::named(path)
            && (field.name().contains('_') || quoted || introduced || heads)
        {
            found.push(field);
        }
        before = word;
    }
    found
}

/// One entry of the list that pydantic makes of an invalid request (FastAPI, Mistral, vLLM).
#[derive(Deserialize)]
struct Complaint {
    #[serde(rename = "type", default)]
    kind: String,
    loc: Vec<Value>,
    #[serde(default)]
    msg: String,
}

impl Complaint {
    fn is_refusal(&self) -> bool {
        self.kind == "value_error.extra" || refuses(&self.kind) || refuses(&self.msg)
    }

    fn path(&self) -> String {
        let parts = self.loc.iter().map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned));
        parts.collect::<Vec<_>>().join(".")
    }
}

fn complaints(message: &str) -> Option<Vec<Complaint>> {
    #[derive(Deserialize)]
    struct Detail {
        detail: Vec<Complaint>,
    }
    let json = message.trim();
    match json.as_bytes().first()? {
        b'[' => serde_json::from_str(json).ok(),
        b'{' => serde_json::from_str(json).ok().map(|detail: Detail| detail.detail),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stele_core::{FailureCode, OptionalField as Field, Wire};

    use crate::http_failure;

    #[track_caller]
    fn check(body: &str, expect: &[Field]) {
        let failure = http_failure(Wire::OpenaiChat, 400, None, body.as_bytes());
        assert_eq!(failure.refused, expect, "{}", failure.message.as_str());
    }

    fn said(message: &str) -> String {
        serde_json::json!({ "error": { "message": message, "type": "invalid_request_error" } }).to_string()
    }

    #[test]
    fn a_refusal_is_read_in_the_words_of_several_servers() {
        check(
            r#"{"error":{"message":"Unknown parameter: 'prompt_cache_key'.","type":"invalid_request_error","param":"prompt_cache_key","code":"unknown_parameter"}}"#,
            &[Field::PromptCacheKey],
        );
        check(&said("Unrecognized request argument supplied: prompt_cache_key"), &[Field::PromptCacheKey]);
        check(
            &said("Unrecognized request arguments supplied: prompt_cache_key, stream_options"),
            &[Field::PromptCacheKey, Field::StreamOptions],
        );
        check(&said("Unrecognized request argument supplied: store"), &[Field::Store]);
        check(&said("system.0.cache_control: Extra inputs are not permitted"), &[Field::CacheControl]);
        check(&said("cache_control: Extra inputs are not permitted"), &[Field::CacheControl]);
        check(&said("system.0.cache_control.ephemeral.ttl: Extra inputs are not permitted"), &[Field::CacheTtl]);
        check("json: unknown field \"ttl\"", &[Field::CacheTtl]);
        check(&said("cache_control.ttl: 1h is not supported by this model"), &[Field::CacheTtl]);
        check(&said("store: Extra inputs are not permitted"), &[Field::Store]);
        check(&said("unsupported field stream_options"), &[Field::StreamOptions]);
        check(&said("json: unknown field \"stream_options\""), &[Field::StreamOptions]);
        check(&said("Invalid JSON payload received. Unknown name \"store\": Cannot find field."), &[Field::Store]);
        check(
            r#"{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include"}}"#,
            &[Field::Include],
        );
        check(
            r#"{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted","input":{"include_usage":true}},{"type":"extra_forbidden","loc":["body","messages",0,"content",1,"cache_control"],"msg":"Extra inputs are not permitted"}]}"#,
            &[Field::StreamOptions, Field::CacheControl],
        );
        check(
            r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","prompt_cache_key"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error"}"#,
            &[Field::PromptCacheKey],
        );
        check(
            r#"{"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted'}]","type":"BadRequestError"}"#,
            &[Field::StreamOptions],
        );
        check("unknown field `store`, expected one of `model`, `messages`", &[Field::Store]);
    }

    #[test]
    fn what_is_no_refusal_of_a_field_is_none() {
        for message in [
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            "model: Field required",
            "Unknown parameter: 'frobnicate'.",
            "This model is not supported; please include a newer one, or ask the store",
            "tools.0.input_schema.properties.cache_control: Extra inputs are not permitted",
            "tools.0.input_schema.properties.ttl: Extra inputs are not permitted",
        ] {
            check(&said(message), &[]);
        }
        let missing = r#"{"detail":[{"type":"missing","loc":["body","store"],"msg":"Field required"}]}"#;
        check(missing, &[]);
        // What comes long after the complaint may be the request itself.
        check(&said(&format!("Unknown parameter: 'x'. {} \"cache_control\"", "y".repeat(500))), &[]);
    }

    #[test]
    fn only_a_request_that_is_refused_as_it_is_refuses_fields() {
        let limited = http_failure(Wire::OpenaiChat, 429, None, said("unsupported field stream_options").as_bytes());
        assert_eq!((limited.code, limited.refused), (FailureCode::RateLimited, Vec::new()));
    }

    proptest! {
        #[test]
        fn any_message_is_read_without_a_panic(message in "(unsupported )?.{0,500}", body in proptest::collection::vec(any::<u8>(), 0..200)) {
            for body in [said(&message).as_bytes(), &body] {
                prop_assert!(http_failure(Wire::OpenaiChat, 400, None, body).refused.len() <= Field::ALL.len());
            }
        }
    }
}
