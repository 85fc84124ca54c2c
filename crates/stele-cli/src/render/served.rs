//! What the proxy does while it runs, as lines.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use stele_core::{Usage, Wire};
use stele_proxy::{Ending, Notice};

use super::inert::{one_line, shorten};
use super::money::{plural, short, tokens};
use super::style::Style;

/// What is told while the proxy runs.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Served<'a> {
    Listening {
        base_url: String,
        to: String,
        folder: &'a Path,
        variables: BTreeMap<&'a str, &'a str>,
        /// For agents that read a file.
        configuration: Vec<&'a str>,
    },
    Recorded {
        id: u64,
        wire: Wire,
        model: &'a str,
        status: Option<u16>,
        ending: Ending,
        prompt_bytes: u64,
        usage: Option<Usage>,
    },
    NotRecorded {
        why: &'a str,
    },
    Refused {
        code: &'a str,
        message: &'a str,
    },
    /// Lines that are not shown.
    Hidden {
        lines: u64,
    },
    Result {
        recorded: u64,
        exit: u8,
        /// For agents that read a file, when nothing was recorded.
        configuration: Vec<&'a str>,
    },
}

impl<'a> From<&'a Notice> for Served<'a> {
    fn from(notice: &'a Notice) -> Self {
        match notice {
            Notice::Recorded { id, wire, model, status, ending, prompt_bytes, usage } => Self::Recorded {
                id: *id,
                wire: *wire,
                model,
                status: *status,
                ending: *ending,
                prompt_bytes: *prompt_bytes,
                usage: *usage,
            },
            Notice::NotRecorded { why } => Self::NotRecorded { why },
            Notice::Refused { code, message } => Self::Refused { code, message },
        }
    }
}

/// What happened, for a person.
pub fn served(served: &Served<'_>, style: Style) -> Vec<String> {
    let name = style.dim("proxy");
    match served {
        Served::Listening { base_url, to, folder, variables, configuration } => {
            let mut lines = vec![format!("{name} {} → {}", style.bold(base_url), one_line(to))];
            lines.push(style.dim(&format!("  recorded in {}", one_line(&folder.display().to_string()))));
            lines.extend(variables.iter().map(|(name, value)| format!("  {name}={value}")));
            lines.extend(configuration.iter().map(|line| format!("  {line}")));
            lines
        }
        Served::Recorded { id, model, status, ending, prompt_bytes, usage, .. } => {
            let state = match (status, ending) {
                (Some(status @ 200..300), Ending::Whole) => style.green(&status.to_string()),
                (_, Ending::ClientLeft) => style.yellow("client left"),
                (_, Ending::ServerBroke) => style.red("broke off"),
                (_, Ending::Unreachable) | (None, Ending::Whole) => style.red("no answer"),
                (Some(status), Ending::Whole) => style.red(&status.to_string()),
            };
            let usage = usage.as_ref().map_or_else(|| "not reported".to_owned(), tokens);
            let model = shorten(&one_line(model), 20);
            vec![format!("{name} #{id} {model} {state} {}B {usage}", short(*prompt_bytes))]
        }
        Served::NotRecorded { why } => vec![format!("{name} {} {}", style.yellow("not recorded:"), one_line(why))],
        Served::Refused { code, message } => vec![format!("{name} {} {}", style.red(code), one_line(message))],
        Served::Hidden { lines } => vec![style.dim(&format!("proxy … {} before", plural(*lines, "line")))],
        Served::Result { recorded: 0, configuration, .. } => {
            let mut lines = vec![format!("{name} nothing was recorded")];
            if !configuration.is_empty() {
                lines.push("  the command may take its base URL from a file only:".to_owned());
                lines.extend(configuration.iter().map(|line| format!("  {line}")));
            }
            lines
        }
        Served::Result { recorded, .. } => {
            vec![format!("{name} {} recorded; see: stele proxy report", plural(*recorded, "request"))]
        }
    }
}
