//! Full-text search over transcript text and titles.

use rusqlite::{Connection, ErrorCode};
use stele_core::{Seq, SessionId};

use crate::lineage::{TITLE, row_id, seq_of};
use crate::session::signed;

/// Words of a query that count; more are left out.
const MAX_TERMS: usize = 32;

/// A place where a query was found, the best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The session.
    pub session: SessionId,
    /// The record; `None` for a hit in the title.
    pub seq: Option<Seq>,
    /// Some words around it.
    pub excerpt: String,
}

/// Makes a text findable under a row id.
pub(crate) fn index(connection: &Connection, row_id: i64, text: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("INSERT INTO search (rowid, text) VALUES (?1, ?2)")?.execute((row_id, text)).map(drop)
}

/// Makes a session findable by its title and no longer by the title before.
pub(crate) fn index_title(connection: &Connection, key: i64, title: Option<&str>) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM search WHERE rowid = ?1")?.execute([row_id(key, TITLE)])?;
    title.map_or(Ok(()), |title| index(connection, row_id(key, TITLE), title))
}

/// Makes a session, or what of it lies from some seq on, no longer findable.
pub(crate) fn forget(connection: &Connection, key: i64, from: Seq) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM search WHERE rowid BETWEEN ?1 AND ?2")?
        .execute((row_id(key, from), row_id(key, TITLE)))
        .map(drop)
}

/// Whether what SQLite said of the index is damage of it, and no doing of the disk or of another process.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    // A table of the index that is gone is an unknown error to SQLite; a row that is there already breaks a constraint.
    let codes = [ErrorCode::DatabaseCorrupt, ErrorCode::Unknown, ErrorCode::ConstraintViolation];
    error.sqlite_error_code().is_some_and(|code| codes.contains(&code))
}

/// Whether the index is as it was written, and about the texts it holds. It only reads, so no writer waits for it; the
/// connection must be a new one, since one that was used before compares with totals that it read then.
///
/// # Errors
/// Not for damage, but where nothing can be said: the database is busy, the disk fails.
pub(crate) fn is_sound(connection: &Connection) -> rusqlite::Result<bool> {
    if unusable(connection)?.is_some() {
        return Ok(false);
    }
    match connection.query_row("PRAGMA quick_check(search)", [], |row| row.get::<_, String>(0)) {
        Ok(line) => Ok(line == "ok"),
        Err(error) if is_damage(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The tables that the index is made of.
const TABLES: [&str; 6] = ["search", "search_data", "search_idx", "search_content", "search_docsize", "search_config"];

/// What keeps the index from being used at all: tables of it that are gone, or that it cannot begin with.
pub(crate) fn unusable(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let mut there = connection.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?1")?;
    for table in TABLES {
        if !there.exists([table])? {
            return Ok(Some(format!("table {table} is missing")));
        }
    }
    match connection.prepare("SELECT rowid FROM search") {
        Ok(_) => Ok(None),
        Err(error) if is_damage(&error) => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Puts a new index, which is empty, in the place of the one that is there.
///
/// Neither `rebuild` nor `DROP TABLE` gets past a damaged page, since both walk all pages. So the tables
/// are struck from the schema, and their pages are given back by the next `VACUUM`.
pub(crate) fn replace(connection: &Connection) -> rusqlite::Result<()> {
    let names = TABLES.map(|table| format!("'{table}'")).join(", ");
    let struck = connection.execute_batch(&format!(
        "PRAGMA writable_schema=ON; DELETE FROM main.sqlite_schema WHERE tbl_name IN ({names})"
    ));
    // This also forgets the schema as it was, and must come whatever happened.
    connection.execute_batch("PRAGMA writable_schema=RESET")?;
    struck?;
    connection.execute_batch(
        "CREATE VIRTUAL TABLE main.search USING fts5(text, tokenize = 'porter unicode61 remove_diacritics 2'); \
         INSERT INTO search (search, rank) VALUES ('secure-delete', 1)",
    )
}

/// The best places for a query; none for a query without a word.
pub(crate) fn find(connection: &Connection, query: &str, limit: usize) -> rusqlite::Result<Vec<Hit>> {
    let Some(expression) = expression(query) else { return Ok(Vec::new()) };
    let mut statement = connection.prepare_cached(
        "SELECT search.rowid, sessions.id, snippet(search, 0, '', '', '…', 16) FROM search \
         JOIN sessions ON sessions.key = search.rowid >> 40 AND sessions.hidden = 0 \
         WHERE search MATCH ?1 ORDER BY search.rank, search.rowid DESC LIMIT ?2",
    )?;
    let rows = statement.query_map((expression, signed(limit as u64)), |row| {
        let id: i64 = row.get(0)?;
        let session = SessionId::new(row.get::<_, String>(1)?)
            .map_err(|error| rusqlite::Error::FromSqlConversionFailure(1, rusqlite::types::Type::Text, error.into()))?;
        Ok(Hit { session, seq: Some(seq_of(id)).filter(|seq| *seq != TITLE), excerpt: row.get(2)? })
    })?;
    rows.collect()
}

/// A person's query as an FTS5 expression: every word has to be there, the last one as the start of a
/// word; words between double quotes stand side by side. Whatever else is typed is text to look for.
fn expression(query: &str) -> Option<String> {
    let mut terms = Vec::new();
    for (at, part) in query.split('"').enumerate() {
        if at % 2 == 1 {
            terms.push(part.trim());
        } else {
            terms.extend(part.split_whitespace());
        }
    }
    terms.retain(|term| term.chars().any(char::is_alphanumeric));
    terms.truncate(MAX_TERMS);
    let open_ended = !query.ends_with('"') && !query.ends_with(char::is_whitespace);
    let quoted: Vec<String> = terms.iter().map(|term| format!("\"{}\"", term.replace('\0', " "))).collect();
    if quoted.is_empty() {
        return None;
    }
    Some(quoted.join(" ") + if open_ended { "*" } else { "" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(query: &str, expect: Option<&str>) {
        assert_eq!(expression(query).as_deref(), expect);
    }

    #[test]
    fn words_are_quoted_and_the_last_one_is_a_start() {
        check("cache miss", Some(r#""cache" "miss"*"#));
        check("cache miss ", Some(r#""cache" "miss""#));
        check(r#"the "prompt cache" miss"#, Some(r#""the" "prompt cache" "miss"*"#));
        check(r#"an "open quote"#, Some(r#""an" "open quote"*"#));
    }

    #[test]
    fn operators_are_text() {
        check("a AND (b OR c* NEAR/2", Some(r#""a" "AND" "(b" "OR" "c*" "NEAR/2"*"#));
        check("col:x ^y -z", Some(r#""col:x" "^y" "-z"*"#));
    }

    #[test]
    fn a_query_without_a_word_finds_nothing() {
        check("", None);
        check("  \"\" -- * ", None);
    }

    #[test]
    fn what_the_disk_or_another_process_does_is_no_damage() {
        let said = |code| rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        for code in [rusqlite::ffi::SQLITE_CORRUPT, rusqlite::ffi::SQLITE_CORRUPT_VTAB, rusqlite::ffi::SQLITE_ERROR] {
            assert!(is_damage(&said(code)), "{code}");
        }
        use rusqlite::ffi::{
            SQLITE_BUSY, SQLITE_FULL, SQLITE_IOERR_READ, SQLITE_LOCKED, SQLITE_NOMEM, SQLITE_READONLY,
        };
        for code in [SQLITE_BUSY, SQLITE_FULL, SQLITE_IOERR_READ, SQLITE_LOCKED, SQLITE_NOMEM, SQLITE_READONLY] {
            assert!(!is_damage(&said(code)), "{code}");
        }
        // Of a database without an index, and of one that another process keeps for itself.
        let connection = searchable();
        assert!(is_sound(&connection).unwrap());
        connection.execute_batch("DROP TABLE search").unwrap();
        assert!(unusable(&connection).unwrap().is_some() && !is_sound(&connection).unwrap());
    }

    fn searchable() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        for step in crate::schema::MIGRATIONS {
            connection.execute_batch(step).unwrap();
        }
        connection
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn no_query_is_a_syntax_error(query in r#"([a-z"*():^{}+,.\-\\\x00 ]|AND|OR|NOT|NEAR|é|漢|🙂){0,12}"#) {
            prop_assert!(find(&searchable(), &query, 10).is_ok());
        }
    }
}
