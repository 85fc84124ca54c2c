//! Files in each mode.

use stele_core::{Effects, Mode, Subject, Verdict};
use stele_guard::{Error, Surroundings, Workspace};

use crate::Scene;

#[test]
fn reads_inside_are_free_and_writes_follow_the_mode() {
    let ask = Scene::new(Mode::Ask);
    assert_eq!(ask.read("src/a.rs").verdict, Verdict::Allow);
    assert_eq!(ask.read(".git/config").verdict, Verdict::Allow);
    assert_eq!(ask.read("/etc/passwd").verdict, Verdict::Ask);
    assert_eq!(ask.write("src/a.rs").verdict, Verdict::Ask);
    assert_eq!(ask.write("src/a.rs").by, "mode:ask");

    let edit = Scene::new(Mode::Edit);
    assert_eq!(edit.write("src/a.rs").verdict, Verdict::Allow);
    for path in [".git/config", ".GIT/hooks/x", "src/../.stele/config.toml", "sub/.git", "../x", "/etc/x", "/", ".."] {
        assert_eq!(edit.write(path).verdict, Verdict::Ask, "{path}");
    }
    let full = Scene::new(Mode::Full);
    assert_eq!(full.write("/etc/x").verdict, Verdict::Allow);
}

#[test]
fn a_link_into_a_protected_folder_is_protected() {
    let scene = Scene::new(Mode::Edit);
    std::fs::create_dir(scene.root().join(".git")).unwrap();
    std::os::unix::fs::symlink(".git", scene.root().join("g")).unwrap();
    assert_eq!(scene.write("g/config").verdict, Verdict::Ask);
}

#[test]
fn rules_for_edit_cover_write_and_the_other_way() {
    for rule in ["edit(src/**)", "write(src/**)", "edit(./src/**)"] {
        let scene = Scene::new(Mode::Ask).allow(&[rule]);
        for tool in ["edit", "write"] {
            let decide = |path: &str| scene.decide(tool, vec![Subject::Write(path.into())], Effects::Local).verdict;
            assert_eq!(decide("src/a/b.rs"), Verdict::Allow, "{rule}");
            assert_eq!(decide("src/../a.rs"), Verdict::Ask, "{rule}");
            assert_eq!(decide("other/src/a.rs"), Verdict::Ask, "{rule}");
        }
        assert_eq!(scene.read("/etc/passwd").verdict, Verdict::Ask);
    }
    let both = Scene::new(Mode::Full).deny(&["edit(*.lock)"]);
    assert_eq!(both.write("Cargo.lock").verdict, Verdict::Deny);
    assert_eq!(both.write("a/b/yarn.lock").verdict, Verdict::Deny);
    assert_eq!(both.write("lock").verdict, Verdict::Allow);
    let call = both.decide("edit", vec![Subject::Write("a".into()), Subject::Write("b.lock".into())], Effects::Local);
    assert_eq!((call.verdict, call.by.as_str()), (Verdict::Deny, "rule:user:0"));
}

#[test]
fn a_refusal_of_a_folder_reaches_what_is_in_it_and_what_leads_to_it() {
    let scene = Scene::new(Mode::Full).deny(&["read(secrets)"]);
    std::fs::create_dir(scene.root().join("secrets")).unwrap();
    std::os::unix::fs::symlink("secrets", scene.root().join("alias")).unwrap();
    for path in ["secrets", "secrets/a", "alias/a", "src/../secrets/x/y", "deep/secrets/a"] {
        assert_eq!(scene.read(path).verdict, Verdict::Deny, "{path}");
    }
    assert_eq!(scene.write("secrets/a").verdict, Verdict::Allow);
    let grep = scene.decide("grep", vec![Subject::Read("secrets".into())], Effects::None);
    assert_eq!(grep.verdict, Verdict::Deny);
    // A rule on the link itself holds too, though the file lies elsewhere.
    let scene = Scene::new(Mode::Full).deny(&["read(alias/**)"]);
    std::os::unix::fs::symlink("src", scene.root().join("alias")).unwrap();
    assert_eq!(scene.read("alias/a").verdict, Verdict::Deny);
    assert_eq!(scene.read("src/a").verdict, Verdict::Allow);
}

#[test]
fn a_permission_does_not_follow_a_link_out() {
    let scene = Scene::new(Mode::Ask).allow(&["edit(out/**)"]);
    std::os::unix::fs::symlink("/tmp", scene.root().join("out")).unwrap();
    assert_eq!(scene.write("out/x").verdict, Verdict::Ask);
}

#[test]
fn rules_of_one_tool_for_paths_speak_of_that_tool_alone() {
    let scene = Scene::new(Mode::Full).deny(&["grep(vendor/**)"]);
    let decide = |tool: &str| scene.decide(tool, vec![Subject::Read("vendor".into())], Effects::None).verdict;
    assert_eq!(decide("grep"), Verdict::Deny);
    assert_eq!(decide("read"), Verdict::Allow);
}

#[test]
fn a_workspace_that_is_gone_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    let error = Workspace::new(&gone, &gone, &Surroundings::default()).unwrap_err();
    assert!(matches!(&error, Error::Workspace { .. }) && error.code() == "guard.workspace");
}

#[test]
fn a_rule_holds_for_the_file_that_a_look_alike_name_opens() {
    let scene = Scene::new(Mode::Full).deny(&["read(don\u{2019}t.txt)", "write(caf\u{e9}/**)"]);
    std::fs::write(scene.root().join("don\u{2019}t.txt"), "").unwrap();
    std::fs::create_dir(scene.root().join("caf\u{e9}")).unwrap();
    std::fs::write(scene.root().join("caf\u{e9}/a b"), "").unwrap();
    assert_eq!(scene.read("don't.txt").verdict, Verdict::Deny);
    assert_eq!(scene.write("cafe\u{301}/a\u{a0}b").verdict, Verdict::Deny);
    assert_eq!(scene.write("cafe\u{301}/new/er").verdict, Verdict::Deny);
    // Also where a link leads to such a name, or is one.
    std::os::unix::fs::symlink("don't.txt", scene.root().join("link")).unwrap();
    std::os::unix::fs::symlink("caf\u{e9}", scene.root().join("na\u{ef}ve")).unwrap();
    assert_eq!(scene.read("link").verdict, Verdict::Deny);
    assert_eq!(scene.write("nai\u{308}ve/new").verdict, Verdict::Deny);
    // The exact name wins, and two names that look alike lead nowhere.
    std::fs::write(scene.root().join("don't.txt"), "").unwrap();
    assert_eq!(scene.read("don't.txt").verdict, Verdict::Allow);
    assert_eq!(scene.read("don\u{2018}t.txt").verdict, Verdict::Allow);
}

#[test]
fn a_link_to_a_name_that_is_not_there_is_what_would_be_written_instead() {
    let scene = Scene::new(Mode::Edit).deny(&["edit(x y)"]);
    std::fs::write(scene.root().join("x y"), "").unwrap();
    std::os::unix::fs::symlink("x\u{a0}y", scene.root().join("a")).unwrap();
    assert_eq!(scene.write("a").verdict, Verdict::Deny);
    // A look-alike that leads out of the workspace is outside.
    std::os::unix::fs::symlink("/etc", scene.root().join("o\u{a0}ut")).unwrap();
    std::os::unix::fs::symlink("o ut/x", scene.root().join("b")).unwrap();
    for name in ["o ut/x", "b"] {
        assert_eq!(scene.write(name).verdict, Verdict::Ask, "{name}");
    }
}
