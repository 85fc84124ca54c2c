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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallId, FileChanged, Hash, History, JobId, ProcessMeta, ResultMeta, ToolResult};

    fn version(text: &str) -> Option<FileVersion> {
        (!text.is_empty()).then(|| FileVersion { hash: Hash::of(text.as_bytes()), len: 1, mode: 0o100_644 })
    }

    /// One thing that the log says: of a call, the file, what it was and is to be, as it was announced or as it came to be.
    enum Said {
        Ahead(u64, &'static str, &'static str),
        Is(u64, &'static str, &'static str),
        /// A command ended, and what it did out of view is not known.
        Command(u64),
        /// A tool ended that had announced what it did.
        Tool(u64),
        /// A command ended that left something running.
        Leaving(u64),
    }
    use Said::{Ahead, Command, Is, Leaving, Tool};

    /// What is known of `f` after that: from what to what, and who was in between.
    fn after(said: &[Said]) -> (Option<FileVersion>, Option<FileVersion>, Option<Between>) {
        let mut history = History::default();
        history.begin(1, JobId(1), &[]);
        let result = |call: u64, meta: ResultMeta| ToolResult {
            call: CallId(call),
            content: "".into(),
            images: Vec::new(),
            error: None,
            meta,
        };
        let unseen = || ResultMeta { not_covered: vec!["elsewhere".to_owned()], ..ResultMeta::default() };
        for said in said {
            match *said {
                Ahead(call, before, after) | Is(call, before, after) => {
                    let (before, after) = (version(before), version(after));
                    let path = "/f".to_owned();
                    let change = FileChange { path, before, after, kept: None, made: None, linked: None };
                    let ahead = matches!(said, Ahead(..));
                    history.changed(&FileChanged { call: CallId(call), ahead, change }, false);
                }
                Command(call) => history.result(&result(call, unseen()), "bash"),
                Tool(call) => history.result(&result(call, ResultMeta::default()), "edit"),
                Leaving(call) => {
                    let process = Some(ProcessMeta { left: Some("a server".to_owned()), ..ProcessMeta::default() });
                    history.result(&result(call, ResultMeta { process, ..unseen() }), "bash");
                }
            }
        }
        history.end();
        let turn = history.done().last().unwrap();
        let file = &turn.files["/f"];
        (file.before, file.after, turn.courses["/f"].between)
    }

    #[test]
    fn somebody_is_known_by_what_a_change_finds() {
        use Between::{CommandOrSomebody, Somebody};
        let cases: [(&[Said], &str, &str, Option<Between>); 13] = [
            (&[Ahead(1, "a", "b"), Tool(1), Ahead(2, "b", "c")], "a", "c", None),
            (&[Ahead(1, "a", "b"), Tool(1), Ahead(2, "B", "c")], "a", "c", Some(Somebody)),
            // Once somebody was there, what comes later changes nothing about it, but that all of it is as before the turn.
            (&[Ahead(1, "a", "b"), Tool(1), Ahead(2, "B", "c"), Tool(2), Is(3, "c", "d")], "a", "d", Some(Somebody)),
            (&[Ahead(1, "a", "b"), Tool(1), Ahead(2, "B", "c"), Tool(2), Is(3, "a", "d")], "a", "d", None),
            // A command that says nothing of the file may have changed it out of view; one that does has not.
            (&[Ahead(1, "a", "b"), Tool(1), Command(2), Ahead(3, "B", "c")], "a", "c", Some(CommandOrSomebody)),
            (&[Ahead(1, "a", "b"), Tool(1), Is(2, "b", "B"), Command(2), Ahead(3, "X", "c")], "a", "c", Some(Somebody)),
            (&[Is(1, "a", "b"), Command(1), Is(2, "B", "c"), Command(2)], "a", "c", Some(Somebody)),
            // Somebody was faster than an announcement: nothing came of that.
            (&[Ahead(1, "a", "b"), Ahead(1, "B", "c")], "B", "c", None),
            (&[Ahead(1, "a", "b"), Tool(1), Ahead(2, "b", "c"), Ahead(2, "B", "d")], "a", "d", Some(Somebody)),
            // The call gave up, or was killed before it wrote; then somebody wrote.
            (
                &[Ahead(1, "a", "b"), Tool(1), Ahead(2, "b", "c"), Is(2, "b", "b"), Tool(2), Is(3, "b", "d")],
                "a",
                "d",
                None,
            ),
            (&[Ahead(1, "a", "b"), Is(1, "a", "a"), Tool(1), Ahead(2, "B", "c")], "B", "c", None),
            // What was left running writes to what a command made.
            (&[Is(1, "", "b"), Leaving(1), Is(2, "B", "c"), Command(2)], "", "c", None),
            (&[Is(1, "a", "b"), Leaving(1), Is(2, "B", "c"), Command(2)], "a", "c", Some(Somebody)),
        ];
        for (at, (said, before, end, between)) in cases.into_iter().enumerate() {
            assert_eq!(after(said), (version(before), version(end), between), "{at}");
        }
    }

    #[test]
    fn a_mode_counts_where_it_is_known() {
        let (one, other) = (version("a"), version("a").map(|it| FileVersion { mode: 0o100_755, ..it }));
        assert!(is_same(one, one) && !is_same(one, other) && !is_same(one, None) && is_same(None, None));
        assert!(is_same(one, one.map(|it| FileVersion { mode: 0, ..it })));
    }
}
