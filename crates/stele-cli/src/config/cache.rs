//! When leaving the provider's cache is asked about, how long it is asked to keep, and prices of one's own.

use std::collections::BTreeMap;

use stele_core::{CacheTtl, EpochCost, Micros, Price};

use super::error::ConfigError;
use super::keys;
use super::layers::Layers;
use crate::values;

/// Tokens above which leaving the cache is asked about where the route has no price.
const UNPRICED_TOKENS: u64 = 100_000;

/// What leaving the provider's cache may cost before somebody is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarnAbove {
    /// So much money; on a route without a price, 100,000 tokens.
    Money(Micros),
    /// So many tokens that are sent fresh instead of read.
    Tokens(u64),
    /// Nobody is asked.
    Never,
}

impl Default for WarnAbove {
    fn default() -> Self {
        Self::Money(Micros(500_000))
    }
}

impl WarnAbove {
    /// True when a cut is worth a question.
    pub fn is_passed(self, cost: &EpochCost) -> bool {
        match (self, cost.money) {
            (Self::Money(most), Some(money)) => money > most,
            (Self::Money(_), None) => cost.tokens > UNPRICED_TOKENS,
            (Self::Tokens(most), _) => cost.tokens > most,
            (Self::Never, _) => false,
        }
    }
}

impl std::fmt::Display for WarnAbove {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Money(most) => write!(f, "${}.{:02}", most.0 / 1_000_000, most.0 % 1_000_000 / 10_000),
            Self::Tokens(most) => write!(f, "{most} tokens"),
            Self::Never => f.write_str("never"),
        }
    }
}

impl std::str::FromStr for WarnAbove {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape = || format!("takes money (\"$0.50\"), tokens (\"50000 tokens\") or \"never\", found {text:?}");
        let plain = text.trim();
        if plain == "never" {
            return Ok(Self::Never);
        }
        if let Some(tokens) = plain.strip_suffix("tokens") {
            return tokens.trim().replace('_', "").parse().map(Self::Tokens).map_err(|_| shape());
        }
        if !plain.starts_with('$') {
            return Err(shape());
        }
        values::money(plain).map(Self::Money).map_err(|_| shape())
    }
}

impl Layers {
    /// `cache.warn_above`
    pub(super) fn warn_above(&self) -> Result<WarnAbove, ConfigError> {
        Ok(self.parsed(keys::CACHE_WARN)?.unwrap_or_default())
    }

    /// `cache.ttl`
    pub(super) fn cache_ttl(&self) -> Result<Option<CacheTtl>, ConfigError> {
        self.parsed(keys::CACHE_TTL)
    }

    fn parsed<T: std::str::FromStr<Err = String>>(&self, key: &str) -> Result<Option<T>, ConfigError> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        text.parse().map(Some).map_err(|problem| ConfigError::Value {
            at: self.source(key),
            key: key.to_owned(),
            problem,
        })
    }

    /// `[prices."MODEL"]`
    pub(super) fn prices(&self) -> BTreeMap<String, Price> {
        self.prices.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_money_or_tokens() {
        let check = |text: &str, expect: WarnAbove| {
            assert_eq!(text.parse(), Ok(expect), "{text}");
            assert_eq!(expect.to_string().parse(), Ok(expect));
        };
        check("$0.50", WarnAbove::default());
        check("$12", WarnAbove::Money(Micros(12_000_000)));
        check("50000 tokens", WarnAbove::Tokens(50_000));
        check("50_000tokens", WarnAbove::Tokens(50_000));
        check("never", WarnAbove::Never);
        for wrong in ["", "0.50", "50000", "$", "$-1", "many tokens", "always"] {
            assert!(wrong.parse::<WarnAbove>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_has_no_price_is_measured_in_tokens() {
        let cost = |tokens, money| EpochCost { tokens, money };
        let most = WarnAbove::default();
        assert!(most.is_passed(&cost(1, Some(Micros(500_001)))));
        assert!(!most.is_passed(&cost(900_000, Some(Micros(500_000)))));
        assert!(most.is_passed(&cost(100_001, None)) && !most.is_passed(&cost(100_000, None)));
        assert!(WarnAbove::Tokens(10).is_passed(&cost(11, Some(Micros(0)))));
        assert!(!WarnAbove::Never.is_passed(&cost(u64::MAX, None)));
    }
}
