//! Going on with a session: continue, resume, fork.

use serde_json::json;
use stele_testkit::{Behaviour, Cut, Fault, FaultKind, Say, Script};

use crate::support::{Done, Place, seen, server};

#[test]
fn continue_takes_the_latest_session_of_the_folder_and_extends_its_prompt() {
    let place = Place::new();
    let server = server(Script::new([Say::text("One."), Say::text("Two.")]));
    Done::of(place.with(&server, ["run", "first"]));
    let done = Done::of(place.with(&server, ["run", "--continue", "second"]));
    assert_eq!((done.code, done.out.as_str()), (0, "Two.\n"), "{done:?}");
    assert_eq!(place.sessions().len(), 1);
    let bodies = server.requests();
    let messages = |at: usize| bodies[at].json()["messages"].as_array().unwrap().len();
    assert_eq!((messages(0), messages(1)), (1, 3));
    place.assert_clean();
}

#[test]
fn continue_without_a_session_here_lists_some_of_elsewhere() {
    let place = Place::new();
    let server = server(Say::text("One."));
    Done::of(place.with(&server, ["run", "somewhere"]));
    std::fs::create_dir(place.folder().join("other")).unwrap();
    let done = Done::of(place.with(&server, ["run", "-C", "other", "--continue", "x"]));
    assert_eq!(done.code, 2);
    seen!(place, done.err);
}

#[test]
fn a_session_is_named_by_the_start_of_its_id() {
    let place = Place::new();
    let server = server(Script::new([Say::text("One."), Say::text("Two.")]));
    Done::of(place.with(&server, ["run", "first"]));
    let id = place.sessions().remove(0);
    let done = Done::of(place.with(&server, ["run", "--json", "--resume", &id[..13], "second"]));
    assert_eq!(done.result()["session"], id.as_str());
}

#[test]
fn a_fork_leaves_its_parent_as_it_is() {
    let place = Place::new();
    let server = server(Script::new([Say::text("One."), Say::text("Two.")]));
    Done::of(place.with(&server, ["run", "first"]));
    let id = place.sessions().remove(0);
    let done = Done::of(place.with(&server, ["run", "--json", "--fork", &id, "second"]));
    let result = done.result();
    assert_eq!((done.code, &result["text"]), (0, &json!("Two.")), "{done:?}");
    assert_ne!(result["session"], id.as_str());
    assert_eq!(place.sessions().len(), 2);
    place.assert_clean();
}

#[test]
fn resume_without_a_prompt_does_what_is_owed() {
    let place = Place::new();
    let behaviour = Behaviour::from(Script::new([
        Say::call("write", &json!({"path": "a.txt", "content": "a"})),
        Say::text("Done."),
    ]))
    .fault(Fault::at(1, 1..=1, FaultKind::Stall { at: Cut::Start }));
    let server = server(behaviour);
    let mut child = place.with(&server, ["run", "--mode", "edit", "write"]).spawn().unwrap();
    server.wait_for(2, std::time::Duration::from_secs(20)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let id = place.sessions().remove(0);
    let done = Done::of(place.with(&server, ["run", "--json", "--resume", &id]));
    let result = done.result();
    assert_eq!((done.code, &result["status"], &result["text"]), (0, &json!("succeeded"), &json!("Done.")), "{done:?}");
    assert_eq!(server.requests().len(), 3);
    place.assert_clean();
    let again = Done::of(place.with(&server, ["run", "--resume", &id]));
    assert_eq!((again.code, again.out.as_str()), (0, ""), "{again:?}");
    assert!(again.err.contains("nothing is owed"), "{again:?}");
}

#[test]
fn another_model_opens_an_epoch() {
    let place = Place::new();
    let server = server(Script::new([Say::text("One."), Say::text("Two.")]));
    Done::of(place.with(&server, ["run", "first"]));
    let done = Done::of(place.with(&server, ["run", "--json", "--continue", "--model", "other", "second"]));
    let opened: Vec<_> = done.lines().into_iter().filter(|line| line["kind"] == "epoch/opened").collect();
    assert_eq!(opened.len(), 1, "{done:?}");
    assert_eq!(opened[0]["data"]["config"]["model"], "other");
    assert_eq!(server.requests()[1].json()["model"], "other");
}

#[test]
fn a_session_that_has_nothing_to_do_says_how_to_go_on() {
    let place = Place::new();
    let server = server(Script::new([Say::text("One.")]));
    assert_eq!(Done::of(place.with(&server, ["run", "hi"])).code, 0);
    let done = Done::of(place.with(&server, ["run", "-c"]));
    assert!(done.err.contains("nothing is owed") && done.err.contains("to go on: "), "{done:?}");
}

#[test]
fn a_session_whose_key_is_gone_is_refused_before_anything_is_appended() {
    let place = Place::new();
    let server = server(Script::new([Say::text("One.")]));
    std::fs::create_dir_all(place.home()).unwrap();
    let config = format!(
        "[routes.mine]\nwire = \"openai-chat\"\nbase_url = \"{}\"\nmodel = \"m\"\nkey_env = \"MY_KEY\"\n",
        server.base_url(stele_core::Wire::OpenaiChat)
    );
    std::fs::write(place.home().join("config.toml"), config).unwrap();
    let run = |arguments: &[&str], key: Option<&str>| {
        let mut command = place.stele(arguments.iter().copied());
        command.envs(key.map(|key| ("MY_KEY", key)));
        Done::of(command)
    };
    let first = run(&["run", "--json", "hi"], Some("k"));
    assert_eq!(first.code, 0, "{first:?}");
    let head = &first.result()["head"];
    let id = place.sessions().remove(0);
    for way in [&["run", "--json", "--continue", "x"][..], &["run", "--json", "--fork", &id, "x"]] {
        let done = run(way, None);
        assert_eq!((done.code, &done.result()["error"]["code"]), (2, &json!("provider.no_credential")), "{done:?}");
        assert!(done.err.contains("MY_KEY"), "{done:?}");
    }
    // Nothing is owed, so no key is needed to see how it ended.
    let seen = run(&["run", "--json", "--continue"], None);
    assert_eq!((seen.code, &seen.result()["head"]), (0, head), "{seen:?}");
    assert_eq!((place.sessions().len(), server.requests().len()), (1, 1));
}
