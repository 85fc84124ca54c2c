//! Sends one attempt of a request and reads its stream.
//!
//! The body is sent as it is given, byte for byte, and what comes back goes to the decoder chunk by
//! chunk. Nothing here tries twice: a failed attempt is a [`Failure`], and the loop decides.
//!
//! **Invariant:** a credential is in exactly one header, which is marked sensitive, and in no error, whatever the server
//! says.

use std::convert::Infallible;
use std::iter::Peekable;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, Url};
use stele_core::{Config, Failure, FailureCode, Wire, limits};

use crate::fault::{self, Place};
use crate::{Answer, Decoder, Delta, Proxies, Secret, http_failure};

/// Bytes of an error's body that are read.
const ERROR_BODY_MAX: usize = 64 * 1024;

/// Longest wait for what may follow the end of an answer (usage, a closing mark) on a connection that stays open.
const AFTER_END: Duration = Duration::from_secs(3);

/// Version of the Messages API (Anthropic, API versioning, 2026-11).
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// How the client connects. All of it comes in as data.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Longest time to make a connection.
    pub connect: Duration,
    /// Longest time without a byte, before the first one too.
    pub idle: Duration,
    /// The proxies.
    pub proxies: Proxies,
    /// A PEM file with certificate authorities that are trusted beside the system's (`STELE_CA_FILE`).
    pub ca_file: Option<PathBuf>,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            connect: Duration::from_millis(limits::CONNECT_MS.default),
            idle: Duration::from_millis(limits::IDLE_MS.default),
            proxies: Proxies::default(),
            ca_file: None,
        }
    }
}

impl ClientSettings {
    /// The default limits with the proxies and `STELE_CA_FILE` of an environment.
    ///
    /// `SSL_CERT_FILE` needs no place here: where the system's authorities are files, the TLS
    /// library reads it in their stead.
    ///
    /// # Errors
    /// A proxy variable cannot be used; the message names it.
    pub fn from_environment(lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        Ok(Self {
            proxies: Proxies::from_environment(lookup)?,
            ca_file: lookup("STELE_CA_FILE").filter(|path| !path.is_empty()).map(PathBuf::from),
            ..Self::default()
        })
    }
}

/// A client that keeps its connections for reuse.
///
/// Two clients are behind it, each built when it is first needed: one for plain http, which loads no
/// certificates, and one for https.
#[derive(Debug, Default)]
pub struct Client {
    settings: ClientSettings,
    plain: OnceLock<reqwest::Client>,
    secure: OnceLock<reqwest::Client>,
}

impl Client {
    /// A client; nothing is loaded or connected yet.
    #[must_use]
    pub fn new(settings: ClientSettings) -> Self {
        Self { settings, plain: OnceLock::new(), secure: OnceLock::new() }
    }

    /// Sends one attempt and reads its answer to the end. Dropping the future cancels it: the connection
    /// is closed.
    ///
    /// The pieces of `body` are sent byte for byte, one after the other. `on_delta` is given each piece of the answer as it arrives; what counts
    /// is what is returned.
    ///
    /// # Errors
    /// What the provider reported, or what went wrong on the way. The failure says whether part of the answer
    /// had arrived, and keeps the usage that was reported all the same.
    pub async fn send(
        &self,
        config: &Config,
        credential: Option<&Secret>,
        body: Vec<Bytes>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, Failure> {
        self.attempt(config, credential, body, on_delta).await.map_err(|failure| match credential {
            // Servers repeat the key that they refuse.
            Some(credential) => Failure { message: credential.blanked(failure.message.as_str()).into(), ..failure },
            None => failure,
        })
    }

    async fn attempt(
        &self,
        config: &Config,
        credential: Option<&Secret>,
        body: Vec<Bytes>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, Failure> {
        let (mut response, place) = self.open(config, credential, body).await?;
        let mut decoder = Decoder::new(config);
        let mut begun = false;
        let broken = loop {
            let limit = if decoder.has_ended() { self.settings.idle.min(AFTER_END) } else { self.settings.idle };
            match tokio::time::timeout(limit, response.chunk()).await {
                Ok(Ok(Some(bytes))) => {
                    begun = true;
                    decoder.feed(&bytes).into_iter().for_each(&mut *on_delta);
                    if decoder.is_done() {
                        break None;
                    }
                }
                Ok(Ok(None)) => break None,
                Ok(Err(error)) => break Some(place.broken(&error)),
                Err(_) => break Some(place.idle(begun)),
            }
        };
        match broken {
            // What is whole stays whole, however the connection ended.
            Some(failure) if !decoder.has_ended() => Err(decoder.interrupted(failure)),
            _ => decoder.finish().map_err(|failure| place.named(failure)),
        }
    }

    /// Sends the request and waits for the head of an answer that is none of an error.
    async fn open(
        &self,
        config: &Config,
        credential: Option<&Secret>,
        body: Vec<Bytes>,
    ) -> Result<(Response, Place), Failure> {
        let url = endpoint(config)?;
        let place = Place::new(&url, self.settings.proxies.route(&url), self.settings.idle);
        let client = self.client(&url, &place)?;
        let request =
            client.post(url).headers(headers(config, credential)?).body(reqwest::Body::wrap(Outgoing::new(body)));
        let mut response = match tokio::time::timeout(self.settings.idle, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(place.unreachable(&error)),
            Err(_) => return Err(place.idle(false)),
        };
        let status = response.status();
        if status.is_redirection() {
            return Err(place.redirected(status.as_u16(), response.headers().get(header::LOCATION)));
        }
        if is_web_page(&response) && (status.is_success() || status.is_client_error()) {
            return Err(place.web_page(status.as_u16()));
        }
        if status.is_success() {
            return Ok((response, place));
        }
        let wait = fault::retry_after(response.headers());
        let body = self.read_some(&mut response).await;
        let body = String::from_utf8_lossy(&body);
        // Before it is shortened: what was cut in two would not be found.
        let body = credential.map_or_else(|| body.to_string(), |credential| credential.blanked(&body));
        Err(place.refine(http_failure(config.wire, status.as_u16(), wait, body.as_bytes()), status))
    }

    /// Reads a small document; `None` when it cannot be had.
    pub(crate) async fn fetch(&self, url: &str, most: usize) -> Option<Vec<u8>> {
        let url = Url::parse(url).ok()?;
        let place = Place::new(&url, self.settings.proxies.route(&url), self.settings.idle);
        let mut response = self.client(&url, &place).ok()?.get(url).send().await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.ok()? {
            body.extend_from_slice(&bytes);
            if body.len() > most {
                return None;
            }
        }
        Some(body)
    }

    /// The body of an error, as much of it as arrives in time.
    async fn read_some(&self, response: &mut Response) -> Vec<u8> {
        let mut body = Vec::new();
        while body.len() < ERROR_BODY_MAX {
            match tokio::time::timeout(self.settings.idle, response.chunk()).await {
                Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
                _ => break,
            }
        }
        body.truncate(ERROR_BODY_MAX);
        body
    }

    fn client(&self, url: &Url, place: &Place) -> Result<&reqwest::Client, Failure> {
        let secure = url.scheme() == "https" || place.proxy_scheme() == Some("https");
        let slot = if secure { &self.secure } else { &self.plain };
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        let built = if secure { self.build_secure()? } else { self.build_plain()? };
        Ok(slot.get_or_init(|| built))
    }

    fn builder(&self) -> reqwest::ClientBuilder {
        let proxies = self.settings.proxies.clone();
        reqwest::Client::builder()
            .user_agent(concat!("stele/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.settings.connect)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .proxy(reqwest::Proxy::custom(move |url| proxies.route(url).map(|route| route.url)))
    }

    /// A client that trusts nobody, for http: it costs no certificates.
    fn build_plain(&self) -> Result<reqwest::Client, Failure> {
        let tls = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| setup(&error.to_string()))?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        self.builder().tls_backend_preconfigured(tls).build().map_err(|error| setup(&fault::chain(&error)))
    }

    fn build_secure(&self) -> Result<reqwest::Client, Failure> {
        // A provider may be installed once in a process; the embedder's own choice stands.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = self.builder();
        if let Some(path) = &self.settings.ca_file {
            let shown = path.display();
            // Reading a named pipe would wait for its other end.
            let file = std::fs::metadata(path).and_then(|found| match found.is_file() {
                true => std::fs::read(path),
                false => Err(std::io::Error::other("it is not a file")),
            });
            let pem =
                file.map_err(|error| setup(&format!("STELE_CA_FILE names {shown}, which cannot be read: {error}")))?;
            let certificates = reqwest::Certificate::from_pem_bundle(&pem).unwrap_or_default();
            if certificates.is_empty() {
                return Err(setup(&format!("STELE_CA_FILE names {shown}, which holds no PEM certificate")));
            }
            builder = builder.tls_certs_merge(certificates);
        }
        builder.build().map_err(|error| {
            setup(&format!(
                "{}; set SSL_CERT_FILE or STELE_CA_FILE to a PEM file with the certificate authorities to trust",
                fault::chain(&error)
            ))
        })
    }
}

/// Bytes that are given to the connection together: it would write short pieces a few at a time.
const TOGETHER: usize = 64 << 10;

/// A body in pieces that are there already: its length is known, and it is never copied into one.
struct Outgoing {
    pieces: Peekable<std::vec::IntoIter<Bytes>>,
    left: u64,
}

impl Outgoing {
    fn new(pieces: Vec<Bytes>) -> Self {
        let left = pieces.iter().map(|piece| piece.len() as u64).sum();
        Self { pieces: pieces.into_iter().peekable(), left }
    }

    /// The next bytes: a long piece as it is, or some short ones.
    fn next(&mut self) -> Option<Bytes> {
        let first = self.pieces.next()?;
        let mut len = first.len();
        let mut fits = |piece: &Bytes| {
            len += piece.len();
            len <= TOGETHER
        };
        let Some(second) = self.pieces.next_if(&mut fits) else { return Some(first) };
        let mut together = BytesMut::with_capacity(TOGETHER);
        together.extend_from_slice(&first);
        together.extend_from_slice(&second);
        while let Some(piece) = self.pieces.next_if(&mut fits) {
            together.extend_from_slice(&piece);
        }
        Some(together.freeze())
    }
}

impl http_body::Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Infallible>>> {
        let next = self.next();
        self.left -= next.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(next.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// A failure that no second try can cure: how this machine is set up is wrong.
fn setup(detail: &str) -> Failure {
    Failure::new(FailureCode::Unsupported, format!("no connection can be set up: {detail}"))
}

/// Whether an answer is a page for people: then it is not the API that was meant.
fn is_web_page(response: &Response) -> bool {
    let value = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| value.trim_start().to_ascii_lowercase().starts_with("text/html"))
}

/// The address a request goes to.
///
/// A base URL is what the vendor's own SDK takes: without a version for Anthropic and Gemini, with
/// it for OpenAI and everything compatible.
///
/// # Errors
/// The base URL is none that can be used (`config.base_url`).
pub(crate) fn endpoint(config: &Config) -> Result<Url, Failure> {
    let base = check_base_url(&config.base_url).map_err(|error| Failure::new(FailureCode::InvalidRequest, error))?;
    let mut url = base;
    let model = config.model.strip_prefix("models/").unwrap_or(&config.model);
    let call = format!("{model}:streamGenerateContent");
    let path: &[&str] = match config.wire {
        Wire::AnthropicMessages => &["v1", "messages"],
        Wire::OpenaiResponses => &["responses"],
        Wire::OpenaiChat => &["chat", "completions"],
        Wire::Gemini => &["v1beta", "models", &call],
    };
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    if config.wire == Wire::Gemini {
        url.set_query(Some("alt=sse"));
    }
    Ok(url)
}

/// Parses a base URL and refuses what must not be one.
///
/// # Errors
/// It is not http or https, or it has user information, a query or a fragment; the message says which.
pub(crate) fn check_base_url(text: &str) -> Result<Url, String> {
    let refuse = |why: &str| {
        // The text itself may hold a password, so it is not repeated.
        Err(format!("config.base_url: the base URL {why}; give it as https://host/path"))
    };
    let Ok(url) = Url::parse(text) else { return refuse("is no URL") };
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return refuse("is neither http nor https");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refuse("holds a user name or password, which belong in key_env");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return refuse("ends in a query or a fragment");
    }
    Ok(url)
}

/// The host of a base URL, in small letters and without brackets; `None` where it has none.
pub(crate) fn host_of(base_url: &str) -> Option<String> {
    let url = check_base_url(base_url).ok()?;
    url.host_str().map(|host| host.trim_matches(['[', ']']).to_ascii_lowercase())
}

fn headers(config: &Config, credential: Option<&Secret>) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
    if config.wire == Wire::AnthropicMessages {
        headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
    }
    for (name, value) in &config.headers {
        let header = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
        let Some((name, value)) = header else {
            let why = format!("config.headers: {name:?} is no header that can be sent; correct it in the route");
            return Err(Failure::new(FailureCode::InvalidRequest, why));
        };
        headers.insert(name, value);
    }
    if let Some(credential) = credential {
        let (name, value) = match config.wire {
            Wire::AnthropicMessages => ("x-api-key", HeaderValue::from_str(credential.expose())),
            Wire::Gemini => ("x-goog-api-key", HeaderValue::from_str(credential.expose())),
            Wire::OpenaiResponses | Wire::OpenaiChat => {
                ("authorization", HeaderValue::from_str(&format!("Bearer {}", credential.expose())))
            }
        };
        let mut value = value.map_err(|_| {
            let why =
                format!("the key of route {} holds characters that no header can carry; set it again", config.route);
            Failure::new(FailureCode::Auth, why)
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(wire: Wire, base_url: &str, model: &str) -> Config {
        Config {
            route: "r".into(),
            wire,
            base_url: base_url.into(),
            model: model.into(),
            encoder: "x/1".into(),
            derive_rev: 1,
            withheld: Default::default(),
            parameters: Default::default(),
            cache: Default::default(),
            dialect: None,
            images: Default::default(),
            headers: Default::default(),
        }
    }

    #[track_caller]
    fn check(wire: Wire, base: &str, expect: &str) {
        assert_eq!(endpoint(&config(wire, base, "m-1")).unwrap().as_str(), expect);
    }

    #[test]
    fn a_base_url_is_what_the_vendors_sdk_takes() {
        check(Wire::AnthropicMessages, "https://api.anthropic.com", "https://api.anthropic.com/v1/messages");
        check(
            Wire::AnthropicMessages,
            "https://api.minimax.io/anthropic/",
            "https://api.minimax.io/anthropic/v1/messages",
        );
        check(Wire::OpenaiResponses, "https://api.openai.com/v1", "https://api.openai.com/v1/responses");
        check(Wire::OpenaiChat, "http://127.0.0.1:1234/v1/", "http://127.0.0.1:1234/v1/chat/completions");
        check(Wire::OpenaiChat, "https://api.deepseek.com", "https://api.deepseek.com/chat/completions");
        check(
            Wire::Gemini,
            "https://generativelanguage.googleapis.com/",
            "https://generativelanguage.googleapis.com/v1beta/models/m-1:streamGenerateContent?alt=sse",
        );
    }

    #[test]
    fn a_model_cannot_leave_its_place_in_the_path() {
        let url = endpoint(&config(Wire::Gemini, "https://g.example", "models/a/../b?c#d")).unwrap();
        assert_eq!(url.query(), Some("alt=sse"));
        assert_eq!(url.path(), "/v1beta/models/a%2F..%2Fb%3Fc%23d:streamGenerateContent");
    }

    #[test]
    fn a_base_url_that_must_not_be_one_is_refused_without_being_repeated() {
        for text in ["ftp://host", "host/v1", "https://user:hunter2@host", "https://host?key=hunter2", "http://", ""] {
            let error = check_base_url(text).unwrap_err();
            assert!(error.starts_with("config.base_url: "), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn each_wire_has_its_credential_header() {
        let secret = Secret::new("sk-1");
        for (wire, name, value) in [
            (Wire::AnthropicMessages, "x-api-key", "sk-1"),
            (Wire::OpenaiResponses, "authorization", "Bearer sk-1"),
            (Wire::OpenaiChat, "authorization", "Bearer sk-1"),
            (Wire::Gemini, "x-goog-api-key", "sk-1"),
        ] {
            let headers = headers(&config(wire, "https://h", "m"), Some(&secret)).unwrap();
            assert_eq!(headers[name], value);
            assert!(headers[name].is_sensitive());
            assert!(!format!("{headers:?}").contains("sk-1"));
            assert_eq!(headers.contains_key("anthropic-version"), wire == Wire::AnthropicMessages);
        }
        let unset = headers(&config(Wire::OpenaiChat, "https://h", "m"), None).unwrap();
        assert!(!unset.contains_key("authorization"));
        let error = headers(&config(Wire::Gemini, "https://h", "m"), Some(&Secret::new("a\nb"))).unwrap_err();
        assert_eq!(error.code, FailureCode::Auth);
        assert!(!error.message.as_str().contains("a\nb"));
    }
}
