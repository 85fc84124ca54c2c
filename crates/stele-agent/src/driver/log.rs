//! The log: events are staged and folded, and written together.

use std::sync::Arc;

use stele_core::{Block, Effects, Event, Part, Record};
use stele_store::{Append, Durability, Summary};

use super::Driver;
use crate::{Logged, Notice, Result};

impl Driver {
    /// Stages an event: it is folded now and written with the next commit.
    pub(crate) fn append(&mut self, event: impl Into<Event>) -> Result<()> {
        let mut record = Record::next(&self.state, self.agent.now(), event.into());
        let stored = record.encode()?;
        self.state.fold(&record);
        self.staged.push(Logged { record, stored });
        Ok(())
    }

    /// Writes what is staged, in one transaction. Before a session's first request nothing is
    /// written, unless a turn has already ended, or a copy of a session begins with an undo.
    pub(crate) fn commit(&mut self) -> Result<()> {
        let begun = self.stored || self.staged.iter().any(|logged| begins(&logged.record.event));
        if self.staged.is_empty() || !begun {
            return Ok(());
        }
        let barrier = self.staged.iter().any(|logged| self.is_barrier(&logged.record.event));
        let durability = if barrier { Durability::Barrier } else { Durability::Normal };
        let batch: Vec<Append> = self
            .staged
            .iter()
            .map(|logged| Append {
                seq: logged.record.seq,
                record: logged.stored.clone(),
                search: search_text(&logged.record.event),
            })
            .collect();
        let summary = self.summary();
        self.writer.append(&batch, durability, Some(&summary))?;
        self.stored = true;
        for mut logged in std::mem::take(&mut self.staged) {
            // Whoever is slow to take notices must not hold what files were.
            logged.record.drop_files();
            logged.stored.files.clear();
            self.notify(Notice::Event(Arc::new(logged)));
        }
        Ok(())
    }

    fn is_barrier(&self, event: &Event) -> bool {
        match event {
            Event::ToolStarted(started) => {
                let calls = self.state.step().map_or(&[][..], |step| &step.calls);
                calls.iter().any(|call| call.call == started.call && call.effects != Effects::None)
            }
            Event::FileChanged(changed) => changed.ahead,
            event => begins(event),
        }
    }

    fn summary(&self) -> Summary {
        let counters = self.state.counters();
        let title = self.state.first_prompt().map(stele_core::title);
        Summary {
            title,
            model: self.state.model().map(|model| model.model.clone()),
            turns: counters.turns,
            steps: counters.answered,
            updated: self.agent.now(),
            cost: self.state.cost(),
            cwd: self.state.session().map(|session| session.cwd.clone()).unwrap_or_default(),
        }
    }

    pub(crate) fn notify(&self, notice: Notice) {
        // Nobody listening is no error.
        let _ = self.notices.send(notice);
    }
}

/// True for what is written at once, and with which a session begins to be worth keeping: somebody has seen or paid for
/// it, or what it replaces has to be safe before it is replaced.
fn begins(event: &Event) -> bool {
    matches!(event, Event::RequestSent(_) | Event::TurnEnded(_) | Event::UndoApplied(_) | Event::RedoApplied(_))
}

/// What the search index holds of an event: what people and the model said.
#[must_use]
pub fn search_text(event: &Event) -> Option<String> {
    let text = match event {
        Event::UserMessage(message) => {
            message.content.iter().map(|Part::Text { text }| text.as_str()).collect::<Vec<_>>().join("\n")
        }
        Event::AssistantMessage(message) => message
            .content
            .iter()
            .filter_map(|block| match block {
                Block::Text { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect::<Vec<_>>()
            .join("\n"),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}
