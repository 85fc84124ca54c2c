//! How a turn came to what its files are: in which order, and whether somebody else was in between.

use crate::{FileChange, FileVersion};

/// How a turn came to what it left of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// The place of the file's first change among all that the turn did.
    pub first: u32,
    /// The place of its last change.
    pub last: u32,
    /// True when a tool said before one of the changes what it would make of the file.
    pub(crate) announced: bool,
    /// That it was something else before one of the changes than the turn had left.
    pub between: Option<Between>,
}

/// What is known of who changed a file between two changes of one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Between {
    /// A command that ended in between may have done it, if it is a file that the look after commands does not reach.
    CommandOrSomebody,
    /// No call of the turn.
    Somebody,
}

/// What a change finds of the turn so far.
pub(crate) struct Meanwhile {
    /// What the turn had left there.
    pub(crate) left: Option<FileVersion>,
    /// True when a command ended since.
    pub(crate) command: bool,
    /// True when something of the session ran in the background.
    pub(crate) background: bool,
    /// True when the change was told of before it was made.
    pub(crate) announced: bool,
    /// True when the file was left as it is under another of its names (hard links).
    pub(crate) other_name: bool,
}

impl Course {
    /// Takes note of another change of the file; `known` is what it was before the turn and what the turn made of it.
    pub(crate) fn goes_on(&mut self, known: &FileChange, change: &FileChange, meanwhile: &Meanwhile) {
        let same = |version| is_same(version, change.before);
        // What a job in the background writes to is looked at by commands alone.
        let is_of_a_job = meanwhile.background && known.before.is_none() && !self.announced && !meanwhile.announced;
        if same(known.before) {
            // Whoever took it back to before the turn: nothing of theirs is in it.
            self.between = None;
        } else if !same(meanwhile.left) && !meanwhile.other_name && !is_of_a_job {
            let between = if meanwhile.command { Between::CommandOrSomebody } else { Between::Somebody };
            self.between = self.between.max(Some(between));
        }
    }
}

/// True for the same content and mode; 0 is a mode that could not be looked at.
pub(crate) fn is_same(one: Option<FileVersion>, other: Option<FileVersion>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            one.hash == other.hash && (one.mode == other.mode || one.mode == 0 || other.mode == 0)
        }
        (one, other) => one.is_none() && other.is_none(),
    }
}
