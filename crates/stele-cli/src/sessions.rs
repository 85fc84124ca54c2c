//! Which session a command is about, and opening it.

use std::path::Path;
use std::sync::Arc;

use stele_agent::{Agent, Command, Driver, OpenPolicy, SessionStart};
use stele_core::{By, Mode, Seq, SessionId};
use stele_store::{Filter, Store};

use crate::args::SessionArgs;
use crate::drive::Conversation;
use crate::error::{CommandError, Result};
use crate::render::inert::{one_line, shorten};
use crate::setup;

/// Sessions that an error lists.
const LISTED: u32 = 5;

/// A session to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    New,
    Existing(SessionId),
    CopyOf(SessionId),
}

impl Which {
    /// What the flags say; `wanted_folder` is what `-C` says.
    pub fn from_flags(flags: &SessionArgs, store: &Store, folder: &Path, wanted_folder: Option<&Path>) -> Result<Self> {
        let stays = |id: &SessionId| -> Result<()> {
            let cwd = store.session(id)?.cwd;
            if wanted_folder.is_some() && Path::new(&cwd) != folder {
                let message = format!("session {id} works in {cwd} and stays there; leave -C out");
                return Err(CommandError::usage("usage.folder", one_line(&message))
                    .hint(format!("a new session there: stele run -C {} \"…\"", folder.display())));
            }
            Ok(())
        };
        if let Some(id) = &flags.resume {
            let id = store.resolve(id)?;
            stays(&id)?;
            return Ok(Self::Existing(id));
        }
        if let Some(id) = &flags.fork {
            let id = store.resolve(id)?;
            stays(&id)?;
            return Ok(Self::CopyOf(id));
        }
        if flags.continue_latest {
            return latest(store, folder).map(Self::Existing);
        }
        Ok(Self::New)
    }
}

/// The latest session of a folder; the error lists some of other folders.
pub fn latest(store: &Store, folder: &Path) -> Result<SessionId> {
    let cwd = folder.display().to_string();
    if let Some(row) = store.latest_in(&cwd)? {
        return Ok(row.id);
    }
    let mut error = CommandError::usage("session.none_here", format!("no session was held in {cwd}"));
    for row in store.sessions(&Filter { cwd: None, limit: Some(LISTED) })? {
        let title = shorten(&one_line(row.title.as_deref().unwrap_or("(no title)")), 40);
        error = error.hint(format!("stele run --resume {}  {title}  ({})", row.id, one_line(&row.cwd)));
    }
    Err(error)
}

/// What holds for the session from here on, as far as it was said.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub mode: Option<Mode>,
    pub model: Option<String>,
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
        Which::Existing(id) => {
            let head = store.session(id)?.head.seq;
            (Driver::open(agent, id, policy)?, head.next())
        }
        Which::CopyOf(id) => {
            let head = store.session(id)?.head.seq;
            (Driver::fork(agent, id, Some(head))?, head.next())
        }
    };
    if *which != Which::New {
        // What goes on keeps its mode. A new prompt does not inherit more than is configured.
        let now = driver.state().mode();
        let kept = if policy == OpenPolicy::Continue { now } else { now.min(default_mode) };
        if let Some(mode) = wanted.mode.or(Some(kept)).filter(|mode| *mode != now) {
            driver.command(Command::SetMode { mode, by: by.clone() })?;
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
