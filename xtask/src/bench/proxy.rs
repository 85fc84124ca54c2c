//! What `stele proxy` adds to a request, and whether a gigabyte passes through it unchanged in bounded memory.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;
use stele_core::{Hash, Hasher};
use stele_testkit::{Say, Server};

use super::ms;
use crate::figure::{Bar, Figure};
use crate::proxied::Proxied;
use crate::random::Random;

/// Requests each way that are compared.
const PAIRS: usize = 1_500;
/// Answers of the gigabyte, and bytes of each, about.
const ANSWERS: usize = 8;
const ANSWER: usize = 125_000_000;

pub fn run(stele: &Path) -> Result<Vec<Figure>> {
    let mut figures = added(stele)?;
    figures.extend(gigabyte(stele)?);
    Ok(figures)
}

/// The same request straight to the server and through the proxy, in turn.
fn added(stele: &Path) -> Result<Vec<Figure>> {
    let server = Server::start(Say::text("A short answer, in the pieces in which it is streamed."))?;
    let home = tempfile::Builder::new().prefix("stele-xtask-").tempdir()?;
    let proxied = Proxied::start(stele, &format!("http://{}", server.address()), home.path())?;
    let text = Random::new(1).text(60_000);
    let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": text}]}).to_string();
    let (mut straight, mut through) =
        (Client::connect(&server.address().to_string())?, Client::connect(&proxied.origin)?);
    let mut differences = Vec::with_capacity(PAIRS);
    let (mut without, mut with) = (Vec::with_capacity(PAIRS), Vec::with_capacity(PAIRS));
    for pair in 0..PAIRS + 50 {
        // Each is first as often as the other.
        let (one, other) = if pair % 2 == 0 {
            let one = straight.ask(&body)?;
            (one, through.ask(&body)?)
        } else {
            let other = through.ask(&body)?;
            (straight.ask(&body)?, other)
        };
        if pair >= 50 {
            without.push(ms(one));
            with.push(ms(other));
            differences.push(ms(other) - ms(one));
        }
    }
    proxied.stop()?;
    let how =
        "the same request of 60 KB with a streamed answer, in turn straight and through the proxy, on kept connections";
    Ok(vec![
        Figure::of("proxy", "time that the proxy adds to a request", "ms", &differences, how).bar(Bar::Most(1.0)),
        Figure::of("proxy", "the request without it", "ms", &without, "the same"),
        Figure::of("proxy", "the request through it", "ms", &with, "the same"),
    ])
}

/// A client with one connection.
struct Client {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Client {
    fn connect(origin: &str) -> Result<Self> {
        let host = origin.trim_start_matches("http://").to_owned();
        let stream = TcpStream::connect(&host)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), host })
    }

    /// From the first byte that is sent to the last one that comes back.
    fn ask(&mut self, body: &str) -> Result<Duration> {
        let began = Instant::now();
        self.send(body)?;
        self.read(|_| {})?;
        Ok(began.elapsed())
    }

    fn send(&mut self, body: &str) -> Result<()> {
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.host,
            body.len()
        );
        self.stream.get_mut().write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
        Ok(())
    }

    /// Reads an answer in chunks; gives the pieces of its body.
    fn read(&mut self, mut piece: impl FnMut(&[u8])) -> Result<()> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        if !line.starts_with("HTTP/1.1 200") {
            bail!("the answer is {line:?}");
        }
        let mut chunked = false;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            if line.trim().is_empty() {
                break;
            }
            chunked |= line.to_ascii_lowercase().starts_with("transfer-encoding: chunked");
        }
        if !chunked {
            bail!("the answer is not in chunks");
        }
        let mut buffer = Vec::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim(), 16).with_context(|| format!("{line:?} is no chunk"))?;
            buffer.resize(size + 2, 0);
            self.stream.read_exact(&mut buffer)?;
            piece(buffer.get(..size).unwrap_or_default());
            if size == 0 {
                return Ok(());
            }
        }
    }
}

/// Streams of events, a gigabyte in all.
fn gigabyte(stele: &Path) -> Result<Vec<Figure>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let serving = std::thread::spawn(move || stream_out(&listener));
    let home = tempfile::Builder::new().prefix("stele-xtask-").tempdir()?;
    let mut proxied = Proxied::start(stele, &origin(address), home.path())?;
    let mut client = Client::connect(&proxied.origin)?;
    let body =
        json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "Say much."}]}).to_string();
    let (mut hasher, mut bytes) = (Hasher::new(), 0);
    let began = Instant::now();
    for _ in 0..ANSWERS {
        client.send(&body)?;
        client.read(|piece| {
            hasher.update(piece);
            bytes += piece.len();
        })?;
    }
    let time = began.elapsed();
    proxied.wait_for(ANSWERS)?;
    let peak = peak(proxied.id())?;
    drop(client);
    proxied.stop()?;
    let sent = serving.join().map_err(|_| anyhow::anyhow!("the server stopped"))??;
    let same = f64::from(u8::from(sent == Hash::from(&hasher)));
    let how = format!("{ANSWERS} streamed answers, {:.2} GB in all, hashed at both ends", bytes as f64 / 1e9);
    Ok(vec![
        Figure::of("proxy", "a gigabyte passes unchanged (1: yes)", "", &[same], &how).bar(Bar::Least(1.0)),
        Figure::of("proxy", "peak of the proxy meanwhile", "MB", &[peak], "VmHWM of the process").bar(Bar::Most(64.0)),
        Figure::of(
            "proxy",
            "throughput",
            "MB/s",
            &[bytes as f64 / 1e6 / time.as_secs_f64()],
            "the same; server, proxy and client share the cores",
        ),
    ])
}

fn origin(address: SocketAddr) -> String {
    format!("http://{address}")
}

/// Answers on one connection; gives the hash of all bodies.
fn stream_out(listener: &TcpListener) -> Result<Hash> {
    let (stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let mut hasher = Hasher::new();
    let mut random = Random::new(7);
    let mut text = random.text(900);
    text.retain(|character| character != '"' && character != '\n');
    for _ in 0..ANSWERS {
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line)?;
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        let out = stream.get_mut();
        out.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        let mut sent = 0;
        let mut chunk = Vec::new();
        while sent < ANSWER {
            chunk.clear();
            while chunk.len() < 60_000 {
                // No two events are the same.
                let event = format!(
                    "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{:016x} {text}\"}}}}]}}\n\n",
                    random.next()
                );
                chunk.extend_from_slice(event.as_bytes());
            }
            write_chunk(out, &mut hasher, &chunk)?;
            sent += chunk.len();
        }
        write_chunk(
            out,
            &mut hasher,
            b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":9}}\n\ndata: [DONE]\n\n",
        )?;
        out.write_all(b"0\r\n\r\n")?;
    }
    Ok(Hash::from(&hasher))
}

fn write_chunk(out: &mut TcpStream, hasher: &mut Hasher, chunk: &[u8]) -> Result<()> {
    hasher.update(chunk);
    out.write_all(format!("{:x}\r\n", chunk.len()).as_bytes())?;
    out.write_all(chunk)?;
    out.write_all(b"\r\n")?;
    Ok(())
}

/// Peak of a process's resident memory, in MB (proc_pid_status(5)).
fn peak(id: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM in the status")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024.0 / 1e6)
}
