//! Cases collected from the issue trackers of other agents.

use serde::Deserialize;
use serde_json::Value;
use stele_core::{Mode, Verdict};
use stele_guard::{List, Surroundings, Workspace};

use crate::Scene;

fn verdict(text: &str) -> Verdict {
    serde_json::from_value(Value::String(text.into())).unwrap()
}

#[derive(Deserialize)]
struct Compound {
    rules: std::collections::BTreeMap<String, Vec<String>>,
    commands: Vec<Command>,
    expected: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Command {
    id: String,
    command: String,
}

#[test]
fn each_command_of_a_compound_is_judged_by_itself() {
    let case: Compound = serde_json::from_str(include_str!("cases/compound.json")).unwrap();
    let rules = |list: &str| case.rules[list].iter().map(|rule| format!("bash({rule})")).collect::<Vec<_>>();
    let (allow, deny) = (rules("allow"), rules("deny"));
    let scene = Scene::new(Mode::Ask)
        .allow(&allow.iter().map(String::as_str).collect::<Vec<_>>())
        .deny(&deny.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(case.commands.len(), 23);
    for command in &case.commands {
        scene.check(&command.command, verdict(&case.expected[&command.id]));
    }
}

#[test]
fn links_and_parents_lead_where_they_lead() {
    let case: Value = serde_json::from_str(include_str!("cases/links.json")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for entry in case["layout"].as_array().unwrap() {
        let path = |key: &str| folder.path().join(entry[key].as_str().unwrap());
        if entry["dir"].is_string() {
            std::fs::create_dir_all(path("dir")).unwrap();
        } else if entry["file"].is_string() {
            std::fs::write(path("file"), entry["text"].as_str().unwrap()).unwrap();
        } else {
            std::os::unix::fs::symlink(entry["to"].as_str().unwrap(), path("link")).unwrap();
        }
    }
    let root = folder.path().join(case["root"].as_str().unwrap());
    let mut scene = Scene::new(Mode::Edit);
    scene.workspace = Workspace::new(&root, &root, &Surroundings::default()).unwrap();
    // Everything outside the workspace is denied, which is what the case calls for.
    let outside = folder.path().canonicalize().unwrap();
    for list in ["OUT", "ws-evil"] {
        for tool in ["read", "edit"] {
            let rule = format!("{tool}({}/**)", outside.join(list).display());
            scene.policy.add(List::Deny, stele_guard::Layer::User, &rule).unwrap();
        }
    }
    for operation in case["ops"].as_array().unwrap() {
        let path = operation["path"].as_str().unwrap();
        let decision = if operation["op"] == "read" { scene.read(path) } else { scene.write(path) };
        let expected = match case["expected"][operation["id"].as_str().unwrap()].as_str().unwrap() {
            // A loop cannot be opened at all.
            "error" => Verdict::Deny,
            other => verdict(other),
        };
        assert_eq!(decision.verdict, expected, "{operation}: {decision:?}");
    }
    // Without any rule the same operations ask.
    scene.policy = stele_guard::Policy::default();
    for path in ["outbox/x", "dangling", "sub/../../OUT/y", "../ws-evil/x"] {
        assert_eq!(scene.write(path).verdict, Verdict::Ask, "{path}");
        // What is shown to a person is where it leads.
        let always = scene.check(&format!("echo x > {path}"), Verdict::Ask).always;
        assert!(always.len() == 1 && always[0].starts_with("edit(/"), "{path}: {always:?}");
    }
}

#[test]
fn leading_assignments_do_not_avoid_a_rule() {
    let scene = Scene::new(Mode::Edit).ask(&["bash(git commit*)"]).allow(&["bash(git *)"]);
    let decision = scene.check("CI=true git commit -m x", Verdict::Ask);
    assert_eq!(decision.by, "rule:user:0");
    scene.check("CI=true git fetch", Verdict::Allow);
    scene.check_all(
        Verdict::Ask,
        &["LD_PRELOAD=x git fetch", "GIT_PAGER=x git log", "PATH=. git fetch", "env GIT_SSH_COMMAND=x git fetch"],
    );
}

#[test]
fn global_options_of_git_do_not_hide_its_subcommand() {
    let scene = Scene::new(Mode::Full).deny(&["bash(git push*)"]);
    scene.check_all(
        Verdict::Deny,
        &[
            "git -C dir push",
            "git -c a=b push origin",
            "git --git-dir=x push",
            "git --git-dir x --work-tree y push -f",
            "git --no-pager push",
            "/usr/bin/git -C x push",
            "sudo git -C d push",
            "git -P -C a -C b push",
            "git -C $X push",
        ],
    );
    scene.check_all(Verdict::Allow, &["git -C dir status", "git --no-pager log", "git stash push"]);
    scene.check_all(Verdict::Ask, &["git $X push", "git $SUBCOMMAND", "git -c alias.p='!git push' p"]);
}

#[test]
fn a_path_is_never_the_bare_name() {
    let scene = Scene::new(Mode::Ask).allow(&["bash(make *)"]);
    std::fs::write(scene.root().join("cat"), "").unwrap();
    scene.check_all(Verdict::Ask, &["./cat x", "bin/cat x", "/usr/bin/cat x", "./make x", "sub/git status"]);
    scene.check_all(Verdict::Allow, &["cat x", "make x"]);
    let mut brings = Scene::new(Mode::Ask);
    std::fs::write(brings.root().join("cat"), "").unwrap();
    let search = Surroundings { home: None, search_path: Some(brings.root().as_os_str().to_owned()) };
    brings.workspace = Workspace::new(brings.root(), brings.root(), &search).unwrap();
    brings.check("cat x", Verdict::Ask);
    brings.check("ls", Verdict::Allow);
}

#[test]
fn here_documents_are_data_or_commands_as_they_are_quoted() {
    let scene = Scene::new(Mode::Edit).deny(&["bash(rm *)"]).allow(&["bash(python3 *)"]);
    scene.check("python3 - <<'EOF'\nif a > b: print(`rm x`)\nEOF", Verdict::Allow);
    scene.check("cat <<EOF\n$(rm x)\nEOF", Verdict::Deny);
    scene.check("cat <<EOF\n`rm x`\nEOF", Verdict::Ask);
    scene.check("cat <<< x\nrm y", Verdict::Deny);
    scene.check("cat <<EOF\nunterminated\nrm x", Verdict::Ask);
    scene.check("cat > src/a.py <<'EOF'\n$(rm x)\nEOF", Verdict::Allow);
}
