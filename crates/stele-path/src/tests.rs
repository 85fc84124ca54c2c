#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::prelude::*;

use super::*;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn file(&self, name: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }

    fn link(&self, to: &str, name: &str) {
        symlink(to, self.path().join(name)).unwrap();
    }

    #[track_caller]
    fn check(&self, name: &str, leads: &str, to: &str) {
        let resolved = resolve_alike(&self.path().join(name));
        assert!(format!("{:?}", resolved.leads).starts_with(leads), "{name}: {resolved:?}");
        assert_eq!(resolved.path, self.path().join(to), "{name}");
    }
}

#[test]
fn home_is_expanded_only_as_a_whole_part() {
    let check = |name: &str, path: &str| {
        assert_eq!(absolute(name, Path::new("/w"), Some(Path::new("/home/me"))).to_str(), Some(path), "{name}");
    };
    check("~", "/home/me");
    check("~/", "/home/me");
    check("~/a", "/home/me/a");
    check("~//etc/passwd", "/home/me/etc/passwd");
    check("~/../x", "/home/me/../x");
    check("~me/a", "/w/~me/a");
    check("~+", "/w/~+");
    check("./~/a", "/w/./~/a");
    check("/etc", "/etc");
    assert_eq!(absolute("~/a", Path::new("/w"), None), Path::new("/w/~/a"));
    for (name, relative) in [("a", true), ("~a/b", true), ("./~", true), ("~", false), ("~/a", false), ("/a", false)] {
        assert_eq!(is_relative(name), relative, "{name}");
    }
}

#[test]
fn links_are_followed_also_to_what_does_not_exist() {
    let folder = Folder::new();
    folder.file("real/a");
    folder.link("real", "link");
    folder.link("real/new", "dangling");
    folder.link("nothing", "nowhere");
    folder.link("loop", "loop");
    folder.check("link/a", "ToSomething", "real/a");
    folder.check("link/../real/./a", "ToSomething", "real/a");
    folder.check("link/b/c", "ToNothing", "real/b/c");
    folder.check("dangling", "ToNothing", "real/new");
    folder.check("nowhere/x", "ToNothing", "nothing/x");
    folder.check("real/a/x", "ToNothing", "real/a/x");
    folder.check("real/a/../a", "Nowhere", "real/a");
    // A part that is made later would let this be opened: it is followed all the same.
    folder.check("new/../link/a", "Nowhere", "real/a");
    assert!(matches!(resolve(&folder.path().join("loop/x")).leads, Leads::InALoop));
    assert_eq!(resolve(Path::new("/../..")).path, Path::new("/"));
}

#[test]
fn a_part_that_does_not_exist_is_the_one_that_looks_the_same() {
    let folder = Folder::new();
    folder.file("my\u{a0}dir/it\u{2019}s");
    folder.file("one\u{a0}two");
    folder.link("one two", "leads there");
    folder.link("/etc", "out\u{a0}side");
    folder.check("my dir/it's", "ToSomething", "my\u{a0}dir/it\u{2019}s");
    folder.check("my dir/new", "ToNothing", "my\u{a0}dir/new");
    folder.check("leads there", "ToSomething", "one\u{a0}two");
    folder.check("out side/passwd", "ToSomething", "/etc/passwd");
    let alike = |name: &str| resolve_alike(&folder.path().join(name)).alike.map(|alike| (alike.path, alike.beneath));
    assert_eq!(alike("leads there"), Some((folder.path().join("one\u{a0}two"), PathBuf::new())));
    assert_eq!(alike("my dir/it's"), Some((folder.path().join("my\u{a0}dir"), PathBuf::from("it's"))));
    assert_eq!(alike("out\u{a0}side/passwd"), None);
    assert!(matches!(resolve(&folder.path().join("one two")).leads, Leads::ToNothing));
    folder.file("one\u{202f}two");
    folder.check("one two", "ToOneOf", "one two");
    folder.file("one two");
    folder.check("one two", "ToSomething", "one two");
}

#[test]
fn what_cannot_be_looked_at_leads_nowhere() {
    let folder = Folder::new();
    folder.file("closed/a");
    let mode = |mode| fs::set_permissions(folder.path().join("closed"), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o600);
    // Who may do everything sees it all the same.
    if fs::symlink_metadata(folder.path().join("closed/a")).is_err() {
        folder.check("closed/a/b", "Nowhere", "closed/a/b");
    }
    mode(0o700);
}

proptest! {
    /// What the system opens is what was followed. (Behind a file it takes no `.`, which is left out here.)
    #[test]
    fn a_path_leads_where_the_system_says(
        links in proptest::collection::vec(("[abc]", "(\\.\\./)?[abcd](/[abc])?|/[abc]|\\."), 0..5),
        names in proptest::collection::vec("[abcd]|\\.\\.|\\.", 0..6),
        last in "[abcd]|\\.\\.",
    ) {
        let folder = Folder::new();
        for name in ["a/b", "c/a/b"] {
            folder.file(name);
        }
        for (at, (name, to)) in links.iter().enumerate() {
            let beneath = ["", "a", "c/a"][at % 3];
            let _ = symlink(to, folder.path().join(beneath).join(name));
        }
        let path = folder.path().join(names.join("/")).join(last);
        let resolved = resolve(&path);
        match fs::canonicalize(&path) {
            Ok(real) => {
                prop_assert!(matches!(resolved.leads, Leads::ToSomething), "{:?}", resolved);
                prop_assert_eq!(resolved.path, real);
            }
            Err(_) => prop_assert!(!matches!(resolved.leads, Leads::ToSomething), "{:?}", resolved),
        }
    }
}
