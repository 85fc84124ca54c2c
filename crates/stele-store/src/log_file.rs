//! Reading an exported file, whole or damaged.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, Read};
use std::sync::Arc;

use serde::Deserialize;
use stele_core::{Hash, Record, Seq};

use crate::blob::{Packed, pack};
use crate::lineage::genesis;
use crate::salvage::{Piece, split};
use crate::transfer::{BlobLine, FORMAT, Header, RecordLine, from_hex};
use crate::{Error, Result};

/// A line longer than this (bytes) is no line of an export.
const LINE_MAX: u64 = 512 << 20;

/// One damage that was found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The line it is on, from 1.
    pub line: u64,
    /// What it is.
    pub detail: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.detail)
    }
}

/// A record as a file has it.
#[derive(Clone, Debug)]
pub(crate) struct FileRecord {
    pub(crate) line: u64,
    pub(crate) seq: Seq,
    pub(crate) prev: Hash,
    pub(crate) hash: Hash,
    pub(crate) bytes: Vec<u8>,
}

/// The part of a file that is one session's.
#[derive(Debug, Default)]
pub(crate) struct Section {
    /// `None` when its line was damaged.
    pub(crate) header: Option<Header>,
    pub(crate) records: Vec<FileRecord>,
}

/// Bytes of a file that are no line of an export.
#[derive(Debug)]
pub(crate) struct DamagedBytes {
    pub(crate) line: u64,
    pub(crate) bytes: Vec<u8>,
}

/// What a file holds.
#[derive(Debug, Default)]
pub(crate) struct LogFile {
    /// A fork's ancestors, then the session.
    pub(crate) sections: Vec<Section>,
    pub(crate) blobs: BTreeMap<Hash, Packed>,
    pub(crate) damaged: Vec<DamagedBytes>,
    lines: u64,
}

enum Line {
    Header(Box<Header>),
    Blob(Hash, Vec<u8>),
    Record(FileRecord),
}

impl LogFile {
    /// Reads a file to its end.
    ///
    /// # Errors
    /// `log.stream` when it cannot be read, `log.not_a_log` when there is no session in it.
    pub(crate) fn read(from: &mut dyn BufRead) -> Result<Self> {
        let mut file = Self::default();
        let mut line = Vec::new();
        loop {
            line.clear();
            if (&mut *from).take(LINE_MAX).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            if line.len() as u64 >= LINE_MAX {
                return Err(not_a_log(format!("line {} is longer than {LINE_MAX} bytes", file.lines + 1)));
            }
            file.lines += 1;
            let bytes = line.strip_suffix(b"\n").unwrap_or(&line);
            let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").filter(|_| file.lines == 1).unwrap_or(bytes);
            file.line(bytes)?;
        }
        if file.sections.iter().all(|section| section.records.is_empty()) {
            return Err(not_a_log(format!("none of its {} lines is a record", file.lines)));
        }
        Ok(file)
    }

    fn line(&mut self, bytes: &[u8]) -> Result<()> {
        let number = self.lines;
        for piece in split(bytes, |rest| read_value(rest, number)) {
            match piece {
                Piece::Damaged(range) => {
                    self.damaged.push(DamagedBytes { line: number, bytes: bytes[range].to_vec() });
                }
                Piece::Whole((Line::Header(header), _)) => self.header(*header)?,
                Piece::Whole((Line::Blob(name, content), taken)) => {
                    if Hash::of(&content) == name {
                        self.blobs.insert(name, pack(name, &content)?);
                    } else {
                        self.damaged.push(DamagedBytes { line: number, bytes: taken });
                    }
                }
                Piece::Whole((Line::Record(record), _)) => {
                    if self.sections.is_empty() {
                        self.sections.push(Section::default());
                    }
                    if let Some(section) = self.sections.last_mut() {
                        section.records.push(record);
                    }
                }
            }
        }
        Ok(())
    }

    fn header(&mut self, header: Header) -> Result<()> {
        if header.v > FORMAT {
            return Err(not_a_log(format!(
                "it is of export format {}, this build reads up to {FORMAT}; import it with the release that wrote it",
                header.v
            )));
        }
        if header.parent.is_none() && !self.sections.is_empty() {
            return Err(not_a_log("it holds several sessions: import them one by one".to_owned()));
        }
        self.sections.push(Section { header: Some(header), records: Vec::new() });
        Ok(())
    }

    /// The line after the last one.
    pub(crate) fn end(&self) -> u64 {
        self.lines
    }

    /// True when this is exactly what an export wrote: nothing damaged, the chain unbroken from each
    /// session's id to its head, every cited blob there.
    pub(crate) fn is_whole(&self) -> bool {
        let mut last: Option<(&Header, Hash)> = None;
        for section in &self.sections {
            let Some(header) = &section.header else { return false };
            let (first, origin) = match (&header.parent, last) {
                (None, None) => (0, genesis(&header.session)),
                (Some(parent), Some((ahead, hash)))
                    if parent.session == ahead.session && parent.seq == ahead.head.seq =>
                {
                    (parent.seq.0 + 1, hash)
                }
                _ => return false,
            };
            let mut prev = origin;
            for (seq, record) in (first..).zip(&section.records) {
                if record.seq.0 != seq
                    || record.prev != prev
                    || record.hash != Hash::of_record(&prev, &record.bytes)
                    || self.judge(record).is_some()
                {
                    return false;
                }
                prev = record.hash;
            }
            let end = section.records.last().map(|record| (record.seq, record.hash));
            if end != Some((header.head.seq, header.head.hash)) {
                return false;
            }
            last = Some((header, prev));
        }
        self.damaged.is_empty()
    }

    /// Why a record cannot be used; `None` when it can.
    pub(crate) fn judge(&self, record: &FileRecord) -> Option<String> {
        let cites = match Record::cites(record.seq, &record.bytes) {
            Ok(cites) => cites,
            Err(error) => return Some(format!("it cannot be read ({error})")),
        };
        let missing = cites.iter().find(|blob| !self.blobs.contains_key(blob))?;
        Some(format!("blob {}, which it cites, is missing or damaged", missing.short()))
    }

    /// Reads a record with the blobs of this file; the error says what is wrong with it.
    pub(crate) fn decode(&self, record: &FileRecord) -> Result<(), String> {
        let mut fetch = |hash: &Hash| {
            let content = self.blobs.get(hash)?.content()?;
            String::from_utf8(content).ok().map(Arc::from)
        };
        match Record::decode(record.seq, &record.bytes, &mut fetch) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("it was changed and cannot be read ({error})")),
        }
    }
}

/// Reads one value of an export, with its own bytes.
fn read_value(rest: &[u8], line: u64) -> Option<((Line, Vec<u8>), usize)> {
    fn value<'a, T: Deserialize<'a>>(rest: &'a [u8]) -> Option<(T, usize)> {
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter();
        let value = values.next()?.ok()?;
        Some((value, values.byte_offset()))
    }
    let (line, taken) = if rest.starts_with(br#"{"seq""#) {
        let (found, taken) = value::<RecordLine<'_>>(rest)?;
        let bytes = match (found.record, found.hex) {
            (Some(raw), None) => raw.get().as_bytes().to_vec(),
            (None, Some(hex)) => from_hex(&hex)?,
            _ => return None,
        };
        (Line::Record(FileRecord { line, seq: found.seq, prev: found.prev, hash: found.hash, bytes }), taken)
    } else if rest.starts_with(br#"{"blob""#) {
        let (found, taken) = value::<BlobLine<'_>>(rest)?;
        let content = match (found.text, found.hex) {
            (Some(text), None) => text.into_owned().into_bytes(),
            (None, Some(hex)) => from_hex(&hex)?,
            _ => return None,
        };
        (Line::Blob(found.blob, content), taken)
    } else if rest.starts_with(br#"{"stele""#) {
        let (header, taken) = value::<Header>(rest)?;
        (Line::Header(Box::new(header)), taken)
    } else {
        return None;
    };
    // Only a blob may have to be kept as it stood, when its content is not what its name says.
    let own = if matches!(line, Line::Blob(..)) { rest.get(..taken)?.to_vec() } else { Vec::new() };
    Some(((line, own), taken))
}

fn not_a_log(detail: String) -> Error {
    Error::NotALog { detail }
}
