//! `stele cache`: what the provider's prompt cache did for our own sessions, by the analyses that the proxy uses too.

mod requests;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use stele_core::{Millis, Reuse, SessionId};
use stele_proxy::{Judging, Recorded, Report, Sum};
use stele_store::{Filter, Store};

use crate::args::{CacheCommand, SumBy};
use crate::commands::proxy;
use crate::error::{CommandError, Result};
use crate::output;
use crate::render::style::Style;
use crate::render::timeline::local_reuse;
use crate::render::{json, requests as tables, time};
use crate::sessions::{Asker, named_or_latest};
use crate::setup::{Setup, now};

use requests::Requests;

/// Reports, explains or simulates.
pub fn main(setup: &Setup, command: &CacheCommand) -> Result<u8> {
    let store = setup.logs()?;
    let style = setup.look.stdout();
    let session = |id: &Option<String>, command| {
        named_or_latest(&store, id.as_deref(), &setup.folder, Asker::Look(command))
            .and_then(|id| Requests::of(&store, &id))
    };
    let text = match command {
        CacheCommand::Report { all, since, by, rules, json, .. } if *all || since.is_some() || by.is_some() => {
            let by = by.unwrap_or_default();
            let (sums, reuse) = sums(&store, *since, by, proxy::judging(rules.as_deref())?.rules)?;
            if *json { sum_lines(&sums, by, reuse) } else { with_reuse(tables::sums(&sums, by.name(), style), &reuse) }
        }
        CacheCommand::Report { id, rules, json, .. } => {
            let rules = proxy::judging(rules.as_deref())?.rules;
            let found = session(id, "cache report")?;
            let judged = found.judge(rules);
            if *json { judged_lines(&found, &judged) } else { report_lines(&found, &judged, style) }
        }
        CacheCommand::Explain { id, request, rules, json } => {
            vec![explain(&session(id, "cache explain")?, *request, rules.as_deref(), *json, style)?]
        }
        CacheCommand::Simulate { id, vendor, model, json } => {
            let found = session(id, "cache simulate --vendor NAME")?;
            let total = found.judge(None).total;
            vec![proxy::simulation(&found.requests, &total, vendor, model.as_deref(), *json, style)?]
        }
    };
    output::print(&text.join("\n"))?;
    Ok(0)
}

impl Requests {
    fn judge(&self, rules: Option<&str>) -> Report {
        stele_proxy::report(&self.requests, &Judging { rules, price: &|request| self.price(request) })
    }
}

/// The report on one session without its notes, for a session that cannot have a price.
pub fn figures(store: &Store, id: &SessionId, style: Style) -> Result<Vec<String>> {
    let found = Requests::of(store, id)?;
    Ok(with_reuse(tables::session(&found.judge(None), &[], style), &found.local_reuse()))
}

/// The report on one session, as lines for a person.
pub fn lines(store: &Store, id: &SessionId, style: Style) -> Result<Vec<String>> {
    let found = Requests::of(store, id)?;
    Ok(report_lines(&found, &found.judge(None), style))
}

fn report_lines(found: &Requests, judged: &Report, style: Style) -> Vec<String> {
    let mut notes = if judged.total.unpriced > 0 { found.unpriced() } else { Vec::new() };
    if found.left_out > 0 {
        notes.push(format!("{} of another version's encoder cannot be built here", found.left_out));
    }
    with_reuse(tables::session(judged, &notes, style), &found.local_reuse())
}

/// What the provider's cache had no part in stands behind its figures, in none of them.
fn with_reuse(mut lines: Vec<String>, reuse: &Reuse) -> Vec<String> {
    lines.extend(local_reuse(reuse).map(|reuse| format!("  {reuse}")));
    lines
}

/// A line of `stele cache report --json`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Row<'a> {
    Request(&'a stele_proxy::Line),
    Sum {
        by: &'a str,
        key: &'a str,
        #[serde(flatten)]
        sum: &'a Sum,
    },
    Total {
        #[serde(flatten)]
        sum: &'a Sum,
        failed: u64,
        #[serde(skip_serializing_if = "Reuse::is_none")]
        local_reuse: Reuse,
    },
}

fn judged_lines(found: &Requests, judged: &Report) -> Vec<String> {
    let requests = judged.conversations.iter().flat_map(|conversation| &conversation.requests);
    let total = Row::Total { sum: &judged.total, failed: judged.failed, local_reuse: found.local_reuse() };
    requests.map(Row::Request).chain([total]).map(|row| json::line(&row)).collect()
}

fn sum_lines(sums: &BTreeMap<String, Sum>, by: SumBy, local_reuse: Reuse) -> Vec<String> {
    let rows = sums.iter().map(|(key, sum)| Row::Sum { by: by.name(), key, sum });
    let total = sums.values().fold(Sum::default(), |total, sum| total.join(sum));
    rows.chain([Row::Total { sum: &total, failed: 0, local_reuse }]).map(|row| json::line(&row)).collect()
}

impl SumBy {
    fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Day => "day",
            Self::Project => "project",
            Self::Model => "model",
        }
    }
}

/// Sums over all sessions, or over what they sent in some last time. A fork counts what it sent itself.
fn sums(
    store: &Store,
    since: Option<Duration>,
    by: SumBy,
    rules: Option<&str>,
) -> Result<(BTreeMap<String, Sum>, Reuse)> {
    let from = since.map(|time| Millis(now().0.saturating_sub(i64::try_from(time.as_millis()).unwrap_or(i64::MAX))));
    let (mut sums, mut reused) = (BTreeMap::<String, Sum>::new(), Vec::new());
    for row in store.sessions(&Filter { cwd: None, limit: None })? {
        if from.is_some_and(|from| row.updated < from) {
            continue;
        }
        let found = Requests::of(store, &row.id)?;
        let own = requests::own(row.parent.as_ref().map(|parent| parent.seq));
        let counts = |id: u64, at: Millis| own(id) && from.is_none_or(|from| at >= from);
        reused.extend(found.reused.iter().filter(|part| counts(part.id, part.at)).map(|part| part.reuse));
        let key = |request: &Recorded| {
            counts(request.id, request.at).then(|| match by {
                SumBy::Session => row.id.to_string(),
                SumBy::Day => time::day(request.at),
                SumBy::Project => row.cwd.clone(),
                SumBy::Model => request.model.clone(),
            })
        };
        let judging = Judging { rules, price: &|request| found.price(request) };
        for (key, sum) in stele_proxy::sums(&found.requests, &judging, &key) {
            let entry = sums.entry(key).or_default();
            *entry = std::mem::take(entry).join(&sum);
        }
    }
    Ok((sums, requests::total(reused)))
}

fn explain(found: &Requests, id: Option<u64>, rules: Option<&str>, as_json: bool, style: Style) -> Result<String> {
    let rules = proxy::judging(rules)?.rules;
    let judging = Judging { rules, price: &|request| found.price(request) };
    proxy::explanation(&found.requests, id, &judging, as_json, style).map_err(|unknown| {
        let message = format!("this session has no request {unknown}");
        CommandError::usage("cache.no_request", message).hint("stele cache report ID  # lists them")
    })
}
