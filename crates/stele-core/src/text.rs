//! Text in an event: inline up to 4 KiB, else a content-addressed blob.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{Hash, Literal};

/// Text longer than this many bytes is stored as a blob beside the record.
pub const INLINE_MAX: usize = 4096;

/// Where a blob is: the hash of its bytes and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlobRef {
    /// BLAKE3 of the uncompressed bytes.
    pub blob: Hash,
    /// Number of uncompressed bytes.
    pub len: u64,
}

/// UTF-8 text without NUL.
///
/// In memory it is whole: [`crate::Record::decode`] fetches the blobs it cites or fails. In a
/// record's bytes it is a JSON string, or `{"blob", "len"}` when it is longer than [`INLINE_MAX`].
#[derive(Clone, Debug)]
pub struct Text(Inner);

#[derive(Clone, Debug)]
enum Inner {
    Whole(Arc<str>),
    /// The same, as the JSON string that it is in a record and in a request.
    Literal(Arc<Literal>),
    /// Stored as a blob whatever its length, so that equal content is stored once over all sessions.
    Sealed(Arc<str>),
    /// Only between parsing a record and fetching its blobs.
    Pending(Box<BlobRef>),
}

impl Text {
    /// Makes text valid for the log: NUL becomes U+FFFD.
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text: Arc<str> = text.into();
        Self(Inner::Whole(if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text }))
    }

    /// The same text, stored as a blob whatever its length: for content that many sessions share.
    #[must_use]
    pub fn sealed(self) -> Self {
        match self.0 {
            Inner::Whole(text) => Self(Inner::Sealed(text)),
            inner => Self(inner),
        }
    }

    /// The same text, kept as the JSON string that it will be in requests.
    #[must_use]
    pub fn quoted(self) -> Self {
        match self.0 {
            Inner::Whole(text) => Self(Inner::Literal(Arc::new(Literal::write(&text)))),
            inner => Self(inner),
        }
    }

    /// What a fetched blob holds, stored again as it was found.
    pub(crate) fn fetched(content: Arc<str>) -> Self {
        Self(if content.len() > INLINE_MAX { Inner::Whole(content) } else { Inner::Sealed(content) })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Inner::Whole(text) | Inner::Sealed(text) => text,
            Inner::Literal(literal) => literal.as_str(),
            Inner::Pending(_) => "",
        }
    }

    /// A shared handle on the text.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        match &self.0 {
            Inner::Whole(text) | Inner::Sealed(text) => Arc::clone(text),
            Inner::Literal(_) | Inner::Pending(_) => Arc::from(self.as_str()),
        }
    }

    /// The text as a JSON string, where it is kept as one.
    #[must_use]
    pub fn literal(&self) -> Option<&Arc<Literal>> {
        match &self.0 {
            Inner::Literal(literal) => Some(literal),
            Inner::Whole(_) | Inner::Sealed(_) | Inner::Pending(_) => None,
        }
    }

    /// Number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.literal().map_or_else(|| self.as_str().len(), |literal| literal.len())
    }

    /// True when there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True when there is nothing but white space.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.literal().map_or_else(|| self.as_str().trim().is_empty(), |literal| literal.is_blank())
    }

    /// The blob this text is stored in, when it is too long to stand in the record.
    pub(crate) fn blob(&self) -> Option<(Hash, Arc<str>)> {
        match &self.0 {
            Inner::Whole(_) | Inner::Literal(_) if self.len() <= INLINE_MAX => None,
            Inner::Whole(_) | Inner::Literal(_) | Inner::Sealed(_) => {
                let text = self.shared();
                Some((Hash::of(text.as_bytes()), text))
            }
            Inner::Pending(_) => None,
        }
    }

    /// The blob that still has to be fetched.
    pub(crate) fn pending(&self) -> Option<BlobRef> {
        match &self.0 {
            Inner::Pending(blob) => Some(**blob),
            Inner::Whole(_) | Inner::Literal(_) | Inner::Sealed(_) => None,
        }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        match (self.literal(), other.literal()) {
            (Some(literal), Some(other)) => literal == other,
            _ => self.pending() == other.pending() && self.as_str() == other.as_str(),
        }
    }
}

impl Eq for Text {}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.pending(), self.blob()) {
            (Some(blob), _) => blob.serialize(serializer),
            (None, None) => serializer.serialize_str(self.as_str()),
            (None, Some((blob, text))) => BlobRef { blob, len: text.len() as u64 }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Text;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string or {\"blob\", \"len\"}")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text::from(text))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Text, A::Error> {
                let blob = BlobRef::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(Text(Inner::Pending(Box::new(blob))))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Reads a text of the log and keeps it as the JSON string that it is, for `#[serde(deserialize_with)]`. Only from JSON
/// that is in memory, as records are.
pub(crate) fn as_literal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    match Literal::read(raw) {
        Some(literal) => Ok(Text(Inner::Literal(Arc::new(literal)))),
        // A reference to a blob, or written by another program.
        None => serde_json::from_str(raw).map_err(serde::de::Error::custom),
    }
}

impl JsonSchema for Text {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let blob = generator.subschema_for::<BlobRef>();
        schemars::json_schema!({
            "description": "Inline up to 4 KiB, else the blob that holds it.",
            "anyOf": [{ "type": "string" }, blob]
        })
    }
}
