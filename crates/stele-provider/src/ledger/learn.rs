//! What an ordinary answer shows.

use stele_core::{Config, OptionalField, Usage};

use super::{Capability, Finding, Lesson};
use crate::{Answer, AnswerBlock};

/// What an answer proves of the endpoint that gave it. A request that was merely accepted proves nothing.
#[must_use]
pub fn seen(config: &Config, answer: &Answer) -> Vec<Lesson> {
    let usage = answer.usage.unwrap_or_default();
    let mut lessons = Vec::new();
    let mut works = |capability, says: String| lessons.push(Lesson { capability, finding: Finding::Works, says });
    if usage.is_unknown() {
        return lessons;
    }
    works(Capability::Usage, "tokens are reported".to_owned());
    if config.sends(OptionalField::StreamOptions) {
        works(Capability::StreamOptions, "it is taken, and the stream reports tokens".to_owned());
    }
    let (read, written) = (usage.cache_read, usage.writes());
    // A counter that is always nothing may be one that nobody counts.
    if let Some(read) = read.filter(|read| *read > 0) {
        works(Capability::CacheRead, format!("{read} tokens read from the cache"));
    }
    if let Some(written) = written.filter(|written| *written > 0) {
        works(Capability::CacheWrite, format!("{written} tokens written to the cache"));
    }
    if config.sends(OptionalField::CacheControl)
        && let Some(says) = marks_worked(&usage)
    {
        works(Capability::CacheControl, says);
    }
    // Who takes the wish and does not heed it writes for the usual time.
    if config.sends(OptionalField::CacheTtl)
        && let Some(written) = usage.cache_write_1h.filter(|written| *written > 0)
    {
        works(Capability::CacheTtl, format!("{written} tokens written for an hour"));
    }
    if let Some(reasoning) = usage.reasoning.filter(|reasoning| *reasoning > 0) {
        works(Capability::Reasoning, format!("{reasoning} tokens of reasoning"));
    }
    if config.sends(OptionalField::Include) && answer.blocks.iter().any(is_encrypted) {
        works(Capability::Include, "encrypted reasoning came back".to_owned());
    }
    let of_wire: Vec<_> = Capability::of(config.wire).collect();
    // Marks are there where they were sent, in some dialects too.
    lessons.retain(|lesson| of_wire.contains(&lesson.capability) || lesson.capability == Capability::CacheControl);
    lessons
}

/// Marks alone make this wire write or read a cache.
fn marks_worked(usage: &Usage) -> Option<String> {
    let tokens = usage.cache_read.unwrap_or(0).saturating_add(usage.writes().unwrap_or(0));
    (tokens > 0).then(|| format!("{tokens} tokens written or read up to the marks"))
}

fn is_encrypted(block: &AnswerBlock) -> bool {
    #[derive(serde::Deserialize)]
    struct Item {
        encrypted_content: Option<String>,
    }
    match block {
        AnswerBlock::Reasoning { native: Some(raw), .. } => serde_json::from_str(raw)
            .is_ok_and(|item: Item| item.encrypted_content.is_some_and(|text| !text.is_empty())),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use stele_core::{CacheMarks, Dialect, Parameters, Stop, Wire};

    use super::*;

    fn config(wire: Wire) -> Config {
        Config {
            route: "r".into(),
            wire,
            base_url: "http://h".into(),
            model: "m".into(),
            encoder: String::new(),
            derive_rev: 1,
            parameters: Parameters { effort: Some("high".into()), ..Parameters::default() },
            cache: CacheMarks::default(),
            dialect: (wire == Wire::OpenaiChat).then(Dialect::default),
            headers: BTreeMap::new(),
            withheld: Default::default(),
            images: Default::default(),
        }
    }

    fn answer(usage: Option<Usage>, native: Option<&str>) -> Answer {
        let blocks = vec![AnswerBlock::Reasoning { text: String::new(), native: native.map(str::to_owned) }];
        Answer { blocks, stop: Stop::End, usage, usage_raw: None }
    }

    #[track_caller]
    fn check(config: &Config, answer: &Answer, expect: &[Capability]) {
        let lessons = seen(config, answer);
        let found: Vec<_> = lessons.iter().map(|lesson| lesson.capability).collect();
        assert_eq!(found, expect);
        assert!(lessons.iter().all(|lesson| lesson.finding == Finding::Works));
    }

    #[test]
    fn what_is_reported_is_verified_and_what_is_absent_or_nothing_is_not() {
        use Capability as Can;
        let anthropic = config(Wire::AnthropicMessages);
        check(&anthropic, &answer(None, None), &[]);
        let nothing = Usage { fresh: Some(9), cache_read: Some(0), cache_write_5m: Some(0), ..Usage::default() };
        check(&anthropic, &answer(Some(nothing), None), &[Can::Usage]);
        let written = Usage { cache_write_5m: Some(900), ..nothing };
        check(&anthropic, &answer(Some(written), None), &[Can::Usage, Can::CacheWrite, Can::CacheControl]);
        let mut unmarked = anthropic.clone();
        unmarked.cache.marks = false;
        check(&unmarked, &answer(Some(written), None), &[Can::Usage, Can::CacheWrite]);
        let read = Usage { cache_read: Some(512), reasoning: Some(7), ..nothing };
        check(
            &config(Wire::OpenaiChat),
            &answer(Some(read), None),
            &[Can::Usage, Can::StreamOptions, Can::CacheRead, Can::Reasoning],
        );
        check(&config(Wire::Gemini), &answer(Some(read), None), &[Can::Usage, Can::CacheRead, Can::Reasoning]);
        let mut marked = config(Wire::OpenaiChat);
        marked.dialect = Some(Dialect { marked_models: vec!["m".into()], ..Dialect::default() });
        let seen = [Can::Usage, Can::StreamOptions, Can::CacheRead, Can::CacheControl, Can::Reasoning];
        check(&marked, &answer(Some(read), None), &seen);
        let secret = r#"{"type":"reasoning","encrypted_content":"gAAA"}"#;
        let responses = config(Wire::OpenaiResponses);
        check(&responses, &answer(Some(nothing), Some(secret)), &[Can::Usage, Can::Include]);
        check(&responses, &answer(Some(nothing), Some(r#"{"encrypted_content":null}"#)), &[Can::Usage]);
    }
}
