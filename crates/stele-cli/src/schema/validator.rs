//! Checks a value against a JSON Schema (draft 2020-12, json-schema.org), as far as answers are described with it.
//!
//! A complete implementation brings some 50 crates, for references over the network, dynamic anchors and vocabularies; the
//! tests compare this one with it. A keyword that is not checked here is refused when the schema is read, so that no
//! answer passes because a rule was overlooked. `format` is an annotation, as the draft has it.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Number, Value};

use super::number::{compare, count, is_multiple, is_whole};
use super::reader::{self, escaped, find};

/// Schemas that may be gone through, one inside the other. Values are nested 128 deep at most (`serde_json`), and a
/// schema that refers to itself for the same place is refused when it is read: no value of any real schema comes near.
const DEEPEST: usize = 1_000;

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
        let patterns = reader::patterns(&root)?;
        Ok(Self { root, patterns })
    }

    /// What of a value does not match, at most `most` faults.
    pub fn faults(&self, value: &Value, most: usize) -> Vec<Fault> {
        let mut check = Check::new(self, most);
        check.schema(&self.root, value, "", 0);
        if check.too_deep {
            check.faults.clear();
            check.fault("", "it is nested too deeply to be checked");
        }
        check.faults
    }
}

/// One check of a value.
struct Check<'a> {
    validator: &'a Validator,
    faults: Vec<Fault>,
    most: usize,
    /// True once something was left unchecked.
    too_deep: bool,
}

impl<'a> Check<'a> {
    fn new(validator: &'a Validator, most: usize) -> Self {
        Self { validator, faults: Vec::new(), most, too_deep: false }
    }

    fn fault(&mut self, place: &str, what: impl Into<String>) {
        if self.faults.len() < self.most {
            self.faults.push(Fault { place: place.to_owned(), what: what.into() });
        }
    }

    /// True when the value matches a schema; nothing is noted.
    fn matches(&mut self, schema: &Value, value: &Value, depth: usize) -> bool {
        let mut check = Check::new(self.validator, 1);
        check.schema(schema, value, "", depth);
        self.too_deep |= check.too_deep;
        check.faults.is_empty()
    }

    fn schema(&mut self, schema: &Value, value: &Value, place: &str, depth: usize) {
        self.too_deep |= depth > DEEPEST;
        if self.too_deep || self.faults.len() >= self.most {
            return;
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
        if let (Some(Value::Object(schemas)), Value::Object(members)) = (rules.get("dependentSchemas"), value) {
            for (_, schema) in schemas.iter().filter(|(name, _)| members.contains_key(*name)) {
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
        for (name, value) in members {
            let inside = format!("{place}/{}", escaped(name));
            let named = map("properties").and_then(|schemas| schemas.get(name));
            let fitting =
                map("patternProperties").into_iter().flatten().filter(|(pattern, _)| self.fits(pattern, name));
            let known: Vec<&Value> = named.into_iter().chain(fitting.map(|(_, schema)| schema)).collect();
            for schema in &known {
                self.schema(schema, value, &inside, depth);
            }
            match rules.get("additionalProperties").filter(|_| known.is_empty()) {
                Some(Value::Bool(false)) => self.fault(place, format!("{name:?} is not expected")),
                Some(schema) => self.schema(schema, value, &inside, depth),
                None => {}
            }
            let names = rules.get("propertyNames");
            if names.is_some_and(|schema| !self.matches(schema, &Value::from(name.as_str()), depth)) {
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

fn list_of(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
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
            prop_oneof![Just(-0.0), Just(1e19), Just(9.007_199_254_740_993e15), Just(1e300)].prop_map(Value::from),
            (9_007_199_254_740_991_u64..9_007_199_254_740_995).prop_map(Value::from),
            "[ab0_٣é\n]{0,3}".prop_map(Value::from),
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
            prop_oneof![Just("^a"), Just("^\\d"), Just("\\D$"), Just("^[\\w]+$"), Just("\\W"), Just("^.a")]
                .prop_map(|pattern| json!({ "pattern": pattern })),
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
            (json!({"requierd": ["n"]}), "#/requierd: there is no such keyword; did you mean required?"),
            (
                json!({"name": "answer", "schema": {"type": "object"}}),
                "#/name: there is no such keyword; take it out, or let its name begin with x-",
            ),
            (json!({"type": []}), "#/type: one of the seven types, or a list of them is expected"),
            (json!({"items": {"$id": "s"}}), "#/items/$id: no id but the whole schema's own is expected"),
            (json!({"$schema": "https://example.com/s"}), "#/$schema: a draft of json-schema.org is expected"),
            (json!({"items": [{}]}), "#/items: a schema is an object or a boolean"),
            (
                json!({"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}}),
                "#/$defs/a: this schema refers to itself, so that checking it has no end",
            ),
            (
                json!({"properties": {"n": {"anyOf": [true, {"$ref": "#/properties/n"}]}}}),
                "#/properties/n: this schema refers to itself, so that checking it has no end",
            ),
        ] {
            assert_eq!(Validator::new(schema).err().as_deref(), Some(expect));
        }
    }

    #[test]
    fn a_chain_of_references_is_read_as_far_as_it_is_checked() {
        let chain = |length: usize| {
            let link = |n: usize| (n.to_string(), json!({"$ref": format!("#/$defs/{}", n + 1)}));
            let mut schemas: Map<String, Value> = (0..length).map(link).collect();
            schemas.insert(length.to_string(), json!({"type": "integer"}));
            Validator::new(json!({"items": {"$ref": "#/$defs/0"}, "$defs": schemas}))
        };
        assert_eq!(chain(90).unwrap().faults(&json!([1, "x"]), 10).len(), 1);
        assert!(chain(5_000).err().unwrap().contains("more than 100 schemas follow each other here"));
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
    fn a_schema_may_refer_to_itself_for_what_is_inside() {
        let tree = json!({
            "type": "object",
            "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
            "additionalProperties": false,
        });
        let nested = |depth: usize, end: Value| (0..depth).fold(end, |value, _| json!({ "next": value }));
        let tree = Validator::new(tree).unwrap();
        assert!(tree.faults(&nested(120, Value::Null), 10).is_empty());
        assert_eq!(tree.faults(&nested(120, json!(1)), 10).len(), 1);
        let alike =
            json!({"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "integer"}}});
        assert!(Validator::new(alike).unwrap().faults(&json!(1), 10).is_empty());
    }

    #[test]
    fn what_is_too_deep_to_be_checked_does_not_pass() {
        let schema = json!({"not": {"$ref": "#/$defs/list"}, "$defs": {"list": {"items": {"$ref": "#/$defs/list"}}}});
        let value = (0..DEEPEST).fold(json!(1), |value, _| json!([value]));
        let faults = Validator::new(schema).unwrap().faults(&value, 10);
        assert_eq!(faults[0].what, "it is nested too deeply to be checked");
    }

    #[test]
    fn a_place_in_the_schema_may_be_written_as_in_a_uri() {
        let schema = json!({"$ref": "#/$defs/List%3Ca~1b%3E", "$defs": {"List<a/b>": {"type": "array"}}});
        let validator = Validator::new(schema).unwrap();
        assert!(validator.faults(&json!([]), 10).is_empty() && validator.faults(&json!(1), 10).len() == 1);
    }

    #[test]
    fn notes_say_nothing_about_what_is_valid() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://example.com/s", "$comment": "c",
            "title": "t", "format": "date", "default": 1, "x-order": [1], "discriminator": {"propertyName": "kind"},
        });
        assert!(Validator::new(schema).unwrap().faults(&json!("no date"), 10).is_empty());
    }
}
