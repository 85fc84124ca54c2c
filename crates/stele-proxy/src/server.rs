//! The proxy itself: takes requests, forwards them, and hands copies to the recorder.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;
use stele_provider::Proxies;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;

use crate::body::{AnswerBody, Counted, Flushes, Forwarded, RequestBody};
use crate::prompt::model_request;
use crate::record::Ending;
use crate::recorder::{Began, Exchange, Notice, Recorder};
use crate::store::Store;
use crate::target::Target;
use crate::upstream::{Connection, Refusal, Upstream};
use crate::{Error, Result};

/// Who may connect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exposure {
    /// This machine only.
    #[default]
    Loopback,
    /// Whoever can reach the address.
    Network,
}

/// How a proxy runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server that it stands before.
    pub target: Target,
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Who may connect.
    pub exposure: Exposure,
    /// The folder of its recordings.
    pub folder: PathBuf,
    /// The proxies of the network, through which the server is reached.
    pub proxies: Proxies,
    /// A PEM file with certificate authorities that are trusted beside the system's (`STELE_CA_FILE`).
    pub ca_file: Option<PathBuf>,
}

/// A proxy that listens.
pub struct Proxy {
    listener: TcpListener,
    address: SocketAddr,
    exposure: Exposure,
    upstream: Upstream,
    store: Store,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("address", &self.address).finish_non_exhaustive()
    }
}

struct Shared {
    upstream: Upstream,
    recorder: Recorder,
    exposure: Exposure,
}

impl Proxy {
    /// Opens the store and listens. Requests are answered once [`Proxy::serve`] runs.
    ///
    /// # Errors
    /// The address or the store cannot be used.
    pub async fn bind(options: Options) -> Result<Self> {
        let Options { target, listen, exposure, folder, proxies, ca_file } = options;
        if exposure == Exposure::Loopback && !listen.ip().is_loopback() {
            return Err(Error::Exposed(listen));
        }
        let unusable = |cause| Error::Listen { address: listen, cause };
        let store = Store::open(&folder)?;
        store.keep_reserve();
        let upstream = Upstream::new(target, &proxies, ca_file.as_deref())?;
        let listener = TcpListener::bind(listen).await.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        let target = &upstream.target;
        let own = target.host == "localhost" || target.host.parse() == Ok(address.ip());
        if own && target.port == address.port() {
            return Err(Error::Loops(address));
        }
        Ok(Self { listener, address, exposure, upstream, store })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Forwards requests until `stop` is ready, then ends the exchanges that are open and stores what is left.
    ///
    /// `on_notice` is called from a thread of its own and must not take long.
    ///
    /// # Errors
    /// The recording thread cannot be started.
    pub async fn serve(
        self,
        stop: impl Future<Output = ()>,
        on_notice: impl FnMut(Notice) + Send + 'static,
    ) -> Result<()> {
        let Self { listener, address, exposure, upstream, store } = self;
        let (recorder, thread) = Recorder::start(store, on_notice).map_err(|cause| Error::Listen { address, cause })?;
        let shared = Arc::new(Shared { upstream, recorder, exposure });
        let mut connections = JoinSet::new();
        let (closing, closed) = watch::channel(());
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(connection(stream, Arc::clone(&shared), closed.clone()));
                    }
                    // Out of descriptors, or the client has left already: the others go on.
                    Err(_) => tokio::task::yield_now().await,
                },
                Some(_) = connections.join_next() => {}
            }
        }
        drop(closing);
        connections.shutdown().await;
        drop(shared);
        // Every sender is gone, so the thread stores what it has and ends; a panic in it was reported where it happened.
        let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        Ok(())
    }
}

/// Serves one client. It has a connection to the server of its own, which is closed with it.
async fn connection(stream: TcpStream, shared: Arc<Shared>, mut closed: watch::Receiver<()>) {
    // Small pieces of a stream must not wait for each other.
    let _ = stream.set_nodelay(true);
    let flushes = Arc::new(Flushes::default());
    let io = Counted::new(TokioIo::new(stream), Arc::clone(&flushes));
    let to_server: Arc<Mutex<Option<Connection>>> = Arc::default();
    let service = service_fn(|request| {
        let (shared, flushes, to_server) = (Arc::clone(&shared), Arc::clone(&flushes), Arc::clone(&to_server));
        async move { Ok::<_, std::convert::Infallible>(answer(request, &shared, flushes, &to_server).await) }
    });
    let serving =
        http1::Builder::new().preserve_header_case(true).auto_date_header(false).serve_connection(io, service);
    tokio::select! {
        // An error means that the client is gone, or sent no HTTP: there is nobody to tell.
        _ = serving => {}
        _ = closed.changed() => {}
    }
}

async fn answer(
    request: Request<Incoming>,
    shared: &Shared,
    flushes: Arc<Flushes>,
    to_server: &Mutex<Option<Connection>>,
) -> Response<AnswerBody> {
    if shared.exposure == Exposure::Loopback
        && request.method() != Method::CONNECT
        && let Some(name) = foreign_name(&request)
    {
        let message = format!(
            "{name:?} is no name of this machine, and only this machine may use this proxy; set the client's base URL to \
             http://127.0.0.1 or http://localhost with the proxy's port; a client in a container or on another machine needs \
             `stele proxy --allow-remote`"
        );
        // A client that is still sending would not see the answer.
        RequestBody::new(request.into_body(), None).drain().await;
        shared.recorder.notice(Notice::Refused { code: "proxy.host", message: message.clone() });
        return own_answer(StatusCode::FORBIDDEN, "proxy.host", &message);
    }
    let exchange = begin(&request, shared);
    match forward(request, shared, exchange.clone(), to_server).await {
        Ok(response) => {
            let (mut parts, body) = response.into_parts();
            parts.version = Version::HTTP_11;
            strip_hop_by_hop(&mut parts.headers);
            if let Some(exchange) = &exchange {
                exchange.head(parts.status.as_u16(), text(&parts.headers, header::CONTENT_ENCODING));
            }
            Response::from_parts(parts, AnswerBody::Forwarded(Forwarded::new(body, exchange, flushes)))
        }
        Err(refusal) => {
            let Refusal { code, message } = refusal;
            // Of a recorded request whose client left, the recorder tells.
            if !exchange.as_ref().is_some_and(|exchange| exchange.has_ended()) {
                shared.recorder.notice(Notice::Refused { code, message: message.clone() });
            }
            if let Some(exchange) = exchange {
                exchange.end(Ending::Unreachable);
            }
            own_answer(StatusCode::BAD_GATEWAY, code, &message)
        }
    }
}

/// The name by which this machine was asked, when it is another's. A web page can give its own name the address of this
/// machine, and then send requests here as to its own server (DNS rebinding); the name is what gives it away.
fn foreign_name(request: &Request<Incoming>) -> Option<String> {
    let header = request.headers().get(header::HOST).map(|host| String::from_utf8_lossy(host.as_bytes()).into_owned());
    let name = request.uri().authority().map(|authority| authority.as_str().to_owned()).or(header)?;
    (!is_loopback(&name)).then_some(name)
}

/// Whether a host, with or without a port, is this machine and nothing else. A client that names none is old, and no
/// browser.
fn is_loopback(authority: &str) -> bool {
    let Ok(authority) = authority.parse::<hyper::http::uri::Authority>() else { return authority.is_empty() };
    let host = authority.host().trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    let own_name = host == "localhost" || host.ends_with(".localhost");
    own_name || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// What the proxy says itself, in a shape in which the clients of all vendors find the message.
fn own_answer(status: StatusCode, code: &'static str, message: &str) -> Response<AnswerBody> {
    let body = serde_json::json!({
        "type": "error",
        "error": {"type": "proxy_error", "code": code, "message": format!("stele proxy: {message}")},
    });
    let mut response = Response::new(AnswerBody::Own(Some(Bytes::from(body.to_string()))));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Begins to record a model request.
fn begin(request: &Request<Incoming>, shared: &Shared) -> Option<Arc<Exchange>> {
    let (wire, model) = model_request(request.method().as_str(), request.uri().path())?;
    let target = &shared.upstream.target;
    // What stands before the wire's own path belongs to the base URL; the query may hold a key.
    let path = request.uri().path();
    let own = ["/v1/messages", "/chat/completions", "/responses", "/messages", "/v1beta/models/", "/models/"];
    let end = own.iter().find_map(|own| path.rfind(own)).unwrap_or(0);
    let began = Began {
        wire,
        model,
        base_url: format!("{}{}", target.origin(), path.get(..end).unwrap_or_default()),
        agent: text(request.headers(), header::USER_AGENT),
        encoding: text(request.headers(), header::CONTENT_ENCODING),
    };
    Some(Arc::new(shared.recorder.begin(began)))
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

async fn forward(
    request: Request<Incoming>,
    shared: &Shared,
    exchange: Option<Arc<Exchange>>,
    to_server: &Mutex<Option<Connection>>,
) -> Result<Response<Incoming>, Refusal> {
    let (mut parts, body) = request.into_parts();
    let target = &shared.upstream.target;
    if parts.method == Method::CONNECT {
        let message = "tunnels are not forwarded; set the client's base URL to this proxy, not its HTTPS_PROXY";
        return Err(Refusal::new("proxy.connect", message));
    }
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    parts.uri =
        path.parse::<Uri>().map_err(|error| Refusal::new("proxy.path", format!("the path cannot be sent: {error}")))?;
    parts.version = Version::HTTP_11;
    strip_hop_by_hop(&mut parts.headers);
    let host = HeaderValue::from_str(&target.authority)
        .map_err(|_| Refusal::new("proxy.target", "the server's name cannot be sent"))?;
    parts.headers.insert(header::HOST, host);
    let body = RequestBody::new(body, exchange);
    let client_left = body.client_left();
    let mut request = Request::from_parts(parts, body);
    // One request at a time: so does the client on its connection.
    let mut slot = to_server.lock().await;
    loop {
        let kept = match slot.take() {
            Some(mut connection) => connection.sender.ready().await.is_ok().then_some(connection),
            None => None,
        };
        let reused = kept.is_some();
        let mut connection = match kept {
            Some(connection) => connection,
            None => match shared.upstream.connect().await {
                Ok(connection) => connection,
                Err(refusal) => {
                    // A client that is still sending would not see the answer.
                    request.into_body().drain().await;
                    return Err(refusal);
                }
            },
        };
        match connection.sender.try_send_request(request).await {
            Ok(response) => {
                *slot = Some(connection);
                return Ok(response);
            }
            Err(mut failed) => match failed.take_message() {
                // The server had closed a kept connection before a byte was written: a new one is as good.
                Some(unsent) if reused => request = unsent,
                _ if client_left.load(Ordering::Relaxed) => {
                    let message = "the client broke off in the middle of its request, which is answered by nobody";
                    return Err(Refusal::new("proxy.client_left", message));
                }
                _ => {
                    let message =
                        format!("{} broke off before it answered: {}", target.authority, chain(failed.error()));
                    return Err(Refusal::new("proxy.broken", message));
                }
            },
        }
    }
}

/// An error and its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// Takes out what belongs to one connection alone (RFC 9110, section 7.6.1).
fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        // These say how a body ends; a client must not be able to take them away.
        if name != header::CONTENT_LENGTH && name != header::HOST {
            headers.remove(name);
        }
    }
    for name in ["connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"] {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::is_loopback;

    proptest! {
        #[test]
        fn no_name_of_another_domain_is_its_own(name in ".{0,40}", domain in "[a-z]{1,8}\\.[a-km-z]{2,6}", port in "(:[0-9]{1,5})?") {
            let name = format!("{name}.{domain}{port}");
            prop_assert!(!is_loopback(&name));
        }
    }

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        for own in [
            "127.0.0.1",
            "127.0.0.1:8787",
            "127.8.9.1",
            "localhost",
            "LocalHost:1",
            "a.localhost",
            "localhost.:80",
            "[::1]",
            "[::1]:8787",
            "",
        ] {
            assert!(is_loopback(own), "{own}");
        }
        for foreign in [
            "evil.example",
            "evil.example:8787",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "0.0.0.0",
            "192.168.1.2:80",
            "[::2]",
            "\u{1}",
            "127.1",
            "a b",
        ] {
            assert!(!is_loopback(foreign), "{foreign}");
        }
    }
}
