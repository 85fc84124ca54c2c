//! Bytes of a file in an event.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{BlobRef, Hash};

/// Bytes of a file, whatever they are: always a blob, cited by its record and not fetched with it.
#[derive(Clone, Debug)]
pub struct Content {
    at: BlobRef,
    /// Only until the record is written.
    bytes: Option<Arc<[u8]>>,
}

impl Content {
    /// Bytes that are to be stored.
    #[must_use]
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        Self { at: BlobRef { blob: Hash::of(&bytes), len: bytes.len() as u64 }, bytes: Some(bytes) }
    }

    /// Where they are.
    #[must_use]
    pub fn at(&self) -> BlobRef {
        self.at
    }

    /// The bytes, before they are stored.
    pub(crate) fn bytes(&self) -> Option<&Arc<[u8]>> {
        self.bytes.as_ref()
    }

    /// Lets go of bytes that are stored by now.
    pub(crate) fn stored(&mut self) {
        self.bytes = None;
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Content {}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.at.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { at: BlobRef::deserialize(deserializer)?, bytes: None })
    }
}

impl JsonSchema for Content {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        BlobRef::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        BlobRef::json_schema(generator)
    }
}
