//! The layers, one over the other.

use std::collections::BTreeMap;

use stele_core::limits::Bound;
use stele_core::{Mode, Price};
use stele_provider::RouteConfig;

use super::cache::WarnAbove;
use super::file::{self, Owner};
use super::inputs::Inputs;
use super::keys::{self, Key, Kind};
use super::settings::{Contribution, Setting};
use super::{ConfigError, Source};
use crate::nearest;

/// Variables with our prefix that are read elsewhere: one route alone, the folders, the transport.
const READ_ELSEWHERE: &[&str] =
    &["STELE_WIRE", "STELE_BASE_URL", "STELE_MODEL", "STELE_API_KEY", "STELE_HOME", "STELE_CA_FILE"];

/// A value as a layer says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Raw {
    /// A text.
    Text(String),
    /// Yes or no.
    Switch(bool),
    /// A number.
    Number(u64),
    /// A list of texts, each with its line.
    Texts(Vec<(String, usize)>),
    /// A part of a route, as it is written.
    Shown(String),
}

impl Raw {
    fn toml(&self) -> String {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        match self {
            Self::Text(text) => quoted(text),
            Self::Switch(set) => set.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Texts(texts) => {
                format!("[{}]", texts.iter().map(|(text, _)| quoted(text)).collect::<Vec<_>>().join(", "))
            }
            Self::Shown(text) => text.clone(),
        }
    }
}

/// A key that a layer sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: Raw,
    pub(super) source: Source,
}

/// Every layer's entries, the layer that counts last.
#[derive(Debug)]
pub(super) struct Layers {
    entries: Vec<Entry>,
    routes: Vec<(String, RouteConfig)>,
    pub(super) prices: Vec<(String, Price)>,
}

impl Layers {
    pub(super) fn of(inputs: &Inputs) -> Result<Self, ConfigError> {
        let mut layers = Self { entries: Vec::new(), routes: Vec::new(), prices: Vec::new() };
        for (file, owner) in [(&inputs.managed, Owner::Managed), (&inputs.user, Owner::User)] {
            let Some(file) = file else { continue };
            let parsed = file::parse(file, owner)?;
            layers.entries.extend(parsed.entries);
            layers.routes.extend(parsed.routes);
            layers.prices.extend(parsed.prices);
        }
        layers.environment(inputs)?;
        layers.flags(inputs);
        Ok(layers)
    }

    fn environment(&mut self, inputs: &Inputs) -> Result<(), ConfigError> {
        let keys: Vec<(String, Key)> =
            keys::all().into_iter().filter_map(|key| Some((keys::variable(&key)?, key))).collect();
        let wanted = |name: &str| {
            let listed = self.entries.iter().any(|entry| match &entry.value {
                Raw::Texts(texts) => entry.key == keys::SHELL_ENV && texts.iter().any(|(text, _)| text == name),
                Raw::Text(text) => entry.key == keys::SEARCH_KEY && text == name,
                _ => false,
            });
            listed || self.routes.iter().any(|(_, route)| route.key_env.as_deref() == Some(name))
        };
        let mut found = Vec::new();
        for (name, value) in inputs.env.iter().filter(|(name, value)| name.starts_with("STELE_") && !value.is_empty()) {
            let source = Source::Environment(name.clone());
            match keys.iter().find(|(variable, _)| variable == name) {
                Some((_, Key { name, kind: Kind::Limit(_), .. })) => {
                    let number = value.trim().parse().map_err(|_| ConfigError::Value {
                        at: source.clone(),
                        key: name.clone(),
                        problem: format!("takes a whole number, found {value:?}"),
                    })?;
                    found.push(Entry { key: name.clone(), value: Raw::Number(number), source });
                }
                Some((_, Key { name, kind: Kind::Switch, .. })) => {
                    let set = value.trim().parse().map_err(|_| ConfigError::Value {
                        at: source.clone(),
                        key: name.clone(),
                        problem: format!("takes true or false, found {value:?}"),
                    })?;
                    found.push(Entry { key: name.clone(), value: Raw::Switch(set), source });
                }
                Some((_, key)) => found.push(Entry { key: key.name.clone(), value: Raw::Text(value.clone()), source }),
                None if READ_ELSEWHERE.contains(&name.as_str()) || wanted(name) => {}
                None => {
                    let known = keys.iter().map(|(variable, _)| variable.clone());
                    let known = known.chain(READ_ELSEWHERE.iter().map(|name| (*name).to_owned()));
                    let advice = match keys::list_of(name) {
                        Some(list) => {
                            format!("set the list `{list}` in config.toml, and unset it: no variable sets a list")
                        }
                        None => format!(
                            "did you mean {}? Otherwise unset it",
                            nearest::closest(name, known).unwrap_or_default()
                        ),
                    };
                    return Err(ConfigError::UnknownVariable { name: name.clone(), advice });
                }
            }
        }
        self.entries.extend(found);
        Ok(())
    }

    fn flags(&mut self, inputs: &Inputs) {
        let flags = &inputs.flags;
        let mut set = |key: &str, flag: &'static str, value: Option<Raw>| {
            self.entries.extend(value.map(|value| Entry { key: key.to_owned(), value, source: Source::Flag(flag) }));
        };
        let rules = |rules: &[String]| {
            (!rules.is_empty()).then(|| Raw::Texts(rules.iter().map(|rule| (rule.clone(), 0)).collect()))
        };
        set(keys::MODE, "--mode", flags.mode.map(|mode| Raw::Text(mode.to_string())));
        set(keys::MODEL, "--model", flags.model.clone().map(Raw::Text));
        set(stele_core::limits::STEPS.name, "--max-steps", flags.steps.map(Raw::Number));
        set(keys::ALLOW, "--allow", rules(&flags.allow));
        set(keys::DENY, "--deny", rules(&flags.deny));
    }

    /// What every layer says about a key.
    pub(super) fn entries<'a>(&'a self, key: &'a str) -> impl DoubleEndedIterator<Item = &'a Entry> + 'a {
        self.entries.iter().filter(move |entry| entry.key == key)
    }

    /// What set the value that counts.
    pub(super) fn source(&self, key: &str) -> Source {
        self.entries(key).next_back().map_or(Source::Default, |entry| entry.source.clone())
    }

    /// A text that is not empty.
    pub(super) fn text(&self, key: &str) -> Result<Option<String>, ConfigError> {
        let Some(Entry { value: Raw::Text(text), source, .. }) = self.entries(key).next_back() else { return Ok(None) };
        if text.trim().is_empty() {
            let problem = "is empty; leave it out".to_owned();
            return Err(ConfigError::Value { at: source.clone(), key: key.to_owned(), problem });
        }
        Ok(Some(text.clone()))
    }

    /// A mode; one that is overridden must be a mode as well.
    pub(super) fn mode(&self, key: &str) -> Result<Option<Mode>, ConfigError> {
        let mut mode = None;
        for entry in self.entries(key) {
            let Raw::Text(text) = &entry.value else { continue };
            mode = Some(text.parse().map_err(|problem| ConfigError::Value {
                at: entry.source.clone(),
                key: key.to_owned(),
                problem: format!("is an {problem}"),
            })?);
        }
        Ok(mode)
    }

    /// A limit; one that is overridden must be within its bound as well.
    pub(super) fn limit(&self, bound: &Bound) -> Result<Option<u64>, ConfigError> {
        let mut limit = None;
        for entry in self.entries(bound.name) {
            let Raw::Number(number) = entry.value else { continue };
            let checked = bound.check(number);
            limit = Some(checked.map_err(|problem| ConfigError::Limit { at: entry.source.clone(), problem })?);
        }
        Ok(limit)
    }

    /// `[routes.NAME]`.
    pub(super) fn routes(&self) -> Result<BTreeMap<String, RouteConfig>, ConfigError> {
        Ok(self.routes.iter().cloned().collect())
    }

    /// Names of variables that commands are given; a provider's key is none of them.
    pub(super) fn variables(&self, routes: &BTreeMap<String, RouteConfig>) -> Result<Vec<String>, ConfigError> {
        let key_variables: Vec<&str> = routes
            .values()
            .filter_map(|route| route.key_env.as_deref())
            .chain(stele_provider::vendors().iter().flat_map(|vendor| vendor.key_env.iter().map(String::as_str)))
            .chain(["STELE_API_KEY"])
            .collect();
        let mut names = Vec::new();
        for entry in self.entries(keys::SHELL_ENV) {
            let Raw::Texts(texts) = &entry.value else { continue };
            for (name, line) in texts {
                let plain = !name.is_empty()
                    && !name.starts_with(|first: char| first.is_ascii_digit())
                    && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
                let problem = if !plain {
                    format!("takes names of variables, found {name:?}")
                } else if key_variables.contains(&name.as_str()) {
                    format!("may not pass {name}: it holds a provider's key")
                } else {
                    names.push(name.clone());
                    continue;
                };
                let key = keys::SHELL_ENV.to_owned();
                return Err(ConfigError::Value { at: entry.source.at_line(*line), key, problem });
            }
        }
        Ok(names)
    }

    /// Every key with its value and what set it.
    pub(super) fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        for key in keys::all() {
            let mut names: Vec<&str> = self
                .entries
                .iter()
                .map(|entry| entry.key.as_str())
                .filter(|name| *name == key.name || key.kind == Kind::Part && is_instance(&key.name, name))
                .collect();
            names.dedup();
            if names.is_empty() && key.kind != Kind::Part {
                names.push(&key.name);
            }
            for name in names {
                settings.push(self.setting(name, &key));
            }
        }
        settings
    }

    fn setting(&self, name: &str, key: &Key) -> Setting {
        let set: Vec<Contribution> = self
            .entries(name)
            .map(|entry| Contribution { source: entry.source.clone(), value: entry.value.toml() })
            .collect();
        let value = match key.kind {
            Kind::Texts => {
                let all = self.entries(name).filter_map(|entry| match &entry.value {
                    Raw::Texts(texts) => Some(texts.clone()),
                    _ => None,
                });
                Some(Raw::Texts(all.flatten().collect()).toml())
            }
            _ => set.last().map(|last| last.value.clone()).or_else(|| default(key)),
        };
        Setting { key: name.to_owned(), value, about: key.about.clone(), set }
    }
}

fn default(key: &Key) -> Option<String> {
    match (key.kind, key.name.as_str()) {
        (Kind::Limit(bound), _) => Some(bound.default.to_string()),
        (Kind::Switch, _) => Some(false.to_string()),
        (_, keys::ON_AMBIGUOUS) => Some(Raw::Text("refuse".to_owned()).toml()),
        (_, keys::CACHE_WARN) => Some(Raw::Text(WarnAbove::default().to_string()).toml()),
        (_, keys::MODE) => Some(Raw::Text(Mode::default().to_string()).toml()),
        (_, keys::HIGHEST_MODE) => Some(Raw::Text(Mode::Full.to_string()).toml()),
        _ => None,
    }
}

/// True when a name is what a pattern with `*` stands for.
fn is_instance(pattern: &str, name: &str) -> bool {
    // The name of a model may hold dots.
    if let Some((front, back)) = pattern.split_once('*').filter(|(front, _)| *front == "prices.") {
        let back = back.trim_end_matches('*');
        let inner = name.strip_prefix(front).and_then(|rest| rest.find(back));
        return inner.is_some_and(|at| at > 0);
    }
    let parts: Vec<&str> = name.split('.').collect();
    keys::find(&parts).is_some_and(|key| key.name == pattern)
}
