//! What an endpoint itself says about a miss, where it was asked to.
//!
//! Anthropic, cache diagnostics, 2026-11: `diagnostics.cache_miss_reason` of the answer, for requests with `diagnostics`.
//! OpenAI, prompt cache diagnostics, 2026-11: `prompt_cache_diagnostics` of the response, for requests with
//! `prompt_cache_options.comparison_response_id`.

use serde_json::Value;

/// Names under which endpoints say it.
const NAMES: [&str; 2] = ["cache_miss_reason", "prompt_cache_diagnostics"];
/// Characters of an account that is no single word.
const SHOWN: usize = 200;
/// How deep the account may stand in an event.
const DEEP: usize = 4;

/// True when some bytes may hold such an account.
pub(crate) fn is_named_in(bytes: &[u8]) -> bool {
    NAMES.iter().any(|name| memchr::memmem::find(bytes, name.as_bytes()).is_some())
}

/// The account in an event's or a document's JSON; `None` when there is none, or when it says that nothing was missed.
#[must_use]
pub fn miss_reason(json: &str) -> Option<String> {
    if !is_named_in(json.as_bytes()) {
        return None;
    }
    let value: Value = serde_json::from_str(json).ok()?;
    let account = find(&value, DEEP)?;
    let word = match account {
        Value::String(word) => Some(word.as_str()),
        account => ["type", "reason"].iter().find_map(|name| account.get(name).and_then(Value::as_str)),
    };
    let text = word.map_or_else(|| account.to_string(), str::to_owned);
    let shown: String = text.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
    (!shown.is_empty()).then_some(shown)
}

fn find(value: &Value, deep: usize) -> Option<&Value> {
    let fields = value.as_object()?;
    let own = NAMES.iter().find_map(|name| fields.get(*name)).filter(|account| !account.is_null());
    own.or_else(|| fields.values().filter(|_| deep > 0).find_map(|inner| find(inner, deep - 1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_account_is_found_where_endpoints_put_it() {
        let check = |json: &str, expect: Option<&str>| assert_eq!(miss_reason(json).as_deref(), expect, "{json}");
        check(
            r#"{"type":"message_start","message":{"diagnostics":{"cache_miss_reason":{"type":"tools_changed","cache_missed_input_tokens":9}}}}"#,
            Some("tools_changed"),
        );
        check(r#"{"response":{"prompt_cache_diagnostics":{"reason":"model"}}}"#, Some("model"));
        check(r#"{"response":{"prompt_cache_diagnostics":{"missed":5}}}"#, Some(r#"{"missed":5}"#));
        check(r#"{"diagnostics":{"cache_miss_reason":null}}"#, None);
        check(r#"{"usage":{"input_tokens":1}}"#, None);
        check("cache_miss_reason", None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_not(text in ".{0,60}", inner in "[\\[\\]{}:,\"a-z0-9]{0,40}") {
            let _ = miss_reason(&text);
            let said = miss_reason(&format!("{{\"cache_miss_reason\":{inner}}}"));
            prop_assert!(said.is_none_or(|said| said.chars().count() <= SHOWN));
        }
    }
}
