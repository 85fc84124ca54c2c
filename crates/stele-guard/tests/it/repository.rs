//! What a folder's own git configuration runs is never run without a question: real repositories, real git.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use stele_core::{Mode, Verdict};

use crate::Scene;

/// A repository with one commit and a changed file; what is run by stealth makes `RAN`, in the folder above.
struct Repository {
    scene: Scene,
}

impl Repository {
    fn new() -> Self {
        let repository = Self { scene: Scene::new(Mode::Ask) };
        repository.sh("git init -q . && echo one > a.txt && git add . && git commit -qm first && echo two > a.txt");
        repository
    }

    fn root(&self) -> &Path {
        self.scene.root()
    }

    fn marker(&self) -> PathBuf {
        self.root().with_file_name("RAN")
    }

    /// Runs a command line with `M` for a program that makes the marker.
    fn sh(&self, script: &str) -> String {
        let script = script.replace("'M", &format!("'touch {}", self.marker().display()));
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(self.root())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.root().with_file_name("home"))
            .envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_TERMINAL_PROMPT", "0")])
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@b"), ("GIT_COMMITTER_NAME", "a")])
            .env("GIT_COMMITTER_EMAIL", "a@b")
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    /// Runs the command and says whether anything of the folder's own ran.
    fn runs_something(&self, command: &str) -> bool {
        let _ = std::fs::remove_file(self.marker());
        // Nothing is taken for unchanged, so that git looks at the files.
        for file in std::fs::read_dir(self.root()).unwrap().flatten().filter(|file| file.path().is_file()) {
            let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
            std::fs::File::options().append(true).open(file.path()).unwrap().set_modified(long_ago).unwrap();
        }
        self.sh(command);
        self.marker().exists()
    }

    /// Git runs a program for this, and so the command asks, and says why.
    #[track_caller]
    fn asks(setup: &str, command: &str, why: &str) {
        let repository = Self::new();
        let said = repository.sh(setup);
        let decision = repository.scene.check(command, Verdict::Ask);
        assert!(decision.reason.as_deref().unwrap_or_default().contains(why), "{setup}: {decision:?}");
        assert_eq!(decision.always, [format!("bash({command})")], "{setup}");
        assert!(repository.runs_something(command), "{setup} runs nothing, so that it proves nothing: {said}");
        let allowed = Scene { policy: Scene::new(Mode::Ask).allow(&["bash(git *)"]).policy, ..repository.scene };
        allowed.check(command, Verdict::Allow);
    }

    /// Git runs nothing for this.
    #[track_caller]
    fn is_free(setup: &str, commands: &[&str]) {
        let repository = Self::new();
        repository.sh(setup);
        for command in commands {
            repository.scene.check(command, Verdict::Allow);
            assert!(!repository.runs_something(command), "{setup}: {command}");
        }
    }
}

const LOOKS: &[&str] = &["git status --short", "git diff", "git log -p", "git show", "git blame a.txt"];

#[test]
fn programs_of_the_configuration_ask() {
    for (setup, command, why) in [
        ("git config core.fsmonitor 'M; false'", "git status --short", ".git/config sets core.fsmonitor"),
        ("git config diff.external 'M; true'", "git diff", "diff.external"),
        ("echo '*.txt diff=x' > .gitattributes; git config diff.x.textconv 'M; cat'", "git diff", "diff.x.textconv"),
        ("echo '*.txt diff=x' > .gitattributes; git config diff.x.textconv 'M; cat'", "git show", "diff.x.textconv"),
        ("echo '*.txt diff=x' > .gitattributes; git config diff.x.textconv 'M; cat'", "git blame a.txt", "textconv"),
        ("echo '*.txt diff=x' > .gitattributes; git config diff.x.command 'M; true'", "git diff", "diff.x.command"),
        (
            "echo '*.txt filter=x' > .gitattributes; git config filter.x.clean 'M; cat'",
            "git status -s",
            "filter.x.clean",
        ),
        (
            "echo '*.txt filter=x' > .gitattributes; git config filter.x.process 'M; cat'",
            "git diff",
            "filter.x.process",
        ),
    ] {
        Repository::asks(setup, command, why);
    }
}

#[test]
fn a_signature_is_checked_by_no_program_of_the_folder() {
    let setup = "printf '#!/bin/sh\n%s\n' 'M' > gpg; chmod +x gpg; git config gpg.program \"$PWD/gpg\"
        git config log.showSignature true
        git cat-file commit HEAD | sed 's/^committer .*/&\\ngpgsig -----BEGIN PGP SIGNATURE-----\\n x\\n -----END PGP SIGNATURE-----/' > signed
        git reset -q --soft $(git hash-object -t commit -w signed); rm signed";
    Repository::asks(setup, "git log", "gpg.program");
}

#[test]
fn what_a_configuration_includes_belongs_to_it() {
    let included = "git config -f more core.fsmonitor 'M; false'";
    for include in ["include.path ../more", "includeIf.gitdir:**.path ../more", "include.path \"$PWD/more\""] {
        Repository::asks(&format!("{included}; git config {include}"), "git status", "more sets core.fsmonitor");
    }
    let own = "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor 'M; false'";
    Repository::asks(own, "git status", ".git/config.worktree sets core.fsmonitor");
}

#[test]
fn hooks_that_reading_runs_ask() {
    let hook = |folder: &str| {
        format!("mkdir -p {folder}; printf '#!/bin/sh\n%s\n' 'M' > {folder}/post-index-change; chmod +x {folder}/*")
    };
    Repository::asks(&hook(".git/hooks"), "git status", "the hook .git/hooks/post-index-change");
    let moved = hook("hooks") + "; git config core.hooksPath hooks";
    Repository::asks(&moved, "git status", "the hook hooks/post-index-change");
    let home = hook("../home/hooks") + "; git config core.hooksPath '~/hooks'";
    Repository::asks(&home, "git status", "home/hooks/post-index-change");
}

#[test]
fn every_repository_that_git_may_take_is_looked_at() {
    let evil = "git config core.fsmonitor 'M; false'";
    let repository = Repository::new();
    repository.sh(evil);
    for command in ["cd src && git status", "git -C src status", "(cd src; git status)"] {
        repository.scene.check(command, Verdict::Ask);
        assert!(repository.runs_something(command), "{command}");
    }
    // Its files lie elsewhere; a folder that is a repository itself; a second checkout.
    Repository::asks(&format!("{evil}; mv .git src/moved; echo 'gitdir: src/moved' > .git"), "git status", "src/moved");
    let bare = format!("git config core.worktree ..; {evil}; mv .git evil");
    Repository::asks(&bare, "git -C evil status", "evil/config sets core.fsmonitor");
    let dangling = format!("{bare}; rm evil/HEAD; ln -s refs/heads/none evil/HEAD");
    Repository::asks(&dangling, "git -C evil status", "evil/config sets core.fsmonitor");
    let shared = format!(
        "git config extensions.worktreeConfig true; {bare}; git config -f evil/config --unset core.worktree
        mkdir own; cp evil/HEAD evil/index own; printf '../evil\\r\\n' > own/commondir
        git config -f own/config.worktree core.worktree .."
    );
    Repository::asks(&shared, "git -C own status", "evil/config sets core.fsmonitor");
    Repository::asks(&format!("git worktree add -q second; {evil}"), "git -C second status", "core.fsmonitor");
}

#[test]
fn submodules_are_repositories_too() {
    let sub =
        "git init -q $FORMAT sub; cd sub; git commit -q --allow-empty -m x; git config core.fsmonitor 'M; false'; cd ..
        git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub";
    for (before, after) in [
        ("", ""),
        ("", "; git update-index --index-version 4"),
        ("", "; touch b; git add -N b"),
        ("", "; git config index.threads 2; for i in 1 2 3; do touch x$i; done; git add ."),
        ("rm -rf .git; FORMAT=--object-format=sha256; git init -q $FORMAT .; git add a.txt; ", ""),
    ] {
        Repository::asks(&format!("{before}{sub}{after}"), "git status", "sub/.git/config sets core.fsmonitor");
    }
    // Its repository is that of the folder above, and has it as a submodule in turn.
    let own = "mkdir sub; echo 'gitdir: ../.git' > sub/.git; git init -q sub/sub; cd sub/sub; git commit -q --allow-empty -m x
        git config core.fsmonitor 'M; false'; cd ../..; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub";
    Repository::asks(own, "git status", "sub/sub/.git/config sets core.fsmonitor");
    let harmless = sub.replace("core.fsmonitor 'M; false'", "user.name x");
    Repository::is_free(&harmless, LOOKS);
    let named = "git config -f .gitmodules submodule.sub.path sub; git config -f .gitmodules submodule.sub.url x";
    let absorbed = format!("{harmless}; {named}; git submodule absorbgitdirs sub");
    Repository::is_free(&absorbed, &["git status", "git diff", "git -C sub status"]);
    let evil = format!("{absorbed}; git -C sub config core.fsmonitor 'M; false'");
    Repository::asks(&evil, "git status", ".git/modules/sub/config sets core.fsmonitor");
    let split = Repository::new();
    split.sh("git update-index --split-index");
    assert!(split.scene.check("git status", Verdict::Ask).reason.unwrap().contains(".git/index cannot be read"));
}

#[test]
fn a_usual_repository_is_read_without_a_question() {
    Repository::is_free("", LOOKS);
    let usual = "git config user.name x; git config pull.rebase true; git remote add origin https://example.org/x.git
        git config branch.main.remote origin; git config branch.main.merge refs/heads/main; git config lfs.repositoryformatversion 0
        git config core.fsmonitor false; git config core.autocrlf input; git config include.path missing";
    Repository::is_free(usual, LOOKS);
    // Programs for what is not done here.
    let idle = "git config alias.status '!M'; git config core.pager 'M'; git config core.editor 'M'; git config pager.diff 'M'
        git config core.sshCommand 'M'; git config credential.helper '!M'; git config merge.x.driver 'M'
        git config core.hooksPath hooks; mkdir hooks; printf '#!/bin/sh\n%s\n' 'M' > hooks/post-checkout; chmod +x hooks/*
        git config submodule.x.update '!M'; git config sequence.editor 'M'; echo '*.txt merge=x' > .gitattributes";
    Repository::is_free(idle, LOOKS);
    let outside = Scene::new(Mode::Ask);
    outside.check_all(Verdict::Allow, LOOKS);
}

#[test]
fn what_cannot_be_read_as_git_reads_it_asks() {
    for setup in [
        "echo '[core' > .git/config",
        "rm .git/config; mkfifo .git/config",
        "rm .git/config; mkdir .git/config",
        "mv .git moved; echo moved > .git",
        "echo DIRC > .git/index",
        "git config include.path '%(prefix)/x'",
        "git config include.path ../more; git config -f more include.path more",
        "git config hook.x.command y",
        "git config core.worktree /",
        "git config extensions.partialClone origin",
        "git config core.repositoryFormatVersion 1; git config -f more extensions.objectFormat sha1; git config include.path ../more",
    ] {
        let repository = Repository::new();
        repository.sh(setup);
        repository.scene.check_all(Verdict::Ask, &["git status", "git log -- a.txt", "cd src; git diff"]);
        repository.scene.check("ls .git", Verdict::Allow);
    }
}
