//! The session log on disk: SQLite with a hash chain, blobs, barriers and a single writer.
//!
//! A [`Store`] is one folder: `stele.db` and `locks/`. It holds sessions; a session is a list of
//! records, which the store knows as bytes and never by their kinds. Records are only ever appended,
//! by the one [`Writer`] that holds the session's lock, in transactions that also move the session's
//! head: its last record and that record's hash. Each hash covers the one before, so a changed, lost
//! or added byte is [found and named](Store::check).
//!
//! Everything here is synchronous; a caller with an event loop gives it a thread.
//!
//! **Invariant:** inspection never writes. Reading, listing, searching, checking and exporting work
//! on a store opened with [`Store::inspect`], beside a writer, and on a read-only disk.

mod blob;
mod check;
mod collect;
mod database;
mod error;
mod export;
mod import;
mod lineage;
mod lock;
mod log_file;
mod read;
mod reindex;
mod salvage;
mod schema;
mod search;
mod session;
mod store;
#[cfg(test)]
mod store_tests;
mod transfer;
mod writer;

pub use check::{Damage, Fault};
pub use collect::{Collect, Collection, Removal, Removed};
pub use database::Durability;
pub use error::{Error, Result};
pub use export::Exported;
pub use import::{Imported, Outcome, SearchText};
pub use lock::Holder;
pub use log_file::Warning;
pub use read::{Blobs, Records};
pub use search::Hit;
pub use session::{Filter, Head, SessionRow, Summary};
pub use store::Store;
pub use writer::{Append, Partial, Start, Writer};
