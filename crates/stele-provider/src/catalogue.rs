//! What is known of models: facts from `models.toml`, prices from `prices.toml`. Both are data with the
//! page and the day they were read; what is not there is unknown, and works all the same.

use std::sync::LazyLock;

use serde::Deserialize;
use stele_core::Price;

/// Facts about a model. `None` is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The model's id, without the date of a snapshot.
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

/// A row of `prices.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ListPrice {
    /// The model's id, without the date of a snapshot.
    pub id: String,
    /// What its vendor asks.
    #[serde(flatten)]
    pub price: Price,
    /// The vendor's page.
    pub page: String,
    /// The day the page was read.
    pub read: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelSheet {
    model: Vec<Model>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceSheet {
    price: Vec<ListPrice>,
}

const MODELS_TOML: &str = include_str!("models.toml");
const PRICES_TOML: &str = include_str!("prices.toml");

// A sheet that did not parse would be empty; a test keeps that from being shipped.
static MODELS: LazyLock<Vec<Model>> =
    LazyLock::new(|| toml::from_str(MODELS_TOML).map(|sheet: ModelSheet| sheet.model).unwrap_or_default());
static PRICES: LazyLock<Vec<ListPrice>> =
    LazyLock::new(|| toml::from_str(PRICES_TOML).map(|sheet: PriceSheet| sheet.price).unwrap_or_default());

/// Every row of `models.toml`, in its order.
#[must_use]
pub fn models() -> &'static [Model] {
    &MODELS
}

/// What is known of a model.
#[must_use]
pub fn model(id: &str) -> Option<&'static Model> {
    MODELS.iter().find(|row| names(&row.id, id))
}

/// The list price of a model, or `None` when it is unpriced. It is what the model's vendor asks, whoever
/// serves it.
#[must_use]
pub fn list_price(model: &str) -> Option<&'static ListPrice> {
    PRICES.iter().find(|row| names(&row.id, model))
}

/// Whether a model is the one of a row, or a dated snapshot of it. Nothing else: what a later model is or
/// costs does not follow from its name.
fn names(row: &str, model: &str) -> bool {
    let date = |rest: &str| match rest.strip_prefix('-').map(|date| date.replacen('-', "", 2)) {
        Some(date) => date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()),
        None => rest.is_empty(),
    };
    model.strip_prefix(row).is_some_and(date)
}

#[cfg(test)]
mod tests {
    use stele_core::{Micros, Usage};

    use super::*;

    #[test]
    fn every_row_parses_and_names_its_page_and_day() {
        let models: ModelSheet = toml::from_str(MODELS_TOML).unwrap();
        assert_eq!(models.model, super::models());
        let prices: PriceSheet = toml::from_str(PRICES_TOML).unwrap();
        assert_eq!(prices.price, *PRICES);
        for row in &prices.price {
            assert!(row.price.input.is_some() && row.price.output.is_some(), "{}", row.id);
        }
        let dated = models.model.iter().map(|row| (&row.page, &row.read));
        for (page, read) in dated.chain(prices.price.iter().map(|row| (&row.page, &row.read))) {
            assert!(page.starts_with("https://"), "{page}");
            assert_eq!(read.len(), 10, "{read}");
        }
        // A flattened table lets unknown fields pass, so that a slip of the pen is caught here.
        let raw: toml::Table = toml::from_str(PRICES_TOML).unwrap();
        for row in raw["price"].as_array().unwrap() {
            let mut row = row.as_table().unwrap().clone();
            assert!(["id", "page", "read"].into_iter().all(|key| row.remove(key).is_some()), "{row}");
            row.try_into::<Price>().unwrap();
        }
    }

    #[test]
    fn a_row_is_for_its_model_and_the_dated_snapshots_of_it() {
        assert_eq!(model("claude-opus-5-5-20260901").unwrap().id, "claude-opus-5-5");
        assert_eq!(model("claude-opus-5").unwrap().id, "claude-opus-5");
        assert_eq!(model("gpt-6.2-sol-2026-11-17").unwrap().id, "gpt-6.2-sol");
        for unknown in ["claude-opus-5-6", "claude-opus-5-", "gpt-6.2-solar", "somebody/claude-opus-5", ""] {
            assert_eq!(model(unknown), None, "{unknown}");
            assert_eq!(list_price(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_shipped_price_prices_an_attempt() {
        let usage = Usage {
            fresh: Some(1_000_000),
            cache_read: Some(2_000_000),
            cache_write_5m: Some(1_000_000),
            output: Some(100_000),
            ..Usage::default()
        };
        let price = list_price("claude-opus-5-5").unwrap().price;
        assert_eq!(price.of(&usage), Some(Micros(4_000_000 + 400_000 + 5_000_000 + 2_000_000)));
        // Its sheet has no figure for reads, so an attempt with reads has no cost.
        assert_eq!(list_price("claude-sonnet-5-5").unwrap().price.of(&usage), None);
    }
}
