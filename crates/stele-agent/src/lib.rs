//! The driver of the loop: fold the log, ask what is owed, do it, append what happened.
//!
//! [`Agent`] holds what sessions share: the store, the routes, the tools, the rules. A [`Driver`] owns
//! one session's log while it is open. A frontend sends [`Command`]s and subscribes to [`Notice`]s; it
//! holds no agent state, and killing it loses nothing.
//!
//! **Invariant:** the driver decides nothing. What happens next is [`stele_core::owed`] of the log;
//! dropping a driver between any two appends and starting another one gives the same next request,
//! byte for byte.

mod agent;
mod compose;
mod drift;
mod driver;
mod error;
mod evidence;
mod instructions;
mod notice;
mod open;
mod records;
mod replay;
mod request;
mod undo;
mod verify;

pub use agent::{Agent, AgentOptions, Approvals, Clock};
pub use drift::{Drift, Taken};
pub use driver::{Driver, Until, search_text};
pub use error::{Error, Result};
pub use notice::{ChangedSince, Command, Logged, Notice};
pub use open::{Key, OpenPolicy, Opening, Place, SessionStart, new_session_id, state};
pub use replay::{Rebuilt, replay};
pub use undo::{Finished, Restored, preview_redo, preview_undo};
pub use verify::{RequestCheck, RowDiffers, Verification, verify};
