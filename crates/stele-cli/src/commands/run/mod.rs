//! `stele run`: one prompt in, an answer out. The demonstration goes through [`execute`] as well.

mod again;
mod result;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stele_agent::{Agent, ChangedSince, Command, OpenPolicy};
use stele_core::limits::TurnLimits;
use stele_core::{CallStage, EndReason, Millis, Mode, Phase, Restoring, Source};
use stele_tools::Jobs;

use crate::args::{Global, RunArgs};
use crate::chosen::Chosen;
use crate::commands::undo;
use crate::config::WarnAbove;
use crate::cut::{self, Settled};
use crate::drive::{self, Conversation, Ending, Front};
use crate::error::{CommandError, Kind, Result};
use crate::front;
use crate::output::{JsonView, View};
use crate::person::Pending;
use crate::piped;
use crate::prompt::{self, Prompts};
use crate::render::inert::{one_line, shorten};
use crate::runtime::runtime;
use crate::schema::Schema;
use crate::sessions::{self, Asker, Wanted, Which};
use crate::setup::{self, Environment, Setup};
use crate::signals::Signals;
use crate::tally::Tally;

pub use result::{Outcome, finish, nothing_ran};

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
    /// The model that is set for new sessions.
    pub chosen: Option<Chosen>,
    /// What leaving the provider's cache may cost before somebody is asked.
    pub warn_above: WarnAbove,
    /// What was found or set and does nothing here, and why.
    pub skipped: Vec<String>,
    /// What runs in the background of this process.
    pub jobs: Arc<Jobs>,
}

impl Plan {
    /// Says that the session keeps its model, where another one is set: at the start for a person, with the result for a
    /// program.
    fn tell_passed_over(&mut self, conversation: &Conversation, view: &mut View) {
        let chosen = self.chosen.take().filter(|_| self.which != Which::New);
        let Some(said) = chosen.and_then(|chosen| chosen.passed_over(conversation.driver.state().model(), "-m")) else {
            return;
        };
        match view.text() {
            Some(text) => text.remark(&said),
            None => self.skipped.push(said),
        }
    }
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
    let (approvals, ask, person) = front::person(&args.output, setup.look);
    let runtime = runtime()?;
    let exit = runtime.block_on(async {
        let routes = front::with_local(&setup, routes).await?;
        let tools = setup.tools(ask);
        let agent = setup.agent(routes, approvals, tools.clone())?;
        let asker = if prompts.is_none() { Asker::Owed } else { Asker::Run };
        let which = Which::from_flags(&args.session, agent.store(), &setup.folder, asker)?;
        let route = front::new_route(&setup, agent.routes(), &which, args.session.model.as_deref())?;
        let plan = Plan {
            which,
            wanted: Wanted::from_flags(&args.session),
            mode: setup.config.mode,
            folder: setup.folder.clone(),
            prompts,
            limits: front::limits(&args.session.limits, setup.config.turn_limits),
            schema,
            chosen: Chosen::of(&setup, agent.routes()),
            warn_above: setup.config.warn_above,
            skipped: setup.skipped(route),
            jobs: Arc::clone(&setup.jobs),
        };
        let view = front::view(&setup, &args.output, tools, plan.schema.is_some());
        let mut front = Front { view, person, signals: Signals::new()? };
        let outcome = execute(&agent, plan, &mut front).await;
        finish(&setup, &args.output, &mut front.view, outcome)
    });
    // Nothing that is left over is waited for.
    runtime.shutdown_background();
    exit
}

/// Does it. Whatever happens there is an outcome.
pub async fn execute(agent: &Arc<Agent>, mut plan: Plan, front: &mut Front) -> Outcome {
    let policy = if plan.prompts.is_none() { OpenPolicy::Continue } else { OpenPolicy::Close };
    let opened = sessions::open(agent, &plan.which, policy, &plan.folder, plan.mode, &plan.wanted);
    let mut conversation = match opened {
        Ok(conversation) => conversation,
        Err(error) => return result::failed_to_start(error, plan.skipped),
    };
    let mut run = Run {
        tally: Tally::beginning_at(conversation.driver.state()),
        structured: None,
        ending: Ending::Idle,
        schema_faults: None,
    };
    seed(&conversation, agent, front);
    plan.tell_passed_over(&conversation, &mut front.view);
    undo::tell_finished(&mut conversation.driver, &mut front.view);
    let error = run.prompts(agent, &mut conversation, &mut plan, front).await.err();
    let error = error.map(|error| if run.tally.attempts > 0 { error.after_work() } else { error });
    let outcome = run.outcome(agent, &conversation, plan, error);
    conversation.driver.leave();
    outcome
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
    async fn prompts(
        &mut self,
        agent: &Agent,
        conversation: &mut Conversation,
        plan: &mut Plan,
        front: &mut Front,
    ) -> Result<()> {
        let driver = &conversation.driver;
        let again = match plan.prompts.is_none() && driver.is_stored() {
            true => again::unanswered(agent.store(), driver.session(), driver.state())?,
            false => None,
        };
        let sends = !plan.prompts.is_none() || again.is_some() || driver.state().turn().is_some();
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
        if let Some(prompt) = again {
            return self.again(prompt, plan.limits, conversation, front).await;
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

    /// Asks what no model answered once more, in the place of the turn that failed, so that nothing of that is sent.
    async fn again(
        &mut self,
        prompt: String,
        limits: TurnLimits,
        conversation: &mut Conversation,
        front: &mut Front,
    ) -> Result<()> {
        if let Some(text) = front.view.text() {
            text.aside(&format!("asking again: {}", shorten(&one_line(&prompt), 60)));
        }
        undo::carry_out(Restoring::Undo, &mut conversation.driver, ChangedSince::Leave).await?;
        self.say(prompt, Source::Person, limits, conversation, front).await
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
}
