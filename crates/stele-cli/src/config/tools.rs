//! Which tools are offered, and what those of the web may do.

use std::collections::BTreeMap;

use stele_edit::OnAmbiguous;
use stele_tools::{Offer, Search, SearchKind, Web};

use super::error::ConfigError;
use super::keys;
use super::layers::{Entry, Layers, Raw};

impl Layers {
    /// Tools that are offered beyond the usual ones.
    pub(super) fn offer(&self) -> Result<Vec<Offer>, ConfigError> {
        let mut offer = Vec::new();
        for entry in self.entries(keys::OFFER) {
            let Raw::Texts(texts) = &entry.value else { continue };
            for (name, line) in texts {
                offer.push(name.parse().map_err(|problem| ConfigError::Value {
                    at: entry.source.at_line(*line),
                    key: keys::OFFER.to_owned(),
                    problem: format!("names a tool that is not there: {problem}"),
                })?);
            }
        }
        Ok(offer)
    }

    /// How the edit engine works.
    pub(super) fn edit(&self) -> Result<stele_edit::Options, ConfigError> {
        let fuzzy = matches!(self.entries(keys::FUZZY).next_back(), Some(Entry { value: Raw::Switch(true), .. }));
        let on_ambiguous = match self.text(keys::ON_AMBIGUOUS)?.as_deref() {
            None | Some("refuse") => OnAmbiguous::Refuse,
            Some("last") => OnAmbiguous::Last,
            Some(other) => {
                return Err(ConfigError::Value {
                    at: self.source(keys::ON_AMBIGUOUS),
                    key: keys::ON_AMBIGUOUS.to_owned(),
                    problem: format!("takes refuse or last, found {other:?}"),
                });
            }
        };
        Ok(stele_edit::Options { fuzzy, on_ambiguous, root: None })
    }

    /// What the tools of the web may do. A search that is offered needs a service.
    pub(super) fn web(&self, offer: &[Offer], env: &BTreeMap<String, String>) -> Result<Web, ConfigError> {
        let trusted_hosts = self
            .entries(keys::TRUSTED_HOSTS)
            .filter_map(|entry| match &entry.value {
                Raw::Texts(texts) => Some(texts.iter().map(|(text, _)| text.clone())),
                _ => None,
            })
            .flatten()
            .collect();
        let problem = |key: &str, problem: &str| ConfigError::Value {
            at: self.source(key),
            key: key.to_owned(),
            problem: problem.to_owned(),
        };
        let kind = match self.text(keys::SEARCH)?.as_deref() {
            None if offer.contains(&Offer::WebSearch) => {
                let needs = "offers web_search, which needs a service: set `web.search`";
                return Err(problem(keys::OFFER, needs));
            }
            None => return Ok(Web { trusted_hosts, search: None }),
            Some("searxng") => SearchKind::Searxng,
            Some("brave") => SearchKind::Brave,
            Some(_) => return Err(problem(keys::SEARCH, "takes searxng or brave")),
        };
        let url = match (self.text(keys::SEARCH_URL)?, kind) {
            (Some(url), _) => url,
            (None, SearchKind::Brave) => "https://api.search.brave.com".to_owned(),
            (None, SearchKind::Searxng) => {
                return Err(problem(keys::SEARCH, "needs the address of the service: set `web.search_url`"));
            }
        };
        let key = self.text(keys::SEARCH_KEY)?.and_then(|name| env.get(&name).cloned()).filter(|key| !key.is_empty());
        Ok(Web { trusted_hosts, search: Some(Search { kind, url, key }) })
    }
}
