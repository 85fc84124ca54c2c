//! Names that look alike: the exact one wins, else exactly one that looks the same.

use serde_json::{Value, json};
use stele_core::ToolOutput;

use crate::{Session, code};

fn ask(session: &Session, case: &Value) -> ToolOutput {
    session.call("read", json!({"path": case["ask"]}))
}

#[test]
fn look_alike_names() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("cases/names.json")).unwrap();
    for case in &cases {
        let session = Session::new();
        for name in case["files"].as_array().unwrap() {
            let name = name.as_str().unwrap();
            session.file(name, format!("content of {name}"));
        }
        let asked = case["ask"].as_str().unwrap();
        match case["id"].as_str().unwrap() {
            "a" | "d" | "e" => {
                let there = case["files"][0].as_str().unwrap();
                let output = ask(&session, case);
                assert!(output.content.contains(&format!("content of {there}")), "{}", output.content);
                assert!(output.content.contains(&format!("opened {there}")), "the name is reported");
                let edit = json!({"path": asked, "edits": [{"old": "content", "new": "CONTENT"}]});
                let output = session.call("edit", edit);
                assert!(output.content.contains(&format!("opened {there}")), "{}", output.content);
                assert_eq!(session.content(there), format!("CONTENT of {there}"));
            }
            "b" | "c" => {
                let output = ask(&session, case);
                assert_eq!(output.content, format!("1→content of {asked}"));
            }
            "f" => {
                let output = ask(&session, case);
                assert_eq!(code(&output), "file.ambiguous_name");
                assert!(output.content.contains("\\u{a0}") && output.content.contains("\\u{202f}"));
            }
            "g" => {
                assert_eq!(session.call("write", json!({"path": asked, "content": "x"})).error, None);
                let names: Vec<_> =
                    std::fs::read_dir(session.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
                assert_eq!(names, [asked]);
            }
            other => panic!("a case that is not tested: {other}"),
        }
    }
}

#[test]
fn a_folder_may_look_alike_too() {
    let session = Session::new();
    session.file("my\u{a0}dir/a.txt", "x");
    assert!(session.call("read", json!({"path": "my dir/a.txt"})).content.starts_with("1→x\n"));
}

#[test]
fn a_write_makes_no_twin_of_a_name() {
    let session = Session::new();
    for (there, asked) in [("caf\u{e9}", "cafe\u{301}"), ("my\u{a0}dir/a", "my dir/a"), ("it\u{2019}s", "it's")] {
        session.file(there, "theirs\n");
        let write = || session.call("write", json!({"path": asked, "content": "mine\n"}));
        assert_eq!(code(&write()), "write.unread", "{asked}");
        session.call("read", json!({"path": asked}));
        let output = write();
        assert_eq!(output.error, None, "{}", output.content);
        assert!(output.content.contains("wrote over"), "{}", output.content);
        assert_eq!(session.content(there), "mine\n");
        assert!(!session.path().join(asked).exists(), "{asked}");
    }
    // A new file in a folder that is there under such a name.
    assert_eq!(session.call("write", json!({"path": "my dir/b/c", "content": "x"})).error, None);
    assert_eq!(session.content("my\u{a0}dir/b/c"), "x");
    assert!(!session.path().join("my dir").exists());
    session.file("a\u{a0}b", "");
    session.file("a\u{202f}b", "");
    assert_eq!(code(&session.call("write", json!({"path": "a b", "content": "x"}))), "file.ambiguous_name");
}

#[test]
fn home_is_expanded() {
    let mut session = Session::new();
    session.file("home/a.txt", "x");
    session.options.environment = vec![("HOME".into(), session.path().join("home").into())];
    session.tools = stele_tools::builtin(&session.options);
    assert_eq!(session.call("read", json!({"path": "~/a.txt"})).content, "1→x");
}

#[test]
fn a_link_to_a_name_that_is_not_there_leads_to_the_one_that_looks_the_same() {
    let session = Session::new();
    session.file("x y", "");
    std::os::unix::fs::symlink("x\u{a0}y", session.path().join("a")).unwrap();
    let output = session.call("edit", json!({"path": "a", "edits": [{"old": "", "new": "mine\n"}]}));
    assert_eq!(output.error, None, "{}", output.content);
    assert!(output.content.contains("[opened x y, the only name"), "{}", output.content);
    assert_eq!(session.content("x y"), "mine\n");
    assert!(session.call("read", json!({"path": "a"})).content.contains("mine"));
    assert_eq!(session.call("write", json!({"path": "a", "content": "more\n"})).error, None);
    assert_eq!(session.content("x y"), "more\n");
    assert!(!session.path().join("x\u{a0}y").exists());
}

#[test]
fn nothing_is_made_above_a_folder_that_does_not_exist() {
    let session = Session::new();
    session.file("f", "x");
    for (tool, more) in [("write", json!({"content": "y"})), ("edit", json!({"edits": [{"old": "", "new": "y"}]}))] {
        for path in ["new/../made", "f/../made"] {
            let mut arguments = more.clone();
            arguments["path"] = path.into();
            assert_eq!(code(&session.call(tool, arguments)), "file.io", "{tool} {path}");
        }
    }
    assert!(!session.path().join("made").exists());
}
