//! Patches over many files.

use std::collections::BTreeMap;

use stele_edit::{Entry, FileChange, Folder, Options, Refusal, Spot, plan};

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
fn a_name_that_is_left_can_be_moved_to() {
    let there = [("x", "1\n"), ("y", "2\n"), ("z", "3\n")];
    let moves = |pairs: &[(&str, &str)]| -> String {
        pairs.iter().map(|(from, to)| format!("*** Update File: {from}\n*** Move to: {to}\n")).collect()
    };
    for pairs in [[("x", "y"), ("y", "z"), ("z", "w")], [("z", "w"), ("x", "y"), ("y", "z")]] {
        let patch = envelope(&moves(&pairs));
        assert_eq!(after(&there, &patch), expected(&[("w", "3\n"), ("y", "1\n"), ("z", "2\n")]));
        // Whoever does one after the other loses nothing.
        let order: Vec<String> = planned(&there, &patch).unwrap().into_iter().map(|change| change.path).collect();
        assert_eq!(order, ["w", "z", "y"]);
    }
    for pairs in [vec![("x", "y"), ("y", "x")], vec![("x", "y"), ("z", "y"), ("y", "w")], vec![("x", "y"), ("y", "z")]]
    {
        assert_eq!(after(&there, &envelope(&moves(&pairs))), Err("edit.exists"), "{pairs:?}");
    }
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

/// Files under several names: `lf` and `self/f` lead to `f` through links, `hf` is a hard link to it, `gone` is a link
/// to nothing.
struct Linked;

impl Folder for Linked {
    fn read(&mut self, path: &str) -> Option<Vec<u8>> {
        let target = String::from_utf8(self.spot(path).target).unwrap();
        matches!(target.as_str(), "f" | "hf").then(|| b"a\nb\n".to_vec())
    }

    fn spot(&mut self, path: &str) -> Spot {
        let name = path.trim_start_matches("self/");
        let (target, link) = match name {
            "lf" => ("f", Some("f")),
            "gone" => ("nowhere", Some("nowhere")),
            name => (name, None),
        };
        let file = if target == "hf" { "f" } else { target };
        let bytes = |text: &str| text.as_bytes().to_vec();
        Spot { name: bytes(name), target: bytes(target), file: bytes(file), link: link.map(bytes) }
    }
}

fn linked(body: &str) -> Result<Vec<FileChange>, &'static str> {
    Options::default().plan_in(&envelope(body), &mut Linked).map_err(|refusal| refusal.code)
}

#[test]
fn one_file_under_several_names_is_changed_once() {
    for other in ["lf", "hf", "self/f", "self/lf"] {
        let changes =
            linked(&format!("*** Update File: f\n@@\n-a\n+x\n*** Update File: {other}\n@@\n-b\n+y\n")).unwrap();
        assert_eq!(changes.len(), 1, "{other}");
        assert_eq!((changes[0].path.as_str(), changes[0].after.as_deref()), ("f", Some(&b"x\ny\n"[..])));
        assert_eq!(changes[0].notes, [format!("{other} and f are one file; it has the changes of both")]);
        let both = format!("*** Update File: f\n@@\n-a\n+x\n*** Update File: {other}\n@@\n-a\n+y\n");
        assert_eq!(linked(&both), Err("edit.overlap"), "{other}");
    }
    let change = "*** Update File: f\n@@\n-a\n+x\n";
    for other in [
        "*** Delete File: self/f\n",
        "*** Update File: self/f\n*** Move to: g\n",
        "*** Update File: hf\n*** Move to: g\n",
        "*** Update File: hf\n*** Move to: g\n@@\n-b\n+y\n",
    ] {
        assert_eq!(linked(&format!("{change}{other}")), Err("edit.overlap"), "{other}");
        assert_eq!(linked(&format!("{other}{change}")), Err("edit.overlap"), "{other}");
    }
    assert_eq!(linked("*** Add File: n\n+x\n*** Add File: self/n\n+y\n"), Err("edit.overlap"));
    assert_eq!(linked("*** Add File: gone\n+x\n*** Add File: nowhere\n+y\n"), Err("edit.overlap"));
    assert_eq!(linked("*** Update File: f\n*** Move to: self/n\n*** Add File: n\n+y\n"), Err("edit.exists"));
    // Another name of a file may go while its content is changed.
    for other in ["lf", "hf"] {
        assert_eq!(linked(&format!("{change}*** Delete File: {other}\n")).unwrap().len(), 2, "{other}");
    }
}

#[test]
fn a_link_is_deleted_and_moved_itself() {
    let changes = linked("*** Delete File: lf\n*** Update File: gone\n*** Move to: g\n").unwrap();
    let [deleted, moved] = changes.as_slice() else { panic!("{changes:?}") };
    assert_eq!((deleted.entry, deleted.before.as_deref(), &deleted.after), (Entry::Link, Some(&b"f"[..]), &None));
    assert_eq!(deleted.notes, ["lf was a symbolic link; what it leads to is as it was"]);
    assert_eq!((moved.entry, moved.path.as_str(), moved.moved_from.as_deref()), (Entry::Link, "g", Some("gone")));
    assert_eq!(moved.after.as_deref(), Some(&b"nowhere"[..]));
    // A change goes through it.
    let changed = linked("*** Update File: lf\n@@\n-a\n+x\n").unwrap();
    assert_eq!((changed[0].entry, changed[0].after.as_deref()), (Entry::File, Some(&b"x\nb\n"[..])));
    assert_eq!(linked("*** Update File: lf\n*** Move to: g\n@@\n-a\n+x\n"), Err("edit.link"));
    assert_eq!(linked("*** Update File: lf\n*** Move to: gone\n"), Err("edit.exists"));
    assert_eq!(linked("*** Update File: gone\n@@\n-a\n+x\n"), Err("edit.missing"));
    // A diff that deletes a link shows where it points to.
    let shown = |to: &str| format!("--- a/lf\n+++ /dev/null\n@@ -1 +0,0 @@\n-{to}\n\\ No newline at end of file\n");
    let plan = |to: &str| Options::default().plan_in(&shown(to), &mut Linked).map_err(|refusal| refusal.code);
    assert_eq!(plan("f").unwrap()[0].entry, Entry::Link);
    assert_eq!(plan("other").unwrap_err(), "edit.not_found");
}
