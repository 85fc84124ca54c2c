//! Append, open, read, check: against the same writes and reads done with SQLite alone.
//!
//! `cargo bench -p stele-store` prints a table. Ratios within one run count; absolute times on a shared
//! machine do not. `STELE_BENCH_ROUNDS` (default 3) repeats each measurement; the best one is shown.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::path::Path;
use std::time::{Duration, Instant};

use stele_core::{Hash, Millis, RecordBytes, Seq, SessionId};
use stele_store::{Append, Durability, Start, Store, Summary};

const RECORDS: u64 = 100_000;

fn id(n: u64) -> SessionId {
    SessionId::new(format!("01900000-0000-7000-8000-{n:012x}")).unwrap()
}

fn start() -> Start {
    Start { cwd: "/work".to_owned(), created: Millis(0), parent: None }
}

/// A record of about 600 bytes; every third one is transcript text.
fn append(seq: u64) -> Append {
    let text =
        format!("message {seq} talks about the parser, the cache and the file number {} ", seq * 7919 % 1000).repeat(6);
    let bytes = format!(
        r#"{{"v":1,"seq":{seq},"ts":1700000000000,"kind":"user/message","turn":1,"data":{{"source":"person","content":[{{"type":"text","text":"{text}"}}]}}}}"#
    );
    let search = seq.is_multiple_of(3).then(|| text[..200].to_owned());
    Append { seq: Seq(seq), record: RecordBytes { bytes, blobs: Vec::new(), files: Vec::new() }, search }
}

fn summary(seq: u64) -> Summary {
    Summary {
        updated: Millis(i64::try_from(seq).unwrap()),
        title: Some("A title".to_owned()),
        model: Some("a-model".to_owned()),
        turns: 1,
        steps: seq,
        cost: None,
        cwd: "/work".to_owned(),
    }
}

/// The least time of a few rounds.
fn best(mut round: impl FnMut() -> Duration) -> Duration {
    let rounds = std::env::var("STELE_BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(3);
    (0..rounds).map(|_| round()).min().unwrap()
}

fn raw(root: &Path) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(root.join("raw.db")).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; \
             CREATE TABLE records (id INTEGER PRIMARY KEY, prev BLOB, hash BLOB, bytes BLOB); \
             CREATE TABLE sessions (key INTEGER PRIMARY KEY, head_seq INTEGER, head_hash BLOB, title TEXT, steps INTEGER); \
             CREATE VIRTUAL TABLE search USING fts5(text, tokenize = 'porter unicode61 remove_diacritics 2'); \
             INSERT INTO sessions VALUES (1, 0, zeroblob(32), 'A title', 0);",
        )
        .unwrap();
    connection
}

/// The same rows, written by hand.
fn raw_append(connection: &rusqlite::Connection, batch: &[Append]) {
    let run = |sql: &str| connection.prepare_cached(sql).unwrap().execute([]).map(drop).unwrap();
    run("BEGIN IMMEDIATE");
    for append in batch {
        let hash = [7_u8; 32];
        let row = i64::try_from(append.seq.0).unwrap();
        connection
            .prepare_cached("INSERT INTO records VALUES (?1, ?2, ?3, ?4)")
            .unwrap()
            .execute((row, hash, hash, append.record.bytes.as_bytes()))
            .unwrap();
        if let Some(text) = &append.search {
            connection
                .prepare_cached("INSERT INTO search (rowid, text) VALUES (?1, ?2)")
                .unwrap()
                .execute((row, text))
                .unwrap();
        }
        connection
            .prepare_cached("UPDATE sessions SET head_seq = ?1, head_hash = ?2, steps = ?1 WHERE key = 1")
            .unwrap()
            .execute((row, hash))
            .unwrap();
    }
    run("COMMIT");
}

/// Appends batches with both and prints the times per batch.
fn compare(name: &str, batches: &[Vec<Append>], durability: Durability) {
    let ours = best(|| {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Store::open(folder.path()).unwrap().create(id(1), start()).unwrap();
        let begin = Instant::now();
        for batch in batches {
            writer.append(batch, durability, Some(&summary(batch[0].seq.0))).unwrap();
        }
        begin.elapsed()
    });
    let theirs = best(|| {
        let folder = tempfile::tempdir().unwrap();
        let connection = raw(folder.path());
        if durability == Durability::Barrier {
            connection.execute_batch("PRAGMA synchronous=FULL").unwrap();
        }
        let begin = Instant::now();
        for batch in batches {
            raw_append(&connection, batch);
        }
        begin.elapsed()
    });
    let per = |time: Duration| time.as_secs_f64() * 1e6 / batches.len() as f64;
    println!(
        "| {name} | {:.1} µs | {:.1} µs | {:.2} |",
        per(ours),
        per(theirs),
        ours.as_secs_f64() / theirs.as_secs_f64()
    );
}

fn main() {
    println!("| append | store | SQLite alone | ratio |\n|---|---|---|---|");
    let single: Vec<Vec<Append>> = (0..5_000).map(|seq| vec![append(seq)]).collect();
    compare("one record a commit", &single, Durability::Normal);
    compare("one record a durable commit", &single[..300], Durability::Barrier);
    let many: Vec<Append> = (0..20_000).map(append).collect();
    let batches: Vec<Vec<Append>> = many.chunks(100).map(<[Append]>::to_vec).collect();
    compare("100 records a commit", &batches, Durability::Normal);

    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let mut writer = store.create(id(1), start()).unwrap();
    let mut bytes = 0;
    for first in (0..RECORDS).step_by(1_000) {
        let batch: Vec<Append> = (first..first + 1_000).map(append).collect();
        bytes += batch.iter().map(|append| append.record.bytes.len()).sum::<usize>();
        writer.append(&batch, Durability::Normal, Some(&summary(first))).unwrap();
    }
    drop(writer);
    let megabytes = bytes as f64 / 1e6;
    println!("\n| {RECORDS} records, {megabytes:.0} MB | time | rate |\n|---|---|---|");
    let show = |name: &str, time: Duration| {
        println!("| {name} | {:.1} ms | {:.0} MB/s |", time.as_secs_f64() * 1e3, megabytes / time.as_secs_f64());
    };
    show("read", best(|| timed(|| assert_eq!(store.read(&id(1), Seq(0)).unwrap().flatten().count() as u64, RECORDS))));
    show("check", best(|| timed(|| assert_eq!(store.check(&id(1)).unwrap(), []))));
    let mut file = Vec::new();
    show(
        "export",
        best(|| {
            timed(|| {
                file.clear();
                store.export(&id(1), &mut file).unwrap();
            })
        }),
    );
    show(
        "import",
        best(|| {
            let folder = tempfile::tempdir().unwrap();
            let other = Store::open(folder.path()).unwrap();
            timed(|| {
                other.import(&mut file.as_slice(), id(2), &|_, _, _| None).unwrap();
            })
        }),
    );
    let hashed = timed(|| {
        let mut prev = Hash::of(b"");
        for seq in 0..RECORDS / 10 {
            prev = Hash::of_record(&prev, append(seq).record.bytes.as_bytes());
        }
        assert_ne!(prev, Hash::of(b""));
    });
    println!("\n(making and hashing a tenth of the records: {:.1} ms)", hashed.as_secs_f64() * 1e3);
    let root = folder.path().to_owned();
    let open = best(|| timed(|| drop(Store::open(&root).unwrap())));
    let first = best(|| {
        timed(|| {
            let store = Store::open(&root).unwrap();
            drop(store.latest_in("/work").unwrap());
            drop(store.writer(&id(1)).unwrap());
        })
    });
    println!(
        "\nopen an existing database: {:.2} ms; and find and lock the last session: {:.2} ms",
        ms(open),
        ms(first)
    );
    for n in 10..3_010 {
        store.create(id(n), start()).unwrap().append(&[append(0)], Durability::Normal, Some(&summary(n))).unwrap();
    }
    let list = best(|| timed(|| assert_eq!(store.sessions(&stele_store::Filter::default()).unwrap().len(), 3_001)));
    let latest = best(|| timed(|| assert!(store.latest_in("/work").unwrap().is_some())));
    println!("list 3,001 sessions: {:.2} ms; the latest of a folder: {:.2} ms", ms(list), ms(latest));
    let search = best(|| timed(|| assert_eq!(store.search("parser cache numb", 20).unwrap().len(), 20)));
    println!("search: {:.2} ms", ms(search));
}

fn timed(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
