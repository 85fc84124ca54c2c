//! The difference that `stele edit` and `stele patch` report is the change: `git apply` makes the same files of it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use stele_testkit::Terminal;

use crate::support::Place;

/// Name, whether it can be executed, and content of every file.
type Files = BTreeMap<String, (bool, Vec<u8>)>;

fn files(folder: &Path) -> Files {
    let mut found = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            found.insert(name, (fs::metadata(&path).unwrap().mode() & 0o100 != 0, fs::read(&path).unwrap()));
        }
    }
    found
}

fn write(folder: &Path, files: &Files) {
    for (name, (executable, bytes)) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(if *executable { 0o755 } else { 0o644 })).unwrap();
    }
}

/// What `git apply` makes of the files by a difference.
fn applied(place: &Place, before: &Files, difference: &[u8]) -> Files {
    let (folder, patch) = (place.path().join("other"), place.path().join("difference"));
    fs::create_dir(&folder).unwrap();
    write(&folder, before);
    fs::write(&patch, difference).unwrap();
    let git = Command::new("git")
        .args(["-c", "core.autocrlf=false", "apply", "--whitespace=nowarn"])
        .arg(&patch)
        .current_dir(&folder)
        .env("GIT_CEILING_DIRECTORIES", place.path())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(git.status.success(), "{git:?}\n{}", String::from_utf8_lossy(difference));
    files(&folder)
}

fn run(place: &Place, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = place.stele(arguments.iter().copied()).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

/// Does it, and holds the report against what became of the files.
#[track_caller]
fn check(before: &Files, arguments: &[&str], input: &[u8]) -> Files {
    let place = Place::new();
    write(&place.folder(), before);
    let done = run(&place, &[arguments, &["--json", "--dry-run"]].concat(), input);
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    let done = run(&place, arguments, input);
    assert!(done.status.success(), "{report}\n{}", String::from_utf8_lossy(input));
    let after = files(&place.folder());
    assert_eq!(applied(&place, before, &done.stdout), after);
    // The report in JSON says the same, in text or in bytes.
    let said: Vec<u8> = report["files"].as_array().unwrap().iter().flat_map(exact).collect();
    assert_eq!(said, done.stdout, "{report}");
    after
}

fn exact(file: &Value) -> Vec<u8> {
    use base64::Engine as _;
    match file["diff_base64"].as_str() {
        Some(bytes) => base64::prelude::BASE64_STANDARD.decode(bytes).unwrap(),
        None => file["diff"].as_str().unwrap().to_owned().into_bytes(),
    }
}

/// Lines that printing could spoil.
const LINES: [&[u8]; 10] = [
    b"plain",
    b"",
    b"caf\xe9 foo",
    b"\x1b[31mred\x07",
    b"one\rtwo",
    "left \u{202e} right".as_bytes(),
    "\u{201c}quoted\u{201d}\u{a0}".as_bytes(),
    b"-- not a header",
    b"@@ -1 +1 @@",
    b"trailing  \t",
];

fn content(lines: &[(usize, bool)], closed: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, (line, crlf)) in lines.iter().enumerate() {
        bytes.extend_from_slice(LINES[*line]);
        if closed || at + 1 < lines.len() {
            bytes.extend_from_slice(if *crlf { b"\r\n" } else { b"\n" });
        }
    }
    bytes
}

fn any_content() -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec((0..LINES.len(), any::<bool>()), 0..8), any::<bool>())
        .prop_map(|(lines, closed)| content(&lines, closed))
}

const NAMES: [&str; 6] = ["f.txt", "a b", "caf\u{e9}", "cafe\u{301} \"x\"\\", "deep/er/f", "left\u{202e}right"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_difference_of_an_edit_is_the_edit(
        around in (any_content(), any_content()),
        new in select(vec!["", "new", "new\n", "a\nb\n", "tab\tend", "\u{1b}[0m"]),
        name in select(NAMES.to_vec()),
        executable in any::<bool>(),
    ) {
        let (mut bytes, end) = around;
        bytes.extend_from_slice(b"<the place>");
        bytes.extend_from_slice(&end);
        let before = Files::from([(name.to_owned(), (executable, bytes))]);
        let input = json!({ "edits": [{ "old": "<the place>", "new": new }] }).to_string();
        let after = check(&before, &["edit", name], input.as_bytes());
        prop_assert_ne!(after, before);
    }

    #[test]
    fn the_difference_of_a_patch_is_the_patch(
        there in prop::collection::vec((any_content(), any::<bool>(), 0..5_usize), NAMES.len()),
        added in any_content().prop_filter("text", |it| std::str::from_utf8(it).is_ok() && !it.contains(&b'\r')),
    ) {
        let mut before = Files::new();
        let mut patch = String::from("*** Begin Patch\n*** Add File: new/one\n");
        String::from_utf8(added).unwrap().lines().for_each(|line| patch.push_str(&format!("+{line}\n")));
        for (name, (mut bytes, executable, what)) in NAMES.iter().zip(there) {
            bytes.splice(..0, *b"<the place>\n");
            before.insert((*name).to_owned(), (executable, bytes));
            let hunk = "@@\n-<the place>\n+another\n";
            patch.push_str(&match what {
                0 => format!("*** Delete File: {name}\n"),
                1 => format!("*** Update File: {name}\n{hunk}"),
                2 => format!("*** Update File: {name}\n*** Move to: moved/{name}\n"),
                3 => format!("*** Update File: {name}\n*** Move to: moved/{name}\n{hunk}"),
                _ => String::new(),
            });
        }
        patch.push_str("*** End Patch\n");
        check(&before, &["patch"], patch.as_bytes());
    }
}

#[test]
fn modes_and_empty_files_are_part_of_the_difference() {
    let before = Files::from([
        ("run".to_owned(), (false, b"x\n".to_vec())),
        ("data".to_owned(), (true, b"x\n".to_vec())),
        ("empty".to_owned(), (false, Vec::new())),
    ]);
    let patch = "diff --git a/run b/run\nold mode 100644\nnew mode 100755\n\
                 diff --git a/data b/moved\nold mode 100755\nnew mode 100644\nrename from data\nrename to moved\n\
                 diff --git a/empty b/empty\ndeleted file mode 100644\n\
                 diff --git a/new b/new\nnew file mode 100755\n\
                 diff --git a/lines b/lines\nnew file mode 100644\n--- /dev/null\n+++ b/lines\n@@ -0,0 +1 @@\n+a\n";
    let after = check(&before, &["patch"], patch.as_bytes());
    let names: Vec<(&str, bool)> = after.iter().map(|(name, (executable, _))| (name.as_str(), *executable)).collect();
    assert_eq!(names, [("lines", false), ("moved", false), ("new", true), ("run", true)]);
}

#[test]
fn a_rename_chain_as_git_writes_it() {
    let before =
        Files::from([("x".to_owned(), (false, b"one\n".to_vec())), ("y".to_owned(), (true, b"two\n".to_vec()))]);
    let patch = "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n\
                 diff --git a/y b/z\nsimilarity index 50%\nrename from y\nrename to z\n--- a/y\n+++ b/z\n@@ -1 +1 @@\n-two\n+2\n";
    let after = check(&before, &["patch"], patch.as_bytes());
    let right = Files::from([("y".to_owned(), (false, b"one\n".to_vec())), ("z".to_owned(), (true, b"2\n".to_vec()))]);
    assert_eq!(after, right);
}

#[test]
fn a_link_is_followed_in_the_difference_too() {
    let place = Place::new();
    place.write("f", "a\n");
    std::os::unix::fs::symlink("f", place.folder().join("link")).unwrap();
    let before = Files::from([("f".to_owned(), (false, b"a\n".to_vec()))]);
    let done = run(&place, &["edit", "link"], b"s/a/b/");
    let after = applied(&place, &before, &done.stdout);
    assert_eq!(after["f"].1, b"b\n");
}

#[test]
fn a_screen_is_not_acted_on() {
    let place = Place::new();
    place.write("f", "\x1b[31mred\u{202e}\na\n");
    let mut command = place.stele([]);
    let binary = command.get_program().to_owned();
    command = {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo s/a/b/ | \"$0\" edit f"]).arg(binary).current_dir(place.folder());
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell
    };
    let (status, seen) = Terminal::start(command).unwrap().end().unwrap();
    assert!(status.success() && seen.contains("+b") && seen.contains(" red"), "{seen}");
    assert!(!seen.contains("\x1b[31m") && !seen.contains('\u{202e}'), "{seen:?}");
}
