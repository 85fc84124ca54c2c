//! Connections to the server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use stele_core::limits;
use stele_provider::{Hop, Proxies};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::body::RequestBody;
use crate::target::Target;
use crate::{Error, Result};

/// Longest head of a proxy's answer, in bytes.
const TUNNEL_HEAD_MAX: usize = 16 * 1024;

/// Why a request could not be forwarded.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// How the server is reached.
pub(crate) struct Upstream {
    pub(crate) target: Target,
    /// The proxy of the network that stands before it.
    hop: Option<Hop>,
    tls: Option<TlsConnector>,
}

/// One connection; dropping it closes it.
pub(crate) struct Connection {
    pub(crate) sender: SendRequest<RequestBody>,
    driver: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// What a connection runs over.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Upstream {
    pub(crate) fn new(target: Target, proxies: &Proxies, ca_file: Option<&Path>) -> Result<Self> {
        let hop = proxies.hop(&target.origin());
        let secure = target.secure || hop.as_ref().is_some_and(|hop| hop.secure);
        let tls = if secure { Some(connector(ca_file)?) } else { None };
        Ok(Self { target, hop, tls })
    }

    pub(crate) async fn connect(&self) -> Result<Connection, Refusal> {
        let time = Duration::from_millis(limits::CONNECT_MS.default);
        match tokio::time::timeout(time, self.open()).await {
            Ok(opened) => opened,
            Err(_) => Err(self.unreachable(&format!("no connection in {time:?}; check the network and the address"))),
        }
    }

    fn unreachable(&self, why: &str) -> Refusal {
        let through = self.hop.as_ref().map(|hop| format!(" through {}", hop.shown)).unwrap_or_default();
        Refusal::new("proxy.unreachable", format!("{}{through}: {why}", self.target.authority))
    }

    async fn open(&self) -> Result<Connection, Refusal> {
        let (host, port) = match &self.hop {
            Some(hop) => (&hop.host, hop.port),
            None => (&self.target.host, self.target.port),
        };
        let stream = TcpStream::connect((host.as_str(), port)).await.map_err(|error| {
            if error.kind() == std::io::ErrorKind::ConnectionRefused {
                self.unreachable("nothing answers there; is the server running?")
            } else {
                self.unreachable(&format!("no connection: {error}; check the network and the address"))
            }
        })?;
        // Small pieces of a stream must not wait for each other.
        let _ = stream.set_nodelay(true);
        let mut stream: Box<dyn Stream> = Box::new(stream);
        if let Some(hop) = &self.hop {
            if hop.secure {
                stream = self.encrypt(&hop.host, stream).await?;
            }
            self.tunnel(hop, &mut stream).await?;
        }
        if self.target.secure {
            stream = self.encrypt(&self.target.host, stream).await?;
        }
        self.shake_hands(TokioIo::new(stream)).await
    }

    async fn encrypt(&self, host: &str, stream: Box<dyn Stream>) -> Result<Box<dyn Stream>, Refusal> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| self.unreachable(&format!("{host} is no name that a certificate can have")))?;
        let Some(tls) = &self.tls else { return Ok(stream) };
        let stream = tls.connect(name, stream).await.map_err(|error| {
            self.unreachable(&format!(
                "no TLS connection: {error}; if your network inspects TLS, set STELE_CA_FILE to its certificate \
                 authority"
            ))
        })?;
        Ok(Box::new(stream))
    }

    /// Asks a proxy of the network for a tunnel to the server (RFC 9110, section 9.3.6).
    async fn tunnel(&self, hop: &Hop, stream: &mut Box<dyn Stream>) -> Result<(), Refusal> {
        let broken = |error: std::io::Error| self.unreachable(&format!("the proxy broke off: {error}"));
        let host =
            if self.target.host.contains(':') { format!("[{}]", self.target.host) } else { self.target.host.clone() };
        let place = format!("{host}:{}", self.target.port);
        let mut asked = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n");
        if let Some(user) = &hop.user {
            let plain: Vec<u8> = percent_encoding::percent_decode_str(user.expose()).collect();
            asked.push_str(&format!("Proxy-Authorization: Basic {}\r\n", BASE64_STANDARD.encode(plain)));
        }
        asked.push_str("\r\n");
        stream.write_all(asked.as_bytes()).await.map_err(broken)?;
        let mut head = Vec::new();
        // What follows the head belongs to the server, so not a byte more is read.
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() >= TUNNEL_HEAD_MAX {
                return Err(self.unreachable("the proxy's answer does not end"));
            }
            head.push(stream.read_u8().await.map_err(broken)?);
        }
        let line = String::from_utf8_lossy(head.split(|byte| *byte == b'\r').next().unwrap_or_default()).into_owned();
        if line.split(' ').nth(1).is_some_and(|status| status.starts_with('2')) {
            Ok(())
        } else {
            Err(self.unreachable(&format!("the proxy refuses the connection: {line}")))
        }
    }

    async fn shake_hands<I>(&self, io: I) -> Result<Connection, Refusal>
    where
        I: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
    {
        let shaken = http1::Builder::new().preserve_header_case(true).handshake(io).await;
        let (sender, connection) = shaken.map_err(|error| {
            Refusal::new("proxy.unreachable", format!("no connection to {}: {error}", self.target.authority))
        })?;
        let driver = tokio::spawn(async move {
            // What goes wrong here reaches the request, or the body of its answer.
            let _ = connection.await;
        });
        Ok(Connection { sender, driver })
    }
}

fn connector(ca_file: Option<&Path>) -> Result<TlsConnector> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = Vec::new();
    if let Some(path) = ca_file {
        let unreadable = |why: String| Error::Tls(format!("STELE_CA_FILE names {}, which {why}", path.display()));
        let pem = rustls::pki_types::CertificateDer::pem_file_iter(path)
            .map_err(|error| unreadable(format!("cannot be read: {error}")))?;
        for certificate in pem {
            roots.push(certificate.map_err(|error| unreadable(format!("holds no PEM certificate: {error}")))?);
        }
        if roots.is_empty() {
            return Err(unreadable("holds no PEM certificate".to_owned()));
        }
    }
    let verifier = rustls_platform_verifier::Verifier::new_with_extra_roots(roots, Arc::clone(&provider))
        .map_err(|error| Error::Tls(format!("the system's certificate authorities cannot be read: {error}")))?;
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Tls(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
