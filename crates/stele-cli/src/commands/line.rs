//! Bare `stele`: the line interface. It streams, asks, and takes what is typed while it works.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use stele_agent::{Agent, Approvals, ChangedSince, Command, OpenPolicy, Taken};
use stele_core::limits::TurnLimits;
use stele_core::{By, Config, EpochReason, Mode, Restoring, Reuse, Source};
use stele_store::Filter;

use crate::args::{LimitArgs, SessionArgs};
use crate::background::Background;
use crate::command;
use crate::commands::undo;
use crate::commands::{cache, run};
use crate::cut::{self, Settled};
use crate::drive::{Confirmed, Conversation, Ending, Front, Heard};
use crate::error::{CommandError, Kind, Result};
use crate::feed::records;
use crate::output::View;
use crate::past;
use crate::person::{Line as Typed, Person, Typing};
use crate::prompt;
use crate::render::inert::{inert, one_line, shorten};
use crate::render::money::plural;
use crate::render::text::Choice;
use crate::render::{WIDTH, spent, time, timeline};
use crate::runtime::runtime;
use crate::sessions::{self, Asker, Move, Wanted, Which, shell_word};
use crate::setup::{self, Setup};
use crate::signals::Signals;
use crate::tally::Tally;

/// Characters of what a session began with, and of its last answer.
const RECALLED: usize = 300;

/// Sessions that `/resume` lists.
const LISTED: u32 = 9;

/// Talks until somebody leaves.
pub fn main(setup: &Setup, args: &SessionArgs, first: Option<&OsStr>) -> Result<u8> {
    let first =
        first.map(|text| prompt::check(std::os::unix::ffi::OsStrExt::as_bytes(text), "the prompt")).transpose()?;
    let routes = setup.routes()?;
    let runtime = runtime()?;
    let exit = runtime.block_on(async {
        let routes = run::with_local(setup, routes).await?;
        let (ask, questions) = run::asker();
        let tools = setup.tools(Some(ask));
        let agent = setup.agent(routes, Approvals::Person, tools.clone())?;
        let wanted = Wanted::from_flags(args);
        let which = Which::from_flags(args, agent.store(), &setup.folder, Asker::Line)?;
        if which == Which::New || args.model.is_some() {
            setup.has_key(setup::choose(agent.routes(), args.model.as_deref())?.0)?;
        }
        let mut person = Person::present(questions, Typing::Steers, !setup.look.dumb)
            .remembering(past::earlier(agent.store().clone(), &setup.folder));
        person.listen();
        let choice = Choice::default();
        let text = run::text_view(setup, choice, tools);
        let mut line = Line {
            setup,
            conversation: open(&agent, &which, setup, &wanted)?,
            tally: Tally::default(),
            front: Front { view: View::Text(Box::new(text)), person, signals: Signals::new()? },
            limits: args.limits.clone(),
            agent,
        };
        line.begin(&which);
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
            view.warn(text);
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
        undo::tell_finished(&mut self.conversation.driver, &mut self.front.view);
        if *which != Which::New {
            self.recall();
        }
        for skipped in self.setup.config.skipped.clone() {
            self.say(&format!("! skipped: {}", one_line(&skipped)));
        }
    }

    /// Says what a session is about, and where it stands.
    fn recall(&mut self) {
        let state = self.conversation.driver.state();
        let first = state.first_prompt().map(|prompt| ("began with", prompt.to_owned()));
        let last = Some(("last answer", state.last_text())).filter(|(_, text)| !text.trim().is_empty());
        let style = self.setup.look.stderr();
        for (what, text) in [first, last].into_iter().flatten() {
            self.say(&style.dim(&format!("  {what}: {}", shorten(one_line(&text).trim(), RECALLED))));
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
                            if self.front.person.forget() && !self.front.signals.told_to_end() {
                                self.leave();
                                shown = false;
                                continue;
                            }
                            let exit = self.leave();
                            return Ok(if self.front.signals.told_to_end() { 130 } else { exit });
                        }
                    };
                    if let Some(view) = self.front.view.text() {
                        view.screen.leave_line();
                    }
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
        let limits: TurnLimits = run::limits(&self.limits, self.setup.config.turn_limits);
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

    async fn command(&mut self, command: &str) -> Result<Next> {
        let Some((name, argument)) = command::named(command) else { return Ok(Next::Stay) };
        match (name, argument) {
            ("help", _) => self.say(command::HELP),
            ("quit" | "exit" | "q", _) => return Ok(Next::Leave),
            ("model", argument) => self.model(argument).await?,
            ("mode", argument) => self.mode(argument)?,
            ("cost", _) => self.cost()?,
            ("cache", _) => self.cache()?,
            ("undo", argument) => self.restore(Restoring::Undo, argument).await?,
            ("redo", argument) => self.restore(Restoring::Redo, argument).await?,
            ("changes", _) => {
                let lines = undo::changes(self.conversation.driver.state(), self.setup.look.stderr()).join("\n");
                self.say(&lines);
            }
            ("jobs", argument) => {
                if let Some(said) = self.front.person.jobs(argument) {
                    self.say(&said);
                }
            }
            ("resume", argument) => self.resume(argument).await?,
            (unknown, _) => self.say(&one_line(&command::unknown(unknown))),
        }
        Ok(Next::Stay)
    }

    async fn model(&mut self, choice: Option<&str>) -> Result<()> {
        let Some(choice) = choice else {
            let now = self.conversation.driver.state().model().cloned();
            let now = now.map(|now| format!("{}/{}", now.route, now.model)).unwrap_or_default();
            let routes = self.agent.routes().iter().map(|route| format!("  {}/{}", route.name, route.model));
            let lines: Vec<String> = std::iter::once(format!("{now}; routes:")).chain(routes).collect();
            self.say(&lines.iter().map(|line| one_line(line)).collect::<Vec<_>>().join("\n"));
            return Ok(());
        };
        let (route, model) = setup::choose(self.agent.routes(), Some(choice))?;
        let route = route.name.clone();
        let in_use = format!("{route}/{model} is in use");
        let state = self.conversation.driver.state();
        if state.model().is_some_and(|now| now.route == route && now.model == model) {
            self.say(&one_line(&in_use));
            return Ok(());
        }
        // Nothing was sent to another one since: the prefix is the one that is in the cache.
        let goes_back = state.epoch().is_some_and(|epoch| epoch.config.route == route && epoch.config.model == model);
        let lost = self.conversation.driver.model_cost(&route, &model)?;
        let mut said = match goes_back {
            true => format!("{route}/{model}, as before"),
            false => format!("{route}/{model}; the next request begins a new cache prefix"),
        };
        if lost.tokens > 0 {
            said.push_str(&format!(": {}", cut::price(&lost)));
        }
        if self.setup.config.warn_above.is_passed(&lost) {
            let question = format!("{}\n  switch? [y]es, [n]o: ", one_line(&said));
            match self.front.confirm(&question).await {
                Confirmed::No | Confirmed::Stopped => {
                    self.say("not switched");
                    return Ok(());
                }
                Confirmed::Yes => said = in_use,
                Confirmed::Nobody => {}
            }
        }
        let known = stele_provider::model(&model).is_some() || agent_has(&self.agent, &model);
        let said = match known {
            true => one_line(&said),
            false => format!(
                "{}\n{}",
                one_line(&said),
                one_line(&format!("! no model {model} is known here; the server decides"))
            ),
        };
        self.conversation.driver.command(Command::SetModel { route, model, by: By::person("cli") })?;
        self.say(&said);
        Ok(())
    }

    fn mode(&mut self, choice: Option<&str>) -> Result<()> {
        let Some(choice) = choice else {
            self.say(&format!("mode {}; there are ask, edit and full", self.conversation.driver.state().mode()));
            return Ok(());
        };
        let mode: Mode = choice.parse().map_err(|problem: String| CommandError::usage("usage.mode", problem))?;
        self.conversation.driver.command(Command::SetMode { mode, by: By::person("cli") })?;
        self.say(&format!("mode {}", self.conversation.driver.state().mode()));
        Ok(())
    }

    /// Takes a turn back or does it again. Where somebody changed a file since, it asks first. What waited for a new
    /// cache prefix is taken with the one that this begins, and has a price of its own.
    async fn restore(&mut self, way: Restoring, choice: Option<&str>) -> Result<()> {
        let changed_since = match choice {
            None | Some("leave") => ChangedSince::Leave,
            Some("overwrite") => ChangedSince::Overwrite,
            Some(_) => {
                let name = way.name();
                let message = format!("/{name} alone, /{name} leave or /{name} overwrite");
                return Err(CommandError::usage("usage.undo", message));
            }
        };
        let folder = self.conversation.driver.state().session().map(|session| session.cwd.clone()).unwrap_or_default();
        let (folder, style) = (Path::new(&folder), self.setup.look.stderr());
        let preview = undo::preview(way, self.conversation.driver.state(), self.agent.store(), changed_since)?;
        let left = preview.map(|preview| preview.left).unwrap_or_default();
        if choice.is_none() && left.iter().any(|left| undo::overwritable(&left.why)) {
            let mut lines = undo::left_lines(&left, folder, style);
            let name = way.name();
            lines.push(format!(
                "nothing was done yet: /{name} leave leaves these files, /{name} overwrite replaces them"
            ));
            self.say(&lines.join("\n"));
            return Ok(());
        }
        let waited = self.conversation.driver.drift().is_some_and(|drift| drift.taken == Taken::AtTheNextCut);
        let restored = undo::carry_out(way, &mut self.conversation.driver, changed_since).await?;
        undo::tell_finished(&mut self.conversation.driver, &mut self.front.view);
        let mut lines = undo::lines(way, &restored, folder, style);
        lines.push(style.dim("the next request begins a new cache prefix"));
        self.say(&lines.join("\n"));
        if waited { self.settle().await } else { Ok(()) }
    }

    fn cost(&mut self) -> Result<()> {
        let driver = &self.conversation.driver;
        let mut lines = spent::session(&self.tally, driver.state());
        if driver.is_stored() {
            let mut reuse = Reuse::default();
            for logged in records(self.agent.store(), driver.session())? {
                reuse.fold(&logged?.record.event);
            }
            lines.extend(timeline::local_reuse(&reuse));
        }
        self.say(&lines.join("\n"));
        Ok(())
    }

    fn cache(&mut self) -> Result<()> {
        if !self.conversation.driver.is_stored() {
            self.say("nothing was sent yet");
            return Ok(());
        }
        let (store, session) = (self.agent.store(), self.conversation.driver.session());
        let lines = cache::lines(store, session, self.setup.look.stderr())?.join("\n");
        self.say(&lines);
        Ok(())
    }

    async fn resume(&mut self, id: Option<&str>) -> Result<()> {
        let store = self.agent.store().clone();
        let Some(id) = id else {
            let cwd = Some(self.setup.folder.display().to_string());
            let rows = store.sessions(&Filter { cwd, limit: Some(LISTED) })?;
            let lines: Vec<String> = rows
                .iter()
                .map(|row| {
                    let title = shorten(&one_line(row.title.as_deref().unwrap_or("(no title)")), WIDTH - 4);
                    format!("  {}  {}\n    {title}", row.id, time::minute(row.updated))
                })
                .collect();
            self.say(&if lines.is_empty() { "no session was held here yet".to_owned() } else { lines.join("\n") });
            return Ok(());
        };
        let (id, moves) = match id.split_once(char::is_whitespace) {
            Some((id, "--move")) => (id, Move::Asked),
            _ => (id, Move::NotAsked),
        };
        let id = store.resolve(id)?;
        if *self.conversation.driver.session() == id {
            self.say("this is that session");
            return Ok(());
        }
        let place = sessions::place(&store, &id, &self.setup.folder, moves, "--resume", Asker::Line);
        let place = place.map_err(|mut error| {
            if error.code == "usage.folder" {
                error.hints = vec![format!("/resume {id} --move")];
            }
            error
        })?;
        let which = Which::Existing(id, place);
        self.conversation = open(&self.agent, &which, self.setup, &Wanted::default())?;
        self.begin(&which);
        self.settle().await
    }
}

/// True for a model that some route names.
fn agent_has(agent: &Agent, model: &str) -> bool {
    agent.routes().iter().any(|route| route.model == model)
}
