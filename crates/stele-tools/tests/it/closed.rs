//! Folders that not everything may be done in, by a person who is not root.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::PROGRAM;

/// Somebody without rights of their own.
const NOBODY: u32 = 65_534;

/// A folder of a person who is not root, and the program where they can run it.
struct Person {
    folder: TempDir,
    program: PathBuf,
}

impl Person {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (program, work) = (folder.path().join("stele-tool"), folder.path().join("work"));
        // By a process of its own: a child that another test starts meanwhile would keep the copy open for writing.
        assert!(Command::new("cp").arg(PROGRAM).arg(&program).status().unwrap().success());
        fs::create_dir(&work).unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        Self { folder, program }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("work").join(name)
    }

    fn is_root() -> bool {
        Path::new("/proc/self").metadata().unwrap().uid() == 0
    }

    /// Gives it all to them, but for the mode of the folder.
    fn own(&self, mode: u32) {
        for entry in fs::read_dir(self.path("")).unwrap().flatten().filter(|_| Self::is_root()) {
            chown(entry.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        if Self::is_root() {
            chown(self.path(""), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        fs::set_permissions(self.path(""), Permissions::from_mode(mode)).unwrap();
    }

    fn call(&self, tool: &str, arguments: &Value) -> String {
        let mut command = Command::new(&self.program);
        command.args([tool, &arguments.to_string()]).current_dir(self.folder.path()).env_clear();
        if Self::is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().unwrap();
        fs::set_permissions(self.path(""), Permissions::from_mode(0o755)).unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    }
}

#[test]
fn a_change_in_a_folder_that_cannot_be_read_is_a_change() {
    let edit = json!({"path": "work/f", "edits": [{"old": "one", "new": "two"}]});
    let write = json!({"path": "work/new", "content": "two\n"});
    for (tool, arguments, name) in [("edit", edit, "f"), ("write", write, "new")] {
        let person = Person::new();
        fs::write(person.path("f"), "one\n").unwrap();
        person.own(0o333);
        let told = person.call(tool, &arguments);
        assert_eq!(fs::read_to_string(person.path(name)).unwrap(), "two\n", "{told}");
        assert!(told.starts_with("edited ") || told.starts_with("created "), "{told}");
        assert!(!told.contains("in place") && !told.contains("meanwhile"), "{told}");
    }
}

#[test]
fn in_a_folder_that_cannot_be_written_a_file_is_written_in_place_and_none_is_made() {
    let person = Person::new();
    fs::write(person.path("f"), "one\n").unwrap();
    let inode = person.path("f").metadata().unwrap().ino();
    person.own(0o555);
    let told = person.call("edit", &json!({"path": "work/f", "edits": [{"old": "one", "new": "two"}]}));
    assert!(told.contains("[written in place, since its folder cannot be written]"), "{told}");
    assert_eq!(fs::read_to_string(person.path("f")).unwrap(), "two\n");
    assert_eq!(person.path("f").metadata().unwrap().ino(), inode);
    person.own(0o555);
    let told = person.call("write", &json!({"path": "work/new", "content": "x"}));
    assert!(told.contains("cannot write work/new: its folder cannot be written"), "{told}");
    assert!(!person.path("new").exists());
}

#[test]
fn what_cannot_be_looked_at_is_not_taken_for_nothing() {
    let person = Person::new();
    fs::write(person.path("f"), "one\n").unwrap();
    person.own(0o600);
    for (tool, arguments) in [
        ("write", json!({"path": "work/f", "content": "two\n"})),
        ("edit", json!({"path": "work/f", "edits": [{"old": "", "new": "two"}]})),
        ("read", json!({"path": "work/f"})),
    ] {
        let told = person.call(tool, &arguments);
        person.own(0o600);
        // Without the right to look into the folder nobody knows what is there.
        assert!(told.starts_with("cannot open work/f: Permission denied"), "{tool}: {told}");
    }
    fs::set_permissions(person.path(""), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(fs::read_to_string(person.path("f")).unwrap(), "one\n");
}
