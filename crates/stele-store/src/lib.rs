//! The session log on disk: SQLite with a hash chain, blobs, barriers and a single writer.
