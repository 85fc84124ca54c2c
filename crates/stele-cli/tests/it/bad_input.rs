//! Wrong input of every kind: one clear message with its code, and a session that stays valid.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use stele_testkit::{Behaviour, Fault, FaultKind, Say};

use crate::support::{Done, Place, seen, server};

#[track_caller]
fn says(done: &Done, code: i32, error: &str) {
    assert_eq!(done.code, code, "{done:?}");
    assert!(done.err.contains(error), "{error} is not in {}", done.err);
}

#[test]
fn no_prompt_at_all() {
    let place = Place::new();
    let server = server(Say::text("x"));
    says(&Done::of(place.with(&server, ["run"])), 2, "usage.no_prompt");
    says(&Done::of(place.with(&server, ["run", ""])), 2, "usage.no_prompt");
    says(&Done::fed(place.with(&server, ["run", "-"]), " \n"), 2, "usage.no_prompt");
    assert!(server.requests().is_empty());
}

#[test]
fn a_prompt_that_is_not_utf8() {
    let place = Place::new();
    let server = server(Say::text("x"));
    says(&Done::fed(place.with(&server, ["run", "-"]), b"ok\n\xff"), 2, "byte 4 (0xff, line 2)");
    let mut command = place.with(&server, ["run"]);
    command.arg(OsStr::from_bytes(b"a\xc3"));
    says(&Done::of(command), 2, "usage.not_utf8");
}

#[test]
fn a_prompt_that_is_too_long() {
    let place = Place::new();
    let server = server(Say::text("x"));
    let done = Done::fed(place.with(&server, ["run"]), "x".repeat(1024 * 1024 + 1));
    says(&done, 2, "usage.prompt_too_long");
}

#[test]
fn a_slip_of_the_pen() {
    let place = Place::new();
    says(&Done::of(place.stele(["verfy"])), 2, "stele verify");
    says(&Done::of(place.stele(["run", "--modle", "x", "y"])), 2, "--modle");
    says(&Done::of(place.stele(["run", "--mode", "yolo", "y"])), 2, "ask, edit and full");
    says(&Done::of(place.stele(["--continue", "run", "y"])), 2, "usage.order");
    says(&Done::of(place.stele([])), 2, "usage.no_terminal");
}

#[test]
fn no_route() {
    let place = Place::new();
    says(&Done::of(place.stele(["run", "hi"])), 2, "config.no_route");
}

#[test]
fn a_key_without_a_model_is_named() {
    let place = Place::new();
    for arguments in [&["run", "hi"][..], &["doctor"]] {
        let mut command = place.stele(arguments.iter().copied());
        command.env("GROQ_API_KEY", "k");
        let done = Done::of(command);
        assert!(format!("{}{}", done.out, done.err).contains("GROQ_API_KEY is set"), "{done:?}");
    }
}

#[test]
fn a_route_whose_key_is_missing_begins_nothing() {
    let place = Place::new();
    std::fs::create_dir_all(place.home()).unwrap();
    let route = "[routes.work]\nwire = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n";
    std::fs::write(place.home().join("config.toml"), format!("{route}key_env = \"WORK_KEY\"\n")).unwrap();
    says(&Done::of(place.stele(["run", "hi"])), 2, "WORK_KEY");
    assert!(place.sessions().is_empty());
    says(&Done::of(place.stele(["run", "-m", "wrok", "hi"])), 2, "did you mean work?");
    says(&Done::of(place.stele(["run", "-m", "nope/x", "hi"])), 2, "there is no route nope");
}

#[test]
fn the_last_line_is_there_when_an_option_is_wrong() {
    let place = Place::new();
    let done = Done::of(place.stele(["run", "--json", "--quiet", "--max-steps", "x", "hi"]));
    assert_eq!((done.code, done.result()["error"]["code"].as_str()), (2, Some("usage.options")), "{done:?}");
    for (words, said, tried) in [
        (&["run", "--mode", "fulll", "x"][..], "invalid value 'fulll' for '--mode <MODE>': ", "stele run --help"),
        (&["run", "--contineu", "x"], "unexpected argument '--contineu' found", "'--continue'"),
        (&["run", "--max-cost", "abc", "x"], "invalid value 'abc'", "stele run --help"),
        (&["run", "--timeout", "0s", "x"], "invalid value '0s'", "stele run --help"),
        (&["sessions", "export"], "<ID>", "stele sessions export --help"),
        (&["--color", "no"], "[possible values: auto, always, never]", "stele --help"),
    ] {
        let done = Done::of(place.stele(words.iter().copied()));
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
        assert!(done.err.starts_with("error: usage.options: ") && done.err.contains(said), "{done:?}");
        assert!(done.err.lines().any(|line| line.starts_with("  try: ") && line.contains(tried)), "{done:?}");
    }
}

#[test]
fn words_without_quotes_and_help() {
    let place = Place::new();
    says(&Done::of(place.stele(["fix", "the", "bug"])), 2, "in quotes");
    says(&Done::of(place.stele(["run", "fix", "the", "bug"])), 2, "in quotes");
    says(&Done::of(place.stele(["list"])), 2, "stele sessions list");
    says(&Done::of(place.stele(["rnu", "x"])), 2, "there is no command rnu; did you mean `stele run`?");
    says(&Done::of(place.stele(["man"])), 2, "did you mean `stele help`?");
    let help = Done::of(place.stele(["help"]));
    assert_eq!((help.code, help.out.contains("Usage: stele")), (0, true), "{help:?}");
}

#[test]
fn logs_are_read_whatever_the_configuration_says() {
    let place = Place::new();
    let server = server(Say::text("x"));
    assert_eq!(Done::of(place.with(&server, ["run", "hi"])).code, 0);
    std::fs::write(place.home().join("config.toml"), "modle = \"x\"\n").unwrap();
    assert_eq!(place.sessions().len(), 1);
    let listed = Done::of(place.stele(["sessions", "list"]));
    assert!(listed.out.contains("hi") && listed.err.contains("modle"), "{listed:?}");
    let doctor = Done::of(place.stele(["doctor"]));
    assert_eq!(doctor.code, 1);
    assert!(doctor.out.contains("modle") && doctor.out.contains("shell"), "{doctor:?}");
}

#[test]
fn doctor_connects_to_a_server_of_this_machine() {
    let place = Place::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = place.stele(["doctor"]);
    command.env("STELE_BASE_URL", format!("http://127.0.0.1:{port}/v1")).env("STELE_MODEL", "m");
    let done = Done::of(command);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.out.contains("nothing answers there") && done.out.contains("(none; defaults"), "{done:?}");
    let server = server(Say::text("x"));
    assert_eq!(Done::of(place.with(&server, ["doctor"])).code, 0);
}

#[test]
fn ids_and_files_that_are_missing_or_there() {
    let place = Place::new();
    says(&Done::of(place.stele(["verify"])), 2, "there is no session yet");
    says(&Done::of(place.stele(["run", "--max-cost", "-1", "x"])), 2, "amount of US dollars");
    says(&Done::of(place.stele(["-C", ".", "demo"])), 2, "TMPDIR");
    let server = server(Say::text("x"));
    assert_eq!(Done::of(place.with(&server, ["run", "hi"])).code, 0);
    let id = place.sessions().remove(0);
    place.write("out", "mine");
    says(&Done::of(place.stele(["sessions", "export", &id, "-o", "out"])), 2, "nothing is overwritten");
    let elsewhere = Done::of(place.stele(["-C", "/", "sessions", "list", "--here"]));
    assert!(elsewhere.out.contains("none in this folder; without --here: 1"), "{elsewhere:?}");
    let none = Done::of(place.stele(["sessions", "list", "-n", "0"]));
    assert!(none.out.contains("none of 1 session shown"), "{none:?}");
}

#[test]
fn a_configuration_with_a_typo() {
    let place = Place::new();
    std::fs::create_dir_all(place.home()).unwrap();
    std::fs::write(place.home().join("config.toml"), "mode = \"edit\"\nmodle = \"x\"\n").unwrap();
    let server = server(Say::text("x"));
    let done = Done::of(place.with(&server, ["run", "hi"]));
    assert_eq!(done.code, 2);
    seen!(place, done.err);
}

#[test]
fn a_rule_that_is_none() {
    let place = Place::new();
    let server = server(Say::text("x"));
    says(&Done::of(place.with(&server, ["run", "--allow", "bash(", "hi"])), 2, "rule.");
}

#[test]
fn a_wrong_key() {
    let place = Place::new();
    let server = server(Behaviour::from(Say::text("x")).require_key("right"));
    let mut command = place.with(&server, ["run", "hi"]);
    command.env("STELE_API_KEY", "a-wrong-key-of-some-length");
    let done = Done::of(command);
    says(&done, 1, "provider.auth");
    assert!(!done.err.contains("a-wrong-key"), "{done:?}");
    assert_eq!(done.err.matches("provider.auth").count(), 1, "{done:?}");
    assert!(done.err.contains("; route env, key in STELE_API_KEY)"), "{done:?}");
    place.assert_clean();
}

#[test]
fn a_model_that_does_not_exist() {
    let place = Place::new();
    let server = server(Behaviour::from(Say::text("x")).models(["other"]));
    says(&Done::of(place.with(&server, ["run", "hi"])), 1, "provider.unknown_model");
    place.assert_clean();
}

#[test]
fn an_endpoint_that_is_down() {
    let place = Place::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = place.stele(["run", "--timeout", "1s", "hi"]);
    command
        .env("STELE_WIRE", "openai-chat")
        .env("STELE_BASE_URL", format!("http://127.0.0.1:{port}/v1"))
        .env("STELE_MODEL", "m");
    let done = Done::of(command);
    assert!(matches!(done.code, 1 | 4), "{done:?}");
    assert!(done.err.contains("provider.transport"), "{done:?}");
    place.assert_clean();
}

#[test]
fn a_request_that_is_refused_with_a_message() {
    let place = Place::new();
    let kind = FaultKind::Status {
        status: 400,
        headers: Vec::new(),
        body: Some(
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"the moon is full"}}"#.to_owned(),
        ),
    };
    let behaviour = Behaviour::from(Say::text("Well.")).fault(Fault::at(0, 1..=1, kind));
    let server = server(behaviour);
    says(&Done::of(place.with(&server, ["run", "hi"])), 1, "the moon is full");
    let done = Done::of(place.with(&server, ["run", "--continue", "again"]));
    assert_eq!((done.code, done.out.as_str()), (0, "Well.\n"), "{done:?}");
    place.assert_clean();
}

#[test]
fn a_session_that_is_not_there() {
    let place = Place::new();
    let server = server(Say::text("x"));
    Done::of(place.with(&server, ["run", "hi"]));
    says(&Done::of(place.with(&server, ["run", "--resume", "ffffffff", "x"])), 2, "log.not_found");
    says(&Done::of(place.stele(["sessions", "show", "ffffffff"])), 2, "log.not_found");
    says(&Done::of(place.stele(["verify", "nonsense"])), 2, "log.not_found");
}

#[test]
fn a_session_that_somebody_else_writes() {
    let place = Place::new();
    let behaviour =
        Behaviour::from(Say::text("x")).fault(Fault::always(FaultKind::Stall { at: stele_testkit::Cut::Start }));
    let server = server(behaviour);
    let mut child = place.with(&server, ["run", "hi"]).spawn().unwrap();
    server.wait_for(1, std::time::Duration::from_secs(20)).unwrap();
    let done = Done::of(place.with(&server, ["run", "--continue", "me too"]));
    child.kill().unwrap();
    child.wait().unwrap();
    says(&done, 2, "log.locked");
    assert!(done.err.contains("`stele --fork ") && done.err.contains("\"…\"`"), "both have what they need: {done:?}");
}

#[test]
fn a_database_that_is_none() {
    let place = Place::new();
    std::fs::create_dir_all(place.home().join("data")).unwrap();
    std::fs::write(place.home().join("data/stele.db"), "this is no database, whatever its name says. ".repeat(40))
        .unwrap();
    let server = server(Say::text("x"));
    let done = Done::of(place.with(&server, ["run", "hi"]));
    says(&done, 2, "log.unreadable");
    assert!(server.requests().is_empty(), "without a log nothing is sent");
    let doctor = Done::of(place.with(&server, ["doctor"]));
    assert!(doctor.code == 1 && doctor.out.contains("log.unreadable"), "{doctor:?}");
}

#[test]
fn a_database_of_a_newer_release() {
    let place = Place::new();
    let server = server(Say::text("x"));
    Done::of(place.with(&server, ["run", "hi"]));
    // Folds the write-ahead log into the file, whose header is then changed.
    assert_eq!(Done::of(place.stele(["sessions", "gc"])).code, 0);
    let path = place.home().join("data/stele.db");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[60..64].copy_from_slice(&9_999_u32.to_be_bytes());
    std::fs::write(&path, bytes).unwrap();
    for arguments in [&["run", "hi"][..], &["sessions", "list"], &["verify", "--all"]] {
        says(&Done::of(place.with(&server, arguments.iter().copied())), 2, "log.newer");
    }
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_home_that_is_a_file() {
    let place = Place::new();
    std::fs::write(place.home(), "in the way").unwrap();
    let server = server(Say::text("x"));
    let done = Done::of(place.with(&server, ["run", "hi"]));
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("log.un"), "{done:?}");
}

#[test]
fn a_folder_that_is_not_there() {
    let place = Place::new();
    let server = server(Say::text("x"));
    says(&Done::of(place.with(&server, ["run", "-C", "nowhere", "hi"])), 2, "usage.folder");
    Done::of(place.with(&server, ["run", "hi"]));
    let id = place.sessions().remove(0);
    let gone = place.folder().with_file_name("moved");
    std::fs::rename(place.folder(), &gone).unwrap();
    let mut command = place.with(&server, ["undo", &id]);
    command.current_dir(&gone);
    says(&Done::of(command), 2, "session.folder_gone");
}

#[test]
fn a_schema_that_is_none() {
    let place = Place::new();
    place.write("schema.json", "{\"type\": 7}");
    let server = server(Say::text("x"));
    says(&Done::of(place.with(&server, ["run", "--output-schema", "schema.json", "x"])), 2, "usage.schema");
    says(&Done::of(place.with(&server, ["run", "--output-schema", "none.json", "x"])), 2, "usage.schema");
    place.write("schema.json", "{\"requierd\": [\"n\"]}");
    says(&Done::of(place.with(&server, ["run", "--output-schema", "schema.json", "x"])), 2, "did you mean required?");
}

#[test]
fn nothing_waits_for_the_other_end_of_a_pipe() {
    let fifo = |path: &std::path::Path| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let place = Place::new();
    let server = server(Say::text("x"));
    fifo(&place.folder().join("pipe"));
    says(&Done::of(place.with(&server, ["run", "--output-schema", "pipe", "x"])), 2, "named pipe");
    says(&Done::of(place.with(&server, ["run", "--output-schema", ".", "x"])), 2, "usage.schema");
    says(&Done::of(place.with(&server, ["run", "--output-schema", "/dev/zero", "x"])), 2, "a device");
    says(&Done::of(place.with(&server, ["sessions", "import", "pipe"])), 2, "usage.file");
    says(&Done::fed(place.with(&server, ["edit", "pipe"]), "s/a/b/"), 1, "named pipe");
    // Instructions are files; anything else of that name is none.
    fifo(&place.folder().join("AGENTS.md"));
    says(&Done::of(place.with(&server, ["run", "x"])), 0, "");

    let place = Place::new();
    fifo(&place.home().join("config.toml"));
    says(&Done::of(place.with(&server, ["run", "x"])), 2, "config.unreadable");
    let place = Place::new();
    fifo(&place.home().join("data/stele.db"));
    fifo(&place.home().join("data/proxy/requests.db"));
    for arguments in [&["run", "x"][..], &["sessions", "list"], &["verify", "--all"], &["proxy", "report"]] {
        let done = Done::of(place.with(&server, arguments.iter().copied()));
        assert!(done.code == 2 && done.err.contains("move it away"), "{arguments:?}: {done:?}");
    }
}

#[test]
fn help_of_a_command() {
    let place = Place::new();
    let done = Done::of(place.stele(["help", "run"]));
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.contains("Usage: stele run") && done.out.contains("--output-schema"), "{done:?}");
    says(&Done::of(place.stele(["help", "rnu"])), 2, "stele help run");
    says(&Done::of(place.stele(["help"])), 0, "");
}

#[test]
fn words_of_other_programs_are_answered_with_the_own_ones() {
    let place = Place::new();
    for (words, tried) in [
        (&["resume"][..], "try: stele -c"),
        (&["continue"], "try: stele -c"),
        (&["exec", "hi"], "try: stele run "),
        (&["login"], "try: export ANTHROPIC_API_KEY"),
        (&["version"], "try: stele --version"),
        (&["update"], "install it again"),
        (&["init"], "AGENTS.md"),
        (&["log"], "try: stele sessions"),
        (&["-p", "fix it"], "try: stele run -q "),
        (&["--resume"], "try: stele -c"),
        (&["sessions", "rm"], "try: stele sessions rm --help"),
        (&["cache", "simulate"], "try: stele cache simulate --help"),
        (&["run", "--allow", "shell(git *)", "hi"], "did you mean `bash`?"),
        (&["run", "--allow", "foo", "hi"], "the tools are bash, "),
    ] {
        says(&Done::of(place.stele(words.iter().copied())), 2, tried);
    }
    assert!(!place.home().exists(), "nothing of it became a prompt");
}

#[test]
fn an_error_names_the_place_that_it_is_about() {
    let place = Place::new();
    let mut relative = place.stele(["run", "hi"]);
    relative.env("STELE_HOME", "rel");
    says(&Done::of(relative), 2, "STELE_HOME is \"rel\", which is no absolute path");
    let mut nameless = place.stele(["run", "hi"]);
    nameless.env("STELE_BASE_URL", "http://127.0.0.1:9/v1");
    says(&Done::of(nameless), 2, "config.route: STELE_MODEL is missing");
    std::fs::create_dir_all(place.home()).unwrap();
    let route = "\n[routes.w]\nwire = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n";
    std::fs::write(place.home().join("config.toml"), route).unwrap();
    let wrong = Done::of(place.stele(["run", "hi"]));
    assert!(wrong.err.replace("\n  ", " ").contains("config.toml:"), "{wrong:?}");
    assert!(wrong.err.contains("routes.w: model is missing"), "{wrong:?}");
}
