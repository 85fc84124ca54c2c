//! What a state is made of: the open epoch, turn, step and calls.

use crate::limits::TurnLimits;
use crate::repeats::Repeats;
use crate::{
    CallId, Config, Effects, EndReason, EpochReason, Failure, Header, Millis, Parameters, Price, PromptDigest,
    SegmentDigest, Seq, Wire,
};

/// What the requests of a stretch share.
#[derive(Clone, Debug)]
pub struct Epoch {
    /// Its number, from 1.
    pub n: u32,
    /// Why it opened.
    pub reason: EpochReason,
    /// Version of the program that composed it; empty when that was not written.
    pub version: String,
    /// Tools, system, preface.
    pub header: Header,
    /// What the log says that the header is made of.
    pub segments: Vec<SegmentDigest>,
    /// What else shapes the bytes.
    pub config: Config,
    /// What the route costs.
    pub price: Option<Price>,
    /// The most tokens that one answer can have.
    pub max_output: Option<u64>,
    /// The last `main` request of this epoch.
    pub sent: Option<Sent>,
    /// The last `main` request before this epoch.
    pub before: Option<Sent>,
    pub(crate) header_bytes: u64,
}

/// A request that was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// Its record.
    pub seq: Seq,
    /// When.
    pub at: Millis,
    /// Its input tokens, once they were reported.
    pub input: Option<u64>,
    /// Its items.
    pub prompt: PromptDigest,
    /// How much of the surface it held.
    pub surface: usize,
    /// Bytes of that.
    pub(crate) surface_bytes: u64,
    /// Where prompts before it ended.
    pub earlier: Vec<PromptDigest>,
    /// Its step.
    pub step: u64,
}

/// Ends of earlier prompts that are remembered of an endpoint, at most.
const ENDS_MAX: usize = 64;

/// The last prompt at one endpoint that was answered, or began to be: what its cache holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The protocol.
    pub wire: Wire,
    /// Where it went to.
    pub base_url: String,
    /// The model.
    pub model: String,
    /// When it was sent.
    pub at: Millis,
    /// True when it carried cache marks.
    pub marked: bool,
    /// Its parameters: some of them are part of what is cached.
    pub parameters: Parameters,
    /// Its items.
    pub prompt: PromptDigest,
    /// Prompts before it that were sent under the same marks and parameters, with the time of their last use; the latest
    /// at the end. What was cached of them is there still, also where the history was cut since.
    pub ends: Vec<(Millis, PromptDigest)>,
}

impl Answered {
    /// Whether requests under this configuration go to the same endpoint.
    #[must_use]
    pub fn is_of(&self, config: &Config) -> bool {
        (self.wire, &self.base_url, &self.model) == (config.wire, &config.base_url, &config.model)
    }

    /// The ends of the prompts before the next one that is answered there: a prompt that it extends is read, and so lives
    /// from then on.
    pub(crate) fn followed_by(self, next: &PromptDigest, at: Millis) -> Vec<(Millis, PromptDigest)> {
        let Self { mut ends, prompt, .. } = self;
        if prompt.hash != next.hash {
            let used = if next.shared >= prompt.len { at } else { self.at };
            if ends.len() == ENDS_MAX {
                ends.remove(0);
            }
            ends.push((used, prompt));
        }
        ends
    }
}

/// A prompt whose tokens the provider counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    /// Its tokens.
    pub(crate) input: u64,
    /// Its epoch.
    pub(crate) epoch: u32,
    /// Bytes of the surface that are part of it, at least.
    pub(crate) surface_bytes: u64,
}

/// An item of the inbox.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// The item.
    pub queued: crate::InboxQueued,
    /// True once it was taken into the open turn; its message is still owed.
    pub claimed: bool,
}

/// The open turn.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// Its number, from 1.
    pub number: u64,
    /// What bounds it.
    pub limits: TurnLimits,
    /// When it started.
    pub started: Millis,
    /// Who asked it to stop.
    pub cancel: Option<crate::By>,
    /// Steps so far.
    pub steps: u64,
    /// Tool bodies run so far.
    pub executions: u64,
    /// Tokens reported so far.
    pub tokens: u64,
    /// Steps in a row in which every call failed.
    pub failed_steps: u64,
    /// True when the surface ends with something the model has not answered.
    pub unanswered: bool,
    /// True when a step opened or an item was claimed.
    pub begun: bool,
    /// How it will end once the open step is closed.
    pub ending: Option<EndReason>,
    pub(crate) repeats: Repeats,
    pub(crate) warned_of_repeats: bool,
}

/// The open step.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its number in the session, from 1.
    pub number: u64,
    /// Where it stands.
    pub phase: Phase,
    /// Attempts that failed before any output.
    pub failed: u32,
    /// True when its request was refused and the history was repaired.
    pub repaired: bool,
    /// Attempts that failed after some output.
    pub failed_after_output: u32,
    /// Its calls, in the model's order.
    pub calls: Vec<StepCall>,
    /// True when one of them went to another folder than the one that all were judged for.
    pub moved: bool,
}

/// Where a step stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Its request was not sent yet.
    Composing,
    /// Its request was sent and is not answered.
    Sending {
        /// The try.
        attempt: u32,
    },
    /// The last attempt failed.
    Failed {
        /// The try.
        attempt: u32,
        /// How it failed.
        failure: Failure,
    },
    /// The next attempt is due.
    Backoff {
        /// The try.
        attempt: u32,
        /// When.
        at: Millis,
    },
    /// It was answered; its calls, if any, are being worked on.
    Answered,
}

/// A call of the open step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepCall {
    /// The call.
    pub call: CallId,
    /// Where it stands.
    pub stage: CallStage,
    /// What its body may change; known once it was gated.
    pub effects: Effects,
    /// Who let it pass or not; known once it was gated.
    pub gated_by: Option<crate::By>,
    /// True when it may run beside its neighbours; known once it was gated.
    pub parallel: bool,
    /// The code of the error it ended with, if it did.
    pub error: Option<String>,
}

/// Where a call stands.
#[derive(Clone, Debug, PartialEq)]
pub enum CallStage {
    /// It has arrived.
    Received,
    /// A person has to be asked.
    Gated {
        /// Why.
        reason: Option<String>,
    },
    /// A person is being asked.
    Asked,
    /// It was refused; the model is not told yet.
    Refused {
        /// Who refused.
        by: String,
        /// Why.
        reason: Option<String>,
        /// True when there was nobody to ask.
        unanswered: bool,
    },
    /// It may run.
    Cleared,
    /// Its body was started.
    Running,
    /// It has a result.
    Done,
}

/// Counts of a session. Steps, attempts and executions are never mixed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Turns opened.
    pub turns: u64,
    /// Steps opened.
    pub steps: u64,
    /// Of them those that were answered, which is what a step is to whoever counts them.
    pub answered: u64,
    /// HTTP tries.
    pub attempts: u64,
    /// Calls made by the model.
    pub calls: u64,
    /// Tool bodies run.
    pub executions: u64,
    /// Questions that nobody answered.
    pub unanswered: u64,
}
