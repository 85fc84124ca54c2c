//! What files are to become again, and which of them somebody else had a hand in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use stele_core::{Between, Course, FileChange, FileVersion, TurnChanges};
use stele_tools::{in_view, names};

/// What is to be brought back: the changes that go away, and what is known of them besides.
#[derive(Default)]
pub(super) struct Owing {
    pub(super) changes: Vec<FileChange>,
    /// Files that somebody else changed between two changes of the turn.
    pub(super) between: BTreeSet<String>,
}

impl Owing {
    /// Files as they were before they were changed in one go: nobody came in between.
    pub(super) fn at_once(changes: Vec<FileChange>) -> Self {
        Self { changes, between: BTreeSet::new() }
    }

    /// Files as they were before a turn; `folder` is the session's.
    pub(super) fn before(turn: &TurnChanges, folder: &Path) -> Self {
        let mut owing = Self { changes: Vec::new(), between: between(&turn.courses, folder) };
        let mut files = turn.files.clone();
        for names in one_file(&files) {
            owing.join(&names, turn, &mut files);
        }
        owing.changes = files.into_values().collect();
        owing
    }

    /// Names of one file: all of them go back to what the first to be changed was, and are to be what the last one became.
    fn join(&mut self, names: &[String], turn: &TurnChanges, files: &mut BTreeMap<String, FileChange>) {
        let of = |name: &String| Some((*turn.courses.get(name)?, turn.files.get(name)?));
        let mut changes: Vec<(Course, &FileChange)> = names.iter().filter_map(of).collect();
        changes.sort_by_key(|(course, _)| course.first);
        let (Some((_, first)), Some((_, last))) =
            (changes.first(), changes.iter().max_by_key(|(course, _)| course.last))
        else {
            return;
        };
        if names.iter().any(|name| self.between.contains(name)) || !are_a_chain(&changes) {
            self.between.extend(names.iter().cloned());
        }
        for name in names {
            if let Some(file) = files.get_mut(name) {
                (file.before, file.after) = (first.before, last.after);
                file.kept.clone_from(&first.kept);
            }
        }
    }
}

/// True as long as each name began as what another one had been or become, where that can be told.
fn are_a_chain(changes: &[(Course, &FileChange)]) -> bool {
    let hash = |version: Option<FileVersion>| version.map(|version| version.hash);
    changes.iter().skip(1).all(|(course, change)| {
        let mut before = changes.iter().filter(|(other, _)| other.first < course.first);
        before.any(|(other, it)| {
            other.last > course.first || [it.before, it.after].map(hash).contains(&hash(change.before))
        })
    })
}

/// Files that somebody else changed between two changes of a turn, and not perhaps a command in what no look reaches.
fn between(courses: &BTreeMap<String, Course>, folder: &Path) -> BTreeSet<String> {
    let of = |who: Between| {
        let those = courses.iter().filter(move |(_, course)| course.between == Some(who));
        those.map(|(path, _)| path.clone())
    };
    let perhaps: BTreeSet<PathBuf> = of(Between::CommandOrSomebody).map(PathBuf::from).collect();
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let seen = if perhaps.is_empty() { perhaps } else { in_view(&folder, &perhaps) };
    let seen = of(Between::CommandOrSomebody).filter(|path| seen.contains(Path::new(path)));
    of(Between::Somebody).chain(seen).collect()
}

/// The names among these that lead to one file now and were names of it before they were changed.
fn one_file(files: &BTreeMap<String, FileChange>) -> Vec<Vec<String>> {
    let mut found: BTreeMap<(u64, u64), Vec<String>> = BTreeMap::new();
    for (name, change) in files.iter().filter(|(_, change)| change.before.is_some()) {
        if let Some(file) = names::several(Path::new(name)).filter(|file| !was_another(change, *file)) {
            found.entry(file).or_default().push(name.clone());
        }
    }
    found.into_values().filter(|names| names.len() > 1).collect()
}

/// True where a name of several leads to another file by now than it did before it was changed: it had no other name then,
/// or none of those it had leads there.
pub(super) fn was_another(change: &FileChange, now: (u64, u64)) -> bool {
    let Some(linked) = &change.linked else { return true };
    let there: Vec<&Path> = linked.iter().map(Path::new).filter(|name| name.symlink_metadata().is_ok()).collect();
    !there.is_empty() && there.iter().all(|name| names::several(name) != Some(now))
}
