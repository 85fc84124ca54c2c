//! An agent that is killed while it writes: the file is the old one or the new one.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::{PROGRAM, Session};

/// Bytes of the file: `STELE_KILLED_BYTES` sets it, up to the 64 MiB that can be edited.
fn size() -> usize {
    std::env::var("STELE_KILLED_BYTES").ok().and_then(|size| size.parse().ok()).unwrap_or(20_000_000)
}

#[test]
fn a_kill_leaves_the_old_file_or_the_new_one() {
    let session = Session::new();
    let line = "0123456789abcdef\n";
    let old = format!("first\n{}", line.repeat(size() / line.len()));
    let new = old.replacen("first", "second", 1);
    let path = session.file("big.txt", &old);
    let arguments = r#"{"path":"big.txt","edits":[{"old":"first","new":"second"}]}"#;
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
        assert_eq!(left, ["big.txt"], "nothing else is left in the folder");
        wait = wait * 5 / 4 + Duration::from_millis(5);
        assert!(wait < Duration::from_secs(20), "it never ended");
    }
    assert!(olds > 0);
    writeln!(std::io::stderr(), "{olds} kills left the old file, {news} the new one").unwrap();
}
