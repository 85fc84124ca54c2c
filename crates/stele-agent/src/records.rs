//! Reading a log: some threads read and decode it, stretch by stretch, and one folds it in its order.
//!
//! Opening a long session is mostly decoding, which needs no state. So two readers take turns, and hardly more than
//! two stretches each are in memory, however long the log is.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, Scope};

use stele_core::{Record, Seq};
use stele_store::{Records, Store};

use crate::Result;

/// Records of a stretch. A log that is shorter is read without a second thread.
const STRETCH: u64 = 1024;
/// Threads that read.
const READERS: u64 = 2;

/// Records with their positions; nothing where a record says nothing to this build.
type Stretch = Vec<(Seq, Option<Record>)>;

/// Takes the records of a log up to and including `last`, in their order.
///
/// # Errors
/// The first record that cannot be read.
pub(crate) fn each(
    store: &Store,
    records: &Records,
    last: Seq,
    take: &mut dyn FnMut(Seq, Option<Record>),
) -> Result<()> {
    let mut take_all = |stretch: Stretch| stretch.into_iter().for_each(|(seq, record)| take(seq, record));
    if last.0 < STRETCH {
        take_all(decode(store, records.between(Seq(0), last))?);
        return Ok(());
    }
    thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS).map(|number| reader(scope, store, records, number, last)).collect();
        // The readers take turns, so the first that has nothing more comes after all the others' stretches.
        for stretches in readers.iter().cycle() {
            let Ok(stretch) = stretches.recv() else { break };
            take_all(stretch?);
        }
        Ok(())
    })
}

/// Starts a reader of every so many-th stretch. It ends with the last one, with an error, or when nobody listens.
fn reader<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    store: &'env Store,
    records: &'env Records,
    number: u64,
    last: Seq,
) -> Receiver<Result<Stretch>> {
    let (done, stretches) = sync_channel(1);
    scope.spawn(move || {
        let mut first = number * STRETCH;
        while first <= last.0 {
            let stretch = decode(store, records.between(Seq(first), Seq((first + STRETCH - 1).min(last.0))));
            let failed = stretch.is_err();
            if done.send(stretch).is_err() || failed {
                return;
            }
            first += READERS * STRETCH;
        }
    });
    stretches
}

fn decode(store: &Store, records: Records) -> Result<Stretch> {
    let mut stretch = Vec::new();
    let mut failure = None;
    for stored in records {
        let stored = stored?;
        let decoded = Record::decode(stored.seq, &stored.bytes, &mut |hash| match store.blob(hash) {
            Ok(blob) => blob,
            Err(error) => {
                failure = Some(error);
                None
            }
        });
        if let Some(error) = failure.take() {
            return Err(error.into());
        }
        stretch.push((stored.seq, decoded?));
    }
    Ok(stretch)
}

#[cfg(test)]
mod tests {
    use stele_core::{Event, Millis, Parent, RecordBytes, SessionId, Source, UserMessage};
    use stele_store::{Append, Durability, Start, Writer};

    use super::*;
    use crate::Error;

    fn record(seq: u64) -> Append {
        // Some are blobs.
        let text = format!("{seq} ").repeat(if seq.is_multiple_of(97) { 2_000 } else { 3 });
        let event: Event =
            UserMessage { item: None, source: Source::Person, content: vec![stele_core::Part::text(text)] }.into();
        let mut record = Record { seq: Seq(seq), ts: Millis(1), turn: None, step: None, event };
        Append { seq: Seq(seq), record: record.encode().unwrap(), search: None }
    }

    fn append(writer: &mut Writer, batch: &[Append]) {
        writer.append(batch, Durability::Normal, None).unwrap();
    }

    fn id(number: u64) -> SessionId {
        SessionId::new(format!("01990000-0000-7000-8000-{number:012}")).unwrap()
    }

    fn start(parent: Option<Parent>) -> Start {
        Start { cwd: "/work".to_owned(), created: Millis(1), parent }
    }

    /// The texts of all records up to `last`, each with its position.
    fn texts(store: &Store, session: &SessionId, last: u64) -> Result<Vec<(u64, String)>> {
        let mut texts = Vec::new();
        let records = store.read(session, Seq(0)).unwrap();
        each(store, &records, Seq(last), &mut |seq, record| {
            let Some(Event::UserMessage(message)) = record.map(|record| record.event) else { return };
            let stele_core::Part::Text { text } = &message.content[0];
            texts.push((seq.0, text.as_str().to_owned()));
        })?;
        Ok(texts)
    }

    #[test]
    fn records_of_a_long_lineage_come_in_their_order_and_the_first_damage_ends_it() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let mut writer = store.create(id(1), start(None)).unwrap();
        append(&mut writer, &(0..4_000).map(record).collect::<Vec<_>>());
        let parent = Some(Parent { session: id(1), seq: Seq(2_499) });
        let mut fork = store.create(id(2), start(parent)).unwrap();
        append(&mut fork, &(2_500..5_200).map(record).collect::<Vec<_>>());
        for last in [0, 1_023, 1_024, 2_048, 2_600, 5_199] {
            let read = texts(&store, &id(2), last).unwrap();
            assert_eq!(read.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), (0..=last).collect::<Vec<_>>());
            assert!(read.iter().all(|(seq, text)| text.starts_with(&format!("{seq} {seq}"))));
        }
        let damaged = RecordBytes { bytes: "{}".to_owned(), blobs: Vec::new(), files: Vec::new() };
        append(&mut fork, &[Append { seq: Seq(5_200), record: damaged, search: None }]);
        append(&mut fork, &(5_201..9_000).map(record).collect::<Vec<_>>());
        assert_eq!(texts(&store, &id(2), 5_199).unwrap().len(), 5_200);
        let error = texts(&store, &id(2), 8_999).unwrap_err();
        assert!(matches!(&error, Error::Log(stele_core::Error::Corrupt { seq: Seq(5_200), .. })), "{error:?}");
    }
}
