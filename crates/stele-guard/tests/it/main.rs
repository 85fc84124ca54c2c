//! Verdicts on whole calls.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod always;
mod cases;
mod commands;
mod files;
mod home;
mod properties;
mod repository;

use std::path::{Path, PathBuf};

use stele_core::{Call, CallDecision, CallId, Effects, Mode, Subject, Verdict};
use stele_guard::{Layer, List, Policy, Surroundings, Workspace, decide};

/// A workspace in a temporary folder, with rules and a mode.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
    pub(crate) workspace: Workspace,
    pub(crate) policy: Policy,
    pub(crate) mode: Mode,
}

impl Scene {
    pub(crate) fn new(mode: Mode) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("ws");
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::create_dir_all(folder.path().join("home/.ssh")).unwrap();
        std::fs::write(folder.path().join("home/.ssh/id_rsa"), "key").unwrap();
        let surroundings = Surroundings {
            home: Some(folder.path().join("home")),
            search_path: Some("/usr/local/bin:/usr/bin:/bin".into()),
        };
        let workspace = Workspace::new(&root, &root, &surroundings).unwrap();
        Self { folder, workspace, policy: Policy::default(), mode }
    }

    pub(crate) fn allow(self, rules: &[&str]) -> Self {
        self.rules(List::Allow, Layer::Flag, rules)
    }

    pub(crate) fn deny(self, rules: &[&str]) -> Self {
        self.rules(List::Deny, Layer::User, rules)
    }

    pub(crate) fn ask(self, rules: &[&str]) -> Self {
        self.rules(List::Ask, Layer::User, rules)
    }

    pub(crate) fn grant(self, rules: &[&str]) -> Self {
        self.rules(List::Allow, Layer::Session, rules)
    }

    pub(crate) fn rules(mut self, list: List, layer: Layer, rules: &[&str]) -> Self {
        for rule in rules {
            self.policy.add(list, layer, rule).unwrap();
        }
        self
    }

    pub(crate) fn root(&self) -> &Path {
        self.workspace.root()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn decide(&self, tool: &str, subjects: Vec<Subject>, effects: Effects) -> CallDecision {
        let call = Call { id: CallId(1), tool: tool.into(), subjects, effects, parallel: false };
        decide(&call, self.mode, &self.policy, &self.workspace)
    }

    pub(crate) fn bash(&self, command: &str) -> CallDecision {
        self.decide("bash", vec![Subject::Command(command.into())], Effects::External)
    }

    pub(crate) fn read(&self, path: &str) -> CallDecision {
        self.decide("read", vec![Subject::Read(path.into())], Effects::None)
    }

    pub(crate) fn write(&self, path: &str) -> CallDecision {
        self.decide("write", vec![Subject::Write(path.into())], Effects::Local)
    }

    #[track_caller]
    pub(crate) fn check(&self, command: &str, verdict: Verdict) -> CallDecision {
        let decision = self.bash(command);
        assert_eq!(decision.verdict, verdict, "{command}: {decision:?}");
        decision
    }

    #[track_caller]
    pub(crate) fn check_all(&self, verdict: Verdict, commands: &[&str]) {
        for command in commands {
            self.check(command, verdict);
        }
    }
}
