//! Why there is no route, and what to do.

use crate::local::Found;
use crate::route::{Vendor, local_servers, vendors};

/// Where a route is written that the `STELE_*` variables make: what is wrong with it names the variable.
pub(super) const ENVIRONMENT: &str = "STELE_*";

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
    #[error("config.route: {}{problem}", if route == ENVIRONMENT { String::new() } else { format!("{route}: ") })]
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
    /// Further things to try, a line each: what can be typed, and at the end other keys that would do.
    #[must_use]
    pub fn advice(&self) -> Vec<String> {
        match self {
            Self::None { found } => ways(found),
            Self::Invalid { .. } | Self::BaseUrl { .. } => Vec::new(),
        }
    }

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

fn no_route(found: &[Found]) -> String {
    let servers = local_servers().iter().map(|server| server.name.as_str()).collect::<Vec<_>>().join(", ");
    let here = match found.first() {
        Some(first) => format!("{} answers on this machine", first.name),
        None => format!("none of {servers} answers on this machine"),
    };
    format!(
        "config.no_route: no model is configured; set a vendor's key, or name any server with STELE_BASE_URL and \
         STELE_MODEL ({here})"
    )
}

/// What to try when there is no route.
fn ways(found: &[Found]) -> Vec<String> {
    let server = found.first().map(|first| {
        let model = first.models.first().map_or("NAME", String::as_str);
        format!("STELE_BASE_URL={} STELE_MODEL={model}", first.base_url)
    });
    let alone = |vendor: &&Vendor| vendor.model.is_some();
    let mut keys = vendors().iter().filter(alone).filter_map(|vendor| vendor.key_env.first().map(String::as_str));
    let first = keys.next().map(|first| format!("export {first}=…"));
    let others = keys.collect::<Vec<_>>().join(", ");
    server.into_iter().chain(first).chain([format!("or one of {others}")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_route_the_message_says_what_would_work() {
        let text = RouteError::None { found: Vec::new() }.to_string();
        assert!(text.starts_with("config.no_route: "), "{text}");
        assert!(text.contains("STELE_BASE_URL") && text.contains("none of llama.cpp, Ollama"), "{text}");
        let ways = RouteError::None { found: Vec::new() }.advice();
        assert_eq!(ways[0], "export ANTHROPIC_API_KEY=…");
        assert!(ways[1].contains("OPENAI_API_KEY, GEMINI_API_KEY, DEEPSEEK_API_KEY"), "{ways:?}");
        assert!(!ways[1].contains("GROQ_API_KEY"), "a key that makes no route alone: {ways:?}");
        let found =
            Found { name: "Ollama".into(), base_url: "http://127.0.0.1:11434/v1".into(), models: vec!["q".into()] };
        let error = RouteError::None { found: vec![found] };
        assert_eq!(error.advice()[0], "STELE_BASE_URL=http://127.0.0.1:11434/v1 STELE_MODEL=q");
        assert!(error.to_string().contains("Ollama answers on this machine"), "{error}");
    }
}
