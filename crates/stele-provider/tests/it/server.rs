//! A server that sends exactly the bytes a test tells it to.

#![allow(clippy::unwrap_used)] // the lint knows tests, not what they share

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What the server does with one connection, after it has read one request.
pub enum Step {
    /// Sends these bytes, as one write.
    Send(Vec<u8>),
    /// Reads a further request on the same connection.
    NextRequest,
    /// Waits until the client closes the connection.
    UntilClosed,
    /// Breaks the connection off (RST).
    Reset,
}

impl Step {
    pub fn send(text: impl AsRef<[u8]>) -> Self {
        Self::Send(text.as_ref().to_vec())
    }
}

/// One request as it arrived.
#[derive(Debug)]
pub struct Seen {
    pub head: String,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        let line = |line: &&str| line.to_ascii_lowercase().starts_with(&format!("{name}:"));
        self.head.lines().find(line).map(|line| line[name.len() + 1..].trim())
    }
}

/// A server for one connection; it ends with the requests that it saw.
pub async fn serve(steps: Vec<Step>) -> (u16, JoinHandle<Vec<Seen>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        play(stream, steps, |stream: &TcpStream| stream.set_zero_linger().unwrap()).await
    });
    (port, task)
}

/// The same behind TLS, with a certificate of the test's own authority.
pub async fn serve_tls(steps: Vec<Step>) -> (u16, JoinHandle<Vec<Seen>>) {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};

    let certificate = CertificateDer::from_pem_slice(include_bytes!("tls/server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key")).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        match acceptor.accept(stream).await {
            Ok(stream) => play(stream, steps, |_: &_| {}).await,
            Err(_) => Vec::new(),
        }
    });
    (port, task)
}

async fn play<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, steps: Vec<Step>, linger: impl Fn(&S)) -> Vec<Seen> {
    let mut seen = vec![read_request(&mut stream).await];
    for step in steps {
        match step {
            Step::Send(bytes) => {
                if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
                    return seen;
                }
                // Lets the client read what was written as a chunk of its own.
                tokio::task::yield_now().await;
            }
            Step::NextRequest => seen.push(read_request(&mut stream).await),
            Step::UntilClosed => {
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest).await;
                assert!(rest.is_empty(), "the client sent more than a request");
            }
            Step::Reset => {
                linger(&stream);
                return seen;
            }
        }
    }
    let _ = stream.shutdown().await;
    seen
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Seen {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.unwrap();
        assert_ne!(read, 0, "the client closed in mid-request");
        bytes.extend_from_slice(&buffer[..read]);
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut seen = Seen { head, body: bytes[end + 4..].to_vec() };
    let length: usize = seen.header("content-length").map_or(0, |text| text.parse().unwrap());
    while seen.body.len() < length {
        let mut buffer = vec![0; length - seen.body.len()];
        let read = stream.read(&mut buffer).await.unwrap();
        assert_ne!(read, 0, "the client closed in mid-body");
        seen.body.extend_from_slice(&buffer[..read]);
    }
    seen
}
