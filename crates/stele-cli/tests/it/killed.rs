//! The program, killed while the model's `write` replaces a large file, and writes in place that a power cut ended.
//!
//! `STELE_KILLED_BYTES` sets the size of the file; what the model writes is at most as long as an answer may be.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;
use stele_core::Hash;
use stele_testkit::{Kills, Left, Say, Script, remove_leftovers};

use crate::support::{Done, Place, server};

/// Bytes that the model writes at most: a whole answer has 32 MiB.
const ANSWER: usize = 30_000_000;

fn size() -> usize {
    std::env::var("STELE_KILLED_BYTES").ok().and_then(|size| size.parse().ok()).unwrap_or(2_000_000)
}

/// Waits until no process names a file in its arguments.
fn nobody_works_on(path: &Path) {
    let works = |entry: fs::DirEntry| {
        let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|argument| argument == path.as_os_str().as_encoded_bytes())
    };
    while fs::read_dir("/proc").unwrap().flatten().any(works) {
        std::thread::yield_now();
    }
}

#[test]
fn a_kill_leaves_the_old_file_or_the_new_one() {
    let line = "0123456789abcdef\n";
    let size = size().min(ANSWER);
    let (old, new) = (line.repeat(size / line.len()), "new line\n".repeat(size / 9));
    for names in ["link", "other"] {
        let place = Place::new();
        let script = Script::new([
            // It changes nothing: who sends what is there knows it.
            Say::call("write", &json!({"path": names, "content": old})),
            Say::call("write", &json!({"path": names, "content": new})),
            Say::text("Done."),
        ]);
        let server = server(script);
        place.write("file", "");
        let (file, other) = (place.folder().join("file"), place.folder().join(names));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        match names {
            "link" => symlink("file", &other).unwrap(),
            _ => fs::hard_link(&file, &other).unwrap(),
        }
        let is_one_file = || file.metadata().unwrap().ino() == other.metadata().unwrap().ino();
        let start = || {
            fs::write(&file, &old).unwrap();
            let asked = server.requests().len();
            let mut agent = place.with(&server, ["run", "--quiet", "--mode", "full", "x"]);
            let agent = agent.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            // It knows the file and is about to be told what to write.
            assert!(server.wait_for(asked + 2, Duration::from_secs(60)).is_some());
            agent
        };
        let kills = Kills::of(2, start, |wait| {
            nobody_works_on(&other);
            let found = fs::read(&file).unwrap();
            remove_leftovers(&place.folder(), new.as_bytes()).unwrap();
            assert_eq!(fs::read_dir(place.folder()).unwrap().count(), 2, "nothing else is left, killed after {wait:?}");
            assert!(is_one_file());
            match (found == old.as_bytes(), found == new.as_bytes()) {
                (true, false) => Left::Old,
                (false, true) => Left::New,
                _ => panic!("{} bytes that are neither, killed after {wait:?}", found.len()),
            }
        });
        writeln!(std::io::stderr(), "write over {} bytes by its name {names}: {kills}", old.len()).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(other.is_symlink(), names == "link");
        // The write that was too late to be stopped left no copy behind.
        assert_eq!(fs::read_dir(place.home().join("data/unfinished")).map_or(0, Iterator::count), 0);
    }
}

#[test]
fn a_write_in_place_that_was_cut_off_is_told_until_it_is_finished() {
    let place = Place::new();
    let told = |arguments: &[&str]| Done::of(place.stele(arguments.iter().copied()));
    place.write("a file", "half new, half o");
    let file = place.folder().join("a file");
    let data = place.home().join("data");
    let folder = data.join("unfinished");
    fs::create_dir_all(&folder).unwrap();
    let (before, after) = (Hash::of(b"half old, half o"), Hash::of(b"half new, half n"));
    fs::write(folder.join("1-1"), "half new, half n").unwrap();
    fs::write(folder.join("1-1.note"), format!("{before} {after}\n{}", file.display())).unwrap();
    let doctor = told(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    assert!(doctor.out.contains("unfinished") && doctor.out.contains("a file"), "{doctor:?}");
    // At a start it is said with the commands that end it.
    let server = server(Script::new([Say::text("Hello."), Say::text("Hello.")]));
    let run = || Done::of(place.with(&server, ["run", "x"]));
    let said = run();
    let line = said.err.lines().find(|line| line.contains("file.unfinished")).unwrap_or_else(|| panic!("{said:?}"));
    let command = line.split("to finish: ").nth(1).unwrap().split("; to leave it: ").next().unwrap();
    assert!(Command::new("sh").args(["-c", command]).status().unwrap().success(), "{command}");
    assert_eq!(fs::read(&file).unwrap(), b"half new, half n");
    assert!(!run().err.contains("file.unfinished"));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn an_undo_keeps_what_it_writes_in_place() {
    let place = Place::new();
    place.write("file", "old\n");
    fs::hard_link(place.folder().join("file"), place.folder().join("other")).unwrap();
    let edit = json!({"path": "file", "edits": [{"old": "old", "new": "new"}]});
    let server = server(Script::new([Say::call("edit", &edit), Say::text("Done.")]));
    assert_eq!(Done::of(place.with(&server, ["run", "--mode", "full", "x"])).code, 0);
    assert_eq!(place.read("other"), "new\n");
    let undo = Done::of(place.stele(["undo"]));
    assert_eq!((undo.code, place.read("other").as_str()), (0, "old\n"), "{undo:?}");
    // Where no copy can be kept nothing is begun.
    let folder = place.home().join("data/unfinished");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    fs::remove_dir(&folder).unwrap();
    fs::write(&folder, "no folder").unwrap();
    let redo = Done::of(place.stele(["undo", "--redo"]));
    assert_eq!((redo.code, place.read("other").as_str()), (1, "old\n"), "{redo:?}");
    let patched = Done::fed(place.stele(["edit", "file"]), "s/old/new/");
    assert_eq!((patched.code, place.read("other").as_str()), (1, "old\n"), "{patched:?}");
    let why = "no copy of what is written can be kept in";
    assert!(patched.err.contains("file.io") && patched.err.contains(why), "{patched:?}");
    // What failed is not done: it can be done once there is room for the copy, either way.
    fs::remove_file(&folder).unwrap();
    let redo = Done::of(place.stele(["undo", "--redo"]));
    assert_eq!((redo.code, place.read("other").as_str()), (0, "new\n"), "{redo:?}");
    fs::remove_dir(&folder).unwrap();
    fs::write(&folder, "no folder").unwrap();
    let undo = Done::of(place.stele(["undo"]));
    assert_eq!((undo.code, place.read("other").as_str()), (1, "new\n"), "{undo:?}");
    fs::remove_file(&folder).unwrap();
    let undo = Done::of(place.stele(["undo"]));
    assert_eq!((undo.code, place.read("other").as_str()), (0, "old\n"), "{undo:?}");
    place.assert_clean();
}

/// Signals a command as soon as the first of many files is what it makes of it.
fn signalled_at_the_first_change(place: &Place, mut command: Command, signal: rustix::process::Signal, to: &str) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let changed = || (0..MANY).any(|at| place.read(&format!("f{at}")) == to);
    while !changed() && child.try_wait().unwrap().is_none() {}
    let pid = rustix::process::Pid::from_child(&child);
    let _ = rustix::process::kill_process(pid, signal);
    child.wait().unwrap();
}

/// Files that are changed together.
const MANY: usize = 300;

fn all_are(place: &Place, text: &str) {
    let others = (0..MANY).filter(|at| place.read(&format!("f{at}")) != text).count();
    assert_eq!(others, 0, "files that are not {text:?}");
}

#[test]
fn an_undo_that_is_interrupted_is_whole_and_one_that_is_killed_loses_nothing() {
    use rustix::process::Signal;
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let place = Place::new();
        (0..MANY).for_each(|at| place.write(&format!("f{at}"), "old\n"));
        let change = json!({"command": "for f in f*; do echo new > $f; done"});
        let server = server(Script::new([Say::call("bash", &change), Say::text("Done.")]));
        assert_eq!(Done::of(place.with(&server, ["run", "--mode", "full", "x"])).code, 0);
        (0..MANY).for_each(|at| place.write(&format!("f{at}"), "mine\n"));
        signalled_at_the_first_change(&place, place.stele(["undo", "--overwrite"]), signal, "old\n");
        if signal != Signal::KILL {
            all_are(&place, "old\n");
        }
        let redo = Done::of(place.stele(["undo", "--redo"]));
        assert_eq!(redo.code, 0, "{redo:?}");
        all_are(&place, "mine\n");
        place.assert_clean();
    }
}

#[test]
fn a_patch_that_is_interrupted_is_whole() {
    use std::fmt::Write as _;
    let mut patch = "*** Begin Patch\n".to_owned();
    (0..MANY).for_each(|at| write!(patch, "*** Update File: f{at}\n-old\n+new\n").unwrap());
    patch.push_str("*** End Patch\n");
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let place = Place::new();
        (0..MANY).for_each(|at| place.write(&format!("f{at}"), "old\n"));
        let input = place.path().join("patch");
        fs::write(&input, &patch).unwrap();
        let mut command = place.stele(["patch"]);
        command.stdin(fs::File::open(&input).unwrap());
        signalled_at_the_first_change(&place, command, signal, "new\n");
        all_are(&place, "new\n");
    }
}

#[test]
fn a_moved_file_stays_where_it_is_when_its_place_is_taken() {
    let place = Place::new();
    place.write("g", "precious\n");
    let moves = json!({"command": "mkdir d; mv g d/g"});
    let server = server(Script::new([Say::call("bash", &moves), Say::text("Done.")]));
    assert_eq!(Done::of(place.with(&server, ["run", "--mode", "full", "x"])).code, 0);
    place.write("g", "mine\n");
    let undo = Done::of(place.stele(["undo"]));
    assert!(undo.code == 1 && undo.out.contains("! d/g left as it is: it was moved here from"), "{undo:?}");
    assert_eq!((place.read("g"), place.read("d/g")), ("mine\n".into(), "precious\n".into()));
}
