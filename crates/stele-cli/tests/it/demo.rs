//! The demonstration: the main job with no key and no network.

use std::path::PathBuf;

use serde_json::json;

use crate::support::{Done, Place, seen};

#[test]
fn it_fixes_the_test_and_shows_how() {
    let place = Place::new();
    let done = Done::of(place.stele(["demo"]));
    assert_eq!(done.code, 0, "{done:?}");
    let wide = done.out.lines().chain(done.err.lines()).find(|line| line.chars().count() > 80);
    assert_eq!(wide.filter(|line| !line.contains(&*place.path().to_string_lossy())), None);
    for shown in ["$ sh test.sh", "FAIL  3725 is 1h 62m 05s", "Edit format.sh", "[x] run the test again", "exit 0"] {
        assert!(done.err.contains(shown), "{shown} is not in {}", done.err);
    }
    seen!(place, done.out);
}

/// Where a demonstration was kept.
fn kept(place: &Place) -> PathBuf {
    let folders: Vec<_> = left(place);
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders[0].clone()
}

fn left(place: &Place) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("stele-demo-")).collect()
}

#[test]
fn it_leaves_nothing_and_needs_no_home() {
    let place = Place::new();
    let mut command = place.stele(["demo", "--json"]);
    command.env_remove("HOME").env_remove("STELE_HOME");
    let done = Done::of(command);
    assert_eq!((done.code, &done.result()["session"]), (0, &json!(null)), "{done:?}");
    let done = Done::of(place.stele(["demo", "--quiet"]));
    assert_eq!(done.code, 0, "{done:?}");
    assert!(left(&place).is_empty() && !place.home().exists());
    let listed = Done::of(place.stele(["sessions", "list"]));
    assert!(listed.out.contains("no session yet"), "{listed:?}");
}

#[test]
fn what_is_kept_is_an_ordinary_session() {
    let place = Place::new();
    let done = Done::of(place.stele(["demo", "--json", "--keep"]));
    let result = done.result();
    assert_eq!((done.code, &result["status"], &result["refused"]), (0, &json!("succeeded"), &json!([])), "{done:?}");
    assert!(result["hit_rate"].as_f64().unwrap() > 0.5, "{result}");
    let id = result["session"].as_str().unwrap();
    let home = kept(&place).join("home");
    let within = |arguments: &[&str]| {
        let mut command = place.stele(arguments.iter().copied());
        command.env("STELE_HOME", &home);
        Done::of(command)
    };
    let verified = within(&["verify", id]);
    assert_eq!(verified.code, 0, "{verified:?}");
    let shown = within(&["sessions", "show", id]);
    assert!(shown.out.contains("The test passes now."), "{shown:?}");
}

#[test]
fn it_says_where_it_was_kept() {
    let place = Place::new();
    let done = Done::of(place.stele(["demo", "--keep"]));
    assert_eq!(done.code, 0, "{done:?}");
    let folder = kept(&place).display().to_string();
    for line in
        [format!("export STELE_HOME={folder}/home "), format!("cd {folder}/project "), format!("rm -r {folder} ")]
    {
        assert!(done.out.contains(&line), "{line} is not in {}", done.out);
    }
}
