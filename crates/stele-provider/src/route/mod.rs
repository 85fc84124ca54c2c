//! Routes: which model is asked, where, over which wire, and where its key is found.

mod config;
mod dialect;
mod error;
mod find;
#[cfg(test)]
mod tests;
mod vendor;

use std::collections::BTreeMap;

use stele_core::{
    CacheMarks, CacheTtl, Config, Dialect, Failure, FailureCode, ImageInput, OptionalField, Parameters, Price,
    SessionId, Wire,
};

use crate::{Endpoint, Ledger, Secret, catalogue};

pub use config::{CacheConfig, Marks, RouteConfig};
pub use dialect::dialect;
pub use error::RouteError;
pub use find::routes;
pub use vendor::{LocalServer, Vendor, local_servers, own_host, vendors};

/// Most tokens of an answer where the wire must be told and nothing else was said.
const MAX_OUTPUT_DEFAULT: u64 = 32_000;

/// The same for a model nothing is known of.
const MAX_OUTPUT_UNKNOWN: u64 = 8_192;

/// Where a key is found, each time a request is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// In this variable.
    Env(String),
    /// The server takes none.
    None,
}

/// One (wire, base URL, model) that can be asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Its name, as in `--model NAME`.
    pub name: String,
    /// The protocol.
    pub wire: Wire,
    /// What the vendor's own SDK takes as its base URL.
    pub base_url: String,
    /// The model.
    pub model: String,
    /// Where its key is found.
    pub key: KeySource,
    /// Headers without secrets.
    pub headers: BTreeMap<String, String>,
    /// Model parameters.
    pub parameters: Parameters,
    /// Whether cache marks are sent.
    pub marks: Marks,
    /// What the user says about images.
    pub own_images: Option<bool>,
    /// How long what stands before the history is kept; absent for what the wire does by itself.
    pub ttl: Option<CacheTtl>,
    /// A price of the user's own, for whatever model this route asks.
    pub own_price: Option<Price>,
    /// Prices of the user's own, by model.
    pub prices: BTreeMap<String, Price>,
}

impl Route {
    /// A route to a server that takes no key; what else it may have is left to the defaults.
    #[must_use]
    pub fn new(name: &str, wire: Wire, base_url: &str, model: &str) -> Self {
        Self {
            name: name.to_owned(),
            wire,
            base_url: base_url.to_owned(),
            model: model.to_owned(),
            key: KeySource::None,
            headers: BTreeMap::new(),
            parameters: Parameters::default(),
            marks: Marks::Auto,
            own_images: None,
            ttl: None,
            own_price: None,
            prices: BTreeMap::new(),
        }
    }

    /// What shapes this route's requests. `lineage` is the session that the conversation began in, so that
    /// its forks share a cache key with it; `ledger` says which optional fields the endpoint takes.
    #[must_use]
    pub fn config(&self, lineage: &SessionId, ledger: &Ledger) -> Config {
        let mut parameters = self.parameters.clone();
        if self.wire == Wire::AnthropicMessages && parameters.max_output_tokens.is_none() {
            let known = catalogue::model(&self.model).and_then(|model| model.max_output);
            parameters.max_output_tokens = Some(known.map_or(MAX_OUTPUT_UNKNOWN, |most| most.min(MAX_OUTPUT_DEFAULT)));
        }
        let marks = self.marks == Marks::Auto;
        let dialect = (self.wire == Wire::OpenaiChat).then(|| dialect(&self.base_url));
        let mut config = Config {
            route: self.name.clone(),
            wire: self.wire,
            base_url: self.base_url.clone(),
            model: self.model.clone(),
            encoder: crate::revision(self.wire).to_owned(),
            derive_rev: stele_core::derive_rev(self.wire),
            parameters,
            images: self.images(dialect.as_ref()),
            cache: CacheMarks {
                marks,
                ttl: if marks && self.wire == Wire::AnthropicMessages {
                    self.ttl.unwrap_or_default()
                } else {
                    CacheTtl::default()
                },
                key: marks.then(|| lineage.to_string()),
            },
            dialect,
            headers: self.headers.clone(),
            withheld: Default::default(),
        };
        let endpoint = Endpoint::of(&config);
        if !config.sends(OptionalField::PromptCacheKey) || !ledger.sends(&endpoint, OptionalField::PromptCacheKey) {
            // A key that is not sent is none: it would only be noise in the log.
            config.cache.key = None;
        }
        let mut fields = config.optional_fields();
        fields.retain(|field| ledger.sends(&endpoint, *field));
        config.keep_fields(&fields);
        config
    }

    /// Whether the model is sent images. In `openai-chat` they come in a user's message after the results, since
    /// results are text there (OpenAI, Chat Completions, 2026-11): not where no such message may follow.
    fn images(&self, dialect: Option<&Dialect>) -> ImageInput {
        let known = || catalogue::model(&self.model).and_then(|model| model.images);
        let takes = self.own_images.or_else(known).unwrap_or(false);
        let placed = dialect.is_none_or(|dialect| dialect.user_after_tool);
        if takes && placed { ImageInput::Sent } else { ImageInput::Noted }
    }

    /// What was asked for and does nothing on this route, for people.
    #[must_use]
    pub fn ignored(&self) -> Option<String> {
        let why = match self.wire {
            _ if self.ttl != Some(CacheTtl::Hour) => return None,
            Wire::AnthropicMessages if self.marks == Marks::Auto => return None,
            Wire::AnthropicMessages => "its cache marks are off".to_owned(),
            wire => format!("{wire} is not asked for a longer life"),
        };
        Some(format!("cache.ttl = \"1h\" does nothing on route {}: {why}", self.name))
    }

    /// The figure that the list price of its model lacks and most requests need, for people.
    #[must_use]
    pub fn missing_price(&self) -> Option<String> {
        let listed =
            self.price().filter(|price| Some(*price) == catalogue::list_price(&self.model).map(|row| row.price));
        listed.filter(|price| price.cache_read.is_none()).map(|_| {
            format!(
                "{}: what cache reads of {} cost could not be read from the vendor's page, so that requests that read have \
                 no cost; set `cache_read`, beside `input` and `output`, in [prices.{:?}]",
                self.name, self.model, self.model
            )
        })
    }

    /// What it costs: the user's own price of the route, or of the model, else the list price of the model's vendor;
    /// `None` when unpriced.
    #[must_use]
    pub fn price(&self) -> Option<Price> {
        self.own_price
            .or_else(|| self.prices.get(&self.model).copied())
            .or_else(|| catalogue::list_price(&self.model).map(|row| row.price))
    }

    /// The key for a request under `config`, looked up in the environment anew each time.
    ///
    /// A session's configuration comes from its log, perhaps another machine's; the key is sent to this route's own
    /// server and to no other.
    ///
    /// # Errors
    /// The variable is not set, or the configuration is for another server; the message says which.
    pub fn credential(&self, config: &Config) -> Result<Option<Secret>, Failure> {
        self.credential_from(config, &|name| std::env::var(name).ok())
    }

    /// True when the route needs no key, or its key is there.
    #[must_use]
    pub fn has_key(&self) -> bool {
        match &self.key {
            KeySource::Env(variable) => std::env::var(variable).is_ok_and(|key| !key.trim().is_empty()),
            KeySource::None => true,
        }
    }

    fn credential_from(
        &self,
        config: &Config,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Secret>, Failure> {
        let KeySource::Env(variable) = &self.key else { return Ok(None) };
        let Self { name, base_url, .. } = self;
        if config.base_url.trim_end_matches('/') != base_url.trim_end_matches('/') || config.wire != self.wire {
            let why = format!(
                "this session asks {} over {}, but route {name} is now {base_url} over {}, so its key is not sent; \
                 change the route back, or begin a new session",
                config.base_url, config.wire, self.wire
            );
            return Err(Failure::new(FailureCode::NoCredential, why));
        }
        match lookup(variable).filter(|value| !value.trim().is_empty()) {
            Some(value) => Ok(Some(Secret::new(&value))),
            None => {
                let why = format!("route {name} needs a key in {variable}, which is not set");
                Err(Failure::new(FailureCode::NoCredential, why))
            }
        }
    }
}
