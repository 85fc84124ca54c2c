//! The folder in which calls run, and what becomes of calls when it is gone.
//!
//! A command, a job, an undo or a person may take it away at any time. Calls then go on in the workspace's folder, but
//! none that was written for the one that is gone: `rm -r *` means something else there. Such a call is refused once,
//! and the refusal says where calls run now.

use std::path::Path;

use stele_core::{CallId, Event, ResultMeta, Subject, Text, ToolError, ToolErrorClass, ToolResult};
use stele_guard::Workspace;

use super::Driver;
use crate::Result;
use crate::instructions::one_line;

/// The code of a call that was not run since its folder is gone.
const FOLDER_GONE: &str = "file.folder_gone";

impl Driver {
    /// The folder in which calls are meant to run.
    fn meant(&self) -> &Path {
        self.state().cwd().filter(|cwd| cwd.starts_with(self.workspace.root())).unwrap_or(self.folder())
    }

    /// The folder in which they can run: the one that is meant, or that of the workspace. None where both are gone.
    fn standing(&self) -> Option<&Path> {
        [self.meant(), self.workspace.root()].into_iter().find(|folder| folder.is_dir())
    }

    /// Goes where calls run. Where nothing is left to go to it stays, and the tools say what is missing.
    pub(crate) fn follow_cwd(&mut self) -> Result<()> {
        if let Some(cwd) = self.standing().map(Path::to_owned).filter(|cwd| *cwd != self.cwd) {
            self.workspace = Workspace::new(self.workspace.root(), &cwd, &self.agent.options.surroundings)?;
            self.cwd = cwd;
        }
        Ok(())
    }

    /// The result of a call that is not run since the folder it was written for is gone; nothing where that is there, or
    /// the call does not depend on it.
    pub(super) fn without_its_folder(&self, call: CallId, subjects: impl FnOnce() -> Vec<Subject>) -> Option<Event> {
        let (meant, now) = (self.meant(), self.standing()?);
        if (meant == now && !self.said_so_in_this_step()) || !subjects().iter().any(is_relative) {
            return None;
        }
        let gone = if meant == now { String::new() } else { format!(" {}", one_line(&meant.display().to_string())) };
        let message = format!(
            "not run: the folder{gone} for which this call was made is gone. Calls run in {} now: look what is there, \
             then go on from there",
            one_line(&now.display().to_string())
        );
        let result = ToolResult {
            call,
            content: Text::from(message),
            images: Vec::new(),
            error: Some(ToolError::new(FOLDER_GONE, ToolErrorClass::Refused, "")),
            meta: ResultMeta { cwd: now.to_str().map(str::to_owned), ..ResultMeta::default() },
        };
        Some(result.into())
    }

    /// True when a call of the open step was refused for this: its neighbours were written for the same folder.
    fn said_so_in_this_step(&self) -> bool {
        let calls = self.state().step().map_or(&[][..], |step| &step.calls);
        calls.iter().any(|call| call.error.as_deref() == Some(FOLDER_GONE))
    }
}

/// True for what means something else in another folder.
pub(super) fn is_relative(subject: &Subject) -> bool {
    match subject {
        Subject::Command(_) => true,
        Subject::Read(path) | Subject::Write(path) => stele_path::is_relative(path),
    }
}
