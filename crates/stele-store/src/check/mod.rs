//! Checking a log: the chain, the head, gaps, and every blob that is cited. Linear in the log.

mod damage;

use std::collections::{HashSet, VecDeque};

use rusqlite::Connection;
use stele_core::{Hash, Record, Seq, SessionId};

use crate::blob::{self, Found};
use crate::database::connect_reader;
use crate::lineage::{Segment, TITLE, genesis, hash_at, lineage};
use crate::read::{RawRow, page};
use crate::session::{self, FullRow, Head};
use crate::{Error, Result, Store, collect, search};

pub use damage::{Damage, Fault};

/// Rows that are tried one by one where a page of the database cannot be read.
const PROBE: u64 = 512;
/// Damaged places of the database file that are named, at most.
const PAGE_FAULTS: usize = 20;

impl Store {
    /// Everything that is damaged in a session's log, its ancestors' spans included; nothing when it
    /// is as it was written.
    ///
    /// # Errors
    /// `log.not_found`; `log.unreadable` or `log.corrupt` when the database is damaged so far that its
    /// rows cannot be listed.
    pub fn check(&self, id: &SessionId) -> Result<Vec<Fault>> {
        self.database.read(|connection| {
            let mut check = Check { store: self, connection, seen: HashSet::new(), faults: Vec::new() };
            let row = match session::find_visible(connection, self.path(), id) {
                Ok(row) => row,
                Err(error) => {
                    check.orphans()?;
                    let faults: Vec<Fault> =
                        check.faults.into_iter().filter(|fault| fault.session.as_ref() == Some(id)).collect();
                    return if faults.is_empty() { Err(error) } else { Ok(faults) };
                }
            };
            match lineage(connection, self.path(), id) {
                Ok(segments) => {
                    let origin = segments.first().map(|segment| genesis(&segment.session));
                    check.span(&segments, origin, row.public.head)?;
                }
                // The parent's row is gone: what can be checked is the session's own part.
                Err(Error::Corrupt { .. }) => check.own(&row)?,
                Err(error) => return Err(error),
            }
            Ok(check.faults)
        })
    }

    /// Everything that is damaged in any session, hidden spans included, in the search index, and in the
    /// database itself. A damaged blob is named once.
    ///
    /// # Errors
    /// `log.unreadable`; `log.corrupt` when not even the list of sessions can be begun.
    pub fn check_all(&self) -> Result<Vec<Fault>> {
        self.database.read(|connection| {
            let mut check = Check { store: self, connection, seen: HashSet::new(), faults: Vec::new() };
            for row in session::all(connection, self.path())? {
                match row {
                    Ok(row) => {
                        let result = check.hidden(&row).and_then(|()| check.own(&row));
                        check.note(Some(&row.public.id), result)?;
                    }
                    Err(detail) => check.faults.push(Fault { session: None, damage: Damage::Row { detail } }),
                }
            }
            let result = check.orphans();
            check.note(None, result)?;
            check.pages()?;
            Ok(check.faults)
        })
    }
}

struct Check<'a> {
    store: &'a Store,
    connection: &'a Connection,
    /// Blobs that were looked at.
    seen: HashSet<Hash>,
    faults: Vec<Fault>,
}

/// A record that waits for the next one, which says what its hash was when it was written.
struct Pending {
    session: SessionId,
    row: RawRow,
}

impl Check<'_> {
    fn fault(&mut self, session: &SessionId, damage: Damage) {
        self.faults.push(Fault { session: Some(session.clone()), damage });
    }

    fn read<T>(&self, result: rusqlite::Result<T>) -> Result<T> {
        result.map_err(|error| Error::reading(self.store.path(), &error))
    }

    /// A removed session stays, hidden, for its forks alone.
    fn hidden(&mut self, row: &FullRow) -> Result<()> {
        if row.hidden {
            let sql = "SELECT 1 FROM sessions WHERE parent = ?1";
            let needed = self.connection.prepare_cached(sql).and_then(|mut rows| rows.exists([row.public.id.as_str()]));
            if !self.read(needed)? {
                self.fault(&row.public.id, Damage::Hidden);
            }
        }
        Ok(())
    }

    /// Checks a session's own records, from its start or from where it was forked.
    fn own(&mut self, row: &FullRow) -> Result<()> {
        let id = &row.public.id;
        let (first, origin) = match &row.public.parent {
            None => (Seq(0), Some(genesis(id))),
            Some(parent) => {
                let ahead = session::find(self.connection, self.store.path(), &parent.session)?;
                let hash = match ahead {
                    Some(ahead) => self.read(hash_at(self.connection, ahead.key, parent.seq))?,
                    None => None,
                };
                if hash.is_none() {
                    self.fault(id, Damage::Parent { session: parent.session.clone(), seq: parent.seq });
                }
                (parent.seq.next(), hash)
            }
        };
        let segment = Segment { session: id.clone(), key: row.key, first, last: row.public.head.seq };
        self.span(&[segment], origin, row.public.head)
    }

    /// Checks records that follow each other, up to the head of the session they belong to.
    fn span(&mut self, segments: &[Segment], origin: Option<Hash>, head: Head) -> Result<()> {
        let mut trusted = origin;
        let mut pending: Option<Pending> = None;
        for (at, segment) in segments.iter().enumerate() {
            let ends_here = at + 1 == segments.len();
            let mut rest = segment.clone();
            rest.last = if ends_here { Seq(TITLE.0 - 1) } else { segment.last };
            let mut expected = segment.first;
            let mut beyond: Option<(Seq, Seq)> = None;
            loop {
                let rows = self.rows(&rest, segment.last)?;
                let Some(last) = rows.back().map(|row| row.seq) else { break };
                for row in rows {
                    if row.seq > segment.last {
                        beyond = Some((beyond.map_or(row.seq, |(first, _)| first), row.seq));
                        continue;
                    }
                    if row.seq > expected {
                        self.settle(pending.take(), None, &mut trusted)?;
                        trusted = None;
                        let last = Seq(row.seq.0 - 1);
                        self.fault(&segment.session, Damage::Missing { first: expected, last });
                    } else {
                        self.settle(pending.take(), row.prev, &mut trusted)?;
                    }
                    expected = row.seq.next();
                    pending = Some(Pending { session: segment.session.clone(), row });
                }
                rest.first = last.next();
            }
            if expected <= segment.last {
                self.settle(pending.take(), None, &mut trusted)?;
                trusted = None;
                let (first, last) = (expected, segment.last);
                let damage = if ends_here { Damage::Tail { first, last } } else { Damage::Missing { first, last } };
                self.fault(&segment.session, damage);
            }
            if ends_here {
                let complete = pending.is_some();
                self.settle(pending.take(), Some(head.hash), &mut trusted)?;
                if complete && trusted.is_some_and(|hash| hash != head.hash) {
                    self.fault(&segment.session, Damage::Head { seq: head.seq });
                }
                if let Some((first, last)) = beyond {
                    self.fault(&segment.session, Damage::Beyond { first, last });
                }
            }
        }
        Ok(())
    }

    /// The next rows. Where the database itself cannot be read, each row that should be there is tried
    /// alone, and one that fails is given back empty.
    fn rows(&self, rest: &Segment, last: Seq) -> Result<VecDeque<RawRow>> {
        match page(self.connection, rest) {
            Ok(rows) => Ok(rows),
            Err(error) if rest.first > last => Err(Error::reading(self.store.path(), &error)),
            Err(_) => {
                let until = last.0.min(rest.first.0 + PROBE);
                let mut rows = VecDeque::new();
                for seq in (rest.first.0..=until).map(Seq) {
                    match page(self.connection, &Segment { first: seq, last: seq, ..rest.clone() }) {
                        Ok(found) => rows.extend(found),
                        Err(_) => rows.push_back(RawRow { seq, prev: None, hash: None, bytes: None }),
                    }
                }
                Ok(rows)
            }
        }
    }

    /// Judges a record: by the hash before it, by its own, and by what the record after it (or the
    /// head) says its hash was. Two that agree tell which of the three is damaged.
    fn settle(&mut self, pending: Option<Pending>, witness: Option<Hash>, trusted: &mut Option<Hash>) -> Result<()> {
        let Some(Pending { session, row }) = pending else { return Ok(()) };
        let seq = row.seq;
        let Some(bytes) = row.bytes else {
            self.fault(&session, Damage::Record { seq });
            *trusted = witness.or(row.hash);
            return Ok(());
        };
        if row.prev.is_none() || (trusted.is_some() && row.prev != *trusted) {
            self.fault(&session, Damage::Prev { seq });
        }
        let after_gap = trusted.is_none();
        let computed = trusted.or(row.prev).map(|prev| Hash::of_record(&prev, &bytes));
        let whole = match computed {
            Some(computed) if row.hash == Some(computed) => {
                *trusted = Some(computed);
                true
            }
            Some(computed) if witness == Some(computed) && !after_gap => {
                self.fault(&session, Damage::Hash { seq });
                *trusted = Some(computed);
                true
            }
            _ => {
                self.fault(&session, Damage::Record { seq });
                *trusted = witness.or(row.hash);
                false
            }
        };
        self.blobs(&session, seq, &bytes, whole)
    }

    /// Checks the blobs a record cites. A damaged record may name blobs that never were, so of those
    /// only what is there is judged.
    fn blobs(&mut self, session: &SessionId, seq: Seq, bytes: &[u8], whole: bool) -> Result<()> {
        if cites_nothing(seq, bytes) {
            return Ok(());
        }
        let cites = match Record::cites(seq, bytes) {
            Ok(cites) => cites,
            Err(error) => {
                if whole {
                    self.fault(session, Damage::Envelope { seq, detail: error.to_string() });
                }
                return Ok(());
            }
        };
        for blob in cites {
            if self.seen.contains(&blob) {
                continue;
            }
            let found = match blob::get(self.connection, &blob) {
                Ok(found) => found,
                Err(error) => Found::Damaged(error.to_string()),
            };
            match found {
                Found::Missing if !whole => continue,
                Found::Missing => self.fault(session, Damage::BlobMissing { seq, blob }),
                Found::Damaged(detail) => self.fault(session, Damage::BlobDamaged { seq, blob, detail }),
                Found::Whole(_) => {}
            }
            self.seen.insert(blob);
        }
        Ok(())
    }

    /// Makes damage that ended one part of the check a fault, so that the others are checked.
    fn note(&mut self, session: Option<&SessionId>, result: Result<()>) -> Result<()> {
        match result {
            Err(Error::Corrupt { detail }) => {
                self.faults.push(Fault { session: session.cloned(), damage: Damage::Database { detail } });
                Ok(())
            }
            result => result,
        }
    }

    /// Lets SQLite check the pages of the database and the search index, which no hash covers.
    fn pages(&mut self) -> Result<()> {
        let unusable = self.read(search::unusable(self.connection))?;
        let Some(detail) = unusable else { return self.page_faults(None) };
        // With such an index SQLite checks nothing of the whole database: its other tables are checked one by one.
        self.faults.push(Fault { session: None, damage: Damage::Search { detail } });
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'search%'";
        let tables = self.connection.prepare(sql).and_then(|mut statement| {
            let names = statement.query_map([], |row| row.get::<_, String>(0))?;
            names.collect::<rusqlite::Result<Vec<_>>>()
        });
        for table in self.read(tables)? {
            self.page_faults(Some(&table))?;
        }
        Ok(())
    }

    /// The damaged pages of a table, or of all.
    fn page_faults(&mut self, table: Option<&str>) -> Result<()> {
        let path = self.store.path();
        let of = table.map_or_else(|| PAGE_FAULTS.to_string(), |table| format!("\"{}\"", table.replace('"', "\"\"")));
        // A connection that was used before compares the index with totals that it read then.
        let mut lines = Vec::new();
        let checked = connect_reader(path, self.store.database.access).and_then(|connection| {
            let read = |error: rusqlite::Error| Error::reading(path, &error);
            let mut statement = connection.prepare(&format!("PRAGMA quick_check({of})")).map_err(read)?;
            for line in statement.query_map([], |row| row.get::<_, String>(0)).map_err(read)? {
                lines.push(line.map_err(read)?);
            }
            Ok(())
        });
        // Damage also ends this check, but mostly after it was named.
        if lines.is_empty() || !matches!(checked, Err(Error::Corrupt { .. })) {
            self.note(None, checked)?;
        }
        for line in lines.iter().flat_map(|line| line.lines()).filter(|line| *line != "ok" && !line.starts_with("***"))
        {
            let table = self.table(line);
            let search = line.to_ascii_lowercase().contains("fts5")
                || table.as_ref().is_some_and(|name| name.starts_with("search"));
            let detail = table.map_or_else(|| line.to_owned(), |table| format!("{line} (table {table})"));
            let damage = if search { Damage::Search { detail } } else { Damage::Database { detail } };
            self.faults.push(Fault { session: None, damage });
        }
        Ok(())
    }

    /// The table that a line of SQLite's check is about: `Tree 5 page 7: …` names its first page.
    fn table(&self, line: &str) -> Option<String> {
        let root: i64 = line.strip_prefix("Tree ")?.split(' ').next()?.parse().ok()?;
        let sql = "SELECT tbl_name FROM sqlite_schema WHERE rootpage = ?1";
        self.connection.query_row(sql, [root], |row| row.get(0)).ok()
    }

    /// Finds records whose session's row is gone. A lock file that is left may tell the session's id:
    /// the hash of it is what the first record has as `prev`.
    fn orphans(&mut self) -> Result<()> {
        let found = self.read(collect::orphans(self.connection))?;
        if found.is_empty() {
            return Ok(());
        }
        let names = collect::lock_names(&self.store.locks());
        for orphans in found {
            let session = names.iter().find(|id| orphans.prev == Some(genesis(id))).cloned();
            let damage = Damage::Orphans { first: orphans.first, last: orphans.last };
            self.faults.push(Fault { session, damage });
        }
        Ok(())
    }
}

/// True for a record as this program writes it that cites no blob, told from the start of its envelope:
/// `{"v":1,"seq":…,"ts":…,"kind":…,"turn":…,"step":…,"data":`. Most records are such, and parsing each
/// would take longer than hashing it.
fn cites_nothing(seq: Seq, bytes: &[u8]) -> bool {
    let start = bytes.get(..bytes.len().min(160)).unwrap_or_default();
    let Some(rest) = start.strip_prefix(format!("{{\"v\":1,\"seq\":{seq},").as_bytes()) else { return false };
    let data = rest.windows(8).position(|window| window == b",\"data\":");
    data.is_some_and(|data| !rest[..data].windows(7).any(|window| window == b"\"cites\"")) && bytes.ends_with(b"}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &str, expect: bool) {
        assert_eq!(cites_nothing(Seq(7), bytes.as_bytes()), expect);
        let parsed = Record::cites(Seq(7), bytes.as_bytes());
        assert!(!expect || parsed.is_ok_and(|cites| cites.is_empty()), "{bytes}");
    }

    #[test]
    fn only_a_record_that_cites_nothing_is_passed_over() {
        let hash = Hash::of(b"");
        check(r#"{"v":1,"seq":7,"ts":0,"kind":"turn/started","turn":1,"data":{"cites":["x"]}}"#, true);
        check(&format!(r#"{{"v":1,"seq":7,"ts":0,"kind":"a","cites":["{hash}"],"data":{{}}}}"#), false);
        check(&format!(r#"{{"v":1,"seq":7,"ts":0,"kind":"a","turn":1,"step":2,"cites":["{hash}"],"data":0}}"#), false);
        check(r#"{"v":1,"seq":8,"ts":0,"kind":"a","data":{}}"#, false);
        check(r#"{"seq":7,"v":1,"ts":0,"kind":"a","data":{}}"#, false);
        check(r#"{"v":1,"seq":7,"#, false);
    }
}
