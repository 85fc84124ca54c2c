//! One module a tool, with its description beside it.

pub(crate) mod ask;
pub(crate) mod bash;
pub(crate) mod edit;
pub(crate) mod glob;
pub(crate) mod grep;
pub(crate) mod jobs;
pub(crate) mod read;
pub(crate) mod todo;
pub(crate) mod write;
