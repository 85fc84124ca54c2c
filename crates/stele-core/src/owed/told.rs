//! What stands in the log for an answer or a result that never came.

use crate::history::announces;
use crate::nearest::distance;
use crate::state::State;
use crate::{
    AssistantMessage, Block, CallId, Event, FileChange, Producer, ResultMeta, Stop, Text, ToolError, ToolErrorClass,
    ToolResult, Usage, Wire, name_on_a_line,
};

/// How many files are named that an interrupted call had changed.
const NAMED: usize = 8;

/// The answer that stands for one that never came, so that roles alternate.
pub(super) fn unanswered(state: &State, attempt: u32) -> Event {
    partial_answer(state, attempt, "", None)
}

/// The answer of a request that was cut, with the text that had arrived and what the provider had reported by then.
#[must_use]
pub fn partial_answer(state: &State, attempt: u32, text: &str, usage: Option<Usage>) -> Event {
    let content = if text.is_empty() { Vec::new() } else { vec![Block::Text { text: Text::from(text), native: None }] };
    let producer = state.producer().unwrap_or(Producer { wire: Wire::OpenaiChat, model: String::new() });
    AssistantMessage { attempt, producer, content, stop: Stop::Cut, usage, usage_raw: None, interrupted: true }.into()
}

pub(super) fn refused(call: CallId, code: &str, message: &str) -> Event {
    result_error(call, code, ToolErrorClass::Refused, message)
}

fn result_error(call: CallId, code: &str, class: ToolErrorClass, message: &str) -> Event {
    ToolResult {
        call,
        content: Text::from(message),
        images: Vec::new(),
        error: Some(ToolError::new(code, class, "")),
        meta: ResultMeta::default(),
    }
    .into()
}

/// What the model is told of a refusal: at most 200 bytes, the identity never cut, no arguments.
pub(super) fn refusal(state: &State, call: CallId, by: &str, reason: Option<&str>, unanswered: bool) -> Event {
    if unanswered {
        let first = state.counters.unanswered <= 1;
        let message = if first {
            "not run: it needs a person's approval and nobody can be asked here. Go on without it. \
             (It would run with --mode full, or with an --allow rule for it.)"
        } else {
            "not run: it needs a person's approval and nobody can be asked here"
        };
        return refused(call, "permission.unanswered", message);
    }
    let mut message = match reason {
        Some(reason) if by.starts_with("person:") && reason.is_empty() => "Refused by the user".to_owned(),
        Some(reason) if by.starts_with("person:") => format!("Refused by the user: {reason}"),
        Some(reason) => format!("Blocked by rule {by}: {reason}"),
        None => format!("Blocked by rule {by}"),
    };
    if message.len() > 200 {
        let cut = (0..=200).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
        message.truncate(cut.max(by.len() + "Blocked by rule ".len()).min(message.len()));
    }
    refused(call, "guard.blocked", &message)
}

pub(super) fn unknown_tool(call: CallId, name: &str, offered: &[&str]) -> Event {
    // What the model made up may be of any length.
    let name: String = name.chars().take(64).collect();
    let mut names: Vec<&str> = offered.to_vec();
    names.sort_by_key(|offered| (distance(&name, offered), *offered));
    names.truncate(3);
    let message = format!("there is no tool {name:?}; the nearest are {}", names.join(", "));
    result_error(call, "tool.unknown", ToolErrorClass::Argument, &message)
}

pub(super) fn outcome_unknown(state: &State, call: CallId) -> Event {
    let ahead = state.history().ahead(call);
    let told = match state.call(call) {
        Some(record) if announces(&record.name) && ahead.is_empty() => "It had changed nothing.".to_owned(),
        _ => format!("{}Check what it did before you repeat it.", reached(ahead)),
    };
    let message =
        format!("outcome_unknown: this call was started and the agent was interrupted before it ended. {told}");
    result_error(call, "tool.outcome_unknown", ToolErrorClass::OutcomeUnknown, &message)
}

/// How far a call came that had said which files it would change.
fn reached(files: &[FileChange]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let changed: Vec<&FileChange> = files.iter().filter(|file| file.before != file.after).collect();
    let names: Vec<_> = changed.iter().take(NAMED).map(|file| name_on_a_line(&file.path)).collect();
    let more = match changed.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match changed.len() {
        0 => format!("It had changed none of its {} files. ", files.len()),
        count => format!("It had changed {count} of its {} files: {}{more}. ", files.len(), names.join(", ")),
    }
}
