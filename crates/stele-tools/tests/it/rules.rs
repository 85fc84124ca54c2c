//! The rules for context that hold of tools (`docs/rules.md`).

use std::fs::File;

use serde_json::json;

use crate::Session;

#[test]
fn ctx_08_a_result_is_reused_only_while_the_file_is_the_one_that_was_shown() {
    let session = Session::new();
    let content = "some line of text\n".repeat(200);
    let path = session.file("a.txt", &content);
    let modified = path.metadata().unwrap().modified().unwrap();
    let shown = || {
        let output = session.call("read", json!({"path": "a.txt"}));
        let pointed = output.content.starts_with("a.txt has not changed since");
        assert_eq!(output.meta.read.as_ref().unwrap().unchanged, pointed);
        if pointed { "a pointer".to_owned() } else { output.content.lines().next().unwrap().to_owned() }
    };
    let back_in_time = || File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    assert_eq!(shown(), "1→some line of text");

    // Written over: the same size, the same time, the same inode.
    session.file("a.txt", content.replace("some", "same"));
    back_in_time();
    assert_eq!(shown(), "1→same line of text");

    // Another file in its place: the same size and the same time.
    let other = session.file("b.txt", content.replace("some", "sane"));
    std::fs::rename(other, &path).unwrap();
    back_in_time();
    assert_eq!(shown(), "1→sane line of text");

    // One byte, far behind what is seen first.
    let mut late = content.replace("some", "sane").into_bytes();
    let last = late.len() - 2;
    late[last] = b'!';
    session.file("a.txt", &late);
    back_in_time();
    assert_eq!(shown(), "1→sane line of text");

    // One byte of the lines that were shown, far into a large file.
    let large = |word: &str| format!("{}{}{word}\n", "some line of text\n".repeat(8_000), "the end\n".repeat(199));
    let end = || session.call("read", json!({"path": "large.txt", "offset": 8_001}));
    let path_of_large = session.file("large.txt", large("one"));
    let modified_large = path_of_large.metadata().unwrap().modified().unwrap();
    assert!(end().content.contains("8200→one"));
    session.file("large.txt", large("two"));
    File::options().write(true).open(&path_of_large).unwrap().set_modified(modified_large).unwrap();
    assert!(end().content.contains("8200→two"));
    assert!(end().meta.read.unwrap().unchanged);

    // Nothing but its time: that is the same file, and the saving is there.
    session.file("a.txt", &late);
    assert_eq!(shown(), "a pointer");

    // A file that is gone is no file that has not changed.
    std::fs::remove_file(&path).unwrap();
    assert!(session.call("read", json!({"path": "a.txt"})).error.is_some());
}

#[test]
fn ctx_08_an_equal_call_is_no_reason_to_reuse_a_result() {
    let session = Session::new();
    let count = || session.call("bash", json!({"command": "echo x >> log; wc -l < log"})).content;
    let (first, second) = (count(), count());
    assert!(first.starts_with('1') && second.starts_with('2'), "{first:?} {second:?}");
    session.file("a.txt", "needle\n");
    let search = || session.call("grep", json!({"pattern": "needle"})).content;
    let before = search();
    session.file("b.txt", "needle\n");
    let after = search();
    assert!(!before.contains("b.txt") && after.contains("b.txt"), "{before} {after}");
}
