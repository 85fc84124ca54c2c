//! What went wrong on the way, in words that say what to do.

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{StatusCode, Url};
use stele_core::{Failure, FailureCode, limits};

use crate::proxy::Route;

/// Where a request went, for messages.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Host and port.
    host: String,
    /// The whole address; it holds no credential.
    url: String,
    proxy: Option<Route>,
    idle: Duration,
}

impl Place {
    pub(crate) fn new(url: &Url, proxy: Option<Route>, idle: Duration) -> Self {
        let port = url.port_or_known_default().map(|port| format!(":{port}")).unwrap_or_default();
        let host = format!("{}{port}", url.host_str().unwrap_or_default());
        Self { host, url: url.to_string(), proxy, idle }
    }

    pub(crate) fn proxy_scheme(&self) -> Option<&str> {
        self.proxy.as_ref().map(|route| route.url.scheme())
    }

    fn through(&self) -> String {
        self.proxy.as_ref().map(|route| format!(" through {route}")).unwrap_or_default()
    }

    /// No answer came, because no connection did or because it broke.
    pub(crate) fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let Self { host, .. } = self;
        let through = self.through();
        let detail = chain(error);
        if error.is_connect() && error.is_timeout() {
            let why = format!("no connection to {host}{through} in time; check the network and the base URL");
            return Failure::new(FailureCode::ConnectTimeout, why);
        }
        if !error.is_connect() {
            let why = format!("the connection to {host}{through} broke before an answer came: {detail}");
            return Failure::new(FailureCode::Transport, why).taken();
        }
        let lower = detail.to_ascii_lowercase();
        let why = if caused_by(error, std::io::ErrorKind::ConnectionRefused) {
            match &self.proxy {
                Some(route) => format!("{host} cannot be reached: nothing answers at {route}; is it running?"),
                None => format!("nothing answers at {host}; is the server running?"),
            }
        } else if lower.contains("dns error") || lower.contains("lookup address") {
            format!("the name of {host}{through} cannot be resolved; check the base URL and the network")
        } else if lower.contains("certificate") || lower.contains("unknownissuer") {
            format!(
                "the certificate of {host}{through} is not trusted: {detail}; if your network inspects TLS, \
                 set STELE_CA_FILE to its certificate authority"
            )
        } else {
            format!("no connection to {host}{through}: {detail}")
        };
        Failure::new(FailureCode::Transport, why)
    }

    /// The stream stood still. `output` says whether any byte of it had come.
    pub(crate) fn idle(&self, output: bool) -> Failure {
        let Self { host, idle, .. } = self;
        let what = if output { "stopped sending" } else { "sent nothing" };
        let why = format!("{host}{} {what} for {idle:?}; {} raises the limit", self.through(), limits::IDLE_MS.name);
        Failure::new(FailureCode::IdleTimeout, why).taken()
    }

    /// The connection broke in the middle of an answer.
    pub(crate) fn broken(&self, error: &reqwest::Error) -> Failure {
        let why = format!("the connection to {}{} broke in mid-answer: {}", self.host, self.through(), chain(error));
        Failure::new(FailureCode::Transport, why).taken()
    }

    /// A redirection, which no POST follows: the body would go to a server nobody chose.
    pub(crate) fn redirected(&self, status: u16, location: Option<&HeaderValue>) -> Failure {
        // A query may hold a secret.
        let target = location.and_then(|value| value.to_str().ok()).and_then(|text| Url::parse(text).ok());
        let target =
            target.map_or_else(String::new, |url| format!(" to {}{}", url.origin().ascii_serialization(), url.path()));
        let why = format!("{} redirects{target}, which is not followed; correct the base URL", self.url);
        Failure { status: Some(status), ..Failure::new(FailureCode::InvalidRequest, why) }
    }

    /// A page for people instead of an answer.
    pub(crate) fn web_page(&self, status: u16) -> Failure {
        let why = format!("{} answers with a web page, not with a model's answer; check the base URL", self.url);
        Failure { status: Some(status), ..Failure::new(FailureCode::InvalidRequest, why) }
    }

    /// Names the server of an answer that was none.
    pub(crate) fn named(&self, failure: Failure) -> Failure {
        let message = format!("{} (from {})", failure.message.as_str(), self.host);
        Failure { message: message.into(), ..failure }
    }

    /// Adds what only the transport knows to what the wire made of an error.
    pub(crate) fn refine(&self, mut failure: Failure, status: StatusCode) -> Failure {
        let mut message = failure.message.as_str().to_owned();
        let number = status.as_u16();
        message.push_str(&match number {
            404 | 405 => format!(" ({number}, asked of {}: check the model and the base URL)", self.url),
            407 => format!(" ({number}, answered{})", self.through()),
            _ => format!(" ({number} from {})", self.host),
        });
        if let Some(ms) = failure.retry_after_ms.filter(|ms| *ms > limits::RETRY_AFTER_MS.default) {
            let longest = limits::RETRY_AFTER_MS.default / 1_000;
            message.push_str(&format!(
                " (the server asks to wait {}, longer than the {longest} s that are waited; try again then)",
                duration(ms)
            ));
        }
        failure.message = message.into();
        failure
    }
}

/// Minutes and hours in words, rounded up to the second.
fn duration(ms: u64) -> String {
    let seconds = ms.div_ceil(1_000);
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (8_760.., ..) => "more than a year".to_owned(),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// An error and its causes, without repetition.
pub(crate) fn chain(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        if !text.contains(&part) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&part);
        }
        cause = error.source();
    }
    if text.is_empty() { error.to_string() } else { text }
}

fn caused_by(error: &reqwest::Error, kind: std::io::ErrorKind) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == kind) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// How long the server asks to wait, in milliseconds: `retry-after-ms` (OpenAI), `retry-after` in
/// seconds, or as a date, which is taken against the answer's own `date` so that no clock of ours
/// matters (RFC 9110, section 10.2.3).
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(ms) = text("retry-after-ms").and_then(milliseconds) {
        return Some(ms);
    }
    let after = text(header::RETRY_AFTER.as_str())?;
    if let Some(seconds) = after.parse::<f64>().ok().filter(|seconds| seconds.is_finite() && *seconds >= 0.0) {
        return Some((seconds * 1_000.0) as u64);
    }
    let (then, now) = (http_date(after)?, http_date(text("date")?)?);
    Some(u64::try_from(then.saturating_sub(now)).unwrap_or(0).saturating_mul(1_000))
}

fn milliseconds(text: &str) -> Option<u64> {
    text.parse::<f64>().ok().filter(|ms| ms.is_finite() && *ms >= 0.0).map(|ms| ms as u64)
}

/// Seconds since 1970 of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut parts = text.split_once(", ")?.1.split(' ');
    let day: i64 = parts.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let name = parts.next()?;
    let month = MONTHS.iter().position(|month| *month == name)? as i64 + 1;
    let year: i64 = parts.next()?.parse().ok().filter(|year| (1970..=9999).contains(year))?;
    let mut time = parts.next()?.split(':').map(|part| part.parse::<i64>().ok().filter(|part| (0..=60).contains(part)));
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    // Days of the civil calendar, with the year beginning in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    (parts.next() == Some("GMT")).then_some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wait(headers: &[(&'static str, &str)]) -> Option<u64> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        retry_after(&map)
    }

    #[test]
    fn each_way_to_ask_for_a_wait_is_read() {
        assert_eq!(wait(&[("retry-after", "7")]), Some(7_000));
        assert_eq!(wait(&[("retry-after", "0.25")]), Some(250));
        assert_eq!(wait(&[("retry-after-ms", "1500"), ("retry-after", "9")]), Some(1_500));
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(wait(&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT"), ("date", date)]), Some(30_000));
        assert_eq!(wait(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), ("date", date)]), Some(0));
        assert_eq!(wait(&[("retry-after", "soon")]), None);
        assert_eq!(wait(&[("retry-after", "-1")]), None);
        assert_eq!(wait(&[]), None);
    }

    #[test]
    fn dates_count_from_1970() {
        assert_eq!(http_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(http_date("Tue, 29 Feb 2028 00:00:00 GMT"), Some(1_835_395_200));
    }

    #[test]
    fn a_wait_that_is_too_long_is_named() {
        let place = Place::new(&Url::parse("https://h/v1").unwrap(), None, Duration::from_secs(1));
        let limited =
            Failure { retry_after_ms: Some(7_500_000), ..Failure::new(FailureCode::RateLimited, "slow down") };
        let failure = place.refine(limited, StatusCode::TOO_MANY_REQUESTS);
        assert!(failure.message.as_str().contains("2 h 5 min"), "{:?}", failure.message);
    }

    proptest! {
        #[test]
        fn any_header_is_read_without_a_panic(text in "[ -~]{0,40}") {
            let _ = wait(&[("retry-after", &text), ("date", &text)]);
            let _ = http_date(&text);
        }
    }
}
