//! Patches over many files.

use std::collections::BTreeMap;

use stele_edit::{FileChange, Options, Refusal, plan};

fn files(files: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    files.iter().map(|(path, content)| ((*path).to_owned(), content.as_bytes().to_vec())).collect()
}

fn planned(there: &[(&str, &str)], patch: &str) -> Result<Vec<FileChange>, Refusal> {
    let there = files(there);
    plan(patch, &mut |path| there.get(path).cloned())
}

/// The files after a patch, or the code of its refusal.
fn after(there: &[(&str, &str)], patch: &str) -> Result<Vec<(String, String)>, &'static str> {
    let changes = planned(there, patch).map_err(|refusal| refusal.code)?;
    let mut files = files(there);
    for change in changes {
        files.remove(change.moved_from.as_deref().unwrap_or(&change.path));
        if let Some(content) = change.after {
            files.insert(change.path, content);
        }
    }
    Ok(files.into_iter().map(|(path, content)| (path, String::from_utf8(content).unwrap())).collect())
}

fn expected(files: &[(&str, &str)]) -> Result<Vec<(String, String)>, &'static str> {
    Ok(files.iter().map(|(path, content)| ((*path).to_owned(), (*content).to_owned())).collect())
}

fn envelope(body: &str) -> String {
    format!("*** Begin Patch\n{body}*** End Patch\n")
}

#[test]
fn add_update_move_delete() {
    let there = [("a.py", "x = 1\ny = 2\n"), ("b.py", "b\n"), ("c.py", "c\n")];
    let patch = envelope(
        "*** Add File: new/n.py\n+n = 1\n+\n+m = 2\n*** Update File: a.py\n*** Move to: moved/a.py\n@@\n-x = 1\n+x = 3\n*** Delete File: b.py\n*** Update File: c.py\n*** Move to: d.py\n",
    );
    assert_eq!(
        after(&there, &patch),
        expected(&[("d.py", "c\n"), ("moved/a.py", "x = 3\ny = 2\n"), ("new/n.py", "n = 1\n\nm = 2\n")])
    );
    let changes = planned(&there, &patch).unwrap();
    assert_eq!(changes[1].moved_from.as_deref(), Some("a.py"));
    assert_eq!((changes[2].before.as_deref(), changes[2].after.as_deref()), (Some(&b"b\n"[..]), None));
    assert_eq!(changes[0].before, None);
}

#[test]
fn all_or_nothing() {
    let there = [("a", "1\n2\n3\n"), ("b", "1\n")];
    let patch = "*** Update File: a\n@@\n-1\n+one\n*** Update File: b\n@@\n-2\n+two\n";
    assert_eq!(after(&there, &envelope(patch)), Err("edit.not_found"));
    let refusal = planned(&there, &envelope(patch)).unwrap_err();
    assert!(refusal.message.starts_with("b: "), "{}", refusal.message);
    // Two sections for one file are found in the same original.
    let patch = "*** Update File: a\n@@\n-1\n+one\n*** Update File: ./a\n@@\n-3\n+three\n";
    assert_eq!(after(&there, &envelope(patch)), expected(&[("a", "one\n2\nthree\n"), ("b", "1\n")]));
    let patch = "*** Update File: a\n@@\n-1\n+one\n*** Update File: a\n@@\n-1\n+uno\n";
    assert_eq!(after(&there, &envelope(patch)), Err("edit.overlap"));
    let patch = "*** Update File: a\n@@\n-1\n+one\n*** Delete File: a\n";
    assert_eq!(after(&there, &envelope(patch)), Err("edit.overlap"));
}

#[test]
fn what_is_there_and_what_is_not() {
    let there = [("a", "1\n"), ("b", "2\n")];
    for (body, code) in [
        ("*** Add File: a\n+x\n", "edit.exists"),
        ("*** Update File: c\n@@\n-1\n+x\n", "edit.missing"),
        ("*** Delete File: c\n", "edit.missing"),
        ("*** Update File: a\n*** Move to: b\n", "edit.exists"),
        ("*** Update File: a\n*** Move to: c\n*** Update File: b\n*** Move to: c\n", "edit.exists"),
        ("*** Update File: a\n*** Move to: c\n*** Add File: c\n+x\n", "edit.exists"),
        ("*** Update File: a\n", "edit.no_change"),
        ("*** Update File: ../a\n@@\n-1\n+x\n", "edit.outside"),
        ("*** Update File: a\n*** Move to: /tmp/x\n", "edit.outside"),
        ("*** Add File: /etc/x\n+x\n", "edit.outside"),
    ] {
        assert_eq!(after(&there, &envelope(body)), Err(code), "{body}");
    }
    let options = Options { root: Some("/home/me/x".into()), ..Options::default() };
    let there = files(&there);
    let patch = envelope("*** Update File: /home/me/x/a\n@@\n-1\n+x\n");
    assert_eq!(options.plan(&patch, &mut |path| there.get(path).cloned()).unwrap()[0].path, "a");
}

#[test]
fn diffs_over_many_files() {
    let there = [("a.rs", "one\ntwo\n"), ("old.rs", "x\n"), ("gone.rs", "g\nh\n"), ("s.sh", "echo\n")];
    let patch = "diff --git a/a.rs b/a.rs\nindex 1..2 100644\n--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\ndiff --git a/old.rs b/new.rs\nsimilarity index 50%\nrename from old.rs\nrename to new.rs\n--- a/old.rs\n+++ b/new.rs\n@@ -1 +1 @@\n-x\n+y\ndiff --git a/gone.rs b/gone.rs\ndeleted file mode 100644\n--- a/gone.rs\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-g\n-h\ndiff --git a/n.rs b/n.rs\nnew file mode 100755\n--- /dev/null\n+++ b/n.rs\n@@ -0,0 +1 @@\n+n\ndiff --git a/s.sh b/s.sh\nold mode 100644\nnew mode 100755\n";
    assert_eq!(
        after(&there, patch),
        expected(&[("a.rs", "one\nTWO\n"), ("n.rs", "n\n"), ("new.rs", "y\n"), ("s.sh", "echo\n")])
    );
    let changes = planned(&there, patch).unwrap();
    assert_eq!(
        changes.iter().map(|change| change.mode).collect::<Vec<_>>(),
        [None, None, None, Some(0o100_755), Some(0o100_755)]
    );
    let part = "--- a/gone.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n";
    assert_eq!(after(&there, part), Err("edit.not_found"));
    assert_eq!(
        after(&there, "diff --git a/x.png b/x.png\nBinary files a/x.png and b/x.png differ\n"),
        Err("edit.binary")
    );
    assert_eq!(
        after(
            &there,
            "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+a.rs\n\\ No newline at end of file\n"
        ),
        Err("edit.unparsed")
    );
    assert_eq!(after(&there, "diff --git a/a.rs b/c.rs\ncopy from a.rs\ncopy to c.rs\n"), Err("edit.unparsed"));
    assert_eq!(after(&there, "@@ -1 +1 @@\n-one\n+ONE\n"), Err("edit.unparsed"));
    assert_eq!(after(&there, "<<<<<<< SEARCH\none\n=======\nuno\n>>>>>>> REPLACE\n"), Err("edit.unparsed"));
}

#[test]
fn paths_that_git_quotes() {
    let there = [("na\u{e9}.txt", "a\n")];
    let patch = "--- \"a/na\\303\\251.txt\"\n+++ \"b/na\\303\\251.txt\"\t2026-01-01\n@@ -1 +1 @@\n-a\n+b\n";
    assert_eq!(after(&there, patch), expected(&[("na\u{e9}.txt", "b\n")]));
}
