//! As much of HTTP/1.1 as a model endpoint needs (RFC 9112): keep-alive, bodies with a length or in chunks. Bytes that
//! are not HTTP are an answer too (400), never a panic.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// Longest head, in bytes.
const LONGEST_HEAD: usize = 64 << 10;
/// Longest body, in bytes.
const LONGEST_BODY: u64 = 256 << 20;

/// The head of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) method: String,
    /// Path and query, as sent.
    pub(crate) target: String,
    /// In their order; names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// True when the connection is to be closed after the answer.
    pub(crate) closes: bool,
}

impl Head {
    /// The first header of this name, which is in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The path without the query.
    pub(crate) fn path(&self) -> &str {
        self.target.split_once('?').map_or(&self.target, |(path, _)| path)
    }

    /// The value of a key in the query.
    pub(crate) fn query(&self, key: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        query.split('&').filter_map(|pair| pair.split_once('=')).find(|(own, _)| *own == key).map(|(_, value)| value)
    }

    fn says(&self, name: &str, word: &str) -> bool {
        self.header(name).is_some_and(|value| value.to_ascii_lowercase().split(',').any(|part| part.trim() == word))
    }

    /// True when the client waits for a word before it sends the body.
    pub(crate) fn expects_continue(&self) -> bool {
        self.says("expect", "100-continue")
    }
}

/// Why there is no request.
#[derive(Debug)]
pub(crate) enum Bad {
    /// The client is gone, or the connection broke.
    Gone,
    /// It is answered with this status, and the connection is closed.
    Status(u16, &'static str),
}

impl From<io::Error> for Bad {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

const MALFORMED: Bad = Bad::Status(400, "the request is not HTTP/1.1");
const TOO_LARGE: Bad = Bad::Status(413, "the request is too large");

/// Reads a line without its end; `left` is what may still be read of the head.
async fn read_line(reader: &mut (impl AsyncBufRead + Unpin), left: &mut usize) -> Result<Vec<u8>, Bad> {
    let mut line = Vec::new();
    let limit = *left as u64;
    reader.take(limit).read_until(b'\n', &mut line).await?;
    *left = left.saturating_sub(line.len());
    if line.pop() != Some(b'\n') {
        return Err(if *left == 0 { Bad::Status(431, "the head is too long") } else { Bad::Gone });
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(line)
}

/// Reads the head of a request.
pub(crate) async fn read_head(reader: &mut (impl AsyncBufRead + Unpin)) -> Result<Head, Bad> {
    let mut left = LONGEST_HEAD;
    let mut line = read_line(reader, &mut left).await?;
    // An empty line between two requests is let through.
    if line.is_empty() {
        line = read_line(reader, &mut left).await?;
    }
    let line = String::from_utf8(line).map_err(|_| MALFORMED)?;
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(MALFORMED);
    };
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") || !target.starts_with('/') {
        return Err(MALFORMED);
    }
    let mut head = Head { method: method.to_owned(), target: target.to_owned(), ..Head::default() };
    loop {
        let line = read_line(reader, &mut left).await?;
        if line.is_empty() {
            break;
        }
        let line = String::from_utf8_lossy(&line);
        let Some((name, value)) = line.split_once(':') else { return Err(MALFORMED) };
        head.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    head.closes = head.says("connection", "close") || (version == "HTTP/1.0" && !head.says("connection", "keep-alive"));
    Ok(head)
}

/// Reads the body that belongs to the head.
pub(crate) async fn read_body(reader: &mut (impl AsyncBufRead + Unpin), head: &Head) -> Result<Vec<u8>, Bad> {
    let mut body = Vec::new();
    if head.says("transfer-encoding", "chunked") {
        loop {
            let mut left = LONGEST_HEAD;
            let line = read_line(reader, &mut left).await?;
            let line = String::from_utf8_lossy(&line);
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(size, 16).map_err(|_| MALFORMED)?;
            if size == 0 {
                while !read_line(reader, &mut left).await?.is_empty() {}
                return Ok(body);
            }
            read_exactly(reader, size, &mut body).await?;
            if !read_line(reader, &mut left).await?.is_empty() {
                return Err(MALFORMED);
            }
        }
    }
    if let Some(length) = head.header("content-length") {
        let length = length.parse().map_err(|_| MALFORMED)?;
        read_exactly(reader, length, &mut body).await?;
    }
    Ok(body)
}

async fn read_exactly(reader: &mut (impl AsyncBufRead + Unpin), size: u64, body: &mut Vec<u8>) -> Result<(), Bad> {
    if size > LONGEST_BODY.saturating_sub(body.len() as u64) {
        return Err(TOO_LARGE);
    }
    if reader.take(size).read_to_end(body).await? as u64 == size { Ok(()) } else { Err(Bad::Gone) }
}

/// How a body's end is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// By `content-length`.
    Length,
    /// By chunks.
    Chunked,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The ends of the events in the body; empty when it is not a stream.
    pub(crate) events: Vec<usize>,
    pub(crate) framing: Framing,
}

impl Response {
    /// A body that is not streamed.
    pub(crate) fn plain(status: u16, content_type: &str, body: Vec<u8>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            body,
            events: Vec::new(),
            framing: Framing::Length,
        }
    }

    /// A streamed body.
    pub(crate) fn stream(content_type: &str, body: Vec<u8>, events: Vec<usize>) -> Self {
        let headers = [("content-type", content_type), ("cache-control", "no-cache")];
        Self {
            status: 200,
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            body,
            events,
            framing: Framing::Chunked,
        }
    }

    /// The bytes of the head.
    pub(crate) fn head(&self, closes: bool) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&match self.framing {
            Framing::Length => format!("content-length: {}\r\n", self.body.len()),
            Framing::Chunked => "transfer-encoding: chunked\r\n".to_owned(),
        });
        head.push_str(if closes { "connection: close\r\n\r\n" } else { "\r\n" });
        head.into_bytes()
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        529 => "Overloaded",
        _ => "Status",
    }
}
