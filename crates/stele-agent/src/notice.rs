//! What a frontend sends and what it sees.

use std::sync::Arc;

use stele_core::limits::TurnLimits;
use stele_core::{ApprovalOutcome, By, CallId, Mode, Record, RecordBytes, Source};
use stele_provider::Delta;

/// What a frontend asks for. A command is an event before it acts.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A prompt that opens a turn of its own.
    Prompt {
        /// What it says.
        text: String,
        /// Who wrote it.
        source: Source,
        /// What bounds the turn.
        limits: TurnLimits,
    },
    /// A message that joins the open turn at its next step.
    Steer {
        /// What it says.
        text: String,
    },
    /// Stop the open turn.
    Cancel {
        /// Who asks.
        by: By,
    },
    /// Answer a question about a call.
    Decide {
        /// The call.
        call: CallId,
        /// Who answers.
        by: By,
        /// The answer.
        outcome: ApprovalOutcome,
    },
    /// Choose the permission mode.
    SetMode {
        /// The mode.
        mode: Mode,
        /// Who asks.
        by: By,
    },
    /// Choose route and model; the next request opens an epoch.
    SetModel {
        /// Name of the route.
        route: String,
        /// The model.
        model: String,
        /// Who asks.
        by: By,
    },
    /// Keep the open epoch although header or configuration are other ones now, where it can be kept.
    KeepEpoch {
        /// Who asks.
        by: By,
    },
}

/// What an undo or redo does with files that somebody changed since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangedSince {
    /// They stay as they are.
    #[default]
    Leave,
    /// They are restored as well; what they were is kept, so that the opposite brings it back.
    Overwrite,
}

/// A record that is in the log, with its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    /// The record.
    pub record: Record,
    /// As it is stored.
    pub stored: RecordBytes,
}

/// What a frontend sees. A subscriber that is too slow loses the oldest notices and is told how many;
/// it catches up from the store.
#[derive(Clone, Debug)]
pub enum Notice {
    /// A record was committed.
    Event(Arc<Logged>),
    /// A piece of an answer arrived. Never stored; a later attempt replaces what an earlier one brought.
    Delta {
        /// The step.
        step: u64,
        /// The try.
        attempt: u32,
        /// The piece.
        delta: Arc<Delta>,
    },
    /// A tool's body printed something. Never stored.
    Output {
        /// The call.
        call: CallId,
        /// What it printed.
        text: Arc<str>,
    },
    /// Something beside the session is not as it should be; the session goes on. Never stored.
    Warning {
        /// The stable code.
        code: &'static str,
        /// What is wrong and what to do; it begins with the code.
        text: Arc<str>,
    },
}
