//! Every key there is.

use stele_core::limits::{self, Bound};

use crate::nearest::closest;

pub const MODE: &str = "mode";
pub const HIGHEST_MODE: &str = "highest_mode";
pub const MODEL: &str = "model";
pub const ROUTE: &str = "route";
pub const ALLOW: &str = "permissions.allow";
pub const ASK: &str = "permissions.ask";
pub const DENY: &str = "permissions.deny";
pub const SHELL_ENV: &str = "shell.env";
pub const OFFER: &str = "tools.offer";
pub const TRUSTED_HOSTS: &str = "web.trusted_hosts";
pub const SEARCH: &str = "web.search";
pub const SEARCH_URL: &str = "web.search_url";
pub const SEARCH_KEY: &str = "web.search_key_env";
pub const FUZZY: &str = "edit.fuzzy";
pub const ON_AMBIGUOUS: &str = "edit.on_ambiguous";
pub const PERSONA: &str = "agent.persona";
pub const CACHE_WARN: &str = "cache.warn_above";
pub const CACHE_TTL: &str = "cache.ttl";

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// Yes or no.
    Switch,
    /// A list of texts; those of all layers count together.
    Texts,
    /// A whole number within a bound.
    Limit(&'static Bound),
    /// Part of a route or of a model's price: the table as a whole says what it takes.
    Part,
}

/// A key. A part `*` stands for any name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub name: String,
    pub kind: Kind,
    pub about: String,
}

/// Limits that can be set. The others shape what a log means, or have no reason to be different yet.
const SETTABLE: &[&Bound] = &[
    &limits::STEPS,
    &limits::EXECUTIONS,
    &limits::RESULT_BYTES,
    &limits::READ_LINES,
    &limits::READ_BYTES,
    &limits::SHELL_MS,
    &limits::IDLE_MS,
    &limits::CONNECT_MS,
];

const PLAIN: &[(&str, Kind, &str)] = &[
    (MODE, Kind::Text, "what needs no question: ask (reading), edit (also editing here), full (everything)"),
    (HIGHEST_MODE, Kind::Text, "the highest mode on this machine; only the machine's policy sets it"),
    (
        MODEL,
        Kind::Text,
        "the model that a new session asks: a model, a route, or ROUTE/MODEL; one that goes on keeps its own",
    ),
    (ROUTE, Kind::Text, "the route that is used when `model` names none"),
    (ALLOW, Kind::Texts, "rules for what runs without asking"),
    (ASK, Kind::Texts, "rules for what asks, whatever else allows it"),
    (DENY, Kind::Texts, "rules for what is refused, whatever else allows it"),
    (SHELL_ENV, Kind::Texts, "further variables that commands are given"),
    (OFFER, Kind::Texts, "further tools that the model is offered: patch, ls, symbols, web_fetch, web_search"),
    (TRUSTED_HOSTS, Kind::Texts, "hosts that web_fetch may reach by plain http and whatever their address is"),
    (SEARCH, Kind::Text, "the kind of service that web_search asks: searxng, brave"),
    (SEARCH_URL, Kind::Text, "the address of that service"),
    (SEARCH_KEY, Kind::Text, "the variable that holds its key"),
    (
        FUZZY,
        Kind::Switch,
        "whether an edit may find a place by its first and last line and a body that is nearly the same",
    ),
    (ON_AMBIGUOUS, Kind::Text, "what an edit does whose text is at several places: refuse, last"),
    (PERSONA, Kind::Text, "text that is added to what the model is told first"),
    (
        CACHE_WARN,
        Kind::Text,
        "leaving the provider's cache asks first when it costs more: \"$0.50\", \"50000 tokens\", \"never\"",
    ),
    (
        CACHE_TTL,
        Kind::Text,
        "how long Anthropic keeps tools, system text and instructions: 5m, or 1h at a higher price for writing",
    ),
];

const ROUTES: &[(&str, &str)] = &[
    ("wire", "the protocol: anthropic-messages, openai-responses, openai-chat, gemini"),
    ("base_url", "what the vendor's own SDK takes as its base URL"),
    ("model", "the model"),
    ("key_env", "the variable that holds the key"),
    ("headers.*", "a header without a secret"),
    ("parameters.max_output_tokens", "most tokens of one answer"),
    ("parameters.temperature", "sampling temperature"),
    ("parameters.top_p", "nucleus sampling"),
    ("parameters.stop", "texts at which the model stops"),
    ("parameters.effort", "how hard the model should think, in the vendor's words"),
    (
        "parameters.tool_choice",
        "whether the model calls tools: auto, none, required, or one of them: { tool = \"read\" }",
    ),
    ("parameters.tool_choice.tool", "the tool that each answer calls"),
    ("parameters.verbosity", "how much the model says, in the vendor's words"),
    ("cache.marks", "whether the wire's cache marks are sent: auto, off"),
    ("images", "whether the model is sent images; else what is known of the model"),
    ("cache.ttl", "as `cache.ttl`, for this route: 5m, 1h"),
    ("price.input", "millionths of a dollar for a million tokens"),
    ("price.output", "millionths of a dollar for a million tokens"),
    ("price.cache_read", "millionths of a dollar for a million tokens"),
    ("price.cache_write", "millionths of a dollar for a million tokens"),
    ("price.cache_write_5m", "millionths of a dollar for a million tokens"),
    ("price.cache_write_1h", "millionths of a dollar for a million tokens"),
    ("price.long.*", "what long requests cost instead"),
];

const PRICES: &[&str] = &["input", "output", "cache_read", "cache_write", "cache_write_5m", "cache_write_1h", "long.*"];

/// Every key, in the order in which they are shown.
pub fn all() -> Vec<Key> {
    let plain =
        PLAIN.iter().map(|(name, kind, about)| Key { name: (*name).into(), kind: *kind, about: (*about).into() });
    let limits = SETTABLE.iter().map(|bound| Key {
        name: bound.name.to_owned(),
        kind: Kind::Limit(bound),
        about: format!("default {}, at most {}", bound.default, bound.hard),
    });
    let routes = ROUTES.iter().map(|(name, about)| Key {
        name: format!("routes.*.{name}"),
        kind: Kind::Part,
        about: (*about).to_owned(),
    });
    let prices = PRICES.iter().map(|name| Key {
        name: format!("prices.*.{name}"),
        kind: Kind::Part,
        about: "what a model costs instead of its list price, in millionths of a dollar for a million tokens"
            .to_owned(),
    });
    plain.chain(limits).chain(routes).chain(prices).collect()
}

/// The key that a dotted path is, if there is one.
pub fn find(path: &[&str]) -> Option<Key> {
    all().into_iter().find(|key| {
        let parts: Vec<&str> = key.name.split('.').collect();
        parts.len() == path.len() && covers(&parts, path)
    })
}

/// True when keys lie below the path.
pub fn is_table(path: &[&str]) -> bool {
    all().iter().any(|key| {
        let parts: Vec<&str> = key.name.split('.').collect();
        parts.len() > path.len() && covers(&parts, path)
    })
}

/// A limit that exists and cannot be set.
pub fn fixed_limit(path: &str) -> Option<&'static Bound> {
    limits::ALL.iter().find(|bound| bound.name == path)
}

fn covers(parts: &[&str], path: &[&str]) -> bool {
    parts.iter().zip(path).all(|(part, given)| *part == "*" || part == given)
}

/// The known key that is closest to a path; names that stand for `*` are kept.
pub fn nearest(path: &str) -> String {
    if ROUTES.iter().any(|(name, _)| *name == path) {
        return format!("routes.NAME.{path}");
    }
    let given: Vec<&str> = path.split('.').collect();
    let candidates = all().into_iter().flat_map(|key| {
        let parts: Vec<String> = key
            .name
            .split('.')
            .enumerate()
            .map(|(index, part)| match (part, given.get(index)) {
                ("*", Some(name)) => (*name).to_owned(),
                ("*", None) => "NAME".to_owned(),
                (part, _) => part.to_owned(),
            })
            .collect();
        // A table is a candidate as well as its keys.
        (1..=parts.len()).map(|count| parts[..count].join(".")).collect::<Vec<_>>()
    });
    closest(path, candidates).unwrap_or_else(|| MODE.to_owned())
}

/// The variable of a key that can be set in the environment: `limits.steps` is `STELE_LIMITS_STEPS`.
/// Lists and routes have none, and the model has its own way (`STELE_MODEL` beside `STELE_BASE_URL`).
pub fn variable(key: &Key) -> Option<String> {
    let scalar = matches!(key.kind, Kind::Text | Kind::Switch | Kind::Limit(_));
    (scalar && key.name != HIGHEST_MODE && key.name != MODEL).then(|| spelled(&key.name))
}

/// The list whose variable this would be, if lists had any.
pub fn list_of(variable: &str) -> Option<String> {
    let list = all().into_iter().find(|key| matches!(key.kind, Kind::Texts) && spelled(&key.name) == variable);
    list.map(|key| key.name)
}

fn spelled(key: &str) -> String {
    format!("STELE_{}", key.replace('.', "_").to_uppercase())
}
