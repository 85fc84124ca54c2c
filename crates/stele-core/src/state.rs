//! What folding a log gives: everything the next decision and the next request need.

mod ask;
mod fold;
mod parts;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use crate::cut::Mark;
use crate::surface::{CallRecord, SurfaceItem};
use crate::{
    Account, CallId, CutReason, EndReason, EpochReason, History, JobId, JobMeta, Mode, ModelSet, ReadFiles, Request,
    Seq, SessionStarted, ShownFiles, TodoItem,
};

pub(crate) use parts::Counted;
pub use parts::{Answered, CallStage, Counters, Epoch, Phase, Sent, Step, StepCall, Turn, Waiting};

/// The state of a session after some prefix of its log.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(crate) next_seq: Seq,
    pub(crate) session: Option<SessionStarted>,
    pub(crate) epoch: Option<Epoch>,
    pub(crate) surface: Vec<SurfaceItem>,
    /// One for each item of the surface.
    pub(crate) marks: Vec<Mark>,
    /// Items that an undo took from the surface, as long as they can come back.
    pub(crate) set_aside: BTreeMap<Seq, (SurfaceItem, Mark)>,
    /// Why the surface was cut last, if it was since the last epoch opened.
    pub(crate) cut: Option<CutReason>,
    /// Why the next request opens an epoch, as far as a record says so.
    pub(crate) due: Option<EpochReason>,
    pub(crate) history: History,
    pub(crate) surface_bytes: u64,
    pub(crate) calls: BTreeMap<CallId, CallRecord>,
    pub(crate) vendor_ids: BTreeSet<String>,
    pub(crate) inbox: VecDeque<Waiting>,
    pub(crate) next_item: u64,
    pub(crate) turn: Option<Turn>,
    pub(crate) step: Option<Step>,
    pub(crate) counters: Counters,
    pub(crate) mode: Mode,
    pub(crate) model: Option<ModelSet>,
    pub(crate) todo: Vec<TodoItem>,
    pub(crate) grants: Vec<String>,
    pub(crate) read_files: Arc<ReadFiles>,
    pub(crate) account: Account,
    /// What the endpoints answered last, each one's last prompt; the latest at the end.
    pub(crate) answered: Vec<Answered>,
    pub(crate) counted: Option<Counted>,
    pub(crate) shown_files: Arc<ShownFiles>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) jobs: BTreeMap<JobId, JobMeta>,
    pub(crate) last_end: Option<EndReason>,
}

impl State {
    /// The state of an empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

/// The next request: header and configuration of the open epoch, and the whole history.
///
/// `None` before the first epoch.
#[must_use]
pub fn assemble(state: &State) -> Option<Request<'_>> {
    let epoch = state.epoch.as_ref()?;
    Some(Request { header: &epoch.header, config: &epoch.config, messages: state.messages(0) })
}
