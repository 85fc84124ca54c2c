//! The store: one folder of sessions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::OptionalExtension;
use stele_core::{Hash, Seq, SessionId};

use crate::blob;
use crate::database::{Access, Database, connect_reader};
use crate::lineage::lineage;
use crate::lock::{SessionLock, locks_exclude};
use crate::read::Records;
use crate::schema::{MIGRATIONS, check_for_inspection, check_kind, open_for_writing};
use crate::session::{self, Filter, SessionRow};
use crate::writer::{Partial, Start, Writer};
use crate::{Error, Hit, Result, search};

/// A folder of sessions, open. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) root: PathBuf,
    pub(crate) database: Arc<Database>,
}

impl Store {
    /// Opens a folder for reading and writing; makes it when it is not there, and migrates an older
    /// database after keeping a copy of it beside it.
    ///
    /// # Errors
    /// `log.newer`, `log.unwritable`, `log.unreadable` (also for a file that is no database),
    /// `log.write_failed` when the disk is full.
    pub fn open(root: &Path) -> Result<Self> {
        let path = Self::file(root);
        let connection = open_for_writing(root, &path, MIGRATIONS)?;
        Ok(Self { root: root.to_owned(), database: Arc::new(Database::writing(path, connection)) })
    }

    /// Opens a folder for inspection: nothing in it is changed, created or migrated. `None` when no
    /// store was ever made there, or when whoever made it was stopped before its first format stood.
    ///
    /// # Errors
    /// `log.unreadable`, `log.newer`, `log.older`.
    pub fn inspect(root: &Path) -> Result<Option<Self>> {
        let path = Self::file(root);
        if matches!(path.try_exists(), Ok(false)) {
            return Ok(None);
        }
        check_kind(&path)?;
        let connection = connect_reader(&path, Access::Inspect)?;
        if !check_for_inspection(&connection, &path, MIGRATIONS)? {
            return Ok(None);
        }
        Ok(Some(Self { root: root.to_owned(), database: Arc::new(Database::inspecting(path, connection)) }))
    }

    /// The database file of a folder. Its write-ahead log, of the same name with `-wal`, belongs to it.
    #[must_use]
    pub fn file(root: &Path) -> PathBuf {
        root.join("stele.db")
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.database.path
    }

    /// Whether this file system's locks keep a second writer out. Where they do not, nothing should be
    /// written.
    ///
    /// # Errors
    /// It could not be tried, since no lock file can be made there.
    pub fn locks_work(&self) -> std::io::Result<bool> {
        locks_exclude(&self.locks())
    }

    pub(crate) fn locks(&self) -> PathBuf {
        self.root.join("locks")
    }

    /// A writer for a new session, which holds its lock from now on. Nothing is in the database before
    /// its first append.
    ///
    /// # Errors
    /// `log.exists`, `log.locked`; for a fork `log.not_found` and `log.fork_point`.
    pub fn create(&self, id: SessionId, start: Start) -> Result<Writer> {
        let lock = self.lock(&id)?;
        Writer::create(Arc::clone(&self.database), lock, id, start)
    }

    /// The writer of a session.
    ///
    /// # Errors
    /// `log.locked` with the holder, `log.not_found` with the nearest ids.
    pub fn writer(&self, id: &SessionId) -> Result<Writer> {
        // Looked up first: a lock file for an id that does not exist would be litter.
        self.session(id)?;
        let lock = self.lock(id)?;
        Writer::take(Arc::clone(&self.database), lock, id.clone())
    }

    pub(crate) fn lock(&self, id: &SessionId) -> Result<SessionLock> {
        if self.database.access == Access::Inspect {
            return Err(Error::ReadOnly);
        }
        match SessionLock::acquire(&self.locks(), id)? {
            Some(lock) => Ok(lock),
            None => {
                let row = self.database.read(|connection| session::find(connection, self.path(), id))?;
                Err(Error::Locked { session: id.clone(), holder: row.map(|row| row.holder) })
            }
        }
    }

    /// The one session whose id is, or starts with, this text.
    ///
    /// # Errors
    /// `log.not_found` with the nearest ids, `log.ambiguous` with some of those it matches.
    pub fn resolve(&self, text: &str) -> Result<SessionId> {
        self.database.read(|connection| session::resolve(connection, self.path(), text))
    }

    /// What is known of a session without reading its records.
    ///
    /// # Errors
    /// `log.not_found` with the nearest ids.
    pub fn session(&self, id: &SessionId) -> Result<SessionRow> {
        self.database.read(|connection| session::find_visible(connection, self.path(), id)).map(|row| row.public)
    }

    /// The sessions, the last used first. No record is read.
    ///
    /// # Errors
    /// `log.unreadable`, `log.corrupt`.
    pub fn sessions(&self, filter: &Filter) -> Result<Vec<SessionRow>> {
        self.database.read(|connection| session::list(connection, self.path(), filter))
    }

    /// The session that was last used in a folder.
    ///
    /// # Errors
    /// `log.unreadable`, `log.corrupt`.
    pub fn latest_in(&self, cwd: &str) -> Result<Option<SessionRow>> {
        let filter = Filter { cwd: Some(cwd.to_owned()), limit: Some(1) };
        Ok(self.sessions(&filter)?.into_iter().next())
    }

    /// The records of a session from some position on, a fork's ancestors included, up to its head now.
    ///
    /// # Errors
    /// `log.not_found`, `log.corrupt` when a fork's parent is gone. The records themselves come, and
    /// fail, one by one.
    pub fn read(&self, id: &SessionId, from: Seq) -> Result<Records> {
        let segments = self.database.read(|connection| {
            session::find_visible(connection, self.path(), id)?;
            lineage(connection, self.path(), id)
        })?;
        Ok(Records::new(Arc::clone(&self.database), segments, from))
    }

    /// The text of a blob; `None` when nothing has this name.
    ///
    /// # Errors
    /// `log.corrupt` when it is not the content its name says, or is no text.
    pub fn blob(&self, hash: &Hash) -> Result<Option<Arc<str>>> {
        self.database.read(|connection| blob::text(connection, self.path(), hash))
    }

    /// The bytes of a blob, also of one that is no text, such as the damaged part of an imported file.
    ///
    /// # Errors
    /// `log.corrupt` when they are not what its name says.
    pub fn blob_bytes(&self, hash: &Hash) -> Result<Option<Vec<u8>>> {
        self.database.read(|connection| blob::bytes(connection, self.path(), hash))
    }

    /// What the attempt in flight streamed, as far as it was kept.
    ///
    /// # Errors
    /// `log.not_found`, `log.unreadable`.
    pub fn partial(&self, id: &SessionId) -> Result<Option<Partial>> {
        self.database.read(|connection| {
            let row = session::find_visible(connection, self.path(), id)?;
            connection
                .prepare_cached("SELECT step, attempt, text FROM partials WHERE key = ?1")
                .and_then(|mut statement| {
                    statement
                        .query_row([row.key], |row| {
                            let step = row.get::<_, i64>(0)?.unsigned_abs();
                            Ok(Partial { step, attempt: row.get(1)?, text: row.get(2)? })
                        })
                        .optional()
                })
                .map_err(|error| Error::reading(self.path(), &error))
        })
    }

    /// The best places for a person's query in transcripts and titles. Nothing that is typed is an error.
    ///
    /// # Errors
    /// `log.unreadable`, `log.index_damaged`.
    pub fn search(&self, query: &str, limit: usize) -> Result<Vec<Hit>> {
        self.database.read(|connection| {
            search::find(connection, query, limit).map_err(|error| Error::searching(self.path(), &error))
        })
    }
}
