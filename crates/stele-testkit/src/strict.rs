//! A server that knows fewer fields than the wire has, and says so in the words of some implementation.

use serde_json::{Value, json};

use crate::refusal::Refusal;

/// In which words a server refuses a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// `Unknown parameter: 'x'.` with `param` and `code` (OpenAI).
    Parameter,
    /// `Unrecognized request argument supplied: x` with neither (older OpenAI, Azure).
    Argument,
    /// `system.0.x: Extra inputs are not permitted` (Anthropic).
    ExtraInputs,
    /// A list of `extra_forbidden` with `loc`, and the status 422 (FastAPI).
    Pydantic,
    /// `unsupported field x`, as plain text (gateways).
    Plain,
    /// `Invalid JSON payload received. Unknown name "x": Cannot find field.` (Google).
    UnknownName,
}

impl Wording {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Parameter, Self::Argument, Self::ExtraInputs, Self::Pydantic, Self::Plain, Self::UnknownName];

    /// The refusal of the first of these fields that a body has; a cache mark may stand anywhere in it.
    pub(crate) fn refuse(self, body: &Value, fields: &[String]) -> Option<Refusal> {
        let path = fields.iter().find_map(|field| find(body, field))?;
        let name = path.last().cloned().unwrap_or_default();
        let dotted = path.join(".");
        Some(match self {
            Self::Parameter => {
                let message = format!("Unknown parameter: '{dotted}'.");
                Refusal { code: Some("unknown_parameter"), ..Refusal::field(dotted, message) }
            }
            Self::Argument => Refusal::invalid(format!("Unrecognized request argument supplied: {name}")),
            Self::ExtraInputs => Refusal::invalid(format!("{dotted}: Extra inputs are not permitted")),
            Self::UnknownName => {
                Refusal::invalid(format!("Invalid JSON payload received. Unknown name \"{name}\": Cannot find field."))
            }
            Self::Plain => Refusal::invalid(format!("unsupported field {name}")),
            Self::Pydantic => {
                let place = |part: &String| part.parse::<u64>().map_or_else(|_| json!(part), |index| json!(index));
                let loc: Vec<Value> = std::iter::once(json!("body")).chain(path.iter().map(place)).collect();
                let complaint = json!({
                    "type": "extra_forbidden", "loc": loc, "msg": "Extra inputs are not permitted", "input": {}
                });
                let refusal = Refusal { status: 422, ..Refusal::invalid("") };
                Refusal { body: Some(json!({ "detail": [complaint] })), ..refusal }
            }
        })
    }
}

/// The way to a field, or to one inside it (`cache_control.ttl`): at the top of the body, or, for a cache mark, on any
/// block.
fn find(body: &Value, field: &str) -> Option<Vec<String>> {
    let path: Vec<String> = field.split('.').map(str::to_owned).collect();
    if path.iter().try_fold(body, |body, name| body.get(name)).is_some() {
        return Some(path);
    }
    if path.first().is_none_or(|name| name != "cache_control") {
        return None;
    }
    let children: Vec<(String, &Value)> = match body {
        Value::Object(object) => object.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    children.into_iter().find_map(|(key, value)| {
        let mut path = find(value, field)?;
        path.insert(0, key);
        Some(path)
    })
}
