//! Which files a look at the workspace reaches.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use stele_core::limits;

use super::TIME;
use crate::walk;

/// Those of these files that a look at a workspace as it is now would read, so that it would see that a command changed
/// them.
#[must_use]
pub fn in_view(root: &Path, files: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let (began, mut room, mut seen) = (Instant::now(), limits::SNAPSHOT_BYTES.default, BTreeSet::new());
    for (count, entry) in (0..).zip(walk::all(root)) {
        if count >= limits::SNAPSHOT_FILES.default || began.elapsed() > TIME || seen.len() == files.len() {
            break;
        }
        let Some(size) = entry.metadata().ok().filter(|metadata| !metadata.is_dir()).map(|metadata| metadata.len())
        else {
            continue;
        };
        if size <= limits::SNAPSHOT_FILE_BYTES.default.min(room) {
            room -= size;
            seen.extend(files.get(entry.path()).cloned());
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_excluded_too_large_or_elsewhere_is_not_in_view() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("sub")).unwrap();
        for (name, content) in [(".gitignore", "*.log\n"), ("a.log", ""), ("sub/b", ""), (".env", "")] {
            fs::write(path(name), content).unwrap();
        }
        fs::write(path("large"), vec![0; usize::try_from(limits::SNAPSHOT_FILE_BYTES.default).unwrap() + 1]).unwrap();
        let files: BTreeSet<PathBuf> = ["a.log", "sub/b", ".env", "large", "../x"].into_iter().map(path).collect();
        assert_eq!(in_view(folder.path(), &files), BTreeSet::from([path("sub/b"), path(".env")]));
    }
}
