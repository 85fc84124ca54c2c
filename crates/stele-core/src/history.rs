//! What turns changed, and which of them were taken back.

use std::collections::BTreeMap;

use crate::course::{self, Course, Meanwhile};
use crate::cut::Origin;
use crate::{
    CallId, FileChange, FileChanged, FileVersion, JobId, RedoApplied, Seq, SurfaceItem, TodoItem, ToolErrorClass,
    ToolResult, UndoApplied,
};

/// Most characters of a title.
const TITLE: usize = 80;

/// The tools that say what they are about to change before they change it.
const ANNOUNCING: [&str; 3] = ["edit", "patch", "write"];

/// True for a tool of which is known, from what it had said, how far it came when it was interrupted.
pub(crate) fn announces(tool: &str) -> bool {
    ANNOUNCING.contains(&tool)
}

/// What a prompt is named by in lists: its first line, cut after 80 characters, which an ellipsis tells.
#[must_use]
pub fn title(prompt: &str) -> String {
    let line = prompt.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(TITLE) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.trim_end().to_owned(),
    }
}

/// What a turn is named by so far: what is further down goes before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    #[default]
    Nothing,
    Notice,
    Turn,
    Person,
}

/// What one turn changed: one entry of the undo list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnChanges {
    /// The turn, from 1.
    pub turn: u64,
    /// The first line of its prompt, see [`title`].
    pub title: String,
    named: Named,
    /// Where its part of the surface began; absent when it left nothing there.
    first: Option<Seq>,
    /// The number that the first job had which was started in it, or would have had.
    first_job: JobId,
    /// Its files, by path: from before its first change to after its last one.
    pub files: BTreeMap<String, FileChange>,
    /// How it came to that, by path.
    pub courses: BTreeMap<String, Course>,
    /// How many changes and results there were.
    count: u32,
    /// The place of the last result among them.
    last_result: u32,
    /// The place of the result before that of the last command: what was changed until then and not by it was changed
    /// before it.
    before_command: u32,
    /// True when something of the session may run in the background.
    background: bool,
    /// Effects that an undo does not reach, in words.
    pub not_covered: Vec<String>,
    /// The things to do before it.
    pub todo: Vec<TodoItem>,
}

/// A turn that was taken back.
#[derive(Clone, Debug, PartialEq)]
pub struct Undone {
    /// What it had changed.
    pub changes: TurnChanges,
    /// The files that were restored, with what they were just before.
    pub files: Vec<FileChange>,
    /// The things to do before it was taken back.
    pub todo: Vec<TodoItem>,
    /// The records that left the surface.
    pub(crate) items: Vec<Seq>,
}

/// Back or forth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restoring {
    /// A turn is taken back.
    Undo,
    /// A turn is done again.
    Redo,
}

impl Restoring {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Undo => "undo",
            Self::Redo => "redo",
        }
    }

    /// What takes it back.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Undo => Self::Redo,
            Self::Redo => Self::Undo,
        }
    }
}

/// An undo or redo of which nobody knows how many of its files are changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Unrestored {
    /// Which of the two.
    pub way: Restoring,
    /// The turn.
    pub turn: u64,
    /// Its title.
    pub title: String,
    /// What each file is to be again (`before`), and what it was just before (`after`).
    pub files: Vec<FileChange>,
}

impl Unrestored {
    fn new<'a>(
        way: Restoring,
        changes: &TurnChanges,
        sources: impl Iterator<Item = &'a FileChange>,
        applied: &[FileChange],
    ) -> Option<Self> {
        let applied: BTreeMap<&str, &FileChange> = applied.iter().map(|file| (file.path.as_str(), file)).collect();
        let owed = |source: &FileChange| {
            let file = applied.get(source.path.as_str())?;
            Some(FileChange { after: file.before, ..source.clone() })
        };
        let files: Vec<FileChange> = sources.filter_map(owed).collect();
        (!files.is_empty()).then(|| Self { way, turn: changes.turn, title: changes.title.clone(), files })
    }
}

/// The undo list of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    open: Option<TurnChanges>,
    done: Vec<TurnChanges>,
    undone: Vec<Undone>,
    /// In the order in which they were asked for; of one turn only the last.
    unrestored: Vec<Unrestored>,
    /// What calls said they are about to change, until they end.
    ahead: BTreeMap<CallId, Vec<FileChange>>,
}

impl History {
    /// Turns that are over and not taken back, in order.
    #[must_use]
    pub fn done(&self) -> &[TurnChanges] {
        &self.done
    }

    /// Turns that were taken back and can be done again, the next one last.
    #[must_use]
    pub fn undone(&self) -> &[Undone] {
        &self.undone
    }

    /// What the open turn made of a file; absent when it did not change it before.
    #[must_use]
    pub fn left_as(&self, path: &str) -> Option<Option<FileVersion>> {
        self.open.as_ref()?.files.get(path).map(|change| change.after)
    }

    /// Undos and redos whose files are not known to be changed, in their order. A file that a turn has changed since is no
    /// longer among them.
    #[must_use]
    pub fn unrestored(&self) -> &[Unrestored] {
        &self.unrestored
    }

    /// True when this is what was done last: it would be the same to ask for it again.
    #[must_use]
    pub fn is_last(&self, way: Restoring, turn: u64) -> bool {
        let last = match way {
            Restoring::Undo => self.undone.last().map(|undone| undone.changes.turn),
            Restoring::Redo => self.done.last().map(|done| done.turn),
        };
        last == Some(turn)
    }

    /// What a call that has not ended said it is about to change, as far as nothing else is known since.
    #[must_use]
    pub fn ahead(&self, call: CallId) -> &[FileChange] {
        self.ahead.get(&call).map_or(&[], Vec::as_slice)
    }

    /// The calls that said what they are about to change, and have not ended.
    pub fn under_way(&self) -> impl Iterator<Item = CallId> {
        self.ahead.keys().copied()
    }

    /// A turn opens: what was taken back before cannot be done again.
    pub(crate) fn begin(&mut self, turn: u64, first_job: JobId, todo: &[TodoItem]) {
        self.end();
        self.undone.clear();
        self.ahead.clear();
        self.open = Some(TurnChanges { turn, first_job, todo: todo.to_vec(), ..TurnChanges::default() });
    }

    pub(crate) fn end(&mut self) {
        self.done.extend(self.open.take().filter(|open| open.first.is_some() || !open.files.is_empty()));
    }

    /// An item came to the surface.
    pub(crate) fn surfaced(&mut self, seq: Seq, item: &SurfaceItem, origin: &Origin) {
        let Some(open) = &mut self.open else { return };
        open.first.get_or_insert(seq);
        let named = match origin {
            Origin::Notice { .. } => Named::Notice,
            Origin::Turn => Named::Turn,
            Origin::Person => Named::Person,
        };
        if let (SurfaceItem::User(parts), true) = (item, named > open.named)
            && let Some(crate::Part::Text { text }) = parts.first()
        {
            open.title = title(text.as_str());
            open.named = named;
        }
    }

    /// Where the surface of the last turn began that is over, and the number of its first job.
    pub(crate) fn last_begin(&self) -> Option<(Seq, JobId)> {
        let last = self.done.last()?;
        Some((last.first?, last.first_job))
    }

    /// A file changed, or is about to; `background` tells whether jobs run.
    pub(crate) fn changed(&mut self, changed: &FileChanged, background: bool) {
        let Some(open) = &mut self.open else { return };
        open.background |= background;
        let change = light(&changed.change);
        owe_no_more(&mut self.unrestored, &change.path);
        let said = self.ahead.get_mut(&changed.call).and_then(|it| it.iter_mut().find(|it| it.path == change.path));
        let announced = changed.ahead || said.is_some();
        let left = match said {
            // Nothing came of what it had said, since somebody else changed the file meanwhile.
            Some(said) if changed.ahead => {
                let void = std::mem::replace(said, change.clone());
                open.forget(&void);
                Some(void.before)
            }
            // What it had said came to something else.
            Some(said) => {
                said.after = change.after;
                return open.correct(change);
            }
            None if changed.ahead => {
                self.ahead.entry(changed.call).or_default().push(change.clone());
                None
            }
            None => None,
        };
        open.changed(change, left, announced);
    }

    /// A call ended: what it did beyond what is known of files.
    pub(crate) fn result(&mut self, result: &ToolResult, tool: &str) {
        self.ahead.remove(&result.call);
        let Some(open) = &mut self.open else { return };
        let unknown = result.error.as_ref().is_some_and(|error| error.class == ToolErrorClass::OutcomeUnknown);
        if !announces(tool) && (unknown || !result.meta.not_covered.is_empty()) {
            open.before_command = open.last_result;
        }
        open.count += 1;
        open.last_result = open.count;
        let left = result.meta.process.as_ref().is_some_and(|process| process.left.is_some());
        open.background |= left || !result.meta.jobs.is_empty();
        let unknown = (unknown && !announces(tool))
            .then(|| format!("what {tool} ({}) did before it was interrupted: nobody knows", result.call));
        for words in result.meta.not_covered.iter().cloned().chain(unknown) {
            if !open.not_covered.contains(&words) {
                open.not_covered.push(words);
            }
        }
    }

    pub(crate) fn undo(&mut self, applied: &UndoApplied, todo: &[TodoItem], items: Vec<Seq>) {
        if self.done.last().is_some_and(|last| last.turn == applied.turn)
            && let Some(changes) = self.done.pop()
        {
            let owed = Unrestored::new(Restoring::Undo, &changes, changes.files.values(), &applied.files);
            self.owe(applied.turn, owed);
            let files = applied.files.iter().map(light).collect();
            self.undone.push(Undone { changes, files, todo: todo.to_vec(), items });
        }
    }

    pub(crate) fn redo(&mut self, applied: &RedoApplied) {
        if self.undone.last().is_some_and(|last| last.changes.turn == applied.turn)
            && let Some(mut undone) = self.undone.pop()
        {
            let owed = Unrestored::new(Restoring::Redo, &undone.changes, undone.files.iter(), &applied.files);
            self.owe(applied.turn, owed);
            for file in &applied.files {
                undone.changes.replaced(file);
            }
            self.done.push(undone.changes);
        }
    }

    /// What is owed of a turn's files from now on.
    fn owe(&mut self, turn: u64, owed: Option<Unrestored>) {
        self.restored(turn);
        self.unrestored.extend(owed);
    }

    /// The files of the last undo or redo of a turn are as it says.
    pub(crate) fn restored(&mut self, turn: u64) {
        self.unrestored.retain(|owed| owed.turn != turn);
    }

    /// Nothing of this log's undos and redos is to be finished here.
    pub(crate) fn owe_nothing(&mut self) {
        self.unrestored.clear();
    }
}

impl TurnChanges {
    /// One more change of a file; `left` is what the turn had left there, where that is not what it last said.
    fn changed(&mut self, change: FileChange, left: Option<Option<FileVersion>>, announced: bool) {
        self.count += 1;
        let here = Course { first: self.count, last: self.count, announced, between: None };
        let known = self.files.get(&change.path).filter(|known| known.before != known.after);
        let (Some(known), Some(mut course)) = (known, self.courses.get(&change.path).copied()) else {
            // What it was before the turn, or what somebody made of what the turn had taken back by itself.
            self.courses.insert(change.path.clone(), here);
            self.files.insert(change.path.clone(), change);
            return;
        };
        let is_left =
            |name: &String| self.files.get(name).is_some_and(|other| course::is_same(other.after, change.before));
        let meanwhile = Meanwhile {
            left: left.unwrap_or(known.after),
            command: self.before_command > course.last,
            background: self.background,
            announced,
            other_name: change.linked.iter().flatten().any(is_left),
        };
        course.goes_on(known, &change, &meanwhile);
        self.courses.insert(
            change.path.clone(),
            Course { last: self.count, announced: course.announced || announced, ..course },
        );
        if let Some(known) = self.files.get_mut(&change.path) {
            known.after = change.after;
        }
    }

    /// What was said of a file came to something else.
    fn correct(&mut self, change: FileChange) {
        if let Some(known) = self.files.get_mut(&change.path) {
            known.after = change.after;
        }
    }

    /// Nothing came of what was said of a file, and nothing else is known of it.
    fn forget(&mut self, void: &FileChange) {
        if self.files.get(&void.path).is_some_and(|known| known.before == void.before) {
            self.files.remove(&void.path);
            self.courses.remove(&void.path);
        }
    }

    /// What stood there just before a redo is what an undo brings back from now on, as far as it is kept.
    fn replaced(&mut self, file: &FileChange) {
        if let Some(known) = self.files.get_mut(&file.path)
            && known.before != file.before
            && (file.before.is_none() || file.kept.is_some())
        {
            *known = FileChange { after: known.after, made: known.made.take().or(file.made.clone()), ..light(file) };
        }
    }
}

/// A turn changes a file: what it is from then on is not what an undo or redo before was to make of it.
fn owe_no_more(unrestored: &mut Vec<Unrestored>, path: &str) {
    for owed in &mut *unrestored {
        owed.files.retain(|file| file.path != path);
    }
    unrestored.retain(|owed| !owed.files.is_empty());
}

/// A change without the bytes that its record holds until it is written.
fn light(change: &FileChange) -> FileChange {
    let mut light = change.clone();
    if let Some(kept) = &mut light.kept {
        kept.stored();
    }
    light
}
