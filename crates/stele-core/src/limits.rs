//! Every limit: a default and a hard maximum, in one table.
//!
//! A value over the hard maximum is refused with both numbers, never clamped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Micros, Millis};

/// A default with its hard maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Name in the configuration and in messages.
    pub name: &'static str,
    /// What is used when nothing is said.
    pub default: u64,
    /// What is refused beyond.
    pub hard: u64,
}

impl Bound {
    /// Takes a value that a person gave.
    ///
    /// # Errors
    /// The value is zero or over the hard maximum; the message names both numbers.
    pub fn check(&self, value: u64) -> Result<u64, String> {
        if value == 0 || value > self.hard {
            return Err(format!("{} = {value} is out of bounds: at least 1, at most {}", self.name, self.hard));
        }
        Ok(value)
    }
}

macro_rules! bounds {
    ($($(#[$doc:meta])* $name:ident = $label:literal, $default:expr, $hard:expr;)*) => {
        $($(#[$doc])* pub const $name: Bound = Bound { name: $label, default: $default, hard: $hard };)*

        /// All of them, for `stele config` and the documentation.
        pub const ALL: &[Bound] = &[$($name),*];
    };
}

bounds! {
    /// Model requests answered in one turn.
    STEPS = "limits.steps", 200, 10_000;
    /// Tool bodies run in one turn.
    EXECUTIONS = "limits.executions", 400, 100_000;
    /// Tool bodies that run at the same time.
    PARALLEL = "limits.parallel", 8, 64;
    /// Tries of one request, before any output arrived.
    ATTEMPTS = "limits.attempts", 5, 20;
    /// Further tries once part of the answer had arrived.
    ATTEMPTS_AFTER_OUTPUT = "limits.attempts_after_output", 2, 20;
    /// Steps in a row in which every call failed.
    FAILED_STEPS = "limits.failed_steps", 5, 100;
    /// The same call with the same result: a notice is appended.
    REPEATS_NOTICE = "limits.repeats_notice", 3, 100;
    /// The same call with the same result: a person is asked.
    REPEATS_ASK = "limits.repeats_ask", 5, 100;
    /// The same call with the same result: the turn ends.
    REPEATS_END = "limits.repeats_end", 8, 100;
    /// Bytes of a tool's result that the model is shown.
    RESULT_BYTES = "limits.result_bytes", 32 * 1024, 1024 * 1024;
    /// Lines in one window of `read`.
    READ_LINES = "limits.read_lines", 2_000, 20_000;
    /// Bytes in one window of `read`.
    READ_BYTES = "limits.read_bytes", 64 * 1024, 1024 * 1024;
    /// Milliseconds a shell command may run.
    SHELL_MS = "limits.shell_ms", 120_000, 600_000;
    /// Milliseconds without a byte from the provider.
    IDLE_MS = "limits.idle_ms", 120_000, 1_800_000;
    /// Milliseconds to connect to the provider.
    CONNECT_MS = "limits.connect_ms", 10_000, 120_000;
    /// First wait before another try, in milliseconds; it doubles each time.
    RETRY_FLOOR_MS = "limits.retry_floor_ms", 500, 60_000;
    /// Longest wait before another try, in milliseconds.
    RETRY_CEILING_MS = "limits.retry_ceiling_ms", 30_000, 600_000;
    /// Longest wait that a server may ask for, in milliseconds.
    RETRY_AFTER_MS = "limits.retry_after_ms", 60_000, 600_000;
    /// Bytes of project instructions in the preface.
    INSTRUCTION_BYTES = "limits.instruction_bytes", 64 * 1024, 1024 * 1024;
    /// Bytes of one prompt.
    PROMPT_BYTES = "limits.prompt_bytes", 1024 * 1024, 16 * 1024 * 1024;
    /// Bytes of one file that are kept so that an undo can bring them back.
    UNDO_FILE_BYTES = "limits.undo_file_bytes", 16 * 1024 * 1024, 256 * 1024 * 1024;
    /// Files of the workspace that are looked at before and after a command.
    SNAPSHOT_FILES = "limits.snapshot_files", 20_000, 200_000;
    /// Bytes of one file that are kept before a command.
    SNAPSHOT_FILE_BYTES = "limits.snapshot_file_bytes", 1024 * 1024, 16 * 1024 * 1024;
    /// Bytes of all files that are kept before a command.
    SNAPSHOT_BYTES = "limits.snapshot_bytes", 64 * 1024 * 1024, 1024 * 1024 * 1024;
}

/// Which limit it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Steps in the turn.
    Steps,
    /// Tool executions in the turn.
    Executions,
    /// Milliseconds since the turn started.
    Time,
    /// Micro-units of money in the session.
    Cost,
    /// Tokens in the turn, input and output.
    Tokens,
    /// The same call with the same result.
    Repeats,
    /// Steps in a row in which every call failed.
    FailedSteps,
}

/// What bounds one turn. Absent means the default of the table, or none where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TurnLimits {
    /// Steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Tool executions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executions: Option<u64>,
    /// Tokens, input and output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money for the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Micros>,
    /// True when a route without a price may pass a cost limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_unpriced: bool,
    /// Absolute time at which the turn is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Millis>,
}

impl TurnLimits {
    /// True when nothing was set.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
