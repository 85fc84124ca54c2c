//! `patch`, and the dialects that `edit` understands.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;
use stele_core::{FileAction, Subject};
use stele_tools::{Offer, Options};

use crate::{Session, code, options, tool};

fn session() -> Session {
    Session::with(Options { offer: vec![Offer::Patch], ..options() })
}

const PATCH: &str = "*** Begin Patch
*** Update File: a.txt
-one
+two
*** Add File: new/deep/b.txt
+made
*** Update File: c.txt
*** Move to: moved/c.txt
*** Delete File: d.txt
*** End Patch
";

#[test]
fn many_files_change_in_one_go() {
    let session = session();
    session.file("a.txt", "zero\none\n");
    session.file("c.txt", "c\n");
    fs::set_permissions(session.path().join("c.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    session.file("d.txt", "d\nd\n");
    let output = session.call("patch", json!({"patch": PATCH}));
    assert_eq!(output.error, None, "{}", output.content);
    assert_eq!(session.content("a.txt"), "zero\ntwo\n");
    assert_eq!(session.content("new/deep/b.txt"), "made\n");
    assert_eq!(session.content("moved/c.txt"), "c\n");
    assert!(!session.path().join("c.txt").exists() && !session.path().join("d.txt").exists());
    let actions: Vec<FileAction> = output.meta.files.iter().map(|file| file.action).collect();
    assert_eq!(
        actions,
        [FileAction::Changed, FileAction::Created, FileAction::Deleted, FileAction::Changed, FileAction::Deleted]
    );
    assert!(
        output.content.starts_with("edited a.txt: +1 -1\ncreated new/deep/b.txt: +1 -0\nmoved c.txt to moved/c.txt"),
        "{}",
        output.content
    );
    assert!(output.content.contains("-one\n+two"), "{}", output.content);
}

#[test]
fn nothing_is_changed_unless_all_is() {
    let session = session();
    session.file("a.txt", "zero\none\n");
    session.file("c.txt", "c\n");
    // A file is missing: the plan fails.
    let output = session.call("patch", json!({"patch": PATCH}));
    assert_eq!(code(&output), "edit.missing");
    // The plan is good, and the disk refuses late: what was done is taken back.
    session.file("d.txt", "d\n");
    session.file("moved", "in the way\n");
    let output = session.call("patch", json!({"patch": PATCH}));
    assert!(output.error.is_some(), "{}", output.content);
    assert_eq!(session.content("a.txt"), "zero\none\n");
    assert_eq!(session.content("c.txt"), "c\n");
    assert_eq!(session.content("d.txt"), "d\n");
    assert!(!session.path().join("new").exists(), "folders that were made are gone too");
}

#[test]
fn what_fails_halfway_is_taken_back() {
    let session = session();
    session.file("a.txt", "zero\none\n");
    session.file("c.txt", "c\n");
    session.file("d.txt", "d\n");
    // Seen as missing when the plan is made, and impossible to create.
    fs::create_dir(session.path().join("moved")).unwrap();
    symlink("/proc/none/such", session.path().join("moved/c.txt")).unwrap();
    let output = session.call("patch", json!({"patch": PATCH}));
    assert!(output.error.is_some(), "{}", output.content);
    assert_eq!(session.content("a.txt"), "zero\none\n");
    assert_eq!((session.content("c.txt"), session.content("d.txt")), ("c\n".to_owned(), "d\n".to_owned()));
    assert!(!session.path().join("new").exists());
}

#[test]
fn a_patch_names_its_files_and_stays_in_the_folder() {
    let session = session();
    let subjects = tool(&session.options, "patch").subjects(&json!({"patch": PATCH}).to_string()).unwrap();
    let expect = ["a.txt", "new/deep/b.txt", "c.txt", "moved/c.txt", "d.txt"];
    assert_eq!(subjects, expect.map(|path| Subject::Write(path.to_owned())));
    let error = tool(&session.options, "patch").subjects(r#"{"patch":"what?"}"#).unwrap_err();
    assert_eq!(error.code, "edit.unparsed");
    for path in ["../x.txt", "/etc/x.txt"] {
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n");
        assert_eq!(code(&session.call("patch", json!({"patch": patch}))), "edit.outside", "{path}");
    }
    let inside = session.path().join("e.txt");
    let patch = format!("*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch\n", inside.display());
    assert_eq!(session.call("patch", json!({"patch": patch})).error, None);
    assert_eq!(session.content("e.txt"), "x\n");
}

#[test]
fn git_diffs_change_modes() {
    let session = session();
    session.file("run.sh", "echo one\n");
    let patch = "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-echo one\n+echo two\n";
    let output = session.call("patch", json!({"patch": patch}));
    assert_eq!(output.error, None, "{}", output.content);
    let mode = session.path().join("run.sh").metadata().unwrap().permissions().mode();
    assert_eq!((session.content("run.sh").as_str(), mode & 0o777), ("echo two\n", 0o755));
}

#[test]
fn edit_takes_other_dialects() {
    let session = Session::new();
    session.file("a.txt", "one\ntwo\nthree\n");
    let edit = |input: &str| session.call("edit", json!({"path": "a.txt", "input": input}));
    assert_eq!(edit("<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE\n").error, None);
    assert_eq!(session.content("a.txt"), "one\n2\nthree\n");
    assert_eq!(edit("@@ -1,3 +1,3 @@\n-one\n+1\n 2\n three\n").error, None);
    assert_eq!(edit("s/three/3/").error, None);
    assert_eq!(session.content("a.txt"), "1\n2\n3\n");
    assert_eq!(code(&edit("")), "edit.unparsed");
    assert_eq!(session.content("a.txt"), "1\n2\n3\n");
    let missing = session.call("edit", json!({"path": "b.txt", "input": "s/a/b/"}));
    assert_eq!(code(&missing), "file.missing");
    assert!(missing.content.contains("did you mean a.txt?"), "{}", missing.content);
    assert_eq!(code(&session.call("edit", json!({"path": "a.txt"}))), "tool.arguments");
    let both = json!({"path": "a.txt", "input": "s/1/2/", "edits": [{"old": "1", "new": "2"}]});
    assert_eq!(code(&session.call("edit", both)), "tool.value");
}

fn envelope(body: &str) -> serde_json::Value {
    json!({"patch": format!("*** Begin Patch\n{body}*** End Patch\n")})
}

#[test]
fn a_file_with_several_names_gets_all_its_changes() {
    for other in ["lf", "hf", "self/f", "self/lf"] {
        let session = session();
        let file = session.file("f", "a\nb\n");
        symlink("f", session.path().join("lf")).unwrap();
        symlink(".", session.path().join("self")).unwrap();
        fs::hard_link(&file, session.path().join("hf")).unwrap();
        let update = format!("*** Update File: f\n@@\n-a\n+x\n*** Update File: {other}\n@@\n-b\n+y\n");
        let output = session.call("patch", envelope(&update));
        assert_eq!(output.error, None, "{}", output.content);
        assert_eq!(session.content("f"), "x\ny\n", "{other}");
        assert_eq!(session.content("hf"), "x\ny\n", "{other}");
        assert!(output.content.starts_with("edited f: +2 -2\n"), "{}", output.content);
        assert!(output.content.contains(&format!("[{other} and f are one file;")), "{}", output.content);
        assert_eq!((output.meta.files.len(), output.changed.len()), (1, 1));
        assert!(session.path().join("lf").is_symlink());
        for clash in [
            "*** Update File: f\n@@\n-x\n+z\n*** Delete File: self/f\n",
            "*** Update File: f\n@@\n-x\n+z\n*** Update File: hf\n*** Move to: g\n",
            "*** Add File: n\n+x\n*** Add File: self/n\n+y\n",
        ] {
            assert_eq!(code(&session.call("patch", envelope(clash))), "edit.overlap", "{clash}");
        }
        assert_eq!(session.content("f"), "x\ny\n");
        assert!(!session.path().join("n").exists());
    }
}

#[test]
fn a_link_is_deleted_and_moved_itself() {
    let session = session();
    session.file("f", "a\n");
    session.file("real/in", "b\n");
    let link = |to: &str, name: &str| symlink(to, session.path().join(name)).unwrap();
    link("f", "lf");
    link("nowhere", "dangling");
    link("real", "folder");
    link("f", "stays");
    link("../f", "real/inner");
    let output = session.call(
        "patch",
        envelope(
            "*** Delete File: lf\n*** Update File: dangling\n*** Move to: deep/moved\n*** Update File: folder\n*** Move to: other\n",
        ),
    );
    assert_eq!(output.error, None, "{}", output.content);
    assert_eq!((session.content("f").as_str(), session.content("real/in").as_str()), ("a\n", "b\n"));
    let at = |name: &str| fs::read_link(session.path().join(name)).ok();
    assert_eq!((at("lf"), at("dangling"), at("folder")), (None, None, None));
    assert_eq!((at("deep/moved"), at("other")), (Some("nowhere".into()), Some("real".into())));
    assert!(output.content.contains("deleted lf: +0 -1\n[lf was a symbolic link;"), "{}", output.content);
    // The log knows a link as a link, so that undo makes it one again.
    let seen: Vec<(bool, bool)> = output
        .changed
        .iter()
        .map(|change| {
            let link = |version: &Option<stele_core::FileVersion>| version.is_some_and(|it| it.mode >> 12 == 0o12);
            (link(&change.before), link(&change.after))
        })
        .collect();
    assert_eq!(seen, [(true, false), (false, true), (true, false), (false, true), (true, false)]);

    let changed = "*** Update File: stays\n*** Move to: g\n@@\n-a\n+x\n";
    assert_eq!(code(&session.call("patch", envelope(changed))), "edit.link");
    // Permission was asked for what the link leads to, which is not in the same folder.
    assert_eq!(code(&session.call("patch", envelope("*** Delete File: other/inner\n"))), "edit.link");
    assert_eq!(session.call("patch", envelope("*** Delete File: real/inner\n")).error, None);
    assert!(at("real/inner").is_none() && at("stays").is_some());
    assert_eq!(session.content("f"), "a\n");
}

#[test]
fn a_link_that_was_moved_comes_back_when_a_later_file_fails() {
    let session = session();
    session.file("f", "a\n");
    session.file("blocked", "b\n");
    symlink("f", session.path().join("lf")).unwrap();
    fs::create_dir(session.path().join("made")).unwrap();
    symlink("/proc/none/such", session.path().join("made/b")).unwrap();
    let patch = "*** Update File: lf\n*** Move to: deep/lf\n*** Update File: blocked\n*** Move to: made/b\n";
    assert!(session.call("patch", envelope(patch)).error.is_some());
    assert_eq!(fs::read_link(session.path().join("lf")).unwrap().to_str(), Some("f"));
    assert!(!session.path().join("deep").exists());
}

#[test]
fn a_folder_takes_the_place_of_a_file_in_any_order() {
    for sections in
        [["*** Delete File: x", "*** Add File: x/y\n+new"], ["*** Add File: x/y\n+new", "*** Delete File: x"]]
    {
        let session = session();
        session.file("x", "old\n");
        let patch = format!("*** Begin Patch\n{}\n*** End Patch\n", sections.join("\n"));
        let output = session.call("patch", json!({"patch": patch}));
        assert_eq!(output.error, None, "{}", output.content);
        assert_eq!(session.content("x/y"), "new\n");
        assert_eq!(output.changed.len(), 2);
    }
    let session = session();
    session.file("x", "old\n");
    let patch = "*** Begin Patch\n*** Add File: x/y\n+new\n*** End Patch\n";
    assert_eq!(code(&session.call("patch", json!({"patch": patch}))), "file.io");
    assert_eq!(session.content("x"), "old\n");
}

const CHAIN: &str = "diff --git a/x b/y\nrename from x\nrename to y\ndiff --git a/y b/z\nrename from y\nrename to z\n";

#[test]
fn files_move_up_in_a_row() {
    let session = session();
    session.file("x", "one\n");
    session.file("y", "two\n");
    let output = session.call("patch", json!({"patch": CHAIN}));
    assert_eq!(output.error, None, "{}", output.content);
    assert_eq!((session.content("y"), session.content("z")), ("one\n".to_owned(), "two\n".to_owned()));
    assert!(!session.path().join("x").exists());
    // Each name is in the log once, with what stood there before.
    let mut changed: Vec<(String, bool, bool)> = output
        .changed
        .iter()
        .map(|change| {
            (change.path.rsplit('/').next().unwrap().to_owned(), change.before.is_some(), change.after.is_some())
        })
        .collect();
    changed.sort();
    let name = |name: &str, before, after| (name.to_owned(), before, after);
    assert_eq!(changed, [name("x", true, false), name("y", true, true), name("z", false, true)]);
}

#[test]
fn a_name_that_is_taken_is_not_moved_to() {
    // Two that change places, and one whose other name would get what is moved over it.
    let swap = CHAIN.replace("b/z", "b/x").replace("rename to z", "rename to x");
    for (patch, linked) in [(swap.as_str(), false), (CHAIN, true)] {
        let session = session();
        session.file("x", "one\n");
        session.file("y", "two\n");
        if linked {
            fs::hard_link(session.path().join("y"), session.path().join("other")).unwrap();
        }
        assert_eq!(code(&session.call("patch", json!({"patch": patch}))), "edit.exists", "{patch}");
        assert_eq!((session.content("x"), session.content("y")), ("one\n".to_owned(), "two\n".to_owned()));
    }
}

#[test]
fn no_name_is_made_beside_one_that_looks_the_same() {
    for (there, made) in
        [("caf\u{e9}", "cafe\u{301}"), ("a\u{a0}b", "a b"), ("it\u{2019}s", "it's"), ("d\u{e9}/f", "de\u{301}/g")]
    {
        let session = session();
        session.file("z", "z\n");
        fs::create_dir_all(session.path().join(there).parent().unwrap()).unwrap();
        session.file(there, "there\n");
        for body in [format!("*** Add File: {made}\n+x\n"), format!("*** Update File: z\n*** Move to: {made}\n")] {
            let output = session.call("patch", json!({"patch": format!("*** Begin Patch\n{body}*** End Patch\n")}));
            assert_eq!(code(&output), "edit.exists", "{made}: {}", output.content);
            assert!(output.content.contains("looks the same") && output.content.contains("\\u{"), "{}", output.content);
        }
        assert!(!session.path().join(made).exists() && session.content("z") == "z\n");
    }
    let session = session();
    session.file("caf\u{e9}", "a\n");
    // The other name goes, or there are two already.
    let rename = "*** Begin Patch\n*** Update File: caf\u{e9}\n*** Move to: cafe\u{301}\n*** End Patch\n";
    let output = session.call("patch", json!({"patch": rename}));
    assert_eq!(output.error, None, "{}", output.content);
    session.file("a\u{a0}b", "");
    session.file("a\u{2009}b", "");
    let add = "*** Begin Patch\n*** Add File: a b\n+x\n*** End Patch\n";
    assert_eq!(code(&session.call("patch", json!({"patch": add}))), "file.ambiguous_name");
}
