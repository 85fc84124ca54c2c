//! One module a tool, with its description beside it.

pub(crate) mod ask;
pub(crate) mod bash;
pub(crate) mod edit;
pub(crate) mod glob;
pub(crate) mod grep;
pub(crate) mod jobs;
pub(crate) mod ls;
pub(crate) mod patch;
pub(crate) mod read;
#[cfg(feature = "symbols")]
pub(crate) mod symbols;
pub(crate) mod todo;
#[cfg(feature = "web")]
pub(crate) mod web_fetch;
#[cfg(feature = "web")]
pub(crate) mod web_search;
pub(crate) mod write;
