//! The configuration: what is set, by whom.
//!
//! Layers, each over the one before: the defaults, the user's `config.toml`, the environment
//! (`STELE_*`), the flags. The machine's policy (`/etc/stele/policy.toml`) only narrows: it denies,
//! and it bounds the mode. A project's `.stele/config.toml` is not loaded, since there is no way
//! yet to say that a folder is trusted; it is named in [`Config::skipped`].
//!
//! [`Inputs::read`] is the one place that reads files; [`Config::load`] is pure.

mod cache;
mod error;
mod file;
mod inputs;
mod keys;
mod layers;
mod settings;
mod tools;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use stele_core::limits::{self, Bound, TurnLimits};
use stele_core::{CacheTtl, Mode, Price};
use stele_guard::{Layer, List, Policy};
use stele_provider::{KeySource, Route, RouteConfig};

use crate::chosen::ENV_ROUTE;
use crate::nearest;

pub use cache::WarnAbove;
pub use error::ConfigError;
pub use inputs::{Flags, Inputs};
pub use settings::{Contribution, Setting, Source};

use layers::{Layers, Raw};

/// Everything that was set, merged.
#[derive(Debug)]
pub struct Config {
    /// The folder of the user's configuration and instructions.
    pub home: PathBuf,
    /// The folder of the logs.
    pub data: PathBuf,
    /// Mode of a new session.
    pub mode: Mode,
    /// The highest mode that the machine's policy allows.
    pub highest_mode: Mode,
    /// The route that is used when nothing else is said.
    pub route: Option<String>,
    /// A model, a route, or `ROUTE/MODEL`.
    pub model: Option<String>,
    /// `[routes.NAME]`.
    pub routes: BTreeMap<String, RouteConfig>,
    /// The rules of every layer.
    pub policy: Policy,
    /// Further variables that commands are given.
    pub shell_env: Vec<String>,
    /// Tools that are offered beyond the usual ones.
    pub offer: Vec<stele_tools::Offer>,
    /// What the tools of the web may do.
    pub web: stele_tools::Web,
    /// How the edit engine works.
    pub edit: stele_edit::Options,
    /// Limits of the tools.
    pub tool_limits: stele_tools::Limits,
    /// Limits of every turn, as far as they were set.
    pub turn_limits: TurnLimits,
    /// Longest time to connect to a provider.
    pub connect: Duration,
    /// Longest time without a byte from a provider.
    pub idle: Duration,
    /// What leaving the provider's cache may cost before somebody is asked.
    pub warn_above: WarnAbove,
    /// How long what stands before the history is kept, where a route does not say.
    pub cache_ttl: Option<CacheTtl>,
    /// Prices of one's own, by model.
    pub prices: BTreeMap<String, Price>,
    /// Text that is added to the system zone.
    pub persona: Option<String>,
    /// What was not loaded for lack of trust.
    pub skipped: Vec<String>,
    settings: Vec<Setting>,
}

impl Config {
    /// Merges the layers.
    ///
    /// # Errors
    /// Something cannot be read, is not known, or is out of bounds; the message says where it stands.
    pub fn load(inputs: &Inputs) -> Result<Self, ConfigError> {
        let layers = Layers::of(inputs)?;
        let highest_mode = layers.mode(keys::HIGHEST_MODE)?.unwrap_or(Mode::Full);
        let mode = layers.mode(keys::MODE)?.unwrap_or_default();
        if mode > highest_mode {
            return Err(ConfigError::Mode {
                mode,
                set_by: layers.source(keys::MODE),
                highest: highest_mode,
                by: layers.source(keys::HIGHEST_MODE),
            });
        }
        let set = |bound: &Bound| layers.limit(bound);
        let size = |bound: &Bound| -> Result<usize, ConfigError> {
            Ok(usize::try_from(set(bound)?.unwrap_or(bound.default)).unwrap_or(usize::MAX))
        };
        let milliseconds =
            |bound: &Bound| Ok::<_, ConfigError>(Duration::from_millis(set(bound)?.unwrap_or(bound.default)));
        let tool_limits = stele_tools::Limits {
            result_bytes: size(&limits::RESULT_BYTES)?,
            read_lines: set(&limits::READ_LINES)?.unwrap_or(limits::READ_LINES.default),
            read_bytes: size(&limits::READ_BYTES)?,
            shell_ms: set(&limits::SHELL_MS)?.unwrap_or(limits::SHELL_MS.default),
        };
        let turn_limits =
            TurnLimits { steps: set(&limits::STEPS)?, executions: set(&limits::EXECUTIONS)?, ..TurnLimits::default() };
        let routes = layers.routes()?;
        let shell_env = layers.variables(&routes)?;
        let offer = layers.offer()?;
        let web = layers.web(&offer, &inputs.env)?;
        Ok(Self {
            home: inputs.places.config.clone(),
            data: inputs.places.data.clone(),
            mode,
            highest_mode,
            route: layers.text(keys::ROUTE)?,
            model: layers.text(keys::MODEL)?,
            routes,
            policy: policy(&layers)?,
            shell_env,
            offer,
            web,
            edit: layers.edit()?,
            tool_limits,
            turn_limits,
            connect: milliseconds(&limits::CONNECT_MS)?,
            idle: milliseconds(&limits::IDLE_MS)?,
            warn_above: layers.warn_above()?,
            cache_ttl: layers.cache_ttl()?,
            prices: layers.prices(),
            persona: layers.text(keys::PERSONA)?,
            skipped: inputs.skipped(),
            settings: layers.settings(),
        })
    }

    /// What the choice of a route is made from: `model`, `route`, or `ROUTE/MODEL`. Of the two keys
    /// one that is set in a later layer replaces the other, since it may name another vendor's model.
    pub fn choice(&self) -> Option<String> {
        let rank = |key: &str| self.settings.iter().find(|setting| setting.key == key).map(Setting::rank);
        match (&self.route, &self.model) {
            (Some(route), Some(model)) => Some(match rank(keys::ROUTE).cmp(&rank(keys::MODEL)) {
                std::cmp::Ordering::Equal => format!("{route}/{model}"),
                std::cmp::Ordering::Less => model.clone(),
                std::cmp::Ordering::Greater => route.clone(),
            }),
            (Some(only), None) | (None, Some(only)) => Some(only.clone()),
            (None, None) => None,
        }
    }

    /// What set the model or route that [`Self::choice`] is made from.
    pub fn source_of_choice(&self) -> Option<Source> {
        let set = [keys::ROUTE, keys::MODEL]
            .into_iter()
            .filter_map(|key| self.settings.iter().find(|setting| setting.key == key && setting.value.is_some()));
        set.max_by_key(|setting| setting.rank()).map(Setting::source)
    }

    /// Every key with its value and what set it, in a fixed order: `stele config --effective`.
    pub fn effective(&self) -> &[Setting] {
        &self.settings
    }

    /// One key, or all keys and routes below it: `stele config --explain KEY`. What could be set there and is not counts
    /// as found.
    ///
    /// # Errors
    /// `config.unknown_key` with the nearest known key, or the nearest of the `routes` that there are.
    pub fn explain(&self, key: &str, routes: &[Setting]) -> Result<Vec<Setting>, ConfigError> {
        let below = format!("{key}.");
        let found = self.settings.iter().chain(routes);
        let found: Vec<_> =
            found.filter(|setting| setting.key == key || setting.key.starts_with(&below)).cloned().collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let unknown = |nearest: String| Err(ConfigError::UnknownKey { at: None, key: key.to_owned(), nearest });
        let parts: Vec<&str> = key.split('.').collect();
        if let ["routes", name, ..] = parts.as_slice()
            && !self.routes.contains_key(*name)
            && !routes.iter().any(|route| route.key == format!("routes.{name}"))
        {
            let there = routes.iter().map(|route| route.key.clone());
            return unknown(
                nearest::closest(&format!("routes.{name}"), there).unwrap_or_else(|| "routes.NAME.model".to_owned()),
            );
        }
        let about = match keys::find(&parts) {
            Some(known) => known.about,
            None if keys::is_table(&parts) => "a table; nothing in it is set".to_owned(),
            None => return unknown(keys::nearest(key)),
        };
        Ok(vec![Setting { key: key.to_owned(), value: None, about, set: Vec::new() }])
    }

    /// Where the first key of a table stands.
    pub fn place_of(&self, table: &str) -> Option<Source> {
        let below = format!("{table}.");
        let mut written =
            self.settings.iter().filter(|setting| setting.key.starts_with(&below) && !setting.set.is_empty());
        written.next().map(Setting::source)
    }

    /// What a route was made from, when the configuration or the environment has it: the first key of its table, else
    /// the variables.
    pub fn source_of_route(&self, route: &Route) -> Source {
        match (self.place_of(&format!("routes.{}", route.name)), &route.key) {
            (Some(written), _) => written,
            (None, _) if route.name == ENV_ROUTE => {
                Source::Environment("STELE_MODEL, STELE_BASE_URL, STELE_WIRE".to_owned())
            }
            (None, KeySource::Env(variable)) => Source::Environment(variable.clone()),
            (None, KeySource::None) => Source::Default,
        }
    }
}

/// The rules of every layer, the machine's first.
fn policy(layers: &Layers) -> Result<Policy, ConfigError> {
    let mut policy = Policy::default();
    for (key, list) in [(keys::DENY, List::Deny), (keys::ASK, List::Ask), (keys::ALLOW, List::Allow)] {
        for entry in layers.entries(key) {
            let layer = match entry.source {
                Source::Managed { .. } => Layer::Managed,
                Source::Flag(_) => Layer::Flag,
                Source::Default | Source::File { .. } | Source::Environment(_) => Layer::User,
            };
            let Raw::Texts(rules) = &entry.value else { continue };
            for (rule, line) in rules {
                policy
                    .add(list, layer, rule)
                    .map_err(|error| ConfigError::Rule { at: entry.source.at_line(*line), error })?;
            }
        }
    }
    Ok(policy)
}
