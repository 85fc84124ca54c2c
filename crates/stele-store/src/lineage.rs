//! Where a session's records are: its own, and in a fork those of the sessions it continues.

use rusqlite::{Connection, OptionalExtension};
use stele_core::{Hash, Seq, SessionId};

use crate::session::find;
use crate::{Error, Result};

/// Bits of a record's row id that hold its seq; the rest is the session's key.
const SEQ_BITS: u32 = 40;
/// The last row id of a session's range, where its title is indexed. No record gets there.
pub(crate) const TITLE: Seq = Seq((1 << SEQ_BITS) - 1);

/// The row id of a record.
pub(crate) fn row_id(key: i64, seq: Seq) -> i64 {
    // A seq past 2^40 would need a terabyte of records; it is clamped so that it can match nothing of
    // another session.
    (key << SEQ_BITS) | i64::try_from(seq.0.min(TITLE.0)).unwrap_or(0)
}

/// The seq of a row id.
pub(crate) fn seq_of(row_id: i64) -> Seq {
    Seq(row_id.unsigned_abs() & TITLE.0)
}

/// The session key of a row id.
pub(crate) fn key_of(row_id: i64) -> i64 {
    row_id >> SEQ_BITS
}

/// What the first record of a session that continues nothing has as `prev`.
pub(crate) fn genesis(id: &SessionId) -> Hash {
    Hash::of(id.as_str().as_bytes())
}

/// A run of records that lie in one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) session: SessionId,
    pub(crate) key: i64,
    pub(crate) first: Seq,
    pub(crate) last: Seq,
}

/// The segments of a session from the oldest ancestor down, up to its head. Their seqs run from 0
/// without a gap.
pub(crate) fn lineage(connection: &Connection, path: &std::path::Path, id: &SessionId) -> Result<Vec<Segment>> {
    let mut segments = Vec::new();
    let mut row =
        find(connection, path, id)?.ok_or_else(|| Error::NotFound { wanted: id.to_string(), nearest: Vec::new() })?;
    let mut last = row.public.head.seq;
    loop {
        let Some(parent) = row.public.parent.clone() else {
            segments.push(Segment { session: row.public.id, key: row.key, first: Seq(0), last });
            break;
        };
        segments.push(Segment { session: row.public.id.clone(), key: row.key, first: parent.seq.next(), last });
        let ahead = find(connection, path, &parent.session)?;
        let Some(ahead) = ahead.filter(|ahead| segments.iter().all(|segment| segment.key != ahead.key)) else {
            let detail = format!("session {} continues {}, which is not there", row.public.id, parent.session);
            return Err(Error::Corrupt { detail });
        };
        last = parent.seq;
        row = ahead;
    }
    segments.reverse();
    Ok(segments)
}

/// The stored hash of one record.
pub(crate) fn hash_at(connection: &Connection, key: i64, seq: Seq) -> rusqlite::Result<Option<Hash>> {
    connection
        .prepare_cached("SELECT hash FROM records WHERE id = ?1")?
        .query_row([row_id(key, seq)], |row| row.get::<_, [u8; 32]>(0))
        .optional()
        .map(|hash| hash.map(Hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_ids_give_back_what_made_them() {
        for (key, seq) in [(1, Seq(0)), (1, Seq(7)), (9_000, Seq(1 << 39)), (1 << 22, TITLE)] {
            assert_eq!((key_of(row_id(key, seq)), seq_of(row_id(key, seq))), (key, seq));
        }
    }

    #[test]
    fn a_session_lies_before_the_next_one() {
        assert!(row_id(1, TITLE) < row_id(2, Seq(0)));
    }
}
