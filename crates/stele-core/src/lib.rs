//! Events, fold, surface, assembly, what is owed, usage, limits, errors: pure.
//!
//! A session is an append-only log of [`Record`]s. Everything else is computed from it:
//!
//! - [`State::fold`] takes one record after the other and keeps what the next decision needs;
//! - [`owed`] says what has to happen next, as an ordered list of [`Action`]s;
//! - [`assemble`] gives the request that the model is sent, ready for a wire's encoder.
//!
//! **Invariant:** nothing here does I/O, reads a clock or draws a random number. Time and ids come
//! in as data, so that a fresh start, a resume and a replay are one code path.

mod account;
mod call;
mod card;
mod content;
mod course;
mod cut;
mod error;
mod event;
mod failure;
mod field;
mod hash;
mod history;
mod ids;
mod image;
mod json;
pub mod limits;
mod literal;
mod look;
mod message;
pub mod nearest;
mod owed;
mod read_file;
mod record;
mod repair;
mod repeats;
mod request;
pub mod retry;
mod reuse;
mod state;
mod surface;
mod text;
pub mod timeline;
mod tool;
mod usage;

pub use account::Account;
pub use call::{Call, CallDecision, Subject, Verdict};
pub use card::{CallCard, CardFile, CardKind, Location, ResultCard};
pub use content::Content;
pub use course::{Between, Course};
pub use error::{Error, Result};
pub use event::*;
pub use failure::{Failure, FailureCode};
pub use field::OptionalField;
pub use hash::{Hash, Hasher};
pub use history::{History, Restoring, TurnChanges, Undone, Unrestored, title};
pub use ids::{CallId, ItemId, JobId, Micros, Millis, Seq, SessionId};
pub use image::{Image, ImageInput, MediaType};
pub use json::{parse_lenient, repair_surrogates};
pub use literal::Literal;
pub use look::{is_alike, is_hidden, name_on_a_line};
pub use message::{AssistantBlock, AssistantTurn, Message, UserBlock};
pub use owed::{Action, close, may_send_again, owed, partial_answer, resume};
pub use read_file::{ReadFile, ReadFiles};
pub use record::{Record, RecordBytes, Stored};
pub use request::{
    CacheMarks, CacheTtl, Config, Dialect, Header, Parameters, PrefaceBlock, PromptOrder, Request, SystemBlock,
    SystemRole, ToolChoice, ToolSchema, Wire, Zone,
};
pub use reuse::Reuse;
pub use state::{Answered, CallStage, Counters, Epoch, Phase, Sent, State, Step, StepCall, Turn, Waiting, assemble};
pub use surface::{
    ANSWER_EMPTY, ANSWER_MISSING, CallRecord, RESULT_EMPTY, RESULT_MISSING, SurfaceItem, USER_MISSING, derive,
    derive_rev,
};
pub use text::{BlobRef, INLINE_MAX, Text};
pub use tool::{
    Ahead, CallSession, Effects, Future, Invocation, JobNotice, NotLogged, Shown, ShownFiles, Tool, ToolError,
    ToolErrorClass, ToolOutput, ToolSpec, Watch,
};
pub use usage::{Coverage, LongPrice, Price, Usage};
