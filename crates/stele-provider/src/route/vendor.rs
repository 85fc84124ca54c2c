//! Vendors and local servers: what is known of them is data, in `vendors.toml`.

use std::sync::LazyLock;

use serde::Deserialize;
use stele_core::Wire;

use crate::http;

/// A row of `vendors.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vendor {
    /// Its name, which is also its route's.
    pub name: String,
    /// The protocol.
    pub wire: Wire,
    /// Its own protocol: the wire alone means this vendor's server.
    #[serde(default)]
    pub owns_wire: bool,
    /// It serves others' models beside its own, or has none of its own.
    #[serde(default)]
    pub gateway: bool,
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

const VENDORS_TOML: &str = include_str!("../vendors.toml");

// A sheet that did not parse would be empty; a test keeps that from being shipped.
static VENDORS: LazyLock<VendorSheet> = LazyLock::new(|| toml::from_str(VENDORS_TOML).unwrap_or_default());

/// The vendors whose variables are known.
#[must_use]
pub fn vendors() -> &'static [Vendor] {
    &VENDORS.vendor
}

/// The vendor behind a base URL, where that is its own host and serves no models but its own.
#[must_use]
pub fn own_host(base_url: &str) -> Option<&'static Vendor> {
    let host = http::host_of(base_url)?;
    vendors().iter().find(|vendor| !vendor.gateway && http::host_of(&vendor.base_url).as_ref() == Some(&host))
}

/// The servers that may run on this machine.
#[must_use]
pub fn local_servers() -> &'static [LocalServer] {
    &VENDORS.local
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_its_vendors_alone_or_a_gateway() {
        let name = |url: &str| own_host(url).map(|vendor| vendor.name.as_str());
        for own in ["https://API.anthropic.com/", "https://api.anthropic.com/v1", "https://api.anthropic.com:443"] {
            assert_eq!(name(own), Some("anthropic"), "{own}");
        }
        assert_eq!(name("https://api.openai.com"), Some("openai"));
        assert_eq!(name("https://api.anthropic.com.example"), None);
        assert_eq!(name("https://openrouter.ai/api/v1"), None);
        assert_eq!(name("http://127.0.0.1:8080/v1"), None);
    }

    #[test]
    fn the_sheet_parses() {
        let sheet: VendorSheet = toml::from_str(VENDORS_TOML).unwrap();
        assert_eq!(sheet.vendor, vendors());
        assert_eq!(sheet.local.len(), 4);
        for vendor in vendors() {
            http::check_base_url(&vendor.base_url).unwrap();
            assert!(!vendor.key_env.is_empty(), "{}", vendor.name);
            assert!(vendor.page.starts_with("https://"), "{}", vendor.name);
            assert_eq!(vendor.read.len(), 10, "{}", vendor.name);
        }
        for wire in Wire::ALL {
            assert!(vendors().iter().filter(|vendor| vendor.owns_wire && vendor.wire == wire).count() <= 1, "{wire}");
        }
    }
}
