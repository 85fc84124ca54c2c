//! Where requests go, and how a command is told to send them here.

use std::net::SocketAddr;

use hyper::Uri;
use stele_core::Wire;

use crate::{Error, Result};

/// A server that requests are forwarded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// True for https.
    pub(crate) secure: bool,
    /// The host, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// What the `host` header says.
    pub(crate) authority: String,
    /// The path of the base URL, without a slash at its end.
    pub(crate) path: String,
    /// The vendor's name, when it was given by name.
    vendor: Option<String>,
    /// The wire, when it is known.
    wire: Option<Wire>,
}

impl Target {
    /// Takes a vendor's name, as `stele models` knows it, or a base URL as that vendor's SDK takes it.
    ///
    /// # Errors
    /// `proxy.target`: it is neither; the message names the vendors.
    pub fn parse(text: &str) -> Result<Self> {
        if let Some(vendor) = stele_provider::vendors().iter().find(|vendor| vendor.name == text) {
            let target = Self::from_url(&vendor.base_url)?;
            return Ok(Self { vendor: Some(vendor.name.clone()), wire: Some(vendor.wire), ..target });
        }
        if !text.contains("://") {
            let names: Vec<&str> = stele_provider::vendors().iter().map(|vendor| vendor.name.as_str()).collect();
            return Err(Error::Target(format!("{text:?} is neither a URL nor one of {}", names.join(", "))));
        }
        Self::from_url(text)
    }

    fn from_url(text: &str) -> Result<Self> {
        // The text may hold a password, so it is not repeated.
        let refuse = |why: &str| Error::Target(format!("the URL {why}; give it as https://host/path"));
        let uri: Uri = text.parse().map_err(|_| refuse("cannot be read"))?;
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(refuse("is neither http nor https")),
        };
        let authority = uri.authority().ok_or_else(|| refuse("names no host"))?;
        if authority.as_str().contains('@') {
            return Err(refuse("holds a user name or password, which the client has to send"));
        }
        if uri.query().is_some() {
            return Err(refuse("ends in a query"));
        }
        let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let host = authority.host().trim_matches(['[', ']']).to_ascii_lowercase();
        if host.is_empty() {
            return Err(refuse("names no host"));
        }
        Ok(Self {
            secure,
            host,
            port,
            authority: authority.as_str().to_owned(),
            path: uri.path().trim_end_matches('/').to_owned(),
            vendor: None,
            wire: None,
        })
    }

    /// Scheme, host and port.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("{}://{}", if self.secure { "https" } else { "http" }, self.authority)
    }

    /// What a client takes as its base URL in place of the server's.
    #[must_use]
    pub fn base_url(&self, address: SocketAddr) -> String {
        format!("http://{address}{}", self.path)
    }

    /// The same for a client of OpenAI's wires. Where nothing but a host was given, it is taken without the version that
    /// these clients want in it.
    fn openai_base_url(&self, address: SocketAddr) -> String {
        let own = self.base_url(address);
        if self.path.is_empty() && self.wire.is_none() { format!("{own}/v1") } else { own }
    }

    /// The variables that make common agents and SDKs send their requests to `address`.
    ///
    /// When only a URL was given, those of all wires are set, each in the form its SDKs take: without a version for
    /// Anthropic and Gemini, with it for OpenAI.
    #[must_use]
    pub fn environment(&self, address: SocketAddr) -> Vec<(String, String)> {
        let own = self.openai_base_url(address);
        let unversioned = own.strip_suffix("/v1").unwrap_or(&own).to_owned();
        let fits = |wire: Wire| self.wire.is_none_or(|known| known == wire);
        let mut variables = Vec::new();
        if fits(Wire::AnthropicMessages) {
            variables.push(("ANTHROPIC_BASE_URL", unversioned.clone()));
        }
        if fits(Wire::OpenaiResponses) || fits(Wire::OpenaiChat) {
            variables.push(("OPENAI_BASE_URL", own.clone()));
            variables.push(("OPENAI_API_BASE", own.clone()));
        }
        if fits(Wire::Gemini) {
            variables.push(("GOOGLE_GEMINI_BASE_URL", unversioned));
        }
        let mut variables: Vec<(String, String)> =
            variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let vendor = stele_provider::vendors().iter().find(|vendor| Some(&vendor.name) == self.vendor.as_ref());
        if let Some(name) = vendor.and_then(|vendor| vendor.base_url_env.clone())
            && !variables.iter().any(|(known, _)| *known == name)
        {
            variables.push((name, own));
        }
        // A proxy of the network must not stand before this machine itself.
        variables.extend(["NO_PROXY", "no_proxy"].map(|name| (name.to_owned(), "127.0.0.1,localhost,::1".to_owned())));
        variables
    }

    /// What to write into the configuration of agents that take no variable, as text for people.
    #[must_use]
    pub fn configuration(&self, address: SocketAddr) -> String {
        let own = self.openai_base_url(address);
        let fits = |wire: Wire| self.wire.is_none_or(|known| known == wire);
        let mut text = String::new();
        if fits(Wire::OpenaiResponses) {
            text.push_str(&format!(
                "Codex CLI: run it with -c 'openai_base_url=\"{own}\"', or write that line into ~/.codex/config.toml\n"
            ));
        }
        let provider = match self.wire {
            Some(Wire::AnthropicMessages) => "anthropic",
            Some(Wire::Gemini) => "google",
            Some(_) => self.vendor.as_deref().unwrap_or("openai"),
            None => "PROVIDER",
        };
        let versioned = match self.wire {
            Some(Wire::AnthropicMessages) => format!("{own}/v1"),
            Some(Wire::Gemini) => format!("{own}/v1beta"),
            _ => own.clone(),
        };
        text.push_str(&format!(
            "OpenCode: in opencode.json, {{\"provider\": {{\"{provider}\": {{\"options\": {{\"baseURL\": \"{versioned}\"}}}}}}}}\n"
        ));
        text.push_str(&format!(
            "pi: in ~/.pi/agent/models.json, {{\"providers\": {{\"{provider}\": {{\"baseUrl\": \"{own}\"}}}}}}\n"
        ));
        text.push_str(&format!(
            "Crush: in crush.json, {{\"providers\": {{\"{provider}\": {{\"base_url\": \"{own}\"}}}}}}\n"
        ));
        text
    }
}
