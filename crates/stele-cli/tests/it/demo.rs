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
fn its_session_stays_among_all_others_and_its_project_goes() {
    let place = Place::new();
    // What a person configured for real work has no say in it.
    std::fs::create_dir_all(place.home()).unwrap();
    std::fs::write(place.home().join("config.toml"), "[permissions]\ndeny = [\"bash\"]\n").unwrap();
    let done = Done::of(place.stele(["demo", "--json"]));
    let result = done.result();
    assert_eq!((done.code, &result["status"], &result["refused"]), (0, &json!("succeeded"), &json!([])), "{done:?}");
    assert!(result["hit_rate"].as_f64().unwrap() > 0.5, "{result}");
    let id = result["session"].as_str().unwrap();
    assert_eq!(place.sessions(), [id]);
    assert!(left(&place).is_empty());
    assert!(!place.home().join("data/ledger.jsonl").exists(), "its endpoint is forgotten");
    let noted = format!("{} {}", result["head"]["seq"], result["head"]["hash"].as_str().unwrap());
    let verified = Done::of(place.stele(["verify", id, "--expect", &noted]));
    assert_eq!(verified.code, 0, "{verified:?}");
    let shown = Done::of(place.stele(["sessions", "show", id]));
    assert!(shown.out.contains("The test passes now."), "{shown:?}");
    let listed = Done::of(place.stele(["sessions", "list"]));
    assert!(listed.out.contains("The test of this project fails") && listed.out.contains("stele-demo"), "{listed:?}");
    // It is none to go on with: its model is gone, although its folder is gone like that of a moved project.
    let on = {
        let mut command = place.stele(["run", "--continue", "hi"]);
        command.env("ANTHROPIC_API_KEY", "k");
        Done::of(command)
    };
    assert!(on.code == 2 && on.err.contains("session.none_here") && !on.err.contains(id), "{on:?}");
    let removed = Done::of(place.stele(["sessions", "rm", id]));
    assert!(removed.code == 0 && place.sessions().is_empty(), "{removed:?}");
}

#[test]
fn it_needs_no_home() {
    let place = Place::new();
    let mut command = place.stele(["demo", "--json"]);
    command.env_remove("HOME").env_remove("STELE_HOME");
    let done = Done::of(command);
    let result = done.result();
    assert_eq!((done.code, &result["session"], &result["head"]), (0, &json!(null), &json!(null)), "{done:?}");
    let done = Done::of(place.stele(["demo", "--quiet"]));
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    assert!(left(&place).is_empty());
}

#[test]
fn it_says_what_to_type_and_where_its_project_was_kept() {
    let place = Place::new();
    let done = Done::of(place.stele(["demo", "--keep"]));
    assert_eq!(done.code, 0, "{done:?}");
    let folder = kept(&place).display().to_string();
    let id = place.sessions().remove(0);
    assert!(done.err.contains(&format!("session  {id}\n")) && !done.err.contains("continue"), "{done:?}");
    for line in [format!("cd {folder}/project "), format!("rm -r {folder} ")] {
        assert!(done.out.contains(&line), "{line} is not in {}", done.out);
    }
    let (_, advice) = done
        .out
        .split_once(
            "What to type next
",
        )
        .unwrap();
    for line in advice.lines().take(3) {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let at = words.iter().position(|word| id.starts_with(word)).unwrap();
        let ran = Done::of(place.stele(words[..=at].iter().copied()));
        assert_eq!(ran.code, 0, "{words:?}: {ran:?}");
    }
}
