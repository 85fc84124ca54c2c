//! Writing over a file that has to keep its inode, in a process of its own.
//!
//! Such a file cannot be replaced by a rename, so whoever dies while it is written leaves a mixture. What ends the agent
//! (`kill -9`, a closed terminal, an empty memory) therefore must not end the writing: a process outside the agent's
//! group takes the whole content first and only then begins. Against a power cut the content is kept meanwhile
//! ([`crate::unfinished`]).

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use rustix::fs::FallocateFlags;

use crate::stands::Was;
use crate::unfinished::{self, Kept};

/// What the process is asked for.
pub(crate) const OVERWRITE: &str = "overwrite";

/// How a file is written that has to keep its inode.
#[derive(Clone, Debug, Default)]
pub struct InPlace {
    /// The program and leading arguments that end up in [`crate::supervise`]: a process of its own writes. Without it this
    /// process does, and its end in the middle leaves a mixture.
    pub writer: Option<Vec<OsString>>,
    /// The folder, absolute, in which the new content is kept until the file is safe on disk. Without it a power cut in the
    /// middle leaves a mixture that nobody is told of.
    pub kept: Option<PathBuf>,
}

/// What the process says when the file is not what it was.
const CHANGED: &[u8] = b"changed";

/// Writes over the old content; false with nothing written when that is not what it was.
pub(crate) fn overwrite(path: &Path, was: Was, bytes: &[u8], in_place: &InPlace) -> io::Result<bool> {
    let kept = in_place.kept.as_deref();
    kept.map_or(Ok(()), unfinished::make)?;
    let Some([program, leading @ ..]) = in_place.writer.as_deref() else { return write(path, was, bytes, kept) };
    let mut child = Command::new(program)
        .args(leading)
        .arg(OVERWRITE)
        .arg(bytes.len().to_string())
        .arg(was.to_string())
        .arg(path)
        .args(kept)
        .env_clear()
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A writer that cannot begin says why by itself.
        let _ = input.write_all(bytes);
    }
    let ended = child.wait_with_output()?;
    if ended.status.success() {
        return Ok(true);
    }
    if ended.stdout == CHANGED {
        return Ok(false);
    }
    let code = std::str::from_utf8(&ended.stdout).ok().and_then(|code| code.parse().ok());
    Err(code.map_or_else(|| io::Error::other("the process that wrote it failed"), io::Error::from_raw_os_error))
}

/// The body of the process: the length, what the file was, its path and where the content is kept are arguments, the
/// content comes in. The number of an error goes out.
pub(crate) fn serve(len: &str, was: &str, path: &Path, kept: Option<&Path>) -> ExitCode {
    let (Ok(len), Ok(was)) = (len.parse::<usize>(), was.parse::<Was>()) else { return ExitCode::from(2) };
    let mut bytes = Vec::with_capacity(len);
    let outcome = io::stdin().lock().read_to_end(&mut bytes).and_then(|_| match bytes.len() == len {
        true => write(path, was, &bytes, kept),
        // Whoever sent it is gone: nothing was begun.
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    });
    let why = match outcome {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => CHANGED.to_vec(),
        Err(error) => error.raw_os_error().map_or_else(Vec::new, |code| code.to_string().into_bytes()),
    };
    let _ = io::stdout().write_all(&why);
    ExitCode::FAILURE
}

fn write(path: &Path, was: Was, bytes: &[u8], kept: Option<&Path>) -> io::Result<bool> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    reserve(&file, bytes.len() as u64)?;
    let kept = kept.map(|folder| Kept::begin(folder, path, bytes)).transpose()?;
    let stands = was.stands(path);
    if stands {
        file.write_all(bytes)?;
        file.set_len(bytes.len() as u64)?;
        file.sync_all()?;
    }
    if let Some(kept) = kept {
        kept.end();
    }
    Ok(stands)
}

/// Takes the space that more content needs, so that a full disk or a limit is met before anything is written.
fn reserve(file: &File, len: u64) -> io::Result<()> {
    let most = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    if most.is_some_and(|most| len > most) {
        return Err(rustix::io::Errno::FBIG.into());
    }
    if len <= file.metadata()?.len() {
        return Ok(());
    }
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, len) {
        Err(error) if error == rustix::io::Errno::NOSPC => Err(error.into()),
        // Where the file system cannot do that, the writing will tell.
        _ => Ok(()),
    }
}
