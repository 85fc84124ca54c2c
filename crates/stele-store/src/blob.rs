//! Content-addressed blobs: named by the BLAKE3 of their content, stored as zstd frames.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};
use stele_core::{Hash, Hasher};

use crate::{Error, Result};

/// Compression level. Level 1 keeps the compressor small and fast; tool output shrinks well anyway.
const LEVEL: i32 = 1;

/// What is stored under a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing.
    Missing,
    /// Something that is not the content its name says.
    Damaged(String),
    /// The content.
    Whole(Vec<u8>),
}

/// A blob as it is stored.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) hash: Hash,
    len: u64,
    seal: Hash,
    bytes: Vec<u8>,
}

impl Packed {
    /// What was packed; `None` when it is not the content its name says.
    pub(crate) fn content(&self) -> Option<Vec<u8>> {
        match unpack(&self.hash, &self.hash.0, i64::try_from(self.len).ok()?, &self.seal.0, &self.bytes) {
            Found::Whole(content) => Some(content),
            Found::Missing | Found::Damaged(_) => None,
        }
    }
}

/// Packs content under the name it is said to have; reading checks both.
pub(crate) fn pack(hash: Hash, content: &[u8]) -> std::io::Result<Packed> {
    let bytes = zstd::bulk::compress(content, LEVEL)?;
    let len = content.len() as u64;
    Ok(Packed { hash, len, seal: seal(&hash, len, &bytes), bytes })
}

/// Covers the row as it is stored. A bit can change in a frame's header without changing what it
/// unpacks to, and a length must not be believed before it is known to be the one written.
fn seal(hash: &Hash, len: u64, bytes: &[u8]) -> Hash {
    let mut hasher = Hasher::new();
    hasher.update(b"stele.blob.1");
    hasher.update(&hash.0);
    hasher.update(&len.to_le_bytes());
    hasher.update(bytes);
    Hash::from(&hasher)
}

/// True when something is stored under this name.
pub(crate) fn exists(connection: &Connection, hash: &Hash) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM blobs WHERE hash = ?1")?.exists([hash.0])
}

/// Stores a blob, once.
pub(crate) fn put(connection: &Connection, blob: &Packed) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO blobs (hash, len, seal, bytes) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")?
        .execute((blob.hash.0, i64::try_from(blob.len).unwrap_or(i64::MAX), blob.seal.0, &blob.bytes))
        .map(drop)
}

/// The text of a blob, where it is whole.
pub(crate) fn whole_text(connection: &Connection, hash: &Hash) -> rusqlite::Result<Option<Arc<str>>> {
    Ok(match get(connection, hash)? {
        Found::Whole(content) => String::from_utf8(content).ok().map(Arc::from),
        Found::Missing | Found::Damaged(_) => None,
    })
}

/// Reads a blob and checks every byte of its row.
pub(crate) fn get(connection: &Connection, hash: &Hash) -> rusqlite::Result<Found> {
    // The name is found through the index and compared in the row, so that both copies are checked.
    let row = connection
        .prepare_cached("SELECT id FROM blobs WHERE hash = ?1")?
        .query_row([hash.0], |row| row.get::<_, i64>(0))
        .optional()?;
    let Some(id) = row else { return Ok(Found::Missing) };
    connection
        .prepare_cached("SELECT hash, len, seal, bytes FROM blobs WHERE id = ?1")?
        .query_row([id], |row| {
            let whole = |column| row.get_ref(column).ok().and_then(|value| value.as_blob().ok());
            let (Some(name), Some(stored_seal), Some(bytes)) = (whole(0), whole(2), whole(3)) else {
                return Ok(Found::Damaged("its row is damaged".to_owned()));
            };
            let Ok(len) = row.get::<_, i64>(1) else {
                return Ok(Found::Damaged("its length is damaged".to_owned()));
            };
            Ok(unpack(hash, name, len, stored_seal, bytes))
        })
        .optional()
        .map(|found| found.unwrap_or(Found::Missing))
}

/// The bytes of a blob; `None` when nothing has this name.
pub(crate) fn bytes(connection: &Connection, path: &Path, hash: &Hash) -> Result<Option<Vec<u8>>> {
    match get(connection, hash).map_err(|error| Error::reading(path, &error))? {
        Found::Whole(content) => Ok(Some(content)),
        Found::Missing => Ok(None),
        Found::Damaged(detail) => Err(Error::Blob { blob: *hash, detail }),
    }
}

/// The text of a blob; `None` when nothing has this name.
pub(crate) fn text(connection: &Connection, path: &Path, hash: &Hash) -> Result<Option<Arc<str>>> {
    let Some(content) = bytes(connection, path, hash)? else { return Ok(None) };
    match String::from_utf8(content) {
        Ok(text) => Ok(Some(text.into())),
        Err(_) => Err(Error::Blob { blob: *hash, detail: "it is no text".to_owned() }),
    }
}

fn unpack(hash: &Hash, name: &[u8], len: i64, stored_seal: &[u8], bytes: &[u8]) -> Found {
    if name != hash.0 {
        return Found::Damaged("its name is damaged".to_owned());
    }
    let sealed = u64::try_from(len).is_ok_and(|len| seal(hash, len, bytes).0 == stored_seal);
    let Some(capacity) = usize::try_from(len).ok().filter(|_| sealed) else {
        return Found::Damaged("its stored bytes are not the ones written".to_owned());
    };
    match decompress(bytes, capacity) {
        Ok(content) if Hash::of(&content) == *hash => Found::Whole(content),
        Ok(_) => Found::Damaged("its content is not what its name says".to_owned()),
        Err(error) => Found::Damaged(format!("it cannot be unpacked: {error}")),
    }
}

/// Unpacks a frame. Making the decompressor costs more than most blobs, so each thread keeps one.
fn decompress(bytes: &[u8], capacity: usize) -> std::io::Result<Vec<u8>> {
    thread_local! {
        static KEPT: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
    }
    KEPT.with_borrow_mut(|kept| match kept {
        Some(kept) => kept.decompress(bytes, capacity),
        None => kept.insert(zstd::bulk::Decompressor::new()?).decompress(bytes, capacity),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reread(blob: &Packed) -> Found {
        unpack(&blob.hash, &blob.hash.0, i64::try_from(blob.len).unwrap(), &blob.seal.0, &blob.bytes)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn content_comes_back(content in proptest::collection::vec(any::<u8>(), 0..5_000)) {
            let blob = pack(Hash::of(&content), &content).unwrap();
            prop_assert_eq!(reread(&blob), Found::Whole(content));
        }

        #[test]
        fn a_changed_bit_is_damage(at in any::<prop::sample::Index>(), bit in 0..8_u8) {
            let content = "a line of output\n".repeat(400);
            let mut blob = pack(Hash::of(content.as_bytes()), content.as_bytes()).unwrap();
            let at = at.index(blob.bytes.len());
            blob.bytes[at] ^= 1 << bit;
            prop_assert!(matches!(reread(&blob), Found::Damaged(_)));
        }

        #[test]
        fn a_changed_length_is_damage_before_it_is_believed(bit in 0..63_u32) {
            let mut blob = pack(Hash::of(b"content"), b"content").unwrap();
            blob.len ^= 1 << bit;
            prop_assert!(matches!(reread(&blob), Found::Damaged(_)));
        }
    }

    #[test]
    fn content_under_another_name_is_damage() {
        let blob = pack(Hash::of(b"one thing"), b"another thing").unwrap();
        assert_eq!(reread(&blob), Found::Damaged("its content is not what its name says".to_owned()));
    }
}
