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
    if !args.json {
        for skipped in &setup.config.skipped {
            output::print(&style.yellow(&format!("! {}", one_line(skipped))))?;
        }
    }
    Ok(0)
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
