//! `stele sessions`: list, show, search, export, import, rm, gc.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use stele_core::timeline::Timeline;
use stele_core::{Event, Hash, Part, Record, Seq, SessionId, Source};
use stele_store::{Collect, Collection, Filter, Outcome, Removal, Removed, SessionRow, Store};

use crate::args::{SessionList, SessionsArgs, SessionsCommand};
use crate::error::{CommandError, Result};
use crate::feed::{Seen, records};
use crate::given;
use crate::output::{self, JsonView, View};
use crate::render::card::Depth;
use crate::render::inert::{inert, one_line, shorten};
use crate::render::json;
use crate::render::money::{cost, plural};
use crate::render::screen::{Screen, Terminals};
use crate::render::style::Style;
use crate::render::text::{Choice, TextView};
use crate::render::{time, timeline};
use crate::sessions::{Asker, named_or_latest, title};
use crate::setup::Setup;
use crate::spill;

/// What a list says of a session.
#[derive(Serialize)]
struct Row<'a> {
    session: &'a SessionId,
    cwd: &'a str,
    created: i64,
    updated: i64,
    title: Option<&'a str>,
    model: Option<&'a str>,
    turns: u64,
    steps: u64,
    cost: Option<u64>,
    head: json::HeadJson,
    parent: Option<&'a SessionId>,
    imported: bool,
}

/// Does one of them.
pub fn main(setup: &Setup, args: SessionsArgs) -> Result<u8> {
    match args.command.unwrap_or(SessionsCommand::List(args.list)) {
        SessionsCommand::List(which) => list(setup, which),
        SessionsCommand::Show { id, timeline, full, json } => {
            show(setup, id.as_deref(), timeline, if full { Depth::Full } else { Depth::Brief }, json)
        }
        SessionsCommand::Search { query, limit, json } => search(setup, &query.join(" "), limit, json),
        SessionsCommand::Export { id, output } => export(setup, &id, output.as_deref()),
        SessionsCommand::Import { file, json } => import(setup, &file, json),
        SessionsCommand::Rm { ids } => remove(setup, &ids),
        SessionsCommand::Gc { dry_run, json } => collect(setup, dry_run, json),
    }
}

fn list(setup: &Setup, SessionList { here, limit, json }: SessionList) -> Result<u8> {
    let cwd = here.then(|| setup.folder.display().to_string());
    let filter = Filter { cwd, limit: Some(limit) };
    let rows = setup.inspect()?.map(|store| store.sessions(&filter)).transpose()?.unwrap_or_default();
    let style = setup.look.stdout();
    let text: Vec<String> = rows.iter().map(|row| if json { json_row(row) } else { text_row(row, style) }).collect();
    if rows.is_empty() && !json {
        let all = setup.inspect()?.map(|store| store.sessions(&Filter::default())).transpose()?;
        output::print(&match all.map_or(0, |all| all.len() as u64) {
            0 => "no session yet; stele run \"…\" makes the first one".to_owned(),
            elsewhere if here && limit > 0 => format!("none in this folder; without --here: {elsewhere}"),
            all => format!("none of {} shown, since -n is {limit}", plural(all, "session")),
        })?;
        return Ok(0);
    }
    output::print(&text.join("\n"))?;
    Ok(0)
}

fn json_row(row: &SessionRow) -> String {
    json::line(&Row {
        session: &row.id,
        cwd: &row.cwd,
        created: row.created.0,
        updated: row.updated.0,
        title: row.title.as_deref(),
        model: row.model.as_deref(),
        turns: row.turns,
        steps: row.steps,
        cost: row.cost.map(|cost| cost.0),
        head: json::HeadJson { seq: row.head.seq.0, hash: row.head.hash.to_string() },
        parent: row.parent.as_ref().map(|parent| &parent.session),
        imported: row.imported,
    })
}

fn text_row(row: &SessionRow, style: Style) -> String {
    let title = shorten(&title(row), 42);
    let mut facts = format!(
        "  {} · {} · {} · {}",
        plural(row.turns, "turn"),
        plural(row.steps, "step"),
        cost(row.cost),
        one_line(row.model.as_deref().unwrap_or("no model")),
    );
    if row.parent.is_some() {
        facts.push_str(" · fork");
    }
    if row.imported {
        facts.push_str(" · imported");
    }
    format!(
        "{}  {}  {}\n{}",
        row.id,
        title,
        style.dim(&time::minute(row.updated)),
        style.dim(&format!("{facts}\n  {}", one_line(&row.cwd)))
    )
}

fn show(setup: &Setup, id: Option<&str>, as_timeline: bool, depth: Depth, json: bool) -> Result<u8> {
    let store = setup.logs()?;
    let id = named_or_latest(&store, id, &setup.folder, Asker::Look("sessions show"))?;
    let row = store.session(&id)?;
    if as_timeline {
        let text = timeline_text(&store, &id, json, setup.look.stdout())?;
        output::print(&text)?;
        return Ok(0);
    }
    if json {
        let mut view = View::Json(JsonView::new(Box::new(io::stdout()), false));
        for logged in records(&store, &id)? {
            view.show(&Seen::record(logged?));
            view.check()?;
        }
        return Ok(0);
    }
    let style = setup.look.stdout();
    let terminals = Terminals { out: true, err: true };
    // Everything is one transcript here, on standard output.
    let mut screen = Screen::new(Box::new(io::stdout()), Box::new(io::stdout()), style, terminals);
    screen.note(&text_row(&row, style));
    let choice = Choice { depth, ..Choice::default() };
    let mut view =
        View::Text(Box::new(TextView::new(screen, choice, setup.tools(None), Path::new(&row.cwd).to_owned())));
    let undone = undone(&store, &id)?;
    for logged in records(&store, &id)? {
        let logged = logged?;
        if let Some(text) = view.text() {
            let mark = logged.record.turn.is_some_and(|turn| undone.contains(&turn));
            heading(&logged.record.event, mark, style).iter().for_each(|line| text.warn(line));
        }
        view.show(&Seen::record(logged));
        view.check()?;
    }
    if let Some(text) = view.text() {
        text.rest();
    }
    view.check()?;
    Ok(0)
}

/// What stands over what follows it in a transcript: what was said, with a mark where that was taken back, and where it was.
fn heading(event: &Event, undone: bool, style: Style) -> Option<String> {
    match event {
        Event::UserMessage(message) => {
            let said: Vec<&str> = message.content.iter().map(|Part::Text { text }| text.as_str()).collect();
            let who = if message.source == Source::Person { ">" } else { "(stele)" };
            let mark = if undone { style.yellow(" (this turn was taken back)") } else { String::new() };
            Some(format!("\n{}{mark}", style.bold(&format!("{who} {}", inert(said.join("\n").trim_end())))))
        }
        Event::UndoApplied(undo) => Some(style.yellow(&format!("\n↶ turn {} was taken back", undo.turn))),
        Event::RedoApplied(redo) => Some(style.yellow(&format!("\n↷ turn {} was done again", redo.turn))),
        _ => None,
    }
}

/// The turns of a session that were taken back and not done again.
fn undone(store: &Store, id: &SessionId) -> Result<BTreeSet<u64>> {
    let mut undone = BTreeSet::new();
    for logged in records(store, id)? {
        match logged?.record.event {
            Event::UndoApplied(undo) => drop(undone.insert(undo.turn)),
            Event::RedoApplied(redo) => drop(undone.remove(&redo.turn)),
            _ => {}
        }
    }
    Ok(undone)
}

/// The timeline of a session, as text or as one JSON line.
pub fn timeline_text(store: &Store, id: &SessionId, json: bool, style: Style) -> Result<String> {
    let mut folded = Timeline::default();
    for logged in records(store, id)? {
        folded.fold(&logged?.record);
    }
    let undone = undone(store, id)?;
    Ok(if json {
        json::line(&OfSession { session: id, undone: &undone, timeline: &folded })
    } else {
        timeline::lines(&folded, &undone, style).join("\n")
    })
}

#[derive(Serialize)]
struct OfSession<'a> {
    session: &'a SessionId,
    /// The turns that were taken back.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    undone: &'a BTreeSet<u64>,
    #[serde(flatten)]
    timeline: &'a Timeline,
}

#[derive(Serialize)]
struct HitRow<'a> {
    session: &'a SessionId,
    seq: Option<u64>,
    excerpt: &'a str,
}

fn search(setup: &Setup, query: &str, limit: u32, json: bool) -> Result<u8> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let hits = setup.inspect()?.map(|store| store.search(query, limit)).transpose()?.unwrap_or_default();
    let style = setup.look.stdout();
    let lines: Vec<String> = hits
        .iter()
        .map(|hit| {
            if json {
                return json::line(&HitRow {
                    session: &hit.session,
                    seq: hit.seq.map(|seq| seq.0),
                    excerpt: &hit.excerpt,
                });
            }
            let place = hit.seq.map_or_else(|| "title".to_owned(), |seq| format!("record {seq}"));
            format!("{}  {}\n  {}", hit.session, style.dim(&place), shorten(one_line(&hit.excerpt).trim(), 76))
        })
        .collect();
    if lines.is_empty() && !json {
        output::print("nothing found")?;
        return Ok(0);
    }
    output::print(&lines.join("\n"))?;
    Ok(0)
}

fn export(setup: &Setup, id: &str, path: Option<&Path>) -> Result<u8> {
    let store = setup.logs()?;
    let id = store.resolve(id)?;
    let exported = match path {
        None => {
            let mut out = io::BufWriter::new(io::stdout().lock());
            store.export(&id, &mut out).map_err(stream)?
        }
        Some(path) => {
            let file = File::create_new(path).map_err(|error| {
                let advice = if error.kind() == io::ErrorKind::AlreadyExists {
                    "; nothing is overwritten: name another file, or remove that one"
                } else {
                    ""
                };
                CommandError::usage("usage.file", format!("cannot make {}: {error}{advice}", path.display()))
            })?;
            let mut out = io::BufWriter::new(file);
            let exported = store.export(&id, &mut out).map_err(stream)?;
            out.flush()?;
            exported
        }
    };
    let mut said = format!("exported {} and {}", plural(exported.records, "record"), plural(exported.blobs, "blob"));
    if exported.lost > 0 {
        said.push_str(&format!("; {} could not be read and are left out", exported.lost));
    }
    say(&said);
    Ok(u8::from(exported.lost > 0))
}

/// A reader of standard output that went away is no fault.
fn stream(error: stele_store::Error) -> CommandError {
    match error {
        stele_store::Error::Stream(error) => error.into(),
        error => error.into(),
    }
}

/// A line on standard error.
fn say(text: &str) {
    // Standard error that cannot be written has nobody to be told.
    let _ = writeln!(io::stderr(), "{text}");
}

fn import(setup: &Setup, path: &Path, json: bool) -> Result<u8> {
    let store = setup.store()?;
    let fresh = stele_agent::new_session_id(crate::setup::now());
    let imported = if path == Path::new("-") {
        store.import(&mut io::stdin().lock(), fresh, &search_text)?
    } else {
        let file = given::open(path)
            .map_err(|error| CommandError::usage("usage.file", format!("cannot read {}: {error}", path.display())))?;
        store.import(&mut BufReader::new(file), fresh, &search_text)?
    };
    let outcome = match imported.outcome {
        Outcome::Same => "same",
        Outcome::AlreadyHere => "already_here",
        Outcome::Salvaged => "salvaged",
    };
    let warnings: Vec<String> =
        imported.warnings.iter().map(|warning| format!("line {}: {}", warning.line, warning.detail)).collect();
    if json {
        #[derive(Serialize)]
        struct Line<'a> {
            session: &'a SessionId,
            outcome: &'a str,
            warnings: &'a [String],
        }
        output::print(&json::line(&Line { session: &imported.id, outcome, warnings: &warnings }))?;
    } else {
        let what = match imported.outcome {
            Outcome::Same => "as it was exported",
            Outcome::AlreadyHere => "which was here already; nothing was changed",
            Outcome::Salvaged => "a new session of every whole record",
        };
        output::print(&format!("{}  {what}", imported.id))?;
        warnings.iter().for_each(|warning| say(&one_line(warning)));
    }
    Ok(u8::from(!warnings.is_empty()))
}

/// What a record is found by.
fn search_text(seq: Seq, bytes: &[u8], fetch: &mut dyn FnMut(&Hash) -> Option<Arc<str>>) -> Option<String> {
    let record = Record::decode(seq, bytes, fetch).ok().flatten()?;
    stele_agent::search_text(&record.event)
}

fn remove(setup: &Setup, ids: &[String]) -> Result<u8> {
    setup.logs()?;
    let store = setup.store()?;
    // Every id is looked up first, so that a slip in the second does not remove the first.
    let ids: Vec<SessionId> = ids.iter().map(|id| store.resolve(id)).collect::<stele_store::Result<_>>()?;
    for id in ids {
        let Removal { left, unindexed } = store.remove(&id, &search_text).map_err(|error| match error {
            stele_store::Error::Locked { holder, .. } => {
                let by = holder.map(|holder| format!(" by {holder}")).unwrap_or_default();
                let message = format!("session {id} is in use{by}, so it is not removed; end that process first");
                CommandError::usage("log.locked", message)
            }
            error => error.into(),
        })?;
        spill::remove(&setup.config.data, &id).map_err(|error| unremoved(&error).after_work())?;
        match left {
            Removed::Whole => output::print(&format!("removed {id}"))?,
            Removed::KeptFor { last } => output::print(&format!(
                "removed {id}; its records up to {last} stay, hidden, as long as a fork continues them"
            ))?,
        }
        if unindexed > 0 {
            say(&format!(
                "log.corrupt: the search index was damaged and was made again, but {} cannot be read whole, so that a search \
                 does not find all of their texts; `stele verify --all` names what is damaged",
                plural(unindexed, "session")
            ));
        }
    }
    Ok(0)
}

fn unremoved(error: &io::Error) -> CommandError {
    CommandError::usage("log.unwritable", format!("files of its long results cannot be removed: {error}"))
        .hint("give the folder spill/ of the logs its write permission back, then: stele sessions gc")
}

fn collect(setup: &Setup, dry_run: bool, json: bool) -> Result<u8> {
    setup.logs()?;
    let store = setup.store()?;
    let collection = store.collect(if dry_run { Collect::DryRun } else { Collect::Remove }, &search_text)?;
    let spills = spill::strays(&setup.config.data, &store)?;
    if !dry_run {
        for id in &spills {
            spill::remove(&setup.config.data, id).map_err(|error| unremoved(&error).after_work())?;
        }
    }
    let spills = spills.len() as u64;
    if json {
        #[derive(Serialize)]
        struct Line {
            dry_run: bool,
            blobs: u64,
            bytes: u64,
            locks: u64,
            spills: u64,
        }
        let Collection { blobs, bytes, locks, .. } = collection;
        let line = Line { dry_run, blobs, bytes, locks, spills };
        output::print(&json::line(&line))?;
        return Ok(0);
    }
    let verb = if dry_run { "would remove" } else { "removed" };
    output::print(&format!(
        "{verb} {} ({} bytes), {} and {}",
        plural(collection.blobs, "blob"),
        collection.bytes,
        plural(collection.locks, "lock file"),
        plural(spills, "spill folder")
    ))?;
    Ok(0)
}
