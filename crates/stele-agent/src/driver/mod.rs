//! One session's log, open for writing, and the loop that goes on with it.

mod answers;
mod calls;
mod commands;
mod files;
mod flight;
mod log;
mod requests;
mod run;
mod whereabouts;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stele_core::{SessionId, State};
use stele_guard::Workspace;
use stele_store::Writer;
use tokio::sync::{broadcast, mpsc, watch};

use crate::drift::Drift;
use crate::request::Encoded;
use crate::undo::Finished;
use crate::{Agent, Logged, Notice, Result};
use answers::Partial;
use flight::{InFlight, Update};

pub use log::search_text;
pub use run::Until;

/// One session's log, open for writing.
pub struct Driver {
    pub(crate) agent: Arc<Agent>,
    session: SessionId,
    /// The session that this one's lineage began with.
    lineage: SessionId,
    /// The session's own folder.
    folder: PathBuf,
    /// The folder in which calls run now: a command may have changed it.
    cwd: PathBuf,
    workspace: Workspace,
    writer: Writer,
    state: State,
    /// Appended and folded, not committed yet.
    staged: Vec<Logged>,
    /// True when the log, or one that it continues, came from a file.
    foreign: bool,
    /// True once something of this session is in the store.
    stored: bool,
    /// The encoder of the open epoch's requests.
    pub(crate) encoded: Option<Encoded>,
    /// The encoder of the epoch before, until the first request of the open one was sent.
    earlier: Option<Encoded>,
    /// The epoch whose header was compared with what the log says of it.
    pub(crate) compared: Option<u32>,
    /// What differs from what would be composed now, since the session was opened.
    pub(crate) drift: Option<Drift>,
    /// What was said of things beside the session, each once.
    said: RefCell<BTreeSet<String>>,
    /// Fields that were refused, while nobody knows yet whether the request is taken without them.
    pub(crate) refused: Vec<stele_provider::Lesson>,
    in_flight: BTreeMap<String, InFlight>,
    updates: (mpsc::UnboundedSender<Update>, mpsc::UnboundedReceiver<Update>),
    pub(crate) notices: broadcast::Sender<Notice>,
    partial: Partial,
    /// What became of undos and redos that had been cut off, until it is told.
    pub(crate) finished: Vec<Finished>,
    /// Dropped with the driver: jobs end when nobody holds their session any more.
    open: watch::Sender<()>,
}

impl Driver {
    pub(crate) fn new(
        agent: &Arc<Agent>,
        session: SessionId,
        lineage: SessionId,
        writer: Writer,
        state: State,
        folder: PathBuf,
        stored: bool,
    ) -> Result<Self> {
        let root = crate::instructions::repository_root(&folder);
        let store = &agent.options.store;
        let continued = writer.parent().is_some_and(|parent| crate::open::is_foreign(store, &parent.session));
        let foreign = continued || crate::open::is_foreign(store, &session);
        let mut driver = Self {
            agent: Arc::clone(agent),
            session,
            lineage,
            workspace: Workspace::new(&root, &folder, &agent.options.surroundings)?,
            cwd: folder.clone(),
            folder,
            writer,
            state,
            staged: Vec::new(),
            foreign,
            stored,
            encoded: None,
            earlier: None,
            compared: None,
            drift: None,
            said: RefCell::default(),
            refused: Vec::new(),
            in_flight: BTreeMap::new(),
            updates: mpsc::unbounded_channel(),
            notices: crate::open::notices(),
            partial: Partial::default(),
            finished: Vec::new(),
            open: watch::Sender::default(),
        };
        driver.follow_cwd()?;
        Ok(driver)
    }

    pub(crate) fn lineage(&self) -> &SessionId {
        &self.lineage
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The session's id.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The state of the log, staged events included.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// True when the log, or one that it continues, came from a file: its grants do not count here.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// Ends the driver in a process that ends as well: the session is given back, and what it holds of a long history is
    /// left to the system, which takes it back at once.
    pub fn leave(mut self) {
        std::mem::forget((std::mem::take(&mut self.state), self.encoded.take()));
    }

    /// True when this was not said yet; from now on it was.
    pub(crate) fn is_news(&self, said: String) -> bool {
        self.said.borrow_mut().insert(said)
    }

    /// True once something of this session is in the store.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.stored
    }
}
