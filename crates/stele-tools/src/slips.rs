//! Slips in the arguments of a call that leave no doubt about what is meant: each would cost a round trip.

use serde_json::{Map, Value};
use stele_edit::{Once, names};

use crate::schema::Shape;

/// The fields of a call's arguments, or of an object in them.
pub(crate) type Fields = Map<String, Value>;

/// Puts right what one tool in particular is sent.
pub(crate) type Own = fn(&mut Fields) -> Result<(), String>;

/// Puts right what is sent to any tool: another name of `path`, then types.
pub(crate) fn put_right(value: &mut Value, shape: &Shape, own: Own) -> Result<(), String> {
    typed(value, shape);
    if let Value::Object(fields) = value {
        if shape.has("path") {
            rename(fields, &names::PATH)?;
        }
        own(fields)?;
    }
    typed(value, shape);
    Ok(())
}

/// Gives a field that came under another of its names the first one.
pub(crate) fn rename(fields: &mut Fields, names: &[&str]) -> Result<(), String> {
    let Some((usual, others)) = names.split_first() else { return Ok(()) };
    for other in others {
        let Some(value) = fields.remove(*other).filter(|value| !value.is_null()) else { continue };
        match fields.get(*usual) {
            None | Some(Value::Null) => drop(fields.insert((*usual).to_owned(), value)),
            Some(known) if *known == value => {}
            Some(_) => return Err(format!("`{usual}` and `{other}` mean the same, and differ; give one of them")),
        }
    }
    Ok(())
}

/// Takes a text for the list, object, number or truth value that it is written as, and one thing for a list of one.
fn typed(value: &mut Value, shape: &Shape) {
    if let Value::String(text) = value
        && let Some(meant) = written_as(text, shape)
    {
        *value = meant;
    }
    match value {
        Value::Number(number) if shape.kind == "integer" && !number.is_u64() => {
            if let Some(whole) = number.as_f64().filter(|it| it.fract() == 0.0 && (0.0..=1e15).contains(it)) {
                *value = Value::from(whole as u64);
            }
        }
        Value::Object(_) | Value::String(_)
            if shape.kind == "array" && item(shape).is_some_and(|item| item.kind == kind(value)) =>
        {
            *value = Value::Array(vec![value.take()]);
        }
        _ => {}
    }
    match value {
        Value::Array(list) if shape.kind == "array" => {
            if let Some(item) = item(shape) {
                list.iter_mut().for_each(|value| typed(value, item));
            }
        }
        Value::Object(fields) => {
            for (name, shape) in &shape.properties.0 {
                if let Some(value) = fields.get_mut(name) {
                    typed(value, shape);
                }
            }
        }
        _ => {}
    }
}

fn item(shape: &Shape) -> Option<&Shape> {
    shape.items.as_deref()
}

fn kind(value: &Value) -> &'static str {
    if value.is_object() { "object" } else { "string" }
}

/// What a text is that stands where something else is asked for.
fn written_as(text: &str, shape: &Shape) -> Option<Value> {
    let value = || serde_json::from_str::<Once>(text).ok().map(|Once(value)| value);
    match shape.kind.as_str() {
        "integer" | "boolean" | "object" => value().filter(|value| match value {
            Value::Number(_) => shape.kind == "integer",
            Value::Bool(_) => shape.kind == "boolean",
            Value::Object(_) => shape.kind == "object",
            _ => false,
        }),
        "array" => value().filter(|value| {
            let takes_one = || item(shape).is_some_and(|item| item.kind == "object");
            value.is_array() || value.is_object() && takes_one()
        }),
        _ => None,
    }
}
