//! Several names of one file: hard links.
//!
//! A file that is written keeps its names. One that goes and comes back does so by its name alone, so the log holds which
//! others it had, and it becomes one of them again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use stele_path::siblings;

use crate::change::Wanted;
use crate::{file, stands};

/// Most names that are kept of one file.
const KEPT: usize = 16;

/// Other names of the file at a path that are in the same folder; none when it has no other name anywhere.
pub(crate) fn others(path: &Path) -> Option<Vec<String>> {
    let file = several(path)?;
    let folder = path.parent()?;
    let paths = siblings(folder).into_iter().map(|name| folder.join(name)).filter(|other| other != path);
    let named = paths.filter(|other| several(other) == Some(file)).filter_map(|other| Some(other.to_str()?.to_owned()));
    let mut names: Vec<String> = named.collect();
    names.truncate(KEPT);
    Some(names)
}

/// For each of these names of a file that has others: those, as far as they are among these or in its folder.
#[must_use]
pub fn of_each<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, Vec<String>> {
    let found: Vec<_> = names.into_iter().filter_map(|name| Some((name, several(Path::new(name))?))).collect();
    let mut files: BTreeMap<(u64, u64), Vec<&str>> = BTreeMap::new();
    for (name, file) in &found {
        files.entry(*file).or_default().push(name);
    }
    let of = |(name, file): (&'a str, (u64, u64))| {
        let beside = others(Path::new(name)).unwrap_or_default();
        let given = files.get(&file).into_iter().flatten().filter(|other| **other != name);
        let mut all: Vec<String> = given.map(|other| (*other).to_owned()).chain(beside).collect();
        all.sort();
        all.dedup();
        all.truncate(KEPT);
        (name, all)
    };
    found.into_iter().map(of).collect()
}

/// Which file stands at a path, by device and inode, when it has several names.
#[must_use]
pub fn several(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::symlink_metadata(path).ok()?;
    (metadata.is_file() && metadata.nlink() > 1).then(|| (metadata.dev(), metadata.ino()))
}

/// Makes a path, at which nothing stands, one more name of a file that it was a name of, where that is what is wanted.
/// False with nothing changed where it is not.
pub(crate) fn join(path: &Path, wanted: Wanted<'_>) -> bool {
    let (Some(names), Some(mode)) = (wanted.linked, wanted.mode) else { return false };
    let is_it = |other: &&Path| {
        let leads_there = *other != path && other.canonicalize().is_ok_and(|real| real == **other);
        let version = leads_there.then(|| stands::version(other).ok().flatten()).flatten();
        version.is_some_and(|version| version.mode == mode && version.bytes == wanted.bytes)
    };
    names.iter().map(Path::new).filter(is_it).any(|other| put_name(other, path).is_ok())
}

/// Gives a file another name.
fn put_name(file: &Path, path: &Path) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::NotFound)?;
    fs::create_dir_all(folder)?;
    fs::hard_link(file, path)?;
    file::settle(folder);
    Ok(())
}
