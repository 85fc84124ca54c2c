//! What a call names is judged as what it opens: keys in the home folder, by every tool and in every spelling.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use stele_testkit::{Say, Script};

use crate::support::{Done, Place, server};

/// What only the file holds.
const KEY: &str = "9f3ab2c4";

/// Names of the folder with the key, which lies in the home folder: the workspace lies beside it.
const FOLDERS: &[&str] = &["~/.ssh", "~//.ssh", "~/../HOME/.ssh", "~/work/../.ssh", "../.ssh", "link", "li\u{a0}nk"];

/// Calls of every tool that takes a path.
fn calls(folder: &str) -> Vec<(&'static str, Value)> {
    let key = format!("{folder}/id_rsa");
    let made = format!("{folder}/made");
    let patch = format!("*** Begin Patch\n*** Add File: {folder}/patched\n+x\n*** End Patch\n");
    let mut calls = vec![
        ("read", json!({ "path": key })),
        ("read", json!({"paths": ["a.txt", key]})),
        ("read", json!({ "path": folder })),
        ("grep", json!({"pattern": ".", "path": folder})),
        ("grep", json!({"pattern": ".", "path": key})),
        ("glob", json!({"pattern": "*", "path": folder})),
        ("ls", json!({ "path": folder })),
        ("write", json!({"path": made, "content": "x"})),
        ("edit", json!({"path": key, "edits": [{"old": KEY, "new": format!("{KEY}!")}]})),
        ("bash", json!({"command": "cat id_rsa", "cwd": folder})),
        ("bash", json!({"command": "cat < id_rsa", "cwd": folder})),
    ];
    // Names in a patch are taken as text: behind `..` this one lies in the workspace.
    if !folder.starts_with("~/..") {
        calls.push(("patch", json!({ "patch": patch })));
    }
    calls
}

/// Command lines in which the shell expands the name.
const COMMANDS: &[&str] = &[
    "cat ~/.ssh/id_rsa",
    "cat $HOME/.ssh/id_rsa",
    "cat \"${HOME}/.ssh/id_rsa\"",
    "cat ~+/../.ssh/id_rsa",
    "cat < ~/.ssh/id_rsa",
    "cd ~/.ssh && cat id_rsa",
    "dd if=$HOME/.ssh/id_rsa",
    "ls ~/.ssh",
];

fn place() -> Place {
    let place = Place::new();
    place.write("a.txt", "a\n");
    fs::create_dir(place.home()).unwrap();
    fs::write(place.home().join("config.toml"), "[tools]\noffer = [\"patch\", \"ls\"]\n").unwrap();
    fs::create_dir(place.path().join(".ssh")).unwrap();
    fs::write(place.path().join(".ssh/id_rsa"), format!("{KEY}\n")).unwrap();
    symlink(place.path().join(".ssh"), place.folder().join("link")).unwrap();
    // A name in the workspace that looks like another one leads there too.
    symlink(place.path().join(".ssh"), place.folder().join("li nk")).unwrap();
    place
}

/// Makes all calls in one step; what the model was told of each, and whether the folder is as it was.
fn run(place: &Place, flags: &[&str]) -> (Vec<String>, bool) {
    let home = place.path().file_name().unwrap().to_str().unwrap();
    let named = FOLDERS.iter().flat_map(|folder| calls(&folder.replace("HOME", home)));
    let all = named.chain(COMMANDS.iter().map(|command| ("bash", json!({ "command": command }))));
    let say = all.fold(Say::text("I look."), |say, (tool, arguments)| say.and_call(tool, &arguments));
    let server = server(Script::new([say, Say::text("Done.")]));
    let done = Done::of(place.with(&server, [&["run", "--json"], flags, &["x"]].concat()));
    let session = done.result()["session"].as_str().unwrap().to_owned();
    let shown = Done::of(place.stele(["sessions", "show", "--json", &session]));
    let results = shown.lines().into_iter().filter(|line| line["kind"] == "tool/result");
    let told: Vec<String> = results.map(|line| line.to_string()).collect();
    assert!(!told.is_empty(), "{shown:?}");
    let names: Vec<_> =
        fs::read_dir(place.path().join(".ssh")).unwrap().flatten().map(|entry| entry.file_name()).collect();
    let key = fs::read_to_string(place.path().join(".ssh/id_rsa")).unwrap();
    (told, names == ["id_rsa"] && key == format!("{KEY}\n"))
}

#[test]
fn nobody_reads_or_changes_keys_without_being_allowed_to() {
    let denied = ["--deny", "read(~/.ssh/**)", "--deny", "edit(~/.ssh/**)"];
    let allowed = ["--allow", "bash", "--allow", "read", "--allow", "edit", "--allow", "write"];
    let cases: [&[&str]; 5] = [
        &["--mode", "ask"],
        &["--mode", "edit"],
        &[&["--mode", "edit"], &denied[..]].concat(),
        &[&["--mode", "edit"], &denied[..], &allowed].concat(),
        &[&["--mode", "full"], &denied[..]].concat(),
    ];
    for flags in cases {
        let (told, untouched) = run(&place(), flags);
        assert!(untouched, "{flags:?}");
        let seen: Vec<_> = told.iter().filter(|told| told.contains(KEY) || told.contains("id_rsa has")).collect();
        assert!(seen.is_empty(), "{flags:?}: {seen:#?}");
        let ran: Vec<_> = told.iter().filter(|told| !told.contains("\"error\":")).collect();
        assert!(ran.is_empty(), "{flags:?}: {ran:#?}");
    }
    // All of them lead there.
    let (told, untouched) = run(&place(), &["--mode", "full"]);
    let seen = told.iter().filter(|told| told.contains(KEY)).count();
    assert!(seen >= FOLDERS.len() * 5 + COMMANDS.len() - 1 && !untouched, "{seen}: {told:#?}");
}

#[test]
fn a_command_in_a_folder_of_the_workspace_runs_without_a_question() {
    let place = place();
    fs::create_dir_all(place.folder().join("sub")).unwrap();
    fs::create_dir_all(place.folder().join("~")).unwrap();
    fs::write(place.folder().join("~/x"), "literal\n").unwrap();
    let say = Say::text("I look.")
        .and_call("bash", &json!({"command": "ls", "cwd": "sub"}))
        .and_call("bash", &json!({"command": "cat '~/x'"}))
        .and_call("read", &json!({"path": "./~/x"}));
    let server = server(Script::new([say, Say::text("Done.")]));
    let done = Done::of(place.with(&server, ["run", "--json", "x"]));
    assert_eq!(done.result()["refused"], json!([]), "{done:?}");
    let bodies = server.requests();
    let last = String::from_utf8(bodies.last().unwrap().body.to_vec()).unwrap();
    assert_eq!(last.matches("literal").count(), 2, "{last}");
}
