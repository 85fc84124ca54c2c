//! The web: one client for pages and searches, which reaches public addresses alone.
//!
//! An address is judged when the name was resolved, in the very resolution that the connection is made
//! with, so that a name cannot be judged by one address and reached at another. Redirects are followed
//! here and each is judged anew. No proxy is used: behind one, names would be resolved elsewhere.

mod address;
mod page;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url};

use crate::error::{Error, Result};

pub(crate) use page::text as page_text;

/// Bytes of a page that are read.
const LARGEST: u64 = 4 * 1024 * 1024;
/// Redirects that are followed.
const REDIRECTS: usize = 5;
/// Longest time for a page, with its redirects.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest time to connect.
const CONNECT: Duration = Duration::from_secs(10);

/// A client for the web.
pub(crate) struct Http {
    trusted: Arc<Vec<String>>,
    client: OnceLock<Client>,
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Page {
    /// Where it was found in the end.
    pub(crate) url: Url,
    pub(crate) status: u16,
    /// Without parameters, in lower case.
    pub(crate) media_type: String,
    pub(crate) text: String,
    pub(crate) bytes: u64,
}

impl Http {
    /// `trusted` are hosts that may be reached by plain http and whatever their address is.
    pub(crate) fn new(trusted: &[String]) -> Self {
        Self { trusted: Arc::new(trusted.to_vec()), client: OnceLock::new() }
    }

    /// Gets a page.
    pub(crate) async fn get(&self, url: &str, headers: &[(&str, &str)]) -> Result<Page> {
        match tokio::time::timeout(PATIENCE, self.follow(url, headers)).await {
            Ok(page) => page,
            Err(_) => Err(web("web.timeout", format!("{url} did not answer within {} s", PATIENCE.as_secs()))),
        }
    }

    async fn follow(&self, asked: &str, headers: &[(&str, &str)]) -> Result<Page> {
        let mut url =
            Url::parse(asked).map_err(|error| Error::Value(format!("url = {asked:?} is not a URL: {error}")))?;
        for hop in 0..=REDIRECTS {
            self.check(&url).map_err(|problem| match (hop, problem) {
                (0, problem) => problem,
                (_, Error::Value(problem)) => web("web.redirect", format!("{asked} leads elsewhere: {problem}")),
                (_, problem) => problem,
            })?;
            let mut request = self.client()?.get(url.clone());
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let response = request.send().await.map_err(|error| failed(&url, &error))?;
            let Some(next) = redirect(&response) else { return read(url, response).await };
            url = url.join(&next).map_err(|_| web("web.redirect", format!("{url} leads to {next:?}, no URL")))?;
        }
        Err(web("web.redirect", format!("{asked} leads on more than {REDIRECTS} times")))
    }

    /// Judges a URL before anything is sent.
    fn check(&self, url: &Url) -> Result<()> {
        if is_trusted(&self.trusted, url) {
            return Ok(());
        }
        if url.scheme() != "https" {
            return Err(Error::Value(format!("{url} is not https")));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Error::Value("a URL with a name or password in it is not fetched".to_owned()));
        }
        // A name is judged when it is resolved; an address is never resolved.
        match url.host_str().map(|host| host.trim_matches(['[', ']']).parse()) {
            Some(Ok(address)) if !address::is_public(address) => Err(blocked(url.host_str().unwrap_or_default())),
            Some(_) => Ok(()),
            None => Err(Error::Value(format!("{url} names no host"))),
        }
    }

    fn client(&self) -> Result<&Client> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // A provider may be installed once in a process; the embedder's own choice stands.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(concat!("stele/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .dns_resolver(Arc::new(Judging { trusted: Arc::clone(&self.trusted) }))
            .build()
            .map_err(|error| web("web.failed", format!("no connection can be made from here: {error}")))?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// True for a host that a person named, with or without its port.
fn is_trusted(trusted: &[String], url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let with_port = url.port_or_known_default().map(|port| format!("{host}:{port}"));
    trusted.iter().any(|known| known == host || Some(known) == with_port.as_ref())
}

fn redirect(response: &Response) -> Option<String> {
    let moved = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let to = response.headers().get(LOCATION).filter(|_| moved)?;
    Some(String::from_utf8_lossy(to.as_bytes()).into_owned())
}

async fn read(url: Url, mut response: Response) -> Result<Page> {
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let full_type = header(CONTENT_TYPE).unwrap_or("text/plain").to_ascii_lowercase();
    let media_type = full_type.split(';').next().unwrap_or_default().trim().to_owned();
    if !is_text(&media_type) {
        return Err(web("web.content_type", format!("{url} is {media_type}, which is not text")));
    }
    let too_large = || web("web.too_large", format!("{url} has more than {} MiB", LARGEST / 1024 / 1024));
    if header(CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok()).is_some_and(|length| length > LARGEST) {
        return Err(too_large());
    }
    let status = response.status().as_u16();
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(&url, &error))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 > LARGEST {
            return Err(too_large());
        }
    }
    let text = match full_type.contains("iso-8859-1") || full_type.contains("windows-1252") {
        // Nearly the same: they differ in characters that are rare in text.
        true => bytes.iter().map(|byte| char::from(*byte)).collect(),
        false => String::from_utf8_lossy(&bytes).into_owned(),
    };
    Ok(Page { url, status, media_type, text, bytes: bytes.len() as u64 })
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/")
        || media_type.ends_with("+json")
        || media_type.ends_with("+xml")
        || matches!(
            media_type,
            "application/json" | "application/xml" | "application/javascript" | "application/yaml" | "application/toml"
        )
}

fn web(code: &'static str, message: String) -> Error {
    Error::Web { code, message }
}

fn blocked(host: &str) -> Error {
    let message = format!("{host} is not a public address; only a person can allow it, as a trusted host");
    web("web.blocked_address", message)
}

/// What went wrong on the way, without the parts of the URL that may be secret.
fn failed(url: &Url, error: &reqwest::Error) -> Error {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut last = String::new();
    while let Some(inner) = source {
        if inner.is::<NotPublic>() {
            return blocked(url.host_str().unwrap_or_default());
        }
        last = inner.to_string();
        source = inner.source();
    }
    let host = url.host_str().unwrap_or_default();
    if error.is_timeout() {
        return web("web.timeout", format!("{host} did not answer in time"));
    }
    web("web.failed", format!("{host} cannot be reached: {last}"))
}

/// Resolves names to public addresses.
struct Judging {
    trusted: Arc<Vec<String>>,
}

/// A name stands for an address that is not public.
#[derive(Debug, thiserror::Error)]
#[error("not a public address")]
struct NotPublic;

impl Resolve for Judging {
    fn resolve(&self, name: Name) -> Resolving {
        let trusted = self.trusted.iter().any(|known| known.split(':').next() == Some(name.as_str()));
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One that is not public among them is no accident.
            if !trusted && found.iter().any(|address| !address::is_public(address.ip())) {
                return Err(NotPublic.into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_public_https_is_refused_before_anything_is_sent() {
        let http = Http::new(&["docs.local:8080".to_owned()]);
        let code = |url: &str| http.check(&Url::parse(url).unwrap()).err().map(|error| error.code());
        assert_eq!(code("https://example.org/a"), None);
        assert_eq!(code("http://docs.local:8080/a"), None);
        for url in ["http://docs.local/", "http://example.org/", "ftp://example.org/", "https://a:b@example.org/"] {
            assert_eq!(code(url), Some("tool.value"), "{url}");
        }
        for url in
            ["https://127.0.0.1/", "https://2130706433/", "https://0x7f.1/", "https://[::1]/", "https://10.1.2.3/"]
        {
            assert_eq!(code(url), Some("web.blocked_address"), "{url}");
        }
    }
}
