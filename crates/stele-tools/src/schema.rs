//! Schemas of arguments: the portable subset that every wire accepts, as canonical bytes.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// A schema in the portable subset. Keys are written in the order of the fields here, properties in
/// the order of the Rust type's fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Shape {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub(crate) values: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) items: Option<Box<Shape>>,
    #[serde(skip_serializing_if = "Properties::is_empty")]
    pub(crate) properties: Properties,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) required: Vec<String>,
}

/// The fields of an object, in the order of the Rust type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Properties(pub(crate) Vec<(String, Shape)>);

impl Properties {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Properties {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, shape) in &self.0 {
            map.serialize_entry(name, shape)?;
        }
        map.end()
    }
}

impl Shape {
    /// The schema of a Rust type.
    pub(crate) fn of<T: JsonSchema>() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        let mut shape = Self::from_value(SchemaGenerator::new(settings).into_root_schema_for::<T>().as_value());
        shape.description = None;
        shape
    }

    /// Keeps what is portable of a generated schema. "Or null" is dropped: an optional field is one
    /// that is not required.
    fn from_value(value: &Value) -> Self {
        if let Some(inner) = value
            .get("anyOf")
            .and_then(Value::as_array)
            .and_then(|any| any.iter().find(|inner| inner.get("type").and_then(Value::as_str) != Some("null")))
        {
            let mut shape = Self::from_value(inner);
            if let Some(text) = description(value) {
                shape.description = Some(text);
            }
            return shape;
        }
        let kind = match value.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().find_map(|kind| kind.as_str().filter(|kind| *kind != "null")),
            Some(kind) => kind.as_str(),
            None => None,
        };
        let mut values = strings(value.get("enum"));
        // A documented variant is generated as `oneOf` with a constant each.
        if let Some(variants) = value.get("oneOf").and_then(Value::as_array) {
            for variant in variants {
                values.extend(variant.get("const").and_then(Value::as_str).map(ToOwned::to_owned));
                values.extend(strings(variant.get("enum")));
            }
        }
        Self {
            kind: kind.unwrap_or(if values.is_empty() { "object" } else { "string" }).to_owned(),
            description: description(value),
            values,
            items: value.get("items").map(|items| Box::new(Self::from_value(items))),
            properties: Properties(value.get("properties").and_then(Value::as_object).map_or_else(Vec::new, |map| {
                map.iter().map(|(name, value)| (name.clone(), Self::from_value(value))).collect()
            })),
            required: strings(value.get("required")),
        }
    }

    /// True for an object with this field.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.properties.0.iter().any(|(name, _)| name == field)
    }

    /// Checks a value; the error names the field. Fields that are not in the schema are ignored,
    /// since models add their own.
    pub(crate) fn check(&self, value: &Value, at: &str) -> Result<(), String> {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_u64() || number.is_i64() => "integer",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let field = if at.is_empty() { "the arguments" } else { at };
        if found != self.kind && !(self.kind == "number" && found == "integer") {
            return Err(format!("{field} must be {}, not {found}", article(&self.kind)));
        }
        if self.kind == "integer" && value.as_u64().is_none() {
            return Err(format!("{field} must be at least 0"));
        }
        if let (false, Some(text)) = (self.values.is_empty(), value.as_str())
            && !self.values.iter().any(|allowed| allowed == text)
        {
            return Err(format!("{field} must be one of {}", self.values.join(", ")));
        }
        if let (Some(items), Some(list)) = (&self.items, value.as_array()) {
            for (index, item) in list.iter().enumerate() {
                items.check(item, &format!("{at}[{index}]"))?;
            }
        }
        let Some(map) = value.as_object() else { return Ok(()) };
        for (name, shape) in &self.properties.0 {
            let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
            let required = self.required.contains(name);
            match map.get(name) {
                None if required => return Err(format!("{path} is missing")),
                Some(Value::Null) if !required => {}
                None => {}
                Some(value) => shape.check(value, &path)?,
            }
        }
        Ok(())
    }

    /// The shape in one line, for an error: optional fields carry a question mark.
    pub(crate) fn sketch(&self) -> String {
        match self.kind.as_str() {
            "object" => {
                let fields: Vec<String> = self
                    .properties
                    .0
                    .iter()
                    .map(|(name, shape)| {
                        let mark = if self.required.contains(name) { "" } else { "?" };
                        format!("\"{name}\"{mark}: {}", shape.sketch())
                    })
                    .collect();
                format!("{{{}}}", fields.join(", "))
            }
            "array" => format!("[{}]", self.items.as_ref().map_or_else(String::new, |items| items.sketch())),
            "string" if !self.values.is_empty() => format!("\"{}\"", self.values.join("\"|\"")),
            kind => kind.to_owned(),
        }
    }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    value
        .and_then(Value::as_array)
        .map_or_else(Vec::new, |list| list.iter().filter_map(|value| value.as_str().map(ToOwned::to_owned)).collect())
}

/// A description, in one line: doc comments are wrapped for the reader of the code.
fn description(value: &Value) -> Option<String> {
    value.get("description").and_then(Value::as_str).map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn article(kind: &str) -> String {
    format!("{} {kind}", if matches!(kind, "integer" | "array" | "object") { "an" } else { "a" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Doc of the type.
    #[derive(serde::Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Sample {
        /// A name,
        /// wrapped.
        name: String,
        /// How many.
        count: Option<u64>,
        parts: Vec<Part>,
        /// More.
        extra: Option<Part>,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Part {
        flag: Option<bool>,
        kind: Kind,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        One,
        /// Documented.
        Two,
    }

    #[test]
    fn only_the_portable_subset_is_left() {
        let bytes = serde_json::to_string(&Shape::of::<Sample>()).unwrap();
        insta::assert_snapshot!(bytes, @r#"{"type":"object","properties":{"name":{"type":"string","description":"A name, wrapped."},"count":{"type":"integer","description":"How many."},"parts":{"type":"array","items":{"type":"object","properties":{"flag":{"type":"boolean"},"kind":{"type":"string","enum":["one","two"]}},"required":["kind"]}},"extra":{"type":"object","description":"More.","properties":{"flag":{"type":"boolean"},"kind":{"type":"string","enum":["one","two"]}},"required":["kind"]}},"required":["name","parts"]}"#);
    }

    #[track_caller]
    fn check(arguments: &str, expect: &str) {
        let value: Value = serde_json::from_str(arguments).unwrap();
        assert_eq!(Shape::of::<Sample>().check(&value, "").err().unwrap_or_default(), expect);
    }

    #[test]
    fn the_wrong_field_is_named() {
        check(r#"{"name":"x","parts":[]}"#, "");
        check(r#"{"name":"x","parts":[],"count":null,"odd":1}"#, "");
        check(r#"{"parts":[]}"#, "name is missing");
        check(r#"{"name":null,"parts":[]}"#, "name must be a string, not null");
        check(r#"{"name":"x","parts":{}}"#, "parts must be an array, not object");
        check(r#"{"name":"x","parts":[{"kind":"one"},{"kind":"three"}]}"#, "parts[1].kind must be one of one, two");
        check(r#"{"name":"x","parts":[],"count":-1}"#, "count must be at least 0");
        check("[]", "the arguments must be an object, not array");
    }

    #[test]
    fn a_sketch_shows_what_is_optional() {
        assert_eq!(
            Shape::of::<Sample>().sketch(),
            r#"{"name": string, "count"?: integer, "parts": [{"flag"?: boolean, "kind": "one"|"two"}], "extra"?: {"flag"?: boolean, "kind": "one"|"two"}}"#
        );
    }
}
