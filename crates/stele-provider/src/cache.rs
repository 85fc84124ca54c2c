//! How a provider's prompt cache works: data, in `cache.toml`, with pages and dates.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use stele_core::{Usage, Wire};

use crate::{catalogue, http, vendors};

/// What of earlier prompts can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// The prompt up to a mark that the client set, looking back from the marks of the new request.
    Marks,
    /// An earlier prompt up to its end, or up to a mark in it.
    Breakpoints,
    /// A whole earlier prompt, or what two earlier prompts had in common.
    Units,
    /// Whatever is shared.
    Prefix,
}

/// In which bucket what is written to the cache is reported and priced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteBucket {
    /// In none: it is fresh input.
    #[default]
    None,
    /// As a write with a life of five minutes.
    FiveMinutes,
    /// As a write without a named life, where the model has a price for it.
    Unnamed,
}

/// The rules of one provider's cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheRules {
    /// Their name, as in `simulate`: a vendor's, or `prefix`.
    pub name: &'static str,
    /// What can be read.
    pub mechanism: Mechanism,
    /// Fewest tokens that are cached at all.
    pub minimum: u64,
    /// Reads come in multiples of this many tokens; absent where no page says so.
    pub granularity: Option<u64>,
    /// How long an entry lives at least after its last use, in milliseconds; absent when it is not known.
    pub lifetime_ms: Option<u64>,
    /// The lifetime when the client asks for the longer one, in milliseconds.
    pub long_lifetime_ms: Option<u64>,
    /// Positions that are looked at from a mark backwards, the mark's own included.
    pub look_back: usize,
    /// Where writes are counted.
    pub write: WriteBucket,
    /// The vendor's page that says so, and the day it was read.
    pub source: Option<(&'static str, &'static str)>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    mechanism: Mechanism,
    #[serde(default)]
    models: Vec<String>,
    #[serde(default)]
    hosts: Vec<String>,
    wire: Option<Wire>,
    #[serde(default)]
    minimum: u64,
    granularity: Option<u64>,
    lifetime_s: Option<u64>,
    lifetime_marked_s: Option<u64>,
    look_back: Option<usize>,
    #[serde(default)]
    write: WriteBucket,
    page: Option<String>,
    read: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sheet {
    rules: Vec<Row>,
}

const RULES_TOML: &str = include_str!("cache.toml");

// A sheet that did not parse would be empty; a test keeps that from being shipped.
static ROWS: LazyLock<Vec<Row>> =
    LazyLock::new(|| toml::from_str(RULES_TOML).map(|sheet: Sheet| sheet.rules).unwrap_or_default());

impl Row {
    fn is_for(&self, model: &str) -> bool {
        self.models.is_empty() || self.models.iter().any(|start| model.starts_with(start.as_str()))
    }
}

/// The rules by which a request to a vendor of this name is judged: its own, else those of its wire.
#[must_use]
pub fn cache_rules_named(name: &str, model: &str) -> Option<CacheRules> {
    let own = ROWS.iter().find(|row| row.name == name && row.is_for(model)).map(|row| rules(row, model));
    let vendor = || vendors().iter().find(|vendor| vendor.name == name);
    own.or_else(|| vendor().map(|vendor| cache_rules(vendor.wire, &vendor.base_url, model)))
}

/// The names that [`cache_rules_named`] knows: those that have rules of their own first.
#[must_use]
pub fn cache_rule_names() -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for name in ROWS.iter().map(|row| &row.name).chain(vendors().iter().map(|vendor| &vendor.name)) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// The rules of the endpoint that a request went to: its host's, else those of the wire's own vendor.
#[must_use]
pub fn cache_rules(wire: Wire, base_url: &str, model: &str) -> CacheRules {
    let host = http::host_of(base_url);
    let find = |fits: &dyn Fn(&Row) -> bool| ROWS.iter().find(|row| row.is_for(model) && fits(row));
    let by_host = find(&|row| row.hosts.iter().any(|known| Some(known.as_str()) == host.as_deref()));
    let by_wire = || find(&|row| row.wire == Some(wire));
    by_host.or_else(by_wire).map_or_else(unknown, |row| rules(row, model))
}

fn rules(row: &'static Row, model: &str) -> CacheRules {
    let known = catalogue::model(model).and_then(|model| model.min_cache_tokens);
    CacheRules {
        name: &row.name,
        mechanism: row.mechanism,
        minimum: known.unwrap_or(row.minimum),
        granularity: row.granularity.filter(|step| *step > 0),
        lifetime_ms: row.lifetime_s.map(|seconds| seconds * 1_000),
        long_lifetime_ms: row.lifetime_marked_s.map(|seconds| seconds * 1_000),
        look_back: row.look_back.unwrap_or(1),
        write: row.write,
        source: row.page.as_deref().zip(row.read.as_deref()),
    }
}

fn unknown() -> CacheRules {
    CacheRules {
        name: "prefix",
        mechanism: Mechanism::Prefix,
        minimum: 0,
        granularity: None,
        lifetime_ms: None,
        long_lifetime_ms: None,
        look_back: 1,
        write: WriteBucket::None,
        source: None,
    }
}

impl CacheRules {
    /// How long an entry lives at least: the longer life, where the client asked for it, or the usual one.
    #[must_use]
    pub fn lifetime(&self, long: bool) -> Option<u64> {
        if long { self.long_lifetime_ms } else { self.lifetime_ms }
    }

    /// The usage of a request of so many input tokens of which some are read, under these rules.
    #[must_use]
    pub fn usage(&self, input: u64, read: u64, writes: bool, output: Option<u64>) -> Usage {
        let rest = input.saturating_sub(read);
        let usage = Usage { cache_read: Some(read), output, ..Usage::default() };
        match self.write {
            WriteBucket::FiveMinutes if writes => Usage { fresh: Some(0), cache_write_5m: Some(rest), ..usage },
            WriteBucket::Unnamed if writes => Usage { fresh: Some(0), cache_write: Some(rest), ..usage },
            _ => Usage { fresh: Some(rest), ..usage },
        }
    }

    /// Tokens of one step of the counting; a single one where no other is known.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.granularity.unwrap_or(1)
    }

    /// What of so many shared tokens is read: whole steps of the granularity, nothing below the minimum.
    #[must_use]
    pub fn floor(&self, tokens: u64) -> u64 {
        let whole = tokens / self.step() * self.step();
        if whole < self.minimum { 0 } else { whole }
    }

    /// What a prediction may be off by: 2 % and one step.
    #[must_use]
    pub fn tolerance(&self, tokens: u64) -> u64 {
        tokens / 50 + self.step()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sheet_parses_and_names_its_pages() {
        let sheet: Sheet = toml::from_str(RULES_TOML).unwrap();
        assert_eq!(sheet.rules.len(), ROWS.len());
        for row in &sheet.rules {
            let bare = row.minimum == 0 && row.lifetime_s.is_none() && row.mechanism == Mechanism::Prefix;
            let dated = row.page.as_ref().is_some_and(|page| page.starts_with("https://"))
                && row.read.as_ref().is_some_and(|read| read.len() == 10);
            assert!(bare || dated, "{}", row.name);
            assert_eq!(cache_rules_named(&row.name, "m").unwrap().name, row.name);
        }
        assert_eq!(cache_rules_named("nobody", "m"), None);
        // A vendor of whose cache nothing is known is judged as its endpoint is.
        let names = cache_rule_names();
        for vendor in vendors() {
            assert_eq!(names.iter().filter(|name| **name == vendor.name).count(), 1, "{}", vendor.name);
            let rules = cache_rules_named(&vendor.name, "m").unwrap();
            assert_eq!(rules, cache_rules(vendor.wire, &vendor.base_url, "m"), "{}", vendor.name);
        }
        assert!(cache_rule_names().contains(&"deepseek"));
    }

    #[test]
    fn the_host_comes_before_the_wire_and_the_model_before_the_row() {
        let name = |wire, base_url: &str| cache_rules(wire, base_url, "m").name;
        assert_eq!(name(Wire::OpenaiChat, "https://api.openai.com/v1"), "openai");
        assert_eq!(name(Wire::OpenaiChat, "https://api.deepseek.com"), "deepseek");
        assert_eq!(name(Wire::OpenaiChat, "http://127.0.0.1:8080/v1"), "prefix");
        assert_eq!(name(Wire::AnthropicMessages, "https://gateway.example"), "anthropic");
        let mechanism = |model: &str| cache_rules(Wire::OpenaiChat, "https://api.openai.com/v1", model).mechanism;
        assert_eq!((mechanism("gpt-6.2-sol"), mechanism("gpt-5.1")), (Mechanism::Breakpoints, Mechanism::Prefix));
        let haiku = cache_rules(Wire::AnthropicMessages, "https://api.anthropic.com", "claude-haiku-4-5");
        assert_eq!((haiku.minimum, haiku.lifetime_ms), (4_096, Some(300_000)));
    }

    #[test]
    fn the_scripted_server_caches_from_the_same_length_on() {
        let hosts = [
            (Wire::AnthropicMessages, "https://api.anthropic.com"),
            (Wire::OpenaiResponses, "https://api.openai.com/v1"),
            (Wire::OpenaiChat, "https://api.openai.com/v1"),
            (Wire::Gemini, "https://generativelanguage.googleapis.com"),
        ];
        for (wire, base_url) in hosts {
            assert_eq!(stele_testkit::cache_minimum(wire), cache_rules(wire, base_url, "m").minimum, "{wire}");
        }
    }

    #[test]
    fn reads_come_in_steps_above_the_minimum() {
        let openai = cache_rules_named("openai", "m").unwrap();
        assert_eq!(openai.floor(1_023), 0);
        assert_eq!(openai.floor(1_300), 1_280);
        assert_eq!(cache_rules_named("prefix", "m").unwrap().floor(7), 7);
    }
}
