//! What the sessions of a process share.

use std::path::PathBuf;
use std::sync::Arc;

use stele_core::{Call, CallDecision, Config, Failure, FailureCode, Millis, Mode, Tool, Verdict};
use stele_guard::{Layer, List, Policy, Surroundings, Workspace};
use stele_provider::{Client, LedgerFile, Route, Secret};
use stele_store::Store;
use stele_tools::InPlace;

use crate::{Error, Result};

/// Where time comes from.
#[derive(Clone, Copy)]
pub struct Clock {
    /// UTC milliseconds.
    pub now: fn() -> Millis,
    /// Today's date as the person reads it, `YYYY-MM-DD`.
    pub today: fn() -> String,
}

/// Whether somebody can be asked about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approvals {
    /// A person is there: a question waits for [`crate::Command::Decide`].
    Person,
    /// Nobody is there: a call that would ask is refused.
    Nobody,
}

/// What an agent is made of.
pub struct AgentOptions {
    /// The logs.
    pub store: Store,
    /// The client that speaks to providers.
    pub client: Client,
    /// What endpoints were seen to take; read when an epoch opens.
    pub ledger: LedgerFile,
    /// How an undo writes files that have to keep their inode.
    pub in_place: InPlace,
    /// The tools that are offered; their order in a request depends on group and name alone.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The routes that are configured.
    pub routes: Vec<Route>,
    /// Permission rules.
    pub policy: Policy,
    /// What the rules know about the machine.
    pub surroundings: Surroundings,
    /// The highest mode that may be set.
    pub highest_mode: Mode,
    /// Whether somebody can be asked.
    pub approvals: Approvals,
    /// Text that is added to the system zone, the same for every session.
    pub persona: Option<String>,
    /// A user's own instructions for every project.
    pub user_instructions: Option<PathBuf>,
    /// Version of the program, for the log.
    pub version: String,
    /// Where time comes from.
    pub clock: Clock,
}

/// What the sessions of a process share.
pub struct Agent {
    pub(crate) options: AgentOptions,
}

impl Agent {
    /// Makes an agent; tools are put into their total order here.
    #[must_use]
    pub fn new(mut options: AgentOptions) -> Arc<Self> {
        options.tools.sort_by(|one, other| {
            let (one, other) = (one.spec(), other.spec());
            (one.group, &one.name).cmp(&(other.group, &other.name))
        });
        Arc::new(Self { options })
    }

    /// The logs.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.options.store
    }

    /// The routes that are configured.
    #[must_use]
    pub fn routes(&self) -> &[Route] {
        &self.options.routes
    }

    /// A tool by name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.options.tools.iter().find(|tool| tool.spec().name == name)
    }

    /// A route by name.
    ///
    /// # Errors
    /// No such route is configured.
    pub fn route(&self, name: &str) -> Result<&Route> {
        self.options.routes.iter().find(|route| route.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.options.routes.iter().map(|route| route.name.as_str()).collect();
            Error::UnknownRoute { name: name.to_owned(), known: known.join(", ") }
        })
    }

    /// The credential of a route, looked up anew for each request.
    pub(crate) fn credential(&self, config: &Config) -> Result<Option<Secret>, Failure> {
        let route =
            self.route(&config.route).map_err(|error| Failure::new(FailureCode::NoCredential, error.to_string()))?;
        route.credential(config)
    }

    pub(crate) fn now(&self) -> Millis {
        (self.options.clock.now)()
    }

    /// What rules and mode say about a call; `grants` are the session's own.
    pub(crate) fn permit(&self, call: &Call, mode: Mode, grants: &[String], workspace: &Workspace) -> CallDecision {
        stele_guard::decide(call, mode.min(self.options.highest_mode), &self.policy(grants), workspace)
    }

    /// The verdict alone.
    pub(crate) fn verdict(&self, call: &Call, mode: Mode, grants: &[String], workspace: &Workspace) -> Verdict {
        stele_guard::verdict(call, mode.min(self.options.highest_mode), &self.policy(grants), workspace)
    }

    fn policy(&self, grants: &[String]) -> Policy {
        let mut policy = self.options.policy.clone();
        for rule in grants {
            // A grant was made from a rule that parsed.
            let _ = policy.add(List::Allow, Layer::Session, rule);
        }
        policy
    }
}
