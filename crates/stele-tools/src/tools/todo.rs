//! `todo`: the whole list of things to do.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use stele_core::{
    CallCard, CardKind, Effects, Future, Invocation, Subject, TodoItem, TodoStatus, Tool, ToolError, ToolOutput,
    ToolSpec,
};

use crate::declare::{Declared, finish};
use crate::error::{Error, Result};
use crate::slips::rename;

/// Items a list may have.
const ITEMS: usize = 100;
/// Bytes an item's text may have.
const TEXT: usize = 500;

/// Arguments of `todo`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    items: Vec<Item>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Item {
    text: String,
    status: Status,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Done,
}

impl From<Status> for TodoStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::InProgress => Self::InProgress,
            Status::Done => Self::Done,
        }
    }
}

/// Gives an item that came as its text, or without its status, the form that it should have.
fn complete(item: &mut Value) -> Result<(), String> {
    if item.is_string() {
        *item = json!({"text": item.take()});
    }
    let Some(fields) = item.as_object_mut() else { return Ok(()) };
    rename(fields, &["text", "content"])?;
    match fields.get("status").and_then(Value::as_str) {
        None if fields.get("status").is_none_or(Value::is_null) => {
            fields.insert("status".to_owned(), "pending".into());
        }
        Some("completed") => drop(fields.insert("status".to_owned(), "done".into())),
        _ => {}
    }
    Ok(())
}

/// The tool.
pub(crate) struct Todo {
    declared: Declared<Arguments>,
}

impl Todo {
    pub(crate) fn new() -> Self {
        let declared = Declared::new("todo", include_str!("todo.md"), "").forgiving(|fields| {
            let mut items = fields.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten();
            items.try_for_each(complete)
        });
        Self { declared }
    }
}

impl Tool for Todo {
    fn spec(&self) -> &ToolSpec {
        &self.declared.spec
    }

    // The list is part of the log, not of the machine.
    fn effects(&self) -> Effects {
        Effects::None
    }

    // The last of two lists wins, so their order matters.
    fn parallel(&self, _: &str) -> bool {
        false
    }

    fn subjects(&self, arguments: &str) -> Result<Vec<Subject>, ToolError> {
        self.declared.parse(arguments)?;
        Ok(Vec::new())
    }

    fn call_card(&self, arguments: &str, _: &Path) -> CallCard {
        let Ok(arguments) = self.declared.parse(arguments) else { return self.declared.plain_card(CardKind::Other) };
        let done = arguments.items.iter().filter(|item| matches!(item.status, Status::Done)).count();
        CallCard::Generic {
            title: format!("Todo {done}/{}", arguments.items.len()),
            kind: CardKind::Other,
            locations: Vec::new(),
        }
    }

    fn run<'a>(&'a self, invocation: Invocation<'a>) -> Future<'a, ToolOutput> {
        Box::pin(async move { finish(self.declared.parse(invocation.arguments).and_then(set), None) })
    }
}

fn set(arguments: Arguments) -> Result<ToolOutput> {
    if arguments.items.len() > ITEMS {
        return Err(Error::Value(format!("items has {} entries; at most {ITEMS}", arguments.items.len())));
    }
    let mut items = Vec::new();
    for (index, item) in arguments.items.into_iter().enumerate() {
        let text = item.text.trim();
        if text.is_empty() || text.len() > TEXT {
            return Err(Error::Value(format!("items[{index}].text must have 1 to {TEXT} bytes")));
        }
        items.push(TodoItem { text: text.to_owned(), status: item.status.into() });
    }
    let count = |status| items.iter().filter(|item| item.status == status).count();
    let content = format!(
        "{} done, {} in progress, {} pending",
        count(TodoStatus::Done),
        count(TodoStatus::InProgress),
        count(TodoStatus::Pending)
    );
    Ok(ToolOutput { content, todo: Some(items), ..ToolOutput::default() })
}
