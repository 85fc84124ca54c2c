//! What is logged before files are changed, and what becomes of it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;

use serde_json::json;
use stele_agent::{AgentOptions, ChangedSince, Driver, Error, OpenPolicy};
use stele_core::{By, Event, Wire};
use stele_testkit::{Say, Script};

use crate::stage::{Stage, ask, bash, events, kinds};
use crate::undo::let_time_pass;

fn me() -> By {
    By::person("test")
}

#[tokio::test]
async fn what_a_tool_changes_is_in_the_log_before_it_is_changed_and_only_once() {
    let says = [
        Say::call("edit", &json!({"path": "f", "edits": [{"old": "old", "new": "new"}]})),
        Say::call("write", &json!({"path": "made", "content": "x"})),
        // It fails when it is written: what it said is taken back.
        Say::call(
            "patch",
            &json!({"patch": "*** Begin Patch\n*** Update File: g\n-old\n+new\n*** Add File: f/x\n+x\n*** End Patch\n"}),
        ),
        Say::text("Done."),
    ];
    let stage = Stage::new(Wire::OpenaiChat, Script::new(says));
    ["f", "g"].iter().for_each(|name| stage.write(name, "old\n"));
    let mut driver = stage.create();
    let mut notices = driver.subscribe();
    ask(&mut driver, "go").await;
    let events = events(&mut notices);
    let order: Vec<(&str, bool, &str)> = events
        .iter()
        .filter_map(|event| match event {
            Event::ToolStarted(_) => Some(("started", false, "")),
            Event::FileChanged(it) => Some(("changed", it.ahead, it.change.path.rsplit('/').next()?)),
            Event::ToolResult(it) => Some(("result", it.error.is_some(), "")),
            _ => None,
        })
        .collect();
    let calls: Vec<&[(&str, bool, &str)]> = order.split_inclusive(|(what, ..)| *what == "result").collect();
    assert_eq!(calls[0], [("started", false, ""), ("changed", true, "f"), ("result", false, "")]);
    // What mode a new file gets is only known once it is there.
    assert_eq!(calls[1][..2], [("started", false, ""), ("changed", true, "made")]);
    assert!(calls[2].last() == Some(&("result", true, "")), "{order:?}");
    let done = driver.state().history().done().last().unwrap();
    let net: Vec<&str> = done
        .files
        .values()
        .filter(|file| file.before != file.after)
        .map(|file| file.path.rsplit('/').next().unwrap())
        .collect();
    assert_eq!((net, &done.not_covered), (vec!["f", "made"], &vec![]));
    assert_eq!(driver.undo(me(), ChangedSince::Leave).await.unwrap().left, []);
    assert_eq!((stage.read("f").as_str(), stage.read("g").as_str()), ("old\n", "old\n"));
    assert!(!stage.path("made").exists());
}

#[tokio::test]
async fn an_undo_that_waits_for_a_folder_holds_nobody_else_up() {
    let stage =
        Stage::new(Wire::OpenaiChat, Script::new([Say::call("bash", &bash("echo new > f")), Say::text("Done.")]));
    stage.write("f", "old\n");
    let mut driver = stage.create();
    ask(&mut driver, "go").await;
    for (to, redo) in [("old\n", false), ("new\n", true)] {
        // As another process of Stele does that changes a file in it.
        let folder = fs::File::open(&stage.folder).unwrap();
        folder.lock().unwrap();
        let order = RefCell::new(Vec::new());
        let restored = async {
            let restored = if redo {
                driver.redo(me(), ChangedSince::Leave).await
            } else {
                driver.undo(me(), ChangedSince::Leave).await
            };
            order.borrow_mut().push("restored");
            restored.unwrap()
        };
        let released = async {
            drop(folder);
            order.borrow_mut().push("released");
        };
        let (restored, ()) = tokio::join!(restored, released);
        assert_eq!((restored.files.len(), stage.read("f").as_str()), (1, to));
        assert_eq!(*order.borrow(), ["released", "restored"]);
    }
}

#[tokio::test]
async fn what_cannot_be_restored_can_be_asked_for_again() {
    let stage = Stage::new(Wire::OpenaiChat, Script::new([Say::call("bash", &bash("echo new > f; echo new > g"))]));
    ["f", "g"].iter().for_each(|name| stage.write(name, "old\n"));
    // A file of two names is written in place, for which there is no room below.
    fs::hard_link(stage.path("f"), stage.path("f-too")).unwrap();
    let mut driver = stage.create();
    ask(&mut driver, "go").await;
    let session = driver.session().clone();
    drop(driver);
    let no_room = |options: &mut AgentOptions| options.in_place.kept = Some(stage.path("g").join("kept"));
    let contents = || ["f", "f-too", "g"].map(|name| stage.read(name));
    for to in ["old\n", "new\n", "old\n"] {
        let before = contents();
        for attempt in 0..3 {
            let mut driver = match attempt {
                2 => stage.open(&session, OpenPolicy::Close),
                _ => stage.open_with(&session, no_room),
            };
            let restored = match to {
                "old\n" => driver.undo(me(), ChangedSince::Leave).await,
                _ => driver.redo(me(), ChangedSince::Leave).await,
            };
            if attempt < 2 {
                assert!(matches!(restored, Err(Error::Restore(_))), "{restored:?}");
                assert_eq!((contents(), driver.finished().len()), (before.clone(), 0));
            } else {
                assert_eq!((restored.unwrap().left, contents()), (vec![], [to; 3].map(str::to_owned)));
            }
        }
    }
}

#[tokio::test]
async fn a_fork_finishes_nothing_that_was_cut_off_in_what_it_continues() {
    let stage =
        Stage::new(Wire::OpenaiChat, Script::new([Say::call("bash", &bash("echo new > f")), Say::text("Done.")]));
    stage.write("f", "old\n");
    let mut driver = stage.create();
    ask(&mut driver, "go").await;
    let mut notices = driver.subscribe();
    driver.undo(me(), ChangedSince::Leave).await.unwrap();
    let last = kinds(&mut notices);
    assert_eq!(last.last(), Some(&"restore/ended"));
    // A log as it is after a kill: without its end. The file as it was just before.
    let session = driver.session().clone();
    let head = stage.store().session(&session).unwrap().head.seq;
    let cut = head.before().unwrap();
    stage.write("f", "new\n");
    let fork = Driver::fork(&stage.agent(), &session, Some(cut)).unwrap();
    assert!(fork.state().history().unrestored().is_empty());
    assert_eq!(stage.read("f"), "new\n");
    drop((driver, fork));
    let mut driver = stage.open(&session, OpenPolicy::Close);
    assert!(driver.finished().is_empty());
    assert_eq!(stage.read("f"), "new\n", "what ended is not done again");
}

#[tokio::test]
async fn large_files_that_take_each_others_place_are_named_and_stay() {
    let rotate = "mv a t; mv b a; mv c b; mv t c; mv d moved";
    let stage = Stage::new(Wire::OpenaiChat, Script::new([Say::call("bash", &bash(rotate)), Say::text("Done.")]));
    for name in ["a", "b", "c", "d"] {
        stage.write(name, &name.repeat(2 << 20));
    }
    let_time_pass(&stage);
    let contents = |names: &[&'static str]| -> BTreeMap<&str, Option<u8>> {
        names.iter().map(|name| (*name, fs::read(stage.path(name)).ok().map(|bytes| bytes[0]))).collect()
    };
    let mut driver = stage.create();
    ask(&mut driver, "go").await;
    let rotated = BTreeMap::from([("a", Some(b'b')), ("b", Some(b'c')), ("c", Some(b'a'))]);
    for _ in 0..2 {
        let undone = driver.undo(me(), ChangedSince::Overwrite).await.unwrap();
        assert_eq!(contents(&["a", "b", "c"]), rotated, "they stay");
        assert_eq!(contents(&["d", "moved"]), BTreeMap::from([("d", Some(b'd')), ("moved", None)]));
        for name in ["a", "b", "c"] {
            let named = |said: &String| said.contains(&format!("/{name}, "));
            assert!(undone.not_covered.iter().any(named), "{name}: {:?}", undone.not_covered);
        }
        driver.redo(me(), ChangedSince::Overwrite).await.unwrap();
        assert_eq!(contents(&["a", "b", "c"]), rotated);
    }
}
