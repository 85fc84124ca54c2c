//! From environment, files and flags to an agent. The one place that reads the environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use stele_agent::{Agent, AgentOptions, Approvals, Clock};
use stele_core::{Millis, Tool};
use stele_guard::Surroundings;
use stele_provider::{Client, ClientSettings, KeySource, LedgerFile, Route, RouteError};
use stele_store::Store;
use stele_tools::InPlace;

use crate::args::{ColorChoice, Global, SessionArgs};
use crate::config::{Config, Flags, Inputs};
use crate::error::{CommandError, Result};
use crate::output::Look;

/// The hidden first argument that turns this program into a shell command's supervisor.
pub const SUPERVISE: &str = "__supervise";

/// The environment as it was when the program started.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    pub variables: Vec<(OsString, OsString)>,
    text: BTreeMap<String, String>,
}

impl Environment {
    /// Of this process.
    pub fn of_this_process() -> Self {
        Self::new(std::env::vars_os().collect())
    }

    pub fn new(variables: Vec<(OsString, OsString)>) -> Self {
        let text = variables
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())))
            .collect();
        Self { variables, text }
    }

    /// The same with one variable set to a path.
    pub fn with(mut self, name: &str, value: &Path) -> Self {
        self.variables.retain(|(other, _)| other != name);
        self.variables.push((name.into(), value.into()));
        Self::new(self.variables)
    }

    /// A variable that is set, not empty, and text.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.text.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All variables that are text.
    pub fn text(&self) -> &BTreeMap<String, String> {
        &self.text
    }

    /// A look-up for the libraries.
    pub fn lookup(&self) -> impl Fn(&str) -> Option<String> + '_ {
        |name| self.get(name).map(str::to_owned)
    }

    /// What of it decides about colours.
    pub fn look(&self, color: ColorChoice) -> Look {
        let dumb = self.get("TERM").is_none_or(|term| term == "dumb");
        Look { color, no_color: self.get("NO_COLOR").is_some(), dumb }
    }
}

/// Everything a command is made from.
pub struct Setup {
    pub environment: Environment,
    pub config: Config,
    /// The folder to work in, canonical.
    pub folder: PathBuf,
    pub look: Look,
    /// What the tools of this process run in the background.
    pub jobs: Arc<stele_tools::Jobs>,
    /// The file of what endpoints were seen to take and to report.
    ledger: PathBuf,
}

impl Setup {
    /// Reads the configuration for a folder.
    pub fn new(environment: Environment, global: &Global, flags: &SessionArgs) -> Result<Self> {
        let folder = folder(global)?;
        let inputs = Inputs::read(environment.text(), &folder, config_flags(flags))?;
        Self::with(environment, global, folder, &inputs)
    }

    fn with(environment: Environment, global: &Global, folder: PathBuf, inputs: &Inputs) -> Result<Self> {
        let config = Config::load(inputs)?;
        let look = environment.look(global.color);
        let ledger = config.data.join("ledger.jsonl");
        Ok(Self { environment, config, folder, look, jobs: Arc::default(), ledger })
    }

    /// For commands that need no more than the logs: a configuration that is wrong does not stand in their way.
    /// What is wrong with it comes beside.
    pub fn for_logs(environment: Environment, global: &Global) -> Result<(Self, Option<CommandError>)> {
        let error = match Self::new(environment.clone(), global, &SessionArgs::default()) {
            Err(error) if error.code.starts_with("config.") => error,
            setup => return Ok((setup?, None)),
        };
        let folder = folder(global)?;
        // Where nothing says where the logs are, the error before says so.
        let Ok(inputs) = Inputs::defaults(environment.text()) else { return Err(error) };
        Ok((Self::with(environment, global, folder, &inputs)?, Some(error)))
    }

    /// The logs, for writing.
    pub fn store(&self) -> Result<Store> {
        Ok(Store::open(&self.config.data)?)
    }

    /// The logs, for looking only; `None` when there are none yet.
    pub fn inspect(&self) -> Result<Option<Store>> {
        Ok(Store::inspect(&self.config.data)?)
    }

    /// The logs, for looking only; an error when there are none yet.
    pub fn logs(&self) -> Result<Store> {
        self.inspect()?.ok_or_else(|| {
            let message = format!("there is no session yet in {}", self.config.data.display());
            CommandError::usage("log.none", message).hint("stele run \"…\" makes the first one")
        })
    }

    /// The tools, for cards and for running.
    pub fn tools(&self, ask: Option<stele_tools::Ask>) -> Vec<Arc<dyn Tool>> {
        stele_tools::builtin(&stele_tools::Options {
            environment: self.environment.variables.clone(),
            pass: self.config.shell_env.clone(),
            supervisor: supervisor(),
            spill: Some(crate::spill::folder(&self.config.data)),
            unfinished: Some(crate::unfinished::folder(&self.config.data)),
            ask,
            limits: self.config.tool_limits,
            offer: self.config.offer.clone(),
            web: self.config.web.clone(),
            jobs: Arc::clone(&self.jobs),
            edit: self.config.edit.clone(),
        })
    }

    /// Every route there is, the default one first.
    pub fn routes(&self) -> Result<Vec<Route>> {
        let mut routes = stele_provider::routes(&self.environment.lookup(), &self.config.routes)
            .map_err(|error| self.placed(error))?;
        for route in &mut routes {
            route.ttl = route.ttl.or(self.config.cache_ttl);
            route.prices.clone_from(&self.config.prices);
        }
        if let (false, Some(choice)) = (routes.is_empty(), self.config.choice()) {
            let (route, model) = choose(&routes, Some(&choice))?;
            let chosen = Route { model, ..route.clone() };
            routes.retain(|route| route.name != chosen.name);
            routes.insert(0, chosen);
        }
        Ok(routes)
    }

    /// The error with the file and line of the route that it is about.
    fn placed(&self, error: RouteError) -> CommandError {
        let at = match &error {
            RouteError::Invalid { route, .. } | RouteError::BaseUrl { route, .. } => self.config.place_of(route),
            RouteError::None { .. } => None,
        };
        let mut error = CommandError::from(error);
        if let Some(at) = at {
            error.message = format!("{at}: {}", error.message);
        }
        error
    }

    /// What was found or set and does nothing here, and why; with a route, on that one too.
    pub fn skipped(&self, route: Option<&Route>) -> Vec<String> {
        self.config.skipped.iter().cloned().chain(route.and_then(Route::ignored)).collect()
    }

    /// What to say where there is no route: a vendor whose key is set and that needs a model is named first.
    pub fn no_route(&self, found: Vec<stele_provider::Found>) -> CommandError {
        let error = CommandError::from(stele_provider::RouteError::None { found });
        stele_provider::vendors().iter().filter(|vendor| vendor.model.is_none()).fold(error, |error, vendor| {
            match vendor.key_env.iter().find(|name| self.environment.get(name).is_some()) {
                Some(key) => error.hint(format!(
                    "{key} is set; {} needs a model too: [routes.{}] model = \"…\" in {}",
                    vendor.name,
                    vendor.name,
                    self.config.home.join("config.toml").display()
                )),
                None => error,
            }
        })
    }

    /// Refuses a route whose key is not there, before anything is begun.
    pub fn has_key(&self, route: &Route) -> Result<()> {
        match &route.key {
            KeySource::Env(name) if self.environment.get(name).is_none_or(|key| key.trim().is_empty()) => {
                let message = format!("route {} needs a key in {name}, which is not set", route.name);
                Err(CommandError::usage("provider.no_credential", message).hint(format!("export {name}=…")))
            }
            _ => Ok(()),
        }
    }

    /// The client that speaks to providers.
    pub fn client(&self) -> Result<Client> {
        Ok(Client::new(ClientSettings {
            connect: self.config.connect,
            idle: self.config.idle,
            ..ClientSettings::from_environment(&self.environment.lookup())
                .map_err(|problem| CommandError::usage("config.proxy", problem))?
        }))
    }

    /// What endpoints were seen to take and to report.
    pub fn ledger(&self) -> LedgerFile {
        LedgerFile::new(self.ledger.clone())
    }

    /// An agent. What was cut off before is told now.
    pub fn agent(&self, routes: Vec<Route>, approvals: Approvals, tools: Vec<Arc<dyn Tool>>) -> Result<Arc<Agent>> {
        crate::unfinished::tell(&self.config.data, self.look.stderr());
        Ok(Agent::new(AgentOptions {
            store: self.store()?,
            in_place: in_place(Some(&self.config.data)),
            client: self.client()?,
            ledger: self.ledger(),
            tools,
            routes,
            policy: self.config.policy.clone(),
            surroundings: Surroundings {
                home: self.environment.get("HOME").map(PathBuf::from),
                search_path: self.environment.get("PATH").map(OsString::from),
            },
            highest_mode: self.config.highest_mode,
            approvals,
            persona: self.config.persona.clone(),
            user_instructions: Some(self.config.home.join("AGENTS.md")),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            clock: Clock { now, today },
        }))
    }
}

/// The program that supervises shell commands and writes in place, with its leading argument.
fn supervisor() -> Option<Vec<OsString>> {
    std::env::current_exe().ok().map(|program| vec![program.into_os_string(), SUPERVISE.into()])
}

/// How files are written that have to keep their inode.
pub fn in_place(data: Option<&Path>) -> InPlace {
    InPlace { writer: supervisor(), kept: data.map(crate::unfinished::folder) }
}

/// Where the data is, whatever the configuration says; `None` where nothing tells.
pub fn data(environment: &Environment) -> Option<PathBuf> {
    let inputs = Inputs::defaults(environment.text()).ok()?;
    Config::load(&inputs).ok().map(|config| config.data)
}

fn config_flags(flags: &SessionArgs) -> Flags {
    Flags {
        mode: flags.mode,
        model: flags.model.clone(),
        steps: flags.limits.max_steps,
        allow: flags.allow.clone(),
        deny: flags.deny.clone(),
    }
}

/// The folder that a command works in, canonical.
pub fn folder(global: &Global) -> Result<PathBuf> {
    let gone = |cause: std::io::Error| {
        CommandError::usage(
            "usage.folder",
            format!("the current folder is not there any more ({cause}); go to another one"),
        )
    };
    match &global.cwd {
        None => std::env::current_dir().and_then(|folder| folder.canonicalize()).map_err(gone),
        Some(folder) => match folder.canonicalize() {
            Ok(folder) if folder.is_dir() => Ok(folder),
            Ok(_) => Err(CommandError::usage("usage.folder", format!("{} is no folder", folder.display()))),
            Err(cause) => {
                Err(CommandError::usage("usage.folder", format!("cannot work in {}: {cause}", folder.display())))
            }
        },
    }
}

/// UTC milliseconds.
pub fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Today's date where the person is.
pub fn today() -> String {
    jiff::ZonedDateTime::now().date().to_string()
}

/// The route and model of a choice such as `--model NAME|ROUTE/NAME`.
pub fn choose<'a>(routes: &'a [Route], choice: Option<&str>) -> Result<(&'a Route, String)> {
    let first = routes.first().ok_or(stele_provider::RouteError::None { found: Vec::new() })?;
    let Some(choice) = choice else { return Ok((first, first.model.clone())) };
    if choice.trim().is_empty() {
        return Err(CommandError::usage("usage.model", "--model needs a name"));
    }
    let by_name = |name: &str| routes.iter().find(|route| route.name == name);
    if let Some(route) = by_name(choice) {
        return Ok((route, route.model.clone()));
    }
    if let Some((name, model)) = choice.split_once('/')
        && let Some(route) = by_name(name)
        && !model.is_empty()
    {
        return Ok((route, model.to_owned()));
    }
    let known = stele_provider::model(choice).is_some() || routes.iter().any(|route| route.model == choice);
    let listed = || routes.iter().map(|route| route.name.as_str()).collect::<Vec<_>>().join(", ");
    if let (false, Some((name, model))) = (known, choice.split_once('/')) {
        // Where the models' own names have a slash, this is one of them.
        if !first.model.contains('/') {
            let message = format!("there is no route {name}; the routes are {}", listed());
            return Err(CommandError::usage("usage.model", message)
                .hint(format!("{}/{name}/{model}, if that is the name of a model", first.name)));
        }
    } else if let (false, Some(near)) = (known, routes.iter().find(|route| is_slip(choice, &route.name))) {
        let message = format!("there is no route {choice}; did you mean {}?", near.name);
        return Err(CommandError::usage("usage.model", message)
            .hint(format!("{}/{choice}, if that is the name of a model", first.name)));
    }
    if let Some(same) = routes.iter().find(|route| route.model == choice) {
        return Ok((same, choice.to_owned()));
    }
    let route = match stele_provider::model(choice) {
        Some(model) => vendors_route(routes, first, model)?,
        None => first,
    };
    Ok((route, choice.to_owned()))
}

/// A model that the catalogue knows goes to its own vendor, where that one is set up, or else to the first route, unless
/// that is another vendor's own host, which cannot have it. Further routes are asked only when they are named: what is
/// sent goes to nobody whom no one chose.
fn vendors_route<'a>(routes: &'a [Route], first: &'a Route, model: &stele_provider::Model) -> Result<&'a Route> {
    let host = |route: &Route| stele_provider::own_host(&route.base_url);
    let named = routes.iter().find(|route| route.name == model.vendor);
    let there = || routes.iter().find(|route| host(route).is_some_and(|vendor| vendor.name == model.vendor));
    if let Some(route) = named.or_else(there) {
        return Ok(route);
    }
    let Some(other) = host(first) else { return Ok(first) };
    let message =
        format!("{} is a model of {}, which has no route; {} does not serve it", model.id, model.vendor, other.name);
    let vendor = stele_provider::vendors().iter().find(|vendor| vendor.name == model.vendor);
    let key = vendor.and_then(|vendor| vendor.key_env.first());
    let error = key
        .into_iter()
        .fold(CommandError::usage("usage.model", message), |error, key| error.hint(format!("export {key}=…")));
    let may_have_it = routes.iter().filter(|route| host(route).is_none());
    let error = may_have_it
        .fold(error, |error, route| error.hint(format!("{}/{}, if that server has it", route.name, model.id)));
    Err(error.hint(format!("{}/{}, to ask {} for it all the same", first.name, model.id, other.name)))
}

/// True when a word was probably meant as a name of some length.
fn is_slip(word: &str, name: &str) -> bool {
    crate::nearest::distance(word, name) <= if name.len() < 4 { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use stele_core::Wire;

    use super::*;

    fn route(name: &str, model: &str) -> Route {
        Route::new(name, Wire::OpenaiChat, "http://127.0.0.1:1/v1", model)
    }

    #[track_caller]
    fn check(choice: Option<&str>, expect: (&str, &str)) {
        let routes = [route("one", "m1"), route("two", "vendor/m2"), route("anthropic", "c")];
        let (route, model) = choose(&routes, choice).unwrap();
        assert_eq!((route.name.as_str(), model.as_str()), expect, "{choice:?}");
    }

    #[test]
    fn a_choice_is_a_route_a_model_or_both() {
        check(None, ("one", "m1"));
        check(Some("two"), ("two", "vendor/m2"));
        check(Some("two/x/y"), ("two", "x/y"));
        check(Some("vendor/m2"), ("two", "vendor/m2"));
        check(Some("other"), ("one", "other"));
        let routes = [route("env", "org/model"), route("work", "m")];
        assert_eq!(choose(&routes, Some("other/model")).unwrap().1, "other/model");
        for slip in ["wrok", "wrk"] {
            assert!(choose(&routes, Some(slip)).unwrap_err().message.contains("mean work?"), "{slip}");
        }
        let error = choose(&[route("one", "m1")], Some("nope/x")).unwrap_err();
        assert_eq!((error.code.as_str(), error.hints[0].contains("one/nope/x")), ("usage.model", true));
        check(Some("claude-opus-5-5"), ("anthropic", "claude-opus-5-5"));
        assert_eq!(choose(&[], None).unwrap_err().code, "config.no_route");
    }

    #[test]
    fn a_known_model_goes_to_nobody_who_cannot_have_it() {
        let at = |name: &str, url: &str| Route::new(name, Wire::OpenaiChat, url, "m");
        let anthropic = at("anthropic", "https://api.anthropic.com");
        let asked = |routes: &[Route]| choose(routes, Some("gemini-4-neon")).map(|(route, _)| route.name.clone());
        let error = asked(std::slice::from_ref(&anthropic)).unwrap_err();
        assert_eq!(error.code, "usage.model");
        assert_eq!(
            error.message,
            "gemini-4-neon is a model of gemini, which has no route; anthropic does not serve it"
        );
        assert_eq!(error.hints[0], "export GEMINI_API_KEY=…");
        assert!(error.hints[1].starts_with("anthropic/gemini-4-neon"), "{error:?}");
        let theirs = at("mine", "https://generativelanguage.googleapis.com");
        assert_eq!(asked(&[anthropic.clone(), theirs]).unwrap(), "mine");
        let gateway = at("gateway", "https://openrouter.ai/api/v1");
        let error = asked(&[anthropic.clone(), gateway]).unwrap_err();
        assert_eq!(error.hints[1], "gateway/gemini-4-neon, if that server has it", "{error:?}");
        for elsewhere in ["https://openrouter.ai/api/v1", "http://127.0.0.1:8080/v1", "https://models.example/v1"] {
            assert_eq!(asked(&[at("first", elsewhere), anthropic.clone()]).unwrap(), "first", "{elsewhere}");
        }
        assert_eq!(choose(&[anthropic], Some("anthropic/gemini-4-neon")).unwrap().1, "gemini-4-neon");
    }

    #[test]
    fn an_empty_name_is_refused() {
        assert!(choose(&[route("one", "m")], Some(" ")).is_err());
    }
}
