//! What is known of models: facts from `models.toml`, prices from `prices.toml`. Both are data with the
//! page and the day they were read; what is not there is unknown, and works all the same.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use stele_core::{Config, Micros, Usage};

/// Bytes of a prompt that make at least one token, for a bound that no text is expected to break.
/// Code and prose have about 3.6 bytes a token, long hexadecimal or encoded text about 2.
const BYTES_PER_TOKEN_MIN: u64 = 2;

/// Facts about a model. `None` is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The model's id, or its beginning when it ends in `*`.
    pub id: String,
    /// The vendor's name in `vendors.toml`.
    pub vendor: String,
    /// Tokens that prompt and answer share.
    pub context_window: Option<u64>,
    /// Most tokens of one answer.
    pub max_output: Option<u64>,
    /// True when it takes images.
    pub images: Option<bool>,
    /// Tokens below which nothing is cached.
    pub min_cache_tokens: Option<u64>,
    /// The vendor's page.
    pub page: String,
    /// The day the page was read.
    pub read: String,
}

/// What a million tokens cost, in millionths of a US dollar, by bucket. `None` is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rates {
    /// Input that was neither read from nor written to the cache.
    pub input: Option<u64>,
    /// Output, reasoning included.
    pub output: Option<u64>,
    /// Input read from the cache.
    pub cache_read: Option<u64>,
    /// Input written to the cache, where the vendor names no lifetime.
    pub cache_write: Option<u64>,
    /// Input written to the cache for 5 minutes.
    pub cache_write_5m: Option<u64>,
    /// Input written to the cache for 1 hour.
    pub cache_write_1h: Option<u64>,
}

/// The price of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// What a million tokens cost.
    pub rates: Rates,
    /// What they cost when the whole input is longer than so many tokens.
    pub long: Option<LongPrice>,
    /// Where the price comes from: the vendor's page and the day it was read, or the configuration.
    pub source: String,
}

/// The price of a long request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct LongPrice {
    /// It counts above so many tokens of input.
    pub above: u64,
    /// What a million tokens cost then.
    #[serde(flatten)]
    pub rates: Rates,
}

/// A price of the user's own, as `[prices.MODEL]` in the configuration.
pub type PriceOverrides = BTreeMap<String, Rates>;

/// What something cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The part that is known.
    pub micros: Micros,
    /// False when tokens, or the price of some of them, are unknown: the true cost is higher.
    pub complete: bool,
}

/// The price sheet, with the user's own prices over the shipped ones.
#[derive(Clone, Debug, Default)]
pub struct Prices {
    overrides: PriceOverrides,
}

#[derive(Deserialize)]
struct ModelSheet {
    model: Vec<Model>,
}

#[derive(Deserialize)]
struct PriceSheet {
    price: Vec<PriceRow>,
}

/// A row as it stands in the sheet; unknown fields are caught by a test, since a flattened table cannot.
#[derive(Deserialize)]
struct PriceRow {
    id: String,
    #[serde(flatten)]
    rates: Rates,
    long: Option<LongPrice>,
    page: String,
    read: String,
}

const MODELS_TOML: &str = include_str!("models.toml");
const PRICES_TOML: &str = include_str!("prices.toml");

// A sheet that did not parse would be empty; a test keeps that from being shipped.
static MODELS: LazyLock<Vec<Model>> =
    LazyLock::new(|| toml::from_str(MODELS_TOML).map(|sheet: ModelSheet| sheet.model).unwrap_or_default());
static PRICES: LazyLock<Vec<PriceRow>> =
    LazyLock::new(|| toml::from_str(PRICES_TOML).map(|sheet: PriceSheet| sheet.price).unwrap_or_default());

/// Every row of `models.toml`, in its order.
#[must_use]
pub fn models() -> &'static [Model] {
    &MODELS
}

/// What is known of a model: the row that matches most of its id.
#[must_use]
pub fn model(id: &str) -> Option<&'static Model> {
    best(&MODELS, id, |row| &row.id)
}

fn best<'a, T>(rows: &'a [T], id: &str, pattern: impl Fn(&T) -> &str) -> Option<&'a T> {
    let length = |row: &T| match pattern(row).strip_suffix('*') {
        Some(prefix) => id.starts_with(prefix).then_some(prefix.len()),
        None => (pattern(row) == id).then_some(usize::MAX),
    };
    rows.iter().filter_map(|row| Some((length(row)?, row))).max_by_key(|(length, _)| *length).map(|(_, row)| row)
}

impl Prices {
    /// The shipped sheet with the user's own prices, by model id, over it.
    #[must_use]
    pub fn new(overrides: PriceOverrides) -> Self {
        Self { overrides }
    }

    /// The price of a model, or `None` when it is unpriced. It is the list price of the model's vendor,
    /// whoever serves it.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<Price> {
        if let Some(rates) = self.overrides.get(model) {
            return Some(Price { rates: *rates, long: None, source: format!("configuration: prices.{model}") });
        }
        let row = best(&PRICES, model, |row| &row.id)?;
        Some(Price { rates: row.rates, long: row.long, source: format!("{} ({})", row.page, row.read) })
    }

    /// What an attempt cost. `None` when the model is unpriced or nothing that was reported has a price.
    #[must_use]
    pub fn cost(&self, usage: &Usage, model: &str) -> Option<Cost> {
        let price = self.of(model)?;
        let rates = price.rates_for(usage.input().unwrap_or(0));
        let mut sum: u128 = 0;
        let mut known = false;
        // What is billed always, and what is billed only where it is reported.
        let mut complete = usage.fresh.is_some() && usage.output.is_some();
        for (tokens, rate) in [
            (usage.fresh, rates.input),
            (usage.output, rates.output),
            (usage.cache_read, rates.cache_read),
            (usage.cache_write, rates.cache_write),
            (usage.cache_write_5m, rates.cache_write_5m),
            (usage.cache_write_1h, rates.cache_write_1h),
        ] {
            match (tokens, rate) {
                (None, _) => {}
                (Some(0), _) => known = true,
                (Some(tokens), Some(rate)) => {
                    known = true;
                    sum += u128::from(tokens) * u128::from(rate);
                }
                (Some(_), None) => complete = false,
            }
        }
        known.then(|| Cost { micros: whole_micros(sum), complete })
    }

    /// The most that a request can cost: nothing of it is cached, all of it is written to the cache, and
    /// the answer is as long as it may be. `None` when the model is unpriced or has no known bound.
    #[must_use]
    pub fn pessimistic(&self, config: &Config, prompt_bytes: u64) -> Option<Micros> {
        let price = self.of(&config.model)?;
        let tokens = prompt_bytes.div_ceil(BYTES_PER_TOKEN_MIN);
        let rates = price.rates_for(tokens);
        let known_max = || model(&config.model).and_then(|model| model.max_output);
        let output = config.parameters.max_output_tokens.or_else(known_max)?;
        let dearest = [rates.cache_write, rates.cache_write_5m].into_iter().flatten().fold(rates.input?, u64::max);
        let sum = u128::from(tokens) * u128::from(dearest) + u128::from(output) * u128::from(rates.output?);
        Some(whole_micros(sum))
    }
}

impl Price {
    fn rates_for(&self, input: u64) -> Rates {
        self.long.filter(|long| input > long.above).map_or(self.rates, |long| long.rates)
    }
}

/// Divides by the million tokens that a rate is for; a begun millionth counts whole.
fn whole_micros(sum: u128) -> Micros {
    Micros(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stele_core::Wire;

    use super::*;

    fn config(model: &str) -> Config {
        Config {
            route: "r".into(),
            wire: Wire::AnthropicMessages,
            base_url: "https://h".into(),
            model: model.into(),
            encoder: "x/1".into(),
            derive_rev: 1,
            parameters: Default::default(),
            cache: Default::default(),
            dialect: None,
            headers: Default::default(),
        }
    }

    #[test]
    fn every_row_parses_and_names_its_page_and_day() {
        let models: toml::Table = toml::from_str(MODELS_TOML).unwrap();
        assert_eq!(models["model"].as_array().unwrap().len(), super::models().len());
        let prices: toml::Table = toml::from_str(PRICES_TOML).unwrap();
        let rows = prices["price"].as_array().unwrap();
        assert_eq!(rows.len(), PRICES.len());
        let known = ["id", "page", "read", "long", "above", "input", "output", "cache_read", "cache_write"];
        for row in rows {
            let row = row.as_table().unwrap();
            let long = row.get("long").and_then(toml::Value::as_table).cloned().unwrap_or_default();
            for key in row.keys().chain(long.keys()) {
                assert!(known.contains(&key.as_str()) || key.starts_with("cache_write_"), "{key}");
            }
            assert!(row.contains_key("input") && row.contains_key("output"), "{row:?}");
        }
        let dated = super::models().iter().map(|row| (&row.page, &row.read));
        for (page, read) in dated.chain(PRICES.iter().map(|row| (&row.page, &row.read))) {
            assert!(page.starts_with("https://"), "{page}");
            assert_eq!(read.len(), 10, "{read}");
        }
    }

    #[test]
    fn the_longest_match_counts() {
        assert_eq!(model("claude-opus-5-5-20260901").unwrap().id, "claude-opus-5-5*");
        assert_eq!(model("claude-opus-5").unwrap().id, "claude-opus-5*");
        assert_eq!(model("somebody/else"), None);
        assert_eq!(Prices::default().of("claude-opus-5").unwrap().rates.input, Some(5_000_000));
        assert_eq!(Prices::default().of("claude-opus-5-5").unwrap().rates.input, Some(4_000_000));
    }

    #[test]
    fn each_bucket_has_its_price() {
        let usage = Usage {
            fresh: Some(1_000_000),
            cache_read: Some(2_000_000),
            cache_write_5m: Some(1_000_000),
            output: Some(100_000),
            reasoning: Some(50_000),
            ..Usage::default()
        };
        let cost = Prices::default().cost(&usage, "claude-opus-5-5").unwrap();
        assert_eq!(cost, Cost { micros: Micros(4_000_000 + 400_000 + 5_000_000 + 2_000_000), complete: true });
    }

    #[test]
    fn unknown_is_never_priced() {
        let prices = Prices::default();
        let usage = Usage { fresh: Some(10), output: Some(10), ..Usage::default() };
        assert_eq!(prices.cost(&usage, "no-such-model"), None);
        assert_eq!(prices.cost(&Usage::default(), "claude-opus-5-5"), None);
        let output_unknown = Usage { fresh: Some(1_000_000), ..Usage::default() };
        let cost = prices.cost(&output_unknown, "claude-opus-5-5").unwrap();
        assert_eq!(cost, Cost { micros: Micros(4_000_000), complete: false });
        // The sheet has no price for a write without a known lifetime at this vendor.
        let write = Usage { cache_write: Some(7), ..usage };
        assert!(!prices.cost(&write, "claude-opus-5-5").unwrap().complete);
    }

    #[test]
    fn a_long_request_has_its_own_price_for_every_token() {
        let prices = Prices::default();
        let usage = |fresh| Usage { fresh: Some(fresh), cache_read: Some(0), output: Some(0), ..Usage::default() };
        assert_eq!(prices.cost(&usage(272_000), "gpt-6.2-sol").unwrap().micros, Micros(544_000));
        assert_eq!(prices.cost(&usage(272_001), "gpt-6.2-sol").unwrap().micros, Micros(1_088_004));
    }

    #[test]
    fn the_users_own_price_wins() {
        let own: PriceOverrides = toml::from_str("[my-model]\ninput = 1_000_000\noutput = 2_000_000").unwrap();
        let prices = Prices::new(own);
        let usage = Usage { fresh: Some(3), output: Some(1), ..Usage::default() };
        assert_eq!(prices.cost(&usage, "my-model"), Some(Cost { micros: Micros(5), complete: true }));
        assert_eq!(prices.of("my-model").unwrap().source, "configuration: prices.my-model");
        assert!(toml::from_str::<PriceOverrides>("[m]\ninptu = 1").is_err());
    }

    #[test]
    fn the_bound_is_all_written_and_the_longest_answer() {
        let mut config = config("claude-opus-5-5");
        config.parameters.max_output_tokens = Some(1_000);
        let bound = Prices::default().pessimistic(&config, 2_000).unwrap();
        assert_eq!(bound, Micros(1_000 * 5 + 1_000 * 20));
        config.parameters.max_output_tokens = None;
        assert_eq!(Prices::default().pessimistic(&config, 0), Some(Micros(128_000 * 20)));
        config.model = "no-such-model".into();
        assert_eq!(Prices::default().pessimistic(&config, 10), None);
    }

    proptest! {
        #[test]
        fn no_real_cost_is_over_the_bound(bytes in 0u64..4_000_000, output in 0u64..32_000, cut in 0u64..=100) {
            let mut config = config("claude-opus-5-5");
            config.parameters.max_output_tokens = Some(32_000);
            let bound = Prices::default().pessimistic(&config, bytes).unwrap();
            let tokens = bytes / 3;
            let read = tokens * cut / 100;
            let usage = Usage {
                fresh: Some(0), cache_read: Some(read), cache_write_5m: Some(tokens - read), output: Some(output),
                ..Usage::default()
            };
            prop_assert!(Prices::default().cost(&usage, "claude-opus-5-5").unwrap().micros <= bound);
        }
    }
}
