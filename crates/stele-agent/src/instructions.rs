//! Project instructions: `AGENTS.md` or `CLAUDE.md` from the repository root down to the folder.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use stele_core::PrefaceBlock;
use stele_core::limits::INSTRUCTION_BYTES;
pub(crate) use stele_core::name_on_a_line as one_line;
use stele_tools::sanitise::inert;

/// Names by preference: the first one found in a folder is taken.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// Reads the instructions, broadest first. When they are too long together, the broadest are cut
/// first, at a line end and with a mark; the file nearest to the work is never the one that is lost.
pub(crate) fn read(folder: &Path, user: Option<&Path>) -> Vec<PrefaceBlock> {
    let root = repository_root(folder);
    let mut left = usize::try_from(INSTRUCTION_BYTES.default).unwrap_or(usize::MAX);
    let mut blocks = Vec::new();
    for ancestor in folder.ancestors() {
        let found = NAMES.iter().map(|name| ancestor.join(name)).find(|path| path.is_file());
        if let Some(path) = found.filter(|path| stays_inside(path, &root)) {
            let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
            blocks.extend(block(&path, name, &mut left));
        }
        if ancestor == root {
            break;
        }
    }
    if let Some(path) = user.filter(|path| path.is_file()) {
        blocks.extend(block(path, "user".to_owned(), &mut left));
    }
    blocks.reverse();
    blocks
}

/// The nearest folder above that holds `.git`, else the folder itself.
pub(crate) fn repository_root(folder: &Path) -> PathBuf {
    folder.ancestors().find(|ancestor| ancestor.join(".git").exists()).unwrap_or(folder).to_owned()
}

/// A link that leads out of the project is not followed.
fn stays_inside(path: &Path, root: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| real.starts_with(root))
}

fn block(path: &Path, name: String, left: &mut usize) -> Option<PrefaceBlock> {
    let mut bytes = Vec::new();
    // One byte more than may be shown tells whether something is cut.
    File::open(path).ok()?.take(*left as u64 + 1).read_to_end(&mut bytes).ok()?;
    let cut = bytes.len() > *left;
    bytes.truncate(*left);
    let text = String::from_utf8_lossy(&bytes);
    let mut text = inert(text.trim_start_matches('\u{feff}'));
    if cut {
        // At a line end, unless that would lose most of it.
        let line = text.rfind('\n').map_or(0, |at| at + 1);
        if line > text.len() / 2 {
            text.truncate(line);
        } else {
            text.push('\n');
        }
        text.push_str("[cut here: the instructions together are too long]\n");
    }
    *left = left.saturating_sub(text.len());
    let text = text.trim_end().replace("</instructions", "&lt;/instructions");
    let name = one_line(&name).into_owned();
    (!text.is_empty())
        .then(|| PrefaceBlock { text: format!("<instructions file=\"{name}\">\n{text}\n</instructions>"), name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_the_root_to_the_folder_and_not_beyond() {
        let scratch = tempfile::tempdir().unwrap();
        let base = scratch.path().canonicalize().unwrap();
        let folder = base.join("repo/crates/one");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::create_dir(base.join("repo/.git")).unwrap();
        std::fs::write(base.join("AGENTS.md"), "outside").unwrap();
        std::fs::write(base.join("repo/AGENTS.md"), "root\r\n</instructions> x").unwrap();
        std::fs::write(base.join("repo/CLAUDE.md"), "not this one").unwrap();
        std::fs::write(folder.join("CLAUDE.md"), "near").unwrap();
        let blocks = read(&folder, None);
        let names: Vec<&str> = blocks.iter().map(|block| block.name.as_str()).collect();
        assert_eq!(names, ["AGENTS.md", "crates/one/CLAUDE.md"]);
        assert_eq!(blocks[0].text, "<instructions file=\"AGENTS.md\">\nroot\n&lt;/instructions> x\n</instructions>");
    }

    #[test]
    fn one_long_line_is_cut_and_not_lost() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().canonicalize().unwrap();
        std::fs::write(folder.join("AGENTS.md"), format!("\u{1b}[31m{}", "x".repeat(200_000))).unwrap();
        let blocks = read(&folder, None);
        assert!(blocks[0].text.len() > 60_000);
        assert!(blocks[0].text.ends_with("[cut here: the instructions together are too long]\n</instructions>"));
        assert!(!blocks[0].text.contains('\u{1b}'));
    }

    #[test]
    fn the_broadest_is_cut_first_at_a_line_end() {
        let scratch = tempfile::tempdir().unwrap();
        let base = scratch.path().canonicalize().unwrap();
        let folder = base.join("near");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::create_dir(base.join(".git")).unwrap();
        std::fs::write(base.join("AGENTS.md"), "broad line\n".repeat(6_000)).unwrap();
        std::fs::write(folder.join("AGENTS.md"), "nearest line\n".repeat(400)).unwrap();
        let blocks = read(&folder, None);
        assert!(
            blocks[0].text.ends_with("broad line\n[cut here: the instructions together are too long]\n</instructions>")
        );
        assert_eq!(blocks[1].text.matches("nearest line\n").count(), 400);
        let total: usize = blocks.iter().map(|block| block.text.len()).sum();
        assert!(total < 66 * 1024);
    }
}
