//! A proxy in a test, clients of it, and servers behind it.

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use stele_provider::Proxies;
use stele_proxy::{Exposure, Notice, Options, Proxy, Recorded, Store, Target};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// How long anything may take; reached only when a test fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Running {
    pub address: SocketAddr,
    pub folder: tempfile::TempDir,
    notices: mpsc::UnboundedReceiver<Notice>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<stele_proxy::Result<()>>,
}

pub fn options(target: &str, folder: &Path) -> Options {
    Options {
        target: Target::parse(target).unwrap(),
        listen: "127.0.0.1:0".parse().unwrap(),
        exposure: Exposure::Loopback,
        folder: folder.to_owned(),
        proxies: Proxies::default(),
        ca_file: None,
    }
}

pub async fn proxy(target: &str) -> Running {
    proxy_with(target, |options| options).await
}

pub async fn proxy_with(target: &str, change: impl FnOnce(Options) -> Options) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let proxy = Proxy::bind(change(options(target, folder.path()))).await.unwrap();
    let address = proxy.address();
    let (stop, stopped) = oneshot::channel::<()>();
    let (sender, notices) = mpsc::unbounded_channel();
    let serving = proxy.serve(
        async move {
            let _ = stopped.await;
        },
        move |notice| {
            let _ = sender.send(notice);
        },
    );
    Running { address, folder, notices, stop, task: tokio::spawn(serving) }
}

impl Running {
    pub async fn notice(&mut self) -> Notice {
        tokio::time::timeout(PATIENCE, self.notices.recv()).await.expect("a notice").expect("the recorder runs")
    }

    /// Stops the proxy and reads what it recorded.
    pub async fn finish(self) -> Vec<Recorded> {
        self.finish_with_folder().await.0
    }

    pub async fn finish_with_folder(self) -> (Vec<Recorded>, tempfile::TempDir) {
        self.stop.send(()).unwrap();
        tokio::time::timeout(PATIENCE, self.task).await.expect("the proxy ends").unwrap().unwrap();
        let found = Store::inspect(self.folder.path()).unwrap().recordings(None).unwrap();
        assert_eq!(found.damaged, Vec::<String>::new());
        (found.requests, self.folder)
    }
}

/// Sends some bytes and reads until the other side closes.
pub async fn exchange(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("an answer").unwrap();
    answer
}

pub fn post(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost:8787\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Splits an answer into its head and its body as it stands on the connection.
pub fn split(answer: &[u8]) -> (String, &[u8]) {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    (String::from_utf8(answer[..end].to_vec()).unwrap(), &answer[end + 4..])
}

/// Takes the chunks of a body apart; false when the last one is missing.
pub fn dechunk(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else { return (body, false) };
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        bytes = &bytes[end + 2..];
        if size == 0 {
            return (body, true);
        }
        if bytes.len() < size + 2 {
            body.extend_from_slice(&bytes[..bytes.len().min(size)]);
            return (body, false);
        }
        body.extend_from_slice(&bytes[..size]);
        bytes = &bytes[size + 2..];
    }
}

/// A server whose connections are served by a function of the test.
pub async fn server<F, S>(serve: F) -> SocketAddr
where
    F: Fn(TcpStream) -> S + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// Reads a request with a length, or in chunks, as it stands on the connection; less when the client leaves.
pub async fn read_request(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            let done = match length {
                Some(length) => bytes.len() >= end + 4 + length,
                None if head.contains("transfer-encoding: chunked") => bytes.ends_with(b"0\r\n\r\n"),
                None => true,
            };
            if done {
                return bytes;
            }
        }
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return bytes,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
        }
    }
}

/// Bytes without a pattern that a mistake would leave unchanged.
pub fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    let mut bytes = Vec::with_capacity(length + 4);
    while bytes.len() < length {
        bytes.extend_from_slice(&next().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
