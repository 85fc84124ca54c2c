//! A program at a pseudo-terminal, and what a person types there.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Longest wait for something to be shown; only a defect waits so long.
const PATIENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// A program at a terminal. Dropping it ends the program.
pub struct Terminal {
    child: Child,
    screen: File,
    seen: String,
    /// How much of it was waited for already.
    known: usize,
}

impl Terminal {
    /// Starts a program whose standard streams are a terminal.
    ///
    /// # Errors
    /// No terminal can be had, or the program cannot be started.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let screen: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&screen)?;
        unlockpt(&screen)?;
        let name = ptsname(&screen, Vec::new())?;
        let name = name.to_str().map_err(io::Error::other)?;
        let side = File::options().read(true).write(true).open(name)?;
        let streams = (side.try_clone()?, side.try_clone()?, side);
        let child = command.env("TERM", "xterm").stdin(streams.0).stdout(streams.1).stderr(streams.2).spawn()?;
        // The command's own copies of the terminal's side would keep it open.
        drop(command);
        Ok(Self { child, screen: screen.into(), seen: String::new(), known: 0 })
    }

    /// Reads until this is there, after what was waited for before.
    ///
    /// # Errors
    /// It never came: the program has ended, or nothing came for a minute. The message has all that was seen.
    pub fn wait_for(&mut self, text: &str) -> io::Result<()> {
        loop {
            let new = self.seen.get(self.known..).unwrap_or_default();
            if let Some(at) = new.find(text) {
                self.known += at + text.len();
                return Ok(());
            }
            if !self.more()? {
                return Err(io::Error::other(format!("{text:?} never came:\n{}", self.seen)));
            }
        }
    }

    /// Types a line.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn type_line(&mut self, line: &str) -> io::Result<()> {
        self.screen.write_all(format!("{line}\n").as_bytes())
    }

    /// Reads to the end; gives how the program ended, and all that was seen.
    ///
    /// # Errors
    /// The program cannot be waited for.
    pub fn end(mut self) -> io::Result<(ExitStatus, String)> {
        while self.more()? {}
        let status = self.child.wait()?;
        Ok((status, std::mem::take(&mut self.seen)))
    }

    /// Reads what comes next; false at the end, and when nothing comes.
    fn more(&mut self) -> io::Result<bool> {
        let mut ready = [PollFd::new(&self.screen, PollFlags::IN)];
        if poll(&mut ready, Some(&PATIENCE))? == 0 {
            return Ok(false);
        }
        let mut piece = [0; 4096];
        match self.screen.read(&mut piece) {
            // The kernel says EIO once nobody has the other side open.
            Ok(0) | Err(_) => Ok(false),
            Ok(read) => {
                self.seen.push_str(&String::from_utf8_lossy(piece.get(..read).unwrap_or_default()));
                Ok(true)
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
