//! What the configuration says of a route.

use std::collections::BTreeMap;

use serde::Deserialize;
use stele_core::{CacheTtl, Parameters, Price, Wire};

/// `[routes.NAME]` of the configuration. What is left out comes from the vendor of that name, if
/// there is one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouteConfig {
    /// The protocol.
    pub wire: Option<Wire>,
    /// What the vendor's own SDK takes as its base URL.
    pub base_url: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The variable that holds the key; empty for a server that takes none.
    pub key_env: Option<String>,
    /// Headers without secrets.
    pub headers: BTreeMap<String, String>,
    /// Model parameters.
    pub parameters: Parameters,
    /// Prompt caching.
    pub cache: CacheConfig,
    /// Whether the model is sent images; what `models.toml` says of it when absent, and none to a model of which
    /// nothing is known.
    pub images: Option<bool>,
    /// What it costs, in millionths of a dollar for a million tokens, instead of the list price.
    pub price: Option<Price>,
}

/// `[routes.NAME.cache]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheConfig {
    /// Whether the wire's cache marks are sent.
    pub marks: Marks,
    /// How long what stands before the history is kept, where the wire's marks say so.
    pub ttl: Option<CacheTtl>,
}

/// Whether cache marks are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Marks {
    /// Where the wire has them.
    #[default]
    Auto,
    /// Never.
    Off,
}
