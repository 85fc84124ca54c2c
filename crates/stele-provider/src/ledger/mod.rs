//! What endpoints were seen to take and to report: the ledger of evidence.
//!
//! Vendors document what their own hosts do; what stands behind another address is found out. For each endpoint (base
//! URL, wire, model) and [`Capability`] the ledger holds what was learnt, when and how. What nobody has learnt comes
//! from `capabilities.toml`, or is unknown.
//!
//! **Invariant:** the ledger is read when an epoch opens and at no other time: what a request carries is in the log.

mod file;
mod learn;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use stele_core::{Config, OptionalField, Wire};

use crate::http;

pub use file::{LedgerError, LedgerFile, Reading};
pub use learn::seen;

/// Something that an endpoint takes or reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Capability {
    /// Takes cache marks.
    #[serde(rename = "cache_control")]
    CacheControl,
    /// Takes the wish for a longer life of what is marked.
    #[serde(rename = "cache_control.ttl")]
    CacheTtl,
    /// Takes a cache key.
    #[serde(rename = "prompt_cache_key")]
    PromptCacheKey,
    /// Takes the wish for usage in a stream.
    #[serde(rename = "stream_options")]
    StreamOptions,
    /// Takes the wish for encrypted reasoning, and gives some.
    #[serde(rename = "include")]
    Include,
    /// Takes the wish that nothing is kept.
    #[serde(rename = "store")]
    Store,
    /// Reports tokens.
    #[serde(rename = "usage")]
    Usage,
    /// Reports tokens read from a cache.
    #[serde(rename = "usage.cache_read")]
    CacheRead,
    /// Reports tokens written to a cache.
    #[serde(rename = "usage.cache_write")]
    CacheWrite,
    /// Reports tokens of reasoning.
    #[serde(rename = "usage.reasoning")]
    Reasoning,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::CacheControl,
        Self::CacheTtl,
        Self::PromptCacheKey,
        Self::StreamOptions,
        Self::Include,
        Self::Store,
        Self::Usage,
        Self::CacheRead,
        Self::CacheWrite,
        Self::Reasoning,
    ];

    /// Its name in the ledger.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CacheControl => OptionalField::CacheControl.name(),
            Self::CacheTtl => OptionalField::CacheTtl.name(),
            Self::PromptCacheKey => OptionalField::PromptCacheKey.name(),
            Self::StreamOptions => OptionalField::StreamOptions.name(),
            Self::Include => OptionalField::Include.name(),
            Self::Store => OptionalField::Store.name(),
            Self::Usage => "usage",
            Self::CacheRead => "usage.cache_read",
            Self::CacheWrite => "usage.cache_write",
            Self::Reasoning => "usage.reasoning",
        }
    }

    /// Those that mean something on a wire.
    pub fn of(wire: Wire) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |capability| match capability {
            Self::CacheControl | Self::CacheTtl => wire == Wire::AnthropicMessages,
            Self::PromptCacheKey => matches!(wire, Wire::OpenaiResponses | Wire::OpenaiChat),
            Self::StreamOptions => wire == Wire::OpenaiChat,
            Self::Include | Self::Store => wire == Wire::OpenaiResponses,
            // Gemini's implicit cache has reads only; Anthropic's usage does not tell reasoning apart.
            Self::CacheWrite => wire != Wire::Gemini,
            Self::Reasoning => wire != Wire::AnthropicMessages,
            Self::Usage | Self::CacheRead => true,
        })
    }
}

impl From<OptionalField> for Capability {
    fn from(field: OptionalField) -> Self {
        match field {
            OptionalField::CacheControl => Self::CacheControl,
            OptionalField::CacheTtl => Self::CacheTtl,
            OptionalField::PromptCacheKey => Self::PromptCacheKey,
            OptionalField::StreamOptions => Self::StreamOptions,
            OptionalField::Include => Self::Include,
            OptionalField::Store => Self::Store,
        }
    }
}

/// How sure it is that an endpoint has a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// This endpoint showed it.
    Verified,
    /// The vendor documents it of this host.
    Documented,
    /// Another model at the same address showed it, or it was taken and nothing shows what came of it.
    Inferred,
    /// This endpoint refused it.
    Rejected,
    /// Nobody knows.
    Unknown,
}

impl Status {
    /// Its name, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Documented => "documented",
            Self::Inferred => "inferred",
            Self::Rejected => "rejected",
            Self::Unknown => "unknown",
        }
    }
}

/// How something was learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// From an ordinary request's answer.
    Traffic,
    /// From a refusal that named the field.
    Refusal,
    /// From `stele probe`.
    Probe,
}

/// Where requests go: what evidence is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// The base URL in its normal form, without a slash at the end.
    pub base_url: String,
    /// The protocol.
    pub wire: Wire,
    /// The model.
    pub model: String,
}

impl Endpoint {
    /// An endpoint; what differs in the spelling of the address only is the same one.
    #[must_use]
    pub fn new(base_url: &str, wire: Wire, model: &str) -> Self {
        let normal = http::check_base_url(base_url).map_or_else(|_| base_url.to_owned(), |url| url.to_string());
        Self { base_url: normal.trim_end_matches('/').to_owned(), wire, model: model.to_owned() }
    }

    /// The endpoint of a configuration.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self::new(&config.base_url, config.wire, &config.model)
    }
}

/// What was learnt of one capability of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// What it comes to.
    pub status: Status,
    /// The day it was learnt, `YYYY-MM-DD`.
    pub when: String,
    /// How.
    pub how: How,
    /// What was seen, in a few words.
    pub says: String,
}

/// Where a capability of an endpoint stands, with what that rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// How sure it is.
    pub status: Status,
    /// What it rests on, for people; empty where nothing is known.
    pub because: String,
}

/// What an answer or a refusal shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lesson {
    /// What it is about.
    pub capability: Capability,
    /// What was found.
    pub finding: Finding,
    /// What was seen, in a few words.
    pub says: String,
}

/// What was found of a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It was seen to work.
    Works,
    /// It was refused.
    Refused,
    /// It was taken, and nothing came of it. That proves nothing, but that it is not refused any more.
    NoEffect,
}

/// Longest evidence that is kept, in bytes.
const SAYS_MAX: usize = 240;

/// What is known of endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    entries: BTreeMap<(Endpoint, Capability), Evidence>,
}

impl Ledger {
    /// Where a capability stands.
    #[must_use]
    pub fn standing(&self, endpoint: &Endpoint, capability: Capability) -> Standing {
        if let Some(own) = self.entries.get(&(endpoint.clone(), capability)) {
            return Standing { status: own.status, because: own.to_string() };
        }
        let mut others = self.entries.iter().filter(|((other, about), evidence)| {
            *about == capability
                && other.base_url == endpoint.base_url
                && other.wire == endpoint.wire
                && matches!(evidence.status, Status::Verified | Status::Inferred)
        });
        if let Some(((other, _), evidence)) = others.next() {
            return Standing { status: Status::Inferred, because: format!("{}: {evidence}", other.model) };
        }
        match documented(endpoint, capability) {
            Some(row) => Standing { status: Status::Documented, because: format!("{} ({})", row.page, row.read) },
            None => Standing { status: Status::Unknown, because: String::new() },
        }
    }

    /// Whether a request to this endpoint carries an optional field.
    ///
    /// A field without which the wire has no caching, no usage or no way to keep an answer out of the provider's
    /// store goes out until it is refused; any other needs evidence.
    #[must_use]
    pub fn sends(&self, endpoint: &Endpoint, field: OptionalField) -> bool {
        match self.standing(endpoint, field.into()).status {
            Status::Verified | Status::Documented | Status::Inferred => true,
            Status::Rejected => false,
            Status::Unknown => field != OptionalField::PromptCacheKey,
        }
    }

    /// Takes in what was seen; true when that changes what is known.
    pub fn learn(&mut self, endpoint: &Endpoint, lesson: &Lesson, how: How, today: &str) -> bool {
        let key = (endpoint.clone(), lesson.capability);
        let status = match lesson.finding {
            // Caches that know no key read all the same, so a read does not show that the key had a part in it.
            Finding::Works if lesson.capability == Capability::PromptCacheKey => Status::Inferred,
            Finding::Works => Status::Verified,
            Finding::Refused => Status::Rejected,
            // Caches are best effort: one miss takes nothing back that was seen to work.
            Finding::NoEffect => {
                let refused = self.entries.get(&key).is_some_and(|known| known.status == Status::Rejected);
                return refused && self.entries.remove(&key).is_some();
            }
        };
        let known = self.entries.get(&key);
        if known.is_some_and(|known| known.status == status && known.when == today && how != How::Probe) {
            return false;
        }
        let says = lesson.says[..lesson.says.floor_char_boundary(SAYS_MAX)].to_owned();
        self.entries.insert(key, Evidence { status, when: today.to_owned(), how, says });
        true
    }

    /// Everything that was learnt, by endpoint and capability.
    pub fn entries(&self) -> impl Iterator<Item = (&Endpoint, Capability, &Evidence)> {
        self.entries.iter().map(|((endpoint, capability), evidence)| (endpoint, *capability, evidence))
    }
}

impl std::fmt::Display for Evidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = match self.how {
            How::Traffic => "seen",
            How::Refusal => "refused",
            How::Probe => "probed",
        };
        write!(f, "{how} {}: {}", self.when, self.says)
    }
}

/// A row of `capabilities.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Documented {
    host: String,
    wires: Vec<Wire>,
    capabilities: Vec<Capability>,
    page: String,
    read: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sheet {
    documented: Vec<Documented>,
}

const CAPABILITIES_TOML: &str = include_str!("capabilities.toml");

// A sheet that did not parse would be empty; a test keeps that from being shipped.
static DOCUMENTED: LazyLock<Vec<Documented>> =
    LazyLock::new(|| toml::from_str(CAPABILITIES_TOML).map(|sheet: Sheet| sheet.documented).unwrap_or_default());

fn documented(endpoint: &Endpoint, capability: Capability) -> Option<&'static Documented> {
    let host = http::host_of(&endpoint.base_url)?;
    DOCUMENTED
        .iter()
        .find(|row| row.host == host && row.wires.contains(&endpoint.wire) && row.capabilities.contains(&capability))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(base_url: &str, model: &str) -> Endpoint {
        Endpoint::new(base_url, Wire::OpenaiChat, model)
    }

    fn lesson(capability: Capability, finding: Finding) -> Lesson {
        Lesson { capability, finding, says: "so it was".to_owned() }
    }

    #[test]
    fn the_sheet_parses_and_names_its_pages() {
        let sheet: Sheet = toml::from_str(CAPABILITIES_TOML).unwrap();
        assert_eq!(sheet.documented.len(), DOCUMENTED.len());
        for row in &sheet.documented {
            assert!(row.page.starts_with("https://") && row.read.len() == 10, "{}", row.host);
            for wire in &row.wires {
                let of: Vec<_> = Capability::of(*wire).collect();
                assert!(row.capabilities.iter().all(|capability| of.contains(capability)), "{}", row.host);
            }
        }
        for capability in Capability::ALL {
            assert_eq!(serde_json::to_string(&capability).unwrap(), format!("{:?}", capability.name()));
        }
    }

    #[test]
    fn a_field_goes_out_by_evidence_or_need_and_never_once_refused() {
        use OptionalField as Field;
        let (here, own) = (at("https://gateway.example/v1", "m"), at("https://api.openai.com/v1", "m"));
        let mut ledger = Ledger::default();
        assert!(!ledger.sends(&here, Field::PromptCacheKey), "unknown");
        assert!(ledger.sends(&own, Field::PromptCacheKey), "documented");
        assert!(ledger.sends(&here, Field::StreamOptions), "without it the wire reports no usage");
        let anthropic = Endpoint::new("http://127.0.0.1:1", Wire::AnthropicMessages, "m");
        assert!(ledger.sends(&anthropic, Field::CacheControl), "without it the wire has no caching");

        ledger.learn(&here, &lesson(Capability::PromptCacheKey, Finding::Works), How::Probe, "2026-11-30");
        assert_eq!(ledger.standing(&here, Capability::PromptCacheKey).status, Status::Inferred, "it was taken");
        assert!(ledger.sends(&here, Field::PromptCacheKey), "inferred");
        let other = at("https://gateway.example/v1/", "n");
        assert_eq!(ledger.standing(&other, Capability::PromptCacheKey).status, Status::Inferred);
        assert!(ledger.sends(&other, Field::PromptCacheKey), "seen at this base URL");

        for (endpoint, field) in [
            (&own, Field::PromptCacheKey),
            (&other, Field::PromptCacheKey),
            (&here, Field::StreamOptions),
            (&anthropic, Field::CacheTtl),
            (&anthropic, Field::CacheControl),
        ] {
            ledger.learn(endpoint, &lesson(field.into(), Finding::Refused), How::Refusal, "2026-11-30");
            assert!(!ledger.sends(endpoint, field), "{endpoint:?} {field:?}");
        }
        assert!(ledger.sends(&here, Field::PromptCacheKey), "another model's refusal says nothing of this one");
    }

    #[test]
    fn what_was_taken_without_effect_proves_nothing_but_that_it_is_taken() {
        let here = at("http://h", "m");
        let mut ledger = Ledger::default();
        let nothing = lesson(Capability::PromptCacheKey, Finding::NoEffect);
        assert!(!ledger.learn(&here, &nothing, How::Probe, "2026-11-30"));
        assert_eq!(ledger.standing(&here, Capability::PromptCacheKey).status, Status::Unknown);
        ledger.learn(&here, &lesson(Capability::PromptCacheKey, Finding::Refused), How::Refusal, "2026-11-30");
        assert!(ledger.learn(&here, &nothing, How::Probe, "2026-12-01"));
        assert_eq!(ledger.standing(&here, Capability::PromptCacheKey).status, Status::Unknown);
        ledger.learn(&here, &lesson(Capability::PromptCacheKey, Finding::Works), How::Traffic, "2026-12-01");
        assert!(!ledger.learn(&here, &nothing, How::Probe, "2026-12-02"));
        assert_eq!(ledger.standing(&here, Capability::PromptCacheKey).status, Status::Inferred);
    }

    #[test]
    fn the_same_again_on_the_same_day_is_no_news() {
        let here = at("http://h", "m");
        let mut ledger = Ledger::default();
        let works = lesson(Capability::CacheRead, Finding::Works);
        assert!(ledger.learn(&here, &works, How::Traffic, "2026-11-30"));
        assert!(!ledger.learn(&here, &works, How::Traffic, "2026-11-30"));
        assert!(ledger.learn(&here, &works, How::Traffic, "2026-12-01"));
        let standing = ledger.standing(&here, Capability::CacheRead);
        assert_eq!(standing.because, "seen 2026-12-01: so it was");
    }

    #[test]
    fn an_address_has_one_spelling() {
        assert_eq!(at("HTTPS://Host.example:443/v1/", "m"), at("https://host.example/v1", "m"));
        assert_ne!(at("https://host.example/v2", "m"), at("https://host.example/v1", "m"));
    }
}
