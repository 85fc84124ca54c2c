//! The requests of a log, built again one after the other, for whoever looks at them.

use stele_core::{Config, Event, Price, Record, RequestSent, Seq, SessionId, State};
use stele_provider::Encoder;
use stele_store::Store;

use crate::request::{self, Encoded};
use crate::{Error, Result};

/// A request as it was sent.
pub struct Rebuilt<'a> {
    /// What the log says of it.
    pub sent: &'a RequestSent,
    /// The configuration of its epoch.
    pub config: &'a Config,
    /// What its route cost then; absent for an unpriced one.
    pub price: Option<Price>,
    /// Its bytes and items.
    pub encoder: &'a Encoder,
}

/// Shows every record of a session, in order, and with each request its bytes; without them where the encoder that wrote
/// it is not in this build. Reads only; linear in the log.
///
/// # Errors
/// There is no such session, or its log cannot be read.
pub fn replay(store: &Store, session: &SessionId, visit: &mut dyn FnMut(&Record, Option<Rebuilt<'_>>)) -> Result<()> {
    let mut state = State::new();
    let mut encoded: Option<Encoded> = None;
    for stored in store.read(session, Seq(0))? {
        let stored = stored?;
        let mut failure = None;
        let decoded = Record::decode(stored.seq, &stored.bytes, &mut |hash| match store.blob(hash) {
            Ok(blob) => blob,
            Err(error) => {
                failure = Some(error);
                None
            }
        });
        if let Some(error) = failure {
            return Err(error.into());
        }
        let Some(record) = decoded? else {
            state.pass(stored.seq);
            continue;
        };
        let mut rebuilt = None;
        if let Event::RequestSent(sent) = &record.event {
            match request::update(&mut encoded, &state) {
                Ok(()) => {
                    let built = encoded.as_ref().zip(state.epoch());
                    rebuilt = built.map(|(encoded, epoch)| Rebuilt {
                        sent,
                        config: &epoch.config,
                        price: epoch.price,
                        encoder: encoded.encoder(),
                    });
                }
                Err(Error::Request(_)) => {}
                Err(error) => return Err(error),
            }
        }
        visit(&record, rebuilt);
        state.fold(&record);
    }
    Ok(())
}
