//! Several names of one file, changed, removed and moved in one turn, and taken back.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};
use stele_testkit::{Say, Script, Server};

use crate::support::{Done, Place, server};

fn edit(path: &str, old: &str, new: &str) -> Say {
    Say::call("edit", &json!({"path": path, "edits": [{"old": old, "new": new}]}))
}

fn bash(command: &str) -> Say {
    Say::call("bash", &json!({"command": command}))
}

fn patch(body: &str) -> Say {
    Say::call("patch", &json!({"patch": format!("*** Begin Patch\n{body}*** End Patch\n")}))
}

fn undo(place: &Place, arguments: &[&str]) -> Done {
    Done::of(place.stele(["undo"].into_iter().chain(arguments.iter().copied())))
}

/// Runs a turn of these calls.
fn turn(place: &Place, calls: Vec<Say>, arguments: &[&str]) -> Server {
    let server = server(Script::new(calls.into_iter().chain([Say::text("Done.")])));
    let done = Done::of(place.with(&server, arguments.iter().copied()));
    assert_eq!(done.code, 0, "{done:?}");
    server
}

/// A folder in which `f`, `h` and `sub/k` are one file, `own` is another, and `patch` is offered.
fn place() -> Place {
    let place = Place::new();
    fs::create_dir_all(place.home()).unwrap();
    fs::write(place.home().join("config.toml"), "[tools]\noffer = [\"patch\"]\n").unwrap();
    fs::create_dir(place.folder().join("sub")).unwrap();
    place.write("f", "a\nb\n");
    place.write("own", "own\n");
    ["h", "sub/k"].iter().for_each(|name| fs::hard_link(place.folder().join("f"), place.folder().join(name)).unwrap());
    place
}

/// Every file with its content and the first name of the file that it is.
fn tree(place: &Place) -> BTreeMap<String, (String, String)> {
    let mut first: BTreeMap<u64, String> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for folder in ["", "sub/"] {
        let entries = fs::read_dir(place.folder().join(folder)).unwrap().map(|entry| entry.unwrap());
        let mut names: Vec<String> = entries
            .filter(|entry| entry.file_type().unwrap().is_file())
            .map(|entry| format!("{folder}{}", entry.file_name().into_string().unwrap()))
            .collect();
        names.sort();
        for name in names {
            let inode = fs::metadata(place.folder().join(&name)).unwrap().ino();
            let file = first.entry(inode).or_insert_with(|| name.clone()).clone();
            found.insert(name.clone(), (place.read(&name), file));
        }
    }
    found
}

fn contents(tree: &BTreeMap<String, (String, String)>) -> BTreeMap<&str, &str> {
    tree.iter().map(|(name, (content, _))| (name.as_str(), content.as_str())).collect()
}

#[test]
fn one_file_under_several_names_goes_back_as_one() {
    let write = |path: &str| {
        vec![
            Say::call("read", &json!({"path": path})),
            Say::call("write", &json!({"path": path, "content": "A\nnew\n"})),
        ]
    };
    let cases: Vec<(&str, Vec<Say>)> = vec![
        ("one edit", vec![edit("f", "a", "A")]),
        ("two names", vec![edit("f", "a", "A"), edit("h", "b", "B")]),
        ("three names", vec![edit("h", "a", "A"), edit("sub/k", "b", "B"), edit("f", "B", "C")]),
        ("a command after it", vec![edit("f", "a", "A"), bash("echo x >> h")]),
        ("under the same name", vec![edit("f", "a", "A"), bash("echo x >> f")]),
        ("a command before it", vec![bash("echo x >> sub/k"), edit("f", "a", "A")]),
        ("a write", write("h").into_iter().chain([bash("echo x >> f")]).collect()),
        ("removed", vec![edit("f", "a", "A"), bash("rm f")]),
        ("removed, the other way", vec![edit("sub/k", "a", "A"), bash("rm sub/k h")]),
        ("moved", vec![edit("f", "a", "A"), bash("mv f g; echo x >> g")]),
        ("deleted by a patch", vec![edit("f", "a", "A"), patch("*** Delete File: f\n")]),
        ("edited and deleted in one patch", vec![patch("*** Update File: h\n-a\n+A\n*** Delete File: own\n")]),
        ("moved by a patch", vec![patch("*** Update File: h\n*** Move to: h2\n"), edit("f", "a", "A")]),
        ("parted", vec![bash("sed -i s/a/A/ f"), edit("h", "b", "B")]),
        ("joined", vec![bash("ln -f f own")]),
        ("joined and edited", vec![bash("ln -f f own"), edit("own", "a", "A")]),
        ("of another file", vec![bash("ln own own-too"), bash("ln -f own h")]),
        ("of another file that is changed", vec![bash("ln -f own h"), edit("own", "own", "new")]),
        ("swapped", vec![bash("ln own own-too; mv h t; mv own h; mv t own; echo x >> h")]),
        ("edited, then of another file", vec![edit("f", "a", "A"), bash("ln -f own f"), edit("h", "b", "B")]),
        ("another name", vec![bash("ln f new"), edit("new", "a", "A"), bash("rm f")]),
    ];
    for (what, calls) in cases {
        let parted = match what {
            "parted" => Some("is a file of its own now"),
            "of another file" | "of another file that is changed" | "swapped" | "edited, then of another file" => {
                Some("is a file of its own again")
            }
            _ => None,
        };
        let place = place();
        let before = tree(&place);
        let _server = turn(&place, calls, &["run", "--mode", "full", "x"]);
        let after = tree(&place);
        for round in 0..2 {
            let done = undo(&place, &["--json"]);
            assert_eq!((done.code, contents(&tree(&place))), (0, contents(&before)), "{what}: {done:?}");
            // What a command parted stays so, and that is said.
            match parted {
                Some(said) => assert!(round > 0 || done.out.contains(said), "{what}: {done:?}"),
                None => assert_eq!(tree(&place), before, "{what}: {done:?}"),
            }
            let done = undo(&place, &["--redo", "--json"]);
            assert_eq!((done.code, contents(&tree(&place))), (0, contents(&after)), "{what}: {done:?}");
        }
        place.assert_clean();
    }
}

#[test]
fn a_turn_of_one_file_keeps_nobody_from_the_turns_before() {
    let place = place();
    let before = tree(&place);
    let _first = turn(&place, vec![edit("own", "own", "new")], &["run", "--mode", "full", "x"]);
    let calls = vec![edit("f", "a", "A"), bash("echo x >> h")];
    let _second = turn(&place, calls, &["run", "--continue", "--mode", "full", "y"]);
    let listed = undo(&place, &["--list", "--json"]);
    let names: Vec<&str> = listed.lines()[1]["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file: &Value| file["path"].as_str().unwrap().rsplit('/').next().unwrap())
        .map(|name| {
            if name == "f" {
                "f"
            } else if name == "h" {
                "h"
            } else {
                "k"
            }
        })
        .collect();
    assert_eq!(names, ["f", "h", "k"], "{listed:?}");
    assert_eq!((undo(&place, &[]).code, undo(&place, &[]).code), (0, 0));
    assert_eq!(tree(&place), before);
    place.assert_clean();
}

#[test]
fn names_that_are_elsewhere_are_told_of() {
    let place = place();
    fs::hard_link(place.folder().join("own"), place.path().join("own-too")).unwrap();
    let _server = turn(&place, vec![edit("own", "own", "new"), edit("f", "a", "A")], &["run", "--mode", "full", "x"]);
    let done = undo(&place, &["--json"]);
    let report = &done.lines()[0];
    let told: Vec<&str> = report["not_covered"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert!(matches!(told.as_slice(), [one] if one.starts_with("1 more name ") && one.contains("/own")), "{done:?}");
    assert_eq!((done.code, place.read("own").as_str()), (0, "own\n"));
    assert_eq!(fs::read_to_string(place.path().join("own-too")).unwrap(), "own\n");
}

#[test]
fn an_undo_of_many_pairs_that_is_killed_is_finished() {
    const PAIRS: usize = 150;
    let place = Place::new();
    for at in 0..PAIRS {
        place.write(&format!("f{at}"), "old\n");
        fs::hard_link(place.folder().join(format!("f{at}")), place.folder().join(format!("h{at}"))).unwrap();
    }
    let call = bash("for f in f*; do echo new > $f; done; rm f7 h8");
    let _server = turn(&place, vec![call], &["run", "--mode", "full", "x"]);
    let count = |text: &str| {
        let is = |name: String| fs::read_to_string(place.folder().join(name)).is_ok_and(|it| it == text);
        (0..PAIRS).filter(|at| is(format!("f{at}")) && is(format!("h{at}"))).count()
    };
    for (arguments, to, all) in [(&["undo"][..], "old\n", PAIRS), (&["undo", "--redo"], "new\n", PAIRS - 2)] {
        let mut command = place.stele(arguments.iter().copied());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while count(to) == 0 && child.try_wait().unwrap().is_none() {}
        let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::KILL);
        child.wait().unwrap();
        // What writes a file in place ends what it began, and has the session's lock until then.
        let mut done = std::iter::repeat_with(|| Done::of(place.stele(arguments.iter().copied())));
        let done = done.find(|done| !done.err.contains("log.locked")).unwrap();
        assert_eq!((done.code, count(to)), (0, all), "{done:?}");
        let inode = |name: &str, at: usize| fs::metadata(place.folder().join(format!("{name}{at}"))).unwrap().ino();
        let same =
            (0..PAIRS).filter(|at| to == "old\n" || ![7, 8].contains(at)).all(|at| inode("f", at) == inode("h", at));
        assert!(same, "they stay one file each");
    }
    place.assert_clean();
}
