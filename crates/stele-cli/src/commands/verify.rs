//! `stele verify`: chain, head, records, blobs, and every request built again.

use serde::Serialize;
use stele_agent::{RequestCheck, Verification};
use stele_core::{Seq, SessionId};
use stele_store::{Damage, Filter, Store};

use crate::args::VerifyArgs;
use crate::error::{CommandError, Result};
use crate::output;
use crate::render::inert::{one_line, shorten};
use crate::render::json;
use crate::render::money::{count, plural};
use crate::render::style::Style;
use crate::sessions::{Asker, named_or_latest};
use crate::setup::Setup;
use crate::values::NotedHead;

/// The code of damage, which is what this command is there to name.
const CORRUPT: &str = "log.corrupt";
/// The code of a database file in which there is nothing.
const EMPTY: &str = "log.empty";

/// What is said of one session.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<SessionId>,
    clean: bool,
    /// What is damaged, where something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    records: u64,
    requests: u64,
    request_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<json::HeadJson>,
    /// Where the noted head lies on the chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    noted: Option<Noted>,
    damage: Vec<String>,
    /// What could not be compared; no damage.
    notes: Vec<String>,
}

/// A head that was noted elsewhere.
#[derive(Debug, Serialize)]
struct Noted {
    seq: Seq,
    /// Records that came after it.
    since: u64,
}

impl Report {
    /// Of what could not be read so far that records could be counted, or is in no session.
    fn damaged(session: Option<SessionId>, code: &'static str, damage: Vec<String>) -> Self {
        Self {
            session,
            clean: false,
            code: Some(code),
            records: 0,
            requests: 0,
            request_bytes: 0,
            head: None,
            noted: None,
            damage,
            notes: Vec::new(),
        }
    }
}

/// Checks one session or all.
pub fn main(setup: &Setup, args: &VerifyArgs) -> Result<u8> {
    let mut reports = Vec::new();
    if args.all {
        let store = match setup.inspect() {
            Ok(Some(store)) => Some(store),
            Ok(None) => match empty_file(setup) {
                Some(found) => {
                    reports.push(Report::damaged(None, EMPTY, vec![found]));
                    None
                }
                None => {
                    if !args.json {
                        output::print("there is no session yet; nothing to verify")?;
                    }
                    return Ok(0);
                }
            },
            Err(error) if error.code == CORRUPT => {
                reports.push(Report::damaged(None, CORRUPT, vec![bare(&error.message)]));
                None
            }
            Err(error) => return Err(error),
        };
        if let Some(store) = store {
            all(&store, &mut reports)?;
        }
    } else {
        if let (None, Some(found)) = (setup.inspect()?, empty_file(setup)) {
            return Err(CommandError::failed(EMPTY, found));
        }
        let store = setup.logs()?;
        let id = named_or_latest(&store, args.id.as_deref(), &setup.folder, Asker::Look("verify"))?;
        reports.push(check(&store, &id, args.expect.as_ref())?);
    }
    let style = setup.look.stdout();
    let text: Vec<String> =
        reports.iter().map(|report| if args.json { json::line(report) } else { describe(report, style) }).collect();
    output::print(&text.join("\n"))?;
    if !args.json && args.all {
        output::print(&sum(&reports))?;
    }
    Ok(u8::from(reports.iter().any(|report| !report.clean)))
}

/// How many sessions are clean, and whether all that belongs to none is.
fn sum(reports: &[Report]) -> String {
    let (sessions, rest): (Vec<&Report>, Vec<&Report>) = reports.iter().partition(|report| report.session.is_some());
    let bad = sessions.iter().filter(|report| !report.clean).count();
    let count = plural(sessions.len() as u64, "session");
    let judged = match (sessions.len(), bad) {
        (0, _) => count,
        (_, 0) => format!("{count}, all clean"),
        (_, bad) => format!("{count}, {bad} damaged"),
    };
    let codes: Vec<&str> = rest.iter().filter_map(|report| report.code).collect();
    if codes.is_empty() { judged } else { format!("{judged}; besides: {}", codes.join(", ")) }
}

/// What there is to say of a database file that holds no store. A new one begins so for a moment; so does one that lost
/// all it had, or that was copied without its write-ahead log.
fn empty_file(setup: &Setup) -> Option<String> {
    let path = Store::file(&setup.config.data);
    let len = std::fs::metadata(&path).ok()?.len();
    let name = path.file_name()?.to_string_lossy();
    Some(format!(
        "{} ({} bytes) holds no store: whoever was about to make one was stopped, or its content or the {name}-wal beside it \
         is gone. If there were sessions, bring back a copy before the next `stele run`, which makes a new store here",
        path.display(),
        count(len)
    ))
}

/// Checks every session, then what belongs to none. Damage of one does not keep the others from being
/// checked.
fn all(store: &Store, reports: &mut Vec<Report>) -> Result<()> {
    let mut damage = Vec::new();
    match store.sessions(&Filter::default()) {
        Ok(rows) => {
            for row in rows {
                reports.push(check(store, &row.id, None)?);
            }
        }
        Err(error) if error.code() == CORRUPT => damage.push(bare(&error.to_string())),
        Err(error) => return Err(error.into()),
    }
    // Records whose session is gone belong to none of the reports above.
    let known: Vec<String> = reports.iter().flat_map(|report| report.damage.iter().cloned()).collect();
    let mut index = Vec::new();
    match store.check_all() {
        Ok(faults) => {
            for fault in faults {
                let found = fault.to_string();
                match fault.damage {
                    Damage::Search { .. } => index.push(found),
                    _ if known.contains(&found) => {}
                    _ => damage.push(found),
                }
            }
        }
        Err(error) if error.code() == CORRUPT => damage.push(bare(&error.to_string())),
        Err(error) => return Err(error.into()),
    }
    for (code, mut damage) in [(CORRUPT, damage), (stele_store::Error::INDEX_DAMAGED, index)] {
        damage.dedup();
        if !damage.is_empty() {
            reports.push(Report::damaged(None, code, damage));
        }
    }
    Ok(())
}

/// What an error says is damaged, without its code and without the advice to run this very command.
fn bare(message: &str) -> String {
    message.replace("log.corrupt: ", "").replace("; `stele verify --all` names everything that is damaged", "")
}

fn check(store: &Store, id: &SessionId, expect: Option<&NotedHead>) -> Result<Report> {
    let read = stele_agent::verify(store, id).and_then(|found| Ok((found, store.session(id)?.head)));
    let (verification, head) = match read {
        Ok(read) => read,
        Err(error) if error.code() == CORRUPT => {
            return Ok(Report::damaged(Some(id.clone()), CORRUPT, vec![bare(&error.to_string())]));
        }
        Err(error) => return Err(error.into()),
    };
    let mut damage = damage(&verification);
    let mut noted = None;
    if let Some(expect) = expect {
        noted = find(store, id, expect, head.seq)?;
        if noted.is_none() {
            let at = expect.seq.map(|seq| format!(" {seq}")).unwrap_or_default();
            damage.push(format!(
                "no record{at} has the noted hash {}, and the head is {} {}: records were changed or removed",
                expect.hash, head.seq, head.hash
            ));
        }
    }
    Ok(Report {
        session: Some(id.clone()),
        clean: damage.is_empty(),
        code: (!damage.is_empty()).then_some(CORRUPT),
        records: verification.records,
        requests: verification.requests,
        request_bytes: verification.request_bytes,
        head: Some(json::HeadJson { seq: head.seq.0, hash: head.hash.to_string() }),
        noted,
        damage,
        notes: notes(&verification),
    })
}

/// Where a noted head lies: a session that went on still has it. What cannot be read is named as damage elsewhere.
fn find(store: &Store, id: &SessionId, noted: &NotedHead, head: Seq) -> Result<Option<Noted>> {
    let found = store
        .read(id, noted.seq.unwrap_or_default())?
        .map_while(std::result::Result::ok)
        .take_while(|stored| noted.seq.is_none_or(|seq| seq == stored.seq))
        .find(|stored| stored.hash == noted.hash);
    Ok(found.map(|stored| Noted { seq: stored.seq, since: head.0.saturating_sub(stored.seq.0) }))
}

/// One sentence for each thing that is damaged.
fn damage(verification: &Verification) -> Vec<String> {
    let faults = verification.faults.iter().map(ToString::to_string);
    let unreadable =
        verification.unreadable.iter().map(|(seq, why)| format!("record {seq} cannot be read: {}", bare(why)));
    let requests = verification.requests_not_same.iter().filter_map(|(seq, check)| match check {
        RequestCheck::Differs { what } => {
            Some(format!("the request of record {seq} is not the one that was sent: its {what} differs"))
        }
        RequestCheck::Same | RequestCheck::RevisionNotHere { .. } => None,
    });
    let row = verification.row_differs.iter().map(|differs| {
        let shown = |text: &str| shorten(&one_line(text), 80);
        format!("its row says {} = {}, the log says {}", differs.what, shown(&differs.row), shown(&differs.log))
    });
    faults.chain(unreadable).chain(requests).chain(row).collect()
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
    let name = report.session.as_ref().map_or_else(
        || match report.code {
            Some(stele_store::Error::INDEX_DAMAGED) => "the search index".to_owned(),
            Some(EMPTY) => "the database".to_owned(),
            _ => "(no session)".to_owned(),
        },
        ToString::to_string,
    );
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
    if let Some(noted) = &report.noted {
        lines.push(format!("  the noted head is record {}, {} since", noted.seq, plural(noted.since, "record")));
    }
    lines.extend(report.damage.iter().map(|damage| format!("  {} {}", style.red("✗"), one_line(damage))));
    lines.extend(report.notes.iter().map(|note| format!("  {} {}", style.yellow("!"), one_line(note))));
    lines.join("\n")
}
