//! `web_search`: results of a search service that a person configured.

use std::fmt::Write as _;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use stele_core::{CallCard, CardKind, Effects, Future, Invocation, Subject, Tool, ToolError, ToolOutput, ToolSpec};

use crate::declare::{Declared, finish};
use crate::error::{Error, Result};
use crate::tools::web_fetch::untrusted;
use crate::web::Http;
use crate::{Options, Search, SearchKind, card};

/// Results that are shown by default, and at most.
const SHOWN: (u64, u64) = (8, 20);
/// Bytes of an excerpt.
const EXCERPT: usize = 400;

/// How a kind of service is asked and answers.
struct Shape {
    path: &'static str,
    query: &'static str,
    count: Option<&'static str>,
    more: &'static [(&'static str, &'static str)],
    key_header: Option<&'static str>,
    results: &'static str,
    excerpt: &'static str,
}

impl SearchKind {
    fn shape(self) -> Shape {
        match self {
            Self::Searxng => Shape {
                path: "search",
                query: "q",
                count: None,
                more: &[("format", "json")],
                key_header: None,
                results: "/results",
                excerpt: "content",
            },
            Self::Brave => Shape {
                path: "res/v1/web/search",
                query: "q",
                count: Some("count"),
                more: &[],
                key_header: Some("x-subscription-token"),
                results: "/web/results",
                excerpt: "description",
            },
        }
    }
}

/// Arguments of `web_search`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    query: String,
    /// Results: 8 by default, at most 20.
    count: Option<u64>,
}

/// The tool.
pub(crate) struct WebSearch {
    declared: Declared<Arguments>,
    search: Search,
    http: Http,
    limit: usize,
}

impl WebSearch {
    pub(crate) fn new(options: &Options, search: Search) -> Self {
        // The person who configured it says by that where it is.
        let host = reqwest::Url::parse(&search.url).ok().and_then(|url| {
            let host = url.host_str()?.to_owned();
            Some(format!("{host}:{}", url.port_or_known_default()?))
        });
        Self {
            declared: Declared::new("web_search", include_str!("web_search.md"), ""),
            search,
            http: Http::new(host.as_slice()),
            limit: options.limits.result_bytes,
        }
    }

    async fn ask(&self, arguments: &Arguments) -> Result<ToolOutput> {
        let count = arguments.count.unwrap_or(SHOWN.0);
        if count == 0 || count > SHOWN.1 {
            return Err(Error::Value(format!("count = {count} is out of bounds: at least 1, at most {}", SHOWN.1)));
        }
        let failed = |message: String| Error::Web { code: "web.failed", message };
        let shape = self.search.kind.shape();
        let base = self.search.url.trim_end_matches('/');
        let mut url = reqwest::Url::parse(&format!("{base}/{}", shape.path))
            .map_err(|error| failed(format!("the address of the search service is no URL: {error}")))?;
        url.query_pairs_mut().append_pair(shape.query, &arguments.query).extend_pairs(shape.more);
        if let Some(name) = shape.count {
            url.query_pairs_mut().append_pair(name, &count.to_string());
        }
        let key = shape.key_header.zip(self.search.key.as_deref());
        let headers: Vec<(&str, &str)> = [("accept", "application/json")].into_iter().chain(key).collect();
        let page = self.http.get(url.as_str(), &headers).await?;
        if page.status != 200 {
            return Err(failed(format!("the search service answered with status {}", page.status)));
        }
        let answer: Value = serde_json::from_str(&page.text)
            .map_err(|_| failed("the search service did not answer with JSON; is its JSON format on?".to_owned()))?;
        let results = answer.pointer(shape.results).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let shown = usize::try_from(count).unwrap_or(usize::MAX);
        Ok(ToolOutput::text(text(&arguments.query, results.get(..shown).unwrap_or(results), shape.excerpt)))
    }
}

fn text(query: &str, results: &[Value], excerpt: &str) -> String {
    if results.is_empty() {
        return format!("nothing was found for {query:?}");
    }
    let mut text = String::new();
    for (index, result) in results.iter().enumerate() {
        let field = |name: &str| {
            let text = result.get(name).and_then(Value::as_str).unwrap_or_default();
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            line[..crate::sanitise::floor(&line, EXCERPT)].to_owned()
        };
        let _ = writeln!(text, "{}. {}\n   {}\n   {}", index + 1, field("title"), field("url"), field(excerpt));
    }
    untrusted("web_search", &text)
}

impl Tool for WebSearch {
    fn spec(&self) -> &ToolSpec {
        &self.declared.spec
    }

    // What is searched for leaves the machine.
    fn effects(&self) -> Effects {
        Effects::External
    }

    fn parallel(&self, _: &str) -> bool {
        true
    }

    fn subjects(&self, arguments: &str) -> Result<Vec<Subject>, ToolError> {
        self.declared.parse(arguments)?;
        Ok(Vec::new())
    }

    fn call_card(&self, arguments: &str, _: &Path) -> CallCard {
        let Ok(arguments) = self.declared.parse(arguments) else { return self.declared.plain_card(CardKind::Fetch) };
        let title = card::title(&format!("Search for {}", arguments.query));
        CallCard::Generic { title, kind: CardKind::Fetch, locations: Vec::new() }
    }

    fn run<'a>(&'a self, invocation: Invocation<'a>) -> Future<'a, ToolOutput> {
        Box::pin(async move {
            let result = async {
                let arguments = self.declared.parse(invocation.arguments)?;
                tokio::select! {
                    biased;
                    () = invocation.cancelled => Err(Error::Cancelled),
                    output = self.ask(&arguments) => output,
                }
            };
            finish(result.await, Some(self.limit))
        })
    }
}
