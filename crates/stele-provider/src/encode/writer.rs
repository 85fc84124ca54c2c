//! The bytes of a request while they are written, and the items among them.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use stele_core::{Hasher, Image, Zone, repair_surrogates};

use super::Item;

/// Appends JSON and notes which of its bytes are items, in the order of the prompt.
#[derive(Clone)]
pub(super) struct Writer {
    pub bytes: Vec<u8>,
    pub items: Vec<Item>,
    /// BLAKE3 over the items so far, each preceded by its length.
    pub prompt: Hasher,
    /// Bytes of all items so far.
    pub prompt_len: u64,
    /// Number of the message that is being written, from 1; 0 while the header is.
    pub message: usize,
    /// Number of the next item in that message, from 1.
    pub block: usize,
}

impl Writer {
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), items: Vec::new(), prompt: Hasher::new(), prompt_len: 0, message: 0, block: 1 }
    }

    /// Where the next byte goes.
    pub(super) fn at(&self) -> usize {
        self.bytes.len()
    }

    /// Text that is JSON already.
    pub(super) fn raw(&mut self, json: &str) {
        self.bytes.extend_from_slice(json.as_bytes());
    }

    /// A JSON string.
    pub(super) fn string(&mut self, text: &str) {
        // A vector takes every write and a `str` has no value that JSON lacks, so this cannot fail.
        let written = serde_json::to_writer(&mut self.bytes, text);
        debug_assert!(written.is_ok());
    }

    /// `"name":"text"`
    pub(super) fn field(&mut self, name: &str, text: &str) {
        self.string(name);
        self.raw(":");
        self.string(text);
    }

    /// A comma, unless this is where a list or an object starts.
    pub(super) fn separate(&mut self) {
        if !matches!(self.bytes.last(), None | Some(b'[' | b'{')) {
            self.raw(",");
        }
    }

    /// Notes these bytes as the next item of the prompt.
    pub(super) fn item(&mut self, zone: Zone, label: String, range: Range<usize>, markable: bool) {
        let bytes = &self.bytes[range.clone()];
        self.prompt.update(&(bytes.len() as u64).to_le_bytes());
        self.prompt.update(bytes);
        self.prompt_len += bytes.len() as u64;
        self.items.push(Item { zone, label, range, markable });
    }

    /// Notes everything since `start` as the next item of the current message.
    pub(super) fn history(&mut self, role: &str, start: usize, markable: bool) {
        let label = format!("{role} {}.{}", self.message, self.block);
        self.block += 1;
        self.item(Zone::History, label, start..self.at(), markable);
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
    // Parsed as a tree and thrown away: skipping over it would let numbers through that no parser can hold.
    serde_json::from_str::<serde_json::Value>(&raw).is_ok().then_some(raw)
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
        Cow::Owned(String::from_utf8_lossy(&writer.bytes).into_owned())
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
    String::from_utf8(writer.bytes).ok()
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
