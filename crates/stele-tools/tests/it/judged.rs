//! The file that a call is judged by is the file that it opens.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::string::string_regex;
use serde_json::{Value, json};
use stele_core::{Call, CallId, Mode, Subject, Verdict};
use stele_guard::{Layer, List, Policy, Surroundings, Workspace, decide};
use stele_tools::{Offer, Options};

use crate::{Session, code, options, tool};

/// A folder with a workspace `ws`, a home `home` and what lies elsewhere, all with names that look alike.
#[derive(Clone, Debug)]
struct Layout {
    files: Vec<String>,
    links: Vec<(String, String)>,
}

/// One part of a path; the first two, and the next two, look alike.
const PART: &str = "a b|a\u{a0}b|it's|it\u{2019}s|c|home|ws|\\.\\.|~";

impl Layout {
    fn any() -> impl Strategy<Value = Self> {
        let inner = || string_regex(&format!("(ws|home|else)(/({PART})){{1,2}}")).unwrap();
        let target = string_regex(&format!("({PART})(/({PART}))?|/etc/hostname|\\.\\./\\.\\./home/c")).unwrap();
        let files = proptest::collection::vec(inner(), 1..5);
        let links = proptest::collection::vec((inner(), target), 0..5);
        (files, links).prop_map(|(files, links)| Self { files, links })
    }

    /// Makes it anew; what does not fit beside the rest is left out.
    fn make(&self, root: &Path) {
        for folder in ["ws", "home", "else"] {
            let _ = fs::remove_dir_all(root.join(folder));
            fs::create_dir(root.join(folder)).unwrap();
        }
        let inside = |path: &Path| {
            let up = path.ancestors().find(|folder| folder.exists()).unwrap().canonicalize().unwrap();
            up.starts_with(root)
        };
        for file in self.files.iter().map(|file| root.join(file)).filter(|file| inside(file)) {
            let _ = fs::create_dir_all(file.parent().unwrap());
            let _ = fs::File::create_new(file);
        }
        for (link, to) in self.links.iter().map(|(link, to)| (root.join(link), to)).filter(|(link, _)| inside(link)) {
            let _ = fs::create_dir_all(link.parent().unwrap());
            let _ = symlink(to, link);
        }
    }
}

fn session(home: &Path) -> Session {
    let mut environment = options().environment;
    environment.retain(|(name, _)| name != "HOME");
    environment.push(("HOME".into(), home.into()));
    Session::with(Options { environment, offer: vec![Offer::Patch, Offer::Ls], ..options() })
}

/// The verdict on a call where a rule is all that speaks of this path.
fn verdict(session: &Session, name: &str, arguments: &Value, mode: Mode, (list, rule): (List, &str)) -> Verdict {
    let root = session.path();
    let tool = tool(&session.options, name);
    let subjects = tool.subjects(&arguments.to_string()).unwrap();
    let call = Call { id: CallId(1), tool: name.to_owned(), subjects, effects: tool.effects(), parallel: false };
    let mut policy = Policy::default();
    policy.add(list, Layer::Flag, rule).unwrap();
    let surroundings = Surroundings { home: Some(root.join("home")), search_path: None };
    let workspace = Workspace::new(&root.join("ws"), &root.join("ws"), &surroundings).unwrap();
    decide(&call, mode, &policy, &workspace).verdict
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_path_judged_is_the_path_opened(
        layout in Layout::any(),
        name in string_regex(&format!("(~/|~//|\\./|~user/)?({PART})(/({PART})){{0,2}}|~")).unwrap(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let mut session = session(&root.join("home"));
        session.folder = folder;
        *session.cwd.lock().unwrap() = Some(root.join("ws"));
        let calls = [
            ("read", "read", json!({"path": name})),
            ("write", "edit", json!({"path": name, "content": "x"})),
            ("edit", "edit", json!({"path": name, "edits": [{"old": "", "new": "x"}]})),
            ("patch", "edit", json!({"patch": format!("*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch\n")})),
        ];
        for (tool, access, arguments) in calls {
            layout.make(&root);
            let output = session.call(tool, arguments.clone());
            let changed = output.changed.iter().map(|change| PathBuf::from(&change.path));
            let opened = changed.chain(output.meta.files.iter().map(|file| PathBuf::from(&file.path))).next();
            let Some(opened) = opened.filter(|_| output.error.is_none()) else { continue };
            layout.make(&root);
            let rule = format!("{access}({})", opened.display());
            let judged = |mode, list| verdict(&session, tool, &arguments, mode, (list, &rule));
            prop_assert_eq!(judged(Mode::Full, List::Deny), Verdict::Deny, "{} {:?} opened {:?}", tool, name, opened);
            if !opened.starts_with(root.join("ws")) {
                let elsewhere = format!("{access}(/nothing)");
                let asks = verdict(&session, tool, &arguments, Mode::Edit, (List::Allow, &elsewhere));
                prop_assert_eq!(asks, Verdict::Ask, "{} {:?} opened {:?}", tool, name, opened);
            }
        }
    }
}

#[test]
fn a_patch_is_judged_by_the_names_that_it_takes() {
    let patch = tool(&Options { offer: vec![Offer::Patch], ..options() }, "patch");
    for (written, taken) in
        [("./~/x", "~/x"), ("link/../x", "x"), ("~/../x", "x"), ("/w//a/../b", "/w/b"), ("../x", "../x")]
    {
        let arguments = json!({"patch": format!("*** Begin Patch\n*** Add File: {written}\n+x\n*** End Patch\n")});
        let subjects = patch.subjects(&arguments.to_string()).unwrap();
        assert_eq!(subjects, [Subject::Write(taken.to_owned())], "{written}");
    }
}

#[test]
fn a_folder_of_a_command_is_judged_as_the_one_it_runs_in() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for made in ["ws/sub/it's", "home/keys", "ws/~/keys"] {
        fs::create_dir_all(root.join(made)).unwrap();
    }
    symlink(root.join("home"), root.join("ws/o\u{a0}ut")).unwrap();
    let mut session = session(&root.join("home"));
    session.folder = folder;
    *session.cwd.lock().unwrap() = Some(root.join("ws"));
    let runs = |cwd: &str| session.call("bash", json!({"command": "pwd", "cwd": cwd}));
    let judged = |cwd: &str, mode, rule: (List, &str)| {
        verdict(&session, "bash", &json!({"command": "ls", "cwd": cwd}), mode, rule)
    };
    let none = (List::Allow, "todo");
    for (cwd, runs_in) in [("sub", "ws/sub"), ("sub/it's", "ws/sub/it's"), ("./~/keys", "ws/~/keys"), (".", "ws")] {
        assert!(runs(cwd).content.starts_with(&format!("{}\n", root.join(runs_in).display())), "{cwd}");
        assert_eq!(judged(cwd, Mode::Ask, none), Verdict::Allow, "{cwd}");
    }
    for (cwd, runs_in) in [("~", "home"), ("~/keys", "home/keys"), ("~//keys", "home/keys"), ("o\u{a0}ut", "home")] {
        assert!(runs(cwd).content.starts_with(&format!("{}\n", root.join(runs_in).display())), "{cwd}");
        assert_eq!(judged(cwd, Mode::Ask, none), Verdict::Ask, "{cwd}");
    }
    assert_eq!(judged("~/keys", Mode::Full, none), Verdict::Allow);
    assert_eq!(judged("~/keys", Mode::Full, (List::Deny, "read(~/keys/**)")), Verdict::Ask);
    // A name that only looks like a folder's is none, for both.
    assert_eq!(code(&runs("o ut")), "file.missing");
    let subjects = tool(&session.options, "bash").subjects(&json!({"command": "ls", "cwd": "~"}).to_string()).unwrap();
    assert_eq!(subjects, [Subject::Command(format!("cd -- '{}'\nls", root.join("home").display()))]);
}
