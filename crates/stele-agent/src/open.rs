//! Opening a session: a new one, one that was left, a fork.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stele_core::{
    By, Event, InboxQueued, Millis, Mode, ModeSet, Parent, Part, Record, Seq, SessionId, SessionMoved, SessionStarted,
    Source, State, Target, close, owed, resume,
};
use stele_provider::KeySource;
use stele_store::{Start, Store};
use tokio::sync::broadcast;
use uuid::Uuid;

use crate::drift::Opened;
use crate::driver::Driver;
use crate::request::{Along, Encoded};
use crate::{Agent, Error, Notice, Result, records};

/// What becomes of a turn that is still open in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenPolicy {
    /// What is owed goes on: there is no new prompt.
    Continue,
    /// The turn is closed first: a new prompt comes, or a person looks at the session.
    Close,
}

/// The folder in which a session goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Its own.
    #[default]
    Own,
    /// This one, canonical, from now on: its own was moved, or is gone.
    MovedTo(PathBuf),
}

/// When the key of a session's route has to be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Key {
    /// Once a request is sent.
    #[default]
    Later,
    /// Now, if a request can follow: else nothing is appended.
    Now,
}

/// What else holds for a session that is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// Where it goes on.
    pub place: Place,
    /// When its key has to be there.
    pub key: Key,
}

/// How a new session begins.
#[derive(Clone, Debug)]
pub struct SessionStart {
    /// The folder, canonical.
    pub folder: PathBuf,
    /// Permission mode.
    pub mode: Mode,
    /// Name of the route.
    pub route: String,
    /// The model.
    pub model: String,
    /// Who starts it.
    pub by: By,
}

/// Notices that a slow subscriber may fall behind by.
const NOTICES: usize = 4096;

impl Driver {
    /// Starts a session. Nothing is stored before its first request.
    ///
    /// # Errors
    /// The store refuses.
    pub fn create(agent: &Arc<Agent>, start: &SessionStart) -> Result<Self> {
        let session = new_session_id(agent.now());
        let cwd = text_of(&start.folder)?;
        let writer =
            agent.store().create(session.clone(), Start { cwd: cwd.clone(), created: agent.now(), parent: None })?;
        let mut driver = Self::new(agent, session.clone(), session, writer, State::new(), start.folder.clone(), false)?;
        driver.append(SessionStarted { version: agent.options.version.clone(), cwd, parent: None })?;
        driver.append(ModeSet { mode: start.mode, by: start.by.clone() })?;
        driver.choose_model(&start.route, &start.model, start.by.clone())?;
        Ok(driver)
    }

    /// Opens a session and deals with a turn that is still open in it.
    ///
    /// # Errors
    /// The session is locked, damaged, newer than this program, or its folder is gone.
    pub fn open(agent: &Arc<Agent>, session: &SessionId, policy: OpenPolicy) -> Result<Self> {
        Self::open_with(agent, session, policy, &Opening::default())
    }

    /// The same, in a folder of choice, and only with a key.
    ///
    /// # Errors
    /// As for [`Driver::open`]; the session's route is not configured or has no key.
    pub fn open_with(agent: &Arc<Agent>, session: &SessionId, policy: OpenPolicy, opening: &Opening) -> Result<Self> {
        let writer = agent.store().writer(session)?;
        // With a new prompt a request follows, which begins with the last one.
        let (state, encoded) = match policy {
            OpenPolicy::Continue => (fold(agent.store(), session, None)?, None),
            OpenPolicy::Close => fold_along(agent.store(), session, None)?,
        };
        let lineage = lineage(agent.store(), session);
        let partial = agent.store().partial(session)?.map(|partial| partial.text).unwrap_or_default();
        let folder = folder_of(&state, &opening.place)?;
        if policy == OpenPolicy::Close || !owed(&state).is_empty() {
            opening.key.require(agent, &state)?;
        }
        let mut driver = Self::new(agent, session.clone(), lineage, writer, state, folder, true)?;
        driver.encoded = encoded;
        driver.distrust()?;
        driver.find_all_reached()?;
        let events = match policy {
            OpenPolicy::Continue => resume(driver.state()),
            OpenPolicy::Close => close(driver.state(), &partial),
        };
        for event in events {
            driver.append(event)?;
        }
        driver.finish_at_opening()?;
        if let Place::MovedTo(folder) = &opening.place {
            let notice = moved_notice(driver.state(), folder);
            driver.append(SessionMoved { cwd: text_of(folder)? })?;
            driver.tell(notice)?;
        }
        driver.follow_route()?;
        driver.follow_header(Opened::Resumed)?;
        driver.commit()?;
        Ok(driver)
    }

    /// Continues a copy of a session from one of its records on; the copy shares what came before.
    ///
    /// # Errors
    /// As for [`Driver::open`]; the parent may be locked, since it is only read.
    pub fn fork(agent: &Arc<Agent>, parent: &SessionId, at: Option<Seq>) -> Result<Self> {
        Self::fork_with(agent, parent, at, &Opening::default())
    }

    /// The same, in a folder of choice, and only with a key.
    ///
    /// # Errors
    /// As for [`Driver::open_with`].
    pub fn fork_with(agent: &Arc<Agent>, parent: &SessionId, at: Option<Seq>, opening: &Opening) -> Result<Self> {
        let at = match at {
            Some(at) => at,
            None => agent.store().session(parent)?.head.seq,
        };
        let (state, encoded) = fold_along(agent.store(), parent, Some(at))?;
        let folder = folder_of(&state, &opening.place)?;
        opening.key.require(agent, &state)?;
        let session = new_session_id(agent.now());
        let lineage = lineage(agent.store(), parent);
        let cwd = text_of(&folder)?;
        let continued = Some(Parent { session: parent.clone(), seq: at });
        let start = Start { cwd: cwd.clone(), created: agent.now(), parent: continued };
        let writer = agent.store().create(session.clone(), start)?;
        // The record may be an ancestor's: the store knows whose it is.
        let parent = writer.parent().cloned();
        let events = close(&state, "");
        let notice = match &opening.place {
            Place::Own => None,
            Place::MovedTo(folder) => moved_notice(&state, folder),
        };
        let mut driver = Self::new(agent, session, lineage, writer, state, folder, false)?;
        driver.encoded = encoded;
        driver.append(SessionStarted { version: agent.options.version.clone(), cwd, parent })?;
        for event in events {
            driver.append(event)?;
        }
        driver.tell(notice)?;
        driver.distrust()?;
        driver.follow_route()?;
        driver.follow_header(Opened::Forked)?;
        Ok(driver)
    }

    /// Tells the model something with the next request, whatever that is for.
    fn tell(&mut self, notice: Option<String>) -> Result<()> {
        let Some(text) = notice else { return Ok(()) };
        self.append(InboxQueued {
            item: self.state().next_item(),
            source: Source::System,
            target: Target::NextStep,
            content: vec![Part::text(text)],
            limits: Default::default(),
            wake: false,
            jobs: Vec::new(),
        })
    }

    /// A log that came from a file grants nothing: its mode falls back to asking, its "always" rules do not count.
    fn distrust(&mut self) -> Result<()> {
        if self.is_foreign() && self.state().mode() != Mode::Ask {
            return self.append(ModeSet { mode: Mode::Ask, by: By("import".to_owned()) });
        }
        Ok(())
    }

    /// A route that leads elsewhere than when the log was left is chosen anew: an epoch says so.
    fn follow_route(&mut self) -> Result<()> {
        let Some(chosen) = self.state().model().cloned() else { return Ok(()) };
        match self.agent.route(&chosen.route) {
            Ok(route) if route.wire != chosen.wire || route.base_url != chosen.base_url => {
                self.choose_model(&chosen.route, &chosen.model, By("resume".to_owned()))
            }
            // A route that is gone is an error once it is needed.
            _ => Ok(()),
        }
    }

    /// Subscribes to what happens from here on.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }
}

/// The session that a lineage of forks began with; it names the cache that they share.
fn lineage(store: &Store, session: &SessionId) -> SessionId {
    let mut first = session.clone();
    while let Ok(Some(parent)) = store.session(&first).map(|row| row.parent) {
        first = parent.session;
    }
    first
}

/// True when some session of the lineage came from a file.
pub(crate) fn is_foreign(store: &Store, session: &SessionId) -> bool {
    let mut next = Some(session.clone());
    while let Some(Ok(row)) = next.map(|id| store.session(&id)) {
        if row.imported {
            return true;
        }
        next = row.parent.map(|parent| parent.session);
    }
    false
}

pub(crate) fn notices() -> broadcast::Sender<Notice> {
    broadcast::Sender::new(NOTICES)
}

/// A new session's id: a UUIDv7, so that ids sort by the time they were made.
#[must_use]
pub fn new_session_id(now: Millis) -> SessionId {
    let millis = u64::try_from(now.0).unwrap_or(0);
    let ticks = uuid::Timestamp::from_unix(
        uuid::NoContext,
        millis / 1000,
        u32::try_from(millis % 1000).unwrap_or(0) * 1_000_000,
    );
    // The text form of a UUID is always well formed.
    SessionId::new(Uuid::new_v7(ticks).to_string()).unwrap_or_else(|defect| unreachable!("{defect}"))
}

/// A folder as the log names it.
fn text_of(folder: &Path) -> Result<String> {
    folder.to_str().map(str::to_owned).ok_or_else(|| Error::FolderName(folder.display().to_string()))
}

/// What the model is told of a move: the facts at the end of the preface name the folder that was left. `None` before
/// the first request, whose preface is still to be read.
fn moved_notice(state: &State, to: &Path) -> Option<String> {
    state.epoch()?;
    let line = crate::instructions::one_line;
    let from = state.session().map_or("", |session| session.cwd.as_str());
    Some(format!(
        "<folder-notice>\nThis session's folder is now {}; before, it was {}. Relative paths and commands start from the \
         new one; read a file there again before you change it.\n</folder-notice>",
        line(&to.display().to_string()),
        line(from)
    ))
}

impl Key {
    /// Refuses a session whose route cannot be asked.
    fn require(self, agent: &Agent, state: &State) -> Result<()> {
        let (Self::Now, Some(chosen)) = (self, state.model()) else { return Ok(()) };
        let route = agent.route(&chosen.route)?;
        match &route.key {
            KeySource::Env(variable) if !route.has_key() => {
                Err(Error::NoKey { route: route.name.clone(), variable: variable.clone() })
            }
            _ => Ok(()),
        }
    }
}

fn folder_of(state: &State, place: &Place) -> Result<PathBuf> {
    if let Place::MovedTo(folder) = place {
        return Ok(folder.clone());
    }
    let cwd = state.session().map_or("", |session| session.cwd.as_str());
    let folder = Path::new(cwd);
    if folder.is_dir() { Ok(folder.to_owned()) } else { Err(Error::FolderGone(cwd.to_owned())) }
}

/// What a session's log comes to. Reads only.
///
/// # Errors
/// There is no such session, or its log cannot be read.
pub fn state(store: &Store, session: &SessionId) -> Result<State> {
    fold(store, session, None)
}

/// Folds a session's log, up to and including `until`.
pub(crate) fn fold(store: &Store, session: &SessionId, until: Option<Seq>) -> Result<State> {
    fold_with(store, session, until, &mut |_, _| ())
}

/// The same, with the requests encoded on the way: reading leaves the thread that folds time for that.
fn fold_along(store: &Store, session: &SessionId, until: Option<Seq>) -> Result<(State, Option<Encoded>)> {
    let mut along = Along::default();
    let state = fold_with(store, session, until, &mut |state, record| {
        if let Event::RequestSent(_) = record.event {
            along.sent(state);
        }
    })?;
    let encoded = along.last(&state);
    Ok((state, encoded))
}

/// Folds, and shows each record before it is folded.
fn fold_with(
    store: &Store,
    session: &SessionId,
    until: Option<Seq>,
    show: &mut dyn FnMut(&State, &Record),
) -> Result<State> {
    let records = store.read(session, Seq(0))?;
    let last = until.unwrap_or(Seq(u64::MAX)).min(records.end());
    let mut state = State::new();
    records::each(&records, last, &mut |seq, record| match record {
        Some(record) => {
            show(&state, record);
            state.fold(record);
        }
        None => state.pass(seq),
    })?;
    Ok(state)
}
