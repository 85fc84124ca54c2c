//! Somebody else changes a file between the plan of a call and its writing: theirs is never lost.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use stele_core::{FileChange, Hash};
use stele_tools::{Offer, Options};

use crate::{Session, code, options};

/// A session in which somebody does something to `f` when a call is about to change it, so many times; and what the log
/// was told.
fn with_another(times: usize, act: fn(&Path)) -> (Session, Arc<Mutex<Vec<FileChange>>>) {
    let session = Session::with(Options { offer: vec![Offer::Patch], ..options() });
    let (path, told, left) = (session.path().join("f"), Arc::<Mutex<Vec<_>>>::default(), Mutex::new(times));
    let log = Arc::clone(&told);
    *session.ahead.lock().unwrap() = Arc::new(move |changes| {
        log.lock().unwrap().extend(changes);
        let mut left = left.lock().unwrap();
        if *left > 0 {
            *left -= 1;
            act(&path);
        }
        Ok(())
    });
    (session, told)
}

fn append(path: &Path) {
    fs::File::options().append(true).open(path).unwrap().write_all(b"theirs\n").unwrap();
}

/// As an editor saves.
fn replace(path: &Path) {
    fs::write(path.with_extension("new"), "theirs\none\n").unwrap();
    fs::rename(path.with_extension("new"), path).unwrap();
}

fn edit() -> Value {
    json!({"path": "f", "edits": [{"old": "one", "new": "1"}]})
}

#[test]
fn an_edit_is_worked_out_again_on_what_is_there() {
    for (act, expect) in [(append as fn(&Path), "1\ntheirs\n"), (replace, "theirs\n1\n")] {
        let (session, told) = with_another(1, act);
        session.file("f", "one\n");
        let output = session.call("edit", edit());
        assert_eq!((output.error, session.content("f").as_str()), (None, expect));
        assert!(output.content.contains("somebody else changed it meanwhile"), "{}", output.content);
        // The log has the bytes that were replaced.
        let told = told.lock().unwrap();
        let replaced = expect.replace('1', "one");
        assert_eq!(told.last().unwrap().before.unwrap().hash, Hash::of(replaced.as_bytes()));
        assert!(told.last().unwrap().kept.is_some() && told.len() == 2);
        assert_eq!(output.changed[0].before, told.last().unwrap().before);
    }
}

#[test]
fn a_file_that_is_written_in_place_is_no_exception() {
    let (session, _) = with_another(1, append);
    let file = session.file("f", "one\n");
    fs::hard_link(&file, session.path().join("other")).unwrap();
    let output = session.call("edit", edit());
    assert!(output.content.contains("written in place"), "{}", output.content);
    assert_eq!(session.content("other"), "1\ntheirs\n");
}

#[test]
fn whoever_is_always_slower_gives_up_and_changes_nothing() {
    for link in [false, true] {
        let (session, told) = with_another(usize::MAX, append);
        let file = session.file("f", "one\n");
        if link {
            fs::hard_link(&file, session.path().join("other")).unwrap();
        }
        let output = session.call("edit", edit());
        assert_eq!(code(&output), "edit.stale");
        // Each try is announced under every name.
        let names = 1 + usize::from(link);
        let tries = told.lock().unwrap().len() / names;
        assert_eq!(session.content("f"), format!("one\n{}", "theirs\n".repeat(tries)));
        // An undo has nothing to do with it.
        assert!(output.changed.iter().all(|change| change.before == change.after) && output.changed.len() == names);
    }
}

#[test]
fn a_write_over_what_changed_meanwhile_is_refused() {
    let (session, _) = with_another(1, append);
    session.file("f", "one\n");
    session.call("read", json!({"path": "f"}));
    let output = session.call("write", json!({"path": "f", "content": "mine\n"}));
    assert_eq!(code(&output), "edit.stale");
    assert!(output.content.contains("-theirs"), "{}", output.content);
    assert_eq!(session.content("f"), "one\ntheirs\n");
    assert_eq!(output.changed[0].before, output.changed[0].after);
}

#[test]
fn a_file_that_comes_meanwhile_is_not_written_over() {
    let (session, _) = with_another(1, |path| fs::write(path, "theirs\n").unwrap());
    let output = session.call("write", json!({"path": "f", "content": "mine\n"}));
    assert_eq!((code(&output), session.content("f").as_str()), ("write.unread", "theirs\n"));
    assert_eq!(fs::read_dir(session.path()).unwrap().count(), 1);
}

#[test]
fn a_patch_is_worked_out_again_as_a_whole() {
    let (session, told) = with_another(1, replace);
    session.file("a", "a\n");
    session.file("f", "one\n");
    let patch = "*** Begin Patch\n*** Update File: a\n-a\n+b\n*** Update File: f\n-one\n+1\n*** Delete File: c\n*** End Patch\n";
    session.file("c", "c\n");
    let output = session.call("patch", json!({"patch": patch}));
    assert_eq!(output.error, None, "{}", output.content);
    assert_eq!((session.content("a").as_str(), session.content("f").as_str()), ("b\n", "theirs\n1\n"));
    assert!(!session.path().join("c").exists());
    let told = told.lock().unwrap();
    let last = told.iter().rfind(|change| change.path.ends_with("/f")).unwrap();
    assert_eq!(last.before.unwrap().hash, Hash::of(b"theirs\none\n"));
}
