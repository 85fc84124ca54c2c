//! Cuts of the surface, and what else follows from what is left on it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::read_file::{Sight, follow};
use crate::state::State;
use crate::surface::SurfaceItem;
use crate::{
    Block, CutReason, Image, ItemRef, JobId, Part, ReadFiles, Replacement, Seq, Shown, ShownFiles, Source, Span,
    SpanRange, SurfaceReplaced,
};

/// What an item of the surface tells beside its content.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Mark {
    /// Its record.
    pub(crate) seq: Seq,
    /// What it tells of files, if anything. Most items of a long history do not.
    pub(crate) told: Option<Box<Told>>,
    /// What it came from.
    pub(crate) origin: Origin,
}

/// What a result tells of files and folders.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Told {
    /// Files that it showed or changed, and what they are then; nothing for a deleted one.
    pub(crate) files: Vec<(PathBuf, Option<Sight>)>,
    /// What of a file it showed.
    pub(crate) shown: Option<(PathBuf, Showing)>,
    /// The folder in which it left the session.
    pub(crate) cwd: Option<PathBuf>,
}

impl Told {
    /// Nothing, where there is nothing to tell.
    pub(crate) fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// What an item of the surface came from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Origin {
    /// Its turn: an answer, a result, a word of Stele on how the turn goes.
    #[default]
    Turn,
    /// A person.
    Person,
    /// What the model has to know whatever turn it was told in: that the folder is another one, that jobs ended.
    Notice {
        /// The jobs that it tells of.
        jobs: Vec<JobId>,
    },
}

impl Origin {
    /// Of a message: what waited without opening a turn by itself is a notice.
    pub(crate) fn of(source: Source, waiting: Option<&crate::InboxQueued>) -> Self {
        match (source, waiting) {
            (Source::Person, _) => Self::Person,
            (_, Some(queued)) if !queued.wake => Self::Notice { jobs: queued.jobs.iter().map(|job| job.job).collect() },
            _ => Self::Turn,
        }
    }

    /// True for a notice that holds without a turn: jobs that were started in it, or later, nobody has to know then.
    fn outlasts(&self, first_job: JobId) -> bool {
        matches!(self, Self::Notice { jobs } if jobs.is_empty() || jobs.iter().any(|job| *job < first_job))
    }
}

/// How an item showed a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Showing {
    /// By its lines.
    Lines(Shown),
    /// By pointing at an item before.
    Pointer,
}

type Placed = (SurfaceItem, Mark);

impl State {
    /// Puts an item at the end of the surface.
    pub(crate) fn push(&mut self, item: SurfaceItem, mark: Mark) {
        let mark = Mark { seq: self.next_seq.before().unwrap_or_default(), ..mark };
        self.surface_bytes += own_bytes(&item);
        self.history.surfaced(mark.seq, &item, &mark.origin);
        self.tells(&mark);
        self.surface.push(item);
        self.marks.push(mark);
    }

    fn tells(&mut self, mark: &Mark) {
        let Some(told) = &mark.told else { return };
        if !told.files.is_empty() {
            let files = Arc::make_mut(&mut self.read_files);
            for (path, sight) in &told.files {
                follow(files, path, *sight);
            }
        }
        if let Some((path, showing)) = &told.shown {
            let files = Arc::make_mut(&mut self.shown_files);
            match (showing, files.get_mut(path)) {
                (Showing::Lines(shown), Some(known)) => *known = *shown,
                (Showing::Lines(shown), None) => drop(files.insert(path.clone(), *shown)),
                (Showing::Pointer, Some(shown)) => shown.pointed = true,
                // What it pointed at is not on the surface any more.
                (Showing::Pointer, None) => {}
            }
        }
        if told.cwd.is_some() {
            self.cwd.clone_from(&told.cwd);
        }
    }

    /// Where the surface has what leaves it with the last turn: all that came since the turn began, without the notices
    /// that hold nevertheless. Records on the surface are always in their order.
    fn undo_runs(&self) -> Vec<&[Mark]> {
        let Some((first, first_job)) = self.history.last_begin() else { return Vec::new() };
        let since = self.marks.partition_point(|mark| mark.seq < first);
        self.marks[since..]
            .chunk_by(|one, next| one.origin.outlasts(first_job) == next.origin.outlasts(first_job))
            .filter(|run| run.iter().all(|mark| !mark.origin.outlasts(first_job)))
            .collect()
    }

    /// The records that leave the surface with the last turn.
    pub(crate) fn undo_items(&self) -> Vec<Seq> {
        self.undo_runs().into_iter().flatten().map(|mark| mark.seq).collect()
    }

    /// The cut that takes the last turn from the surface; absent when it is not there. What the model was told in it of
    /// the folder, and of jobs that were started before, stays: taking back the turn changes nothing of that.
    #[must_use]
    pub fn undo_cut(&self) -> Option<SurfaceReplaced> {
        let span = |run: &[Mark]| Some(SpanRange { first: run.first()?.seq, last: run.last()?.seq });
        let ranges = self.undo_runs().into_iter().filter_map(span);
        let spans: Vec<Span> = ranges.map(|range| Span { range: Some(range), with: Vec::new() }).collect();
        (!spans.is_empty()).then_some(SurfaceReplaced { reason: CutReason::Undo, spans })
    }

    /// The cut that brings back the turn that was taken back last, each record to its place among the notices that had
    /// stayed; absent when it left nothing on the surface.
    #[must_use]
    pub fn redo_cut(&self) -> Option<SurfaceReplaced> {
        let items = &self.history.undone().last()?.items;
        let since = self.marks.partition_point(|mark| Some(&mark.seq) < items.first());
        let stayed: Vec<Seq> = self.marks[since..].iter().map(|mark| mark.seq).collect();
        let range = stayed.first().zip(stayed.last()).map(|(first, last)| SpanRange { first: *first, last: *last });
        let mut all: Vec<Seq> = items.iter().copied().chain(stayed).collect();
        all.sort_unstable();
        let with = all.into_iter().map(|seq| Replacement::Back(ItemRef { seq })).collect();
        (!items.is_empty()).then(|| SurfaceReplaced { reason: CutReason::Redo, spans: vec![Span { range, with }] })
    }

    /// Replaces spans of the surface: all of them, or none when one does not fit. What follows from the surface (files
    /// that were read, the folder) follows from what is left.
    pub(crate) fn cut(&mut self, replaced: &SurfaceReplaced) {
        let Some(places) = replaced.spans.iter().map(|span| self.place(span)).collect::<Option<Vec<_>>>() else {
            return;
        };
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|at| places[*at].start);
        if order.windows(2).any(|pair| places[pair[0]].end > places[pair[1]].start) {
            return;
        }
        let known = |seq: Seq| self.set_aside.contains_key(&seq) || self.marks.iter().any(|mark| mark.seq == seq);
        let fits = |item: &Replacement| match item {
            Replacement::Back(item) => known(item.seq),
            Replacement::Result { result } => {
                places.iter().any(|place| self.marks[place.clone()].iter().any(|mark| mark.seq == result.seq()))
            }
        };
        if !replaced.spans.iter().flat_map(|span| &span.with).all(fits) {
            return;
        }
        let items = std::mem::take(&mut self.surface);
        let mut items: Vec<Option<Placed>> = items.into_iter().zip(std::mem::take(&mut self.marks)).map(Some).collect();
        let removed = places.iter().flat_map(|place| place.clone());
        for (item, mark) in removed.filter_map(|at| items[at].take()) {
            self.set_aside.insert(mark.seq, (item, mark));
        }
        let mut left: Vec<Placed> = Vec::with_capacity(items.len());
        let mut at = 0;
        for index in order {
            left.extend(items[at..places[index].start].iter_mut().filter_map(Option::take));
            let back = replaced.spans[index].with.iter();
            left.extend(back.filter_map(|item| match item {
                Replacement::Back(item) => self.set_aside.remove(&item.seq),
                Replacement::Result { result } => {
                    let (_, mut mark) = self.set_aside.remove(&result.seq())?;
                    // Of a file that it showed nobody knows what is left.
                    if let Some(told) = &mut mark.told {
                        told.shown = None;
                    }
                    Some((result.item(), mark))
                }
            }));
            at = places[index].end;
        }
        left.extend(items[at..].iter_mut().filter_map(Option::take));
        (self.surface, self.marks) = left.into_iter().unzip();
        self.follow_surface();
        self.cut = Some(replaced.reason);
    }

    fn place(&self, span: &Span) -> Option<std::ops::Range<usize>> {
        let Some(range) = span.range else { return Some(self.surface.len()..self.surface.len()) };
        let position = |seq: Seq| self.marks.iter().position(|mark| mark.seq == seq);
        let (first, last) = (position(range.first)?, position(range.last)?);
        (first <= last).then_some(first..last + 1)
    }

    fn follow_surface(&mut self) {
        self.surface_bytes = self.surface.iter().map(|item| own_bytes(item) + self.argument_bytes(item)).sum();
        // What comes back later counts as new.
        if let Some(counted) = &mut self.counted {
            counted.surface_bytes = counted.surface_bytes.min(self.surface_bytes);
        }
        self.shown_files = Arc::new(ShownFiles::new());
        self.read_files = Arc::new(ReadFiles::new());
        self.cwd = None;
        let marks = std::mem::take(&mut self.marks);
        for mark in &marks {
            self.tells(mark);
        }
        self.marks = marks;
    }

    fn argument_bytes(&self, item: &SurfaceItem) -> u64 {
        let SurfaceItem::Assistant { content, .. } = item else { return 0 };
        let calls = content.iter().filter_map(|block| match block {
            Block::Call { call, .. } => self.calls.get(call),
            _ => None,
        });
        calls.map(|call| call.arguments.len() as u64).sum()
    }
}

fn own_bytes(item: &SurfaceItem) -> u64 {
    match item {
        SurfaceItem::User(parts) => parts.iter().map(|Part::Text { text }| text.len() as u64).sum(),
        SurfaceItem::Assistant { content, .. } => content
            .iter()
            .map(|block| match block {
                Block::Text { text, .. } => text.len() as u64,
                // Its text may have been left out, and is counted as input all the same.
                Block::Reasoning { text, native } => {
                    text.len().max(native.as_ref().map_or(0, |native| native.len())) as u64
                }
                Block::Call { .. } => 0,
            })
            .sum(),
        SurfaceItem::Result { content, images, .. } => {
            content.len() as u64 + images.iter().map(Image::prompt_bytes).sum::<u64>()
        }
    }
}
