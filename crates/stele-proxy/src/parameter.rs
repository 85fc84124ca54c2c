//! Parameters of a request on which the cache depends: by them providers render the prompt, or find what they keep.

use stele_core::{Hash, Hasher};

use crate::record::Recorded;

/// What a parameter says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// How much the model thinks.
    Thinking,
    /// Something else.
    Other,
}

struct Parameter {
    name: &'static str,
    says: Says,
    /// Whether what Anthropic keeps of the messages depends on it (prompt caching, what invalidates the cache, 2026-11).
    keys_messages: bool,
}

const fn parameter(name: &'static str, says: Says, keys_messages: bool) -> Parameter {
    Parameter { name, says, keys_messages }
}

const PARAMETERS: [Parameter; 9] = [
    parameter("thinking", Says::Thinking, true),
    parameter("output_config", Says::Thinking, true),
    parameter("reasoning", Says::Thinking, false),
    parameter("reasoning_effort", Says::Thinking, false),
    parameter("generationConfig", Says::Thinking, false),
    parameter("tool_choice", Says::Other, true),
    parameter("toolConfig", Says::Other, false),
    parameter("speed", Says::Other, false),
    parameter("prompt_cache_key", Says::Other, false),
];

/// The first parameter of a kind that two requests differ in.
pub(crate) fn differing(before: &Recorded, after: &Recorded, says: Says) -> Option<String> {
    let differs = |name| before.parameters.get(name) != after.parameters.get(name);
    let found = PARAMETERS.iter().find(|parameter| parameter.says == says && differs(parameter.name));
    found.map(|parameter| parameter.name.to_owned())
}

/// The parameters of a request on which depends what is kept of its messages.
pub(crate) fn invalidating(request: &Recorded) -> Hash {
    let mut hasher = Hasher::new();
    for parameter in PARAMETERS.iter().filter(|parameter| parameter.keys_messages) {
        let value = request.parameters.get(parameter.name);
        hasher.update(value.map(ToString::to_string).unwrap_or_default().as_bytes());
        hasher.update(b"\n");
    }
    Hash::from(&hasher)
}
