//! Servers behind TLS, and behind a proxy of the network.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use stele_provider::Proxies;
use stele_proxy::{Error, Options, Proxy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{exchange, options, post, proxy_with, read_request, server, split};

const REQUEST: &[u8] = br#"{"model":"m","messages":[]}"#;

fn authority() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tls/ca.pem"))
}

/// A server that speaks TLS and answers with the length of what it got.
async fn secure_server() -> std::net::SocketAddr {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("tls/server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key")).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    server(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let mut bytes = Vec::new();
            let mut piece = [0; 4_096];
            while !bytes.ends_with(REQUEST) {
                let read = stream.read(&mut piece).await.unwrap();
                bytes.extend_from_slice(&piece[..read]);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret").await.unwrap();
            let _ = stream.shutdown().await;
        }
    })
    .await
}

#[tokio::test]
async fn a_server_behind_tls_is_reached_with_its_authority() {
    let address = secure_server().await;
    let target = format!("https://localhost:{}", address.port());
    let trusting = |options| Options { ca_file: Some(authority()), ..options };
    let running = proxy_with(&target, trusting).await;
    let answer = exchange(running.address, &post("/v1/messages", "", REQUEST)).await;
    assert_eq!(split(&answer).1, b"secret");
    assert_eq!(running.finish().await[0].base_url, target);
    // Without it the certificate is not trusted, and nothing is sent.
    let running = proxy_with(&target, |options| options).await;
    let answer = exchange(running.address, &post("/v1/messages", "", REQUEST)).await;
    let text = String::from_utf8_lossy(split(&answer).1).into_owned();
    assert!(text.contains("proxy.unreachable") && text.contains("STELE_CA_FILE"), "{text}");
    running.finish().await;
}

#[tokio::test]
async fn an_authority_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (file, part) in
        [("/nowhere/ca.pem".into(), "/nowhere/ca.pem"), (folder.path().join("empty.pem"), "no PEM certificate")]
    {
        let _ = std::fs::write(folder.path().join("empty.pem"), "nothing");
        let options = Options { ca_file: Some(file), ..options("https://localhost:1", folder.path()) };
        let error = Proxy::bind(options).await.unwrap_err();
        assert!(matches!(error, Error::Tls(_)) && error.to_string().contains(part), "{error}");
    }
}

/// A proxy of the network that lets those through who say who they are.
async fn network_proxy(to: std::net::SocketAddr) -> std::net::SocketAddr {
    server(move |mut stream| async move {
        let asked = String::from_utf8(read_request(&mut stream).await).unwrap();
        // "u@x:p w" in base64.
        if !asked.starts_with("CONNECT model.example:443 ")
            || !asked.contains("Proxy-Authorization: Basic dUB4OnAgdw==\r\n")
        {
            stream.write_all(b"HTTP/1.1 407 Who are you\r\n\r\n").await.unwrap();
            return;
        }
        stream.write_all(b"HTTP/1.1 200 Go on\r\nVia: x\r\n\r\n").await.unwrap();
        let mut onward = TcpStream::connect(to).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut stream, &mut onward).await;
    })
    .await
}

#[tokio::test]
async fn a_proxy_of_the_network_is_gone_through_and_its_refusal_shown() {
    let network = network_proxy(secure_server().await).await;
    let through = |user: &'static str| {
        let proxies =
            Proxies::from_environment(&|name| (name == "HTTPS_PROXY").then(|| format!("http://{user}@{network}")))
                .unwrap();
        move |options| Options { proxies, ca_file: Some(authority()), ..options }
    };
    // The certificate is for localhost, so a name that differs ends in the TLS handshake: the tunnel was there.
    for (user, part) in [("u%40x:p%20w", "no TLS connection"), ("u:wrong", "407 Who are you")] {
        let running = proxy_with("https://model.example", through(user)).await;
        let answer = exchange(running.address, &post("/v1/messages", "", REQUEST)).await;
        let text = String::from_utf8_lossy(split(&answer).1).into_owned();
        assert!(text.contains(part) && text.contains("HTTPS_PROXY") && !text.contains("p%20w"), "{text}");
        running.finish().await;
    }
}
