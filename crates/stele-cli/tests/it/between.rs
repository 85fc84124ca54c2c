//! Somebody else changes a file between two calls of one turn, or seems to.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;

use serde_json::{Value, json};
use stele_testkit::{Say, Script};

use crate::support::{Done, Place, server};

fn edit(path: &str, old: &str, new: &str) -> Say {
    Say::call("edit", &json!({"path": path, "edits": [{"old": old, "new": new}]}))
}

fn bash(command: &str) -> Say {
    Say::call("bash", &json!({"command": command}))
}

fn append(path: &Path, text: &str) {
    let before = fs::read_to_string(path).unwrap_or_default();
    fs::write(path, before + text).unwrap();
}

fn undo(place: &Place, arguments: &[&str]) -> Done {
    Done::of(place.stele(["undo"].into_iter().chain(arguments.iter().copied())))
}

/// Runs one turn of these calls; after the first step, of `count` calls, and before the next, somebody does something.
fn turn(place: &Place, calls: Vec<Say>, count: usize, act: impl FnOnce(&Path) + Send + 'static) {
    let (folder, act) = (place.folder(), Mutex::new(Some(act)));
    let script = Script::new(calls.into_iter().chain([Say::text("Done.")])).reacting(move |results| {
        if results.len() == count
            && let Some(act) = act.lock().unwrap().take()
        {
            act(&folder);
        }
        Vec::new()
    });
    let server = server(script);
    let done = Done::of(place.with(&server, ["run", "--mode", "full", "x"]));
    assert_eq!(done.code, 0, "{done:?}");
}

/// The files that an undo leaves, with why.
fn left(done: &Done) -> Vec<String> {
    let report = &done.lines()[0];
    let one = |left: &Value| {
        format!("{} {}", left["path"].as_str().unwrap().rsplit('/').next().unwrap(), left["why"].as_str().unwrap())
    };
    report["left"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn what_somebody_changed_between_two_calls_is_left_and_named_unless_it_is_asked_for() {
    let (sed_a, sed_b) = (|| bash("sed -i s/a/A/ f"), || bash("sed -i s/b/B/ f"));
    let cases: [Vec<Say>; 4] = [
        vec![edit("f", "a", "A"), edit("f", "b", "B")],
        vec![edit("f", "a", "A"), sed_b()],
        vec![sed_a(), edit("f", "b", "B")],
        vec![sed_a(), sed_b()],
    ];
    for calls in cases {
        let place = Place::new();
        place.write("f", "a\nb\n");
        place.write("other", "");
        let calls = calls.into_iter().chain([Say::call("write", &json!({"path": "new", "content": "x"}))]).collect();
        turn(&place, calls, 1, |folder| append(&folder.join("f"), "mine\n"));
        assert_eq!(place.read("f"), "A\nB\nmine\n");
        let done = undo(&place, &[]);
        assert!(
            done.code == 1
                && done.out.contains("! f left as it is: somebody else changed it between two calls of that turn"),
            "{done:?}"
        );
        assert!(!place.folder().join("new").exists() && place.read("f") == "A\nB\nmine\n", "{done:?}");
        // What is advised takes it back as well, and nothing is lost by that.
        let advice = done.out.lines().last().unwrap().to_owned();
        for command in advice.trim().split(" && ") {
            let done = Done::of(place.stele(command.split(' ').skip(1)));
            assert_eq!(done.code, 0, "{command}: {done:?}");
        }
        assert_eq!(place.read("f"), "a\nb\n");
        assert_eq!((undo(&place, &["--redo"]).code, place.read("f").as_str()), (0, "A\nB\nmine\n"));
        assert_eq!(left(&undo(&place, &["--json"])), ["f changed_between"], "it is asked again");
        assert_eq!(undo(&place, &["--redo"]).code, 0);
        let over = undo(&place, &["--overwrite", "--json"]);
        assert!(over.code == 0 && over.lines()[0]["replaced"][0].as_str().unwrap().ends_with("/f"), "{over:?}");
        place.assert_clean();
    }
}

#[test]
fn modes_and_files_that_went_meanwhile_count_and_what_is_as_before_does_not() {
    type Act = fn(&Path);
    /// The calls, what somebody does after the first, what an undo leaves, and what `f` is then.
    type Case = (Vec<Say>, Act, &'static [&'static str], &'static str);
    let cases: [Case; 6] = [
        (
            vec![edit("f", "a", "A"), edit("f", "b", "B")],
            |folder| fs::set_permissions(folder.join("f"), fs::Permissions::from_mode(0o700)).unwrap(),
            &["f changed_between"],
            "A\nB\n",
        ),
        (
            vec![bash("rm f"), edit("f", "mine", "yours")],
            |folder| fs::write(folder.join("f"), "mine\n").unwrap(),
            &["f changed_between"],
            "yours\n",
        ),
        // Nothing of theirs is in what goes back to before the turn.
        (
            vec![edit("f", "a", "A"), edit("f", "b", "B")],
            |folder| fs::write(folder.join("f"), "a\nb\n").unwrap(),
            &[],
            "a\nb\n",
        ),
        // What the turn had taken back by itself is theirs from then on.
        (
            vec![bash("echo x > f; printf 'a\\nb\\n' > f"), edit("f", "b", "B")],
            |folder| append(&folder.join("f"), "mine\n"),
            &[],
            "a\nb\nmine\n",
        ),
        (
            vec![edit("f", "a", "A"), bash("echo x > other")],
            |folder| append(&folder.join("f"), "mine\n"),
            &["f changed_since"],
            "A\nb\nmine\n",
        ),
        // A name that the turn makes anew after somebody took it away holds nothing of theirs.
        (
            vec![
                Say::call("write", &json!({"path": "n", "content": "1"})),
                Say::call("write", &json!({"path": "n", "content": "2"})),
            ],
            |folder| fs::remove_file(folder.join("n")).unwrap(),
            &[],
            "a\nb\n",
        ),
    ];
    for (calls, act, expected, content) in cases {
        let place = Place::new();
        place.write("f", "a\nb\n");
        turn(&place, calls, 1, act);
        let done = undo(&place, &["--json"]);
        assert_eq!(
            (left(&done), place.read("f").as_str()),
            (expected.iter().map(|it| (*it).to_owned()).collect(), content)
        );
        assert!(!place.folder().join("n").exists());
        place.assert_clean();
    }
}

#[test]
fn what_commands_and_jobs_of_the_agent_did_is_nobody_elses() {
    let nobody = |_: &Path| {};
    // A formatter that a command runs; a file that no look reaches, since it is excluded or large.
    let large = "x".repeat(2 << 20);
    for (name, exclude) in [("f", false), ("f", true), ("large", false)] {
        let place = Place::new();
        let first = if name == "large" { format!("a\nb\n{large}\n") } else { "a\nb\n".to_owned() };
        place.write(name, &first);
        if exclude {
            place.write(".gitignore", "f\n");
        }
        let by_hand = bash(&format!("sed -i 's/^A/  A/' {name}"));
        turn(&place, vec![edit(name, "a\nb", "A\nb"), by_hand, edit(name, "  A\nb", "  A\nB")], 0, nobody);
        assert!(place.read(name).starts_with("  A\nB\n"));
        let done = undo(&place, &["--json"]);
        assert_eq!((left(&done), place.read(name) == first), (vec![], true), "{name} {exclude}: {done:?}");
        place.assert_clean();
    }
    // What a job writes to; the server stands in for it.
    let place = Place::new();
    let job = Say::call("bash", &json!({"command": "exec sleep 1000", "background": true}));
    let both = job.and_call("bash", &json!({"command": "echo 1 > log"}));
    turn(&place, vec![both, bash("echo 3 >> log")], 2, |folder| append(&folder.join("log"), "2\n"));
    assert_eq!(place.read("log"), "1\n2\n3\n");
    let done = undo(&place, &["--json"]);
    assert_eq!((left(&done), place.folder().join("log").exists()), (vec![], false), "{done:?}");
}
