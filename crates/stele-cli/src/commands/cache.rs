//! `stele cache report`: predicted and reported reads, step by step.

use stele_core::cache::{CacheReport, CacheRules};
use stele_core::{Config, Event, SessionId, Wire};
use stele_store::Store;

use crate::args::CacheCommand;
use crate::error::Result;
use crate::feed::records;
use crate::output;
use crate::render::json;
use crate::render::timeline::cache_lines;
use crate::setup::Setup;

/// Reports on one session.
pub fn main(setup: &Setup, command: &CacheCommand) -> Result<u8> {
    let CacheCommand::Report { id, json } = command;
    let store = setup.logs()?;
    let id = store.resolve(id)?;
    let report = report(&store, &id)?;
    let text = if *json {
        let lines: Vec<String> = report.requests.iter().map(json::line).collect();
        lines.join("\n")
    } else {
        cache_lines(&report, setup.look.stdout()).join("\n")
    };
    output::print(&text)?;
    Ok(0)
}

/// Folds a session's log into a report, under the rules of the endpoint that it used first.
pub fn report(store: &Store, id: &SessionId) -> Result<CacheReport> {
    let mut report = None;
    for logged in records(store, id)? {
        let record = logged?.record;
        if report.is_none()
            && let Event::EpochOpened(opened) = &record.event
        {
            report = Some(CacheReport::new(rules(&opened.config)));
        }
        if let Some(report) = &mut report {
            report.fold(&record);
        }
    }
    Ok(report.unwrap_or_else(|| CacheReport::new(CacheRules { minimum: 0, granularity: 1, lifetime_ms: None })))
}

/// What an endpoint's vendor says of its cache. Where a model's own minimum is known, it counts.
///
/// Anthropic, prompt caching: 1,024 tokens for most models, five minutes after the last use. OpenAI,
/// prompt caching: 1,024 tokens, then steps of 128. Gemini, context caching: 2,048 tokens. All read
/// 2026-11-30.
pub fn rules(config: &Config) -> CacheRules {
    let (minimum, granularity, lifetime_ms) = match config.wire {
        Wire::AnthropicMessages => (1_024, 1, Some(5 * 60 * 1_000)),
        Wire::OpenaiResponses | Wire::OpenaiChat => (1_024, 128, None),
        Wire::Gemini => (2_048, 1, None),
    };
    let known = stele_provider::model(&config.model).and_then(|model| model.min_cache_tokens);
    CacheRules { minimum: known.unwrap_or(minimum), granularity, lifetime_ms }
}
