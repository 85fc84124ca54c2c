//! Header and configuration of an epoch.

use std::path::Path;

use stele_core::{
    Config, Epoch, EpochOpened, EpochReason, Header, PrefaceBlock, Segment, SessionId, State, Text, ToolSchema, Zone,
};
use stele_provider::Ledger;

use crate::{Agent, Result, instructions, request};

const IDENTITY: &str = include_str!("prompt/identity.md");

/// A section of the system text, before it is placed.
struct Section<'a> {
    order: i32,
    name: &'a str,
    text: &'a str,
}

/// The `epoch/opened` that is owed, without its cost. The preface is read from disk for a session's first epoch and
/// taken from the log ever after.
pub(crate) fn epoch(
    agent: &Agent,
    state: &State,
    lineage: &SessionId,
    folder: &Path,
    ledger: &Ledger,
    reason: EpochReason,
) -> Result<EpochOpened> {
    let chosen = state.model();
    let name = chosen.map_or("", |chosen| chosen.route.as_str());
    let mut route = agent.route(name)?.clone();
    if let Some(chosen) = chosen {
        route.model.clone_from(&chosen.model);
    }
    let config: Config = route.config(lineage, ledger);
    let max_output = max_output(&config);
    let mut segments = tools(agent);
    segments.extend(system(agent));
    match state.epoch() {
        Some(epoch) => segments.extend(epoch.header.preface.iter().cloned().map(preface_segment)),
        None => segments.extend(preface(agent, folder).into_iter().map(preface_segment)),
    }
    let n = state.epoch().map_or(1, |epoch| epoch.n + 1);
    let (version, price) = (agent.options.version.clone(), route.price());
    Ok(EpochOpened { n, reason, version, cost: None, segments, config: Box::new(config), price, max_output })
}

/// The `epoch/opened` that a cut of the history alone needs: header and configuration are those of the open epoch, and
/// so is the version that composed them. Nothing when that header is not the one that the log describes.
pub(crate) fn kept(agent: &Agent, epoch: &Epoch, reason: EpochReason) -> Result<Option<EpochOpened>> {
    if request::broken_header(epoch).is_some() {
        return Ok(None);
    }
    let config = epoch.config.clone();
    let mut route = agent.route(&config.route)?.clone();
    route.model.clone_from(&config.model);
    let Header { tools, system, preface } = epoch.header.clone();
    let mut segments: Vec<Segment> = tools.iter().filter_map(tool_segment).collect();
    segments.extend(system.into_iter().map(|block| segment(Zone::System, &block.name, block.text)));
    segments.extend(preface.into_iter().map(preface_segment));
    let (max_output, price) = (max_output(&config), route.price());
    let (n, version) = (epoch.n + 1, epoch.version.clone());
    Ok(Some(EpochOpened { n, reason, version, cost: None, segments, config: Box::new(config), price, max_output }))
}

/// The most tokens that one answer can have.
fn max_output(config: &Config) -> Option<u64> {
    let most = || stele_provider::model(&config.model).and_then(|model| model.max_output);
    config.parameters.max_output_tokens.or_else(most)
}

fn segment(zone: Zone, name: &str, text: String) -> Segment {
    Segment { zone, name: name.to_owned(), text: Text::from(text).sealed() }
}

fn preface_segment(block: PrefaceBlock) -> Segment {
    segment(Zone::Preface, &block.name, block.text)
}

fn tools(agent: &Agent) -> Vec<Segment> {
    let specs = agent.options.tools.iter().map(|tool| tool.spec());
    specs
        .filter_map(|spec| {
            let schema = ToolSchema {
                name: spec.name.clone(),
                description: tidy(&spec.description),
                parameters: spec.parameters.clone(),
            };
            tool_segment(&schema)
        })
        .collect()
}

fn tool_segment(schema: &ToolSchema) -> Option<Segment> {
    // A schema is JSON already: this cannot fail.
    serde_json::to_string(schema).ok().map(|text| segment(Zone::Tools, &schema.name, text))
}

fn system(agent: &Agent) -> Vec<Segment> {
    let mut sections = vec![Section { order: -100, name: "identity", text: IDENTITY }];
    sections.extend(agent.options.persona.as_deref().map(|text| Section { order: 0, name: "persona", text }));
    sections.extend(agent.options.tools.iter().map(|tool| {
        let spec = tool.spec();
        Section { order: 100, name: &spec.name, text: &spec.guidance }
    }));
    sections.sort_by_key(|section| (section.order, section.name));
    sections
        .into_iter()
        .map(|section| (section.name, tidy(section.text)))
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| segment(Zone::System, name, text))
        .collect()
}

/// Instructions first, the facts of this folder last: what differs between folders comes late.
fn preface(agent: &Agent, folder: &Path) -> Vec<PrefaceBlock> {
    let mut blocks = instructions::read(folder, agent.options.user_instructions.as_deref());
    let today = (agent.options.clock.today)();
    let text = format!(
        "<folder>\npath: {}\nos: {}\ndate: {today}\n</folder>",
        instructions::one_line(&folder.display().to_string()),
        std::env::consts::OS
    );
    blocks.push(PrefaceBlock { name: "folder".to_owned(), text });
    blocks
}

/// Comments are stripped, three or more line ends become two, ends are trimmed.
fn tidy(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("<!--") {
        plain.push_str(&rest[..start]);
        rest = rest[start..].find("-->").map_or("", |end| &rest[start + end + 3..]);
    }
    plain.push_str(rest);
    while plain.contains("\n\n\n") {
        plain = plain.replace("\n\n\n", "\n\n");
    }
    plain.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_spare_lines_are_left_out() {
        assert_eq!(tidy("\n a <!-- b\n -->c\n\n\n\n\nd\n"), "a c\n\nd");
        assert_eq!(tidy("a <!-- never closed"), "a");
    }
}
