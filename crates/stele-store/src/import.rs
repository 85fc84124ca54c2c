//! Reading a session back from JSON lines, verified by its chain; of a damaged file, what is whole.

use std::sync::Arc;

use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use stele_core::{Hash, Millis, Seq, SessionId};

use crate::blob::{self, Packed, pack};
use crate::database::{Durability, Index};
use crate::lineage::{genesis, hash_at, row_id};
use crate::lock::Holder;
use crate::log_file::{FileRecord, LogFile, Section, Warning};
use crate::search;
use crate::session::{self, Head, Summary};
use crate::writer::{NewRow, Start, insert_record, insert_row, update_summary};
use crate::{Error, Result, Store};

/// More lost records than this are not filled in: the file then is no log that was cut here and there.
const LOST_MAX: u64 = 100_000;

/// Gives the text to find a record by, from its bytes and the blobs it cites; `None` for a record that
/// a person never reads.
pub type SearchText<'a> = dyn Fn(Seq, &[u8], &mut dyn FnMut(&Hash) -> Option<Arc<str>>) -> Option<String> + 'a;

/// What an import made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The session.
    pub id: SessionId,
    /// How it relates to the file.
    pub outcome: Outcome,
    /// Every damage of the file.
    pub warnings: Vec<Warning>,
}

/// How an imported session relates to its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is the session that was exported, byte for byte.
    Same,
    /// The session was here already, with all that the file has; nothing was changed.
    AlreadyHere,
    /// It is a new session, marked as imported, of every whole record.
    Salvaged,
}

impl Store {
    /// Reads a session from JSON lines.
    ///
    /// A whole file gives the session that was exported. A damaged one, or one whose id is taken by
    /// another log, gives a new session with the id `fresh`, marked as imported: each whole record
    /// with its bytes unchanged, an ignorable `import/damaged` record in place of each lost one, and
    /// the damaged bytes as blobs that a last `import/damaged` record cites.
    ///
    /// The file is held in memory, its blobs packed; the store changes in one transaction.
    ///
    /// # Errors
    /// `log.not_a_log`, `log.stream` when the input fails, `log.exists` when `fresh` is needed and
    /// taken, `log.write_failed`.
    pub fn import(
        &self,
        from: &mut dyn std::io::BufRead,
        fresh: SessionId,
        search_text: &SearchText<'_>,
    ) -> Result<Imported> {
        let file = LogFile::read(from)?;
        let whole = file.is_whole();
        self.database.transact_indexed(Durability::Barrier, |connection, index| {
            let place = Place { store: self, connection, index, search_text };
            let mut warnings = Vec::new();
            if whole {
                match place.whole(&file)? {
                    Placed::Done(id, outcome) => return Ok(Imported { id, outcome, warnings }),
                    Placed::Taken(id) => warnings.push(Warning {
                        line: 1,
                        detail: format!("session {id} is here already with other records, so this one has a new id"),
                    }),
                }
            }
            place.salvaged(&file, &fresh, &mut warnings)?;
            if warnings.is_empty() {
                let detail = "its header is missing, or is not the one of these records".to_owned();
                warnings.push(Warning { line: 1, detail });
            }
            Ok(Imported { id: fresh.clone(), outcome: Outcome::Salvaged, warnings })
        })
    }
}

enum Placed {
    Done(SessionId, Outcome),
    /// The id belongs to another log here.
    Taken(SessionId),
}

struct Place<'a> {
    store: &'a Store,
    connection: &'a Connection,
    index: Index,
    search_text: &'a SearchText<'a>,
}

impl Place<'_> {
    fn write<T>(&self, result: rusqlite::Result<T>) -> Result<T> {
        result.map_err(|error| Error::writing(self.store.path(), &error))
    }

    fn indexed(&self, result: rusqlite::Result<()>) -> Result<()> {
        result.map_err(|error| Error::indexing(self.store.path(), &error))
    }

    fn find(&self, id: &SessionId) -> Result<Option<session::FullRow>> {
        session::find(self.connection, self.store.path(), id)
    }

    /// Stores a whole file as the session it is. Ancestors that are here with the same records are
    /// shared with it; others come in hidden.
    fn whole(&self, file: &LogFile) -> Result<Placed> {
        // First everything is looked at, so that a conflict leaves nothing behind.
        let mut here = Vec::new();
        for section in &file.sections {
            let Some(header) = &section.header else { continue };
            let row = self.find(&header.session)?;
            if let Some(row) = &row
                && self.write(hash_at(self.connection, row.key, header.head.seq))? != Some(header.head.hash)
            {
                return Ok(Placed::Taken(header.session.clone()));
            }
            here.push((section, header, row));
        }
        let Some((_, own, own_row)) = here.last() else {
            return Err(Error::NotALog { detail: "it has no header".to_owned() });
        };
        let id = own.session.clone();
        if let Some(row) = own_row {
            // Hidden, it stands here for its forks' sake alone.
            return Ok(if row.hidden { Placed::Taken(id) } else { Placed::Done(id, Outcome::AlreadyHere) });
        }
        self.blobs(file.blobs.values())?;
        let ancestors = here.len() - 1;
        for (at, (section, header, row)) in here.iter().enumerate() {
            if row.is_some() {
                continue;
            }
            let (start, head) = (header.start(), Head { seq: header.head.seq, hash: header.head.hash });
            let hidden = at < ancestors;
            let key = self.row(&header.session, &start, head, hidden, true)?;
            for record in &section.records {
                self.record(key, record.seq, &record.prev, &record.hash, &record.bytes, hidden)?;
            }
            if !hidden {
                self.summary(key, &header.summary())?;
            }
        }
        Ok(Placed::Done(id, Outcome::Same))
    }

    /// Stores what is whole of a file as one new session.
    fn salvaged(&self, file: &LogFile, fresh: &SessionId, warnings: &mut Vec<Warning>) -> Result<()> {
        if self.find(fresh)?.is_some() {
            return Err(Error::Exists(fresh.clone()));
        }
        let Salvaged { records, damaged } = salvage(file, warnings)?;
        self.blobs(file.blobs.values())?;
        self.blobs(&damaged)?;
        let header = file.sections.iter().rev().find_map(|section: &Section| section.header.as_ref());
        let start = Start {
            cwd: header.map(|header| header.cwd.clone()).unwrap_or_default(),
            created: header.map_or(Millis(0), |header| header.created),
            parent: None,
        };
        let mut head = Head { seq: Seq(0), hash: genesis(fresh) };
        let key = self.row(fresh, &start, head, false, true)?;
        for (seq, bytes) in (0..).map(Seq).zip(&records) {
            let hash = Hash::of_record(&head.hash, bytes);
            self.record(key, seq, &head.hash, &hash, bytes, false)?;
            head = Head { seq, hash };
        }
        self.write(
            self.connection
                .prepare_cached("UPDATE sessions SET head_seq = ?2, head_hash = ?3 WHERE key = ?1")
                .and_then(|mut statement| statement.execute((key, session::signed(head.seq.0), head.hash.0))),
        )?;
        header.map_or(Ok(()), |header| self.summary(key, &header.summary()))
    }

    fn row(&self, id: &SessionId, start: &Start, head: Head, hidden: bool, imported: bool) -> Result<i64> {
        let holder = Holder::this_process();
        self.write(insert_row(
            self.connection,
            &NewRow { id, start, head, holder: &holder, fence: 1, hidden, imported },
        ))
    }

    fn summary(&self, key: i64, summary: &Summary) -> Result<()> {
        self.write(update_summary(self.connection, key, summary))?;
        match self.index {
            Index::Write => self.indexed(search::index_title(self.connection, key, summary.title.as_deref())),
            Index::Skip => Ok(()),
        }
    }

    fn blobs<'b>(&self, blobs: impl IntoIterator<Item = &'b Packed>) -> Result<()> {
        blobs.into_iter().try_for_each(|blob| self.write(blob::put(self.connection, blob)))
    }

    fn record(&self, key: i64, seq: Seq, prev: &Hash, hash: &Hash, bytes: &[u8], hidden: bool) -> Result<()> {
        self.write(insert_record(self.connection, key, seq, prev, hash, bytes))?;
        if hidden || self.index == Index::Skip {
            return Ok(());
        }
        let mut fetch = |hash: &Hash| blob::whole_text(self.connection, hash).ok().flatten();
        match (self.search_text)(seq, bytes, &mut fetch) {
            Some(text) => self.indexed(search::index(self.connection, row_id(key, seq), &text)),
            None => Ok(()),
        }
    }
}

/// The bytes of records from 0 on, and the damaged bytes that the last of them cites.
struct Salvaged {
    records: Vec<Vec<u8>>,
    damaged: Vec<Packed>,
}

/// Sorts out what is whole in a file, with one warning a damage. A record that is not the one that was
/// hashed is kept only if it still is one that can be read; a whole one is kept even where this build
/// does not know its kind.
fn salvage(file: &LogFile, warnings: &mut Vec<Warning>) -> Result<Salvaged> {
    let mut damaged = Vec::new();
    let mut damaged_lines = Vec::new();
    let mut keep = |line: u64, what: &str, bytes: &[u8], warnings: &mut Vec<Warning>| -> Result<()> {
        let blob = pack(Hash::of(bytes), bytes)?;
        let (len, name) = (bytes.len(), blob.hash.short());
        warnings.push(Warning { line, detail: format!("{what}; its {len} bytes are kept as blob {name}…") });
        damaged_lines.push(line);
        damaged.push(blob);
        Ok(())
    };
    for damage in &file.damaged {
        keep(damage.line, "a part of it is damaged", &damage.bytes, warnings)?;
    }
    let mut whole: std::collections::BTreeMap<Seq, &FileRecord> = std::collections::BTreeMap::new();
    let mut broken: Vec<(u64, Seq)> = Vec::new();
    for record in file.sections.iter().flat_map(|section| &section.records) {
        let changed = record.hash != Hash::of_record(&record.prev, &record.bytes);
        let unusable = file.judge(record).or_else(|| changed.then(|| file.decode(record).err()).flatten());
        if let Some(why) = unusable {
            keep(record.line, &format!("record {} is left out: {why}", record.seq), &record.bytes, warnings)?;
        } else if let Some(first) = whole.get(&record.seq) {
            if first.bytes != record.bytes {
                let what = format!("there is another record {} on line {}", record.seq, first.line);
                keep(record.line, &what, &record.bytes, warnings)?;
            }
        } else {
            if changed {
                broken.push((record.line, record.seq));
            }
            whole.insert(record.seq, record);
        }
    }
    warnings.extend(broken.into_iter().map(|(line, seq)| Warning {
        line,
        detail: format!("record {seq} is not the one that was hashed: it was changed, or its hash was"),
    }));

    // What is lost is told once: a gap right where damaged bytes are needs no warning of its own.
    let explained = |from: u64, to: u64| damaged_lines.iter().any(|line| (from..=to).contains(line));
    let mut records: Vec<Vec<u8>> = Vec::new();
    let (mut line, mut ts) = (0, Millis(0));
    for (seq, record) in whole {
        let lost = seq.0.saturating_sub(records.len() as u64);
        if lost > LOST_MAX {
            return Err(Error::NotALog { detail: format!("{lost} records are missing before line {}", record.line) });
        }
        if lost > 0 && !explained(line, record.line) {
            let detail = match lost {
                1 => format!("the record before record {seq} is missing"),
                lost => format!("{lost} records before record {seq} are missing"),
            };
            warnings.push(Warning { line: record.line, detail });
        }
        while (records.len() as u64) < seq.0 {
            records.push(filler(records.len() as u64, ts, &[])?);
        }
        ts = serde_json::from_slice(&record.bytes).map_or(ts, |stamp: Stamp| stamp.ts);
        line = record.line;
        records.push(record.bytes.clone());
    }
    let last = file.sections.last().and_then(|section| section.header.as_ref()).map(|header| header.head.seq.0);
    let lost = last.map_or(0, |last| (last + 1).saturating_sub(records.len() as u64));
    if lost > 0 && !explained(line, file.end()) {
        let detail = match lost {
            1 => "the last record is missing".to_owned(),
            lost => format!("the last records, {lost} of them, are missing"),
        };
        warnings.push(Warning { line: file.end(), detail });
    }
    if !damaged.is_empty() {
        let cites: Vec<Hash> = damaged.iter().map(|blob| blob.hash).collect();
        records.push(filler(records.len() as u64, ts, &cites)?);
    }
    warnings.sort_by_key(|warning| warning.line);
    Ok(Salvaged { records, damaged })
}

#[derive(Deserialize)]
struct Stamp {
    ts: Millis,
}

/// A record that stands for what is lost. It is ignorable: whoever folds the log passes over it.
fn filler(seq: u64, ts: Millis, cites: &[Hash]) -> Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Filler<'a> {
        v: u32,
        seq: u64,
        ts: Millis,
        kind: &'static str,
        #[serde(skip_serializing_if = "<[Hash]>::is_empty")]
        cites: &'a [Hash],
        ignorable: bool,
        data: Data,
    }
    #[derive(Serialize)]
    struct Data {
        /// What this record stands for.
        what: &'static str,
    }
    let what = if cites.is_empty() { "a record that was lost" } else { "the damaged bytes of the imported file" };
    let record = Filler { v: 1, seq, ts, kind: "import/damaged", cites, ignorable: true, data: Data { what } };
    Ok(serde_json::to_vec(&record).map_err(std::io::Error::from)?)
}
