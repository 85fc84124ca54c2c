//! Bare `stele`: the line interface. It streams, asks, and takes what is typed while it works.

mod commands;

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use stele_agent::{Agent, Approvals, Command, OpenPolicy};
use stele_core::limits::TurnLimits;
use stele_core::{By, Config, EpochReason, Source};

use crate::args::{LimitArgs, SessionArgs};
use crate::background::Background;
use crate::chosen::Chosen;
use crate::command;
use crate::commands::undo;
use crate::cut::{self, Settled};
use crate::drive::{Conversation, Ending, Front, Heard};
use crate::error::{CommandError, Kind, Result};
use crate::front;
use crate::output::View;
use crate::past;
use crate::person::{Line as Typed, Person, Typing};
use crate::prompt;
use crate::render::inert::{inert, one_line};
use crate::render::money::plural;
use crate::render::spent;
use crate::render::text::Choice;
use crate::render::word::shell_word;
use crate::runtime::runtime;
use crate::sessions::{self, Asker, Wanted, Which};
use crate::setup::Setup;
use crate::signals::Signals;
use crate::tally::Tally;

/// Characters of what a session began with, and of its last answer.
const RECALLED: usize = 300;

/// Lines of them.
const RECALLED_LINES: usize = 5;

/// Talks until somebody leaves.
pub fn main(setup: &Setup, args: &SessionArgs, first: Option<&OsStr>) -> Result<u8> {
    let first =
        first.map(|text| prompt::check(std::os::unix::ffi::OsStrExt::as_bytes(text), "the prompt")).transpose()?;
    let routes = setup.routes()?;
    let runtime = runtime()?;
    let exit = runtime.block_on(async {
        let routes = front::with_local(setup, routes).await?;
        let (ask, questions) = front::asker();
        let tools = setup.tools(Some(ask));
        let agent = setup.agent(routes, Approvals::Person, tools.clone())?;
        let wanted = Wanted::from_flags(args);
        let which = Which::from_flags(args, agent.store(), &setup.folder, Asker::Line)?;
        let route = front::new_route(setup, agent.routes(), &which, args.model.as_deref())?;
        let skipped = setup.skipped(route);
        let mut person = Person::present(questions, Typing::Steers, !setup.look.dumb)
            .remembering(past::earlier(agent.store().clone(), &setup.folder));
        person.listen();
        let choice = Choice::default();
        let text = front::text_view(setup, choice, tools);
        let mut line = Line {
            setup,
            conversation: open(&agent, &which, setup, &wanted)?,
            tally: Tally::default(),
            front: Front { view: View::Text(Box::new(text)), person, signals: Signals::new()? },
            limits: args.limits.clone(),
            agent,
        };
        line.begin(&which);
        skipped.iter().for_each(|skipped| line.say(&format!("! skipped: {}", one_line(skipped))));
        line.settle().await?;
        let exit = line.talk(first).await;
        line.way_back();
        exit
    });
    runtime.shutdown_background();
    exit
}

fn open(agent: &Arc<Agent>, which: &Which, setup: &Setup, wanted: &Wanted) -> Result<Conversation> {
    // A person looks at the session: a turn that was left open is closed.
    sessions::open(agent, which, OpenPolicy::Close, &setup.folder, setup.config.mode, wanted)
}

struct Line<'a> {
    setup: &'a Setup,
    agent: Arc<Agent>,
    conversation: Conversation,
    tally: Tally,
    front: Front,
    limits: LimitArgs,
}

/// What follows a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Stay,
    Leave,
}

impl Line<'_> {
    fn say(&mut self, text: &str) {
        if let Some(view) = self.front.view.text() {
            view.say(text);
        }
    }

    /// Says where one is.
    fn begin(&mut self, which: &Which) {
        let state = self.conversation.driver.state();
        let model =
            state.model().map_or_else(|| "no model".to_owned(), |model| format!("{}/{}", model.route, model.model));
        let folder = state.session().map(|session| session.cwd.clone()).unwrap_or_default();
        let mode = state.mode();
        let turns = plural(state.counters().turns, "turn");
        self.tally = Tally::beginning_at(state);
        let session = self.conversation.driver.session().clone();
        self.front.person.background = Some(Background::of(&self.setup.jobs, session));
        if let (false, Some(view)) = (*which == Which::New, self.front.view.text()) {
            view.folder = Path::new(&folder).to_owned();
            view.seed(self.agent.store(), self.conversation.driver.session(), state, self.conversation.from);
        }
        let went = if *which == Which::New { String::new() } else { format!(" · {turns} before") };
        if let Some(view) = self.front.view.text() {
            view.folder = Path::new(&folder).to_owned();
            let style = view.screen.style;
            let line = format!(
                "{} {} · mode {mode}{went}\n{}",
                style.bold("stele"),
                one_line(&model),
                style.dim(&format!("{} · /help", one_line(&folder)))
            );
            view.warn(&line);
        }
        let chosen = Chosen::of(self.setup, self.agent.routes()).filter(|_| *which != Which::New);
        let kept = chosen.and_then(|chosen| chosen.passed_over(self.conversation.driver.state().model(), "/model"));
        if let (Some(kept), Some(view)) = (kept, self.front.view.text()) {
            view.warning(&kept);
        }
        undo::tell_finished(&mut self.conversation.driver, &mut self.front.view);
        if *which != Which::New {
            self.recall();
        }
    }

    /// Says what a session is about, and where it stands.
    fn recall(&mut self) {
        let state = self.conversation.driver.state();
        let first = state.first_prompt().map(|prompt| ("began with", prompt.to_owned()));
        let last = Some(("last answer", state.last_text())).filter(|(_, text)| !text.trim().is_empty());
        let style = self.setup.look.stderr();
        for (what, text) in [first, last].into_iter().flatten() {
            self.say(&style.dim(&format!("  {what}: {}", recalled(&text))));
        }
    }

    /// Asks about a new cache prefix that costs much; who says no to another model goes on with the one before.
    async fn settle(&mut self) -> Result<()> {
        match cut::settle(&mut self.conversation, &mut self.front, self.setup.config.warn_above).await? {
            Settled::GoesOn => return Ok(()),
            // Nobody said yes.
            Settled::Stopped(cut) if cut::can_wait(&cut) => return cut::keep(&mut self.conversation, &mut self.front),
            Settled::Stopped(_) | Settled::Declined => {}
        }
        let driver = &mut self.conversation.driver;
        let before = driver.state().epoch().map(|epoch| epoch.config.clone());
        let switched = driver.state().next_epoch() == Some(EpochReason::ModelChanged);
        let Some(Config { route, model, .. }) = before.filter(|_| switched) else {
            self.say("  nothing is sent before you give a prompt; it cannot go on without the new prefix");
            return Ok(());
        };
        let said = one_line(&format!("  {route}/{model}, as before"));
        driver.command(Command::SetModel { route, model, by: By::person("cli") })?;
        self.say(&said);
        Ok(())
    }

    async fn talk(&mut self, first: Option<String>) -> Result<u8> {
        if let Some(prompt) = first {
            if let Some(view) = self.front.view.text() {
                let shown = format!("{}{}", view.screen.style.cyan("> "), inert(prompt.trim_end()));
                view.warn(&shown);
            }
            match self.turn(prompt).await {
                Ok(Next::Leave) => return Ok(130),
                Ok(Next::Stay) => {}
                // A terminal that hung up takes no output either.
                Err(_) if self.front.signals.told_to_end() => {}
                Err(error) => return Err(error),
            }
        }
        // The prompt stands there already.
        let mut shown = false;
        // Somebody wanted out, and was told how.
        let mut leaving = false;
        loop {
            // The turn that ran, if one did, is cancelled and closed.
            if self.front.signals.told_to_end() {
                self.leave();
                return Ok(130);
            }
            let next = match self.front.person.later.pop_front() {
                Some(command) => {
                    let style = self.setup.look.stderr();
                    self.say(&style.dim(&format!("> {}", one_line(&command))));
                    self.carry_out(&command).await
                }
                None if self.front.person.is_gone() => return Ok(self.leave()),
                None => {
                    if let Some(view) = self.front.view.text().filter(|_| !shown) {
                        let prompt = view.screen.style.cyan("> ");
                        view.screen.prompt(&prompt);
                        // What was typed while the agent worked, and not sent, stands behind it.
                        view.screen.typed(self.front.person.draft());
                    }
                    shown = true;
                    let line = match self.front.line().await {
                        Heard::Line(line) => line,
                        Heard::Gone => continue,
                        Heard::Signal => {
                            // A line that stands there is thrown away first.
                            let cleared = self.front.person.forget();
                            if (cleared || !leaving) && !self.front.signals.told_to_end() {
                                self.leave();
                                if !cleared {
                                    self.say("  (Ctrl-C again leaves, and so do /quit and Ctrl-D)");
                                }
                                (shown, leaving) = (false, !cleared);
                                continue;
                            }
                            let exit = self.leave();
                            return Ok(if self.front.signals.told_to_end() { 130 } else { exit });
                        }
                    };
                    if let Some(view) = self.front.view.text() {
                        view.screen.leave_line();
                    }
                    leaving = false;
                    self.hear(&line).await?
                }
            };
            shown = false;
            if next == Next::Leave {
                return Ok(0);
            }
        }
    }

    /// What a line at the prompt does.
    async fn hear(&mut self, line: &Typed) -> Result<Next> {
        let trimmed = line.text.trim();
        match trimmed {
            "" => {}
            _ if !line.pasted && command::named(trimmed).is_some() => return Ok(self.carry_out(trimmed).await),
            "exit" | "quit" if !line.pasted => self.say("  (nothing was sent; /quit, or Ctrl-D, leaves)"),
            _ => {
                let prompt = prompt::check(line.text_meant().as_bytes(), "the prompt");
                let went = match prompt {
                    Ok(prompt) => self.turn(prompt).await,
                    Err(error) => Err(error),
                };
                match went {
                    Err(error) if error.kind != Kind::Closed => self.complain(&error),
                    went => return went,
                }
            }
        }
        Ok(Next::Stay)
    }

    /// Carries a command out. A slip in one ends nothing.
    async fn carry_out(&mut self, command: &str) -> Next {
        self.command(command).await.unwrap_or_else(|error| {
            self.complain(&error);
            Next::Stay
        })
    }

    /// How to come back.
    fn way_back(&mut self) {
        let driver = &self.conversation.driver;
        if !driver.is_stored() {
            return;
        }
        let session = driver.session().clone();
        let here = std::env::current_dir().and_then(|here| here.canonicalize());
        let cwd = driver.state().session().map(|session| Path::new(&session.cwd).to_owned());
        let command = match (here.ok(), cwd) {
            (Some(here), Some(cwd)) if here == cwd => "stele -c".to_owned(),
            (_, Some(cwd)) => format!("stele -C {} -r {session}", shell_word(&cwd.display().to_string())),
            (_, None) => format!("stele -r {session}"),
        };
        self.say(&format!("session {session}; to go on: {command}"));
    }

    /// Ends the prompt's line, so that the shell's prompt has one of its own.
    fn leave(&mut self) -> u8 {
        if let Some(view) = self.front.view.text() {
            view.screen.leave_line();
        }
        0
    }

    fn complain(&mut self, error: &CommandError) {
        if let Some(view) = self.front.view.text() {
            view.screen.end_line();
            view.screen.clear_progress();
        }
        crate::app::report(error, self.setup.look.stderr());
    }

    async fn turn(&mut self, text: String) -> Result<Next> {
        let limits: TurnLimits = front::limits(&self.limits, self.setup.config.turn_limits);
        self.conversation.driver.command(Command::Prompt { text, source: Source::Person, limits })?;
        let ending = self.conversation.go_on(&mut self.front, &mut self.tally).await?;
        if ending == Ending::AtOnce {
            return Ok(Next::Leave);
        }
        let lines = spent::turn(&self.tally, self.conversation.driver.state());
        if let Some(view) = self.front.view.text() {
            let style = view.screen.style;
            lines.iter().for_each(|line| view.warn(&style.dim(line)));
        }
        Ok(Next::Stay)
    }
}

/// The first lines of a text, as they stand, cut between words.
fn recalled(text: &str) -> String {
    let text = inert(text.trim());
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.by_ref().take(RECALLED_LINES).collect::<Vec<_>>().join("\n    ");
    let most = first.char_indices().nth(RECALLED).map_or(first.len(), |(at, _)| at);
    let cut = if most < first.len() { first[..most].rfind(char::is_whitespace).unwrap_or(most) } else { most };
    let more = if cut < first.len() || lines.next().is_some() { " …" } else { "" };
    format!("{}{more}", first[..cut].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recalled_keeps_its_lines_and_whole_words() {
        assert_eq!(recalled("# Done\n\n- one\n- two\n"), "# Done\n    - one\n    - two");
        assert_eq!(recalled("1\n2\n3\n4\n5\n6"), "1\n    2\n    3\n    4\n    5 …");
        let long = recalled(&"word ".repeat(100));
        assert!(long.ends_with("word …") && long.len() <= RECALLED + " …".len(), "{long}");
    }
}
