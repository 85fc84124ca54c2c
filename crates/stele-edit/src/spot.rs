//! Which files the names in a patch lead to: one file may have several names.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

use crate::patch::Wanted;
use crate::refuse::{Code, Refusal};

/// The files that a patch is worked out over; paths are relative to the folder.
pub trait Folder {
    /// The content of the file that a path leads to, symbolic links followed; nothing when there is no such file.
    fn read(&mut self, path: &str) -> Option<Vec<u8>>;

    /// Where a path leads.
    fn spot(&mut self, path: &str) -> Spot;
}

/// Where a path leads. The parts are compared as bytes and mean nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The name itself, as all paths to this one entry of a folder have it: what is deleted or moved.
    pub name: Vec<u8>,
    /// The name that is reached through all links: what is written.
    pub target: Vec<u8>,
    /// The same for all names of one file, hard links included.
    pub file: Vec<u8>,
    /// Where the name points to, when it is a symbolic link.
    pub link: Option<Vec<u8>>,
}

impl Spot {
    /// The spot of a path that is the only name of its file.
    #[must_use]
    pub fn plain(path: &str) -> Self {
        let path = path.as_bytes().to_vec();
        Self { name: path.clone(), target: path.clone(), file: path, link: None }
    }
}

/// Files that are told apart by their paths alone.
pub(crate) struct ByPath<'a>(pub(crate) &'a mut dyn FnMut(&str) -> Option<Vec<u8>>);

impl Folder for ByPath<'_> {
    fn read(&mut self, path: &str) -> Option<Vec<u8>> {
        (self.0)(path)
    }

    fn spot(&mut self, path: &str) -> Spot {
        Spot::plain(path)
    }
}

/// What a patch does to one file, under the first path that it has in the patch.
pub(crate) struct Placed {
    pub(crate) path: String,
    pub(crate) spot: Spot,
    pub(crate) wanted: Wanted,
    /// The other paths whose changes are among those wanted.
    pub(crate) also: Vec<String>,
}

/// Brings together what is wanted of one file under several paths.
///
/// # Errors
/// `edit.overlap` when a file that is changed is also to be created, deleted or moved.
pub(crate) fn joined(sections: Vec<(String, Wanted)>, folder: &mut dyn Folder) -> Result<Vec<Placed>, Refusal> {
    let mut all: Vec<Placed> = Vec::with_capacity(sections.len());
    // Who takes a content, and who changes what stands under a name.
    let mut files: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let mut names: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for (path, wanted) in sections {
        let spot = folder.spot(&path);
        let stays = wanted.stays(&path);
        let keeps_content = stays || (wanted.moves(&path) && spot.link.is_none());
        let mut at = all.len();
        if keeps_content {
            match files.entry(spot.file.clone()) {
                Slot::Vacant(slot) => drop(slot.insert(at)),
                Slot::Occupied(slot) if stays && all[*slot.get()].stays() => at = *slot.get(),
                Slot::Occupied(slot) => return Err(one_file(&path, &all[*slot.get()].path)),
            }
        }
        let name = if wanted.takes_name(&path) { &spot.name } else { &spot.target };
        let owner = *names.entry(name.clone()).or_insert(at);
        if owner != at {
            return Err(one_file(&path, &all[owner].path));
        }
        match all.get_mut(at) {
            Some(first) => first.join(path, wanted)?,
            None => all.push(Placed { path, spot, wanted, also: Vec::new() }),
        }
    }
    Ok(all)
}

/// Brings what is moved to a name that another file leaves behind that file's own move; all else stays in order.
pub(crate) fn in_order(placed: Vec<Placed>, folder: &mut dyn Folder) -> Vec<Placed> {
    let leaving: BTreeMap<&Vec<u8>, usize> =
        placed.iter().enumerate().filter_map(|(at, one)| Some((one.leaves()?, at))).collect();
    let before: Vec<Option<usize>> =
        placed.iter().map(|one| leaving.get(&folder.spot(one.wanted.moved_to.as_ref()?).name).copied()).collect();
    let mut waiting: Vec<Option<Placed>> = placed.into_iter().map(Some).collect();
    let mut ordered = Vec::with_capacity(waiting.len());
    for at in 0..waiting.len() {
        let mut chain = Vec::new();
        let mut next = Some(at);
        while let Some(one) = next.filter(|one| !chain.contains(one) && waiting[*one].is_some()) {
            chain.push(one);
            next = before[one];
        }
        ordered.extend(chain.into_iter().rev().filter_map(|one| waiting[one].take()));
    }
    ordered
}

impl Placed {
    fn stays(&self) -> bool {
        self.wanted.stays(&self.path)
    }

    /// The name that the file is moved away from.
    pub(crate) fn leaves(&self) -> Option<&Vec<u8>> {
        (self.wanted.moves(&self.path) && self.spot.link.is_none()).then_some(&self.spot.name)
    }

    fn join(&mut self, path: String, wanted: Wanted) -> Result<(), Refusal> {
        if self.wanted.mode.is_some() && wanted.mode.is_some() && self.wanted.mode != wanted.mode {
            return Err(one_file(&path, &self.path));
        }
        self.wanted.mode = self.wanted.mode.or(wanted.mode);
        self.wanted.requests.extend(wanted.requests);
        self.also.push(path);
        Ok(())
    }
}

fn one_file(path: &str, other: &str) -> Refusal {
    let text = format!("it is the same file as {other}, under another name; say once what becomes of it");
    Refusal::new(Code::Overlap, text).about(path)
}
