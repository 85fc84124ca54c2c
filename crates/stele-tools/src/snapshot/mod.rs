//! What a command did to the workspace, found by looking before and after it.
//!
//! A look takes path, size, times, inode and mode of each file that git would see, and the content of those that are
//! not too large. Content is read again only where one of these differs, so that a look at a workspace in which nothing
//! changed costs no more than walking it. All of it is capped; what is left out is named.

mod differences;
mod entry;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use stele_core::{Content, limits};

pub(crate) use differences::Differences;
use entry::{Entry, Stamp, TICK_NS, now_ns};
pub use view::in_view;

use crate::walk;

/// How long one look may take; as long again for the names of what is not looked at.
const TIME: Duration = Duration::from_secs(2);
/// Where no birth times are kept: a file whose last change is this much older than a look was there when it was taken.
const OLD_NS: i128 = 1_000_000_000;
/// Largest file, in bytes, that is read in its new place when a command moved it.
const MOVED: u64 = 1024 * 1024 * 1024;
/// How many paths that went while they were out of view are named.
const NAMED: usize = 8;

/// The workspace at some time.
pub(crate) struct Snapshot {
    root: PathBuf,
    /// When the look was over.
    taken_ns: i128,
    entries: BTreeMap<PathBuf, Entry>,
    folders: BTreeSet<PathBuf>,
    /// What stands in these folders and is not looked at, since it is excluded or neither file nor link; and folders
    /// of which not even the names are known.
    unseen: BTreeSet<PathBuf>,
    /// The last path that was looked at, when there are more.
    until: Option<PathBuf>,
}

impl Snapshot {
    /// Looks at a workspace; `last` is an earlier look, whose content is taken over where nothing changed.
    pub(crate) fn take(root: &Path, last: Option<&Self>) -> Self {
        let last = last.filter(|last| last.root == root);
        let began = Instant::now();
        let mut snapshot = Self {
            root: root.to_owned(),
            taken_ns: 0,
            entries: BTreeMap::new(),
            folders: BTreeSet::new(),
            unseen: BTreeSet::new(),
            until: None,
        };
        let mut room = limits::SNAPSHOT_BYTES.default;
        for (seen, entry) in (0..).zip(walk::all(root)) {
            let path = entry.path();
            if seen >= limits::SNAPSHOT_FILES.default || began.elapsed() > TIME {
                snapshot.until = Some(path.to_owned());
                break;
            }
            let Some(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                snapshot.folders.insert(path.to_owned());
            } else if kind.is_file() || kind.is_symlink() {
                let known = last.and_then(|last| last.entries.get(path));
                if let Some(entry) = Entry::look(path, known, &mut room) {
                    snapshot.entries.insert(path.to_owned(), entry);
                }
            }
        }
        snapshot.list();
        snapshot.taken_ns = now_ns();
        snapshot
    }

    /// Takes note of the names that the walk left out.
    fn list(&mut self) {
        let began = Instant::now();
        let mut unseen = BTreeSet::new();
        for folder in self.folders.iter().chain([&self.root]) {
            let in_time = (unseen.len() as u64) < limits::SNAPSHOT_FILES.default && began.elapsed() < TIME;
            match fs::read_dir(folder) {
                Ok(entries) if in_time => {
                    let paths = entries.flatten().map(|entry| entry.path());
                    unseen
                        .extend(paths.filter(|path| !self.entries.contains_key(path) && !self.folders.contains(path)));
                }
                _ => drop(unseen.insert(folder.clone())),
            }
        }
        self.unseen = unseen;
    }

    /// Looks again; gives that look, and what changed between the two.
    pub(crate) fn compare(&self) -> (Self, Differences) {
        let now = Self::take(&self.root, Some(self));
        let root = self.root.display();
        let mut seen = Differences::default();
        seen.not_covered.push(format!(
            "what commands did outside of {root}, in .git, and to what .gitignore leaves out, if anything"
        ));
        // Both looks have seen all that stands before this path in the order of the walk.
        let until = [&self.until, &now.until].into_iter().flatten().min();
        if until.is_some() {
            let most = limits::SNAPSHOT_FILES.default;
            seen.not_covered.push(format!("{root} holds more than the {most} entries that are looked at in time"));
        }
        let in_both = |path: &PathBuf| until.is_none_or(|until| path < until);
        // Every file of the earlier look, and whether its content is at hand for the place it had.
        let mut files = BTreeMap::new();
        for (path, entry) in &self.entries {
            *files.entry(entry.stamp.file()).or_insert(false) |= entry.content.is_some() && in_both(path);
        }
        let moves = self.moves(&now, in_both);
        let mut moved = BTreeSet::new();
        for (from, to) in moves {
            if self.moved(from, to, &now.entries[to], &mut seen) {
                moved.extend([from, to]);
            }
        }
        let paths: BTreeSet<&PathBuf> = self.entries.keys().chain(now.entries.keys()).collect();
        for path in paths.into_iter().filter(|path| in_both(path) && !moved.contains(path)) {
            match (self.entries.get(path), now.entries.get(path)) {
                (None, Some(after)) => self.created(path, after, &files, &mut seen),
                (Some(before), None) => match self.out_of_view(path, before) {
                    Some(after) => seen.compared(path, before, &after),
                    None => seen.deleted(path, before),
                },
                (Some(before), Some(after)) if self.is_unread(before, after, &files) => {
                    let path = path.display();
                    seen.not_covered
                        .push(format!("{path}, over which another file was moved: look where that came from"));
                }
                (Some(before), Some(after)) => seen.compared(path, before, after),
                (None, None) => {}
            }
        }
        self.gone(&mut seen);
        self.link(&now, &mut seen);
        (now, seen)
    }

    /// The file or link that stands at a path, and only went out of view; none when a folder or something else took its
    /// place, or a link that of a folder on the way.
    fn out_of_view(&self, path: &Path, before: &Entry) -> Option<Entry> {
        let is_folder = |folder: &Path| fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir());
        let mut way = path.ancestors().skip(1).take_while(|folder| *folder != self.root);
        let kind = fs::symlink_metadata(path).ok()?.file_type();
        if !way.all(is_folder) || !(kind.is_file() || kind.is_symlink()) {
            return None;
        }
        let mut room = limits::SNAPSHOT_FILE_BYTES.default;
        Entry::look(path, Some(before), &mut room)
    }

    /// Files that this look has not read and that stand under another name now, by their old and new name.
    fn moves<'a>(&'a self, now: &'a Self, in_both: impl Fn(&PathBuf) -> bool) -> Vec<(&'a PathBuf, &'a PathBuf)> {
        let mut arrived: BTreeMap<(u64, u64), (&PathBuf, &Stamp)> = BTreeMap::new();
        for (path, entry) in now.entries.iter().filter(|(path, _)| in_both(path)) {
            // What was replaced has to be at hand, or it would be lost in silence.
            let replaced = self.entries.get(path);
            let known = replaced.is_none_or(|it| it.content.is_some() && it.stamp.file() != entry.stamp.file());
            if known && !self.is_unseen(path) {
                arrived.entry(entry.stamp.file()).or_insert((path, &entry.stamp));
            }
        }
        let unread = |entry: &Entry| {
            entry.content.is_none() && entry.has_settled(entry.stamp.modified_ns) && entry.stamp.size <= MOVED
        };
        let unread = self.entries.iter().filter(|(_, entry)| unread(entry));
        let gone = unread.filter(|(path, _)| in_both(path) && fs::symlink_metadata(path).is_err());
        gone.filter_map(|(from, entry)| {
            let (to, stamp) = arrived.get(&entry.stamp.file())?;
            entry.stamp.is_of_the_same_content(stamp).then_some((from, *to))
        })
        .collect()
    }

    /// Notes a move of a file whose content nobody has read before: it is read in its new place. False where that fails.
    fn moved(&self, from: &Path, to: &Path, entry: &Entry, seen: &mut Differences) -> bool {
        let (Some(_), Some(_), Ok(version)) = (from.to_str(), to.to_str(), entry.version_at(to)) else { return false };
        seen.note(from, Some(version), None, None, None);
        let replaced = self.entries.get(to).and_then(|entry| Some((entry, entry.content.as_ref()?)));
        let kept = replaced.map(|(_, (_, bytes))| Content::new(Arc::clone(bytes)));
        let before = replaced.map(|(entry, (hash, _))| entry.version(*hash));
        let made = before.is_none().then(|| self.made(to)).flatten();
        seen.note(to, before, kept, Some(Ok(version)), made);
        true
    }

    /// True for a path at which, or above which, something stood that was not looked at.
    fn is_unseen(&self, path: &Path) -> bool {
        path.ancestors().any(|path| self.unseen.contains(path))
    }

    /// The first of the folders that were made for a file.
    fn made(&self, path: &Path) -> Option<String> {
        let missing = |folder: &&Path| **folder != self.root && !self.folders.contains(*folder);
        path.ancestors().skip(1).take_while(missing).last().map(|made| made.display().to_string())
    }

    /// A file that was not there before, if that is certain: what is taken for new is deleted by an undo.
    fn created(&self, path: &Path, after: &Entry, files: &BTreeMap<(u64, u64), bool>, seen: &mut Differences) {
        if self.is_unseen(path) || !self.is_new(&after.stamp, files) {
            let path = path.display();
            let what = "which was moved here or came into view: it stays; move it back or remove it yourself";
            seen.not_covered.push(format!("{path}, {what}"));
            return;
        }
        seen.note(path, None, None, Some(after.version_at(path)), self.made(path));
    }

    /// True for a file that was made after this look, and for one that this look has read under another name: there
    /// its content comes back. Names, modes and times can be given to any file, a birth time cannot (`statx(2)`).
    fn is_new(&self, stamp: &Stamp, files: &BTreeMap<(u64, u64), bool>) -> bool {
        match (stamp.born_ns, files.get(&stamp.file())) {
            (Some(born), _) if born >= self.taken_ns - TICK_NS => true,
            (_, Some(read)) => *read,
            (Some(_), None) => false,
            (None, None) => stamp.changed_ns >= self.taken_ns - OLD_NS,
        }
    }

    /// True when the only copy of a file that this look has not read may now stand in the place of another.
    fn is_unread(&self, before: &Entry, after: &Entry, files: &BTreeMap<(u64, u64), bool>) -> bool {
        let other = before.stamp.file() != after.stamp.file();
        other && files.get(&after.stamp.file()) == Some(&false) && !self.is_new(&after.stamp, files)
    }

    /// Takes down which other names the files had. What is a name of another file by now (`ln -f`) has none: it does not
    /// become what it was by being written.
    fn link(&self, now: &Self, seen: &mut Differences) {
        let mut files: BTreeMap<(u64, u64), Vec<&PathBuf>> = BTreeMap::new();
        for (path, entry) in self.entries.iter().filter(|(_, entry)| entry.stamp.has_other_names()) {
            files.entry(entry.stamp.file()).or_default().push(path);
        }
        for change in &mut seen.changed {
            let path = Path::new(&change.path);
            let stamp = self.entries.get(path).map(|entry| entry.stamp).filter(Stamp::has_other_names);
            let is_another = |now: &Stamp, was: &Stamp| now.has_other_names() && now.file() != was.file();
            let now = now.entries.get(path).map(|entry| entry.stamp);
            let stamp = stamp.filter(|was| !now.is_some_and(|now| is_another(&now, was)));
            let names = stamp.and_then(|stamp| files.get(&stamp.file()));
            change.linked = names.map(|names| {
                let others = names.iter().filter(|other| *other.as_path() != *path);
                others.filter_map(|other| Some(other.to_str()?.to_owned())).take(NAMED).collect()
            });
        }
    }

    /// Names what was out of view and went: of that nothing is kept.
    fn gone(&self, seen: &mut Differences) {
        let gone: Vec<&PathBuf> = self.unseen.iter().filter(|path| fs::symlink_metadata(path).is_err()).collect();
        if gone.is_empty() {
            return;
        }
        let named: Vec<String> = gone.iter().take(NAMED).map(|path| path.display().to_string()).collect();
        let more = match gone.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        seen.not_covered.push(format!("{}{more}, out of view before and gone now", named.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::UNIX_EPOCH;

    use stele_core::{FileChange, Hash};

    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn write(&self, name: &str, content: impl AsRef<[u8]>) {
            fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
            fs::write(self.path(name), content).unwrap();
        }

        /// What an action is seen to do: names, relative to the folder, with `+`, `-` or `~`.
        fn seen(&self, action: impl FnOnce()) -> (Vec<String>, Vec<FileChange>, Vec<String>) {
            self.seen_after(0, action)
        }

        /// The same, with a look that is so much later than the birth of all files.
        fn seen_after(&self, later_ns: i128, action: impl FnOnce()) -> (Vec<String>, Vec<FileChange>, Vec<String>) {
            self.seen_of(false, later_ns, action)
        }

        /// The same, with files whose times prove what they hold, or do not.
        fn seen_of(
            &self,
            settled: bool,
            later_ns: i128,
            action: impl FnOnce(),
        ) -> (Vec<String>, Vec<FileChange>, Vec<String>) {
            let mut before = Snapshot::take(self.0.path(), None);
            before.taken_ns += later_ns;
            let looked_ns = if settled { i128::MAX } else { 0 };
            before.entries.values_mut().for_each(|entry| entry.looked_ns = looked_ns);
            action();
            let (_, seen) = before.compare();
            let name = |change: &FileChange| {
                let mark = match (change.before, change.after) {
                    (None, _) => '+',
                    (_, None) => '-',
                    _ => '~',
                };
                let name = Path::new(&change.path).strip_prefix(self.0.path()).unwrap().display().to_string();
                format!("{mark}{name}")
            };
            (seen.changed.iter().map(name).collect(), seen.changed, seen.not_covered)
        }
    }

    #[test]
    fn everything_that_changes_is_seen_once() {
        let place = Place::new();
        for name in ["a", "b", "mode", "touched", "gone/x", "link-to"] {
            place.write(name, name);
        }
        place.write("same-size", "11");
        std::os::unix::fs::symlink("a", place.path("link")).unwrap();
        let (names, changes, _) = place.seen(|| {
            place.write("a", b"\x00\xff");
            // The same size, within the same tick of the clock, with its old time.
            let time = fs::metadata(place.path("same-size")).unwrap().modified().unwrap();
            place.write("same-size", "22");
            let same = fs::File::options().write(true).open(place.path("same-size")).unwrap();
            same.set_times(fs::FileTimes::new().set_modified(time)).unwrap();
            fs::set_permissions(place.path("mode"), fs::Permissions::from_mode(0o755)).unwrap();
            place.write("touched", "touched");
            fs::remove_dir_all(place.path("gone")).unwrap();
            fs::remove_file(place.path("link")).unwrap();
            std::os::unix::fs::symlink("b", place.path("link")).unwrap();
            place.write("new/er/file", "new");
        });
        assert_eq!(names, ["~a", "-gone/x", "~link", "~mode", "+new/er/file", "~same-size"]);
        assert!(changes.iter().all(|change| change.before.is_none() == change.kept.is_none()));
        let new = changes.iter().find(|change| change.before.is_none()).unwrap();
        assert_eq!(new.made.as_deref(), place.path("new").to_str());
    }

    #[test]
    fn what_only_comes_into_view_or_goes_out_of_it_did_not_change() {
        let place = Place::new();
        place.write("one.log", "1");
        let (names, _, _) = place.seen(|| place.write(".gitignore", "*.log\n"));
        assert_eq!(names, ["+.gitignore"]);
        place.write(".git/config", "");
        let (names, _, covered) = place.seen(|| place.write(".git/config", "changed"));
        assert!(names.is_empty() && covered[0].contains("in .git"), "{names:?} {covered:?}");
    }

    #[test]
    fn what_changes_its_kind_is_seen_to_go() {
        let place = Place::new();
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, place.path(name)).unwrap();
        place.write("file", "1");
        place.write("pipe", "1");
        place.write("folder/x", "1");
        place.write("other/x", "2");
        place.write("hidden", "1");
        link("other", "link");
        let (names, changes, _) = place.seen(|| {
            for name in ["file", "link", "pipe"] {
                fs::remove_file(place.path(name)).unwrap();
            }
            place.write("file/in/it", "2");
            place.write("link/x", "3");
            rustix::fs::mknodat(
                rustix::fs::CWD,
                place.path("pipe"),
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RUSR,
                0,
            )
            .unwrap();
            fs::remove_dir_all(place.path("folder")).unwrap();
            link("other", "folder");
            place.write("hidden", "2");
            place.write(".gitignore", "hidden\n");
        });
        let expected =
            ["+.gitignore", "-file", "+file/in/it", "+folder", "-folder/x", "~hidden", "-link", "+link/x", "-pipe"];
        assert_eq!(names, expected);
        assert!(changes.iter().all(|change| change.before.is_none() == change.kept.is_none()));
    }

    #[test]
    fn a_folder_that_moves_takes_its_old_files_along() {
        let place = Place::new();
        place.write("from/in/old", "old");
        // The files are older than the look, as those of any real project are.
        let mut before = Snapshot::take(place.0.path(), None);
        before.taken_ns += 2 * OLD_NS;
        fs::rename(place.path("from"), place.path("to")).unwrap();
        place.write("elsewhere", "was out of view");
        let (_, seen) = before.compare();
        let changed: Vec<(bool, bool, &str)> = seen
            .changed
            .iter()
            .map(|change| (change.before.is_some(), change.after.is_some(), change.path.as_str()))
            .collect();
        let (from, to) = (place.path("from/in/old"), place.path("to/in/old"));
        assert_eq!(changed, [(true, false, from.to_str().unwrap()), (false, true, to.to_str().unwrap())]);
        assert_eq!(seen.changed[1].made.as_deref(), place.path("to").to_str());
        assert!(seen.not_covered.iter().any(|said| said.contains("elsewhere")), "{:?}", seen.not_covered);
    }

    #[test]
    fn what_was_there_is_not_taken_for_new() {
        let large = vec![b'x'; usize::try_from(limits::SNAPSHOT_FILE_BYTES.default).unwrap() + 1];
        let outside = tempfile::tempdir().unwrap();
        let out = outside.path().join("out");
        let place = Place::new();
        let set_up = || {
            place.write(".gitignore", ".env\nkept/\n");
            place.write(".env", "SECRET=1");
            place.write("kept/in", "1");
            place.write("large", &large);
            place.write("a", "a");
            fs::write(&out, "out").unwrap();
            for moved in ["moved", "linked"] {
                drop(fs::remove_file(place.path(moved)));
            }
        };
        let rename = |from: &str, to: &str| fs::rename(place.path(from), place.path(to)).unwrap();
        let uncover = || fs::remove_file(place.path(".gitignore")).unwrap();
        /// What happens, what it changed, and what is named beside it.
        type Case<'a> = (&'a dyn Fn(), &'a [&'a str], &'a [&'a str]);
        let cases: [Case<'_>; 8] = [
            (&|| rename("large", "moved"), &[], &["large", "moved"]),
            (&|| rename("large", "a"), &[], &["large", "a"]),
            (&|| fs::hard_link(place.path("large"), place.path("linked")).unwrap(), &[], &["large", "linked"]),
            (&|| rename(".env", "moved"), &[], &[".env", "moved"]),
            (&|| fs::rename(&out, place.path("moved")).unwrap(), &[], &["moved"]),
            (
                &|| {
                    uncover();
                    fs::set_permissions(place.path(".env"), fs::Permissions::from_mode(0o640)).unwrap();
                },
                &["-.gitignore"],
                &[".env", "kept/in"],
            ),
            (
                &|| {
                    uncover();
                    place.write("new", "SECRET=2");
                    rename("new", ".env");
                    place.write("kept/more", "2");
                },
                &["-.gitignore"],
                &[".env", "kept/in", "kept/more"],
            ),
            (
                &|| {
                    fs::remove_file(place.path(".env")).unwrap();
                    rename("a", "moved");
                },
                &["-a", "+moved"],
                &[".env"],
            ),
        ];
        for (n, (action, changed, named)) in cases.into_iter().enumerate() {
            set_up();
            let later = if n == 6 { 0 } else { 2 * OLD_NS };
            let (names, _, not_covered) = place.seen_after(later, action);
            assert_eq!(names, changed, "{n}");
            for name in named {
                let path = place.path(name).display().to_string();
                let is_named = |said: &String| said.strip_prefix(&path).is_some_and(|rest| rest.starts_with(','));
                assert!(not_covered.iter().any(is_named), "{n}: {name}: {not_covered:?}");
            }
            assert_eq!(not_covered.len(), named.len() + 1, "{n}: {not_covered:?}");
        }
    }

    #[test]
    fn a_move_of_what_was_not_read_is_followed_as_long_as_nothing_is_lost_by_it() {
        let large = vec![b'x'; usize::try_from(limits::SNAPSHOT_FILE_BYTES.default).unwrap() + 1];
        let version = Hash::of(&large);
        let place = Place::new();
        let rename = |from: &str, to: &str| fs::rename(place.path(from), place.path(to)).unwrap();
        let into = |folder: &str| {
            fs::create_dir_all(place.path(folder)).unwrap();
            rename("large", &format!("{folder}/large"));
        };
        /// What happens, what it changed, and how much is named beside it.
        type Case<'a> = (&'a dyn Fn(), &'a [&'a str], usize);
        let cases: [Case<'_>; 8] = [
            (&|| rename("large", "moved"), &["-large", "+moved"], 0),
            (&|| into("made/for/it"), &["-large", "+made/for/it/large"], 0),
            (&|| rename("large", "small"), &["-large", "~small"], 0),
            // Into what is not looked at, over what was not read, and by more than a move.
            (&|| into("kept"), &[], 1),
            (&|| rename("large", "other"), &[], 2),
            (&|| fs::hard_link(place.path("large"), place.path("linked")).unwrap(), &[], 2),
            (
                &|| {
                    rename("large", "moved");
                    place.write("moved", "y");
                },
                &[],
                2,
            ),
            (
                &|| {
                    rename("large", "moved");
                    place.write("large", "another");
                },
                &[],
                2,
            ),
        ];
        for (n, (action, changed, named)) in cases.into_iter().enumerate() {
            for name in fs::read_dir(place.0.path()).unwrap().flatten() {
                let path = name.path();
                if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
            }
            place.write(".gitignore", "kept/\n");
            place.write("kept/in", "");
            place.write("large", &large);
            place.write("other", [&large[..], b"z"].concat());
            place.write("small", "s");
            let (names, changes, not_covered) = place.seen_of(true, 2 * OLD_NS, action);
            assert_eq!(names, changed, "{n}: {not_covered:?}");
            assert_eq!(not_covered.len(), named + 1, "{n}: {not_covered:?}");
            if let [from, to] = changes.as_slice() {
                assert_eq!((from.before.unwrap().hash, from.kept.is_none()), (version, true), "{n}");
                assert_eq!((to.after.unwrap().hash, to.before.is_some()), (version, to.kept.is_some()), "{n}");
            }
        }
    }

    #[test]
    fn what_is_too_large_to_be_read_is_named() {
        let place = Place::new();
        let large = usize::try_from(limits::SNAPSHOT_FILE_BYTES.default).unwrap() + 1;
        place.write("large", vec![b'x'; large]);
        place.write("small", "s");
        let (names, changes, not_covered) = place.seen(|| {
            place.write("large", "now small");
            place.write("small", vec![b'y'; large]);
        });
        assert_eq!(names, ["~small"]);
        assert_eq!(changes[0].after.unwrap().hash, Hash::of(&vec![b'y'; large]));
        assert!(not_covered.iter().any(|words| words.contains("large")), "{not_covered:?}");
    }

    #[test]
    fn a_second_look_reads_only_what_changed() {
        let place = Place::new();
        place.write("old", "x");
        let old = fs::File::options().write(true).open(place.path("old")).unwrap();
        old.set_times(fs::FileTimes::new().set_modified(UNIX_EPOCH)).unwrap();
        let first = Snapshot::take(place.0.path(), None);
        let content = |snapshot: &Snapshot| snapshot.entries[&place.path("old")].content.clone().unwrap().1;
        let mut settled = first;
        settled.entries.get_mut(&place.path("old")).unwrap().looked_ns = i128::MAX;
        let second = Snapshot::take(place.0.path(), Some(&settled));
        assert!(Arc::ptr_eq(&content(&settled), &content(&second)));
        let elsewhere = tempfile::tempdir().unwrap();
        assert!(Snapshot::take(elsewhere.path(), Some(&settled)).entries.is_empty());
    }
}
