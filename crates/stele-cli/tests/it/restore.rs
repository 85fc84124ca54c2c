//! What an undo, a redo and a patch leave behind: hard links, other people's bytes, and what was cut off.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::json;
use stele_core::Hash;
use stele_testkit::{Say, Script, Server};

use crate::support::{Done, Place, server};

/// Files that are changed together.
const MANY: usize = 300;

fn undo(place: &Place, arguments: &[&str]) -> Done {
    Done::of(place.stele(["undo"].into_iter().chain(arguments.iter().copied())))
}

/// Runs one turn, in which the model makes these calls.
fn turn(place: &Place, calls: impl IntoIterator<Item = Say>) -> Server {
    let server = server(Script::new(calls.into_iter().chain([Say::text("Done."), Say::text("Gone on.")])));
    let done = Done::of(place.with(&server, ["run", "--mode", "full", "x"]));
    assert_eq!(done.code, 0, "{done:?}");
    server
}

fn bash(command: &str) -> Say {
    Say::call("bash", &json!({"command": command}))
}

fn patch(body: &str) -> Say {
    Say::call("patch", &json!({"patch": format!("*** Begin Patch\n{body}*** End Patch\n")}))
}

fn offer_patch(place: &Place) {
    fs::create_dir_all(place.home()).unwrap();
    fs::write(place.home().join("config.toml"), "[tools]\noffer = [\"patch\"]\n").unwrap();
}

fn many(place: &Place, text: &str) {
    (0..MANY).for_each(|at| place.write(&format!("f{at}"), text));
}

fn how_many_are(place: &Place, text: &str) -> usize {
    (0..MANY).filter(|at| place.read(&format!("f{at}")) == text).count()
}

/// Kills a command as soon as the first of many files is what it makes of it.
fn killed_at_the_first_change(place: &Place, mut command: Command, to: &str) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while how_many_are(place, to) == 0 && child.try_wait().unwrap().is_none() {}
    let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::KILL);
    child.wait().unwrap();
}

#[test]
fn a_patch_that_is_killed_is_told_and_taken_back() {
    let place = Place::new();
    offer_patch(&place);
    many(&place, "old\n");
    let mut body = (0..MANY).fold(String::new(), |mut body, at| {
        write!(body, "*** Update File: f{at}\n-old\n+new\n").unwrap();
        body
    });
    body.push_str("*** Add File: made/new\n+new\n");
    let server = server(Script::new([patch(&body), Say::text("Gone on.")]));
    killed_at_the_first_change(&place, place.with(&server, ["run", "--mode", "full", "x"]), "new\n");
    let reached = how_many_are(&place, "new\n");
    assert!(reached > 0);
    // The model is told how far it came, and a person can see it.
    let done = Done::of(place.with(&server, ["run", "--continue", "go on"]));
    assert_eq!(done.code, 0, "{done:?}");
    let asked = server.requests().last().unwrap().json().to_string();
    let made = place.folder().join("made").exists();
    if reached < MANY {
        let told = format!("It had changed {reached} of its {} files: ", MANY + 1);
        assert!(!made && asked.contains("outcome_unknown") && asked.contains(&told), "{asked}");
        let listed = undo(&place, &["--list", "--json"]);
        assert_eq!(listed.lines()[0]["files"].as_array().unwrap().len(), reached, "{listed:?}");
    }
    assert_eq!(undo(&place, &[]).code, 0);
    let done = undo(&place, &[]);
    assert_eq!((done.code, how_many_are(&place, "old\n")), (0, MANY), "{done:?}");
    assert!(!place.folder().join("made").exists());
    assert_eq!((undo(&place, &["--redo"]).code, how_many_are(&place, "new\n")), (0, reached));
    place.assert_clean();
}

#[test]
fn an_undo_or_redo_that_is_killed_is_finished_by_whoever_comes_next() {
    let place = Place::new();
    many(&place, "old\n");
    let _server = turn(&place, [bash("for f in f*; do echo new > $f; done")]);
    for (arguments, to) in [(&["undo"][..], "old\n"), (&["undo", "--redo"], "new\n")] {
        killed_at_the_first_change(&place, place.stele(arguments.iter().copied()), to);
        let done = Done::of(place.stele(arguments.iter().copied()));
        assert_eq!((done.code, how_many_are(&place, to)), (0, MANY), "{done:?}");
    }
    killed_at_the_first_change(&place, place.stele(["undo"]), "old\n");
    let reached = how_many_are(&place, "old\n");
    let server = server(Script::new([Say::text("Gone on.")]));
    // A log that came from a file changes nothing by itself.
    let (file, session) = (place.path().join("export.jsonl"), place.sessions().remove(0));
    let elsewhere = Place::new();
    let copied = file.to_str().unwrap();
    assert_eq!(Done::of(place.stele(["sessions", "export", &session, "-o", copied])).code, 0);
    assert_eq!(Done::of(elsewhere.stele(["sessions", "import", copied])).code, 0);
    let folder = place.folder();
    let imported = ["run", "-C", folder.to_str().unwrap(), "--resume", &elsewhere.sessions().remove(0), "go on"];
    let done = Done::of(elsewhere.with(&server, imported));
    assert_eq!((done.code, how_many_are(&place, "old\n")), (0, reached), "{done:?}");
    assert!(reached == MANY || done.err.contains("undo.foreign: the log came from a file"), "{done:?}");
    // A prompt finishes it as well; what a person changed meanwhile is theirs.
    if let Some(last) = (0..MANY).find(|at| place.read(&format!("f{at}")) == "new\n") {
        place.write(&format!("f{last}"), "mine\n");
        let done = Done::of(place.with(&server, ["run", "--continue", "go on"]));
        let files = MANY - reached - 1;
        let said = format!("the undo of turn 1 was cut off the last time; it is finished now: {files} file");
        assert!(done.code == 0 && done.err.contains(&said), "{done:?}");
        assert_eq!((how_many_are(&place, "old\n"), how_many_are(&place, "mine\n")), (MANY - 1, 1));
    }
    place.assert_clean();
}

#[test]
fn what_cannot_be_finished_is_told_and_tried_again_also_after_other_turns() {
    let place = Place::new();
    many(&place, "old\n");
    // The first one that is restored, and more than may be written below.
    let large = "x".repeat(1_000_000);
    place.write("z-large", &large);
    let _server = turn(&place, [bash("for f in f*; do echo new > $f; done; echo new > z-large")]);
    killed_at_the_first_change(&place, place.stele(["undo"]), "old\n");
    let reached = how_many_are(&place, "old\n");
    if reached == MANY {
        return;
    }
    // As it was just before, so that the undo is still to write it.
    place.write("z-large", "new\n");
    let (theirs, still) = ("new\n", MANY - reached);
    let changed = (0..MANY).map(|at| format!("f{at}")).find(|name| place.read(name) == theirs).unwrap();
    let edit = json!({"path": changed, "edits": [{"old": "new", "new": "newer"}]});
    let says = [Say::call("edit", &edit), Say::text("Done."), Say::text("Gone on."), Say::text("Gone on.")];
    let server = server(Script::new(says));
    let go_on = |more: &[&str]| place.with(&server, ["run", "--continue"].iter().chain(more).copied());

    let done = limited(&go_on(&["--mode", "full", "edit it"]), 1800);
    assert_eq!(done.code, 0, "{done:?}");
    let said = "the undo of turn 1 that was cut off the last time could not be finished: ";
    assert_eq!(done.err.matches(said).count(), 1, "{done:?}");
    assert!(done.err.contains("no file was changed") && done.err.contains("z-large"), "{done:?}");
    // Among JSON lines it is one.
    let done = limited(&go_on(&["--json", "go on"]), 1800);
    let warnings: Vec<_> = done.lines().into_iter().filter(|line| line["code"] == "undo.unfinished").collect();
    let [warning] = warnings.as_slice() else { panic!("{done:?}") };
    assert!(warning["text"].as_str().unwrap().contains(said), "{warning}");
    assert!(place.read("z-large") == theirs && how_many_are(&place, theirs) == still - 1);

    // Once it can be done it is, but for what the turn between made its own.
    let done = Done::of(go_on(&["go on"]));
    let said = format!("the undo of turn 1 was cut off the last time; it is finished now: {still} file");
    assert!(done.code == 0 && done.err.contains(&said), "{done:?}");
    assert!(place.read("z-large") == large && how_many_are(&place, "old\n") == MANY - 1);
    assert_eq!(place.read(&changed), "newer\n");
    assert!(!Done::of(go_on(&["go on"])).err.contains("undo of turn 1"));
    place.assert_clean();
}

#[test]
fn what_was_overwritten_comes_back_the_other_way() {
    let place = Place::new();
    place.write("f", "old\n");
    let _server = turn(&place, [bash("echo new > f")]);
    place.write("f", "mine\n");
    let done = undo(&place, &["--overwrite"]);
    assert!(
        done.code == 0 && done.out.contains("what was changed since is kept; to bring it back:\n  stele undo"),
        "{done:?}"
    );
    assert!(done.out.trim_end().ends_with("--redo"), "{done:?}");
    assert_eq!((undo(&place, &["--redo"]).code, place.read("f").as_str()), (0, "mine\n"));
    // The same after a redo.
    assert_eq!((undo(&place, &["--overwrite"]).code, place.read("f").as_str()), (0, "old\n"));
    place.write("f", "mine too\n");
    let done = undo(&place, &["--redo", "--overwrite", "--json"]);
    assert_eq!((done.code, place.read("f").as_str()), (0, "mine\n"), "{done:?}");
    assert!(done.lines()[0]["replaced"][0].as_str().unwrap().ends_with("/f"), "{done:?}");
    place.assert_clean();

    let place = Place::new();
    place.write("f", "old\n");
    let _server = turn(&place, [bash("echo new > f; echo new > g")]);
    assert_eq!(undo(&place, &[]).code, 0);
    place.write("f", "mine\n");
    place.write("g", "mine\n");
    assert_eq!((undo(&place, &["--redo", "--overwrite"]).code, place.read("f").as_str()), (0, "new\n"));
    for _ in 0..2 {
        assert_eq!(undo(&place, &[]).code, 0);
        assert_eq!((place.read("f").as_str(), place.read("g").as_str()), ("mine\n", "mine\n"));
        assert_eq!(undo(&place, &["--redo"]).code, 0);
        assert_eq!((place.read("f").as_str(), place.read("g").as_str()), ("new\n", "new\n"));
    }
    place.assert_clean();
}

#[test]
fn hard_links_are_kept_or_it_is_said_that_they_are_not() {
    let place = Place::new();
    offer_patch(&place);
    let link = |one: &str, other: &str| {
        place.write(one, "old\n");
        fs::hard_link(place.folder().join(one), place.folder().join(other)).unwrap();
    };
    for one in ["edited", "written", "gone", "patched", "split"] {
        link(one, &format!("{one}-too"));
    }
    place.write("far", "old\n");
    fs::hard_link(place.folder().join("far"), place.path().join("far-too")).unwrap();
    let same = |one: &str, other: &str| {
        let inode = |name: &str| fs::symlink_metadata(place.folder().join(name)).map(|it| it.ino()).ok();
        assert!(inode(one).is_some() && inode(one) == inode(other), "{one} and {other} are not one file");
    };
    let _server = turn(
        &place,
        [
            Say::call("edit", &json!({"path": "edited", "edits": [{"old": "old", "new": "new"}]})),
            patch("*** Delete File: patched\n"),
            bash(
                "echo new > written; rm gone far; sed -i s/old/new/ split; echo a > a; for n in b c d; do ln a $n; done",
            ),
        ],
    );
    for _ in 0..2 {
        let done = undo(&place, &[]);
        assert_eq!(done.code, 0, "{done:?}");
        for one in ["edited", "written", "gone", "patched"] {
            same(one, &format!("{one}-too"));
            assert_eq!(place.read(one), "old\n");
        }
        for name in ["split", "split-too", "far"] {
            assert_eq!(place.read(name), "old\n");
        }
        for name in ["split", "far"] {
            assert!(
                done.out.contains(&format!("{name} had other names (hard links) and is a file of its own now")),
                "{done:?}"
            );
        }
        assert_eq!(done.out.matches("is a file of its own").count(), 2, "{done:?}");
        let done = undo(&place, &["--redo"]);
        assert_eq!((done.code, done.out.matches("is a file of its own").count()), (0, 0), "{done:?}");
        ["b", "c", "d"].iter().for_each(|name| same("a", name));
        same("edited", "edited-too");
        assert_eq!((place.read("edited-too").as_str(), place.read("split-too").as_str()), ("new\n", "old\n"));
    }
    place.assert_clean();
}

/// A command for which no file may get larger than so many blocks of 512 bytes: with its signal ignored, that makes
/// writing fail like a full disk.
fn limited(command: &Command, blocks: u32) -> Done {
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"")]);
    limited.arg(command.get_program()).args(command.get_args()).env_clear().stdin(Stdio::null());
    limited.current_dir(command.get_current_dir().unwrap());
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Done::of(limited)
}

/// About 250 kB that cannot be packed to less than half.
fn noise(seed: &str) -> String {
    (0..3900).map(|at| format!("{}\n", Hash::of(format!("{seed} {at}").as_bytes()))).collect()
}

#[test]
fn where_nothing_can_be_logged_no_file_is_changed() {
    let place = Place::new();
    let (old, mine) = (noise("old"), (0..8).map(|at| noise(&at.to_string())).collect::<String>());
    place.write("f", &old);
    let server = turn(&place, [bash("echo new > f")]);
    place.write("f", &mine);
    let full = limited(&place.stele(["undo", "--overwrite"]), 1200);
    assert_eq!((full.code, full.err.lines().filter(|line| line.starts_with("error: ")).count()), (1, 1), "{full:?}");
    assert!(full.err.contains("error: log."), "{full:?}");
    assert!(place.read("f") == mine);
    place.assert_clean();
    let done = undo(&place, &["--overwrite"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(place.read("f") == old);
    drop(server);
    place.assert_clean();
}

#[test]
fn a_write_that_fails_takes_its_folders_away() {
    let place = Place::new();
    // In the log it takes much less room.
    let call = Say::call("write", &json!({"path": "new/deep/f", "content": "x\n".repeat(1 << 20)}));
    let server = server(Script::new([call, Say::text("Done.")]));
    let done = limited(&place.with(&server, ["run", "--mode", "full", "x"]), 1200);
    let body = server.requests().last().unwrap().json().to_string();
    assert!(done.code == 0 && body.contains("cannot write new/deep/f"), "{done:?} {body}");
    assert!(!place.folder().join("new").exists());
}

#[test]
fn a_patch_that_cannot_be_logged_changes_nothing() {
    let place = Place::new();
    offer_patch(&place);
    let mut body = String::new();
    for at in 0..8 {
        let old = noise(&at.to_string());
        place.write(&format!("f{at}"), &old);
        write!(body, "*** Update File: f{at}\n-{}\n+new\n", old.lines().next().unwrap()).unwrap();
    }
    let server = server(Script::new([patch(&body), Say::text("Done.")]));
    // Each file by itself could be written.
    let full = limited(&place.with(&server, ["run", "--mode", "full", "x"]), 1200);
    assert!(full.code != 0 && full.err.contains("error: log."), "{full:?}");
    (0..8).for_each(|at| assert!(place.read(&format!("f{at}")) == noise(&at.to_string()), "f{at}"));
    place.assert_clean();
}

#[test]
fn what_nobody_may_write_no_patch_deletes_moves_or_replaces() {
    let place = Place::new();
    place.write("f", "old\n");
    let mode = |mode| fs::set_permissions(place.folder().join("f"), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o444);
    let envelope = |body: &str| format!("*** Begin Patch\n{body}*** End Patch\n");
    for body in [
        "*** Delete File: f\n",
        "*** Update File: f\n*** Move to: g\n",
        "*** Update File: f\n-old\n+new\n",
        "*** Add File: h\n+h\n*** Delete File: f\n",
    ] {
        for arguments in [&["patch"][..], &["patch", "--dry-run"]] {
            let done = Done::fed(place.stele(arguments.iter().copied()), envelope(body));
            assert!(done.code == 1 && done.err.contains("error: file.read_only: f is read-only"), "{body}: {done:?}");
            assert_eq!(place.read("f"), "old\n");
            assert_eq!(fs::read_dir(place.folder()).unwrap().count(), 1, "{body}");
        }
    }
    // To change its mode is what is advised.
    let diff = "diff --git a/f b/f\nold mode 100444\nnew mode 100644\n";
    let done = Done::fed(place.stele(["patch"]), diff);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(Done::fed(place.stele(["patch"]), envelope("*** Delete File: f\n")).code, 0);
    // An undo gives back what was read-only, and takes away what a command made so.
    place.write("f", "old\n");
    mode(0o444);
    let _server = turn(&place, [bash("rm -f f; echo new > g; chmod 444 g")]);
    assert_eq!(undo(&place, &[]).code, 0);
    assert_eq!((place.read("f").as_str(), place.folder().join("g").exists()), ("old\n", false));
    place.assert_clean();
}

#[test]
fn names_are_shown_so_that_they_can_be_told_apart() {
    let place = Place::new();
    place.write("cafe\u{301}", "old\n");
    let delete = "*** Begin Patch\n*** Delete File: caf\u{e9}\n*** End Patch\n";
    let done = Done::fed(place.stele(["patch"]), delete);
    assert!(done.code == 1 && done.err.contains("one that only looks like it is there: cafe\\u{301}"), "{done:?}");
    let done = Done::fed(place.stele(["edit", ""]), "s/old/new/");
    assert!(done.code == 1 && done.err.contains("the path is empty; name a file"), "{done:?}");

    let _server = turn(&place, [bash("echo x > \"$(printf 'a\\342\\200\\256txt')\"; echo y > was")]);
    fs::remove_file(place.folder().join("was")).unwrap();
    fs::create_dir(place.folder().join("was")).unwrap();
    place.write("was/mine", "mine\n");
    let done = undo(&place, &[]);
    assert!(done.out.contains("D a\\u{202e}txt\n") && !done.out.contains('\u{202e}'), "{done:?}");
    assert!(done.out.contains("! was left as it is: a folder that holds other things stands there now"), "{done:?}");
    let done = Done::fed(place.stele(["edit", "cafe\u{301}"]), "s/old/new/");
    assert_eq!(done.code, 0, "{done:?}");
}
