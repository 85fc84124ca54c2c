//! The commands of the line interface: what begins with `/`.

use std::path::Path;

use stele_agent::{Agent, ChangedSince, Command, Taken};
use stele_core::{By, Mode, Restoring, Reuse};
use stele_store::Filter;

use super::{Line, Next, open};
use crate::command;
use crate::commands::{cache, undo};
use crate::cut;
use crate::drive::Confirmed;
use crate::error::{CommandError, Result};
use crate::feed::records;
use crate::front;
use crate::render::inert::{one_line, shorten};
use crate::render::{WIDTH, spent, time, timeline};
use crate::sessions::{self, Asker, Move, Wanted, Which};
use crate::setup;

/// Sessions that `/resume` lists.
const LISTED: u32 = 9;

impl Line<'_> {
    /// Carries out a command by its name; one that there is not is said.
    pub(super) async fn command(&mut self, command: &str) -> Result<Next> {
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
            ("new" | "clear", _) => self.begin_anew()?,
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

    /// Leaves the session as it is and begins another one here.
    fn begin_anew(&mut self) -> Result<()> {
        front::new_route(self.setup, self.agent.routes(), &Which::New, None)?;
        if self.conversation.driver.is_stored() {
            let before = self.conversation.driver.session().clone();
            self.say(&format!("session {before} stays as it is; to go back: /resume {before}"));
        }
        self.conversation = open(&self.agent, &Which::New, self.setup, &Wanted::default())?;
        self.begin(&Which::New);
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
                    let title = shorten(&sessions::title(row), WIDTH - 4);
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
