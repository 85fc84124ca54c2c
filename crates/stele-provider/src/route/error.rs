//! Why there is no route, and what to do.

use crate::local::Found;
use crate::route::{Vendor, local_servers, vendors};

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
