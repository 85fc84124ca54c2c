//! What a call of `write` or `edit` would make of its file, for a person who is asked about it.

use std::path::{Path, PathBuf};

use crate::overwrite::InPlace;
use crate::path::Place;
use crate::tools;

/// Largest content, in bytes before and after, that is shown.
const LARGEST: usize = 4 * 1024 * 1024;

/// What a preview is made with; the same as the tools are.
#[derive(Clone, Debug, Default)]
pub struct PreviewOptions {
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    /// How the edit engine works.
    pub edit: stele_edit::Options,
}

/// A file before and after a change that was not made yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// The file, links followed.
    pub path: PathBuf,
    /// What it holds now; absent when there is no such file.
    pub before: Option<String>,
    /// What it would hold.
    pub after: String,
}

impl Preview {
    pub(crate) fn of(path: PathBuf, before: Option<&[u8]>, after: &[u8]) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { path, before: before.map(text), after: text(after) }
    }
}

/// What a call would change, from the file as it is now. Nothing is written. `None` where the tool has no
/// preview, or the contents are too large for one (4 MiB).
///
/// # Errors
/// Why the call would fail, as the model would be told.
pub fn preview(tool: &str, arguments: &str, cwd: &Path, options: &PreviewOptions) -> Option<Result<Preview, String>> {
    let place = Place { cwd: cwd.to_owned(), home: options.home.clone(), spill: None, in_place: InPlace::default() };
    let made = match tool {
        "write" => tools::write::preview(&place, arguments),
        "edit" => tools::edit::preview(&place, arguments, &options.edit),
        _ => return None,
    };
    match made {
        Ok(preview) => preview.filter(|preview| preview.after.len() <= LARGEST).map(Ok),
        Err(error) => Some(Err(error.to_string())),
    }
}

/// True for a file that is not read, since a person waits.
pub(crate) fn is_too_large(place: &Place, asked: &str) -> bool {
    place.join(asked).metadata().is_ok_and(|metadata| metadata.len() > LARGEST as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_itself_is_compared_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path().canonicalize().unwrap();
        let file = cwd.join("a");
        std::fs::write(&file, "one\ntwo\n").unwrap();
        let show = |tool, arguments: serde_json::Value| {
            preview(tool, &arguments.to_string(), &cwd, &PreviewOptions::default())
        };
        let write = show("write", serde_json::json!({"path": "a", "content": "x\n"})).unwrap().unwrap();
        assert_eq!((write.before.as_deref(), write.after.as_str()), (Some("one\ntwo\n"), "x\n"));
        let edits = |old| serde_json::json!({"path": "a", "edits": [{"old": old, "new": "2"}]});
        assert_eq!(show("edit", edits("two")).unwrap().unwrap().after, "one\n2\n");
        assert!(show("edit", edits("three")).unwrap().is_err());
        let new = show("write", serde_json::json!({"path": "b/c", "content": "x"})).unwrap().unwrap();
        assert_eq!(new.before, None);
        let last = PreviewOptions {
            edit: stele_edit::Options { on_ambiguous: stele_edit::OnAmbiguous::Last, ..Default::default() },
            ..PreviewOptions::default()
        };
        std::fs::write(&file, "two\ntwo\n").unwrap();
        assert!(show("edit", edits("two")).unwrap().is_err());
        assert_eq!(preview("edit", &edits("two").to_string(), &cwd, &last).unwrap().unwrap().after, "two\n2\n");
        std::fs::write(&file, "one\ntwo\n").unwrap();
        assert_eq!(show("bash", serde_json::json!({})), None);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\ntwo\n");
        std::fs::File::options().write(true).open(&file).unwrap().set_len(5 << 20).unwrap();
        assert_eq!(show("write", serde_json::json!({"path": "a", "content": "x"})), None);
    }
}
