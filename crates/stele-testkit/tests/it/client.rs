//! A client that knows bytes only.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// How long a test waits for bytes before it fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Whole,
    Closed,
    Reset,
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The HTTP chunks.
    pub chunks: Vec<Vec<u8>>,
    pub end: End,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The events of a stream: name and data.
    pub fn events(&self) -> Vec<(Option<String>, String)> {
        let text = self.text();
        let read = |event: &str| {
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            (field("event: "), field("data: ").unwrap_or_default())
        };
        text.split("\n\n").filter(|event| !event.is_empty()).map(read).collect()
    }

    /// The data of the events that are JSON.
    pub fn data(&self) -> Vec<Value> {
        self.events().iter().filter_map(|(_, data)| serde_json::from_str(data).ok()).collect()
    }
}

pub struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// Sends a request with a length.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.write(&[head.as_bytes(), b"\r\n", body].concat());
    }

    pub fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        self.send("POST", path, headers, body);
        self.receive()
    }

    pub fn get(&mut self, path: &str) -> Response {
        self.send("GET", path, &[], b"");
        self.receive()
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// The status line and the headers; absent when the connection ends first.
    pub fn head(&mut self) -> Option<(u16, Vec<(String, String)>)> {
        let status = self.line()?.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else { return Some((status, headers)) };
            headers.push((name.to_owned(), value.to_owned()));
        }
    }

    /// One chunk; empty at the end of the body.
    pub fn chunk(&mut self) -> Result<Vec<u8>, End> {
        let mut size = String::new();
        let read = self.stream.read_line(&mut size);
        if !matches!(read, Ok(count) if count > 0) {
            return Err(ended(&read.map(|_| ())));
        }
        let mut chunk = vec![0; usize::from_str_radix(size.trim_end(), 16).unwrap() + 2];
        let read = self.stream.read_exact(&mut chunk);
        if read.is_err() {
            return Err(ended(&read));
        }
        chunk.truncate(chunk.len() - 2);
        Ok(chunk)
    }

    pub fn receive(&mut self) -> Response {
        let (status, headers) = self.head().expect("an answer");
        let mut response = Response { status, headers, body: Vec::new(), chunks: Vec::new(), end: End::Whole };
        if let Some(length) = response.header("content-length") {
            let mut body = vec![0; length.parse().unwrap()];
            let read = self.stream.read_exact(&mut body);
            if read.is_err() {
                response.end = ended(&read);
            }
            response.body = body;
            return response;
        }
        loop {
            match self.chunk() {
                Ok(chunk) if chunk.is_empty() => return response,
                Ok(chunk) => {
                    response.body.extend(&chunk);
                    response.chunks.push(chunk);
                }
                Err(end) => {
                    response.end = end;
                    return response;
                }
            }
        }
    }

    /// Everything until the server closes.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => rest,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => rest,
            Err(error) => panic!("the server neither answered nor closed: {error}"),
        }
    }

    /// Says that nothing more will be sent.
    pub fn finish(&mut self) {
        // The server may have closed already.
        let _ = self.stream.get_ref().shutdown(std::net::Shutdown::Write);
    }

    /// Sends what the server may refuse to read to its end.
    pub fn try_write(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }
}

fn ended(read: &std::io::Result<()>) -> End {
    match read {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => End::Reset,
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => panic!("{error}"),
        _ => End::Closed,
    }
}
