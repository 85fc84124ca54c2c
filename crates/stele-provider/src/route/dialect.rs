//! Dialects of `openai-chat`: what is known of them is data, in `dialects.toml`.

use std::sync::LazyLock;

use serde::Deserialize;
use stele_core::Dialect;

use crate::http;

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

const DIALECTS_TOML: &str = include_str!("../dialects.toml");

// A sheet that did not parse would be empty; a test keeps that from being shipped.
static DIALECTS: LazyLock<Vec<DialectRow>> =
    LazyLock::new(|| toml::from_str(DIALECTS_TOML).map(|sheet: DialectSheet| sheet.dialect).unwrap_or_default());

/// How the endpoint at a base URL speaks `openai-chat`.
#[must_use]
pub fn dialect(base_url: &str) -> Dialect {
    let (Ok(url), Some(host)) = (http::check_base_url(base_url), http::host_of(base_url)) else {
        return Dialect::default();
    };
    let local = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let port = url.port_or_known_default();
    let matches = |row: &&DialectRow| {
        row.hosts.contains(&host) || local && row.local_ports.iter().any(|known| Some(*known) == port)
    };
    DIALECTS.iter().find(matches).map(|row| row.facts.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sheet_parses() {
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
}
