//! An agent that is killed while it writes: the file is the old one or the new one.
//!
//! `STELE_KILLED_BYTES` sets the size of the file: up to 200 MB, and 60 MB where it is edited.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::json;
use stele_testkit::{Kills, Left, remove_leftovers};

use crate::{PROGRAM, Session};

const LINE: &str = "0123456789abcdef\n";

/// Bytes of the file.
fn size() -> usize {
    let set = std::env::var("STELE_KILLED_BYTES").ok().and_then(|size| size.parse().ok());
    set.unwrap_or(4_000_000).min(200_000_000)
}

/// Kills the calls while they make `old` the content of `file`, which they reach by some name, to `new`; in the end the
/// folder holds these names and no others.
fn kill(session: &Session, calls: &[&str], input: Option<&Path>, contents: (Option<&str>, &str), names: &[&str]) {
    let (old, new) = contents;
    let path = session.path().join("file");
    let names_there = || {
        let mut names: Vec<String> =
            fs::read_dir(session.path()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let start = || {
        match old {
            // The inode stays.
            Some(old) => fs::write(&path, old).unwrap(),
            None => drop(fs::remove_file(&path)),
        }
        let input = input.map_or_else(Stdio::null, |input| fs::File::open(input).unwrap().into());
        let mut agent = Command::new(PROGRAM);
        agent.args(calls).current_dir(session.path()).stdin(input).stdout(Stdio::null()).spawn().unwrap()
    };
    let kills = Kills::of(3, start, |wait| {
        nobody_works_on(path.to_str().unwrap());
        let found = fs::read(&path).ok();
        let is = |content: Option<&str>| found.as_deref() == content.map(str::as_bytes);
        remove_leftovers(&session.path(), new.as_bytes()).unwrap();
        let expected: Vec<&str> = names.iter().copied().filter(|name| *name != "file" || found.is_some()).collect();
        assert_eq!(names_there(), expected, "killed after {wait:?}");
        match (is(old), is(Some(new))) {
            (true, false) => Left::Old,
            (false, true) => Left::New,
            _ => panic!("{:?} bytes that are neither, killed after {wait:?}", found.map(|found| found.len())),
        }
    });
    let told = format!("{calls:.60?}, {} bytes: {kills}\n", new.len());
    std::io::stderr().write_all(told.as_bytes()).unwrap();
}

/// Waits until no process names a file in its arguments.
fn nobody_works_on(path: &str) {
    let works = |entry: fs::DirEntry| {
        let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|argument| argument == path.as_bytes())
    };
    while fs::read_dir("/proc").unwrap().flatten().any(works) {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Old and new content, and the calls that make the one the other: an edit of the first line, or all of it written anew.
fn contents(size: usize) -> (String, String) {
    let old = format!("first\n{}", LINE.repeat(size / LINE.len()));
    let new = old.replacen("first", "second", 1);
    (old, new)
}

/// A program behind a link: both stay what they are.
fn behind_a_link(session: &Session) {
    let path = session.file("file", "");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    symlink("file", session.path().join("link")).unwrap();
}

fn is_behind_a_link(session: &Session) {
    assert!(session.path().join("link").symlink_metadata().unwrap().is_symlink());
    assert_eq!(session.path().join("file").metadata().unwrap().permissions().mode() & 0o777, 0o755);
}

/// A file with two names.
fn with_two_names(session: &Session) -> u64 {
    let path = session.file("file", "");
    fs::hard_link(&path, session.path().join("other")).unwrap();
    path.metadata().unwrap().ino()
}

fn has_two_names(session: &Session, inode: u64) {
    for name in ["file", "other"] {
        assert_eq!(session.path().join(name).metadata().unwrap().ino(), inode);
    }
}

/// The arguments of calls of `write`, in a file outside of the folder.
fn write_arguments(path: &str, contents: &[&str]) -> tempfile::NamedTempFile {
    let mut arguments = tempfile::NamedTempFile::new().unwrap();
    for content in contents {
        writeln!(arguments, "{}", json!({"path": path, "content": content})).unwrap();
    }
    arguments
}

#[test]
fn a_kill_in_an_edit_leaves_the_old_file_or_the_new_one() {
    let (old, new) = contents(size().min(60_000_000));
    let edit = |name| json!({"path": name, "edits": [{"old": "first", "new": "second"}]}).to_string();
    let session = Session::new();
    behind_a_link(&session);
    kill(&session, &["edit", &edit("link")], None, (Some(&old), &new), &["file", "link"]);
    is_behind_a_link(&session);
    let session = Session::new();
    let inode = with_two_names(&session);
    kill(&session, &["edit", &edit("file")], None, (Some(&old), &new), &["file", "other"]);
    has_two_names(&session, inode);
}

#[test]
fn a_kill_in_a_write_leaves_no_file_or_the_whole_one() {
    let (_, new) = contents(size());
    let arguments = write_arguments("file", &[&new]);
    kill(&Session::new(), &["write", "-"], Some(arguments.path()), (None, &new), &["file"]);
}

#[test]
fn a_kill_in_a_write_over_a_file_leaves_the_old_one_or_the_new_one() {
    let (old, new) = contents(size());
    // The first one changes nothing: who sends what is there knows it.
    let calls = ["write", "-", "write", "-"];
    let session = Session::new();
    behind_a_link(&session);
    let arguments = write_arguments("link", &[&old, &new]);
    kill(&session, &calls, Some(arguments.path()), (Some(&old), &new), &["file", "link"]);
    is_behind_a_link(&session);
    let session = Session::new();
    let inode = with_two_names(&session);
    let arguments = write_arguments("file", &[&old, &new]);
    kill(&session, &calls, Some(arguments.path()), (Some(&old), &new), &["file", "other"]);
    has_two_names(&session, inode);
}
