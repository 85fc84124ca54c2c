//! A process that is killed at every moment of what it does.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::Duration;

/// The first wait, and the least by which one is longer than the one before.
const STEP: Duration = Duration::from_millis(1);
/// A process that needs longer than this never ends.
const LONGEST: Duration = Duration::from_secs(120);

/// What a kill left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// All as it was.
    Old,
    /// All as it was to become.
    New,
}

/// Removes the new files that kills between their naming and their renaming left in a folder.
///
/// # Errors
/// One cannot be read or removed, or is not the whole new file.
pub fn remove_leftovers(folder: &Path, new: &[u8]) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".stele-")) {
            if fs::read(&path)? != new {
                return Err(io::Error::other(format!("{} is not the new file", path.display())));
            }
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// What kills left, with the time each of them came after the start.
#[derive(Debug, Default)]
pub struct Kills {
    olds: Vec<Duration>,
    news: Vec<Duration>,
}

impl Kills {
    /// Starts a process again and again, and kills it after longer and longer times, until it was too late so many times.
    /// `left` looks at what is left, and fails where that is neither.
    ///
    /// # Panics
    /// The process cannot be killed, never came to its end, or was never killed in time.
    pub fn of(too_late: usize, mut start: impl FnMut() -> Child, mut left: impl FnMut(Duration) -> Left) -> Self {
        let mut kills = Self::default();
        let mut wait = Duration::ZERO;
        while kills.news.len() < too_late {
            assert!(wait < LONGEST, "it never ended: {kills}");
            let mut process = start();
            // Not a wait for something to be done: the moment of the kill is what is varied.
            thread::sleep(wait);
            assert!(process.kill().and_then(|()| process.wait()).is_ok(), "it cannot be killed");
            match left(wait) {
                Left::Old => kills.olds.push(wait),
                Left::New => kills.news.push(wait),
            }
            wait = wait * 5 / 4 + STEP;
        }
        assert!(!kills.olds.is_empty(), "it was never killed in time");
        kills
    }
}

impl fmt::Display for Kills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |waits: &[Duration]| match (waits.iter().min(), waits.iter().max()) {
            (Some(first), Some(last)) => format!(" (after {} to {} ms)", first.as_millis(), last.as_millis()),
            _ => String::new(),
        };
        let (olds, news) = (&self.olds, &self.news);
        write!(f, "{} kills left the old{}, {} the new{}", olds.len(), range(olds), news.len(), range(news))
    }
}
