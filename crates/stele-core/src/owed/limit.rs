//! What ends a turn before the model is done: its limits, and a request that was given up.

use super::step::retried;
use super::told::unanswered;
use super::{Action, append, epoch_reason};
use crate::account::Terms;
use crate::limits::{self, LimitKind};
use crate::state::{Phase, State, Step, Turn};
use crate::{AssistantMessage, EndReason, LimitNear, LimitReached, Micros};

/// Who cancels a turn that ran out of time.
pub(super) const TIME_LIMIT: &str = "limit:time";

/// What ends the open step when its next request may cost more than is allowed. A request that is under way was found to
/// be affordable, and nothing of that changes before it ends.
pub(super) fn unaffordable(state: &State, turn: &Turn, step: &Step) -> Option<Vec<Action>> {
    let number = step.number;
    match &step.phase {
        Phase::Answered | Phase::Failed { .. } => None,
        Phase::Backoff { .. } if state.cut.is_some() => None,
        _ if cost_reached(state, turn).is_none() => None,
        Phase::Composing => Some(append(unanswered(state, 0))),
        Phase::Sending { attempt } => Some(vec![Action::Interrupt { step: number, attempt: *attempt }]),
        Phase::Backoff { attempt, .. } => Some(append(unanswered(state, *attempt))),
    }
}

/// Whether the open step's request may be sent once more though nobody saw what became of it, which is for a driver to ask
/// that has not sent it itself: the lost try may have been billed, and counts with the most it can have cost.
#[must_use]
pub fn may_send_again(state: &State) -> bool {
    let lost = state.step.as_ref().is_some_and(|step| matches!(step.phase, Phase::Sending { .. }));
    let turn = state.turn.as_ref().filter(|_| lost);
    turn.is_none_or(|turn| cost_reached_from(state, turn, state.account.at_most_if_lost()).is_none())
}

/// How the turn ends when the open step's request is given up: the limit that forbids another try, or the last failure
/// when none was left. Nothing when the request was answered.
pub(crate) fn given_up(state: &State, message: &AssistantMessage) -> Option<EndReason> {
    let (turn, step) = (state.turn.as_ref()?, state.step.as_ref()?);
    match &step.phase {
        Phase::Failed { failure, .. } => {
            let limit = retried(step, failure).and_then(|_| cost_reached(state, turn));
            Some(match limit {
                Some(EndReason::Failed { code, message }) => {
                    let message = format!("{message}; the last request had failed: {}", failure.message.as_str());
                    EndReason::Failed { code, message }
                }
                Some(limit) => limit,
                None => EndReason::Failed {
                    code: failure.code.code().to_owned(),
                    message: failure.message.as_str().to_owned(),
                },
            })
        }
        Phase::Answered => None,
        _ => cost_reached(state, turn).filter(|_| message.interrupted),
    }
}

/// The limit that keeps the next request from being sent, if one does.
pub(super) fn limit_reached(state: &State, turn: &Turn) -> Option<EndReason> {
    let hit = measures(state, turn).into_iter().find(|near| near.observed >= near.maximum);
    if let Some(hit) = hit {
        return Some(EndReason::Limit(reached(state, turn, hit.which, hit.maximum, hit.observed)));
    }
    // The epoch that holds the price is opened first.
    if epoch_reason(state).is_some() { None } else { cost_reached(state, turn) }
}

/// The limit of cost, when one more request under the open epoch could pass it.
pub(super) fn cost_reached(state: &State, turn: &Turn) -> Option<EndReason> {
    cost_reached_from(state, turn, state.cost_at_most())
}

/// The same on top of what was `spent` at most.
fn cost_reached_from(state: &State, turn: &Turn, spent: Option<Micros>) -> Option<EndReason> {
    let maximum = turn.limits.cost?;
    match (spent, next_cost(state)) {
        (Some(spent), Some(next)) => {
            let most = spent.0.saturating_add(next.0);
            (most > maximum.0).then(|| EndReason::Limit(reached(state, turn, LimitKind::Cost, maximum.0, most)))
        }
        _ if turn.limits.allow_unpriced => None,
        _ => Some(EndReason::Failed { code: "limit.unpriced".to_owned(), message: unpriced(state) }),
    }
}

/// Why the cost of the next request has no bound, and what to do.
fn unpriced(state: &State) -> String {
    let Some(epoch) = &state.epoch else { return String::new() };
    let model = &epoch.config.model;
    match (epoch.price, epoch.max_output) {
        (None, _) => format!(
            "{model} has no known price, so its cost cannot be limited; set `price` for the route, or confirm with --allow-unpriced"
        ),
        (_, None) => format!(
            "the longest answer of {model} is not known, so its cost cannot be limited; set `max_output_tokens` in the route's parameters, or confirm with --allow-unpriced"
        ),
        _ => {
            "a part of what was spent has no known price, so the cost cannot be limited; confirm with --allow-unpriced"
                .to_owned()
        }
    }
}

/// The most the next request can cost: nothing read from the cache, the answer as long as it may be.
fn next_cost(state: &State) -> Option<Micros> {
    let epoch = state.epoch.as_ref()?;
    Terms::of(&epoch.config, epoch.price, epoch.max_output).most(state.input_at_most())
}

/// Every counted limit with what was observed.
fn measures(state: &State, turn: &Turn) -> Vec<LimitNear> {
    let near = |which, maximum: Option<u64>, observed| maximum.map(|maximum| LimitNear { which, maximum, observed });
    [
        near(LimitKind::Steps, Some(turn.limits.steps.unwrap_or(limits::STEPS.default)), turn.steps),
        near(
            LimitKind::Executions,
            Some(turn.limits.executions.unwrap_or(limits::EXECUTIONS.default)),
            turn.executions,
        ),
        near(LimitKind::Repeats, Some(limits::REPEATS_END.default), turn.repeats.count()),
        near(LimitKind::FailedSteps, Some(limits::FAILED_STEPS.default), turn.failed_steps),
        near(LimitKind::Tokens, turn.limits.tokens, turn.tokens),
    ]
    .into_iter()
    .flatten()
    .chain(turn.limits.cost.zip(state.cost_at_most()).map(|(maximum, spent)| LimitNear {
        which: LimitKind::Cost,
        maximum: maximum.0.saturating_add(1),
        observed: spent.0,
    }))
    .collect()
}

pub(super) fn reached(state: &State, turn: &Turn, which: LimitKind, maximum: u64, observed: u64) -> LimitReached {
    let mut closest: Vec<LimitNear> = measures(state, turn).into_iter().filter(|near| near.which != which).collect();
    let share = |near: &LimitNear| u128::from(near.observed) * 1_000_000 / u128::from(near.maximum.max(1));
    closest.sort_by_key(|near| std::cmp::Reverse(share(near)));
    closest.truncate(3);
    LimitReached { which, maximum, observed, closest, last_calls: turn.repeats.calls(10) }
}
