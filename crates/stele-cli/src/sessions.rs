//! Which session a command is about, and opening it.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;

use stele_agent::{Agent, Command, Driver, Key, OpenPolicy, Opening, Place, SessionStart};
use stele_core::{By, Mode, Seq, SessionId};
use stele_store::{Filter, SessionRow, Store};

use crate::args::SessionArgs;
use crate::chosen;
use crate::drive::Conversation;
use crate::error::{CommandError, Result};
use crate::render::inert::{one_line, shorten};
use crate::render::word::shell_word;
use crate::setup;

/// What the demonstration's model is called. A session of it cannot go on: the model ends with the demonstration.
pub const DEMO_MODEL: &str = "stele-demo";

/// Sessions that an error lists.
const LISTED: usize = 5;

/// A session to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    New,
    Existing(SessionId, Place),
    CopyOf(SessionId, Place),
}

/// Whether somebody asked for a session to be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    Asked,
    NotAsked,
}

/// The command that wants a session: what is advised is given to the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// Bare `stele`.
    Line,
    Run,
    /// `stele run` without a prompt: it does what is owed.
    Owed,
    /// With the options that it has besides.
    Undo(&'static str),
    /// A command that only looks at a session, by its whole name.
    Look(&'static str),
}

impl Asker {
    /// The command with a session in its own folder, or in the one where it is given.
    fn command(self, folder: Option<&str>, option: &str, id: &SessionId) -> String {
        let folder = folder.map(|folder| format!(" -C {}", shell_word(folder))).unwrap_or_default();
        match self {
            Self::Line => format!("stele{folder} {option} {id}"),
            Self::Run | Self::Owed => format!("stele run{folder} {option} {id}"),
            Self::Undo(options) => format!("stele undo{options} {id}"),
            Self::Look(command) => format!("stele {command} {id}"),
        }
    }

    /// What stands behind the command.
    fn prompt(self) -> &'static str {
        if self == Self::Run { " \"…\"" } else { "" }
    }
}

impl Which {
    /// What the flags say, in a folder.
    pub fn from_flags(flags: &SessionArgs, store: &Store, folder: &Path, asker: Asker) -> Result<Self> {
        let moves = if flags.move_here { Move::Asked } else { Move::NotAsked };
        if let Some(id) = &flags.resume {
            let id = store.resolve(id)?;
            let place = place(store, &id, folder, moves, "--resume", asker)?;
            return Ok(Self::Existing(id, place));
        }
        if let Some(id) = &flags.fork {
            let id = store.resolve(id)?;
            let place = place(store, &id, folder, moves, "--fork", asker)?;
            return Ok(Self::CopyOf(id, place));
        }
        if flags.continue_latest {
            return latest(store, folder, asker).map(|id| Self::Existing(id, Place::Own));
        }
        Ok(Self::New)
    }
}

/// Where a session goes on that is opened from a folder. One whose own folder is gone was moved with it: it goes on
/// here. Any other stays where it is, unless somebody says otherwise.
pub fn place(store: &Store, id: &SessionId, folder: &Path, moves: Move, option: &str, asker: Asker) -> Result<Place> {
    let cwd = store.session(id)?.cwd;
    if Path::new(&cwd) == folder {
        return Ok(Place::Own);
    }
    // A link that stands where the folder was leads here.
    let leads_here = Path::new(&cwd).canonicalize().is_ok_and(|real| real == folder);
    if moves == Move::Asked || leads_here || is_gone(Path::new(&cwd)) {
        return Ok(Place::MovedTo(folder.to_owned()));
    }
    let message = format!("session {id} works in {cwd}, not in {}; go on there, or move it here", folder.display());
    Err(CommandError::usage("usage.folder", one_line(&message))
        .hint(format!("{}{}", asker.command(Some(&cwd), option, id), asker.prompt()))
        .hint(format!("{} --move{}", asker.command(None, option, id), asker.prompt())))
}

/// True when there is certainly no such folder. One that cannot be looked at may be there.
fn is_gone(folder: &Path) -> bool {
    match std::fs::metadata(folder) {
        Ok(found) => !found.is_dir(),
        Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

/// The session that was named by the start of its id, else the latest one of a folder; then standard error says which.
pub fn named_or_latest(store: &Store, id: Option<&str>, folder: &Path, asker: Asker) -> Result<SessionId> {
    if let Some(id) = id {
        return Ok(store.resolve(id)?);
    }
    let id = latest(store, folder, asker)?;
    let title = store.session(&id)?.title.map(|title| format!(" ({})", shorten(&one_line(&title), 30)));
    let said = format!("session {id}{}, the latest of this folder", title.unwrap_or_default());
    // Standard error that cannot be written has nobody to be told.
    let _ = writeln!(std::io::stderr(), "{said}");
    Ok(id)
}

/// The latest session of a folder; the error lists some of other folders, those first whose folder is gone: this one
/// may be where it went.
pub fn latest(store: &Store, folder: &Path, asker: Asker) -> Result<SessionId> {
    let cwd = folder.display().to_string();
    if let Some(row) = store.latest_in(&cwd)? {
        let talks = matches!(asker, Asker::Line | Asker::Run);
        return if talks && row.steps == 0 { latest_answered(store, cwd, row, asker) } else { Ok(row.id) };
    }
    let mut error = CommandError::usage("session.none_here", format!("no session was held in {cwd}"));
    // The model of a demonstration is gone.
    let mut rows = store.sessions(&Filter::default())?;
    rows.retain(|row| row.model.as_deref() != Some(DEMO_MODEL));
    let (gone, there): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| is_gone(Path::new(&row.cwd)));
    let goes_on = matches!(asker, Asker::Line | Asker::Run | Asker::Owed);
    if goes_on && !gone.is_empty() {
        error.message.push_str("; a session whose folder is gone goes on in this one once it is resumed here");
    }
    for (row, gone) in gone.iter().map(|row| (row, true)).chain(there.iter().map(|row| (row, false))).take(LISTED) {
        let title = shorten(&title(row), 40);
        let folder = (!gone).then_some(row.cwd.as_str());
        let command = one_line(&asker.command(folder, "--resume", &row.id));
        error = error.hint(match (gone, goes_on) {
            (false, true) => format!("{command}  # {title}"),
            (true, _) => format!("{command}  # {title}  (was in {})", one_line(&row.cwd)),
            (false, false) => format!("{command}  # {title}  (in {})", one_line(&row.cwd)),
        });
    }
    Err(error)
}

/// The latest session of a folder in which a model answered; the latest of all, where none did in any. What is passed
/// over is said.
fn latest_answered(store: &Store, cwd: String, latest: SessionRow, asker: Asker) -> Result<SessionId> {
    let rows = store.sessions(&Filter { cwd: Some(cwd), limit: None })?;
    let Some(answered) = rows.into_iter().find(|row| row.steps > 0) else { return Ok(latest.id) };
    let said = format!(
        "session {} is passed over, since no model answered in it; to go on with it: {}",
        latest.id,
        asker.command(None, "--resume", &latest.id)
    );
    // Standard error that cannot be written has nobody to be told.
    let _ = writeln!(std::io::stderr(), "{said}");
    Ok(answered.id)
}

/// What a session is called: the first line of its first prompt that stands.
pub fn title(row: &SessionRow) -> String {
    match &row.title {
        Some(title) => one_line(title),
        None if row.turns > 0 => "(all of it taken back)".to_owned(),
        None => "(no title)".to_owned(),
    }
}

/// What holds for the session from here on, as far as it was said.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub mode: Option<Mode>,
    pub model: Option<String>,
    /// When the key of an existing session's route has to be there.
    pub key: Key,
}

impl Wanted {
    /// What the flags say.
    pub fn from_flags(flags: &SessionArgs) -> Self {
        // Another model has its own key, which is looked for where it is chosen.
        let key = if flags.model.is_some() { Key::Later } else { Key::Now };
        Self { mode: flags.mode, model: flags.model.clone(), key }
    }
}

/// Opens a session. `policy` says what becomes of a turn that is still open in it.
pub fn open(
    agent: &Arc<Agent>,
    which: &Which,
    policy: OpenPolicy,
    folder: &Path,
    default_mode: Mode,
    wanted: &Wanted,
) -> Result<Conversation> {
    let store = agent.store().clone();
    let by = By::person("cli");
    let key = wanted.key;
    let (mut driver, from) = match which {
        Which::New => {
            let (route, model) = setup::choose(agent.routes(), wanted.model.as_deref())?;
            let start = SessionStart {
                folder: folder.to_owned(),
                mode: wanted.mode.unwrap_or(default_mode),
                route: route.name.clone(),
                model,
                by: by.clone(),
            };
            (Driver::create(agent, &start)?, Seq(0))
        }
        Which::Existing(id, place) => {
            let head = store.session(id)?.head.seq;
            let opening = Opening { place: place.clone(), key };
            (Driver::open_with(agent, id, policy, &opening)?, head.next())
        }
        Which::CopyOf(id, place) => {
            let head = store.session(id)?.head.seq;
            let opening = Opening { place: place.clone(), key };
            (Driver::fork_with(agent, id, Some(head), &opening)?, head.next())
        }
    };
    if *which != Which::New {
        // What goes on keeps its mode. A new prompt does not inherit more than is configured.
        let now = driver.state().mode();
        let kept = if policy == OpenPolicy::Continue { now } else { now.min(default_mode) };
        if let Some(mode) = wanted.mode.or(Some(kept)).filter(|mode| *mode != now) {
            driver.command(Command::SetMode { mode, by: by.clone() })?;
        }
        if wanted.model.is_none() {
            chosen::follow_server(&mut driver, agent.routes())?;
        }
        if let Some(choice) = &wanted.model {
            let (route, model) = setup::choose(agent.routes(), Some(choice))?;
            let same = driver.state().model().is_some_and(|now| now.route == route.name && now.model == model);
            if !same {
                driver.command(Command::SetModel { route: route.name.clone(), model, by })?;
            }
        }
    }
    Ok(Conversation::new(driver, store, from))
}
