//! What the tests stand on: a folder, ids, and records as the driver makes them.

use std::path::Path;
use std::sync::Arc;

use stele_core::{
    CallId, Event, Hash, Millis, Parent, Part, Record, Seq, SessionId, SessionStarted, Source, Stored, ToolResult,
    UserMessage,
};
use stele_store::{Append, Durability, Head, Start, Store, Summary, Writer};
use tempfile::TempDir;

/// A folder with a store in it.
pub struct Bed {
    pub folder: TempDir,
}

impl Bed {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// A store over the folder, as another process would open it.
    pub fn open(&self) -> Store {
        Store::open(self.root()).unwrap()
    }

    /// A session with some records, in the folder `/work`.
    pub fn session(&self, n: u64, records: u64) -> SessionId {
        let mut writer = self.open().create(id(n), start("/work")).unwrap();
        fill(&mut writer, records);
        writer.id().clone()
    }
}

pub fn id(n: u64) -> SessionId {
    SessionId::new(format!("0190{n:04x}-0000-7000-8000-{n:012x}")).unwrap()
}

pub fn start(cwd: &str) -> Start {
    Start { cwd: cwd.to_owned(), created: Millis(1_000), parent: None }
}

pub fn fork_of(session: &SessionId, seq: u64) -> Start {
    Start { parent: Some(Parent { session: session.clone(), seq: stele_core::Seq(seq) }), ..start("/work") }
}

pub fn summary(updated: i64, title: &str) -> Summary {
    Summary {
        updated: Millis(updated),
        title: Some(title.to_owned()),
        model: Some("a-model".to_owned()),
        turns: 1,
        steps: 2,
        cost: None,
        cwd: "/work".to_owned(),
    }
}

/// A record of an event at a position.
pub fn append(seq: u64, event: Event) -> Append {
    let search = match &event {
        Event::UserMessage(message) => {
            message.content.iter().map(|Part::Text { text }| text.as_str().to_owned()).next()
        }
        _ => None,
    };
    let seq = stele_core::Seq(seq);
    let ts = Millis(1_000 + i64::try_from(seq.0).unwrap());
    let record = Record { seq, ts, turn: None, step: None, event }.encode().unwrap();
    Append { seq, record, search }
}

pub fn started() -> Event {
    SessionStarted { version: "0.0.0".to_owned(), cwd: "/work".to_owned(), parent: None }.into()
}

pub fn said(text: &str) -> Event {
    UserMessage { item: None, source: Source::Person, content: vec![Part::text(text)] }.into()
}

/// A tool's output; longer than 4 KiB it is stored as a blob.
pub fn output(call: u64, text: String) -> Event {
    ToolResult { call: CallId(call), content: text.into(), images: Vec::new(), error: None, meta: Default::default() }
        .into()
}

/// The n-th record of a session as the tests make them: every fourth cites a blob of its own.
pub fn nth(seq: u64) -> Append {
    match seq {
        0 => append(0, started()),
        _ if seq % 4 == 3 => append(seq, output(seq, format!("line {seq} of the output\n").repeat(300))),
        _ => append(seq, said(&format!("message number {seq} about apples and pears"))),
    }
}

/// Appends that many records, one transaction each.
pub fn fill(writer: &mut Writer, records: u64) -> Option<Head> {
    for _ in 0..records {
        let append = nth(writer.next_seq().0);
        writer.append(&[append], Durability::Normal, None).unwrap();
    }
    writer.head()
}

/// All records of a session, whole.
pub fn records(store: &Store, id: &SessionId) -> Vec<Stored> {
    store.read(id, stele_core::Seq(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Their bytes as text.
pub fn texts(store: &Store, id: &SessionId) -> Vec<String> {
    records(store, id).into_iter().map(|record| String::from_utf8(record.bytes).unwrap()).collect()
}

/// All records of a session, decoded, blobs included.
pub fn decoded(store: &Store, id: &SessionId) -> Vec<Record> {
    records(store, id)
        .into_iter()
        .filter_map(|stored| Record::decode(stored.seq, &stored.bytes, &mut |hash| store.blob(hash).unwrap()).unwrap())
        .collect()
}

/// Finds a user's messages, as the driver does.
pub fn search_text(seq: Seq, bytes: &[u8], fetch: &mut dyn FnMut(&Hash) -> Option<Arc<str>>) -> Option<String> {
    match Record::decode(seq, bytes, fetch).ok()??.event {
        Event::UserMessage(message) => {
            message.content.iter().map(|Part::Text { text }| text.as_str().to_owned()).next()
        }
        _ => None,
    }
}
