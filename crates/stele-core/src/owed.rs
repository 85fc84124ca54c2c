//! What is owed next: a pure function of the state.
//!
//! The order of one turn is the order of the functions below. The permission seam (validation, rules,
//! mode) stands where a call is [`Action::Consult`]ed; further seams take their places around it.

use crate::limits::{self, LimitKind};
use crate::state::{CallStage, Phase, State, Step, StepCall, Turn, Waiting};
use crate::{
    ApprovalAsked, Block, By, CallId, CapsSet, CutReason, Effects, EndReason, EpochReason, Event, Failure, FailureCode,
    InboxClaimed, InboxRemoved, LimitNear, LimitReached, Micros, Millis, Part, RemovedWhy, Source, StepEnded,
    StepStarted, Stop, Target, Text, ToolError, ToolErrorClass, ToolResult, TurnCancel, TurnEnded, TurnStarted,
    UserMessage, Verdict, repair, retry,
};

/// Who cancels a turn that ran out of time.
const TIME_LIMIT: &str = "limit:time";

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

/// Why the open step's request cannot be built under the open epoch; other reasons wait for the next step.
fn unsendable(state: &State) -> Option<EpochReason> {
    state.due.clone().filter(|due| matches!(due, EpochReason::Restored | EpochReason::Encoder))
}

fn open_step(state: &State, turn: &Turn, step: &Step) -> Vec<Action> {
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
fn retried(step: &Step, failure: &Failure) -> Option<()> {
    retry::next(failure, step.failed + step.failed_after_output, step.failed_after_output, 0).map(drop)
}

/// What is left of the optional fields when a server refused some that were sent. Each time there are fewer, so a
/// server that refuses one after the other is served in the end.
fn without_refused(state: &State, failure: &Failure) -> Option<CapsSet> {
    if failure.output || failure.code != FailureCode::InvalidRequest {
        return None;
    }
    let sent = state.epoch.as_ref()?.config.optional_fields();
    let (dropped, fields): (Vec<_>, Vec<_>) = sent.into_iter().partition(|field| failure.refused.contains(field));
    (!dropped.is_empty()).then_some(CapsSet { fields, dropped })
}

/// The answer that stands for one that never came, so that roles alternate.
fn unanswered(state: &State, attempt: u32) -> Event {
    partial_answer(state, attempt, "")
}

/// The answer of a request that was cut, with the text that had arrived.
#[must_use]
pub fn partial_answer(state: &State, attempt: u32, text: &str) -> Event {
    let content = if text.is_empty() { Vec::new() } else { vec![Block::Text { text: Text::from(text), native: None }] };
    let producer = state.producer().unwrap_or(crate::Producer { wire: crate::Wire::OpenaiChat, model: String::new() });
    crate::AssistantMessage {
        attempt,
        producer,
        content,
        stop: Stop::Cut,
        usage: None,
        usage_raw: None,
        interrupted: true,
    }
    .into()
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

fn cancelled_step(state: &State, step: &Step) -> Vec<Action> {
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

/// What ends the open step when its next request may cost more than is allowed. A request that is under way was found to
/// be affordable, and nothing of that changes before it ends.
fn unaffordable(state: &State, turn: &Turn, step: &Step) -> Option<Vec<Action>> {
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

/// How the turn ends when the open step's request is given up: the limit that forbids another try, or the last failure
/// when none was left. Nothing when the request was answered.
pub(crate) fn given_up(state: &State, message: &crate::AssistantMessage) -> Option<EndReason> {
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
fn limit_reached(state: &State, turn: &Turn) -> Option<EndReason> {
    let hit = measures(state, turn).into_iter().find(|near| near.observed >= near.maximum);
    if let Some(hit) = hit {
        return Some(EndReason::Limit(reached(state, turn, hit.which, hit.maximum, hit.observed)));
    }
    // The epoch that holds the price is opened first.
    if epoch_reason(state).is_some() { None } else { cost_reached(state, turn) }
}

/// The limit of cost, when one more request under the open epoch could pass it.
fn cost_reached(state: &State, turn: &Turn) -> Option<EndReason> {
    let maximum = turn.limits.cost?;
    match (state.cost(), next_cost(state)) {
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
    // No known tokenizer makes more than a token of two bytes of text on average.
    let input = state.prompt_bytes().div_ceil(2);
    epoch.price?.at_most(input, epoch.max_output?)
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
    .chain(turn.limits.cost.zip(state.cost()).map(|(maximum, spent)| LimitNear {
        which: LimitKind::Cost,
        maximum: maximum.0.saturating_add(1),
        observed: spent.0,
    }))
    .collect()
}

fn reached(state: &State, turn: &Turn, which: LimitKind, maximum: u64, observed: u64) -> LimitReached {
    let mut closest: Vec<LimitNear> = measures(state, turn).into_iter().filter(|near| near.which != which).collect();
    let share = |near: &LimitNear| u128::from(near.observed) * 1_000_000 / u128::from(near.maximum.max(1));
    closest.sort_by_key(|near| std::cmp::Reverse(share(near)));
    closest.truncate(3);
    LimitReached { which, maximum, observed, closest, last_calls: turn.repeats.calls(10) }
}

fn refused(call: CallId, code: &str, message: &str) -> Event {
    result_error(call, code, ToolErrorClass::Refused, message)
}

fn result_error(call: CallId, code: &str, class: ToolErrorClass, message: &str) -> Event {
    ToolResult {
        call,
        content: Text::from(message),
        images: Vec::new(),
        error: Some(ToolError::new(code, class, "")),
        meta: crate::ResultMeta::default(),
    }
    .into()
}

/// What the model is told of a refusal: at most 200 bytes, the identity never cut, no arguments.
fn refusal(state: &State, call: CallId, by: &str, reason: Option<&str>, unanswered: bool) -> Event {
    if unanswered {
        let first = state.counters.unanswered <= 1;
        let message = if first {
            "not run: it needs a person's approval and nobody can be asked here. Go on without it. \
             (It would run with --mode full, or with an --allow rule for it.)"
        } else {
            "not run: it needs a person's approval and nobody can be asked here"
        };
        return refused(call, "permission.unanswered", message);
    }
    let mut message = match reason {
        Some(reason) if by.starts_with("person:") && reason.is_empty() => "Refused by the user".to_owned(),
        Some(reason) if by.starts_with("person:") => format!("Refused by the user: {reason}"),
        Some(reason) => format!("Blocked by rule {by}: {reason}"),
        None => format!("Blocked by rule {by}"),
    };
    if message.len() > 200 {
        let cut = (0..=200).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
        message.truncate(cut.max(by.len() + "Blocked by rule ".len()).min(message.len()));
    }
    refused(call, "guard.blocked", &message)
}

fn unknown_tool(call: CallId, name: &str, offered: &[&str]) -> Event {
    let mut names: Vec<&str> = offered.to_vec();
    names.sort_by_key(|offered| (distance(name, offered), *offered));
    names.truncate(3);
    let name: String = name.chars().take(64).collect();
    let message = format!("there is no tool {name:?}; the nearest are {}", names.join(", "));
    result_error(call, "tool.unknown", ToolErrorClass::Argument, &message)
}

/// Edit distance of two short names.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, left) in one.chars().take(64).enumerate() {
        let mut corner = row[0];
        row[0] = index + 1;
        for (at, right) in other.iter().enumerate() {
            let substituted = corner + usize::from(left != *right);
            corner = row[at + 1];
            row[at + 1] = substituted.min(row[at] + 1).min(corner + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

/// What a new owner of the log appends before it goes on with an open turn: a body with effects that
/// was started and has no result is never run again by itself.
#[must_use]
pub fn resume(state: &State) -> Vec<Event> {
    let calls = state.step.iter().flat_map(|step| &step.calls);
    calls
        .filter(|call| call.stage == CallStage::Running && call.effects != Effects::None)
        .map(|call| outcome_unknown(call.call))
        .chain(lost_jobs(state))
        .collect()
}

/// What tells the model that the jobs it started are gone: they ended with the process that ran them.
fn lost_jobs(state: &State) -> Option<Event> {
    let lost = |job: &crate::JobMeta| crate::JobMeta { status: crate::JobStatus::Lost, ..job.clone() };
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
        crate::InboxQueued {
            item: state.next_item(),
            source: Source::Job,
            target: Target::NextStep,
            content: vec![Part::text(text)],
            limits: crate::limits::TurnLimits::default(),
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
                CallStage::Running => Some(outcome_unknown(call.call)),
                _ => Some(refused(call.call, "tool.not_started", "not run: the session was closed first")),
            })),
            Phase::Sending { attempt } => events.push(partial_answer(state, *attempt, partial)),
            Phase::Composing => events.push(unanswered(state, 0)),
            Phase::Failed { attempt, .. } | Phase::Backoff { attempt, .. } => events.push(unanswered(state, *attempt)),
        }
        events.push(StepEnded {}.into());
    }
    events.push(TurnEnded { reason: EndReason::Interrupted }.into());
    events.extend(lost_jobs(state));
    events
}

fn outcome_unknown(call: CallId) -> Event {
    result_error(
        call,
        "tool.outcome_unknown",
        ToolErrorClass::OutcomeUnknown,
        "outcome_unknown: this call was started and the agent was interrupted before it ended. \
         Check what it did before you repeat it.",
    )
}
