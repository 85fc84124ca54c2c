//! What was sent before: this session's lines, and the earlier prompts of the folder.

use super::line::Line;

/// Gives the earlier prompts, oldest first. They are asked for once, and only when somebody wants one.
pub type Earlier = Box<dyn FnOnce() -> Vec<Past>>;

/// Something that was sent, or that stands in the line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Past {
    pub line: Line,
    /// It is text whatever it looks like: no command and no answer.
    pub pasted: bool,
}

impl Past {
    pub fn new(text: String, pasted: bool) -> Self {
        Self { line: Line::of(text), pasted }
    }
}

/// The history, oldest first, and where in it one is.
#[derive(Default)]
pub struct History {
    entries: Vec<Past>,
    earlier: Option<Earlier>,
    /// The entry that is shown, and what stood in the line before.
    at: Option<(usize, Past)>,
}

impl History {
    /// A history whose beginning is read when it is asked for.
    pub fn with(earlier: Earlier) -> Self {
        Self { earlier: Some(earlier), ..Self::default() }
    }

    /// Takes note of a line that was sent.
    pub fn push(&mut self, text: &str, pasted: bool) {
        let past = Past::new(text.to_owned(), pasted);
        if !text.trim().is_empty() && self.entries.last() != Some(&past) {
            self.entries.push(past);
        }
    }

    /// What was sent before the entry that is shown; `None` at the beginning.
    pub fn older(&mut self, shown: &Past) -> Option<Past> {
        if let Some(earlier) = self.earlier.take() {
            self.entries.splice(0..0, earlier());
        }
        let at = self.at.as_ref().map_or(self.entries.len(), |(at, _)| *at).checked_sub(1)?;
        let draft = self.at.take().map_or_else(|| shown.clone(), |(_, draft)| draft);
        self.at = Some((at, draft));
        self.entries.get(at).cloned()
    }

    /// What was sent after it, and in the end what stood in the line.
    pub fn newer(&mut self) -> Option<Past> {
        let (at, draft) = self.at.take()?;
        let Some(entry) = self.entries.get(at + 1) else { return Some(draft) };
        self.at = Some((at + 1, draft));
        Some(entry.clone())
    }

    /// The line was sent, or thrown away.
    pub fn leave(&mut self) {
        self.at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(text: &str) -> Past {
        Past::new(text.to_owned(), false)
    }

    #[test]
    fn the_line_comes_back_behind_what_was_sent() {
        let mut history = History::with(Box::new(|| vec![past("one")]));
        history.push("two", false);
        history.push("two", false);
        history.push(" ", false);
        let draft = past("half");
        assert_eq!(history.newer(), None);
        assert_eq!(history.older(&draft), Some(past("two")));
        assert_eq!(history.older(&past("two")), Some(past("one")));
        assert_eq!(history.older(&past("one")), None);
        assert_eq!(history.newer(), Some(past("two")));
        assert_eq!(history.newer(), Some(draft));
        assert_eq!(history.newer(), None);
    }
}
