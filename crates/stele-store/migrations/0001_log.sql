-- One row a session. The list of sessions reads this table and nothing else.
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    -- What a fork continues: the session that owns record `parent_seq`.
    parent TEXT,
    parent_seq INTEGER,
    cwd TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    title TEXT,
    model TEXT,
    turns INTEGER NOT NULL DEFAULT 0,
    steps INTEGER NOT NULL DEFAULT 0,
    cost INTEGER,
    -- Changed in the transaction that adds the record, so that a removed tail is noticed.
    head_seq INTEGER NOT NULL,
    head_hash BLOB NOT NULL,
    -- Who holds the session's lock, or held it last. The operating system's lock decides.
    fence INTEGER NOT NULL,
    holder_pid INTEGER NOT NULL,
    holder_host TEXT NOT NULL,
    holder_since INTEGER NOT NULL,
    -- 1: removed, but a fork still needs a span of it.
    hidden INTEGER NOT NULL DEFAULT 0,
    -- 1: made from a file that was damaged, or whose id was taken.
    imported INTEGER NOT NULL DEFAULT 0
) STRICT;

-- `id` is the session's key times 2^40 plus the record's seq: one session lies together, in order.
CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    prev BLOB NOT NULL,
    hash BLOB NOT NULL,
    bytes BLOB NOT NULL
) STRICT;

-- `hash` names the content, `bytes` is its zstd frame, `seal` covers the row as it is stored.
CREATE TABLE blobs (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    len INTEGER NOT NULL,
    seal BLOB NOT NULL,
    bytes BLOB NOT NULL
) STRICT;

-- Streamed text of the attempt in flight, so that a crash loses little of it.
CREATE TABLE partials (
    key INTEGER PRIMARY KEY,
    step INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    text TEXT NOT NULL
) STRICT;

-- Transcript text under its record's id, a session's title under the last id of its range.
CREATE VIRTUAL TABLE search USING fts5(text, tokenize = 'porter unicode61 remove_diacritics 2');
INSERT INTO search (search, rank) VALUES ('secure-delete', 1);
