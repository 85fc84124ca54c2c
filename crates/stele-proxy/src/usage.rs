//! The usage of an answer, read from a copy of its bytes.
//!
//! Only the events that say something about usage, or how the answer ended, are looked at, so that an answer of any length
//! costs little memory.

use std::io::Write;

use stele_core::{CacheMarks, Config, Usage, Wire, derive_rev};
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
        if !self.passing && (is_about_usage(&self.kept) || is_about_the_end(&self.kept)) {
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
        // A failure holds what was reported before it.
        let usage = match self.decoder.finish() {
            Ok(answer) => answer.usage,
            Err(failure) => failure.usage,
        };
        (usage.filter(|usage| !usage.is_unknown()), miss_reason)
    }
}

fn is_about_usage(event: &[u8]) -> bool {
    [&b"sage"[..], b"timings"].iter().any(|name| memchr::memmem::find(event, name).is_some())
}

/// Chat Completions may report usage in an event after the one that ends the answer (OpenAI, `stream_options`, 2026-11). A
/// reason that is `null` ends nothing; the other wires say both in one event, or in one that is about usage too.
fn is_about_the_end(event: &[u8]) -> bool {
    const REASON: &[u8] = b"finish_reason\"";
    let given = |at: usize| {
        let value = event.get(at + REASON.len()..).unwrap_or_default().trim_ascii_start().strip_prefix(b":");
        value.is_some_and(|value| value.trim_ascii_start().starts_with(b"\""))
    };
    memchr::memmem::find(event, b"[DONE]").is_some() || memchr::memmem::find_iter(event, REASON).any(given)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a stream reported, whole and split anywhere.
    fn read(wire: Wire, stream: &str) -> Option<Usage> {
        let mut whole = UsageReader::new(wire, "http://127.0.0.1:1", None);
        whole.feed(stream.as_bytes());
        let mut split = UsageReader::new(wire, "http://127.0.0.1:1", None);
        stream.as_bytes().chunks(7).for_each(|piece| split.feed(piece));
        let (whole, split) = (whole.finish().0, split.finish().0);
        assert_eq!(whole, split);
        whole
    }

    #[test]
    fn a_chat_stream_reports_its_output_after_the_event_that_ends_it() {
        let text = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":null}]}\n\n";
        let end = "data: {\"choices\": [{\"index\": 0, \"delta\": {}, \"finish_reason\": \"stop\"}]}\n\n";
        let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5000,\"completion_tokens\":77}}\n\n";
        let done = "data: [DONE]\n\n";
        let figures = |events: &[&str]| {
            let usage = read(Wire::OpenaiChat, &events.concat()).unwrap();
            (usage.input(), usage.output)
        };
        assert_eq!(figures(&[text, end, usage, done]), (Some(5000), Some(77)));
        // Without `[DONE]`, without a reason, and without the empty line after the last event.
        assert_eq!(figures(&[text, end, usage]), (Some(5000), Some(77)));
        assert_eq!(figures(&[text, usage, done]), (Some(5000), Some(77)));
        assert_eq!(figures(&[text, end, usage.trim_end()]), (Some(5000), Some(77)));
        // A stream that broke off has counted a part of it.
        assert_eq!(figures(&[usage, text]), (Some(5000), None));
    }

    #[test]
    fn a_reason_that_is_null_or_a_text_about_one_ends_nothing() {
        let check = |event: &str, expect: bool| assert_eq!(is_about_the_end(event.as_bytes()), expect, "{event}");
        check(r#"{"finish_reason":null}"#, false);
        check(r#"{"finish_reason" : "length"}"#, true);
        check(r#"{"native_finish_reason":"stop","finish_reason":null}"#, true);
        check(r#"{"content":"a \"finish_reason\": \"stop\""}"#, false);
        check("data: [DONE]", true);
        check("", false);
    }
}
