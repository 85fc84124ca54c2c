//! `write` and `edit`: what is on disk afterwards.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};
use stele_core::{FileAction, Hash, ToolOutput};

use crate::{Session, code};

fn edit(session: &Session, path: &str, old: &str, new: &str) -> stele_core::ToolOutput {
    session.call("edit", json!({"path": path, "edits": [{"old": old, "new": new}]}))
}

fn leftovers(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(".stele-")).collect()
}

#[test]
fn a_name_that_ends_with_a_slash_is_no_file() {
    let session = Session::new();
    for name in ["newf/", "a/b/"] {
        let output = session.call("write", json!({"path": name, "content": "x"}));
        assert_eq!(code(&output), "tool.value", "{}", output.content);
        assert!(output.content.contains("names a folder"), "{}", output.content);
    }
    assert_eq!(std::fs::read_dir(session.path()).unwrap().count(), 0);
    session.file("there/a", "");
    assert_eq!(code(&session.call("write", json!({"path": "there/", "content": "x"}))), "file.folder");
}

#[test]
fn links_and_modes_survive_an_edit() {
    let layout: Value = serde_json::from_str(include_str!("cases/links-modes.json")).unwrap();
    let session = Session::new();
    let root = session.path();
    for entry in layout["layout"].as_array().unwrap() {
        let text = |key: &str| entry[key].as_str();
        if let Some(file) = text("file") {
            let path = session.file(file, text("text").unwrap());
            let mode = u32::from_str_radix(text("mode").unwrap(), 8).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        } else if let Some(link) = text("link") {
            symlink(text("to").unwrap(), root.join(link)).unwrap();
        } else if let Some(link) = text("hardlink") {
            fs::hard_link(root.join(text("to").unwrap()), root.join(link)).unwrap();
        } else if let Some(folder) = text("dir") {
            fs::create_dir(root.join(folder)).unwrap();
        }
    }
    let inode = fs::metadata(root.join("h1")).unwrap().ino();
    for name in ["l2", "run.sh", "priv", "h1"] {
        assert_eq!(edit(&session, name, "a", "b").error, None, "{name}");
    }
    assert_eq!(code(&edit(&session, "loop", "a", "b")), "file.loop");
    assert_eq!(code(&session.call("write", json!({"path": "loop", "content": "b"}))), "file.loop");
    assert_eq!(session.content("real.txt"), "b\n");
    session.file("real.txt", "a\n");
    assert_eq!(edit(&session, "d/up", "a", "b").error, None);
    assert_eq!(session.content("real.txt"), "b\n");
    for link in ["l1", "l2", "d/up"] {
        assert!(fs::symlink_metadata(root.join(link)).unwrap().is_symlink(), "{link}");
    }
    let mode = |name: &str| fs::metadata(root.join(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("run.sh"), mode("priv"), mode("real.txt")), (0o755, 0o600, 0o644));
    assert_eq!((session.content("h1"), session.content("h2")), ("b\n".to_owned(), "b\n".to_owned()));
    assert_eq!(fs::metadata(root.join("h1")).unwrap().ino(), inode);
    assert_eq!(leftovers(&root), Vec::<String>::new());
}

#[test]
fn a_hard_link_is_named_as_the_reason_for_writing_in_place() {
    let session = Session::new();
    let path = session.file("a", "a long line\n");
    fs::hard_link(path, session.path().join("b")).unwrap();
    assert!(
        edit(&session, "a", "a long line", "x").content.contains("written in place, since it has other hard links")
    );
    assert_eq!(session.content("b"), "x\n");
}

#[test]
fn a_new_file_gets_its_folders_and_the_usual_mode() {
    let session = Session::new();
    let output = session.call("write", json!({"path": "src/deep/a.rs", "content": "one\ntwo\n"}));
    assert_eq!(output.content, "created src/deep/a.rs (2 lines)");
    let file = &output.meta.files[0];
    assert_eq!((file.action, file.added, file.removed), (FileAction::Created, 2, 0));
    assert_eq!(file.hash, Some(Hash::of(b"one\ntwo\n")));
    let plain = session.file("plain", "");
    let mode = |path: &Path| fs::metadata(path).unwrap().mode();
    assert_eq!(mode(&session.path().join("src/deep/a.rs")), mode(&plain));
}

#[test]
fn a_link_to_nothing_creates_what_it_names() {
    let session = Session::new();
    symlink("sub/target", session.path().join("link")).unwrap();
    fs::create_dir(session.path().join("sub")).unwrap();
    assert_eq!(session.call("write", json!({"path": "link", "content": "x"})).error, None);
    assert_eq!(session.content("sub/target"), "x");
    assert!(fs::symlink_metadata(session.path().join("link")).unwrap().is_symlink());
}

#[test]
fn only_what_was_read_and_has_not_changed_is_overwritten() {
    let session = Session::new();
    session.file("a", "one\n");
    let write = |content: &str| session.call("write", json!({"path": "a", "content": content}));
    assert_eq!(code(&write("two\n")), "write.unread");
    assert_eq!(session.content("a"), "one\n");
    assert_eq!(write("one\n").content, "a already has this content");

    session.call("read", json!({"path": "a"}));
    session.file("a", "changed by a person\n");
    let output = write("two\n");
    assert_eq!(code(&output), "edit.stale");
    assert!(output.content.contains("-changed by a person") && output.content.contains("+two"), "{}", output.content);
    assert_eq!(session.content("a"), "changed by a person\n");

    session.call("read", json!({"path": "a"}));
    assert_eq!(write("two\n").content, "wrote a (1 line)");
    assert_eq!(write("three\n").error, None, "what it wrote itself is known");
    assert_eq!(session.content("a"), "three\n");
}

#[test]
fn what_was_not_shown_is_not_overwritten() {
    let session = Session::new();
    let lines: String = (1..=60).map(|line| format!("line {line}\n")).collect();
    let write = |path: &str| session.call("write", json!({"path": path, "content": "mine\n"}));
    let read = |path: &str, offset: u64, limit: u64| {
        session.call("read", json!({"path": path, "offset": offset, "limit": limit}));
    };
    // An edit shows a few lines only.
    session.file("a", &lines);
    assert_eq!(edit(&session, "a", "line 30\n", "line thirty\n").error, None);
    let output = write("a");
    assert_eq!(code(&output), "write.unread");
    assert!(output.content.contains("its lines 1-60 were not read"), "{}", output.content);
    // Windows add up, as long as the content is the same.
    read("a", 1, 20);
    read("a", 41, 20);
    let output = write("a");
    assert!(output.content.contains("its lines 21-40 were not read"), "{}", output.content);
    read("a", 15, 30);
    assert_eq!(write("a").content, "wrote a (1 line)");
    // What is known stays known over the model's own edits, but not over those of others.
    session.file("b", &lines);
    session.call("read", json!({"path": "b"}));
    assert_eq!(edit(&session, "b", "line 1\n", "line one\n").error, None);
    assert_eq!(edit(&session, "b", "line 2\n", "line two\n").error, None);
    session.file("b", session.content("b").replace("line 60", "a person wrote this"));
    assert_eq!(edit(&session, "b", "line 3\n", "line three\n").error, None);
    assert_eq!(code(&write("b")), "write.unread");
    assert!(session.content("b").contains("a person wrote this"));
    // Nor is a line that was cut, and a whole file is one however it is sent.
    session.file("c", format!("{}\n", "x".repeat(3_000)));
    session.call("read", json!({"path": "c"}));
    assert_eq!(code(&write("c")), "write.unread");
    session.file("d", "theirs\n");
    let whole = json!({"path": "d", "input": "```\nmine\n```"});
    assert_eq!(code(&session.call("edit", whole.clone())), "write.unread");
    session.call("read", json!({"paths": ["d", "c"]}));
    assert_eq!(session.call("edit", whole).error, None);
    assert_eq!(session.content("d"), "mine\n");
    // Who sends what is there knows it.
    session.file("e", "theirs\n");
    session.call("write", json!({"path": "e", "content": "theirs\n"}));
    assert_eq!(write("e").error, None);
}

#[test]
fn an_edit_of_a_file_that_changed_says_so() {
    let session = Session::new();
    session.file("a", "one\ntwo\n");
    session.call("read", json!({"path": "a"}));
    session.file("a", "zero\none\ntwo\n");
    let output = edit(&session, "a", "two", "2");
    assert_eq!(output.error, None);
    assert!(output.content.contains("had changed since it was read"), "{}", output.content);
    assert_eq!(session.content("a"), "zero\none\n2\n");
    assert!(!edit(&session, "a", "one", "1").content.contains("had changed"));
}

#[test]
fn an_edit_shows_what_it_did_and_a_refusal_changes_nothing() {
    let session = Session::new();
    session.file("a", "one\ntwo\nthree\n");
    let output = edit(&session, "a", "two", "2");
    assert!(output.content.starts_with("edited a: +1 -1\n@@ "), "{}", output.content);
    assert!(output.content.contains("-two\n+2"), "{}", output.content);
    let diff = output.meta.files[0].diff.as_ref().unwrap();
    assert!(diff.as_str().contains("-two\n+2\n"));
    assert_eq!(code(&edit(&session, "a", "absent", "x")), "edit.not_found");
    assert_eq!(code(&session.call("edit", json!({"path": "a", "edits": []}))), "tool.arguments");
    assert_eq!(code(&edit(&session, "b", "x", "y")), "file.missing");
    assert_eq!(session.content("a"), "one\n2\nthree\n");
}

#[test]
fn a_read_only_file_is_not_replaced() {
    let session = Session::new();
    let path = session.file("a", "one\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let output = edit(&session, "a", "one", "two");
    assert_eq!(code(&output), "file.read_only");
    assert!(output.content.contains("0444"));
    assert_eq!(session.content("a"), "one\n");
}

#[test]
fn a_folder_is_no_file() {
    let session = Session::new();
    fs::create_dir(session.path().join("d")).unwrap();
    assert_eq!(code(&edit(&session, "d", "a", "b")), "file.folder");
    assert_eq!(code(&session.call("write", json!({"path": "d", "content": "x"}))), "file.folder");
}

#[test]
fn a_large_file_is_written_whole_without_a_diff() {
    let session = Session::new();
    let content = "0123456789\n".repeat(500_000);
    let output = session.call("write", json!({"path": "big", "content": content}));
    let file = &output.meta.files[0];
    assert_eq!((file.added, &file.diff), (500_000, &None));
    assert_eq!(fs::metadata(session.path().join("big")).unwrap().len(), 5_500_000);
}

#[test]
fn a_file_beyond_the_limit_is_refused_by_its_size() {
    let session = Session::new();
    let path = session.file("big", "first\n");
    // Sparse: to read it would cost nothing but time.
    let grow = |size: u64| fs::File::options().write(true).open(&path).unwrap().set_len(size).unwrap();
    let edited = |session: &Session| edit(session, "big", "first", "x");
    let written = |session: &Session| session.call("write", json!({"path": "big", "content": "x"}));
    let refused = |output: &ToolOutput, most: u64| {
        assert_eq!(code(output), "edit.too_large");
        let said = format!("has {} bytes, the most is {most}", most + 1);
        assert!(output.content.contains(&said), "{}", output.content);
    };
    grow(64 * 1024 * 1024 + 1);
    refused(&edited(&session), 64 * 1024 * 1024);
    // What is replaced whole may be larger.
    assert_eq!(code(&written(&session)), "write.unread");
    grow(256 * 1024 * 1024 + 1);
    refused(&written(&session), 256 * 1024 * 1024);
}

/// An access control list in the form of the kernel: user 12345 may read beside the owner (`acl(5)`).
const LIST: [u8; 44] = [
    2, 0, 0, 0, // version
    1, 0, 6, 0, 255, 255, 255, 255, // owner: read, write
    2, 0, 4, 0, 57, 48, 0, 0, // user 12345: read
    4, 0, 4, 0, 255, 255, 255, 255, // group: read
    16, 0, 4, 0, 255, 255, 255, 255, // mask: read
    32, 0, 0, 0, 255, 255, 255, 255, // others: nothing
];

#[test]
fn the_access_control_list_and_attributes_of_a_file_stay() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};

    let session = Session::new();
    let path = session.file("a.txt", "one\n");
    let value = |path: &Path, name: &str| {
        let mut buffer = vec![0_u8; 256];
        let length = getxattr(path, name, &mut buffer[..]).ok()?;
        Some(buffer[..length].to_vec())
    };
    let names =
        [("user.stele.origin", b"https://example.com".as_slice()), ("system.posix_acl_access", LIST.as_slice())];
    // Where the file system has no such attribute there is none to be kept.
    let set: Vec<_> =
        names.into_iter().filter(|(name, kept)| setxattr(&path, *name, kept, XattrFlags::empty()).is_ok()).collect();
    let (mode, inode) = (path.metadata().unwrap().mode(), path.metadata().unwrap().ino());
    let output = edit(&session, "a.txt", "one", "two");
    assert_eq!((output.error.clone(), session.content("a.txt")), (None, "two\n".to_owned()));
    assert!(!output.content.contains("in place"), "{}", output.content);
    assert_eq!(path.metadata().unwrap().mode(), mode);
    assert_ne!(path.metadata().unwrap().ino(), inode, "it was replaced, not written over");
    for (name, kept) in set {
        assert_eq!(value(&path, name).as_deref(), Some(kept), "{name}");
    }
    // A file without a list does not get the one that its folder gives to new files.
    let folder = session.path().join("shared");
    fs::create_dir(&folder).unwrap();
    let plain = session.file("shared/b.txt", "one\n");
    if setxattr(&folder, "system.posix_acl_default", &LIST, XattrFlags::empty()).is_ok() {
        assert_eq!(edit(&session, "shared/b.txt", "one", "two").error, None);
        assert_eq!(value(&plain, "system.posix_acl_access"), None);
    }
}
