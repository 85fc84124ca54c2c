//! `stele verify`: chain, head, records, blobs, and every request built again.

use serde::Serialize;
use stele_agent::{RequestCheck, Verification};
use stele_core::{Hash, SessionId};
use stele_store::{Filter, Store};

use crate::args::VerifyArgs;
use crate::error::{CommandError, Result};
use crate::output;
use crate::render::inert::one_line;
use crate::render::json;
use crate::render::money::{count, plural};
use crate::render::style::Style;
use crate::setup::Setup;

/// What is said of one session.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<SessionId>,
    clean: bool,
    records: u64,
    requests: u64,
    request_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<json::HeadJson>,
    damage: Vec<String>,
    /// What could not be compared; no damage.
    notes: Vec<String>,
}

/// Checks one session or all.
pub fn main(setup: &Setup, args: &VerifyArgs) -> Result<u8> {
    if args.id.is_none() && !args.all {
        return Err(CommandError::usage("usage.session", "which session? the start of its id, or --all for every one")
            .hint("stele sessions list"));
    }
    let mut reports = Vec::new();
    if args.all {
        let Some(store) = setup.inspect()? else {
            if !args.json {
                output::print("there is no session yet; nothing to verify")?;
            }
            return Ok(0);
        };
        for row in store.sessions(&Filter::default())? {
            reports.push(check(&store, &row.id, None)?);
        }
        // Records whose session is gone belong to none of the reports above.
        let known: Vec<String> = reports.iter().flat_map(|report| report.damage.iter().cloned()).collect();
        let more = store.check_all()?.into_iter().map(|fault| fault.to_string());
        let damage: Vec<String> = more.filter(|fault| !known.contains(fault)).collect();
        if !damage.is_empty() {
            reports.push(Report {
                session: None,
                clean: false,
                records: 0,
                requests: 0,
                request_bytes: 0,
                head: None,
                damage,
                notes: Vec::new(),
            });
        }
    } else {
        let store = setup.logs()?;
        let id = store.resolve(args.id.as_deref().unwrap_or_default())?;
        reports.push(check(&store, &id, args.expect.as_ref())?);
    }
    let clean = reports.iter().all(|report| report.clean);
    let style = setup.look.stdout();
    let text: Vec<String> =
        reports.iter().map(|report| if args.json { json::line(report) } else { describe(report, style) }).collect();
    output::print(&text.join("\n"))?;
    if !args.json && args.all {
        let bad = reports.iter().filter(|report| !report.clean).count();
        let sum = plural(reports.len() as u64, "session");
        output::print(&if bad == 0 { format!("{sum}, all clean") } else { format!("{sum}, {bad} damaged") })?;
    }
    Ok(u8::from(!clean))
}

fn check(store: &Store, id: &SessionId, expect: Option<&Hash>) -> Result<Report> {
    let verification = stele_agent::verify(store, id)?;
    let head = store.session(id)?.head;
    let mut damage = damage(&verification);
    if let Some(expect) = expect.filter(|expect| **expect != head.hash) {
        damage.push(format!(
            "the head is {}, not {expect} as expected: records were changed, added or removed",
            head.hash
        ));
    }
    Ok(Report {
        session: Some(id.clone()),
        clean: damage.is_empty(),
        records: verification.records,
        requests: verification.requests,
        request_bytes: verification.request_bytes,
        head: Some(json::HeadJson { seq: head.seq.0, hash: head.hash.to_string() }),
        damage,
        notes: notes(&verification),
    })
}

/// One sentence for each thing that is damaged.
fn damage(verification: &Verification) -> Vec<String> {
    let faults = verification.faults.iter().map(ToString::to_string);
    let unreadable = verification.unreadable.iter().map(|(seq, why)| format!("record {seq} cannot be read: {why}"));
    let requests = verification.requests_not_same.iter().filter_map(|(seq, check)| match check {
        RequestCheck::Differs { what } => {
            Some(format!("the request of record {seq} is not the one that was sent: its {what} differs"))
        }
        RequestCheck::Same | RequestCheck::RevisionNotHere { .. } => None,
    });
    faults.chain(unreadable).chain(requests).collect()
}

fn notes(verification: &Verification) -> Vec<String> {
    let notes = verification.requests_not_same.iter().filter_map(|(seq, check)| match check {
        RequestCheck::RevisionNotHere { encoder } => {
            Some(format!("the request of record {seq} was not compared: this build has no encoder {encoder}"))
        }
        RequestCheck::Same | RequestCheck::Differs { .. } => None,
    });
    notes.collect()
}

fn describe(report: &Report, style: Style) -> String {
    let name = report.session.as_ref().map_or_else(|| "(no session)".to_owned(), ToString::to_string);
    let mark = if report.clean { style.green("clean") } else { style.red("DAMAGED") };
    let mut lines = vec![format!("{name}  {mark}")];
    if let Some(head) = &report.head {
        lines.push(format!(
            "  {} · {} rebuilt as sent, {} bytes",
            plural(report.records, "record"),
            plural(report.requests, "request"),
            count(report.request_bytes)
        ));
        lines.push(style.dim(&format!("  head {} {}", head.seq, head.hash)));
    }
    lines.extend(report.damage.iter().map(|damage| format!("  {} {}", style.red("✗"), one_line(damage))));
    lines.extend(report.notes.iter().map(|note| format!("  {} {}", style.yellow("!"), one_line(note))));
    lines.join("\n")
}
