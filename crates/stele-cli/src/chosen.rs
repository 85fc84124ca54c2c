//! The model that configuration or environment name, beside the one that a session goes on with.

use stele_agent::{Command, Driver};
use stele_core::{By, ModelSet};
use stele_provider::Route;

use crate::config::Source;
use crate::error::Result;
use crate::render::inert::one_line;
use crate::setup::Setup;

/// The route that `STELE_BASE_URL` and `STELE_MODEL` make.
pub const ENV_ROUTE: &str = "env";

/// What a new session would be asked with, where somebody set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    route: String,
    model: String,
    /// What set it.
    by: String,
}

impl Chosen {
    /// Of a configuration and its routes; `None` where nothing names a model.
    pub fn of(setup: &Setup, routes: &[Route]) -> Option<Self> {
        let first = routes.first()?;
        let variable = || (first.name == ENV_ROUTE).then(|| Source::Environment("STELE_MODEL".to_owned()));
        let by = setup.config.source_of_choice().or_else(variable)?.to_string();
        Some(Self { route: first.name.clone(), model: first.model.clone(), by })
    }

    /// Says that a session goes on with another model than is set; `take` is typed before the name of the one that is.
    pub fn passed_over(&self, now: Option<&ModelSet>, take: &str) -> Option<String> {
        let now = now.filter(|now| now.route != self.route || now.model != self.model)?;
        let Self { route, model, by } = self;
        Some(one_line(&format!(
            "this session goes on with {}/{}; {route}/{model}, set by {by}, is for new sessions: {take} {route}/{model}",
            now.route, now.model
        )))
    }
}

/// Gives a session the model of `STELE_MODEL` where `STELE_BASE_URL` has led to another server since its last request:
/// the two belong together, and that server never heard of the model before.
pub fn follow_server(driver: &mut Driver, routes: &[Route]) -> Result<()> {
    let Some(route) = routes.iter().find(|route| route.name == ENV_ROUTE) else { return Ok(()) };
    let state = driver.state();
    let other_server = state.epoch().is_some_and(|epoch| epoch.config.base_url != route.base_url);
    let other_model = state.model().is_some_and(|now| now.route == ENV_ROUTE && now.model != route.model);
    if other_server && other_model {
        let (route, model) = (route.name.clone(), route.model.clone());
        driver.command(Command::SetModel { route, model, by: By("resume".to_owned()) })?;
    }
    Ok(())
}
