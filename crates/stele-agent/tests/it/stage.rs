//! An agent, a folder and a scripted server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use stele_agent::{Agent, AgentOptions, Approvals, Clock, Command, Driver, Notice, OpenPolicy, SessionStart, Until};
use stele_core::limits::TurnLimits;
use stele_core::{By, CacheTtl, Config, EndReason, Event, Millis, Mode, Parameters, Price, SessionId, Source, Wire};
use stele_guard::{Policy, Surroundings};
use stele_provider::{Client, ClientSettings, LedgerFile, Route};
use stele_store::Store;
use stele_testkit::{Behaviour, Received, Server};
use tempfile::TempDir;
use tokio::sync::{broadcast, mpsc};

static NOW: AtomicI64 = AtomicI64::new(1_790_000_000_000);

fn now() -> Millis {
    Millis(NOW.fetch_add(1, Ordering::Relaxed))
}

/// Two hours later.
fn later() -> Millis {
    Millis(now().0 + 2 * 3_600_000)
}

pub const LATER: Clock = Clock { now: later, today };

fn today() -> String {
    "2026-11-30".to_owned()
}

/// Everything one test needs; dropped with it.
pub struct Stage {
    pub home: TempDir,
    pub folder: PathBuf,
    pub server: Server,
    pub wire: Wire,
    pub approvals: Approvals,
    pub policy: Policy,
    /// What the routes say about images.
    pub images: Option<bool>,
    pub parameters: Parameters,
    pub ttl: Option<CacheTtl>,
    pub price: Option<Price>,
    _work: TempDir,
}

impl Stage {
    pub fn new(wire: Wire, behaviour: impl Into<Behaviour>) -> Self {
        let work = tempfile::tempdir().unwrap();
        let folder = work.path().canonicalize().unwrap();
        Self {
            home: tempfile::tempdir().unwrap(),
            folder,
            server: Server::start(behaviour).unwrap(),
            wire,
            approvals: Approvals::Nobody,
            policy: Policy::default(),
            images: None,
            parameters: Parameters::default(),
            ttl: None,
            price: None,
            _work: work,
        }
    }

    pub fn route(&self, name: &str, model: &str) -> Route {
        Route {
            parameters: self.parameters.clone(),
            own_images: self.images,
            ttl: self.ttl,
            own_price: self.price,
            ..Route::new(name, self.wire, &self.server.base_url(self.wire), model)
        }
    }

    pub fn store(&self) -> Store {
        Store::open(self.home.path()).unwrap()
    }

    /// Where the ledger is.
    pub fn ledger(&self) -> PathBuf {
        self.home.path().join("ledger.jsonl")
    }

    pub fn agent(&self) -> Arc<Agent> {
        self.agent_with(|_| {})
    }

    /// An agent that was set up in another way.
    pub fn agent_with(&self, change: impl FnOnce(&mut AgentOptions)) -> Arc<Agent> {
        let tools = stele_tools::Options {
            environment: std::env::vars_os().collect(),
            offer: vec![stele_tools::Offer::Patch],
            ..stele_tools::Options::default()
        };
        let mut options = AgentOptions {
            store: self.store(),
            client: Client::new(ClientSettings::default()),
            ledger: LedgerFile::new(self.ledger()),
            in_place: stele_tools::InPlace::default(),
            tools: stele_tools::builtin(&tools),
            routes: vec![self.route("main", "model-a"), self.route("other", "model-b")],
            policy: self.policy.clone(),
            surroundings: Surroundings::default(),
            highest_mode: Mode::Full,
            approvals: self.approvals,
            persona: None,
            user_instructions: None,
            version: "0.0.0-test".to_owned(),
            clock: Clock { now, today },
        };
        change(&mut options);
        Agent::new(options)
    }

    pub fn start(&self) -> SessionStart {
        SessionStart {
            folder: self.folder.clone(),
            mode: Mode::Full,
            route: "main".to_owned(),
            model: "model-a".to_owned(),
            by: By::person("test"),
        }
    }

    pub fn create(&self) -> Driver {
        Driver::create(&self.agent(), &self.start()).unwrap()
    }

    pub fn open(&self, session: &SessionId, policy: OpenPolicy) -> Driver {
        Driver::open(&self.agent(), session, policy).unwrap()
    }

    pub fn open_with(&self, session: &SessionId, change: impl FnOnce(&mut AgentOptions)) -> Driver {
        Driver::open(&self.agent_with(change), session, OpenPolicy::Close).unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn write(&self, name: &str, content: &str) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Requests of the conversation, as the server received them.
    pub fn requests(&self) -> Vec<Received> {
        self.server.requests().into_iter().filter(|request| request.wire.is_some()).collect()
    }
}

pub fn prompt(text: &str) -> Command {
    Command::Prompt { text: text.to_owned(), source: Source::Person, limits: TurnLimits::default() }
}

/// Gives a prompt and goes on until nothing is owed.
pub async fn ask(driver: &mut Driver, text: &str) -> EndReason {
    driver.command(prompt(text)).unwrap();
    idle(driver).await
}

pub async fn idle(driver: &mut Driver) -> EndReason {
    let (_keep, mut commands) = mpsc::unbounded_channel();
    driver.run(&mut commands, Until::Idle).await.unwrap();
    driver.state().last_end().cloned().unwrap()
}

/// Every committed event that a subscriber has seen.
pub fn events(notices: &mut broadcast::Receiver<Notice>) -> Vec<Event> {
    let mut events = Vec::new();
    while let Ok(notice) = notices.try_recv() {
        if let Notice::Event(logged) = notice {
            events.push(logged.record.event.clone());
        }
    }
    events
}

pub fn kinds(notices: &mut broadcast::Receiver<Notice>) -> Vec<&'static str> {
    events(notices).iter().map(Event::kind).collect()
}

pub fn bash(command: &str) -> Value {
    json!({ "command": command })
}

/// The conversation of a request in its own order, cache marks left out: written for these tests, so
/// that it shares nothing with the encoders.
pub fn prompt_items(request: &Received) -> Vec<String> {
    fn strip(value: &Value) -> Value {
        match value {
            Value::Object(map) => Value::Object(
                map.iter()
                    .filter(|(key, _)| *key != "cache_control")
                    .map(|(key, value)| (key.clone(), strip(value)))
                    .collect(),
            ),
            Value::Array(list) => Value::Array(list.iter().map(strip).collect()),
            other => other.clone(),
        }
    }
    let body = request.json();
    let mut items = Vec::new();
    let mut list = |value: &Value, what: &str| match value {
        Value::Array(parts) => items.extend(parts.iter().map(|part| format!("{what}: {}", strip(part)))),
        Value::Null => {}
        other => items.push(format!("{what}: {}", strip(other))),
    };
    for key in ["tools", "system", "systemInstruction", "instructions"] {
        list(&body[key], key);
    }
    for key in ["messages", "input", "contents"] {
        for message in body[key].as_array().into_iter().flatten() {
            let role = message["role"].as_str().unwrap_or("-").to_owned();
            let parts = message.get("content").or(message.get("parts")).filter(|parts| parts.is_array());
            match parts {
                Some(parts) => list(parts, &role),
                None => list(&Value::Array(vec![message.clone()]), &role),
            }
        }
    }
    items
}

pub fn config(driver: &Driver) -> Config {
    driver.state().epoch().unwrap().config.clone()
}

pub fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// A text without how long commands ran: on a busy machine some take so long that it is said.
pub fn untimed(text: &str) -> String {
    let mut pieces = text.split("[exit 0");
    let mut plain = pieces.next().unwrap().to_owned();
    for piece in pieces {
        plain.push_str("[exit 0");
        plain.push_str(piece.strip_prefix(", ").map_or(piece, |timed| timed.split_once(" s").unwrap().1));
    }
    plain
}
