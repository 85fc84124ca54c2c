//! What is owed next: a pure function of the state.
//!
//! The order of one turn: what comes between two steps stands here, a step in [`step`], what ends a turn early in
//! [`limit`]. The permission seam (validation, rules, mode) stands where a call is [`Action::Consult`]ed; further seams
//! take their places around it.

mod limit;
mod open;
mod step;
mod told;

use crate::limits::{self, LimitKind};
use crate::state::{State, Turn, Waiting};
use crate::{
    By, CallId, CutReason, EndReason, EpochReason, Event, InboxClaimed, InboxRemoved, Millis, Part, RemovedWhy, Source,
    StepStarted, Target, TurnCancel, TurnEnded, TurnStarted, UserMessage, Verdict,
};

use limit::{TIME_LIMIT, limit_reached, reached};
use step::{cancelled_step, open_step};

pub(crate) use limit::given_up;
pub use limit::may_send_again;
pub use open::{close, resume};
pub use told::partial_answer;

const REPEATS_NOTICE: &str = "You have made the same call with the same result several times. \
Try another way, or say what is in the way.";

/// Something that has to happen next.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Append this event: the log alone decides it.
    Append(Event),
    /// Gather header and configuration, and append `epoch/opened`.
    Compose {
        /// Why a new epoch is needed.
        reason: EpochReason,
    },
    /// Validate a call and ask rules and mode about it; append `tool/gated`, or the result of a call
    /// whose arguments are wrong.
    Consult {
        /// The call.
        call: CallId,
        /// The mildest verdict that may come out.
        at_least: Verdict,
    },
    /// Send the step's request, and append how it ended.
    Send {
        /// The step.
        step: u64,
        /// The try.
        attempt: u32,
        /// Not before this time.
        not_before: Option<Millis>,
    },
    /// Draw the wait before the next try, and append `request/retried`.
    Backoff {
        /// The step.
        step: u64,
        /// The try that failed.
        attempt: u32,
    },
    /// Close an unanswered request of a cancelled turn: append what had arrived of the answer.
    Interrupt {
        /// The step.
        step: u64,
        /// The try that was under way.
        attempt: u32,
    },
    /// Ask a person, and append the answer.
    Ask {
        /// The call.
        call: CallId,
    },
    /// Run a tool's body, and append its result.
    Run {
        /// The call.
        call: CallId,
    },
    /// Stop a tool's body; its result follows.
    Stop {
        /// The call.
        call: CallId,
    },
    /// Append an event once a time has come.
    Wait {
        /// The time.
        until: Millis,
        /// The event.
        then: Event,
    },
}

impl Action {
    /// Identity of an effect, made of ids only: the same key is never started twice at once.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Append(event) => format!("append:{}", event.kind()),
            Self::Compose { .. } => "compose".to_owned(),
            Self::Consult { call, .. } => format!("consult:{call}"),
            Self::Send { step, attempt, .. } => format!("send:{step}.{attempt}"),
            Self::Backoff { step, attempt } => format!("backoff:{step}.{attempt}"),
            Self::Interrupt { step, attempt } => format!("interrupt:{step}.{attempt}"),
            Self::Ask { call } => format!("ask:{call}"),
            Self::Run { call } => format!("run:{call}"),
            Self::Stop { call } => format!("stop:{call}"),
            Self::Wait { until, .. } => format!("wait:{}", until.0),
        }
    }
}

/// What is owed now. Either exactly one [`Action::Append`], or effects that may run side by side, or
/// nothing: the session is idle.
#[must_use]
pub fn owed(state: &State) -> Vec<Action> {
    let Some(turn) = &state.turn else {
        return match state.inbox.iter().find(|waiting| waiting.queued.wake) {
            Some(waiting) => append(TurnStarted { limits: waiting.queued.limits }),
            None => Vec::new(),
        };
    };
    let mut actions = match (&state.step, &turn.cancel) {
        (Some(step), Some(_)) => cancelled_step(state, step),
        (Some(step), None) => open_step(state, turn, step),
        (None, Some(by)) => cancelled_turn(state, turn, by),
        (None, None) => between_steps(state, turn),
    };
    let only_effects = !actions.iter().any(|action| matches!(action, Action::Append(_)));
    if let (true, None, Some(deadline)) = (only_effects, &turn.cancel, turn.limits.deadline) {
        let then = TurnCancel { by: By(TIME_LIMIT.to_owned()) }.into();
        actions.push(Action::Wait { until: deadline, then });
    }
    actions
}

fn append(event: impl Into<Event>) -> Vec<Action> {
    vec![Action::Append(event.into())]
}

fn between_steps(state: &State, turn: &Turn) -> Vec<Action> {
    if let Some(reason) = &turn.ending {
        return append(TurnEnded { reason: reason.clone() });
    }
    if let Some(claimed) = state.inbox.iter().find(|waiting| waiting.claimed) {
        let queued = &claimed.queued;
        return append(UserMessage { item: Some(queued.item), source: queued.source, content: queued.content.clone() });
    }
    let opens = |waiting: &&Waiting| !turn.begun && waiting.queued.wake;
    let opening = state.inbox.iter().find(opens).map(|waiting| waiting.queued.item);
    let joins = |waiting: &&Waiting| waiting.queued.target == Target::NextStep || Some(waiting.queued.item) == opening;
    let items: Vec<&Waiting> = state.inbox.iter().filter(joins).collect();
    // A notice alone brings no request: it joins one that is owed anyway, or waits for the next turn.
    if items.iter().any(|waiting| turn.unanswered || waiting.queued.wake) {
        return append(InboxClaimed { items: items.into_iter().map(|waiting| waiting.queued.item).collect() });
    }
    if !turn.unanswered {
        return append(TurnEnded { reason: EndReason::Completed });
    }
    if let Some(reason) = limit_reached(state, turn) {
        return append(TurnEnded { reason });
    }
    if turn.repeats.count() >= limits::REPEATS_NOTICE.default && !turn.warned_of_repeats {
        return append(UserMessage { item: None, source: Source::System, content: vec![Part::text(REPEATS_NOTICE)] });
    }
    match epoch_reason(state) {
        Some(reason) => vec![Action::Compose { reason }],
        None => append(StepStarted {}),
    }
}

fn cancelled_turn(state: &State, turn: &Turn, by: &By) -> Vec<Action> {
    if let Some(claimed) = state.inbox.iter().find(|waiting| waiting.claimed) {
        let queued = &claimed.queued;
        return append(UserMessage { item: Some(queued.item), source: queued.source, content: queued.content.clone() });
    }
    let dropped =
        |waiting: &&Waiting| waiting.queued.wake && (waiting.queued.target == Target::NextStep || !turn.begun);
    if let Some(waiting) = state.inbox.iter().find(dropped) {
        return append(InboxRemoved { item: waiting.queued.item, why: RemovedWhy::Cancelled });
    }
    let reason = match (by.0 == TIME_LIMIT, turn.limits.deadline) {
        (true, Some(deadline)) => {
            let maximum = u64::try_from(deadline.0 - turn.started.0).unwrap_or(0);
            EndReason::Limit(reached(state, turn, LimitKind::Time, maximum, maximum))
        }
        _ => EndReason::Aborted { by: by.clone() },
    };
    append(TurnEnded { reason })
}

/// Why a new epoch must open before the next request, if it must.
pub(crate) fn epoch_reason(state: &State) -> Option<EpochReason> {
    let Some(epoch) = &state.epoch else { return Some(EpochReason::Initial) };
    if state.due == Some(EpochReason::Restored) {
        return Some(EpochReason::Restored);
    }
    if let Some(chosen) = &state.model {
        let config = &epoch.config;
        if (&chosen.route, &chosen.model) != (&config.route, &config.model) {
            return Some(EpochReason::ModelChanged);
        }
        let drift = [("wire", chosen.wire != config.wire), ("base_url", chosen.base_url != config.base_url)];
        if let Some((what, _)) = drift.into_iter().find(|(_, differs)| *differs) {
            return Some(EpochReason::ResumeDrift { what: what.to_owned() });
        }
    }
    // A cut that comes together with other tools or another configuration is the lesser of the two.
    let cut = state.cut.map(|cut| match cut {
        CutReason::Undo | CutReason::Redo => EpochReason::Undo,
        CutReason::Repair => EpochReason::Repair,
    });
    state.due.clone().or(cut)
}
