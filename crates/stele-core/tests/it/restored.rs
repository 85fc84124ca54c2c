//! Undos and redos whose files are not known to be changed.

use stele_core::{
    By, CallId, FileChange, FileChanged, FileVersion, Hash, RedoApplied, RestoreEnded, Restoring, Target, TurnEnded,
    UndoApplied,
};

use crate::world::Run;

fn version(text: &str) -> FileVersion {
    FileVersion { hash: Hash::of(text.as_bytes()), len: text.len() as u64, mode: 0o100_644 }
}

fn change(path: &str, before: &str, after: &str) -> FileChange {
    FileChange {
        path: path.to_owned(),
        before: Some(version(before)),
        after: Some(version(after)),
        kept: None,
        made: None,
        linked: None,
    }
}

/// A turn that changes these files.
fn turn(run: &mut Run, files: &[FileChange]) {
    run.prompt("go", Target::NextTurn);
    run.drive_to_request();
    for change in files {
        run.append(FileChanged { call: CallId(1), ahead: false, change: change.clone() });
    }
    run.append(TurnEnded { reason: stele_core::EndReason::Completed });
}

fn undone(turn: u64, files: Vec<FileChange>) -> UndoApplied {
    UndoApplied { turn, by: By::person("test"), files, left: Vec::new(), not_covered: Vec::new() }
}

fn owed(run: &Run) -> Vec<(Restoring, u64, Vec<&str>)> {
    let unrestored = run.state.history().unrestored().iter();
    unrestored.map(|owed| (owed.way, owed.turn, owed.files.iter().map(|file| file.path.as_str()).collect())).collect()
}

#[test]
fn files_stay_owed_through_turns_until_one_changes_them_or_they_are_restored() {
    let mut run = Run::new();
    turn(&mut run, &[change("/a", "one", "two"), change("/b", "one", "two")]);
    run.append(undone(1, vec![change("/a", "two", "one"), change("/b", "two", "one")]));
    assert_eq!(owed(&run), [(Restoring::Undo, 1, vec!["/a", "/b"])]);
    assert!(run.state.history().is_last(Restoring::Undo, 1));

    // What another turn changes is that turn's from then on.
    turn(&mut run, &[change("/b", "two", "three")]);
    assert_eq!(owed(&run), [(Restoring::Undo, 1, vec!["/a"])]);
    let kept = &run.state.history().unrestored()[0];
    assert_eq!((kept.title.as_str(), kept.files[0].before), ("go", Some(version("one"))));
    assert_eq!(kept.files[0].after, Some(version("two")), "it is as it was just before the undo");
    assert!(!run.state.history().is_last(Restoring::Undo, 1), "to undo now is another thing");

    // Another one is owed besides, and ends by itself.
    run.append(undone(2, vec![change("/b", "three", "two")]));
    assert_eq!(owed(&run), [(Restoring::Undo, 1, vec!["/a"]), (Restoring::Undo, 2, vec!["/b"])]);
    run.append(RestoreEnded { turn: 2 });
    assert_eq!(owed(&run), [(Restoring::Undo, 1, vec!["/a"])]);
    run.append(RestoreEnded { turn: 1 });
    assert_eq!(owed(&run), []);
}

#[test]
fn of_one_turn_only_the_last_is_owed() {
    let mut run = Run::new();
    turn(&mut run, &[change("/a", "one", "two")]);
    run.append(undone(1, vec![change("/a", "two", "one")]));
    let files = vec![change("/a", "one", "two")];
    run.append(RedoApplied { turn: 1, by: By::person("test"), files, left: Vec::new() });
    assert_eq!(owed(&run), [(Restoring::Redo, 1, vec!["/a"])]);
    assert!(run.state.history().is_last(Restoring::Redo, 1));
    run.append(undone(1, Vec::new()));
    assert_eq!(owed(&run), []);
}
