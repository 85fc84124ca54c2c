//! Asking a shell how it is left: its folder and the exit codes of its last pipeline.
//!
//! `bash` reads the file that `BASH_ENV` names before a command line (bash manual, 6.2, as of 5.2).
//! That file sets a trap that writes the answer on exit. Both files are memory of this process, reached
//! through `/proc`, so that the command inherits no descriptor and its own text stays as it is. A command
//! that sets its own trap on exit, or becomes another program, gives no answer, and neither does `sh`.

use std::ffi::OsString;
use std::io;
use std::process::Command;

use super::After;

/// Names the file that `bash` reads first.
pub(crate) const BASH_ENV: &str = "BASH_ENV";

#[cfg(target_os = "linux")]
pub(crate) use linux::Asked;

#[cfg(not(target_os = "linux"))]
pub(crate) struct Asked;

#[cfg(not(target_os = "linux"))]
impl Asked {
    pub(crate) fn new() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn ask(&self, _: &mut Command, _: Option<&OsString>) {}

    pub(crate) fn answer(&self) -> Option<After> {
        None
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::Write as _;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::os::unix::fs::FileExt;

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::{After, BASH_ENV, Command, OsString, io, parse};

    /// Bytes of an answer that are read.
    const ANSWER: usize = 64 * 1024;

    /// A question and the place for its answer.
    pub(crate) struct Asked {
        question: File,
        answer: File,
    }

    impl Asked {
        /// Makes both files.
        pub(crate) fn new() -> io::Result<Self> {
            let memory = |name: &str| -> io::Result<File> {
                let memory: OwnedFd = memfd_create(name, MemfdFlags::CLOEXEC)?;
                Ok(memory.into())
            };
            let asked = Self { question: memory("stele-question")?, answer: memory("stele-answer")? };
            // The shell's own children must not be asked, and a file that was to be read still is.
            let script = format!(
                "if [ -n \"${{STELE_BASH_ENV-}}\" ]; then export BASH_ENV=\"$STELE_BASH_ENV\"; unset STELE_BASH_ENV; \
                 else unset BASH_ENV; fi\n\
                 trap 'builtin printf \"%s\\0%s\\0\" \"$PWD\" \"${{PIPESTATUS[*]}}\" 2>/dev/null >{}' EXIT\n\
                 if [ -n \"${{BASH_ENV-}}\" ] && [ -r \"$BASH_ENV\" ]; then . \"$BASH_ENV\"; fi\n",
                path(&asked.answer)
            );
            (&asked.question).write_all(script.as_bytes())?;
            Ok(asked)
        }

        /// Has the shell asked; `own` is the file that it would have read first.
        pub(crate) fn ask(&self, shell: &mut Command, own: Option<&OsString>) {
            if let Some(own) = own {
                shell.env("STELE_BASH_ENV", own);
            }
            shell.env(BASH_ENV, path(&self.question));
        }

        /// The shell's answer, if it gave one.
        pub(crate) fn answer(&self) -> Option<After> {
            let mut bytes = vec![0; ANSWER];
            let count = self.answer.read_at(&mut bytes, 0).ok()?;
            parse(&bytes[..count])
        }
    }

    /// The name under which the shell finds a file of this process.
    fn path(file: &File) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
    }
}

/// An answer: the folder and the exit codes, each ended by NUL. The command could have written it, so
/// it is no more trustworthy than the command.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn parse(bytes: &[u8]) -> Option<After> {
    let mut parts = bytes.split(|byte| *byte == 0);
    let (cwd, stages) = (parts.next()?, parts.next()?);
    let cwd = std::str::from_utf8(cwd).ok().filter(|cwd| cwd.starts_with('/'))?;
    let stages = std::str::from_utf8(stages).ok()?.split(' ').filter_map(|code| code.parse().ok()).collect();
    Some(After { cwd: cwd.to_owned(), stages })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_folder_and_codes() {
        assert_eq!(parse(b"/w/p\x003 0\0"), Some(After { cwd: "/w/p".to_owned(), stages: vec![3, 0] }));
        for bytes in [&b""[..], b"w\x000\0", b"\xff\x000\0", b"/w"] {
            assert_eq!(parse(bytes), None);
        }
    }
}
