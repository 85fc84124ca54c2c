//! A prompt that no model ever answered, asked again.

use stele_core::{EndReason, Event, Part, SessionId, Source, State, owed};
use stele_store::Store;

use crate::error::Result;
use crate::feed::records;

/// What was said in the session's last turn, where that ended before the model had answered anything and was not taken back.
pub fn unanswered(store: &Store, session: &SessionId, state: &State) -> Result<Option<String>> {
    let given_up = matches!(state.last_end(), Some(EndReason::Failed { .. } | EndReason::Limit(_)));
    if !given_up || !owed(state).is_empty() {
        return Ok(None);
    }
    let mut said = Vec::new();
    let mut answered = false;
    for logged in records(store, session)? {
        match logged?.record.event {
            Event::TurnStarted(_) | Event::UndoApplied(_) | Event::RedoApplied(_) => {
                said.clear();
                answered = false;
            }
            Event::UserMessage(message) if message.source == Source::Person => {
                said.extend(message.content.into_iter().map(|Part::Text { text }| text.as_str().to_owned()));
            }
            Event::AssistantMessage(message) => answered |= !message.content.is_empty(),
            _ => {}
        }
    }
    Ok(Some(said.join("\n\n")).filter(|said| !answered && !said.is_empty()))
}
