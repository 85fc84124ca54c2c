//! The model's text as it arrives: what was shown, and what a later attempt makes of it.

use super::inert::Inert;

/// What to do with a piece of text, or with the whole of it once it is in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Show {
    /// Write this after what is there.
    More(String),
    /// What is there is void: say so, then write this.
    Anew(String),
}

/// The answer of the step that is being streamed.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    step: u64,
    attempt: u32,
    /// What arrived of this attempt and was shown, before it was made inert.
    shown: String,
    inert: Inert,
    /// Pieces were lost: wait for the whole answer.
    behind: bool,
}

impl Answer {
    /// A piece arrived.
    pub fn piece(&mut self, step: u64, attempt: u32, text: &str) -> Option<Show> {
        if (self.step, self.attempt) != (step, attempt) {
            let void = self.step == step && !self.shown.is_empty();
            *self = Self { step, attempt, ..Self::default() };
            self.shown.push_str(text);
            let text = self.inert.feed(text);
            return Some(if void { Show::Anew(text) } else { Show::More(text) });
        }
        if self.behind {
            return None;
        }
        self.shown.push_str(text);
        Some(Show::More(self.inert.feed(text)))
    }

    /// Pieces were lost.
    pub fn fell_behind(&mut self) {
        self.behind = true;
    }

    /// The whole answer of a step is in the log.
    pub fn whole(&mut self, step: u64, text: &str) -> Show {
        let mut last = std::mem::take(self);
        if last.step != step {
            return Show::More(Inert::default().feed(text));
        }
        match text.strip_prefix(last.shown.as_str()) {
            Some(rest) => Show::More(last.inert.feed(rest)),
            None if text.is_empty() => Show::More(String::new()),
            None => Show::Anew(Inert::default().feed(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn more(text: &str) -> Show {
        Show::More(text.to_owned())
    }

    #[test]
    fn nothing_is_shown_twice() {
        let mut answer = Answer::default();
        assert_eq!(answer.piece(1, 1, "a\u{1b}[3"), Some(more("a")));
        assert_eq!(answer.piece(1, 1, "1mb"), Some(more("b")));
        assert_eq!(answer.whole(1, "a\u{1b}[31mbc"), more("c"));
        assert_eq!(answer.whole(2, "without pieces"), more("without pieces"));
    }

    #[test]
    fn a_later_attempt_voids_what_was_shown() {
        let mut answer = Answer::default();
        answer.piece(3, 1, "I wi");
        assert_eq!(answer.piece(3, 2, "I "), Some(Show::Anew("I ".to_owned())));
        assert_eq!(answer.piece(3, 2, "do"), Some(more("do")));
        assert_eq!(answer.whole(3, "I do"), more(""));
    }

    #[test]
    fn an_attempt_that_failed_for_good_leaves_what_was_shown() {
        let mut answer = Answer::default();
        answer.piece(1, 2, "half an ans");
        assert_eq!(answer.whole(1, ""), more(""));
    }

    #[test]
    fn a_slow_reader_gets_the_rest_at_the_end() {
        let mut answer = Answer::default();
        answer.piece(1, 1, "one ");
        answer.fell_behind();
        assert_eq!(answer.piece(1, 1, "three"), None);
        assert_eq!(answer.whole(1, "one two three"), more("two three"));
    }
}
