//! The event kinds, one struct each, by families.
//!
//! A kind exists once something writes it. State-carrying events (`mode/set`, `model/set`,
//! `todo/set`) carry the whole value after the change: the last one wins.

mod epoch;
mod inbox;
mod message;
mod meta;
mod request;
mod session;
mod standing;
mod surface;
mod tool;
mod turn;
mod undo;
mod who;

use serde::Deserialize;

pub use epoch::*;
pub use inbox::*;
pub use message::*;
pub use meta::*;
pub use request::*;
pub use session::*;
pub use standing::*;
pub use surface::*;
pub use tool::*;
pub use turn::*;
pub use undo::*;
pub use who::*;

use crate::{Content, Text};

/// Declares the enum of events with its kinds, and what is the same for each of them.
macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $kind:literal,)*) => {
        /// What happened: the kind and the data of a record.
        #[derive(Clone, Debug, PartialEq)]
        // The large one is written once an epoch; events are not kept in bulk.
        #[allow(clippy::large_enum_variant)]
        pub enum Event {
            $($(#[$doc])* $name($name),)*
        }

        impl Event {
            /// Every kind that this build writes, with its data's schema.
            #[must_use]
            pub fn catalogue(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
                vec![$(($kind, generator.subschema_for::<$name>()),)*]
            }

            /// The kind, such as `turn/started`.
            #[must_use]
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$name(_) => $kind,)* }
            }

            /// The data as JSON, large texts as references to their blobs.
            pub(crate) fn data(&self) -> serde_json::Result<String> {
                match self { $(Self::$name(data) => serde_json::to_string(data),)* }
            }

            /// Reads the data of a kind; `None` for a kind that this build does not know.
            pub(crate) fn read<'de, D: serde::Deserializer<'de>>(kind: &str, data: D) -> Option<Result<Self, D::Error>> {
                Some(match kind {
                    $($kind => $name::deserialize(data).map(Self::$name),)*
                    _ => return None,
                })
            }

            /// Parses the data of a kind; `None` for a kind that this build does not know.
            pub(crate) fn parse(kind: &str, data: &str) -> Option<serde_json::Result<Self>> {
                let mut json = serde_json::Deserializer::from_str(data);
                let event = Self::read(kind, &mut json)?;
                Some(event.and_then(|event| json.end().map(|()| event)))
            }

            /// Visits every text that may be stored as a blob, in a fixed order.
            pub(crate) fn texts(&mut self, visit: &mut dyn FnMut(&mut Text)) {
                match self { $(Self::$name(data) => data.texts(visit),)* }
            }

            /// Visits the bytes of files, in a fixed order.
            pub(crate) fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
                match self { $(Self::$name(data) => data.contents(visit),)* }
            }
        }

        $(impl From<$name> for Event {
            fn from(data: $name) -> Self { Self::$name(data) }
        })*
    };
}

/// Data that may hold large texts.
trait Texts {
    fn texts(&mut self, _visit: &mut dyn FnMut(&mut Text)) {}

    fn contents(&mut self, _visit: &mut dyn FnMut(&mut Content)) {}
}

events! {
    /// The session's own first record.
    SessionStarted = "session/started",
    /// The session goes on in another folder.
    SessionMoved = "session/moved",
    /// A prompt or a message waits to be claimed.
    InboxQueued = "inbox/queued",
    /// Items were taken into the open turn.
    InboxClaimed = "inbox/claimed",
    /// An item was dropped before it was claimed.
    InboxRemoved = "inbox/removed",
    /// A turn opened.
    TurnStarted = "turn/started",
    /// Somebody asked the open turn to stop.
    TurnCancel = "turn/cancel",
    /// The turn closed.
    TurnEnded = "turn/ended",
    /// A step opened: one request that will be answered, with the tool executions it causes.
    StepStarted = "step/started",
    /// The step closed.
    StepEnded = "step/ended",
    /// Content in the user's role.
    UserMessage = "user/message",
    /// The model's answer to a step's request.
    AssistantMessage = "assistant/message",
    /// How a tool call ended, as the model is told.
    ToolResult = "tool/result",
    /// The next request has to open an epoch, or has not any more.
    EpochDue = "epoch/due",
    /// An epoch opened: the header and configuration of the requests to come.
    EpochOpened = "epoch/opened",
    /// The optional fields of the epoch's requests from here on: the endpoint refused some.
    CapsSet = "caps/set",
    /// A request is about to be sent.
    RequestSent = "request/sent",
    /// An attempt failed.
    RequestFailed = "request/failed",
    /// The next attempt is due at a time.
    RequestRetried = "request/retried",
    /// Inside an epoch an item changed: a defect.
    PrefixBroken = "prefix/broken",
    /// The model asked for a tool.
    ToolCalled = "tool/called",
    /// A call was allowed, refused or put to a person.
    ToolGated = "tool/gated",
    /// A tool's body is about to run.
    ToolStarted = "tool/started",
    /// A person is asked about a call.
    ApprovalAsked = "approval/asked",
    /// The person's answer.
    ApprovalDecided = "approval/decided",
    /// The permission mode from here on.
    ModeSet = "mode/set",
    /// The route and model from here on.
    ModelSet = "model/set",
    /// The whole list of things to do.
    TodoSet = "todo/set",
    /// A part of the surface was cut, or brought back.
    SurfaceReplaced = "surface/replaced",
    /// A call changed a file.
    FileChanged = "file/changed",
    /// A turn was taken back.
    UndoApplied = "undo/applied",
    /// A turn that was taken back was done again.
    RedoApplied = "redo/applied",
    /// The files of an undo or redo are changed; without it they are on the way.
    RestoreEnded = "restore/ended",
    /// An import found damage: it stands for a record that was lost, or keeps the damaged bytes.
    ImportDamaged = "import/damaged",
}
