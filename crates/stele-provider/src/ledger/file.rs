//! The ledger's file: one JSON object a line, replaced whole under a lock.
//!
//! A line that cannot be read costs itself and nothing else: the file as it was is set aside, and what could be read
//! goes on. A line that a later version wrote is kept as it is.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use stele_core::Wire;

use super::{Capability, Endpoint, Evidence, How, Ledger, Lesson, Status};

/// Longest file that is read, in bytes.
const FILE_MAX: u64 = 16 * 1024 * 1024;

/// How often, and how far apart, a lock that somebody holds is tried.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Most damaged files that are kept; then the last one is replaced.
const SET_ASIDE_MAX: u32 = 9;

/// Why the ledger could not be read or written as it should. Nothing that runs depends on it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// Part of the file is damaged.
    #[error(
        "ledger.damaged: {lines} {} of the ledger {} cannot be read; the file as it was is now {}, and what could be read goes on. `stele probe ROUTE` finds out again what is missing", if *.lines == 1 { "line" } else { "lines" }, .path.display(), .aside.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damaged one is.
        aside: PathBuf,
        /// How many lines were lost.
        lines: usize,
    },
    /// The file cannot be read or written.
    #[error("ledger.unusable: the ledger {} cannot be used: {cause}; what is learnt now is forgotten when this ends", .path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
}

impl LedgerError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Damaged { .. } => "ledger.damaged",
            Self::Unusable { .. } => "ledger.unusable",
        }
    }
}

/// What is known, and what was wrong with the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// What is known.
    pub ledger: Ledger,
    /// What was wrong.
    pub trouble: Option<LedgerError>,
}

/// The ledger of this machine's user. Processes share the file; none loses what another learnt.
#[derive(Debug, Default)]
pub struct LedgerFile {
    path: Option<PathBuf>,
    /// What this process knows: what it last read, and what it learnt.
    known: Mutex<Ledger>,
}

impl LedgerFile {
    /// The ledger in a file, which need not be there yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path: Some(path), known: Mutex::default() }
    }

    /// A ledger that is forgotten when the process ends.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Reads what is known. A damaged file is set aside.
    pub fn read(&self) -> Reading {
        let Some(path) = &self.path else { return Reading { ledger: self.known().clone(), trouble: None } };
        match load(path) {
            Ok(content) if content.damaged == 0 => {
                *self.known() = content.ledger.clone();
                Reading { ledger: content.ledger, trouble: None }
            }
            // It is set aside under the lock, where it is read again.
            Ok(_) => match update(path, |_| ()) {
                Ok((ledger, trouble)) => {
                    *self.known() = ledger.clone();
                    Reading { ledger, trouble }
                }
                Err(error) => self.unusable(path, &error),
            },
            Err(error) => self.unusable(path, &error),
        }
    }

    /// Takes in what was seen, and stores it where it is news.
    ///
    /// # Errors
    /// The file is damaged or cannot be used; what was seen is known to this process all the same.
    pub fn learn(&self, endpoint: &Endpoint, lessons: &[Lesson], how: How, today: &str) -> Result<(), LedgerError> {
        let mut known = self.known();
        let news: Vec<&Lesson> = lessons.iter().filter(|lesson| known.learn(endpoint, lesson, how, today)).collect();
        let Some(path) = self.path.as_ref().filter(|_| !news.is_empty()) else { return Ok(()) };
        let stored = update(path, |ledger| {
            for lesson in &news {
                ledger.learn(endpoint, lesson, how, today);
            }
        });
        match stored {
            Ok((ledger, trouble)) => {
                *known = ledger;
                trouble.map_or(Ok(()), Err)
            }
            Err(error) => Err(unusable(path, &error)),
        }
    }

    /// A panic elsewhere has left a whole ledger behind.
    fn known(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unusable(&self, path: &Path, error: &io::Error) -> Reading {
        Reading { ledger: self.known().clone(), trouble: Some(unusable(path, error)) }
    }
}

fn unusable(path: &Path, error: &io::Error) -> LedgerError {
    LedgerError::Unusable { path: path.to_owned(), cause: error.to_string() }
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    base_url: String,
    wire: Wire,
    model: String,
    capability: Capability,
    status: Status,
    when: String,
    how: How,
    says: String,
}

/// What a file holds.
#[derive(Default)]
struct Content {
    ledger: Ledger,
    /// Lines of a later version.
    foreign: Vec<String>,
    /// Lines that cannot be read.
    damaged: usize,
}

fn parse(bytes: &[u8]) -> Content {
    let mut content = Content::default();
    for raw in bytes.split(|byte| *byte == b'\n').filter(|raw| !raw.trim_ascii().is_empty()) {
        if let Ok(line) = serde_json::from_slice::<Line>(raw) {
            let endpoint = Endpoint { base_url: line.base_url, wire: line.wire, model: line.model };
            let evidence = Evidence { status: line.status, when: line.when, how: line.how, says: line.says };
            content.ledger.entries.insert((endpoint, line.capability), evidence);
        } else if let Some(line) = foreign(raw) {
            content.foreign.push(line);
        } else {
            content.damaged += 1;
        }
    }
    content
}

/// A whole line that this version does not understand.
fn foreign(raw: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(raw).ok()?;
    let object: BTreeMap<String, serde_json::Value> = serde_json::from_str(text).ok()?;
    let named = ["base_url", "capability"].iter().all(|key| object.get(*key).is_some_and(|value| value.is_string()));
    named.then(|| text.trim().to_owned())
}

fn load(path: &Path) -> io::Result<Content> {
    let file = match open(OpenOptions::new().read(true), path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::default()),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(FILE_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_MAX {
        // Nothing that this program wrote is so long.
        return Ok(Content { damaged: 1, ..Content::default() });
    }
    Ok(parse(&bytes))
}

/// Reads, changes and replaces the file while no other process does.
fn update(path: &Path, change: impl FnOnce(&mut Ledger)) -> io::Result<(Ledger, Option<LedgerError>)> {
    if let Some(folder) = path.parent() {
        let mut folders = DirBuilder::new();
        folders.recursive(true).mode(0o700).create(folder)?;
    }
    // Dropping the file gives the lock back.
    let _held = lock(&path.with_extension("lock"))?;
    let mut content = load(path)?;
    let mut trouble = None;
    if content.damaged > 0 {
        let aside = set_aside(path)?;
        trouble = Some(LedgerError::Damaged { path: path.to_owned(), aside, lines: content.damaged });
    }
    change(&mut content.ledger);
    write(path, &content)?;
    Ok((content.ledger, trouble))
}

fn lock(path: &Path) -> io::Result<File> {
    let file = open(OpenOptions::new().read(true).write(true).create(true).truncate(false), path)?;
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds its lock"))
}

/// Gives the damaged file a name of its own.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let named = |number: u32| path.with_extension(format!("damaged-{number}"));
    let free = (1..SET_ASIDE_MAX).map(named).find(|aside| !aside.exists()).unwrap_or_else(|| named(SET_ASIDE_MAX));
    std::fs::rename(path, &free)?;
    Ok(free)
}

fn write(path: &Path, content: &Content) -> io::Result<()> {
    let mut bytes = Vec::new();
    for (endpoint, capability, evidence) in content.ledger.entries() {
        let line = Line {
            base_url: endpoint.base_url.clone(),
            wire: endpoint.wire,
            model: endpoint.model.clone(),
            capability,
            status: evidence.status,
            when: evidence.when.clone(),
            how: evidence.how,
            says: evidence.says.clone(),
        };
        serde_json::to_writer(&mut bytes, &line)?;
        bytes.push(b'\n');
    }
    for line in &content.foreign {
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    let new = path.with_extension("new");
    let mut file = open(OpenOptions::new().write(true).create(true).truncate(true), &new)?;
    file.write_all(&bytes)?;
    file.sync_data()?;
    std::fs::rename(&new, path)
}

/// Opens a file that only its owner may read. A named pipe would be waited at for its other end, for ever: it and
/// whatever else is no file is refused instead.
fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let file = options.mode(0o600).custom_flags(i32::try_from(flags).unwrap_or(0)).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() {
        if metadata.mode() & 0o077 != 0 {
            // Where it cannot be closed to others, such as on a foreign disk, it is of use all the same.
            let _ = file.set_permissions(Permissions::from_mode(0o600));
        }
        return Ok(file);
    }
    let name = path.file_name().unwrap_or_default().display().to_string();
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name} is not a file; move it away")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ledger::Finding;

    fn endpoint(model: &str) -> Endpoint {
        Endpoint::new("http://127.0.0.1:1/v1", Wire::OpenaiChat, model)
    }

    fn lesson(capability: Capability, finding: Finding) -> Lesson {
        Lesson { capability, finding, says: "it said \"so\"\nonce".to_owned() }
    }

    #[test]
    fn lines_of_a_later_version_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        let later = r#"{"base_url":"http://h","capability":"telepathy","much":"more"}"#;
        std::fs::write(&path, format!("{later}\n")).unwrap();
        let file = LedgerFile::new(path.clone());
        assert_eq!(file.read(), Reading::default());
        let works = [lesson(Capability::CacheRead, Finding::Works)];
        file.learn(&endpoint("m"), &works, How::Traffic, "2026-11-30").unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().lines().any(|line| line == later));
        assert_eq!(LedgerFile::new(path).read().ledger.entries().count(), 1);
    }

    #[test]
    fn a_ledger_that_others_could_read_is_closed_to_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(LedgerFile::new(path.clone()).read(), Reading::default());
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_damaged_line_costs_itself_alone_and_the_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        let file = LedgerFile::new(path.clone());
        for model in ["m", "n"] {
            let works = [lesson(Capability::CacheRead, Finding::Works)];
            file.learn(&endpoint(model), &works, How::Traffic, "2026-11-30").unwrap();
        }
        let whole = std::fs::read(&path).unwrap();
        let torn = [&whole[..], b"{\"base_url\":\"http://h\",\"capab\xff\n"].concat();
        std::fs::write(&path, &torn).unwrap();
        let reading = LedgerFile::new(path.clone()).read();
        assert_eq!(reading.ledger.entries().count(), 2);
        let Some(LedgerError::Damaged { aside, lines: 1, .. }) = reading.trouble else { panic!("{reading:?}") };
        assert_eq!(std::fs::read(aside).unwrap(), torn);
        assert_eq!(std::fs::read(&path).unwrap(), whole);
        assert_eq!(LedgerFile::new(path).read().trouble, None, "it is told once");
    }

    #[test]
    fn what_cannot_be_stored_is_said_and_known_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file/ledger.jsonl");
        std::fs::write(folder.path().join("file"), "").unwrap();
        let file = LedgerFile::new(path);
        let refused = [lesson(Capability::StreamOptions, Finding::Refused)];
        let error = file.learn(&endpoint("m"), &refused, How::Refusal, "2026-11-30").unwrap_err();
        assert_eq!(error.code(), "ledger.unusable");
        let reading = file.read();
        assert_eq!(reading.ledger.standing(&endpoint("m"), Capability::StreamOptions).status, Status::Rejected);
        assert_eq!(reading.trouble.unwrap().code(), "ledger.unusable");
    }

    #[test]
    fn what_is_no_file_is_refused_and_not_waited_for() {
        for (name, kept) in [("ledger.jsonl", false), ("ledger.lock", true), ("ledger.new", true)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("ledger.jsonl");
            let pipe = folder.path().join(name);
            assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            let file = LedgerFile::new(path);
            let works = [lesson(Capability::CacheRead, Finding::Works)];
            let error = file.learn(&endpoint("m"), &works, How::Traffic, "2026-11-30").unwrap_err();
            assert!(error.code() == "ledger.unusable", "{name}: {error}");
            let reading = file.read();
            assert_eq!(reading.trouble.is_none(), kept, "{name}: {reading:?}");
            assert!(!pipe.metadata().unwrap().is_file(), "{name} is left as it is");
        }
    }

    #[test]
    fn two_that_write_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data/ledger.jsonl");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = path.clone();
                scope.spawn(move || {
                    let file = LedgerFile::new(path);
                    for n in 0..8 {
                        let works = [lesson(Capability::CacheRead, Finding::Works)];
                        file.learn(&endpoint(&format!("{writer}-{n}")), &works, How::Traffic, "2026-11-30").unwrap();
                    }
                });
            }
        });
        assert_eq!(LedgerFile::new(path.clone()).read().ledger.entries().count(), 32);
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_bytes_are_read_and_what_was_whole_is_kept(
            noise in proptest::collection::vec(any::<u8>(), 0..300),
            text in "[ -~\n]{0,200}",
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("ledger.jsonl");
            let file = LedgerFile::new(path.clone());
            file.learn(&endpoint("m"), &[lesson(Capability::Usage, Finding::Works)], How::Traffic, "2026-11-30").unwrap();
            let whole = std::fs::read(&path).unwrap();
            std::fs::write(&path, [&noise[..], b"\n", &whole, text.as_bytes()].concat()).unwrap();
            let reading = LedgerFile::new(path.clone()).read();
            prop_assert_eq!(reading.ledger.standing(&endpoint("m"), Capability::Usage).status, Status::Verified);
            let again = LedgerFile::new(path).read();
            prop_assert_eq!(again, Reading { ledger: reading.ledger, trouble: None });
        }
    }
}
