//! Writing a session as JSON lines.

use std::collections::HashSet;
use std::io::Write;

use rusqlite::Connection;
use serde_json::value::RawValue;
use stele_core::{Hash, Record, SessionId};

use crate::blob::{self, Found};
use crate::lineage::{Segment, hash_at, lineage};
use crate::read::{RawRow, page};
use crate::session::{self, Head};
use crate::transfer::{BlobLine, Header, RecordLine, to_hex};
use crate::{Error, Result, Store};

/// What an export wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Records.
    pub records: u64,
    /// Blobs.
    pub blobs: u64,
    /// Records and blobs that were missing or unreadable and are left out. An import of the file makes
    /// a new session of what is there.
    pub lost: u64,
}

impl Store {
    /// Writes a session as JSON lines, a fork's ancestors up to the fork included, so that the file
    /// stands alone. Damage does not stop it: what can be read is written, the rest counted.
    ///
    /// # Errors
    /// `log.not_found`; `log.stream` when the output fails; `log.unreadable`.
    pub fn export(&self, id: &SessionId, out: &mut dyn Write) -> Result<Exported> {
        self.database.read(|connection| {
            // One snapshot, so that a removal meanwhile cannot take half of it away.
            let _snapshot = connection.unchecked_transaction().map_err(|error| Error::reading(self.path(), &error))?;
            let row = session::find_visible(connection, self.path(), id)?;
            let mut export =
                Export { store: self, connection, out, written: HashSet::new(), done: Exported::default() };
            let segments = lineage(connection, self.path(), id)?;
            for segment in &segments {
                export.header(segment, &row.public)?;
                export.records(segment.clone())?;
            }
            export.out.flush()?;
            Ok(export.done)
        })
    }
}

struct Export<'a> {
    store: &'a Store,
    connection: &'a Connection,
    out: &'a mut dyn Write,
    /// Blobs that are in the file already.
    written: HashSet<Hash>,
    done: Exported,
}

impl Export<'_> {
    fn read<T>(&self, result: rusqlite::Result<T>) -> Result<T> {
        result.map_err(|error| Error::reading(self.store.path(), &error))
    }

    fn line(&mut self, value: &impl serde::Serialize) -> Result<()> {
        serde_json::to_writer(&mut *self.out, value).map_err(std::io::Error::from)?;
        Ok(self.out.write_all(b"\n")?)
    }

    fn header(&mut self, segment: &Segment, exported: &session::SessionRow) -> Result<()> {
        if segment.session == exported.id {
            return self.line(&Header::of(exported));
        }
        let ancestor = session::find(self.connection, self.store.path(), &segment.session)?;
        let hash = self.read(hash_at(self.connection, segment.key, segment.last))?;
        let (Some(ancestor), Some(hash)) = (ancestor, hash) else {
            // The part then starts without a header, which an import takes as the damage it is.
            self.done.lost += 1;
            return Ok(());
        };
        self.line(&Header::of_span(&ancestor.public, Head { seq: segment.last, hash }))
    }

    fn records(&mut self, mut rest: Segment) -> Result<()> {
        let expected = rest.last.next().0.saturating_sub(rest.first.0);
        let before = self.done.records;
        while rest.first <= rest.last {
            let rows = self.read(page(self.connection, &rest))?;
            let Some(last) = rows.back().map(|row| row.seq) else { break };
            for row in rows {
                self.record(row)?;
            }
            rest.first = last.next();
        }
        self.done.lost += expected.saturating_sub(self.done.records - before);
        Ok(())
    }

    fn record(&mut self, row: RawRow) -> Result<()> {
        let RawRow { seq, prev: Some(prev), hash: Some(hash), bytes: Some(bytes) } = row else { return Ok(()) };
        for blob in Record::cites(seq, &bytes).unwrap_or_default() {
            if !self.written.insert(blob) {
                continue;
            }
            match self.read(blob::get(self.connection, &blob))? {
                Found::Whole(content) => {
                    let text = std::str::from_utf8(&content).ok();
                    let hex = if text.is_none() { Some(to_hex(&content)) } else { None };
                    self.line(&BlobLine { blob, text: text.map(Into::into), hex })?;
                    self.done.blobs += 1;
                }
                Found::Missing | Found::Damaged(_) => self.done.lost += 1,
            }
        }
        // Only bytes that come back from a line exactly as they are may stand in it raw.
        let raw = serde_json::from_slice::<&RawValue>(&bytes)
            .ok()
            .filter(|raw| raw.get().len() == bytes.len() && !bytes.contains(&b'\n'));
        let hex = if raw.is_none() { Some(to_hex(&bytes)) } else { None };
        self.line(&RecordLine { seq, prev, hash, record: raw, hex })?;
        self.done.records += 1;
        Ok(())
    }
}
