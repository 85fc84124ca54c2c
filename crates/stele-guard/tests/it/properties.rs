//! What holds for every command.

use proptest::prelude::*;
use stele_core::{Call, CallId, Effects, Mode, Subject, Verdict};
use stele_guard::verdict;

use crate::Scene;

fn allowed_command() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "git status",
        "ls -la src",
        "echo 'a b'",
        "cargo test -p x",
        "CI=1 cargo test",
        "cat a | wc -l",
    ])
}

/// Ways to put a second command beside or inside a first one.
const COMPOSITIONS: &[&str] = &[
    "A ; B",
    "A && B",
    "A || B",
    "A | B",
    "A |& B",
    "A & B",
    "A\nB",
    "B; A",
    "B && A",
    "echo $(B)",
    "echo `B`",
    "echo \"x $(B) y\"",
    "(A; B)",
    "{ A; B; }",
    "if A; then B; fi",
    "while A; do B; done",
    "f() { B; }; A; f",
    "cat <(B)",
    "x=$(B) A",
    "! B",
    "A; time B",
    "echo ${x:-$(B)}",
    "cat <<EOF\n$(B)\nEOF",
    "A;B",
    "A&&B",
    "A|B",
    "case x in x) B;; esac",
    "for x in $(B); do A; done",
    "A # x\nB",
    "A \\\n && B",
    "[ -n \"$(B)\" ]",
    "B > /dev/null",
    "2>&1 B",
    "A 2>/dev/null; B",
    "cat <<< \"$(B)\"",
    "A&B",
    "until B; do A; done",
    "export X=$(B)",
    "time ! B",
    "time -p B",
];

const SPELLINGS: &[&str] = &[
    "rm x",
    "r''m x",
    "\\rm x",
    "\"rm\" x",
    "'r'm x",
    "/bin/rm x",
    "env rm x",
    "CI=1 rm x",
    "sh -c 'rm x'",
    "eval rm x",
    "command rm x",
    "timeout 5 rm x",
    "sudo rm x",
    "xargs rm",
    "nice rm x",
    "$(echo rm) x",
    "$R x",
    "r$E x",
];

fn texts(rules: &[String]) -> Vec<&str> {
    rules.iter().map(String::as_str).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn one_forbidden_command_is_enough(
        allowed in allowed_command(),
        composition in proptest::sample::select(COMPOSITIONS),
        spelling in proptest::sample::select(SPELLINGS),
        outer in proptest::sample::select(COMPOSITIONS),
        nested in any::<bool>(),
        mode in proptest::sample::select(vec![Mode::Ask, Mode::Edit, Mode::Full]),
    ) {
        let mut command = composition.replace('A', allowed).replace('B', spelling);
        if nested {
            command = outer.replace('A', allowed).replace('B', &command);
        }
        let scene = Scene::new(mode).allow(&["bash(git *)", "bash(cargo *)", "bash(echo *)"]).deny(&["bash(rm *)"]);
        let decision = scene.bash(&command);
        prop_assert_ne!(decision.verdict, Verdict::Allow, "{}: {:?}", command, decision);
    }

    #[test]
    fn a_command_that_no_rule_names_is_never_allowed_by_company(
        allowed in allowed_command(),
        composition in proptest::sample::select(COMPOSITIONS),
    ) {
        let command = composition.replace('A', allowed).replace('B', "frobnicate x");
        let scene = Scene::new(Mode::Edit).allow(&["bash(git *)", "bash(cargo *)", "bash(echo *)"]);
        prop_assert_eq!(scene.bash(&command).verdict, Verdict::Ask, "{}", command);
    }

    #[test]
    fn any_text_gets_a_verdict(text in "[ -~\n\té]{0,60}", path in "\\PC{0,20}") {
        let scene = Scene::new(Mode::Ask).deny(&["bash(rm *)", "read(x/**)"]).allow(&["bash(git *)"]);
        let call = Call {
            id: CallId(1),
            tool: "bash".into(),
            subjects: vec![Subject::Command(text.clone()), Subject::Read(path.clone())],
            effects: Effects::External,
            parallel: false,
        };
        let decided = scene.decide("bash", call.subjects.clone(), call.effects).verdict;
        prop_assert_eq!(verdict(&call, scene.mode, &scene.policy, &scene.workspace), decided);
        let _ = scene.read(&path);
        let _ = scene.write(&path);
    }

    #[test]
    fn what_is_suggested_is_enough_and_allows_no_other_command(
        names in proptest::collection::vec(
            proptest::sample::select(vec!["cargo", "git", "rm", "timeout 5 cargo", "env A=b go", "xargs rm", "sudo x"]),
            1..4,
        ),
        words in proptest::collection::vec("[a-z-]{1,6}|'a b'|\\./x|\\*|\\$X|> a", 0..4),
        composition in proptest::sample::select(COMPOSITIONS),
    ) {
        let words = words.join(" ");
        let commands = names.iter().map(|name| format!("{name} {words}"));
        let composed = commands.reduce(|all, next| composition.replace('A', &all).replace('B', &next));
        let command = composed.unwrap_or_default();
        let decision = Scene::new(Mode::Ask).bash(&command);
        let granted = Scene::new(Mode::Ask).grant(&texts(&decision.always));
        let allowed = Scene::new(Mode::Ask).allow(&texts(&decision.settled_with));
        for (scene, suggested) in [(granted, &decision.always), (allowed, &decision.settled_with)] {
            if !suggested.is_empty() {
                prop_assert_eq!(scene.bash(&command).verdict, Verdict::Allow, "{} by {:?}", command, suggested);
            }
            prop_assert_ne!(scene.bash(&format!("{command}\nfrobnicate")).verdict, Verdict::Allow);
        }
    }
}
