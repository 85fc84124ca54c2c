//! Edits as JSON: structured ones, and search/replace objects as they come.

use serde_json::Value;

use super::loose::{self, Loose};
use super::{Action, Dialect, Fault, Section};
use crate::Edit;
use crate::once::Once;
use crate::refuse::{Code, Refusal};

/// Names of the text to replace.
pub const OLD: [&str; 8] = ["old", "search", "old_string", "old_text", "oldText", "old_str", "oldString", "find"];
/// Names of what it becomes.
pub const NEW: [&str; 8] =
    ["new", "replace", "new_string", "new_text", "newText", "new_str", "newString", "replacement"];
/// Names of the wish to replace it everywhere.
pub const ALL: [&str; 3] = ["all", "replace_all", "replaceAll"];
/// Names of the line that says which one is meant.
pub const NEAR: [&str; 3] = ["near_line", "line", "start_line"];
/// Names of the file.
pub const PATH: [&str; 4] = ["path", "file", "file_path", "filename"];

/// Reads structured edits: `{"edits": [{"old", "new", "all"?, "near_line"?}]}`, or the list alone.
///
/// # Errors
/// `edit.unparsed`, naming the field that is missing or of the wrong kind.
pub(crate) fn structured(value: &Value) -> Result<Vec<Edit>, Refusal> {
    let wrong = |why: String| {
        Refusal::new(Code::Unparsed, format!("{why}; send {{\"edits\": [{{\"old\": \"…\", \"new\": \"…\"}}]}}"))
    };
    let list = if value.is_object() { value.get("edits") } else { Some(value) };
    let list = list.ok_or_else(|| wrong("there is no field `edits`".to_owned()))?;
    let list = list.as_array().ok_or_else(|| wrong("`edits` is not a list".to_owned()))?;
    list.iter()
        .enumerate()
        .map(|(index, value)| edit(value).map_err(|why| wrong(format!("edits[{index}]: {why}"))))
        .collect()
}

fn edit(value: &Value) -> Result<Edit, String> {
    let object = value.as_object().ok_or("it is not an object")?;
    for names in [&OLD[..], &NEW, &ALL, &NEAR] {
        let mut given = names.iter().filter_map(|name| Some((*name, object.get(*name)?)));
        if let Some((first, value)) = given.next()
            && let Some((other, _)) = given.find(|(_, other)| *other != value)
        {
            return Err(format!("`{first}` and `{other}` mean the same, and differ"));
        }
    }
    let field = |names: &[&'static str]| names.iter().find_map(|name| Some((*name, object.get(*name)?)));
    let text = |names: &[&'static str]| match field(names) {
        Some((_, Value::String(text))) => Ok(text.clone()),
        Some((name, _)) => Err(format!("`{name}` is not a string")),
        None => Err(format!("there is no field `{}`", names[0])),
    };
    let all = match field(&ALL) {
        None | Some((_, Value::Null)) => false,
        Some((_, Value::Bool(all))) => *all,
        Some((name, _)) => return Err(format!("`{name}` is neither true nor false")),
    };
    let near_line = match field(&NEAR) {
        None | Some((_, Value::Null)) => None,
        Some((name, value)) => {
            Some(value.as_u64().filter(|line| *line > 0).ok_or(format!("`{name}` is not a line number from 1"))?)
        }
    };
    Ok(Edit { old: text(&OLD)?, new: text(&NEW)?, all, near_line })
}

/// Reads an input as JSON, strictly or loosely.
pub(super) fn parse(input: &str) -> Result<(Dialect, Vec<Section>), Fault> {
    let trimmed = input.trim();
    let object = trimmed.starts_with(['{', '[']);
    if !object && !loose::starts_with_field(trimmed, &OLD) {
        return Err(Fault::Other);
    }
    let values = match strict(trimmed).filter(|_| object) {
        Some(values) => values,
        None => match loose::parse(trimmed) {
            Loose::Values(values) => values,
            Loose::Repeated(name) if may_be_edits(trimmed, &name) => {
                return Err(Fault::broken(0, format!("the field `{name}` is given twice in one object")));
            }
            Loose::Repeated(_) => return Err(Fault::Other),
            Loose::Half(escape) if speaks_of_edits(trimmed) => {
                let why = format!("`{escape}` is half of a surrogate pair and no character; write both halves");
                return Err(Fault::broken(0, why));
            }
            Loose::Half(_) => return Err(Fault::Other),
            Loose::Cut if speaks_of_edits(trimmed) => {
                return Err(Fault::broken(0, "it does not parse as JSON, strict or loose"));
            }
            Loose::Cut => return Err(Fault::Other),
        },
    };
    let values: Vec<Value> = match values.as_slice() {
        [Value::Array(list)] => list.clone(),
        [Value::Object(object)] if object.contains_key("edits") => {
            let edits = structured(&values[0]).map_err(Fault::Refused)?;
            let path = path(&values[0]);
            return Ok((Dialect::Structured, vec![Section { path, action: Action::Edits(edits) }]));
        }
        _ => values,
    };
    let is_edit = |value: &Value| {
        value.as_object().is_some_and(|object| OLD.iter().chain(&NEW).any(|name| object.contains_key(*name)))
    };
    if !values.iter().any(is_edit) {
        return Err(Fault::Other);
    }
    let mut edits = Vec::new();
    let mut named: Option<String> = None;
    for (index, value) in values.iter().enumerate() {
        let one = edit(value).map_err(|why| Fault::broken(0, format!("object {}: {why}", index + 1)))?;
        match (path(value), &named) {
            (Some(path), Some(other)) if *other != path => {
                let text = format!("the objects name two files, {other} and {path}; send them apart");
                return Err(Fault::Refused(Refusal::new(Code::Outside, text)));
            }
            (path, _) => named = path.or(named),
        }
        edits.push(one);
    }
    Ok((Dialect::Json, vec![Section { path: named, action: Action::Edits(edits) }]))
}

fn path(value: &Value) -> Option<String> {
    PATH.iter().find_map(|name| value.get(name)?.as_str()).map(str::to_owned)
}

/// One value or several after each other. Nothing where a field is given twice: what reads loosely says so.
fn strict(input: &str) -> Option<Vec<Value>> {
    let values = serde_json::Deserializer::from_str(input).into_iter::<Once>();
    values.map(|value| value.map(|Once(value)| value)).collect::<Result<_, _>>().ok()
}

/// True when an object with this field, twice, was surely meant to be edits.
fn may_be_edits(input: &str, repeated: &str) -> bool {
    speaks_of_edits(input) || repeated == "edits" || OLD.iter().chain(&NEW).any(|name| *name == repeated)
}

/// True when a text that is no JSON was surely meant to be edits.
fn speaks_of_edits(input: &str) -> bool {
    let head = head(input);
    OLD.iter().chain(&["edits"]).any(|name| is_field(&head, name))
}

/// How an input starts, without white space, quotes and what opens it.
fn head(input: &str) -> String {
    let head: String = input.chars().take(200).filter(|it| !it.is_whitespace() && !matches!(it, '"' | '\'')).collect();
    head.trim_start_matches(['{', '[']).to_owned()
}

fn is_field(text: &str, name: &str) -> bool {
    text.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', '=']))
}

/// True for a line that an object of edits may start with.
pub(super) fn marks(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(['{', '[']) || OLD.iter().any(|name| quoted_field(line, name))
}

/// `name="…` or `name: '…`, as the fields of an object without its braces start.
fn quoted_field(line: &str, name: &str) -> bool {
    let rest = line.trim_start_matches(['"', '\'']).strip_prefix(name);
    let rest = rest.and_then(|rest| rest.trim_start_matches(['"', '\'']).trim_start().strip_prefix([':', '=']));
    rest.is_some_and(|rest| rest.trim_start().starts_with(['"', '\'', '`']))
}

/// True when a text that starts as `marks` says goes on as an object of edits does.
pub(super) fn begins(text: &str) -> bool {
    let (text, head) = (text.trim_start(), head(text));
    let after_path = || {
        let mut fields = head.split(',');
        fields.next().is_some_and(|first| PATH.iter().any(|name| is_field(first, name)))
            && fields.any(|field| OLD.iter().chain(&["edits"]).any(|name| is_field(field, name)))
    };
    !text.starts_with(['{', '['])
        || OLD.iter().chain(&NEW).chain(&["edits"]).any(|name| is_field(&head, name))
        || after_path()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edits(input: &str) -> Result<(Dialect, Vec<Edit>), Fault> {
        let (dialect, sections) = parse(input)?;
        match sections.into_iter().next() {
            Some(Section { action: Action::Edits(edits), .. }) => Ok((dialect, edits)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn strict_and_structured() {
        let pair = Edit { old: "a\n".into(), new: "b".into(), ..Edit::default() };
        assert_eq!(edits(r#"{"search": "a\n", "replace": "b"}"#).unwrap(), (Dialect::Json, vec![pair.clone()]));
        assert_eq!(edits(r#"[{"old_string":"a\n","new_string":"b"},{"find":"c","replace":""}]"#).unwrap().1.len(), 2);
        assert_eq!(
            edits("{\"search\":\"a\\n\",\"replace\":\"b\"}\n{\"search\":\"c\",\"replace\":\"d\"}").unwrap().1.len(),
            2
        );
        let all = r#"{"edits":[{"old":"a\n","new":"b","all":true},{"old":"c","new":"d","near_line":7}]}"#;
        let (dialect, found) = edits(all).unwrap();
        assert_eq!((dialect, found[0].all, found[1].near_line), (Dialect::Structured, true, Some(7)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(
            matches!(edits(r#"{"edits":[{"old":"a"}]}"#), Err(Fault::Refused(it)) if it.message.contains("edits[0]: there is no field `new`"))
        );
        assert!(matches!(edits(r#"{"search":"a"}"#), Err(Fault::Broken { .. })));
        assert!(matches!(edits(r#"{"search":"a","repl"#), Err(Fault::Broken { .. })));
        assert!(matches!(edits(r#"{"name":"x","version":1}"#), Err(Fault::Other)));
        assert!(matches!(edits(r#"{"name":"x","name":1}"#), Err(Fault::Other)));
        assert!(matches!(edits("plain"), Err(Fault::Other)));
    }

    #[test]
    fn a_field_that_is_given_twice_is_refused() {
        for input in [
            r#"{"edits":[{"old":"a","new":"A"}],"edits":[{"old":"b","new":"B"}]}"#,
            r#"{"edits":[{"old":"a","old":"b","new":"B"}]}"#,
            r#"{"edits":[{"old":"a","new":"B","all":true,"all":false}]}"#,
            r#"{"path":"f","old":"a","old":"b","new":"B"}"#,
            r#"[{"path":"f","old":"a","old":"b","new":"B"}]"#,
            "{search: 'a', replace: 'b', replace: 'c'}",
            "search='a' search='b' replace='c'",
        ] {
            let fault = edits(input).unwrap_err();
            assert!(
                matches!(&fault, Fault::Broken { why, .. } if why.contains("is given twice")),
                "{input}: {fault:?}"
            );
        }
        let two = edits(r#"{"edits":[{"old":"a","search":"b","new":"B"}]}"#).unwrap_err();
        assert!(
            matches!(&two, Fault::Refused(it) if it.message.contains("`old` and `search` mean the same")),
            "{two:?}"
        );
        assert!(edits(r#"{"edits":[{"old":"a","search":"a","new":"B"}]}"#).is_ok());
    }
}
