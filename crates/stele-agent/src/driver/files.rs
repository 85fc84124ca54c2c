//! The files that calls change, in the log.
//!
//! What `write`, `edit` and `patch` are about to change is on disk, with the bytes that it replaces, before they change it;
//! what a command changed is known only afterwards. So whatever ends the program, an undo reaches what they did.

use std::path::Path;
use std::sync::Arc;

use stele_core::{Ahead, CallId, FileChange, FileChanged, NotLogged};
use stele_tools::stands;
use tokio::sync::oneshot;

use super::Driver;
use super::flight::Update;
use crate::Result;

impl Driver {
    /// The way for a body to say what it is about to change.
    pub(super) fn ahead(&self, call: CallId) -> Ahead {
        let updates = self.updates.0.clone();
        Arc::new(move |changes| {
            let (logged, answer) = oneshot::channel();
            // Nobody takes it any more when the log is given up; then nobody answers either.
            let _ = updates.send(Update::Ahead { call, changes, logged });
            answer.blocking_recv().map_err(|_| NotLogged)
        })
    }

    /// Logs what a call is about to change, and writes it to disk.
    pub(super) fn announced(&mut self, call: CallId, changes: Vec<FileChange>) -> Result<()> {
        for change in changes {
            self.file_changed(call, change, true)?;
        }
        self.commit()
    }

    /// Logs what a call that ended has changed, as far as it is not what it had said.
    pub(super) fn changed(&mut self, call: CallId, changes: Vec<FileChange>, failed: bool) -> Result<()> {
        if failed && changes.is_empty() {
            return self.find_reached(call);
        }
        for change in changes {
            let said = |it: &FileChange| it.path == change.path && it.after == change.after;
            if !self.state.history().ahead(call).iter().any(said) {
                self.file_changed(call, change, false)?;
            }
        }
        Ok(())
    }

    /// Looks how far the calls came that said what they would change and were interrupted.
    pub(crate) fn find_all_reached(&mut self) -> Result<()> {
        let calls: Vec<CallId> = self.state.history().under_way().collect();
        calls.into_iter().try_for_each(|call| self.find_reached(call))
    }

    /// Looks which of the files that a call was about to change it has changed. One that is neither what it was nor what
    /// it was to become stays in the log as it was to become: an undo finds that somebody changed it.
    fn find_reached(&mut self, call: CallId) -> Result<()> {
        for file in self.state.history().ahead(call).to_vec() {
            let Ok(now) = stands::described_at(Path::new(&file.path)) else { continue };
            let same_content = now.map(|now| now.hash) == file.after.map(|after| after.hash);
            if now != file.after && (now == file.before || same_content) {
                self.file_changed(call, FileChange { after: now, ..file }, false)?;
            }
        }
        Ok(())
    }

    fn file_changed(&mut self, call: CallId, mut change: FileChange, ahead: bool) -> Result<()> {
        // What a file was before the turn is kept once; what somebody else made of it since, besides.
        let known = self.state.history().left_as(&change.path);
        if known.is_some_and(|known| known.map(|it| it.hash) == change.before.map(|it| it.hash)) {
            change.kept = None;
        }
        self.append(FileChanged { call, ahead, change })
    }
}
