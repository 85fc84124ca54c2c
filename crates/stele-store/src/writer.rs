//! The one writer of a session.

use std::sync::Arc;

use rusqlite::Connection;
use stele_core::{Hash, Millis, Parent, RecordBytes, Seq, SessionId};

use crate::blob;
use crate::database::{Database, Durability, Index};
use crate::lineage::{genesis, hash_at, row_id};
use crate::lock::{Holder, SessionLock};
use crate::search;
use crate::session::{FullRow, Head, Summary, find, signed};
use crate::{Error, Result};

/// A record to append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// Its position: the one after the head.
    pub seq: Seq,
    /// Its bytes, and the blobs they cite.
    pub record: RecordBytes,
    /// Transcript text to find it by; none for records that a person never reads.
    pub search: Option<String>,
}

/// How a new session begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The folder it works in.
    pub cwd: String,
    /// When, by the driver's clock.
    pub created: Millis,
    /// In a fork: the record it continues, of any session with that record in its log.
    pub parent: Option<Parent>,
}

/// Streamed text of an attempt that was not answered yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// The step.
    pub step: u64,
    /// The attempt of the step.
    pub attempt: u32,
    /// What came so far.
    pub text: String,
}

/// The one writer of a session; dropping it gives the session's lock back.
#[derive(Debug)]
pub struct Writer {
    database: Arc<Database>,
    lock: SessionLock,
    id: SessionId,
    stage: Stage,
    fence: i64,
}

/// Whether the session is in the database yet.
#[derive(Debug)]
enum Stage {
    /// Not before its first append.
    New { start: Start, holder: Holder, origin: Origin },
    /// With a row and a head.
    Stored { key: i64, head: Head, title: Option<String> },
}

/// What the first record of a new session follows.
#[derive(Clone, Copy, Debug)]
struct Origin {
    /// In a fork: the key of the session that holds the last record it shares, and that record.
    parent: Option<(i64, Seq)>,
    prev: Hash,
}

impl Origin {
    fn first(&self) -> Seq {
        self.parent.map_or(Seq(0), |(_, seq)| seq.next())
    }
}

impl Writer {
    /// The writer of a session that does not exist yet. A fork's parent is resolved to the session
    /// that holds the record, so that its span is known to be needed.
    pub(crate) fn create(database: Arc<Database>, mut lock: SessionLock, id: SessionId, start: Start) -> Result<Self> {
        lock.stored = false;
        let (start, origin) = database.read(|connection| {
            if find(connection, &database.path, &id)?.is_some() {
                return Err(Error::Exists(id.clone()));
            }
            resolve_origin(connection, &database, &id, start)
        })?;
        let stage = Stage::New { start, holder: Holder::this_process(), origin };
        Ok(Self { database, lock, id, stage, fence: 1 })
    }

    /// The writer of a session that is in the database: raises the fence and says who holds it.
    pub(crate) fn take(database: Arc<Database>, lock: SessionLock, id: SessionId) -> Result<Self> {
        let holder = Holder::this_process();
        let row = database.transact(Durability::Normal, |connection| {
            let Some(row) = find(connection, &database.path, &id)?.filter(|row| !row.hidden) else {
                return Err(Error::NotFound { wanted: id.to_string(), nearest: Vec::new() });
            };
            connection
                .prepare_cached(
                    "UPDATE sessions SET fence = fence + 1, holder_pid = ?2, holder_host = ?3, holder_since = ?4 \
                     WHERE key = ?1",
                )
                .and_then(|mut statement| statement.execute((row.key, holder.pid, &holder.host, holder.since.0)))
                .map_err(|error| Error::writing(&database.path, &error))?;
            Ok(row)
        })?;
        let FullRow { key, public, fence, .. } = row;
        let stage = Stage::Stored { key, head: public.head, title: public.title };
        Ok(Self { database, lock, id, stage, fence: fence + 1 })
    }

    /// The session.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Its last record; `None` before the first append.
    #[must_use]
    pub fn head(&self) -> Option<Head> {
        match &self.stage {
            Stage::New { .. } => None,
            Stage::Stored { head, .. } => Some(*head),
        }
    }

    /// The position of the next record.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        match &self.stage {
            Stage::New { origin, .. } => origin.first(),
            Stage::Stored { head, .. } => head.seq.next(),
        }
    }

    /// What a fork continues, as its first record should say: the session that holds the record. Also
    /// `None` once the first append is done.
    #[must_use]
    pub fn parent(&self) -> Option<&Parent> {
        match &self.stage {
            Stage::New { start, .. } => start.parent.as_ref(),
            Stage::Stored { .. } => None,
        }
    }

    /// Appends records in one transaction: their blobs first, then the records with their hashes,
    /// then the head. Everything is stored, or nothing; a writer whose append failed may try again.
    /// Only the search index may be left out, where it is damaged.
    ///
    /// # Errors
    /// `log.write_failed` when the disk is full or cannot be written, `log.fenced` when another writer
    /// took the session over, `log.order` for records that do not follow the head.
    pub fn append(&mut self, batch: &[Append], durability: Durability, summary: Option<&Summary>) -> Result<Head> {
        let expected = self.next_seq();
        let in_order = (expected.0..).zip(batch).all(|(seq, append)| append.seq.0 == seq);
        if !in_order || (batch.is_empty() && self.head().is_none()) {
            return Err(Error::Order { session: self.id.clone(), expected });
        }
        let path = &self.database.path;
        let write = |error: rusqlite::Error| Error::writing(path, &error);
        let (key, head) = self.database.transact_indexed(durability, |connection, index| {
            let (key, mut head, title) = match &self.stage {
                Stage::New { start, holder, origin } => {
                    // The row comes first, so that the records know their key; its head is set below.
                    let head = Head { seq: Seq(0), hash: origin.prev };
                    (self.insert(connection, start, holder, origin)?, head, None)
                }
                Stage::Stored { key, head, title } => (*key, *head, title.as_deref()),
            };
            for append in batch {
                head = store_record(connection, key, head.hash, append).map_err(write)?;
                if let Some(text) = append.search.as_ref().filter(|_| index == Index::Write) {
                    search::index(connection, row_id(key, append.seq), text)
                        .map_err(|error| Error::indexing(path, &error))?;
                }
            }
            self.move_head(connection, key, head, summary)?;
            if let Some(summary) = summary
                && summary.title.as_deref() != title
                && index == Index::Write
            {
                search::index_title(connection, key, summary.title.as_deref())
                    .map_err(|error| Error::indexing(path, &error))?;
            }
            Ok((key, head))
        })?;
        let title = match (summary, &mut self.stage) {
            (Some(summary), _) => summary.title.clone(),
            (None, Stage::Stored { title, .. }) => title.take(),
            (None, Stage::New { .. }) => None,
        };
        self.stage = Stage::Stored { key, head, title };
        self.lock.stored = true;
        Ok(head)
    }

    /// Keeps what an attempt streamed so far, in place of what was kept before.
    ///
    /// # Errors
    /// `log.write_failed`, `log.fenced`; `log.order` before the session's first append.
    pub fn put_partial(&mut self, partial: &Partial) -> Result<()> {
        let key = self.stored_key()?;
        self.database.transact(Durability::Normal, |connection| {
            let stored = connection
                .prepare_cached(
                    "INSERT INTO partials (key, step, attempt, text) \
                     SELECT key, ?3, ?4, ?5 FROM sessions WHERE key = ?1 AND fence = ?2 \
                     ON CONFLICT (key) DO UPDATE SET step = ?3, attempt = ?4, text = ?5",
                )
                .and_then(|mut statement| {
                    statement.execute((key, self.fence, signed(partial.step), partial.attempt, &partial.text))
                })
                .map_err(|error| Error::writing(&self.database.path, &error))?;
            if stored == 0 { Err(Error::Fenced(self.id.clone())) } else { Ok(()) }
        })
    }

    /// Drops what was kept of an attempt, once its answer is in the log or was given up.
    ///
    /// # Errors
    /// `log.write_failed`; `log.order` before the session's first append.
    pub fn clear_partial(&mut self) -> Result<()> {
        let key = self.stored_key()?;
        self.database.transact(Durability::Normal, |connection| {
            connection
                .prepare_cached("DELETE FROM partials WHERE key = ?1")
                .and_then(|mut statement| statement.execute([key]))
                .map(drop)
                .map_err(|error| Error::writing(&self.database.path, &error))
        })
    }

    fn stored_key(&self) -> Result<i64> {
        match &self.stage {
            Stage::Stored { key, .. } => Ok(*key),
            Stage::New { .. } => Err(Error::Order { session: self.id.clone(), expected: self.next_seq() }),
        }
    }

    fn insert(&self, connection: &Connection, start: &Start, holder: &Holder, origin: &Origin) -> Result<i64> {
        let write = |error: rusqlite::Error| Error::writing(&self.database.path, &error);
        if let (Some((key, seq)), Some(parent)) = (origin.parent, &start.parent)
            && hash_at(connection, key, seq).map_err(write)? != Some(origin.prev)
        {
            // Removed since the writer was made.
            return Err(Error::ForkPoint { session: parent.session.clone(), seq });
        }
        // The head is moved in the same transaction, once the records are there.
        let head = Head { seq: Seq(0), hash: origin.prev };
        let row = NewRow { id: &self.id, start, head, holder, fence: self.fence, hidden: false, imported: false };
        insert_row(connection, &row).map_err(write)
    }

    /// Moves the head from where this writer left it, and only from there.
    fn move_head(&self, connection: &Connection, key: i64, head: Head, summary: Option<&Summary>) -> Result<()> {
        let write = |error: rusqlite::Error| Error::writing(&self.database.path, &error);
        let from = match &self.stage {
            Stage::Stored { head, .. } => *head,
            Stage::New { origin, .. } => Head { seq: Seq(0), hash: origin.prev },
        };
        let place = (key, self.fence, signed(from.seq.0), from.hash.0, signed(head.seq.0), head.hash.0);
        let moved = match summary {
            None => connection
                .prepare_cached(
                    "UPDATE sessions SET head_seq = ?5, head_hash = ?6 \
                     WHERE key = ?1 AND fence = ?2 AND head_seq = ?3 AND head_hash = ?4",
                )
                .and_then(|mut statement| statement.execute(place)),
            Some(summary) => connection
                .prepare_cached(
                    "UPDATE sessions SET head_seq = ?5, head_hash = ?6, updated = ?7, title = ?8, model = ?9, \
                     turns = ?10, steps = ?11, cost = ?12, cwd = ?13 \
                     WHERE key = ?1 AND fence = ?2 AND head_seq = ?3 AND head_hash = ?4",
                )
                .and_then(|mut statement| {
                    let (key, fence, from_seq, from_hash, seq, hash) = place;
                    statement.execute((
                        key,
                        fence,
                        from_seq,
                        from_hash,
                        seq,
                        hash,
                        summary.updated.0,
                        &summary.title,
                        &summary.model,
                        signed(summary.turns),
                        signed(summary.steps),
                        summary.cost.map(|cost| signed(cost.0)),
                        &summary.cwd,
                    ))
                }),
        }
        .map_err(write)?;
        if moved == 0 {
            return Err(Error::Fenced(self.id.clone()));
        }
        Ok(())
    }
}

/// A session's row as it is first stored.
pub(crate) struct NewRow<'a> {
    pub(crate) id: &'a SessionId,
    pub(crate) start: &'a Start,
    pub(crate) head: Head,
    pub(crate) holder: &'a Holder,
    pub(crate) fence: i64,
    pub(crate) hidden: bool,
    pub(crate) imported: bool,
}

/// Stores a session's row; gives its key.
pub(crate) fn insert_row(connection: &Connection, row: &NewRow<'_>) -> rusqlite::Result<i64> {
    let parent = row.start.parent.as_ref();
    connection
        .prepare_cached(
            "INSERT INTO sessions (id, parent, parent_seq, cwd, created, updated, head_seq, head_hash, fence, \
             holder_pid, holder_host, holder_since, hidden, imported) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?
        .insert((
            row.id.as_str(),
            parent.map(|parent| parent.session.as_str()),
            parent.map(|parent| signed(parent.seq.0)),
            &row.start.cwd,
            row.start.created.0,
            signed(row.head.seq.0),
            row.head.hash.0,
            row.fence,
            row.holder.pid,
            &row.holder.host,
            row.holder.since.0,
            row.hidden,
            row.imported,
        ))
}

/// Replaces what the driver says about a session.
pub(crate) fn update_summary(connection: &Connection, key: i64, summary: &Summary) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE sessions SET updated = ?2, title = ?3, model = ?4, turns = ?5, steps = ?6, cost = ?7, cwd = ?8 \
             WHERE key = ?1",
        )?
        .execute((
            key,
            summary.updated.0,
            &summary.title,
            &summary.model,
            signed(summary.turns),
            signed(summary.steps),
            summary.cost.map(|cost| signed(cost.0)),
            &summary.cwd,
        ))
        .map(drop)
}

/// Stores one record after the one with this hash: its blobs, itself.
fn store_record(connection: &Connection, key: i64, prev: Hash, append: &Append) -> rusqlite::Result<Head> {
    let texts = append.record.blobs.iter().map(|(hash, text)| (hash, text.as_bytes()));
    let files = append.record.files.iter().map(|(hash, bytes)| (hash, &bytes[..]));
    for (hash, content) in texts.chain(files) {
        if !blob::exists(connection, hash)? {
            let packed =
                blob::pack(*hash, content).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
            blob::put(connection, &packed)?;
        }
    }
    let hash = Hash::of_record(&prev, append.record.bytes.as_bytes());
    insert_record(connection, key, append.seq, &prev, &hash, append.record.bytes.as_bytes())?;
    Ok(Head { seq: append.seq, hash })
}

/// Stores a record's row.
pub(crate) fn insert_record(
    connection: &Connection,
    key: i64,
    seq: Seq,
    prev: &Hash,
    hash: &Hash,
    bytes: &[u8],
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO records (id, prev, hash, bytes) VALUES (?1, ?2, ?3, ?4)")?
        .execute((row_id(key, seq), prev.0, hash.0, bytes))
        .map(drop)
}

/// Finds the session that holds the record a fork continues.
fn resolve_origin(
    connection: &Connection,
    database: &Database,
    id: &SessionId,
    mut start: Start,
) -> Result<(Start, Origin)> {
    let Some(asked) = start.parent.take() else {
        return Ok((start, Origin { parent: None, prev: genesis(id) }));
    };
    let visible = crate::session::find_visible(connection, &database.path, &asked.session)?;
    let segments = crate::lineage::lineage(connection, &database.path, &visible.public.id)?;
    let read = |error: rusqlite::Error| Error::reading(&database.path, &error);
    for segment in segments {
        if (segment.first..=segment.last).contains(&asked.seq)
            && let Some(prev) = hash_at(connection, segment.key, asked.seq).map_err(read)?
        {
            start.parent = Some(Parent { session: segment.session, seq: asked.seq });
            return Ok((start, Origin { parent: Some((segment.key, asked.seq)), prev }));
        }
    }
    Err(Error::ForkPoint { session: asked.session, seq: asked.seq })
}
