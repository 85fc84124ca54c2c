//! What a session is held with, as flags and this process's streams have it: who watches and may speak, its route and
//! its limits.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

use stele_agent::Approvals;
use stele_core::limits::TurnLimits;
use stele_core::{Millis, Tool};
use stele_provider::Route;
use tokio::sync::{mpsc, oneshot};

use crate::args::{LimitArgs, OutputArgs};
use crate::error::Result;
use crate::output::{JsonView, Look, View};
use crate::person::{Person, Question, Typing};
use crate::render::text::{Choice, TextView};
use crate::sessions::Which;
use crate::setup::{self, Setup};

/// Somebody, when standard input and standard error are a terminal and nothing has to be parsed.
pub fn person(output: &OutputArgs, look: Look) -> (Approvals, Option<stele_tools::Ask>, Person) {
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
pub async fn with_local(setup: &Setup, routes: Vec<Route>) -> Result<Vec<Route>> {
    if routes.is_empty() {
        return Err(setup.no_route(stele_provider::probe_local().await));
    }
    Ok(routes)
}

/// The route that a session begins with or goes over to, whose key has to be there. `None` where it keeps its own.
pub fn new_route<'a>(
    setup: &Setup,
    routes: &'a [Route],
    which: &Which,
    model: Option<&str>,
) -> Result<Option<&'a Route>> {
    if *which != Which::New && model.is_none() {
        return Ok(None);
    }
    let route = setup::choose(routes, model)?.0;
    setup.has_key(route)?;
    Ok(Some(route))
}

/// What bounds the turns of a run; `set` is what the configuration says, flags included where it knows them.
pub fn limits(args: &LimitArgs, set: TurnLimits) -> TurnLimits {
    TurnLimits {
        tokens: args.max_tokens,
        cost: args.max_cost,
        allow_unpriced: args.allow_unpriced,
        deadline: args
            .timeout
            .map(|time| Millis(setup::now().0.saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)))),
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
    text.highest_mode = setup.config.highest_mode;
    text.previews = stele_tools::PreviewOptions {
        home: setup.environment.get("HOME").map(PathBuf::from),
        edit: setup.config.edit.clone(),
    };
    let routes = setup.routes().unwrap_or_default();
    let keys = routes.into_iter().filter_map(|route| match route.key {
        stele_provider::KeySource::Env(variable) => Some((route.name, variable)),
        stele_provider::KeySource::None => None,
    });
    text.keys = Some(keys.collect());
    text
}
