//! The bytes of a request while they are written, and the items among them.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use stele_core::{Hash, Hasher, Image, Text, ToolSchema, Zone, repair_surrogates};

use super::pieces::Pieces;
use super::{Item, Name};

/// Items are hashed together once they have this many bytes: one by one they are too short for the hash's own speed.
const HASH_AT: usize = 32 << 10;

/// BLAKE3 over the first items, each preceded by its length, as far as it was taken: the last of them may be left.
#[derive(Clone, Default)]
pub(super) struct PromptHash {
    hasher: Hasher,
    /// How many items are hashed.
    hashed: usize,
    /// How many items it is of.
    items: usize,
    /// Bytes of the items that are not hashed.
    left: usize,
}

impl PromptHash {
    /// How many items it is of.
    pub(super) fn items(&self) -> usize {
        self.items
    }
}

/// Appends JSON and notes which of its bytes are items, in the order of the prompt.
#[derive(Clone)]
pub(super) struct Writer {
    pub bytes: Pieces,
    pub items: Vec<Item>,
    /// The hash of the items so far.
    pub prompt: PromptHash,
    /// Bytes of all items so far.
    pub prompt_len: u64,
    /// Number of the message that is being written, from 1; 0 while the header is.
    pub message: usize,
    /// Number of the next item in that message, from 1.
    pub block: usize,
}

impl Writer {
    pub(super) fn new() -> Self {
        Self {
            bytes: Pieces::default(),
            items: Vec::new(),
            prompt: PromptHash::default(),
            prompt_len: 0,
            message: 0,
            block: 1,
        }
    }

    /// Where the next byte goes.
    pub(super) fn at(&self) -> usize {
        self.bytes.len()
    }

    /// Text that is JSON already.
    pub(super) fn raw(&mut self, json: &str) {
        self.bytes.put(json.as_bytes());
    }

    /// A JSON string.
    pub(super) fn string(&mut self, text: &str) {
        // A vector takes every write and a `str` has no value that JSON lacks, so this cannot fail.
        let written = serde_json::to_writer(self.bytes.end(), text);
        debug_assert!(written.is_ok());
    }

    /// `"name":"text"`
    pub(super) fn field(&mut self, name: &str, text: &str) {
        self.string(name);
        self.raw(":");
        self.string(text);
    }

    /// A tool's name, description and schema; `parameters` is what the wire calls the schema.
    pub(super) fn tool(&mut self, tool: &ToolSchema, parameters: &str) {
        self.field("name", &tool.name);
        if !tool.description.is_empty() {
            self.raw(",");
            self.field("description", &tool.description);
        }
        self.raw(",");
        self.string(parameters);
        self.raw(":");
        self.raw(tool.parameters.get());
    }

    /// `"name":"text"`; a text of the history that is JSON already is not written again.
    pub(super) fn text_field(&mut self, name: &str, text: &Text) {
        match text.literal() {
            None => self.field(name, text.as_str()),
            Some(literal) => {
                self.string(name);
                self.raw(":");
                self.bytes.put_literal(literal);
            }
        }
    }

    /// A comma, unless this is where a list or an object starts.
    pub(super) fn separate(&mut self) {
        if !matches!(self.bytes.last(), None | Some(b'[' | b'{')) {
            self.raw(",");
        }
    }

    /// Notes these bytes as the next item of the prompt.
    pub(super) fn item(&mut self, zone: Zone, label: String, range: Range<usize>, markable: bool) {
        self.note(Item { zone, name: Name::Given(label.into()), range, markable });
    }

    /// Notes everything since `start` as the next item of the current message.
    pub(super) fn history(&mut self, role: &'static str, start: usize, markable: bool) {
        let name = Name::Place { role, message: self.message, block: self.block };
        self.block += 1;
        self.note(Item { zone: Zone::History, name, range: start..self.at(), markable });
    }

    fn note(&mut self, item: Item) {
        self.prompt.left += item.range.len();
        self.prompt_len += item.range.len() as u64;
        self.items.push(item);
        self.prompt.items = self.items.len();
        if self.prompt.left >= HASH_AT {
            let hasher = self.finished(&self.prompt);
            self.prompt = PromptHash { hasher, hashed: self.items.len(), items: self.items.len(), left: 0 };
        }
    }

    fn finished(&self, prompt: &PromptHash) -> Hasher {
        let mut hasher = prompt.hasher.clone();
        self.hash_items(&mut hasher, &self.items[prompt.hashed..prompt.items]);
        hasher
    }

    /// What a hash comes to that was taken before.
    pub(super) fn hash_of(&self, prompt: &PromptHash) -> Hash {
        Hash::from(&self.finished(prompt))
    }

    /// BLAKE3 over all items, each preceded by its length.
    pub(super) fn prompt_hash(&self) -> Hash {
        self.hash_of(&self.prompt)
    }

    /// The same over the first items alone, from the first one on.
    pub(super) fn prompt_hash_of(&self, items: &[Item]) -> Hash {
        let mut hasher = Hasher::new();
        for some in items.chunks(64) {
            self.hash_items(&mut hasher, some);
        }
        Hash::from(&hasher)
    }

    fn hash_items(&self, hasher: &mut Hasher, items: &[Item]) {
        let mut together = Vec::with_capacity(items.iter().map(|item| 8 + item.range.len()).sum());
        for item in items {
            together.extend_from_slice(&(item.range.len() as u64).to_le_bytes());
            self.bytes.each(item.range.clone(), &mut |part| together.extend_from_slice(part));
        }
        hasher.update(&together);
    }

    /// What was written, for a writer of a part alone. Only text was written.
    pub(super) fn into_text(self) -> String {
        String::from_utf8(self.bytes.into_vec()).unwrap_or_default()
    }
}

/// An image as the URL that holds it (RFC 2397), as a JSON string.
pub(super) fn data_url(writer: &mut Writer, image: &Image) {
    writer.raw("\"data:");
    writer.raw(image.media_type.name());
    writer.raw(";base64,");
    // What a log holds there may be anything.
    writer.raw(&base64_of(image));
    writer.raw("\"");
}

/// The image's base64, without anything that no base64 has.
pub(super) fn base64_of(image: &Image) -> Cow<'_, str> {
    let data = image.data.as_str();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '/' | '=');
    if data.chars().all(plain) { Cow::Borrowed(data) } else { Cow::Owned(data.chars().filter(|c| plain(*c)).collect()) }
}

/// Raw JSON that can stand in a request: one valid JSON object, lone surrogates replaced. `None` when it is none, so
/// that one damaged block cannot make every later request invalid.
pub(super) fn object(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.trim_start().starts_with('{') {
        return None;
    }
    let raw = repair_surrogates(raw);
    serde_json::from_str::<Holdable>(&raw).is_ok().then_some(raw)
}

/// JSON of which every value is read and dropped: skipping over them would let numbers through that no parser can hold.
struct Holdable;

impl<'de> Deserialize<'de> for Holdable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Holdable)
    }
}

impl<'de> Visitor<'de> for Holdable {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Holdable>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        // A key is a string like any other.
        while map.next_entry::<Holdable, Holdable>()?.is_some() {}
        Ok(self)
    }
}

/// A call's arguments as an object: as the model wrote them where they are one, `{}` for nothing at all, and
/// `{"_invalid": "<raw>"}` for anything else, so that the model sees its own mistake and the endpoint takes it.
pub(super) fn arguments(raw: &str) -> Cow<'_, str> {
    if raw.trim().is_empty() {
        return Cow::Borrowed("{}");
    }
    object(raw).unwrap_or_else(|| {
        let mut writer = Writer::new();
        writer.raw("{");
        writer.field("_invalid", raw);
        writer.raw("}");
        Cow::Owned(writer.into_text())
    })
}

/// An object without some of its keys; everything else keeps its bytes and its order.
pub(super) fn without(raw: &str, keys: &[&str]) -> Option<String> {
    struct Pairs<'a>(Vec<(Cow<'a, str>, &'a serde_json::value::RawValue)>);

    impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor<'a>(std::marker::PhantomData<&'a ()>);
            impl<'de: 'a, 'a> serde::de::Visitor<'de> for Visitor<'a> {
                type Value = Pairs<'a>;

                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                    let mut pairs = Vec::new();
                    while let Some(pair) = map.next_entry()? {
                        pairs.push(pair);
                    }
                    Ok(Pairs(pairs))
                }
            }
            deserializer.deserialize_map(Visitor(std::marker::PhantomData))
        }
    }

    let Pairs(pairs) = serde_json::from_str(raw).ok()?;
    let mut writer = Writer::new();
    writer.raw("{");
    for (key, value) in pairs.iter().filter(|(key, _)| !keys.contains(&key.as_ref())) {
        writer.separate();
        writer.string(key);
        writer.raw(":");
        writer.raw(value.get());
    }
    writer.raw("}");
    Some(writer.into_text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_always_an_object() {
        assert_eq!(arguments(r#" {"a": 1e2}"#), r#" {"a": 1e2}"#);
        assert_eq!(arguments(""), "{}");
        assert_eq!(arguments("[1]"), r#"{"_invalid":"[1]"}"#);
        assert_eq!(arguments(r#"{"a""#), r#"{"_invalid":"{\"a\""}"#);
        assert_eq!(arguments(r#"{"a": "\ud99c"}"#), r#"{"a": "\ufffd"}"#);
        assert_eq!(arguments(r#"{"a": 1e999}"#), r#"{"_invalid":"{\"a\": 1e999}"}"#);
    }

    #[test]
    fn keys_are_left_out_and_the_rest_keeps_its_bytes() {
        let raw = r#"{ "type":"reasoning", "id" : "rs_1","summary":[ ],"encrypted_content":"a\/b" }"#;
        assert_eq!(
            without(raw, &["id"]).as_deref(),
            Some(r#"{"type":"reasoning","summary":[ ],"encrypted_content":"a\/b"}"#)
        );
        assert_eq!(without("[]", &["id"]), None);
    }
}
