//! Checks a value against a JSON Schema (draft 2020-12, json-schema.org), as far as answers are described with it.
//!
//! A complete implementation brings some 50 crates, for references over the network, dynamic anchors and vocabularies; the
//! tests compare this one with it. A keyword of the standard that is not here is refused when the schema is read, so that
//! no answer passes because a rule was overlooked. `format` is an annotation, as the draft has it.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::{Map, Number, Value};

/// Schemas that may be gone through for one place: those that only refer to each other would never end.
const DEEPEST: usize = 200;

/// Keywords that change what is valid and that are not checked here.
const UNSUPPORTED: [&str; 8] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveRef",
    "additionalItems",
    "dependencies",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// A schema that can be checked.
pub struct Validator {
    root: Value,
    patterns: BTreeMap<String, Regex>,
}

/// What does not match, and where.
pub struct Fault {
    /// JSON pointer into the value; empty for all of it.
    pub place: String,
    /// What was expected.
    pub what: String,
}

impl Validator {
    /// Reads a schema.
    ///
    /// # Errors
    /// It is none, or it uses what is not supported here; the message says where.
    pub fn new(root: Value) -> Result<Self, String> {
        let mut reader = Reader { root: &root, patterns: BTreeMap::new(), seen: BTreeSet::new() };
        reader.schema(&root, "#")?;
        let patterns = reader.patterns;
        Ok(Self { root, patterns })
    }

    /// What of a value does not match, at most `most` faults.
    pub fn faults(&self, value: &Value, most: usize) -> Vec<Fault> {
        let mut check = Check { validator: self, faults: Vec::new(), most };
        check.schema(&self.root, value, "", 0);
        check.faults
    }
}

/// Reads a schema once: every keyword has to be one that can be checked, with a value that it takes.
struct Reader<'a> {
    root: &'a Value,
    patterns: BTreeMap<String, Regex>,
    /// Places that were read, so that references may go round.
    seen: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    fn schema(&mut self, schema: &'a Value, at: &str) -> Result<(), String> {
        if !self.seen.insert(at.to_owned()) {
            return Ok(());
        }
        let keywords = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(keywords) => keywords,
            _ => return Err(format!("{at}: a schema is an object or a boolean")),
        };
        keywords.iter().try_for_each(|(keyword, value)| self.keyword(keyword, value, at))
    }

    fn keyword(&mut self, keyword: &str, value: &'a Value, at: &str) -> Result<(), String> {
        let here = format!("{at}/{keyword}");
        let wants = |what: &str| Err(format!("{here}: {what} is expected"));
        match keyword {
            "type" => match value {
                Value::String(name) if is_type(name) => Ok(()),
                Value::Array(names) if names.iter().all(|name| name.as_str().is_some_and(is_type)) => Ok(()),
                _ => wants("one of the seven types, or a list of them"),
            },
            "enum" if value.is_array() => Ok(()),
            "enum" => wants("a list"),
            "properties" | "$defs" | "definitions" | "dependentSchemas" => self.schemas_by_name(value, &here),
            "patternProperties" => {
                for pattern in value.as_object().into_iter().flat_map(Map::keys) {
                    self.pattern(pattern, &here)?;
                }
                self.schemas_by_name(value, &here)
            }
            "additionalProperties" | "items" | "contains" | "propertyNames" | "not" | "if" | "then" | "else" => {
                self.schema(value, &here)
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => match value.as_array() {
                Some(schemas) if !schemas.is_empty() => {
                    schemas.iter().enumerate().try_for_each(|(at, schema)| self.schema(schema, &format!("{here}/{at}")))
                }
                _ => wants("a list of schemas"),
            },
            "required" if is_names(value) => Ok(()),
            "required" => wants("a list of names"),
            "dependentRequired" => match value.as_object() {
                Some(names) if names.values().all(is_names) => Ok(()),
                _ => wants("an object of lists of names"),
            },
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minContains" | "maxContains" | "minProperties"
            | "maxProperties"
                if count(value).is_none() =>
            {
                wants("a whole number from 0 on")
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" if !value.is_number() => wants("a number"),
            "multipleOf" if !value.as_f64().is_some_and(|step| step > 0.0) => wants("a number above 0"),
            "uniqueItems" if !value.is_boolean() => wants("a boolean"),
            "pattern" => match value.as_str() {
                Some(pattern) => self.pattern(pattern, &here),
                None => wants("a regular expression"),
            },
            "$ref" => {
                let Some(reference) = value.as_str() else { return wants("a reference") };
                match find(self.root, reference) {
                    Some(target) => self.schema(target, reference),
                    None => Err(format!("{here}: {reference} is not a place in this schema, such as #/$defs/name")),
                }
            }
            "$id" if at != "#" => Err(format!("{here}: only the whole schema may have an id")),
            _ if UNSUPPORTED.contains(&keyword) => Err(format!("{here}: this keyword is not supported")),
            _ => Ok(()),
        }
    }

    fn schemas_by_name(&mut self, value: &'a Value, here: &str) -> Result<(), String> {
        let Some(schemas) = value.as_object() else { return Err(format!("{here}: an object of schemas is expected")) };
        schemas.iter().try_for_each(|(name, schema)| self.schema(schema, &format!("{here}/{}", escaped(name))))
    }

    fn pattern(&mut self, pattern: &str, here: &str) -> Result<(), String> {
        match Regex::new(pattern) {
            Ok(regex) => {
                self.patterns.insert(pattern.to_owned(), regex);
                Ok(())
            }
            Err(_) => Err(format!("{here}: {pattern:?} is no regular expression that can be used here")),
        }
    }
}

/// One check of a value.
struct Check<'a> {
    validator: &'a Validator,
    faults: Vec<Fault>,
    most: usize,
}

impl Check<'_> {
    fn fault(&mut self, place: &str, what: impl Into<String>) {
        if self.faults.len() < self.most {
            self.faults.push(Fault { place: place.to_owned(), what: what.into() });
        }
    }

    /// True when the value matches a schema; nothing is noted.
    fn matches(&self, schema: &Value, value: &Value, depth: usize) -> bool {
        let mut check = Check { validator: self.validator, faults: Vec::new(), most: 1 };
        check.schema(schema, value, "", depth);
        check.faults.is_empty()
    }

    fn schema(&mut self, schema: &Value, value: &Value, place: &str, depth: usize) {
        if self.faults.len() >= self.most {
            return;
        }
        if depth > DEEPEST {
            return self.fault(place, "it is nested too deeply to be checked");
        }
        match schema {
            Value::Bool(false) => self.fault(place, "nothing is allowed here"),
            Value::Object(rules) => {
                self.any_value(rules, value, place, depth + 1);
                match value {
                    Value::String(text) => self.text(rules, text, place),
                    Value::Number(number) => self.number(rules, number, place),
                    Value::Array(items) => self.list(rules, items, place, depth + 1),
                    Value::Object(members) => self.object(rules, members, place, depth + 1),
                    Value::Null | Value::Bool(_) => {}
                }
            }
            _ => {}
        }
    }

    fn any_value(&mut self, rules: &Map<String, Value>, value: &Value, place: &str, depth: usize) {
        let all = |name: &str| rules.get(name).and_then(Value::as_array).into_iter().flatten();
        match rules.get("type") {
            Some(Value::String(name)) if !has_type(value, name) => {
                self.fault(place, format!("{value} is not of type {name}"));
            }
            Some(Value::Array(names)) if !names.iter().filter_map(Value::as_str).any(|name| has_type(value, name)) => {
                self.fault(place, format!("{value} is of none of the types {}", list_of(names)));
            }
            _ => {}
        }
        if let Some(Value::Array(values)) = rules.get("enum")
            && !values.iter().any(|one| same(one, value))
        {
            self.fault(place, format!("{value} is none of {}", list_of(values)));
        }
        if let Some(only) = rules.get("const")
            && !same(only, value)
        {
            self.fault(place, format!("{value} is not {only}"));
        }
        if let Some(target) = rules.get("$ref").and_then(Value::as_str).and_then(|at| find(&self.validator.root, at)) {
            self.schema(target, value, place, depth);
        }
        for schema in all("allOf") {
            self.schema(schema, value, place, depth);
        }
        if rules.contains_key("anyOf") && !all("anyOf").any(|schema| self.matches(schema, value, depth)) {
            self.fault(place, format!("{value} matches none of the schemas of anyOf"));
        }
        if rules.contains_key("oneOf") {
            let matching = all("oneOf").filter(|schema| self.matches(schema, value, depth)).count();
            if matching != 1 {
                self.fault(place, format!("{value} matches {matching} of the schemas of oneOf, not one"));
            }
        }
        if rules.get("not").is_some_and(|schema| self.matches(schema, value, depth)) {
            self.fault(place, format!("{value} matches what it must not match"));
        }
        if let Some(condition) = rules.get("if") {
            let branch = if self.matches(condition, value, depth) { "then" } else { "else" };
            if let Some(schema) = rules.get(branch) {
                self.schema(schema, value, place, depth);
            }
        }
    }

    fn text(&mut self, rules: &Map<String, Value>, text: &str, place: &str) {
        self.size(rules, ["minLength", "maxLength"], text.chars().count(), "characters", place);
        if let Some(pattern) = rules.get("pattern").and_then(Value::as_str)
            && !self.fits(pattern, text)
        {
            self.fault(place, format!("{text:?} does not match {pattern:?}"));
        }
    }

    fn fits(&self, pattern: &str, text: &str) -> bool {
        self.validator.patterns.get(pattern).is_some_and(|regex| regex.is_match(text))
    }

    fn number(&mut self, rules: &Map<String, Value>, number: &Number, place: &str) {
        for (keyword, allowed, what) in [
            ("minimum", &[Ordering::Greater, Ordering::Equal][..], "less than"),
            ("maximum", &[Ordering::Less, Ordering::Equal], "more than"),
            ("exclusiveMinimum", &[Ordering::Greater], "not more than"),
            ("exclusiveMaximum", &[Ordering::Less], "not less than"),
        ] {
            if let Some(Value::Number(limit)) = rules.get(keyword)
                && !allowed.contains(&compare(number, limit))
            {
                self.fault(place, format!("{number} is {what} {limit}"));
            }
        }
        if let Some(Value::Number(step)) = rules.get("multipleOf")
            && !is_multiple(number, step)
        {
            self.fault(place, format!("{number} is no multiple of {step}"));
        }
    }

    fn list(&mut self, rules: &Map<String, Value>, items: &[Value], place: &str, depth: usize) {
        self.size(rules, ["minItems", "maxItems"], items.len(), "items", place);
        let first = rules.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (at, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(at).or_else(|| rules.get("items")) {
                self.schema(schema, item, &format!("{place}/{at}"), depth);
            }
        }
        if rules.get("uniqueItems") == Some(&Value::Bool(true))
            && items.iter().enumerate().any(|(at, item)| items[..at].iter().any(|other| same(other, item)))
        {
            self.fault(place, "an item is there twice");
        }
        if let Some(schema) = rules.get("contains") {
            let matching = items.iter().filter(|item| self.matches(schema, item, depth)).count();
            let least = rules.get("minContains").and_then(count).unwrap_or(1);
            let most = rules.get("maxContains").and_then(count).unwrap_or(u64::MAX);
            if !(least..=most).contains(&(matching as u64)) {
                self.fault(place, format!("{matching} items match what it has to contain"));
            }
        }
    }

    fn object(&mut self, rules: &Map<String, Value>, members: &Map<String, Value>, place: &str, depth: usize) {
        let map = |name: &str| rules.get(name).and_then(Value::as_object);
        self.size(rules, ["minProperties", "maxProperties"], members.len(), "members", place);
        let lacking = |names: &Value| {
            let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
            names.filter(|name| !members.contains_key(*name)).map(str::to_owned).collect::<Vec<_>>()
        };
        let dependent = map("dependentRequired").into_iter().flatten();
        let required = rules.get("required").into_iter();
        let wanted = required.chain(dependent.filter(|(name, _)| members.contains_key(*name)).map(|(_, names)| names));
        for name in wanted.flat_map(lacking) {
            self.fault(place, format!("{name:?} is missing"));
        }
        for (name, schema) in map("dependentSchemas").into_iter().flatten() {
            if members.contains_key(name) {
                self.schema(schema, &Value::Object(members.clone()), place, depth);
            }
        }
        for (name, value) in members {
            let inside = format!("{place}/{}", escaped(name));
            let mut known = false;
            if let Some(schema) = map("properties").and_then(|schemas| schemas.get(name)) {
                known = true;
                self.schema(schema, value, &inside, depth);
            }
            for (_, schema) in map("patternProperties")
                .into_iter()
                .flatten()
                .filter(|(pattern, _)| self.fits(pattern, name))
                .collect::<Vec<_>>()
            {
                known = true;
                self.schema(schema, value, &inside, depth);
            }
            match rules.get("additionalProperties") {
                Some(Value::Bool(false)) if !known => self.fault(place, format!("{name:?} is not expected")),
                Some(schema) if !known => self.schema(schema, value, &inside, depth),
                _ => {}
            }
            if rules
                .get("propertyNames")
                .is_some_and(|schema| !self.matches(schema, &Value::from(name.as_str()), depth))
            {
                self.fault(place, format!("{name:?} is no name that is expected"));
            }
        }
    }

    fn size(&mut self, rules: &Map<String, Value>, keywords: [&str; 2], size: usize, unit: &str, place: &str) {
        let [least, most] = keywords.map(|keyword| rules.get(keyword).and_then(count));
        if let Some(least) = least.filter(|least| (size as u64) < *least) {
            self.fault(place, format!("it has {size} {unit}, fewer than {least}"));
        }
        if let Some(most) = most.filter(|most| size as u64 > *most) {
            self.fault(place, format!("it has {size} {unit}, more than {most}"));
        }
    }
}

fn is_type(name: &str) -> bool {
    matches!(name, "null" | "boolean" | "object" | "array" | "number" | "string" | "integer")
}

fn has_type(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
        Value::Number(number) => name == "number" || (name == "integer" && is_whole(number)),
    }
}

/// A number without a fraction is an integer, however it is written.
fn is_whole(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn is_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string))
}

/// A whole number from 0 on.
fn count(value: &Value) -> Option<u64> {
    let whole = |number: f64| (number >= 0.0 && number.fract() == 0.0 && number < 1e18).then_some(number as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(whole))
}

fn list_of(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}

fn exact(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn compare(one: &Number, other: &Number) -> Ordering {
    match (exact(one), exact(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => one.as_f64().unwrap_or(0.0).total_cmp(&(other.as_f64().unwrap_or(0.0) + 0.0)),
    }
}

fn is_multiple(number: &Number, step: &Number) -> bool {
    match (exact(number), exact(step)) {
        (Some(number), Some(step)) => number % step == 0,
        _ => {
            // Decimal fractions are not exact in binary: 19.99 is a multiple of 0.01.
            let times = number.as_f64().unwrap_or(0.0) / step.as_f64().unwrap_or(1.0);
            times.is_finite() && (times - times.round()).abs() <= times.abs().max(1.0) * 1e-12
        }
    }
}

/// Equal as JSON: 1 is 1.0, and members have no order.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare(one, other) == Ordering::Equal,
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let member = |(name, value)| other.get::<String>(name).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(member)
        }
        _ => one == other,
    }
}

/// A name as a part of a JSON pointer (RFC 6901).
fn escaped(name: &str) -> Cow<'_, str> {
    if name.contains(['~', '/']) { name.replace('~', "~0").replace('/', "~1").into() } else { name.into() }
}

/// A place in the schema: `#`, or `#/` and a JSON pointer.
fn find<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(reference.strip_prefix('#')?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-3_i64..4).prop_map(Value::from),
            (-6_i32..7).prop_map(|half| Value::from(f64::from(half) / 2.0)),
            "[ab]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(2, 8, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[abc]", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn any_schema() -> impl Strategy<Value = Value> {
        let types = prop_oneof![
            Just(json!("integer")),
            Just(json!("number")),
            Just(json!("string")),
            Just(json!("array")),
            Just(json!("object")),
            Just(json!(["null", "boolean"])),
        ];
        let small = 0..3_i64;
        let plain = prop_oneof![
            any::<bool>().prop_map(Value::from),
            types.prop_map(|kind| json!({ "type": kind })),
            any_value().prop_map(|value| json!({ "const": value })),
            prop::collection::vec(any_value(), 1..3).prop_map(|values| json!({ "enum": values })),
            (small.clone(), 1..3_i64).prop_map(|(least, step)| json!({"minimum": least, "multipleOf": step})),
            (small.clone(), small.clone())
                .prop_map(|(low, high)| json!({"exclusiveMinimum": low, "exclusiveMaximum": high})),
            (small.clone(), small.clone()).prop_map(|(least, most)| json!({"minLength": least, "maxLength": most})),
            Just(json!({"pattern": "^a"})),
            (small.clone(), small.clone()).prop_map(|(least, most)| json!({"minItems": least, "maxProperties": most})),
            Just(json!({"uniqueItems": true})),
            "[abc]".prop_map(|name| json!({ "required": [name] })),
            ("[abc]", "[abc]").prop_map(|(one, other)| json!({"dependentRequired": {one: [other]}})),
            Just(json!({"$ref": "#/$defs/one"})),
        ];
        plain.prop_recursive(2, 12, 3, |inner| {
            let schema = inner.clone();
            let one = move || schema.clone();
            prop_oneof![
                (one(), one()).prop_map(|(a, b)| json!({ "allOf": [a, b] })),
                (one(), one()).prop_map(|(a, b)| json!({ "anyOf": [a, b] })),
                (one(), one()).prop_map(|(a, b)| json!({ "oneOf": [a, b] })),
                one().prop_map(|a| json!({ "not": a })),
                (one(), one(), one()).prop_map(|(a, b, c)| json!({"if": a, "then": b, "else": c})),
                (one(), one()).prop_map(|(a, b)| json!({"properties": {"a": a}, "additionalProperties": b})),
                (one(), one()).prop_map(|(a, b)| json!({"patternProperties": {"^[ab]": a}, "propertyNames": b})),
                (one(), one()).prop_map(|(a, b)| json!({"prefixItems": [a], "items": b})),
                (one(), 0..3_i64).prop_map(|(a, most)| json!({"contains": a, "minContains": 0, "maxContains": most})),
                one().prop_map(|a| json!({"contains": a})),
                one().prop_map(|a| json!({"dependentSchemas": {"a": a}})),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// The same verdict as a complete implementation of the standard.
        #[test]
        fn a_value_matches_when_the_standard_says_so(schema in any_schema(), one in any_value(), value in any_value()) {
            let mut schema = json!({"allOf": [schema]});
            schema["$defs"] = json!({"one": {"enum": [one]}});
            let expect = jsonschema::draft202012::is_valid(&schema, &value);
            let faults = Validator::new(schema.clone()).unwrap().faults(&value, 10);
            prop_assert_eq!(faults.is_empty(), expect, "{} against {}", value, schema);
        }

        #[test]
        fn any_json_is_a_schema_or_refused(schema in any_value(), value in any_value()) {
            if let Ok(validator) = Validator::new(schema) {
                validator.faults(&value, 3);
            }
        }
    }

    #[test]
    fn what_is_wrong_with_a_schema_is_said_with_its_place() {
        for (schema, expect) in [
            (json!(3), "#: a schema is an object or a boolean"),
            (
                json!({"properties": {"a/b": {"type": "int"}}}),
                "#/properties/a~1b/type: one of the seven types, or a list of them is expected",
            ),
            (json!({"items": {"minLength": -1}}), "#/items/minLength: a whole number from 0 on is expected"),
            (json!({"pattern": "(?=a)"}), "#/pattern: \"(?=a)\" is no regular expression that can be used here"),
            (
                json!({"$ref": "https://example.com/s"}),
                "#/$ref: https://example.com/s is not a place in this schema, such as #/$defs/name",
            ),
            (json!({"not": {"unevaluatedItems": false}}), "#/not/unevaluatedItems: this keyword is not supported"),
        ] {
            assert_eq!(Validator::new(schema).err().as_deref(), Some(expect));
        }
    }

    #[test]
    fn faults_name_their_places() {
        let schema = json!({
            "properties": {"list": {"items": {"$ref": "#/$defs/price"}}},
            "required": ["name"],
            "$defs": {"price": {"type": "number", "multipleOf": 0.01}},
        });
        let value = json!({"list": [19.99, 1, "x", 0.005]});
        let faults = Validator::new(schema).unwrap().faults(&value, 10);
        let told: Vec<String> = faults.iter().map(|fault| format!("{} {}", fault.place, fault.what)).collect();
        assert_eq!(
            told,
            [" \"name\" is missing", "/list/2 \"x\" is not of type number", "/list/3 0.005 is no multiple of 0.01"]
        );
    }

    #[test]
    fn schemas_that_refer_to_each_other_end() {
        let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
        assert_eq!(Validator::new(schema).unwrap().faults(&json!(1), 10).len(), 1);
        let tree = json!({"properties": {"next": {"$ref": "#"}}, "additionalProperties": false});
        assert!(Validator::new(tree).unwrap().faults(&json!({"next": {"next": {}}}), 10).is_empty());
    }
}
