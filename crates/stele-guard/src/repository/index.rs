//! The submodules that an index lists (git 2.51, `gitformat-index(5)`).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Kind of an entry that is another repository.
const SUBMODULE: u32 = 0o160_000;

/// Paths of the submodules; `None` where the index is not of a form that is known, or may be read in another order.
pub(super) fn submodules(bytes: &[u8], wide_hashes: bool) -> Option<Vec<PathBuf>> {
    let hash = if wide_hashes { 32 } else { 20 };
    let mut reader = Reader { bytes, at: 0 };
    let (magic, version, count) = (reader.take(4)?, reader.number()?, reader.number()?);
    if magic != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut name = Vec::new();
    let mut entries = Vec::new();
    let mut submodules = Vec::new();
    for _ in 0..count {
        let start = reader.at;
        reader.take(24)?;
        let mode = reader.number()?;
        reader.take(12 + hash)?;
        let flags = reader.take(2)?;
        if flags[0] & 0x40 != 0 {
            reader.take(2)?;
        }
        if version == 4 {
            let kept = name.len().checked_sub(reader.offset()?)?;
            name.truncate(kept);
        } else {
            name.clear();
        }
        entries.push(Entry { start, whole: name.is_empty() });
        name.extend_from_slice(reader.until_nul()?);
        if version != 4 {
            // At least one NUL, up to a multiple of eight.
            reader.take((8 - (reader.at - start) % 8) % 8)?;
        }
        if mode & 0o170_000 == SUBMODULE {
            // An entry without a name is one of a shared index.
            if name.is_empty() {
                return None;
            }
            submodules.push(PathBuf::from(OsStr::from_bytes(&name)));
        }
    }
    extensions(&mut reader, hash, &entries)?;
    Some(submodules)
}

/// Where an entry begins, and whether its name says all without the one before.
struct Entry {
    start: usize,
    whole: bool,
}

/// What follows the entries must bring no other ones, and let git begin to read at none of them in another way.
fn extensions(reader: &mut Reader<'_>, hash: usize, entries: &[Entry]) -> Option<()> {
    let end = reader.at;
    // Git looks for this one at its place from the end, and for the others where it says.
    for length in [24, 36] {
        let at = reader.bytes.len().checked_sub(hash + 8 + length);
        if let Some(found) = at.and_then(|at| reader.bytes.get(at..)).and_then(|found| found.strip_prefix(b"EOIE")) {
            let offset = Reader { bytes: found, at: 4 }.number()?;
            (usize::try_from(offset).ok()? == end).then_some(())?;
        }
    }
    while reader.bytes.len() - reader.at > hash {
        let name = reader.take(4)?;
        let length = usize::try_from(reader.number()?).ok()?;
        let data = reader.take(length)?;
        match name {
            b"link" => return None,
            b"IEOT" => blocks(Reader { bytes: data, at: 4 }, entries)?,
            _ => {}
        }
    }
    Some(())
}

/// Blocks of entries that git reads at the same time.
fn blocks(mut reader: Reader<'_>, entries: &[Entry]) -> Option<()> {
    while reader.at < reader.bytes.len() {
        let (offset, count) = (usize::try_from(reader.number()?).ok()?, usize::try_from(reader.number()?).ok()?);
        let first = entries.binary_search_by_key(&offset, |entry| entry.start).ok()?;
        let fits = first.checked_add(count).is_some_and(|end| end <= entries.len());
        (fits && entries[first].whole).then_some(())?;
    }
    Some(())
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    /// A number as packs write offsets.
    fn offset(&mut self) -> Option<usize> {
        let mut offset = 0_usize;
        loop {
            let byte = self.take(1)?[0];
            offset = offset.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
            if byte & 0x80 == 0 {
                return Some(offset);
            }
            offset = offset.checked_add(1)?;
        }
    }

    fn until_nul(&mut self) -> Option<&'a [u8]> {
        let length = self.bytes.get(self.at..)?.iter().position(|byte| *byte == 0)?;
        let text = self.take(length)?;
        self.take(1)?;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn reading_an_index_never_panics(
            version in 2_u32..5,
            count in 0_u32..4,
            rest in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400),
            wide in proptest::prelude::any::<bool>(),
        ) {
            let header = [*b"DIRC", version.to_be_bytes(), count.to_be_bytes()].concat();
            let _ = submodules(&[header, rest.clone()].concat(), wide);
            let _ = submodules(&rest, wide);
        }
    }
}
