//! What happens in a session, without gaps: live notices, and the store where they were lost.

use std::sync::Arc;

use stele_agent::{Logged, Notice};
use stele_core::{Record, RecordBytes, Seq, SessionId};
use stele_store::Store;
use tokio::sync::broadcast::{self, error::RecvError, error::TryRecvError};

use crate::error::Result;

/// Something to show. Records come in order and each once.
#[derive(Clone, Debug)]
pub enum Seen {
    Notice(Notice),
    /// So many notices were lost; the records among them come from the store.
    Lag(u64),
}

impl Seen {
    pub fn record(logged: impl Into<Arc<Logged>>) -> Self {
        Self::Notice(Notice::Event(logged.into()))
    }
}

/// A subscription to one session, from some record on.
pub struct Feed {
    receiver: broadcast::Receiver<Notice>,
    store: Store,
    session: SessionId,
    next: Seq,
}

impl Feed {
    pub fn new(receiver: broadcast::Receiver<Notice>, store: Store, session: SessionId, from: Seq) -> Self {
        Self { receiver, store, session, next: from }
    }

    /// Waits for the next notice. `None` when the driver is gone.
    pub async fn wait(&mut self) -> Option<Result<Vec<Seen>>> {
        match self.receiver.recv().await {
            Ok(notice) => Some(self.take(notice)),
            Err(RecvError::Lagged(skipped)) => Some(Ok(vec![Seen::Lag(skipped)])),
            Err(RecvError::Closed) => None,
        }
    }

    /// What is waiting, and then every record up to the end of the log that was not seen.
    pub fn rest(&mut self) -> Result<Vec<Seen>> {
        let mut seen = Vec::new();
        loop {
            match self.receiver.try_recv() {
                Ok(notice) => seen.extend(self.take(notice)?),
                Err(TryRecvError::Lagged(skipped)) => seen.push(Seen::Lag(skipped)),
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        Ok(seen)
    }

    /// Records of the store that no notice told of, such as those that opening the session wrote.
    pub fn catch_up(&mut self) -> Result<Vec<Seen>> {
        self.stored(None)
    }

    fn take(&mut self, notice: Notice) -> Result<Vec<Seen>> {
        Ok(match notice {
            Notice::Event(logged) if logged.record.seq < self.next => Vec::new(),
            Notice::Event(logged) => {
                let mut seen =
                    if logged.record.seq > self.next { self.stored(Some(logged.record.seq))? } else { Vec::new() };
                self.next = logged.record.seq.next();
                seen.push(Seen::record(logged));
                seen
            }
            beside => vec![Seen::Notice(beside)],
        })
    }

    fn stored(&mut self, until: Option<Seq>) -> Result<Vec<Seen>> {
        let mut seen = Vec::new();
        for stored in self.store.read(&self.session, self.next)? {
            let stored = stored?;
            if until.is_some_and(|until| stored.seq >= until) {
                break;
            }
            self.next = stored.seq.next();
            if let Some(logged) = decode(&self.store, &stored)? {
                seen.push(Seen::record(logged));
            }
        }
        Ok(seen)
    }
}

/// A stored record with its blobs; `None` for one that may be ignored.
pub fn decode(store: &Store, stored: &stele_core::Stored) -> Result<Option<Logged>> {
    let mut blobs = Vec::new();
    let mut failure = None;
    let record = Record::decode(stored.seq, &stored.bytes, &mut |hash| match store.blob(hash) {
        Ok(Some(text)) => {
            blobs.push((*hash, Arc::clone(&text)));
            Some(text)
        }
        Ok(None) => None,
        Err(error) => {
            failure = Some(error);
            None
        }
    });
    if let Some(error) = failure {
        return Err(error.into());
    }
    let bytes = String::from_utf8_lossy(&stored.bytes).into_owned();
    Ok(record?.map(|record| Logged { record, stored: RecordBytes { bytes, blobs, files: Vec::new() } }))
}

/// The records of a session, from its first one on.
pub fn records(store: &Store, session: &SessionId) -> Result<impl Iterator<Item = Result<Logged>>> {
    let records = store.read(session, Seq(0))?;
    Ok(records.filter_map(|stored| match stored {
        Ok(stored) => decode(store, &stored).transpose(),
        Err(error) => Some(Err(error.into())),
    }))
}
