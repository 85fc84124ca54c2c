//! Routes: which model is asked, where, over which wire, and where its key is found.
//!
//! They come from three places, in this order: the `STELE_*` variables for one route alone, the
//! `[routes.NAME]` tables of the configuration, and the vendors' usual variables (`vendors.toml`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use stele_core::{
    CacheMarks, CacheTtl, Config, DERIVE_REV, Dialect, Failure, FailureCode, ImageInput, OptionalField, Parameters,
    Price, SessionId, Wire,
};

use crate::local::Found;
use crate::{Endpoint, Ledger, Secret, catalogue, http};

/// Most tokens of an answer where the wire must be told and nothing else was said.
const MAX_OUTPUT_DEFAULT: u64 = 32_000;

/// The same for a model nothing is known of.
const MAX_OUTPUT_UNKNOWN: u64 = 8_192;

/// Headers that are not a route's to set: they carry secrets or belong to the transport.
const RESERVED_HEADERS: [&str; 10] = [
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "x-goog-api-key",
    "cookie",
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "accept-encoding",
];

/// Why there is no route.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// Nothing says which model to ask.
    #[error("{}", no_route(.found))]
    None {
        /// Servers that answered on this machine.
        found: Vec<Found>,
    },
    /// A route is not complete or not right.
    #[error("config.route: {route}: {problem}")]
    Invalid {
        /// Where it is written, such as `routes.work` or `STELE_WIRE`.
        route: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A base URL that cannot be used.
    #[error("{problem} (in {route})")]
    BaseUrl {
        /// Where it is written.
        route: String,
        /// What is wrong; it begins with the code.
        problem: String,
    },
}

impl RouteError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::None { .. } => "config.no_route",
            Self::Invalid { .. } => "config.route",
            Self::BaseUrl { .. } => "config.base_url",
        }
    }
}

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

/// A row of `vendors.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vendor {
    /// Its name, which is also its route's.
    pub name: String,
    /// The protocol.
    pub wire: Wire,
    /// What its own SDK takes as the base URL.
    pub base_url: String,
    /// The variable that its own SDK reads another base URL from.
    pub base_url_env: Option<String>,
    /// The variables that may hold its key; the first that is set counts.
    pub key_env: Vec<String>,
    /// The model when none is named; absent when no page of its own was read that names one.
    pub model: Option<String>,
    /// The page the row was read from.
    pub page: String,
    /// The day it was read.
    pub read: String,
}

/// A server that may run on this machine, from `vendors.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalServer {
    /// Its name, for people.
    pub name: String,
    /// Where it answers when nothing else was configured.
    pub base_url: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct VendorSheet {
    vendor: Vec<Vendor>,
    local: Vec<LocalServer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DialectSheet {
    dialect: Vec<DialectRow>,
}

/// A row of `dialects.toml`; its page and day are for the reader of the sheet.
#[derive(Deserialize)]
struct DialectRow {
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    local_ports: Vec<u16>,
    facts: Dialect,
}

const VENDORS_TOML: &str = include_str!("vendors.toml");
const DIALECTS_TOML: &str = include_str!("dialects.toml");

// A sheet that did not parse would be empty; a test keeps that from being shipped.
static VENDORS: LazyLock<VendorSheet> = LazyLock::new(|| toml::from_str(VENDORS_TOML).unwrap_or_default());
static DIALECTS: LazyLock<Vec<DialectRow>> =
    LazyLock::new(|| toml::from_str(DIALECTS_TOML).map(|sheet: DialectSheet| sheet.dialect).unwrap_or_default());

/// The vendors whose variables are known.
#[must_use]
pub fn vendors() -> &'static [Vendor] {
    &VENDORS.vendor
}

/// The servers that may run on this machine.
#[must_use]
pub fn local_servers() -> &'static [LocalServer] {
    &VENDORS.local
}

/// Every route there is, the one that counts when none is named first. The list may be empty
/// ([`RouteError::None`] says what to do then).
///
/// # Errors
/// A route is incomplete or names something that cannot be used; the message says where it is written.
pub fn routes(
    lookup: &dyn Fn(&str) -> Option<String>,
    configured: &BTreeMap<String, RouteConfig>,
) -> Result<Vec<Route>, RouteError> {
    let set = |name: &str| lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let mut routes = Vec::new();
    routes.extend(environment(&set)?);
    for (name, config) in configured {
        routes.push(from_config(name, config, &set)?);
    }
    for vendor in vendors().iter().filter(|vendor| !configured.contains_key(&vendor.name)) {
        routes.extend(from_vendor(vendor, &set)?);
    }
    Ok(routes)
}

type Lookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// `STELE_WIRE`, `STELE_BASE_URL`, `STELE_MODEL`, `STELE_API_KEY`: one route alone.
fn environment(set: &Lookup<'_>) -> Result<Option<Route>, RouteError> {
    let (wire, base_url, model) = (set("STELE_WIRE"), set("STELE_BASE_URL"), set("STELE_MODEL"));
    let key = set("STELE_API_KEY").map(|_| KeySource::Env("STELE_API_KEY".to_owned()));
    let invalid = |problem: String| RouteError::Invalid { route: "STELE_*".to_owned(), problem };
    if wire.is_none() && base_url.is_none() {
        if model.is_none() && key.is_none() {
            return Ok(None);
        }
        let problem = "STELE_MODEL and STELE_API_KEY need STELE_WIRE or STELE_BASE_URL beside them; \
                       to choose another model of a vendor whose key is set, use --model NAME or `model = \"NAME\"` in config.toml";
        return Err(invalid(problem.to_owned()));
    }
    let Some(model) = model else {
        return Err(invalid("STELE_MODEL is missing; set it to the model to ask".to_owned()));
    };
    let wire = match wire {
        Some(wire) => wire.parse::<Wire>().map_err(|problem| invalid(format!("STELE_WIRE: {problem}")))?,
        None => Wire::OpenaiChat,
    };
    let own = vendors().iter().find(|vendor| vendor.wire == wire && base_url.is_none());
    let Some(base_url) = base_url.or_else(|| own.map(|vendor| vendor.base_url.clone())) else {
        return Err(invalid(format!("STELE_BASE_URL is missing, and {wire} has no server of its own")));
    };
    // A vendor's usual key goes to that vendor's own server only.
    let usual = || Some(KeySource::Env(first_set(&own?.key_env, set)?));
    let route = Route {
        name: "env".to_owned(),
        wire,
        base_url,
        model,
        key: key.or_else(usual).unwrap_or(KeySource::None),
        headers: BTreeMap::new(),
        parameters: Parameters::default(),
        marks: Marks::Auto,
        own_images: None,
        ttl: None,
        own_price: None,
        prices: BTreeMap::new(),
    };
    check(route, "STELE_BASE_URL").map(Some)
}

fn from_config(name: &str, config: &RouteConfig, set: &Lookup<'_>) -> Result<Route, RouteError> {
    let place = format!("routes.{name}");
    let vendor = vendors().iter().find(|vendor| vendor.name == name);
    let missing = |field: &str| RouteError::Invalid { route: place.clone(), problem: format!("{field} is missing") };
    let wire = config.wire.or(vendor.map(|vendor| vendor.wire)).ok_or_else(|| missing("wire"))?;
    let theirs = || vendor.map(|vendor| vendor_base_url(vendor, set));
    let base_url = config.base_url.clone().or_else(theirs).ok_or_else(|| missing("base_url"))?;
    let model = config.model.clone().or_else(|| vendor?.model.clone()).filter(|model| !model.trim().is_empty());
    let model = model.ok_or_else(|| missing("model"))?;
    let key = match &config.key_env {
        Some(variable) if variable.trim().is_empty() => KeySource::None,
        Some(variable) => KeySource::Env(variable.trim().to_owned()),
        // A vendor's usual key goes to that vendor's own server only.
        None if config.base_url.is_none() => {
            let usual =
                vendor.and_then(|vendor| first_set(&vendor.key_env, set).or_else(|| vendor.key_env.first().cloned()));
            usual.map_or(KeySource::None, KeySource::Env)
        }
        None => KeySource::None,
    };
    let route = Route {
        name: name.to_owned(),
        wire,
        base_url,
        model,
        key,
        headers: config.headers.clone(),
        parameters: config.parameters.clone(),
        marks: config.cache.marks,
        own_images: config.images,
        ttl: config.cache.ttl,
        own_price: config.price,
        prices: BTreeMap::new(),
    };
    check(route, &place)
}

fn from_vendor(vendor: &Vendor, set: &Lookup<'_>) -> Result<Option<Route>, RouteError> {
    let (Some(variable), Some(model)) = (first_set(&vendor.key_env, set), vendor.model.clone()) else {
        return Ok(None);
    };
    let route = Route {
        name: vendor.name.clone(),
        wire: vendor.wire,
        base_url: vendor_base_url(vendor, set),
        model,
        key: KeySource::Env(variable),
        headers: BTreeMap::new(),
        parameters: Parameters::default(),
        marks: Marks::Auto,
        own_images: None,
        ttl: None,
        own_price: None,
        prices: BTreeMap::new(),
    };
    check(route, vendor.base_url_env.as_deref().unwrap_or(&vendor.name)).map(Some)
}

fn vendor_base_url(vendor: &Vendor, set: &Lookup<'_>) -> String {
    vendor.base_url_env.as_deref().and_then(set).unwrap_or_else(|| vendor.base_url.clone())
}

fn first_set(variables: &[String], set: &Lookup<'_>) -> Option<String> {
    variables.iter().find(|variable| set(variable).is_some()).cloned()
}

/// Refuses what would fail, or leak, only when it is sent.
fn check(route: Route, place: &str) -> Result<Route, RouteError> {
    if let Err(problem) = http::check_base_url(&route.base_url) {
        return Err(RouteError::BaseUrl { route: place.to_owned(), problem });
    }
    for name in route.headers.keys() {
        if RESERVED_HEADERS.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
            let problem = format!("the header {name} cannot be set; a key belongs in the variable that key_env names");
            return Err(RouteError::Invalid { route: place.to_owned(), problem });
        }
    }
    Ok(route)
}

impl Route {
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
            derive_rev: DERIVE_REV,
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

/// How the endpoint at a base URL speaks `openai-chat`.
#[must_use]
pub fn dialect(base_url: &str) -> Dialect {
    let Ok(url) = http::check_base_url(base_url) else { return Dialect::default() };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let local = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let port = url.port_or_known_default();
    let matches = |row: &&DialectRow| {
        row.hosts.iter().any(|known| known == host) || local && row.local_ports.iter().any(|known| Some(*known) == port)
    };
    DIALECTS.iter().find(matches).map(|row| row.facts.clone()).unwrap_or_default()
}

/// What to do when there is no route.
fn no_route(found: &[Found]) -> String {
    let mut text = String::from("config.no_route: no model is configured; ");
    if let Some(first) = found.first() {
        text.push_str(&format!(
            "{} answers at {}: use it with STELE_BASE_URL={} STELE_MODEL={}, or ",
            first.name,
            first.base_url,
            first.base_url,
            first.models.first().map_or("NAME", String::as_str),
        ));
    }
    let alone = |vendor: &&Vendor| vendor.model.is_some();
    let variables: Vec<&str> =
        vendors().iter().filter(alone).filter_map(|vendor| vendor.key_env.first().map(String::as_str)).collect();
    text.push_str(&format!("set a key in one of {}; ", variables.join(", ")));
    text.push_str("or name any server with STELE_BASE_URL and STELE_MODEL");
    if found.is_empty() {
        let servers: Vec<String> =
            local_servers().iter().map(|server| format!("{} at {}", server.name, server.base_url)).collect();
        text.push_str(&format!(" (on this machine, none of {} answers)", servers.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> SessionId {
        SessionId::new("0197f0aa-0000-7000-8000-000000000001").unwrap()
    }

    fn list(variables: &[(&str, &str)], config: &str) -> Result<Vec<Route>, RouteError> {
        let configured: BTreeMap<String, RouteConfig> = toml::from_str(config).unwrap();
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        routes(&find, &configured)
    }

    fn names(routes: &[Route]) -> Vec<&str> {
        routes.iter().map(|route| route.name.as_str()).collect()
    }

    #[test]
    fn the_sheets_parse() {
        let sheet: VendorSheet = toml::from_str(VENDORS_TOML).unwrap();
        assert_eq!(sheet.vendor, vendors());
        assert_eq!(sheet.local.len(), 4);
        for vendor in vendors() {
            http::check_base_url(&vendor.base_url).unwrap();
            assert!(!vendor.key_env.is_empty(), "{}", vendor.name);
            assert!(vendor.page.starts_with("https://"), "{}", vendor.name);
            assert_eq!(vendor.read.len(), 10, "{}", vendor.name);
        }
        let dialects: DialectSheet = toml::from_str(DIALECTS_TOML).unwrap();
        assert_eq!(dialects.dialect.len(), DIALECTS.len());
        let sheet: toml::Table = toml::from_str(DIALECTS_TOML).unwrap();
        for (row, raw) in dialects.dialect.iter().zip(sheet["dialect"].as_array().unwrap()) {
            assert_ne!(row.facts.name, "default");
            assert!(row.hosts.len() + row.local_ports.len() > 0, "{}", row.facts.name);
            let raw = raw.as_table().unwrap();
            for key in raw.keys() {
                assert!(["hosts", "local_ports", "facts", "page", "read"].contains(&key.as_str()), "{key}");
            }
            let bare = row.facts == Dialect { name: row.facts.name.clone(), ..Dialect::default() };
            assert!(bare || raw.contains_key("page") && raw.contains_key("read"), "{}", row.facts.name);
        }
    }

    #[test]
    fn the_vendors_variables_make_routes_in_a_fixed_order() {
        let routes = list(&[("DEEPSEEK_API_KEY", "d"), ("ANTHROPIC_API_KEY", "a"), ("GROQ_API_KEY", "g")], "").unwrap();
        assert_eq!(names(&routes), ["anthropic", "deepseek"]);
        assert_eq!(routes[0].base_url, "https://api.anthropic.com");
        assert_eq!(routes[0].key, KeySource::Env("ANTHROPIC_API_KEY".into()));
        assert_eq!(list(&[("ANTHROPIC_API_KEY", " ")], "").unwrap(), []);
        let routes = list(&[("GOOGLE_API_KEY", "g")], "").unwrap();
        assert_eq!(routes[0].key, KeySource::Env("GOOGLE_API_KEY".into()));
        let routes = list(&[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")], "").unwrap();
        assert_eq!(routes[0].base_url, "http://127.0.0.1:9/v1");
    }

    #[test]
    fn one_route_alone_wins() {
        let routes = list(
            &[
                ("ANTHROPIC_API_KEY", "a"),
                ("STELE_WIRE", "openai-chat"),
                ("STELE_BASE_URL", "http://127.0.0.1:1234/v1"),
                ("STELE_MODEL", "m"),
            ],
            "",
        )
        .unwrap();
        assert_eq!(names(&routes), ["env", "anthropic"]);
        assert_eq!(routes[0].key, KeySource::None);
    }

    #[test]
    fn a_vendors_key_goes_to_its_own_server_only() {
        let base = [("ANTHROPIC_API_KEY", "a"), ("STELE_WIRE", "anthropic-messages"), ("STELE_MODEL", "m")];
        assert_eq!(list(&base, "").unwrap()[0].key, KeySource::Env("ANTHROPIC_API_KEY".into()));
        let elsewhere = [&base[..], &[("STELE_BASE_URL", "https://elsewhere.example")]].concat();
        assert_eq!(list(&elsewhere, "").unwrap()[0].key, KeySource::None);
        let own = [&elsewhere[..], &[("STELE_API_KEY", "s")]].concat();
        assert_eq!(list(&own, "").unwrap()[0].key, KeySource::Env("STELE_API_KEY".into()));
        let routes = list(&[("OPENAI_API_KEY", "o")], "[openai]\nbase_url = \"https://elsewhere.example/v1\"").unwrap();
        assert_eq!(routes[0].key, KeySource::None);
    }

    #[test]
    fn a_table_named_as_a_vendor_fills_in_the_rest() {
        let routes = list(&[("GROQ_API_KEY", "g")], "[groq]\nmodel = \"llama\"\ncache = { marks = \"off\" }").unwrap();
        assert_eq!(names(&routes), ["groq"]);
        assert_eq!(routes[0].base_url, "https://api.groq.com/openai/v1");
        assert_eq!(routes[0].key, KeySource::Env("GROQ_API_KEY".into()));
        assert!(!routes[0].config(&session(), &Ledger::default()).cache.marks);
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        #[track_caller]
        fn refused(variables: &[(&str, &str)], config: &str, code: &str, part: &str) {
            let error = list(variables, config).unwrap_err();
            assert_eq!(error.code(), code, "{error}");
            let text = error.to_string();
            assert!(text.starts_with(code) && text.contains(part), "{text}");
        }
        refused(&[("STELE_BASE_URL", "http://h/v1")], "", "config.route", "STELE_MODEL is missing");
        refused(&[("STELE_MODEL", "m")], "", "config.route", "STELE_WIRE");
        refused(&[("STELE_WIRE", "smoke"), ("STELE_MODEL", "m")], "", "config.route", "anthropic-messages");
        refused(&[], "[work]\nmodel = \"m\"", "config.route", "routes.work: wire is missing");
        refused(&[], "[groq]\nbase_url = \"https://h\"", "config.route", "routes.groq: model is missing");
        let secret = "[openai]\nbase_url = \"https://u:hunter2@h\"";
        refused(&[], secret, "config.base_url", "routes.openai");
        assert!(!list(&[], secret).unwrap_err().to_string().contains("hunter2"));
        let header = "[openai]\nheaders = { Authorization = \"x\" }";
        refused(&[], header, "config.route", "Authorization");
        assert!(toml::from_str::<RouteConfig>("modle = \"m\"").is_err());
    }

    #[test]
    fn a_config_holds_what_its_endpoint_takes_and_nothing_else() {
        let route = |name: &str, variables: &[(&str, &str)]| {
            list(variables, "")
                .unwrap()
                .into_iter()
                .find(|route| route.name == name)
                .unwrap()
                .config(&session(), &Ledger::default())
        };
        let anthropic = route("anthropic", &[("ANTHROPIC_API_KEY", "a")]);
        assert_eq!(anthropic.parameters.max_output_tokens, Some(32_000));
        assert_eq!(anthropic.cache, CacheMarks::default());
        assert_eq!((anthropic.dialect, anthropic.derive_rev), (None, DERIVE_REV));
        assert!(anthropic.encoder.starts_with("anthropic-messages/"));
        let openai = route("openai", &[("OPENAI_API_KEY", "o")]);
        assert_eq!(openai.cache.key.as_deref(), Some(session().as_str()));
        assert_eq!(openai.parameters.max_output_tokens, None);
        let gateway = route("openai", &[("OPENAI_API_KEY", "o"), ("OPENAI_BASE_URL", "https://gateway.example/v1")]);
        assert_eq!(gateway.cache.key, None);
        let deepseek = route("deepseek", &[("DEEPSEEK_API_KEY", "d")]);
        assert_eq!(deepseek.cache.key, None);
        assert_eq!(deepseek.dialect.unwrap().reasoning_field.as_deref(), Some("reasoning_content"));
        let unknown = [("ANTHROPIC_API_KEY", "a"), ("STELE_WIRE", "anthropic-messages"), ("STELE_MODEL", "new")];
        assert_eq!(route("env", &unknown).parameters.max_output_tokens, Some(8_192));
    }

    #[test]
    fn the_users_own_price_wins_over_the_list() {
        let routes = list(&[("ANTHROPIC_API_KEY", "a")], "").unwrap();
        assert_eq!(routes[0].price().unwrap().input, Some(4_000_000));
        let own = "[anthropic]\nprice = { input = 1, output = 2 }\n[x]\nwire = \"openai-chat\"\nbase_url = \"http://h\"\nmodel = \"m\"";
        let routes = list(&[("ANTHROPIC_API_KEY", "a")], own).unwrap();
        assert_eq!(routes[0].price().unwrap().input, Some(1));
        assert_eq!(routes[1].price(), None);
        assert!(toml::from_str::<RouteConfig>("price = { inptu = 1 }").is_err());
    }

    #[test]
    fn a_dialect_is_known_by_host_or_by_local_port() {
        for (base_url, name) in [
            ("https://api.mistral.ai/v1", "mistral"),
            ("http://localhost:11434/v1", "ollama"),
            ("http://[::1]:8080/v1", "llama.cpp"),
            ("http://models.example:11434/v1", "default"),
            ("https://api.mistral.ai.example/v1", "default"),
            ("nonsense", "default"),
        ] {
            assert_eq!(dialect(base_url).name, name, "{base_url}");
        }
        assert!(dialect("https://api.mistral.ai/v1").short_call_ids);
    }

    #[test]
    fn a_missing_key_is_named_and_a_found_one_hidden() {
        let route = &list(&[("OPENAI_API_KEY", "sk-1")], "").unwrap()[0];
        let config = route.config(&session(), &Ledger::default());
        let secret = route.credential_from(&config, &|_| Some("sk-1\n".into())).unwrap().unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(hidden)");
        let failure = route.credential_from(&config, &|_| None).unwrap_err();
        assert_eq!(failure.code, FailureCode::NoCredential);
        assert!(failure.message.as_str().contains("OPENAI_API_KEY"), "{:?}", failure.message);
    }

    #[test]
    fn a_key_goes_to_its_routes_own_server_whatever_a_log_says() {
        let route = &list(&[("OPENAI_API_KEY", "sk-1")], "").unwrap()[0];
        let find = |_: &str| Some("sk-1".to_owned());
        let foreign =
            Config { base_url: "https://evil.example/v1".into(), ..route.config(&session(), &Ledger::default()) };
        let failure = route.credential_from(&foreign, &find).unwrap_err();
        assert_eq!(failure.code, FailureCode::NoCredential);
        assert!(failure.message.as_str().contains("https://evil.example/v1"), "{:?}", failure.message);
        let slash =
            Config { base_url: "https://api.openai.com/v1/".into(), ..route.config(&session(), &Ledger::default()) };
        assert!(route.credential_from(&slash, &find).unwrap().is_some());
        // Where there is no key, there is nothing to keep.
        let keyless = Route { key: KeySource::None, ..route.clone() };
        assert!(keyless.credential_from(&foreign, &find).unwrap().is_none());
    }

    #[test]
    fn without_a_route_the_message_says_what_would_work() {
        let text = RouteError::None { found: Vec::new() }.to_string();
        assert!(text.starts_with("config.no_route: "), "{text}");
        for part in ["ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY", "STELE_BASE_URL", "Ollama at http://127.0.0.1:11434/v1"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("GROQ_API_KEY"), "a key that makes no route alone: {text}");
        let found =
            Found { name: "Ollama".into(), base_url: "http://127.0.0.1:11434/v1".into(), models: vec!["q".into()] };
        let text = RouteError::None { found: vec![found] }.to_string();
        assert!(text.contains("STELE_BASE_URL=http://127.0.0.1:11434/v1 STELE_MODEL=q"), "{text}");
    }
}
