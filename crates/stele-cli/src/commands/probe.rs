//! `stele probe`: what an endpoint takes and reports, found out with two or three requests.

use std::io::{self, BufRead, IsTerminal, Write};

use serde::Serialize;
use stele_core::{Micros, OptionalField, Usage};
use stele_provider::trial::{self, Trial, TrialEnd, TrialOutcome, TrialPlan, TrialRequest};
use stele_provider::{Capability, Endpoint, Evidence, How, Ledger, LedgerError, LedgerFile, Route, Standing, Status};

use crate::args::ProbeArgs;
use crate::error::{CommandError, Result};
use crate::output;
use crate::render::inert::{one_line, shorten};
use crate::render::json;
use crate::render::money::{cost, count, known, plural};
use crate::render::style::Style;
use crate::runtime::runtime;
use crate::setup::{self, Setup};
use crate::signals::Signals;

/// Widest evidence in the table.
const SAYS: usize = 72;

/// Exit code after a signal to stop.
const STOPPED: u8 = 130;

/// What is said of a request that was given up, and its code.
const GIVEN_UP: (&str, &str) = ("probe.stopped", "given up before its answer was whole; it may be billed all the same");

/// A line of `--json`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'a> {
    /// A request that was sent.
    Request {
        fields: Vec<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'a str>,
    },
    /// A capability, before and after.
    Capability { capability: Capability, before: Status, after: Status, evidence: &'a str },
    /// What a ledger holds.
    Entry {
        base_url: &'a str,
        wire: stele_core::Wire,
        model: &'a str,
        capability: Capability,
        status: Status,
        when: &'a str,
        how: How,
        says: &'a str,
    },
    /// The end of a probe.
    Probe {
        route: &'a str,
        base_url: &'a str,
        wire: stele_core::Wire,
        model: &'a str,
        /// Millionths of a US dollar; absent where it is not known.
        cost: Option<Micros>,
        complete: bool,
    },
}

/// A row of the table.
struct Row {
    capability: Capability,
    before: Status,
    after: Standing,
    /// What this probe saw, where it saw something.
    saw: Option<String>,
}

impl Row {
    fn evidence(&self) -> &str {
        self.saw.as_deref().unwrap_or(&self.after.because)
    }
}

/// Probes a route, or lists what is known.
pub fn main(setup: &Setup, args: &ProbeArgs) -> Result<u8> {
    let file = setup.ledger();
    if args.list {
        return list(setup, &read(&file, setup), args);
    }
    let routes = setup.routes()?;
    if routes.is_empty() {
        return Err(setup.no_route(Vec::new()));
    }
    if args.route.is_none() && routes.len() > 1 {
        let error = CommandError::usage("usage.probe", "there are several routes; name the one that is to be probed");
        return Err(routes.iter().fold(error, |error, route| error.hint(format!("stele probe {}", route.name))));
    }
    let (route, model) = setup::choose(&routes, args.route.as_deref())?;
    let route = Route { model, ..route.clone() };
    setup.has_key(&route)?;
    let plan = trial::plan(&route);
    if !args.yes && !confirmed(&route, &plan, args)? {
        return Ok(0);
    }
    let before = read(&file, setup);
    let client = setup.client()?;
    let runtime = runtime()?;
    let nonce = stele_agent::new_session_id(setup::now());
    let style = setup.look.stdout();
    // What cannot be shown is learnt all the same; the fault is told at the end.
    let mut shown = match args.json {
        true => Ok(()),
        false => output::print(&title(&route, style)),
    };
    let mut sent = 0;
    let mut show = |request: &TrialRequest| {
        sent += 1;
        let line = if args.json { request_line(request) } else { request_row(sent, request, style) };
        if shown.is_ok() {
            shown = output::print(&line);
        }
    };
    let trial = runtime.block_on(async {
        let mut signals = Signals::new()?;
        let stop = async {
            signals.next().await;
        };
        Ok::<_, CommandError>(trial::run(&client, &route, &nonce, stop, &mut show).await)
    })?;
    runtime.shutdown_background();
    let endpoint = Endpoint::new(&route.base_url, route.wire, &route.model);
    if let Err(error) = file.learn(&endpoint, &trial.lessons, How::Probe, &setup::today()) {
        warn(&error, setup);
    }
    shown?;
    let mut after = before.clone();
    for lesson in &trial.lessons {
        after.learn(&endpoint, lesson, How::Probe, &setup::today());
    }
    let rows = rows(&endpoint, &before, &after, &trial);
    let spent = trial.cost(route.price());
    output::print(&if args.json { lines(&route, &trial, &rows, spent) } else { table(&trial, &rows, spent, style) })?;
    match trial.end {
        TrialEnd::Complete => Ok(0),
        TrialEnd::Stopped => Ok(STOPPED),
        TrialEnd::Failed(failure) => {
            let error = CommandError::failed(failure.code.code(), failure.message.as_str());
            Err(error.hint("what was seen before that is in the ledger; run the probe again later"))
        }
    }
}

/// What is known now; what is wrong with the file is told.
fn read(file: &LedgerFile, setup: &Setup) -> Ledger {
    let reading = file.read();
    if let Some(error) = &reading.trouble {
        warn(error, setup);
    }
    reading.ledger
}

fn warn(error: &LedgerError, setup: &Setup) {
    crate::app::report(&CommandError::failed(error.code(), error.to_string()), setup.look.stderr());
}

/// What it would send, in one line.
fn offer(route: &Route, plan: &TrialPlan) -> String {
    let price = match plan.cost {
        Some(most) => format!("at most {}", cost(Some(most))),
        None => "unpriced: nobody here knows what they cost".to_owned(),
    };
    format!(
        "{} to {} at {}: about {} tokens each, at most {} tokens back; {price}",
        plural(plan.requests, "request"),
        one_line(&route.model),
        one_line(&route.base_url),
        count(plan.tokens),
        plan.output,
    )
}

/// Asks the person. Nothing but a yes sends anything.
fn confirmed(route: &Route, plan: &TrialPlan, args: &ProbeArgs) -> Result<bool> {
    let offer = offer(route, plan);
    if args.json || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let message = format!("this would send {offer}; nobody can be asked here");
        return Err(CommandError::usage("probe.unconfirmed", message).hint("--yes sends them"));
    }
    // What was typed before answers nothing.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    let mut err = io::stderr().lock();
    write!(err, "This sends {offer}.\nSend them? [y]es, [n]o: ")?;
    err.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn rows(endpoint: &Endpoint, before: &Ledger, after: &Ledger, trial: &Trial) -> Vec<Row> {
    Capability::of(endpoint.wire)
        .map(|capability| {
            let lesson = trial.lessons.iter().rfind(|lesson| lesson.capability == capability);
            Row {
                capability,
                before: before.standing(endpoint, capability).status,
                after: after.standing(endpoint, capability),
                saw: lesson.map(|lesson| lesson.says.clone()),
            }
        })
        .collect()
}

fn request_line(request: &TrialRequest) -> String {
    let (usage, failed) = match &request.outcome {
        TrialOutcome::Answered(usage) => (*usage, None),
        TrialOutcome::Failed(failure) => (None, Some((failure.code.code(), failure.message.as_str()))),
        TrialOutcome::Stopped => (None, Some(GIVEN_UP)),
    };
    json::line(&Line::Request {
        fields: request.fields.iter().map(|field| field.name()).collect(),
        usage,
        error: failed.map(|(code, _)| code),
        message: failed.map(|(_, message)| message),
    })
}

fn lines(route: &Route, trial: &Trial, rows: &[Row], spent: Option<Micros>) -> String {
    let mut lines = Vec::new();
    for row in rows {
        let (capability, before, after) = (row.capability, row.before, row.after.status);
        lines.push(json::line(&Line::Capability { capability, before, after, evidence: row.evidence() }));
    }
    lines.push(json::line(&Line::Probe {
        route: &route.name,
        base_url: &route.base_url,
        wire: route.wire,
        model: &route.model,
        cost: spent,
        complete: trial.end == TrialEnd::Complete,
    }));
    lines.join("\n")
}

fn title(route: &Route, style: Style) -> String {
    style.bold(&format!("{} at {} over {}", one_line(&route.model), one_line(&route.base_url), route.wire))
}

fn request_row(number: usize, request: &TrialRequest, style: Style) -> String {
    let said = match &request.outcome {
        TrialOutcome::Answered(usage) => {
            let usage = usage.unwrap_or_default();
            let [input, read, written] = [usage.input(), usage.cache_read, usage.writes()].map(known);
            format!("{input} tokens in, {read} read from the cache, {written} written")
        }
        TrialOutcome::Failed(failure) => {
            format!("{}: {}", failure.code.code(), shorten(&one_line(failure.message.as_str()), SAYS))
        }
        TrialOutcome::Stopped => GIVEN_UP.1.to_owned(),
    };
    style.dim(&format!("  request {number}: {said}"))
}

fn table(trial: &Trial, rows: &[Row], spent: Option<Micros>, style: Style) -> String {
    let mut lines = Vec::new();
    lines.push(style.dim(&format!("  {:<18}{:<12}{:<12}{}", "capability", "before", "after", "evidence")));
    for row in rows {
        let says = match row.evidence() {
            "" => "nobody has seen it",
            says => says,
        };
        let after = format!("{:<12}", row.after.status.name());
        let after = match row.after.status {
            Status::Verified => style.green(&after),
            Status::Rejected => style.red(&after),
            Status::Documented | Status::Inferred | Status::Unknown => after,
        };
        let says = shorten(&one_line(says), SAYS);
        lines.push(format!("  {:<18}{:<12}{after}{says}", row.capability.name(), row.before.name()));
    }
    lines.push(match (&trial.end, spent) {
        (TrialEnd::Stopped, None) => "  stopped; cost: unknown".to_owned(),
        (TrialEnd::Stopped, Some(spent)) => format!("  stopped; cost: {}", cost(Some(spent))),
        (TrialEnd::Complete | TrialEnd::Failed(_), spent) => format!("  cost: {}", cost(spent)),
    });
    lines.join("\n")
}

fn list(setup: &Setup, ledger: &Ledger, args: &ProbeArgs) -> Result<u8> {
    let wanted = match args.route.as_deref() {
        None => None,
        Some(_) => {
            let routes = setup.routes()?;
            let (route, model) = setup::choose(&routes, args.route.as_deref())?;
            Some(Endpoint::new(&route.base_url, route.wire, &model))
        }
    };
    let entries: Vec<(&Endpoint, Capability, &Evidence)> =
        ledger.entries().filter(|(endpoint, _, _)| wanted.as_ref().is_none_or(|wanted| wanted == *endpoint)).collect();
    let text = if args.json { entry_lines(&entries) } else { entry_table(&entries, setup.look.stdout()) };
    output::print(&text)?;
    Ok(0)
}

fn entry_lines(entries: &[(&Endpoint, Capability, &Evidence)]) -> String {
    let line = |(endpoint, capability, evidence): &(&Endpoint, Capability, &Evidence)| {
        json::line(&Line::Entry {
            base_url: &endpoint.base_url,
            wire: endpoint.wire,
            model: &endpoint.model,
            capability: *capability,
            status: evidence.status,
            when: &evidence.when,
            how: evidence.how,
            says: &evidence.says,
        })
    };
    entries.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn entry_table(entries: &[(&Endpoint, Capability, &Evidence)], style: Style) -> String {
    if entries.is_empty() {
        return "nothing was learnt yet; every answer teaches something, and `stele probe ROUTE` asks".to_owned();
    }
    let mut lines = Vec::new();
    let mut last = None;
    for (endpoint, capability, evidence) in entries {
        if last != Some(*endpoint) {
            last = Some(*endpoint);
            let Endpoint { base_url, wire, model } = endpoint;
            lines.push(style.bold(&format!("{} at {} over {wire}", one_line(model), one_line(base_url))));
        }
        let says = shorten(&one_line(&evidence.to_string()), SAYS);
        lines.push(format!("  {:<18}{:<12}{says}", capability.name(), evidence.status.name()));
    }
    lines.join("\n")
}

/// What is refused or unknown at an endpoint, for `doctor`; `None` where there is nothing to say.
pub fn gaps(ledger: &Ledger, route: &Route) -> Option<(Status, String)> {
    let endpoint = Endpoint::new(&route.base_url, route.wire, &route.model);
    // What the route has no use for is not sent, so that no probe of it can find out.
    let sent = trial::fields(route, &stele_agent::new_session_id(setup::now()));
    let has_use = |capability: &Capability| {
        let field = OptionalField::ALL.into_iter().find(|field| Capability::from(*field) == *capability);
        field.is_none_or(|field| sent.contains(&field))
    };
    let with = |status| {
        let of = Capability::of(route.wire).filter(has_use);
        let of = of.filter(|capability| ledger.standing(&endpoint, *capability).status == status);
        of.map(Capability::name).collect::<Vec<_>>().join(", ")
    };
    let (rejected, unknown) = (with(Status::Rejected), with(Status::Unknown));
    let parts: Vec<String> = [("rejected", &rejected), ("unknown", &unknown)]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(status, names)| format!("{status}: {names}"))
        .collect();
    let worst = if rejected.is_empty() { Status::Unknown } else { Status::Rejected };
    let says = format!("{}: {}; `stele probe {}` finds out", route.name, parts.join("; "), route.name);
    (!parts.is_empty()).then_some((worst, says))
}
