//! `stele config`: what is set here, and by whom.

use serde::Serialize;

use crate::args::{ConfigArgs, Global, SessionArgs};
use crate::config::Setting;
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
}

#[derive(Serialize)]
struct SetBy<'a> {
    source: String,
    value: &'a str,
}

/// Lists every key, or explains one.
pub fn main(environment: Environment, global: &Global, args: &ConfigArgs) -> Result<u8> {
    let setup = Setup::new(environment, global, &SessionArgs::default())?;
    let settings: Vec<&Setting> = match &args.explain {
        Some(key) => setup.config.explain(key)?,
        None => setup.config.effective().iter().collect(),
    };
    let style = setup.look.stdout();
    let lines: Vec<String> = settings
        .iter()
        .map(|setting| match (args.json, &args.explain) {
            (true, _) => json::line(&row(setting)),
            (false, None) => text(setting, style),
            (false, Some(_)) => explained(setting, style),
        })
        .collect();
    output::print(&lines.join("\n"))?;
    if args.explain.is_none() {
        environment_route(&setup, args.json, style)?;
    }
    if !args.json {
        for skipped in &setup.config.skipped {
            output::print(&style.yellow(&format!("! {}", one_line(skipped))))?;
        }
    }
    Ok(0)
}

/// The route that `STELE_*` make, which is no key of the configuration and counts before all of them.
fn environment_route(setup: &Setup, json: bool, style: Style) -> Result<()> {
    let routes = setup.routes().unwrap_or_default();
    let Some(route) = routes.iter().find(|route| route.name == "env") else { return Ok(()) };
    let value = format!("{} at {} over {}", route.model, route.base_url, route.wire);
    let source = "STELE_MODEL, STELE_BASE_URL, STELE_WIRE";
    output::print(&if json {
        let about = "one route alone, from the environment";
        json::line(&Row { key: "routes.env", value: Some(&value), source: source.to_owned(), about, set: Vec::new() })
    } else {
        format!("routes.env = {}  {}", one_line(&value), style.dim(source))
    })
}

fn row(setting: &Setting) -> Row<'_> {
    let set = setting.set.iter().map(|set| SetBy { source: set.source.to_string(), value: &set.value });
    Row {
        key: &setting.key,
        value: setting.value.as_deref(),
        source: setting.source().to_string(),
        about: &setting.about,
        set: set.collect(),
    }
}

fn text(setting: &Setting, style: Style) -> String {
    let value = setting.value.as_deref().map_or_else(|| "(not set)".to_owned(), one_line);
    format!("{} = {value}  {}", setting.key, style.dim(&one_line(&setting.source().to_string())))
}

fn explained(setting: &Setting, style: Style) -> String {
    let mut lines = vec![style.bold(&setting.key), format!("  {}", setting.about)];
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
    lines.join("\n")
}
