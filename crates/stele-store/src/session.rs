//! The rows of sessions: what the list shows, without reading a record.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, OptionalExtension, Row};
use stele_core::{Hash, Micros, Millis, Parent, Seq, SessionId};

use crate::lock::Holder;
use crate::{Error, Result};

/// The last record of a log: a copy kept elsewhere proves later that nothing before it changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its position.
    pub seq: Seq,
    /// Its hash, which covers every record before it.
    pub hash: Hash,
}

/// What a session's row says about it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// The folder it worked in. An attribute, not a key: a renamed folder keeps its sessions.
    pub cwd: String,
    /// When it was created.
    pub created: Millis,
    /// When its last append was made, by the driver's clock.
    pub updated: Millis,
    /// Its title, once it has one.
    pub title: Option<String>,
    /// The model it last used.
    pub model: Option<String>,
    /// Turns so far.
    pub turns: u64,
    /// Steps so far.
    pub steps: u64,
    /// What it cost so far; `None` when a part of it has no known price.
    pub cost: Option<Micros>,
    /// Its last record.
    pub head: Head,
    /// In a fork: what it continues.
    pub parent: Option<Parent>,
    /// True for a session that came from a file: nothing it says was allowed here.
    pub imported: bool,
}

/// What the driver says about a session with an append; it replaces what was said before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The driver's time.
    pub updated: Millis,
    /// The title, once there is one.
    pub title: Option<String>,
    /// The model in use.
    pub model: Option<String>,
    /// Turns so far.
    pub turns: u64,
    /// Steps so far.
    pub steps: u64,
    /// Cost so far; `None` when a part of it has no known price.
    pub cost: Option<Micros>,
    /// The folder it works in now.
    pub cwd: String,
}

/// Which sessions to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those of this folder.
    pub cwd: Option<String>,
    /// At most so many; all when absent.
    pub limit: Option<u32>,
}

/// A row with what only the store needs.
#[derive(Clone, Debug)]
pub(crate) struct FullRow {
    pub(crate) key: i64,
    pub(crate) public: SessionRow,
    pub(crate) fence: i64,
    pub(crate) holder: Holder,
    pub(crate) hidden: bool,
}

const COLUMNS: &str = "key, id, parent, parent_seq, cwd, created, updated, title, model, turns, steps, cost, \
     head_seq, head_hash, fence, holder_pid, holder_host, holder_since, hidden, imported";

/// An unsigned number as SQLite has it.
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::unsigned_abs)
}

fn session_id(row: &Row<'_>, column: usize) -> rusqlite::Result<SessionId> {
    SessionId::new(row.get::<_, String>(column)?)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error.into()))
}

fn read_row(row: &Row<'_>) -> rusqlite::Result<FullRow> {
    let parent = match row.get_ref(2)? {
        rusqlite::types::ValueRef::Null => None,
        _ => Some(Parent { session: session_id(row, 2)?, seq: Seq(unsigned(row, 3)?) }),
    };
    Ok(FullRow {
        key: row.get(0)?,
        public: SessionRow {
            id: session_id(row, 1)?,
            parent,
            cwd: row.get(4)?,
            created: Millis(row.get(5)?),
            updated: Millis(row.get(6)?),
            title: row.get(7)?,
            model: row.get(8)?,
            turns: unsigned(row, 9)?,
            steps: unsigned(row, 10)?,
            cost: row.get::<_, Option<i64>>(11)?.map(|cost| Micros(cost.unsigned_abs())),
            head: Head { seq: Seq(unsigned(row, 12)?), hash: Hash(row.get(13)?) },
            imported: row.get(19)?,
        },
        fence: row.get(14)?,
        holder: Holder { pid: row.get(15)?, host: row.get(16)?, since: Millis(row.get(17)?) },
        hidden: row.get(18)?,
    })
}

/// The row of a session, hidden ones included.
pub(crate) fn find(connection: &Connection, path: &Path, id: &SessionId) -> Result<Option<FullRow>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1"))
        .and_then(|mut statement| statement.query_row([id.as_str()], read_row).optional())
        .map_err(|error| unreadable_row(path, &error))
}

/// The row of a session that was not removed.
pub(crate) fn find_visible(connection: &Connection, path: &Path, id: &SessionId) -> Result<FullRow> {
    match find(connection, path, id)?.filter(|row| !row.hidden) {
        Some(row) => Ok(row),
        None => Err(Error::NotFound { wanted: id.to_string(), nearest: nearest(connection, path, id.as_str())? }),
    }
}

/// Every session, hidden ones included, oldest first; for a row that cannot be read, what is wrong. A
/// damaged page ends the list.
pub(crate) fn all(connection: &Connection, path: &Path) -> Result<Vec<Result<FullRow, String>>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM sessions ORDER BY key"))
        .and_then(|mut statement| {
            let mut all = Vec::new();
            for row in statement.query_map([], |row| unless_damaged(read_row(row)))? {
                match row {
                    Ok(row) => all.push(row),
                    Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                        all.push(Err(error.to_string()));
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(all)
        })
        .map_err(|error| unreadable_row(path, &error))
}

/// The sessions to list, the last used first. A row that cannot be read does not hide the others.
pub(crate) fn list(connection: &Connection, path: &Path, filter: &Filter) -> Result<Vec<SessionRow>> {
    let limit = filter.limit.map_or(-1, i64::from);
    let sql = format!(
        "SELECT {COLUMNS} FROM sessions WHERE hidden = 0 AND (?1 IS NULL OR cwd = ?1) \
         ORDER BY updated DESC, key DESC LIMIT ?2"
    );
    connection
        .prepare_cached(&sql)
        .and_then(|mut statement| {
            let rows = statement.query_map((filter.cwd.as_deref(), limit), |row| unless_damaged(read_row(row)))?;
            rows.filter_map(|row| row.map(|row| row.ok().map(|row| row.public)).transpose()).collect()
        })
        .map_err(|error| unreadable_row(path, &error))
}

/// The one session whose id starts like this.
pub(crate) fn resolve(connection: &Connection, path: &Path, text: &str) -> Result<SessionId> {
    let prefix = text.trim().to_ascii_lowercase();
    let matches: Vec<SessionId> = ids(connection, path)?
        .into_iter()
        .filter(|id| !prefix.is_empty() && id.as_str().starts_with(&prefix))
        .collect();
    match matches.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(Error::NotFound { wanted: text.to_owned(), nearest: nearest(connection, path, &prefix)? }),
        [first, ..] if first.as_str() == prefix => Ok(first.clone()),
        several => {
            Err(Error::Ambiguous { prefix: text.to_owned(), matches: several.iter().take(3).cloned().collect() })
        }
    }
}

/// The ids of the sessions that were not removed, the last used first.
fn ids(connection: &Connection, path: &Path) -> Result<Vec<SessionId>> {
    connection
        .prepare_cached("SELECT id FROM sessions WHERE hidden = 0 ORDER BY updated DESC, key DESC")
        .and_then(|mut statement| {
            let rows = statement.query_map([], |row| unless_damaged(session_id(row, 0)))?;
            rows.filter_map(|row| row.map(Result::ok).transpose()).collect()
        })
        .map_err(|error| unreadable_row(path, &error))
}

/// Up to three ids that have most in common with a text, by their starts, then by their use: at least half of it.
fn nearest(connection: &Connection, path: &Path, text: &str) -> Result<Vec<SessionId>> {
    let mut ids = ids(connection, path)?;
    let common = |id: &SessionId| id.as_str().bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
    ids.retain(|id| 2 * common(id) >= text.len().max(1));
    ids.sort_by_key(|id| std::cmp::Reverse(common(id)));
    ids.truncate(3);
    Ok(ids)
}

/// Tells columns that do not hold what was written into them from a failure to read.
fn unless_damaged<T>(read: rusqlite::Result<T>) -> rusqlite::Result<Result<T, String>> {
    match read {
        Ok(row) => Ok(Ok(row)),
        Err(error @ (rusqlite::Error::SqliteFailure(..) | rusqlite::Error::SqlInputError { .. })) => Err(error),
        Err(error) => Ok(Err(error.to_string())),
    }
}

fn unreadable_row(path: &Path, error: &rusqlite::Error) -> Error {
    match error {
        rusqlite::Error::SqliteFailure(..) | rusqlite::Error::SqlInputError { .. } => Error::reading(path, error),
        _ => Error::Corrupt { detail: format!("the row of a session cannot be read: {error}") },
    }
}
