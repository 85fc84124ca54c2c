//! The home folder, however it is spelled.

use std::os::unix::fs::symlink;

use stele_core::{Effects, Mode, Subject, Verdict};
use stele_guard::{Surroundings, Workspace};

use crate::Scene;

/// What a tool is given that lies in the home folder, with links in the workspace that lead there.
const NAMES: &[&str] = &[
    "~",
    "~/",
    "~/.ssh/id_rsa",
    "~//.ssh/id_rsa",
    "~/.ssh/../.ssh/id_rsa",
    "~/../home/.ssh/id_rsa",
    "~/new/er",
    "to-home/.ssh/id_rsa",
    "to-key",
    "dangling",
];

fn scene(mode: Mode) -> Scene {
    let scene = Scene::new(mode);
    for (to, name) in [("", "to-home"), (".ssh/id_rsa", "to-key"), ("not/there", "dangling")] {
        symlink(scene.home().join(to), scene.root().join(name)).unwrap();
    }
    scene
}

#[track_caller]
fn check(scene: &Scene, names: &[&str], read: Verdict, write: Verdict) {
    for name in names {
        for tool in ["read", "grep", "glob", "ls", "symbols"] {
            let decision = scene.decide(tool, vec![Subject::Read((*name).into())], Effects::None);
            assert_eq!(decision.verdict, read, "{tool} {name}: {decision:?}");
        }
        for tool in ["write", "edit", "patch"] {
            let decision = scene.decide(tool, vec![Subject::Write((*name).into())], Effects::Local);
            assert_eq!(decision.verdict, write, "{tool} {name}: {decision:?}");
        }
    }
}

#[test]
fn what_a_tool_is_given_lies_outside_the_workspace() {
    check(&scene(Mode::Ask), NAMES, Verdict::Ask, Verdict::Ask);
    check(&scene(Mode::Edit), NAMES, Verdict::Ask, Verdict::Ask);
    check(&scene(Mode::Full), NAMES, Verdict::Allow, Verdict::Allow);
}

#[test]
fn a_rule_over_the_home_folder_holds_for_every_spelling() {
    for mode in [Mode::Ask, Mode::Edit, Mode::Full] {
        let denies = scene(mode).deny(&["read(~/**)", "edit(~/**)"]).allow(&["read", "edit", "write"]);
        check(&denies, NAMES, Verdict::Deny, Verdict::Deny);
    }
    let asks = scene(Mode::Edit).ask(&["read(~/**)", "edit(~/**)"]).allow(&["read(/**)", "edit(/**)"]);
    check(&asks, NAMES, Verdict::Ask, Verdict::Ask);
    let allows = scene(Mode::Ask).allow(&["read(~/**)", "edit(~/**)"]);
    check(&allows, NAMES, Verdict::Allow, Verdict::Allow);
    // What is suggested is what is opened.
    let always = scene(Mode::Ask).read("~/.ssh/id_rsa").always;
    let key = scene(Mode::Ask).home();
    assert!(always.len() == 1 && always[0].ends_with("/home/.ssh/id_rsa)") && key.ends_with("home"), "{always:?}");
}

#[test]
fn what_only_looks_like_the_home_folder_is_in_the_workspace() {
    let scene = scene(Mode::Edit).deny(&["read(~/**)", "edit(~/**)"]);
    check(&scene, &["~user/x", "./~/x", "~x", "~+", "~+/x", "src/~/x"], Verdict::Allow, Verdict::Allow);
}

#[test]
fn a_home_folder_that_is_a_link_is_known_by_both_names() {
    let mut scene = Scene::new(Mode::Full).deny(&["read(~/.ssh/**)"]);
    let link = scene.home().with_file_name("link");
    symlink(scene.home(), &link).unwrap();
    let surroundings = Surroundings { home: Some(link), search_path: None };
    scene.workspace = Workspace::new(scene.root(), scene.root(), &surroundings).unwrap();
    for name in ["~/.ssh/id_rsa", "../link/.ssh/id_rsa", "../home/.ssh/id_rsa"] {
        assert_eq!(scene.read(name).verdict, Verdict::Deny, "{name}");
    }
}

#[test]
fn in_a_command_line_the_shell_expands_what_is_not_quoted() {
    for mode in [Mode::Ask, Mode::Edit] {
        let commands =
            ["cat ~/.ssh/id_rsa", "cat $HOME/x", "ls ~", "cat < ~/x", "cd ~ && ls", "cat ~+/x", "cat ~root/x"];
        scene(mode).check_all(Verdict::Ask, &commands);
        let literal = ["cat '~/x'", "cat \\~/x", "cat \"~/x\"", "cat ./~/x", "ls a~", "cat '$HOME/x'", "cat src/~"];
        scene(mode).check_all(Verdict::Allow, &literal);
    }
    // Whatever allows the command, and whoever reads.
    for mode in [Mode::Ask, Mode::Edit, Mode::Full] {
        let allows = ["bash(cat *)", "bash(ls *)", "bash(cd *)", "bash(vim *)", "bash(grep *)", "bash(dd *)"];
        let scene = scene(mode).deny(&["read(~/.ssh/**)", "read(.env)"]).allow(&allows);
        let refused = |commands: &[&str]| {
            for command in commands {
                let decision = scene.bash(command);
                assert_ne!(decision.verdict, Verdict::Allow, "{command}: {decision:?}");
            }
        };
        refused(&["cat ~/.ssh/id_rsa", "cat ~//.ssh/id_rsa", "cat ~/../home/.ssh/id_rsa", "cat \"$HOME\"/.ssh/id_rsa"]);
        refused(&["cat ${HOME}/.ssh/id_rsa", "ls ~/.ssh", "cat < ~/.ssh/id_rsa", "cd ~/.ssh && cat id_rsa"]);
        refused(&["vim ~/.ssh/id_rsa", "dd if=$HOME/.ssh/id_rsa", "grep x -r ~/.ssh", "cat ~+/.env", "cat $PWD/.env"]);
        refused(&[
            "cd -- ~/.ssh; cat id_rsa",
            "cat to-home/.ssh/id_rsa",
            "cat src/../to-key",
            "cd $X; vim ~/.ssh/id_rsa",
        ]);
        scene
            .check_all(Verdict::Allow, &["cat '~/.ssh/id_rsa'", "cat ~/notes", "vim '$HOME/.ssh/id_rsa'", "ls ~+/src"]);
    }
}

#[test]
fn a_folder_behind_two_dashes_is_entered() {
    let scene = scene(Mode::Ask);
    scene.check_all(Verdict::Allow, &["cd -- src && ls", "cd -- 'src'\nls", "cd -- -x && ls"]);
    scene.check_all(Verdict::Ask, &["cd -- ..", "cd -- -", "cd -- '/etc'\nls", "cd -- to-home\nls", "cd -- a b"]);
}
