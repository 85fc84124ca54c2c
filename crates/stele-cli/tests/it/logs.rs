//! The commands that look at logs and at the set-up.

use serde_json::{Value, json};
use stele_testkit::{Say, Script};

use crate::support::{Done, Place, seen, server};

fn worked() -> Place {
    let place = Place::new();
    place.write("notes.txt", "hello\n");
    let server = server(Script::new([
        Say::text("I look.").and_call("read", &json!({"path": "notes.txt"})),
        Say::text("The notes say hello."),
    ]));
    let done = Done::of(place.with(&server, ["run", "what do the notes say?"]));
    assert_eq!(done.code, 0, "{done:?}");
    place
}

#[test]
fn list_show_and_timeline() {
    let place = worked();
    let id = place.sessions().remove(0);
    let list = Done::of(place.stele(["sessions", "list"]));
    let show = Done::of(place.stele(["sessions", "show", &id]));
    let timeline = Done::of(place.stele(["sessions", "show", "--timeline", &id]));
    seen!(place, format!("{}\n---\n{}\n---\n{}", list.out, show.out, timeline.out));
}

#[test]
fn an_empty_store_lists_nothing_and_is_not_made() {
    let place = Place::new();
    for arguments in [&["sessions", "list"][..], &["verify", "--all"], &["sessions", "search", "x"]] {
        let done = Done::of(place.stele(arguments.iter().copied()));
        assert_eq!(done.code, 0, "{done:?}");
    }
    assert!(!place.home().exists());
}

#[test]
fn search_finds_what_was_said() {
    let place = worked();
    let found = Done::of(place.stele(["sessions", "search", "--json", "notes", "say"]));
    assert!(found.lines().iter().all(|hit| hit["session"].is_string()), "{found:?}");
    assert!(!found.lines().is_empty());
    let none = Done::of(place.stele(["sessions", "search", "elephants"]));
    assert_eq!(none.out, "nothing found\n");
}

#[test]
fn a_noted_head_is_known_again_also_when_the_session_went_on() {
    let place = worked();
    let id = place.sessions().remove(0);
    let clean = Done::of(place.stele(["verify", "--json", &id]));
    let head = clean.lines()[0]["head"]["hash"].as_str().unwrap().to_owned();
    assert_eq!(clean.lines()[0]["requests"], 2);
    let seq = clean.lines()[0]["head"]["seq"].as_u64().unwrap();
    let verify = |expect: &str, json: bool| {
        let json = json.then_some("--json");
        Done::of(place.stele(["verify", &id, "--expect", expect].into_iter().chain(json)))
    };
    let expected = verify(&head, false);
    assert!(expected.code == 0 && expected.out.contains(&format!("record {seq}, 0 records since")), "{expected:?}");

    let server = server(Script::new([Say::text("Once more."), Say::text("And again.")]));
    let done = Done::of(place.with(&server, ["run", "--continue", "again"]));
    assert_eq!(done.code, 0, "{done:?}");
    let printed = done.err.lines().find(|line| line.starts_with("head ")).unwrap().to_owned();
    let done = Done::of(place.with(&server, ["run", "--continue", "again"]));
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(verify(&printed, false).code, 0, "as it is printed: {printed}");
    for expect in [head.clone(), format!("{seq} {head}")] {
        let earlier = verify(&expect, true);
        let report = &earlier.lines()[0];
        let since = report["head"]["seq"].as_u64().unwrap() - seq;
        assert_eq!((earlier.code, &report["clean"]), (0, &json!(true)), "{earlier:?}");
        assert_eq!(report["noted"], json!({"seq": seq, "since": since}));
    }

    for other in ["0".repeat(64), format!("{} {head}", seq + 1), format!("999 {head}")] {
        let other = verify(&other, false);
        assert!(other.code == 1 && other.out.contains("DAMAGED"), "{other:?}");
    }
    let words = verify("one two three", false);
    assert!(words.code == 2 && words.err.contains("101 HASH"), "{words:?}");
}

#[test]
fn an_export_comes_back_as_the_session_it_was() {
    let place = worked();
    let id = place.sessions().remove(0);
    let exported = Done::of(place.stele(["sessions", "export", &id]));
    assert_eq!(exported.code, 0, "{exported:?}");
    let other = Place::new();
    let imported = Done::fed(other.stele(["sessions", "import", "--json", "-"]), &exported.out);
    assert_eq!(imported.lines()[0]["session"], id.as_str(), "{imported:?}");
    other.assert_clean();
    let found = Done::of(other.stele(["sessions", "search", "hello"]));
    assert!(found.out.contains(&id), "{found:?}");
}

#[test]
fn what_an_import_lost_stands_in_the_log_and_in_its_exit_code() {
    let place = worked();
    let id = place.sessions().remove(0);
    let exported = Done::of(place.stele(["sessions", "export", &id])).out;
    // A record in the middle is cut off.
    let lines: Vec<&str> = exported.lines().collect();
    let at = lines.iter().rposition(|line| line.contains("\"mode/set\"")).unwrap();
    let damaged = [&lines[..at], &[&lines[at][..lines[at].len() / 2]], &lines[at + 1..]].concat().join("\n") + "\n";
    let other = Place::new();
    let imported = Done::fed(other.stele(["sessions", "import", "--json", "-"]), damaged);
    assert_eq!((imported.code, &imported.lines()[0]["outcome"]), (1, &json!("salvaged")), "{imported:?}");
    let id = other.sessions().remove(0);
    let records = Done::of(other.stele(["sessions", "show", "--json", &id])).lines();
    let found: Vec<&Value> = records.iter().filter(|record| record["kind"] == "import/damaged").collect();
    let what: Vec<&str> = found.iter().map(|record| record["data"]["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["a record that was lost", "the damaged bytes of the imported file"], "{records:?}");
    let seq = records.iter().map(|record| record["seq"].as_u64().unwrap());
    assert!(seq.eq(0..records.len() as u64), "{records:?}");
    let shown = Done::of(other.stele(["sessions", "show", &id]));
    assert!(shown.out.contains(&format!("! record {}: a record that was lost\n", found[0]["seq"])), "{shown:?}");
    other.assert_clean();
}

#[test]
fn rm_and_gc() {
    let place = worked();
    let id = place.sessions().remove(0);
    let removed = Done::of(place.stele(["sessions", "rm", &id[..8]]));
    assert_eq!(removed.code, 0, "{removed:?}");
    assert!(place.sessions().is_empty());
    let dry = Done::of(place.stele(["sessions", "gc", "--dry-run", "--json"]));
    let blobs = dry.lines()[0]["blobs"].as_u64().unwrap();
    assert!(blobs > 0, "{dry:?}");
    let collected = Done::of(place.stele(["sessions", "gc", "--json"]));
    assert_eq!(collected.lines()[0]["blobs"], blobs);
}

#[test]
fn the_cache_report_predicts_what_was_read() {
    let place = worked();
    let id = place.sessions().remove(0);
    let report = Done::of(place.stele(["cache", "report", "--json", &id]));
    let lines = report.lines();
    assert_eq!(lines.len(), 3, "{report:?}");
    assert_eq!(lines[0]["verdict"]["kind"], "first");
    assert_eq!(lines[1]["verdict"]["kind"], "hit");
    assert_eq!((&lines[2]["type"], &lines[2]["requests"]), (&json!("total"), &json!(2)));
}

#[test]
fn doctor_does_not_blame_locks_that_it_could_not_try() {
    let place = Place::new();
    assert_eq!(Done::of(place.stele(["demo", "--quiet"])).code, 0);
    let locks = place.home().join("data/locks");
    std::fs::remove_dir_all(&locks).unwrap();
    std::fs::write(&locks, "").unwrap();
    let doctor = Done::of(place.stele(["doctor"])).out;
    assert!(doctor.contains("could not be tried") && !doctor.contains("log.no_locks"), "{doctor}");
}

#[test]
fn config_says_who_set_what() {
    let place = Place::new();
    std::fs::create_dir_all(place.home()).unwrap();
    std::fs::write(place.home().join("config.toml"), "mode = \"edit\"\n").unwrap();
    let explained = Done::of(place.stele(["config", "--explain", "mode"]));
    assert!(explained.out.contains("config.toml:1"), "{explained:?}");
    let all = Done::of(place.stele(["config", "--effective", "--json"]));
    let mode = all.lines().into_iter().find(|row| row["key"] == "mode").unwrap();
    assert!(mode["value"].as_str().unwrap().contains("edit"), "{mode}");
    let unknown = Done::of(place.stele(["config", "--explain", "modle"]));
    assert_eq!(unknown.code, 2);
}

#[test]
fn config_says_which_model_is_asked_and_why() {
    let place = Place::new();
    std::fs::create_dir_all(place.home()).unwrap();
    std::fs::write(place.home().join("config.toml"), "[routes.groq]\nmodel = \"m\"\n").unwrap();
    let config = |arguments: &[&str]| {
        let mut command = place.stele([&["config"][..], arguments].concat());
        command.env("OPENAI_API_KEY", "k").env("STELE_BASE_URL", "http://127.0.0.1:9/v1").env("STELE_MODEL", "own");
        Done::of(command)
    };
    let all = config(&["--json"]).lines();
    let source = |key: &str| all.iter().find(|row| row["key"] == key).unwrap()["source"].as_str().unwrap().to_owned();
    assert!(
        source("routes.env").contains("STELE_MODEL") && source("routes.groq").ends_with("config.toml:2"),
        "{all:?}"
    );
    assert_eq!(source("routes.openai"), "OPENAI_API_KEY");
    for (key, shown) in [
        ("model", "a new session asks own at http://127.0.0.1:9/v1 over openai-chat, route env (STELE_MODEL"),
        ("routes.env", "own at http://127.0.0.1:9/v1"),
        ("routes.openai", "OPENAI_API_KEY: gpt-"),
        ("routes.openai.base_url", "(not set)"),
        ("prices.m", "nothing in it is set"),
    ] {
        let done = config(&["--explain", key]);
        assert!(done.code == 0 && done.out.contains(shown), "{key}: {done:?}");
    }
    let slip = config(&["--explain", "routes.opneai"]);
    assert_eq!(slip.code, 2);
    assert!(slip.err.contains("config.unknown_key") && slip.err.contains("`routes.openai`"), "{slip:?}");
}

#[test]
fn models_lists_routes_and_prices_without_keys() {
    let place = Place::new();
    let mut command = place.stele(["models", "--json"]);
    command.env("ANTHROPIC_API_KEY", "sk-ant-secret-of-this-test");
    let models = Done::of(command);
    let lines = models.lines();
    assert_eq!((&lines[0]["type"], &lines[0]["name"]), (&json!("route"), &json!("anthropic")));
    assert!(lines.iter().any(|line| line["type"] == "model" && line["price"]["input"].is_u64()));
    assert!(!models.out.contains("secret-of-this-test"));
}

#[test]
fn doctor_names_what_is_wrong_and_never_a_key() {
    let place = Place::new();
    let mut command = place.stele(["doctor", "--json"]);
    command.env("ANTHROPIC_API_KEY", "sk-ant-secret-of-this-test");
    let well = Done::of(command);
    assert_eq!(well.code, 0, "{well:?}");
    assert!(well.out.contains("ANTHROPIC_API_KEY") && !well.out.contains("secret-of-this-test"), "{well:?}");
    let ill = Done::of(place.stele(["doctor", "--json"]));
    let wrong: Vec<_> = ill.lines().into_iter().filter(|finding| finding["health"] == "wrong").collect();
    assert_eq!((ill.code, wrong.len(), &wrong[0]["what"]), (1, 1, &json!("routes")), "{ill:?}");
}

#[test]
fn completions_are_for_this_program() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let done = Done::of(place.stele(["completions", shell]));
        assert!(done.code == 0 && done.out.contains("stele"), "{shell}");
    }
}

#[test]
fn verify_names_what_is_left_of_a_database_that_lost_its_end() {
    let place = worked();
    // A collection folds the write-ahead log into the file.
    assert_eq!(Done::of(place.stele(["sessions", "gc"])).code, 0);
    let path = place.home().join("data/stele.db");
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    let done = Done::of(place.stele(["verify", "--all"]));
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.out.contains("DAMAGED"), "{done:?}");
    assert!(!done.out.contains("stele verify") && !done.err.contains("stele verify"), "{done:?}");
}

/// A folder with a session whose database is one file, and that file.
fn settled() -> (Place, std::path::PathBuf) {
    let place = worked();
    // A collection folds the write-ahead log into the file.
    assert_eq!(Done::of(place.stele(["sessions", "gc"])).code, 0);
    let path = place.home().join("data/stele.db");
    (place, path)
}

#[test]
fn a_damaged_search_index_keeps_no_session_from_being_judged_and_is_made_again() {
    let (place, path) = settled();
    let found = |place: &Place| Done::of(place.stele(["sessions", "search", "--json", "notes", "hello"])).lines();
    let before = found(&place);
    assert!(!before.is_empty());
    // The version of the index is none that there is.
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(8).position(|window| window.starts_with(b"version") && matches!(window[7], 4 | 5)).unwrap();
    bytes[at + 7] = 99;
    std::fs::write(&path, bytes).unwrap();

    let verified = Done::of(place.stele(["verify", "--all", "--json"]));
    let lines = verified.lines();
    assert_eq!((verified.code, lines.len()), (1, 2), "{verified:?}");
    assert_eq!((&lines[0]["clean"], &lines[0]["requests"]), (&json!(true), &json!(2)), "{verified:?}");
    assert_eq!((&lines[1]["clean"], &lines[1]["code"]), (&json!(false), &json!("log.index_damaged")), "{verified:?}");
    assert!(lines[1]["damage"][0].as_str().unwrap().contains("stele sessions gc"), "{verified:?}");
    let text = Done::of(place.stele(["verify", "--all"]));
    assert!(text.out.ends_with("1 session, all clean; besides: log.index_damaged\n"), "{text:?}");
    let searched = Done::of(place.stele(["sessions", "search", "notes"]));
    assert!(
        searched.code == 2 && searched.err.contains("log.index_damaged") && searched.err.contains("stele sessions gc")
    );
    assert_eq!(place.sessions().len(), 1);
    let server = server(Script::new([Say::text("Once more."), Say::text("And again.")]));
    assert_eq!(Done::of(place.with(&server, ["run", "--continue", "again"])).code, 0);

    assert_eq!(Done::of(place.stele(["sessions", "gc"])).code, 0);
    place.assert_clean();
    assert_eq!(found(&place), before);
}

#[test]
fn a_database_that_lost_all_is_named_and_a_run_makes_a_new_one() {
    // Nothing at all is left, or the file was copied without its write-ahead log, which still held everything.
    for whole in [true, false] {
        let place = worked();
        let path = place.home().join("data/stele.db");
        for beside in ["stele.db-wal", "stele.db-shm"] {
            std::fs::remove_file(path.with_file_name(beside)).unwrap();
        }
        if whole {
            std::fs::write(&path, "").unwrap();
        }
        let verified = Done::of(place.stele(["verify", "--all", "--json"]));
        let lines = verified.lines();
        assert_eq!((verified.code, &lines[0]["code"]), (1, &json!("log.empty")), "{verified:?}");
        let one = Done::of(place.stele(["verify", "0190"]));
        assert!(one.code == 1 && one.err.contains("log.empty"), "{one:?}");
        assert_eq!(place.sessions(), Vec::<String>::new());
        let server = server(Script::new([Say::text("A beginning.")]));
        assert_eq!(Done::of(place.with(&server, ["run", "go"])).code, 0);
        place.assert_clean();
        assert_eq!(place.sessions().len(), 1);
    }
}

#[test]
fn a_database_that_lost_its_end_is_refused_with_a_code_and_judged_as_far_as_it_goes() {
    let (place, path) = settled();
    let whole = std::fs::read(&path).unwrap();
    for left in [whole.len() / 2, whole.len() - 4_096, 100] {
        std::fs::write(&path, &whole[..left]).unwrap();
        let verified = Done::of(place.stele(["verify", "--all", "--json"]));
        let named = verified.lines().iter().any(|line| line["code"] == "log.corrupt");
        assert!(verified.code == 1 && named, "{left}: {verified:?}");
        let server = server(Script::new([Say::text("Never.")]));
        let run = Done::of(place.with(&server, ["run", "--continue", "again"]));
        assert!(run.code != 0 && run.err.contains("log."), "{left}: {run:?}");
        assert!(server.requests().is_empty(), "{left}: {run:?}");
    }
}

#[test]
fn files_of_long_results_go_with_their_session() {
    let place = Place::new();
    let long = Say::call("bash", &json!({"command": "head -c 100000 /dev/zero | tr '\\0' x"}));
    for _ in 0..2 {
        let server = server(Script::new([long.clone(), Say::text("Long.")]));
        assert_eq!(Done::of(place.with(&server, ["run", "--mode", "full", "print"])).code, 0);
    }
    let kept = || {
        let mut names: Vec<_> = std::fs::read_dir(place.home().join("data/spill"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let mut sessions = place.sessions();
    sessions.sort();
    assert_eq!(kept(), sessions);
    assert_eq!(Done::of(place.stele(["sessions", "rm", &sessions[0]])).code, 0);
    assert_eq!(kept(), sessions[1..]);
    // Of a session that another release removed.
    let stray = "01890000-0000-7000-8000-000000000001";
    std::fs::create_dir(place.home().join("data/spill").join(stray)).unwrap();
    let dry = Done::of(place.stele(["sessions", "gc", "--dry-run", "--json"]));
    assert_eq!((&dry.lines()[0]["spills"], kept().len()), (&json!(1), 2), "{dry:?}");
    let done = Done::of(place.stele(["sessions", "gc"]));
    assert!(done.out.contains("1 spill folder"), "{done:?}");
    assert_eq!(kept(), sessions[1..]);
}

#[test]
fn doctor_does_not_praise_a_home_that_cannot_be() {
    let place = Place::new();
    std::fs::write(place.home(), "a file").unwrap();
    let done = Done::of(place.stele(["doctor", "--json"]));
    let finding = done.lines().into_iter().find(|finding| finding["what"] == "logs").unwrap();
    assert_eq!((done.code, &finding["health"]), (1, &json!("wrong")), "{done:?}");
    assert!(finding["says"].as_str().unwrap().starts_with("log.un"), "{finding}");
}

#[test]
fn a_search_without_a_log_says_that_it_found_nothing() {
    let place = Place::new();
    for (arguments, says) in
        [(&["sessions", "search", "x"][..], "nothing found\n"), (&["sessions", "search", "--json", "x"], "")]
    {
        let done = Done::of(place.stele(arguments.iter().copied()));
        assert_eq!((done.code, done.out.as_str()), (0, says), "{done:?}");
    }
}
