//! The folder that a session's commands run in, and results that are kept whole elsewhere.

use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;
use stele_core::Subject;
use tempfile::TempDir;

use crate::{Session, code, options, tool};

#[test]
fn a_change_of_folder_lasts_inside_the_workspace() {
    let session = Session::new();
    session.file("a b/c/f.txt", "x\n");
    let output = session.call("bash", json!({"command": "cd 'a b'; cd c"}));
    let inner = session.path().join("a b/c");
    assert_eq!(output.meta.cwd.as_deref(), inner.to_str());
    assert!(output.content.contains(&format!("; now in {}]", inner.display())), "{}", output.content);
    assert!(session.call("bash", json!({"command": "pwd"})).content.starts_with(inner.to_str().unwrap()));
    assert_eq!(session.call("read", json!({"path": "f.txt"})).content, "1→x");

    let outside = session.call("bash", json!({"command": "cd /"}));
    assert_eq!(outside.meta.cwd, None);
    assert!(outside.content.contains("; back in ") && outside.content.contains("outside of the workspace"));
    assert!(session.call("bash", json!({"command": "pwd"})).content.starts_with(inner.to_str().unwrap()));
    // Neither a subshell, nor a command that fails or is stopped, moves anything by accident.
    assert_eq!(session.call("bash", json!({"command": "(cd ..)"})).meta.cwd, None);
    assert_eq!(session.call("bash", json!({"command": "cd ..; sleep 300", "timeout": 1})).meta.cwd, None);
    assert_eq!(
        session.call("bash", json!({"command": "cd ..; exit 3"})).meta.cwd.as_deref(),
        inner.parent().unwrap().to_str()
    );
}

#[test]
fn a_folder_that_goes_is_told() {
    let session = Session::new();
    let root = session.path();
    let gone = format!("; its folder is gone, now in {}]", root.display());
    for command in
        ["rm -rf ../deep; true", "mv ../deep ../deeper", "cd /; rm -rf \"$OLDPWD\"", "rm -rf ../deep; exec true"]
    {
        session.call("bash", json!({"command": "mkdir -p deep && cd deep"}));
        assert_eq!(*session.cwd.lock().unwrap(), Some(root.join("deep")));
        let output = session.call("bash", json!({"command": command}));
        assert!(output.content.ends_with(&gone), "{command}: {}", output.content);
        assert_eq!(output.meta.cwd.as_deref(), root.to_str(), "{command}");
        assert!(session.call("bash", json!({"command": "pwd"})).content.starts_with(&format!("{}\n", root.display())));
    }
    // Also by a command with a folder of its own, and by one that is stopped.
    for call in
        [json!({"command": "rm -rf deep", "cwd": ".."}), json!({"command": "rm -rf ../deep; sleep 300", "timeout": 1})]
    {
        session.call("bash", json!({"command": "mkdir -p deep && cd deep"}));
        let output = session.call("bash", call);
        assert!(output.content.ends_with(&gone), "{}", output.content);
    }
    // A folder that the command made itself, and took with it, was never the session's.
    let output = session.call("bash", json!({"command": "mkdir d && cd d && rmdir ../d"}));
    assert_eq!(output.meta.cwd, None);
    let back = format!("; back in {}, since the folder it ended in is gone]", root.display());
    assert!(output.content.ends_with(&back), "{}", output.content);
    // One that goes into another folder of the workspace is there.
    session.call("bash", json!({"command": "mkdir -p deep other && cd deep"}));
    let output = session.call("bash", json!({"command": "cd ../other; rm -r ../deep"}));
    assert_eq!(output.meta.cwd.as_deref(), root.join("other").to_str());
}

#[test]
fn a_link_out_of_the_workspace_is_outside() {
    let elsewhere = TempDir::new().unwrap();
    let session = Session::new();
    symlink(elsewhere.path(), session.path().join("out")).unwrap();
    let output = session.call("bash", json!({"command": "cd out"}));
    assert_eq!(output.meta.cwd, None);
    assert!(output.content.contains("outside of the workspace"), "{}", output.content);
}

#[test]
fn asking_the_shell_changes_nothing_for_the_command() {
    let session = Session::new();
    let show = r#"echo "$0|$#|${BASH_ENV-unset}|$LINENO"; bash -c 'echo "${BASH_ENV-unset}"; trap'; ls -l /proc/self/fd | grep -c memfd"#;
    let output = session.call("bash", json!({"command": show}));
    assert!(output.content.starts_with("bash|0|unset|1\nunset\n0\n["), "{}", output.content);
    // A trap of its own is the command's business; then nobody knows the folder.
    let output = session.call("bash", json!({"command": "trap 'echo bye' EXIT; cd /tmp"}));
    assert!(output.content.starts_with("bye\n[exit 0") && output.meta.cwd.is_none(), "{}", output.content);
    let bad = session.call("bash", json!({"command": "for do"}));
    assert!(bad.content.contains("syntax error") && !bad.content.contains("trap"), "{}", bad.content);
    let signal = session.call("bash", json!({"command": "kill -TERM $$"}));
    assert_eq!(signal.meta.process.unwrap().signal, Some(15));
}

#[test]
fn a_folder_for_one_command_does_not_last() {
    let session = Session::new();
    session.file("sub/f", "");
    let output = session.call("bash", json!({"command": "ls", "cwd": "sub"}));
    assert!(output.content.starts_with("f\n"), "{}", output.content);
    assert_eq!(output.meta.cwd, None);
    assert_eq!(code(&session.call("bash", json!({"command": "ls", "cwd": "none"}))), "file.missing");
    assert_eq!(code(&session.call("bash", json!({"command": "ls", "cwd": "sub/f"}))), "tool.value");
    let subjects = tool(&options(), "bash").subjects(r#"{"command":"rm x","cwd":"it's"}"#).unwrap();
    assert_eq!(subjects, [Subject::Command("cd -- 'it'\\''s'\nrm x".into())]);
}

#[test]
fn what_is_left_out_of_a_result_is_kept_for_its_owner_alone() {
    let spill = TempDir::new().unwrap();
    let session = Session::with(stele_tools::Options { spill: Some(spill.path().to_owned()), ..options() });
    let short = session.call("bash", json!({"command": "seq 1 3000"}));
    assert_eq!(short.meta.spill, None, "what is shown whole is kept nowhere else");
    assert_eq!(std::fs::read_dir(spill.path()).unwrap().count(), 0);

    let output = session.call("bash", json!({"command": "seq 1 100000"}));
    let kept = output.meta.spill.unwrap();
    assert_eq!((kept.name.as_str(), kept.bytes), ("spill:c2", 588_895));
    assert!(output.content.contains("all of it is in spill:c2: use read or grep on it …]"), "{}", output.content);
    let file = spill.path().join(crate::SESSION).join("c2");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let whole: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), whole);

    let window = session.call("read", json!({"path": "spill:c2", "offset": 50_000, "limit": 1}));
    assert!(window.content.starts_with("50000→50000\n[lines 50000-50000 of 100000"), "{}", window.content);
    assert_eq!(window.meta.files, []);
    let found = session.call("grep", json!({"pattern": "^77777$", "path": "spill:c2"}));
    assert!(found.content.starts_with("spill:c2\n77777: 77777\n"), "{}", found.content);
    assert_eq!(code(&session.call("read", json!({"path": "spill:c9"}))), "file.missing");
    assert_eq!(code(&session.call("read", json!({"path": "spill:../c2"}))), "file.missing");
}

#[test]
fn what_is_kept_is_changed_by_no_tool() {
    let spill = TempDir::new().unwrap();
    let offer = vec![stele_tools::Offer::Patch];
    let options = stele_tools::Options { spill: Some(spill.path().to_owned()), offer, ..options() };
    let session = Session::with(options.clone());
    session.call("bash", json!({"command": "seq 1 100000"}));
    let file = spill.path().join(crate::SESSION).join("c1");
    let printed = std::fs::read_to_string(&file).unwrap();
    std::os::unix::fs::symlink(&file, session.path().join("link")).unwrap();
    session.call("read", json!({"path": "link"}));
    let edits = json!([{"old": "77777\n", "new": "x\n"}]);
    let written = |path: &str| {
        [("write", json!({"path": path, "content": "x"})), ("edit", json!({"path": path, "edits": edits}))]
    };
    let patch = |what: &str| ("patch", json!({"patch": format!("*** Begin Patch\n*** {what}\n*** End Patch\n")}));
    let calls = ["spill:c1", "link", file.to_str().unwrap()].into_iter().flat_map(written).chain([
        patch("Update File: spill:c1\n@@\n-77777\n+x"),
        patch("Update File: link\n@@\n-77777\n+x"),
        patch("Delete File: spill:c1"),
    ]);
    for (tool, arguments) in calls {
        assert_eq!(code(&session.call(tool, arguments.clone())), "file.kept", "{tool} {arguments}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), printed, "{tool} {arguments}");
    }
    // Nobody is asked about it, and a name that nothing was kept under makes no file.
    for (name, arguments) in written("spill:c7") {
        assert_eq!(tool(&options, name).subjects(&arguments.to_string()).unwrap_err().code, "file.kept");
    }
    assert_eq!(code(&session.call("write", json!({"path": "spill:c7", "content": "x"}))), "file.kept");
    assert!(!session.path().join("spill:c7").exists());
    assert_eq!(session.call("write", json!({"path": "./spill:c7", "content": "x"})).error, None, "a file of that name");
}

#[test]
fn what_is_kept_is_bounded() {
    let spill = TempDir::new().unwrap();
    let session = Session::with(stele_tools::Options { spill: Some(spill.path().to_owned()), ..options() });
    let output = session.call("bash", json!({"command": "yes 123456789012345 | head -c 100000000"}));
    assert_eq!(output.meta.process.as_ref().unwrap().output_bytes, 100_000_000);
    assert_eq!(output.meta.spill.unwrap().bytes, 64 * 1024 * 1024);
    assert!(output.content.contains("the first 64 MiB are in spill:c1"), "{}", output.content);
}
