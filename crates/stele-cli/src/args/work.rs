//! The commands that do something in a folder.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::SessionArgs;

#[derive(Args, Clone, Debug, Default)]
pub struct RunArgs {
    /// What to do; `-` reads it from standard input. What is piped in beside it is put behind it
    pub prompt: Option<OsString>,

    #[command(flatten)]
    pub session: SessionArgs,

    #[command(flatten)]
    pub output: OutputArgs,

    /// Answer with JSON that matches this schema
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,

    /// How standard input is read: one prompt, or one JSON line {"prompt": "…"} after another
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub input_format: InputFormat,
}

#[derive(Args, Clone, Debug, Default)]
pub struct OutputArgs {
    /// One record a line, then one line with the result
    #[arg(long)]
    pub json: bool,

    /// With --json: also pieces of answers as they arrive
    #[arg(long, requires = "json")]
    pub deltas: bool,

    /// Only the last answer and errors; --json is that by itself
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    #[default]
    Text,
    Jsonl,
}

#[derive(Args, Clone, Debug, Default)]
pub struct DemoArgs {
    #[command(flatten)]
    pub output: OutputArgs,

    /// Leave its project to be looked at; it says where. Its session stays in any case
    #[arg(long)]
    pub keep: bool,
}

#[derive(Args, Clone, Debug)]
pub struct EditArgs {
    /// The file; standard input is the edit
    pub path: OsString,

    #[command(flatten)]
    pub output: EditOutput,
}

#[derive(Args, Clone, Debug)]
pub struct PatchArgs {
    #[command(flatten)]
    pub output: EditOutput,
}

#[derive(Args, Clone, Debug, Default)]
pub struct EditOutput {
    /// One JSON line about what became of it
    #[arg(long)]
    pub json: bool,

    /// Only say what would be changed
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Args, Clone, Debug)]
pub struct UndoArgs {
    /// The session; the start of its id is enough; the latest one of this folder when it is left out
    pub id: Option<String>,

    /// Do the turn again that was taken back last
    #[arg(long)]
    pub redo: bool,

    /// Also replace files that were changed since
    #[arg(long)]
    pub overwrite: bool,

    /// Only list the turns and what they changed
    #[arg(long, conflicts_with_all = ["redo", "overwrite"])]
    pub list: bool,

    /// One JSON line about what was done, or a turn
    #[arg(long)]
    pub json: bool,
}
