//! What others may ask of the state.

use std::path::Path;
use std::sync::Arc;

use super::{Answered, Counters, Epoch, State, Step, Turn, Waiting};
use crate::cut::Origin;
use crate::surface::{CallRecord, SurfaceItem, derive, derive_each};
use crate::{
    Account, Block, CallId, Config, Coverage, CutReason, EndReason, EpochReason, History, ItemId, JobId, JobMeta,
    JobStatus, Message, Micros, Mode, ModelSet, Part, Producer, PromptDigest, ReadFiles, Seq, SessionStarted,
    ShownFiles, TodoItem, Usage,
};

impl State {
    /// Position of the next record.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        self.next_seq
    }

    /// Number of the next inbox item.
    #[must_use]
    pub fn next_item(&self) -> ItemId {
        ItemId(self.next_item)
    }

    /// Id of the next call.
    #[must_use]
    pub fn next_call(&self) -> CallId {
        CallId(self.counters.calls + 1)
    }

    /// Number of the next job.
    #[must_use]
    pub fn next_job(&self) -> JobId {
        JobId(self.jobs.keys().next_back().map_or(1, |last| last.0 + 1))
    }

    /// Jobs that run, as far as the log tells.
    pub fn open_jobs(&self) -> impl Iterator<Item = &JobMeta> {
        self.jobs.values().filter(|job| job.status == JobStatus::Running)
    }

    /// The folder in which calls run, once a command has changed it.
    #[must_use]
    pub fn cwd(&self) -> Option<&Path> {
        self.cwd.as_deref()
    }

    /// True when a vendor's call id was seen before in this session.
    #[must_use]
    pub fn knows_vendor_id(&self, id: &str) -> bool {
        self.vendor_ids.contains(id)
    }

    /// The session's first record of its own, with the folder that it works in now.
    #[must_use]
    pub fn session(&self) -> Option<&SessionStarted> {
        self.session.as_ref()
    }

    /// The open epoch.
    #[must_use]
    pub fn epoch(&self) -> Option<&Epoch> {
        self.epoch.as_ref()
    }

    /// Why the next request opens an epoch, if it does.
    #[must_use]
    pub fn next_epoch(&self) -> Option<EpochReason> {
        crate::owed::epoch_reason(self)
    }

    /// What a record says the next epoch is for.
    #[must_use]
    pub fn epoch_due(&self) -> Option<&EpochReason> {
        self.due.as_ref()
    }

    /// Why the history was cut, until an epoch opens.
    #[must_use]
    pub fn cut_since(&self) -> Option<CutReason> {
        self.cut
    }

    /// The open turn.
    #[must_use]
    pub fn turn(&self) -> Option<&Turn> {
        self.turn.as_ref()
    }

    /// The open step.
    #[must_use]
    pub fn step(&self) -> Option<&Step> {
        self.step.as_ref()
    }

    /// Items that wait.
    pub fn inbox(&self) -> impl Iterator<Item = &Waiting> {
        self.inbox.iter()
    }

    /// A call of this session.
    #[must_use]
    pub fn call(&self, call: CallId) -> Option<&CallRecord> {
        self.calls.get(&call)
    }

    /// Counts so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The permission mode.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The chosen route and model; absent before the first choice.
    #[must_use]
    pub fn model(&self) -> Option<&ModelSet> {
        self.model.as_ref()
    }

    /// Things to do.
    #[must_use]
    pub fn todo(&self) -> &[TodoItem] {
        &self.todo
    }

    /// Rules that a person granted in this session.
    #[must_use]
    pub fn grants(&self) -> &[String] {
        &self.grants
    }

    /// Files the model was shown or changed, with the hash of their content then.
    #[must_use]
    pub fn read_files(&self) -> &Arc<ReadFiles> {
        &self.read_files
    }

    /// What the model still sees of files.
    #[must_use]
    pub fn shown_files(&self) -> &Arc<ShownFiles> {
        &self.shown_files
    }

    /// What turns changed, and which of them were taken back.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Tokens reported so far.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        self.account.usage()
    }

    /// Share of the input that was read from the cache so far; absent when it is not known of every attempt.
    #[must_use]
    pub fn hit_rate(&self) -> Option<f64> {
        self.account.hit_rate()
    }

    /// For how many attempts usage is known.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        self.account.coverage()
    }

    /// Cost so far; absent as soon as one attempt could not be priced.
    #[must_use]
    pub fn cost(&self) -> Option<Micros> {
        self.account.cost()
    }

    /// An empty account of what comes from here on.
    #[must_use]
    pub fn account_from_here(&self) -> Account {
        self.account.from_here()
    }

    /// Cost so far at most: an attempt that could not be priced counts with the most it can have cost.
    #[must_use]
    pub fn cost_at_most(&self) -> Option<Micros> {
        self.account.at_most()
    }

    /// How the last turn ended.
    #[must_use]
    pub fn last_end(&self) -> Option<&EndReason> {
        self.last_end.as_ref()
    }

    /// Length of the surface, in events.
    #[must_use]
    pub fn surface_len(&self) -> usize {
        self.surface.len()
    }

    /// Bytes of header and surface: what the next request holds, without its framing.
    #[must_use]
    pub fn prompt_bytes(&self) -> u64 {
        self.surface_bytes + self.epoch.as_ref().map_or(0, |epoch| epoch.header_bytes)
    }

    /// The first text that came from a person; what a list of sessions shows.
    #[must_use]
    pub fn first_prompt(&self) -> Option<&str> {
        let first = self.surface.iter().zip(&self.marks).find_map(|(item, mark)| match (item, &mark.origin) {
            (SurfaceItem::User(parts), Origin::Person) => parts.first(),
            _ => None,
        });
        first.map(|Part::Text { text }| text.as_str())
    }

    /// The text of the last answer, without reasoning.
    #[must_use]
    pub fn last_text(&self) -> String {
        let last = self.surface.iter().rev().find_map(|item| match item {
            SurfaceItem::Assistant { content, .. } => Some(content),
            _ => None,
        });
        let texts = last.into_iter().flatten().filter_map(|block| match block {
            Block::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// Where prompts before the open step's ended, as far as an entry of the cache may stand there: the last that its
    /// endpoint answered, and a later one of the epoch of which nobody knows. Those that it does not begin with count for
    /// nothing. Before revision 3 it is the last that was sent.
    #[must_use]
    pub fn earlier_prompts(&self) -> Vec<PromptDigest> {
        let Some(epoch) = &self.epoch else { return Vec::new() };
        let sent = match (&epoch.sent, &self.step) {
            (Some(sent), Some(step)) if step.number == sent.step => return sent.earlier.clone(),
            (sent, _) => sent.as_ref().map(|sent| sent.prompt),
        };
        let answered = self.answered_by(&epoch.config).filter(|_| epoch.config.derive_rev >= 3);
        let answered = answered.map(|answered| answered.prompt);
        let later = sent.filter(|sent| answered.is_none_or(|answered| answered.hash != sent.hash));
        answered.into_iter().chain(later).collect()
    }

    /// The last prompt that was answered where requests under this configuration go to.
    #[must_use]
    pub fn answered_by(&self, config: &Config) -> Option<&Answered> {
        self.answered.iter().find(|answered| answered.is_of(config))
    }

    /// The most tokens that the input of the next request can have: what the provider counted of it, and a token for each
    /// byte that came since, or for each of all where it has counted none. No tokenizer makes more.
    #[must_use]
    pub fn input_at_most(&self) -> u64 {
        let all = self.prompt_bytes();
        let (Some(counted), Some(epoch)) = (&self.counted, &self.epoch) else { return all };
        let header = if counted.epoch == epoch.n { 0 } else { epoch.header_bytes };
        let new = self.surface_bytes.saturating_sub(counted.surface_bytes).saturating_add(header);
        all.min(counted.input.saturating_add(new))
    }

    /// The messages from a place of the surface on, see [`derive`]; none before the first epoch.
    #[must_use]
    pub fn messages(&self, from: usize) -> Vec<Message> {
        let Some(epoch) = &self.epoch else { return Vec::new() };
        derive(&self.surface, from, &self.calls, &epoch.config)
    }

    /// Takes the same messages one after the other.
    pub fn each_message(&self, from: usize, take: &mut dyn FnMut(Message)) {
        if let Some(epoch) = &self.epoch {
            derive_each(&self.surface, from, &self.calls, &epoch.config, take);
        }
    }

    /// Takes the messages of the open epoch's last request; none where the history was cut since.
    pub fn each_message_sent(&self, take: &mut dyn FnMut(Message)) {
        let Some(epoch) = self.epoch.as_ref().filter(|_| self.cut.is_none()) else { return };
        let sent = epoch.sent.as_ref().and_then(|sent| self.surface.get(..sent.surface));
        derive_each(sent.unwrap_or_default(), 0, &self.calls, &epoch.config, take);
    }

    /// The producer of an answer to a request of the open epoch.
    #[must_use]
    pub fn producer(&self) -> Option<Producer> {
        let config = &self.epoch.as_ref()?.config;
        Some(Producer { wire: config.wire, model: config.model.clone() })
    }
}
