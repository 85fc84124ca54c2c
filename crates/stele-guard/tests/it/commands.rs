//! Command lines in each mode.

use stele_core::{Effects, Mode, Verdict};

use crate::Scene;

#[test]
fn known_readers_run_without_asking() {
    let scene = Scene::new(Mode::Ask);
    scene.check_all(
        Verdict::Allow,
        &[
            "ls -la",
            "ls src | head -5",
            "cat Cargo.toml",
            "pwd",
            "echo hi $X",
            "wc -l src/main.rs",
            "head -n 20 a",
            "grep -rn 'fn main' src",
            "grep -rn \"/api/users\" src",
            "rg -n --hidden 'a|b' src",
            "rg --files",
            "find . -name '*.rs' -type f",
            "git status",
            "git -C src log --oneline -5",
            "git diff HEAD~1 -- src",
            "git show HEAD:src/a.rs",
            "git branch --list 'x*'",
            "git branch",
            "sort a | uniq -c | sort -rn",
            "tail -50 a",
            "cd src && ls",
            "cd src && git diff | head -n 5",
            "sed -n '1,40p' a",
            "test -f a && echo yes",
            "[ -d src ] && ls src",
            "set -euo pipefail; ls",
            "ls 2>/dev/null",
            "ls 2>&1 | wc -l",
            "command -v cargo",
            "for f in a b; do echo $f; done",
            "export CI=1; ls",
            "timeout 5 ls",
            "time git status",
            "bash -c 'ls src'",
            "grep x < src/a",
            "true",
            "diff a b",
            "date +%s",
            "git stash list",
            "find src -maxdepth 1 -print",
        ],
    );
    assert_eq!(scene.bash("ls").by, "builtin:read-only");
}

#[test]
fn what_writes_runs_programs_or_looks_outside_asks() {
    for mode in [Mode::Ask, Mode::Edit] {
        Scene::new(mode).check_all(
            Verdict::Ask,
            &[
                "cargo build",
                "rm x",
                "find . -delete",
                "find . -exec ls {} ';'",
                "find . -fprintf x y",
                "sort -o a b",
                "sort -oa b",
                "sort --compress-program=x a",
                "git -c core.pager=x log",
                "git log --output=x",
                "git diff --no-index a b",
                "git --exec-path=x status",
                "git branch -D x",
                "git branch new",
                "git -C .. status",
                "git --git-dir=/x log",
                "rg --pre x y",
                "rg --pre=x y",
                "rg -z x",
                "cat /etc/passwd",
                "cat ../x",
                "cat ~/.ssh/id_rsa",
                "cat $X",
                "cat *",
                "cd .. && ls",
                "cd / && cat etc/passwd",
                "cd",
                "cd -",
                "cd src && cat ../../x",
                "ls ..",
                "grep -f /etc/passwd x",
                "grep -e x /etc/passwd",
                "rg --files /etc",
                "sed -i s/a/b/ x",
                "sed -n 'w x' y",
                "sed -n '1e ls' y",
                "awk 1 x",
                "env",
                "printenv",
                "sh",
                "uniq a b",
                "ls > ../x",
                "echo x > /etc/x",
                "xargs rm",
                "ls | xargs cat",
                "eval \"$X\"",
                "source x",
                ". x",
                "sudo ls",
                "bash -c \"$X\"",
                "printf -v PATH x",
                "printf $X y",
                "tree -o x",
                "date -s x",
                "date 1231",
                "alias ls=rm",
                "ls &> /x",
                "exec ls",
                "trap 'rm x' EXIT",
                "cd src; cd ..; cd ..; ls",
                "while cd ..; do ls; done",
                "git ls-files --format=x",
                "bash x.sh",
                "bash -i -c ls",
                "zsh -c ls",
                "nice -x ls",
                "env -S 'ls' x",
                "git log $X",
                "head $X",
                "command ./ls",
                "git\u{a0}status",
                "ls;rm",
                "diff -r a b",
                "git reflog expire",
            ],
        );
    }
}

#[test]
fn redirections_follow_the_rules_for_files() {
    Scene::new(Mode::Ask).check("echo x > src/a", Verdict::Ask);
    Scene::new(Mode::Ask).allow(&["edit(src/**)"]).check("echo x > src/a", Verdict::Allow);
    let edit = Scene::new(Mode::Edit);
    assert_eq!(edit.check("echo x > src/a", Verdict::Allow).by, "mode:edit");
    edit.check_all(Verdict::Ask, &["echo x > .git/config", "echo x >> .stele/a", "echo x > $F", "cd .. && echo x > a"]);
    let denied = Scene::new(Mode::Full).deny(&["edit(src/**)"]);
    denied.check_all(Verdict::Deny, &["echo x > src/a", "cd src && ls > a", "{ ls; } >| ./src/../src/b"]);
    denied.check_all(Verdict::Ask, &["echo x > $F", "cp a src/b", "while cd src; do ls > a; done"]);
    denied.check("echo x > a", Verdict::Allow);
}

#[test]
fn denied_files_are_denied_to_readers_and_doubtful_elsewhere() {
    let scene = Scene::new(Mode::Full).deny(&["read(.env)", "read(~/.ssh/**)"]);
    scene.check_all(
        Verdict::Deny,
        &["cat .env", "cat src/.env", "grep x ./src/../.env", "cd src && cat .env", "wc -l < .env"],
    );
    scene.check_all(Verdict::Ask, &["cp .env x", "awk 1 .env", "dd if=.env", "python3 x.py --file=.env"]);
    scene.check_all(Verdict::Allow, &["echo .env", "cat env", "cargo test"]);
    let key = scene.root().parent().unwrap().join("home/.ssh/id");
    assert_eq!(scene.read(key.to_str().unwrap()).verdict, Verdict::Deny);
}

#[test]
fn full_runs_everything_but_what_is_denied_or_may_be() {
    let full = Scene::new(Mode::Full);
    full.check_all(Verdict::Allow, &["rm -rf x", "$CMD", "echo \"x", "sudo x", "PATH=. x", "curl x | sh", "eval $X"]);
    assert_eq!(full.bash("rm x").by, "mode:full");
    let denied = Scene::new(Mode::Full).deny(&["bash(rm *)"]);
    denied.check_all(
        Verdict::Deny,
        &[
            "rm x",
            "/bin/rm x",
            "env A=b rm x",
            "sudo -u root rm x",
            "timeout -k 5 10 rm x",
            "nice -n 5 rm x",
            "nohup rm x &",
            "xargs -n 1 rm",
            "ls | xargs -I{} rm {}",
            "sh -c 'rm x'",
            "bash -lc \"ls; rm x\"",
            "eval rm x",
            "eval 'rm x'",
            "find . -exec rm {} +",
            "command rm x",
            "exec rm x",
            "time rm x",
            "trap 'rm x' EXIT",
            "sudo env timeout 5 sh -c 'nice rm x'",
            "busybox=1 rm x",
            "doas rm x",
            "bash -euo pipefail -c 'rm x'",
            "f() { rm x; }; f",
            "find . -exec sh -c 'rm x' ';'",
            "rm",
            "env /bin/rm x",
            "time CI=1 rm x",
            "time ! rm x",
            "eval -- rm x",
            "command env -u A B=c rm x",
            "zsh -c 'rm x'",
            "! rm x",
        ],
    );
    denied.check_all(
        Verdict::Ask,
        &[
            "$X y",
            "sh -c \"$X\"",
            "eval $X",
            "echo 'x",
            "bash <<'EOF'\nrm x\nEOF",
            "curl x | sh",
            "source x",
            "env $X",
            "busybox rm x",
            "ssh host rm x",
            "ssh host 'ls; rm x'",
            "watch 'rm x'",
            "xargs $X",
            "env -S 'rm x'",
            "coproc rm x",
            "git -c alias.x='!rm y' x",
            "find . -exec $X {} ';'",
            "sudo $X rm x",
            "sudo --unknown rm x",
            "docker run $X",
            "git submodule foreach 'rm x'",
            "r\\\nm x",
            "{rm,x}",
            "time if rm x",
        ],
    );
    denied.check_all(
        Verdict::Allow,
        &["cargo test", "rmdir x", "git rm x", "echo rm x", "make", "ssh host ls", "sh x.sh", "echo $X", "npx tsc"],
    );
}

#[test]
fn the_order_is_deny_then_ask_then_allow() {
    let scene =
        Scene::new(Mode::Ask).allow(&["bash(git *)"]).ask(&["bash(git push*)"]).deny(&["bash(git push --force*)"]);
    scene.check("git fetch", Verdict::Allow);
    scene.check("git push", Verdict::Ask);
    scene.check("git push --force", Verdict::Deny);
    scene.check("git fetch && git push", Verdict::Ask);
    scene.check("git fetch && git push && git push --force", Verdict::Deny);
    let granted = scene.grant(&["bash(git push *)"]);
    granted.check("git push", Verdict::Allow);
    granted.check("git push --force", Verdict::Deny);
}

#[test]
fn a_rule_for_the_whole_tool_is_a_mode_of_its_own() {
    let scene = Scene::new(Mode::Ask).allow(&["bash"]);
    assert_eq!(scene.check("curl x | sh", Verdict::Allow).by, "rule:flag:0");
    Scene::new(Mode::Ask).allow(&["bash(*)"]).check("$X > /y", Verdict::Allow);
    let denied = scene.deny(&["bash(rm *)"]);
    denied.check("rm x", Verdict::Deny);
    denied.check("$X", Verdict::Ask);
    Scene::new(Mode::Full).deny(&["bash"]).check("ls", Verdict::Deny);
    Scene::new(Mode::Ask).ask(&["bash"]).check("ls", Verdict::Ask);
    Scene::new(Mode::Ask).ask(&["bash"]).grant(&["bash"]).check("ls", Verdict::Allow);
}

#[test]
fn wrappers_need_what_they_run_to_be_allowed() {
    let scene = Scene::new(Mode::Ask).allow(&["bash(cargo test *)"]);
    scene.check_all(
        Verdict::Allow,
        &[
            "timeout 60 cargo test",
            "env CI=1 cargo test -p x",
            "bash -c 'cargo test; ls'",
            "cd src && cargo test 2>&1 | tail -5",
        ],
    );
    scene.check_all(
        Verdict::Ask,
        &[
            "sudo cargo test",
            "cargo tests",
            "bash -c 'cargo test; make'",
            "timeout 60 make",
            "xargs make",
            "./cargo test",
        ],
    );
}

#[test]
fn a_refusal_names_its_rule() {
    let scene = Scene::new(Mode::Full).deny(&["bash(rm *)"]);
    let decision = scene.bash("rm x");
    assert_eq!((decision.by.as_str(), decision.reason.as_deref()), ("rule:user:0", Some("bash(rm *) is denied")));
}

#[test]
fn a_call_that_touches_nothing_is_free_and_one_that_does_not_say_asks() {
    let scene = Scene::new(Mode::Ask);
    assert_eq!(scene.decide("todo", vec![], Effects::None).verdict, Verdict::Allow);
    assert_eq!(scene.decide("other", vec![], Effects::Local).verdict, Verdict::Ask);
    assert_eq!(Scene::new(Mode::Full).decide("other", vec![], Effects::External).verdict, Verdict::Allow);
    let denied = Scene::new(Mode::Full).deny(&["todo"]);
    assert_eq!(denied.decide("todo", vec![], Effects::None).verdict, Verdict::Deny);
}
