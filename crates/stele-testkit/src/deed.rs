//! A task for any agent: what the model does is given by kind, and the tools that each request declares decide by which
//! name and with which arguments.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use stele_core::Wire;

use crate::behaviour::{Behaviour, Reply};
use crate::parsed::{ParsedRequest, Role, list, text_of};
use crate::script::Say;

/// One thing that the model does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Reads a file, by its path from the folder that the agent works in.
    Read(String),
    /// Runs a shell command.
    Run(String),
    /// Says a text, which ends the turn. No two of a task are the same.
    Answer(String),
}

/// What the model does in a whole session, turn after turn.
///
/// Where it stands is read from the request: the last of its answers that the history holds ends a turn, and each
/// result since then is a deed that was done. So an agent may be resumed in another process, and one that sends
/// earlier results twice does not confuse it.
#[derive(Clone, Debug, Default)]
pub struct Deeds {
    deeds: Vec<Deed>,
    folders: Vec<PathBuf>,
}

/// A tool that a request declares.
struct Offered<'a> {
    name: String,
    /// The schema of its arguments; absent for a tool that takes plain text.
    schema: &'a Value,
}

const RUN: [&str; 10] = [
    "bash",
    "shell",
    "exec_command",
    "shell_command",
    "run_shell_command",
    "execute_command",
    "run_command",
    "terminal",
    "exec",
    "sh",
];
const READ: [&str; 7] = ["read", "read_file", "readfile", "view", "view_file", "fs_read", "cat"];
const COMMANDS: [&str; 5] = ["command", "cmd", "script", "code", "input"];
const PATHS: [&str; 7] = ["file_path", "filepath", "absolute_path", "path", "target_file", "filename", "file"];

impl Deeds {
    /// A task of these deeds.
    pub fn new(deeds: impl IntoIterator<Item = Deed>) -> Self {
        Self { deeds: deeds.into_iter().collect(), folders: Vec::new() }
    }

    /// The folders that agents may work in. The one that a request names makes its paths absolute, which some tools
    /// demand; where it names none, paths stay relative.
    #[must_use]
    pub fn in_folders<P: Into<PathBuf>>(mut self, folders: impl IntoIterator<Item = P>) -> Self {
        self.folders = folders.into_iter().map(Into::into).collect();
        self
    }

    /// What the model says to a request. One that [stands aside](is_aside) gets a title, or the least that its schema
    /// takes.
    #[must_use]
    pub fn say(&self, request: &ParsedRequest) -> Say {
        if let Some(schema) = wanted_schema(request.wire, &request.raw) {
            return Say::text(least(schema, "").to_string());
        }
        let tools = offered(request.wire, &request.raw);
        if tools.is_empty() {
            return Say::text("A title");
        }
        match self.deeds.get(self.position(request)) {
            Some(Deed::Answer(text)) => Say::text(text),
            Some(Deed::Run(command)) => {
                run(&tools, command).unwrap_or_else(|| Say::text("There is no tool that runs a command."))
            }
            Some(Deed::Read(path)) => {
                let folder = self.folder(&request.raw);
                let path = folder.map_or_else(|| path.clone(), |folder| folder.join(path).display().to_string());
                read(&tools, &path)
                    .or_else(|| run(&tools, &format!("cat '{path}'")))
                    .unwrap_or_else(|| Say::text("There is no tool that reads a file."))
            }
            None => Say::text("(the task has ended)"),
        }
    }

    fn position(&self, request: &ParsedRequest) -> usize {
        let mut begin = 0;
        let mut done = 0;
        for message in &request.messages {
            match message.role {
                Role::User => done += message.results.len(),
                Role::Assistant => {
                    let said = message.texts.concat();
                    let ended = self
                        .deeds
                        .iter()
                        .rposition(|deed| matches!(deed, Deed::Answer(text) if said.contains(text.trim())));
                    if let Some(ended) = ended {
                        (begin, done) = (ended + 1, 0);
                    }
                }
            }
        }
        let turn = self.deeds.get(begin..).unwrap_or_default();
        let last = turn.iter().position(|deed| matches!(deed, Deed::Answer(_))).unwrap_or(turn.len());
        begin + done.min(last)
    }

    fn folder(&self, body: &Value) -> Option<&Path> {
        let body = body.to_string();
        let named = |folder: &&PathBuf| body.contains(&*folder.display().to_string());
        self.folders.iter().filter(named).max_by_key(|folder| folder.as_os_str().len()).map(PathBuf::as_path)
    }
}

impl From<Deeds> for Behaviour {
    /// Lenient: agents send fields that only their own vendor takes.
    fn from(deeds: Deeds) -> Self {
        Self::answering(move |request| Reply::from(deeds.say(request))).lenient()
    }
}

/// True for a request that is no part of a session's conversation: it offers no tools, or demands an answer of a given
/// form (a title, a guess at who speaks next).
#[must_use]
pub fn is_aside(wire: Wire, body: &Value) -> bool {
    offered(wire, body).is_empty() || wanted_schema(wire, body).is_some()
}

fn offered(wire: Wire, body: &Value) -> Vec<Offered<'_>> {
    let mut tools = Vec::new();
    for tool in list(body, "tools") {
        match wire {
            Wire::AnthropicMessages => {
                tools.push(Offered { name: text_of(tool, "name"), schema: &tool["input_schema"] })
            }
            Wire::OpenaiChat => {
                let function = &tool["function"];
                tools.push(Offered { name: text_of(function, "name"), schema: &function["parameters"] });
            }
            Wire::OpenaiResponses => {
                if tool["type"] == "function" {
                    tools.push(Offered { name: text_of(tool, "name"), schema: &tool["parameters"] });
                }
            }
            Wire::Gemini => tools.extend(list(tool, "functionDeclarations").iter().map(|function| {
                let schema = function.get("parametersJsonSchema").unwrap_or(&function["parameters"]);
                Offered { name: text_of(function, "name"), schema }
            })),
        }
    }
    tools
}

fn wanted_schema(wire: Wire, body: &Value) -> Option<&Value> {
    let at = |pointer: &str| body.pointer(pointer).filter(|schema| schema.is_object());
    match wire {
        Wire::AnthropicMessages => at("/output_config/format/schema").or_else(|| at("/output_format/schema")),
        Wire::OpenaiResponses => at("/text/format/schema"),
        Wire::OpenaiChat => at("/response_format/json_schema/schema"),
        Wire::Gemini => at("/generationConfig/responseJsonSchema").or_else(|| at("/generationConfig/responseSchema")),
    }
}

fn named<'a>(tools: &'a [Offered<'a>], names: &[&str]) -> Option<&'a Offered<'a>> {
    let plain = |name: &str| name.to_ascii_lowercase().replace('-', "_");
    names.iter().find_map(|name| tools.iter().find(|tool| plain(&tool.name) == *name))
}

/// The property that a schema has under one of these names, in any spelling.
fn property(schema: &Value, names: &[&str]) -> Option<String> {
    let properties = schema.get("properties")?.as_object()?;
    names.iter().find_map(|name| properties.keys().find(|own| own.to_ascii_lowercase() == *name).cloned())
}

fn run(tools: &[Offered<'_>], command: &str) -> Option<Say> {
    let tool = named(tools, &RUN)?;
    let key = property(tool.schema, &COMMANDS)?;
    let list = tool.schema["properties"][&key]["type"] == "array";
    let value = if list { json!(["bash", "-lc", command]) } else { json!(command) };
    Some(Say::call(tool.name.as_str(), &filled(tool.schema, &key, value)))
}

fn read(tools: &[Offered<'_>], path: &str) -> Option<Say> {
    let tool = named(tools, &READ)?;
    let key = property(tool.schema, &PATHS)?;
    Some(Say::call(tool.name.as_str(), &filled(tool.schema, &key, json!(path))))
}

/// Arguments with this value, and the least for whatever else is required.
fn filled(schema: &Value, key: &str, value: Value) -> Value {
    let mut arguments = Map::new();
    arguments.insert(key.to_owned(), value);
    for name in list(schema, "required").iter().filter_map(Value::as_str) {
        if !arguments.contains_key(name) {
            arguments.insert(name.to_owned(), least(&schema["properties"][name], name));
        }
    }
    Value::Object(arguments)
}

/// Some value that fits a schema, as far as agents' schemas go.
fn least(schema: &Value, name: &str) -> Value {
    let first = |key: &str| schema.get(key).and_then(Value::as_array).and_then(|values| values.first());
    if let Some(value) = schema.get("default").or_else(|| schema.get("const")).or_else(|| first("enum")) {
        return value.clone();
    }
    if let Some(variant) = first("anyOf").or_else(|| first("oneOf")) {
        return least(variant, name);
    }
    let kind = schema.get("type").and_then(|kind| kind.as_str().or_else(|| kind.get(0)?.as_str())).unwrap_or("object");
    match kind.to_ascii_lowercase().as_str() {
        "string" => json!("a step of the task"),
        "boolean" => json!(false),
        // A limit of time in whatever unit: long enough.
        "integer" | "number" if name.to_ascii_lowercase().contains("time") => json!(60_000),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(0)),
        "array" => json!([]),
        "null" => Value::Null,
        _ => {
            let required = list(schema, "required").iter().filter_map(Value::as_str);
            required
                .map(|name| (name.to_owned(), least(&schema["properties"][name], name)))
                .collect::<Map<_, _>>()
                .into()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::script::{Part, SayCall};

    fn task() -> Deeds {
        let read = Deed::Read("a.txt".to_owned());
        Deeds::new([
            read.clone(),
            Deed::Run("ls".to_owned()),
            Deed::Answer("First part.".to_owned()),
            read,
            Deed::Answer("Second part.".to_owned()),
        ])
        .in_folders(["/w/one", "/w/one/deeper"])
    }

    fn said(wire: Wire, body: Value) -> Say {
        task().say(&ParsedRequest::read(wire, None, true, 0, body))
    }

    #[track_caller]
    fn calls(wire: Wire, body: Value, name: &str, arguments: Value) {
        let expect = SayCall { name: name.to_owned(), arguments: arguments.to_string() };
        assert_eq!(said(wire, body).parts(), [Part::Call(expect)]);
    }

    fn schema(property: &str, kind: &str) -> Value {
        json!({"type": "object", "required": [property, "why", "timeout"], "properties": {
            property: {"type": kind}, "why": {"type": "string"}, "timeout": {"type": "number"}, "limit": {"type": "integer"}}})
    }

    #[test]
    fn the_tools_of_the_request_are_used_with_their_own_arguments() {
        let (why, timeout) = ("a step of the task", 60_000);
        let tool = json!({"name": "Read", "input_schema": schema("filePath", "string")});
        let body = json!({"system": "You work in /w/one.", "tools": [tool], "messages": []});
        let expect = json!({"filePath": "/w/one/a.txt", "why": why, "timeout": timeout});
        calls(Wire::AnthropicMessages, body, "Read", expect);

        // No tool that reads: the shell does.
        let tools = json!([{"type": "custom", "name": "apply"}, {"type": "function", "name": "shell", "parameters": schema("command", "array")}]);
        let command = json!({"command": ["bash", "-lc", "cat 'a.txt'"], "why": why, "timeout": timeout});
        calls(Wire::OpenaiResponses, json!({"tools": tools, "input": []}), "shell", command);

        let history = json!([{"role": "tool", "tool_call_id": "x", "content": "text"}]);
        let tools = json!([{"type": "function", "function": {"name": "run_shell_command", "parameters": schema("command", "string")}}]);
        let expect = json!({"command": "ls", "why": why, "timeout": timeout});
        calls(Wire::OpenaiChat, json!({"tools": tools, "messages": history}), "run_shell_command", expect);

        let tools = json!([{"functionDeclarations": [{"name": "read-file", "parametersJsonSchema": {"properties": {"absolute_path": {}}}}]}]);
        let contents = json!([{"role": "user", "parts": [{"text": "in /w/one/deeper"}]}]);
        let expect = json!({"absolute_path": "/w/one/deeper/a.txt"});
        calls(Wire::Gemini, json!({"tools": tools, "contents": contents}), "read-file", expect);
    }

    #[test]
    fn the_step_is_read_from_the_history_even_where_results_stand_twice() {
        let result = json!({"role": "tool", "tool_call_id": "x", "content": "text"});
        let said = |text: &str| json!({"role": "assistant", "content": text});
        let body = |messages: &[&Value]| {
            let tools =
                json!([{"type": "function", "function": {"name": "bash", "parameters": schema("command", "string")}}]);
            let request =
                ParsedRequest::read(Wire::OpenaiChat, None, true, 0, json!({"tools": tools, "messages": messages}));
            task().position(&request)
        };
        let (first, second) = (said("First part.\n"), said("Second part."));
        assert_eq!(body(&[]), 0);
        assert_eq!(body(&[&result]), 1);
        assert_eq!(body(&[&result, &result, &result, &result]), 2, "the turn's answer is not passed");
        assert_eq!(body(&[&result, &result, &result, &first]), 3);
        assert_eq!(body(&[&result, &result, &first, &result]), 4);
        assert_eq!(body(&[&first, &result, &second]), 5);
    }

    #[test]
    fn what_stands_aside_gets_a_title_or_what_its_schema_takes() {
        assert_eq!(said(Wire::OpenaiChat, json!({"messages": []})), Say::text("A title"));
        let schema = json!({"type": "OBJECT", "required": ["who", "n"], "properties": {
            "who": {"type": "STRING", "enum": ["user", "model"]}, "n": {"anyOf": [{"type": "integer", "minimum": 2}]}}});
        let tools = json!([{"functionDeclarations": [{"name": "read"}]}]);
        let body = json!({"tools": tools, "contents": [], "generationConfig": {"responseSchema": schema}});
        assert!(is_aside(Wire::Gemini, &body));
        assert_eq!(said(Wire::Gemini, body), Say::text(r#"{"who":"user","n":2}"#));
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z]{0,8}".prop_map(Value::from)
        ];
        let key = prop_oneof![
            Just("tools"),
            Just("function"),
            Just("name"),
            Just("parameters"),
            Just("properties"),
            Just("required"),
            Just("input_schema"),
            Just("messages"),
            Just("input"),
            Just("contents"),
            Just("text"),
            Just("format"),
            Just("schema"),
            Just("anyOf"),
            Just("type"),
            Just("enum"),
            Just("command"),
        ];
        leaf.prop_recursive(5, 40, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((key.clone(), inner), 0..5).prop_map(|pairs| pairs
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect::<Map<_, _>>()
                    .into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_a_request_holds_there_is_an_answer(wire in prop::sample::select(Wire::ALL.to_vec()), body in json_value()) {
            prop_assume!(body.is_object());
            prop_assert!(!said(wire, body).parts().is_empty());
        }
    }
}
