//! Reading a log in order, in bounded memory.

use std::collections::VecDeque;
use std::sync::Arc;

use rusqlite::{CachedStatement, Connection, Row, Rows};
use stele_core::{Hash, Seq, Stored};

use crate::database::Database;
use crate::lineage::{Segment, row_id, seq_of};
use crate::{Error, Result};

/// What takes the records that are shown: position, bytes, and a way to the blobs.
type Take<'a, E> = dyn FnMut(Seq, &[u8], &Blobs<'_>) -> Result<(), E> + 'a;

/// Rows read at once, at most.
const PAGE_ROWS: usize = 512;
/// Bytes of records after which a page is full.
const PAGE_BYTES: usize = 256 << 10;

/// The records of a log, its ancestors' first, from some seq up to the head at the time of asking.
///
/// It reads page by page, so that it neither holds the log in memory nor keeps a transaction open.
/// A missing or unreadable record is an error, and the last item.
#[derive(Clone, Debug)]
pub struct Records {
    database: Arc<Database>,
    segments: VecDeque<Segment>,
    page: VecDeque<RawRow>,
    broken: bool,
}

/// A row as it is, whatever it holds.
#[derive(Clone, Debug)]
pub(crate) struct RawRow {
    pub(crate) seq: Seq,
    pub(crate) prev: Option<Hash>,
    pub(crate) hash: Option<Hash>,
    pub(crate) bytes: Option<Vec<u8>>,
}

impl Records {
    pub(crate) fn new(database: Arc<Database>, segments: Vec<Segment>, from: Seq) -> Self {
        let mut segments: VecDeque<Segment> = segments.into_iter().filter(|segment| segment.last >= from).collect();
        if let Some(first) = segments.front_mut() {
            first.first = first.first.max(from);
        }
        Self { database, segments, page: VecDeque::new(), broken: false }
    }

    /// The position of the last of them.
    #[must_use]
    pub fn end(&self) -> Seq {
        self.segments.back().map_or(Seq(0), |segment| segment.last)
    }

    /// Those of them between two positions, both included, to be read apart from the others.
    #[must_use]
    pub fn between(&self, first: Seq, last: Seq) -> Self {
        let overlap = self.segments.iter().filter(|segment| segment.first <= last && segment.last >= first);
        let segments = overlap.map(|segment| Segment {
            first: segment.first.max(first),
            last: segment.last.min(last),
            ..segment.clone()
        });
        Self {
            database: Arc::clone(&self.database),
            segments: segments.collect(),
            page: VecDeque::new(),
            broken: false,
        }
    }

    /// Shows them one after the other, without a copy of each; `take` gets the position, the bytes as they were written,
    /// and a way to the blobs. Between the first and the last of a session's records a transaction is open, so what is
    /// read like this should be a bounded number of them.
    ///
    /// # Errors
    /// The first record that is missing or cannot be read, and what `take` refuses.
    pub fn each<E: From<Error>>(&self, take: &mut Take<'_, E>) -> Result<(), E> {
        for segment in self.segments.iter().filter(|segment| segment.first <= segment.last) {
            self.database.read(|connection| Ok(self.show(connection, segment, take)))??;
        }
        Ok(())
    }

    fn show<E: From<Error>>(
        &self,
        connection: &Connection,
        segment: &Segment,
        take: &mut Take<'_, E>,
    ) -> Result<(), E> {
        let unreadable = |error: rusqlite::Error| Error::reading(&self.database.path, &error);
        let blobs = Blobs { database: &self.database, connection };
        let mut statement = select(connection).map_err(unreadable)?;
        let mut rows = query(&mut statement, segment).map_err(unreadable)?;
        let mut next = segment.first;
        while let Some(row) = rows.next().map_err(unreadable)? {
            let seq = seq_of(row.get(0).map_err(unreadable)?);
            if seq != next {
                break;
            }
            let (Some(_), Some(_), Some(bytes)) = (hash(row, 1), hash(row, 2), blob(row, 3)) else {
                return Err(not_as_written(seq).into());
            };
            take(seq, bytes, &blobs)?;
            next = seq.next();
        }
        if next <= segment.last { Err(missing(next).into()) } else { Ok(()) }
    }

    fn fill(&mut self) -> Result<()> {
        while self.page.is_empty() {
            let Some(segment) = self.segments.front().filter(|segment| segment.first <= segment.last) else {
                if self.segments.pop_front().is_none() {
                    return Ok(());
                }
                continue;
            };
            self.page = self.database.read(|connection| {
                page(connection, segment).map_err(|error| Error::reading(&self.database.path, &error))
            })?;
            if self.page.is_empty() {
                return Err(missing(segment.first));
            }
        }
        Ok(())
    }

    fn take(&mut self) -> Option<Result<Stored>> {
        if let Err(error) = self.fill() {
            return Some(Err(error));
        }
        let row = self.page.pop_front()?;
        let segment = self.segments.front_mut()?;
        if row.seq != segment.first {
            return Some(Err(missing(segment.first)));
        }
        segment.first = row.seq.next();
        let RawRow { seq, prev: Some(prev), hash: Some(hash), bytes: Some(bytes) } = row else {
            return Some(Err(not_as_written(row.seq)));
        };
        Some(Ok(Stored { seq, bytes, prev, hash }))
    }
}

impl Iterator for Records {
    type Item = Result<Stored>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken {
            return None;
        }
        let item = self.take();
        self.broken = matches!(item, Some(Err(_)));
        item
    }
}

fn missing(seq: Seq) -> Error {
    Error::Corrupt { detail: format!("record {seq} is missing") }
}

fn not_as_written(seq: Seq) -> Error {
    Error::Corrupt { detail: format!("record {seq} is not stored as it was written") }
}

/// The blobs, while records are shown.
#[derive(Debug)]
pub struct Blobs<'a> {
    database: &'a Database,
    connection: &'a Connection,
}

impl Blobs<'_> {
    /// The text of a blob; `None` when nothing has this name.
    ///
    /// # Errors
    /// As for [`Store::blob`](crate::Store::blob).
    pub fn text(&self, hash: &Hash) -> Result<Option<Arc<str>>> {
        crate::blob::text(self.connection, &self.database.path, hash)
    }
}

fn select(connection: &Connection) -> rusqlite::Result<CachedStatement<'_>> {
    connection.prepare_cached("SELECT id, prev, hash, bytes FROM records WHERE id BETWEEN ?1 AND ?2 ORDER BY id")
}

fn query<'a>(statement: &'a mut CachedStatement<'_>, segment: &Segment) -> rusqlite::Result<Rows<'a>> {
    statement.query((row_id(segment.key, segment.first), row_id(segment.key, segment.last)))
}

fn blob<'a>(row: &'a Row<'_>, column: usize) -> Option<&'a [u8]> {
    row.get_ref(column).ok().and_then(|value| value.as_blob().ok())
}

fn hash(row: &Row<'_>, column: usize) -> Option<Hash> {
    blob(row, column).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok()).map(Hash)
}

/// The next rows of a segment, up to a bounded number and size.
pub(crate) fn page(connection: &Connection, segment: &Segment) -> rusqlite::Result<VecDeque<RawRow>> {
    let mut statement = select(connection)?;
    let mut rows = query(&mut statement, segment)?;
    let mut page = VecDeque::new();
    let mut size = 0;
    while page.len() < PAGE_ROWS && size < PAGE_BYTES {
        let Some(row) = rows.next()? else { break };
        let bytes = blob(row, 3).map(<[u8]>::to_vec);
        size += bytes.as_ref().map_or(0, Vec::len);
        page.push_back(RawRow { seq: seq_of(row.get(0)?), prev: hash(row, 1), hash: hash(row, 2), bytes });
    }
    Ok(page)
}
