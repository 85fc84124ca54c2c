//! What every tool owes: order, schemas, size, arguments, cards, subjects.

use std::path::Path;

use serde_json::{Value, json};
use stele_core::{CallCard, Subject, ToolErrorClass};
use stele_tools::builtin;

use crate::{Session, options, tool};

/// Tools and system text share 8 KiB of every request; this is the tools' part.
const MENU_BYTES: usize = 5_500;

#[test]
fn the_menu_is_fixed_and_small() {
    let tools = builtin(&options());
    let menu: Vec<String> = tools
        .iter()
        .map(|tool| {
            let spec = tool.spec();
            assert!(spec.guidance.len() <= 150);
            format!("{}\n{}\n{}\n", spec.name, spec.description, spec.parameters.get())
        })
        .collect();
    let menu = menu.join("\n");
    assert!(menu.len() <= MENU_BYTES, "{} bytes", menu.len());
    insta::assert_snapshot!("menu", menu);
}

#[test]
fn schemas_are_the_same_bytes_each_time() {
    let once: Vec<String> = builtin(&options()).iter().map(|tool| tool.spec().parameters.to_string()).collect();
    let again: Vec<String> = builtin(&options()).iter().map(|tool| tool.spec().parameters.to_string()).collect();
    assert_eq!(once, again);
    for schema in once {
        for word in ["$schema", "$ref", "title", "format", "anyOf", "null", "minimum", "default"] {
            assert!(!schema.contains(&format!("\"{word}\"")), "{word} in {schema}");
        }
    }
}

#[test]
fn wrong_arguments_name_the_field_and_show_the_shape() {
    let edit = tool(&options(), "edit");
    let error = edit.subjects(r#"{"path":"a","edits":[{"old":"x"}]}"#).unwrap_err();
    assert_eq!(error.class, ToolErrorClass::Argument);
    insta::assert_snapshot!(error.message, @r#"edit: edits[0].new is missing; expected {"path": string, "edits"?: [{"old": string, "new": string, "all"?: boolean, "near_line"?: integer}], "input"?: string}"#);
    let error = tool(&options(), "bash").subjects(r#"{"command":5}"#).unwrap_err();
    assert!(error.message.contains("command must be a string, not integer"), "{}", error.message);
    let error = tool(&options(), "bash").subjects(r#"{"command":"x","timeout":601}"#).unwrap_err();
    assert!(error.message.contains("601") && error.message.contains("600"), "{}", error.message);
    assert!(tool(&options(), "read").subjects("{\"path\": \"a").unwrap_err().message.contains("not valid JSON"));
}

#[test]
fn a_field_that_is_given_twice_is_refused_by_its_name() {
    for (name, arguments, field) in [
        ("write", r#"{"path":"a","path":"b","content":""}"#, "path"),
        ("edit", r#"{"path":"a","edits":[{"old":"x","new":"y","new":"z"}]}"#, "new"),
        ("edit", r#"{"path":"a","edits":[],"edits":[{"old":"x","new":"y"}]}"#, "edits"),
        ("bash", r#"{"command":"ls","c\u006fmmand":"rm x"}"#, "command"),
    ] {
        let error = tool(&options(), name).subjects(arguments).unwrap_err();
        assert_eq!((error.code.as_str(), error.class), ("tool.arguments", ToolErrorClass::Argument), "{arguments}");
        let said = format!("{name}: the field `{field}` is given twice in one object");
        assert!(error.message.starts_with(&said) && error.message.contains("give it once"), "{}", error.message);
    }
}

#[test]
fn fields_nobody_asked_for_are_ignored() {
    let read = tool(&options(), "read");
    assert_eq!(read.subjects(r#"{"path":"a","reason":"curious","limit":null}"#).unwrap(), [Subject::Read("a".into())]);
}

#[test]
fn slips_that_leave_no_doubt_cost_no_round_trip() {
    let session = Session::new();
    let edit = |arguments: Value| {
        session.file("a", "one\ntwo\none\n");
        let output = session.call("edit", arguments);
        assert_eq!(output.error, None, "{}", output.content);
        session.content("a")
    };
    let pair = json!({"old": "two", "new": "2"});
    for arguments in [
        json!({"path": "a", "edits": json!([pair]).to_string()}),
        json!({"path": "a", "edits": pair}),
        json!({"path": "a", "edits": pair.to_string()}),
        json!({"path": "a", "old": "two", "new": "2"}),
        json!({"file_path": "a", "old_string": "two", "new_string": "2", "replace_all": "false"}),
        json!({"path": "a", "edits": [{"old_string": "two", "new_string": "2"}]}),
        json!({"path": "a", "edits": [{"search": "two", "replace": "2", "near_line": "1"}]}),
    ] {
        assert_eq!(edit(arguments.clone()), "one\n2\none\n", "{arguments}");
    }
    assert_eq!(edit(json!({"path": "a", "edits": [{"old": "one", "new": "1", "near_line": 3.0}]})), "one\ntwo\n1\n");
    assert_eq!(edit(json!({"path": "a", "old": "one", "new": "1", "all": "true"})), "1\ntwo\n1\n");
    // A text stays a text where one is asked for.
    assert_eq!(edit(json!({"path": "a", "old": "two", "new": "[2]"})), "one\n[2]\none\n");
    let read = |arguments| session.call("read", arguments).content;
    assert!(read(json!({"file_path": "a", "limit": "1"})).starts_with("1→one\n["));
    assert!(read(json!({"paths": "a"})).contains("3→one"));
    assert!(read(json!({"paths": r#"["a", "b"]"#})).contains("==> b <=="));
    let todo = session.call("todo", json!({"items": ["a", {"text": "b"}, {"content": "c", "status": "completed"}]}));
    assert_eq!(todo.content, "1 done, 0 in progress, 2 pending");

    let wrong = |name: &str, arguments: &str| tool(&options(), name).subjects(arguments).unwrap_err();
    let error = wrong("read", r#"{"path":"a","file_path":"b"}"#);
    assert!(error.message.contains("`path` and `file_path` mean the same, and differ"), "{}", error.message);
    let error = wrong("todo", r#"{"items":["x",{"text":"A","content":"B"}]}"#);
    assert!(error.message.contains("`text` and `content` mean the same, and differ"), "{}", error.message);
    let same = session.call("todo", json!({"items": [{"text": "A", "content": "A"}]}));
    assert_eq!(same.content, "0 done, 0 in progress, 1 pending");
    for (arguments, said) in [("{}", "path is missing"), (r#"{"path":""}"#, "path is empty")] {
        let error = wrong("read", arguments);
        assert!(error.message.contains(said) && error.message.contains(r#"expected {"path"?"#), "{}", error.message);
    }
    for arguments in [r#"{"path":"a","limit":"two"}"#, r#"{"path":"a","limit":1.5}"#, r#"{"paths":"a","limit":"-1"}"#] {
        assert_eq!(wrong("read", arguments).code, "tool.arguments", "{arguments}");
    }
    assert_eq!(wrong("edit", r#"{"path":"a","edits":"not json"}"#).code, "tool.arguments");
}

#[test]
fn subjects_are_what_the_model_wrote() {
    let subjects = |name: &str, arguments: &str| tool(&options(), name).subjects(arguments).unwrap();
    assert_eq!(subjects("write", r#"{"path":"../a","content":""}"#), [Subject::Write("../a".into())]);
    assert_eq!(subjects("bash", r#"{"command":"ls; rm x"}"#), [Subject::Command("ls; rm x".into())]);
    assert_eq!(subjects("grep", r#"{"pattern":"x"}"#), [Subject::Read(".".into())]);
    assert_eq!(subjects("glob", r#"{"pattern":"/etc/*.conf"}"#), [Subject::Read("/etc".into())]);
    assert_eq!(subjects("todo", r#"{"items":[]}"#), []);
}

#[test]
fn cards_are_short_and_their_places_absolute() {
    let title =
        |name: &str, arguments: &str| tool(&options(), name).call_card(arguments, Path::new("/w")).title().to_owned();
    assert_eq!(title("read", r#"{"path":"src/a.rs","offset":5,"limit":4}"#), "Read src/a.rs (5 - 8)");
    assert_eq!(title("read", r#"{"path":"/w/src/a.rs"}"#), "Read src/a.rs");
    assert_eq!(title("edit", r#"{"path":"a","edits":[]}"#), "Edit a");
    assert_eq!(title("write", r#"{"path":"a","content":"x"}"#), "Write a");
    assert_eq!(title("bash", r#"{"command":"ls\nls"}"#), "ls…");
    assert_eq!(title("bash", r#"{"command":"ls","description":"List"}"#), "List");
    assert_eq!(title("grep", r#"{"pattern":"x","path":"src"}"#), "Grep x in src");
    assert_eq!(title("todo", r#"{"items":[{"text":"a","status":"done"}]}"#), "Todo 1/1");
    assert_eq!(title("read", r#"{"path":7}"#), "read");
    let CallCard::Diff { files, locations, .. } =
        tool(&options(), "edit").call_card(r#"{"path":"a","edits":[{"old":"x","new":"y"}]}"#, Path::new("/w"))
    else {
        panic!("an edit is shown as a diff");
    };
    assert_eq!((files[0].path.as_str(), locations[0].line), ("/w/a", 1));
}

#[test]
fn every_code_is_documented() {
    let (code, page) = (include_str!("../../src/error.rs"), include_str!("../../../../docs/tools.md"));
    let body = code.split("fn code(").nth(1).unwrap().split("fn class(").next().unwrap();
    let codes: Vec<&str> = body.split('"').skip(1).step_by(2).collect();
    assert!(codes.len() > 15);
    for code in codes {
        assert!(page.contains(&format!("| `{code}` |")), "{code} is not in docs/tools.md");
    }
}
