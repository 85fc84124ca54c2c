//! Removing sessions, and collecting what no session reaches any more.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use rusqlite::{Connection, OptionalExtension};
use stele_core::{Hash, Record, Seq, SessionId};

use crate::database::Durability;
use crate::import::SearchText;
use crate::lineage::{TITLE, hash_at, key_of, row_id, seq_of};
use crate::lock::SessionLock;
use crate::session::{self, FullRow, signed};
use crate::{Error, Result, Store, search};

/// Whether a collection removes what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collect {
    /// It only says what it would remove.
    DryRun,
    /// It removes it, and gives the space back to the file system.
    Remove,
}

/// What a collection removed, or would.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collection {
    /// Blobs that no record cites.
    pub blobs: u64,
    /// Their stored size in bytes.
    pub bytes: u64,
    /// Lock files of sessions that never were stored.
    pub locks: u64,
    /// True when nothing of what was removed, now or before, is left in any file. False after a dry
    /// run, and while others kept the database busy: then the next collection does it.
    pub erased: bool,
}

/// What the removal of a session left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// Nothing.
    Whole,
    /// The records that a fork continues, hidden: they go with the last such fork.
    KeptFor {
        /// The last record that stays.
        last: Seq,
    },
}

/// What the removal of a session came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    /// What is left of it.
    pub left: Removed,
    /// Other sessions of which a search does not find everything: the index was damaged and was made again, and of these
    /// not all records can be read.
    pub unindexed: u64,
}

/// Records without a session.
#[derive(Clone, Debug)]
pub(crate) struct Orphans {
    pub(crate) first: Seq,
    pub(crate) last: Seq,
    /// The hash before the first of them.
    pub(crate) prev: Option<Hash>,
}

impl Store {
    /// Removes a session: its records, its search rows, its partial text. A damaged search index is made
    /// again first. What a fork of it still continues stays, hidden, until that fork is removed. Its blobs
    /// go with the next [collection](Store::collect).
    ///
    /// # Errors
    /// `log.locked` while somebody writes it, `log.not_found`, `log.write_failed`.
    pub fn remove(&self, id: &SessionId, search_text: &SearchText<'_>) -> Result<Removal> {
        self.session(id)?;
        let mut lock = self.lock(id)?;
        // Its text must be gone from the index too, so a damaged one is mended first.
        let unindexed = self.mend_index(search_text)?;
        let left = self.database.transact(Durability::Barrier, |connection| {
            let row = session::find_visible(connection, self.path(), id)?;
            let write = |error: rusqlite::Error| Error::writing(self.path(), &error);
            connection
                .execute("UPDATE sessions SET hidden = 1, title = NULL WHERE key = ?1", [row.key])
                .and_then(|_| connection.execute("DELETE FROM partials WHERE key = ?1", [row.key]))
                .and_then(|_| search::forget(connection, row.key, Seq(0)))
                .map_err(write)?;
            let kept = cut_to_need(connection, self.path(), &row)?;
            // A hidden ancestor may have stayed for this session alone.
            let mut parent = row.public.parent;
            while let Some(link) = parent {
                let Some(ahead) = session::find(connection, self.path(), &link.session)?.filter(|row| row.hidden)
                else {
                    break;
                };
                cut_to_need(connection, self.path(), &ahead)?;
                parent = ahead.public.parent;
            }
            Ok(kept)
        })?;
        lock.stored = matches!(left, Removed::KeptFor { .. });
        Ok(Removal { left, unindexed })
    }

    /// Finds, and unless it is a dry run removes, blobs that no record cites and lock files of sessions
    /// that never were stored. Then the database is written anew, so that what was removed, now or
    /// before, is gone from the files.
    ///
    /// A damaged search index is made again from the records and the titles; `search_text` says what of a record is
    /// found.
    ///
    /// # Errors
    /// `log.corrupt` while a record cannot be read: what it cites is not known, so nothing is removed.
    /// `log.write_failed`.
    pub fn collect(&self, how: Collect, search_text: &SearchText<'_>) -> Result<Collection> {
        // The long part of the marking happens beside writers; the transaction only marks what was
        // appended since.
        let mut marks = Marks::default();
        self.database.read(|connection| marks.extend(connection, self.path()))?;
        let mut collection = match how {
            Collect::DryRun => self.database.read(|connection| {
                marks.extend(connection, self.path())?;
                marks.sweep(connection, how).map_err(|error| Error::reading(self.path(), &error))
            })?,
            Collect::Remove => self.database.transact(Durability::Barrier, |connection| {
                marks.extend(connection, self.path())?;
                marks.sweep(connection, how).map_err(|error| Error::writing(self.path(), &error))
            })?,
        };
        collection.locks = self.stray_locks(how)?;
        if how == Collect::Remove {
            // All records could be read: they were marked.
            self.mend_index(search_text)?;
            collection.erased = self
                .database
                .maintain(|connection| compact(connection).map_err(|error| Error::writing(self.path(), &error)))?;
        }
        Ok(collection)
    }

    fn stray_locks(&self, how: Collect) -> Result<u64> {
        let mut strays = 0;
        for id in lock_names(&self.locks()) {
            if self.database.read(|connection| session::find(connection, self.path(), &id))?.is_some() {
                continue;
            }
            match how {
                Collect::DryRun => strays += 1,
                Collect::Remove => {
                    // One that is held belongs to a session that is about to be stored.
                    if let Some(mut lock) = SessionLock::acquire(&self.locks(), &id)? {
                        let stored = self.database.read(|connection| session::find(connection, self.path(), &id))?;
                        lock.stored = stored.is_some();
                        strays += u64::from(!lock.stored);
                    }
                }
            }
        }
        Ok(strays)
    }
}

/// Cuts a hidden session down to what its forks continue; removes it when there are none.
fn cut_to_need(connection: &Connection, path: &Path, row: &FullRow) -> Result<Removed> {
    let write = |error: rusqlite::Error| Error::writing(path, &error);
    let needed: Option<i64> = connection
        .query_row("SELECT max(parent_seq) FROM sessions WHERE parent = ?1", [row.public.id.as_str()], |row| row.get(0))
        .map_err(write)?;
    let delete_from = |seq| {
        connection
            .execute("DELETE FROM records WHERE id BETWEEN ?1 AND ?2", (row_id(row.key, seq), row_id(row.key, TITLE)))
    };
    let Some(last) = needed.map(|seq| Seq(seq.unsigned_abs())) else {
        delete_from(Seq(0))
            .and_then(|_| connection.execute("DELETE FROM sessions WHERE key = ?1", [row.key]))
            .map_err(write)?;
        return Ok(Removed::Whole);
    };
    let Some(hash) = hash_at(connection, row.key, last).map_err(write)? else {
        return Err(Error::Corrupt {
            detail: format!("record {last} of {}, which a fork continues, is missing", row.public.id),
        });
    };
    delete_from(last.next())
        .and_then(|_| {
            connection.execute(
                "UPDATE sessions SET head_seq = ?2, head_hash = ?3 WHERE key = ?1",
                (row.key, signed(last.0), hash.0),
            )
        })
        .map_err(write)?;
    Ok(Removed::KeptFor { last })
}

/// The blobs that records cite, and how far the records were read.
#[derive(Default)]
struct Marks {
    cited: HashSet<Hash>,
    /// The last row id that was read, by session key.
    read: HashMap<i64, i64>,
}

impl Marks {
    /// Marks what records cite that were not read yet.
    fn extend(&mut self, connection: &Connection, path: &Path) -> Result<()> {
        let read = |error: rusqlite::Error| Error::reading(path, &error);
        let mut next = connection.prepare_cached("SELECT min(id) FROM records WHERE id >= ?1").map_err(read)?;
        let mut rows = connection
            .prepare_cached("SELECT id, bytes FROM records WHERE id BETWEEN ?1 AND ?2 ORDER BY id")
            .map_err(read)?;
        let mut key = 0;
        // Session by session, also those whose row is gone.
        while let Some(first) =
            next.query_row([row_id(key, Seq(0))], |row| row.get::<_, Option<i64>>(0)).map_err(read)?
        {
            key = key_of(first);
            let from = self.read.get(&key).map_or(first, |last| last + 1);
            let mut records = rows.query((from, row_id(key, TITLE))).map_err(read)?;
            while let Some(row) = records.next().map_err(read)? {
                let id = row.get(0).map_err(read)?;
                let bytes = row.get_ref(1).map_err(read)?.as_blob().unwrap_or_default();
                let cites = Record::cites(seq_of(id), bytes).map_err(|error| Error::Corrupt {
                    detail: format!("nothing was removed, since what is cited is not known: {error}"),
                })?;
                self.cited.extend(cites);
                self.read.insert(key, id);
            }
            key += 1;
        }
        Ok(())
    }

    fn sweep(&self, connection: &Connection, how: Collect) -> rusqlite::Result<Collection> {
        let mut collection = Collection::default();
        let mut unreached = Vec::new();
        let mut blobs = connection.prepare("SELECT id, hash, length(bytes) FROM blobs")?;
        let mut rows = blobs.query([])?;
        while let Some(row) = rows.next()? {
            // A blob whose name is damaged is cited by nobody under that name.
            let hash = row.get::<_, [u8; 32]>(1).ok().map(Hash);
            if hash.is_some_and(|hash| self.cited.contains(&hash)) {
                continue;
            }
            unreached.push(row.get::<_, i64>(0)?);
            collection.blobs += 1;
            collection.bytes += row.get::<_, i64>(2)?.unsigned_abs();
        }
        if how == Collect::Remove {
            let mut delete = connection.prepare("DELETE FROM blobs WHERE id = ?1")?;
            for id in unreached {
                delete.execute([id])?;
            }
        }
        Ok(collection)
    }
}

/// Writes the database anew without what was removed, and folds the write-ahead log into it, so that
/// nothing of that is left in either file. False while others keep the database busy.
fn compact(connection: &Connection) -> rusqlite::Result<bool> {
    match connection.execute_batch("VACUUM") {
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => return Ok(false),
        result => result?,
    }
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0).map(|busy| busy == 0))
}

/// Records whose session has no row, one entry a session.
pub(crate) fn orphans(connection: &Connection) -> rusqlite::Result<Vec<Orphans>> {
    let mut next = connection.prepare_cached("SELECT min(id) FROM records WHERE id >= ?1")?;
    let mut known = connection.prepare_cached("SELECT 1 FROM sessions WHERE key = ?1")?;
    let mut found = Vec::new();
    let mut key = 0;
    while let Some(first) = next.query_row([row_id(key, Seq(0))], |row| row.get::<_, Option<i64>>(0))? {
        key = key_of(first);
        if !known.exists([key])? {
            let last: i64 =
                connection
                    .query_row("SELECT max(id) FROM records WHERE id <= ?1", [row_id(key, TITLE)], |row| row.get(0))?;
            let prev = connection
                .query_row("SELECT prev FROM records WHERE id = ?1", [first], |row| row.get::<_, [u8; 32]>(0))
                .optional()?;
            found.push(Orphans { first: seq_of(first), last: seq_of(last), prev: prev.map(Hash) });
        }
        key += 1;
    }
    Ok(found)
}

/// The sessions that have a lock file.
pub(crate) fn lock_names(folder: &Path) -> Vec<SessionId> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut ids: Vec<SessionId> = names.filter_map(|name| SessionId::new(name).ok()).collect();
    ids.sort();
    ids
}
