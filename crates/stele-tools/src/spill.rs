//! Where the whole of a result goes that is too long to be shown: a file of the session, named by its
//! call (`spill:c14`) or job (`spill:j1`), readable by nobody else.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use stele_core::{SessionId, SpillMeta};

use crate::error::{Error, Result};
use crate::sanitise;

/// Bytes that are kept of one result.
const KEPT: u64 = 64 * 1024 * 1024;
/// What a name begins with.
const PREFIX: &str = "spill:";

/// The file of one result. Nothing is created before the first write.
pub(crate) struct Spill {
    path: PathBuf,
    name: String,
    file: Option<File>,
    bytes: u64,
    begun: bool,
}

impl Spill {
    /// The spill of a call or job in the session's part of `folder`.
    pub(crate) fn new(folder: &Path, session: &SessionId, id: &str) -> Self {
        let path = folder.join(session.as_str()).join(id);
        Self { path, name: format!("{PREFIX}{id}"), file: None, bytes: 0, begun: false }
    }

    /// True once something was written, or could not be.
    pub(crate) fn begun(&self) -> bool {
        self.begun
    }

    /// Appends text, up to what is kept. A disk that refuses ends the spill; the result goes on without it.
    pub(crate) fn write(&mut self, text: &str) {
        if !self.begun {
            self.begun = true;
            self.file = self.create().ok();
        }
        let room = usize::try_from(KEPT - self.bytes).unwrap_or(usize::MAX);
        let text = &text[..sanitise::floor(text, room)];
        if let Some(file) = &mut self.file {
            match file.write_all(text.as_bytes()) {
                Ok(()) => self.bytes += text.len() as u64,
                Err(_) => {
                    self.file = None;
                    let _ = fs::remove_file(&self.path);
                }
            }
        }
    }

    fn create(&self) -> std::io::Result<File> {
        if let Some(folder) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        // A file of that name is from a process that was killed before its call had a result.
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&self.path)
    }

    /// What is kept; nothing when nothing was written.
    pub(crate) fn meta(&self) -> Option<SpillMeta> {
        self.file.as_ref().map(|_| SpillMeta { name: self.name.clone(), bytes: self.bytes })
    }
}

/// The file that a name such as `spill:c14` stands for, in the session's folder of spills.
pub(crate) fn resolve(folder: Option<&Path>, name: &str) -> Option<PathBuf> {
    Some(folder?.join(id(name)?))
}

/// The call or job in a name such as `spill:c14`.
fn id(name: &str) -> Option<&str> {
    let id = name.strip_prefix(PREFIX)?;
    let plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    plain.then_some(id)
}

/// Refuses the name of a spill where a file is to be written.
pub(crate) fn refuse(name: &str) -> Result<()> {
    match id(name) {
        Some(_) => Err(Error::Kept { path: name.to_owned() }),
        None => Ok(()),
    }
}

/// Says where the whole is, within the line that stands for what is left out.
pub(crate) fn pointer(meta: &SpillMeta) -> String {
    let first = if meta.bytes >= KEPT { "the first 64 MiB are" } else { "all of it is" };
    format!("{first} in {}: use read or grep on it", meta.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_spills() {
        let folder = Path::new("/s");
        assert_eq!(resolve(Some(folder), "spill:c14"), Some(PathBuf::from("/s/c14")));
        for name in ["spill:", "spill:../c1", "spill:a/b", "c14", "spill:."] {
            assert_eq!(resolve(Some(folder), name), None, "{name}");
        }
        assert_eq!(resolve(None, "spill:c14"), None);
    }
}
