//! `stele proxy`: any agent's requests, recorded as they pass, and judged afterwards.

mod serve;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use stele_core::Millis;
use stele_proxy::{Conversation, Judging, Recorded, Recordings, Report, Store, Sum};

use crate::args::{ProxyArgs, ProxyCommand};
use crate::error::{CommandError, Result};
use crate::nearest;
use crate::output;
use crate::render::style::Style;
use crate::render::{explained, json, requests as tables};
use crate::setup::{Setup, now};

/// Names that an error lists.
const NEAR: usize = 3;

/// Serves, or looks at what was recorded.
pub fn main(setup: &Setup, args: &ProxyArgs) -> Result<u8> {
    let Some(command) = &args.command else { return serve::main(setup, &args.serve, args.json) };
    if args.serve.is_given() {
        return Err(CommandError::usage("usage.order", "a report takes no options of the proxy itself")
            .hint("stele proxy report")
            .hint("a command to run stands after --: stele proxy --to NAME -- COMMAND"));
    }
    match command {
        ProxyCommand::Report { since, rules } => {
            let found = recordings(setup, *since)?;
            let judging = judging(rules.as_deref())?;
            // A file from which everything was forgotten holds no more than none.
            if since.is_none() && found.requests.is_empty() && found.damaged.is_empty() {
                return Err(stele_proxy::Error::Nothing(folder(setup)).into());
            }
            report(setup, &found, &judging, args.json)
        }
        ProxyCommand::Explain { id, rules } => {
            let found = recordings(setup, None)?;
            explain(setup, &found, *id, &judging(rules.as_deref())?, args.json)
        }
        ProxyCommand::Simulate { vendor, model, since } => {
            let found = recordings(setup, *since)?;
            simulate(setup, &found, vendor, model.as_deref(), args.json)
        }
        ProxyCommand::Gc { keep } => forget(setup, *keep, args.json),
    }
}

/// When a time began that ends now.
fn ago(time: Duration) -> Millis {
    Millis(now().0.saturating_sub(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)))
}

fn forget(setup: &Setup, keep: Duration, as_json: bool) -> Result<u8> {
    let forgotten = Store::open_to_forget(&folder(setup))?.forget(ago(keep))?;
    let text = if as_json { json::line(&forgotten) } else { tables::forgotten(&forgotten) };
    output::print(&text)?;
    Ok(0)
}

/// The folder of the proxy's recordings.
fn folder(setup: &Setup) -> PathBuf {
    setup.config.data.join("proxy")
}

fn recordings(setup: &Setup, since: Option<Duration>) -> Result<Recordings> {
    Ok(Store::inspect(&folder(setup))?.recordings(since.map(ago))?)
}

/// How requests are judged: by the rules of a name, else by those of each endpoint.
pub fn judging(rules: Option<&str>) -> Result<Judging<'_>> {
    let names = stele_provider::cache_rule_names();
    match rules.filter(|name| !names.contains(name)) {
        Some(name) => Err(unknown_rules(format!("no rules are known for {name:?}; take one of {}", names.join(", ")))),
        None => Ok(Judging { rules, ..Judging::default() }),
    }
}

fn unknown_rules(message: String) -> CommandError {
    CommandError::usage("proxy.rules", message)
}

/// A line of `stele proxy report --json`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Row<'a> {
    Conversation(&'a Conversation),
    Total {
        #[serde(flatten)]
        sum: &'a Sum,
        side: &'a Sum,
        failed: u64,
        /// Records that cannot be read.
        damaged: &'a [String],
    },
}

fn report(setup: &Setup, found: &Recordings, judging: &Judging<'_>, as_json: bool) -> Result<u8> {
    let report = stele_proxy::report(&found.requests, judging);
    let text = if as_json {
        let Report { conversations, side, failed, total } = &report;
        let total = Row::Total { sum: total, side, failed: *failed, damaged: &found.damaged };
        let rows = conversations.iter().map(Row::Conversation).chain([total]);
        rows.map(|row| json::line(&row)).collect()
    } else {
        tables::report(&report, &found.damaged, setup.look.stdout())
    };
    output::print(&text.join("\n"))?;
    Ok(0)
}

fn explain(setup: &Setup, found: &Recordings, id: Option<u64>, judging: &Judging<'_>, as_json: bool) -> Result<u8> {
    let text = explanation(&found.requests, id, judging, as_json, setup.look.stdout()).map_err(|unknown| {
        let message = format!("there is no request {unknown} among those that were recorded");
        let error = CommandError::usage("proxy.no_request", message).hint("stele proxy report  # lists them");
        found.damaged.iter().fold(error, |error, what| error.hint(what))
    })?;
    print(&text, found, as_json, setup.look.stdout())
}

/// Prints what came of recordings, and behind it what of them cannot be read.
fn print(text: &str, found: &Recordings, as_json: bool, style: Style) -> Result<u8> {
    #[derive(Serialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum Line<'a> {
        Damaged { damaged: &'a [String] },
    }
    output::print(text)?;
    if as_json && !found.damaged.is_empty() {
        output::print(&json::line(&Line::Damaged { damaged: &found.damaged }))?;
    } else {
        output::print(&tables::damaged(&found.damaged, style).join("\n"))?;
    }
    Ok(0)
}

/// Why a request, or without a number the last one that missed, read what it read, as text.
///
/// # Errors
/// The number, where no request has it.
pub fn explanation(
    requests: &[Recorded],
    id: Option<u64>,
    judging: &Judging<'_>,
    as_json: bool,
    style: Style,
) -> Result<String, u64> {
    let id = match id {
        Some(id) => id,
        None => {
            let report = stele_proxy::report(requests, judging);
            let Some(id) = last_miss(&report) else {
                let none = explained::NoMiss::of(&report);
                return Ok(if as_json { json::line(&none) } else { none.describe() });
            };
            id
        }
    };
    let found = stele_proxy::explain(requests, id, judging).ok_or(id)?;
    Ok(if as_json { json::line(&found) } else { explained::explanation(&found, style).join("\n") })
}

/// The last request that read less than it could have.
fn last_miss(report: &Report) -> Option<u64> {
    let lines = report.conversations.iter().flat_map(|conversation| &conversation.requests);
    lines.filter(|line| line.verdict.is_miss()).map(|line| line.id).max()
}

fn simulate(setup: &Setup, found: &Recordings, vendor: &str, model: Option<&str>, as_json: bool) -> Result<u8> {
    let total = stele_proxy::report(&found.requests, &Judging::default()).total;
    let text = simulation(&found.requests, &total, vendor, model, as_json, setup.look.stdout())?;
    print(&text, found, as_json, setup.look.stdout())
}

/// Requests under another vendor's rules, as text; `total` is what they came to where they were sent.
pub fn simulation(
    requests: &[Recorded],
    total: &Sum,
    vendor: &str,
    model: Option<&str>,
    as_json: bool,
    style: Style,
) -> Result<String> {
    if let Some(model) = model {
        check_model(model)?;
    }
    let model = model.map(str::to_owned).or_else(|| default_model(vendor));
    // Rules that belong to no vendor have no model of their own: then the one that was asked.
    let model = model.or_else(|| requests.first().map(|request| request.model.clone())).unwrap_or_default();
    let price = stele_provider::list_price(&model).map(|row| row.price);
    let simulation = stele_proxy::simulate(requests, vendor, &model, price).map_err(unknown_rules)?;
    Ok(if as_json { json::line(&simulation) } else { tables::simulation(&simulation, vendor, total, style).join("\n") })
}

/// An error for a model of which nothing is known, with names that are like it.
fn check_model(model: &str) -> Result<()> {
    if stele_provider::list_price(model).is_some() || stele_provider::model(model).is_some() {
        return Ok(());
    }
    let known = stele_provider::models().iter().map(|known| known.id.clone());
    let near = nearest::several(model, known, NEAR).join(", ");
    let message =
        format!("no model {model} is known, so neither are its rules and prices; the nearest names are {near}");
    Err(CommandError::usage("simulate.model", message).hint("stele models"))
}

/// The model of a vendor when none is named: its default, else the first one that the catalogue has of it.
fn default_model(vendor: &str) -> Option<String> {
    let own = stele_provider::vendors().iter().find(|known| known.name == vendor).and_then(|known| known.model.clone());
    own.or_else(|| stele_provider::models().iter().find(|model| model.vendor == vendor).map(|model| model.id.clone()))
}
