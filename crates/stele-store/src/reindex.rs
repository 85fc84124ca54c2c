//! Making a damaged search index again, from the records and the titles.
//!
//! Reading and decoding all records takes long, so it happens beside writers: the texts are gathered in a temporary
//! table. The transaction that replaces the index decodes only what was appended meanwhile.

use std::collections::BTreeMap;

use rusqlite::{Connection, ErrorCode, params};
use stele_core::{Hash, Seq};

use crate::blob;
use crate::database::{connect_reader, connect_writer};
use crate::import::SearchText;
use crate::lineage::{TITLE, row_id, seq_of};
use crate::{Error, Result, Store, search};

/// Times the records are gone through before writers are kept out: the second finds what came during the first.
const BESIDE_WRITERS: usize = 2;

impl Store {
    /// Makes the search index again when it is damaged; gives how many sessions have records that cannot be read, so that
    /// their texts are not all found.
    pub(crate) fn mend_index(&self, search_text: &SearchText<'_>) -> Result<u64> {
        let (path, access) = (self.path(), self.database.access);
        let read = |error: rusqlite::Error| Error::reading(path, &error);
        if search::is_sound(&connect_reader(path, access)?).map_err(read)? {
            return Ok(0);
        }
        // On connections of their own. One that met the damage still has the index open; and a transaction in which a
        // damaged record was met cannot be ended.
        let (records, index) = (connect_reader(path, access)?, connect_writer(path)?);
        let mut texts = Texts { records: &records, index: &index, search_text, sessions: BTreeMap::new() };
        // Whatever fails, closing the connection rolls back.
        texts.make_index().map_err(|error| Error::writing(path, &error))?;
        Ok(texts.sessions.values().filter(|read| **read == Read::Unreadable).count() as u64)
    }
}

/// How far the records of a session were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    /// Up to this row id.
    UpTo(i64),
    /// Up to one that cannot be read.
    Unreadable,
}

/// The texts to find records by, in a temporary table.
struct Texts<'a> {
    /// Reads the records.
    records: &'a Connection,
    /// Has the temporary table, and writes the index.
    index: &'a Connection,
    search_text: &'a SearchText<'a>,
    /// By session key.
    sessions: BTreeMap<i64, Read>,
}

impl Texts<'_> {
    fn make_index(&mut self) -> rusqlite::Result<()> {
        let run = |sql| self.index.execute_batch(sql);
        run("PRAGMA synchronous=FULL; CREATE TEMP TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")?;
        for _ in 0..BESIDE_WRITERS {
            // The temporary table alone is written, which keeps nobody out.
            run("BEGIN DEFERRED")?;
            self.gather()?;
            run("COMMIT")?;
        }
        run("BEGIN IMMEDIATE")?;
        self.gather()?;
        search::replace(self.index)?;
        self.fill()?;
        run("COMMIT")
    }

    /// Gathers the texts of records that were not read yet.
    fn gather(&mut self) -> rusqlite::Result<()> {
        let mut sessions = self.records.prepare_cached("SELECT key FROM sessions WHERE hidden = 0")?;
        let keys: Vec<i64> = sessions.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        for key in keys {
            let from = match self.sessions.get(&key) {
                Some(Read::Unreadable) => continue,
                Some(Read::UpTo(last)) => last + 1,
                None => row_id(key, Seq(0)),
            };
            let read = match self.gather_session(key, from) {
                Ok(last) => Read::UpTo(last),
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => Read::Unreadable,
                Err(error) => return Err(error),
            };
            self.sessions.insert(key, read);
        }
        Ok(())
    }

    /// Gathers the texts of a session from a row id on; gives the last that was read.
    fn gather_session(&self, key: i64, from: i64) -> rusqlite::Result<i64> {
        let mut records =
            self.records.prepare_cached("SELECT id, bytes FROM records WHERE id BETWEEN ?1 AND ?2 ORDER BY id")?;
        let mut keep = self.index.prepare_cached("INSERT INTO temp.texts (id, text) VALUES (?1, ?2)")?;
        let mut failed = None;
        let mut rows = records.query((from, row_id(key, TITLE)))?;
        let mut last = from - 1;
        while let Some(row) = rows.next()? {
            last = row.get(0)?;
            let bytes = row.get_ref(1)?.as_blob().unwrap_or_default();
            // A blob that is damaged is missing, as it is to whoever reads the record; one that cannot be read now is not.
            let mut fetch = |hash: &Hash| {
                blob::whole_text(self.records, hash).unwrap_or_else(|error| {
                    if error.sqlite_error_code() != Some(ErrorCode::DatabaseCorrupt) {
                        failed = Some(error);
                    }
                    None
                })
            };
            let text = (self.search_text)(seq_of(last), bytes, &mut fetch);
            if let Some(error) = failed.take() {
                return Err(error);
            }
            if let Some(text) = text {
                keep.execute(params![last, text])?;
            }
        }
        Ok(last)
    }

    /// Puts the texts of what is there still, and the titles, into the index.
    fn fill(&self) -> rusqlite::Result<()> {
        self.index.execute(
            "INSERT INTO search (rowid, text) SELECT texts.id, texts.text FROM temp.texts \
             JOIN sessions ON sessions.key = texts.id >> 40 AND sessions.hidden = 0 \
             WHERE EXISTS (SELECT 1 FROM records WHERE records.id = texts.id) ORDER BY texts.id",
            [],
        )?;
        let mut sessions = self.index.prepare("SELECT key, title FROM sessions WHERE hidden = 0")?;
        let mut rows = sessions.query([])?;
        while let Some(row) = rows.next()? {
            search::index_title(self.index, row.get(0)?, row.get::<_, Option<String>>(1)?.as_deref())?;
        }
        Ok(())
    }
}
