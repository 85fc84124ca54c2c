//! Calls, in the text view: shown one after the other, whichever ran at the same time, and asked about.

use stele_core::{By, CallId, Mode, Text, Tool, ToolCalled, ToolGated, ToolResult, Verdict};

use super::TextView;
use crate::approve;
use crate::person::Pending;
use crate::render::card;
use crate::render::inert::{inert, one_line};
use crate::tally::allow_with;

/// A call as far as it was shown.
#[derive(Clone, Debug)]
pub struct ShownCall {
    pub name: String,
    pub arguments: Text,
    pub gated: Option<ToolGated>,
    pub title: String,
    refused: bool,
    /// The question about it, as it was shown.
    asked: String,
    /// What is shown once the calls before are done.
    waiting: Vec<String>,
    done: bool,
}

impl TextView {
    pub(super) fn called(&mut self, called: &ToolCalled) {
        let title = card::title(
            self.tool(&called.name),
            &called.name,
            called.arguments.as_str(),
            &self.folder,
            self.choice.depth,
        );
        let shown = ShownCall {
            name: called.name.clone(),
            arguments: called.arguments.clone(),
            gated: None,
            title,
            refused: false,
            asked: String::new(),
            waiting: Vec::new(),
            done: false,
        };
        self.calls.insert(called.call, shown);
    }

    /// Shows something of a call once every call before it is done, so that calls that run at the same time
    /// are shown one after the other.
    pub(super) fn put(&mut self, id: CallId, text: String) {
        let first = self.calls.keys().next().is_none_or(|first| *first >= id);
        match self.calls.get_mut(&id) {
            Some(call) if !first => call.waiting.push(text),
            _ => self.note(&text),
        }
    }

    /// A call is done: it and what waited for it are shown.
    fn done(&mut self, id: CallId) {
        if let Some(call) = self.calls.get_mut(&id) {
            call.done = true;
        }
        while let Some(mut entry) = self.calls.first_entry() {
            let (id, waiting, done) = (*entry.key(), std::mem::take(&mut entry.get_mut().waiting), entry.get().done);
            if done {
                entry.remove();
            }
            for text in &waiting {
                self.note(text);
                self.last_title = Some(id);
            }
            if !done {
                break;
            }
        }
    }

    /// Nothing follows: what still waits is shown.
    pub fn rest(&mut self) {
        for call in std::mem::take(&mut self.calls).into_values() {
            call.waiting.iter().for_each(|text| self.note(text));
        }
    }

    pub(super) fn gated(&mut self, gated: &ToolGated) {
        let style = self.screen.style;
        let Some(call) = self.calls.get_mut(&gated.call) else { return };
        call.gated = Some(gated.clone());
        if gated.decision == Verdict::Deny {
            call.refused = true;
            let reason = gated.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let line = format!("{} {}\n  refused by {}{}", style.red("✗"), call.title, gated.by.0, one_line(&reason));
            self.put(gated.call, line);
        }
    }

    pub(super) fn unanswered(&mut self, id: CallId) {
        let style = self.screen.style;
        let Some(call) = self.calls.get_mut(&id) else { return };
        call.refused = true;
        let gated = call.gated.as_ref();
        let by = gated.map(|gated| gated.by.0.as_str()).unwrap_or_default();
        let reason = gated.and_then(|gated| gated.reason.as_deref()).unwrap_or(by);
        let no_rule = gated.is_some_and(|gated| gated.settled_with.is_empty() && gated.settled_by == Some(Mode::Full));
        let advice = match gated.and_then(allow_with) {
            Some(flag) if no_rule => format!("no rule can allow that, only {flag}"),
            Some(flag) => format!("allow it with {}", one_line(&flag)),
            None => "no flag allows it".to_owned(),
        };
        let line = format!(
            "{} {}\n  refused: {}, and nobody is here to ask; {advice}",
            style.red("✗"),
            call.title,
            one_line(reason)
        );
        self.put(id, line);
    }

    pub(super) fn rejected(&mut self, id: CallId, by: &By, reason: &str) {
        let style = self.screen.style;
        let Some(call) = self.calls.get_mut(&id) else { return };
        call.refused = true;
        let by = if by.0 == "person:cli" { "you" } else { &by.0 };
        let line = format!("{} {}\n  refused by {}: {}", style.red("✗"), call.title, one_line(by), one_line(reason));
        self.put(id, line);
    }

    pub(super) fn started(&mut self, id: CallId) {
        let title = self.calls.get(&id).map(|call| call.title.clone()).unwrap_or_default();
        let first = self.calls.keys().next() == Some(&id);
        self.put(id, format!("{} {title}", self.screen.style.cyan("●")));
        if first {
            self.last_title = Some(id);
        }
        self.doing = title;
    }

    pub(super) fn result(&mut self, result: &ToolResult) {
        let style = self.screen.style;
        let call = self.calls.get(&result.call);
        // The refusal was shown with its reason already, and the list itself when it was set.
        let shown = call.is_some_and(|call| call.refused || result.error.is_none() && call.name == "todo");
        if !shown {
            let is_ask = call.is_some_and(|call| call.name == "ask");
            let (words, mut below) = match is_ask && result.error.is_none() {
                true => (card::answered(result), Vec::new()),
                false => card::result(result, &self.folder, style, self.choice.depth),
            };
            // A change that was asked about stands there already.
            let changed = result.meta.process.is_none() && result.meta.files.iter().any(|file| file.diff.is_some());
            if changed
                && call.is_some_and(|call| below.iter().all(|line| line.contains("… ") || call.asked.contains(line)))
            {
                below.clear();
            }
            let title = call.map_or("a call from before", |call| &call.title);
            let titled =
                self.last_title == Some(result.call) || is_ask || call.is_some_and(|call| !call.waiting.is_empty());
            let mut text = if titled { format!("  {words}") } else { format!("  {title}: {words}") };
            for line in below {
                text.push_str("\n    ");
                text.push_str(&line);
            }
            self.put(result.call, text);
        }
        self.done(result.call);
        "waiting for the model".clone_into(&mut self.doing);
    }

    /// A call that was shown, for a question about it.
    pub fn call(&self, call: CallId) -> Option<&ShownCall> {
        self.calls.get(&call)
    }

    /// A tool by name.
    pub fn tool(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.iter().find(|tool| tool.spec().name == name).map(AsRef::as_ref)
    }

    /// Shows a question: about a call, or what a tool wants to know.
    pub fn question(&mut self, pending: &Pending) {
        // Nothing goes on until it is answered.
        self.doing.clear();
        let style = self.screen.style;
        let question = match pending {
            Pending::Approval(call) => {
                let Some(shown) = self.calls.get(call) else { return };
                let question = approve::question(shown, self.tool(&shown.name), &self.folder, &self.previews, style);
                if let Some(shown) = self.calls.get_mut(call) {
                    shown.asked.clone_from(&question);
                }
                question
            }
            Pending::Question(question) => format!("{} {}", style.bold("?"), inert(&question.text).trim_end()),
        };
        self.warn(&question);
    }

    /// Shows what answers it, and where the answer stands.
    pub fn choices(&mut self, pending: &Pending) {
        let choices = match pending {
            Pending::Approval(call) => {
                let Some(shown) = self.calls.get(call) else { return };
                approve::choices(shown)
            }
            Pending::Question(_) => "  your answer: ".to_owned(),
        };
        self.screen.prompt(&choices);
    }
}
