//! `read`: windows, refusals, bounded memory.

use std::fs::File;

use serde_json::json;
use stele_core::{FileAction, Hash, ResultCard};

use crate::{PROGRAM, Session, code, tool};

#[test]
fn a_file_is_shown_with_numbers_and_its_hash() {
    let session = Session::new();
    session.file("a.txt", "one\ntwo\n\tthree");
    let output = session.call("read", json!({"path": "a.txt"}));
    assert_eq!(output.content, "1→one\n2→two\n3→\tthree");
    let file = &output.meta.files[0];
    assert_eq!(file.path, session.path().join("a.txt").display().to_string());
    assert_eq!((file.action, file.hash), (FileAction::Read, Some(Hash::of(b"one\ntwo\n\tthree"))));
    let card = tool(&session.options, "read").result_card("{}", &output.content, &output.meta);
    assert_eq!(card, ResultCard::Read { path: file.path.clone(), offset: 1, lines: 3, total: 3 });
}

#[test]
fn a_window_says_how_to_go_on() {
    let session = Session::new();
    let text: String = (1..=120).map(|number| format!("line {number}\r\n")).collect();
    session.file("a.txt", text);
    let output = session.call("read", json!({"path": "a.txt", "offset": 5, "limit": 2}));
    assert_eq!(output.content, "5→line 5\n6→line 6\n[lines 5-6 of 120; go on with offset 7; line ends are CRLF]");
    let output = session.call("read", json!({"path": "a.txt", "offset": 121}));
    assert_eq!(code(&output), "read.past_end");
    assert!(output.content.contains("120 lines"));
}

#[test]
fn what_is_no_text_is_refused_with_type_and_size() {
    let session = Session::new();
    session.file("a.png", b"\x89PNG\r\n\x1a\nrest");
    let output = session.call("read", json!({"path": "a.png"}));
    let told = "a.png is not text: PNG image, 12 bytes; it cannot be decoded";
    assert_eq!((code(&output), output.content.as_str()), ("read.binary", told));
    session.file("b", b"text\0text");
    assert_eq!(code(&session.call("read", json!({"path": "b"}))), "read.binary");
    session.file("c", "a".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
    assert_eq!(code(&session.call("read", json!({"path": "c"}))), "read.binary");
}

#[test]
fn text_in_another_encoding_is_shown_with_a_note() {
    let session = Session::new();
    session.file("a.c", b"// caf\xe9\nint x;\x1b[31m\n");
    let output = session.call("read", json!({"path": "a.c"}));
    assert_eq!(
        output.content,
        "1→// caf\u{fffd}\n2→int x;␛[31m\n[not UTF-8: bytes that are no text are shown as \u{fffd}]"
    );
}

#[test]
fn an_empty_file_and_a_folder() {
    let session = Session::new();
    session.file("d/empty", "");
    assert_eq!(session.call("read", json!({"path": "d/empty"})).content, "[empty file]");
    session.file("d/sub/x", "");
    assert_eq!(session.call("read", json!({"path": "d"})).content, "d is a folder with 2 entries:\nempty\nsub/");
}

#[test]
fn a_missing_file_names_the_nearest() {
    let session = Session::new();
    session.file("src/main.rs", "");
    session.file("src/deep/lib.rs", "");
    let output = session.call("read", json!({"path": "src/mian.rs"}));
    assert_eq!(code(&output), "file.missing");
    assert!(output.content.contains("did you mean src/main.rs?"), "{}", output.content);
    let output = session.call("read", json!({"path": "lib.rs"}));
    assert!(output.content.contains("did you mean src/deep/lib.rs?"), "{}", output.content);
}

#[test]
fn pipes_and_devices_are_refused_without_waiting() {
    let session = Session::new();
    let made = std::process::Command::new("mkfifo").arg(session.path().join("pipe")).status().unwrap();
    assert!(made.success());
    for path in ["pipe", "/dev/zero"] {
        assert_eq!(code(&session.call("read", json!({"path": path}))), "file.special");
    }
    assert_eq!(code(&session.call("write", json!({"path": "pipe", "content": "x"}))), "file.special");
}

#[test]
fn a_file_larger_than_memory_is_read_by_its_window() {
    let session = Session::new();
    // Text at the beginning and a hole behind it, larger than the address space the call may use.
    let path = session.file("big.log", "first line\n".repeat(2000));
    File::options().write(true).open(path).unwrap().set_len(128 << 20).unwrap();
    let arguments = json!({"path": "big.log", "limit": 2}).to_string();
    let output = std::process::Command::new("bash")
        .args(["-c", r#"ulimit -v 200000; exec "$@""#, "bash", PROGRAM, "read", &arguments])
        .current_dir(session.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("1→first line\n2→first line\n[lines 1-2 of 2001; go on with offset 3]"), "{text}");
    assert!(output.status.success());
}

#[test]
fn several_files_share_the_window_and_fail_one_by_one() {
    let session = Session::new();
    session.file("a.txt", "one\n");
    session.file("big.txt", "a line of some length\n".repeat(10_000));
    let output = session.call("read", json!({"paths": ["a.txt", "none.txt", "big.txt", "a.txt"]}));
    assert_eq!(output.error, None);
    assert!(output.content.starts_with(
        "==> a.txt <==\n1→one\n\n==> none.txt <==\n[no such file: none.txt]\n\n==> big.txt <==\n1→a line"
    ));
    assert!(output.content.len() <= 65 * 1024 && output.content.contains(" of 10000; go on with offset "));
    assert_eq!(output.meta.files.len(), 2);
    assert_eq!(code(&session.call("read", json!({"paths": ["no", "nothing"]}))), "file.missing");
    assert_eq!(code(&session.call("read", json!({}))), "tool.arguments");
    // What was read this way may be written.
    assert_eq!(session.call("write", json!({"path": "a.txt", "content": "two\n"})).error, None);
}

#[test]
fn a_file_that_is_still_seen_is_pointed_at_once() {
    let session = Session::new();
    let content = "some line of text\n".repeat(200);
    let path = session.file("a.txt", &content);
    let modified = path.metadata().unwrap().modified().unwrap();
    let first = session.call("read", json!({"path": "a.txt"}));
    let again = session.call("read", json!({"path": "a.txt", "offset": 10, "limit": 100}));
    assert!(
        again.content.starts_with("a.txt has not changed since it was read above (lines 1-200 of 200)"),
        "{}",
        again.content
    );
    let pointer = again.meta.read.as_ref().unwrap();
    assert!(pointer.unchanged && again.content.len() < 200 && pointer.saved > 1500, "{pointer:?}");
    let insisted = session.call("read", json!({"path": "a.txt"}));
    assert_eq!(insisted.content, first.content, "who asks again is shown it");

    // The same size and the same time, and other content.
    session.file("a.txt", content.replace("some", "same"));
    File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    let changed = session.call("read", json!({"path": "a.txt"}));
    assert!(changed.content.starts_with("1→same line"), "{}", changed.content);
    // A part that was not shown is shown.
    session.file("b.txt", &content);
    session.call("read", json!({"path": "b.txt", "limit": 50}));
    assert!(session.call("read", json!({"path": "b.txt"})).content.starts_with("1→some"));
}

#[test]
fn a_notebook_is_shown_as_cells_and_what_only_looks_like_one_as_it_is() {
    let session = Session::new();
    let json = r#"{"cells":[{"cell_type":"code","source":["x = 1\n","x"],"outputs":[{"data":{"text/plain":"1"}}]}]}"#;
    session.file("n.ipynb", json);
    let output = session.call("read", json!({"path": "n.ipynb"}));
    assert_eq!(
        output.content,
        "1→## cell 1 (code)\n2→x = 1\n3→x\n4→## output\n5→1\n6→\n\
         [a notebook of 1 cells, shown as text; edit changes the JSON behind it]"
    );
    assert_eq!(output.meta.files[0].hash, Some(Hash::of(json.as_bytes())));
    session.file("m.ipynb", "{\"cells\": 1}");
    assert_eq!(session.call("read", json!({"path": "m.ipynb"})).content, "1→{\"cells\": 1}");
}
