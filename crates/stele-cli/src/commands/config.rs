//! `stele config`: what is set here, and by whom; and the routes that come of it.

use serde::Serialize;
use stele_provider::Route;

use crate::args::{ConfigArgs, Global, SessionArgs};
use crate::config::{Contribution, Setting};
use crate::error::Result;
use crate::output;
use crate::render::inert::one_line;
use crate::render::json;
use crate::render::style::Style;
use crate::setup::{Environment, Setup};

#[derive(Serialize)]
struct Row<'a> {
    key: &'a str,
    value: Option<&'a str>,
    source: String,
    about: &'a str,
    /// Everything that set it, the one that counts last.
    set: Vec<SetBy<'a>>,
    /// Of `model`: the route that a new session asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<&'a str>,
}

#[derive(Serialize)]
struct SetBy<'a> {
    source: String,
    value: &'a str,
}

/// Lists every key and route, or explains one.
pub fn main(environment: Environment, global: &Global, args: &ConfigArgs) -> Result<u8> {
    let setup = Setup::new(environment, global, &SessionArgs::default())?;
    let about_routes = |key: &String| key == "model" || key == "route" || key.starts_with("routes");
    let (routes, wrong) = match setup.routes() {
        // Why there is no route is what was asked.
        Err(error) if args.explain.as_ref().is_some_and(about_routes) => return Err(error),
        Err(error) => (Vec::new(), Some(error)),
        Ok(routes) => (routes.iter().map(|route| shown(&setup, route)).collect::<Vec<_>>(), None),
    };
    let settings = match &args.explain {
        Some(key) => setup.config.explain(key, &routes)?,
        None => setup.config.effective().iter().chain(&routes).cloned().collect(),
    };
    let style = setup.look.stdout();
    let lines: Vec<String> = settings
        .iter()
        .map(|setting| {
            let asked = routes.first().filter(|_| setting.key == "model");
            match (args.json, &args.explain) {
                (true, _) => json::line(&row(setting, asked)),
                (false, None) => text(setting, asked, style),
                (false, Some(_)) => explained(setting, asked, style),
            }
        })
        .collect();
    output::print(&lines.join("\n"))?;
    if let Some(error) = wrong {
        crate::app::report(&error, setup.look.stderr());
    }
    if !args.json {
        for skipped in &setup.config.skipped {
            output::print(&style.yellow(&format!("! {}", one_line(skipped))))?;
        }
    }
    Ok(0)
}

/// A route as a setting: what would be asked, and what made it.
fn shown(setup: &Setup, route: &Route) -> Setting {
    let value = format!("{} at {} over {}", route.model, route.base_url, route.wire);
    let about = "a route: --model takes it by its name".to_owned();
    let set = vec![Contribution { source: setup.config.source_of_route(route), value: value.clone() }];
    Setting { key: format!("routes.{}", route.name), value: Some(value), about, set }
}

fn row<'a>(setting: &'a Setting, asked: Option<&'a Setting>) -> Row<'a> {
    let set = setting.set.iter().map(|set| SetBy { source: set.source.to_string(), value: &set.value });
    Row {
        key: &setting.key,
        value: setting.value.as_deref(),
        source: setting.source().to_string(),
        about: &setting.about,
        set: set.collect(),
        asked: asked.map(|route| route.key.as_str()),
    }
}

fn text(setting: &Setting, asked: Option<&Setting>, style: Style) -> String {
    let value = setting.value.as_deref().map_or_else(|| "(not set)".to_owned(), one_line);
    let asked = asked.map(|route| format!("; a new session asks {}", one_line(&route.key))).unwrap_or_default();
    format!("{} = {value}{asked}  {}", setting.key, style.dim(&one_line(&setting.source().to_string())))
}

fn explained(setting: &Setting, asked: Option<&Setting>, style: Style) -> String {
    let mut lines = vec![style.bold(&one_line(&setting.key)), format!("  {}", setting.about)];
    match &setting.value {
        Some(value) => lines.push(format!("  = {}", one_line(value))),
        None => lines.push("  (not set)".to_owned()),
    }
    lines.extend(
        setting
            .set
            .iter()
            .rev()
            .map(|set| format!("  {}: {}", one_line(&set.source.to_string()), one_line(&set.value))),
    );
    if let Some((route, value)) = asked.and_then(|route| Some((route, route.value.as_deref()?))) {
        let source = one_line(&route.source().to_string());
        lines.push(format!(
            "  a new session asks {}, route {} ({source})",
            one_line(value),
            one_line(&route.key["routes.".len()..])
        ));
    }
    lines.join("\n")
}
