//! One case of the corpus: files, an input, and the one right outcome.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use stele_edit::{edit_input, plan};

/// What an input is for.
#[derive(Clone, Debug)]
pub enum Task {
    /// One file, absent when it does not exist, and any dialect.
    Edit { path: String, original: Option<Vec<u8>>, input: String },
    /// Files and a patch over them.
    Patch { files: BTreeMap<String, Vec<u8>>, patch: String },
}

/// The one right outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Right {
    Bytes(Vec<u8>),
    Files(BTreeMap<String, Vec<u8>>),
    Code(String),
}

#[derive(Clone, Debug)]
pub struct Case {
    pub category: String,
    pub task: Task,
    pub right: Right,
}

/// How an engine did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Score {
    Right,
    /// Nothing was changed, but something should have been, or for another reason.
    Refused,
    /// The files are not what they should be.
    Wrong,
}

/// Bytes as a string where they are UTF-8, else one character a byte.
fn content(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "latin1": bytes.iter().map(|byte| char::from(*byte)).collect::<String>() }),
    }
}

fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.clone().into_bytes()),
        Value::Object(object) => object["latin1"].as_str().map(|text| text.chars().map(|it| it as u8).collect()),
        _ => None,
    }
}

fn files(files: &BTreeMap<String, Vec<u8>>) -> Value {
    Value::Object(files.iter().map(|(path, bytes)| (path.clone(), content(bytes))).collect::<Map<_, _>>())
}

impl Case {
    pub fn to_json(&self) -> Value {
        let mut object = json!({ "category": self.category });
        match &self.task {
            Task::Edit { path, original, input } => {
                object["path"] = json!(path);
                object["original"] = original.as_deref().map_or(Value::Null, content);
                object["input"] = json!(input);
            }
            Task::Patch { files: there, patch } => {
                object["files"] = files(there);
                object["patch"] = json!(patch);
            }
        }
        object["right"] = match (&self.right, &self.task) {
            (Right::Code(code), _) => json!({ "code": code }),
            (Right::Files(after), _) => json!({ "files": files(after) }),
            // The whole file again would double the corpus: only what lies between what is the same at both ends.
            (Right::Bytes(after), Task::Edit { original, .. }) => {
                let before = original.as_deref().unwrap_or_default();
                let start = before.iter().zip(after).take_while(|(left, right)| left == right).count();
                let most = before.len().min(after.len()) - start;
                let end = before
                    .iter()
                    .rev()
                    .zip(after.iter().rev())
                    .take(most)
                    .take_while(|(left, right)| left == right)
                    .count();
                json!({ "replace": [start, before.len() - end, content(&after[start..after.len() - end])] })
            }
            (Right::Bytes(_), Task::Patch { .. }) => Value::Null,
        };
        object
    }

    pub fn from_json(object: &Value) -> Option<Self> {
        let text = |name: &str| object[name].as_str().map(str::to_owned);
        let map = |value: &Value| -> Option<BTreeMap<String, Vec<u8>>> {
            value.as_object()?.iter().map(|(path, value)| Some((path.clone(), bytes(value)?))).collect()
        };
        let task = match text("patch") {
            Some(patch) => Task::Patch { files: map(&object["files"])?, patch },
            None => Task::Edit { path: text("path")?, original: bytes(&object["original"]), input: text("input")? },
        };
        let right = &object["right"];
        let right = match (&task, right["code"].as_str()) {
            (_, Some(code)) => Right::Code(code.to_owned()),
            (Task::Patch { .. }, _) => Right::Files(map(&right["files"])?),
            (Task::Edit { original, .. }, _) => {
                let before = original.clone().unwrap_or_default();
                let at = |index: usize| usize::try_from(right["replace"][index].as_u64()?).ok();
                let (start, end) = (at(0)?, at(1)?);
                Right::Bytes([&before[..start], &bytes(&right["replace"][2])?, &before[end..]].concat())
            }
        };
        Some(Self { category: text("category")?, task, right })
    }

    /// What the engine makes of it.
    pub fn outcome(&self) -> Right {
        match &self.task {
            Task::Edit { path, original, input } => match edit_input(Some(path), original.as_deref(), input) {
                Ok(applied) => Right::Bytes(applied.bytes),
                Err(refusal) => Right::Code(refusal.code.to_owned()),
            },
            Task::Patch { files, patch } => match plan(patch, &mut |path| files.get(path).cloned()) {
                Ok(changes) => {
                    let mut after = files.clone();
                    for change in &changes {
                        after.remove(change.moved_from.as_ref().unwrap_or(&change.path));
                    }
                    after.extend(changes.into_iter().filter_map(|change| Some((change.path, change.after?))));
                    Right::Files(after)
                }
                Err(refusal) => Right::Code(refusal.code.to_owned()),
            },
        }
    }

    pub fn score(&self, outcome: &Right) -> Score {
        match outcome {
            _ if *outcome == self.right => Score::Right,
            Right::Code(_) => Score::Refused,
            _ => Score::Wrong,
        }
    }

    /// An outcome against the right one, for a person.
    pub fn described(&self, outcome: &Right) -> String {
        let shown = |right: &Right| match right {
            Right::Code(code) => code.clone(),
            Right::Bytes(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
            Right::Files(files) => format!("{:?}", files.keys().collect::<Vec<_>>()),
        };
        let input = match &self.task {
            Task::Edit { input, .. } => input,
            Task::Patch { patch, .. } => patch,
        };
        format!("{} instead of {}\n  input {input:?}", shown(outcome), shown(&self.right))
    }
}
