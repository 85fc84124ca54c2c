//! Parameters that not every wire can express, or not with everything else.

use stele_core::{Config, Failure, Header, ToolChoice};

use super::unsupported;
use super::writer::Writer;

/// What the model is told of its choice among the tools. Without tools there is nothing to choose, so that what asks for
/// none of them is left out.
pub(super) fn tool_choice<'a>(header: &Header, config: &'a Config) -> Result<Option<&'a ToolChoice>, Failure> {
    let Some(choice) = &config.parameters.tool_choice else { return Ok(None) };
    let offered = |name: &String| header.tools.iter().any(|tool| tool.name == *name);
    match choice {
        ToolChoice::Auto | ToolChoice::None => Ok(Some(choice).filter(|_| !header.tools.is_empty())),
        ToolChoice::Required if header.tools.is_empty() => {
            Err(unsupported("tool_choice asks for a call and no tool is offered; drop it from the route's parameters"))
        }
        ToolChoice::Tool(name) if !offered(name) => Err(unsupported(format!(
            "tool_choice asks for the tool {name:?}, which is not offered; name another one in the route's parameters"
        ))),
        ToolChoice::Required | ToolChoice::Tool(_) => Ok(Some(choice)),
    }
}

/// Refuses a parameter that this wire has no field for.
pub(super) fn none_of<T>(config: &Config, name: &str, value: Option<&T>) -> Result<(), Failure> {
    match value {
        None => Ok(()),
        Some(_) => Err(unsupported(format!("{} takes no {name}; drop it from the route's parameters", config.wire))),
    }
}

/// Writes `"field":["…",…]`, where there is something to stop at.
pub(super) fn stop(writer: &mut Writer, field: &str, config: &Config) {
    let Some(stop) = config.parameters.stop.as_ref().filter(|stop| !stop.is_empty()) else { return };
    writer.separate();
    writer.string(field);
    writer.raw(":[");
    for text in stop {
        writer.separate();
        writer.string(text);
    }
    writer.raw("]");
}
