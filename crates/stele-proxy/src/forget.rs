//! Forgetting old recordings, on a full disk too.
//!
//! A database needs space to give space back: what is removed is written to its log of changes first. So the log is
//! taken in before anything else, removal goes in small pieces, and a file that was kept in reserve while recording is
//! given up for it.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use serde::Serialize;
use stele_core::Millis;

use crate::store::{FILE, Store, unpack};
use crate::{Error, Result};

/// Name of the file in reserve.
const RESERVE: &str = "requests.reserve";
/// Its length, in bytes: what the log of changes may hold of pages that the file does not have yet.
const RESERVE_BYTES: usize = 1024 * 1024;
/// Rows that are removed at once.
const ROWS: i64 = 64;
/// Pages that are given back at once.
const PAGES: u32 = 128;

/// What was removed from a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Forgotten {
    /// Requests.
    pub requests: u64,
    /// Segments that no request names any more.
    pub segments: u64,
    /// Bytes of the file and its log of changes, before and after.
    pub bytes: (u64, u64),
}

impl Store {
    /// Keeps some space for [`forget`](Self::forget). A disk that has none left has none to keep.
    pub fn keep_reserve(&self) {
        let path = beside(&self.path, RESERVE);
        if path.metadata().is_ok_and(|data| data.len() >= RESERVE_BYTES as u64) {
            return;
        }
        let write = || -> std::io::Result<()> {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(&path)?;
            file.write_all(&vec![0; RESERVE_BYTES])?;
            file.sync_data()
        };
        if write().is_err() {
            let _ = fs::remove_file(&path);
        }
    }

    /// Opens the store of a folder to forget some of it; what was kept in reserve for that is given up.
    ///
    /// # Errors
    /// Those of [`open`](Self::open); nothing was recorded in the folder.
    pub fn open_to_forget(folder: &Path) -> Result<Self> {
        if !folder.join(FILE).exists() {
            return Err(Error::Nothing(folder.to_owned()));
        }
        let _ = fs::remove_file(folder.join(RESERVE));
        Self::open_existing(folder)
    }

    /// Removes the requests that were recorded before a time, and the segments that no request has, and gives their
    /// space back. Another process may record meanwhile.
    ///
    /// # Errors
    /// A list of segments cannot be read, so that nobody knows what is still needed: then nothing is removed. The file
    /// cannot be written: then what is removed so far is gone, and everything else is there.
    pub fn forget(&mut self, before: Millis) -> Result<Forgotten> {
        let path = self.path.clone();
        let mut forgotten = Forgotten { bytes: (length(&path), 0), ..Forgotten::default() };
        self.write(|connection| connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)"))?;
        // The newest request of which it is known what it needs.
        let (mut seen, mut needed) = (0, HashSet::new());
        look(&self.connection, &path, (&mut seen, before), &mut needed)?;
        let last = seen;
        loop {
            let removed = self.write(|connection| {
                connection.execute(
                    "DELETE FROM request WHERE id IN (SELECT id FROM request WHERE at < ?1 AND id <= ?2 LIMIT ?3)",
                    (before.0, last, ROWS),
                )
            })?;
            if removed == 0 {
                break;
            }
            forgotten.requests += removed as u64;
            self.take_in()?;
        }
        let mut after = 0;
        while let Some(last) = self.forget_segments(after, &mut seen, &mut needed, &mut forgotten.segments)? {
            after = last;
            self.take_in()?;
        }
        self.give_back()?;
        self.write(|connection| connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)"))?;
        forgotten.bytes.1 = length(&path);
        self.keep_reserve();
        Ok(forgotten)
    }

    /// Removes what is not needed of the segments that follow one; gives the last one that was looked at.
    fn forget_segments(
        &mut self,
        after: i64,
        seen: &mut i64,
        needed: &mut HashSet<i64>,
        count: &mut u64,
    ) -> Result<Option<i64>> {
        let path = self.path.clone();
        let failed = |error: rusqlite::Error| Error::sqlite(&path, &error);
        let transaction: Transaction<'_> =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        // A request that came meanwhile may have taken up what nobody needed; now none can.
        look(&transaction, &path, (seen, Millis(i64::MIN)), needed)?;
        let ids = (|| -> rusqlite::Result<Vec<i64>> {
            let mut select = transaction.prepare_cached("SELECT id FROM segment WHERE id > ?1 ORDER BY id LIMIT ?2")?;
            select.query_map([after, ROWS], |row| row.get(0))?.collect()
        })()
        .map_err(failed)?;
        {
            let mut delete = transaction.prepare_cached("DELETE FROM segment WHERE id = ?1").map_err(failed)?;
            for id in ids.iter().filter(|id| !needed.contains(id)) {
                *count += delete.execute([id]).map_err(failed)? as u64;
            }
        }
        transaction.commit().map_err(failed)?;
        Ok(ids.last().copied())
    }

    /// Gives free pages back to the disk.
    fn give_back(&mut self) -> Result<()> {
        let number = |name: &'static str| {
            move |connection: &Connection| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0))
        };
        // A file of an earlier version has to be written anew once.
        if self.write(number("auto_vacuum"))? != 2 && self.write(number("freelist_count"))? > 0 {
            return self.write(|connection| connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM"));
        }
        let mut free = self.write(number("freelist_count"))?;
        while free > 0 {
            self.write(|connection| {
                let mut vacuum = connection.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
                let mut rows = vacuum.query([])?;
                while rows.next()?.is_some() {}
                Ok(())
            })?;
            self.take_in()?;
            let left = self.write(number("freelist_count"))?;
            // Another process may free pages at the same time; this one has done its part.
            if left >= free {
                break;
            }
            free = left;
        }
        Ok(())
    }

    /// Takes the log of changes in, so that its space is used again; whoever reads is not waited for.
    fn take_in(&self) -> Result<()> {
        self.write(|connection| connection.execute_batch("PRAGMA wal_checkpoint(PASSIVE)"))
    }

    fn write<T>(&self, act: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        act(&self.connection).map_err(|error| Error::sqlite(&self.path, &error))
    }
}

/// Adds what the requests that nobody has looked at need, those before a time left out.
fn look(
    connection: &Connection,
    path: &Path,
    (seen, since): (&mut i64, Millis),
    needed: &mut HashSet<i64>,
) -> Result<()> {
    let failed = |error: rusqlite::Error| Error::sqlite(path, &error);
    let mut select =
        connection.prepare_cached("SELECT id, at, segments FROM request WHERE id > ?1 ORDER BY id").map_err(failed)?;
    let mut rows = select.query([*seen]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let (id, at): (i64, i64) = (row.get(0).map_err(failed)?, row.get(1).map_err(failed)?);
        if at >= since.0 {
            let segments = unpack(&row.get::<_, Vec<u8>>(2).map_err(failed)?)
                .map_err(|cause| Error::Corrupt { path: path.to_owned(), cause: format!("request {id}: {cause}") })?;
            needed.extend(segments.into_iter().map(|(segment, ..)| segment));
        }
        *seen = id;
    }
    Ok(())
}

/// Bytes of a database and its log of changes.
fn length(path: &Path) -> u64 {
    let log = beside(path, &format!("{FILE}-wal"));
    [path, &log].into_iter().map(|path| fs::metadata(path).map_or(0, |data| data.len())).sum()
}

fn beside(path: &Path, name: &str) -> PathBuf {
    path.with_file_name(name)
}
