//! Reading a log in order, in bounded memory.

use std::collections::VecDeque;
use std::sync::Arc;

use rusqlite::Connection;
use stele_core::{Hash, Seq, Stored};

use crate::database::Database;
use crate::lineage::{Segment, row_id, seq_of};
use crate::{Error, Result};

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
            return Some(Err(Error::Corrupt { detail: format!("record {} is not stored as it was written", row.seq) }));
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

/// The next rows of a segment, up to a bounded number and size.
pub(crate) fn page(connection: &Connection, segment: &Segment) -> rusqlite::Result<VecDeque<RawRow>> {
    let mut statement = connection
        .prepare_cached("SELECT id, prev, hash, bytes FROM records WHERE id BETWEEN ?1 AND ?2 ORDER BY id")?;
    let mut rows = statement.query((row_id(segment.key, segment.first), row_id(segment.key, segment.last)))?;
    let mut page = VecDeque::new();
    let mut size = 0;
    while page.len() < PAGE_ROWS && size < PAGE_BYTES {
        let Some(row) = rows.next()? else { break };
        let blob = |column| row.get_ref(column).ok().and_then(|value| value.as_blob().ok());
        let hash = |column| blob(column).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok()).map(Hash);
        let bytes = blob(3).map(<[u8]>::to_vec);
        size += bytes.as_ref().map_or(0, Vec::len);
        page.push_back(RawRow { seq: seq_of(row.get(0)?), prev: hash(1), hash: hash(2), bytes });
    }
    Ok(page)
}
