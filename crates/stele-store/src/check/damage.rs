//! What can be wrong with a log, and how it is said.

use std::fmt;

use stele_core::{Hash, Seq, SessionId};

/// One thing that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The session it is in; `None` for records whose session's row is gone and whose id nothing tells.
    pub session: Option<SessionId>,
    /// What it is.
    pub damage: Damage,
}

/// What is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A record's bytes are not the ones that were hashed, or cannot be read.
    Record {
        /// Its position.
        seq: Seq,
    },
    /// The stored hash of the record before is wrong at a record.
    Prev {
        /// Its position.
        seq: Seq,
    },
    /// The stored hash of a record is wrong; its bytes are right.
    Hash {
        /// Its position.
        seq: Seq,
    },
    /// Records are missing between others.
    Missing {
        /// The first of them.
        first: Seq,
        /// The last of them.
        last: Seq,
    },
    /// The last records, up to the head, are missing.
    Tail {
        /// The first of them.
        first: Seq,
        /// The last of them: the head.
        last: Seq,
    },
    /// There are records after the head.
    Beyond {
        /// The first of them.
        first: Seq,
        /// The last of them.
        last: Seq,
    },
    /// The session's row does not hold the hash of its last record.
    Head {
        /// Position of the last record.
        seq: Seq,
    },
    /// A record is the one that was hashed, and still is none.
    Envelope {
        /// Its position.
        seq: Seq,
        /// What is wrong with it.
        detail: String,
    },
    /// A cited blob is not there.
    BlobMissing {
        /// A record that cites it.
        seq: Seq,
        /// Its name.
        blob: Hash,
    },
    /// A cited blob is not the content its name says.
    BlobDamaged {
        /// A record that cites it.
        seq: Seq,
        /// Its name.
        blob: Hash,
        /// What is wrong with it.
        detail: String,
    },
    /// What a fork continues is not there.
    Parent {
        /// The session it continues.
        session: SessionId,
        /// The last record it shares with it.
        seq: Seq,
    },
    /// The row of a session does not hold what was written into it.
    Row {
        /// What is wrong with it.
        detail: String,
    },
    /// A session is hidden, as one is that was removed, and nothing needs it.
    Hidden,
    /// Records are there, but the row of their session is gone.
    Orphans {
        /// The first of them.
        first: Seq,
        /// The last of them.
        last: Seq,
    },
    /// A part of the database itself cannot be read.
    Database {
        /// What is wrong with it.
        detail: String,
    },
    /// The search index is damaged. No record is; a [collection](Store::collect) makes it again.
    Search {
        /// What is wrong with it.
        detail: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.session {
            None if matches!(self.damage, Damage::Database { .. } | Damage::Search { .. }) => self.damage.fmt(f),
            Some(session) => write!(f, "session {session}: {}", self.damage),
            None => write!(f, "a session whose id is lost: {}", self.damage),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record { seq } => write!(f, "record {seq} is damaged"),
            Self::Prev { seq } => write!(f, "record {seq} names a wrong hash as the one before it"),
            Self::Hash { seq } => write!(f, "the stored hash of record {seq} is damaged"),
            Self::Missing { first, last } => write!(f, "{} missing", Span(*first, *last)),
            Self::Tail { first, last } => write!(f, "{} missing from the end", Span(*first, *last)),
            Self::Beyond { first, last } => write!(f, "{} after the head", Span(*first, *last)),
            Self::Head { seq } => write!(f, "the session's head is not the hash of its last record, {seq}"),
            Self::Envelope { seq, detail } => write!(f, "record {seq} cannot be read: {detail}"),
            Self::BlobMissing { seq, blob } => write!(f, "blob {blob}, cited by record {seq}, is missing"),
            Self::BlobDamaged { seq, blob, detail } => {
                write!(f, "blob {blob}, cited by record {seq}, is damaged: {detail}")
            }
            Self::Parent { session, seq } => {
                write!(f, "it continues record {seq} of session {session}, which is not there")
            }
            Self::Row { detail } => write!(f, "its row cannot be read: {detail}"),
            Self::Hidden => {
                f.write_str("it is hidden as if it was removed, but no fork continues it, so its row was changed")
            }
            Self::Orphans { first, last } => {
                write!(f, "its row is gone; {} still there", Span(*first, *last))
            }
            Self::Database { detail } => write!(f, "a part of the database cannot be read: {detail}"),
            Self::Search { detail } => {
                write!(f, "the search index is damaged, no record is; `stele sessions gc` makes it again: {detail}")
            }
        }
    }
}

/// Records, as a sentence names them, with its verb.
struct Span(Seq, Seq);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == self.1 {
            write!(f, "record {} is", self.0)
        } else {
            write!(f, "records {} to {} are", self.0, self.1)
        }
    }
}
