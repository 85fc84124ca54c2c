//! One file of a look: what tells it apart, and what it was.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use stele_core::{FileVersion, Hash, limits};

use crate::file;

/// The clock of a file system may lag this far behind (Linux: one tick, at most 10 ms); a file that changed less
/// than that before it was read may change again without a trace in its times.
pub(super) const TICK_NS: i128 = 50_000_000;

#[derive(Clone)]
pub(super) struct Entry {
    pub(super) stamp: Stamp,
    pub(super) looked_ns: i128,
    /// Absent when it was too large, or could not be read.
    pub(super) content: Option<(Hash, Arc<[u8]>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) device: u64,
    pub(super) inode: u64,
    /// How many names it has.
    pub(super) names: u64,
    pub(super) mode: u32,
    pub(super) size: u64,
    pub(super) modified_ns: i128,
    pub(super) changed_ns: i128,
    /// When it was made, whatever became of its name and content since; absent where the file system does not say.
    pub(super) born_ns: Option<i128>,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        let ns = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            names: metadata.nlink(),
            mode: metadata.mode(),
            size: metadata.len(),
            modified_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
            born_ns: metadata.created().ok().map(since_epoch_ns),
        }
    }

    /// True for a file that only got another name: what tells of its content is the same.
    pub(super) fn is_of_the_same_content(&self, other: &Self) -> bool {
        let told = |stamp: &Self| (stamp.file(), stamp.size, stamp.modified_ns, stamp.born_ns);
        told(self) == told(other)
    }

    /// True for a file with hard links.
    pub(super) fn has_other_names(&self) -> bool {
        self.names > 1 && !crate::stands::is_link(self.mode)
    }

    /// Which file it is, whatever becomes of its name and content.
    pub(super) fn file(&self) -> (u64, u64) {
        (self.device, self.inode)
    }
}

impl Entry {
    /// Looks at one file; nothing when it is gone.
    pub(super) fn look(path: &Path, known: Option<&Self>, room: &mut u64) -> Option<Self> {
        let stamp = Stamp::of(&fs::symlink_metadata(path).ok()?);
        let fits = stamp.size <= limits::SNAPSHOT_FILE_BYTES.default.min(*room);
        if let Some(known) = known
            && known.stamp == stamp
            && known.settled()
            && (known.content.is_some() || !fits)
        {
            *room = room.saturating_sub(known.content.as_ref().map_or(0, |(_, bytes)| bytes.len() as u64));
            return Some(known.clone());
        }
        let looked_ns = now_ns();
        let content = fits.then(|| read(path, stamp.mode)).and_then(io::Result::ok).map(|bytes| {
            *room = room.saturating_sub(bytes.len() as u64);
            (Hash::of(&bytes), Arc::from(bytes))
        });
        Some(Self { stamp, looked_ns, content })
    }

    /// False when the file had just been changed, so that the stamp proves nothing.
    pub(super) fn settled(&self) -> bool {
        self.has_settled(self.stamp.modified_ns.max(self.stamp.changed_ns))
    }

    pub(super) fn has_settled(&self, changed_ns: i128) -> bool {
        self.looked_ns - changed_ns > TICK_NS
    }

    pub(super) fn version(&self, hash: Hash) -> FileVersion {
        FileVersion { hash, len: self.stamp.size, mode: self.stamp.mode }
    }

    /// The version that stands at a path now, also of a file too large to be kept.
    pub(super) fn version_at(&self, path: &Path) -> io::Result<FileVersion> {
        if let Some((hash, _)) = &self.content {
            return Ok(self.version(*hash));
        }
        let (hash, len) =
            file::hash(path, &path.display().to_string()).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(FileVersion { hash, len, mode: self.stamp.mode })
    }
}

fn read(path: &Path, mode: u32) -> io::Result<Vec<u8>> {
    if crate::stands::is_link(mode) {
        return Ok(fs::read_link(path)?.into_os_string().into_vec());
    }
    // What grows while it is read is not read to its end.
    let (opened, _) =
        file::open(path, &path.display().to_string()).map_err(|error| io::Error::other(error.to_string()))?;
    let mut bytes = Vec::new();
    let most = limits::SNAPSHOT_FILE_BYTES.default;
    io::Read::read_to_end(&mut io::Read::take(opened, most + 1), &mut bytes)?;
    if bytes.len() as u64 > most { Err(io::Error::other("it grew")) } else { Ok(bytes) }
}

pub(super) fn now_ns() -> i128 {
    since_epoch_ns(SystemTime::now())
}

fn since_epoch_ns(time: SystemTime) -> i128 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)
}
