//! `web_fetch`: a page of the web, as text that is labelled as a stranger's.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use stele_core::{CallCard, CardKind, Effects, Future, Invocation, Subject, Tool, ToolError, ToolOutput, ToolSpec};

use crate::declare::{Declared, blocking, finish_kept};
use crate::error::{Error, Result};
use crate::path::Roots;
use crate::web::{self, Http, Page};
use crate::{Options, card};

/// Arguments of `web_fetch`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    url: String,
}

/// The tool.
pub(crate) struct WebFetch {
    declared: Declared<Arguments>,
    roots: Roots,
    http: Http,
    limit: usize,
}

impl WebFetch {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            declared: Declared::new("web_fetch", include_str!("web_fetch.md"), ""),
            roots: options.roots(),
            http: Http::new(&options.web.trusted_hosts),
            limit: options.limits.result_bytes,
        }
    }
}

impl Tool for WebFetch {
    fn spec(&self) -> &ToolSpec {
        &self.declared.spec
    }

    // Whatever a server does with a request, and what the address tells it.
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
        let title = card::title(&format!("Fetch {}", arguments.url));
        CallCard::Generic { title, kind: CardKind::Fetch, locations: Vec::new() }
    }

    fn run<'a>(&'a self, invocation: Invocation<'a>) -> Future<'a, ToolOutput> {
        Box::pin(async move {
            let spill = self.roots.spill(&invocation.session.id, &invocation.call.to_string());
            let result = async {
                let arguments = self.declared.parse(invocation.arguments)?;
                tokio::select! {
                    biased;
                    () = invocation.cancelled => Err(Error::Cancelled),
                    page = async { shown(self.http.get(&arguments.url, &[("accept", "text/html, text/*;q=0.9, */*;q=0.1")]).await?).await } => page,
                }
            };
            finish_kept(result.await, self.limit, spill)
        })
    }
}

async fn shown(page: Page) -> Result<ToolOutput> {
    let Page { url, status, media_type, text, bytes } = page;
    let mut note = format!("status {status}, {media_type}, {bytes} bytes");
    let text = if matches!(media_type.as_str(), "text/html" | "application/xhtml+xml") {
        let (text, converted) = blocking(move || Ok(web::page_text(&text))).await?;
        if !converted {
            note.push_str(", without its tags: it could not be turned into markdown");
        }
        text
    } else {
        text
    };
    Ok(ToolOutput::text(format!("{}\n[{note}]", untrusted(url.as_str(), &text))))
}

/// Text of a stranger, with a border that it cannot close.
pub(crate) fn untrusted(source: &str, text: &str) -> String {
    let text = text.trim().replace("</untrusted", "<\\/untrusted");
    let source = source.replace('"', "%22");
    format!("<untrusted source=\"{source}\">\n{text}\n</untrusted>")
}
