//! Optional fields of a request: what an endpoint may refuse and be served without all the same.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CacheTtl, Config, Dialect, Wire};

/// A field of a request's body that changes nothing of what the model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OptionalField {
    /// Cache marks: on blocks (`anthropic-messages`), or one at the top of the body (`openai-chat`, in some dialects).
    CacheControl,
    /// How long what a mark covers is kept, where that is longer than usual (`anthropic-messages`).
    #[serde(rename = "cache_control.ttl")]
    CacheTtl,
    /// The key that routes requests of one lineage to one cache (`openai-responses`, `openai-chat`).
    PromptCacheKey,
    /// The wish for usage at the end of a stream (`openai-chat`).
    StreamOptions,
    /// The wish for encrypted reasoning (`openai-responses`).
    Include,
    /// The wish that the provider keeps nothing (`openai-responses`).
    Store,
}

impl OptionalField {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::CacheControl, Self::CacheTtl, Self::PromptCacheKey, Self::StreamOptions, Self::Include, Self::Store];

    /// The field's name on the wire, and in the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CacheControl => "cache_control",
            Self::CacheTtl => "cache_control.ttl",
            Self::PromptCacheKey => "prompt_cache_key",
            Self::StreamOptions => "stream_options",
            Self::Include => "include",
            Self::Store => "store",
        }
    }

    /// The field that a server names by a path such as `system.0.cache_control`, `body.stream_options` or `include[0]`.
    ///
    /// Cache marks stand on blocks, so their name ends a path, or that of what is in them, perhaps with the mark's type
    /// in between (some servers name the innermost field alone); the others stand at the top of the body, so theirs
    /// begins one. A tool's own parameter of the same name is neither.
    #[must_use]
    pub fn named(path: &str) -> Option<Self> {
        let mut parts: Vec<&str> = path.split(['.', '[', ']', '/']).filter(|part| !part.is_empty()).collect();
        if parts.first() == Some(&"body") {
            parts.remove(0);
        }
        if parts.iter().any(|part| matches!(*part, "properties" | "input_schema" | "parameters" | "input")) {
            return None;
        }
        Self::ALL.into_iter().find(|field| match field {
            Self::CacheControl => parts.last() == Some(&field.name()),
            Self::CacheTtl => {
                matches!(parts[..], ["ttl"] | [.., "cache_control", "ttl"] | [.., "cache_control", _, "ttl"])
            }
            _ => parts.first() == Some(&field.name()),
        })
    }
}

impl Config {
    /// The optional fields that its requests carry.
    #[must_use]
    pub fn optional_fields(&self) -> Vec<OptionalField> {
        OptionalField::ALL.into_iter().filter(|field| self.sends(*field)).collect()
    }

    /// True when its requests carry this field.
    #[must_use]
    pub fn sends(&self, field: OptionalField) -> bool {
        let wanted = match field {
            OptionalField::CacheControl => self.cache.marks && (self.marks_blocks() || self.marks_the_whole()),
            OptionalField::CacheTtl => {
                self.cache.ttl == CacheTtl::Hour && self.marks_blocks() && self.sends(OptionalField::CacheControl)
            }
            OptionalField::PromptCacheKey => {
                matches!(self.wire, Wire::OpenaiResponses | Wire::OpenaiChat) && self.cache.key.is_some()
            }
            OptionalField::StreamOptions => {
                self.wire == Wire::OpenaiChat && self.dialect.as_ref().is_none_or(|dialect| dialect.stream_usage)
            }
            // Before revision 3 it went with an effort only.
            OptionalField::Include => {
                self.wire == Wire::OpenaiResponses && (self.parameters.effort.is_some() || self.derive_rev >= 3)
            }
            OptionalField::Store => self.wire == Wire::OpenaiResponses,
        };
        wanted && !self.withheld.contains(&field)
    }

    /// True where cache marks stand on blocks.
    #[must_use]
    pub fn marks_blocks(&self) -> bool {
        self.wire == Wire::AnthropicMessages
    }

    /// True where one mark at the top of the body stands for one on its last block.
    fn marks_the_whole(&self) -> bool {
        let of = |dialect: &Dialect| dialect.marked_models.iter().any(|start| self.model.starts_with(start.as_str()));
        self.wire == Wire::OpenaiChat && self.dialect.as_ref().is_some_and(of)
    }

    /// How long all that its requests mark is kept; absent where they mark nothing, or for two times: what is kept for an
    /// hour stands before what is kept for five minutes.
    #[must_use]
    pub fn life_of_marks(&self) -> Option<CacheTtl> {
        let one = self.sends(OptionalField::CacheControl) && !self.sends(OptionalField::CacheTtl);
        one.then_some(CacheTtl::FiveMinutes)
    }

    /// Drops every optional field but these.
    pub fn keep_fields(&mut self, fields: &[OptionalField]) {
        let dropped = self.optional_fields().into_iter().filter(|field| !fields.contains(field));
        let dropped: Vec<_> = dropped.collect();
        self.withheld.extend(dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_known_by_the_path_that_servers_give() {
        use OptionalField as Field;
        for (path, field) in [
            ("prompt_cache_key", Some(Field::PromptCacheKey)),
            ("body.stream_options", Some(Field::StreamOptions)),
            ("stream_options.include_usage", Some(Field::StreamOptions)),
            ("include[0]", Some(Field::Include)),
            ("system.0.cache_control", Some(Field::CacheControl)),
            ("messages.3.content.0.tool_result.cache_control", Some(Field::CacheControl)),
            ("tools.2.input_schema.properties.cache_control", None),
            ("tools[0].function.parameters.properties.store", None),
            ("messages.0.content.0.tool_use.input.cache_control", None),
            ("metadata.store", None),
            ("cache_control.ttl", Some(Field::CacheTtl)),
            ("system.0.cache_control.ephemeral.ttl", Some(Field::CacheTtl)),
            ("ttl", Some(Field::CacheTtl)),
            ("messages.0.ttl", None),
            ("cache_control.type", None),
            ("tools.2.input_schema.properties.cache_control.ttl", None),
            ("", None),
        ] {
            assert_eq!(Field::named(path), field, "{path}");
        }
        for field in Field::ALL {
            assert_eq!(Field::named(field.name()), Some(field));
            assert_eq!(serde_json::to_string(&field).unwrap(), format!("{:?}", field.name()));
        }
    }
}
