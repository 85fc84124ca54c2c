//! Connections to the server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use stele_core::limits;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::body::RequestBody;
use crate::target::Target;
use crate::{Error, Result};

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

impl Upstream {
    pub(crate) fn new(target: Target, ca_file: Option<&Path>) -> Result<Self> {
        let tls = if target.secure { Some(connector(ca_file)?) } else { None };
        Ok(Self { target, tls })
    }

    pub(crate) async fn connect(&self) -> Result<Connection, Refusal> {
        let time = Duration::from_millis(limits::CONNECT_MS.default);
        let place = &self.target.authority;
        match tokio::time::timeout(time, self.open()).await {
            Ok(opened) => opened,
            Err(_) => {
                let message = format!("no connection to {place} in {time:?}; check the network and the address");
                Err(Refusal::new("proxy.unreachable", message))
            }
        }
    }

    async fn open(&self) -> Result<Connection, Refusal> {
        let Target { host, port, authority, .. } = &self.target;
        let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(|error| {
            let why = if error.kind() == std::io::ErrorKind::ConnectionRefused {
                format!("nothing answers at {authority}; is the server running?")
            } else {
                format!("no connection to {authority}: {error}; check the network and the address")
            };
            Refusal::new("proxy.unreachable", why)
        })?;
        // Small pieces of a stream must not wait for each other.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else { return self.shake_hands(TokioIo::new(stream)).await };
        let name = ServerName::try_from(host.clone())
            .map_err(|_| Refusal::new("proxy.unreachable", format!("{host} is no name that a certificate can have")))?;
        let stream = tls.connect(name, stream).await.map_err(|error| {
            let why = format!(
                "no TLS connection to {authority}: {error}; if your network inspects TLS, set STELE_CA_FILE to its \
                 certificate authority"
            );
            Refusal::new("proxy.unreachable", why)
        })?;
        self.shake_hands(TokioIo::new(stream)).await
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
