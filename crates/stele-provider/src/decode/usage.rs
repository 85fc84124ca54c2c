//! What each vendor reports, in disjoint buckets. A figure that was not reported stays absent.

use serde::Deserialize;
use stele_core::Usage;

/// Anthropic, Messages API, 2026-11: `input_tokens` is what was neither read nor written. The counters of
/// `message_delta` are cumulative and so is an opening report, so a later figure replaces an earlier one; the larger
/// wins, since compatible servers report zeros in one of the two.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Anthropic {
    input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<AnthropicCreation>,
    output_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct AnthropicCreation {
    ephemeral_5m_input_tokens: Option<u64>,
    ephemeral_1h_input_tokens: Option<u64>,
}

impl Anthropic {
    pub(super) fn assign(&mut self, later: Self) {
        self.input_tokens = self.input_tokens.max(later.input_tokens);
        self.cache_read_input_tokens = self.cache_read_input_tokens.max(later.cache_read_input_tokens);
        self.cache_creation_input_tokens = self.cache_creation_input_tokens.max(later.cache_creation_input_tokens);
        self.cache_creation = later.cache_creation.or(self.cache_creation);
        self.output_tokens = self.output_tokens.max(later.output_tokens);
    }

    pub(super) fn counts_output(self) -> bool {
        self.output_tokens.is_some()
    }

    pub(super) fn buckets(self) -> Usage {
        let split = self.cache_creation.unwrap_or_default();
        let (five, hour) = (split.ephemeral_5m_input_tokens, split.ephemeral_1h_input_tokens);
        let parts = five.unwrap_or(0).saturating_add(hour.unwrap_or(0));
        // The split is taken only where it accounts for the whole.
        let split =
            (five.is_some() || hour.is_some()) && self.cache_creation_input_tokens.is_none_or(|all| all == parts);
        Usage {
            fresh: self.input_tokens,
            cache_read: self.cache_read_input_tokens,
            cache_write: if split { None } else { self.cache_creation_input_tokens },
            cache_write_5m: five.filter(|_| split),
            cache_write_1h: hour.filter(|_| split),
            output: self.output_tokens,
            reasoning: None,
        }
    }
}

/// OpenAI, Responses API, 2026-11: input includes what was read from and written to the cache; output includes
/// reasoning.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Responses {
    input_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

pub(super) fn responses(json: &str) -> Option<Usage> {
    let usage: Option<Responses> = serde_json::from_str(json).ok()?;
    let usage = usage?;
    let details = usage.input_tokens_details.unwrap_or_default();
    let reasoning = usage.output_tokens_details.unwrap_or_default().reasoning_tokens;
    known(inclusive(
        usage.input_tokens,
        details.cached_tokens,
        details.cache_write_tokens,
        usage.output_tokens,
        reasoning,
    ))
}

/// Chat completions: as above under other names (OpenAI, 2026-11), with DeepSeek's hit counter and the places where
/// other vendors put the cached figure. `timings` is llama.cpp's own account, for when it gives no cached figure.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Chat {
    prompt_tokens: Option<u64>,
    prompt_tokens_details: Option<InputDetails>,
    prompt_cache_hit_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    completion_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Timings {
    cache_n: Option<u64>,
    prompt_n: Option<u64>,
    predicted_n: Option<u64>,
}

pub(super) fn chat(json: Option<&str>, timings: Option<&str>) -> Option<Usage> {
    let usage: Option<Chat> = json.and_then(|json| serde_json::from_str(json).ok()).flatten();
    let timings: Option<Timings> = timings.and_then(|json| serde_json::from_str(json).ok()).flatten();
    let timings = timings.unwrap_or_default();
    let Some(usage) = usage else {
        let Timings { cache_n: cache_read, prompt_n: fresh, predicted_n: output } = timings;
        return known(Usage { fresh, cache_read, output, ..Usage::default() });
    };
    let details = usage.prompt_tokens_details.unwrap_or_default();
    let cached = details.cached_tokens.or(usage.prompt_cache_hit_tokens).or(usage.cached_tokens).or(timings.cache_n);
    let reasoning = usage.completion_tokens_details.unwrap_or_default().reasoning_tokens;
    known(inclusive(usage.prompt_tokens, cached, details.cache_write_tokens, usage.completion_tokens, reasoning))
}

/// Gemini API, 2026-11: the prompt includes what was cached; thoughts are counted beside the candidates. Each report of
/// a stream is cumulative, and a later one may leave figures out.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Gemini {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

impl Gemini {
    pub(super) fn assign(&mut self, later: Self) {
        self.prompt_token_count = later.prompt_token_count.or(self.prompt_token_count);
        self.tool_use_prompt_token_count = later.tool_use_prompt_token_count.or(self.tool_use_prompt_token_count);
        self.cached_content_token_count = later.cached_content_token_count.or(self.cached_content_token_count);
        self.candidates_token_count = later.candidates_token_count.or(self.candidates_token_count);
        self.thoughts_token_count = later.thoughts_token_count.or(self.thoughts_token_count);
    }

    pub(super) fn counts_output(self) -> bool {
        self.candidates_token_count.or(self.thoughts_token_count).is_some()
    }

    pub(super) fn buckets(self) -> Usage {
        let input = sum(self.prompt_token_count, self.tool_use_prompt_token_count);
        let output = sum(self.candidates_token_count, self.thoughts_token_count);
        inclusive(input, self.cached_content_token_count, None, output, self.thoughts_token_count)
    }
}

/// Buckets from an input that includes what was read and written. Where the parts are more than the whole, one of them is
/// wrong and nobody can tell which.
fn inclusive(
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
) -> Usage {
    let output = Usage { output, reasoning, ..Usage::default() };
    let parts = cache_read.unwrap_or(0).saturating_add(cache_write.unwrap_or(0));
    match input.map(|input| input.checked_sub(parts)) {
        Some(None) => output,
        Some(fresh) => Usage { fresh, cache_read, cache_write, ..output },
        None => Usage { cache_read, cache_write, ..output },
    }
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    [one, other].into_iter().flatten().reduce(u64::saturating_add)
}

/// What of a usage can be true. No prompt has zero tokens: gateways that count nothing fill in zeros.
pub(super) fn known(usage: Usage) -> Option<Usage> {
    let usage = match usage.input() {
        Some(0) => Usage { output: usage.output.filter(|tokens| *tokens > 0), ..Usage::default() },
        _ => usage,
    };
    (!usage.is_unknown()).then_some(usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anthropic(json: &str) -> Usage {
        serde_json::from_str::<Anthropic>(json).unwrap().buckets()
    }

    #[test]
    fn a_split_of_writes_is_used_where_it_adds_up() {
        let usage = anthropic(
            r#"{"input_tokens":3,"cache_creation_input_tokens":10,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":0}}"#,
        );
        assert_eq!((usage.cache_write, usage.cache_write_5m, usage.cache_write_1h), (None, Some(10), Some(0)));
        let usage = anthropic(
            r#"{"cache_creation_input_tokens":10,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":0}}"#,
        );
        assert_eq!((usage.cache_write, usage.cache_write_5m), (Some(10), None));
    }

    #[test]
    fn later_counters_replace_earlier_ones() {
        let mut usage: Anthropic = serde_json::from_str(r#"{"input_tokens":7,"output_tokens":1}"#).unwrap();
        usage.assign(serde_json::from_str(r#"{"input_tokens":0,"output_tokens":9}"#).unwrap());
        assert_eq!(usage.buckets(), Usage { fresh: Some(7), output: Some(9), ..Usage::default() });
    }

    #[test]
    fn the_cached_figure_is_found_where_vendors_put_it() {
        let expect = Usage { fresh: Some(2), cache_read: Some(8), output: Some(3), ..Usage::default() };
        for json in [
            r#"{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}"#,
            r#"{"prompt_tokens":10,"completion_tokens":3,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":2}"#,
            r#"{"prompt_tokens":10,"completion_tokens":3,"cached_tokens":8}"#,
        ] {
            assert_eq!(chat(Some(json), None), Some(expect), "{json}");
        }
        let timings = r#"{"cache_n":8,"prompt_n":2,"predicted_n":3,"predicted_ms":1.5}"#;
        assert_eq!(chat(None, Some(timings)), Some(expect));
        assert_eq!(chat(Some(r#"{"prompt_tokens":10,"completion_tokens":3}"#), Some(timings)), Some(expect));
        assert_eq!(chat(Some("null"), None), None);
        assert_eq!(chat(Some(r#"{"prompt_tokens":"many"}"#), None), None);
    }

    #[test]
    fn more_cached_than_there_is_tells_nothing_of_the_input() {
        let told = r#"{"prompt_tokens":5,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":9}}"#;
        assert_eq!(chat(Some(told), None), Some(Usage { output: Some(3), ..Usage::default() }));
    }

    #[test]
    fn an_input_of_zero_tokens_is_not_known() {
        assert_eq!(chat(Some(r#"{"prompt_tokens":0,"completion_tokens":0}"#), None), None);
        let told = chat(Some(r#"{"prompt_tokens":0,"completion_tokens":3}"#), None);
        assert_eq!(told, Some(Usage { output: Some(3), ..Usage::default() }));
        assert_eq!(responses(r#"{"input_tokens":0,"output_tokens":0,"total_tokens":0}"#), None);
        assert_eq!(known(anthropic(r#"{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}"#)), None);
        // An answer may be empty, and all of a prompt may have been read.
        let told = known(anthropic(r#"{"input_tokens":0,"cache_read_input_tokens":9,"output_tokens":0}"#)).unwrap();
        assert_eq!((told.fresh, told.cache_read, told.output), (Some(0), Some(9), Some(0)));
    }

    #[test]
    fn gemini_counts_thoughts_beside_candidates() {
        let mut usage = Gemini::default();
        usage.assign(serde_json::from_str(r#"{"promptTokenCount":10,"cachedContentTokenCount":4}"#).unwrap());
        let later = r#"{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":15}"#;
        usage.assign(serde_json::from_str(later).unwrap());
        let expect =
            Usage { fresh: Some(6), cache_read: Some(4), output: Some(5), reasoning: Some(2), ..Usage::default() };
        assert_eq!(usage.buckets(), expect);
    }
}
