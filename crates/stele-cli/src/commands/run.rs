//! `stele run`: one prompt in, an answer out. The demonstration goes through [`execute`] as well.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stele_agent::{Agent, Approvals, Command, OpenPolicy};
use stele_core::limits::TurnLimits;
use stele_core::{By, CallStage, EndReason, Millis, Mode, Phase, Source, Tool};
use stele_tools::Jobs;
use tokio::sync::{mpsc, oneshot};

use crate::args::{Global, LimitArgs, OutputArgs, RunArgs};
use crate::commands::undo;
use crate::config::WarnAbove;
use crate::cut::{self, Settled};
use crate::drive::{self, Conversation, Ending, Front};
use crate::error::{CommandError, ErrorJson, Kind, Result, advice};
use crate::output::{JsonView, Look, View};
use crate::person::{Pending, Person, Question, Typing};
use crate::piped;
use crate::prompt::{self, Prompts};
use crate::render::json::{HeadJson, LimitJson, RunResult, Status};
use crate::render::summary::{self, GoesOn};
use crate::render::text::{Choice, TextView};
use crate::runtime::runtime;
use crate::schema::Schema;
use crate::sessions::{self, Asker, Wanted, Which};
use crate::setup::{self, Environment, Setup};
use crate::signals::Signals;
use crate::tally::Tally;

/// What is to be done, whoever asks for it.
pub struct Plan {
    pub which: Which,
    pub wanted: Wanted,
    /// Mode of a new session.
    pub mode: Mode,
    pub folder: PathBuf,
    pub prompts: Prompts,
    pub limits: TurnLimits,
    pub schema: Option<Schema>,
    /// What leaving the provider's cache may cost before somebody is asked.
    pub warn_above: WarnAbove,
    /// What was not loaded for lack of trust.
    pub skipped: Vec<String>,
    /// What runs in the background of this process.
    pub jobs: Arc<Jobs>,
}

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

/// `stele run`.
pub fn main(environment: Environment, global: &Global, args: RunArgs) -> Result<u8> {
    let look = environment.look(global.color);
    let json = args.output.json;
    match start(environment, global, args) {
        Ok(exit) => Ok(exit),
        Err(error) if json && error.kind != Kind::Closed => {
            // The last line is there whatever happens.
            let mut view = View::Json(JsonView::new(Box::new(io::stdout()), false));
            view.result(nothing_ran(&error));
            crate::app::report(&error, look.stderr());
            Ok(error.kind.exit())
        }
        Err(error) => Err(error),
    }
}

fn start(environment: Environment, global: &Global, args: RunArgs) -> Result<u8> {
    let goes_on = args.session.continue_latest || args.session.resume.is_some();
    let argument = args.prompt.as_deref();
    let style = environment.look(global.color).stderr();
    let prompts = piped::appended(prompt::find(argument, args.input_format, goes_on)?, argument, style)?;
    let schema = args.output_schema.as_deref().map(Schema::read).transpose()?;
    let setup = Setup::new(environment, global, &args.session)?;
    let routes = setup.routes()?;
    let (approvals, ask, person) = person(&args.output, setup.look);
    let runtime = runtime()?;
    let exit = runtime.block_on(async {
        let routes = with_local(&setup, routes).await?;
        let tools = setup.tools(ask);
        let agent = setup.agent(routes, approvals, tools.clone())?;
        let which = Which::from_flags(&args.session, agent.store(), &setup.folder, Asker::Run)?;
        let mut skipped = setup.config.skipped.clone();
        if which == Which::New || args.session.model.is_some() {
            let route = setup::choose(agent.routes(), args.session.model.as_deref())?.0;
            setup.has_key(route)?;
            skipped.extend(route.ignored());
        }
        let plan = Plan {
            which,
            wanted: Wanted::from_flags(&args.session),
            mode: setup.config.mode,
            folder: setup.folder.clone(),
            prompts,
            limits: limits(&args.session.limits, setup.config.turn_limits),
            schema,
            warn_above: setup.config.warn_above,
            skipped,
            jobs: Arc::clone(&setup.jobs),
        };
        let view = view(&setup, &args.output, tools, plan.schema.is_some());
        let mut front = Front { view, person, signals: Signals::new()? };
        let outcome = execute(&agent, plan, &mut front).await;
        finish(&setup, &args.output, &mut front.view, outcome)
    });
    // Nothing that is left over is waited for.
    runtime.shutdown_background();
    exit
}

/// Somebody, when standard input and standard error are a terminal and nothing has to be parsed.
fn person(output: &OutputArgs, look: Look) -> (Approvals, Option<stele_tools::Ask>, Person) {
    if output.json || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return (Approvals::Nobody, None, Person::nobody());
    }
    let (ask, questions) = asker();
    (Approvals::Person, Some(ask), Person::present(questions, Typing::Answers, !look.dumb))
}

/// How the tool `ask` reaches a person.
pub fn asker() -> (stele_tools::Ask, mpsc::UnboundedReceiver<Question>) {
    let (sender, questions) = mpsc::unbounded_channel();
    let ask: stele_tools::Ask = Arc::new(move |text| {
        let (answer, answered) = oneshot::channel();
        let asked = sender.send(Question { text, answer });
        Box::pin(async move {
            asked.ok()?;
            answered.await.ok().flatten()
        })
    });
    (ask, questions)
}

/// With no route at all, the servers of this machine are looked for, so that the error can name them.
pub async fn with_local(setup: &Setup, routes: Vec<stele_provider::Route>) -> Result<Vec<stele_provider::Route>> {
    if routes.is_empty() {
        return Err(setup.no_route(stele_provider::probe_local().await));
    }
    Ok(routes)
}

/// What bounds the turns of a run; `set` is what the configuration says, flags included where it knows them.
pub fn limits(args: &LimitArgs, set: TurnLimits) -> TurnLimits {
    TurnLimits {
        tokens: args.max_tokens,
        cost: args.max_cost,
        allow_unpriced: args.allow_unpriced,
        deadline: args.timeout.map(|time| {
            stele_core::Millis(setup::now().0.saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)))
        }),
        ..set
    }
}

/// The view that the flags ask for.
pub fn view(setup: &Setup, output: &OutputArgs, tools: Vec<Arc<dyn Tool>>, hold_answer: bool) -> View {
    if output.json {
        return View::Json(JsonView::new(Box::new(io::stdout()), output.deltas));
    }
    let choice = Choice { quiet: output.quiet, hold_answer, progress: true, ..Choice::default() };
    View::Text(Box::new(text_view(setup, choice, tools)))
}

/// A text view of this process.
pub fn text_view(setup: &Setup, choice: Choice, tools: Vec<Arc<dyn Tool>>) -> TextView {
    let mut text = TextView::new(setup.look.screen(), choice, tools, setup.folder.clone());
    text.previews = stele_tools::PreviewOptions {
        home: setup.environment.get("HOME").map(PathBuf::from),
        edit: setup.config.edit.clone(),
    };
    let routes = setup.routes().unwrap_or_default();
    let keys = routes.into_iter().filter_map(|route| match route.key {
        stele_provider::KeySource::Env(variable) => Some((route.name, variable)),
        stele_provider::KeySource::None => None,
    });
    text.keys = keys.collect();
    text
}

/// Does it. Whatever happens there is an outcome.
pub async fn execute(agent: &Arc<Agent>, mut plan: Plan, front: &mut Front) -> Outcome {
    let policy = if plan.prompts.is_none() { OpenPolicy::Continue } else { OpenPolicy::Close };
    let opened = sessions::open(agent, &plan.which, policy, &plan.folder, plan.mode, &plan.wanted);
    let mut conversation = match opened {
        Ok(conversation) => conversation,
        Err(error) => return failed_to_start(error, plan.skipped),
    };
    let mut run = Run {
        tally: Tally::beginning_at(conversation.driver.state()),
        structured: None,
        ending: Ending::Idle,
        schema_faults: None,
    };
    seed(&conversation, agent, front);
    undo::tell_finished(&mut conversation.driver, &mut front.view);
    let error = run.prompts(&mut conversation, &mut plan, front).await.err();
    let error = error.map(|error| if run.tally.attempts > 0 { error.after_work() } else { error });
    let outcome = run.outcome(agent, &conversation, plan, error);
    conversation.driver.leave();
    outcome
}

fn failed_to_start(error: CommandError, skipped: Vec<String>) -> Outcome {
    let mut result = nothing_ran(&error);
    result.skipped = skipped;
    Outcome { result, tally: Tally::default(), exit: error.kind.exit(), goes_on: true, error: Some(error) }
}

/// Calls that are open in the log are known to the view, and a question that was left is asked again.
fn seed(conversation: &Conversation, agent: &Arc<Agent>, front: &mut Front) {
    let Front { view, person, .. } = front;
    let state = conversation.driver.state();
    if let (View::Text(text), Some(session)) = (&mut *view, state.session()) {
        text.folder = Path::new(&session.cwd).to_owned();
    }
    if let View::Text(text) = &mut *view {
        text.seed(agent.store(), conversation.driver.session(), state, conversation.from);
    }
    let Some(step) = state.step() else { return };
    if let (View::Text(text), Phase::Backoff { attempt, at }) = (&mut *view, &step.phase) {
        let time = Millis(at.0.saturating_sub(setup::now().0));
        if time.0 > 0 {
            text.waits(time, *attempt);
        }
    }
    let waiting: Vec<_> =
        step.calls.iter().filter(|call| call.stage == CallStage::Asked).map(|call| call.call).collect();
    if person.is_present() {
        person.pending.extend(waiting.iter().map(|call| Pending::Approval(*call)));
        drive::ask(view, person);
    }
}

struct Run {
    tally: Tally,
    structured: Option<serde_json::Value>,
    ending: Ending,
    schema_faults: Option<Vec<String>>,
}

impl Run {
    async fn prompts(&mut self, conversation: &mut Conversation, plan: &mut Plan, front: &mut Front) -> Result<()> {
        let sends = !plan.prompts.is_none() || conversation.driver.state().turn().is_some();
        let settled = if sends { cut::settle(conversation, front, plan.warn_above).await? } else { Settled::GoesOn };
        match settled {
            Settled::GoesOn => {}
            Settled::Stopped(_) => {
                self.ending = Ending::AtOnce;
                return Ok(());
            }
            Settled::Declined => {
                return Err(CommandError::usage(
                    "cache.declined",
                    "nothing was sent: the new cache prefix was declined",
                )
                .hint("leave --model out to go on with the session's own model")
                .hint("cache.warn_above in config.toml says from what cost on this is asked"));
            }
        }
        if plan.prompts.is_none() {
            self.ending = conversation.go_on(front, &mut self.tally).await?;
            return Ok(());
        }
        while let Some(prompt) = tokio::select! {
            biased;
            _ = front.signals.next() => {
                // Between two prompts nothing is open that would have to be ended.
                self.ending = Ending::AtOnce;
                return Ok(());
            }
            prompt = plan.prompts.next() => prompt,
        } {
            let prompt = prompt?;
            let text = plan.schema.as_ref().map_or(prompt.clone(), |schema| schema.ask(&prompt));
            self.say(text, Source::Person, plan.limits, conversation, front).await?;
            if let Some(schema) = plan.schema.as_ref().filter(|_| self.goes_on()) {
                self.structured = None;
                self.schema_faults = None;
                if let Err(faults) = schema.check(&self.tally.text) {
                    let again = schema.ask_again(&faults);
                    self.say(again, Source::System, plan.limits, conversation, front).await?;
                }
                match schema.check(&self.tally.text) {
                    Ok(value) => self.structured = Some(value),
                    Err(faults) => self.schema_faults = Some(faults).filter(|_| self.goes_on()),
                }
            }
            if !self.goes_on() || self.schema_faults.is_some() {
                break;
            }
        }
        Ok(())
    }

    async fn say(
        &mut self,
        text: String,
        source: Source,
        limits: TurnLimits,
        conversation: &mut Conversation,
        front: &mut Front,
    ) -> Result<()> {
        conversation.driver.command(Command::Prompt { text, source, limits })?;
        self.ending = conversation.go_on(front, &mut self.tally).await?;
        Ok(())
    }

    /// True when the next prompt may follow.
    fn goes_on(&self) -> bool {
        self.ending == Ending::Idle && matches!(self.tally.end, Some(EndReason::Completed))
    }

    fn outcome(
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
