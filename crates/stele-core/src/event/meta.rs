//! Facts about a tool's execution, for people, cards and the fold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Hash, JobId, Text};

/// Facts about a tool's execution that are not for the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ResultMeta {
    /// Files that were read or changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileMeta>,
    /// How a command ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessMeta>,
    /// What a search found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchMeta>,
    /// Which part of a file was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<ReadMeta>,
    /// How long the body ran, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Jobs that were started, or that the model was told of, as they are after the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobMeta>,
    /// The folder, absolute, in which later calls run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Where the whole of a result is kept that was too long to be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spill: Option<SpillMeta>,
    /// Effects of the call that an undo does not reach, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_covered: Vec<String>,
}

impl ResultMeta {
    /// True when there is nothing to store.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A command in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobMeta {
    /// Its number.
    pub job: JobId,
    /// What it runs, in one short line.
    pub title: String,
    /// How far it is.
    pub status: JobStatus,
}

/// How far a command in the background is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JobStatus {
    /// It runs.
    Running,
    /// It ended by itself.
    Ended {
        /// Exit code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<i32>,
        /// The signal that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
    },
    /// It was stopped: by the model, or at its time limit.
    Stopped,
    /// The process that ran it is gone, and the job with it.
    Lost,
}

/// Where the whole of a result is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpillMeta {
    /// The name that `read` takes, such as `spill:c14`.
    pub name: String,
    /// Bytes that are kept.
    pub bytes: u64,
}

/// A file that a tool read or changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileMeta {
    /// Absolute path.
    pub path: String,
    /// What was done.
    pub action: FileAction,
    /// Hash of the content as it is after the call; absent after a deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<Hash>,
    /// Lines added.
    #[serde(default)]
    pub added: u32,
    /// Lines removed.
    #[serde(default)]
    pub removed: u32,
    /// Unified diff, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<Text>,
    /// The lines of the content that the model was shown; absent when it knows all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<FilePart>,
}

/// Some lines of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilePart {
    /// First line, from 1.
    pub offset: u64,
    /// Lines; none where none of it was shown.
    pub lines: u64,
    /// Lines there are.
    pub total: u64,
}

impl FilePart {
    /// Nothing of a content of so many lines.
    #[must_use]
    pub fn nothing_of(total: u64) -> Self {
        Self { offset: 1, lines: 0, total }
    }
}

/// What a tool did with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileAction {
    /// Its content was shown to the model.
    Read,
    /// It did not exist before.
    Created,
    /// Its content was changed.
    Changed,
    /// It was removed.
    Deleted,
}

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProcessMeta {
    /// Exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// True when the time limit ended it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// Bytes of output, shown or not.
    pub output_bytes: u64,
    /// What of it still ran when the call returned, in words; absent when nothing did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SearchMeta {
    /// Matches that are shown.
    pub matches: u64,
    /// Matches there are, as far as was counted.
    pub total: u64,
    /// True when not all are shown.
    pub truncated: bool,
}

/// Which part of a file was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReadMeta {
    /// First line, from 1.
    pub offset: u64,
    /// Lines shown.
    pub lines: u64,
    /// Lines there are.
    pub total: u64,
    /// True when a pointer to what had been shown before stands for the lines.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unchanged: bool,
    /// Bytes that the pointer kept from being sent again.
    #[serde(skip_serializing_if = "is_zero")]
    pub saved: u64,
}

impl ReadMeta {
    /// The lines that were shown, where those are not all: logs of before [`FileMeta::part`] say it of a read here alone.
    pub(crate) fn window(&self) -> Option<FilePart> {
        let Self { offset, lines, total, .. } = *self;
        (lines < total).then_some(FilePart { offset, lines, total })
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the shape serde asks for
fn is_zero(count: &u64) -> bool {
    *count == 0
}
