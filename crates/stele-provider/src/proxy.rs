//! Which proxy a request goes through, decided from the usual variables in one place, so that an
//! error can name the proxy and the variable that set it.

use std::net::IpAddr;

use reqwest::Url;

use crate::Secret;

/// The proxies of an environment: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, each also
/// in lower case, which wins.
///
/// Loopback addresses never go through a proxy: a local model server is on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    https: Option<Setting>,
    http: Option<Setting>,
    except: Vec<Exception>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    variable: &'static str,
    url: Url,
}

/// The proxy of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The proxy, user information included.
    pub url: Url,
    /// The variable that set it.
    pub variable: &'static str,
}

impl std::fmt::Display for Route {
    /// Never shows user information.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the proxy {}://{}", self.url.scheme(), self.url.host_str().unwrap_or_default())?;
        if let Some(port) = self.url.port_or_known_default() {
            write!(f, ":{port}")?;
        }
        write!(f, " that {} sets", self.variable)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Exception {
    Everything,
    /// A host and everything under it.
    Domain {
        name: String,
        port: Option<u16>,
    },
    Network {
        address: IpAddr,
        bits: u8,
    },
}

/// A proxy of the network, as a connection needs it that is not made by [`Client`](crate::Client).
#[derive(Clone, Debug)]
pub struct Hop {
    /// The host, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// True when the proxy itself is spoken to over TLS.
    pub secure: bool,
    /// User name and password, joined by a colon, each percent-encoded as the variable has them.
    pub user: Option<Secret>,
    /// What people are told: the address and the variable that set it, never the user.
    pub shown: String,
}

impl Proxies {
    /// The proxy that a connection to a URL goes through; `None` when it goes there directly, or the URL is none.
    #[must_use]
    pub fn hop(&self, url: &str) -> Option<Hop> {
        let route = self.route(&Url::parse(url).ok()?)?;
        let user = (!route.url.username().is_empty())
            .then(|| Secret::new(&format!("{}:{}", route.url.username(), route.url.password().unwrap_or_default())));
        Some(Hop {
            host: route.url.host_str()?.trim_matches(['[', ']']).to_owned(),
            port: route.url.port_or_known_default()?,
            secure: route.url.scheme() == "https",
            user,
            shown: route.to_string(),
        })
    }

    /// Reads the variables.
    ///
    /// # Errors
    /// A variable holds no proxy address that can be used; the message names it.
    pub fn from_environment(lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let find = |variables: [&'static str; 4]| {
            for variable in variables {
                if let Some(value) = lookup(variable).filter(|value| !value.trim().is_empty()) {
                    return parse(&value).map(|url| Some(Setting { variable, url })).map_err(|problem| {
                        format!("{variable} {problem}; set it to an address such as http://proxy.example:3128")
                    });
                }
            }
            Ok(None)
        };
        let except = lookup("no_proxy").or_else(|| lookup("NO_PROXY")).unwrap_or_default();
        Ok(Self {
            https: find(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])?,
            http: find(["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])?,
            except: except.split([',', ' ']).filter_map(exception).collect(),
        })
    }

    /// The proxy for a URL, when there is one.
    pub(crate) fn route(&self, url: &Url) -> Option<Route> {
        let setting = if url.scheme() == "https" { self.https.as_ref()? } else { self.http.as_ref()? };
        let host = url.host_str()?.trim_matches(['[', ']']).to_ascii_lowercase();
        let address = host.parse::<IpAddr>().ok();
        let local = host == "localhost" || host.ends_with(".localhost") || address.is_some_and(|ip| ip.is_loopback());
        let port = url.port_or_known_default();
        if local || self.except.iter().any(|exception| exception.covers(&host, address, port)) {
            return None;
        }
        Some(Route { url: setting.url.clone(), variable: setting.variable })
    }
}

/// A proxy address; `host:port` alone means http.
fn parse(value: &str) -> Result<Url, String> {
    let value = value.trim();
    let with_scheme = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
    let url = Url::parse(&with_scheme).map_err(|_| "is no address".to_owned())?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        scheme => Err(format!("names a {scheme} proxy, which is not supported")),
    }
}

fn exception(entry: &str) -> Option<Exception> {
    let entry = entry.trim().to_ascii_lowercase();
    if entry == "*" {
        return Some(Exception::Everything);
    }
    if let Some((address, bits)) = entry.split_once('/') {
        return Some(Exception::Network { address: address.parse().ok()?, bits: bits.parse().ok()? });
    }
    if let Ok(address) = entry.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Some(Exception::Network { address, bits: if address.is_ipv4() { 32 } else { 128 } });
    }
    let (name, port) = match entry.rsplit_once(':') {
        Some((name, port)) => (name, Some(port.parse().ok()?)),
        None => (entry.as_str(), None),
    };
    let name = name.trim_start_matches('*').trim_start_matches('.');
    (!name.is_empty()).then(|| Exception::Domain { name: name.to_owned(), port })
}

impl Exception {
    fn covers(&self, host: &str, address: Option<IpAddr>, port: Option<u16>) -> bool {
        match self {
            Self::Everything => true,
            Self::Domain { name, port: only } => {
                let under = host.strip_suffix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
                under && only.is_none_or(|only| Some(only) == port)
            }
            Self::Network { address: network, bits } => match (network, address) {
                (IpAddr::V4(network), Some(IpAddr::V4(ip))) => {
                    let shift = 32u32.saturating_sub(u32::from(*bits));
                    u64::from(network.to_bits()) >> shift == u64::from(ip.to_bits()) >> shift
                }
                (IpAddr::V6(network), Some(IpAddr::V6(ip))) => {
                    let shift = 128u32.saturating_sub(u32::from(*bits));
                    shift == 128 || network.to_bits() >> shift == ip.to_bits() >> shift
                }
                _ => false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Result<Proxies, String> {
        Proxies::from_environment(&|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[track_caller]
    fn check(no_proxy: &str, url: &str, proxied: bool) {
        let proxies = proxies(&[("ALL_PROXY", "http://proxy:3128"), ("NO_PROXY", no_proxy)]).unwrap();
        assert_eq!(proxies.route(&Url::parse(url).unwrap()).is_some(), proxied, "{no_proxy:?} {url}");
    }

    #[test]
    fn the_variable_of_the_scheme_wins_and_is_named() {
        let both = proxies(&[("HTTPS_PROXY", "http://u:p@one:1"), ("HTTP_PROXY", "two:2")]).unwrap();
        let route = both.route(&Url::parse("https://api.example.com").unwrap()).unwrap();
        assert_eq!(route.to_string(), "the proxy http://one:1 that HTTPS_PROXY sets");
        let route = both.route(&Url::parse("http://api.example.com").unwrap()).unwrap();
        assert_eq!(route.to_string(), "the proxy http://two:2 that HTTP_PROXY sets");
    }

    #[test]
    fn a_hop_says_where_to_connect_and_hides_its_user() {
        let proxies = proxies(&[("HTTPS_PROXY", "http://u%40x:p@[::1]:3128")]).unwrap();
        let hop = proxies.hop("https://api.example.com/v1").unwrap();
        assert_eq!((hop.host.as_str(), hop.port, hop.secure), ("::1", 3128, false));
        assert_eq!(hop.user.as_ref().map(Secret::expose), Some("u%40x:p"));
        assert!(!format!("{hop:?}").contains("u%40x"), "{hop:?}");
        assert!(proxies.hop("http://api.example.com").is_none() && proxies.hop("nonsense").is_none());
    }

    #[test]
    fn exceptions_cover_domains_ports_and_networks() {
        check("example.com", "https://example.com", false);
        check(".example.com", "https://api.example.com", false);
        check("*.example.com", "https://api.example.com", false);
        check("example.com", "https://notexample.com", true);
        check("example.com:8443", "https://example.com", true);
        check("example.com:443", "https://example.com", false);
        check("10.0.0.0/8, 192.168.1.7", "https://10.200.1.1", false);
        check("10.0.0.0/8, 192.168.1.7", "https://192.168.1.7", false);
        check("10.0.0.0/8", "https://11.0.0.1", true);
        check("fd00::/8", "https://[fd12::1]", false);
        check("*", "https://example.com", false);
        check("", "https://example.com", true);
    }

    #[test]
    fn loopback_never_goes_through_a_proxy() {
        check("", "http://127.0.0.1:1234/v1", false);
        check("", "http://[::1]:1234/v1", false);
        check("", "http://localhost:11434", false);
    }

    #[test]
    fn what_cannot_be_used_is_refused_by_name() {
        let error = proxies(&[("HTTPS_PROXY", "socks5://proxy:1080")]).unwrap_err();
        assert!(error.starts_with("HTTPS_PROXY names a socks5 proxy"), "{error}");
        assert!(proxies(&[("HTTPS_PROXY", "http://")]).is_err());
        assert_eq!(proxies(&[("HTTPS_PROXY", " ")]).unwrap(), Proxies::default());
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,40}", host in "[a-z0-9.]{1,12}") {
            let _ = proxies(&[("NO_PROXY", &text), ("HTTPS_PROXY", &text)]);
            let all = proxies(&[("NO_PROXY", &text), ("HTTPS_PROXY", "http://p:1")]).unwrap();
            if let Ok(url) = Url::parse(&format!("https://{host}/")) {
                let _ = all.route(&url);
            }
        }
    }
}
