//! The edit engine from the command line, on real files.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde_json::Value;

use crate::support::{Done, Place};

fn run(place: &Place, arguments: &[&str], input: impl AsRef<[u8]>) -> Done {
    Done::fed(place.stele(arguments.iter().copied()), input)
}

/// The one JSON line; its `ok` is what the exit code says.
#[track_caller]
fn report(done: &Done) -> Value {
    let lines = done.lines();
    assert_eq!(lines.len(), 1, "{done:?}");
    assert_eq!(lines[0]["ok"], done.code == 0, "{done:?}");
    lines[0].clone()
}

fn case(name: &str, file: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cases").join(name).join(file)).unwrap()
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn faults_that_users_of_agents_reported_do_not_happen() {
    for (name, input, refused) in [
        ("crlf", "input.call.json", None),
        ("latin1", "input.call.json", None),
        ("dollar", "input.call.json", None),
        ("escapes", "input.call.json", None),
        ("no-final-newline", "input.patch", None),
        ("two-anchors", "input.call.json", Some("edit.not_found")),
        ("lookalike-hunk", "input.patch", Some("edit.ambiguous")),
    ] {
        let place = Place::new();
        let before = case(name, "input.file");
        place.write("input.file", &before);
        let done = run(&place, &["edit", "input.file", "--json"], case(name, input));
        let report = report(&done);
        assert_eq!(report["code"].as_str(), refused, "{name}: {done:?}");
        let expected = if refused.is_some() { before } else { case(name, "expected.file") };
        assert_eq!(fs::read(place.folder().join("input.file")).unwrap(), expected, "{name}");
        assert_eq!(files(&place.folder()), ["input.file"], "{name}");
        assert_eq!(report["files"].as_array().unwrap().len(), usize::from(refused.is_none()));
    }
    // The same patch over a folder.
    let place = Place::new();
    place.write("input.file", case("no-final-newline", "input.file"));
    assert_eq!(run(&place, &["patch"], case("no-final-newline", "input.patch")).code, 0);
    assert_eq!(place.read("input.file").into_bytes(), case("no-final-newline", "expected.file"));
}

#[test]
fn links_modes_and_hard_links_stay() {
    let place = Place::new();
    let folder = place.folder();
    let cases: Value = serde_json::from_slice(&case("links-modes", "input.json")).unwrap();
    let mut names = Vec::new();
    for entry in cases["layout"].as_array().unwrap() {
        let text = |key: &str| entry[key].as_str().unwrap_or_default();
        if let Some(name) = entry["file"].as_str() {
            place.write(name, text("text"));
            names.push(name.to_owned());
        } else if let Some(name) = entry["link"].as_str() {
            std::os::unix::fs::symlink(text("to"), folder.join(name)).unwrap();
            names.push(name.to_owned());
        } else if let Some(name) = entry["hardlink"].as_str() {
            fs::hard_link(folder.join(text("to")), folder.join(name)).unwrap();
        } else {
            fs::create_dir(folder.join(text("dir"))).unwrap();
        }
        if let (Some(mode), false) = (entry["mode"].as_str(), entry.get("dir").is_some()) {
            let mode = u32::from_str_radix(mode, 8).unwrap();
            fs::set_permissions(folder.join(text("file")), fs::Permissions::from_mode(mode)).unwrap();
        }
    }
    let before = (files(&folder), files(&folder.join("d")));
    for name in &names {
        let target = fs::canonicalize(folder.join(name)).ok();
        if let Some(target) = &target {
            let mode = fs::metadata(target).unwrap().permissions();
            fs::write(target, "a\n").unwrap();
            fs::set_permissions(target, mode).unwrap();
        }
        let meta = |path: &Path| fs::symlink_metadata(folder.join(path)).map(|meta| (meta.file_type(), meta.mode()));
        let was = meta(Path::new(name)).unwrap();
        let done = run(&place, &["edit", name], "s/a/b/");
        match target {
            Some(target) => {
                assert_eq!(done.code, 0, "{name}: {done:?}");
                assert_eq!(fs::read(target).unwrap(), b"b\n", "{name}");
            }
            None => assert!(done.code == 1 && done.err.contains("file.loop"), "{name}: {done:?}"),
        }
        assert_eq!(meta(Path::new(name)).unwrap(), was, "{name}");
    }
    assert_eq!(place.read("h2"), "b\n");
    assert_eq!((files(&folder), files(&folder.join("d"))), before, "no temporary file is left");
}

#[test]
fn a_name_that_looks_like_another_is_taken_only_when_it_is_the_one() {
    let cases: Value = serde_json::from_slice(&case("names", "input.json")).unwrap();
    for case in cases.as_array().unwrap() {
        let place = Place::new();
        let there: Vec<&str> = case["files"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        there.iter().for_each(|name| place.write(name, "content\n"));
        let asked = case["ask"].as_str().unwrap();
        let input = r#"{"edits": [{"old": "content", "new": "changed"}]}"#;
        let done = run(&place, &["edit", asked, "--json"], input);
        let changed: Vec<&str> = there.iter().copied().filter(|name| place.read(name) == "changed\n").collect();
        match case["id"].as_str().unwrap() {
            "a" | "d" | "e" => {
                assert_eq!(changed, there, "{done:?}");
                assert!(report(&done)["message"].as_str().unwrap().contains("opened"), "{done:?}");
            }
            "b" | "c" => assert_eq!(changed, [asked], "{done:?}"),
            "f" => assert_eq!(report(&done)["code"], "file.ambiguous_name"),
            _ => {
                assert_eq!(report(&done)["code"], "edit.missing");
                let creates = r#"{"edits": [{"old": "", "new": "new\n"}]}"#;
                assert_eq!(run(&place, &["edit", asked], creates).code, 0);
                assert_eq!(files(&place.folder()), [asked]);
            }
        }
    }
}

#[test]
fn a_report_names_hashes_slips_and_the_difference() {
    let place = Place::new();
    place.write("a.txt", "one\r\ntwo\r\n");
    let input = r#"{"edits": [{"old": "one\ntwo", "new": "one\n2"}]}"#;
    let dry = run(&place, &["edit", "a.txt", "--json", "--dry-run"], input);
    assert_eq!(place.read("a.txt"), "one\r\ntwo\r\n");
    let wet = run(&place, &["edit", "a.txt", "--json"], input);
    assert_eq!(place.read("a.txt"), "one\r\n2\r\n");
    let (dry, wet) = (report(&dry), report(&wet));
    assert_eq!(dry["files"], wet["files"]);
    assert!(dry["message"].as_str().unwrap().contains("nothing was written"));
    let file = &wet["files"][0];
    assert_eq!(file["path"], "a.txt");
    assert_eq!(file["before"], stele_core::Hash::of(b"one\r\ntwo\r\n").to_string());
    assert_eq!(file["after"], stele_core::Hash::of(b"one\r\n2\r\n").to_string());
    assert!(file["diff"].as_str().unwrap().contains("-two\r\n+2\r\n"));
    assert_eq!(wet["healed"][0], "line_ends");

    let done = run(&place, &["edit", "a.txt"], "s/one/1/");
    assert_eq!((done.code, done.err.trim()), (0, "edited a.txt: +1 -1"), "{done:?}");
    assert!(done.out.contains("+1\r\n") || done.out.contains("+1\n"), "{done:?}");
    let done = run(&place, &["edit", "a.txt"], "s/three/3/");
    assert!(done.code == 1 && done.out.is_empty() && done.err.contains("edit.not_found"), "{done:?}");
}

#[test]
fn a_patch_is_applied_whole_or_not_at_all() {
    let place = Place::new();
    place.write("change", "a\n");
    place.write("go", "gone\n");
    place.write("move", "m\n");
    fs::set_permissions(place.folder().join("move"), fs::Permissions::from_mode(0o755)).unwrap();
    let patch = "*** Begin Patch\n*** Update File: change\n-a\n+b\n*** Delete File: go\n*** Update File: move\n\
                 *** Move to: deep/moved\n-m\n+n\n*** Add File: new\n+x\n*** End Patch\n";
    let tree = |place: &Place| -> Vec<(String, Option<String>)> {
        let names = files(&place.folder()).into_iter();
        names.map(|name| (fs::read_to_string(place.folder().join(&name)).ok(), name)).map(|(a, b)| (b, a)).collect()
    };
    let before = tree(&place);
    // The last file is in the way, so that all before it is taken back; then nothing is.
    fs::write(place.folder().join("deep"), "no folder").unwrap();
    let done = run(&place, &["patch", "--json"], patch);
    assert_eq!(report(&done)["code"], "file.io");
    fs::remove_file(place.folder().join("deep")).unwrap();
    assert_eq!(tree(&place), before);
    let refused = run(&place, &["patch", "--json"], patch.replace("-m\n", "-other\n"));
    assert_eq!(report(&refused)["code"], "edit.not_found");
    assert_eq!(tree(&place), before);
    assert_eq!(report(&run(&place, &["patch", "--json", "--dry-run"], patch))["files"].as_array().unwrap().len(), 4);
    assert_eq!(tree(&place), before);

    let done = run(&place, &["patch", "--json"], patch);
    let report = report(&done);
    let moved = report["files"].as_array().unwrap().iter().find(|file| file["path"] == "deep/moved").unwrap();
    assert_eq!(moved["moved_from"], "move");
    assert_eq!(files(&place.folder()), ["change", "deep", "new"]);
    assert_eq!(
        (place.read("change"), place.read("new"), place.read("deep/moved")),
        ("b\n".into(), "x\n".into(), "n\n".into())
    );
    let mode = fs::metadata(place.folder().join("deep/moved")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o755, "a moved file keeps its mode");
}

#[test]
fn what_cannot_be_edited_is_refused_and_wrong_usage_is_told_apart() {
    let place = Place::new();
    place.write("utf16", b"\xff\xfea\0");
    place.write("binary", b"a\0b");
    place.write("text", "a\n");
    fs::create_dir(place.folder().join("folder")).unwrap();
    for (path, input, code) in [
        ("utf16", &b"s/a/b/"[..], "edit.encoding"),
        ("binary", b"s/a/b/", "edit.binary"),
        ("text", b"no edit at all", "edit.unparsed"),
        ("text", b"\xff\xff", "edit.unparsed"),
        ("text", b"", "edit.unparsed"),
        ("folder", b"s/a/b/", "file.folder"),
        ("missing", b"s/a/b/", "edit.missing"),
    ] {
        let done = run(&place, &["edit", path, "--json"], input);
        assert_eq!(report(&done)["code"], code, "{path}");
        assert_eq!(done.code, 1);
    }
    let outside = "*** Begin Patch\n*** Add File: ../out\n+x\n*** End Patch\n";
    assert_eq!(report(&run(&place, &["patch", "--json"], outside))["code"], "edit.outside");
    assert!(!place.path().join("out").exists());
    assert_eq!(run(&place, &["edit"], "").code, 2);
    assert_eq!(run(&place, &["patch", "text"], "").code, 2);
    assert_eq!(run(&place, &["edit", "text", "-C", "nowhere"], "s/a/b/").code, 2);
}

#[test]
fn a_patch_reaches_no_file_outside_the_folder_through_a_link() {
    let place = Place::new();
    let out = place.path().join("out");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("s.txt"), "s\n").unwrap();
    place.write("in.txt", "s\n");
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, place.folder().join(name)).unwrap();
    link("../out", "lnk");
    link("../out/new.txt", "dang");
    link("../out/s.txt", "po");
    link("s.txt", "../out/inner");
    for body in [
        "*** Update File: lnk/s.txt\n@@\n-s\n+x\n",
        "*** Update File: po\n@@\n-s\n+x\n",
        "*** Add File: dang\n+x\n",
        "*** Add File: lnk/deep/new.txt\n+x\n",
        "*** Update File: in.txt\n*** Move to: lnk/y.txt\n",
        "*** Delete File: lnk/s.txt\n",
        "*** Update File: lnk/s.txt\n*** Move to: mine.txt\n",
    ] {
        for dry in [&["patch", "--json"][..], &["patch", "--json", "--dry-run"]] {
            let done = run(&place, dry, format!("*** Begin Patch\n{body}*** End Patch\n"));
            assert_eq!(report(&done)["code"], "edit.outside", "{body}");
        }
    }
    let inner = "*** Begin Patch\n*** Delete File: lnk/inner\n*** End Patch\n";
    assert_eq!(report(&run(&place, &["patch", "--json"], inner))["code"], "edit.link");
    assert_eq!(files(&out), ["inner", "s.txt"]);
    assert_eq!(fs::read_to_string(out.join("s.txt")).unwrap(), "s\n");
    // The link itself is in the folder.
    let delete = "*** Begin Patch\n*** Delete File: po\n*** Update File: in.txt\n@@\n-s\n+x\n*** End Patch\n";
    let done = run(&place, &["patch"], delete);
    assert!(done.code == 0 && done.err.contains("po was a symbolic link"), "{done:?}");
    assert_eq!((files(&place.folder()), files(&out).len()), (vec!["dang".into(), "in.txt".into(), "lnk".into()], 2));
}

#[test]
fn a_patch_changes_a_file_once_under_all_its_names() {
    let place = Place::new();
    place.write("f", "a\nb\n");
    std::os::unix::fs::symlink("f", place.folder().join("lf")).unwrap();
    let patch = "*** Begin Patch\n*** Update File: f\n-a\n+x\n*** Update File: lf\n-b\n+y\n*** End Patch\n";
    let done = run(&place, &["patch", "--json"], patch);
    assert_eq!(report(&done)["files"].as_array().unwrap().len(), 1);
    assert_eq!(place.read("f"), "x\ny\n");
}

#[test]
fn edits_of_one_file_at_the_same_time_are_all_there() {
    let place = Place::new();
    let lines = |mark: &str| (10..50).map(|line| format!("line {line}{mark}\n")).collect::<String>();
    place.write("f", lines(""));
    let edit = |line: usize| {
        let input = format!(r#"{{"old": "line {line}", "new": "line {line} too"}}"#);
        run(&place, &["edit", "f"], input)
    };
    std::thread::scope(|scope| {
        let edits: Vec<_> = (10..50).map(|line| scope.spawn(move || edit(line))).collect();
        edits.into_iter().for_each(|done| {
            let done = done.join().unwrap();
            assert_eq!(done.code, 0, "{done:?}");
        });
    });
    assert_eq!(place.read("f"), lines(" too"));
    assert_eq!(files(&place.folder()), ["f"], "nothing is left of their locks");
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_leaves_the_file() {
    for names in [&["f"][..], &["f", "other"]] {
        let place = Place::new();
        let old = format!("first\n{}", "0123456789abcdef\n".repeat(20_000));
        place.write("f", &old);
        for other in &names[1..] {
            fs::hard_link(place.folder().join("f"), place.folder().join(other)).unwrap();
        }
        let limited = place.stele(["edit", "f"]);
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", "ulimit -f 10; exec \"$@\"", "sh"]).arg(limited.get_program()).args(limited.get_args());
        shell.current_dir(place.folder()).env_clear().env("HOME", place.home());
        shell.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        shell.stderr(std::process::Stdio::piped());
        let done = Done::fed(shell, r#"{"old": "first", "new": "second"}"#);
        assert_eq!((done.code, done.err.contains("file.io")), (1, true), "{done:?}");
        assert_eq!(
            (place.read("f") == old, files(&place.folder())),
            (true, names.iter().map(|it| (*it).to_owned()).collect())
        );
    }
}
