//! Records: what is stored, hashed as stored, and never serialised again.

mod once;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Error, Event, Hash, Millis, Result, Seq, State, Text};

/// Version of the record format that this build writes.
const FORMAT: u32 = 1;

/// One record of a log, decoded and whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Position.
    pub seq: Seq,
    /// When it was made.
    pub ts: Millis,
    /// Turn it belongs to, from 1.
    pub turn: Option<u64>,
    /// Step it belongs to, from 1 in its session.
    pub step: Option<u64>,
    /// What happened.
    pub event: Event,
}

/// A record as it is stored: its bytes and the blobs that must be stored before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordBytes {
    /// One JSON object `{v, seq, ts, kind, turn?, step?, cites?, ignorable?, data}`.
    pub bytes: String,
    /// The texts it cites, by the names of their blobs.
    pub blobs: Vec<(Hash, Arc<str>)>,
    /// The bytes of files it cites, by the names of their blobs; those that are stored already are left out.
    pub files: Vec<(Hash, Arc<[u8]>)>,
}

/// A record as a store gives it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Position.
    pub seq: Seq,
    /// The bytes as they were written.
    pub bytes: Vec<u8>,
    /// Hash of the record before.
    pub prev: Hash,
    /// Hash of this record.
    pub hash: Hash,
}

#[derive(Serialize)]
struct EnvelopeOut<'a> {
    v: u32,
    seq: Seq,
    ts: Millis,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u64>,
    #[serde(skip_serializing_if = "<[Hash]>::is_empty")]
    cites: &'a [Hash],
    data: &'a RawValue,
}

#[derive(Deserialize)]
struct EnvelopeIn<'a> {
    v: u32,
    seq: Seq,
    ts: Millis,
    #[serde(borrow)]
    kind: std::borrow::Cow<'a, str>,
    turn: Option<u64>,
    step: Option<u64>,
    #[serde(default)]
    cites: Vec<Hash>,
    #[serde(default)]
    ignorable: bool,
    #[serde(borrow)]
    data: &'a RawValue,
}

impl Record {
    /// The record that an event is at the end of a log: its position, its turn and its step.
    #[must_use]
    pub fn next(state: &State, ts: Millis, event: Event) -> Self {
        let counters = state.counters();
        let turn = match &event {
            Event::TurnStarted(_) => Some(counters.turns + 1),
            _ => state.turn().map(|turn| turn.number),
        };
        let step = match &event {
            Event::StepStarted(_) => Some(counters.steps + 1),
            _ => state.step().map(|step| step.number),
        };
        Self { seq: state.next_seq(), ts, turn, step, event }
    }

    /// The bytes to store, written once.
    ///
    /// # Errors
    /// The event cannot be written as JSON, which is a defect of this program.
    pub fn encode(&mut self) -> Result<RecordBytes> {
        let seq = self.seq;
        let defect = |error: serde_json::Error| Error::Corrupt { seq, detail: format!("cannot be written: {error}") };
        let mut blobs: Vec<(Hash, Arc<str>)> = Vec::new();
        self.event.texts(&mut |text| {
            if let Some(blob) = text.blob()
                && !blobs.iter().any(|(hash, _)| *hash == blob.0)
            {
                blobs.push(blob);
            }
        });
        let data = RawValue::from_string(self.event.data().map_err(defect)?).map_err(defect)?;
        let mut cites: Vec<Hash> = blobs.iter().map(|(hash, _)| *hash).collect();
        let mut files: Vec<(Hash, Arc<[u8]>)> = Vec::new();
        self.event.contents(&mut |content| {
            let name = content.at().blob;
            if !cites.contains(&name) {
                cites.push(name);
                files.extend(content.bytes().map(|bytes| (name, Arc::clone(bytes))));
            }
        });
        let envelope = EnvelopeOut {
            v: FORMAT,
            seq,
            ts: self.ts,
            kind: self.event.kind(),
            turn: self.turn,
            step: self.step,
            cites: &cites,
            data: &data,
        };
        let bytes = serde_json::to_string(&envelope).map_err(defect)?;
        Ok(RecordBytes { bytes, blobs, files })
    }

    /// Lets go of the bytes of files, once they are stored: the record only names them from then on.
    pub fn drop_files(&mut self) {
        self.event.contents(&mut |content| content.stored());
    }

    /// Reads a stored record and the blobs it cites; `Ok(None)` for a record of an unknown kind that
    /// its writer marked as ignorable.
    ///
    /// # Errors
    /// The bytes are no record, a blob is missing or damaged, or the kind is unknown.
    pub fn decode(at: Seq, bytes: &[u8], fetch: &mut dyn FnMut(&Hash) -> Option<Arc<str>>) -> Result<Option<Self>> {
        // What cannot be read in one go is read again, so that the error names what is wrong.
        let record = match once::read(at, bytes) {
            Some(record) => Some(record),
            None => Self::read(at, bytes)?,
        };
        let Some(mut record) = record else { return Ok(None) };
        let mut missing = None;
        record.event.texts(&mut |text| {
            if let Some(blob) = text.pending() {
                match fetch(&blob.blob) {
                    Some(content) if content.len() as u64 == blob.len => *text = Text::fetched(content),
                    _ => missing = missing.or(Some(blob.blob)),
                }
            }
        });
        if let Some(blob) = missing {
            return Err(Error::Blob { seq: at, blob });
        }
        if let Event::ToolResult(result) = &mut record.event {
            let content = std::mem::replace(&mut result.content, Text::from(""));
            result.content = content.quoted();
        }
        Ok(Some(record))
    }

    /// Reads the envelope first and its data then; blobs are not fetched.
    fn read(at: Seq, bytes: &[u8]) -> Result<Option<Self>> {
        let corrupt = |detail: String| Error::Corrupt { seq: at, detail };
        let envelope: EnvelopeIn<'_> = serde_json::from_slice(bytes).map_err(|error| corrupt(error.to_string()))?;
        if envelope.seq != at {
            return Err(corrupt(format!("it says it is record {}", envelope.seq)));
        }
        let unsupported =
            |newer| Error::Unsupported { seq: at, kind: envelope.kind.to_string(), version: envelope.v, newer };
        if envelope.v > FORMAT {
            return Err(unsupported(true));
        }
        let event = match Event::parse(&envelope.kind, envelope.data.get()) {
            Some(event) => event.map_err(|error| corrupt(format!("{}: {error}", envelope.kind)))?,
            None if envelope.ignorable => return Ok(None),
            None => return Err(unsupported(true)),
        };
        Ok(Some(Self { seq: at, ts: envelope.ts, turn: envelope.turn, step: envelope.step, event }))
    }

    /// The blobs that a stored record cites, read from its envelope alone.
    ///
    /// # Errors
    /// The bytes are no record, or say that they are another one.
    pub fn cites(at: Seq, bytes: &[u8]) -> Result<Vec<Hash>> {
        let corrupt = |detail: String| Error::Corrupt { seq: at, detail };
        let envelope: EnvelopeIn<'_> = serde_json::from_slice(bytes).map_err(|error| corrupt(error.to_string()))?;
        if envelope.seq != at {
            return Err(corrupt(format!("it says it is record {}", envelope.seq)));
        }
        Ok(envelope.cites)
    }
}
