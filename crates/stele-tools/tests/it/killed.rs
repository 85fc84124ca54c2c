//! An agent that is killed while it writes: the file is the old one or the new one.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::{PROGRAM, Session};

/// Bytes of the file: `STELE_KILLED_BYTES` sets it, up to the 64 MiB that can be edited (`write` takes more).
fn size() -> usize {
    std::env::var("STELE_KILLED_BYTES").ok().and_then(|size| size.parse().ok()).unwrap_or(20_000_000)
}

#[test]
fn a_kill_leaves_the_old_file_or_the_new_one() {
    let session = Session::new();
    let line = "0123456789abcdef\n";
    let old = format!("first\n{}", line.repeat(size() / line.len()));
    let new = old.replacen("first", "second", 1);
    // A program behind a link: both stay what they are.
    let path = session.file("big.txt", &old);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("big.txt", session.path().join("link")).unwrap();
    let arguments = r#"{"path":"link","edits":[{"old":"first","new":"second"}]}"#;
    let (mut olds, mut news) = (0, 0);
    let mut wait = Duration::from_millis(5);
    while news == 0 {
        std::fs::write(&path, &old).unwrap();
        let mut agent = Command::new(PROGRAM)
            .args(["edit", arguments])
            .current_dir(session.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Not a wait for something to be done: the moment of the kill is what is varied.
        thread::sleep(wait);
        agent.kill().unwrap();
        agent.wait().unwrap();
        let found = std::fs::read_to_string(&path).unwrap();
        match (found == old, found == new) {
            (true, false) => olds += 1,
            (false, true) => news += 1,
            _ => panic!("{} bytes that are neither, killed after {wait:?}", found.len()),
        }
        let left: Vec<_> =
            std::fs::read_dir(session.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        let mut left = left;
        left.sort();
        assert_eq!(left, ["big.txt", "link"], "nothing else is left in the folder");
        assert!(session.path().join("link").symlink_metadata().unwrap().is_symlink());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        wait = wait * 5 / 4 + Duration::from_millis(5);
        assert!(wait < Duration::from_secs(20), "it never ended");
    }
    assert!(olds > 0);
    writeln!(std::io::stderr(), "{olds} kills left the old file, {news} the new one").unwrap();
}

#[test]
fn a_kill_in_a_write_leaves_no_file_or_the_whole_one() {
    let session = Session::new();
    let content = "0123456789abcdef".repeat(size() / 16);
    let arguments = session.file("arguments", serde_json::json!({"path": "new.txt", "content": content}).to_string());
    let path = session.path().join("new.txt");
    let mut wait = Duration::from_millis(5);
    let mut none = 0;
    while !path.exists() {
        let mut agent = Command::new(PROGRAM)
            .args(["write", "-"])
            .current_dir(session.path())
            .stdin(std::fs::File::open(&arguments).unwrap())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Not a wait for something to be done: the moment of the kill is what is varied.
        thread::sleep(wait);
        agent.kill().unwrap();
        agent.wait().unwrap();
        none += usize::from(!path.exists());
        let mut left: Vec<_> =
            std::fs::read_dir(session.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        left.retain(|name| name != "arguments" && name != "new.txt");
        assert!(left.is_empty(), "{left:?} is left, killed after {wait:?}");
        wait = wait * 5 / 4 + Duration::from_millis(5);
        assert!(wait < Duration::from_secs(60), "it never ended");
    }
    assert!(std::fs::read_to_string(&path).unwrap() == content, "the file is not whole");
    writeln!(std::io::stderr(), "{none} kills left no file, one the whole").unwrap();
    assert!(none > 0);
}

/// Waits until no process names a file in its arguments.
fn nobody_works_on(path: &str) {
    let works = |entry: std::fs::DirEntry| {
        let arguments = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|argument| argument == path.as_bytes())
    };
    while std::fs::read_dir("/proc").unwrap().flatten().any(works) {
        thread::yield_now();
    }
}

#[test]
fn a_kill_leaves_a_file_with_several_names_old_or_new() {
    let session = Session::new();
    let line = "0123456789abcdef\n";
    let old = format!("first\n{}", line.repeat(size() / line.len()));
    let new = old.replacen("first", "second", 1);
    let path = session.file("one", &old);
    let other = session.path().join("other");
    std::fs::hard_link(&path, &other).unwrap();
    let arguments = r#"{"path":"one","edits":[{"old":"first","new":"second"}]}"#;
    let (mut olds, mut news) = (0, 0);
    let mut wait = Duration::from_millis(5);
    // Goes on until it was killed some times after the writing began, which only the outcome tells.
    while news < 3 {
        std::fs::write(&path, &old).unwrap();
        let mut agent = Command::new(PROGRAM)
            .args(["edit", arguments])
            .current_dir(session.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(wait);
        agent.kill().unwrap();
        agent.wait().unwrap();
        nobody_works_on(path.to_str().unwrap());
        let found = std::fs::read_to_string(&other).unwrap();
        match (found == old, found == new) {
            (true, false) => olds += 1,
            (false, true) => news += 1,
            _ => panic!("{} bytes that are neither, killed after {wait:?}", found.len()),
        }
        wait = wait * 9 / 8 + Duration::from_millis(5);
        assert!(wait < Duration::from_secs(60), "it never ended");
    }
    writeln!(std::io::stderr(), "{olds} kills left the old content, {news} the new").unwrap();
    assert!(olds > 0);
}
