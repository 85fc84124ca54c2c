//! How a run went: its result, its exit code, and what is said of them.

use std::sync::Arc;

use stele_agent::Agent;
use stele_core::{By, EndReason};

use super::{Plan, Run};
use crate::args::OutputArgs;
use crate::drive::{Conversation, Ending};
use crate::error::{CommandError, ErrorJson, Kind, Result, advice};
use crate::output::View;
use crate::render::json::{HeadJson, LimitJson, RunResult, Status};
use crate::render::summary::{self, GoesOn};
use crate::render::text::TextView;
use crate::setup::Setup;
use crate::tally::Tally;

/// How it went.
pub struct Outcome {
    pub result: RunResult,
    pub tally: Tally,
    pub exit: u8,
    /// False where the model goes away with this process.
    pub goes_on: bool,
    /// What kept it from ending by itself.
    pub error: Option<CommandError>,
}

impl Run {
    pub(super) fn outcome(
        mut self,
        agent: &Arc<Agent>,
        conversation: &Conversation,
        plan: Plan,
        error: Option<CommandError>,
    ) -> Outcome {
        let driver = &conversation.driver;
        // A session with nothing owed ended before this run.
        let end = self.tally.end.clone().or_else(|| driver.state().last_end().cloned());
        let end = if self.ending == Ending::AtOnce { Some(EndReason::Aborted { by: By::person("cli") }) } else { end };
        let (mut status, mut exit, mut told) = ended(end.as_ref(), !self.tally.refused.is_empty());
        let error = error.or_else(|| {
            let faults = self.schema_faults.filter(|_| status != Status::Cancelled)?;
            let message = format!("the final answer does not match the schema: {}", faults.join("; "));
            Some(CommandError::failed("run.schema_mismatch", message))
        });
        if let Some(error) = &error {
            (status, exit, told) = (Status::Failed, error.kind.exit(), Some(error.json()));
        }
        self.tally.count_net(|hash| agent.store().blob_bytes(hash).ok().flatten());
        let stored = driver.is_stored();
        let head = agent.store().session(driver.session()).ok().filter(|_| stored).map(|row| row.head);
        let text = if self.tally.end.is_some() { self.tally.text.clone() } else { driver.state().last_text() };
        let jobs = driver.state().open_jobs().map(|job| format!("{}: {}", job.job, job.title));
        let result = RunResult {
            status,
            stop: end.as_ref().map(|end| stop(end).to_owned()),
            text,
            structured: self.structured,
            error: told,
            usage: *self.tally.account.usage(),
            coverage: self.tally.account.coverage(),
            cost: self.tally.account.cost(),
            hit_rate: self.tally.hit_rate(),
            local_reuse: self.tally.local_reuse,
            model: driver.state().model().map(|model| format!("{}/{}", model.route, model.model)),
            session: stored.then(|| driver.session().to_string()),
            head: head.map(|head| HeadJson { seq: head.seq.0, hash: head.hash.to_string() }),
            steps: self.tally.steps,
            executions: self.tally.executions,
            attempts: self.tally.attempts,
            changed_files: self.tally.files.values().cloned().collect(),
            not_covered: self.tally.not_covered.clone(),
            refused: self.tally.refused.clone(),
            skipped: plan.skipped,
            limit: end.as_ref().and_then(limit),
            jobs: jobs.chain(plan.jobs.left_running(driver.session())).collect(),
        };
        Outcome { result, tally: self.tally, exit, goes_on: true, error }
    }
}

/// Status, exit code and error of a turn's end. A session without a turn has nothing to complain of.
fn ended(end: Option<&EndReason>, refused: bool) -> (Status, u8, Option<ErrorJson>) {
    match end {
        None | Some(EndReason::Completed) if refused => (Status::Refused, 3, None),
        None | Some(EndReason::Completed) => (Status::Succeeded, 0, None),
        Some(EndReason::Failed { code, message }) => {
            let message = advice(code).map_or_else(|| message.clone(), |advice| format!("{message}; {advice}"));
            (Status::Failed, 1, Some(CommandError::failed(code, message).json()))
        }
        Some(EndReason::Limit(_) | EndReason::MaxOutput) => (Status::Limit, 4, None),
        Some(EndReason::Aborted { .. } | EndReason::Interrupted) => (Status::Cancelled, 130, None),
    }
}

fn limit(end: &EndReason) -> Option<LimitJson> {
    match end {
        EndReason::Limit(limit) => {
            Some(LimitJson { which: limit.which, maximum: limit.maximum, observed: limit.observed })
        }
        _ => None,
    }
}

fn stop(end: &EndReason) -> &'static str {
    match end {
        EndReason::Completed => "completed",
        EndReason::Aborted { .. } => "aborted",
        EndReason::Failed { .. } => "failed",
        EndReason::Limit(_) => "limit",
        EndReason::MaxOutput => "max_output",
        EndReason::Interrupted => "interrupted",
    }
}

/// The outcome of a session that could not be opened.
pub(super) fn failed_to_start(error: CommandError, skipped: Vec<String>) -> Outcome {
    let mut result = nothing_ran(&error);
    result.skipped = skipped;
    Outcome { result, tally: Tally::default(), exit: error.kind.exit(), goes_on: true, error: Some(error) }
}

/// The result of a run that did not begin.
pub fn nothing_ran(error: &CommandError) -> RunResult {
    RunResult {
        status: Status::Failed,
        stop: None,
        text: String::new(),
        structured: None,
        error: Some(error.json()),
        usage: stele_core::Usage::default(),
        coverage: stele_core::Coverage::default(),
        cost: Some(stele_core::Micros(0)),
        hit_rate: None,
        local_reuse: stele_core::Reuse::default(),
        model: None,
        session: None,
        head: None,
        steps: 0,
        executions: 0,
        attempts: 0,
        changed_files: Vec::new(),
        not_covered: Vec::new(),
        refused: Vec::new(),
        skipped: Vec::new(),
        limit: None,
        jobs: Vec::new(),
    }
}

/// Writes the end: the summary or the last line, and what went wrong.
pub fn finish(setup: &Setup, output: &OutputArgs, view: &mut View, outcome: Outcome) -> Result<u8> {
    let closed = outcome.error.as_ref().is_some_and(|error| error.kind == Kind::Closed);
    if let View::Text(text) = &mut *view {
        if let Some(structured) = &outcome.result.structured {
            text.screen.answer(&format!("{structured}\n"));
        }
        text.screen.end_line();
        if !output.quiet && !closed {
            close(text, &outcome);
        }
    }
    if let Some(error) = &outcome.error
        && !closed
    {
        crate::app::report(error, setup.look.stderr());
    }
    view.result(outcome.result);
    match view.check() {
        Err(error) if error.kind == Kind::Failed => Err(error),
        Err(_) => Ok(0),
        Ok(()) => Ok(outcome.exit),
    }
}

/// The closing summary of something that ran.
fn close(text: &mut TextView, outcome: &Outcome) {
    if outcome.tally.started.is_none() {
        if outcome.error.is_none() {
            let session = outcome.result.session.as_deref().unwrap_or("ID");
            text.warn(&format!(
                "nothing is owed in this session; the exit code is that of its last turn\nto go on: stele run --resume {session} \"…\""
            ));
        }
        return;
    }
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let goes_on = match here {
        _ if !outcome.goes_on => GoesOn::Never,
        Ok(here) if here != text.folder => GoesOn::Elsewhere,
        _ => GoesOn::Here,
    };
    let lines = summary::lines(
        &outcome.tally,
        &outcome.result,
        &text.folder,
        goes_on,
        text.screen.note_columns(),
        text.screen.style,
    );
    text.warn(&format!("\n{}", lines.join("\n")));
}

#[cfg(test)]
mod tests {
    use stele_core::LimitReached;
    use stele_core::limits::LimitKind;

    use super::*;

    #[test]
    fn exit_codes_follow_the_table() {
        let limit = EndReason::Limit(LimitReached {
            which: LimitKind::Steps,
            maximum: 1,
            observed: 1,
            closest: Vec::new(),
            last_calls: Vec::new(),
        });
        let failed = EndReason::Failed { code: "provider.auth".to_owned(), message: "provider.auth: no".to_owned() };
        let check = |end: &EndReason, refused, status, exit| {
            let (got, code, _) = ended(Some(end), refused);
            assert_eq!((got, code), (status, exit), "{end:?}");
        };
        check(&EndReason::Completed, false, Status::Succeeded, 0);
        check(&EndReason::Completed, true, Status::Refused, 3);
        check(&failed, true, Status::Failed, 1);
        check(&limit, true, Status::Limit, 4);
        check(&EndReason::MaxOutput, false, Status::Limit, 4);
        check(&EndReason::Aborted { by: By::person("cli") }, true, Status::Cancelled, 130);
        assert_eq!(ended(Some(&failed), false).2.unwrap().message, "no");
    }
}
