//! Proof that the log holds every byte the model saw: each request is built again and compared.

use stele_core::{Event, Record, Seq, SessionId, State};
use stele_store::{Fault, SessionRow, Store};

use crate::request::{self, Encoded};
use crate::{Error, Result};

/// What became of one request that was built again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestCheck {
    /// The same bytes.
    Same,
    /// Other bytes.
    Differs {
        /// What differs: `body` or `prompt`.
        what: &'static str,
    },
    /// It was written by an encoder that this build does not have.
    RevisionNotHere {
        /// The encoder and its revision.
        encoder: String,
    },
}

/// Something that the session's row says otherwise than its log. What the row says is shown in lists, and is not
/// covered by the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowDiffers {
    /// What it is, such as `title`.
    pub what: &'static str,
    /// What the row says.
    pub row: String,
    /// What the log comes to.
    pub log: String,
}

/// What is wrong with a session, if anything.
#[derive(Clone, Debug, Default)]
pub struct Verification {
    /// Records read.
    pub records: u64,
    /// Requests built again and found the same.
    pub requests: u64,
    /// Bytes of those requests.
    pub request_bytes: u64,
    /// Damage of the chain, the head, records or blobs.
    pub faults: Vec<Fault>,
    /// Records that cannot be read, with the reason.
    pub unreadable: Vec<(Seq, String)>,
    /// Requests that are not the same.
    pub requests_not_same: Vec<(Seq, RequestCheck)>,
    /// What the session's row says otherwise. Not looked for where the log itself is damaged.
    pub row_differs: Vec<RowDiffers>,
}

impl Verification {
    /// True when nothing is wrong. An encoder that is not in this build is no damage.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let differs = self.requests_not_same.iter().any(|(_, check)| matches!(check, RequestCheck::Differs { .. }));
        self.faults.is_empty() && self.unreadable.is_empty() && self.row_differs.is_empty() && !differs
    }
}

/// Checks a session's chain and head, and rebuilds every request of it. Reads only; linear in the log.
///
/// # Errors
/// There is no such session, or the store cannot be read at all.
pub fn verify(store: &Store, session: &SessionId) -> Result<Verification> {
    let mut verification = Verification { faults: store.check(session)?, ..Verification::default() };
    let row = store.session(session).ok();
    let mut replay = Replay::default();
    let mut passed = false;
    for stored in store.read(session, Seq(0))? {
        let stored = match stored {
            Ok(stored) => stored,
            Err(error) => {
                verification.unreadable.push((replay.state.next_seq(), error.to_string()));
                break;
            }
        };
        verification.records += 1;
        match Record::decode(stored.seq, &stored.bytes, &mut |hash| store.blob(hash).ok().flatten()) {
            Ok(Some(record)) => replay.take(&record, &mut verification),
            Ok(None) => {
                passed = true;
                replay.state.pass(stored.seq);
            }
            Err(error) => verification.unreadable.push((stored.seq, error.to_string())),
        }
    }
    // A file that was imported and lacks records has a row that still counts them.
    if let Some(row) = row.filter(|row| !(row.imported && passed))
        && verification.faults.is_empty()
        && verification.unreadable.is_empty()
        && row.head.seq.next() == replay.state.next_seq()
    {
        verification.row_differs = row_differs(&row, &replay.state);
    }
    Ok(verification)
}

/// Compares what a session's row says with what its log comes to.
fn row_differs(row: &SessionRow, state: &State) -> Vec<RowDiffers> {
    let counters = state.counters();
    let started = state.session();
    let shown = |value: Option<String>| value.unwrap_or_else(|| "nothing".to_owned());
    let parent = |parent: &Option<stele_core::Parent>| {
        shown(parent.as_ref().map(|parent| format!("record {} of {}", parent.seq, parent.session)))
    };
    let cost = |cost: Option<stele_core::Micros>| shown(cost.map(|cost| cost.0.to_string()));
    let pairs = [
        ("cwd", row.cwd.clone(), started.map(|started| started.cwd.clone()).unwrap_or_default()),
        ("title", shown(row.title.clone()), shown(state.first_prompt().map(stele_core::title))),
        ("model", shown(row.model.clone()), shown(state.model().map(|model| model.model.clone()))),
        ("turns", row.turns.to_string(), counters.turns.to_string()),
        ("steps", row.steps.to_string(), counters.answered.to_string()),
        ("cost", cost(row.cost), cost(state.cost())),
        ("parent", parent(&row.parent), parent(&started.and_then(|started| started.parent.clone()))),
    ];
    let summarised = row.title.is_some() || row.model.is_some() || row.turns > 0 || row.steps > 0;
    pairs
        .into_iter()
        .filter(|(what, row_says, log)| {
            // A file without its header, or with another session's id, comes in without what that said.
            let unsaid = row.imported && (!summarised || *what == "parent");
            row_says != log && !unsaid
        })
        .map(|(what, row, log)| RowDiffers { what, row, log })
        .collect()
}

/// Folds the log and encodes along, one message at a time.
struct Replay {
    state: State,
    encoded: Option<Encoded>,
    earlier: Option<Encoded>,
}

impl Default for Replay {
    fn default() -> Self {
        Self { state: State::new(), encoded: None, earlier: None }
    }
}

impl Replay {
    fn take(&mut self, record: &Record, verification: &mut Verification) {
        match &record.event {
            // What an epoch's first request shares with the last one that was sent before.
            Event::EpochOpened(_) => {
                let encoded = self.encoded.take();
                if self.state.epoch().is_some_and(|epoch| epoch.sent.is_some()) {
                    self.earlier = encoded;
                }
            }
            Event::RequestSent(sent) => match self.check(sent) {
                RequestCheck::Same => {
                    verification.requests += 1;
                    verification.request_bytes += sent.body.len;
                }
                other => verification.requests_not_same.push((record.seq, other)),
            },
            _ => {}
        }
        self.state.fold(record);
    }

    fn check(&mut self, sent: &stele_core::RequestSent) -> RequestCheck {
        match request::update(&mut self.encoded, &self.state) {
            Ok(()) => {}
            Err(Error::Request(_)) => {
                let encoder = self.state.epoch().map(|epoch| epoch.config.encoder.clone()).unwrap_or_default();
                return RequestCheck::RevisionNotHere { encoder };
            }
            Err(_) => return RequestCheck::Differs { what: "body" },
        }
        let Some((encoded, epoch)) = self.encoded.as_ref().zip(self.state.epoch()) else {
            return RequestCheck::Differs { what: "body" };
        };
        let shared = encoded.shared(epoch.sent.as_ref(), self.earlier.as_ref());
        self.earlier = None;
        if encoded.encoder().body_digest() != sent.body {
            RequestCheck::Differs { what: "body" }
        } else if encoded.encoder().prompt_digest(shared) != sent.prompt {
            RequestCheck::Differs { what: "prompt" }
        } else {
            RequestCheck::Same
        }
    }
}
