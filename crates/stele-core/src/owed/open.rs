//! What a new owner of the log appends before anything else.

use super::told::{outcome_unknown, partial_answer, refused, unanswered};
use crate::limits::TurnLimits;
use crate::state::{CallStage, Phase, State};
use crate::{Effects, EndReason, Event, InboxQueued, JobMeta, JobStatus, Part, Source, StepEnded, Target, TurnEnded};

/// What a new owner of the log appends before it goes on with an open turn: a body with effects that
/// was started and has no result is never run again by itself.
#[must_use]
pub fn resume(state: &State) -> Vec<Event> {
    let calls = state.step.iter().flat_map(|step| &step.calls);
    calls
        .filter(|call| call.stage == CallStage::Running && call.effects != Effects::None)
        .map(|call| outcome_unknown(state, call.call))
        .chain(lost_jobs(state))
        .collect()
}

/// What tells the model that the jobs it started are gone: they ended with the process that ran them.
fn lost_jobs(state: &State) -> Option<Event> {
    let lost = |job: &JobMeta| JobMeta { status: JobStatus::Lost, ..job.clone() };
    let jobs: Vec<_> = state.open_jobs().map(lost).collect();
    if jobs.is_empty() {
        return None;
    }
    let names: Vec<String> = jobs.iter().map(|job| format!("{} ({})", job.job, job.title)).collect();
    let text = format!(
        "<job-notice>\nNo longer running, since the agent was started anew: {}. What they had done stands; \
         start again what is still needed.\n</job-notice>",
        names.join(", ")
    );
    Some(
        InboxQueued {
            item: state.next_item(),
            source: Source::Job,
            target: Target::NextStep,
            content: vec![Part::text(text)],
            limits: TurnLimits::default(),
            wake: false,
            jobs,
        }
        .into(),
    )
}

/// What closes an open turn, when a new prompt comes instead: the partial text of the answer, a
/// result for every open call, the end of step and turn. Empty when no turn is open.
#[must_use]
pub fn close(state: &State, partial: &str) -> Vec<Event> {
    let mut events = Vec::new();
    if state.turn.is_none() {
        events.extend(lost_jobs(state));
        return events;
    }
    if let Some(step) = &state.step {
        match &step.phase {
            Phase::Answered => events.extend(step.calls.iter().filter_map(|call| match call.stage {
                CallStage::Done => None,
                CallStage::Running => Some(outcome_unknown(state, call.call)),
                _ => Some(refused(call.call, "tool.not_started", "not run: the session was closed first")),
            })),
            Phase::Sending { attempt } => events.push(partial_answer(state, *attempt, partial, None)),
            Phase::Composing => events.push(unanswered(state, 0)),
            Phase::Failed { attempt, .. } | Phase::Backoff { attempt, .. } => events.push(unanswered(state, *attempt)),
        }
        events.push(StepEnded {}.into());
    }
    events.push(TurnEnded { reason: EndReason::Interrupted }.into());
    events.extend(lost_jobs(state));
    events
}
