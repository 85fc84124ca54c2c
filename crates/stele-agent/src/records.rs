//! Reading a log: threads read and decode it, stretch by stretch, and one folds it in its order.
//!
//! Opening a long session is mostly decoding, which needs no state. Whoever has nothing to do takes the next stretch
//! that nobody has: the thread that folds as well, while the stretch it needs is still with another. So every core is
//! busy, and only a few stretches are in memory, however long the log is.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use stele_core::{Record, Seq};
use stele_store::Records;

use crate::Result;

/// Records of a stretch. A log that is shorter is read without a second thread.
const STRETCH: u64 = 256;
/// Stretches that are read before the ones in front of them were folded, at most.
const AHEAD: u64 = 6;
/// Threads that read beside the one that folds, at most.
const READERS: usize = 3;

/// Records that were read together.
struct Stretch {
    /// Which of the threads read them: it gets them back. Threads that free what others allocated wait for each other.
    reader: usize,
    /// With their positions; nothing where a record says nothing to this build.
    records: Vec<(Seq, Option<Record>)>,
}

/// The reader that folds as well.
const FOLDER: usize = 0;

/// Shows the records of a log up to and including `last`, in their order.
///
/// # Errors
/// The first record that cannot be read.
pub(crate) fn each(records: &Records, last: Seq, show: &mut dyn FnMut(Seq, Option<&Record>)) -> Result<()> {
    let work = Work::new(records, last);
    let mut show_all = |stretch: &Stretch| stretch.records.iter().for_each(|(seq, record)| show(*seq, record.as_ref()));
    if work.stretches == 1 {
        show_all(&work.read(FOLDER, 0)?);
        return Ok(());
    }
    let readers = thread::available_parallelism().map_or(1, |cores| cores.get() - 1).clamp(1, READERS);
    thread::scope(|scope| {
        let work = &work;
        for reader in FOLDER + 1..=readers {
            scope.spawn(move || work.take_part(reader));
        }
        let mut shown = Ok(());
        for number in 0..work.stretches {
            match work.wait_for(number) {
                Some(Ok(stretch)) => {
                    show_all(&stretch);
                    work.give_back(stretch);
                }
                Some(Err(error)) => {
                    shown = Err(error);
                    break;
                }
                // The scope goes on with the panic of the reader.
                None => break,
            }
        }
        work.end();
        shown
    })
}

/// What is read by whom.
struct Work<'a> {
    records: &'a Records,
    last: Seq,
    stretches: u64,
    shared: Mutex<Shared>,
    changed: Condvar,
}

#[derive(Default)]
struct Shared {
    /// The next stretch that nobody has taken.
    next: u64,
    /// How many were folded.
    folded: u64,
    /// Stretches that were read and not folded yet.
    ready: BTreeMap<u64, Result<Stretch>>,
    /// What was folded, until its reader takes it back.
    used: Vec<Stretch>,
    /// True when a reader panicked: what it had taken will never be there.
    broken: bool,
}

/// What ends the work of all when a reader panics.
struct Alive<'a>(&'a Work<'a>);

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.lock().broken = true;
            self.0.end();
        }
    }
}

impl<'a> Work<'a> {
    fn new(records: &'a Records, last: Seq) -> Self {
        Self { records, last, stretches: last.0 / STRETCH + 1, shared: Mutex::default(), changed: Condvar::new() }
    }

    /// Reads stretches until there are no more.
    fn take_part(&self, reader: usize) {
        let _alive = Alive(self);
        let mut shared = self.lock();
        while shared.next < self.stretches {
            shared = match self.claim(&mut shared) {
                Some(number) => {
                    drop(shared);
                    self.read_ahead(reader, number)
                }
                None => self.wait(shared),
            };
        }
    }

    /// The stretch that is folded next; meanwhile another one is read. `None` when its reader panicked.
    fn wait_for(&self, number: u64) -> Option<Result<Stretch>> {
        let mut shared = self.lock();
        shared.folded = number;
        self.changed.notify_all();
        loop {
            let ready = shared.ready.remove(&number);
            if ready.is_some() || shared.broken {
                return ready;
            }
            shared = match self.claim(&mut shared) {
                Some(other) => {
                    drop(shared);
                    self.read_ahead(FOLDER, other)
                }
                None => self.wait(shared),
            };
        }
    }

    /// Gives back what was folded.
    fn give_back(&self, stretch: Stretch) {
        self.lock().used.push(stretch);
    }

    /// What a reader gets back, empty.
    fn take_back(&self, reader: usize) -> Option<Stretch> {
        let mut shared = self.lock();
        let own = shared.used.iter().position(|stretch| stretch.reader == reader)?;
        let mut stretch = shared.used.swap_remove(own);
        drop(shared);
        stretch.records.clear();
        Some(stretch)
    }

    /// Nobody takes anything any more.
    fn end(&self) {
        self.lock().next = self.stretches;
        self.changed.notify_all();
    }

    /// Takes the next stretch, unless it is too far ahead.
    fn claim(&self, shared: &mut Shared) -> Option<u64> {
        let free = shared.next < self.stretches.min(shared.folded + AHEAD);
        free.then(|| {
            shared.next += 1;
            shared.next - 1
        })
    }

    fn read_ahead(&self, reader: usize, number: u64) -> MutexGuard<'_, Shared> {
        let stretch = self.read(reader, number);
        let mut shared = self.lock();
        shared.ready.insert(number, stretch);
        self.changed.notify_all();
        shared
    }

    fn read(&self, reader: usize, number: u64) -> Result<Stretch> {
        let first = number * STRETCH;
        let last = (first + STRETCH - 1).min(self.last.0);
        let mut stretch = self.take_back(reader).unwrap_or(Stretch { reader, records: Vec::new() });
        decode(&self.records.between(Seq(first), Seq(last)), &mut stretch.records)?;
        Ok(stretch)
    }

    /// Nothing is half done where a lock was let go of, whatever ended its holder.
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'b>(&self, shared: MutexGuard<'b, Shared>) -> MutexGuard<'b, Shared> {
        self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner)
    }
}

fn decode(records: &Records, into: &mut Vec<(Seq, Option<Record>)>) -> Result<()> {
    records.each(&mut |seq, bytes, blobs| -> Result<()> {
        let mut failure = None;
        let decoded = Record::decode(seq, bytes, &mut |hash| match blobs.text(hash) {
            Ok(blob) => blob,
            Err(error) => {
                failure = Some(error);
                None
            }
        });
        if let Some(error) = failure {
            return Err(error.into());
        }
        into.push((seq, decoded?));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use stele_core::{Event, Millis, Parent, RecordBytes, SessionId, Source, UserMessage};
    use stele_store::{Append, Durability, Start, Store, Writer};

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
        each(&records, Seq(last), &mut |seq, record| {
            let Some(Event::UserMessage(message)) = record.map(|record| &record.event) else { return };
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
        for last in [0, 255, 256, 1_024, 2_600, 5_199] {
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
