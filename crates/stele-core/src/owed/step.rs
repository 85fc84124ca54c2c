//! The open step: its request, then its calls.

use super::limit::{cost_reached, unaffordable};
use super::told::{refusal, refused, unanswered, unknown_tool};
use super::{Action, append};
use crate::limits;
use crate::state::{CallStage, Phase, State, Step, StepCall, Turn};
use crate::{ApprovalAsked, CapsSet, EpochReason, Failure, FailureCode, StepEnded, Verdict, repair, retry};

/// Why the open step's request cannot be built under the open epoch; other reasons wait for the next step.
fn unsendable(state: &State) -> Option<EpochReason> {
    state.due.clone().filter(|due| matches!(due, EpochReason::Restored | EpochReason::Encoder))
}

pub(super) fn open_step(state: &State, turn: &Turn, step: &Step) -> Vec<Action> {
    let number = step.number;
    let sends = matches!(step.phase, Phase::Composing | Phase::Sending { .. } | Phase::Backoff { .. });
    if let Some(reason) = unsendable(state).filter(|_| sends) {
        return vec![Action::Compose { reason }];
    }
    if let Some(end) = unaffordable(state, turn, step) {
        return end;
    }
    match &step.phase {
        Phase::Composing => vec![Action::Send { step: number, attempt: 1, not_before: None }],
        Phase::Sending { attempt } => vec![Action::Send { step: number, attempt: *attempt, not_before: None }],
        // What is sent after a repair opens an epoch.
        Phase::Backoff { .. } if state.cut.is_some() => vec![Action::Compose { reason: EpochReason::Repair }],
        Phase::Backoff { attempt, at } => {
            vec![Action::Send { step: number, attempt: *attempt, not_before: Some(*at) }]
        }
        Phase::Failed { attempt, failure } => {
            if !step.repaired
                && let Some(cut) = repair::images(state, failure)
            {
                return append(cut);
            }
            if let Some(set) = without_refused(state, failure) {
                return append(set);
            }
            match retried(step, failure).filter(|()| cost_reached(state, turn).is_none()) {
                Some(()) => vec![Action::Backoff { step: number, attempt: *attempt }],
                None => append(unanswered(state, *attempt)),
            }
        }
        Phase::Answered => calls(state, turn, step),
    }
}

/// Whether the failed request may be tried again, as far as the failure goes.
pub(super) fn retried(step: &Step, failure: &Failure) -> Option<()> {
    retry::next(failure, step.failed + step.failed_after_output, step.failed_after_output, 0).map(drop)
}

/// What is left of the optional fields when a server refused some that were sent. Each time there are fewer, so a
/// server that refuses one after the other is served in the end.
fn without_refused(state: &State, failure: &Failure) -> Option<CapsSet> {
    if failure.output || failure.code != FailureCode::InvalidRequest {
        return None;
    }
    let mut config = state.epoch.as_ref()?.config.clone();
    let mut dropped = config.optional_fields();
    dropped.retain(|field| failure.refused.contains(field));
    config.withheld.extend(dropped.iter().copied());
    // One may need another: without marks there is nothing to say about their life.
    (!dropped.is_empty()).then(|| CapsSet { fields: config.optional_fields(), dropped })
}

fn calls(state: &State, turn: &Turn, step: &Step) -> Vec<Action> {
    let undecided =
        step.calls.iter().find(|call| !matches!(call.stage, CallStage::Cleared | CallStage::Running | CallStage::Done));
    if let Some(call) = undecided {
        return decide(state, turn, call);
    }
    let Some(group) = open_group(&step.calls) else { return append(StepEnded {}) };
    let allowed = turn.limits.executions.unwrap_or(limits::EXECUTIONS.default);
    let waiting = |call: &&StepCall| call.stage == CallStage::Cleared;
    if turn.executions >= allowed
        && let Some(call) = group.iter().find(waiting)
    {
        return append(refused(
            call.call,
            "limit.executions",
            "not run: this turn has reached its limit of tool executions",
        ));
    }
    let room = usize::try_from(limits::PARALLEL.default).unwrap_or(1);
    group
        .iter()
        .filter(|call| call.stage != CallStage::Done)
        .take(room)
        .map(|call| Action::Run { call: call.call })
        .collect()
}

/// The first group of calls that is not done: neighbours that may run in parallel, or one alone.
fn open_group(calls: &[StepCall]) -> Option<&[StepCall]> {
    calls
        .chunk_by(|one, next| one.parallel && next.parallel)
        .find(|group| group.iter().any(|call| call.stage != CallStage::Done))
}

fn decide(state: &State, turn: &Turn, call: &StepCall) -> Vec<Action> {
    let id = call.call;
    match &call.stage {
        CallStage::Received => {
            let Some(record) = state.calls.get(&id) else {
                return append(refused(id, "tool.not_started", "not run: the call was not recorded whole"));
            };
            let offered = state.epoch.iter().flat_map(|epoch| &epoch.header.tools);
            let names: Vec<&str> = offered.map(|tool| tool.name.as_str()).collect();
            if !names.contains(&record.name.as_str()) {
                return append(unknown_tool(id, &record.name, &names));
            }
            let circling = turn.repeats.count() >= limits::REPEATS_ASK.default && turn.repeats.continues(record);
            let at_least = if circling { Verdict::Ask } else { Verdict::Allow };
            vec![Action::Consult { call: id, at_least }]
        }
        CallStage::Gated { .. } => append(ApprovalAsked { call: id }),
        CallStage::Asked => vec![Action::Ask { call: id }],
        CallStage::Refused { by, reason, unanswered } => append(refusal(state, id, by, reason.as_deref(), *unanswered)),
        CallStage::Cleared | CallStage::Running | CallStage::Done => Vec::new(),
    }
}

pub(super) fn cancelled_step(state: &State, step: &Step) -> Vec<Action> {
    match &step.phase {
        Phase::Composing => append(unanswered(state, 0)),
        Phase::Failed { attempt, .. } | Phase::Backoff { attempt, .. } => append(unanswered(state, *attempt)),
        Phase::Sending { attempt } => vec![Action::Interrupt { step: step.number, attempt: *attempt }],
        Phase::Answered => {
            let idle = step.calls.iter().find(|call| !matches!(call.stage, CallStage::Running | CallStage::Done));
            if let Some(call) = idle {
                return append(refused(call.call, "tool.not_started", "not run: the turn was stopped first"));
            }
            let running: Vec<Action> = step
                .calls
                .iter()
                .filter(|call| call.stage == CallStage::Running)
                .map(|call| Action::Stop { call: call.call })
                .collect();
            if running.is_empty() { append(StepEnded {}) } else { running }
        }
    }
}
