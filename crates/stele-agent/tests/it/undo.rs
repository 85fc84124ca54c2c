//! Turns taken back and done again: files, conversation, log.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde_json::{Value, json};
use stele_agent::{ChangedSince, Driver, Error, OpenPolicy};
use stele_core::{By, EndReason, Event, LeftWhy, Wire};
use stele_testkit::{Say, Script};

use crate::stage::{Stage, ask, bash, events, prompt_items};

/// Everything beneath a folder: links by where they point to, files by mode and bytes.
fn tree(folder: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    fn walk(folder: &Path, name: &str, found: &mut BTreeMap<String, (u32, Vec<u8>)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{name}/{}", entry.file_name().into_string().unwrap());
            let metadata = entry.path().symlink_metadata().unwrap();
            let bytes = if metadata.is_dir() {
                walk(&entry.path(), &name, found);
                Vec::new()
            } else if metadata.is_symlink() {
                fs::read_link(entry.path()).unwrap().into_os_string().into_encoded_bytes()
            } else {
                fs::read(entry.path()).unwrap()
            };
            found.insert(name, (metadata.mode(), bytes));
        }
    }
    let mut found = BTreeMap::new();
    walk(folder, "", &mut found);
    found
}

/// What is in one tree and not in the other.
#[track_caller]
fn same_tree(now: &BTreeMap<String, (u32, Vec<u8>)>, then: &BTreeMap<String, (u32, Vec<u8>)>, when: &str) {
    let differs = |one: &BTreeMap<String, (u32, Vec<u8>)>, other: &BTreeMap<String, (u32, Vec<u8>)>| {
        one.iter().filter(|(name, file)| other.get(*name) != Some(file)).map(|(name, _)| name.clone()).collect()
    };
    let (now, then): (Vec<String>, Vec<String>) = (differs(now, then), differs(then, now));
    assert_eq!(now, then, "{when}");
    assert!(now.is_empty(), "{when}: {now:?}");
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "edits": [{"old": old, "new": new}]})
}

/// What the model does in ten turns: edits, creations, deletions, moves, modes, links, bytes that are no text.
fn ten_turns() -> Vec<Vec<(&'static str, Value)>> {
    let patch = "*** Begin Patch\n*** Update File: src/one.rs\n*** Move to: lib/one.rs\n-fn one() {}\n+fn uno() {}\n\
                 *** Delete File: src/two.rs\n*** Add File: lib/three.rs\n+fn three() {}\n*** End Patch\n";
    vec![
        vec![("write", json!({"path": "deep/er/new.txt", "content": "new\n"}))],
        vec![("edit", edit("deep/er/new.txt", "new", "newer")), ("edit", edit("deep/er/new.txt", "newer", "newest"))],
        vec![
            ("bash", bash("printf '\\000\\377bin' > data.bin; chmod 755 run.sh; sed -i s/hello/bye/ greeting")),
            ("edit", edit("greeting", "bye", "good bye")),
        ],
        vec![("patch", json!({"patch": patch}))],
        vec![("bash", bash("rm -rf docs; ln -s greeting link; mkdir -p made/by/shell; echo x > made/by/shell/x"))],
        vec![("bash", bash("ls; cat greeting"))],
        vec![
            ("read", json!({"path": "run.sh"})),
            ("write", json!({"path": "run.sh", "content": "#!/bin/sh\necho 2\n"})),
        ],
        vec![("bash", bash("git mv a b 2>/dev/null || mv deep moved; rm link; echo file > link"))],
        vec![("bash", bash("exit 3")), ("edit", edit("lib/three.rs", "three", "drei"))],
        vec![("bash", bash("chmod 600 data.bin; rm made/by/shell/x; : > empty; cd lib"))],
    ]
}

fn script(turns: Vec<Vec<(&str, Value)>>, more: usize) -> Script {
    let mut says = Vec::new();
    for turn in turns {
        says.extend(turn.into_iter().map(|(tool, arguments)| Say::call(tool, &arguments)));
        says.push(Say::text("Done."));
    }
    says.extend((0..more).map(|_| Say::text("As you like.")));
    Script::new(says)
}

fn set_up(stage: &Stage) {
    for folder in ["src", "docs/more"] {
        fs::create_dir_all(stage.path(folder)).unwrap();
    }
    stage.write("greeting", "hello\r\n");
    stage.write("run.sh", "#!/bin/sh\necho 1\n");
    stage.write("src/one.rs", "fn one() {}\n");
    fs::set_permissions(stage.path("src/one.rs"), fs::Permissions::from_mode(0o755)).unwrap();
    stage.write("src/two.rs", "fn two() {}\n");
    fs::write(stage.path("docs/more/latin1"), b"caf\xe9\n").unwrap();
    stage.write("docs/index", "index\n");
}

fn me() -> By {
    By::person("test")
}

fn is_clean(stage: &Stage, driver: Driver) {
    let session = driver.session().clone();
    drop(driver);
    let verified = stele_agent::verify(&stage.store(), &session).unwrap();
    assert!(verified.is_clean(), "{verified:?}");
}

#[tokio::test]
async fn ten_turns_go_back_and_forth_byte_for_byte() {
    let stage = Stage::new(Wire::AnthropicMessages, script(ten_turns(), 1));
    set_up(&stage);
    let mut driver = stage.create();
    let mut trees = vec![tree(&stage.folder)];
    let mut messages = vec![Vec::new()];
    for n in 1..=10 {
        assert_eq!(ask(&mut driver, &format!("turn {n}")).await, EndReason::Completed);
        trees.push(tree(&stage.folder));
        messages.push(driver.state().messages(0));
    }
    assert_eq!(stage.read("run.sh"), "#!/bin/sh\necho 2\n");
    assert_eq!(stage.read("lib/three.rs"), "fn drei() {}\n");
    assert!(driver.state().cwd().is_some());

    // A person works beside it, on files of their own, and in another process.
    let session = driver.session().clone();
    drop(driver);
    let mut driver = stage.open(&session, OpenPolicy::Close);
    for n in (1..=10).rev() {
        let mine = format!("mine-{n}");
        stage.write(&mine, "mine");
        let restored = driver.undo(me(), ChangedSince::Leave).await.unwrap();
        assert_eq!((restored.turn, restored.title.as_str()), (n, format!("turn {n}").as_str()));
        assert_eq!(restored.left, []);
        let commands = [3, 5, 8, 10].contains(&n);
        assert_eq!(!restored.not_covered.is_empty(), commands, "{n}: {:?}", restored.not_covered);
        assert_eq!(stage.read(&mine), "mine", "what is a person's stays");
        fs::remove_file(stage.path(&mine)).unwrap();
        same_tree(&tree(&stage.folder), &trees[usize::try_from(n).unwrap() - 1], &format!("before turn {n}"));
        assert_eq!(driver.state().messages(0), messages[usize::try_from(n).unwrap() - 1]);
    }
    assert!(matches!(driver.undo(me(), ChangedSince::Leave).await, Err(Error::NothingTo("undo"))));
    assert_eq!(driver.state().cwd(), None, "the folder is the session's own again");

    // What was taken back is in the log, for another process as well.
    drop(driver);
    let mut driver = stage.open(&session, OpenPolicy::Close);
    for n in 1..=10 {
        let restored = driver.redo(me(), ChangedSince::Leave).await.unwrap();
        assert_eq!((restored.turn, restored.left), (n, vec![]));
        same_tree(&tree(&stage.folder), &trees[usize::try_from(n).unwrap()], &format!("after turn {n}"));
        assert_eq!(driver.state().messages(0), messages[usize::try_from(n).unwrap()]);
    }
    assert!(matches!(driver.redo(me(), ChangedSince::Leave).await, Err(Error::NothingTo("redo"))));

    // Three turns back, and on from there: the next request is what it would have been after seven turns.
    for _ in 0..3 {
        driver.undo(me(), ChangedSince::Leave).await.unwrap();
    }
    let mut notices = driver.subscribe();
    let sent = stage.requests().len();
    ask(&mut driver, "something else").await;
    assert!(matches!(driver.redo(me(), ChangedSince::Leave).await, Err(Error::NothingTo("redo"))));
    let opened: Vec<&str> = events(&mut notices)
        .iter()
        .filter_map(|event| match event {
            Event::EpochOpened(opened) => Some(opened.reason.name()),
            _ => None,
        })
        .collect();
    assert_eq!(opened, ["undo"]);
    let eighth = |request: &stele_testkit::Received| String::from_utf8_lossy(&request.body).contains("turn 8");
    let first_of_eighth = stage.requests().iter().position(eighth).unwrap();
    let after_seven = prompt_items(&stage.requests()[first_of_eighth - 1]);
    let now = prompt_items(&stage.requests()[sent]);
    assert_eq!(now[..after_seven.len()], after_seven[..]);
    assert_eq!(now.len(), after_seven.len() + 2, "the answer of the seventh turn, and the new prompt");
    is_clean(&stage, driver);
}

#[tokio::test]
async fn what_a_person_changed_since_is_left_unless_they_ask() {
    for asked in [ChangedSince::Leave, ChangedSince::Overwrite] {
        let turns = vec![
            vec![("bash", bash("echo one > a; echo one > b; echo one > new; rm gone; chmod +x mode"))],
            vec![("edit", edit("a", "one", "two")), ("edit", edit("b", "one", "two"))],
        ];
        let stage = Stage::new(Wire::OpenaiChat, script(turns, 0));
        for name in ["a", "b", "gone", "mode"] {
            stage.write(name, "zero\n");
        }
        let mut driver = stage.create();
        ask(&mut driver, "first").await;
        ask(&mut driver, "second").await;
        let end = tree(&stage.folder);
        stage.write("a", "mine\n");
        stage.write("gone", "mine\n");
        fs::remove_file(stage.path("new")).unwrap();

        let preview = stele_agent::preview_undo(driver.state(), &stage.store(), asked).unwrap().unwrap();
        let second = driver.undo(me(), asked).await.unwrap();
        assert_eq!(preview, second, "what is shown is what is done");
        assert_eq!(stage.read("b"), "one\n");
        let first = driver.undo(me(), asked).await.unwrap();
        let left: Vec<(&str, &LeftWhy)> = [&second, &first]
            .into_iter()
            .flat_map(|restored| &restored.left)
            .map(|left| (left.path.rsplit('/').next().unwrap(), &left.why))
            .collect();
        assert_eq!(stage.read("b"), "zero\n");
        assert_eq!(fs::metadata(stage.path("mode")).unwrap().mode() & 0o111, 0);
        assert!(!stage.path("new").exists(), "it is as it was before, whoever did that");
        if asked == ChangedSince::Leave {
            let since = &LeftWhy::ChangedSince;
            assert_eq!(left, [("a", since), ("a", since), ("gone", since)]);
            assert_eq!((stage.read("a"), stage.read("gone")), ("mine\n".into(), "mine\n".into()));
        } else {
            assert_eq!(left, []);
            assert_eq!((stage.read("a"), stage.read("gone")), ("zero\n".into(), "zero\n".into()));
        }
        driver.redo(me(), ChangedSince::Leave).await.unwrap();
        driver.redo(me(), ChangedSince::Leave).await.unwrap();
        // What stood there before is there again: the person's own version where that was replaced.
        assert_eq!((stage.read("a"), stage.read("b")), ("mine\n".into(), "two\n".into()));
        assert_eq!(stage.read("gone"), "mine\n");
        assert_eq!(fs::metadata(stage.path("mode")).unwrap().mode() & 0o111, end["/mode"].0 & 0o111);
        is_clean(&stage, driver);
    }
}

#[tokio::test]
async fn what_is_in_the_way_is_named_and_nothing_is_written_through_a_link() {
    let turns = vec![vec![("write", json!({"path": "sub/f", "content": "x"})), ("bash", bash("echo 2 > sub/g"))]];
    let stage = Stage::new(Wire::Gemini, script(turns, 0));
    fs::create_dir(stage.path("sub")).unwrap();
    stage.write("sub/g", "1\n");
    let mut driver = stage.create();
    ask(&mut driver, "go").await;
    fs::rename(stage.path("sub"), stage.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", stage.path("sub")).unwrap();
    let restored = driver.undo(me(), ChangedSince::Overwrite).await.unwrap();
    assert_eq!((restored.files.len(), restored.left.len()), (0, 2));
    assert!(restored.left.iter().all(|left| matches!(left.why, LeftWhy::Blocked { .. })), "{restored:?}");
    assert_eq!((stage.read("elsewhere/f"), stage.read("elsewhere/g")), ("x".into(), "2\n".into()));
    // With the folder back in its place nothing can be redone that was not undone.
    driver.redo(me(), ChangedSince::Leave).await.unwrap();
    fs::remove_file(stage.path("sub")).unwrap();
    fs::rename(stage.path("elsewhere"), stage.path("sub")).unwrap();
    driver.undo(me(), ChangedSince::Leave).await.unwrap();
    assert_eq!(stage.read("sub/g"), "1\n");
    assert!(!stage.path("sub/f").exists());
    is_clean(&stage, driver);
}

#[tokio::test]
async fn only_what_is_over_is_taken_back_also_when_its_files_are_back_already() {
    let turns = vec![vec![
        ("write", json!({"path": "f", "content": "x"})),
        ("todo", json!({"items": [{"text": "more", "status": "pending"}]})),
    ]];
    let stage = Stage::new(Wire::OpenaiResponses, script(turns, 1));
    let mut driver = stage.create();
    driver.command(crate::stage::prompt("go")).unwrap();
    // The turn is not open before it runs, and there is nothing yet.
    assert!(matches!(driver.undo(me(), ChangedSince::Leave).await, Err(Error::NothingTo("undo"))));
    ask(&mut driver, "go on").await;
    assert_eq!(driver.state().todo().len(), 1);
    // Somebody else took its files back: the turn can still be taken back.
    fs::remove_file(stage.path("f")).unwrap();
    driver.undo(me(), ChangedSince::Leave).await.unwrap();
    driver.undo(me(), ChangedSince::Leave).await.unwrap();
    assert_eq!(driver.state().todo().len(), 0, "the list of things to do goes back as well");
    assert_eq!(driver.state().surface_len(), 0);
    is_clean(&stage, driver);
}

/// Waits until files that are there are older, for an undo, than what is created from now on.
pub fn let_time_pass(stage: &Stage) {
    let probe = stage.home.path().join("probe");
    let born = || {
        fs::write(&probe, "").unwrap();
        let born = fs::metadata(&probe).unwrap().modified().unwrap();
        fs::remove_file(&probe).unwrap();
        born
    };
    let began = born();
    while born().duration_since(began).unwrap_or_default().as_millis() < 100 {
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn nothing_that_was_there_is_deleted_and_nothing_that_is_not_kept() {
    let turns = vec![
        vec![("bash", bash("mv large.db moved.db; mv .env env.bak; mv ../*.outside in.bin; echo x > new"))],
        vec![("bash", bash("rm .gitignore; echo MORE=1 >> .secret"))],
        vec![("bash", bash("head -c 16777217 /dev/zero > huge; head -c 16777216 /dev/zero > kept"))],
    ];
    let mut stage = Stage::new(Wire::OpenaiChat, script(turns, 0));
    let outside = stage.folder.join("one.outside");
    stage.folder = stage.folder.join("work");
    fs::create_dir(&stage.folder).unwrap();
    fs::write(&outside, "mine").unwrap();
    stage.write("large.db", &"x".repeat(2 << 20));
    stage.write(".gitignore", ".env\n.secret\n");
    stage.write(".env", "SECRET=1\n");
    stage.write(".secret", "SECRET=2\n");
    let_time_pass(&stage);
    let mut driver = stage.create();
    for n in 1..=3 {
        ask(&mut driver, &format!("turn {n}")).await;
    }
    let last = |paths: Vec<&str>| -> Vec<String> {
        paths.into_iter().map(|path| path.rsplit('/').next().unwrap().to_owned()).collect()
    };

    // The log keeps 16 MiB of one file, and not a byte more.
    let third = driver.undo(me(), ChangedSince::Leave).await.unwrap();
    assert_eq!(last(third.files.iter().map(|file| file.path.as_str()).collect()), ["kept"]);
    assert_eq!(last(third.left.iter().map(|left| left.path.as_str()).collect()), ["huge"]);
    assert_eq!(third.left[0].why, LeftWhy::WouldBeLost);
    assert_eq!(driver.redo(me(), ChangedSince::Leave).await.unwrap().left, []);
    assert_eq!(fs::metadata(stage.path("kept")).unwrap().len(), 16 << 20);
    driver.undo(me(), ChangedSince::Overwrite).await.unwrap();
    assert!(!stage.path("huge").exists() && !stage.path("kept").exists());

    let second = driver.undo(me(), ChangedSince::Leave).await.unwrap();
    assert_eq!(last(second.files.iter().map(|file| file.path.as_str()).collect()), [".gitignore"]);
    assert_eq!(stage.read(".secret"), "SECRET=2\nMORE=1\n");
    assert!(second.not_covered.iter().any(|said| said.contains("/.secret,")), "{second:?}");

    let first = driver.undo(me(), ChangedSince::Leave).await.unwrap();
    assert_eq!(last(first.files.iter().map(|file| file.path.as_str()).collect()), ["large.db", "moved.db", "new"]);
    assert_eq!((stage.read("env.bak"), stage.read("in.bin")), ("SECRET=1\n".into(), "mine".into()));
    assert_eq!(stage.read("large.db").len(), 2 << 20);
    for name in [".env", "env.bak", "in.bin"] {
        let named = |said: &String| said.contains(&format!("/{name},"));
        assert!(first.not_covered.iter().any(named), "{name}: {:?}", first.not_covered);
    }
    is_clean(&stage, driver);
}

#[tokio::test]
async fn files_folders_and_links_that_took_each_others_place_go_back_and_forth() {
    let change = "rm file; mkdir -p file/in; echo x > file/in/it; rm -r folder; echo x > folder; \
                  rm -r real; ln -s other real; rm link; mkdir link; echo 3 > link/x; echo 4 > link/b";
    let turns = vec![
        vec![("bash", bash(change)), ("write", json!({"path": "link/a", "content": "x"}))],
        vec![("bash", bash("rm -r plain; mkfifo plain"))],
    ];
    let stage = Stage::new(Wire::OpenaiChat, script(turns, 0));
    for name in ["file", "folder/f", "folder/deep/g", "real/x", "other/x", "plain"] {
        fs::create_dir_all(stage.path(name).parent().unwrap()).unwrap();
        stage.write(name, name);
    }
    std::os::unix::fs::symlink("other", stage.path("link")).unwrap();
    let start = tree(&stage.folder);
    let mut driver = stage.create();
    ask(&mut driver, "first").await;
    let end = tree(&stage.folder);
    ask(&mut driver, "second").await;

    let second = driver.undo(me(), ChangedSince::Leave).await.unwrap();
    let left: Vec<&str> = second.left.iter().map(|left| left.path.rsplit('/').next().unwrap()).collect();
    assert_eq!(left, ["plain"], "what stands in its place is no file: {second:?}");
    fs::remove_file(stage.path("plain")).unwrap();
    stage.write("plain", "plain");

    for _ in 0..2 {
        let undone = driver.undo(me(), ChangedSince::Leave).await.unwrap();
        assert_eq!(undone.left, []);
        same_tree(&tree(&stage.folder), &start, "undone");
        assert_eq!(driver.redo(me(), ChangedSince::Leave).await.unwrap().left, []);
        same_tree(&tree(&stage.folder), &end, "done again");
    }
    // A file of one's own in such a folder keeps the folder, and what stood there before is named.
    stage.write("file/in/mine", "mine");
    let undone = driver.undo(me(), ChangedSince::Leave).await.unwrap();
    let left: Vec<&str> = undone.left.iter().map(|left| left.path.rsplit('/').next().unwrap()).collect();
    assert_eq!((left, stage.read("file/in/mine")), (vec!["file"], "mine".into()));
    is_clean(&stage, driver);
}

#[tokio::test]
async fn a_redo_names_what_it_cannot_do_again() {
    let turns = vec![
        vec![("bash", bash("echo one > kept; rm gone"))],
        vec![("bash", bash("echo two > kept; echo three > lost; echo four > new"))],
    ];
    let stage = Stage::new(Wire::OpenaiChat, script(turns, 0));
    for name in ["kept", "lost", "gone"] {
        stage.write(name, "zero\n");
    }
    let mut driver = stage.create();
    ask(&mut driver, "first").await;
    ask(&mut driver, "second").await;
    // An undo that was killed half-way, or one in another session, has restored these.
    stage.write("lost", "zero\n");
    fs::remove_file(stage.path("new")).unwrap();
    let second = driver.undo(me(), ChangedSince::Leave).await.unwrap();
    assert_eq!((second.files.len(), second.left.len()), (1, 0), "{second:?}");
    stage.write("kept", "zero\n");
    stage.write("gone", "zero\n");
    let first = driver.undo(me(), ChangedSince::Leave).await.unwrap();
    assert_eq!((first.files.len(), first.left.len()), (0, 0), "{first:?}");

    // Another process does it again: the log has one of the files, from the undo of the turn after.
    let session = driver.session().clone();
    drop(driver);
    let mut driver = stage.open(&session, OpenPolicy::Close);
    assert_eq!(driver.redo(me(), ChangedSince::Leave).await.unwrap().left, []);
    assert_eq!(stage.read("kept"), "one\n");
    assert!(!stage.path("gone").exists());
    let again = driver.redo(me(), ChangedSince::Leave).await.unwrap();
    assert_eq!(stage.read("kept"), "two\n");
    let left: Vec<(&str, &LeftWhy)> =
        again.left.iter().map(|left| (left.path.rsplit('/').next().unwrap(), &left.why)).collect();
    assert_eq!(left, [("lost", &LeftWhy::NotKept), ("new", &LeftWhy::NotKept)]);
    is_clean(&stage, driver);
}

#[tokio::test]
async fn what_is_too_large_to_be_read_moves_back() {
    let script = Script::new([
        Say::call("bash", &bash("mkdir -p made/assets && mv large made/assets && mv huge small && rm gone")),
        Say::call("bash", &bash("mv made/assets/large made/assets/again; chmod 755 made/assets/again")),
        Say::text("Done."),
    ]);
    let stage = Stage::new(Wire::AnthropicMessages, script);
    stage.write("large", &"large".repeat(300_000));
    stage.write("huge", &"huge\n".repeat(4_000_000));
    stage.write("small", "small");
    stage.write("gone", &"gone".repeat(300_000));
    let before = tree(&stage.folder);
    let inode = |name: &str| stage.path(name).metadata().unwrap().ino();
    let (large, huge) = (inode("large"), inode("huge"));
    let_time_pass(&stage);
    let mut driver = stage.create();
    assert_eq!(ask(&mut driver, "tidy up").await, EndReason::Completed);
    let after = tree(&stage.folder);
    assert_eq!((inode("made/assets/again"), inode("small")), (large, huge));

    // A person changed one of them: it stays, and so does what it was.
    fs::rename(stage.path("made/assets/again"), stage.path("aside")).unwrap();
    stage.write("made/assets/again", "mine");
    let restored = driver.undo(me(), ChangedSince::Leave).await.unwrap();
    let left: Vec<_> = restored.left.iter().map(|left| (left.path.as_str(), &left.why)).collect();
    let (again, was) = (stage.path("made/assets/again"), stage.path("large"));
    assert_eq!(left, [(was.to_str().unwrap(), &LeftWhy::NotKept), (again.to_str().unwrap(), &LeftWhy::ChangedSince)]);
    assert_eq!((inode("huge"), stage.read("small").as_str()), (huge, "small"));
    assert_eq!(stage.read("made/assets/again"), "mine");
    driver.redo(me(), ChangedSince::Leave).await.unwrap();
    fs::rename(stage.path("aside"), stage.path("made/assets/again")).unwrap();
    same_tree(&tree(&stage.folder), &after, "after the redo");

    let gone = |names: &BTreeMap<String, (u32, Vec<u8>)>| names.get("/gone").cloned();
    let restored = driver.undo(me(), ChangedSince::Leave).await.unwrap();
    assert_eq!(restored.left, []);
    let mut back = tree(&stage.folder);
    assert_eq!(gone(&back), None);
    assert!(restored.not_covered.iter().any(|said| said.contains("/gone, which a command changed")), "{restored:?}");
    back.extend(gone(&before).map(|file| ("/gone".to_owned(), file)));
    same_tree(&back, &before, "after the undo");
    assert_eq!((inode("large"), inode("huge")), (large, huge), "they are the same files");
    let restored = driver.redo(me(), ChangedSince::Leave).await.unwrap();
    assert_eq!(restored.left, []);
    same_tree(&tree(&stage.folder), &after, "done again");
    assert_eq!((inode("made/assets/again"), inode("small")), (large, huge));
    is_clean(&stage, driver);
}

#[tokio::test]
async fn what_the_undo_of_a_copy_replaces_is_kept_though_the_copy_sent_nothing() {
    let stage = Stage::new(Wire::OpenaiChat, script(vec![vec![("bash", bash("echo one > a"))]], 0));
    stage.write("a", "zero\n");
    let mut driver = stage.create();
    ask(&mut driver, "first").await;
    stage.write("a", "mine\n");
    let mut copy = Driver::fork(&stage.agent(), driver.session(), None).unwrap();
    copy.undo(me(), ChangedSince::Overwrite).await.unwrap();
    assert_eq!(stage.read("a"), "zero\n");
    let session = copy.session().clone();
    drop(copy);
    let mut copy = stage.open(&session, OpenPolicy::Close);
    copy.redo(me(), ChangedSince::Leave).await.unwrap();
    assert_eq!(stage.read("a"), "mine\n");
    is_clean(&stage, copy);
}
