//! Files that changed, and turns that were taken back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{By, Texts};
use crate::{CallId, Content, Hash};

/// `file/changed`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChanged {
    /// The call that changed it.
    pub call: CallId,
    /// True for what a call is about to change, on disk before it does: where that comes to something else, another
    /// record says so. A second one of the same call and file takes the place of the first, of which nothing came.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ahead: bool,
    /// The file.
    #[serde(flatten)]
    pub change: FileChange,
}
impl Texts for FileChanged {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        self.change.kept.iter_mut().for_each(visit);
    }
}

/// A file before and after it was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// Absolute path, without symbolic links on the way.
    pub path: String,
    /// What it was; absent when it did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<FileVersion>,
    /// What it is; absent when it does not exist any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<FileVersion>,
    /// The bytes it had; absent when they are not kept, or were kept for an earlier change of its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Content>,
    /// The first of the folders that were made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<String>,
    /// Other names that the same file had before (hard links), as far as they are known; absent when it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linked: Option<Vec<String>>,
}

/// What a file was at some time, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileVersion {
    /// Hash of its bytes; of a symbolic link, of where it points to.
    pub hash: Hash,
    /// Number of bytes.
    pub len: u64,
    /// Type and mode, as `st_mode`.
    pub mode: u32,
}

/// `undo/applied`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UndoApplied {
    /// The turn that was taken back.
    pub turn: u64,
    /// Who asked for it.
    pub by: By,
    /// The files that are restored, with what they were just before, or, where they were as before the turn already,
    /// with what the turn had made of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileChange>,
    /// The files that were left as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<FileLeft>,
    /// Effects of the turn that an undo does not reach, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_covered: Vec<String>,
}
impl Texts for UndoApplied {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        self.files.iter_mut().filter_map(|file| file.kept.as_mut()).for_each(visit);
    }
}

/// `redo/applied`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RedoApplied {
    /// The turn that was done again.
    pub turn: u64,
    /// Who asked for it.
    pub by: By,
    /// The files that were changed again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileChange>,
    /// The files that were left as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<FileLeft>,
}
impl Texts for RedoApplied {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        self.files.iter_mut().filter_map(|file| file.kept.as_mut()).for_each(visit);
    }
}

/// `restore/ended`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RestoreEnded {
    /// The turn whose files are as the last undo or redo says.
    pub turn: u64,
}
impl Texts for RestoreEnded {}

/// A file that an undo or redo left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileLeft {
    /// Absolute path.
    pub path: String,
    /// Why.
    pub why: LeftWhy,
}

/// Why a file was left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeftWhy {
    /// It is not what the turn left: somebody changed it since.
    ChangedSince,
    /// It is what the turn left, but somebody changed it between two of the turn's changes, so that what they made of it
    /// would go as well.
    ChangedBetween,
    /// The bytes it had are not kept.
    NotKept,
    /// What stands there is more than is kept of one file, so that it would be lost.
    WouldBeLost,
    /// What stands there cannot be looked at or replaced.
    Blocked {
        /// Why not.
        detail: String,
    },
}
