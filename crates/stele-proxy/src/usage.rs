//! The usage of an answer, read from a copy of its bytes.
//!
//! Only the events that say something about usage are looked at, so that an answer of any length costs little memory.

use std::io::Write;

use stele_core::{CacheMarks, Config, Failure, FailureCode, Usage, Wire, derive_rev};
use stele_provider::Decoder;

use crate::endpoint;

/// Longest event or document that is kept, in bytes.
const KEPT_MAX: usize = 64 * 1024 * 1024;

/// Reads the usage of one answer.
pub(crate) struct UsageReader {
    unpack: Unpack,
    decoder: Decoder,
    framing: Framing,
    kept: Vec<u8>,
    /// The event is longer than is kept: the rest of it is passed over.
    passing: bool,
    /// What the endpoint said about a miss.
    miss_reason: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    Unknown,
    Events,
    Document,
}

impl UsageReader {
    pub(crate) fn new(wire: Wire, base_url: &str, encoding: Option<&str>) -> Self {
        let config = Config {
            route: String::new(),
            wire,
            base_url: base_url.to_owned(),
            model: String::new(),
            encoder: String::new(),
            derive_rev: derive_rev(wire),
            withheld: Default::default(),
            parameters: Default::default(),
            // What the client marked is in its prompt.
            cache: CacheMarks { marks: false, ..CacheMarks::default() },
            dialect: (wire == Wire::OpenaiChat).then(|| stele_provider::dialect(base_url)),
            images: Default::default(),
            headers: Default::default(),
        };
        Self {
            unpack: Unpack::new(encoding),
            decoder: Decoder::new(&config),
            framing: Framing::Unknown,
            kept: Vec::new(),
            passing: false,
            miss_reason: None,
        }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let mut unpack = std::mem::replace(&mut self.unpack, Unpack::Broken);
        if let Ok(()) = unpack.write(bytes, &mut |plain| self.plain(plain)) {
            self.unpack = unpack;
        }
    }

    fn plain(&mut self, mut bytes: &[u8]) {
        if self.framing == Framing::Unknown {
            match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
                Some(b'{' | b'[') => self.framing = Framing::Document,
                Some(_) => self.framing = Framing::Events,
                None => return,
            }
        }
        if self.framing == Framing::Document {
            self.keep(bytes);
            return;
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            let (line, rest) = bytes.split_at(end + 1);
            self.keep(line);
            bytes = rest;
            if self.ends_event() {
                self.event();
            }
        }
        self.keep(bytes);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.kept.len() + bytes.len() > KEPT_MAX {
            self.passing = true;
            // The end is kept, so that the end of the event is seen.
            let end = self.kept.len().saturating_sub(4);
            self.kept.drain(..end);
        }
        self.kept.extend_from_slice(bytes.get(bytes.len().saturating_sub(KEPT_MAX / 2)..).unwrap_or_default());
    }

    /// An empty line ends an event; lines end in any of three ways.
    fn ends_event(&self) -> bool {
        [&b"\n\n"[..], b"\r\r", b"\n\r\n"].iter().any(|end| self.kept.ends_with(end))
    }

    fn event(&mut self) {
        let about = memchr::memmem::find(&self.kept, b"sage").is_some()
            || memchr::memmem::find(&self.kept, b"timings").is_some();
        if about && !self.passing {
            self.decoder.feed(&self.kept);
        }
        if !self.passing && endpoint::is_named_in(&self.kept) {
            let event = String::from_utf8_lossy(&self.kept);
            let data: String = event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
            self.miss_reason = endpoint::miss_reason(&data).or(self.miss_reason.take());
        }
        self.kept.clear();
        self.passing = false;
    }

    /// What was reported up to here, and what the endpoint said about a miss.
    pub(crate) fn finish(mut self) -> (Option<Usage>, Option<String>) {
        let mut unpack = std::mem::replace(&mut self.unpack, Unpack::Broken);
        let _ = unpack.finish(&mut |plain| self.plain(plain));
        if self.framing == Framing::Events {
            self.event();
        } else if !self.passing {
            self.decoder.feed(&self.kept);
            self.miss_reason = std::str::from_utf8(&self.kept).ok().and_then(endpoint::miss_reason);
        }
        let miss_reason = self.miss_reason.take();
        let cut = self.decoder.interrupted(Failure::new(FailureCode::Incomplete, "")).usage;
        let usage = match cut {
            Some(usage) => Some(usage),
            None => match self.decoder.finish() {
                Ok(answer) => answer.usage,
                Err(failure) => failure.usage,
            },
        };
        (usage.filter(|usage| !usage.is_unknown()), miss_reason)
    }
}

/// Takes the content encoding off.
enum Unpack {
    Plain,
    Gzip(flate2::write::MultiGzDecoder<Vec<u8>>),
    Deflate(flate2::write::ZlibDecoder<Vec<u8>>),
    Brotli(Box<brotli_decompressor::DecompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Decoder<'static, Vec<u8>>),
    /// Of an unknown encoding, or damaged: nothing can be read.
    Broken,
}

impl Unpack {
    fn new(encoding: Option<&str>) -> Self {
        match encoding.map(|encoding| encoding.trim().to_ascii_lowercase()).as_deref() {
            None | Some("" | "identity") => Self::Plain,
            Some("gzip" | "x-gzip") => Self::Gzip(flate2::write::MultiGzDecoder::new(Vec::new())),
            Some("deflate") => Self::Deflate(flate2::write::ZlibDecoder::new(Vec::new())),
            Some("br") => Self::Brotli(Box::new(brotli_decompressor::DecompressorWriter::new(Vec::new(), 4_096))),
            Some("zstd") => zstd::stream::write::Decoder::new(Vec::new()).map_or(Self::Broken, Self::Zstd),
            Some(_) => Self::Broken,
        }
    }

    /// Pieces are small, so that what a short piece unpacks to stays bounded.
    fn write(&mut self, bytes: &[u8], out: &mut dyn FnMut(&[u8])) -> std::io::Result<()> {
        if let Self::Plain = self {
            out(bytes);
            return Ok(());
        }
        for piece in bytes.chunks(16 * 1024) {
            let unpacked = match self {
                Self::Plain | Self::Broken => return Ok(()),
                Self::Gzip(decoder) => {
                    decoder.write_all(piece)?;
                    decoder.flush()?;
                    decoder.get_mut()
                }
                Self::Deflate(decoder) => {
                    decoder.write_all(piece)?;
                    decoder.flush()?;
                    decoder.get_mut()
                }
                Self::Brotli(decoder) => {
                    decoder.write_all(piece)?;
                    decoder.get_mut()
                }
                Self::Zstd(decoder) => {
                    decoder.write_all(piece)?;
                    decoder.flush()?;
                    decoder.get_mut()
                }
            };
            out(unpacked);
            unpacked.clear();
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn FnMut(&[u8])) -> std::io::Result<()> {
        match self {
            Self::Gzip(decoder) => decoder.try_finish().map(|()| out(decoder.get_ref())),
            Self::Deflate(decoder) => decoder.try_finish().map(|()| out(decoder.get_ref())),
            _ => Ok(()),
        }
    }
}

/// Takes the content encoding off a whole body; `None` when it cannot be, or when it is longer than `most` without it.
pub(crate) fn unpack_body(encoding: Option<&str>, body: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut unpack = Unpack::new(encoding);
    if let Unpack::Broken = unpack {
        return None;
    }
    let mut whole = Vec::new();
    let mut fits = true;
    let mut add = |plain: &[u8]| {
        fits = fits && whole.len() + plain.len() <= most;
        if fits {
            whole.extend_from_slice(plain);
        }
    };
    unpack.write(body, &mut add).ok()?;
    unpack.finish(&mut add).ok()?;
    fits.then_some(whole)
}
