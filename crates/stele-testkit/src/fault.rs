//! What goes wrong, where and how often.

use std::ops::RangeInclusive;

use serde_json::Value;

/// A place in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Before the status line.
    Start,
    /// After so many events of a stream (all of them when there are fewer).
    Events(usize),
    /// After so many bytes of the body (all of them when there are fewer).
    Bytes(usize),
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// An answer with this status in place of the model's.
    Status {
        /// HTTP status.
        status: u16,
        /// Further headers, such as `retry-after`.
        headers: Vec<(String, String)>,
        /// The body; absent: what the vendor of the wire sends with such a status.
        body: Option<String>,
    },
    /// The stream breaks off with an error event in the wire's form, of the kind that belongs to this status, and ends.
    ErrorEvent {
        /// Where.
        at: Cut,
        /// The HTTP status that the error would have had, such as 529.
        status: u16,
        /// The error's message.
        message: String,
    },
    /// Nothing more is sent until [`Server::release`](crate::Server::release); then the rest.
    Stall {
        /// Where.
        at: Cut,
    },
    /// The connection is reset.
    Reset {
        /// Where.
        at: Cut,
    },
    /// The connection is closed inside the HTTP body.
    Close {
        /// Where.
        at: Cut,
    },
    /// The HTTP body ends properly, but without the rest of the stream.
    Truncate {
        /// Where.
        at: Cut,
    },
    /// Foreign bytes inside the body.
    Garbage {
        /// Where.
        at: Cut,
        /// What.
        bytes: Vec<u8>,
    },
    /// The whole stream is sent, its terminal event included, but the HTTP body does not end until
    /// [`Server::release`](crate::Server::release).
    LeftOpen,
    /// No usage is reported.
    NoUsage,
    /// This is reported as the wire's usage object.
    Usage(Value),
}

impl FaultKind {
    /// A status with the vendor's own body.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::Status { status, headers: Vec::new(), body: None }
    }

    /// True when the model's answer does not arrive whole, so that it is asked for again.
    pub(crate) fn spoils(&self) -> bool {
        match self {
            Self::Stall { .. } | Self::LeftOpen | Self::NoUsage | Self::Usage(_) => false,
            Self::Status { .. }
            | Self::ErrorEvent { .. }
            | Self::Reset { .. }
            | Self::Close { .. }
            | Self::Truncate { .. }
            | Self::Garbage { .. } => true,
        }
    }
}

/// A fault of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    step: Option<usize>,
    attempts: RangeInclusive<u32>,
    kind: FaultKind,
}

impl Fault {
    /// At these requests for a step: steps are counted from 0, the requests for one from 1.
    #[must_use]
    pub fn at(step: usize, attempts: RangeInclusive<u32>, kind: FaultKind) -> Self {
        Self { step: Some(step), attempts, kind }
    }

    /// At every request.
    #[must_use]
    pub fn always(kind: FaultKind) -> Self {
        Self { step: None, attempts: 1..=u32::MAX, kind }
    }

    /// What goes wrong at this request.
    pub(crate) fn strikes(&self, step: usize, attempt: u32) -> Option<&FaultKind> {
        (self.step.is_none_or(|own| own == step) && self.attempts.contains(&attempt)).then_some(&self.kind)
    }
}
