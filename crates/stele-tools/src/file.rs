//! Reading whole files for a change, and writing them so that a reader sees the old or the new.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use stele_core::{FileAction, FileMeta, FilePart, Hash, Hasher, ReadFiles, Text};

use crate::attributes;
use crate::error::{Error, Result};
use crate::overwrite::{InPlace, overwrite};
use crate::stands::{Was, metadata_of};

/// Largest file, in bytes, that is changed: what the edit engine takes.
pub(crate) const LARGEST: u64 = stele_edit::limits::MAX_FILE as u64;
/// Largest file, in bytes, that is replaced whole: it is held in memory so that its change can be taken back.
pub(crate) const HELD: u64 = 256 * 1024 * 1024;
/// Why a file is written in place whose folder takes no other one.
const CLOSED: &str = "its folder cannot be written";
/// Largest content, in bytes before and after, that a diff is made of.
const DIFFED: usize = 4 * 1024 * 1024;

/// Opens a regular file for reading. Never blocks: a pipe without a writer, a device or a socket
/// is refused.
pub(crate) fn open(path: &Path, asked: &str) -> Result<(File, Metadata)> {
    if asked.is_empty() {
        return Err(Error::Value("the path is empty; name a file".to_owned()));
    }
    let special = |metadata: &Metadata| {
        let kind = metadata.file_type();
        let kind = if kind.is_fifo() {
            "named pipe"
        } else if kind.is_socket() {
            "socket"
        } else {
            "device"
        };
        Error::Special { path: asked.to_owned(), kind }
    };
    let check = |metadata: &Metadata| match metadata {
        metadata if metadata.is_dir() => Err(Error::Folder { path: asked.to_owned() }),
        metadata if !metadata.is_file() => Err(special(metadata)),
        _ => Ok(()),
    };
    // Looked at before opening, since opening some devices has effects, and again afterwards, since
    // the name may mean something else by then.
    check(&fs::metadata(path).map_err(Error::io("open", asked))?)?;
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags).unwrap_or(0))
        .open(path)
        .map_err(Error::io("open", asked))?;
    let metadata = file.metadata().map_err(Error::io("open", asked))?;
    check(&metadata)?;
    Ok((file, metadata))
}

/// The first bytes of a file, at most `most`, and its size.
pub(crate) fn head(path: &Path, asked: &str, most: usize) -> Result<(Vec<u8>, u64)> {
    let (file, metadata) = open(path, asked)?;
    let mut bytes = Vec::new();
    file.take(most as u64).read_to_end(&mut bytes).map_err(Error::io("read", asked))?;
    Ok((bytes, metadata.len()))
}

/// Reads a whole file that is about to be changed.
pub(crate) fn read(path: &Path, asked: &str) -> Result<Vec<u8>> {
    read_up_to(LARGEST, path, asked)
}

/// Reads a whole file of at most so many bytes; a larger one is refused by its size.
pub(crate) fn read_up_to(limit: u64, path: &Path, asked: &str) -> Result<Vec<u8>> {
    let (file, metadata) = open(path, asked)?;
    let too_large = |size| Error::TooLarge { path: asked.to_owned(), size, limit };
    if metadata.len() > limit {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    file.take(limit + 1).read_to_end(&mut bytes).map_err(Error::io("read", asked))?;
    if bytes.len() as u64 > limit {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(bytes)
}

/// Reads a whole file that is about to be changed, of at most so many bytes; nothing where there is no such file.
pub(crate) fn read_if_there(limit: u64, path: &Path, asked: &str) -> Result<Option<Vec<u8>>> {
    match read_up_to(limit, path, asked) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The hash and the length of a file of any size.
pub(crate) fn hash(path: &Path, asked: &str) -> Result<(Hash, u64)> {
    let (mut file, _) = open(path, asked)?;
    let (mut hasher, mut len) = (Hasher::new(), 0);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = file.read(&mut buffer).map_err(Error::io("read", asked))?;
        if count == 0 {
            return Ok((Hash::from(&hasher), len));
        }
        hasher.update(&buffer[..count]);
        len += count as u64;
    }
}

/// Replaces the content of a file, or creates it with its folders, while it is what it was. `path` is a real path: links
/// have been followed, and one that stands there gives way itself. A reader, also after a crash, sees the old content or
/// the new.
///
/// Returns why the content was written in place, where a replacement would have lost something
/// else.
pub(crate) fn replace(path: &Path, asked: &str, was: Was, bytes: &[u8], how: &InPlace) -> Result<Option<&'static str>> {
    let failed = Error::io("write", asked);
    let folder = path.parent().unwrap_or(Path::new("/"));
    let before = metadata_of(path, asked)?.filter(|metadata| !metadata.is_symlink());
    let swapped = match &before {
        None => {
            fs::create_dir_all(folder).map_err(Error::io("create the folder of", asked))?;
            swap(path, folder, None, was, bytes)
        }
        Some(before) if before.is_dir() => return Err(Error::Folder { path: asked.to_owned() }),
        Some(before) => {
            refuse_read_only(before, asked)?;
            match before.nlink() {
                1 => swap(path, folder, Some(before), was, bytes),
                _ => Ok(Swap::Instead("it has other hard links")),
            }
        }
    };
    let written = match swapped {
        Ok(Swap::Done) => return Ok(None),
        Ok(Swap::Changed) => return Err(Error::Changed { path: asked.to_owned() }),
        Ok(Swap::Instead(why)) if before.is_some() => overwrite(path, was, bytes, how).map(|done| done.then_some(why)),
        Ok(Swap::Instead(why)) => Err(io::Error::new(io::ErrorKind::PermissionDenied, why)),
        Err(error) => Err(error),
    };
    written.map_err(failed)?.map_or_else(|| Err(Error::Changed { path: asked.to_owned() }), |why| Ok(Some(why)))
}

/// Gives one name of a file other content, in a file of its own, while it is what it was: the other names stay what they
/// are.
pub(crate) fn part(path: &Path, asked: &str, was: Was, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let before = metadata_of(path, asked)?;
    match swap(path, folder, before.as_ref(), was, bytes).map_err(Error::io("write", asked))? {
        Swap::Done => Ok(()),
        Swap::Changed => Err(Error::Changed { path: asked.to_owned() }),
        Swap::Instead(why) => Err(Error::io("write", asked)(io::Error::new(io::ErrorKind::PermissionDenied, why))),
    }
}

/// A file that nobody may write is not to be changed, whatever the folder it is in would allow.
pub(crate) fn refuse_read_only(metadata: &Metadata, asked: &str) -> Result<()> {
    match metadata.is_file() && metadata.mode() & 0o222 == 0 {
        true => Err(Error::ReadOnly { path: asked.to_owned(), mode: metadata.mode() & 0o7777 }),
        false => Ok(()),
    }
}

/// How a file was put in another one's place.
enum Swap {
    Done,
    /// It was not, since the file there is not what it was.
    Changed,
    /// It was not and cannot be, for this reason: what stands there has to be written over.
    Instead(&'static str),
}

/// Writes a new file and puts it in the target's place, as long as that is what it was. Once it is there, nothing is an
/// error: it would be taken for a change that was not made.
fn swap(path: &Path, folder: &Path, before: Option<&Metadata>, was: Was, bytes: &[u8]) -> io::Result<Swap> {
    // The usual creation mask applies to the mode of a new file.
    let mode = before.map_or(0o666, |_| 0o600);
    let mut names = beside();
    names.permissions(fs::Permissions::from_mode(mode));
    // While it is written and made durable it has no name, so that a crash leaves nothing in the folder; only between the
    // two calls that name it and put it in place could one leave it, whole, as `.stele-….tmp`.
    if let Some(new) = nameless(folder, mode) {
        if let Some(lost) = fill(&new, path, before, bytes)? {
            return Ok(Swap::Instead(lost));
        }
        let put = || match before {
            None => link(&new, path).is_ok(),
            Some(_) => names.make_in(folder, |name| link(&new, name)).is_ok_and(|named| named.persist(path).is_ok()),
        };
        if !was.stands(path) {
            return Ok(Swap::Changed);
        }
        if put() {
            settle(folder);
            return Ok(Swap::Done);
        }
    }
    let new = match names.tempfile_in(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(Swap::Instead(CLOSED)),
        // The error would name the file that nobody asked for.
        new => new.map_err(|error| io::Error::from(error.kind()))?,
    };
    if let Some(lost) = fill(new.as_file(), path, before, bytes)? {
        return Ok(Swap::Instead(lost));
    }
    if !was.stands(path) {
        return Ok(Swap::Changed);
    }
    let put = if was == Was::Nothing { new.persist_noclobber(path) } else { new.persist(path) };
    match put.map_err(|error| error.error) {
        Ok(_) => {
            settle(folder);
            Ok(Swap::Done)
        }
        Err(error) if was == Was::Nothing && error.kind() == io::ErrorKind::AlreadyExists => Ok(Swap::Changed),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(Swap::Instead(CLOSED)),
        Err(error) => Err(error),
    }
}

/// Names for what is put beside a file before it takes its place.
pub(crate) fn beside() -> tempfile::Builder<'static, 'static> {
    let mut names = tempfile::Builder::new();
    names.prefix(".stele-").suffix(".tmp");
    names
}

/// Makes what was named in a folder durable. One that can be written but not read cannot be opened for that: its names are
/// there all the same.
pub(crate) fn settle(folder: &Path) {
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

/// A file without a name; `None` where the file system has no such files.
fn nameless(folder: &Path, mode: u32) -> Option<File> {
    #[cfg(target_os = "linux")]
    {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::open(folder, flags, rustix::fs::Mode::from_raw_mode(mode)).ok().map(File::from)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (folder, mode);
        None
    }
}

/// Gives a nameless file a name that nothing has yet (open(2), `O_TMPFILE`).
fn link(file: &File, name: &Path) -> io::Result<()> {
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    let (here, flags) = (rustix::fs::CWD, rustix::fs::AtFlags::SYMLINK_FOLLOW);
    Ok(rustix::fs::linkat(here, own, here, name, flags)?)
}

/// Writes what is to be in the target's place, as [`keep`] says, and makes it durable.
fn fill(mut new: &File, path: &Path, before: Option<&Metadata>, bytes: &[u8]) -> io::Result<Option<&'static str>> {
    new.write_all(bytes)?;
    if let Some(lost) = before.map(|before| keep(new, path, before)).transpose()?.flatten() {
        return Ok(Some(lost));
    }
    new.sync_all()?;
    Ok(None)
}

/// Gives a file the owner, access control list, extended attributes and mode of the one that it replaces. Says which of
/// them would be lost, if one would.
fn keep(new: &File, path: &Path, before: &Metadata) -> io::Result<Option<&'static str>> {
    let now = new.metadata()?;
    if (now.uid(), now.gid()) != (before.uid(), before.gid())
        && std::os::unix::fs::fchown(new, Some(before.uid()), Some(before.gid())).is_err()
    {
        return Ok(Some("its owner would have changed"));
    }
    if !attributes::copy(path, new) {
        return Ok(Some("its access control list or an extended attribute would have been lost"));
    }
    new.set_permissions(fs::Permissions::from_mode(before.mode() & 0o7777))?;
    Ok(None)
}

/// A file that was shown to the model, before anything is known of its content.
pub(crate) fn seen(path: &Path) -> FileMeta {
    FileMeta {
        path: path.display().to_string(),
        action: FileAction::Read,
        hash: None,
        added: 0,
        removed: 0,
        diff: None,
        part: None,
    }
}

/// What the model knows of a file that was edited: all, when it knew all of what it was.
pub(crate) fn known_of(seen: &ReadFiles, path: &Path, before: Option<&[u8]>, after: &[u8]) -> Option<FilePart> {
    let before = before?;
    let knew = seen.get(path).is_some_and(|known| known.is_all_of(Hash::of(before)));
    (!knew).then(|| FilePart::nothing_of(lines(after)))
}

fn lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64 + u64::from(!bytes.is_empty() && !bytes.ends_with(b"\n"))
}

/// A change, for people, cards and the fold.
pub(crate) fn change(path: &Path, shown: &str, before: Option<&[u8]>, after: &[u8]) -> FileMeta {
    let old = before.unwrap_or_default();
    let (diff, added, removed) = if old.len().max(after.len()) <= DIFFED {
        let diff = stele_edit::unified_diff(shown, old, after);
        (Some(Text::from(diff.text)), diff.added, diff.removed)
    } else {
        let (added, removed) = count_changed(old, after);
        (None, added, removed)
    };
    FileMeta {
        path: path.display().to_string(),
        action: if before.is_none() { FileAction::Created } else { FileAction::Changed },
        hash: Some(Hash::of(after)),
        added,
        removed,
        diff,
        part: None,
    }
}

/// Lines between the common beginning and the common end, where a diff would cost too much.
fn count_changed(old: &[u8], new: &[u8]) -> (u32, u32) {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let head = memchr::memrchr(b'\n', &old[..head]).map_or(0, |at| at + 1);
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let lines = |bytes: &[u8]| {
        let changed = &bytes[..bytes.len() - tail];
        let count =
            memchr::memchr_iter(b'\n', changed).count() + usize::from(!changed.is_empty() && !changed.ends_with(b"\n"));
        u32::try_from(count).unwrap_or(u32::MAX)
    };
    (lines(new), lines(old))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_of_large_content() {
        assert_eq!(count_changed(b"a\nb\nc\n", b"a\nB\nc\n"), (1, 1));
        assert_eq!(count_changed(b"", b"a\nb"), (2, 0));
        assert_eq!(count_changed(b"a\nb\nc\n", b"a\nc\n"), (0, 1));
        assert_eq!(count_changed(b"same", b"same"), (0, 0));
    }
}
