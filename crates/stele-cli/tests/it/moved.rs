//! Sessions of a project that was moved or renamed.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use stele_testkit::{Say, Script, Server};

use crate::support::{Done, Place, server};

fn inside(folder: &Path, mut command: Command) -> Done {
    command.current_dir(folder);
    Done::of(command)
}

/// A session of one turn; gives its id and its last request.
fn worked(place: &Place, server: &Server) -> (String, Value) {
    let done = Done::of(place.with(server, ["run", "--json", "first"]));
    assert_eq!(done.code, 0, "{done:?}");
    let sent = done.lines().into_iter().rfind(|line| line["kind"] == "request/sent").unwrap();
    (place.sessions().remove(0), sent)
}

fn renamed(place: &Place) -> PathBuf {
    let to = place.folder().parent().unwrap().join("re named");
    std::fs::rename(place.folder(), &to).unwrap();
    to
}

#[test]
fn a_session_goes_where_its_project_went_and_keeps_its_prefix() {
    let place = Place::new();
    place.write("notes.txt", "hello\n");
    let script = Script::new([Say::text("One."), Say::call("read", &json!({"path": "notes.txt"})), Say::text("Two.")]);
    let server = server(script);
    let (id, sent) = worked(&place, &server);
    let old = place.folder();
    let new = renamed(&place);

    let done = inside(&new, place.with(&server, ["run", "--continue", "again"]));
    assert_eq!(done.code, 2, "{done:?}");
    assert!(
        done.err.contains("session.none_here") && done.err.contains(&format!("stele run --resume {id}")),
        "{done:?}"
    );
    assert!(done.err.contains(&format!("(was in {})", old.display())), "{done:?}");

    let done = inside(&new, place.with(&server, ["run", "--json", "--resume", &id[..13], "again"]));
    assert_eq!(done.code, 0, "{done:?}");
    let lines = done.lines();
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
    assert_eq!(of("session/moved")[0]["data"], json!({"cwd": new}));
    assert!(of("epoch/opened").is_empty() && of("prefix/broken").is_empty(), "{done:?}");
    assert_eq!(of("request/sent")[0]["data"]["prompt"]["shared"], sent["data"]["prompt"]["len"]);
    let body = server.requests()[1].json().to_string();
    let notice = format!("This session's folder is now {}; before, it was {}.", new.display(), old.display());
    assert!(body.contains(&notice), "{body}");
    assert!(server.requests()[2].json().to_string().contains("1→hello"), "names lead to where the project is");

    let done = inside(&new, place.with(&server, ["run", "--json", "--continue", "and on"]));
    assert_eq!(done.code, 0, "the folder's latest session is this one: {done:?}");
    assert!(!done.out.contains("session/moved"), "{done:?}");
    let verified = inside(&new, place.stele(["verify", "--all"]));
    assert_eq!(verified.code, 0, "{verified:?}");
}

#[test]
fn what_is_owed_goes_on_in_the_new_folder_without_a_prompt() {
    let place = Place::new();
    let server = server(Script::new([Say::text("One."), Say::text("Two.")]));
    let (id, _) = worked(&place, &server);
    let new = renamed(&place);
    let done = inside(&new, place.with(&server, ["run", "--resume", &id]));
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.err.contains("this session goes on in ") && done.err.contains("nothing is owed"), "{done:?}");
    assert_eq!(server.requests().len(), 1);
    let done = inside(&new, place.with(&server, ["run", "--fork", &id, "a copy"]));
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn a_session_whose_folder_is_there_is_moved_only_when_somebody_says_so() {
    let place = Place::new();
    let server = server(Script::new([Say::text("One."), Say::text("Two."), Say::text("Three.")]));
    let (id, _) = worked(&place, &server);
    let other = place.path().canonicalize().unwrap().join("other");
    std::fs::create_dir(&other).unwrap();
    for option in ["--resume", "--fork"] {
        let done = inside(&other, place.with(&server, ["run", option, &id, "x"]));
        assert_eq!(done.code, 2, "{done:?}");
        let there = format!("stele run -C {} {option} {id}", place.folder().display());
        assert!(done.err.contains(&there) && done.err.contains("--move"), "{done:?}");
    }
    assert_eq!(server.requests().len(), 1);
    let work = place.folder().display().to_string();
    let done = inside(&other, place.with(&server, ["run", "-C", &work, "--resume", &id, "there"]));
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.err.contains(&format!("stele run -C {work} --resume {id}")), "{done:?}");
    let done = inside(&other, place.with(&server, ["run", "--resume", &id, "--move", "here"]));
    assert_eq!(done.code, 0, "{done:?}");
    let listed = Done::of(place.stele(["sessions", "list", "--json"]));
    assert_eq!(listed.lines()[0]["cwd"], json!(other), "{listed:?}");
    place.assert_clean();
}

#[test]
fn where_the_session_works_is_still_known_after_the_turn_that_told_it_was_taken_back() {
    let place = Place::new();
    let server = server(Script::new([Say::text("One."), Say::text("Two."), Say::text("Three.")]));
    let (id, _) = worked(&place, &server);
    let other = place.path().canonicalize().unwrap().join("other");
    std::fs::create_dir(&other).unwrap();
    let long = "second ".repeat(20);
    let done = inside(&other, place.with(&server, ["run", "--resume", &id, "--move", &long]));
    assert_eq!(done.code, 0, "{done:?}");
    let listed = inside(&other, place.stele(["undo", &id, "--list", "--json"]));
    let titles: Vec<Value> = listed.lines().iter().map(|turn| turn["title"].clone()).collect();
    assert_eq!(titles, [json!("first"), json!(format!("{}…", long[..80].trim_end()))], "{listed:?}");
    let done = inside(&other, place.stele(["undo", &id]));
    assert!(done.code == 0 && done.out.contains("took back turn 2: second second"), "{done:?}");
    let done = inside(&other, place.with(&server, ["run", "--resume", &id, "third"]));
    assert_eq!(done.code, 0, "{done:?}");
    let body = server.requests()[2].json().to_string();
    assert!(body.contains(&format!("This session's folder is now {}", other.display())), "{body}");
    assert!(!body.contains("second"), "{body}");
    place.assert_clean();
}

#[test]
fn a_link_in_the_old_place_leads_to_the_new_one() {
    let place = Place::new();
    let server = server(Script::new([Say::text("One."), Say::text("Two.")]));
    let (id, _) = worked(&place, &server);
    let old = place.folder();
    let new = renamed(&place);
    std::os::unix::fs::symlink(&new, &old).unwrap();
    let done = inside(&old, place.with(&server, ["run", "--json", "--resume", &id, "again"]));
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.contains("session/moved"), "{done:?}");
}
