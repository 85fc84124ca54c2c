//! What the model was shown of files, so that nothing it never saw is overwritten.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use crate::{FileMeta, FilePart, Hash};

/// Files as this session last saw them, by absolute path.
pub type ReadFiles = BTreeMap<PathBuf, ReadFile>;

/// A file as this session last saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadFile {
    /// Hash of the whole content.
    pub hash: Hash,
    /// The lines that were not shown, from 1, in order.
    unseen: Vec<RangeInclusive<u64>>,
}

/// What a result tells of a file: its hash, and which lines were shown where that is not all of them.
pub(crate) type Sight = (Hash, Option<FilePart>);

impl ReadFile {
    fn new((hash, part): Sight) -> Self {
        let mut file = Self { hash, unseen: part.map_or_else(Vec::new, |part| vec![1..=part.total]) };
        file.see(part);
        file
    }

    fn see(&mut self, part: Option<FilePart>) {
        let Some(FilePart { offset, lines, .. }) = part else {
            self.unseen.clear();
            return;
        };
        let behind = offset.saturating_add(lines);
        let left = |range: &RangeInclusive<u64>| {
            [*range.start()..=offset.saturating_sub(1).min(*range.end()), behind.max(*range.start())..=*range.end()]
        };
        if lines > 0 {
            self.unseen = self.unseen.iter().flat_map(left).filter(|range| !range.is_empty()).collect();
        }
    }

    /// The lines that were not shown, from 1, in order.
    #[must_use]
    pub fn unseen(&self) -> &[RangeInclusive<u64>] {
        &self.unseen
    }

    /// True when all of this content was shown.
    #[must_use]
    pub fn is_all_of(&self, hash: Hash) -> bool {
        self.hash == hash && self.unseen.is_empty()
    }

    /// Takes over what a result tells of a file.
    pub fn follow(files: &mut ReadFiles, told: &FileMeta) {
        follow(files, Path::new(&told.path), told.hash.map(|hash| (hash, told.part)));
    }
}

/// Takes over what is told of a file: what was shown before of the same content stays seen.
pub(crate) fn follow(files: &mut ReadFiles, path: &Path, sight: Option<Sight>) {
    match (sight, files.get_mut(path)) {
        (Some(sight), Some(known)) if known.hash == sight.0 => known.see(sight.1),
        (Some(sight), Some(known)) => *known = ReadFile::new(sight),
        (Some(sight), None) => drop(files.insert(path.to_owned(), ReadFile::new(sight))),
        (None, _) => drop(files.remove(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_one_content_add_up() {
        let (mut files, path) = (ReadFiles::new(), Path::new("/f"));
        let window = |offset, lines| Some(FilePart { offset, lines, total: 10 });
        let (one, two) = (Hash::of(b"1"), Hash::of(b"2"));
        let mut see = |hash, part| {
            follow(&mut files, path, Some((hash, part)));
            files[path].unseen().to_vec()
        };
        assert_eq!(see(one, window(3, 2)), [1..=2, 5..=10]);
        assert_eq!(see(one, window(1, 0)), [1..=2, 5..=10]);
        assert_eq!(see(one, window(4, 3)), [1..=2, 7..=10]);
        assert_eq!(see(one, window(7, 9)), [1..=2]);
        assert_eq!(see(one, window(1, 2)), []);
        assert_eq!(see(two, window(1, 9)), [10..=10]);
        assert_eq!(see(two, None), []);
        assert_eq!(see(two, window(1, 1)), [], "what was seen stays seen");
        assert!(files[path].is_all_of(two) && !files[path].is_all_of(one));
        follow(&mut files, path, None);
        assert!(files.is_empty());
    }
}
