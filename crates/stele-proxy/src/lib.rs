//! A proxy that stands between any agent and its provider, changes nothing, and says afterwards what the agent's
//! requests did to the provider's prompt cache.
//!
//! [`Proxy`] forwards bytes in both directions and keeps each model request in a [`Store`], taken apart into
//! [`Segment`]s in the order in which the provider reads them. [`report`], [`explain`] and [`simulate`] are pure
//! functions over such [`Recorded`] requests, wherever they come from.
//!
//! **Invariant:** nothing that is forwarded depends on what is recorded: the recorder gets copies and is never waited
//! for.
//!
//! **Invariant:** no header of a request is stored but `user-agent`, and no query, so that no key is.

mod body;
mod change;
mod departure;
mod emulate;
mod endpoint;
mod error;
mod explain;
mod forget;
mod judge;
mod lineage;
mod parameter;
mod prompt;
mod record;
mod recorder;
mod report;
mod server;
mod simulate;
mod step;
mod store;
mod target;
mod unit;
mod upstream;
mod usage;
mod volatile;

pub use change::Change;
pub use endpoint::miss_reason;
pub use error::{Error, Result};
pub use explain::{Excerpt, Explanation, Parting, explain};
pub use forget::Forgotten;
pub use judge::{Bound, Judging, Verdict};
pub use prompt::{Context, Mark, Prompt, Segment, model_request, read_prompt};
pub use record::{Cut, Ending, Recorded};
pub use recorder::Notice;
pub use report::{Conversation, Leaves, Line, Report, Sum, report, sums};
pub use server::{Exposure, Options, Proxy};
pub use simulate::{Simulated, Simulation, simulate};
pub use store::{Recordings, Store};
pub use target::Target;
