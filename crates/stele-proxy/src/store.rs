//! What was recorded: one SQLite file that only its owner may read.
//!
//! A segment is stored once, by the hash of its bytes; a request is a row that names its segments in order. Bodies are
//! kept as they were sent, without their keys, which are in headers that are not kept; nothing in them is redacted.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stele_core::{BodyDigest, Hash, Millis, Usage, Wire, Zone};

use crate::prompt::{Context, Mark, Segment};
use crate::record::{Ending, Recorded};
use crate::{Error, Result};

/// Name of the database in its folder.
pub(crate) const FILE: &str = "requests.db";
/// Format of the database.
const FORMAT: u32 = 1;
/// How long a transaction waits for another process.
const BUSY: Duration = Duration::from_secs(10);

const SCHEMA: &str = "
CREATE TABLE segment (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    len INTEGER NOT NULL,
    -- Shorter than len when it is compressed (zstd).
    bytes BLOB NOT NULL
);
CREATE TABLE request (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    head TEXT NOT NULL,
    -- Compressed JSON: [segment id, zone, label, mark] each.
    segments BLOB NOT NULL
);
CREATE INDEX request_at ON request(at);
PRAGMA user_version = 1;
";

/// The columns of a request that nothing searches.
#[derive(Serialize, Deserialize)]
struct Head {
    first_byte_ms: Option<u64>,
    total_ms: Option<u64>,
    wire: Wire,
    base_url: String,
    model: String,
    agent: Option<String>,
    status: Option<u16>,
    ending: Ending,
    body: BodyDigest,
    context: Context,
    usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    miss_reason: Option<String>,
    parameters: Map<String, Value>,
}

/// Segments that were read already, or why they could not be.
type Known = HashMap<i64, Result<(Arc<[u8]>, Hash), String>>;

pub(crate) type SegmentRow = (i64, Zone, String, Option<Mark>);

/// The recorded requests of one folder.
#[derive(Debug)]
pub struct Store {
    pub(crate) path: PathBuf,
    pub(crate) connection: Connection,
}

/// What a store holds.
#[derive(Debug, Default)]
pub struct Recordings {
    /// The requests that could be read, in the order in which they were stored.
    pub requests: Vec<Recorded>,
    /// What could not be read, one sentence each.
    pub damaged: Vec<String>,
}

impl Store {
    /// Opens the store of a folder for recording; folder and file are made when they are not there.
    ///
    /// # Errors
    /// The file is damaged, from a newer release, or may not be written. It is left as it is.
    pub fn open(folder: &Path) -> Result<Self> {
        let store = Self::connect(folder)?;
        if store.format()? == 0 {
            let create = format!("BEGIN IMMEDIATE; {SCHEMA} COMMIT");
            store.connection.execute_batch(&create).or_else(|error| {
                // Another process may have been first.
                let _ = store.connection.execute_batch("ROLLBACK");
                if store.format()? == FORMAT { Ok(()) } else { Err(Error::sqlite(&store.path, &error)) }
            })?;
        }
        store.check()
    }

    /// Opens the store of a folder for writing to what it holds already.
    ///
    /// # Errors
    /// Those of [`open`](Self::open); nothing was ever recorded in the file.
    pub(crate) fn open_existing(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        if path.metadata().is_ok_and(|data| data.len() == 0) {
            return Err(Error::no_recordings(path));
        }
        Self::connect(folder)?.check()
    }

    fn connect(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        check_kind(&path)?;
        make_private(folder, &path).map_err(|error| Error::file(&path, &error))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags).map_err(|error| Error::sqlite(&path, &error))?;
        let store = Self { path, connection };
        store.prepare().map_err(|error| Error::sqlite(&store.path, &error))?;
        Ok(store)
    }

    /// Opens the store of a folder for reading.
    ///
    /// # Errors
    /// There is none, or it is damaged, from a newer release, or may not be read.
    pub fn inspect(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Err(Error::Nothing(folder.to_owned()));
        }
        check_kind(&path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags).map_err(|error| Error::sqlite(&path, &error))?;
        connection.busy_timeout(BUSY).map_err(|error| Error::sqlite(&path, &error))?;
        Self { path, connection }.check()
    }

    fn prepare(&self) -> rusqlite::Result<()> {
        self.connection.busy_timeout(BUSY)?;
        // What is forgotten later is given back without a second copy of the file: this has to be said before the file
        // has any content. A short log of changes leaves less behind that a full disk keeps from being taken in.
        self.connection.execute_batch(
            "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; \
             PRAGMA wal_autocheckpoint = 256",
        )
    }

    fn format(&self) -> Result<u32> {
        let found = self.connection.query_row("PRAGMA user_version", [], |row| row.get(0));
        found.map_err(|error| Error::sqlite(&self.path, &error))
    }

    fn check(self) -> Result<Self> {
        match self.format()? {
            FORMAT => Ok(self),
            0 => Err(Error::no_recordings(self.path)),
            found => Err(Error::Newer { path: self.path, found, known: FORMAT }),
        }
    }

    /// Stores a request and gives it its id; the one it has is not looked at.
    ///
    /// # Errors
    /// It could not be written; then nothing of it is stored.
    pub fn add(&mut self, request: &Recorded) -> Result<u64> {
        let add = |transaction: &rusqlite::Transaction<'_>| -> rusqlite::Result<i64> {
            let mut rows: Vec<SegmentRow> = Vec::with_capacity(request.segments.len());
            for segment in &request.segments {
                let id = keep_segment(transaction, segment)?;
                rows.push((id, segment.zone, segment.label.clone(), segment.mark));
            }
            let head = Head {
                first_byte_ms: request.first_byte_ms,
                total_ms: request.total_ms,
                wire: request.wire,
                base_url: request.base_url.clone(),
                model: request.model.clone(),
                agent: request.agent.clone(),
                status: request.status,
                ending: request.ending,
                body: request.body,
                context: request.context,
                usage: request.usage,
                miss_reason: request.miss_reason.clone(),
                parameters: request.parameters.clone(),
            };
            let unwritable =
                |error: &dyn std::error::Error| rusqlite::Error::ToSqlConversionFailure(error.to_string().into());
            let head = serde_json::to_string(&head).map_err(|error| unwritable(&error))?;
            let rows = serde_json::to_vec(&rows).map_err(|error| unwritable(&error))?;
            let rows = zstd::bulk::compress(&rows, 3).map_err(|error| unwritable(&error))?;
            let mut insert =
                transaction.prepare_cached("INSERT INTO request (at, head, segments) VALUES (?1, ?2, ?3)")?;
            insert.insert(params![request.at.0, head, rows])
        };
        let id = (|| {
            let transaction = self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let id = add(&transaction)?;
            transaction.commit()?;
            Ok(id)
        })();
        let id = id.map_err(|error| Error::sqlite(&self.path, &error))?;
        Ok(u64::try_from(id).unwrap_or_default())
    }

    /// Reads everything that was recorded at or after a time. What is damaged is named and left out; the rest is there.
    ///
    /// # Errors
    /// The file as a whole cannot be read.
    pub fn recordings(&self, since: Option<Millis>) -> Result<Recordings> {
        let failed = |error: rusqlite::Error| Error::sqlite(&self.path, &error);
        let mut select = self
            .connection
            .prepare("SELECT id, at, head, segments FROM request WHERE at >= ?1 ORDER BY id")
            .map_err(failed)?;
        let mut rows = select.query([since.map_or(i64::MIN, |since| since.0)]).map_err(failed)?;
        let mut found = Recordings::default();
        let mut known = Known::new();
        while let Some(row) = rows.next().map_err(failed)? {
            let id: i64 = row.get(0).map_err(failed)?;
            let read = (|| -> Result<Recorded, String> {
                let text = |error: rusqlite::Error| error.to_string();
                let head =
                    serde_json::from_str(&row.get::<_, String>(2).map_err(text)?).map_err(|error| error.to_string())?;
                let segments = unpack(&row.get::<_, Vec<u8>>(3).map_err(text)?)?;
                self.request(id, Millis(row.get(1).map_err(text)?), head, segments, &mut known)
            })();
            match read {
                Ok(request) => found.requests.push(request),
                Err(cause) => found.damaged.push(format!("request {id} cannot be read: {cause}")),
            }
        }
        Ok(found)
    }

    fn request(
        &self,
        id: i64,
        at: Millis,
        head: Head,
        rows: Vec<SegmentRow>,
        known: &mut Known,
    ) -> Result<Recorded, String> {
        let mut segments = Vec::with_capacity(rows.len());
        for (segment, zone, label, mark) in rows {
            let (bytes, hash) = known.entry(segment).or_insert_with(|| self.segment(segment)).clone()?;
            segments.push(Segment { zone, label, bytes, hash, mark });
        }
        Ok(Recorded {
            id: u64::try_from(id).unwrap_or_default(),
            at,
            first_byte_ms: head.first_byte_ms,
            total_ms: head.total_ms,
            wire: head.wire,
            base_url: head.base_url,
            model: head.model,
            agent: head.agent,
            status: head.status,
            ending: head.ending,
            body: head.body,
            segments,
            parameters: head.parameters,
            context: head.context,
            usage: head.usage,
            miss_reason: head.miss_reason,
            cut: None,
            session: None,
        })
    }

    /// The bytes of a segment, if they are those that were stored.
    fn segment(&self, id: i64) -> Result<(Arc<[u8]>, Hash), String> {
        let read = |connection: &Connection| {
            let mut select = connection.prepare_cached("SELECT hash, len, bytes FROM segment WHERE id = ?1")?;
            let columns = |row: &rusqlite::Row<'_>| {
                Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?, row.get::<_, Vec<u8>>(2)?))
            };
            select.query_row([id], columns).optional()
        };
        let found = read(&self.connection).map_err(|error| error.to_string())?;
        let Some((hash, len, bytes)) = found else { return Err(format!("its segment {id} is missing")) };
        let len = usize::try_from(len).unwrap_or(0);
        let bytes = if bytes.len() < len {
            zstd::bulk::decompress(&bytes, len).map_err(|error| format!("its segment {id} is damaged: {error}"))?
        } else {
            bytes
        };
        let own = Hash::of(&bytes);
        if own.0 != hash.as_slice() {
            return Err(format!("its segment {id} is damaged: its bytes are not those that were stored"));
        }
        Ok((bytes.into(), own))
    }
}

fn keep_segment(connection: &Connection, segment: &Segment) -> rusqlite::Result<i64> {
    let mut select = connection.prepare_cached("SELECT id FROM segment WHERE hash = ?1")?;
    if let Some(id) = select.query_row([segment.hash.0.as_slice()], |row| row.get(0)).optional()? {
        return Ok(id);
    }
    let packed = zstd::bulk::compress(&segment.bytes, 3).ok().filter(|packed| packed.len() < segment.bytes.len());
    let bytes = packed.as_deref().unwrap_or(&segment.bytes);
    let len = i64::try_from(segment.bytes.len()).unwrap_or(i64::MAX);
    let mut insert = connection.prepare_cached("INSERT INTO segment (hash, len, bytes) VALUES (?1, ?2, ?3)")?;
    insert.insert(params![segment.hash.0.as_slice(), len, bytes])
}

/// Longest list of segments that is unpacked, in bytes: what says it is longer is damaged.
const ROWS_MAX: u64 = 256 * 1024 * 1024;

pub(crate) fn unpack(packed: &[u8]) -> Result<Vec<SegmentRow>, String> {
    let damaged = |error: &dyn std::fmt::Display| format!("its list of segments is damaged: {error}");
    let decoder = zstd::stream::read::Decoder::new(packed).map_err(|error| damaged(&error))?;
    let mut rows = Vec::new();
    decoder.take(ROWS_MAX).read_to_end(&mut rows).map_err(|error| damaged(&error))?;
    serde_json::from_slice(&rows).map_err(|error| damaged(&error))
}

/// Refuses what cannot be a database before it is opened: opening a named pipe would wait for its other end.
fn check_kind(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            let cause = std::io::Error::other("it is not a file; move it away, or set STELE_HOME to another folder");
            Err(Error::file(path, &cause))
        }
        _ => Ok(()),
    }
}

/// Makes folder and file so that only their owner can read them.
fn make_private(folder: &Path, path: &Path) -> std::io::Result<()> {
    if !folder.exists() {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
    }
    drop(file);
    Ok(())
}
