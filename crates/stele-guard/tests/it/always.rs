//! The rules that are suggested for what nothing allows.

use std::collections::BTreeSet;

use stele_core::{Effects, Mode, Subject, Verdict};
use stele_guard::widened;

use crate::Scene;

/// What `always` would grant and what the command line would have to say, in any order.
#[track_caller]
fn check(scene: &Scene, command: &str, always: &[&str], settled_with: &[&str]) {
    let decision = scene.check(command, Verdict::Ask);
    let found: BTreeSet<&str> = decision.always.iter().map(String::as_str).collect();
    assert_eq!(found, always.iter().copied().collect(), "{command}");
    let found: BTreeSet<&str> = decision.settled_with.iter().map(String::as_str).collect();
    assert_eq!(found, settled_with.iter().copied().collect(), "{command}");
}

#[test]
fn a_command_is_suggested_in_its_own_words() {
    let scene = Scene::new(Mode::Ask);
    for (command, rule) in [
        ("git push origin x", "bash(git push origin x)"),
        ("git commit -m 'a b'", "bash(git commit -m a b)"),
        ("CI=1 timeout 60 cargo test", "bash(cargo test)"),
        ("npm run build -- --x", "bash(npm run build -- --x)"),
        ("rm -rf build", "bash(rm -rf build)"),
        ("python3 -c 'print(1)'", "bash(python3 -c print(1))"),
        ("sudo cargo test", "bash(sudo cargo test)"),
        ("./run.sh x", "bash(./run.sh x)"),
        ("cat /etc/hostname", "bash(cat /etc/hostname)"),
        ("xargs grep foo", "bash(xargs grep foo)"),
        ("find . -name x -exec touch {} ';'", "bash(find . -name x -exec touch {} ;)"),
        ("source env.sh", "bash(source env.sh)"),
    ] {
        check(&scene, command, &[rule], &[rule]);
        let allowed = Scene::new(Mode::Ask).allow(&[rule]);
        allowed.check(command, Verdict::Allow);
        allowed.check_all(Verdict::Ask, &[&format!("{command} --force"), &format!("{command} && touch a")]);
    }
}

#[test]
fn each_part_that_nothing_allows_has_a_rule_of_its_own() {
    let scene = Scene::new(Mode::Ask);
    for (command, rules) in [
        ("cargo build 2>&1 | tail -5", &["bash(cargo build)"][..]),
        ("touch a && ls", &["bash(touch a)"]),
        ("cargo test; rm -rf /tmp/zzz", &["bash(cargo test)", "bash(rm -rf /tmp/zzz)"]),
        ("cat list | xargs grep foo | sort", &["bash(xargs grep foo)"]),
        ("touch a; touch a; (touch b) & wc -l < a", &["bash(touch a)", "bash(touch b)"]),
        ("bash -c 'cargo build | tee out'", &["bash(cargo build)", "bash(tee out)"]),
        ("x=$(cargo pkgid) make", &["bash(make)", "bash(cargo pkgid)"]),
        ("cargo doc > src/log && cat /etc/hostname", &["bash(cargo doc)", "edit(src/log)", "bash(cat /etc/hostname)"]),
        ("ls > out", &["edit(out)"]),
    ] {
        check(&scene, command, rules, rules);
    }
    // What a rule allows already needs none.
    let cargo = Scene::new(Mode::Ask).allow(&["bash(cargo *)"]);
    check(&cargo, "cargo build && touch a", &["bash(touch a)"], &["bash(touch a)"]);
    let many = scene.check("touch a; touch b; touch c; touch d", Verdict::Ask);
    assert!(many.always.is_empty() && many.settled_with.is_empty(), "{many:?}");
    assert!(many.reason.unwrap().ends_with("and 3 rules would not be enough for all that it does"));
}

#[test]
fn what_only_the_shell_knows_is_not_granted_with_a_word() {
    let scene = Scene::new(Mode::Ask);
    for (command, rule) in [
        ("rm *.o", "bash(rm *.o)"),
        ("rm $X", "bash(rm *)"),
        ("rm -- \"a$X\" $(ls) c", "bash(rm -- a* * c)"),
        ("python3 -c 'import x\nx.y()' z", "bash(python3 -c import x*x.y() z)"),
        ("find . -name '*.o' -exec touch {} +", "bash(find . -name *.o -exec touch {} +)"),
        ("for f in a b; do touch $f && ls; done", "bash(touch *)"),
    ] {
        check(&scene, command, &[], &[rule]);
    }
    let long = format!("git commit -m '{}'", "word ".repeat(60));
    let decision = scene.check(&long, Verdict::Ask);
    assert!(decision.always.is_empty() && decision.settled_with[0].len() < 180, "{decision:?}");
    assert!(decision.settled_with[0].starts_with("bash(git commit -m word word"), "{decision:?}");
    for command in ["echo 'x", "PATH=. cargo test", "$X a", "ls > $X", "a &&", "cargo test; echo 'x"] {
        check(&scene, command, &[], &[]);
    }
}

#[test]
fn no_rule_is_suggested_against_one_that_refuses_or_that_only_a_person_answers() {
    let denied = Scene::new(Mode::Ask).deny(&["bash(rm *)"]);
    let refused = denied.check("touch a; rm x", Verdict::Deny);
    assert!(refused.always.is_empty() && refused.settled_with.is_empty());
    check(&denied, "sh -c \"$X\"", &[], &[]);
    // A rule on the command line does not answer one that asks; a grant does, for this and no more.
    let asks = Scene::new(Mode::Ask).ask(&["bash(git push *)", "read(secrets/**)"]);
    check(&asks, "git push --force && touch a", &["bash(git push --force)", "bash(touch a)"], &[]);
    check(&asks, "timeout 9 git push", &["bash(git push)"], &[]);
    check(&asks, "cat secrets/x", &["read(secrets/x)"], &[]);
    check(&Scene::new(Mode::Ask).ask(&["bash"]), "touch a", &[], &[]);
}

#[test]
fn a_file_is_suggested_and_not_its_folder() {
    let scene = Scene::new(Mode::Ask);
    for (path, rule) in
        [("src/a.rs", "edit(src/a.rs)"), ("a.rs", "edit(a.rs)"), ("src/[id]/*", "edit(src/[[]id[]]/[*])")]
    {
        let decision = scene.write(path);
        assert_eq!((decision.always, decision.settled_with), (vec![rule.to_owned()], vec![rule.to_owned()]));
        let granted = Scene::new(Mode::Ask).grant(&[rule]);
        assert_eq!(granted.write(path).verdict, Verdict::Allow);
        assert_eq!(granted.write("src/b.rs").verdict, Verdict::Ask);
    }
    assert_eq!(scene.read("/etc/passwd").always, ["read(/etc/passwd)"]);
    assert_eq!(scene.read("/etc").always, ["read(/etc/**)"]);
    let both = vec![Subject::Write("a".into()), Subject::Write("src/b".into())];
    assert_eq!(scene.decide("write", both, Effects::Local).always, ["edit(a)", "edit(src/b)"]);
    // Nobody grants a protected file with a word; whoever starts a run may name it.
    let protected = scene.write(".git/config");
    assert_eq!((protected.always, protected.settled_with), (vec![], vec!["edit(.git/config)".to_owned()]));
}

#[test]
fn a_pattern_that_is_written_out_stands_for_the_rules_that_it_covers() {
    let shown = ["bash(cargo test -p x)", "bash(touch a)", "edit(src/[[]id[]]/\u{e9}.rs)", "read(/etc/hosts)"];
    let shown: Vec<String> = shown.iter().map(|rule| (*rule).to_owned()).collect();
    let granted = |pattern: &str| widened(&shown, pattern).map(|rules| rules.join(" "));
    let rest = "bash(touch a) edit(src/[[]id[]]/\u{e9}.rs) read(/etc/hosts)";
    for pattern in ["cargo test *", " bash(cargo test *) ", "bash(cargo test:*)"] {
        assert!(granted(pattern).unwrap().ends_with(rest), "{pattern}");
    }
    assert_eq!(granted("src/**").unwrap(), "bash(cargo test -p x) bash(touch a) edit(src/**) read(/etc/hosts)");
    assert!(granted("edit(src/*/\u{e9}.rs)").is_some() && granted("read(/etc/*)").is_some());
    let everything = ["*", "bash(*)", "edit(*)", ""];
    for pattern in
        ["cargo build *", ")", "edit(/etc/*)", "read(src/**)", "edit(src/i/**)"].into_iter().chain(everything)
    {
        assert_eq!(granted(pattern), None, "{pattern}");
    }
}
